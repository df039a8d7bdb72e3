#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every DNS packet that leaves or enters by any interface of this namespace: capture.py LOG

A line of LOG is an interface and the packet's printable bytes, a dot for each of the others: the names
in it can be read. Says "ready" once nothing is missed any more; runs until it is killed."""
import socket
import struct
import sys

ETH_P_ALL = 3
PACKET_OUTGOING = 4


def ports(packet):
    """Of the UDP or TCP segment of an IPv4 or IPv6 packet."""
    version = packet[0] >> 4
    if version == 4:
        proto, at = packet[9], (packet[0] & 15) * 4
    elif version == 6:
        proto, at = packet[6], 40
    else:
        return ()
    return struct.unpack(">HH", packet[at:at + 4]) if proto in (6, 17) and len(packet) >= at + 4 else ()


with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL)) as s, open(sys.argv[1], "w", encoding="ascii") as log:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    print("ready", flush=True)
    while True:
        data, (interface, _, kind, *_) = s.recvfrom(65536)
        if data and 53 in ports(data):
            text = "".join(chr(b) if 32 < b < 127 else "." for b in data)
            log.write("%s %s %s\n" % (interface, "out" if kind == PACKET_OUTGOING else "in", text))
            log.flush()

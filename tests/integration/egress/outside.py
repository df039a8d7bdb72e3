#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Inside a container: every way out that is not the policy's. outside.py PATH_OF_A_SOCKET_OUTSIDE"""
import os
import socket
import struct
import sys
import urllib.error
import urllib.request

socket.setdefaulttimeout(10)


def attempt(what, call):
    try:
        print("%s: %s" % (what, call() or "reached"))
    except urllib.error.HTTPError as e:
        print("%s: %d %s" % (what, e.code, e.reason))
    except OSError as e:
        print("%s: %s" % (what, os.strerror(e.errno) if e.errno else e))


def ask(name):
    """One question to the stub, by hand."""
    q = b"\x12\x34\x01\x00\x00\x01" + b"\0" * 6 + b"".join(bytes([len(x)]) + x.encode() for x in name.split(".")) + b"\0\0\1\0\1"
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.sendto(q, ("127.0.0.1", 53))
    got = s.recv(2000)
    if got[3] & 15 == 3:
        return "no such name"
    return socket.inet_ntoa(got[-4:]) if struct.unpack(">H", got[6:8])[0] == 1 else "nothing"


def opened(family, kind):
    try:
        socket.socket(family, kind)
    except OSError:
        return "refused"
    return "reached"


def unix(name):
    s = socket.socket(socket.AF_UNIX)
    s.connect(name)


def main():
    for place in ("10.66.0.2:443", "10.66.0.1:80", "169.254.169.254:80", "8.8.8.8:53"):
        host, port = place.split(":")
        attempt("connect " + place, lambda a=(host, int(port)): socket.create_connection(a) and None)
    for url in ("http://169.254.169.254/", "http://10.66.0.2/", "http://127.0.0.1/"):
        proxies = urllib.request.ProxyHandler({"http": "http://127.0.0.1:3128"})
        os.environ["no_proxy"] = ""
        attempt("proxy " + url, lambda u=url: urllib.request.build_opener(proxies).open(u).read().decode() and None)
    for name in ("evil.test", "allowed.test"):
        attempt("ask " + name, lambda n=name: ask(n))
    print("vsock: " + opened(40, socket.SOCK_STREAM))
    print("packet: " + opened(17, socket.SOCK_RAW))
    attempt("unix path", lambda: unix(sys.argv[1]))
    attempt("unix abstract", lambda: unix("\0aqe-outside"))


main()

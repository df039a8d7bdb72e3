#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Load on a running service: load.py NAME LAB_FOLDER KEEPER_PID. Exits 0 when it held its bounds."""
import os
import select
import socket
import subprocess
import sys
import time

from scenarios import PROXY, children, get, hello, lines, read_all, rss, socks_ask, status, until

# 64 tunnels at a time for ten minutes, each replaced every 10 s: 60 rounds of 64, with 150 kB each (15 kB/s;
# half of them up, half down), and as many plain and denied requests. Here as fast as it goes, after a warm-up.
ROUNDS, WARM_UP = 60, 15
GROWTH_KB = 512  # of each process, after the warm-up
FLOOD = 1000


def processes():
    """keeper, dialer, worker"""
    return [int(sys.argv[3])] + children()


def sizes():
    return [rss(p) for p in processes()]


def descriptors():
    return [len(os.listdir("/proc/%d/fd" % p)) for p in processes()]


def settled(want):
    until(lambda: all(a <= b for a, b in zip(descriptors(), want)), 20)


def rounds(n):
    out = subprocess.run([os.environ["BENCH"], "mixed", "127.0.0.1:3128", "10.66.0.2:8000=allowed.test:8000", str(n)], check=True,
                         stdout=subprocess.PIPE, encoding="utf-8", timeout=600).stdout
    return int(out.split()[0])


def soak():
    idle = descriptors()
    done = rounds(WARM_UP)
    settled(idle)
    warm = sizes()
    done += rounds(ROUNDS)
    settled(idle)
    end = sizes()
    print("%d tunnels and requests; keeper, dialer, worker: RSS %s kB, then %s kB" % (done, warm, end))
    assert all(b - a <= GROWTH_KB for a, b in zip(warm, end)), (warm, end)


# ---- each front end: what a slow or a greedy client begins with, and a request that must work after it ----

def works_http():
    return status(get("http://allowed.test/")) == "200 OK"


def works_socks():
    s, reply = socks_ask(3, b"allowed.test", 80)
    s.close()
    return reply == 0


def works_tls():
    with socket.create_connection(("127.66.0.1", 443), timeout=10) as s:
        s.sendall(hello("allowed.test"))
        return s.recv(7) == b"ORIGIN:"


def works_host():
    with socket.create_connection(("127.66.0.1", 80), timeout=10) as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n")
        return b"origin 10.66.0.2" in read_all(s)


QUERY = b"\x12\x34\x01\0\0\1\0\0\0\0\0\0\x07allowed\x04test\0\0\1\0\1"


def works_dns_tcp():
    with socket.create_connection(("127.0.0.1", 53), timeout=10) as s:
        s.sendall(bytes([0, len(QUERY)]) + QUERY)
        return s.recv(600).endswith(bytes([127, 66, 0, 1]))


FRONTS = {
    "http": (PROXY, b"GET http://allowed.test/ HTTP/1.1\r\nX: ", works_http),
    "socks": (("127.0.0.1", 1080), b"\x05\x01\x00\x05\x01\x00\x03\x40", works_socks),
    "tls": (("127.66.0.1", 443), b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", works_tls),
    "host": (("127.66.0.1", 80), b"GET / HTTP/1.1\r\nHost: allowed", works_host),
    "dns": (("127.0.0.1", 53), b"\x00\x50\x12\x34", works_dns_tcp),
}


def tried(works):
    try:
        return works()
    except OSError:
        return False


def drop(s):
    """True when the other side has ended it."""
    try:
        while True:
            if not s.recv(65536):
                return True
    except BlockingIOError:
        return False
    except OSError:
        return True


def slow(name):
    """300 beginnings, a byte now and then: at most 128 are kept, and none beyond the deadline (2 s here)."""
    place, begin, works = FRONTS[name]
    before, idle, start = sizes(), descriptors(), time.time()
    socks_ = []
    for _ in range(300):
        s = socket.create_connection(place, timeout=10)
        s.sendall(begin)
        s.setblocking(False)
        socks_.append(s)
    most = max(descriptors()[2] - idle[2], 0)
    assert most <= 128, "%d connections of %s are kept" % (most, name)
    left = socks_
    while left:
        assert time.time() - start < 30, "%s: %d connections outlive the deadline" % (name, len(left))
        for s in left:
            try:
                s.send(b"\x01")
            except OSError:
                pass
        time.sleep(0.05)
        left = [s for s in left if not drop(s)]
    for s in socks_:
        s.close()
    settled(idle)
    assert tried(works) or until(lambda: tried(works), 20)
    return before


def flood(name):
    """FLOOD connections in a row, the beginning of something on each, closed at once."""
    place, begin, works = FRONTS[name]
    idle = descriptors()
    for _ in range(FLOOD):
        with socket.create_connection(place, timeout=20) as s:
            try:
                s.sendall(begin)
            except OSError:
                pass  # one too many: turned away
    settled(idle)
    assert tried(works) or until(lambda: tried(works), 20)


def datagrams():
    """5,000 questions at once: a second's worth is answered, none is kept."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(("127.0.0.1", 53))
    start, answered = time.time(), 0

    def count():
        n = 0
        while select.select([s], [], [], 0)[0]:
            n += s.recv(600).endswith(bytes([127, 66, 0, 1]))
        return n

    for i in range(5000):
        s.send(QUERY)
        if i % 50 == 0:
            answered += count()
    time.sleep(0.3)
    answered += count()
    most = 20 * (time.time() - start + 1) + 20
    assert 0 < answered <= most, (answered, most)
    assert until(lambda: tried(works_dns_tcp), 20)


def fronts():
    for name, (_, _, works) in FRONTS.items():
        assert until(lambda w=works: tried(w), 20), name
        slow(name)
        flood(name)
    warm = sizes()
    for name in FRONTS:
        flood(name)
    datagrams()
    end = sizes()
    print("RSS of keeper, dialer, worker: %s kB, then %s kB" % (warm, end))
    assert all(b - a <= GROWTH_KB for a, b in zip(warm, end)), (warm, end)
    assert not [o for o in lines("origin.jsonl") if o.get("at") == "10.66.0.3"]


if __name__ == "__main__":
    globals()[sys.argv[1]]()

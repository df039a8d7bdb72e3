#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hammers `aqe policy serve` with clients that ask again as soon as they may, on the real clock.

policy_soak.py SOCKET SECONDS CLIENTS PER_MINUTE BURST

Prints "admitted N ideal M share S% asked K", and fails when any 60 seconds hold more than PER_MINUTE
admissions, or fewer than 99 % of what the limits allow were admitted. A server that goes away is
waited for: it may be restarted meanwhile.
"""
import json
import socket
import sys
import threading
import time

SOCKET, SECONDS, CLIENTS = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
PER_MINUTE, BURST = int(sys.argv[4]), int(sys.argv[5])
LINE = b'{"op":"record","type":"soak","agent":"one","host":"a.example"}\n'
SLACK = 0.05  # what the clients' own clock readings may be late by

admitted, asked, lock = [], [0], threading.Lock()
start = time.monotonic()


def ask(stream):
    stream.write(LINE)
    stream.flush()
    answer = stream.readline()
    if not answer:
        raise ConnectionError
    return json.loads(answer)


def client():
    stream = None
    while time.monotonic() - start < SECONDS:
        try:
            if stream is None:
                s = socket.socket(socket.AF_UNIX)
                s.connect(SOCKET)
                stream = s.makefile("rwb")
            answer = ask(stream)
        except (ConnectionError, FileNotFoundError, ValueError):
            stream = None
            time.sleep(0.005)
            continue
        now = time.monotonic()
        with lock:
            asked[0] += 1
            if answer.get("verdict") == "allow":
                admitted.append(now)
        if answer.get("verdict") == "limit":
            time.sleep(min(answer["retryAfterMs"] / 1000, 0.25))
        elif answer.get("verdict") != "allow":
            sys.exit(f"unexpected: {answer}")


def ideal():
    """The most that a bucket and a sliding minute let through, worked out in steps of a millisecond."""
    times, tokens = [], BURST
    for ms in range(int(SECONDS * 1000)):
        while tokens >= 1 and (len(times) < PER_MINUTE or ms - times[-PER_MINUTE] >= 60000):
            times.append(ms)
            tokens -= 1
        tokens = min(BURST, tokens + PER_MINUTE / 60000)
    return len(times)


threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
for t in threads:
    t.start()
for t in threads:
    t.join()
admitted.sort()
most = ideal()
share = 100 * len(admitted) / most
print(f"admitted {len(admitted)} ideal {most} share {share:.2f}% asked {asked[0]}")
for i in range(len(admitted) - PER_MINUTE):
    if admitted[i + PER_MINUTE] - admitted[i] < 60 - SLACK:
        sys.exit(f"over the limit: {PER_MINUTE + 1} in {admitted[i + PER_MINUTE] - admitted[i]:.3f} s")
sys.exit(0 if 99 <= share <= 100.5 else "not accurate")

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""COUNT services at once, each in a network namespace of its own with a policy of its own:
crowd.py LAB_FOLDER PROGRAM COUNT. Every "container" asks for its own name and for its neighbour's."""
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time

LAB, PROGRAM, COUNT = sys.argv[1], sys.argv[2], int(sys.argv[3])
CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def name(i):
    return "h%03d.test" % i


def policy():
    agents = {"crowd%03d" % i: {"access": "whitelisted", "domains": [name(i)], "allowCidr": ["10.66.0.0/24"],
                                "rate": {"perMinute": 100, "perHour": 100, "burst": 100}} for i in range(COUNT)}
    with open(os.path.join(LAB, "crowd.json"), "w", encoding="utf-8") as f:
        json.dump({"version": 1, "network": {"agents": agents}}, f)
    with open("/etc/hosts", "a", encoding="utf-8") as f:
        f.writelines("10.66.0.2 %s\n" % name(i) for i in range(COUNT))


def check(call, what):
    if call != 0:
        raise OSError(ctypes.get_errno(), what)


def make_space():
    """A process with nothing but a network namespace: its pid."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        check(libc.unshare(CLONE_NEWNET), "unshare")
        os.write(w, b"1")
        while True:
            signal.pause()
    os.read(r, 1)
    os.close(r)
    os.close(w)
    return pid


class Box:
    def __init__(self, i):
        self.i, self.pid = i, make_space()
        self.log = os.path.join(LAB, "crowd%03d.jsonl" % i)
        self.ready, w = os.pipe()
        os.set_inheritable(w, True)
        self.service = subprocess.Popen([PROGRAM, "--type", "crowd%03d" % i, "--policy", os.path.join(LAB, "crowd.json"), "--netns",
                                         str(self.pid), "--container", "crowd%03d" % i, "--audit-lines", self.log,
                                         "--ready-fd", str(w)], pass_fds=[w], stderr=subprocess.DEVNULL)
        os.close(w)

    def inside(self):
        """Sockets inside, made by a thread-less visit; connects to the proxy."""
        with open("/proc/%d/ns/net" % self.pid, "rb") as there, open("/proc/self/ns/net", "rb") as home:
            check(libc.setns(there.fileno(), CLONE_NEWNET), "setns")
            try:
                return [socket.create_connection(("127.0.0.1", 3128), timeout=60) for _ in range(2)]
            finally:
                check(libc.setns(home.fileno(), CLONE_NEWNET), "setns back")


def read_all(s):
    data = b""
    while True:
        part = s.recv(65536)
        if not part:
            return data.decode()
        data += part


def pss_kb(pid):
    with open("/proc/%d/smaps_rollup" % pid, encoding="utf-8") as f:
        own = sum(int(line.split()[1]) for line in f if line.startswith("Pss:"))
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="utf-8") as f:
        return own + sum(pss_kb(int(p)) for p in f.read().split())


def ask(box, s, host):
    s.sendall(("GET http://%s/%d HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (host, box.i, host)).encode())


def check_rows(box):
    with open(box.log, encoding="utf-8") as f:
        rows = [r for r in map(json.loads, f) if r["phase"] == "decision"]
    got = sorted((r["host"], r["action"]) for r in rows)
    want = sorted([(name(box.i), "allowed"), (name((box.i + 1) % COUNT), "blocked")])
    assert got == want, (got, want)


def main():
    policy()
    start = time.time()
    boxes = [Box(i) for i in range(COUNT)]
    for b in boxes:
        assert select.select([b.ready], [], [], 120)[0] and os.read(b.ready, 1) == b"1", "service %d did not start" % b.i
    print("%d services in %.1f s" % (COUNT, time.time() - start))
    visits = [(b, b.inside()) for b in boxes]
    for b, (own, other) in visits:  # all of them before anything is read
        ask(b, own, name(b.i))
        ask(b, other, name((b.i + 1) % COUNT))
    for b, (own, other) in visits:
        answer = read_all(own)
        assert answer.startswith("HTTP/1.1 200 OK") and answer.endswith("origin 10.66.0.2\n"), (b.i, answer)
        answer = read_all(other)
        assert answer.startswith("HTTP/1.1 403 domain_not_allowed"), (b.i, answer)
        assert '"agent_type":"crowd%03d"' % b.i in answer, answer
        own.close()
        other.close()
    each = sum(pss_kb(b.service.pid) for b in boxes) // COUNT
    print("%d kB each (PSS)" % each)
    assert each <= 4096
    for b in boxes:
        check_rows(b)
    with open(os.path.join(LAB, "origin.jsonl"), encoding="utf-8") as f:
        heads = [r["head"].split("\r\n") for r in map(json.loads, f) if "head" in r]
    asked = sorted((h[0].split(" ")[1], h[1]) for h in heads)
    assert asked == sorted(("/%d" % i, "Host: " + name(i)) for i in range(COUNT)), asked[:5]
    took = []
    for b in boxes:
        start = time.time()
        os.kill(b.pid, signal.SIGKILL)
        os.waitpid(b.pid, 0)
        b.service.wait(30)
        took.append(time.time() - start)
    took.sort()
    print("gone after its container: median %.0f ms, longest %.0f ms" % (took[COUNT // 2] * 1000, took[-1] * 1000))
    assert took[COUNT // 2] < 1, took


main()

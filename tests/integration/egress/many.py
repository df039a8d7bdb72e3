#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Many containers at once, each with a policy of its own: many.py SHIM AQE LOW FOLDER COUNT

FOLDER has base.json, a bundle's document, and an origin stands behind every address 10.66.X.Y:80 that
hosts() names. Each container asks for its own name and for its neighbour's, by the proxy and by the stub.
Prints what it measured; exits 1 at the first thing that is not as it should be.
"""
import collections
import concurrent.futures
import json
import os
import select
import signal
import subprocess
import sys
import time

SCRIPT = """
get() { /usr/bin/curl -sS -m 60 "$1" 2>&1 | tr '\\n' ' '; }
go() {
	echo "own: $(get http://$OWN/)"; echo "other: $(get http://$OTHER/)"
	unset http_proxy HTTP_PROXY all_proxy ALL_PROXY
	echo "own, no proxy: $(get http://$OWN/)"; echo "other, no proxy: $(get http://$OTHER/)"
	echo done
}
trap 'go; trap "" USR1' USR1
echo ready
while :; do sleep 1000 & wait $!; done
"""


WAVE = 20  # that ask at the same time


def name(i):
    return "h%03d.test" % i


def address(i):
    return "10.66.%d.%d" % (1 + i // 100, 1 + i % 100)


def hosts(n):
    return "".join("%s %s\n" % (address(i), name(i)) for i in range(n))


def agents(n):
    return {"many%03d" % i: {"access": "whitelisted", "domains": [name(i)], "allowCidr": ["10.66.0.0/16"],
                             "limits": {"headerMs": 60000, "connectMs": 60000},
                             "rate": {"perMinute": 100, "perHour": 100, "burst": 100}} for i in range(n)}


class Box:
    def __init__(self, lab, i):
        self.lab, self.i = lab, i
        self.id = "low-many%03d" % i
        self.dir = os.path.join(lab.folder, self.id)
        self.pid = self.pidfd = None

    def make(self):
        with open(os.path.join(self.lab.folder, "base.json"), encoding="utf-8") as f:
            doc = json.load(f)
        doc["annotations"] = {"io.aqe.agent-type": "many%03d" % self.i, "io.aqe.agent-id": "agent-%03d" % self.i}
        doc["process"]["args"] = ["/bin/sh", "-c", SCRIPT]
        doc["process"]["env"] += ["OWN=" + name(self.i), "OTHER=" + name((self.i + 1) % self.lab.n)]
        os.mkdir(self.dir, 0o755)
        with open(os.path.join(self.dir, "config.json"), "w", encoding="utf-8") as f:
            json.dump(doc, f)

    def shim(self, *words):
        with open(os.path.join(self.dir, "out"), "ab") as out:
            rc = subprocess.run([self.lab.shim, "--root", "/run/low-" + self.lab.low, *words], check=False, stdin=self.lab.stdin,
                                stdout=out, stderr=out, timeout=120).returncode
        assert rc == 0, (words, self.said())

    def start(self):
        self.make()
        self.shim("create", "--bundle", self.dir, "--pid-file", os.path.join(self.dir, "pid"), self.id)
        self.shim("start", self.id)
        with open(os.path.join(self.dir, "pid"), encoding="utf-8") as f:
            self.pid = int(f.read())
        self.pidfd = os.pidfd_open(self.pid)

    def said(self):
        with open(os.path.join(self.dir, "out"), encoding="utf-8") as f:
            return f.read().splitlines()

    def delete(self):
        self.shim("delete", "--force", self.id)


class Lab:
    def __init__(self, shim, aqe, low, folder, n):
        self.shim, self.aqe, self.low, self.folder, self.n = shim, aqe, low, folder, n
        self.stdin = open(os.path.join(folder, "../low/stdin"), "rb")  # crun gives it to the user of the container
        self.boxes = [Box(self, i) for i in range(n)]

    def each(self, what):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(what, self.boxes))

    def wait(self, what, word, seconds, boxes=None):
        end = time.time() + seconds
        left = boxes or self.boxes
        while True:
            left = [b for b in left if word not in b.said()]
            if not left:
                return
            assert time.time() < end, "%s: %d wait, the first says %r" % (what, len(left), left[0].said())
            time.sleep(0.2)


def services():
    """pid -> network namespace the process holds sockets of is not told; pids by container."""
    out = collections.defaultdict(list)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if words[0] == b"aqe-egress":
            out[[w for w in words if w.startswith(b"--container=")][0].decode()[12:]].append(int(pid))
    return out


def pss_kb(pid):
    with open("/proc/%d/smaps_rollup" % pid, encoding="utf-8") as f:
        return sum(int(line.split()[1]) for line in f if line.startswith("Pss:"))


def check_answers(box):
    said = dict(line.split(": ", 1) for line in box.said() if ": " in line)
    own = "origin %s " % address(box.i)
    assert said["own"] == own and said["own, no proxy"] == own, (box.id, said)
    assert "domain_not_allowed" in said["other"] and "origin" not in said["other"], (box.id, said)
    assert "Could not resolve host" in said["other, no proxy"], (box.id, said)


def check_audit(lab):
    """Each row of a container has its agent, and nobody else's host was allowed to it."""
    text = subprocess.run([lab.aqe, "audit", "list", "--kind", "request", "--format", "jsonl", "--limit", "100000"], check=True,
                          stdout=subprocess.PIPE, encoding="utf-8").stdout
    allowed, blocked = collections.Counter(), collections.Counter()
    for row in map(json.loads, text.splitlines()):
        if not row.get("container", "").startswith("low-many"):
            continue
        i = int(row["container"][-3:])
        assert row["agent_type"] == "many%03d" % i and row["agent_id"] == "agent-%03d" % i, row
        if row["action"] == "allowed":
            assert row["domain"] == name(i), row
            allowed[i] += 1
        else:
            assert row["domain"] == name((i + 1) % lab.n), row
            blocked[i] += 1
    assert len(allowed) == lab.n and min(allowed.values()) >= 2, allowed
    assert len(blocked) == lab.n and min(blocked.values()) >= 2, blocked


def end_all(lab):
    """Kills every container; how long each service outlived it."""
    groups, took = services(), []
    assert len(groups) == lab.n and all(len(g) == 3 for g in groups.values()), len(groups)
    for box in lab.boxes:
        keepers = [os.pidfd_open(p) for p in groups[box.id]]
        os.kill(box.pid, signal.SIGKILL)
        assert select.select([box.pidfd], [], [], 30)[0], "the container stays"
        start = time.time()
        for fd in keepers:
            assert select.select([fd], [], [], 30)[0], "the service of %s stays" % box.id
            os.close(fd)
        took.append(time.time() - start)
        os.close(box.pidfd)
    return sorted(took)


def spaces():
    out = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            out.add(os.readlink("/proc/%s/ns/net" % pid))
        except OSError:
            pass
    return out


def main():
    lab = Lab(*sys.argv[1:5], int(sys.argv[5]))
    before = spaces()
    start = time.time()
    lab.each(Box.start)
    lab.wait("start", "ready", 120)
    print("%d containers started in %.1f s" % (lab.n, time.time() - start))
    groups = services()
    pss = sum(pss_kb(p) for g in groups.values() for p in g)
    print("services: %d kB each" % (pss // lab.n))
    assert pss // lab.n <= 4096
    start = time.time()
    for i in range(0, lab.n, WAVE):  # while the others are there
        wave = lab.boxes[i:i + WAVE]
        for box in wave:
            os.kill(box.pid, signal.SIGUSR1)
        lab.wait("answers", "done", 240, wave)
    print("4 requests each in %.1f s" % (time.time() - start))
    for box in lab.boxes:
        check_answers(box)
    check_audit(lab)
    pss = sum(pss_kb(p) for g in groups.values() for p in g)
    print("services, after the requests: %d kB each" % (pss // lab.n))
    assert pss // lab.n <= 4096
    took = end_all(lab)
    print("service gone after its container: median %.0f ms, longest %.0f ms" % (took[len(took) // 2] * 1000, took[-1] * 1000))
    assert took[len(took) // 2] < 1, took
    assert not services()
    lab.each(Box.delete)
    assert spaces() <= before, "network namespaces stay"


if sys.argv[1] == "hosts":
    print(hosts(int(sys.argv[2])), end="")
elif sys.argv[1] == "agents":
    print(json.dumps(agents(int(sys.argv[2]))))
else:
    main()

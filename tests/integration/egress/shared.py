#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The shared rate limit: shared.py NAME LAB_FOLDER [WORD...]. Exits 0 when it held.

Starts its own redis-server and egress services as children, and ends them by their ids."""
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time

LAB = sys.argv[2]
EGRESS = os.environ["EGRESS"]
REDIS_PORT, TLS_PORT = 6390, 6391
children = []


def until(what, seconds=30.0):
    end = time.time() + seconds
    while time.time() < end:
        got = what()
        if got:
            return got
        time.sleep(0.02)
    raise AssertionError("waited in vain")


def same(got, want):
    assert got == want, ("%r instead of %r" % (got, want))[:2000]


def spawn(words, **more):
    p = subprocess.Popen(words, stdin=subprocess.DEVNULL, **more)
    children.append(p)
    return p


def end(p, how=signal.SIGTERM):
    p.send_signal(how)
    p.wait(30)
    children.remove(p)


# ---- redis ----

def redis_start(password=None, more=()):
    words = ["redis-server", "--bind", "127.0.0.1", "--port", str(REDIS_PORT), "--save", "", "--appendonly", "no", "--dir", LAB]
    p = spawn(words + (["--requirepass", password] if password else []) + list(more), stdout=subprocess.DEVNULL)
    until(lambda: redis_try("PING", password=password) == "PONG")
    return p


def redis_try(*words, **more):
    try:
        return redis(*words, **more)
    except OSError:
        return None


def redis(*words, password=None, db=0):
    """The reply, with lists as lists of strings."""
    with socket.create_connection(("127.0.0.1", REDIS_PORT), timeout=30) as s:
        f = s.makefile("rwb")

        def say(*w):
            f.write(b"*%d\r\n" % len(w) + b"".join(b"$%d\r\n%s\r\n" % (len(x), x) for x in (str(y).encode() for y in w)))
            f.flush()
            return hear()

        def hear():
            line = f.readline().rstrip(b"\r\n")
            kind, rest = line[:1], line[1:]
            if kind == b"$":
                return None if rest == b"-1" else f.read(int(rest) + 2)[:-2].decode()
            if kind == b"*":
                return [hear() for _ in range(int(rest))]
            return int(rest) if kind == b":" else rest.decode()

        if password:
            same(say("AUTH", password), "OK")
        if db:
            same(say("SELECT", db), "OK")
        return say(*words)


# ---- services ----

def egress(port, *more):
    out, inside = os.pipe()
    p = spawn([EGRESS, "--type", "qe-lab", "--policy", LAB + "/policy.json", "--listen", "127.0.0.1:%d" % port, "--audit-lines",
               "%s/audit%d.jsonl" % (LAB, port), "--ready-fd", str(inside), *more], pass_fds=(inside,),
              stderr=open(LAB + "/egress.err", "a", encoding="utf-8"))
    os.close(inside)
    same(bool(select.select([out], [], [], 60)[0]) and os.read(out, 1), b"1")
    os.close(out)
    return p


def audit(port, **want):
    with open("%s/audit%d.jsonl" % (LAB, port), encoding="utf-8") as f:
        rows = [json.loads(x) for x in f]
    return [r for r in rows if all(r.get(k) == v for k, v in want.items())]


def ask(port, timeout=20):
    """(status, seconds to wait); 0 when nobody answered."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=timeout) as s:
            s.sendall(b"GET http://allowed.test/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            data = b""
            while True:
                part = s.recv(65536)
                if not part:
                    break
                data += part
    except OSError:
        return 0, 0
    text = data.decode("latin-1")
    found = re.search(r'"retry_after_ms":\s*(\d+)', text)
    return int(text.split(" ")[1]) if text.startswith("HTTP/1.1 ") else 0, int(found.group(1)) / 1000 if found else 0


class Clients:
    """Threads that ask as fast as they may until they are stopped."""

    def __init__(self, ports):
        self.stop = False
        self.seen, self.lock, self.slowest = {}, threading.Lock(), 0.0
        self.times = []
        self.threads = [threading.Thread(target=self.work, args=(p,)) for p in ports]
        for t in self.threads:
            t.start()

    def work(self, port):
        while not self.stop:
            before = time.time()
            status, wait = ask(port)
            with self.lock:
                self.seen[status] = self.seen.get(status, 0) + 1
                self.slowest = max(self.slowest, time.time() - before)
                if status == 200:
                    self.times.append((before, time.time()))
            if status != 200:
                time.sleep(min(max(wait, 0.005), 0.05))

    def join(self):
        self.stop = True
        for t in self.threads:
            t.join()
        return self.seen


def check_bucket(times, per_minute, burst, unit):
    """Exact times of admissions: never more than the bucket gives, and all it gives."""
    tokens, last, lost = burst * 60 * unit, times[0], 0
    for t in times:
        assert t >= last, "times fall"
        full = tokens + (t - last) * per_minute
        lost += max(0, full - burst * 60 * unit)
        tokens, last = min(full, burst * 60 * unit), t
        assert tokens >= 60 * unit, "an admission without a token"
        tokens -= 60 * unit
    due = burst + (times[-1] - times[0]) * per_minute / (60 * unit)
    for i in range(per_minute, len(times)):
        assert times[i] - times[i - per_minute] >= 60 * unit, "more than %d in a minute" % per_minute
    return 100.0 * len(times) / due


def admissions(key="aqe:{t:qe-lab}:a", **more):
    return [int(x) for x in redis("LRANGE", key, 0, -1, **more)]


# ---- scenarios ----

def two_services():
    redis_start("a secret")
    one, two = egress(3128), egress(3129)
    clients = Clients([3128, 3129, 3128, 3129])
    time.sleep(5)
    seen = clients.join()
    times = admissions(password="a secret", db=2)
    same(seen.get(200), len(times))
    same(set(seen) - {200, 429}, set())
    share = check_bucket(times, 1200, 60, 1000000)
    print("two services: %d admitted, %.2f %% of what was due" % (len(times), share))
    assert share >= 99, share
    assert all(len(audit(p, phase="decision", action="allowed")) > 10 for p in (3128, 3129))
    with open(LAB + "/audit3128.jsonl", encoding="utf-8") as f:
        assert "local_limit" not in f.read()
    end(one)
    end(two)


def flagged(port):
    return [r for r in audit(port, phase="decision", action="allowed") if "local_limit" in r.get("flags", [])]


def away_local():
    """Without the server each service goes by its own limit, at once; with it by the common one."""
    server, one = redis_start(), egress(3128)

    def back():
        """The next one is the server's again."""
        n = len(admissions())
        return ask(3128)[0] == 200 and len(admissions()) > n

    until(back)
    for trouble in ("frozen", "killed"):
        if trouble == "frozen":
            server.send_signal(signal.SIGSTOP)
        else:
            end(server, signal.SIGKILL)
        before = len(flagged(3128))
        clients = Clients([3128] * 4)
        until(lambda: len(flagged(3128)) >= before + 50)
        seen = clients.join()
        same(set(seen), {200})
        if trouble == "frozen":
            server.send_signal(signal.SIGCONT)
        else:
            server = redis_start()
        until(back, 60)
    with open(LAB + "/egress.err", encoding="utf-8") as f:
        text = f.read()
    assert "shared limiter: away" in text and "shared limiter: back" in text, text
    # its process is killed, then hangs: a new one takes over
    store = child(one.pid, "egress-store")
    os.kill(store, signal.SIGKILL)
    until(lambda: child(one.pid, "egress-store") not in (None, store), 60)
    until(back, 60)
    store = child(one.pid, "egress-store")
    os.kill(store, signal.SIGSTOP)
    same(ask(3128)[0], 200)
    until(lambda: child(one.pid, "egress-store") not in (None, store), 90)
    until(back, 60)
    end(one)
    end(server)


def child(pid, name):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="utf-8") as f:
        for x in f.read().split():
            try:
                with open("/proc/%s/comm" % x, encoding="utf-8") as c:
                    if c.read().strip() == name:
                        return int(x)
            except OSError:
                pass
    return None


def away_deny():
    """Without the server nothing passes; one that was just started may have lost a minute's worth."""
    if os.path.exists(LAB + "/audit3128.jsonl"):
        os.remove(LAB + "/audit3128.jsonl")
    server, begun, one = redis_start(), time.time(), egress(3128)

    def drained():
        status, wait = ask(3128)
        if status == 503:
            return False
        late = time.time() - begun
        assert late > 30 or status == 429 and 60 - late - 5 < wait <= 60, (status, wait, late)
        return True

    until(drained, 60)
    for trouble in ("frozen", "killed"):
        if trouble == "frozen":
            server.send_signal(signal.SIGSTOP)
        else:
            end(server, signal.SIGKILL)
        until(lambda: ask(3128)[0] == 503)
        seen = {ask(3128)[0] for _ in range(10)}
        same(seen, {503})
        if trouble == "frozen":
            server.send_signal(signal.SIGCONT)
        else:
            server, begun = redis_start(), time.time()
        until(drained, 60)
    assert audit(3128, phase="decision", action="blocked", reason="limiter_unavailable")
    same(flagged(3128), [])
    end(one)
    end(server)


def keys():
    server = redis_start()
    policy(lambda a: a.update(rate={"perMinute": 100, "perHour": 1000, "burst": 2}))
    one = egress(3128, "--agent-id", "agent {7}")
    same([ask(3128)[0] for _ in range(4)], [200, 200, 429, 429])
    names = redis("KEYS", "*")
    same(len(names), 2)
    assert all(re.fullmatch(r"p:\{a:qe-lab:sha256:[0-9a-f]{64}\}:[as]", n) for n in names), names
    key = [n for n in names if n.endswith(":a")][0]
    same(len(admissions(key)), 2)
    # another agent of the same type has its own
    two = egress(3129, "--agent-id", "other")
    same(ask(3129)[0], 200)
    same(len(redis("KEYS", "*")), 4)
    end(two)
    # the same agent elsewhere has not
    two = egress(3129, "--agent-id", "agent {7}")
    same(ask(3129)[0], 429)
    end(two)
    # a reload: the limit of the key changes, what was spent stays spent
    policy(lambda a: a.update(rate={"perMinute": 60000, "perHour": 100000, "burst": 500}))
    one.send_signal(signal.SIGHUP)
    until(lambda: audit(3128, phase="event", reason="policy_changed"))
    until(lambda: ask(3128)[0] == 200)
    same(redis("HGET", key[:-1] + "s", "burst"), "500")
    # without the cluster it is not asked any more
    policy(lambda a: None, cluster=False)
    one.send_signal(signal.SIGHUP)
    until(lambda: child(one.pid, "egress-store") is None)
    n = len(admissions(key))
    same(ask(3128)[0], 200)
    same(len(admissions(key)), n)
    end(one)
    end(server)


def policy(change, cluster=True):
    path = LAB + "/policy.json"
    with open(path, encoding="utf-8") as f:
        p = json.load(f)
    change(p["network"]["agents"]["qe-lab"])
    if isinstance(cluster, dict):
        p["network"]["cluster"] = cluster
    elif not cluster:
        del p["network"]["cluster"]
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump(p, f)
    os.rename(path + ".new", path)


def tls():
    """Over TLS as in clear; a certificate that is not good is no server, and one that is no TLS neither."""
    cert = ["--tls-port", str(TLS_PORT), "--tls-auth-clients", "no", "--tls-cert-file", LAB + "/redis.pem", "--tls-key-file",
            LAB + "/redis.key", "--tls-ca-cert-file", LAB + "/redis.pem"]
    server = redis_start(more=cert)
    policy(lambda a: a.update(sharedRate={"perMinute": 2, "perHour": 100, "burst": 2}))
    good = {"address": "127.0.0.1:%d" % TLS_PORT, "timeoutMs": 20000, "tls": {"caFile": LAB + "/redis.pem"}}
    for conf in (good, dict(good, address="redis.test:%d" % TLS_PORT), dict(good, tls=dict(good["tls"], serverName="redis.test"))):
        policy(lambda a: None, cluster=conf)
        redis("FLUSHALL")
        one = egress(3128)
        same([ask(3128)[0] for _ in range(4)], [200, 200, 429, 429])
        same(len(admissions()), 2)
        end(one)
    for conf, why in ((dict(good, tls={"caFile": LAB + "/other.pem"}), "certificate is not trusted: self"),
                      (dict(good, tls=dict(good["tls"], serverName="other.test")), "certificate is not trusted: hostname mismatch"),
                      (dict(good, tls={}), "certificate is not trusted: self"),
                      (dict(good, tls={"caFile": LAB + "/redis.key"}), "unusable file of authorities"),
                      (dict(good, address="127.0.0.1:%d" % REDIS_PORT), "away: no connection in time")):
        policy(lambda a: None, cluster=dict(conf, onStoreError="deny", timeoutMs=2000))
        with open(LAB + "/egress.err", "w", encoding="utf-8"):
            pass
        one = egress(3128)
        same(ask(3128)[0], 503)
        until(lambda: why in read_text("egress.err"))
        end(one)
    end(server)


def read_text(name):
    with open(os.path.join(LAB, name), encoding="utf-8") as f:
        return f.read()


def soak():
    """The local limit on the real clock. Everything is in the audit log, to the nanosecond."""
    seconds = float(sys.argv[3])
    rate = {"perMinute": 600, "perHour": 100000, "burst": 100}
    policy(lambda a: a.update(rate=rate))
    state = ("--state", LAB + "/limits")
    one = egress(3128, *state)
    begun = time.time()
    clients = Clients([3128] * 4)
    time.sleep(seconds / 4)
    policy(lambda a: a.update(timeoutMs=25000))
    one.send_signal(signal.SIGHUP)
    until(lambda: audit(3128, phase="event", reason="policy_changed"))
    time.sleep(seconds / 4)
    end(one)
    one = egress(3128, *state)
    time.sleep(seconds / 4)
    pids = [one.pid] + [child(one.pid, n) for n in ("egress-worker", "egress-dialer")]
    for p in pids:
        os.kill(p, signal.SIGSTOP)
    time.sleep(1)
    for p in pids:
        os.kill(p, signal.SIGCONT)
    time.sleep(max(0, begun + seconds - time.time()))
    seen = clients.join()
    end(one)
    times = sorted(r["at_ns"] for r in audit(3128, phase="decision", action="allowed"))
    assert seen[200] <= len(times) <= sum(seen.values()) - seen.get(429, 0), (seen, len(times))
    share = check_soak(times, rate)
    print("soak: %d s, %d admitted, %.2f %% of what was due, slowest answer %.2f s, %r" %
          (seconds, len(times), share, clients.slowest, seen))
    assert share >= 99, share


def check_soak(times, rate):
    """Rows are written a moment after the decision: a window may look shorter by that much."""
    slack = 50000000
    burst, per_minute = rate["burst"], rate["perMinute"]
    for i, t in enumerate(times):
        for j in range(i + burst, len(times), 7):
            due = burst + (times[j] - t + slack) * per_minute / 60e9
            assert j - i + 1 <= due + 1, "%d in %.3f s" % (j - i + 1, (times[j] - t) / 1e9)
    for i in range(per_minute, len(times)):
        assert times[i] - times[i - per_minute] >= 60e9 - slack, "more than %d in a minute" % per_minute
    due = burst + (times[-1] - times[0]) * per_minute / 60e9
    return 100.0 * len(times) / due


try:
    globals()[sys.argv[1]]()
finally:
    for c in list(children):
        c.send_signal(signal.SIGCONT)
        end(c, signal.SIGKILL)

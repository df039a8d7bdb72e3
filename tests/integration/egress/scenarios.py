#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One scenario against a running proxy: scenarios.py NAME LAB_FOLDER [WORD...]. Exits 0 when it held."""
import hashlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

PROXY = ("127.0.0.1", 3128)
SOCKS = ("127.0.0.1", 1080)
LAB = sys.argv[2] if len(sys.argv) > 2 else "."


def lines(name):
    with open(os.path.join(LAB, name), encoding="utf-8") as f:
        return [json.loads(x) for x in f]


def audit(**want):
    return [a for a in lines("audit.jsonl") if all(a.get(k) == v for k, v in want.items())]


def until(what, seconds=5.0):
    end = time.time() + seconds
    while time.time() < end:
        got = what()
        if got:
            return got
        time.sleep(0.02)
    raise AssertionError("waited in vain")


def read_head(s):
    data = b""
    while b"\r\n\r\n" not in data:
        part = s.recv(65536)
        if not part:
            break
        data += part
    head, _, rest = data.partition(b"\r\n\r\n")
    return head.decode("latin-1"), rest


def read_all(s):
    data = b""
    while True:
        try:
            part = s.recv(65536)
        except ConnectionError:
            return data
        if not part:
            return data
        data += part


def connect(host, port=443, early=b""):
    s = socket.create_connection(PROXY, timeout=10)
    s.sendall(("CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\n\r\n" % (host, port, host, port)).encode() + early)
    head, rest = read_head(s)
    return s, head, rest


def get(target, extra="", version="1.1"):
    s = socket.create_connection(PROXY, timeout=10)
    s.sendall(("GET %s HTTP/%s\r\nHost: x\r\n%sConnection: close\r\n\r\n" % (target, version, extra)).encode())
    return read_all(s).decode("latin-1")


def status(response):
    return " ".join(response.split("\r\n")[0].split(" ")[1:])


def same(got, want):
    assert got == want, "%r instead of %r" % (got, want)


# ---- addresses (U34) ----

def addresses():
    """A name that is allowed and resolves to what may not be dialled."""
    for host in ("inside", "meta", "self", "private"):
        same(status(get("http://%s.wild.test/" % host)), "403 address_denied")
        same(connect("%s.wild.test" % host)[1].split("\r\n")[0], "HTTP/1.1 403 address_denied")
    until(lambda: len(audit(phase="close", reason="address_denied")) == 8)
    rows = audit(phase="close", reason="address_denied")
    assert any(r["dropped"] == "127.0.0.1 loopback" for r in rows), rows
    assert any(r["dropped"] == "169.254.169.254 metadata" for r in rows), rows
    same({r["status"] for r in rows}, {403})
    # nothing was dialled
    assert not [r for r in rows if r.get("address")], rows


def rebinding():
    """A name that leads elsewhere at the next look-up: judged anew, and loopback sees no connection."""
    path = os.path.join(LAB, "hosts")
    trap = socket.create_server(("127.0.0.1", 80))
    trap.setblocking(False)

    def leads_to(address):
        with open(path, "r+", encoding="utf-8") as f:  # in place: it is a bind mount
            text = "".join(x for x in f if "turn.wild.test" not in x) + address + " turn.wild.test\n"
            f.seek(0)
            f.write(text)
            f.truncate()

    leads_to("10.66.0.2")
    same(status(get("http://turn.wild.test/")), "200 OK")
    leads_to("127.0.0.1")
    until(lambda: status(get("http://turn.wild.test/")) == "403 address_denied", 30)
    try:
        trap.accept()
        raise AssertionError("loopback was reached")
    except BlockingIOError:
        pass


# ---- names (U35) ----

def names():
    """The policy decides before any look-up: of denied names no packet is seen."""
    seen = []
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("10.66.0.5", 53))

    def serve():
        while True:
            q, a = s.recvfrom(2048)
            seen.append(q)
            s.sendto(q[:2] + b"\x81\x83" + q[4:6] + b"\0\0\0\0\0\0" + q[12:], a)

    threading.Thread(target=serve, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.readline()
    assert any(b"\x05asked\x04wild\x04test" in q for q in seen), seen
    assert not any(b"secret" in q for q in seen), seen


# ---- SOCKS5 ----

def socks_ask(kind, host, port, command=1):
    s = socket.create_connection(SOCKS, timeout=10)
    s.sendall(b"\x05\x01\x00")
    same(s.recv(2), b"\x05\x00")
    body = host if kind != 3 else bytes([len(host)]) + host
    s.sendall(bytes([5, command, 0, kind]) + body + struct.pack(">H", port))
    reply = s.recv(10)
    same(reply[0], 5)
    return s, reply[1]


def socks():
    s, reply = socks_ask(3, b"allowed.test", 80)
    same(reply, 0)
    s.sendall(b"GET / HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n")
    s.shutdown(socket.SHUT_WR)
    assert b"origin 10.66.0.2" in read_all(s)
    for kind, host, port, command, want in (
            (3, b"evil.test", 80, 1, 2), (3, b"allowed.test", 25, 1, 2), (1, bytes([127, 0, 0, 1]), 443, 1, 2),
            (1, bytes([169, 254, 169, 254]), 80, 1, 2), (4, bytes(15) + b"\x01", 80, 1, 2),
            (3, b"evil.test\0.allowed.test", 80, 1, 2), (3, b"allowed.test", 80, 2, 7), (3, b"allowed.test", 80, 3, 7),
            (3, b"closed.wild.test", 80, 1, 4)):
        s, reply = socks_ask(kind, host, port, command)
        same((host, reply), (host, want))
        same(read_all(s), b"")
    s = socket.create_connection(SOCKS, timeout=10)
    s.sendall(b"\x05\x01\x02")
    same(read_all(s), b"\x05\xff")
    same(len(audit(listener="socks", phase="decision", action="allowed")), 2)


# ---- tunnels ----

def hello(name):
    """A ClientHello of Python's own TLS."""
    import ssl
    ctx = ssl.create_default_context()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = ctx.wrap_bio(incoming, outgoing, server_hostname=name)
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def tunnel(host="allowed.test", name=None, port=443):
    s, head, rest = connect(host, port)
    same(head.split("\r\n")[0], "HTTP/1.1 200 connection established")
    if port == 443:
        first = hello(name or host)
        s.sendall(first)
    else:
        first = b""
    data = rest
    while len(data) < 7 + len(first):
        part = s.recv(65536)
        assert part, "the tunnel ended: %r" % data
        data += part
    same(data, b"ORIGIN:" + first)
    return s


def bulk():
    """64 MiB up and down at once arrive as they were sent; FIN goes through on its own."""
    s = tunnel(port=8443, host="allowed.test")
    piece = os.urandom(1 << 20)
    total, want, got = 64, hashlib.sha256(), hashlib.sha256()

    def send():
        for _ in range(total):
            want.update(piece)
            s.sendall(piece)
        s.shutdown(socket.SHUT_WR)

    t = threading.Thread(target=send)
    t.start()
    n = 0
    while True:
        part = s.recv(1 << 20)
        if not part:
            break
        got.update(part)
        n += len(part)
    t.join()
    same(n, total << 20)
    same(got.digest(), want.digest())
    row = until(lambda: audit(phase="close", host="allowed.test", port=8443))[0]
    same((row["up"], row["down"], row["reason"]), (total << 20, (total << 20) + 7, "ended"))


def half_close():
    """A client that ends its side still gets the whole answer, on every front end."""
    s = socket.create_connection(PROXY, timeout=10)
    s.sendall(b"GET http://allowed.test/bytes/300000 HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
    s.shutdown(socket.SHUT_WR)
    same(len(read_all(s).partition(b"\r\n\r\n")[2]), 300000)
    s, head, rest = connect("allowed.test", 8080)
    s.sendall(b"GET /mute/0.3 HTTP/1.1\r\n\r\n")
    s.shutdown(socket.SHUT_WR)
    same((status(head), rest + read_all(s)), ("200 connection established", b""))


def sni():
    tunnel()
    for name, host in (("x.wild.test", "allowed.test"), ("evil.test", "allowed.test")):
        s, head, _ = connect(host)
        same(status(head), "200 connection established")
        s.sendall(hello(name))
        same(read_all(s), b"\x15\x03\x03\0\x02\x02\x31")
        row = until(lambda n=name: audit(phase="close", reason="sni_mismatch", sni=n))[0]
        same((row["action"], row["host"]), ("blocked", host))
    s, _, _ = connect("allowed.test")
    s.sendall(b"GET / HTTP/1.1\r\n\r\n")
    read_all(s)
    until(lambda: audit(phase="close", reason="not_tls"))
    s, _, _ = connect("allowed.test")
    s.sendall(hello("allowed.test")[:200])
    s.shutdown(socket.SHUT_WR)
    read_all(s)
    until(lambda: audit(phase="close", reason="hello_incomplete"))
    # silence is no way around it
    s, _, _ = connect("allowed.test")
    read_all(s)
    until(lambda: audit(phase="close", reason="first_byte_timeout"))


# ---- responses ----

def raw(data):
    return "http://allowed.test/raw/" + data.hex()


def responses():
    """What an origin may send, and what is not passed on."""
    ok = b"HTTP/1.1 200 OK\r\n"
    for data, want in (
            (ok + b"Content-Length: 2\r\n\r\nhi", "200 OK"),
            (b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + ok + b"Content-Length: 0\r\n\r\n", "103 Early"),
            (ok + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!", "502 upstream_malformed"),
            (ok + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "502 upstream_malformed"),
            (ok + b"X: 1\r\n y\r\n\r\n", "502 upstream_malformed"),
            (b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", "502 upstream_malformed"),
            (b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", "502 upstream_malformed"),
            (b"HTTP/1.1 407 Proxy\r\nProxy-Authenticate: Basic\r\n\r\n", "502 upstream_malformed"),
            (b"HTTP/1.1 100 C\r\n\r\n" * 9 + ok + b"\r\n", "100 C"),
            (b"SSH-2.0-x\r\n", "502 upstream_malformed"),
            (b"HTTP/1.1 20", "502 upstream_closed"),
            (b"", "502 upstream_closed")):
        same((data[:60], status(get(raw(data)))), (data[:60], want))
    # a body that ends early is not made to look whole
    got = get(raw(ok + b"Content-Length: 5\r\n\r\nhi"))
    same(got.partition("\r\n\r\n")[2], "hi")
    got = get(raw(ok + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhel"))
    assert not got.endswith("0\r\n\r\n"), got
    # chunked for those who know it, until the end for the others
    got = get("http://allowed.test/chunked")
    assert "Transfer-Encoding: chunked" in got and got.endswith("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"), got
    got = get("http://allowed.test/chunked", version="1.0")
    assert "Transfer-Encoding" not in got and got.endswith("\r\n\r\nhello world"), got
    same(status(get("http://allowed.test/mute/9")), "504 upstream_timeout")


def keep_alive():
    """Kept connections: one for two requests; one that died meanwhile is replaced silently."""
    s = socket.create_connection(PROXY, timeout=10)
    for path in ("", "/a?secret=1", "/once", "/b%20c", "?secret=2"):
        s.sendall(("GET http://allowed.test%s HTTP/1.1\r\nHost: allowed.test\r\n\r\n" % path).encode())
        head, body = read_head(s)
        assert head.startswith("HTTP/1.1 200 OK"), head
        while len(body) < len("origin 10.66.0.2\n"):
            body += s.recv(4096)
        time.sleep(0.05)
    conns = [o for o in lines("origin.jsonl") if o.get("conn")]
    same(len(conns), 2)
    until(lambda: len(audit(phase="close", reason="ended")) == 5)
    for phase in ("decision", "close"):  # a row each for every request of a kept connection
        same([(r["method"], r["path"]) for r in audit(phase=phase)], [("GET", p) for p in ("/", "/a", "/once", "/b%20c", "/")])
    same([r["status"] for r in audit(phase="close")], [200] * 5)


def websocket():
    ask = ("GET http://allowed.test/ws HTTP/1.1\r\nHost: allowed.test\r\nConnection: Upgrade\r\n"
           "Upgrade: websocket\r\n\r\n").encode()
    s = socket.create_connection(PROXY, timeout=10)
    s.sendall(ask)
    head, rest = read_head(s)
    if sys.argv[4] == "refused":
        same(status(head), "403 upgrade_refused")
        return
    same(status(head), "101 Switching")
    s.sendall(b"hello")
    while len(rest) < 12:
        rest += s.recv(100)
    same(rest, b"ORIGIN:hello")
    s.close()
    until(lambda: [a for a in audit(phase="close") if "websocket" in a.get("flags", [])])


# ---- limits ----

def slowloris():
    """Half a head on every connection: bounded, and all gone after the deadline."""
    socks_ = []
    for _ in range(128):
        s = socket.create_connection(PROXY, timeout=10)
        s.sendall(b"GET http://allowed.test/ HTTP/1.1\r\nX: ")
        socks_.append(s)
    time.sleep(0.3)
    start = time.time()
    got = get("http://allowed.test/")
    same(status(got), "503 overloaded")
    assert "\r\nX-Aqe-Reason: overloaded\r\nX-Aqe-Deny: overloaded\r\n" in got, got
    for i in range(30):  # a byte now and then does not buy time
        for s in socks_[:20]:
            try:
                s.sendall(b"x")
            except OSError:
                pass
        time.sleep(0.05)
    got = {status(read_all(s).decode()) for s in socks_}
    assert got <= {"408 header_timeout", ""}, got
    for s in socks_:
        s.close()
    time.sleep(0.1)
    assert time.time() - start < 6
    same(status(get("http://allowed.test/")), "200 OK")


def flood():
    """2,000 connections in a row, nothing said: the service stays as large as it was."""
    pid = worker_pid()
    before = rss(pid)
    for _ in range(2000):
        socket.create_connection(PROXY, timeout=10).close()
    same(status(get("http://allowed.test/")), "200 OK")
    assert rss(pid) - before < 1024, (before, rss(pid))


def tunnels_limit():
    held = [tunnel(port=8443) for _ in range(3)]
    s, head, _ = connect("allowed.test", 8443)
    same(status(head), "503 too_many_tunnels")
    held.pop().close()
    time.sleep(0.2)
    tunnel(port=8443)


def byte_cap():
    s = tunnel(port=8443)
    try:
        for _ in range(100):
            s.sendall(b"x" * 100000)
    except OSError:
        pass
    read_all(s)
    row = until(lambda: audit(phase="close", reason="byte_cap"))[0]
    same(row["up"], 1000000)


def rate():
    """5 a minute, burst 3: the fourth is refused with an exact wait; denied names cost nothing."""
    for _ in range(10):
        same(status(get("http://evil.test/")), "403 domain_not_allowed")
    for _ in range(3):
        same(status(get("http://allowed.test/")), "200 OK")
    got = get("http://allowed.test/")
    same(status(got), "429 rate_limit_exceeded")
    doc = json.loads(got.partition("\r\n\r\n")[2])
    assert 10000 < doc["retry_after_ms"] <= 12000, doc
    assert "\r\nRetry-After: 12\r\n" in got or "\r\nRetry-After: 11\r\n" in got, got
    same(len(audit(phase="decision", action="rate_limited", reason="rate_limit_exceeded", status=429)), 1)


def denials():
    """Identical denials beyond 60 a minute are counted, not stored."""
    for _ in range(200):
        same(status(get("http://evil.test/")), "403 domain_not_allowed")
    stored = audit(phase="decision", host="evil.test")
    assert 60 <= len(stored) <= 62, len(stored)
    print(len(stored))


def four_verdicts():
    """U40: allowed, denied, not to be reached, over the rate; what was sent in secret is in no row."""
    mode = sys.argv[4]
    secret = "planted-7f3a"
    for host in ("allowed.test", "evil.test", "asked.wild.test", "allowed.test"):
        subprocess.run(["curl", "-s", "-o", "/dev/null", "-m", "10", "-x", "http://127.0.0.1:3128", "-u", "u:" + secret,
                        "-H", "X-Key: " + secret, "-d", secret, "http://%s/p?q=%s" % (host, secret)], check=False)
    rows = until(lambda: len(audit(phase="decision")) >= 4 and audit(phase="decision"))
    same(len(rows), 4)
    same([r["host"] for r in rows], ["allowed.test", "evil.test", "asked.wild.test", "allowed.test"])
    same([r.get("path") for r in rows], ["/p"] * 4)
    fields = {"host", "port", "method", "action", "reason", "policy"}
    for r in rows:
        assert fields <= set(r), fields - set(r)
        same(r["policy"], rows[0]["policy"])
    same(rows[2]["action"], "allowed")  # by the policy: the row is there before the dial that fails
    if mode == "enforce":
        same([r["action"] for r in rows], ["allowed", "blocked", "allowed", "rate_limited"])
    else:
        same([r["action"] for r in rows], ["allowed"] * 4)
        same([r["reason"] for r in rows][1::2], ["domain_not_allowed", "rate_limit_exceeded"])
    with open(os.path.join(LAB, "audit.jsonl"), encoding="utf-8") as f:
        assert secret not in f.read()


def repeated():
    stored = len(audit(phase="decision", host="evil.test"))
    counted = sum(a["count"] for a in audit(phase="repeated", host="evil.test", reason="domain_not_allowed"))
    same(stored + counted, 200)


# ---- the records of ends ----

def commits():
    """Transactions in the present round of the write-ahead log: frames that say how large the database is."""
    with open(os.path.join(LAB, "log/audit.db-wal"), "rb") as f:
        wal = f.read()
    page, salt = struct.unpack(">I", wal[8:12])[0], wal[16:24]
    frames = [wal[i:i + 24] for i in range(32, len(wal) - 23, page + 24)]
    return sum(1 for f in frames if f[8:16] == salt and f[4:8] != b"\0\0\0\0")


def ends():
    """One request after another: each end is stored with the next decision, so one transaction a request."""
    def sequence():
        before = commits()
        with socket.create_connection(PROXY, timeout=20) as s:
            for _ in range(10):
                s.sendall(b"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
                head, rest = read_head(s)
                assert " 200 " in head, head
                length = int(head.lower().split("content-length: ")[1].split("\r\n")[0])
                while len(rest) < length:
                    rest += s.recv(65536)
                time.sleep(0.03)  # long enough for an end to be stored by itself, if it were
        return commits() - before
    # on a machine that stood still in between an end does not wait so long
    until(lambda: 0 < sequence() <= 12, 30)
    # and alone it is stored soon
    before = commits()
    get("http://allowed.test/last")
    until(lambda: not before <= commits() < before + 2, 20)  # or the log began anew


# ---- the processes ----

def children():
    pid = int(sys.argv[3]) if len(sys.argv) > 3 else int(os.environ["LAB_EGRESS"])
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="utf-8") as f:
        return [int(x) for x in f.read().split()]


def proc(pid, key):
    with open("/proc/%d/status" % pid, encoding="utf-8") as f:
        for x in f:
            if x.startswith(key + ":"):
                return x.split(":", 1)[1].strip()
    return ""


def rss(pid):
    return int(proc(pid, "VmRSS").split()[0])


def child(name):
    """The child of that name; the keeper forks again when one died."""
    def look():
        for p in children():
            try:
                if proc(p, "Name") == name:
                    return p
            except OSError:
                pass
        return None
    return until(look, 30)


def worker_pid():
    return child("egress-worker")


def dialer_pid():
    return child("egress-dialer")


def confined():
    for pid in children():
        same(proc(pid, "NoNewPrivs"), "1")
        same(proc(pid, "Seccomp"), "2")
        for cap in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            same(proc(pid, cap), "0000000000000000")
        uid = proc(pid, "Uid").split()
        assert len(set(uid)) == 1 and 61184 <= int(uid[0]) < 65520, uid
        same(proc(pid, "Groups"), "")
    fds = {os.readlink("/proc/%d/fd/%s" % (worker_pid(), f)) for f in os.listdir("/proc/%d/fd" % worker_pid())}
    assert not [f for f in fds if f.startswith("/") and "egress.err" not in f and f != "/dev/null"], fds
    total = sum(rss(p) for p in children() + [int(os.environ["LAB_EGRESS"])])
    print("rss of keeper, dialer, worker together: %d kB" % total)


def killed():
    """Four times started again, the fifth time closed."""
    for i in range(4):
        until(lambda: len(children()) == 2, 15)
        s = until(works, 15)
        os.kill(worker_pid(), signal.SIGKILL)
        until(lambda: len(audit(phase="event", reason="worker_ended")) == i + 1)
    until(lambda: len(audit(phase="event", reason="worker_restarted")) == 4, 20)
    until(works, 15)
    os.kill(worker_pid(), signal.SIGKILL)
    until(lambda: audit(phase="event", reason="closed_after_crashes"))
    until(refused)


def hung():
    """Worker or dialer that stops answering is given up and started again, and counted."""
    for i, pid in enumerate((worker_pid, dialer_pid)):
        until(lambda: len(children()) == 2 and works(), 30)
        os.kill(pid(), signal.SIGSTOP)
        until(lambda: len(audit(phase="event", reason="worker_hung")) == i + 1, 90)
        until(lambda: len(audit(phase="event", reason="worker_restarted")) == i + 1, 30)
        until(works, 30)
        tunnel().close()
    same(audit(phase="event", reason="closed_after_crashes"), [])
    text = scrape()
    assert 'aqe_egress_restarts_total{agent_type="qe-lab"} 2\n' in text, text


def works():
    try:
        return status(get("http://allowed.test/")) == "200 OK"
    except OSError:
        return False


def refused():
    try:
        socket.create_connection(PROXY, timeout=1).close()
        return False
    except ConnectionRefusedError:
        return True


def remembers():
    """A killed worker gives no tokens back."""
    for _ in range(3):
        same(status(get("http://allowed.test/")), "200 OK")
    os.kill(worker_pid(), signal.SIGKILL)
    until(lambda: audit(phase="event", reason="worker_restarted"), 10)
    got = until(lambda: status(get("http://allowed.test/")), 10)
    same(got, "429 rate_limit_exceeded")


def reload():
    """A tunnel that the new policy denies ends; a policy that does not load changes nothing."""
    path = os.path.join(LAB, "policy.json")
    pid = int(os.environ["LAB_EGRESS"])
    kept, cut = tunnel(port=8443, host="allowed.test"), tunnel(port=8443, host="x.wild.test")
    with open(path, encoding="utf-8") as f:
        good = f.read()
    with open(path, "w", encoding="utf-8") as f:
        f.write("{")
    os.kill(pid, signal.SIGHUP)
    until(lambda: audit(phase="event", reason="policy_rejected"))
    same(status(get("http://x.wild.test/")), "200 OK")
    with open(path, "w", encoding="utf-8") as f:
        f.write(good.replace(',"*.wild.test"', "").replace(',"x.wild.test:8443"', ""))
    os.kill(pid, signal.SIGHUP)
    until(lambda: audit(phase="event", reason="policy_changed"))
    same(read_all(cut), b"")
    until(lambda: audit(phase="close", reason="policy_changed", host="x.wild.test"))
    same(status(get("http://x.wild.test/")), "403 domain_not_allowed")
    same(status(get("http://allowed.test/")), "200 OK")
    kept.sendall(b"still here")
    same(kept.recv(100), b"still here")


def unaudited():
    """What cannot be recorded is refused."""
    same(status(get("http://allowed.test/")), "503 audit_unavailable")
    same(connect("allowed.test")[1].split("\r\n")[0], "HTTP/1.1 503 audit_unavailable")
    same([o for o in lines("origin.jsonl") if o.get("conn")], [])


def scrape():
    s = socket.socket(socket.AF_UNIX)
    s.connect(os.path.join(LAB, "metrics.sock"))
    s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    return read_all(s).decode()


def metrics():
    get("http://allowed.test/")
    get("http://evil.test/")
    text = scrape()
    for want in ('aqe_egress_decisions_total{agent_type="qe-lab",action="allowed",reason="allowed"} 1\n',
                 'aqe_egress_decisions_total{agent_type="qe-lab",action="blocked",reason="domain_not_allowed"} 1\n',
                 'aqe_egress_closes_total{agent_type="qe-lab",cause="ended"} 1\n',
                 'aqe_egress_connect_seconds_count{agent_type="qe-lab"} 1\n'):
        assert want in text, text
    assert "evil" not in text


if __name__ == "__main__":
    globals()[sys.argv[1]]()

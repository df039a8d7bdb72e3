#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sends every file of tests/vectors/http to a running proxy: vectors.py VECTORS ORIGIN_LOG AUDIT_LOG

Checked for each row: the statuses the client sees, the end of the connection, which origin saw a
connection, what it saw, and that every refusal has a JSON body, its header and one audit row.
Prints TAP-like lines and exits 1 if one is not ok.
"""
import json
import re
import socket
import sys
import time

PROXY = ("127.0.0.1", 3128)
EVIL = "10.66.0.3"


class Tail:
    """New JSON lines of a file since the last look."""

    def __init__(self, path):
        self.file = open(path, encoding="utf-8")

    def new(self):
        return [json.loads(line) for line in self.file.readlines()]


def read_more(sock, seconds):
    """Bytes until the end or silence; the second value tells which."""
    data = b""
    sock.settimeout(seconds)
    try:
        while True:
            part = sock.recv(65536)
            if not part:
                return data, True
            data += part
    except socket.timeout:
        return data, False
    except ConnectionError:
        return data, True


def split_responses(data):
    """[(status, reason, fields, body)] and what is left."""
    out = []
    while data.startswith(b"HTTP/1.1 "):
        head, sep, rest = data.partition(b"\r\n\r\n")
        if not sep:
            break
        line, *lines = head.decode("latin-1").split("\r\n")
        _, status, reason = (line + " ").split(" ", 2)
        fields = {k.lower(): v.strip() for k, _, v in (x.partition(":") for x in lines)}
        n = int(fields.get("content-length", "0"))
        out.append((int(status), reason.strip(), fields, rest[:n]))
        data = rest[n:]
    return out, data


def wanted_statuses(text):
    if text.startswith("100"):
        return [[100, 200]]
    if text.startswith("close"):
        return [[], [400]]
    return [[int(x) for x in re.findall(r"\d+", text)]]


# What the origin must have seen: parts of its last request's head (or body), and what must not be there.
SEEN = {
    "b01_abs_ok.raw": (["GET / HTTP/1.1\r\n", "Host: allowed.test\r\n"], []),
    "b02_abs_port80.raw": (["GET /x?q=1 HTTP/1.1\r\n", "Host: allowed.test\r\n"], [":80"]),
    "b05_abs_host_mismatch.raw": (["Host: allowed.test\r\n"], ["evil"]),
    "b22_abs_upper_scheme.raw": (["Host: allowed.test\r\n"], []),
    "b34_http12.raw": (["GET / HTTP/1.1\r\n"], []),
    "b36_unknown_method.raw": (["PROPFIND / HTTP/1.1\r\n"], []),
    "c01_post_cl.raw": (["Content-Length: 5\r\n", "BODY hello"], []),
    "c02_post_chunked.raw": (["Transfer-Encoding: chunked\r\n", "BODY hello"], []),
    "c24_trailer.raw": (["BODY hello"], ["evil", "X-T"]),
    "c25_get_body.raw": (["BODY hello"], []),
    "c26_expect.raw": (["Expect: 100-continue\r\n", "BODY hello"], []),
    "c34_upgrade_h2c.raw": (["GET / "], ["Upgrade", "HTTP2-Settings", "Connection"]),
    "d07_conn_list.raw": (["GET / "], ["X-Secret", "Connection"]),
    "d08_conn_self.raw": (["GET / "], ["Connection"]),
    "d12_xff.raw": (["X-Forwarded-For: 1.2.3.4\r\n", "Via: 1.0 x\r\n"], []),
}
NO_ORIGIN = {"b38_max_forwards_0.raw"}
# Bad only behind the head: the connection may have been made, the request may not be served.
LATE = {"f03_sni_other_allowed.raw", "f11_not_tls_http.raw", "f14_hello_too_big.raw", "a52_connect_early_data.raw"}
TUNNELS = {"f01_sni_match.raw", "f07_sni_late.raw", "f09_sni_upper.raw", "f13_alpn_h2.raw"}


def exchange(name, data):
    sock = socket.create_connection(PROXY)
    sock.sendall(data)
    patience = 4.0 if name.startswith("d17") else 0.25
    got, ended = read_more(sock, patience)
    if name == "c26_expect.raw" and b"100" in got:
        sock.sendall(b"hello")
        more, ended = read_more(sock, 0.25)
        got += more
    return sock, got, ended


def check_refusal(row, responses, ended, audit, problems):
    status, reason, fields, body = responses[-1]
    try:
        doc = json.loads(body)
    except ValueError:
        problems.append("no JSON body")
        return
    if not doc.get("reason") == doc.get("error") == reason == fields.get("x-aqe-reason") == fields.get("x-aqe-deny"):
        problems.append("reasons differ: %r %r %r" % (doc, reason, fields))
    m = re.search(r"reason ([a-z_0-9]+)", row["behaviour"])
    if m and reason != m.group(1):
        problems.append("reason %s, wanted %s" % (reason, m.group(1)))
    if not ended:
        problems.append("the connection stays open after %d" % status)
    rows = [a for a in audit if a["phase"] == "decision" and a["action"] != "allowed"]
    if len(rows) != 1 or rows[0]["id"] != doc["request_id"] or rows[0]["status"] != status:
        problems.append("audit rows %r for %r" % (rows, doc))


def check_seen(name, origin, problems):
    want, never = SEEN.get(name, ([], []))
    requests = [o["head"] + "BODY " + o["body"] for o in origin if "head" in o]
    if (want or never) and not requests:
        problems.append("the origin saw no request")
        return
    for part in want:
        if part not in requests[-1]:
            problems.append("the origin saw no %r in %r" % (part, requests[-1]))
    for part in never:
        if any(part in r for r in requests):
            problems.append("the origin saw %r" % part)


def check_origins(row, statuses, origin, problems):
    name = row["file"]
    if any(o["at"] == EVIL for o in origin):
        problems.append("the forbidden origin was reached")
    reached = any("conn" in o for o in origin)
    if (not statuses or statuses[0] >= 400) and reached:
        problems.append("a refused request reached an origin")
    if name in NO_ORIGIN and reached:
        problems.append("forwarded")
    if name in LATE and any("first" in o for o in origin):
        problems.append("bytes reached the origin")
    if name == "c31_pipeline_other_allowed.raw" and sum("conn" in o for o in origin) != 2:
        problems.append("one connection for two hosts")


def check(row, data, origin_log, audit_log):
    name, problems = row["file"], []
    sock, got, ended = exchange(name, data)
    responses, rest = split_responses(got)
    statuses = [r[0] for r in responses]
    tunnel = name in TUNNELS or (name.startswith("a") and statuses == [200])
    if name in TUNNELS and not rest.startswith(b"ORIGIN:"):
        problems.append("no tunnel: %r" % rest[:40])
    if tunnel and ("content-length" in responses[0][2] or "transfer-encoding" in responses[0][2]):
        problems.append("a 200 to CONNECT with framing")
    sock.close()
    time.sleep(0.03)
    origin, audit = origin_log.new(), audit_log.new()
    if statuses not in wanted_statuses(row["status"]):
        problems.append("statuses %r, wanted %s" % (statuses, row["status"]))
    if statuses and statuses[-1] >= 400:
        check_refusal(row, responses, ended, audit, problems)
    if row["status"].endswith("close") and not ended:
        problems.append("not closed")
    if row["status"].endswith("then close") and b"ORIGIN" in rest:
        problems.append("a tunnel")
    check_seen(name, origin, problems)
    check_origins(row, statuses, origin, problems)
    return problems


def main():
    folder, origin_log, audit_log = sys.argv[1], Tail(sys.argv[2]), Tail(sys.argv[3])
    failed = 0
    with open(folder + "/index.tsv", encoding="utf-8") as f:
        lines = [x.rstrip("\n").split("\t") for x in f if not x.startswith("#")]
    rows = [dict(zip(lines[0], x)) for x in lines[1:]]
    origin_log.new()
    audit_log.new()
    for row in rows:
        with open(folder + "/" + row["file"], "rb") as f:
            problems = check(row, f.read(), origin_log, audit_log)
        failed += bool(problems)
        print("%s %s%s" % ("not ok" if problems else "ok", row["file"], ": " + "; ".join(problems) if problems else ""))
    print("%d of %d rows" % (len(rows) - failed, len(rows)))
    return 1 if failed or len(rows) != 105 else 0


sys.exit(main())

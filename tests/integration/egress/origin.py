#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Origins for the egress tests: origin.py LOG ADDRESS PORT MODE [ADDRESS PORT MODE ...]

MODE http: HTTP/1.1; the path says what to answer (see answer()).
MODE echo: sends "ORIGIN:" and then everything back.
MODE tls:CERT:KEY: TLS; answers what git, pip and npm ask for (see things()), else with "tls ADDRESS".
Every connection and every request head and body is one JSON line of LOG.
"""
import io
import json
import socket
import ssl
import sys
import threading
import time
import zipfile

lock = threading.Lock()


def note(log, **what):
    with lock:
        log.write(json.dumps(what) + "\n")
        log.flush()


def read_body(f, fields):
    if b"content-length" in fields:
        return f.read(int(fields[b"content-length"]))
    body = b""
    if fields.get(b"transfer-encoding") == b"chunked":
        while True:
            n = int(f.readline(), 16)
            body += f.read(n)
            f.readline()
            if n == 0:
                return body
    return body


def answer(path, address):
    """The bytes to send, and whether the connection ends."""
    word, _, rest = path.strip("/").partition("/")
    text = ("origin %s\n" % address).encode()
    if word == "raw":  # exactly these bytes, then the end
        return bytes.fromhex(rest), True
    if word == "keepraw":  # exactly these bytes
        return bytes.fromhex(rest), False
    if word == "chunked":
        return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nT: 1\r\n\r\n", False
    if word == "bytes":
        n = int(rest)
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % n + b"x" * n, False
    if word == "close":
        return b"HTTP/1.1 200 OK\r\n\r\n" + text, True
    if word == "once":  # says it keeps the connection, and closes it
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text), True
    if word == "mute":
        time.sleep(float(rest))
        return b"", True
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nServer: origin\r\n\r\n%s" % (len(text), text), False


def serve_http(conn, address, log):
    f = conn.makefile("rb")
    while True:
        head = [f.readline()]
        if not head[0]:
            return
        while head[-1] not in (b"\r\n", b""):
            head.append(f.readline())
        fields = {k.strip().lower(): v.strip() for k, _, v in (line.partition(b":") for line in head[1:])}
        if b"expect" in fields:
            conn.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = read_body(f, fields)
        note(log, at=address, head=b"".join(head).decode("latin-1"), body=body.decode("latin-1"))
        method, path = head[0].decode("latin-1").split(" ")[:2]
        if fields.get(b"upgrade") == b"websocket":
            conn.sendall(b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nORIGIN:")
            while True:
                data = conn.recv(65536)
                if not data:
                    return
                conn.sendall(data)
        data, end = answer(path, address)
        if method == "HEAD":
            data = data.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
        conn.sendall(data)
        if end:
            return


def serve_echo(conn, address, log):
    conn.sendall(b"ORIGIN:")
    total = 0
    while True:
        data = conn.recv(1 << 20)
        if not data:
            break
        if total == 0:
            note(log, at=address, first=data[:64].hex())
        total += len(data)
        conn.sendall(data)
    note(log, at=address, ended=total)
    conn.shutdown(socket.SHUT_WR)


def wheel():
    """The smallest package that pip takes."""
    data = io.BytesIO()
    info = "aqe_thing-1.0.dist-info/"
    with zipfile.ZipFile(data, "w") as z:
        z.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: aqe-thing\nVersion: 1.0\n")
        z.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr(info + "RECORD", "")
    return data.getvalue()


def things(path):
    """(type, body) of a repository with one branch, and of a package."""
    name = "aqe_thing-1.0-py3-none-any.whl"
    version = {"name": "aqe-thing", "version": "1.0.0"}
    return {
        "/repo.git/info/refs?service=git-upload-pack": ("text/plain", b"1" * 40 + b"\trefs/heads/main\n"),
        "/repo.git/HEAD": ("text/plain", b"ref: refs/heads/main\n"),
        "/simple/aqe-thing/": ("text/html", b'<!DOCTYPE html><html><body><a href="/%s">%s</a></body></html>' % ((name.encode(),) * 2)),
        "/" + name: ("application/octet-stream", wheel()),
        "/aqe-thing": ("application/json", json.dumps(
            {"name": "aqe-thing", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}).encode()),
    }.get(path)


def serve_tls(conn, address, log, context):
    with context.wrap_socket(conn, server_side=True) as tls:
        data = tls.recv(65536)
        note(log, at=address, head=data.decode("latin-1"), sni=getattr(tls, "seen", None))
        path = (data.split(b" ") + [b""])[1].decode("latin-1")
        kind, text = things(path) or ("text/plain", ("tls %s\n" % address).encode())
        tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" %
                    (kind.encode(), len(text), text))


def serve(conn, address, port, mode, log, context):
    note(log, at=address, port=port, conn=True)
    try:
        if mode == "http":
            serve_http(conn, address, log)
        elif mode == "echo":
            serve_echo(conn, address, log)
        else:
            serve_tls(conn, address, log, context)
    except (OSError, ValueError):
        pass
    finally:
        conn.close()


def listen(address, port, mode, log):
    context = None
    if mode.startswith("tls:"):
        _, cert, key = mode.split(":")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
    s = socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET, backlog=512)
    while True:
        conn, _ = s.accept()
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=serve, args=(conn, conn.getsockname()[0], port, mode, log, context), daemon=True).start()


def main():
    log = open(sys.argv[1], "a", encoding="utf-8")
    words = sys.argv[2:]
    threads = []
    for i in range(0, len(words), 3):
        t = threading.Thread(target=listen, args=(words[i], int(words[i + 1]), words[i + 2], log), daemon=True)
        t.start()
        threads.append(t)
    for t in threads:
        t.join()


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An HTTP proxy that behaves as told: fake_proxy.py LOG ADDRESS PORT

The first label of the host that is asked for is the behaviour (see serve()); a request's head is a
line of LOG.
"""
import json
import socket
import sys
import threading

OK = b"HTTP/1.1 200 go\r\n\r\n"


def serve(conn, log):
    head = b""
    while b"\r\n\r\n" not in head:
        data = conn.recv(65536)
        if not data:
            return
        head += data
    with lock:
        log.write(json.dumps(head.decode("latin-1")) + "\n")
        log.flush()
    word = head.split(b" ")[1].partition(b".")[0].decode()
    if word == "hang":
        conn.recv(1)
    elif word == "close":
        pass
    elif word == "auth":
        conn.sendall(b"HTTP/1.1 407 who are you\r\nContent-Length: 0\r\n\r\n")
    elif word == "deny":
        conn.sendall(b"HTTP/1.1 403 no\r\nContent-Length: 3\r\n\r\nno\n")
    elif word == "garbage":
        conn.sendall(b"220 mail.test ESMTP\r\n\r\n")
    elif word == "long":
        conn.sendall(b"HTTP/1.1 200 go\r\n" + b"X-A: %s\r\n" % (b"a" * 200) * 40 + b"\r\n")
    elif word == "pieces":
        for byte in OK:
            conn.sendall(bytes([byte]))
        echo(conn)
    elif word == "framed":  # a length means nothing after CONNECT
        conn.sendall(b"HTTP/1.0 200 go\r\nContent-Length: 5\r\n\r\n")
        echo(conn)
    elif word == "first":  # the far side speaks first, in the same segment
        conn.sendall(OK + b"hello\n")
        echo(conn)


def echo(conn):
    conn.sendall(b"TUNNEL\n")
    while True:
        data = conn.recv(65536)
        if not data:
            return
        conn.sendall(data)


def run(conn, log):
    try:
        with conn:
            serve(conn, log)
    except OSError:
        pass


lock = threading.Lock()
with open(sys.argv[1], "a") as out, socket.create_server((sys.argv[2], int(sys.argv[3])), backlog=64) as s:
    while True:
        threading.Thread(target=run, args=(s.accept()[0], out), daemon=True).start()

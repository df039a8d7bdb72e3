#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# An engine's socket that says what it is told: engine_socket.py SOCKET VERSION [STATUS BODY]...
# VERSION is the header Api-Version; without answers it takes requests and is silent. One answer a
# request, the last one again and again. A body "flood" does not end. Request lines go to SOCKET.log.
import socket
import sys


def read_head(conn):
    head = b""
    while b"\r\n\r\n" not in head:
        more = conn.recv(65536)
        if not more:
            return None
        head += more
    return head


def answer(conn, version, status, body):
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nConnection: close\r\nApi-Version: {version}\r\n"
    if body == "flood":
        conn.sendall((head + "\r\n").encode())
        while True:
            conn.sendall(b" " * 65536)
    conn.sendall((head + f"Content-Length: {len(body.encode())}\r\n\r\n" + body).encode())


def main():
    path, version, words = sys.argv[1], sys.argv[2], sys.argv[3:]
    answers = list(zip(words[::2], words[1::2]))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(16)
    kept = []
    with open(path + ".log", "w", encoding="utf-8") as log:
        while True:
            conn, _ = listener.accept()
            head = read_head(conn)
            if head is None:
                continue
            log.write(" ".join(head.decode("latin1").split("\r\n")[0].split(" ")[:2]) + "\n")
            log.flush()
            if not answers:
                kept.append(conn)
                continue
            try:
                answer(conn, version, *answers[0])
            except OSError:
                pass
            conn.close()
            if len(answers) > 1:
                answers.pop(0)


main()

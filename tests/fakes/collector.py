#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A collector for tests of `aqe audit ship`: collector.py FOLDER [--tls CERT KEY] [PLAN...]

Writes its port to FOLDER/port, every body that was answered with 2xx to FOLDER/taken, one line a
request (path, headers, rows, answer) to FOLDER/requests. Each word of PLAN answers one request in
turn, after the last all are 200: a status; `die` (no answer, the process ends half way through the
body), `cut` (connection closed in the middle of the answer), `hang` (never an answer), `lose` (taken,
but the connection is closed before the answer: the client cannot know), `429+2` (with Retry-After)."""
import http.server
import json
import os
import ssl
import sys
import time

folder = sys.argv[1]
plan = sys.argv[2:]
tls = None
if plan[:1] == ["--tls"]:
    tls, plan = plan[1:3], plan[3:]


def append(name, text):
    with open(os.path.join(folder, name), "a", encoding="utf-8") as f:
        f.write(text)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_POST(self):
        what = plan.pop(0) if plan else "200"
        length = int(self.headers["Content-Length"])
        if what == "die":
            self.rfile.read(length // 2)
            append("requests", json.dumps({"answer": "die"}) + "\n")
            os._exit(9)
        body = self.rfile.read(length).decode()
        rows = [json.loads(line) for line in body.splitlines()]
        append("requests", json.dumps({
            "answer": what, "path": self.path, "rows": len(rows), "first": rows[0]["seq"],
            "bytes": length, "headers": {k.lower(): v for k, v in self.headers.items()},
            "at": time.monotonic()}) + "\n")
        if what == "hang":
            time.sleep(3600)
        if what == "lose" or what.startswith("2"):
            append("taken", body)
        if what in ("lose", "cut"):
            if what == "cut":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            self.close_connection = True
            return
        status, _, after = what.partition("+")
        self.send_response(int(status))
        if after:
            self.send_header("Retry-After", after)
        if status.startswith("3"):
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
if tls:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*tls)
    server.socket = context.wrap_socket(server.socket, server_side=True)
with open(os.path.join(folder, "port.new"), "w", encoding="utf-8") as f:
    f.write(str(server.server_address[1]))
os.rename(os.path.join(folder, "port.new"), os.path.join(folder, "port"))
server.serve_forever()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A TLS origin for gateway tests: gateway_origin.py LOG CERT KEY ADDRESS PORT

Every request is one JSON line of LOG: method, path, fields, length and SHA-256 of the body. The last
part of the path says what to answer: see do(). Anything else gets the same JSON back, as a mirror.
"""
import hashlib
import http.server
import json
import ssl
import sys
import threading

go = threading.Event()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def body(self):
        if self.headers.get("transfer-encoding") == "chunked":
            data = b""
            while True:
                n = int(self.rfile.readline(), 16)
                data += self.rfile.read(n)
                self.rfile.readline()
                if n == 0:
                    return data
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def events(self):
        """The second event comes when somebody asked for .../go: only who got the first can."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.chunk(b"data: one\n\n")
        self.chunk(b"data: two\n\n" if go.wait(60) else b"data: nobody asked\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def do(self):
        data = self.body()
        seen = {
            "method": self.command,
            "path": self.path,
            "fields": {k.lower(): v for k, v in self.headers.items()},
            "length": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
        with lock:
            log.write(json.dumps(seen) + "\n")
            log.flush()
        word = self.path.partition("?")[0].rpartition("/")[2]
        if word == "events":
            return self.events()
        if word == "go":
            go.set()
        status, extra, out = 200, None, json.dumps(seen).encode() + b"\n"
        if word == "bytes":
            out = b"0123456789abcdef" * 65536
        if word == "moved":
            status, extra = 302, ("Location", "https://elsewhere.test/")
        if word == "error":
            status = 500
        self.send_response(status)
        if extra:
            self.send_header(*extra)
        self.send_header("X-Mirror", self.headers.get("authorization") or "none")
        self.send_header("Content-Length", str(len(out)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(out)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_TRACE = do

    def log_message(self, *_):
        pass


log_name, cert, key, address, port = sys.argv[1:]
lock = threading.Lock()
log = open(log_name, "a")
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(cert, key)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def finish_request(self, request, client_address):
        """The handshake in the connection's own thread."""
        super().finish_request(context.wrap_socket(request, server_side=True), client_address)

    def handle_error(self, *_):
        pass


Server((address, int(port)), Handler).serve_forever()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Looks at a page in headless Chromium: browser.py FILE OUT_PREFIX

Saves OUT_PREFIX-{light,dark,narrow}.png and -print.pdf, and prints what was found as JSON. Speaks
the DevTools protocol over two pipes, so that nothing but the browser is needed."""
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile

page, prefix = os.path.abspath(sys.argv[1]), sys.argv[2]

# What a look at the page says, in the page's own terms.
LOOK = r"""
(() => {
  const rgb = (c) => (c.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = (c) => {
    const [r, g, b] = c.slice(0, 3).map((v) => {
      v /= 255;
      return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const under = (e) => {
    for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  let least = { ratio: 99 };
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    if (!e.getClientRects().length || ["STYLE", "TITLE", "title"].includes(e.tagName)) continue;
    const s = getComputedStyle(e);
    const a = light(rgb(e.closest("svg") ? s.fill : s.color)), b = light(under(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < least.ratio) least = { ratio, text: e.textContent.slice(0, 40), tag: e.tagName };
  }
  const all = (q) => document.querySelectorAll(q).length;
  return {
    title: document.title,
    verdict: document.querySelector("#verdict").className,
    tiles: Object.fromEntries([...document.querySelectorAll(".tile")].map(
      (t) => [t.querySelector("span").textContent, t.querySelector("b").textContent])),
    charts: all("svg.chart"),
    bars: { good: all("svg.chart rect.good"), bad: all("svg.chart rect.bad"),
            warn: all("svg.chart rect.warn") },
    shares: all("svg.share"),
    rows: all("table.rows tbody tr"),
    sections: [...document.querySelectorAll("section")].map((s) => s.id),
    scripts: all("script"), images: all("img"), links: all("a[href]:not([href^='#'])"),
    handlers: [...document.querySelectorAll("*")].filter(
      (e) => [...e.attributes].some((a) => a.name.startsWith("on"))).length,
    background: getComputedStyle(document.body).backgroundColor,
    contrast: least,
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    fills: Object.fromEntries(["good", "bad", "warn"].map((c) => {
      const r = document.querySelector("rect." + c);
      return [c, r ? getComputedStyle(r).fill : null];
    })),
  };
})()
"""


class Browser:
    def __init__(self, profile):
        ours_r, theirs_w = os.pipe()
        theirs_r, ours_w = os.pipe()

        def pipes():  # the browser reads 3 and writes 4
            r, w = os.dup(theirs_r), os.dup(theirs_w)
            os.dup2(r, 3)
            os.dup2(w, 4)

        self.process = subprocess.Popen(
            [shutil.which("chromium") or "chromium", "--headless", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run", "--disable-extensions",
             "--disable-background-networking", "--remote-debugging-pipe",
             "--user-data-dir=" + profile, "about:blank"],
            preexec_fn=pipes, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(theirs_r)
        os.close(theirs_w)
        self.reader, self.writer = os.fdopen(ours_r, "rb"), os.fdopen(ours_w, "wb")
        self.rest, self.last, self.session, self.events = b"", 0, None, []

    def read(self):
        while b"\0" not in self.rest:
            part = os.read(self.reader.fileno(), 65536)
            if not part:
                sys.exit("browser.py: the browser ended")
            self.rest += part
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.writer.write(json.dumps(message).encode() + b"\0")
        self.writer.flush()
        while True:
            answer = self.read()
            if answer.get("id") == self.last:
                if "error" in answer:
                    sys.exit(f"browser.py: {method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait(self, method):
        while not any(e.get("method") == method for e in self.events):
            self.events.append(self.read())

    def look(self):
        return self.call("Runtime.evaluate", expression=LOOK, returnByValue=True)["result"]["value"]

    def size(self, width):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=1000,
                  deviceScaleFactor=1, mobile=False)

    def media(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": scheme}])

    def shot(self, name):
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        with open(f"{prefix}-{name}.png", "wb") as f:
            f.write(base64.b64decode(data))


profile = tempfile.mkdtemp(prefix="aqe-browser-")
try:
    b = Browser(profile)
    target = b.call("Target.createTarget", url="about:blank")["targetId"]
    b.session = b.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Network", "Log", "Runtime"):
        b.call(domain + ".enable")
    b.events.clear()
    b.size(1280)
    b.media("light")
    b.call("Page.navigate", url="file://" + page)
    b.wait("Page.loadEventFired")
    found = {"light": b.look()}
    b.shot("light")
    b.media("dark")
    found["dark"] = b.look()
    b.shot("dark")
    b.media("light")
    b.size(390)
    found["narrow"] = b.look()
    b.shot("narrow")
    b.size(1280)
    pdf = base64.b64decode(b.call("Page.printToPDF", preferCSSPageSize=True)["data"])
    with open(prefix + "-print.pdf", "wb") as f:
        f.write(pdf)
    found["pages"] = pdf.count(b"/Type /Page\n") or pdf.count(b"/Type /Page")
    found["requests"] = [e["params"]["request"]["url"] for e in b.events
                         if e.get("method") == "Network.requestWillBeSent"]
    found["complaints"] = [e["params"] for e in b.events
                           if e.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown",
                                                  "Runtime.consoleAPICalled")]
    b.session = None
    b.call("Browser.close")
    b.process.wait(timeout=20)
    print(json.dumps(found, indent=1))
finally:
    shutil.rmtree(profile, ignore_errors=True)

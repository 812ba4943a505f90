"""Open the built pages in headless Chromium and list what a reader would stumble over.

`make docs` runs this after the build. It needs no package: Chromium is spoken to through a pipe.
`--shots FOLDER` also keeps pictures, and the names of pages limit it to these.
"""

import argparse
import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, urlsplit

BUILT = Path(__file__).parent / "_build" / "html"
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--remote-debugging-pipe"),
]
N_BROWSERS = 2
PATIENCE = 120  # seconds until an answer counts as missing, on a loaded machine
WIDTHS, SCHEMES = (1280, 400), ("light", "dark")
# What is asked of the search, and a page that has to be among the answers.
QUESTIONS = {
    "conditional calibration": "theory/calibration.html",
    "PublicDataOracle": "generated/skdp.PublicDataOracle.html",
}

BROKEN = """(async () => {
  const found = [];
  for (const image of document.images) {
    image.loading = "eager";
    await image.decode().catch(() => found.push("image does not load: " + image.src));
  }
  for (const link of document.querySelectorAll("a[href^='#']")) {
    const name = decodeURIComponent(link.getAttribute("href").slice(1));
    if (name && !document.getElementById(name)) found.push("link leads nowhere: #" + name);
  }
  return found;
})()"""

# A box is clipped where it leaves the window, or an ancestor that hides what leaves it, before an
# ancestor that scrolls. Tables may scroll in a narrow window only.
CLIPPED = """(() => {
  const found = [];
  const room = document.documentElement.clientWidth;
  const name = (box) => box.localName + " '" + box.textContent.trim().slice(0, 30) + "'";
  if (document.documentElement.scrollWidth > room + 1) found.push("the page scrolls sideways");
  const boxes = "table, pre, math, img, figure, .sphx-glr-thumbcontainer";
  for (const box of document.querySelectorAll(":is(.bd-content, .bd-header) :is(" + boxes + ")")) {
    const { width, right } = box.getBoundingClientRect();
    if (!width) continue;
    for (let frame = box.parentElement; frame; frame = frame.parentElement) {
      const overflow = getComputedStyle(frame).overflowX;
      const edge = frame === document.documentElement ? room : frame.getBoundingClientRect().right;
      const over = right > edge + 1;
      if (overflow === "auto" || overflow === "scroll") {
        if (over && room > 1000 && box.localName === "table") found.push("wide: " + name(box));
        break;
      }
      if (over && (overflow !== "visible" || frame === document.documentElement)) {
        found.push("clipped: " + name(box));
        break;
      }
    }
  }
  return found;
})()"""

# Text that stands out from its background by less than WCAG asks of large text.
FAINT = """(() => {
  const channels = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b]
    .map((v) => (v / 255 <= 0.03928 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (box) => {
    for (; box; box = box.parentElement) {
      const color = channels(getComputedStyle(box).backgroundColor);
      if (color.length < 4 || color[3] > 0.9) return color;
    }
    return [255, 255, 255];
  };
  const found = new Set();
  for (const box of document.querySelectorAll(".bd-article :is(p, li, td, th, pre, a, h1, h2)")) {
    if (!box.offsetParent || !box.innerText.trim()) continue;
    const pair = [light(channels(getComputedStyle(box).color)), light(behind(box))].sort();
    if ((Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05) < 3)
      found.add("faint: " + box.localName + " '" + box.innerText.trim().slice(0, 30) + "'");
  }
  return [...found];
})()"""

ANSWERS = """[...document.querySelectorAll("#search-results ul.search li a")].map(a => a.href)"""

# A page with all faults, which must be seen before other pages are believed to have none.
PLANTED = """<main class="bd-content"><article class="bd-article">
<img src="absent.png"><a href="#nowhere">text</a><p style="color: #eee">text</p>
<div style="overflow: auto; width: 900px"><table style="width: 1100px"><td>text</table></div>
<div style="overflow: hidden; width: 300px"><pre style="width: 500px">text</pre></div>
</article></main><script>console.error("planted"); fetch("http://127.0.0.2/"); absent()</script>"""
FAULTS = [
    *("image does not load", "link leads nowhere", "faint: p", "wide: table", "clipped: pre"),
    *("scrolls sideways", "console: planted", "script: Uncaught", "asks the network"),
]


class Browser:
    """Chromium with one page; what it complains of is collected in `complaints`."""

    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self.outgoing = os.pipe()
        self.incoming, theirs_out = os.pipe()
        # Chromium reads commands from file 3 and answers in file 4.
        command = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self.process = subprocess.Popen(
            ["bash", "-c", command, "-", program, *FLAGS, f"--user-data-dir={self.profile.name}"],
            pass_fds=(theirs_in, theirs_out),
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.buffer, self.n_sent, self.session = b"", 0, None
        self.events, self.complaints = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        """End the process and remove its profile."""
        self.process.terminate()
        self.process.wait()
        self.profile.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def receive(self):
        """Return the next message."""
        while b"\0" not in self.buffer:
            if not select.select([self.incoming], [], [], PATIENCE)[0]:
                raise TimeoutError(f"Chromium has said nothing for {PATIENCE} s.")
            chunk = os.read(self.incoming, 1 << 20)
            if not chunk:
                raise EOFError("Chromium has ended.")
            self.buffer += chunk
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def note(self, event):
        """Keep an event, and put what is wrong in words."""
        method, values = event.get("method"), event.get("params", {})
        self.events.append(method)
        if method == "Runtime.exceptionThrown":
            self.complaints.append(f"script: {values['exceptionDetails']['text']}")
        elif method == "Log.entryAdded" and values["entry"]["level"] == "error":
            entry = values["entry"]
            if not entry.get("url", "").endswith("favicon.ico"):  # asked for by itself
                self.complaints.append(f"console: {entry['text']} {entry.get('url')}")
        elif method == "Runtime.consoleAPICalled" and values["type"] == "error":
            self.complaints.append(f"console: {values['args'][0].get('value')}")
        elif method == "Network.requestWillBeSent":
            url = values["request"]["url"]
            if not url.startswith(("http://127.0.0.1:", "data:", "blob:")):
                self.complaints.append(f"asks the network for {url}")

    def call(self, method, **parameters):
        """Call a method of the DevTools protocol and return its result."""
        self.n_sent += 1
        message = {"id": self.n_sent, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.outgoing, json.dumps(message).encode() + b"\0")
        while (answer := self.receive()).get("id") != self.n_sent:
            self.note(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, url):
        """Go to an address and wait until it is loaded."""
        self.events.clear()
        self.call("Page.navigate", url=url)
        while "Page.loadEventFired" not in self.events:
            self.note(self.receive())

    def ask(self, script):
        """Return the value of an expression in the page."""
        result = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"]["description"])
        return result["result"].get("value")

    def resize(self, width):
        """Make the window this wide."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )

    def prefer(self, scheme):
        """Ask for light or dark pages."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def picture(self, path):
        """Write what the page looks like, down to three windows."""
        height = min(self.ask("document.documentElement.scrollHeight"), 2700)
        width = self.ask("window.innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))


def look(browser, address, shots=None):
    """Yield what is wrong with a page, in all widths and schemes."""
    browser.resize(WIDTHS[0])
    browser.prefer(SCHEMES[0])
    browser.open(address)
    yield from browser.ask(BROKEN)
    for scheme in SCHEMES:
        browser.prefer(scheme)
        for line in browser.ask(FAINT):
            yield f"{scheme}: {line}"
        for width in WIDTHS:
            browser.resize(width)
            if scheme == SCHEMES[0]:  # the colors move nothing
                for line in browser.ask(CLIPPED):
                    yield f"{width} pixels: {line}"
            if shots:
                name = urlsplit(address).path.strip("/").removesuffix(".html").replace("/", "-")
                browser.picture(shots / f"{name}-{width}-{scheme}.png")
    yield from browser.complaints
    browser.complaints.clear()


def search(browser, address):
    """Yield the questions to which the search has no answer."""
    for question, expected in QUESTIONS.items():
        browser.open(f"{address}/search.html?q={question.replace(' ', '+')}")
        until = time.monotonic() + PATIENCE
        while not (answers := browser.ask(ANSWERS)) and time.monotonic() < until:
            time.sleep(0.1)
        if not any(expected in answer for answer in answers):
            yield f"'{question}' does not find {expected}"
    yield from browser.complaints
    browser.complaints.clear()


def main():
    """Look at all pages, or at those that are named, and return how many things are wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", help="such as user_guide/codes.html; all by default")
    parser.add_argument("--shots", type=Path, help="a folder for pictures")
    options = parser.parse_args()
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        print("The pages were not looked at: there is no Chromium. With root: apt install chromium")
        return 0
    if options.shots:
        options.shots.mkdir(parents=True, exist_ok=True)
    built = (str(path.relative_to(BUILT)) for path in BUILT.rglob("*.html"))
    pages = options.pages or sorted(page for page in built if not page.startswith("_"))

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            """Say nothing of single requests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(BUILT)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    started = time.monotonic()
    with Browser(program) as browser:  # of its own: complaints of a page may come late
        seen = " ".join(look(browser, "data:text/html," + quote(PLANTED)))
    for fault in FAULTS:
        assert fault in seen, f"The check is blind: it does not see {fault!r}, only {seen!r}"

    def wrong(some):
        with Browser(program) as browser:
            for page in some:
                for line in look(browser, f"{address}/{page}", options.shots):
                    yield f"{page}: {line}"
            if not options.pages and some[0] == pages[0]:
                yield from (f"search: {line}" for line in search(browser, address))

    shares = [pages[i::N_BROWSERS] for i in range(min(N_BROWSERS, len(pages)))]
    with ThreadPoolExecutor(N_BROWSERS) as pool:
        lines = [line for each in pool.map(lambda some: [*wrong(some)], shares) for line in each]
    server.shutdown()
    print(*lines, sep="\n", end="\n" * bool(lines))
    seconds = time.monotonic() - started
    print(f"{len(pages)} pages looked at in {seconds:.0f} s, {len(lines)} faults.")
    return len(lines)


if __name__ == "__main__":
    sys.exit(min(main(), 1))

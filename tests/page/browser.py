"""browser.py -- drives a headless Chromium through a pair of pipes.

The protocol is that of the DevTools: JSON messages that end in a NUL byte. With
--remote-debugging-pipe no socket is opened, so the tests need no network and no
library.
"""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find_browser():
    """Returns the path of a browser, or None."""
    given = os.environ.get("KILN_TEST_BROWSER")
    if given:
        return given
    return next((path for path in map(shutil.which, NAMES) if path), None)


class BrowserError(Exception):
    """The browser did not do what it was asked for."""


class Browser:
    """One browser with one page."""

    def __init__(self, path, size=(1280, 800), timeout=120):
        self.timeout = timeout
        self.profile = tempfile.mkdtemp(prefix="kiln-browser-")
        read_commands, self.write_end = os.pipe()
        self.read_end, write_answers = os.pipe()
        for end in (read_commands, write_answers):
            os.set_inheritable(end, True)

        def pipes_as_3_and_4():
            high = os.dup(write_answers)
            os.dup2(read_commands, 3)
            os.dup2(high, 4)

        self.process = subprocess.Popen(
            [
                path,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--remote-debugging-pipe",
                f"--user-data-dir={self.profile}",
                f"--window-size={size[0]},{size[1]}",
                "about:blank",
            ],
            close_fds=False,
            preexec_fn=pipes_as_3_and_4,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_commands)
        os.close(write_answers)
        self.buffer = b""
        self.last_id = 0
        self.events = []
        self.session = None
        self.attach(size)

    def attach(self, size):
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(t for t in targets if t["type"] == "page")
        self.session = self.call(
            "Target.attachToTarget", targetId=page["targetId"], flatten=True
        )["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=size[0],
            height=size[1],
            deviceScaleFactor=1,
            mobile=False,
        )

    # ---- Messages ----------------------------------------------------------

    def receive(self, deadline):
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.read_end], [], [], left)[0]:
                raise BrowserError("the browser does not answer")
            data = os.read(self.read_end, 1 << 16)
            if not data:
                raise BrowserError("the browser has ended")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self.timeout
        while True:
            answer = self.receive(deadline)
            if answer.get("id") != self.last_id:
                self.events.append(answer)
            elif "error" in answer:
                raise BrowserError(f"{method}: {answer['error']['message']}")
            else:
                return answer["result"]

    def wait_for(self, method):
        deadline = time.monotonic() + self.timeout
        seen = 0
        while True:
            for event in self.events[seen:]:
                if event.get("method") == method:
                    return
            seen = len(self.events)
            self.events.append(self.receive(deadline))

    # ---- Page --------------------------------------------------------------

    def open(self, url):
        """Loads a page anew, also if only the fragment differs."""
        if not url.startswith("about:"):
            self.open("about:blank")
        self.events = []
        self.call("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def run(self, script):
        """Evaluates an expression and returns its value."""
        answer = self.call(
            "Runtime.evaluate",
            expression=script,
            returnByValue=True,
            awaitPromise=True,
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            text = details.get("exception", {}).get("description", details["text"])
            raise BrowserError(f"{script}: {text}")
        return answer["result"].get("value")

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=x,
                y=y,
                button="left",
                clickCount=1,
            )

    def key(self, key):
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def colour_scheme(self, scheme):
        """Sets the theme of the system, and waits until the page was told."""
        # The page's own listener was added earlier, so it is told earlier.
        self.run(
            """globalThis.themeTold = ((query) =>
                query.matches === (%s) || new Promise((done) => query.addEventListener(
                    "change", () => setTimeout(done, 0, true), { once: true })))(
                (globalThis.themeQuery = matchMedia("(prefers-color-scheme: dark)")));
            true"""
            % ("true" if scheme == "dark" else "false")
        )
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        self.run("globalThis.themeTold")

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as out:
            out.write(base64.b64decode(data))

    def requests(self):
        """URLs that the page has asked for."""
        return [
            e["params"]["request"]["url"]
            for e in self.events
            if e.get("method") == "Network.requestWillBeSent"
        ]

    def complaints(self):
        """Messages of the console, the log, and exceptions."""
        texts = []
        for event in self.events:
            params = event.get("params", {})
            if event.get("method") == "Runtime.consoleAPICalled":
                texts.append(str(params["args"]))
            elif event.get("method") == "Log.entryAdded":
                texts.append(params["entry"]["text"])
            elif event.get("method") == "Runtime.exceptionThrown":
                texts.append(params["exceptionDetails"]["text"])
        return texts

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (BrowserError, OSError):
            self.process.kill()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

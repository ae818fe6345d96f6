"""Tests the page of `kiln profile` in a headless browser: the spans, totals and
details that it shows are compared with the trace of the same records. Exits with
77 if there is no browser."""

import base64
import collections
import html.parser
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "page"))
try:
    import browser
    import picture
except ImportError:
    browser = None

KILN = os.environ["KILN"]
THOROUGH = os.environ.get("KILN_TEST_THOROUGH", "") not in ("", "0")
KINDS = ["kernel", "copy", "fill", "host function", "call", "wait", "overhead",
         "other"]
HOSTILE = ["</script><script>alert(1)</script>", "<!--", "a\u0000b", "\u202egnp",
           "x" * 5000, "\ud800", "&amp;'\"`"]


def kiln(*words, env=None):
    environment = {**os.environ, **(env or {})}
    environment.pop("KILN_DEVICE", None)
    return subprocess.run([KILN, *words], capture_output=True, text=True,
                          check=True, timeout=600, env=environment)


def spans_of(trace):
    with open(trace, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    return [e for e in events if e["ph"] == "X"]


class Reader(html.parser.HTMLParser):
    """Collects the elements of a page, and the data."""

    def __init__(self):
        super().__init__()
        self.elements = collections.Counter()
        self.links, self.data, self.inside = [], "", False

    def handle_starttag(self, tag, attrs):
        self.elements[tag] += 1
        values = dict(attrs)
        self.links += [v for k, v in attrs if k in ("src", "href")]
        self.inside = tag == "script" and values.get("id") == "data"

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.data += data


def read_page(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    reader = Reader()
    reader.feed(text)
    reader.close()
    return reader, json.loads(reader.data)


def numbers(data):
    """The numbers of seven bits per byte in a base64 text."""
    value = shift = 0
    for byte in base64.b64decode(data):
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            yield value
            value = shift = 0


def decoded(page):
    """Spans of the page as (row, kind, name, begin, length)."""
    for index, row in enumerate(page["rows"]):
        stream, begin = numbers(row["data"]), 0
        for _ in range(row["n"]):
            begin += next(stream)
            length = next(stream)
            code = next(stream)
            next(stream), next(stream) # detail, correlation
            kind = KINDS[code % 8]
            if kind in ("copy", "fill"):
                next(stream)
            yield index, kind, page["names"][code // 8], begin, length


def totals(spans):
    out = collections.defaultdict(lambda: [0, 0])
    for kind, name, length in spans:
        out[kind, name][0] += 1
        out[kind, name][1] += length
    return dict(out)


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="kiln-page-test-")
        cls.browser = browser.Browser(browser.find_browser())
        cls.trace = cls.path("trace.json")
        cls.page = cls.path("page.html")
        kiln("--device", "cpu", "profile", "--no-preload", "-o", cls.trace, "--html",
             cls.page, "--", os.environ["ACTIVITIES"], "streams")
        cls.spans = spans_of(cls.trace)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def open(self, page, fragment=""):
        self.browser.open("file://" + page + fragment)
        self.run_script("new Promise((done) => setTimeout(done, 200))")

    def run_script(self, script):
        return self.browser.run(script)

    def tearDown(self):
        self.assertEqual(self.browser.complaints(), [])
        for url in self.browser.requests():
            self.assertRegex(url, "^(file|data|about):")

    def wanted(self):
        return totals((e["cat"], e["name"], round(e["dur"] * 1000))
                      for e in self.spans)

    def test_data_is_that_of_the_trace(self):
        reader, page = read_page(self.page)
        self.assertEqual(reader.elements["script"], 2)
        self.assertEqual([l for l in reader.links if l != "data:,"], [])
        spans = list(decoded(page))
        self.assertEqual(totals((k, n, l) for _, k, n, _, l in spans),
                         self.wanted())
        self.assertEqual(sorted(begin for *_, begin, _ in spans),
                         sorted(round(e["ts"] * 1000) for e in self.spans))

    def test_totals_are_shown(self):
        self.open(self.page)
        rows = self.run_script(
            "[...document.querySelectorAll('#totals tbody tr')].map((row) =>"
            " [...row.cells].map((cell) => cell.textContent))")
        shown = {(row[1], row[0]): int(row[2].replace(",", "")) for row in rows}
        self.assertEqual(shown, {k: v[0] for k, v in self.wanted().items()})

    def test_clicks_select_spans(self):
        self.open(self.page)
        draw = random.Random(3)
        known = collections.Counter((e["name"], round(e["ts"] * 1000),
                                     round(e["dur"] * 1000)) for e in self.spans)
        places = self.run_script(
            "profile.rows.flatMap((row, r) => Array.from({length: row.n},"
            " (_, i) => [r, i]))")
        for row, i in draw.sample(places, 20):
            x, y, name, begin, end = self.run_script(
                f"(() => {{ const row = profile.rows[{row}], i = {i};"
                " const begin = row.spans.begin[i], end = row.spans.end[i];"
                " setView(begin - (end - begin), end + (end - begin)); view.top = 0;"
                " drawChart();"
                " const lane = row.lanes.findIndex((l) => l.index.includes(i));"
                " const box = document.getElementById('chart').getBoundingClientRect();"
                " return [box.left + xOf((begin + end) / 2),"
                "  box.top + row.y + lane * LANE + LANE / 2,"
                "  profile.names[row.spans.name[i]], begin, end]; })()")
            self.assertIn((name, begin, end - begin), known)
            self.browser.click(x, y)
            self.assertEqual(self.run_script(
                "[profile.rows.indexOf(view.row), view.span]"), [row, i])
            text = self.run_script("document.getElementById('detail').textContent")
            self.assertIn(name, text)

    def test_spans_are_drawn_where_they_are(self):
        """A span that takes the middle third of the time takes the middle third
        of the pixels behind the titles."""
        self.open(self.page)
        same = self.run_script(
            "(() => { const canvas = document.getElementById('chart');"
            " const context = canvas.getContext('2d'), results = [];"
            " profile.rows.forEach((row) => {"
            "  const { begin: from, end: to } = row.spans, order = row.lanes[0].index;"
            # The last span of at least 30 ns that has room on both sides.
            "  const k = order.findLastIndex((i, k) => to[i] - from[i] >= 30"
            "   && !(to[order[k - 1]] > from[i] - (to[i] - from[i]) / 10)"
            "   && !(from[order[k + 1]] < to[i] + (to[i] - from[i]) / 10));"
            "  if (k < 0) return;"
            "  const i = order[k], begin = from[i], long = to[i] - begin;"
            "  setView(begin - long, begin + 2 * long); view.top = 0;"
            "  view.wanted = profile.names.map((_, n) => n === row.spans.name[i]);"
            "  drawChart();"
            "  const third = (canvas.clientWidth - 220) / 3;"
            "  const y = row.y + 4;"
            "  const at = (x) => [...context.getImageData(x, y, 1, 1).data].join();"
            "  const inside = at(220 + 1.5 * third), edge = 220 + third;"
            "  results.push(at(Math.ceil(edge) + 1) === inside"
            "   && at(Math.floor(edge) - 3) !== inside"
            "   && at(Math.floor(edge + third) - 3) === inside"
            "   && at(Math.ceil(edge + third) + 3) !== inside); });"
            " return results; })()")
        self.assertGreater(len(same), 3)
        self.assertEqual(same, [True] * len(same))
        self.browser.events = [] # Chromium remarks on the test's own reads

    def test_calls_lead_to_their_work(self):
        self.open(self.page)
        n = self.run_script(
            "(() => { let n = 0; for (const row of profile.rows) {"
            " for (let i = 0; i < row.n; i++) {"
            "  if (row.spans.kind[i] > FILL) continue;"
            "  const calls = linked(row, i);"
            "  if (calls.length === 1 && calls[0][0].about.host) n++; } }"
            " return n; })()")
        self.assertEqual(n, 21)

    def test_search(self):
        self.open(self.page)
        self.browser.key("/")
        for key in "step":
            self.browser.key(key)
        hits = self.run_script("document.getElementById('hits').textContent")
        self.assertEqual(hits, "15 spans")
        begins = sorted(round(e["ts"] * 1000) for e in self.spans
                        if e["name"] == "step<float>")
        for begin in begins[:4]:
            self.browser.key("Enter")
            self.assertEqual(self.run_script("view.row.spans.begin[view.span]"),
                             begin)

    def test_keyboard_and_address(self):
        self.open(self.page)
        length = "view.to - view.from"
        whole = self.run_script(length)
        self.browser.key("w")
        self.assertAlmostEqual(self.run_script(length), 0.7 * whole, delta=2)
        before = self.run_script("view.from")
        self.browser.key("d")
        self.assertGreater(self.run_script("view.from"), before)
        self.run_script("select(profile.rows[1], 0, false)")
        self.run_script("new Promise((done) => setTimeout(done, 300))")
        state = self.run_script("[view.from, view.to, location.hash]")
        self.open(self.page, state[2])
        again = self.run_script(
            "[view.from, view.to, profile.rows.indexOf(view.row), view.span]")
        self.assertAlmostEqual(again[0], state[0], delta=1)
        self.assertAlmostEqual(again[1], state[1], delta=1)
        self.assertEqual(again[2:], [1, 0])
        self.browser.key("0")
        self.assertAlmostEqual(self.run_script(length), whole, delta=2)
        self.browser.key("t")
        self.assertEqual(self.run_script("view.dark"), True)

    def test_print_is_light(self):
        self.browser.colour_scheme("dark")
        self.open(self.page)
        seen = self.run_script("(() => { const seen = [view.dark]; printing(true);"
                               " seen.push(view.dark); printing(false);"
                               " seen.push(view.dark); return seen; })()")
        self.browser.colour_scheme("light")
        self.assertEqual(seen, [True, False, True])

    def test_picture_of_the_readme(self):
        committed = os.path.join(os.path.dirname(picture.__file__), "timeline.png")
        self.assertLess(os.path.getsize(committed), 300_000)
        if THOROUGH:
            path = self.path("picture.png")
            picture.draw_timeline(KILN, [os.environ["ACTIVITIES"], "streams"], path)
            with open(path, "rb") as file:
                self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")

    def test_hostile_names(self):
        trace, page = self.path("hostile.json"), self.path("hostile.html")
        with open(trace, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": [
                {"ph": "X", "pid": 1, "tid": 1, "cat": "kernel", "name": name,
                 "ts": 10 * i, "dur": 5} for i, name in enumerate(HOSTILE)]
                + [{"ph": "M", "pid": 1, "tid": 1, "name": "thread_name",
                    "args": {"name": HOSTILE[0]}}]}, file)
        kiln("profile", "--from", trace, "--html", page)
        reader, _ = read_page(page)
        self.assertEqual(reader.elements["script"], 2)
        self.open(page)
        # The event with half a character is no JSON, and left out.
        self.assertEqual(self.run_script("profile.total"), len(HOSTILE) - 1)
        self.run_script("select(profile.rows[0], 0, true)")
        self.assertIn("</script>", self.run_script(
            "document.getElementById('detail').textContent"))
        self.assertEqual(self.run_script("document.scripts.length"), 2)

    def test_many_spans(self):
        """Draws a page with 100,000 spans at several scales. The time is
        printed; a slow machine must not fail."""
        n = 1000000 if THOROUGH else 30000
        page = self.path("many.html")
        kiln("--driver", os.environ["FAKE_CUDA"], "profile", "--html", page, "--",
             os.environ["PLAYER"], str(n), "exit",
             env={"KILN_CUPTI": os.environ["FAKE_CUPTI"]})
        self.open(page)
        self.assertEqual(self.run_script("profile.total"), 31 * n // 10)
        times = self.run_script(
            "[1, 0.1, 0.01, 0.001].map((part) => {"
            " setView(0, profile.length * part);"
            " const begin = performance.now(); drawChart(); drawOverview();"
            " return performance.now() - begin; })")
        print(f"{31 * n // 10} spans: {statistics.median(times):.1f} ms per frame")


if __name__ == "__main__":
    if browser is None or browser.find_browser() is None:
        print("no browser, or no tests/page/browser.py")
        sys.exit(77)
    unittest.main(verbosity=1)

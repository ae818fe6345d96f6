#!/usr/bin/env python3
"""explore_page_test.py KILN [TEST...] -- tests the page of `kiln explore`.

The pages are made by the command, opened in a headless Chromium, and used as a
person would use them. What a click highlights is compared with line tables that
line_tables.py reads from nvdisasm and from the PTX. By default two pages are
tested; with KILN_TEST_THOROUGH=1 the pages of all embedded programs, of which
KILN_TEST_PART=2/8 selects every eighth.

Environment: KILN_NVDISASM, KILN_NVRTC or KILN_TEST_NVRTC, KILN_TEST_BROWSER. Exits
with 77 if there is no browser or no nvdisasm.
"""
import glob
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import browser
import hostile_page
import line_tables
import picture

KILN = NVDISASM = None
ARCHS = "sm_75,sm_90,sm_120"
MOST_BYTES = 6 << 20
THOROUGH = os.environ.get("KILN_TEST_THOROUGH") == "1"
CLICKS = 200 if THOROUGH else 50

SMALL = """\
#ifndef TILE
#define TILE 4
#endif
__device__ float scaled(float x, float a)
{
  return x * a + 1.0f;
}
// kiln run: --kernel smooth --grid 2 --block 64 --arg f32[256]=ramp --arg f32[256]
extern "C" __global__ void smooth(const float *x, float *y)
{
  __shared__ float tile[64];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = x[i];
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < TILE; k++)
    sum += scaled(tile[(threadIdx.x * 8 + k) & 63], 0.5f);
  if (threadIdx.x & 1)
    y[i] = sum;
}
"""


def kiln(*words, check=True):
    return subprocess.run([KILN, *words], check=check, capture_output=True, text=True)


def child_seconds():
    """CPU seconds of all children and their children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def embedded_programs():
    """The embedded programs, or the part of them that KILN_TEST_PART names."""
    names = re.findall(r"^builtin:\S+", kiln("compile", "--list").stdout, re.M)
    part, parts = map(int, os.environ.get("KILN_TEST_PART", "1/1").split("/"))
    return names[part - 1::parts]


def targets_of(program):
    """The instructions of wgmma kernels exist for one target only."""
    return "sm_90a" if re.search("_wgmma|_ffma", program) else ARCHS


def setUpModule():
    global WORK, BROWSER
    WORK = tempfile.mkdtemp(prefix="kiln-page-")
    os.environ.setdefault("KILN_CACHE_DIR", os.path.join(WORK, "cache"))
    BROWSER = browser.Browser(browser.find_browser())
    with open(os.path.join(WORK, "smooth.cu"), "w", encoding="utf-8") as out:
        out.write(SMALL)


def tearDownModule():
    BROWSER.close()
    shutil.rmtree(WORK)


class Page:
    """A page, and the same compiles as files for the independent reader."""

    def __init__(self, program, *options, archs=ARCHS):
        name = re.sub(r"\W", "_", os.path.basename(program))
        self.path = os.path.join(WORK, name + ".html")
        self.url = "file://" + self.path
        self.archs = archs.split(",")
        folder = os.path.join(WORK, name)
        kiln("compile", program, "--arch", archs, "--lineinfo", "--emit", "ptx,cubin",
             "-o", folder + "/")
        before = child_seconds()  # the cache is warm now
        kiln("explore", program, "--arch", archs, *options, "-o", self.path)
        self.seconds = child_seconds() - before
        self.tables = {arch: self.read_tables(folder, arch) for arch in self.archs}

    def read_tables(self, folder, arch):
        ptx, = glob.glob(f"{folder}/*.{arch}.ptx")
        cubin, = glob.glob(f"{folder}/*.{arch}.cubin")
        with open(ptx, encoding="utf-8", errors="replace") as file:
            chains = line_tables.ptx_chains(file.read())
        text = line_tables.run_nvdisasm(NVDISASM, cubin, "-g", "-gi", "-gp")
        return line_tables.sass_chains(text, chains), chains

    def open(self, fragment=""):
        BROWSER.open(self.url + fragment)


def click_line(line):
    """Scrolls the source to a line and clicks it with the mouse."""
    box = BROWSER.run(f"""(() => {{
        panes.source.list.show({line - 1}, 'centre');
        const row = panes.source.list.rows.get({line - 1});
        const box = row.querySelector('.number').getBoundingClientRect();
        return [box.x + 4, box.y + box.height / 2];
    }})()""")
    BROWSER.click(*box)


HIGHLIGHTED = """(() => {
    const sets = {};
    for (const name of ['ptx', 'sass']) {
        const shown = panes[name].list.rows;
        sets[name] = rowsOf(name, state.place);
        sets[name + '_shown'] = [...shown.keys()];
        sets[name + '_on'] = [...shown].filter(
            ([, node]) => node.classList.contains('on')).map(([row]) => row);
    }
    return sets;
})()"""


class Clicks(unittest.TestCase):
    """Clicking a source line highlights exactly what the tables name."""

    def expect(self, name, got, want):
        self.assertEqual(got[name], want)
        shown = set(got[name + "_shown"])
        self.assertEqual(set(got[name + "_on"]), shown & set(want))

    def click(self, page, arch, kernel, path, line):
        sass, ptx = page.tables[arch]
        sass = sass[kernel][:BROWSER.run("currentKernel().sass.text.length")]
        place = (path, line)
        click_line(line)
        got = BROWSER.run(HIGHLIGHTED)
        self.expect("ptx", got, [i for i, c in enumerate(ptx) if place in c])
        # Where nvdisasm confuses chains, only the first place is sure.
        unsure = {i for i, row in enumerate(sass) if not row[3]}
        want = {i for i, row in enumerate(sass) if i not in unsure and place in row[2]
                or i in unsure and place == row[2][0]}
        want |= {i for i in unsure & set(got["sass"])}
        self.expect("sass", got, sorted(want))

    def lines_to_click(self, page, arch, kernel, path, last, chooser, n):
        with_code = sorted({line for row in page.tables[arch][0][kernel]
                            for file, line in row[2] if file == path and line > 0})
        return [chooser.choice(with_code) if with_code and chooser.random() < 0.7
                else chooser.randint(1, last) for _ in range(n)]

    def check_page(self, page, clicks):
        chooser = random.Random(12)
        clicked = 0
        page.open()
        names = BROWSER.run("kernelNames")
        for arch_index, arch in enumerate(page.archs):
            for kernel in names:
                if kernel not in page.tables[arch][0]:
                    continue
                BROWSER.run(f"chooseImage({arch_index}); "
                            f"chooseKernel({json.dumps(kernel)}); select(-1)")
                path, last = BROWSER.run(
                    "[doc.files[state.file].name, fileLines(doc.files[state.file]).length]")
                n = BROWSER.run("currentKernel().sass.text.length")
                self.assertTrue(line_tables.is_padding(page.tables[arch][0][kernel][n:]))
                share = max(1, clicks // (len(page.archs) * len(names)))
                for line in self.lines_to_click(page, arch, kernel, path, last,
                                                chooser, share + 1):
                    with self.subTest(arch=arch, kernel=kernel, line=line):
                        self.click(page, arch, kernel, path, line)
                        clicked += 1
        self.assertEqual(BROWSER.complaints(), [])
        self.assertEqual(BROWSER.requests(), [page.url])
        return clicked

    def test_scan(self):
        page = Page("builtin:scan", archs=ARCHS if THOROUGH else "sm_75,sm_90")
        self.check_page(page, CLICKS)
        self.assertLess(os.path.getsize(page.path), MOST_BYTES)

    @unittest.skipUnless(THOROUGH, "thorough")
    def test_all(self):
        rows = []
        for program in embedded_programs():
            with self.subTest(program=program):
                page = Page(program, archs=targets_of(program))
                size = os.path.getsize(page.path)
                rows.append((page.seconds / len(page.archs), size, program))
                print(f"{program}: {rows[-1][0]:.2f} s per target, {size} bytes, ", end="")
                print(f"{self.check_page(page, CLICKS)} clicks", flush=True)
                self.assertLess(size, MOST_BYTES)
        print(f"{len(rows)} programs; slowest {max(rows)}")


class Use(unittest.TestCase):
    """Everything else that a person does with a page."""

    @classmethod
    def setUpClass(cls):
        cls.page = Page(os.path.join(WORK, "smooth.cu"), "--compare", "-D TILE=8",
                        "--run", archs="sm_80,sm_90")
        cls.page.open()

    def setUp(self):
        """Brings the page back to an empty fragment, without loading it again."""
        BROWSER.run("""byId('keys').close(); history.replaceState(null, '', '#');
                    readState(); active.row = -1; showAll(); activate('source');
                    select(-1)""")

    def tearDown(self):
        self.assertEqual(BROWSER.complaints(), [])
        self.assertEqual(set(BROWSER.requests()), {self.page.url})

    def test_policy_forbids_everything(self):
        policy = BROWSER.run(
            "document.querySelector('meta[http-equiv]').getAttribute('content')")
        self.assertTrue(policy.startswith("default-src 'none';"))
        self.assertNotIn("unsafe", policy)
        refused = BROWSER.run("""(async () => {
            try { await fetch('file:///etc/hostname'); return 'read'; }
            catch { return 'refused'; } })()""")
        self.assertEqual(refused, "refused")
        BROWSER.events = [e for e in BROWSER.events
                          if "/etc/hostname" not in json.dumps(e)]

    def test_search(self):
        BROWSER.key("/")
        for letter in "ffma":
            BROWSER.key(letter)
        hits = BROWSER.run("byId('hits').textContent")
        texts = [row[1] for row in self.page.tables["sm_80"][0]["smooth"]]
        n = sum("ffma" in text.lower() for text in texts)
        self.assertGreater(n, 0)
        self.assertTrue(hits.endswith(f"· {n}"), hits)
        BROWSER.run("byId('query').blur()")
        seen = []
        for key in "n" * n + "N":
            BROWSER.key(key)
            seen.append(BROWSER.run("active.row"))
        rows = [i for i, text in enumerate(texts) if "ffma" in text.lower()]
        self.assertEqual(seen[:n], rows)
        self.assertEqual(seen[n:], rows[-2:-1] or rows)

    def test_tabs(self):
        for i, label in enumerate(["sm_80", "sm_90", "sm_80 B", "sm_90 B"]):
            BROWSER.run(f"byId('image-{i}').click()")
            chosen = BROWSER.run(
                "document.querySelector('#images [aria-selected=true]').textContent")
            self.assertEqual(chosen, label)
            self.assertEqual(BROWSER.run("state.image"), i)
            self.assertGreater(
                BROWSER.run("document.querySelectorAll('#pane-sass .row').length"), 5)

    def test_fragment(self):
        BROWSER.run("chooseImage(1); select(placeAt(0, 17)); showPanel('loops')")
        BROWSER.run("writeFragment()")
        fragment = BROWSER.run("location.hash")
        self.page.open(fragment)
        self.assertEqual(BROWSER.run(
            "[state.image, state.panel, lineOf(state.place)]"), [1, "loops", 17])
        self.assertEqual(BROWSER.run("location.hash"), fragment)
        self.page.open("#image=99&line=x:1&panel=none&metric=7&kernel=-1")
        self.assertEqual(BROWSER.run("[state.image, state.panel, state.place]"),
                         [0, "line", -1])

    def test_compare(self):
        BROWSER.key("d")
        self.assertEqual(BROWSER.run("byId('differences').hidden"), False)
        pairs = BROWSER.run("[...byId('pair').options].map((o) => o.textContent)")
        self.assertEqual(pairs, ["sm_80 and sm_90", "sm_80 and sm_80 B",
                                 "sm_90 and sm_90 B"])
        got = BROWSER.run("pairs()[0].rows.map(([chain, a, b]) => [lineOf(rootOf(chain)), a, b])")
        want = {}
        for side, arch in enumerate(["sm_80", "sm_90"]):
            rows = self.page.tables[arch][0]["smooth"]
            for i, row in enumerate(rows):
                if row[2] and not line_tables.is_padding(rows[i:]):
                    want.setdefault(row[2][-1][1], [0, 0])[side] += 1
        self.assertEqual({row[0]: row[1:] for row in got if row[1] + row[2] > 0
                          and row[0] > 0}, want)
        BROWSER.run("document.querySelector('#differences tr.jump').click()")
        self.assertGreater(
            BROWSER.run("document.querySelectorAll('#differences .beside tr').length"), 1)

    def heat_shown(self, line):
        """The number that the column of the run shows beside a source line."""
        return BROWSER.run(f"panes.source.list.show({line - 1}, 'centre'); panes.source.list."
                           f"rows.get({line - 1}).querySelector('.heat').textContent")

    def test_heat(self):
        values = BROWSER.run("doc.heat.rows.map(([file, line, ...v]) => [line, ...v])")
        by_line = {row[0]: row[1:] for row in values}
        outer = {row[1]: row[2] for row in BROWSER.run("doc.heat.outer_rows")}
        # Line 17 calls the function of line 6, which is inlined.
        self.assertEqual(outer[17], by_line[17][0] + by_line[6][0])
        self.assertNotIn(6, outer)
        self.assertEqual(sum(outer.values()), sum(row[0] for row in by_line.values()))
        self.assertEqual(self.heat_shown(17), str(outer[17]))
        BROWSER.run("""byId('counted').value = 'inner';
                    byId('counted').dispatchEvent(new Event('change'))""")
        self.assertEqual([self.heat_shown(6), self.heat_shown(17)],
                         [str(by_line[6][0]), str(by_line[17][0])])
        BROWSER.run("writeFragment()")
        self.assertIn("counted=inner", BROWSER.run("location.hash"))
        self.assertEqual(by_line[19][1], 16)  # y[i] = sum: every other lane
        self.assertEqual(by_line[17][4], 1)   # 8 words in 4 banks: 2 passes
        self.assertGreater(
            BROWSER.run("document.querySelectorAll('#pane-source .heat i').length"), 3)

    def test_dark(self):
        colour = "getComputedStyle(document.body).backgroundColor"
        BROWSER.colour_scheme("light")
        light = BROWSER.run(colour)
        BROWSER.colour_scheme("dark")
        dark = BROWSER.run(colour)
        self.assertNotEqual(light, dark)
        BROWSER.key("t")
        self.assertEqual(BROWSER.run(colour), light)
        BROWSER.run("writeFragment()")
        self.assertIn("theme=light", BROWSER.run("location.hash"))
        BROWSER.colour_scheme("light")

    def test_contrast(self):
        for scheme in ("light", "dark"):
            BROWSER.colour_scheme(scheme)
            for name, least in [("--text", 7), ("--muted", 4.5), ("--accent", 4.5),
                                ("--bad", 4.5), ("--s-word", 4.5), ("--s-comment", 4.5),
                                ("--s-text", 4.5), ("--s-pre", 4.5), ("--s-number", 4.5),
                                ("--s-register", 4.5), ("--s-label", 4.5)]:
                with self.subTest(scheme=scheme, colour=name):
                    self.assertGreaterEqual(BROWSER.run(CONTRAST % name), least)
        BROWSER.colour_scheme("light")

    def test_keyboard(self):
        BROWSER.key("?")
        self.assertTrue(BROWSER.run("byId('keys').open"))
        BROWSER.key("?")
        self.assertFalse(BROWSER.run("byId('keys').open"))
        BROWSER.key("]")
        self.assertEqual(BROWSER.run("state.image"), 1)
        BROWSER.key("[")
        for key, panel in [("l", "loops"), ("c", "flow"), ("f", "findings")]:
            BROWSER.key(key)
            self.assertEqual(BROWSER.run("state.panel"), panel)
        BROWSER.key("3")
        BROWSER.key("j")
        BROWSER.key("j")
        self.assertEqual(BROWSER.run("[active.name, active.row]"), ["sass", 1])
        BROWSER.key("Escape")
        self.assertEqual(BROWSER.run("state.place"), -1)

    def test_flow_has_all_blocks(self):
        BROWSER.key("c")
        drawn, blocks = BROWSER.run("""[
            [...document.querySelectorAll('.graph .block')].map((b) => +b.dataset.first),
            currentKernel().blocks]""")
        reached, todo = set(), [0]
        while todo:
            block = todo.pop()
            if block not in reached:
                reached.add(block)
                todo += blocks[block][2]
        self.assertEqual(sorted(drawn), sorted(blocks[b][0] for b in reached))
        self.assertGreater(len(reached), 1)

    @unittest.skipUnless(THOROUGH, "thorough")
    def test_picture_can_be_drawn_again(self):
        path = os.path.join(WORK, "picture.png")
        picture.draw(KILN, path)
        with open(path, "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")

    def test_picture_of_the_readme(self):
        self.assertLess(os.path.getsize(
            os.path.join(os.path.dirname(os.path.abspath(__file__)), "explore.png")),
            300_000)

    def test_names_and_roles(self):
        unnamed = BROWSER.run("""[...document.querySelectorAll(
            'button, select, input, [role=listbox], [role=tablist], [role=img]')].filter(
            (node) => !(node.textContent.trim() || node.getAttribute('aria-label') ||
                node.labels?.length)).map((node) => node.outerHTML)""")
        self.assertEqual(unnamed, [])

    def test_print(self):
        self.assertGreater(BROWSER.run("""(() => {
            printing(true);
            const n = panes.source.list.rows.size;
            printing(false);
            return n; })()"""), 20)


# WCAG's contrast between a colour of the page and its background.
CONTRAST = """((name) => {
    const style = getComputedStyle(document.documentElement);
    const light = (variable) => {
        const text = style.getPropertyValue(variable).trim();
        const parts = [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16) / 255)
            .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
    };
    const [a, b] = [light(name), light('--back')].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
})('%s')"""


class Hostile(unittest.TestCase):
    """Sources and names that try to leave their place in the page."""

    def check(self, name, source, *options, kernels=None):
        path = os.path.join(WORK, name + ".cu")
        page = os.path.join(WORK, name + ".html")
        with open(path, "wb") as out:
            out.write(source)
        kiln("explore", path, "--arch", "sm_90", *options, "-o", page)
        with open(page, "rb") as file:
            data = file.read()
        self.assertEqual(hostile_page.problems(data), [])
        BROWSER.open("file://" + page)
        self.assertEqual(BROWSER.complaints(), [])
        self.assertEqual(BROWSER.requests(), ["file://" + page])
        self.assertEqual(BROWSER.run("window.injected ?? 0"), 0)
        self.assertEqual(BROWSER.run("document.scripts.length"), 2)
        if kernels:
            self.assertEqual(BROWSER.run("kernelNames"), kernels)
        return BROWSER

    def test_markup_control_bytes_and_broken_utf8(self):
        page = self.check("markup", hostile_page.MARKUP + hostile_page.control_bytes(),
                          kernels=["k"])
        text = page.run("fileLines(doc.files[0])[0]")
        self.assertIn("</script><script>window.injected=1</script>", text)
        self.assertIn("\\ufffd", ascii(page.run("doc.files[0].text")))

    def test_without_nvdisasm(self):
        with unittest.mock.patch.dict(os.environ, KILN_NVDISASM="/nowhere/nvdisasm"):
            page = self.check("bare", b'extern "C" __global__ void k(int *p) { *p = 1; }\n')
        note = page.run("document.querySelector('.missing').textContent")
        self.assertIn("nvdisasm", note)
        self.assertIn("KILN_NVDISASM", note)
        click_line(1)
        self.assertGreater(len(page.run(HIGHLIGHTED)["ptx"]), 0)

    @unittest.skipUnless(THOROUGH, "thorough")
    def test_code_of_older_compilers(self):
        """What nvdisasm cannot show of older code, the page explains."""
        older = [p for p in os.environ.get("KILN_TEST_NVRTC", "").split(":")
                 if "libnvrtc.so.12" in p]
        if not older:
            self.skipTest("KILN_TEST_NVRTC lists no NVRTC 12")
        path, page = os.path.join(WORK, "smooth.cu"), os.path.join(WORK, "older.html")
        with unittest.mock.patch.dict(os.environ, KILN_NVRTC=older[0]):
            kiln("explore", path, "--arch", "sm_61,sm_80", "-o", page)
        BROWSER.open("file://" + page)
        text = "document.querySelector('.missing').innerText"
        self.assertIn("sm_61", BROWSER.run(text))
        BROWSER.run("chooseImage(1)")
        self.assertIn("Live registers are not shown", BROWSER.run(text))
        self.assertIn("NVRTC 12", BROWSER.run(text))
        self.assertGreater(BROWSER.run("panes.sass.list.rows.size"), 5)

    def test_many_lines_and_a_long_name(self):
        name = "k" * 5000
        source = b"//\n" * 100000 + f'extern "C" __global__ void {name}'.encode() \
            + b"(int *p)\n{\n  *p = 1;\n}\n"
        page = self.check("lines", source, kernels=[name])
        click_line(100003)
        self.assertGreater(len(page.run(HIGHLIGHTED)["sass"]), 0)
        self.assertLess(page.run("document.querySelectorAll('*').length"), 4000)


def find_nvdisasm():
    """Returns the path of nvdisasm, or None. samples/setup.sh fetches it."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    fetched = glob.glob(root + "/.deps/*nvdisasm*/**/bin/nvdisasm", recursive=True)
    return (os.environ.get("KILN_NVDISASM") or shutil.which("nvdisasm")
            or next(iter(fetched), None))


def find_nvrtc():
    """Chooses the newest NVRTC of the compile tier, unless one is given."""
    libraries = os.environ.get("KILN_TEST_NVRTC", "").split(":")
    if libraries[-1]:
        os.environ.setdefault("KILN_NVRTC", libraries[-1])


def main():
    global KILN, NVDISASM
    KILN, NVDISASM = os.path.abspath(sys.argv[1]), find_nvdisasm()
    if browser.find_browser() is None:
        print("skipped: there is no Chromium (apt-get install chromium)")
        return 77
    if NVDISASM is None:
        print("skipped: there is no nvdisasm (samples/run.sh fetches it)")
        return 77
    os.environ["KILN_NVDISASM"] = NVDISASM
    os.environ.pop("KILN_DEVICE", None)
    find_nvrtc()
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())

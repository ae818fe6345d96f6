"""Tests `kiln profile`: programs on the CPU device, records of a fake CUPTI, and
damaged record files. Totals are computed here from the trace, and compared with
the summary of the command."""

import collections
import glob
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

KILN = os.environ["KILN"]
ACTIVITIES = os.environ["ACTIVITIES"]
PLAYER = os.environ["PLAYER"]
THOROUGH = os.environ.get("KILN_TEST_THOROUGH", "") not in ("", "0")
SANITIZED = os.environ.get("SANITIZED") == "1"
# A sanitizer has to be loaded first, and the program finds libcuda without help.
PRELOAD = ["--no-preload"] if SANITIZED else []
KERNEL = "step<float>"

SECTIONS = {"kernel": "kernels", "copy": "copies", "fill": "fills",
            "call": "calls", "wait": "waits", "overhead": "overhead"}


def run(*words, **more):
    environment = {**os.environ, **more.pop("env", {})}
    environment.pop("KILN_DEVICE", None)
    return subprocess.run(words, capture_output=True, text=True, timeout=600,
                          env=environment, check=False, **more)


def spans_of(trace):
    with open(trace, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    return [e for e in events if e["ph"] == "X"], events


def totals_of(spans):
    """Calls, total, least and most time per kind and name, in nanoseconds."""
    totals = collections.defaultdict(lambda: [0, 0, 1 << 62, 0])
    for e in spans:
        ns = round(e["dur"] * 1000)
        t = totals[SECTIONS.get(e["cat"], e["cat"]), e["name"]]
        t[:] = [t[0] + 1, t[1] + ns, min(t[2], ns), max(t[3], ns)]
    return totals


def busy_of(spans):
    """The union of the spans' intervals, in nanoseconds."""
    busy = end = 0
    for e in sorted(spans, key=lambda e: e["ts"]):
        begin = round(e["ts"] * 1000)
        stop = begin + round(e["dur"] * 1000)
        busy += max(0, stop - max(begin, end))
        end = max(end, stop)
    return busy


class Profile(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="kiln-profile-test-")
        self.addCleanup(self.folder.cleanup)
        self.trace = os.path.join(self.folder.name, "trace.json")
        self.json = os.path.join(self.folder.name, "summary.json")
        self.keep = os.path.join(self.folder.name, "records")

    def profile(self, *program, options=(), rc=0, env=None):
        """Profiles a program and checks the summary against the trace."""
        result = run(KILN, *options, "profile", *PRELOAD, "-o", self.trace,
                     "--json", self.json, "--keep", self.keep, "--", *program,
                     env=env or {})
        self.assertEqual(result.returncode, rc, result.stderr)
        self.assertEqual(result.stdout, "")
        with open(self.json, encoding="utf-8") as file:
            summary = json.load(file)
        self.check(summary)
        return summary, result.stderr

    def check(self, summary):
        spans, _ = spans_of(self.trace)
        wanted = totals_of(spans)
        got = {}
        for section in SECTIONS.values():
            for t in summary[section]:
                got[section, t["name"]] = [t["calls"], t["total_ns"],
                                           t["least_ns"], t["most_ns"]]
        self.assertEqual(got, dict((k, v) for k, v in wanted.items()
                                   if k[0] in SECTIONS.values()))
        self.assertEqual(summary["spans"], len(spans))
        work = [e for e in spans if e["cat"] in ("kernel", "copy", "fill")]
        if len(summary["devices"]) == 1:
            self.assertEqual(summary["devices"][0]["busy_ns"], busy_of(work))

    def calls(self, summary, section, name):
        return sum(t["calls"] for t in summary[section] if t["name"] == name)


class OnTheCpu(Profile):
    def cpu(self, *words, rc=0, options=("--device", "cpu")):
        return self.profile(ACTIVITIES, *words, options=options, rc=rc)

    def test_five_streams(self):
        summary, text = self.cpu("streams")
        self.assertEqual(self.calls(summary, "kernels", KERNEL), 15)
        self.assertEqual(self.calls(summary, "copies", "copy, device to host"), 5)
        self.assertEqual(self.calls(summary, "copies", "copy, host to device"), 1)
        self.assertEqual(self.calls(summary, "calls", "cuLaunchKernel"), 15)
        self.assertEqual(self.calls(summary, "calls", "cuStreamDestroy_v2"), 5)
        spans, events = spans_of(self.trace)
        streams = {e["tid"] for e in spans if e["cat"] == "kernel"}
        self.assertEqual(len(streams), 5)
        # Each launch has an arrow from its call.
        self.assertEqual(sum(e["ph"] == "s" for e in events), 21)
        self.assertIn(KERNEL, text)
        self.assertIn("device 0, CPU device", text)

    def test_graph(self):
        summary, _ = self.cpu("graph")
        self.assertEqual(self.calls(summary, "kernels", KERNEL), 8)
        self.assertEqual(self.calls(summary, "fills", "fill"), 4)
        self.assertEqual(self.calls(summary, "copies", "copy, device to host"), 4)
        spans, _ = spans_of(self.trace)
        self.assertEqual(sum("in a graph" in e["args"].get("detail", "")
                             for e in spans), 16)

    def test_crash(self):
        signals = {"crash": 128 + signal.SIGSEGV, "kill": 128 + signal.SIGKILL,
                   "exit": 9}
        for mode, rc in signals.items():
            if SANITIZED and mode == "crash":
                continue # the sanitizer catches the signal
            with self.subTest(mode):
                self.keep = os.path.join(self.folder.name, mode)
                summary, _ = self.cpu(mode, rc=rc)
                self.assertEqual(self.calls(summary, "kernels", KERNEL), 3)
                self.assertFalse(summary["processes"][0]["exited"])
                self.assertFalse(summary["damaged"])

    def test_many(self):
        n = 200000 if THOROUGH else 20000
        summary, _ = self.cpu("many", str(n))
        self.assertEqual(self.calls(summary, "kernels", KERNEL), n)
        self.assertEqual(self.calls(summary, "calls", "cuLaunchKernel"), n)
        self.assertEqual(summary["processes"][0]["lost_records"], 0)

    def test_child(self):
        summary, _ = self.cpu("child")
        first, second = summary["processes"]
        self.assertEqual({first["parent"], second["parent"]} &
                         {first["pid"], second["pid"]},
                         {min(first["pid"], second["pid"])}
                         if first["pid"] in (second["parent"],)
                         or second["pid"] in (first["parent"],) else set())
        self.assertEqual(self.calls(summary, "kernels", KERNEL), 17)
        self.assertEqual(len(summary["devices"]), 2)

    def test_trace_is_read_back(self):
        summary, _ = self.cpu("streams")
        again = run(KILN, "profile", "--from", self.trace, "--json", "-")
        self.assertEqual(again.returncode, 0, again.stderr)
        read = json.loads(again.stdout)
        for section in SECTIONS.values():
            key = lambda t: t["name"]
            self.assertEqual(sorted(read[section], key=key),
                             sorted(summary[section], key=key))

    def test_limit_loses_and_counts(self):
        result = run(KILN, "--device", "cpu", "profile", *PRELOAD, "--limit", "5M",
                     "--json", "-", "--", ACTIVITIES, "many", "60000")
        self.assertEqual(result.returncode, 0, result.stderr)
        summary = json.loads(result.stdout)
        lost = summary["processes"][0]["lost_records"]
        self.assertGreater(lost, 0)
        # 60,000 launches, their calls, the copy, and at least 8 other calls.
        self.assertGreaterEqual(summary["spans"] + lost, 120009)

    def test_no_calls(self):
        result = run(KILN, "--device", "cpu", "profile", *PRELOAD, "--no-calls",
                     "--json", "-", "--", ACTIVITIES, "streams")
        summary = json.loads(result.stdout)
        self.assertEqual(summary["calls"], [])
        self.assertEqual(self.calls(summary, "kernels", KERNEL), 15)


class WithCupti(Profile):
    """Records of a fake CUPTI, whose totals are known exactly."""

    def play(self, n, how="exit", version="13", rc=0, drops=None):
        env = {"KILN_CUPTI": os.environ["FAKE_CUPTI"],
               "FAKE_CUPTI_VERSION": version}
        if drops is not None:
            env["FAKE_CUPTI_DROPS"] = str(drops)
        return self.profile(PLAYER, str(n), how, rc=rc, env=env,
                            options=("--driver", os.environ["FAKE_CUDA"]))

    def test_versions(self):
        for version in ("11", "12", "13"):
            with self.subTest(version):
                self.keep = os.path.join(self.folder.name, version)
                summary, text = self.play(1000, version=version)
                kernels = {t["name"]: t for t in summary["kernels"]}
                self.assertEqual(set(kernels), {KERNEL, "ns::copy<float, 4>",
                                                "plain"})
                for name, rest in ((KERNEL, 0), ("ns::copy<float, 4>", 1),
                                   ("plain", 2)):
                    times = [1000 + i % 100 for i in range(1, 1001)
                             if i % 3 == rest]
                    self.assertEqual(kernels[name], {
                        "name": name, "calls": len(times),
                        "total_ns": sum(times), "least_ns": min(times),
                        "most_ns": max(times)})
                (copy,) = summary["copies"]
                self.assertEqual(copy, {
                    "name": "copy, host to device", "calls": 100,
                    "total_ns": 50000, "least_ns": 500, "most_ns": 500,
                    "bytes": 409600})
                self.assertEqual(self.calls(summary, "calls", "cuLaunchKernel"),
                                 1000)
                self.assertEqual(summary["devices"][0]["name"],
                                 "device 0, Fake GPU")
                self.assertEqual("CUPTI_ERROR_INVALID_KIND" in text,
                                 version == "11")
                detail = spans_of(self.trace)[0]
                detail = [e for e in detail if e["cat"] == "kernel"][0]["args"]
                self.assertIn("grid 1 x 2 x 3, block 4 x 5 x 6, 40 registers, "
                              "128 + 256 bytes", detail["detail"])

    def test_default_stream_is_named(self):
        self.play(100)
        _, events = spans_of(self.trace)
        titles = [e["args"]["name"] for e in events
                  if e["name"] == "thread_name"]
        self.assertEqual(titles.count("default stream"), 1)
        self.assertEqual(sum(t.startswith("stream ") for t in titles), 4)

    def test_drops_are_reported(self):
        summary, text = self.play(50, drops=7)
        lost = summary["processes"][0]["lost_records"]
        self.assertGreaterEqual(lost, 7)
        self.assertEqual(lost % 7, 0)
        self.assertIn("records were lost", text)

    def test_ends(self):
        ends = {"leave": 6, "kill": 128 + signal.SIGKILL}
        if not SANITIZED:
            ends.update({"crash": 128 + signal.SIGSEGV,
                         "abort": 128 + signal.SIGABRT})
        for how, rc in ends.items():
            with self.subTest(how):
                self.keep = os.path.join(self.folder.name, how)
                summary, _ = self.play(500, how=how, rc=rc)
                self.assertEqual(sum(t["calls"] for t in summary["kernels"]), 500)

    def test_million_launches(self):
        n = 1000000 if THOROUGH else 100000
        result = run(KILN, "--driver", os.environ["FAKE_CUDA"], "profile",
                     "--json", "-", "--", PLAYER, str(n), "exit",
                     env={"KILN_CUPTI": os.environ["FAKE_CUPTI"]})
        self.assertEqual(result.returncode, 0, result.stderr)
        summary = json.loads(result.stdout)
        self.assertEqual(sum(t["calls"] for t in summary["kernels"]), n)
        self.assertEqual(sum(t["total_ns"] for t in summary["kernels"]),
                         sum(1000 + i % 100 for i in range(1, n + 1)))
        self.assertEqual(sum(t["calls"] for t in summary["calls"]), 2 * n)
        self.assertEqual(summary["processes"][0]["lost_records"], 0)

    def test_no_cupti(self):
        result = run(KILN, "--driver", os.environ["FAKE_CUDA"], "profile",
                     "--json", "-", "--", PLAYER, "1", "exit",
                     env={"KILN_CUPTI": "/nowhere/libcupti.so.13"})
        self.assertEqual(result.returncode, 5, result.stderr) # the player's
        summary = json.loads(result.stdout)
        self.assertIn("no libcupti could be used", summary["notes"][0])
        self.assertIn("/nowhere/libcupti.so.13", summary["notes"][0])


class Files(Profile):
    def record(self):
        result = run(KILN, "--device", "cpu", "profile", *PRELOAD, "--keep",
                     self.keep, "--", ACTIVITIES, "graph")
        self.assertEqual(result.returncode, 0, result.stderr)
        (path,) = glob.glob(self.keep + "/*.kprof")
        with open(path, "rb") as file:
            return file.read()

    def read(self, data):
        path = os.path.join(self.folder.name, "damaged.kprof")
        with open(path, "wb") as file:
            file.write(data)
        result = run(KILN, "profile", "--from", path, "--json", "-", "-o",
                     self.trace, "--html", self.trace + ".html",
                     env={"ASAN_OPTIONS": "allocator_may_return_null=1"})
        self.assertIn(result.returncode, (0, 1), result.stderr)
        return json.loads(result.stdout) if result.returncode == 0 else None

    def test_every_cut_is_readable(self):
        data = self.record()
        whole = self.read(data)["spans"]
        last = 0
        for size in sorted(random.Random(1).sample(range(len(data)), 15)):
            summary = self.read(data[:size])
            self.assertEqual(summary is None, size < 128)
            if summary is not None:
                self.assertGreaterEqual(summary["spans"], last)
                last = summary["spans"]
        self.assertLessEqual(last, whole)

    def test_damage(self):
        data = self.record()
        draw = random.Random(7)
        for _ in range(2000 if THOROUGH else 30):
            changed = bytearray(data)
            for _ in range(draw.choice((1, 2, 8, 64))):
                at = draw.randrange(8, len(changed))
                changed[at] = draw.choice((0, 1, 0x7f, 0x80, 0xff,
                                           draw.randrange(256)))
            self.read(bytes(changed))

    def test_wrong_files(self):
        self.assertIsNone(self.read(b""))
        self.assertIsNone(self.read(b"KILNPRF1"))
        self.assertIsNone(self.read(bytes(4096)))
        for text in ("", "{", '{"traceEvents":[', "[]", "nonsense",
                     '{"traceEvents":[{"ph":"X"'):
            with open(self.trace, "w", encoding="utf-8") as file:
                file.write(text)
            result = run(KILN, "profile", "--from", self.trace)
            self.assertEqual(result.returncode, 1, text)
            self.assertIn("kiln profile:", result.stderr)

    def test_recorder_trace(self):
        """A trace as kiln_timeline_write() writes it: host threads in process 0,
        streams in process 1, nested spans, control bytes in names."""
        lines = [{"ph": "M", "pid": 0, "tid": 0, "name": "process_name",
                  "args": {"name": "host"}},
                 {"ph": "M", "pid": 1, "tid": 0, "name": "process_name",
                  "args": {"name": "Some GPU"}},
                 {"ph": "M", "pid": 1, "tid": 2, "name": "thread_name",
                  "args": {"name": "stream 2"}},
                 {"ph": "X", "pid": 0, "tid": 1, "name": "outer", "ts": -3.5,
                  "dur": 20.25},
                 {"ph": "X", "pid": 1, "tid": 2, "name": "k\u0007</script>",
                  "ts": 1.001, "dur": 2.002},
                 {"ph": "B", "pid": 1, "tid": 2, "name": "b", "ts": 8},
                 {"ph": "E", "pid": 1, "tid": 2, "ts": 9.5}]
        with open(self.trace, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": lines}, file)
        result = run(KILN, "profile", "--from", self.trace, "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        summary = json.loads(result.stdout)
        self.assertEqual({(t["name"], t["total_ns"]) for t in summary["kernels"]},
                         {("k\u0007</script>", 2002), ("b", 1500)})
        self.assertEqual(summary["other"][0]["total_ns"], 20250)
        self.assertEqual(summary["devices"][0]["name"], "device 1, Some GPU")

    def test_start_failures(self):
        result = run(KILN, "profile", "--", "/nowhere/program")
        self.assertEqual(result.returncode, 127)
        self.assertIn("cannot run '/nowhere/program'", result.stderr)
        # A program of this build, since only those can load a sanitized library.
        result = run(KILN, "profile", "--", KILN, "--version")
        self.assertEqual(result.returncode, 1)
        self.assertIn("nothing was recorded", result.stderr)
        self.assertEqual(run(KILN, "profile").returncode, 2)


if __name__ == "__main__":
    unittest.main(verbosity=1 if len(sys.argv) == 1 else 2)

#!/usr/bin/env python3
"""Times Kiln beside PyTorch and CuPy, in one process, on one GPU and one stream.

    cmake -B build && cmake --build build --target kiln_python_calls
    python3 tests/bench/python/python_peers.py build/libkiln_python_calls.so

Needs Python with PyTorch and CuPy. Each case is timed in three ways, Kiln and the peer
in turns, as medians of CUDA events:

    single    one call on an idle GPU. Both events are recorded around the call, so the
              time contains what the host needs to queue it
    queued    one call behind a busy kernel, so the host's time is hidden
    in graph  calls of a CUDA graph, back to back, time per call

The ratio is the peer's time divided by Kiln's: above 1.00 Kiln is faster. `wanted` is
the aim for `single`, the way in which a program that makes one call sees it. Every
result is compared with a reference in float64; a wrong result ends the program with
exit status 1."""
import argparse
import ctypes
import functools
import json
import statistics
import sys
import time

import cupy
import cupyx.scipy.ndimage
import torch
from torch.nn import functional

GELU = "kiln::gelu(acc + x)"
# The escape is tested at each step, as in the text for CuPy below.
PLAIN_JULIA = """
__device__ unsigned steps(float x, float y)
{
  unsigned k = 0;
  while (k < 255 && x * x + y * y < 4.0f) {
    const float next = x * x - y * y - 0.79f;
    y = 2.0f * x * y + 0.15f;
    x = next;
    k++;
  }
  return k;
}"""
# The escape is tested at every fifth step; the last steps are then repeated singly.
FAST_JULIA = """
__device__ __forceinline__ void step(float &x, float &y)
{
  const float next = fmaf(x, x, fmaf(-y, y, -0.79f));
  y = fmaf(x + x, y, 0.15f);
  x = next;
}
__device__ unsigned steps(float x, float y)
{
  unsigned k = 0;
  float u = x, v = y;
  while (k < 255) {
    for (int i = 0; i < 5; i++)
      step(u, v);
    if (!(fmaf(u, u, v * v) < 4.0f))
      break;
    x = u;
    y = v;
    k += 5;
  }
  for (; k < 255 && fmaf(x, x, y * y) < 4.0f; k++)
    step(x, y);
  return k;
}"""
PIXEL = "steps((column - half) * scale, (row - half) * scale)"
CUPY_JULIA = """
const unsigned p = i, row = p / w, column = p % w;
const float scale = 3.0f / w;
float x = (column - 0.5f * w) * scale, y = (row - 0.5f * w) * scale;
unsigned k = 0;
while (k < 255 && x * x + y * y < 4.0f) {
  const float next = x * x - y * y + cx;
  y = 2.0f * x * y + cy;
  x = next;
  k++;
}
out = k;"""
JULIA_ARITHMETIC = 4  # instructions on the FFMA pipe that a step needs
SIDE = 8192
# Products: type, m, n, k, number of products, wanted ratio. The wanted ratios refer to
# times of single calls through PyTorch.
PRODUCTS = (
    ("f32", 1000, 1000, 1000, 1, 1.25), ("f32", 1024, 1024, 1024, 1, 1.25),
    ("f32", 2048, 2048, 2048, 1, 1.05), ("f32", 4096, 4096, 4096, 1, 1.03),
    ("f32", 8192, 8192, 8192, 1, 1.03), ("f32", 3001, 2999, 2987, 1, 1.15),
    ("f32", 32, 32, 32, 10000, 2.0), ("f32", 64, 64, 64, 4096, 1.6),
    ("f32", 128, 128, 128, 1000, 1.3), ("f32", 8192, 64, 8192, 1, 1.15),
    ("f32", 1, 8192, 8192, 1, 1.2), ("f32", 100000, 32, 32, 1, 2.0),
    ("bf16", 1024, 1024, 1024, 1, 1.2), ("bf16", 2048, 2048, 2048, 1, 1.05),
    ("bf16", 4096, 4096, 4096, 1, 1.0), ("bf16", 8192, 8192, 8192, 1, 1.0),
    ("bf16", 3001, 2999, 2987, 1, 4.0),
    ("f16", 1024, 1024, 1024, 1, 1.2), ("f16", 2048, 2048, 2048, 1, 1.05),
    ("f16", 4096, 4096, 4096, 1, 1.0), ("f16", 8192, 8192, 8192, 1, 1.0),
    ("tf32", 4096, 4096, 4096, 1, 0.97), ("tf32", 8192, 8192, 8192, 1, 0.97),
    ("i8", 4096, 4096, 4096, 1, 0.97), ("i8", 8192, 8192, 8192, 1, 0.97),
    ("f64", 4096, 4096, 4096, 1, 0.95))
# Type of PyTorch, and bounds of the error relative to an element and to sqrt(k), which
# is the standard deviation of an element.
TYPES = {"f32": (torch.float32, 0, 1e-4), "tf32": (torch.float32, 0, 1e-2),
         "f16": (torch.float16, 2.0**-10, 1e-3), "f64": (torch.float64, 0, 1e-12),
         "bf16": (torch.bfloat16, 2.0**-7, 1e-3), "i8": (torch.int8, 0, 1e-9)}
WAYS = ("single", "queued", "in graph")


class Kiln:
    """The functions of python_calls.c."""

    def __init__(self, path, stream, workspace):
        self.library = ctypes.CDLL(path)
        self.library.kiln_python_error.restype = ctypes.c_char_p
        self.rig = (ctypes.c_void_p * 5)()
        address, size, word = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32
        text, flag = ctypes.c_char_p, ctypes.c_int
        self.gemm = self.function(
            "gemm", text, address, address, address, address, size, size, size,
            size, text)
        self.stencil = self.function(
            "stencil", address, address, size, size, word, flag,
            ctypes.POINTER(ctypes.c_double))
        self.picture = self.function("picture", address, size, text, text)
        self.check(self.library.kiln_python_open(
            self.rig, torch.cuda.current_device(), address(stream),
            size(workspace.data_ptr()), size(workspace.nbytes)))

    def check(self, status):
        if status != 0:
            sys.exit("kiln: " + self.library.kiln_python_error().decode())

    def function(self, name, *types):
        """A function that prepares a call: it makes the call once, which compiles
        and checks the arguments, and returns it with converted arguments."""
        raw = getattr(self.library, "kiln_python_" + name)
        raw.argtypes = (ctypes.c_void_p, *types)

        def prepare(*args):
            self.check(raw(self.rig, *args))
            fixed = [a if isinstance(a, ctypes.Array) or a is None else t(a)
                     for t, a in zip(types, args)]
            return functools.partial(raw, self.rig, *fixed)

        return prepare


# ---- Times -------------------------------------------------------------------------

class Clock:
    """Times calls on one stream. Times are in microseconds."""

    def __init__(self, stream):
        self.stream = stream
        self.start = torch.cuda.Event(enable_timing=True)
        self.end = torch.cuda.Event(enable_timing=True)

    def once(self, call, busy_us=0.0):
        self.stream.synchronize()
        if busy_us > 0:
            torch.cuda._sleep(int(busy_us * 2000))  # about 2 GHz
        self.start.record(self.stream)
        call()
        self.end.record(self.stream)
        self.end.synchronize()
        return self.start.elapsed_time(self.end) * 1000

    def host(self, call):
        """Time that the host needs to queue the call."""
        self.stream.synchronize()
        began = time.perf_counter()
        call()
        return (time.perf_counter() - began) * 1e6

    def graph(self, call, calls):
        """A function that launches a graph of some calls, or None."""
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=self.stream,
                                  capture_error_mode="relaxed"):
                for _ in range(calls):
                    call()
        except Exception as error:  # CuPy raises several kinds
            print("no graph:", str(error).splitlines()[0], file=sys.stderr)
            return None
        return graph.replay

    def compare(self, calls, repeats):
        """Medians of calls in turns: a dict of lists by the way of timing."""
        alone = [statistics.median(self.once(c) for _ in range(3)) for c in calls]
        longest = max(alone)
        repeats = max(3, min(repeats, int(200e3 / longest)))
        busy = 200 + 4 * max(self.host(c) for c in calls)
        rounds = {"single": lambda c: self.once(c),
                  "queued": lambda c: self.once(c, busy)}
        times = {way: in_turns(calls, fire, repeats) for way, fire in rounds.items()}
        length = max(1, min(50, int(2000 / max(times["queued"]))))
        graphs = [self.graph(c, length) for c in calls]
        if None in graphs:
            times["in graph"] = [
                None if g is None else in_turns([g], self.once, repeats)[0] / length
                for g in graphs]
        else:
            for g in graphs:
                g()
            times["in graph"] = [
                t / length for t in in_turns(graphs, self.once, repeats)]
        return times


def in_turns(calls, fire, repeats):
    times = [[] for _ in calls]
    for _ in range(repeats):
        for call, into in zip(calls, times):
            into.append(fire(call))
    return [statistics.median(t) for t in times]


def cupy_stream(stream):
    """CuPy's object for a stream of PyTorch's; before CuPy 14 under another name."""
    if hasattr(stream, "__cuda_stream__") and hasattr(cupy.cuda.Stream,
                                                      "from_external"):
        return cupy.cuda.Stream.from_external(stream)
    return cupy.cuda.ExternalStream(stream.cuda_stream)


# ---- Cases -------------------------------------------------------------------------

class Bench:
    def __init__(self, options):
        self.options = options
        self.rows = []
        self.wrong = 0
        self.stream = torch.cuda.Stream()
        self.clock = Clock(self.stream)
        self.workspace = torch.empty(1 << 29, device="cuda", dtype=torch.uint8)
        self.kiln = Kiln(options.library, self.stream.cuda_stream, self.workspace)

    def verify(self, what, own, reference, relative, absolute):
        """Compares a tensor with a float64 reference."""
        limit = relative * reference.abs() + absolute
        off = (own.double() - reference).abs() / limit
        if not bool((off <= 1).all()):
            print(f"{what}: WRONG, {off.max().item():.2g} times the tolerance")
            self.wrong += 1

    def add(self, case, peer, wanted, own, theirs, copy=None, extra=None):
        """Times a case. `copy` is a third call, a copy of the same size."""
        calls = [own, theirs] + ([copy] if copy is not None else [])
        times = self.clock.compare(calls, self.options.repeats)
        row = dict(case=case, peer=peer, wanted=wanted, times=times)
        notes = []
        if copy is not None:
            notes.append("of a copy " + ", ".join(
                f"{times[w][2] / times[w][0]:.2f} {w}" for w in WAYS[1:]
                if times[w][0] and times[w][2]))
        if extra is not None:
            notes.append(extra(times))
        row["note"] = "; ".join(notes)
        self.rows.append(row)
        print_row(row)

    def chosen(self, case):
        return self.options.only is None or self.options.only in case

    # -- matrix products

    def product(self, name, m, n, k, batch, wanted):
        shape = f"{m} x {n} x {k}" if batch == 1 else f"{batch} of {m}^3"
        case = f"{name} {shape}"
        if not self.chosen(case):
            return
        kind, relative, absolute = TYPES[name]
        if name == "i8":
            a = torch.randint(-127, 128, (m, k), device="cuda", dtype=kind)
            b = torch.randint(-127, 128, (n, k), device="cuda", dtype=kind).t()
            d = torch.empty(m, n, device="cuda", dtype=torch.int32)
            theirs = lambda: torch._int_mm(a, b)
        else:
            lead = () if batch == 1 else (batch,)
            a = torch.randn(*lead, m, k, device="cuda").to(kind)
            b = torch.randn(*lead, k, n, device="cuda").to(kind)
            d, out = (torch.empty(*lead, m, n, device="cuda", dtype=kind)
                      for _ in range(2))
            multiply = torch.mm if batch == 1 else torch.bmm
            theirs = lambda: multiply(a, b, out=out)
        torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
        own = self.kiln.gemm(name.encode(), a.data_ptr(), b.data_ptr(), 0,
                             d.data_ptr(), m, n, k, batch, None)
        rows = slice(0, 64)
        if batch > 1:
            reference, result = a[-1].double() @ b[-1].double(), d[-1]
        else:
            reference, result = a[rows].double() @ b.double(), d[rows]
        self.verify(case, result, reference, relative, absolute * k**0.5)
        self.add(case, "torch", wanted, own, theirs)

    # -- bias and GELU

    def gelu(self, side, wanted):
        case = f"bias, GELU, {side}"
        if not self.chosen(case):
            return
        a, b = (torch.randn(side, side, device="cuda").bfloat16() for _ in range(2))
        bias = torch.randn(side, device="cuda").bfloat16()
        out = torch.empty_like(a)
        own = self.kiln.gemm(b"bf16", a.data_ptr(), b.data_ptr(), bias.data_ptr(),
                             out.data_ptr(), side, side, side, 1, GELU.encode())
        theirs = lambda: functional.gelu(torch.addmm(bias, a, b))
        reference = functional.gelu(a[:64].double() @ b.double() + bias.double())
        self.verify(case, out[:64], reference, 2.0**-7, 2.0**-6)
        self.add(case, "addmm, gelu", wanted, own, theirs)

    # -- convolutions

    def fastest_setting(self, call):
        """Chooses the setting of cuDNN with which the call is fastest."""
        settings = {"default": (True, False), "no tf32": (False, False),
                    "tuned": (False, True)}
        took = {}
        for name, (tf32, tuned) in settings.items():
            torch.backends.cudnn.allow_tf32 = tf32
            torch.backends.cudnn.benchmark = tuned
            call()
            took[name] = min(self.clock.once(call) for _ in range(2))
        best = min(took, key=took.get)
        torch.backends.cudnn.allow_tf32 = settings[best][0]
        torch.backends.cudnn.benchmark = settings[best][1]
        return best

    def line(self, bits, wanted):
        case = f"3-point convolution, 2^{bits}"
        if not self.chosen(case):
            return
        n = 1 << bits
        x = torch.randn(1, 1, n, device="cuda")
        y = torch.empty_like(x)
        weights = [0.25, -0.5, 1.0]
        own, w = self.own_stencil(x, y, n, 1, 1, False, weights)
        w = w.view(1, 1, 3)
        theirs = lambda: functional.conv1d(x, w, padding=1)
        part = min(n, 1 << 20)
        reference = functional.conv1d(x[..., :part].double(), w.double(), padding=1)
        self.verify(case, y[..., :part - 1], reference[..., :-1], 1e-6, 1e-6)
        setting = self.fastest_setting(theirs)
        self.add(case, f"conv1d, {setting}", wanted, own, theirs,
                 copy=lambda: y.copy_(x))

    def own_stencil(self, x, y, width, height, radius, separable, weights):
        raw = (ctypes.c_double * len(weights))(*weights)
        own = self.kiln.stencil(x.data_ptr(), y.data_ptr(), width, height, radius,
                                int(separable), raw)
        return own, torch.tensor(weights, device="cuda")

    def dense(self, radius, wanted):
        case = f"dense, radius {radius}"
        if not self.chosen(case):
            return
        across = 2 * radius + 1
        x = torch.randn(1, 1, SIDE, SIDE, device="cuda")
        y = torch.empty_like(x)
        weights = [1.0 / (k + 2) for k in range(across * across)]
        own, w = self.own_stencil(x, y, SIDE, SIDE, radius, False, weights)
        w = w.view(1, 1, across, across)
        theirs = lambda: functional.conv2d(x, w, padding=radius)
        part = 256
        reference = functional.conv2d(x[..., :part, :part].double(), w.double(),
                                      padding=radius)
        inner = slice(0, part - radius)
        self.verify(case, y[..., inner, inner], reference[..., inner, inner],
                    1e-5, 1e-5)
        setting = self.fastest_setting(theirs)
        self.add(case, f"conv2d, {setting}", wanted, own, theirs)

    def separable(self, radius, wanted):
        case = f"separable, radius {radius}"
        if not self.chosen(case):
            return
        half = [1.0 / (k + 2) for k in range(radius + 1)]
        weights = half[:0:-1] + half  # symmetric: CuPy's convolution flips them
        x = torch.randn(1, 1, SIDE, SIDE, device="cuda")
        y = torch.empty_like(x)
        own, _ = self.own_stencil(x, y, SIDE, SIDE, radius, True, weights * 2)
        xc, wc = cupy.asarray(x[0, 0]), cupy.asarray(weights, cupy.float32)
        between, out = cupy.empty_like(xc), cupy.empty_like(xc)

        def theirs():
            convolve1d = cupyx.scipy.ndimage.convolve1d
            convolve1d(xc, wc, axis=1, output=between, mode="nearest")
            convolve1d(between, wc, axis=0, output=out, mode="nearest")

        part = 256
        w = torch.tensor(weights, device="cuda", dtype=torch.float64)
        padded = functional.pad(x[..., :part, :part].double(), (radius,) * 4,
                                mode="replicate")
        reference = functional.conv2d(padded, torch.outer(w, w)[None, None])
        inner = slice(0, part - radius)
        self.verify(case, y[..., inner, inner], reference[..., inner, inner],
                    1e-5, 1e-5)
        self.add(case, "convolve1d x 2", wanted, own, theirs)

    # -- the Julia set

    def julia(self, side, text, what, wanted):
        case = f"Julia {side}^2, {what}"
        if not self.chosen(case):
            return
        y = torch.zeros(side, side, device="cuda", dtype=torch.uint8)
        out = cupy.zeros((side, side), cupy.uint8)
        kernel = cupy.ElementwiseKernel("uint32 w, float32 cx, float32 cy",
                                        "uint8 out", CUPY_JULIA, "julia")
        width, cx, cy = cupy.uint32(side), cupy.float32(-0.79), cupy.float32(0.15)
        own = self.kiln.picture(y.data_ptr(), side, text.encode(), PIXEL.encode())
        theirs = lambda: kernel(width, cx, cy, out)
        theirs()
        self.stream.synchronize()
        off = (y.int() - torch.as_tensor(out, device="cuda").int()).abs() > 1
        share = off.double().mean().item()
        if share > 0.02:
            print(f"{case}: WRONG, {share:.1%} of the pixels differ from CuPy's")
            self.wrong += 1
        steps = y.double().sum().item()
        device = cupy.cuda.Device()
        lanes = device.attributes["MultiProcessorCount"] * 128
        rate = lanes * device.attributes["ClockRate"] * 1e-3  # per microsecond

        def extra(times):
            shares = [JULIA_ARITHMETIC * steps / t / rate
                      for t in times["queued"][:2]]
            return (f"of the FFMA rate: Kiln {shares[0]:.1%}, CuPy {shares[1]:.1%}; "
                    f"pixels that differ {share:.2%}")

        self.add(case, "CuPy", wanted, own, theirs, extra=extra)

    def run(self):
        with torch.inference_mode(), torch.cuda.stream(self.stream), \
                cupy_stream(self.stream):
            for product in PRODUCTS:
                self.product(*product)
            torch.backends.cuda.matmul.allow_tf32 = False
            for side, wanted in ((1024, 1.5), (4096, 1.1), (8192, 1.03)):
                self.gelu(side, wanted)
            for bits, wanted in ((28, 4.0), (24, 3.0), (20, 2.0)):
                self.line(bits, wanted)
            for radius, wanted in ((1, 15), (3, 15), (8, 20)):
                self.dense(radius, wanted)
            for radius, wanted in ((1, 2.5), (3, 2.5), (8, 2.0)):
                self.separable(radius, wanted)
            for side in (1000, 8192):
                self.julia(side, PLAIN_JULIA, "same text", 1.1)
                self.julia(side, FAST_JULIA, "fewer tests", 1.1)


# ---- The table ---------------------------------------------------------------------

def print_head():
    print(f"{'case':27}{'peer':16}{'wanted':>6}" + "".join(
        f" |{way:>9}{'peer':>10}{'ratio':>7}" for way in WAYS))


def print_row(row):
    print(f"{row['case']:27}{row['peer']:16}{row['wanted']:6.2f}", end="")
    for way in WAYS:
        own, theirs = row["times"][way][:2]
        ratio = f"{theirs / own:.2f}x" if own and theirs else "-"
        cells = ["-" if t is None else f"{t:.2f}" for t in (own, theirs)]
        print(f" |{cells[0]:>9}{cells[1]:>10}{ratio:>7}", end="")
    print(flush=True)
    if row["note"]:
        print("    " + row["note"], flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", help="libkiln_python_calls.so in the build folder")
    parser.add_argument("--only", help="measure only cases that contain this text")
    parser.add_argument("--repeats", type=int, default=25,
                        help="most timed calls of each; default 25")
    parser.add_argument("--json", help="write every figure to this file")
    options = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}; PyTorch {torch.__version__}, "
          f"CuPy {cupy.__version__}; medians of at most {options.repeats} in turns, "
          "microseconds")
    print_head()
    bench = Bench(options)
    bench.run()
    if options.json is not None:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(bench.rows, file, indent=1)
    short = [r for r in bench.rows
             if r["times"]["single"][1] < r["wanted"] * r["times"]["single"][0]]
    print(f"{len(bench.rows) - len(short)} of {len(bench.rows)} aims reached")
    sys.exit(1 if bench.wrong else 0)


if __name__ == "__main__":
    main()

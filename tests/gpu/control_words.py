"""Finds out on a GPU what the scheduling fields of an instruction mean.

Problem: NVIDIA does not document the fields, and published assemblers disagree about
the two barriers.

Idea: compile three small kernels, change one field of one kind of instruction in the
machine code, run the result, and count wrong values. If a field has the meaning that
runtime/cli/explore/sass_control.c gives it, exactly those changes break results that
the meaning predicts. Each case runs in a process of its own, since a fault leaves a
process without CUDA.

usage: control_words.py KILN NVDISASM [TARGET]      (TARGET: sm_90)
Needs a GPU of that target. Prints one row per case. Exit status: 0 if all rows are as
expected, 1 otherwise.
"""

import ctypes
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = r"""
extern "C" __global__ void load_use(int *out, const int *in)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] * 3 + 1;
}
extern "C" __global__ void store_overwrite(int4 *out, const int *in)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int4 v = make_int4(i, i + 1, i + 2, i + 3);
#pragma unroll 1
  for (int k = 0; k < 16; k++) {
    out[k * gridDim.x * blockDim.x + i] = v;
    v.x = v.x * 3 + 1;
    v.y = v.y * 5 + 1;
    v.z = v.z * 7 + 1;
    v.w = v.w * 9 + 1;
  }
}
extern "C" __global__ void chain(int *out, const int *in)
{
  float x = (float)threadIdx.x;
  const float a = __int_as_float(in[0]), b = __int_as_float(in[1]);
  long long t = clock64();
#pragma unroll
  for (int k = 0; k < 64; k++)
    x = x * a + b;
  t = clock64() - t;
  out[threadIdx.x] = __float_as_int(x);
  out[32 + threadIdx.x] = (int)t;
}
"""

# First bit in the upper half of the encoding, and number of bits.
FIELDS = {"stall": (41, 4), "yield": (45, 1), "write": (46, 3), "read": (49, 3),
          "wait": (52, 6), "reuse": (58, 4)}
NO_BARRIER = 7
LATENCY = 4  # cycles until the result of an FFMA can be used


class Cubin:
    """Machine code whose scheduling fields can be changed."""

    def __init__(self, data, listing):
        self.data = data
        offset, = struct.unpack_from("<Q", data, 40)
        count, names = struct.unpack_from("<HH", data, 60)
        headers = [struct.unpack_from("<IIQQQQIIQQ", data, offset + 64 * i)
                   for i in range(count)]
        strings = headers[names][4]
        self.text = {}
        for header in headers:
            name = data[strings + header[0]:].split(b"\0")[0].decode()
            if name.startswith(".text."):
                self.text[name[6:]] = header[4]
        self.code = parse(listing)

    def field(self, kernel, address, name):
        first, bits = FIELDS[name]
        high, = struct.unpack_from("<Q", self.data,
                                   self.text[kernel] + address + 8)
        return high >> first & (1 << bits) - 1

    def changed(self, kernel, changes):
        """Returns the code with fields set: (address, field, value) each."""
        data = bytearray(self.data)
        for address, name, value in changes:
            first, bits = FIELDS[name]
            at = self.text[kernel] + address + 8
            high, = struct.unpack_from("<Q", data, at)
            high = high & ~((1 << bits) - 1 << first) | value << first
            struct.pack_into("<Q", data, at, high)
        return bytes(data)

    def find(self, kernel, pattern, after=-1):
        return next(a for a, text in self.code[kernel]
                    if a > after and re.search(pattern, text))


def parse(listing):
    """Returns (address, text) of every instruction per kernel."""
    code, kernel = {}, None
    for line in listing.splitlines():
        section = re.match(r"\s*\.section\s+\.text\.([^,]+)", line)
        if section:
            kernel = code.setdefault(section[1], [])
            continue
        row = re.match(r"\s+/\*([0-9a-f]+)\*/\s+(.*?)\s*;", line)
        if row:
            kernel.append((int(row[1], 16), row[2]))
    return code


def load_cases(cubin):
    """The barrier that a load signals for its result."""
    kernel = "load_use"
    load = cubin.find(kernel, r"\bLDG")
    barrier = cubin.field(kernel, load, "write")
    register = re.search(r"LDG\S* (R\d+)", dict(cubin.code[kernel])[load])[1]
    use = cubin.find(kernel, rf"\b{register}\b", load)
    wait = cubin.field(kernel, use, "wait")
    assert barrier != NO_BARRIER and wait >> barrier & 1
    yield "load, unchanged", kernel, [], True
    yield "its user does not wait", kernel, [(use, "wait", wait & ~(1 << barrier))], False
    yield "no write barrier", kernel, [(load, "write", NO_BARRIER)], False
    yield "read barrier instead", kernel, [(load, "write", NO_BARRIER),
                                           (load, "read", barrier)], False
    yield "no read barrier", kernel, [(load, "read", NO_BARRIER)], True
    yield "barrier 5 for both", kernel, [(load, "write", 5), (use, "wait", 1 << 5)], True


def store_cases(cubin):
    """The barrier that a store signals when it has read its operands."""
    kernel = "store_overwrite"
    store = cubin.find(kernel, r"\bSTG")
    barrier = cubin.field(kernel, store, "read")
    waits = [(a, cubin.field(kernel, a, "wait")) for a, _ in cubin.code[kernel]]
    waits = [(a, w) for a, w in waits if w >> barrier & 1]
    assert barrier != NO_BARRIER and waits
    yield "store, unchanged", kernel, [], True
    yield "nothing waits", kernel, [(a, "wait", w & ~(1 << barrier))
                                    for a, w in waits], False
    yield "no read barrier", kernel, [(store, "read", NO_BARRIER)], False
    yield "write barrier instead", kernel, [(store, "read", NO_BARRIER),
                                            (store, "write", barrier)], False


def chain_cases(cubin):
    """The cycles before the next instruction, in a chain of FFMAs."""
    kernel = "chain"
    chain = [a for a, text in cubin.code[kernel] if re.search(r"\bFFMA\b", text)]
    yield "chain, unchanged", kernel, [], True
    for stall in (1, 2, 3, 4, 5, 6, 8, 10, 12, 15):
        # A stall of 12 or more without the yield bit has another meaning.
        keep = [] if stall < 12 else [(a, "yield", 0) for a in chain]
        yield (f"stall {stall}", kernel, [(a, "stall", stall) for a in chain] + keep,
               stall >= LATENCY)
    yield "yield inverted", kernel, [(a, "yield", 1 - cubin.field(kernel, a, "yield"))
                                     for a in chain], True
    yield "no reuse", kernel, [(a, "reuse", 0) for a in chain], True


class Gpu:
    """The few calls of the driver that a case needs."""

    N = 1 << 20

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.out, self.input = self.allocate(self.N * 256), self.allocate(self.N * 4)

    def call(self, name, *arguments):
        code = getattr(self.cuda, name)(*arguments)
        if code != 0:
            print(f"{name}: error {code}")
            sys.exit(3)

    def allocate(self, size):
        at = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(size))
        return at

    def run(self, cubin, kernel, blocks, threads, values, words):
        """Launches twice, so that the second finds its instructions in the cache."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        source = (ctypes.c_int * self.N)(*values)
        result = (ctypes.c_uint32 * words)()
        pointers = (ctypes.c_void_p * 2)(*[
            ctypes.cast(ctypes.byref(x), ctypes.c_void_p) for x in (self.out, self.input)
        ])
        self.call("cuMemcpyHtoD_v2", self.input, source, ctypes.c_size_t(4 * self.N))
        self.call("cuModuleLoadData", ctypes.byref(module), cubin)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
        for _ in range(2):
            self.call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, None,
                      pointers, None)
        self.call("cuCtxSynchronize")
        self.call("cuMemcpyDtoH_v2", result, self.out, ctypes.c_size_t(4 * words))
        return result


def as_float(bits):
    return struct.unpack("f", struct.pack("I", bits))[0]


def wrong_loads(gpu, cubin):
    n = 1 << 16
    got = gpu.run(cubin, "load_use", n // 1024, 1024, range(5, gpu.N + 5), n)
    return sum(got[i] != (i + 5) * 3 + 1 for i in range(n)), n, ""


def wrong_stores(gpu, cubin):
    n, steps, factors = 512 * 1024, 16, (3, 5, 7, 9)
    got = gpu.run(cubin, "store_overwrite", n // 1024, 1024, range(gpu.N), n * steps * 4)
    threads = range(0, n, 37)
    wrong = 0
    for i in threads:
        value = [i, i + 1, i + 2, i + 3]
        for step in range(steps):
            at = (step * n + i) * 4
            wrong += list(got[at:at + 4]) != value
            value = [x * f + 1 & 0xffffffff for x, f in zip(value, factors)]
    return wrong, len(threads) * steps, ""


def wrong_chains(gpu, cubin):
    """Adds 1.0 in each step, so that a result counts the steps that took effect."""
    one, = struct.unpack("i", struct.pack("f", 1))
    got = gpu.run(cubin, "chain", 1, 32, [one, one] + [0] * (gpu.N - 2), 64)
    wrong = sum(as_float(got[i]) != i + 64 for i in range(32))
    return wrong, 32, f"{got[32] / 64:.2f} cycles per FFMA"


RUN = {"load_use": wrong_loads, "store_overwrite": wrong_stores, "chain": wrong_chains}


def run_case(kernel, path):
    wrong, total, note = RUN[kernel](Gpu(), Path(path).read_bytes())
    print(f"{wrong} of {total} wrong  {note}")
    return 1 if wrong else 0


def make(kiln, nvdisasm, target, folder):
    (folder / "kernels.cu").write_text(SOURCE)
    subprocess.run([kiln, "compile", folder / "kernels.cu", "--arch", target, "--emit",
                    "cubin", "-o", folder / "base.cubin"], check=True)
    listing = subprocess.run([nvdisasm, "-c", "-hex", folder / "base.cubin"], check=True,
                             capture_output=True, text=True).stdout
    cubin = Cubin((folder / "base.cubin").read_bytes(), listing)
    for cases in (load_cases, store_cases, chain_cases):
        for name, kernel, changes, right in cases(cubin):
            yield name, kernel, cubin.changed(kernel, changes), right


def main(arguments):
    if arguments[:1] == ["--case"]:
        return run_case(*arguments[1:])
    if len(arguments) not in (2, 3):
        sys.stderr.write(__doc__)
        return 2
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.cubin"
        for name, kernel, code, right in make(*arguments[:2], (arguments + ["sm_90"])[2],
                                              Path(folder)):
            path.write_bytes(code)
            result = subprocess.run([sys.executable, __file__, "--case", kernel, path],
                                    capture_output=True, text=True, check=False)
            ok = (result.returncode == 0) == right
            failed += not ok
            text = (result.stdout + result.stderr).strip().splitlines()
            print(f"{kernel:16} {name:24} {'right' if right else 'wrong':6} "
                  f"{'as expected' if ok else 'UNEXPECTED':12} {text[-1] if text else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

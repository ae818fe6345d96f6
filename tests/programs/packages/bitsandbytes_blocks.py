"""Quantises and dequantises blocks by the kernels of bitsandbytes.

usage: kiln exec -- python bitsandbytes_blocks.py LIBRARY
LIBRARY is libbitsandbytes_cuda124.so of the wheel; it carries PTX for 9.0.
"""

import ctypes
import random
import struct
import sys

N, BLOCK = 4096, 256


def call(rt, name, *arguments):
    """Calls the runtime; ends the program if it fails."""
    rc = getattr(rt, name)(*arguments)
    if rc != 0:
        sys.exit(f"{name}: error {rc}")


def to_device(rt, data):
    p = ctypes.c_void_p()
    call(rt, "cudaMalloc", ctypes.byref(p), ctypes.c_size_t(len(data)))
    call(rt, "cudaMemcpy", p, data, ctypes.c_size_t(len(data)), 1)
    return p


def to_host(rt, p, n):
    data = ctypes.create_string_buffer(4 * n)
    call(rt, "cudaMemcpy", data, p, ctypes.c_size_t(4 * n), 2)
    return struct.unpack(f"{n}f", data.raw)


def main():
    lib = ctypes.CDLL(sys.argv[1])
    rt = ctypes.CDLL("libcudart.so.12")
    random.seed(1)
    x = [random.uniform(-3, 3) for _ in range(N)]
    code = to_device(rt, struct.pack("256f", *[i / 127.5 - 1 for i in range(256)]))
    values = to_device(rt, struct.pack(f"{N}f", *x))
    scales = to_device(rt, bytes(4 * (N // BLOCK)))
    quantised = to_device(rt, bytes(N))
    back = to_device(rt, bytes(4 * N))
    size, n = ctypes.c_int(BLOCK), ctypes.c_int(N)
    lib.cquantize_blockwise_fp32(code, values, scales, quantised, size, n)
    lib.cdequantize_blockwise_fp32(code, quantised, scales, back, size, n, None)
    call(rt, "cudaDeviceSynchronize")
    y = to_host(rt, back, N)
    wrong = 0
    for b, scale in enumerate(to_host(rt, scales, N // BLOCK)):
        block = range(b * BLOCK, (b + 1) * BLOCK)
        most = max(abs(x[i]) for i in block)
        wrong += abs(most - scale) > 1e-6
        wrong += sum(abs(y[i] - x[i]) > most * 1.01 / 127.5 for i in block)
    print("wrong" if wrong else "right")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())

"""Computes with arrays of CuPy, which contains NVIDIA's runtime statically."""

import cupy

x = cupy.arange(1000, dtype=cupy.float32)
print("right" if float((x * 2 + 1).sum()) == 1000000 else "wrong")

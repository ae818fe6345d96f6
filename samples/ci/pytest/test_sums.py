"""Tests of a kernel that adds up blocks of numbers, written with Numba."""

import numpy as np
import pytest

cuda = pytest.importorskip("numba.cuda")
if not cuda.is_available():
    pytest.skip("there is no CUDA device", allow_module_level=True)

BLOCK = 128


@cuda.jit(lineinfo=True)
def block_sums(x, sums):
    part = cuda.shared.array(BLOCK, dtype=np.int32)
    thread = cuda.threadIdx.x
    i = cuda.grid(1)
    part[thread] = x[i] if i < x.size else 0
    step = BLOCK // 2
    while step > 0:
        cuda.syncthreads()
        if thread < step:
            part[thread] += part[thread + step]
        step //= 2
    if thread == 0:
        sums[cuda.blockIdx.x] = part[0]


@pytest.mark.parametrize("n", [1, 127, 128, 1000])
def test_sum(n):
    x = np.arange(n, dtype=np.int32)
    sums = np.zeros((n + BLOCK - 1) // BLOCK, dtype=np.int32)
    block_sums[sums.size, BLOCK](x, sums)
    assert sums.sum() == x.sum()

"""Fills and sums a field by Taichi, which opens libcuda.so."""

import taichi as ti

ti.init(arch=ti.cuda)
x = ti.field(ti.f32, shape=1000)


@ti.kernel
def double_and_sum() -> ti.f32:
    s = 0.0
    for i in x:
        x[i] = i * 2.0
    for i in x:
        s += x[i]
    return s


print("right" if double_and_sum() == 999000 else "wrong")

"""Compiles a kernel by cuda.core and launches it."""

import numpy as np
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = 'extern "C" __global__ void k(float *x, float a) { x[threadIdx.x] = a * threadIdx.x; }'

device = Device()
device.set_current()
stream = device.create_stream()
options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}")
kernel = Program(SOURCE, code_type="c++", options=options).compile("cubin").get_kernel("k")
buffer = device.memory_resource.allocate(256, stream=stream)
launch(stream, LaunchConfig(grid=1, block=64), kernel, buffer, np.float32(2))
host = np.empty(64, np.float32)
stream.sync()
print(device.name, device.compute_capability)
print("right")

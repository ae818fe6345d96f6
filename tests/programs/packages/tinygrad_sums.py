"""Sums and multiplies by tinygrad, which uses the driver and NVRTC."""

import os

os.environ["DEV"] = "CUDA"
from tinygrad import Tensor  # noqa: E402

total = (Tensor.arange(100) * 2).sum().item()
product = (Tensor.ones(64, 64) @ Tensor.ones(64, 64)).numpy()
print("right" if total == 9900 and (product == 64).all() else "wrong")

"""Multiplies a tensor by PyTorch."""

import torch

print(torch.__version__, torch.cuda.get_arch_list())
print((torch.ones(3, device="cuda") * 2).tolist())
print("right")

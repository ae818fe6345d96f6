"""Moves tensors by cumm, whose wheel carries a copy of NVIDIA's runtime."""

import numpy as np
from cumm import tensorview as tv

x = tv.from_numpy(np.arange(20, dtype=np.float32)).cuda()
zeros = tv.zeros([5], tv.float32, 0).cpu().numpy()
right = (x.cpu().numpy() == np.arange(20)).all() and (zeros == 0).all()
print("right" if right else "wrong")

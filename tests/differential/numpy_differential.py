"""numpy_differential.py -- random calls of every operation, beside NumPy.

The calls go through libkiln.so, as those of any program in another language. They
run on the CPU device, or with KILN_DEVICE=gpu on the first GPU. A failure names the
seed and the call; `--seed S --first K --calls 1` repeats call K. Exits with 77 if
NumPy is missing, and unless KILN_TEST_THOROUGH is set or --calls is given.
"""
import argparse
import os
import sys
import time

try:
    import numpy
except ImportError:
    print("NumPy is not installed")
    sys.exit(77)

import move_cases  # noqa: F401  (the modules fill CASES)
import order_cases  # noqa: F401
import reduce_cases  # noqa: F401
from cases import CASES
from kiln_library import Device, Failure


def one_call(device, operation, seed):
    """Makes one call. Returns the message of a failure, or None."""
    try:
        CASES[operation](device, numpy.random.default_rng(seed))
    except Failure as failure:
        return str(failure)
    finally:
        device.release()
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True, help="path of libkiln.so")
    parser.add_argument("--include", required=True, help="folder of kiln/*.h")
    parser.add_argument("--driver", required=True,
                        help="path of the CPU device's libcuda.so.1")
    parser.add_argument("--calls", type=int, help="default: 15,000")
    parser.add_argument("--first", type=int, default=0, help="first call")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--only", help="one operation")
    o = parser.parse_args()
    if o.calls is None and "KILN_TEST_THOROUGH" not in os.environ:
        print("15,000 calls take minutes; set KILN_TEST_THOROUGH=1")
        return 77
    calls = 15000 if o.calls is None else o.calls
    on_gpu = os.environ.get("KILN_DEVICE", "cpu").startswith("gpu")
    device = Device(o.library, o.include, "" if on_gpu else o.driver)
    missing = set(device.headers.operations) - set(CASES)
    if missing:
        print("no case for:", ", ".join(sorted(missing)))
        return 1
    names = [o.only] if o.only else sorted(CASES)
    failed, begin = [], time.monotonic()
    for k in range(o.first, o.first + calls):
        name = names[k % len(names)]
        message = one_call(device, name, [o.seed, k])
        if message is not None:
            failed.append(name)
            print(f"{name}, seed {o.seed}, call {k}: {message}", flush=True)
    print(f"{calls} calls of {len(names)} operations, seed {o.seed}, "
          f"{time.monotonic() - begin:.0f} s: {len(failed)} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

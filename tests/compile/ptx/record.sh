#!/bin/sh
# record.sh -- keep the PTX of every program that a build of Kiln compiles.
#
#   tests/compile/ptx/record.sh BUILD OUT [TEST...]
#
# Compiles every shipped variant of every embedded program (`kiln pack all`) and
# every specialisation that the operations choose in the device tests, which run
# on the CPU device, for sm_75 and sm_90. The PTX goes to OUT/sm_75 and
# OUT/sm_90; compare.py compares two such folders. TEST... are names of device
# tests, such as scan; without them, every test of the operations runs.
# Environment: NVRTC (default: /usr/local/cuda/lib64/libnvrtc.so.13), CC, and
# JOBS, the number of tests that run at once (default: 2).
set -eu
build=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
shift 2
here=$(cd "$(dirname "$0")" && pwd)
nvrtc=${NVRTC:-/usr/local/cuda/lib64/libnvrtc.so.13}
[ $# -gt 0 ] || set -- counting_sort difference find gather histogram map merge \
  operations ops partition reduce reduce_by_key reduce_matrix reduce_op run_length scan \
  scan_by_key search segmented segmented_sort select sort split tuning

mkdir -p "$out/lib"
"${CC:-cc}" -shared -fPIC -O1 -D_GNU_SOURCE "$here/record.c" \
  -o "$out/lib/${nvrtc##*/}" -Wl,-soname,libnvrtc_record.so \
  -Wl,--no-as-needed "$nvrtc" -Wl,-rpath,"$(dirname "$nvrtc")" -ldl

for arch in 75 90; do
  KILN_PTX_RECORD=$out/sm_$arch
  KILN_TEST_NVRTC=$out/lib/${nvrtc##*/}
  KILN_CACHE_DIR=$out/cache_$arch
  KILN_DEVICE=cpu:$((arch / 10)).$((arch % 10))
  export KILN_PTX_RECORD KILN_TEST_NVRTC KILN_CACHE_DIR KILN_DEVICE
  mkdir -p "$KILN_PTX_RECORD"
  "$build/kiln" --nvrtc "$KILN_TEST_NVRTC" pack all --arch "$arch" \
    -o "$out/all.pack" >/dev/null 2>&1
  printf '%s\n' "$@" | xargs -P "${JOBS:-2}" -I{} sh -c \
    "'$build/tests/device_'{} >'$out/{}_$arch.log' 2>&1 || echo 'failed: {} on $arch'"
  echo "sm_$arch: $(find "$KILN_PTX_RECORD" -type f | wc -l) programs"
done

#!/usr/bin/env bash
# Install what is missing, build, and run the main job: kernels that travel as
# strings are compiled for the device that is there, cached, launched, and their
# results verified. Without a GPU everything up to the launch.
#   samples/run.sh [--arch sm_90]   --arch: what to compile for without a GPU
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=samples/setup.sh
. samples/setup.sh

arch=sm_90
while [ $# -gt 0 ]; do
  case $1 in
  --arch)
    [ $# -ge 2 ] || die "--arch needs a value, for example sm_90"
    arch=$2
    shift 2
    ;;
  *)
    say "usage: samples/run.sh [--arch sm_90]" >&2
    exit 2
    ;;
  esac
done

need_packages "${build_packages[@]}"
need_nvrtc
build build kiln_samples
# The cache stays in the checkout; an application's own default is ~/.cache/kiln.
export KILN_CACHE_DIR=${KILN_CACHE_DIR:-$PWD/build/cache}

step "what is here"
build/kiln doctor --brief

step "reduction ladder"
build/samples/reduction --arch "$arch"

step "the other samples"
status=0
for sample in hello device_query thread_ids timing streams errors symbols \
  shared_memory jit_life saxpy matrix_add transfers; do
  result=0
  build/samples/$sample --arch "$arch" >build/$sample.txt 2>&1 || result=$?
  case $result in
  0) printf '%-14s ok       %s\n' $sample "$(tail -n 1 build/$sample.txt)" ;;
  77) # "no GPU: why; what was done": the why stands above already
    printf '%-14s no GPU   %s\n' $sample \
      "$(tail -n 1 build/$sample.txt | sed 's/^no GPU:.*; //')"
    ;;
  *)
    printf '%-14s FAILED\n' $sample
    cat build/$sample.txt
    status=1
    ;;
  esac
done
say
say "each sample's whole output is in build/NAME.txt"
exit $status

#!/usr/bin/env bash
# Install what is missing, build, and run the main job: kernels that travel as
# strings are compiled for the device that is there, cached, launched, and their
# results verified; on the GPU, or else on the CPU device.
#   samples/run.sh [--device gpu|cpu|cpu:9.0]
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=samples/setup.sh
. samples/setup.sh

while [ $# -gt 0 ]; do
  case $1 in
  --device)
    [ $# -ge 2 ] || die "--device needs a value: gpu, cpu or cpu:9.0"
    export KILN_DEVICE=$2
    shift 2
    ;;
  *)
    say "usage: samples/run.sh [--device gpu|cpu|cpu:9.0]" >&2
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
build/samples/reduction

step "the other samples"
status=0
for source in samples/*.c; do
  sample=$(basename "$source" .c)
  [ "$sample" != reduction ] || continue
  result=0
  build/samples/"$sample" >build/"$sample".txt 2>&1 || result=$?
  case $result in
  0) printf '%-16s ok       %s\n' "$sample" "$(tail -n 1 build/"$sample".txt)" ;;
  77) printf '%-16s skipped  %s\n' "$sample" \
    "$(tail -n 1 build/"$sample".txt)" ;;
  *)
    printf '%-16s FAILED\n' "$sample"
    cat build/"$sample".txt
    status=1
    ;;
  esac
done
say
say "each sample's whole output is in build/NAME.txt"
exit $status

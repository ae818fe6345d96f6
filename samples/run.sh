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
need_nvdisasm
need_cupti
# The ladder first, on handlers for this processor alone: a verified result within
# a minute of a fresh clone. tests/run.sh builds them for every processor.
build build "kiln_cli sample_reduction" -DKILN_CPU_ISAS=native
# The cache stays in the checkout; an application's own default is ~/.cache/kiln.
export KILN_CACHE_DIR=${KILN_CACHE_DIR:-$PWD/build/cache}

export KILN_SAMPLE_OUT=${KILN_SAMPLE_OUT:-$PWD/build} # the pictures

step "what is here"
build/kiln doctor --brief

step "reduction ladder"
build/samples/reduction

build build kiln_samples
step "the other samples"
# run_sample NAME: keeps its output, and its exit status beside it.
run_sample() {
  local result=0
  build/samples/"$1" >build/"$1".txt 2>&1 || result=$?
  echo "$result" >build/"$1".status
}
samples=()
for source in samples/*.c; do
  sample=$(basename "$source" .c)
  [ "$sample" != reduction ] || continue
  samples+=("$sample")
  # Two at a time without a GPU; with one, each has it to itself.
  if [ "${KILN_DEVICE:-}" = gpu ] || [ -e /proc/driver/nvidia/version ]; then
    run_sample "$sample"
  else
    [ "$(jobs -rp | wc -l)" -lt 2 ] || wait -n
    run_sample "$sample" &
  fi
done
wait

status=0
for sample in "${samples[@]}"; do
  last=$(tail -n 1 build/"$sample".txt)
  case $(cat build/"$sample".status) in
  0) printf '%-16s ok       %s\n' "$sample" "$last" ;;
  77) printf '%-16s skipped  %s\n' "$sample" "$last" ;;
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

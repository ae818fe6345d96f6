#!/usr/bin/env bash
# Installs what is missing, builds, and runs the tests.
#   tests/run.sh [--thorough] [--quick] [--tier host|compile|device|schedules]
#                [--device gpu|cpu|cpu:6.1] [--build FOLDER] [--cmake OPTION]...
# Without options it takes less than ten minutes on two idle cores. A slow or busy
# machine makes it slower, not fail.
# --thorough    every specialisation for every architecture, every seed, all checks
#               on every test, long fuzzing and torture: hours. For releases
# --quick       leaves out packaging, torture and the other schedules
# --device      where the device tests run. The default is the GPU, else the CPU
#               device. With gpu, a device test that skips is a failure
# The tier `schedules` runs device tests again on the CPU device: with a seed, in
# lock-step as 6.1 and 3.5, and under all checks. Skips are counted and printed as
# skips.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=samples/setup.sh
. samples/setup.sh

tiers=(host compile device schedules)
folder=build
require_gpu=
quick=
thorough=
options=()
# The handlers for every processor and those for this one. Each instruction set
# takes as long to compile as all operations.
isas=base
! grep -qw avx2 /proc/cpuinfo || isas="base;v3"
! grep -qw avx512vl /proc/cpuinfo || isas="base;v4"
select=(-LE '^thorough$')
while [ $# -gt 0 ]; do
  case $1 in
  --tier) tiers=("${2:?}") && shift 2 ;;
  --device)
    export KILN_DEVICE=${2:?}
    [ "$KILN_DEVICE" != gpu ] || require_gpu=yes
    shift 2
    ;;
  --build) folder=${2:?} && shift 2 ;;
  --cmake) options+=("${2:?}") && shift 2 ;;
  --quick)
    quick=yes
    select=(-LE '^(thorough|packaging|torture)$')
    shift
    ;;
  --thorough)
    thorough=yes
    select=()
    export KILN_TEST_THOROUGH=1
    isas="base;v3;v4"
    shift
    ;;
  *)
    sed -n '2,15s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
  esac
done

need_packages "${build_packages[@]}"
need_nvrtc
need_nvdisasm
if [ -z "${KILN_TEST_NVRTC:-}" ]; then
  # One NVRTC of each major: every GPU generation from 3.5 on is compiled for.
  KILN_TEST_NVRTC=
  for version in 11.8.89 12.9.86 13.0.88; do
    library=$(fetch_nvrtc $version) || exit 1
    KILN_TEST_NVRTC=$KILN_TEST_NVRTC${KILN_TEST_NVRTC:+:}$library
  done
fi
export KILN_TEST_NVRTC
# A busy machine is slow, not stuck: limits end what hangs, after long.
export CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER:-20}
if [ -z "${KILN_TEST_NVJITLINK:-}" ]; then
  # PTX that a driver is too old for: a compiler and a linker of one major.
  KILN_TEST_LINK_NVRTC=$(fetch_nvrtc 12.6.85) || exit 1
  KILN_TEST_NVJITLINK=$(fetch_library nvidia-nvjitlink-cu12 12.9.86 \
    'libnvJitLink.so.*') || exit 1
fi
export KILN_TEST_NVJITLINK KILN_TEST_LINK_NVRTC
if [ -z "${KILN_TEST_PTXAS:-}" ] && [[ " ${tiers[*]} " == *" compile "* ]]; then
  # What the CPU device accepts is compared with this release; without it, a skip.
  KILN_TEST_PTXAS=$(fetch_library nvidia-cuda-nvcc 13.0.88 ptxas) ||
    KILN_TEST_PTXAS=
  export KILN_TEST_PTXAS
fi
if [[ " ${tiers[*]} " == *" compile "* ]]; then
  # The pages of the command are tested in a browser; without it, a skip.
  (need_packages chromium python3-html5lib) ||
    say "without Chromium, the tests of the pages are skipped"
fi
if [[ " ${tiers[*]} " == *" device "* ]]; then
  # Groups of ranks are tested with both; without them, skips.
  (need_packages openmpi-bin libopenmpi-dev mpich libmpich-dev) ||
    say "without MPI, groups of processes are not tested"
fi
build "$folder" all "-DKILN_CPU_ISAS=$isas" ${options[@]+"${options[@]}"}

# Tests never read or write the user's own cache.
KILN_CACHE_DIR=$(mktemp -d "$PWD/$folder/test-cache.XXXXXX")
export KILN_CACHE_DIR
trap 'rm -rf "$KILN_CACHE_DIR"' EXIT

passed=0
failed=0
skipped=0
# run_tests TITLE LOG CTEST_OPTION...: run, show, count.
run_tests() {
  local title=$1 log=$folder/$2 started=$SECONDS rc run skips bad
  shift 2
  step "$title"
  ctest --test-dir "$folder" "$@" --output-on-failure --no-tests=ignore \
    -j "$(nproc)" --timeout 3600 \
    2>&1 | tee "$log"
  rc=${PIPESTATUS[0]}
  run=$(grep -cE '^ *[0-9]+/[0-9]+ Test +#' "$log" || true)
  skips=$(grep -cE '\*\*\*Skipped' "$log" || true)
  bad=$(grep -cE '\*\*\*(Failed|Timeout|Exception|Not Run)' "$log" || true)
  # Whatever the lines above did not match: ctest itself says that it failed.
  [ "$rc" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
  if [ -n "$require_gpu" ] && [ "$title" = "device tests" ]; then
    bad=$((bad + skips))
    skips=0
  fi
  say "$title: $((SECONDS - started)) s"
  passed=$((passed + (run > skips + bad ? run - skips - bad : 0)))
  failed=$((failed + bad))
  skipped=$((skipped + skips))
}

# The device tests on other settings of the CPU device. By default a few tests that
# depend on how lanes, warps and blocks take turns, shortened (KILN_TEST_SHORT). In
# a thorough run all of them, with eight seeds, and under all checks the samples too.
run_schedules() {
  local setting label
  for setting in cpu:9.0,seed={1..8} cpu:7.5 cpu:6.1 cpu:3.5 cpu:9.0,check=all; do
    if [ -n "$thorough" ]; then
      label='^(schedules|operations)$'
      [[ $setting != *check=all ]] || label='^checks$'
    else
      label='^briefly$'
      [[ $setting != *seed=[2-8] && $setting != cpu:7.5 ]] || continue
      export KILN_TEST_SHORT=1 KILN_TEST_LARGE=small CK_INCLUDE_TAGS=brief
    fi
    KILN_DEVICE=$setting run_tests "device tests on $setting" \
      "tests-${setting//[^a-z0-9]/-}.log" -L "$label"
  done
}

for tier in "${tiers[@]}"; do
  case $tier in
  schedules) [ -n "$quick$require_gpu" ] || run_schedules ;;
  *) run_tests "$tier tests" "tests-$tier.log" -L "^$tier\$" \
    ${select[@]+"${select[@]}"} ;;
  esac
done

say
say "test programs:"
say "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $passed -gt 0 ]

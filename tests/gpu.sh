#!/usr/bin/env bash
# What needs a GPU, from a folder that is built already; builds nothing, so the
# folder can have been made on another machine.
#   tests/gpu.sh [--build FOLDER] [--out FOLDER] [tests] [samples] [start]
#                [launch] [reduce] [sanitizer] [ops] [golden] [flow] [bugs]
#                [counters] [operations] [large] [operations_sanitizer]
# ops: every opcode of registers, 2^20 operands each, on the GPU and the CPU
# device; golden: on the GPU alone. Both leave ops.txt in --out, to be kept as
# tests/golden/ops.txt. flow: 200 random programs on both. bugs: the planted bugs
# under compute-sanitizer and on the CPU device. counters: those of the CPU device
# against Nsight Compute's. operations: each beside its peers, before and after
# tuning. large: they on more than 2^32 elements, with 64 GB of device memory, and
# 5,000 random matrix products.
# operations_sanitizer: they under compute-sanitizer, for KILN_SANITIZER_SECONDS
# (150); what no time was left for counts as skipped. Without a list: the first
# six. Prints a short table last; logs go to --out.
set -u
cd "$(dirname "$0")/.." || exit 1

folder=build
out=
parts=()
while [ $# -gt 0 ]; do
  case $1 in
  --build) folder=$2 && shift 2 ;;
  --out) out=$2 && shift 2 ;;
  *) parts+=("$1") && shift ;;
  esac
done
[ ${#parts[@]} -gt 0 ] ||
  parts=(tests samples start launch reduce sanitizer)
out=${out:-$folder/gpu}
mkdir -p "$out"
KILN_CACHE_DIR=$(mktemp -d)
export KILN_CACHE_DIR
trap 'rm -rf "$KILN_CACHE_DIR"' EXIT

passed=0
failed=0
skipped=0
rows=()
# count NAME STATUS SECONDS: of a command that has ended.
count() {
  local name=$1 log=$out/$1.log
  case $2 in
  0) passed=$((passed + 1)) && rows+=("ok      $name $3 s") ;;
  77) skipped=$((skipped + 1)) && rows+=("skipped $name: $(tail -n 1 "$log")") ;;
  *)
    failed=$((failed + 1))
    rows+=("FAILED  $name (exit $2)")
    grep -m 40 '^=========' "$log"
    tail -n 25 "$log"
    ;;
  esac
}

# record NAME COMMAND...: run, log, count; for `patience` seconds at most.
record() {
  local name=$1 started=$SECONDS rc=0
  shift
  timeout "${patience:-180}" "$@" >"$out/$name.log" 2>&1 || rc=$?
  count "$name" $rc $((SECONDS - started))
}

# later NAME COMMAND...: the same, eight at once, none after `deadline`; collect
# counts them.
pending=()
later() {
  local name=$1 log=$out/$1.log
  shift
  pending+=("$name")
  while [ "$(jobs -rp | wc -l)" -ge 8 ]; do
    wait -n || true
  done
  if [ $SECONDS -ge "$deadline" ]; then
    echo "not started: no time left" >"$log"
    echo 77 0 >"$out/$name.rc"
    return
  fi
  (
    started=$SECONDS rc=0
    limit=$((deadline + 30 - SECONDS))
    timeout -k 5 $((limit < 120 ? limit : 120)) "$@" >"$log" 2>&1 </dev/null ||
      rc=$?
    if [ $rc -eq 124 ] && ! grep -Eq "$findings" "$log"; then
      echo "no finding in $((SECONDS - started)) s, then stopped" >>"$log"
      rc=77
    fi
    echo $rc $((SECONDS - started)) >"$out/$name.rc"
  ) &
}
findings='^========= (Invalid|Uninitialized|Error|Warning|Race|Potential|Program)'

collect() {
  local name rc seconds
  wait
  for name in ${pending[@]+"${pending[@]}"}; do
    read -r rc seconds <"$out/$name.rc"
    count "$name" "$rc" "$seconds"
  done
  pending=()
}

part_tests() {
  local t
  for t in "$folder"/tests/device_*; do
    if [ -f "$t" ] && [ -x "$t" ]; then
      record "$(basename "$t")" "$t"
    fi
  done
}

part_samples() {
  local s
  for s in "$folder"/samples/*; do
    if [ -f "$s" ] && [ -x "$s" ] && [ "$(basename "$s")" != reduction ]; then
      record "sample_$(basename "$s")" "$s"
      tail -n 2 "$out/sample_$(basename "$s").log"
    fi
  done
}

part_start() {
  record bench_start "$folder/kiln" bench start --json "$out/start.json"
  cat "$out/bench_start.log"
}

part_launch() {
  record bench_launch "$folder/kiln" bench launch --json "$out/launch.json"
  cat "$out/bench_launch.log"
}

part_reduce() {
  record sample_reduction "$folder/samples/reduction"
  record bench_reduce "$folder/kiln" bench reduce --json "$out/reduce.json"
  cat "$out/bench_reduce.log"
}

# Every operation beside its peers (libkiln_peers.so in the folder), as the table
# has its parameters and again as they are tuned here.
part_operations() {
  record bench_operations "$folder/kiln" bench ops \
    --json "$out/operations.json"
  cat "$out/bench_operations.log"
  record tune "$folder/kiln" tune
  cat "$out/tune.log"
  record bench_tuned "$folder/kiln" bench ops --json "$out/tuned.json"
  cat "$out/bench_tuned.log"
}

part_large() {
  KILN_TEST_LARGE=1 patience=300 record large "$folder/tests/device_large"
  cat "$out/large.log"
  KILN_TEST_LARGE=1 patience=300 record large_more \
    "$folder/tests/device_large_more"
  cat "$out/large_more.log"
  KILN_TEST_LARGE=1 CK_RUN_CASE=large patience=300 record gemm_large \
    "$folder/tests/device_gemm_calls"
  KILN_TEST_RANDOM_CALLS=5000 CK_RUN_CASE=many patience=300 record gemm_random \
    "$folder/tests/device_gemm_calls"
}

# The samples that use them, each operation once or twice (device_large on few
# elements), then their tests for as long as there is time. Tests ask for errors
# of the driver, too.
part_operations_sanitizer() {
  local tool s deadline=$((SECONDS + ${KILN_SANITIZER_SECONDS:-150}))
  export CK_FORK=no KILN_TEST_NO_LOCK_STEP=1 KILN_TEST_LARGE=small
  export KILN_SAMPLE_FEW=1 KILN_TEST_RACES=1
  for tool in memcheck racecheck initcheck; do
    later "${tool}_large" compute-sanitizer --tool $tool --error-exitcode 1 \
      --report-api-errors no "$folder/tests/device_large"
  done
  for s in relax gather_scatter map_expression dot distance statistics bags \
    reduce_columns scan split radix_sort bitonic histogram counting_sort \
    merge_search nbody convolution julia; do
    for tool in memcheck racecheck initcheck; do
      later "${tool}_$s" compute-sanitizer --tool $tool --error-exitcode 1 \
        "$folder/samples/$s"
    done
  done
  for tool in initcheck racecheck memcheck; do
    for s in map reduce_op reduce_matrix segmented scan scan_by_key \
      reduce_by_key group_statistics difference \
      gather scatter select partition split run_length find histogram \
      counting_sort sort segmented_sort merge search operations gemm all_pairs \
      stencil; do
      later "${tool}_device_$s" compute-sanitizer --tool $tool \
        --error-exitcode 1 --report-api-errors no "$folder/tests/device_$s"
    done
  done
  collect
  unset CK_FORK KILN_TEST_NO_LOCK_STEP KILN_TEST_LARGE KILN_SAMPLE_FEW \
    KILN_TEST_RACES
}

part_sanitizer() {
  local tool s api=
  # One process: the tools watch the one they start. The body for lock-step has
  # no barriers between lanes, on purpose.
  export CK_FORK=no KILN_TEST_NO_LOCK_STEP=1
  for tool in memcheck racecheck initcheck synccheck; do
    for s in saxpy shared_memory symbols matrix_add thread_ids; do
      # symbols asks for a variable that is none, on purpose
      [ "$s" = symbols ] && api=no
      record "${tool}_$s" compute-sanitizer --tool $tool --error-exitcode 1 \
        --report-api-errors ${api:-explicit} "$folder/samples/$s"
      api=
    done
    record "${tool}_reduction" compute-sanitizer --tool $tool \
      --error-exitcode 1 "$folder/samples/reduction" --bits 20
    record "${tool}_kernels" compute-sanitizer --tool $tool \
      --error-exitcode 1 "$folder/tests/device_kernels"
  done
  unset CK_FORK KILN_TEST_NO_LOCK_STEP
}

part_ops() {
  export KILN_TEST_OPS=full KILN_TEST_OPS_OUT=$out
  record ops "$folder/tests/device_ops"
  record approx "$folder/tests/device_approx"
  unset KILN_TEST_OPS KILN_TEST_OPS_OUT
  head -n 120 "$out/ops.log"
  cat "$out/approx.log"
}

part_golden() {
  KILN_TEST_OPS=golden KILN_TEST_OPS_OUT=$out \
    record golden "$folder/tests/device_ops"
  wc -lc "$out/ops.txt"
}

part_flow() {
  KILN_TEST_FLOW_PROGRAMS=200 record flow "$folder/tests/device_flow"
  tail -n 2 "$out/flow.log"
}

part_bugs() {
  record bugs tests/gpu/bugs.sh "$folder/kiln" "$out"
  cat "$out/bugs.log"
}

part_counters() {
  record counters tests/gpu/counters.sh "$folder/kiln" "$out"
  cat "$out/counters.log"
}

for part in "${parts[@]}"; do
  part_"$part"
done
printf '\n'
printf '%s\n' "${rows[@]}"
printf '%d passed, %d failed, %d skipped\n' $passed $failed $skipped
[ $failed -eq 0 ]

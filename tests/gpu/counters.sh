#!/usr/bin/env bash
# Counters of the CPU device against Nsight Compute on the GPU, kernel by kernel.
#   tests/gpu/counters.sh KILN OUT
# Needs ncu in PATH, and the right to read the GPU's counters (else exit 77). Logs
# go to OUT. Prints a table; the last line counts the rows that must be equal, or
# differ as explained.tsv says.
#
# The CPU device counts PTX, a GPU what the assembler made of it. Memory
# instructions, requests, sectors and passes have to be equal. Shown without
# being counted: all warp instructions, divergent branches (the assembler makes
# predicates of short branches), conflicts (those of the GPU have others, which
# the arbiter adds) and the passes that the addresses alone make necessary.
set -u
cd "$(dirname "$0")/../.." || exit 2
kiln=$1 out=$2/counters
awks=tests/gpu

mkdir -p "$out"
metrics=(
  l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum
  l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum
  l1tex__t_requests_pipe_lsu_mem_global_op_st.sum
  l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum
  l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum
  l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum
  l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum
  l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum
  smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum
  smsp__sass_inst_executed_op_global_ld.sum
  smsp__sass_inst_executed_op_global_st.sum
  smsp__sass_inst_executed_op_shared_ld.sum
  smsp__sass_inst_executed_op_shared_st.sum
  smsp__sass_branch_targets.sum
  smsp__sass_branch_targets_threads_divergent.sum
  smsp__inst_executed.sum
)

# Name and the words of `kiln run` that launch it; the files say it themselves.
launches=(
  "saxpy builtin:saxpy --grid 64 --block 256 --arg 2.5 --arg f32[16384]=ramp --arg f32[16384]=ramp --arg 16000"
  "convolution builtin:convolution --grid 64 --block 256 --arg f32[16384] --arg f32[16384]=ramp --arg 16384 --arg 1.0 --arg 2.0 --arg 4.0"
  "reduce_shared builtin:ladder/reduce_shared --grid 64 --block 256 --arg f32[16384]=ramp --arg 16384 --arg f32[1]"
  "matmul builtin:matmul --grid 2,2 --block 256 --arg f32[65536] --arg f32[65536]=ramp --arg f32[65536]=ramp --arg 256 --arg 256"
  "nbody builtin:nbody --grid 4 --block 256 --arg f32[4096] --arg f32[4096]=ramp --arg 1024 --arg 0.01"
  "julia builtin:julia --grid 8,8 --block 16,16 --arg u8[16384] --arg 128 --arg 128 --arg=-0.79 --arg 0.15"
)
for file in tests/gpu/kernels/*.cu; do
  launches+=("$(basename "$file" .cu) $file")
done

# profile LOG METRICS WORDS...: one launch under ncu.
profile() {
  local log=$1 list=$2
  shift 2
  timeout -k 3 60 ncu --csv --print-units base --launch-count 1 \
    --metrics "$list" "$kiln" run "$@" --device gpu --lineinfo --print 0 \
    >"$log" 2>&1 </dev/null
  ! grep -q ERR_NVGPUCTRPERM "$log" || {
    echo "no right to read the GPU's counters (ERR_NVGPUCTRPERM)"
    exit 77
  }
}

join() {
  local IFS=,
  echo "$*"
}

# An ncu that does not know one of the metrics may refuse them all: ask for each.
known_metrics() {
  local metric words good=()
  read -r -a words <<<"${launches[0]}"
  profile "$out/try.log" "$(join "${metrics[@]}")" "${words[@]:1}"
  if awk -f $awks/ncu.awk "$out/try.log" | grep -q .; then
    return
  fi
  for metric in "${metrics[@]}"; do
    profile "$out/try.$metric.log" "$metric" "${words[@]:1}"
    if awk -f $awks/ncu.awk "$out/try.$metric.log" | grep -q .; then
      good+=("$metric")
    else
      echo "ncu does not know $metric"
    fi
  done
  metrics=(${good[@]+"${good[@]}"})
}

known_metrics
[ ${#metrics[@]} -gt 0 ] || {
  echo "ncu gave nothing:"
  tail -n 5 "$out/try.log"
  exit 1
}

agree=0
explained=0
counted=0
list=$(join "${metrics[@]}")
for launch in "${launches[@]}"; do
  read -r -a words <<<"$launch"
  name=${words[0]}
  profile "$out/$name.ncu.log" "$list" "${words[@]:1}"
  "$kiln" run "${words[@]:1}" --device cpu --counters --print 0 \
    --json "$out/$name.json" >"$out/$name.kiln.log" 2>&1
  awk -f $awks/ncu.awk "$out/$name.ncu.log" >"$out/$name.ncu"
  awk -f $awks/kiln_json.awk "$out/$name.json" >"$out/$name.kiln"
  awk -v kernel="$name" -f $awks/compare.awk "$out/$name.ncu" \
    "$out/$name.kiln" $awks/explained.tsv >"$out/$name.table"
  cat "$out/$name.table"
  agree=$((agree + $(grep -c 'equal$' "$out/$name.table")))
  explained=$((explained + $(grep -c ' explained$' "$out/$name.table")))
  counted=$((counted + $(grep -cE '(equal|explained|DIFFERS)$' "$out/$name.table")))
done
echo "$agree equal and $explained explained of $counted"
[ $((agree + explained)) -eq "$counted" ] && [ "$agree" -gt 0 ]

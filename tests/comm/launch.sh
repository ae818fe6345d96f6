#!/usr/bin/env bash
# launch.sh local|nccl|alone|shared|openmpi|mpich PROGRAM [RANKS] -- runs a test of groups as 4 ranks,
# and in a thorough run as 1, 4 and 7 ranks. BUILD is the build folder. Exits with 77
# if the MPI is not installed.
set -eu
how=$1
program=$2
counts=${3:-4}
[ -n "${3:-}" ] || [ -z "${KILN_TEST_THOROUGH:-}" ] || counts="1 4 7"

# The plug-in is found by the loader, as that of an installed library.
export KILN_NCCL=${KILN_NCCL:-${BUILD:?}/tests/fakes/fake_nccl.so} # for "nccl"
export LD_LIBRARY_PATH="${BUILD:?}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
# Ranks share two cores in CI, and containers run as root.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe # Open MPI 5
export OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_plm_rsh_agent=/bin/false
unset OMPI_MCA_btl 2>/dev/null || true

case $how in
local | nccl | alone | shared) launcher= ;;
openmpi) launcher=$(command -v mpirun.openmpi || true) ;;
mpich) launcher=$(command -v mpirun.mpich || true) ;;
*) exit 2 ;;
esac
mpi=
case $how in openmpi | mpich) mpi=1 ;; esac
if [ -n "$mpi" ] && { [ -z "$launcher" ] || [ ! -e "$BUILD/libkiln_mpi_$how.so" ]; }; then
  echo "skipped: $how is not installed, or was not when Kiln was built"
  exit 77
fi
# A group of one cannot break.
[ "$(basename "$program")" != comm_failure ] || counts=${counts#1 }
for ranks in $counts; do
  if [ -z "$mpi" ]; then
    "$program" "$how" "$ranks"
  else
    "$launcher" -n "$ranks" "$program" mpi
  fi
done

# kill_runs N: in each of N runs one process of four kills itself, and the launcher
# lets the others live. All three must return in time. In nearly all runs they must
# name the rank that died: if it dies while it writes to the shared memory of an MPI,
# messages of living ranks may be lost, too.
kill_runs() {
  local seed survivors options named=0
  case $how in
  openmpi) options=(--enable-recovery) ;;
  *) options=(-disable-auto-cleanup) ;;
  esac
  for seed in $(seq "$1"); do
    # MPICH's launcher ends all processes if one of them fails, so a shell reports
    # success for the one that dies.
    # shellcheck disable=SC2016 # the inner shell expands it
    timeout 60 "$launcher" "${options[@]}" -n 4 \
      bash -c 'trap "" USR1 TERM; "$@" || true' _ "$program" kill "$seed" \
      >"$work/kill.txt" 2>&1 || true
    survivors=$(grep -c '^survivor of seed' "$work/kill.txt" || true)
    if [ "$survivors" -ne 3 ]; then
      cat "$work/kill.txt"
      echo "run $seed: $survivors of 3 ranks returned in time"
      exit 1
    fi
    [ "$(grep -c '^named of seed' "$work/kill.txt" || true)" -ne 3 ] || named=$((named + 1))
  done
  echo "$1 runs with a rank that died: all others returned, $named times with its number"
  [ "$named" -ge $(($1 * 9 / 10)) ]
}
if [ "$(basename "$program")" = comm_failure ] && [ -n "$launcher" ]; then
  work=$(mktemp -d)
  kills=1
  [ -z "${KILN_TEST_THOROUGH:-}" ] || kills=200
  trap 'rm -rf "$work"' EXIT
  kill_runs "$kills"
fi
if [ "$(basename "$program")" = comm_failure ] && [ "$how" = shared ]; then
  kills=2
  [ -z "${KILN_TEST_THOROUGH:-}" ] || kills=200
  survivors=$("$program" kills "$kills" | grep -c '^named of seed' || true)
  echo "$kills groups with a rank that died: $survivors of $((3 * kills)) others returned in time with its number"
  [ "$survivors" -eq $((3 * kills)) ]
fi

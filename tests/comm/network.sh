#!/usr/bin/env bash
# network.sh openmpi|mpich FOLDER -- groups of ranks across two machines: two network
# namespaces with host names of their own, which a pair of virtual Ethernet devices
# connects. All messages pass through TCP. FOLDER has the programs comm_*. BUILD is the
# build folder.
#
# Runs the collectives; kills a rank; sets the link down. In both cases every survivor
# must return with KILN_ECOMM within the timeout and two seconds. Exits with 77 if this
# is not a thorough run, or where namespaces cannot be made.
set -eu
how=$1
programs=$2
launcher=$(command -v "mpirun.$how" || true)
if [ -z "${KILN_TEST_THOROUGH:-}" ]; then
  echo "skipped: networks are tested in thorough runs (KILN_TEST_THOROUGH=1)"
  exit 77
fi
if [ -z "$launcher" ] || [ ! -e "${BUILD:?}/libkiln_mpi_$how.so" ]; then
  echo "skipped: $how is not installed, or was not when Kiln was built"
  exit 77
fi
a=kiln-a$$
b=kiln-b$$
work=$(mktemp -d)
# A launcher may wait for the host that it has lost, so all processes of the hosts end.
clean_up() {
  local n
  for n in "$a" "$b"; do
    ip netns pids "$n" 2>/dev/null | xargs -r kill -9 2>/dev/null || true
    ip netns del "$n" 2>/dev/null || true
  done
  rm -rf "$work"
}
trap clean_up EXIT
if ! { ip netns add "$a" && ip netns add "$b" &&
  ip link add kv netns "$a" type veth peer name kv netns "$b" &&
  ip netns exec "$a" unshare --uts true; } 2>"$work/why"; then
  echo "skipped: no network namespaces: $(head -n 1 "$work/why")"
  exit 77
fi
ip -n "$a" addr add 10.77.0.1/24 dev kv
ip -n "$b" addr add 10.77.0.2/24 dev kv
link() { # up|down
  ip -n "$b" link set kv "$1"
}
for n in "$a" "$b"; do ip -n "$n" link set lo up; done
ip -n "$a" link set kv up
link up
for _ in $(seq 50); do # until both ends have noticed
  [ "$(ip netns exec "$b" cat /sys/class/net/kv/operstate)" = up ] && break
  sleep 0.1
done

export LD_LIBRARY_PATH="$BUILD${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=10.77.0.0/24
export OMPI_MCA_oob_tcp_if_include=10.77.0.0/24
export UCX_LOG_LEVEL=error UCX_TLS=tcp,self UCX_NET_DEVICES=kv

# Starts a command on a host, as a remote shell would.
cat >"$work/shell" <<SHELL
#!/bin/bash
while [[ \$1 == -* ]]; do shift; done
case \$1 in 10.77.0.1) name=$a ;; *) name=$b ;; esac
shift
export PATH=$PATH LD_LIBRARY_PATH=$LD_LIBRARY_PATH
exec ip netns exec "\$name" unshare --uts bash -c 'hostname "\$0"; eval "\$@"' "\$name" "\$@"
SHELL
chmod +x "$work/shell"

# on_both RANKS OPTIONS... -- COMMAND...: runs ranks on both hosts. The shell becomes the
# launcher.
on_both() {
  local ranks=$1 options=()
  shift
  while [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  shift
  case $how in
  openmpi) options+=(--mca plm_rsh_agent "$work/shell" --host "10.77.0.1:$ranks,10.77.0.2:$ranks" --map-by node) ;;
  *) options+=(-launcher rsh -launcher-exec "$work/shell" -hosts "10.77.0.1,10.77.0.2" -ppn 1) ;;
  esac
  # shellcheck disable=SC2016 # the inner shell expands it
  exec ip netns exec "$a" unshare --uts bash -c 'hostname "$0"; exec "$@"' "$a" \
    timeout 120 "$launcher" "${options[@]}" -n "$ranks" "$@"
}

# count FOLDER WORD: counts the ranks that have written a line with this word.
count() {
  cat "$1"/rank.* 2>/dev/null | grep -c "^$2" || true
}
# await FOLDER WORD N: waits for N such lines, for at most two minutes.
await() {
  for _ in $(seq 600); do
    [ "$(count "$1" "$2")" -lt "$3" ] || return 0
    sleep 0.2
  done
}
# survivors FOLDER N WHAT: checks what the ranks have written.
survivors() {
  await "$1" survivor "$2"
  echo "$how, $3: $(count "$1" survivor) of $2 ranks returned in time"
  [ "$(count "$1" survivor)" -eq "$2" ] || {
    cat "$1"/rank.*
    exit 1
  }
}
recovery() {
  case $how in
  openmpi) echo --enable-recovery ;;
  *) echo -disable-auto-cleanup ;;
  esac
}
# The launchers are disowned, so that the shell does not report their end.
# What each process runs: its output goes to a file, since the launcher may lose it.
# shellcheck disable=SC2016 # the inner shell expands it
alone='trap "" USR1 TERM; "${@:2}" >"$1/rank.$$" 2>&1 || true'

# MPICH 4.0 with UCX over TCP at times hangs in its own MPI_Finalize(), also in programs
# without Kiln. The results count, and not the end of the processes.
for test in collectives:1 split:3; do
  mkdir "$work/${test%:*}"
  on_both 4 -- bash -c "$alone" _ "$work/${test%:*}" "$programs/comm_${test%:*}" mpi >"$work/log" 2>&1 &
  disown
  await "$work/${test%:*}" "4 ranks" "${test#*:}"
  echo "$how, ${test%:*}: $(count "$work/${test%:*}" "4 ranks") of ${test#*:} groups of 4 ranks are done"
  [ "$(count "$work/${test%:*}" "4 ranks")" -eq "${test#*:}" ] || {
    cat "$work/log" "$work/${test%:*}"/rank.*
    exit 1
  }
done
moved=$(ip netns exec "$b" cat /sys/class/net/kv/statistics/rx_bytes)
echo "$how: $moved bytes passed the link"
[ "$moved" -gt 100000 ]

mkdir "$work/kill" "$work/link"
on_both 4 "$(recovery)" -- bash -c "$alone" _ "$work/kill" "$programs/comm_failure" kill 5 \
  >"$work/log" 2>&1 &
disown
survivors "$work/kill" 3 "a rank killed"

on_both 4 "$(recovery)" -- bash -c "$alone" _ "$work/link" "$programs/comm_failure" kill 0 \
  >"$work/log" 2>&1 &
disown
await "$work/link" ready 4
sleep 1
link down
survivors "$work/link" 4 "the link set down"

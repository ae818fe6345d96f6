#!/bin/bash
# relocatable.sh KILN NVCC: compiles the program of this folder with relocatable
# device code and runs it under all checks. With KILN_TEST_THOROUGH, it does so for
# each way to compress fat binaries, and for a program without PTX. Exits with 77
# if nvcc cannot link programs here.
set -u
kiln=$1 nvcc=$2
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

build() { # build OPTION...
  "$nvcc" -cudart shared -rdc=true -lineinfo "$@" -o "$folder/program" \
    "$here/main.cu" "$here/device.cu" >"$folder/log" 2>&1
}

run() { # run WHAT: the last program has to print "ok" and to have no finding
  if ! "$kiln" exec --check all -- "$folder/program" >"$folder/out" 2>"$folder/err" ||
    ! grep -qx ok "$folder/out" || ! grep -q '^0 findings' "$folder/err"; then
    echo "$1:"
    cat "$folder/out" "$folder/err"
    failed=1
  fi
}

build -gencode arch=compute_75,code=compute_75 || {
  cat "$folder/log"
  exit 77
}
run "PTX alone"
[ -n "${KILN_TEST_THOROUGH-}" ] || exit $failed

for mode in none size speed balance; do
  build -arch=sm_90 -Xfatbin -compress-mode=$mode && run "compressed for $mode"
done
build -arch=sm_90 -Xfatbin -compress-all && run "all compressed"
build -gencode arch=compute_75,code=compute_75 \
  -gencode arch=compute_90,code='[sm_90,compute_90]' && run "two PTX entries"
build -gencode arch=compute_90,code=sm_90 || exit 1
"$kiln" exec -- "$folder/program" >"$folder/out" 2>"$folder/err"
if ! grep -q 'machine code alone.*code=compute_90' "$folder/err"; then
  echo "machine code alone: no advice"
  cat "$folder/err"
  failed=1
fi
exit $failed

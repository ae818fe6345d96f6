#!/usr/bin/env bash
# Tests which of NVIDIA's wheels samples/setup.sh fetches, and that it fetches none
# where none is needed. A script plays pip, so no network is needed.
set -eu
rm -rf "$WORK"
mkdir -p "$WORK/bin"
cd "$WORK"

# The script that plays python3 -m pip: it makes the files of the wheel.
cat >bin/python3 <<'END'
#!/usr/bin/env bash
while [ $# -gt 1 ]; do
  [ "$1" = --target ] && target=$2
  shift
done
echo "$1" >>fetched
case $1 in
*cupti==13*) file=nvidia/cu13/lib/libcupti.so.13 ;;
*cupti*==12*) file=nvidia/cuda_cupti/lib/libcupti.so.12 ;;
*cupti*) file=nvidia/cuda_cupti/lib/libcupti.so.11.8 ;;
*) exit 1 ;;
esac
mkdir -p "$target/${file%/*}"
: >"$target/$file"
END
chmod +x bin/python3

# cupti DRIVER: prints KILN_CUPTI as setup.sh sets it with this release of the
# driver; an empty one means that there is no driver.
cupti() {
  rm -f version
  [ -z "$1" ] || echo "NVRM version: NVIDIA UNIX x86_64 Kernel Module  $1.65.06  x" >version
  driver_file=$PWD/version PATH=$PWD/bin:$PATH CUDA_PATH='' bash -c '
    . "$SOURCE/samples/setup.sh"
    need_packages() { :; }
    compgen() { return 1; } # no toolkit
    need_cupti
    echo "${KILN_CUPTI:-none}"'
}

expect() {
  [ "$2" = "$3" ] || {
    echo "$1: $2, not $3" >&2
    exit 1
  }
}

unset KILN_CUPTI
deps=$PWD/.deps
expect "without a driver" "$(cupti '')" none
expect "a setting" "$(KILN_CUPTI=/given cupti 580)" /given
[ ! -e fetched ] || expect "nothing is fetched" "$(cat fetched)" ""
expect "driver 580" "$(cupti 580 2>/dev/null)" \
  "$deps/nvidia-cuda-cupti-13.0.85/nvidia/cu13/lib/libcupti.so.13"
expect "driver 550" "$(cupti 550 2>/dev/null)" \
  "$deps/nvidia-cuda-cupti-cu12-12.9.79/nvidia/cuda_cupti/lib/libcupti.so.12"
expect "driver 470" "$(cupti 470 2>/dev/null)" \
  "$deps/nvidia-cuda-cupti-cu11-11.8.87/nvidia/cuda_cupti/lib/libcupti.so.11.8"
# What was fetched is not fetched again.
expect "again" "$(cupti 580)" \
  "$deps/nvidia-cuda-cupti-13.0.85/nvidia/cu13/lib/libcupti.so.13"
expect "number of wheels" "$(wc -l <fetched)" 3
# Without a network everything else works.
rm -rf .deps
printf '#!/bin/sh\nexit 1\n' >bin/python3
expect "no network" "$(cupti 580 2>/dev/null | tail -n 1)" none

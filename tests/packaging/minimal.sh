#!/usr/bin/env bash
# With a C compiler, CMake and xxhash.h and nothing else; with CROSS, for
# aarch64.
# shellcheck source=tests/packaging/common.sh
. "${0%/*}/common.sh"

options="-DKILN_CLI=OFF -DKILN_TESTS=OFF -DKILN_SAMPLES=OFF"
options="$options -DKILN_CPU_ISAS=base"
# Nothing optional is to be found.
for package in PkgConfig Python3 CUDAToolkit; do
  options="$options -DCMAKE_DISABLE_FIND_PACKAGE_$package=ON"
done
# Only this one header: /usr/include would shadow the cross compiler's own.
mkdir "$WORK/xxhash"
cp "$XXHASH/xxhash.h" "$WORK/xxhash"
options="$options -DKILN_XXHASH_INCLUDE=$WORK/xxhash"

machine=
if [ -n "${NEEDS_CROSS:-}" ]; then
  [ -n "${CROSS:-}" ] || skip "aarch64-linux-gnu-gcc is not installed"
  export CC=$CROSS
  machine=AArch64
  options="$options -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64"
fi

# shellcheck disable=SC2086 # options are words
configure "$SOURCE" "$WORK/build" -DKILN_WERROR=ON $options
build "$WORK/build"
for file in libkiln.so libkiln.a; do
  [ -e "$WORK/build/$file" ] || fail "no $file"
done
# What README.md promises of the sizes. Where pages have 64 KiB, as on aarch64, the
# linker leaves a gap of up to that before the data.
at_most() {
  local library=$1 limit=$2 size
  "$STRIP" --strip-unneeded -o "$WORK/stripped.so" "$WORK/build/$library"
  size=$(wc -c <"$WORK/stripped.so")
  echo "$library: $size bytes stripped"
  [ "$size" -le "$limit" ] || fail "$library has more than $limit bytes"
}
if [ -z "$machine" ] && [ "$(uname -m)" = x86_64 ]; then
  at_most libkiln_core.so 300000
  at_most libkiln.so 1000000
fi
if [ -n "$machine" ]; then
  readelf -h "$WORK/build/libkiln.so" | grep -q "$machine" || fail "not $machine"
fi
# CUDA's own headers are nowhere asked for.
if grep -rnE '#[[:space:]]*include[[:space:]]*<(cuda|nvrtc|nvJitLink|cudart)' \
  "$SOURCE/runtime" "$SOURCE/include"; then
  fail "a CUDA header is included"
fi

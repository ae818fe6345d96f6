#!/usr/bin/env bash
# Tests that a C compiler, CMake and xxhash.h are enough to build Kiln, and how large
# its libraries are. With CROSS, the test builds for aarch64. By default it builds the
# shared libraries without optimisation and measures those in LIBRARIES, which were
# built with it; with KILN_TEST_THOROUGH or CROSS, it builds everything and measures that.
# shellcheck source=tests/packaging/common.sh
. "${0%/*}/common.sh"

options="-DKILN_CLI=OFF -DKILN_TESTS=OFF -DKILN_SAMPLES=OFF"
options="$options -DKILN_CPU_ISAS=base"
# Hide the optional packages from CMake.
for package in PkgConfig Python3 CUDAToolkit; do
  options="$options -DCMAKE_DISABLE_FIND_PACKAGE_$package=ON"
done
# Copy only this header, since /usr/include would shadow the cross compiler's headers.
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

targets="kiln kiln_core"
measured=${LIBRARIES:-}
if [ -n "${KILN_TEST_THOROUGH:-}$machine" ]; then
  targets=all
  measured=$WORK/build
fi
[ "$targets" = all ] || options="$options -DCMAKE_BUILD_TYPE=Debug"
# shellcheck disable=SC2086 # options are words
configure "$SOURCE" "$WORK/build" -DKILN_WERROR=ON $options
# shellcheck disable=SC2086 # targets are words
build "$WORK/build" --target $targets
for file in libkiln.so libkiln_core.so; do
  [ -e "$WORK/build/$file" ] || fail "no $file"
done
# The limits are the library sizes that README.md promises. They hold only for small
# pages: with pages of 64 KiB, as on aarch64, the linker leaves up to 64 KiB unused.
at_most() {
  local library=$1 limit=$2 size
  "$STRIP" --strip-unneeded -o "$WORK/stripped.so" "$measured/$library"
  size=$(wc -c <"$WORK/stripped.so")
  echo "$library: $size bytes stripped"
  [ "$size" -le "$limit" ] || fail "$library has more than $limit bytes"
}
if [ -n "$measured" ] && [ -z "$machine" ] && [ "$(uname -m)" = x86_64 ]; then
  at_most libkiln_core.so 300000
  at_most libkiln.so 1376256
fi
if [ -n "$machine" ]; then
  readelf -h "$WORK/build/libkiln.so" | grep -q "$machine" || fail "not $machine"
fi
# No source file may include a header of CUDA.
if grep -rnE '#[[:space:]]*include[[:space:]]*<(cuda|nvrtc|nvJitLink|cudart)' \
  "$SOURCE/runtime" "$SOURCE/include"; then
  fail "a CUDA header is included"
fi

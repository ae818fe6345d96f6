#!/usr/bin/env bash
# Kernel sources travel inside the library: a source or header that changes, a
# new one and one that goes away are in the next build.
# shellcheck source=tests/packaging/common.sh
. "${0%/*}/common.sh"

tree=$WORK/tree
library=$WORK/build/libkiln.a
mkdir "$tree"
cp -R "$SOURCE"/CMakeLists.txt "$SOURCE"/include "$SOURCE"/runtime \
  "$SOURCE"/kernels_src "$tree"
configure "$tree" "$WORK/build" -DKILN_CLI=OFF -DKILN_TESTS=OFF \
  -DKILN_SAMPLES=OFF -DKILN_XXHASH_INCLUDE="$XXHASH"

# Build; the library must then hold the text $1, or with a "!" not.
check() {
  build "$WORK/build" --target kiln_static
  if grep -qaF -- "$1" "$library"; then
    [ -z "${2-}" ] || fail "the library still holds: $1"
  else
    [ -n "${2-}" ] || fail "the library lacks: $1"
  fi
}

program=$(find "$tree/kernels_src" -maxdepth 1 -name '*.cu' | sort | head -n 1)
header=$(find "$tree/kernels_src/kiln" -name '*.cuh' | sort | head -n 1)
[ -n "$program$header" ] || fail "no kernel sources"

check "// a program that changed" !
echo "// a program that changed" >>"$program"
check "// a program that changed"
echo "// a header that changed" >>"$header"
check "// a header that changed"
echo "// a new program" >"$tree/kernels_src/new_one.cu"
check "// a new program"
rm "$tree/kernels_src/new_one.cu"
check "// a new program" !

# Nothing changed: nothing is made again.
before=$(stat -c %Y%z "$WORK/build/gen/embedded.c")
check "// a header that changed"
[ "$before" = "$(stat -c %Y%z "$WORK/build/gen/embedded.c")" ] ||
  fail "sources are embedded again although none changed"

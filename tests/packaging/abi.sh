#!/usr/bin/env bash
# Tests that structs may grow. A program that was compiled against the headers of
# one version must run with the libraries of a later version and of an earlier
# version. The later version is this tree with one more member in each struct that
# may grow. Structs that may not grow must keep their size.
# shellcheck source=tests/packaging/common.sh
. "${0%/*}/common.sh"

cd "$WORK" || exit 1
later=$WORK/later
mkdir "$later"
cp -R "$SOURCE"/CMakeLists.txt "$SOURCE"/include "$SOURCE"/runtime \
  "$SOURCE"/kernels_src "$later"

# A struct may grow if a table of sized functions has a row for it.
{
  grep -rhoE 'KILN__SIZED_TYPE\(kiln_[a-z0-9_]+' "$SOURCE/runtime"
  grep -hoE '^(TAKES|GIVES)\([a-z0-9_]+, kiln_[a-z0-9_]+' "$SOURCE"/runtime/launch/sized_core.c
  grep -hoE 'X\(kiln_[a-z0-9_]+, kiln_[a-z0-9_]+_desc' "$SOURCE"/include/kiln/*.h
} | sed 's/.*[(, ]//' | sort -u >growable
[ "$(wc -l <growable)" -ge 40 ] || fail "found only few structs that may grow"

# The library allocates these structs and passes pointers to them, so they may grow
# as well.
printf 'kiln_%s\n' cache_item cpu_activity cpu_call cpu_counters cpu_finding error lines span trail_step \
  >passed

# The sizes of all other structs are part of the ABI.
sed -nE 's/^\} (kiln_[a-z0-9_]+);$/\1/p' "$SOURCE"/include/kiln/*.h | sort -u >types
grep -hoE '^typedef enum kiln_[a-z0-9_]+' "$SOURCE"/include/kiln/*.h |
  sed 's/.* //' | sort -u >enums
comm -23 types growable | comm -23 - enums | comm -23 - passed >fixed
{
  echo '#include <stdio.h>'
  echo '#include <kiln/kiln.h>'
  echo '#include <kiln/cpu.h>'
  echo '#include <kiln/comm.h>'
  echo 'int main(void) {'
  sed 's/.*/printf("& %zu\\n", sizeof(&));/' fixed
  echo '}'
} >sizes.c
$CC -std=c11 -I "$SOURCE/include" -fsyntax-only sizes.c || fail "sizes.c"
$CC -std=c11 -DKILN_BUILDING -I "$SOURCE/include" sizes.c -o sizes || fail "sizes.c"
./sizes >sizes.txt
diff "$SOURCE/tests/packaging/fixed_sizes.txt" sizes.txt ||
  fail "a struct that callers hold in arrays or nest in others changed its size"

while read -r type; do
  sed -i "s/^} $type;\$/  uint64_t kiln_later; } $type;/" "$later"/include/kiln/*.h
done <growable
configure "$later" "$WORK/build" -DKILN_CLI=OFF -DKILN_TESTS=OFF \
  -DKILN_SAMPLES=OFF -DKILN_XXHASH_INCLUDE="$XXHASH" -DCMAKE_BUILD_TYPE=Debug
build "$WORK/build" --target kiln -- -j"$(nproc)"

run() { # run NAME HEADERS LIBRARY FLAG...
  local name=$1 headers=$2 library=$3
  shift 3
  # shellcheck disable=SC2086 # flags are words
  $CC -std=c11 -Wall -Wextra -Werror ${SANITIZE:+-fsanitize=$SANITIZE} "$@" \
    -I "$headers/include" "$SOURCE/tests/packaging/consumer.c" -o "$name" \
    -L "${library%/*}" -lkiln -Wl,-rpath,"${library%/*}" || fail "compile $name"
  "./$name" "$FAKE_DRIVER" "$WORK/cache" ||
    fail "a program that was compiled against $name"
}
run older_headers "$SOURCE" "$WORK/build/libkiln.so"
run newer_headers "$later" "$SHARED" -DLATER
run same_headers "$SOURCE" "$SHARED"
echo "$(wc -l <growable) structs may grow, $(wc -l <fixed) may not"

#!/usr/bin/env bash
# Tests the kernel sources that are embedded in the library: a rebuild must notice
# sources and headers that were changed, added or removed. Only the object file with
# the sources is built, which each library contains as a whole.
# shellcheck source=tests/packaging/common.sh
. "${0%/*}/common.sh"

tree=$WORK/tree
mkdir "$tree"
cp -R "$SOURCE"/CMakeLists.txt "$SOURCE"/include "$SOURCE"/runtime \
  "$SOURCE"/kernels_src "$tree"
configure "$tree" "$WORK/build" -DKILN_CLI=OFF -DKILN_TESTS=OFF \
  -DKILN_SAMPLES=OFF -DKILN_XXHASH_INCLUDE="$XXHASH"

# Builds the object file and checks that it contains the text $1, or, if $2 is "!",
# that it does not.
check() {
  local object
  build "$WORK/build" --target kiln_programs
  object=$(find "$WORK/build" -path '*kiln_programs.dir*' -name 'embedded.c.o')
  [ -s "$object" ] || fail "no object file of embedded.c"
  if grep -qaF -- "$1" "$object"; then
    [ -z "${2-}" ] || fail "the library still holds: $1"
  else
    [ -n "${2-}" ] || fail "the library lacks: $1"
  fi
}

program=$(find "$tree/kernels_src" -maxdepth 1 -name '*.cu' | sort | head -n 1)
header=$(find "$tree/kernels_src/kiln" -name '*.cuh' | sort | head -n 1)
[ -n "$program$header" ] || fail "no kernel sources"

check "int a_program_that_changed;" !
echo "int a_program_that_changed;" >>"$program"
check "int a_program_that_changed;"
echo "int a_header_that_changed;" >>"$header"
check "int a_header_that_changed;"
echo "int a_new_program;" >"$tree/kernels_src/new_one.cu"
check "int a_new_program;"
rm "$tree/kernels_src/new_one.cu"
check "int a_new_program;" !

# Comments are not embedded. String literals stay unchanged, and each line keeps its
# number.
cat >>"$program" <<'END'
const char *a_text = "a \"text\" // that stays"; // a comment that goes
/* "Another", of
 * two lines; [with] all; that 'it's to hold */ int a_line;
char a_quote = '"'; /* one more */ char a_slash = '/'; // and "one
END
check 'const char *a_text = "a \"text\" // that stays";'
check "char a_quote = '\"';  char a_slash = '/';"
check 'a comment that goes' !
check 'Another' !
check 'one more' !
check 'and "one' !
embedded=$(grep -o 0x0a "$WORK/build/gen/embedded.c" | wc -l)
written=$(find "$tree/kernels_src" "$WORK/build/gen/kiln" -name '*.cu*' \
  ! -name 'new_one.*' -exec cat {} + | wc -l)
[ "$embedded" -eq "$written" ] ||
  fail "$embedded lines are embedded of the $written that the sources have"

# If no source changed, the embedded sources are not generated again.
before=$(stat -c %Y%z "$WORK/build/gen/embedded.c")
check "int a_header_that_changed;"
[ "$before" = "$(stat -c %Y%z "$WORK/build/gen/embedded.c")" ] ||
  fail "sources are embedded again although none changed"

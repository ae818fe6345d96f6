#!/usr/bin/env bash
# Tests that every public header compiles strictly as C11 and as C++11 to C++20:
# alone, included twice, before all other headers, and before and after cuda.h if it
# is installed. So each pair of headers is compiled in both orders. No two headers may
# declare the same name.
# shellcheck source=tests/packaging/common.sh
. "${0%/*}/common.sh"

cd "$WORK" || exit 1
include=$SOURCE/include
c_flags="-std=c11 -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes"

# compile NAME COMMAND LINE...: the lines as a C file, or C++ where NAME ends so.
compile() {
  local file=$1 command=$2
  shift 2
  printf '%s\n' "$@" >"$file"
  # shellcheck disable=SC2086 # flags are words
  $command -pedantic-errors -Werror -I "$include" -fsyntax-only "$file" ||
    fail "$command: $*"
}

headers=()
for path in "$include"/kiln/*.h; do
  headers+=("${path##*/}")
done
[ ${#headers[@]} -ge 10 ] || fail "only ${#headers[@]} headers"
all=("${headers[@]/#/#include <kiln/}")
all=("${all[@]/%/>}")

# C accepts a second `typedef struct x x;`, also where the first header defined
# another struct x. So the compiler alone cannot find two types of one name.
declared() { # "NAME HEADER" for each type, enumerator and macro of a header
  sed -nE -e 's/^typedef (struct|enum) ([a-z0-9_]+).*/\2/p' \
    -e 's/^\} ([a-z0-9_]+);.*/\1/p' -e 's/^#define ([A-Z][A-Z0-9_]+).*/\1/p' \
    -e 's/^  (KILN_[A-Z0-9_]+)( =.*|,.*)?$/\1/p' "$include/kiln/$1" |
    sort -u | sed "s/\$/ $1/"
}
for header in "${headers[@]}"; do declared "$header"; done | sort >names
[ "$(wc -l <names)" -ge 100 ] || fail "found only few names"
twice=$(awk '{ print $1 }' names | uniq -d)
[ -z "$twice" ] || fail "declared by two headers: $(grep -wF "$twice" names)"

each() { # each HEADER: alone, and before all other headers
  local a="#include <kiln/$1>" b
  compile "$1.c" "$CC $c_flags" "$a" "$a" 'typedef int more;'
  for standard in ${CXX:+c++11 c++17 c++20}; do
    compile "$1.cc" "$CXX -std=$standard -Wall -Wextra -Wshadow" "$a" "$a"
  done
  compile "$1.c" "$CC $c_flags" "$a" "${all[@]}" 'typedef int more;'
  [ -z "${CXX:-}" ] ||
    compile "$1.cc" "$CXX -std=c++17 -Wall -Wextra" "$a" "${all[@]}"
  [ -n "${CUDA:-}" ] || return 0
  for b in "$a|#include <cuda.h>" "#include <cuda.h>|$a"; do
    compile "$1.c" "$CC $c_flags -isystem $CUDA" "${b%|*}" "${b#*|}"
    [ -z "${CXX:-}" ] ||
      compile "$1.cc" "$CXX -std=c++17 -isystem $CUDA" "${b%|*}" "${b#*|}"
  done
}

# Test one header per core at the same time. If any header fails, the test fails.
pids=()
cores=$(nproc)
for ((k = 0; k < cores; k++)); do
  (for ((i = k; i < ${#headers[@]}; i += cores)); do each "${headers[i]}"; done) &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done

# Compile a program that uses macros and wrappers: launches with and without
# arguments, and the address of a wrapper.
for compiler in "$CC" gcc clang; do
  command -v "$compiler" >/dev/null || continue
  # shellcheck disable=SC2086 # flags are words
  $compiler $c_flags -pedantic-errors -Werror -I "$include" -c \
    "$SOURCE/tests/packaging/use.c" -o use.o || fail "use from C: $compiler"
done
nm use.o | grep -q ' U kiln_launch_sized$' || fail "the wrapper is not inline"

# The example in kiln.h must be a complete program.
sed -n '/^ \*   #include <kiln/,/^ \*   }$/s/^ \*   //p' "$include/kiln/kiln.h" \
  >program.c
grep -q '^int main' program.c || fail "kiln.h shows no program"
compile program.c "$CC $c_flags -Wno-missing-prototypes" "$(cat program.c)"

[ -n "${CXX:-}" ] || { echo "no C++ compiler: C only" && exit 0; }
# Compile the macros and wrappers as C++ too, and kiln.hpp, which is for C++ only.
for compiler in "$CXX" g++ clang++; do
  command -v "$compiler" >/dev/null || continue
  for standard in c++11 c++17 c++20; do
    $compiler -std=$standard -Wall -Wextra -Wshadow -Wconversion -Werror \
      -pedantic-errors -I "$include" -c "$SOURCE/tests/packaging/use.cc" \
      -o use.o || fail "use from C++: $compiler -std=$standard"
  done
  $compiler -std=c++11 -fno-exceptions -Wall -Werror -I "$include" \
    -fsyntax-only -x c++ "$include/kiln/kiln.hpp" 2>hpp.txt ||
    fail "kiln.hpp without exceptions: $(cat hpp.txt)"
done
nm use.o | grep -q ' U kiln_launch_sized$' || fail "C++ gives the names C++ linkage"
echo "${#headers[@]} headers, $(wc -l <names) names"

#!/usr/bin/env bash
# Every public header compiles alone, strictly, as C11 and C++11 to 17, and on
# either side of cuda.h where that is installed.
# shellcheck source=tests/packaging/common.sh
. "${0%/*}/common.sh"

cd "$WORK" || exit 1
c_flags="-std=c11 -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes"

# Compiler and flags, then the lines of the file.
compile() {
  local suffix=$1 command=$2
  shift 2
  printf '%s\n' "$@" >"try.$suffix"
  # shellcheck disable=SC2086 # flags are words
  $command -pedantic-errors -Werror -I "$SOURCE/include" -fsyntax-only \
    "try.$suffix" || fail "$command: $*"
}

n=0
for path in "$SOURCE"/include/kiln/*.h; do
  header="#include <kiln/${path##*/}>"
  compile c "$CC $c_flags" "$header" "$header" 'typedef int more;'
  n=$((n + 1))
  [ -n "${CXX:-}" ] || continue
  for standard in c++11 c++17; do
    compile cc "$CXX -std=$standard -Wall -Wextra -Wshadow" "$header" "$header"
  done
done
[ $n -ge 10 ] || fail "only $n headers"

if [ -n "${CUDA:-}" ]; then
  for path in "$SOURCE"/include/kiln/*.h; do
    header="#include <kiln/${path##*/}>"
    for lines in "$header|#include <cuda.h>" "#include <cuda.h>|$header"; do
      compile c "$CC $c_flags -isystem $CUDA" "${lines%|*}" "${lines#*|}"
      [ -n "${CXX:-}" ] || continue
      compile cc "$CXX -std=c++17 -isystem $CUDA" "${lines%|*}" "${lines#*|}"
    done
  done
fi

[ -n "${CXX:-}" ] || { echo "no C++ compiler: C only" && exit 0; }
# The macros are used as C++, and the names link as C.
cat >use.cc <<'END'
#include <kiln/kiln.h>
kiln_status launch(kiln_kernel *kernel, float a, CUdeviceptr x)
{
  kiln_launch_config config = kiln_launch_1d(1000, 256);
  return KILN_LAUNCH(kernel, &config, KILN_ARG(a), KILN_ARG(x));
}
END
$CXX -std=c++11 -Wall -Wextra -Werror -pedantic-errors -I "$SOURCE/include" \
  -c use.cc -o use.o || fail "use from C++"
nm use.o | grep -q ' U kiln_launch$' || fail "C++ gives the names C++ linkage"
echo "$n headers"

#!/usr/bin/env bash
# Builds a program that uses Kiln in the way that $HOW names, and runs it without a
# driver and then with the GPU of this machine, if it has one.
# shellcheck source=tests/packaging/common.sh
. "${0%/*}/common.sh"

prefix=${PREFIX:?}
sanitizer=()
[ -z "${SANITIZE:-}" ] || sanitizer=("-fsanitize=$SANITIZE")
program=$WORK/build/embed

with_cmake() {
  configure "$SOURCE/samples/embed" "$WORK/build" \
    -DCMAKE_C_FLAGS="${sanitizer[*]-}" -DCMAKE_C_COMPILER_LAUNCHER= "$@"
  build "$WORK/build"
}

with_pkgconfig() {
  local file
  command -v pkg-config >/dev/null || skip "pkg-config is not installed"
  file=$(find "$prefix" -name kiln.pc)
  [ -n "$file" ] || fail "no kiln.pc under $prefix"
  PKG_CONFIG_PATH=${file%/*}
  export PKG_CONFIG_PATH
  mkdir -p "$WORK/build"
  # shellcheck disable=SC2046 # flags are words
  "$CC" -std=c11 -Wall -Wextra -Werror ${sanitizer[@]+"${sanitizer[@]}"} \
    "$SOURCE/samples/embed/main.c" -o "$program" $(pkg-config --cflags kiln) "$@" ||
    fail "compile with $(pkg-config --cflags --libs kiln)"
}

pc_libs() {
  local file
  file=$(find "$1" -name kiln.pc)
  PKG_CONFIG_PATH=${file%/*} pkg-config "${@:2}" --libs kiln
}

case $HOW in
subdirectory)
  # without optimisation, since compiling Kiln again takes most of the test's time
  with_cmake -DKILN_SOURCE="$SOURCE" -DKILN_SANITIZE="${SANITIZE:-}" \
    -DCMAKE_BUILD_TYPE=Debug
  # Kiln's tests and samples must not be built in the project that embeds it.
  [ ! -e "$WORK/build/kiln/tests" ] || fail "the consumer got our tests"
  [ ! -e "$WORK/build/kiln/samples" ] || fail "the consumer got our samples"
  ;;
package) with_cmake -DCMAKE_PREFIX_PATH="$prefix" ;;
package_static) with_cmake -DCMAKE_PREFIX_PATH="$prefix" -DEMBED_STATIC=ON ;;
pkgconfig)
  # shellcheck disable=SC2046
  with_pkgconfig $(pc_libs "$prefix") \
    -Wl,-rpath,"$(dirname "$(find "$prefix" -name libkiln.so)")"
  ;;
pkgconfig_static)
  # shellcheck disable=SC2046
  with_pkgconfig \
    $(pc_libs "$prefix" --static | sed 's/-lkiln/-l:libkiln.a/')
  ;;
moved)
  # An installed tree may be moved to another folder.
  cp -a "$prefix" "$WORK/elsewhere"
  with_cmake -DCMAKE_PREFIX_PATH="$WORK/elsewhere" \
    -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF
  grep -q "$WORK/elsewhere" "$WORK/build/CMakeCache.txt" ||
    fail "the moved package was not the one found"
  case $(pc_libs "$WORK/elsewhere") in
  *"$WORK/elsewhere"*) ;;
  *) fail "kiln.pc still names its old place" ;;
  esac
  ;;
*) fail "HOW=$HOW" ;;
esac

case $HOW in
*static)
  if ldd "$program" | grep libkiln; then
    fail "linked to the shared library"
  fi
  ;;
*) ldd "$program" | grep -q libkiln || fail "not linked to the shared library" ;;
esac

export KILN_CACHE_DIR=$WORK/cache
# Run the program as on a machine without a driver, then as on this machine.
text=$(KILN_DRIVER=/nonexistent/libcuda.so.1 "$program") ||
  fail "exit status $? without a driver"
echo "$text"
case $text in
*"no GPU result: "*/nonexistent/libcuda.so.1*"next step: "?*) ;;
*) fail "says nothing sensible without a driver" ;;
esac
text=$("$program") || fail "exit status $?"
echo "$text"
case $text in
"1 4 9 16" | *"no GPU result: "?*"next step: "?*) ;;
*) fail "neither a result nor a reason" ;;
esac

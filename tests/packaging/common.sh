#!/usr/bin/env bash
# Functions that the packaging tests share. The tests source this file. CTest sets
# SOURCE and WORK.
set -eu
export LC_ALL=C
rm -rf "${WORK:?}"
mkdir -p "$WORK"

fail() {
  echo "FAILED: $*"
  exit 1
}

skip() {
  echo "skipped: $*"
  exit 77
}

# Configures the project in $1 in the build folder $2. Further arguments are options.
# Debug builds are those without optimisation; without debugging information, too, they
# are made sooner.
configure() {
  local from=$1 to=$2
  shift 2
  "$CMAKE" -S "$from" -B "$to" -G "$GENERATOR" -DCMAKE_C_COMPILER="$CC" \
    -DCMAKE_C_COMPILER_LAUNCHER="${LAUNCHER:-}" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_FLAGS_DEBUG=-O0 \
    "$@" >"$WORK/configure.txt" 2>&1 ||
    { cat "$WORK/configure.txt" && fail "configure $from"; }
}

build() {
  "$CMAKE" --build "$@" >"$WORK/build.txt" 2>&1 ||
    { tail -n 60 "$WORK/build.txt" && fail "build $1"; }
}

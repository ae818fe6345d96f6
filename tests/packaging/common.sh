#!/usr/bin/env bash
# What the packaging tests share; sourced. SOURCE and WORK come from CTest.
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

# Project in $1 -> build folder $2; the rest are options.
configure() {
  local from=$1 to=$2
  shift 2
  "$CMAKE" -S "$from" -B "$to" -G "$GENERATOR" -DCMAKE_C_COMPILER="$CC" \
    -DCMAKE_C_COMPILER_LAUNCHER="${LAUNCHER:-}" -DCMAKE_BUILD_TYPE=Release \
    "$@" >"$WORK/configure.txt" 2>&1 ||
    { cat "$WORK/configure.txt" && fail "configure $from"; }
}

build() {
  "$CMAKE" --build "$@" >"$WORK/build.txt" 2>&1 ||
    { tail -n 60 "$WORK/build.txt" && fail "build $1"; }
}

#!/usr/bin/env bash
# Tests that `kiln exec` and `kiln profile` find their libraries in every tree that is built as the
# README says: the default build and the build of samples/run.sh must make them.
# The test reads the dependencies that CMake has written for make, and builds nothing.
# shellcheck source=tests/packaging/common.sh
. "${0%/*}/common.sh"

# Other generators write other files.
export GENERATOR="Unix Makefiles"
command -v make >/dev/null || skip "make is not installed"
configure "$SOURCE" "$WORK/build" -DKILN_TESTS=OFF -DKILN_CPU_ISAS=base \
  -DKILN_XXHASH_INCLUDE="$XXHASH"

# made_by TARGET: the outputs of all links that the build of a target includes.
made_by() {
  local target=$1
  awk -v start="$target" '
    /^[^#\t ][^:]*: [^ ]+$/ { sub(":", "", $1); edges[$1] = edges[$1] " " $2 }
    END {
      for (from in edges)
        if (from == start || from ~ "/" start "\\.dir/all$") todo[++n] = from
      for (i = 1; i <= n; i++) {
        k = split(edges[todo[i]], next_to, " ")
        for (j = 1; j <= k; j++)
          if (!(next_to[j] in seen)) { seen[next_to[j]]; todo[++n] = next_to[j] }
      }
      for (dir in seen) print dir
    }' "$WORK/build/CMakeFiles/Makefile2" |
    while read -r rule; do
      [ ! -f "$WORK/build/${rule%/all}/link.txt" ] || cat "$WORK/build/${rule%/all}/link.txt"
    done | sed -n 's/.* -o \([^ ]*\).*/\1/p'
}

for target in all kiln_samples; do
  made_by $target >"$WORK/$target.txt"
  for library in libkiln_exec.so libkiln_profile.so libcuda.so.1 libnvrtc.so.11.2 \
    libnvrtc.so.12 libnvrtc.so.13 libnvJitLink.so.12 libnvJitLink.so.13 libcudart.so.11.0 \
    libcudart.so.12 libcudart.so.13 libnvidia-ml.so.1; do
    grep -q "/$library\$" "$WORK/$target.txt" ||
      fail "the build of $target does not make $library"
  done
done

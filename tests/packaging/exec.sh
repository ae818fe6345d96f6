#!/usr/bin/env bash
# Tests that `kiln exec` and `kiln profile` find their libraries in every tree that is built as the
# README says: the default build and the build of samples/run.sh must make them.
# The test only lists what the builds would make, which takes a second.
# shellcheck source=tests/packaging/common.sh
. "${0%/*}/common.sh"

# Other generators list nothing before they have looked for new files.
export GENERATOR="Unix Makefiles"
command -v make >/dev/null || skip "make is not installed"
configure "$SOURCE" "$WORK/build" -DKILN_TESTS=OFF -DKILN_CPU_ISAS=base \
  -DKILN_XXHASH_INCLUDE="$XXHASH"
for target in all kiln_samples; do
  # make omits targets that need generated files and continues without them.
  MAKEFLAGS=k "$CMAKE" --build "$WORK/build" --target $target -- -n \
    >"$WORK/$target.txt" 2>&1 || true
  for library in libkiln_exec.so libkiln_profile.so libnvrtc.so.11.2 libnvrtc.so.12 \
    libnvrtc.so.13 libnvJitLink.so.12 libnvJitLink.so.13 libcudart.so.11.0 libcudart.so.12 \
    libcudart.so.13 libnvidia-ml.so.1; do
    grep -q "Linking C shared .*$library" "$WORK/$target.txt" ||
      fail "the build of $target does not make $library"
  done
done

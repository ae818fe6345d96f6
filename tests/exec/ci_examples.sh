#!/usr/bin/env bash
# ci_examples.sh -- runs the examples of samples/ci under kiln exec: the CTest
# project where nvcc exists, and the pytest file where Python has Numba for CUDA
# and pytest. KILN_TEST_PYTHON names the Python; the default is python3.
#
# Without KILN_TEST_THOROUGH, it only compares the page with the files, since
# CMake alone takes several seconds to examine nvcc.
#
# usage: ci_examples.sh KILN SAMPLES
# Exits with 77 if neither example can run.
set -euo pipefail
kiln=$1
samples=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ran=0

fail() {
  echo "ci_examples.sh: $1" >&2
  exit 1
}

# Fails unless both reports exist and have no finding.
no_findings() {
  grep -q 'failures="0"' "$1.xml" || fail "$1.xml has failures"
  grep -q '"version":.*"2.1.0"' "$1.sarif" || fail "$1.sarif is no SARIF file"
  if grep -q '"ruleId"' "$1.sarif"; then fail "$1.sarif has results"; fi
}

# shellcheck disable=SC2016 # backticks of Markdown
page=$(sed -n '/^```cmake$/,/^```$/p' "$samples/README.md" | sed '1d;$d')
[ "$page" = "$(cat "$samples/ctest/CMakeLists.txt")" ] ||
  fail "README.md does not show ctest/CMakeLists.txt"
[ -n "${KILN_TEST_THOROUGH:-}" ] || exit 0

nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
if [ -n "$nvcc" ] && cmake -S "$samples/ctest" -B "$folder/ctest" \
  -DKILN="$kiln" -DCMAKE_CUDA_COMPILER="$nvcc" >"$folder/log" 2>&1; then
  cmake --build "$folder/ctest" >"$folder/log" || fail "$(cat "$folder/log")"
  ctest --test-dir "$folder/ctest" --output-on-failure >"$folder/log" ||
    fail "$(cat "$folder/log")"
  no_findings "$folder/ctest/sums"
  grep -q 'name="block_sums"' "$folder/ctest/sums.xml" || fail "no kernel"
  ran=1
fi

python=${KILN_TEST_PYTHON:-python3}
if "$python" -c 'import numba.cuda, pytest' 2>/dev/null; then
  cd "$folder"
  "$kiln" exec --check all --report sums.xml --report sums.sarif -- \
    "$python" -m pytest -p no:cacheprovider "$samples/pytest/test_sums.py" \
    >log 2>&1 || fail "$(cat log)"
  grep -q '4 passed' log || fail "$(cat log)"
  grep -q '0 findings in 4 launches of 1 kernel' log || fail "$(cat log)"
  no_findings "$folder/sums"
  grep -q 'name="test_sums::block_sums"' sums.xml || fail "no kernel"
  ran=1
fi

[ "$ran" = 1 ] || exit 77

#!/usr/bin/env bash
# numba_suite.sh KILN FOLDER -- runs the test suite of Numba-CUDA under `kiln exec`.
#
# FOLDER receives a virtual environment with the newest numba-cuda, unless it has one, and
# a log per test module. Each module runs in a process of its own. A test that fails runs
# once more by itself, since an error of a kernel breaks the context for all later tests of
# the process, on a GPU as well. Prints the tests that fail by themselves and the totals.
# NUMBA_CUDA selects a version (numba-cuda[cu13]==0.30.4); MODULES selects modules by a
# pattern (cudadrv.test_linker). Fails if less than 98 % of the tests that ran pass. It
# needs a network at the first run, and about 30 minutes of one core.
set -eu
[ $# -eq 2 ] || {
  echo "usage: $0 KILN FOLDER" >&2
  exit 2
}
kiln=$(realpath "$1")
mkdir -p "$2/logs"
folder=$(realpath "$2")
python=$folder/venv/bin/python
if [ ! -x "$python" ]; then
  python3 -m venv "$folder/venv"
  "$folder/venv/bin/pip" install --quiet "${NUMBA_CUDA:-numba-cuda[cu13]}" numba pytest \
    psutil cffi filecheck ml_dtypes
fi
"$folder/venv/bin/pip" list 2>/dev/null | grep -Ei '^(numba|numba-cuda|cuda-core|cuda-bindings|nvidia-nvjitlink|nvidia-cuda-nvrtc) '
tests=$("$python" -c 'import importlib.util as u; print(u.find_spec("numba_cuda").submodule_search_locations[0])')/numba/cuda/tests

ran=0 bad=0 skipped=0
run_tests() { # run_tests NAME LOG: the tests of a module, class or method
  (cd "$folder" && timeout -k 5 900 "$kiln" exec -- "$python" -m numba.runtests -v \
    "numba.cuda.tests.$1") >"$2" 2>&1
}
number() { # number PATTERN FILE: the number at the end of the last match, or 0
  grep -aoE "$1[0-9]+" "$2" | tail -1 | grep -oE '[0-9]+' || echo 0
}
while read -r file; do
  module=${file%.py}
  module=${module//\//.}
  [[ $module =~ ${MODULES:-.} ]] || continue
  log=$folder/logs/$module.log
  status=0
  run_tests "$module" "$log" || status=$?
  ran=$((ran + $(number '^Ran ' "$log")))
  skipped=$((skipped + $(number 'skipped=' "$log")))
  if [ "$status" -ge 124 ]; then
    echo "$module ended with status $status"
    bad=$((bad + 1))
  fi
  while read -r test; do
    [ -n "$test" ] || continue
    if run_tests "$test" "$log.one"; then
      continue
    elif grep -aq '^Skipped: ' "$log.one"; then # by pytest.skip, which unittest reports so
      skipped=$((skipped + 1))
    else
      echo "$test fails"
      bad=$((bad + 1))
    fi
  done < <(grep -aE '^(ERROR|FAIL): ' "$log" | sed -nE 's/.*\(numba\.cuda\.tests\.([^)]*)\).*/\1/p' |
    sort -u)
done < <(cd "$tests" && find . -name 'test_*.py' -size +0 | sed 's|^\./||' | sort)
ran=$((ran - skipped))
echo "$((ran - bad)) of $ran tests pass, $skipped are skipped"
[ $((bad * 50)) -le "$ran" ]

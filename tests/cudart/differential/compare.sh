#!/usr/bin/env bash
# Runs the small programs and compares what each call returned with the recording of
# NVIDIA's library on an H200.
#
# usage: compare.sh RUNTIME_CASES LIBRARY RECORDING
# Exit status 1 if a line differs.
set -euo pipefail

got=$(mktemp)
trap 'rm -f "$got"' EXIT
# The program exits with 1 if a call differs from the documentation. Notes about this
# follow two spaces and a bracket.
"$1" "$2" >"$got" || true
sed -i 's/  \[.*//' "$got"
if ! diff -U2 --label recorded --label here "$3" "$got"; then
  echo "compare.sh: lines differ from the recording in $3"
  exit 1
fi
tail -n 1 "$got"

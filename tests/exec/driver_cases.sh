#!/usr/bin/env bash
# driver_cases.sh KILN PROGRAM -- compares the output of driver_cases with that of an H200.
set -eu
[ $# -eq 2 ] || {
  echo "usage: $0 KILN PROGRAM" >&2
  exit 2
}
"$1" exec --device cpu:9.0 -- "$2" 2>/dev/null | diff "$(dirname "$0")/driver_cases.txt" -

#!/usr/bin/env bash
# What bugs.sh and counters.sh read, without a GPU: texts in the formats of
# compute-sanitizer and ncu in recorded/, and what has to be read out of them.
set -u
cd "$(dirname "$0")" || exit 1
failed=0

# expect NAME COMMAND...: its output is recorded/NAME.expected.
expect() {
  local name=$1
  shift
  if "$@" | diff -u "recorded/$name.expected" - >&2; then
    echo "$name: as it should be"
  else
    failed=1
  fi
}

expect memcheck awk -v file=past_end.cu -f sanitizer.awk recorded/memcheck.txt
expect racecheck awk -v file=reused_buffer.cu -f sanitizer.awk \
  recorded/racecheck.txt
expect initcheck awk -v file=fresh_memory.cu -f sanitizer.awk \
  recorded/initcheck.txt
expect synccheck awk -v file=half_block.cu -f sanitizer.awk \
  recorded/synccheck.txt
expect findings awk -f findings.awk recorded/findings.txt
expect ncu awk -f ncu.awk recorded/ncu.txt
expect kiln_json awk -f kiln_json.awk recorded/kiln.json
expect compare awk -v kernel=saxpy -f compare.awk recorded/ncu.expected \
  recorded/kiln_json.expected
expect explained awk -v kernel=saxpy -f compare.awk recorded/ncu.expected \
  recorded/kiln_json.expected recorded/explained.tsv
exit $failed

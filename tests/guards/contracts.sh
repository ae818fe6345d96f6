#!/usr/bin/env bash
# Every public function has a contract: a comment /** ... */ directly before its
# declaration, with its statuses if it returns one. Prints the number of functions.
set -eu
export LC_ALL=C

awk '
  FNR == 1 { doc = ""; inside = 0; ended = -1 }
  /^\/\*\*/ { inside = 1; doc = "" }
  inside { doc = doc $0 "\n" }
  inside && /\*\// { inside = 0; ended = FNR }
  /^(KILN_API|KILN_INLINE|static inline) / {
    start = FNR
    text = $0
    while (text !~ /\(/ && (getline line) > 0) text = text " " line
    name = text
    sub(/ *\(.*/, "", name)
    sub(/.*[ *]/, "", name)
    if (name ~ /^kiln__/) next
    n++
    if (ended != start - 1) {
      print FILENAME ": " name " has no contract"; bad = 1
    } else if (text ~ /kiln_status +kiln/ && doc !~ /@retval|statuses in ops\.h/) {
      print FILENAME ": the contract of " name " lists no statuses"; bad = 1
    }
  }
  END { print n " public functions"; exit bad || n < 150 }
' "$SOURCE"/include/kiln/*.h

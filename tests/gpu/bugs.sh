#!/usr/bin/env bash
# The planted bugs of tests/bugs under compute-sanitizer on the GPU and under
# `kiln check` on the CPU device, against the mark in each file.
#   tests/gpu/bugs.sh KILN OUT
# Needs compute-sanitizer in PATH. Logs go to OUT. Prints a table; the last line
# counts. Exit status 1 if the two disagree where both look.
#
# What compute-sanitizer does not look at, by its manual: racecheck sees shared
# memory only, initcheck global memory only, synccheck barriers and not shuffles
# and votes. Such a row says so and is not counted. A run that does not end is a
# deadlock.
set -u
cd "$(dirname "$0")/../.." || exit 2
kiln=$1 out=$2/bugs
awks=tests/gpu
jobs=8     # at once: starting a process takes longer than its kernel
patience=20 # seconds until a run counts as endless

mkdir -p "$out"

tool_of() {
  case $1 in
  memory) echo memcheck ;;
  race) echo racecheck ;;
  init) echo initcheck ;;
  sync) echo synccheck ;;
  esac
}

# One file under one tool: its findings in OUT/NAME.TOOL.found.
sanitize() {
  local file=$1 tool=$2 log rc=0 base
  base=$(basename "$file")
  log=$out/${base%.cu}.$tool
  timeout -k 3 $patience compute-sanitizer --tool "$tool" \
    "$kiln" run "$file" --device gpu --lineinfo --print 0 \
    >"$log.log" 2>&1 </dev/null || rc=$?
  awk -v file="$base" -f $awks/sanitizer.awk "$log.log" >"$log.found"
  case $rc in
  124 | 137) printf 'deadlock\t0\n' >>"$log.found" ;;
  esac
}

# One file under the checks of the CPU device.
check() {
  local file=$1 checks=$2 log
  log=$out/$(basename "$file" .cu).kiln
  timeout -k 3 60 "$kiln" check --device cpu --check "$checks" "$file" \
    >"$log.log" 2>&1 </dev/null
  awk -f $awks/findings.awk "$log.log" >"$log.found"
}

# Why the tool cannot see it, or nothing: from what `kiln check` says of it.
unseen() {
  local tool=$1 kiln_found=$2 text=$3
  case $tool in
  racecheck)
    grep -q $'\tshared$' "$kiln_found" || echo "racecheck: shared memory only"
    ;;
  initcheck)
    grep -q $'\tglobal$' "$kiln_found" || echo "initcheck: global memory only"
    ;;
  synccheck)
    case $text in
    *__shfl* | *__ballot*) echo "synccheck: barriers only" ;;
    esac
    ;;
  esac
}

# What a found-file holds, "KIND at LINE, ...".
shown() {
  local text
  text=$(awk -F '\t' '{ printf "%s%s%s", n++ ? ", " : "", $1,
                         ($2 > 0 ? " at " $2 : "") }' "$1")
  echo "${text:-nothing}"
}

# Is the marked bug in a found-file? A deadlock has no line of its own there, and
# a barrier that it hangs in may be found instead.
has() {
  local kind=$1 line=$2 found=$3
  case $kind in
  deadlock) grep -qE '^(deadlock|divergent (barrier|warp))' "$found" ;;
  *) awk -F '\t' -v kind="$kind" -v line="$line" '
      $2 == line && ($1 == kind || $1 == "divergent warp") { good = 1 }
      END { exit !good }' "$found" ;;
  esac
}

for file in tests/bugs/*/*.cu; do
  folder=$(basename "$(dirname "$file")")
  if [ "$folder" = clean ]; then
    tools=(memcheck racecheck initcheck synccheck)
    check "$file" all &
  else
    tools=("$(tool_of "$folder")")
    check "$file" "$folder" &
  fi
  for tool in "${tools[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge $jobs ]; do
      wait -n
    done
    sanitize "$file" "$tool" &
  done
done
wait

agree=0
counted=0
skipped=0
row() { printf '%-26s %-24s %-36s %-36s %-5s %s\n' "$@"; }
row file expected compute-sanitizer "kiln check" agree why
for file in tests/bugs/*/*.cu; do
  folder=$(basename "$(dirname "$file")")
  name=$(basename "$file" .cu)
  mark=$(grep -n '// BUG ' "$file" | head -n 1)
  line=${mark%%:*}
  kind=${mark##*// BUG }
  why=
  if [ -z "$mark" ]; then
    cat "$out/$name".{memcheck,racecheck,initcheck,synccheck}.found \
      >"$out/$name.all.found"
    tool=all
    expected=nothing
    good=yes
    [ ! -s "$out/$name.all.found" ] && [ ! -s "$out/$name.kiln.found" ] ||
      good=NO
  else
    tool=$(tool_of "$folder")
    expected="$kind at $line"
    good=NO
    if has "$kind" "$line" "$out/$name.kiln.found"; then
      if has "$kind" "$line" "$out/$name.$tool.found"; then
        good=yes
      elif [ ! -s "$out/$name.$tool.found" ]; then
        why=$(unseen "$tool" "$out/$name.kiln.found" "$mark")
        [ -z "$why" ] || good=-
      fi
    fi
  fi
  row "$folder/$name" "$expected" "$(shown "$out/$name.$tool.found")" \
    "$(shown "$out/$name.kiln.found")" "$good" "$why"
  case $good in
  yes) agree=$((agree + 1)) counted=$((counted + 1)) ;;
  NO) counted=$((counted + 1)) ;;
  *) skipped=$((skipped + 1)) ;;
  esac
done
echo "$skipped not looked at by compute-sanitizer"
echo "$agree of $counted agree"
[ "$agree" -eq "$counted" ] && [ "$agree" -gt 0 ]

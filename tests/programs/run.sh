#!/usr/bin/env bash
# run.sh -- compiles the programs of this folder by nvcc with the shared runtime
# library, runs each under `kiln exec`, and prints a table of verdicts and seconds.
#
# usage: run.sh [--build DIR] [--out DIR] [--check] [--thorough] [NAME ...]
#   --build DIR  build folder of Kiln; default: build
#   --out DIR    folder for the programs; default: DIR/programs
#   --check      run under all checks as well
#   --thorough   do nothing unless KILN_TEST_THOROUGH is set
#   NAME         programs to run, without .cu; default: all
#
# A line of a program that starts with "// nvcc:" contains further options of nvcc,
# one with "// exec:" contains options of kiln exec, and one with "// finds:" explains
# true findings. Exits with 77 without nvcc, and with 1 if a program fails.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=build out='' check=0 names=()
while [ $# -gt 0 ]; do
  case $1 in
  --build) build=$2; shift ;;
  --out) out=$2; shift ;;
  --check) check=1 ;;
  --thorough)
    [ -n "${KILN_TEST_THOROUGH:-}" ] || { echo "run.sh: needs KILN_TEST_THOROUGH=1"; exit 77; }
    ;;
  *) names+=("$1") ;;
  esac
  shift
done
out=${out:-$build/programs}
NVCC=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
[ -x "$NVCC" ] || { echo "run.sh: there is no nvcc; set NVCC"; exit 77; }
mkdir -p "$out" || exit 1
if [ ${#names[@]} = 0 ]; then
  for f in "$here"/*.cu; do names+=("$(basename "$f" .cu)"); done
fi

# Prints the options that a program's source asks for.
options() { sed -n "s,^// $1: ,,p" "$here/$2.cu"; }

# Compiles a program unless it is newer than its source.
compile() {
  local -a flags
  [ "$out/$1" -nt "$here/$1.cu" ] && [ "$out/$1" -nt "$here/program.cuh" ] && return
  read -ra flags <<<"$(options nvcc "$1" | tr '\n' ' ')"
  nice "$NVCC" -cudart shared -o "$out/$1" "${flags[@]}" "$here/$1.cu" \
    >"$out/$1.nvcc" 2>&1
}

# Runs a program; prints its verdict and seconds. $2 is a suffix for its log.
attempt() {
  local -a flags
  local start rc log=$out/$1.$2
  read -ra flags <<<"$(options exec "$1" | tr '\n' ' ')"
  start=$(date +%s%N)
  timeout 120 "$build/kiln" exec "${@:3}" "${flags[@]}" -- "$out/$1" >"$log" 2>&1
  rc=$?
  printf '%s|%d.%02d' "$(word "$rc" "$log")" $((($(date +%s%N) - start) / 1000000000)) \
    $((($(date +%s%N) - start) / 10000000 % 100))
}

# Names the outcome of a run.
word() {
  case $1 in
  0) if grep -q '^right$' "$2"; then echo right; else echo silent; fi ;;
  124) echo hang ;;
  13[0-9] | 14[0-9]) echo "signal $(($1 - 128))" ;;
  *) if grep -q '^right$' "$2"; then echo findings; else echo wrong; fi ;;
  esac
}

failed=0 passed=0
for name in "${names[@]}"; do
  if ! compile "$name"; then
    printf '%-24s does not compile: %s\n' "$name" "$(head -1 "$out/$name.nvcc")"
    failed=$((failed + 1))
    continue
  fi
  IFS='|' read -r verdict seconds <<<"$(attempt "$name" log)"
  line=$(printf '%-24s %-10s %6s s' "$name" "$verdict" "$seconds")
  checked=right
  if [ "$check" = 1 ]; then
    IFS='|' read -r checked seconds <<<"$(attempt "$name" checked --check all)"
    line+=$(printf '   checked: %-10s %6s s' "$checked" "$seconds")
    [ "$checked" = findings ] && [ -n "$(options finds "$name")" ] && checked=right
  fi
  if [ "$verdict" = right ] && [ "$checked" = right ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    line+="   $(grep -hvE '^(right|)$' "$out/$name".log "$out/$name".checked 2>/dev/null | head -1)"
  fi
  echo "$line"
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]

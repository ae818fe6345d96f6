#!/usr/bin/env bash
# What the drop-in and the shared library export: all of libcuda's functions and
# the CPU device's own, and nothing else.
set -eu
fail() {
  echo "$*" >&2
  exit 1
}
names() {
  [ -e "$1" ] || fail "no $1"
  "$NM" -D --defined-only "$1" | awk '{ print $NF }' | sed 's/@.*//' | sort -u
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
names "$DROPIN" >"$work/dropin"
names "$SHARED" >"$work/shared"
printf '%s\n' '#define KILN__DRIVER_FN(name, symbol, ...) @symbol;' \
  '#define KILN__ALIAS_FN(symbol, since, name) @symbol;' \
  '#define KILN__MISSING_FN(symbol, since) @symbol;' "#include \"$DEF\"" |
  "$CC" -E -P -x c - | grep -o '@[A-Za-z0-9_]*' | tr -d @ | sort -u >"$work/listed"
[ "$(wc -l <"$work/listed")" -ge 600 ] || fail "few functions are listed"
more=$(comm -13 "$work/dropin" "$work/listed")
[ -z "$more" ] || fail "listed but not exported: $more"
more=$(comm -23 "$work/dropin" "$work/listed" | grep -v '^kiln_cpu_' || true)
[ -z "$more" ] || fail "exported but not listed: $more"
# A reference from a file that is not exported would hide a public function.
grep -o '^KILN_API .*kiln_cpu_[a-z_]*(' "$HEADER" | grep -o 'kiln_cpu_[a-z_]*' |
  cat - <(echo kiln_cpu_configure_sized) | sort -u >"$work/public"
[ "$(wc -l <"$work/public")" -ge 12 ] || fail "few functions are public"
for file in dropin shared; do
  more=$(comm -13 "$work/$file" "$work/public")
  [ -z "$more" ] || fail "$file: public but not exported: $more"
done
more=$(grep -v '^kiln_cpu_' "$work/shared" || true)
[ -z "$more" ] || fail "the shared library exports $more"

# NVIDIA's own list, where a toolkit is: newer ones may have more.
[ -n "${CUDA:-}" ] || exit 0
cuda=$(dirname "$(realpath "$CUDA/cuda.h")")
stub=$cuda/../lib64/stubs/libcuda.so
[ -e "$stub" ] || exit 0
names "$stub" >"$work/stub"
more=$(comm -23 "$work/stub" "$work/listed")
[ -z "$more" ] || ! grep -q 'define CUDA_VERSION 1[0-2]...\|define CUDA_VERSION 13000' \
  "$cuda/cuda.h" || fail "libcuda also has: $more"
echo "$(wc -l <"$work/listed") functions, as in $stub"

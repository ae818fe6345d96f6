#!/usr/bin/env bash
# What the drop-in and the shared library export: all of libcuda's functions and
# the CPU device's own, and nothing else.
set -eu
fail() {
  echo "$*" >&2
  exit 1
}
names() { "$NM" -D --defined-only "$1" | awk '{ print $NF }' | sed 's/@.*//' | sort -u; }

names "$DROPIN" >"${TMPDIR:-/tmp}/exported.$$"
trap 'rm -f "${TMPDIR:-/tmp}"/{exported,listed}.$$' EXIT
sed -n 's/^KILN__EXPORT(\([^,]*\),.*/\1/p' "$DEF" | sort -u \
  >"${TMPDIR:-/tmp}/listed.$$"
[ "$(wc -l <"${TMPDIR:-/tmp}/listed.$$")" -ge 600 ] || fail "few functions are listed"
missing=$(comm -13 "${TMPDIR:-/tmp}/exported.$$" "${TMPDIR:-/tmp}/listed.$$")
[ -z "$missing" ] || fail "listed but not exported: $missing"
more=$(comm -23 "${TMPDIR:-/tmp}/exported.$$" "${TMPDIR:-/tmp}/listed.$$" |
  grep -v '^kiln_cpu_' || true)
[ -z "$more" ] || fail "exported but not listed: $more"
grep -q '^kiln_cpu_configure$' "${TMPDIR:-/tmp}/exported.$$" || fail "no kiln_cpu_configure"
more=$(names "$SHARED" | grep -v '^kiln_cpu_' || true)
[ -z "$more" ] || fail "the shared library exports $more"
if [ -e "$STUB" ] && names "$STUB" | grep -q '^cuCtxCreate_v4$' &&
  ! names "$STUB" | grep -q '_v13010$'; then
  more=$(names "$STUB" | comm -13 "${TMPDIR:-/tmp}/listed.$$" -)
  [ -z "$more" ] || echo "a newer libcuda also has: $more"
fi

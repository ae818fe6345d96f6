#!/usr/bin/env bash
# Tests which functions the libraries export and import, and that they have no state.
# shellcheck source=tests/packaging/common.sh
. "${0%/*}/common.sh"

cd "$WORK" || exit 1
$NM -D --defined-only "$SHARED" | awk '{ print $NF }' | sed 's/@.*//' >exported
[ "$(wc -l <exported)" -ge 50 ] || fail "hardly anything is exported"
if grep -v '^kiln_' exported; then
  fail "exported without kiln_"
fi
if grep '^kiln__' exported; then
  fail "internal names exported"
fi

# The library must export every function that a public header declares. The functions
# of the CPU device are in a separate library.
printf '#include <kiln/kiln.h>\n' >all.c
$CC -std=c11 -E -P "-DKILN_API=KILN_API" -I "$SOURCE/include" all.c | tr '\n' ' ' |
  grep -o 'KILN_API [^;{}(]*(' | sed 's/ *($//; s/.*[ *]//' | sort -u >declared
[ "$(wc -l <declared)" -ge 50 ] || fail "found only few declarations"
sort -u exported >sorted
if comm -23 declared sorted | grep .; then
  fail "declared but not exported"
fi
if comm -13 declared sorted | grep .; then
  fail "exported but not declared"
fi

if ldd "$SHARED" | grep -iE 'cuda|nvrtc|nvjitlink|nvidia|xxhash|cjson'; then
  fail "linked to a library that it should find at run time, or not need"
fi

# The library must never print, exit or abort, and never read the terminal.
forbidden='_*(exit|_exit|_Exit|quick_exit|abort|v?f?printf|v?dprintf|puts|fputs'
forbidden="$forbidden|putchar|fputc|putc|perror|psignal|stdout|stderr|stdin"
forbidden="$forbidden|f?write_unlocked|fwrite|assert_fail|assert|errx?|warnx?"
forbidden="$forbidden|syslog|getenv|setenv|putenv|system|popen|execve?|raise"
forbidden="$forbidden|longjmp|gets|scanf|strtok)(_chk)?"
$NM -D --undefined-only "$SHARED" | awk '{ print $NF }' | sed 's/@.*//' >imported
[ "$(wc -l <imported)" -ge 20 ] || fail "hardly anything is imported"
if grep -xE "$forbidden" imported; then
  fail "these must not be used"
fi
# One file may kill a process: the disassembler that it started and that hangs.
if $NM -A "$STATIC" | grep -E ' U kill$' | grep -v ':disassembler\.c\.o:'; then
  fail "these must not kill processes"
fi
grep -qx 'secure_getenv' imported || fail "the environment is not read safely"

# The library must have no state. The only writable objects are each thread's error
# record and constants that the loader relocates.
$OBJDUMP -t "$STATIC" | sed 's/\.hidden //' |
  awk '/^[0-9a-f]+ [lgu!]/ && !/ d+ +[.*]/ { print $(NF - 2), $NF }' |
  grep -E '^(\.t?data|\.t?bss|\*COM\*)' | grep -vE '^\.data\.rel\.ro' >writable
if grep -vxE '\.tbss(\.record)? record' writable; then
  fail "writable globals"
fi
[ "$(wc -l <writable)" -eq 1 ] || fail "the thread's error record is not found"
echo "$(wc -l <exported) exported, $(wc -l <imported) imported"

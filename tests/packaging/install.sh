#!/usr/bin/env bash
# Tests that an installed tree contains everything that a user needs, and no path of
# the machine that built it. A plug-in that links the static libraries must export
# only its own functions.
# shellcheck source=tests/packaging/common.sh
. "${0%/*}/common.sh"

cd "$WORK" || exit 1
prefix=${PREFIX:?}
sanitizer=${SANITIZE:+-fsanitize=$SANITIZE}
for file in LICENSE README.md CHANGELOG.md samples/README.md kiln.hpp kiln.pc \
  kiln_core.pc kiln_cpu.pc libkiln.a libkiln_cpu.a; do
  found=$(find "$prefix" -path "*/$file" | head -n 1)
  [ -s "$found" ] || fail "$file is not installed"
done

# CMake's targets must not contain the paths of libraries on this machine.
if find "$prefix" -name 'kiln-targets*.cmake' -exec grep -nE '"/|;/|:/[a-z]' {} + | grep -v '_IMPORT_PREFIX'; then
  fail "the package names a path of this machine"
fi

export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name kiln_cpu.pc)")
lib=$(dirname "$(find "$prefix" -name libkiln.a)")
cat >main.c <<'END'
#include <stdio.h>
int plugin_devices(void);
int main(void)
{
  printf("%d device\n", plugin_devices());
  return plugin_devices() != 1;
}
END
flags="-I $(dirname "$(find "$prefix" -path '*/kiln/kiln.h')")/.."
static="$lib/libkiln_cpu.a $lib/libkiln.a"
if command -v pkg-config >/dev/null; then
  # The pkg-config files must suffice for linking the shared and static libraries.
  # shellcheck disable=SC2046,SC2086 # flags are words
  $CC $sanitizer main.c "$SOURCE/tests/packaging/plugin.c" -o shared \
    $(pkg-config --cflags --libs kiln_cpu kiln) -Wl,-rpath,"$lib" ||
    fail "pkg-config --libs kiln_cpu kiln"
  ./shared || fail "the shared libraries see no device"
  static=$(pkg-config --libs --static kiln_cpu |
    sed 's/-lkiln_cpu/-l:libkiln_cpu.a/; s/-lkiln\b/-l:libkiln.a/g')
else
  static="$static -lpthread -ldl -lm $(grep -h '^Libs.private' \
    "$PKG_CONFIG_PATH/kiln_cpu.pc" | grep -o -- '-l\(lz4\|zstd\)')"
fi
# shellcheck disable=SC2086 # flags are words
$CC $sanitizer $flags -shared -fPIC "$SOURCE/tests/packaging/plugin.c" -o plugin.so \
  $static || fail "a plug-in with $static"
# shellcheck disable=SC2086
$CC $sanitizer main.c ./plugin.so -o main || fail "link with the plug-in"
./main || fail "the plug-in fails"
$NM -D --defined-only plugin.so | awk '{ print $NF }' | grep -i kiln &&
  fail "a plug-in exports Kiln's functions"
$NM -D --defined-only plugin.so | grep -q ' plugin_devices$' ||
  fail "the plug-in lost its own function"

#!/usr/bin/env bash
# shellcheck disable=SC2016 # awk programs stand in single quotes
# guards.sh NAME -- checks that the source tree follows one of its rules. Each rule is
# a test of the host tier (guard.NAME), so that violations are found before a review.
#
#   includes    a folder of runtime/ includes only what the floor plan allows
#   cycles      files of different folders do not include each other in a cycle
#   basenames   no two files of runtime/ share a name
#   folders     no folder of runtime/ except cpu/exec has more than 30 files
#   documented  every public function has its contract right before it
#   maps        the files that the READMEs name exist
#   words       the files contain none of the words in retired_words.txt
#   symbols     a layer's objects link with only those of the layers below it
#   sizes       lists functions over 80 lines and files over 1,000; never fails
#
# CMake passes the floor plan: LAYERS and ROOMS list the folders of runtime/ and of
# runtime/cpu/. A folder may include only the folders before it in the list.
set -u
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 1

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# fail_if_any MESSAGE: if standard input is not empty, prints it and fails.
fail_if_any() {
  local found
  found=$(cat)
  if [ -n "$found" ]; then
    printf '%s\n%s\n' "$1" "$found"
    exit 1
  fi
  echo "ok"
}

# Prints two paths for each #include "..." of runtime/: the file and the included file.
include_pairs() {
  find runtime -name '*.[ch]' -o -name '*.def' | sort | xargs awk '
    # normal("a/b/../c") is "a/c".
    function normal(path,   n, i, part, stack, depth, out) {
      n = split(path, part, "/")
      for (i = 1; i <= n; i++) {
        if (part[i] == "..") depth--
        else if (part[i] != ".") stack[++depth] = part[i]
      }
      out = stack[1]
      for (i = 2; i <= depth; i++) out = out "/" stack[i]
      return out
    }
    function exists(path,   line, found) {
      found = (getline line < path) >= 0
      close(path)
      return found
    }
    /^#[ \t]*include[ \t]*"/ {
      split($0, quoted, "\"")
      dir = FILENAME
      sub(/\/[^\/]*$/, "", dir)
      beside = normal(dir "/" quoted[2])
      rooted = normal("runtime/" quoted[2])
      if (exists(beside)) print FILENAME, beside
      else if (exists(rooted)) print FILENAME, rooted # else: generated
    }'
}

# Returns the folder that a path belongs to, such as "ops", "cpu/exec" or "cli".
folder_of='function folder_of(path) {
    sub(/^runtime\//, "", path)
    if (path !~ /^cpu\/[^\/]*\//) { sub(/\/.*/, "", path); return path }
    match(path, /^cpu\/[^\/]*/)
    return substr(path, 1, RLENGTH)
  }'

guard_includes() {
  include_pairs | awk -v layers="$LAYERS" -v rooms="$ROOMS" "$folder_of"'
    BEGIN {
      n = split(layers, layer, " ")
      for (i = 1; i <= n; i++) {
        known[layer[i]] = 1
        for (j = 1; j <= i; j++) may[layer[i], layer[j]] = 1
      }
      m = split(rooms, room, " ")
      for (i = 1; i <= m; i++) {
        known["cpu/" room[i]] = 1
        for (j = 1; j <= i; j++) may["cpu/" room[i], "cpu/" room[j]] = 1
        split("base arch driver", ground, " ")
        for (j in ground) may["cpu/" room[i], ground[j]] = 1
      }
      # The command and the benchmarks are clients of the public headers. What
      # they share is in tool/.
      known["tool"] = known["bench"] = known["cli"] = 1
      may["tool", "tool"] = may["bench", "bench"] = may["cli", "cli"] = 1
      may["bench", "tool"] = may["cli", "tool"] = may["cli", "bench"] = 1
      # Groups of ranks are a library above kiln, on its public headers.
      known["comm"] = may["comm", "comm"] = 1
      # The injected library shares the format of its files with the command.
      known["inject"] = may["inject", "inject"] = may["inject", "tool"] = 1
    }
    {
      from = folder_of($1); to = folder_of($2)
      if (!(from in known)) print $1 ": the floor plan does not name " from
      else if (!((from, to) in may)) print $1 " includes " $2
    }' | sort -u |
    fail_if_any "the floor plan (runtime/README.md) does not allow these:"
}

# Kahn's algorithm repeatedly removes files that include nothing or only removed files.
# The remaining files are in a cycle or include a file that is in a cycle.
guard_cycles() {
  include_pairs | awk '
    $1 != $2 && !(($1, $2) in seen) { seen[$1, $2] = 1; edges++
      from[edges] = $1; to[edges] = $2; alive[edges] = 1; out[$1]++ }
    END {
      do {
        changed = 0
        for (e = 1; e <= edges; e++)
          if (alive[e] && !out[to[e]]) { alive[e] = 0; out[from[e]]--; changed = 1 }
      } while (changed)
      for (e = 1; e <= edges; e++) if (alive[e]) print from[e] " -> " to[e]
    }' | fail_if_any "files that include each other in a ring, or such a file:"
}

guard_basenames() {
  find runtime -type f ! -name README.md ! -name CMakeLists.txt |
    sed 's,.*/,,' | sort | uniq -d |
    fail_if_any "names that several files of runtime/ have:"
}

guard_folders() {
  find runtime -type d ! -path runtime/cpu/exec | while read -r folder; do
    n=$(find "$folder" -maxdepth 1 -type f | wc -l)
    [ "$n" -le 30 ] || echo "$folder: $n files"
  done | fail_if_any "folders with more than 30 files; give them inner ones:"
}

guard_documented() {
  SOURCE=. bash tests/guards/contracts.sh
}

# If a name in backquotes or in a drawing ends like a source file, the tree must have a
# file of this path or name. Capital letters and * are placeholders.
guard_maps() {
  local map system generated
  system='(stdio|stdint|math|assert|mma|cuda|cuda_fp16|xxhash)\.h'
  generated='(embedded|kernel_params)\.[ch]|(generated|params/.*|scan)\.cuh'
  find . -name .git -prune -o -type f -print | grep -vE '^\./(build|\.deps)' |
    sed 's,.*/,,' | sort -u >"$work/files"
  find README.md runtime kernels_src samples tests .github -name '*.md' |
    while read -r map; do
      grep -oE '[A-Za-z0-9_/.*-]+\.(c|h|cu|cuh|def|sh|cmake|hpp)\b' "$map" |
        grep -vE '[A-Z*]|^(main|app|sample)\.c|^k\.cu$|^\.' | sed 's,.*/,,' | sort -u |
        grep -vxFf "$work/files" | grep -vxE "$system|$generated" |
        sed "s,^,$map names a file that does not exist: ,"
    done | fail_if_any "stale names in the maps:"
}

# Each line of retired_words.txt has a pattern, what to write instead, and where the
# pattern is refused (everywhere by default), separated by tabs.
guard_words() {
  local pattern instead where
  grep -v '^#' tests/guards/retired_words.txt |
    while IFS=$'\t' read -r pattern instead where; do
      [ -n "$pattern" ] || continue
      # shellcheck disable=SC2086 # several folders are words
      grep -rnIiE --exclude=retired_words.txt --exclude-dir=golden \
        -- "$pattern" ${where:-include runtime kernels_src samples tests \
        README.md CHANGELOG.md .github .ci CMakeLists.txt} 2>/dev/null |
        sed "s|$| <- write: $instead|"
    done | fail_if_any "retired words (tests/guards/retired_words.txt):"
}

# BUILD is the build folder. The two tables of embedded sources are generated.
guard_symbols() {
  local layer objects=()
  for layer in $LAYERS; do
    mapfile -t -O "${#objects[@]}" objects < <(
      find "$BUILD/CMakeFiles/kiln_layer_$layer.dir" -name '*.o')
    [ ${#objects[@]} -gt 0 ] || echo "$layer: no object files in $BUILD"
    "${CC:-cc}" -shared -o "$work/lib.so" "${objects[@]}" -Wl,-z,defs \
      -lpthread -ldl -lm 2>&1 |
      grep -o 'undefined reference to .*' |
      grep -vE 'kiln_builtin_list|kiln__builtin_headers' |
      sed "s|^|$layer: |"
  done | sort -u |
    fail_if_any "symbols that a layer takes from one above it:"
}

# Finds functions by the layout of clang-format: their braces are in the first column.
guard_sizes() {
  find runtime tests samples -name '*.c' | sort | xargs awk '
    FNR == 1 { start = 0 }
    /^[A-Za-z_].*\(/ { name = $0; sub(/\(.*/, "", name) }
    /^\{/ { start = FNR }
    /^\}/ && start {
      n = FNR - start - 1; length_of[++count] = n
      if (n > 80) printf "%s:%d: %s: %d lines\n", FILENAME, start, name, n
      start = 0
    }
    END { printf "%d functions\n", count }'
  find runtime tests samples include kernels_src -name '*.[ch]' -o \
    -name '*.cu' -o -name '*.cuh' | sort | xargs wc -l |
    awk '$2 != "total" && $1 > 1000 { print $2 ": " $1 " lines" }'
}

case ${1-} in
includes | cycles | basenames | folders | documented | maps | words | symbols | sizes)
  "guard_$1"
  ;;
*)
  sed -n '3,18s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac

#!/usr/bin/env bash
# Tests that the embedding example in the README is the program that other tests build.
set -eu
# shellcheck disable=SC2016 # the backquotes are Markdown's
example=$(sed -n '/^```c$/,/^```$/p' "$SOURCE/README.md" | sed '1d;$d')
[ "$example" = "$(cat "$SOURCE/samples/embed/main.c")" ] || {
  echo "README.md shows another program than samples/embed/main.c" >&2
  exit 1
}

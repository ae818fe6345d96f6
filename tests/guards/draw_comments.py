#!/usr/bin/env python3
"""Draws comments at random, for readers who grade the project's language.

usage: draw_comments.py SEED COUNT FOLDER...

Prints COUNT numbered comments of the C and CUDA files below the folders, each
without the code beside it: a reader who does not know the project should
understand it at first reading. The same seed draws the same comments of a tree.
"""
import pathlib
import random
import re
import sys

SUFFIXES = {".c", ".h", ".cu", ".cuh", ".def"}
# a comment of at least three words; strings may hold slashes and are skipped
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', re.S)


def comments(path):
    text = path.read_text(errors="replace")
    lines = []
    for match in TOKEN.finditer(text):
        token = match.group()
        if token.startswith('"'):
            continue
        line = text.count("\n", 0, match.start()) + 1
        body = re.sub(r"^/\*+<?|\*/$|^//+<?", "", token)
        body = re.sub(r"\n\s*(\*|//) ?", "\n", body).strip(" \n-*")
        previous = lines[-1] if lines else None
        if token.startswith("//") and previous and previous[2] == line - 1:
            previous[1] += "\n" + body
            previous[2] = line
            continue
        lines.append([line, body, line if token.startswith("//") else 0])
    for line, body, _ in lines:
        if len(body.split()) >= 3:
            yield f"{path}:{line}", body


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    found = []
    for folder in sys.argv[3:]:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.suffix in SUFFIXES:
                found.extend(comments(path))
    random.seed(seed)
    for number, (where, body) in enumerate(
            random.sample(found, min(count, len(found))), 1):
        print(f"[{number}] ({where})\n{body}\n")


if __name__ == "__main__":
    main()

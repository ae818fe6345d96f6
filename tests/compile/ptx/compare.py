#!/usr/bin/env python3
"""compare.py -- compare the PTX that two builds of Kiln made.

    tests/compile/ptx/compare.py OLD NEW

OLD and NEW are folders that record.sh filled. Two programs count as the same if
their PTX differs in names only: every identifier that is no register, opcode or
directive is replaced by the number of its first appearance, and comments and
line information go. The script lists programs of OLD that no program of NEW
equals, and the other way round, by their kernels and options, and exits with 1
if there are any.
"""
import collections
import hashlib
import pathlib
import re
import sys

NAME = re.compile(r"(?<![\w.%$])[A-Za-z_$][\w$]*")
# Words of PTX that stand where a name could: opcodes end at '.' or at a blank.
STATEMENT = re.compile(r"^(\s*(?:@!?%p\d+\s+)?\{?\s*)([a-z][a-z0-9_]*)(?=[\s.;])")


def normalise(text):
    """The program without names, comments and line information."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    names = {}

    def number(match):
        return "$%d" % names.setdefault(match.group(), len(names))

    lines = []
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith((".loc", ".file")):
            continue
        opcode = STATEMENT.match(line)
        start = opcode.end() if opcode else 0
        lines.append(line[:start] + NAME.sub(number, line[start:]))
    return "\n".join(lines)


def read(folder):
    """Map the hash of each program to a description of one with that hash."""
    programs = collections.defaultdict(list)
    for path in sorted(pathlib.Path(folder).glob("sm_*/*.ptx")):
        text = path.read_text()
        kernels = re.findall(r"\.entry\s+([\w$]+)", text)
        options = re.findall(r"^// option -D(?!KILN_(?:HAS|SMEM|REGS|ARCH|WARP_SIZE))(.*)", text, re.M)
        digest = hashlib.sha256(normalise(text).encode()).hexdigest()
        programs[path.parent.name, digest].append((path, kernels, options))
    return programs


def main():
    old, new = read(sys.argv[1]), read(sys.argv[2])
    print("%d and %d programs, %d and %d different ones" % (
        sum(map(len, old.values())), sum(map(len, new.values())), len(old), len(new)))
    differ = 0
    for label, mine, other in ("only in OLD", old, new), ("only in NEW", new, old):
        for key in sorted(mine.keys() - other.keys(), key=lambda k: str(mine[k][0][1:])):
            path, kernels, options = mine[key][0]
            print("%s: %s %s: %s (%s)" % (label, key[0], " ".join(kernels), " ".join(options), path))
            differ += 1
    print("identical but for names" if differ == 0 else "%d programs differ" % differ)
    return differ != 0


sys.exit(main())

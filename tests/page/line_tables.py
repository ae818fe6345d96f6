"""line_tables.py -- reads line tables without Kiln: from nvdisasm and from PTX.

The browser tests compare what the page highlights with these tables. nvdisasm
prints comments before the instructions to which they apply:

    //## File "a.cuh", line 12 inlined at "a.cu", line 40
    //## File "a.cu", line 40

One block of such comments is the inline chain of the following instructions,
innermost first. A chain is a tuple of (file, line), innermost first.

nvdisasm prints a block only if the number of the innermost line has changed, and
the compiler does the same with rows. If two lines with the same number were
inlined one after the other, the second block is missing. The comments of `-gp`
name the PTX line of each instruction: if its .loc directive has this number, its
chain is taken. In a section with functions that were not inlined, nvdisasm
confuses the chains, so only their first place is sure.
"""
import re
import subprocess

PTX = ".nv_debug_ptx_txt"
CHAIN = re.compile(r'//## File "((?:[^"\\]|\\.)*)", line (\d+)( inlined at )?')
INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?);?\s*(?:/\*.*)?$")
FUNCTION_TYPE = re.compile(r"^\s*\.type\s+\S+,@function")
SECTION = re.compile(r"^//-+ \.text\.(\S+)")
LOC = re.compile(
    r"^\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:,\s*function_name\s+\S+?,\s*"
    r"inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?"
)
FUNCTION = re.compile(r"^\.(?:.* )?\.?(?:entry|func) ")
STATEMENT = re.compile(r"^\s*[@A-Za-z]")
FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"((?:[^"\\]|\\.)*)"')


def run_nvdisasm(tool, cubin, *options):
    return subprocess.run(
        [tool, "-c", *options, cubin], check=True, capture_output=True
    ).stdout.decode("utf-8", "replace")


def same_number(chain, other):
    return bool(chain and other) and chain[0][1] == other[0][1]


def sass_chains(text, ptx):
    """Returns {kernel: [(address, text, chain, sure)]} of `nvdisasm -c -g -gi -gp`.
    `ptx` has the chain of each PTX line."""
    kernels, rows, chain, block, functions = {}, None, (), [], 0
    line_of_ptx = 0
    for line in text.split("\n"):
        section = SECTION.match(line)
        if section:
            rows = kernels.setdefault(section.group(1), [])
            chain, block, functions = (), [], 0
            continue
        functions += 1 if FUNCTION_TYPE.match(line) else 0
        comment = CHAIN.search(line)
        if comment and comment.group(1) == PTX:
            line_of_ptx = int(comment.group(2))
            continue
        if comment:
            block.append((comment.group(1), int(comment.group(2))))
            continue
        found = INSTRUCTION.match(line)
        if found and rows is not None:
            other = ptx[line_of_ptx - 1] if line_of_ptx > 0 else ()
            if block:
                chain, block = tuple(block), []
            elif same_number(chain, other):
                chain = other
            rows.append((int(found.group(1), 16), found.group(2).strip(), chain,
                         functions < 2))
    return kernels


def is_padding(rows):
    """Whether rows are what the assembler appends: a branch to itself, NOPs."""
    return all(re.match(r"NOP|BRA `?\(", row[1]) for row in rows)


def ptx_chains(text):
    """Returns the chain of each PTX line by its .loc directives; only lines with
    an instruction have one.

    `inlined_at` gives only the next place; the chain goes on where the last
    .loc at that place went on."""
    files, callers = {}, {}
    lines = text.split("\n")
    for line in lines:
        found = FILE.match(line)
        if found:
            files[int(found.group(1))] = found.group(2)
    chains, chain = [], ()
    for line in lines:
        found = LOC.match(line)
        if found:
            file, number, column, *at = found.groups()
            place = (files.get(int(file), "?"), int(number))
            chain = (place,)
            if at[0]:
                call = (files.get(int(at[0]), "?"), int(at[1]))
                chain = (place,) + callers.get(tuple(at), (call,))
            callers[(file, number, column)] = chain
        elif FUNCTION.match(line):
            chain = ()
        chains.append(chain if STATEMENT.match(line) else ())
    return chains

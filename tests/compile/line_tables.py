"""Compares the line tables that Kiln reads with those that nvdisasm prints.

usage: line_tables.py KILN

Each program is compiled with line information. `kiln compile --emit lines`
prints Kiln's tables; `nvdisasm -g -gi -gp` prints, before each instruction, the
chain of source lines and the PTX line. For every instruction both must agree.

The chains that nvdisasm prints are wrong in two cases. Where the number of the
innermost line stays the same, the compiler writes no row or nvdisasm prints no
chain, even if the line is in another file or was inlined by another call. In a
section with a function that was not inlined it refers to the wrong rows, because
the compiler repeats the first row of such a function without counting it. In both
cases the .loc directive of the PTX line decides, if it has the same number. On
some images of NVRTC 11.8 `-gi` does not end; there it prints the innermost lines.

Environment: KILN_NVDISASM or nvdisasm in PATH; KILN_TEST_NVRTC, libraries
separated by ':'; KILN_TEST_THOROUGH for all programs, targets and libraries;
with it, KILN_TEST_PART=2/8 for every eighth program.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

INLINED = """
__device__ __forceinline__ float square(float x) { return x * x; }
__device__ __forceinline__ float poly(float x)
{
  float y = square(x) + 1.0f;
  return square(y) + x;
}
__device__ __noinline__ float apart(float x, int n)
{
  float s = 0;
  for (int i = 0; i < n; i++)
    s += poly(x + i);
  return s;
}
extern "C" __global__ void one(float *x, int n)
{
  int i = threadIdx.x;
  x[i] = poly(x[i]) + poly(x[i + 32]);
}
extern "C" __global__ void two(float *x, int n)
{
  int i = threadIdx.x;
  x[i] = apart(x[i], n) + square(x[i + 1]) / x[0];
}
"""
SKIP = 77


class Different(Exception):
    """Kiln's tables differ from the other reading."""


def output_of(words, **more):
    run = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True, check=False, **more)
    if run.returncode != 0:
        sys.exit(f"{' '.join(words)}: {run.stderr}")
    return run.stdout


class Expected:
    """What nvdisasm prints for one kernel: address -> (chain, PTX line, whether
    the chain was printed before this instruction)."""

    def __init__(self):
        self.at = {}
        self.functions = 0


PLACE = r'"([^"]*)", line (\d+)'
FILE = re.compile(r"\s*//## File " + PLACE + r"(?: inlined at " + PLACE + ")?")
CODE = re.compile(r"\s*/\*([0-9a-f]{4,})\*/ ")


def read_disassembly(text):
    """Returns {kernel: Expected}."""
    kernels = {}
    now = None
    chain, block, ptx = [], [], -1
    for line in text.split("\n"):
        section = re.match(r"\s*\.section\s+\.text\.([^,\s]+)", line)
        if section:
            now = kernels.setdefault(section[1], Expected())
            chain, block, ptx = [], [], -1
        if now is None:
            continue
        if re.match(r"\s*\.type\s+\$", line):
            now.functions += 1
        found = FILE.match(line)
        if found and found[1] == ".nv_debug_ptx_txt":
            ptx = int(found[2])
        elif found:
            block.append((found[1], int(found[2])))
        code = CODE.match(line)
        if code:
            fresh = bool(block)
            if block:
                chain, block = block, []
            now.at[int(code[1], 16)] = (chain, ptx, fresh)
    return kernels


def read_locs(ptx):
    """Returns for each PTX line the innermost place and the place of its call."""
    files = {int(n): name for n, name in
             re.findall(r'\.file\s+(\d+)\s+"([^"]*)"', ptx)}
    loc = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+\d+"
                     r"(?:,\s*function_name\s+\S+,\s*inlined_at\s+(\d+)\s+(\d+))?")
    now, lines = [], [[]]
    for line in ptx.split("\n"):
        found = loc.match(line)
        if found:
            now = [(files[int(found[1])], int(found[2]))]
            if found[3]:
                now.append((files[int(found[3])], int(found[4])))
        lines.append(now)
    return lines


class Tables:
    """Kiln's tables of one image."""

    def __init__(self, text):
        self.json = json.loads(text)
        self.kernels = {k["name"]: k for k in self.json["kernels"]}

    def chain(self, place):
        out = []
        while place >= 0:
            file, line, caller, _ = self.json["places"][place]
            out.append((self.json["files"][file], line))
            if caller >= place:
                raise Different(f"place {place} has the caller {caller}")
            place = caller
        return out


def at_address(rows, address):
    value = -1
    for row in rows:
        if row[0] > address:
            break
        value = row[1]
    return value


def plausible(mine, chain, loc, before):
    """Whether a chain may be right where nvdisasm printed the old one, or
    confuses them. Where .loc has another number, such as line 0, which is none,
    the chain of the instruction before applies, or nvdisasm's."""
    if not loc or not chain or loc[0][1] != chain[0][1]:
        return mine == before or mine[:1] == chain[:1]
    return mine[:2] == loc[:2]


def compare(name, tables, expected, locs, chains):
    """Returns the number of instructions, and of those with another chain."""
    count = other = 0
    for kernel, want in expected.items():
        have = tables.kernels.get(kernel)
        if have is None:
            raise Different(f"{name}: no tables for the kernel {kernel}")
        mine = []
        for address, (chain, ptx, fresh) in want.at.items():
            count += 1
            before, mine = mine, tables.chain(at_address(have["lines"], address))
            line = at_address(have["ptx"], address)
            if line != ptx:
                raise Different(f"{name}, {kernel}, {address:#x}: PTX line {line}, "
                                f"nvdisasm says {ptx}")
            if mine == chain:
                continue
            doubtful = not chains or not fresh or want.functions > 0
            if not doubtful or not plausible(mine, chain, locs[line], before):
                raise Different(f"{name}, {kernel}, {address:#x}: {mine}, "
                                f"nvdisasm says {chain}, .loc says {locs[line]}")
            other += 1
    return count, other


def compare_ptx(name, tables, locs):
    """Compares the places of PTX lines with the .loc directives."""
    count = 0
    for line, place in enumerate(tables.json["ptx_places"], 1):
        if place < 0:
            continue
        count += 1
        mine = tables.chain(place)
        if mine[:len(locs[line])] != locs[line] or \
                (len(locs[line]) == 1 and len(mine) > 1):
            raise Different(f"{name}, PTX line {line}: {mine}, .loc says {locs[line]}")
    return count


class Runner:
    def __init__(self, kiln, tool, folder):
        self.kiln, self.tool, self.folder = kiln, tool, folder
        self.count = self.other = self.ptx = self.images = self.endless = 0
        self.failed = 0

    def try_check(self, program, arch, library):
        """Compares one image, and reports a difference."""
        try:
            self.check(program, arch, library)
        except Different as difference:
            self.failed += 1
            print(difference, flush=True)

    def check(self, program, arch, library):
        base = os.path.join(self.folder, "out", "")
        shutil.rmtree(base, ignore_errors=True)
        words = [self.kiln, "compile", program, "--arch", str(arch), "--emit",
                 "lines,cubin,ptx", "-o", base]
        output_of(words, env=dict(os.environ, KILN_NVRTC=library) if library
                  else None)
        files = {os.path.splitext(f)[1]: os.path.join(base, f)
                 for f in os.listdir(base)}
        with open(files[".lines"], encoding="utf-8") as f:
            tables = Tables(f.read())
        with open(files[".ptx"], encoding="utf-8") as f:
            locs = read_locs(f.read())
        name = f"{os.path.basename(program)} for {arch}"
        words = [self.tool, "-c", "-g", "-gp", files[".cubin"]]
        try:
            text = output_of(words + ["-gi"], timeout=60)
            chains = True
        except subprocess.TimeoutExpired:
            text = output_of(words)
            chains = False
            self.endless += 1
        count, other = compare(name, tables, read_disassembly(text), locs, chains)
        self.count += count
        self.other += other if chains else 0
        self.ptx += compare_ptx(name, tables, locs)
        self.images += 1


def programs_of(kiln):
    names = re.findall(r"^(builtin:\S+)", output_of([kiln, "compile", "--list"]),
                       re.MULTILINE)
    part, parts = map(int, os.environ.get("KILN_TEST_PART", "1/1").split("/"))
    return names[part - 1::parts]


def main():
    kiln = sys.argv[1]
    tool = os.environ.get("KILN_NVDISASM") or shutil.which("nvdisasm")
    libraries = [x for x in os.environ.get("KILN_TEST_NVRTC", "").split(":") if x]
    if not tool or not (libraries or os.environ.get("KILN_NVRTC")):
        print("skipped: there is no nvdisasm, or no NVRTC")
        return SKIP
    programs = ["builtin:reduce_rows"]
    if os.environ.get("KILN_TEST_THOROUGH"):
        programs = programs_of(kiln)
    else:
        libraries = libraries[-1:]
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "inlined.cu")
        with open(source, "w", encoding="utf-8") as f:
            f.write(INLINED)
        runner = Runner(kiln, tool, folder)
        for library in libraries or [None]:
            old = library is not None and "so.11" in library
            for program in [source] + programs:
                for arch in (75, 90) if old else (75, 90, 120):
                    runner.try_check(program, arch, library)
    print(f"{runner.images} images, {runner.count} instructions, {runner.ptx} "
          f"PTX lines; nvdisasm has another chain for {runner.other}, "
          f"and does not end on {runner.endless} images; "
          f"{runner.failed} images differ")
    if runner.failed:
        return 1
    return 0 if runner.count > 10 * (1 + runner.other) else "too few agree"


sys.exit(main())

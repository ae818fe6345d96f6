"""Tests the model of machine code against readings of nvdisasm's output that
share no code with it.

    sass_test.py KILN SASS_DUMP [TEST ...]

listing  text, encodings and live registers of every instruction
control  the scheduling fields, by the dependences of real code
flow     edges and loops, compared with nvdisasm's own control flow graph
slots    issue slots of small mixes, computed by hand
hostile  damaged texts are refused or read, but crash nothing
tool     `kiln diff` with a program that only plays nvdisasm
diff     instructions per line, compared with nvdisasm's line annotations

KILN_TEST_THOROUGH=1 reads all embedded programs, and code for 12.0 as well. KILN_TEST_NVRTC lists the
NVRTCs; the newest one compiles. Exits with 77 if a tool is missing."""

import collections
import concurrent.futures
import glob
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

KILN, DUMP = sys.argv[1:3]
THOROUGH = "KILN_TEST_THOROUGH" in os.environ
WORK = tempfile.mkdtemp(prefix="kiln-sass-")
ENV = dict(os.environ, KILN_CACHE_DIR=os.path.join(WORK, "cache"))

INSTRUCTION = re.compile(
    r"\s+/\*([0-9a-f]{4,})\*/\s+(\S.*?)\s*;\s+/\* 0x([0-9a-f]{16}) \*/")
UPPER = re.compile(r"\s+/\* 0x([0-9a-f]{16}) \*/")
KERNEL = r"""
static __device__ float twist(float x, const float *in)
{
  for (int i = 0; i < 3; i++)
    x = x * in[i] + 1;
  return x;
}
extern "C" __global__ void __launch_bounds__(128) branches(
    float *out, const float *in, const int *what, int n)
{
  __shared__ float tile[128];
  float sum = 0;

  for (int i = threadIdx.x; i < n; i += 128) {
    float x = in[i];
    for (int k = 0; k < what[i]; k++)
      x = x * x + in[k];
    switch (what[i] & 7) {
    case 0: x = sinf(x); break;
    case 1: x = rsqrtf(x); break;
    case 2: x = twist(x, in); break;
    case 3: x = twist(__int_as_float(n), in + 4); break;
    case 4: x = atanf(x); break;
    case 5: x = in[i + 7]; break;
    default: break;
    }
    tile[threadIdx.x] = x;
    __syncthreads();
    sum += tile[127 - threadIdx.x];
    __syncthreads();
  }
  while (sum > 1)
    sum *= SCALE;
#pragma unroll 1
  for (int k = 0; k < n; k++) {
    out[k * 128 + threadIdx.x] = sum;
    sum = sum * sum + 1;
  }
}
"""


def run(*words, env=None):
    return subprocess.run(words, env=env or ENV, capture_output=True,
                          text=True, errors="replace", check=False)


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def version_in(path):
    return [int(n) for n in re.findall(r"\d+", os.path.basename(path))]


def find_nvdisasm():
    """Returns nvdisasm as Kiln finds it, or where samples/setup.sh puts it."""
    at = os.environ.get("KILN_NVDISASM") or shutil.which("nvdisasm")
    root = os.path.join(os.path.dirname(__file__), "..", "..")
    found = sorted(glob.glob(root + "/.deps/**/nvdisasm", recursive=True))
    return at or (found[-1] if found else None)


class Instruction:
    """An instruction as this file reads it."""

    def __init__(self, at, text, low):
        self.at, self.text, self.low = int(at, 16), text, int(low, 16)
        self.high, self.live, self.leads = 0, [0] * 4, False
        words = re.sub(r"^@\S+ +", "", text).split()
        self.opcode, self.plain = words[0], words[0].split(".")[0]

    def field(self, first, size):
        return self.high >> first & (1 << size) - 1

    def guard(self):
        found = re.match(r"@(!?)(U?P\d)", self.text)
        return found.groups() if found else None

    def registers(self):
        return {int(r) for r in re.findall(r"\bR(\d+)", self.text)}

    def result(self):
        """The first register that the instruction names, if it is a result."""
        found = re.match(r"(?:@\S+ +)?\S+ (?:P[T\d], )?R(\d+)", self.text)
        return int(found[1]) if found else None

    def width(self):
        return {".128": 4, ".64": 2}.get(
            next((m for m in (".128", ".64") if m in self.opcode), ""), 1)


def read_listing(text):
    """Returns the instructions of each function."""
    functions, code, kinds, leads = {}, None, [], False
    for line in text.splitlines():
        section = re.match(r"\s*\.section\s+\.text\.([^,]+)", line)
        if section:
            code = functions.setdefault(section[1], [])
            kinds = []
        cells = line.split("// |")[1].split("|")[:-1] if "// |" in line else []
        if cells and cells[0].strip() == "GPR":
            kinds = [["GPR", "PRED", "UGPR", "UPRED"].index(c.strip())
                     for c in cells]
        match = INSTRUCTION.match(line)
        if match:
            code.append(Instruction(*match.groups()))
            code[-1].leads, leads = leads, False
        elif code and UPPER.match(line):
            code[-1].high = int(UPPER.match(line)[1], 16)
            for kind, cell in zip(kinds, cells):
                code[-1].live[kind] = int(cell.strip() or 0)
        elif re.match(r"\.L\S*:", line):
            leads = True
    return functions


class Image:
    """Machine code of one program for one target, with several readings."""

    def __init__(self, cubin):
        self.cubin = cubin
        self.name = os.path.basename(cubin)[:-len(".cubin")]
        self.cc = int(re.search(r"sm_(\d+)", self.name)[1])
        self.path = cubin[:-len("cubin")] + "txt"
        # With -plr, nvdisasm leaves out instructions of a few kernels.
        self.counted = self.read("-plr", "-lrm", "count")
        assert self.counted or self.read(), (self.name, self.dump.stderr)

    def read(self, *options):
        """Reads the code in both ways. Returns whether sass_dump accepts it."""
        self.text = run(NVDISASM, "-c", "-hex", *options, self.cubin).stdout
        with open(self.path, "w", encoding="utf-8") as out:
            out.write(self.text)
        self.functions = read_listing(self.text)
        self.dump = run(DUMP, str(self.cc), self.path)
        return self.dump.returncode == 0

    def dumped(self):
        """Yields the name and the lines of each kernel in sass_dump's text."""
        for part in re.split(r"^kernel ", self.dump.stdout, flags=re.M)[1:]:
            lines = part.splitlines()
            yield lines[0].split()[0], lines


def compile_images():
    archs = "sm_75,sm_90,sm_120" if THOROUGH else "sm_75,sm_90"
    programs = [(os.path.join(WORK, "branches.cu"), archs, [])]
    with open(programs[0][0], "w", encoding="utf-8") as out:
        out.write(KERNEL)
    if THOROUGH:
        for line in run(KILN, "compile", "--list").stdout.splitlines()[1:]:
            name = line.split()[0]
            wide = re.search("_wgmma|_ffma", name)
            programs.append((name, "sm_90a" if wide else archs, []))
    else:
        programs.append(("builtin:merge", "sm_75", []))
    for name, arch, options in programs:
        done = run(KILN, "compile", name, "--arch", arch, "--lineinfo", "-D",
                   "SCALE=0.5f", "--emit", "cubin", "-o", WORK + "/", *options)
        assert done.returncode == 0, (name, done.stderr)
    cubins = sorted(glob.glob(WORK + "/*.cubin"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(Image, cubins))


# ---- Instructions ----------------------------------------------------------

DUMPED = re.compile(
    r"insn ([0-9a-f]{16})([0-9a-f]{16}) stall (\d+) yield (\d) write (\S+) "
    r"read (\S+) wait (\d+) reuse (\d+) live (\d+) (\d+) (\d+) (\d+) "
    r"target (\S+) label (\S+) text (.*)")


def test_listing(images):
    total = 0
    for image in images:
        seen = 0
        for name, lines in image.dumped():
            code = image.functions[name]
            rows = [DUMPED.match(l) for l in lines if l.startswith("insn ")]
            assert len(rows) == len(code), (image.name, name)
            for row, want in zip(rows, code):
                where = (image.name, name, hex(want.at), want.text)
                assert int(row[1], 16) == want.high, where
                assert int(row[2], 16) == want.low, where
                assert [int(row[9 + i]) for i in range(4)] == want.live, where
                assert row[15] == re.sub(" +", " ", want.text), where
            seen += 1
            total += len(code)
        assert seen == len(image.functions), image.name
    assert any(i.live[2] for m in images for f in m.functions.values()
               for i in f), "no uniform register is live anywhere"
    without = [i.name for i in images if not i.counted]
    assert len(without) <= len(images) // 20, without
    print(f"{total} instructions of {len(images)} images: equal"
          + (f"; no live registers: {', '.join(without)}" if without else ""))


# ---- Scheduling fields -----------------------------------------------------

ENDS = {"BRA", "EXIT", "RET", "BRX", "CALL", "BSYNC", "JMP", "BRXU"}
LOADS = {"LDG", "LDS", "LDL", "S2R", "LD"}
STORES = {"STG", "STS", "STL", "ST"}
# These use the load/store units in order, so none overtakes another.
IN_ORDER = LOADS | STORES | {"ATOMS", "RED", "REDG", "LDSM", "STSM", "BAR"}


def excludes(a, b):
    """Whether the guards of two instructions are opposites."""
    g, h = a.guard(), b.guard()
    return g is not None and h is not None and g[1] == h[1] and g[0] != h[0]


def follow(code, at, barrier, touches):
    """Returns whether the first later instruction of the block that
    `touches` waits for the barrier, or None if there is none."""
    waited = False
    for later in code[at + 1:]:
        if later.leads:
            return None
        if later.field(52, 6) >> barrier & 1 or f"SB{barrier}" in later.text:
            waited = True
        if touches(later) and not excludes(code[at], later):
            return waited
        if later.plain in ENDS:
            return None
    return None


def check_load(code, at, first, counts):
    i, barrier = code[at], code[at].field(first, 3)
    base = i.result()
    if barrier == 7 or base is None:
        return
    results = set(range(base, base + i.width()))
    counts["load", first,
           follow(code, at, barrier, lambda j: j.registers() & results)] += 1


def check_store(code, at, first, counts):
    i, barrier = code[at], code[at].field(first, 3)
    if barrier == 7:
        return
    counts["store", first,
           follow(code, at, barrier,
                  lambda j: j.plain not in IN_ORDER | ENDS and
                  j.result() in i.registers())] += 1


def test_control(images):
    """The barrier in bits 46 to 48 protects results, that in bits 49 to 51
    protects operands. Exchanged, the code would not make sense."""
    counts, reuse = collections.Counter(), 0
    for image in images:
        for code in image.functions.values():
            for at, i in enumerate(code):
                assert bin(i.field(58, 4)).count("1") == \
                    i.text.count(".reuse"), (image.name, i.text)
                reuse += i.text.count(".reuse")
                if i.field(41, 4) >= 12:
                    assert i.field(45, 1) == 0, (image.name, i.text)
                for first in (46, 49):
                    if i.plain in LOADS:
                        check_load(code, at, first, counts)
                    if i.plain in STORES:
                        check_store(code, at, first, counts)
        check_fields(image)
    print(dict(counts), "reuse flags:", reuse)
    assert reuse > 50
    assert counts["load", 46, True] > 100 and counts["store", 49, True] >= 3
    assert counts["load", 46, False] == 0, "a result is used too early"
    assert counts["store", 49, False] == 0, "an operand is overwritten early"
    # The opposite hypothesis: stores have no results, and most loads would not
    # protect theirs.
    assert not any(counts["store", 46, x] for x in (True, False, None))
    assert counts["load", 49, True] < counts["load", 46, True] / 4


def check_fields(image):
    for name, lines in image.dumped():
        rows = [DUMPED.match(l) for l in lines if l.startswith("insn ")]
        for row, i in zip(rows, image.functions[name]):
            barriers = [i.field(46, 3), i.field(49, 3)]
            want = [i.field(41, 4), 1 - i.field(45, 1)] + \
                [-1 if b == 7 else b for b in barriers] + \
                [i.field(52, 6), i.field(58, 4)]
            assert [int(row[k]) for k in range(3, 9)] == want, \
                (image.name, i.text)


# ---- Control flow ----------------------------------------------------------

def read_graph(cubin):
    """Reads nvdisasm's graph: block name -> addresses, and its edges."""
    graphs = {}
    text = run(NVDISASM, "-bbcfg", "-poff", cubin).stdout
    for part in text.split("subgraph ")[1:]:
        name = re.match(r'"cluster_([^"]*)"', part)[1]
        blocks = {}
        for label, body in re.findall(r'^"([^"\n]*)"\n\[label="(.*)"\]$', part,
                                      flags=re.M):
            blocks[label] = [int(a, 16) for a in
                             re.findall(r"(?:\\l|<entry>|>)([0-9a-f]{4,}):"
                                        r"\\ ", body)]
        edges = re.findall(r'^"([^"\n]*)":\w+:\w -> "([^"\n]*)":', part,
                           flags=re.M)
        graphs[name] = blocks, {e for e in edges if e[0] in blocks and
                                e[1] in blocks}
    return graphs


def find_loops(nodes, edges, roots):
    """Natural loops by sets: the slow and obvious way."""
    before, after = collections.defaultdict(set), collections.defaultdict(set)
    for a, b in edges:
        before[b].add(a)
        after[a].add(b)
    reached, work = set(roots), list(roots)
    while work:
        for b in after[work.pop()] - reached:
            reached.add(b)
            work.append(b)
    dominators = {b: {b} if b in roots else set(reached) for b in reached}
    changed = True
    while changed:
        changed = False
        for b in reached - set(roots):
            sets = [dominators[p] for p in before[b] & reached]
            new = set.intersection(*sets) | {b}
            changed |= new != dominators[b]
            dominators[b] = new
    loops = {}
    for a, b in edges:
        if a in reached and b in dominators[a]:
            body, work = loops.setdefault(b, {b}), [a]
            while work:
                at = work.pop()
                if at not in body:
                    body.add(at)
                    work += before[at] & reached
    return loops


def own_graph(lines):
    """Blocks, edges and loops of sass_dump, with first addresses as names."""
    blocks = [[int(w) for w in l.split()[1:]] for l in lines
              if l.startswith("block ")]
    edges = {(b[0] * 16, blocks[s][0] * 16) for b in blocks for s in b[2:]}
    spans = {b[0] * 16: {16 * i for i in range(b[0], b[0] + b[1])}
             for b in blocks}
    loops = {}
    for line in lines:
        if line.startswith("loop "):
            header = int(line.split()[1])
            members = [int(w) for w in line.split("blocks ")[1].split()]
            loops[blocks[header][0] * 16] = set.union(
                *(spans[blocks[m][0] * 16] for m in members))
    return spans, edges, loops


def test_flow(images):
    jumps = total = 0
    for image in images:
        graphs = read_graph(image.cubin)
        for name, lines in image.dumped():
            if name not in graphs:
                continue
            blocks, edges = graphs[name]
            entry = next((b for b, a in blocks.items() if a[:1] == [0]), None)
            if entry is None or any(not a for a in blocks.values()):
                continue
            spans, own_edges, own_loops = own_graph(lines)
            end = {max(s): b for b, s in spans.items()}
            for a, b in edges:
                last, first = blocks[a][-1], blocks[b][0]
                # nvdisasm also divides blocks at labels that nothing jumps to.
                if last in end and first in spans:
                    assert (end[last], first) in own_edges, \
                        (image.name, name, hex(last), hex(first))
                    jumps += 1
                else:
                    assert first == last + 16, (image.name, name, hex(first))
            loops = find_loops(blocks, edges, [entry])
            want = {blocks[h][0]: {i for b in body for i in blocks[b]}
                    for h, body in loops.items()}
            called = {h for h in own_loops if h not in want}
            for h in want:
                assert own_loops.get(h) == want[h], (image.name, name, hex(h))
            # Functions that CALL reaches are separate graphs in nvdisasm.
            assert not called or any("CALL" in l for l in lines), \
                (image.name, name, called)
            total += len(want)
    print(f"{jumps} edges and {total} loops: equal")
    assert jumps > 40 and total >= 6

# ---- Issue slots -----------------------------------------------------------

# Instructions, capability, and the expected slots with the pipe that limits
# them, computed by hand from the throughput per SM: 128 / rate cycles each.
SLOTS = [
    ({"FFMA R0, R1, R2, R3": 64, "MUFU.RSQ R0, R1": 4}, 90, 68, "issue"),
    ({"FFMA R0, R1, R2, R3": 64, "MUFU.RSQ R0, R1": 9}, 90, 73, "issue"),
    ({"FFMA R0, R1, R2, R3": 4, "MUFU.RSQ R0, R1": 4}, 90, 32, "XU"),
    ({"FFMA R0, R1, R2, R3": 64}, 75, 128, "FMA"),
    ({"FFMA R0, R1, R2, R3": 32, "IADD3 R0, R1, R2, R3": 32}, 75, 64,
     "issue"),
    ({"FFMA R0, R1, R2, R3": 32, "IMAD R0, R1, R2, R3": 32}, 80, 128, "FMA"),
    ({"FFMA R0, R1, R2, R3": 32, "IMAD R0, R1, R2, R3": 32}, 90, 64, "issue"),
    ({"IMAD.WIDE R0, R1, R2, R4": 10}, 90, 20, "IMAD"),
    ({"@!P0 DFMA R0, R2, R4, R6": 3}, 90, 6, "FP64"),
    ({"DFMA R0, R2, R4, R6": 3}, 86, 192, "FP64"),
    ({"F2F.F32.F64 R0, R2": 1}, 120, 64, "XU"),
    ({"F2F.F16.F32 R0, R2": 1}, 120, 8, "XU"),
    ({"IADD3 R0, R1, R2, R3": 8}, 120, 8, "issue"),
    ({"LDS.128 R0, [R4]": 2}, 90, 8, "LSU"),
    ({"STS.128 [R4], R0": 2}, 90, 32, "LSU"),
    ({"LDSM.16.M88.4 R0, [R4]": 2}, 80, 32, "LSU"),
    ({"SHFL.DOWN PT, R3, R6, 0x1, 0x1f": 5}, 90, 20, "LSU"),
    ({"HMMA.16816.F32 R0, R4, R8, R0": 4}, 80, 32, "tensor"),
    ({"HMMA.1688.F32.TF32 R0, R4, R8, R0": 4}, 80, 32, "tensor"),
    ({"IMMA.16832.S8.S8 R0, R4.ROW, R8.COL, R0": 4}, 80, 32, "tensor"),
    ({"HGMMA.64x128x16.F32 R24, gdesc[UR4], R24": 2}, 90, 128, "tensor"),
    ({"@P0 BRA 0x0": 3}, 90, 3, "issue"),
]


def test_slots(_):
    path = os.path.join(WORK, "slots.txt")
    for mix, cc, slots, limit in SLOTS:
        code = [t for t, n in mix.items() for _ in range(n)] + ["EXIT"]
        with open(path, "w", encoding="utf-8") as out:
            out.write('\t.section\t.text.f,"ax"\n')
            for at, text in enumerate(code):
                out.write(f"  /*{16 * at:04x}*/  {text} ;  /* 0x{0:016x} */\n"
                          f"  /* 0x{0:016x} */\n")
        done = run(DUMP, str(cc), path)
        assert done.returncode == 0, done.stderr
        # The EXIT at the end takes one slot, if the issue limits.
        want = f"cost {slots + (limit == 'issue')} {limit}"
        assert want in done.stdout.split("\n"), (mix, cc, want, done.stdout)
    print(f"{len(SLOTS)} mixes: as computed by hand")


# ---- Damaged output and other programs -------------------------------------

def test_hostile(images):
    rng = random.Random(1)
    image = min(images, key=lambda i: len(i.text))
    lines = image.text.split("\n")
    cases = 400 if THOROUGH else 16
    path = os.path.join(WORK, "hostile.txt")
    for case in range(cases):
        text = list(lines)
        kind = case % 4
        if kind == 0:
            data = image.text[:rng.randrange(len(image.text))]
        elif kind == 1:
            del text[rng.randrange(len(text))]
            data = "\n".join(text)
        elif kind == 2:
            rng.shuffle(text)
            data = "\n".join(text)
        else:
            data = "".join(chr(rng.randrange(1, 256)) if rng.random() < .01
                           else c for c in image.text)
        with open(path, "w", encoding="latin-1", errors="replace") as out:
            out.write(data)
        done = run(DUMP, str(image.cc), path)
        assert done.returncode in (0, 1), (case, done.returncode, done.stderr)
        if done.returncode == 1:
            assert done.stderr.startswith("sass_dump: "), done.stderr
    print(f"{cases} damaged texts: no crash")


def diff_with(tool, *words):
    return run(KILN, "diff", os.path.join(WORK, "branches.cu"), "-D",
               "SCALE=0.5f", "--arch", "sm_90", "--against", "-D",
               "SCALE=0.5f", *words, env=dict(ENV, KILN_NVDISASM=tool))


def test_tool(images):
    whole, other = (next(i for i in images if i.name == "branches." + a).path
                    for a in ("sm_90", "sm_75"))
    half = os.path.join(WORK, "half.txt")
    with open(whole, encoding="utf-8") as text:
        lines = text.read().split("\n")
    with open(half, "w", encoding="utf-8") as out:
        out.write("\n".join(lines[:len(lines) // 2]))
    plays = {"nothing": "exit 0", "noise": "head -c 100000 /dev/urandom",
             "failure": "echo broken >&2; exit 3", "signal": "kill -9 $$",
             "other": "echo .section .text.other,x; echo other:",
             "truncated": f"cat '{half}'", "foreign": f"cat '{other}'"}
    for name, script in plays.items():
        path = os.path.join(WORK, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write("#!/bin/sh\nPATH=/usr/bin:/bin\n" + script + "\n")
        os.chmod(path, 0o755)
        done = diff_with(path)
        assert done.returncode == 1, (name, done.returncode, done.stderr)
        assert "kiln diff: " in done.stderr, (name, done.stderr)
        assert "registers per thread" in done.stdout, (name, done.stdout)
    done = diff_with(os.path.join(WORK, "absent"))
    assert done.returncode == 1 and "KILN_NVDISASM" in done.stderr, done.stderr
    print(f"{len(plays) + 1} programs that are not nvdisasm: reported")


# ---- Differences -----------------------------------------------------------

def lines_of(cubin):
    """Opcodes per outermost line, from nvdisasm's annotations: an inlined line
    names the line of its call, and the last annotation is the outermost."""
    opcodes, line = [], None
    for text in run(NVDISASM, "-c", "-g", "-gi", cubin).stdout.splitlines():
        note = re.match(r'\s+//## File "([^"]*)", line (\d+)', text)
        code = re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@\S+ +)?([^\s;]+)", text)
        if note:
            outer = re.search(r'inlined at "[^"]*", line (\d+)', text)
            line = int((outer or note)[1 if outer else 2])
        elif code:
            opcodes.append((line, code[1]))
    while opcodes[-1][1] == "NOP":
        opcodes.pop()
    lines = collections.defaultdict(list)
    for line, opcode in opcodes[:-1]:  # without the endless branch
        lines[line].append(opcode)
    return lines


def common_length(a, b):
    """Length of the longest common subsequence."""
    best = [0] * (len(b) + 1)
    for x in a:
        row = [0]
        for j, y in enumerate(b):
            row.append(best[j] + 1 if x == y else max(best[j + 1], row[j]))
        best = row
    return best[-1]


def compare_json(*words):
    done = run(KILN, "diff", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


SPILLS = r"""
extern "C" __global__ void spills(float *out, const float *in)
{
  float x[24];
#pragma unroll
  for (int i = 0; i < 24; i++)
    x[i] = in[i * 32 + threadIdx.x];
  for (int k = 0; k < 48; k++) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 24; i++)
      sum += x[i] *= sum;
    out[k * 32 + threadIdx.x] = sum;
  }
}
"""


def check_spills(kernel_source):
    """The assembler's own numbers are the sums over the lines."""
    source = os.path.join(os.path.dirname(kernel_source), "spills.cu")
    with open(source, "w", encoding="utf-8") as out:
        out.write(SPILLS)
    kernel = compare_json(source, "--arch", "sm_90", "--against",
                          "--maxrregcount", "16", "--all")["kernels"][0]
    total = kernel["spill_stores"][1] + kernel["spill_loads"][1]
    lines = {r["line"][1]: r["spills"][1] for r in kernel["lines"]
             if r["spills"][1] > 0}
    assert total > 100 and sum(lines.values()) == total, (total, lines)
    assert not any(r["spills"][0] for r in kernel["lines"])
    # The values live across the inner loop, which multiplies them.
    assert 12 in lines, lines


def test_diff(images):
    source = os.path.join(WORK, "branches.cu")
    out = compare_json(source, "-D", "SCALE=0.5f", "--arch", "sm_75,sm_90",
                       "--all")
    (kernel,) = out["kernels"]
    want = [lines_of(os.path.join(WORK, f"branches.sm_{cc}.cubin"))
            for cc in (75, 90)]
    for side in (0, 1):
        got = {r["line"][side]: r["instructions"][side]
               for r in kernel["lines"] if "line" in r and
               r["instructions"][side] > 0}
        assert got == {k: len(v) for k, v in want[side].items()}, \
            (side, got, want[side])
        assert sum(got.values()) == kernel["instructions"][side]

    for row in kernel["lines"]:
        a, b = (want[s][row["line"][s]] for s in (0, 1))
        assert row["common"] == common_length(a, b), row
        counts = collections.Counter(a), collections.Counter(b)
        assert row["opcodes"] == {o: [c[o] for c in counts] for o in a + b
                                  if counts[0][o] != counts[1][o]}, row

    check_spills(source)

    # Equal programs differ nowhere; one changed line is the only difference.
    same = compare_json(source, "-D", "SCALE=0.5f", "--arch", "sm_90",
                        "--against-nvrtc", ENV["KILN_NVRTC"])
    assert same["kernels"][0]["lines"] == [], same
    if THOROUGH:
        out = compare_json(source, "-D", "SCALE=0.5f", "--arch", "sm_90",
                           "--against-nvrtc", min(NVRTCS, key=version_in))
        assert out["kernels"][0]["instructions"][1] > 200, out
    moved = os.path.join(WORK, "moved.cu")
    with open(moved, "w", encoding="utf-8") as out:
        out.write("// A line more.\n" + KERNEL.replace(
            "sum *= SCALE;", "sum = sum * SCALE + n;"))
    changed = compare_json(source, moved, "-D", "SCALE=0.5f", "--arch",
                           "sm_90")["kernels"][0]["lines"]
    at = KERNEL.split("\n").index("    sum *= SCALE;") + 1
    assert [r for r in changed if r["line"] == [at, -1]], changed
    assert [r for r in changed if r["line"] == [-1, at + 1]], changed
    print("differences: equal to the annotations and to the source's changes")


NVDISASM = find_nvdisasm()
NVRTCS = [p for p in os.environ.get("KILN_TEST_NVRTC", "").split(":") if p]
TESTS = {"listing": test_listing, "control": test_control, "flow": test_flow,
         "slots": test_slots,
         "hostile": test_hostile, "tool": test_tool, "diff": test_diff}


def main():
    if NVDISASM is None:
        skip("there is no nvdisasm; samples/setup.sh fetches it")
    if not NVRTCS:
        skip("KILN_TEST_NVRTC lists no NVRTC")
    ENV.update(KILN_NVRTC=max(NVRTCS, key=version_in), KILN_NVDISASM=NVDISASM)
    images = compile_images()
    if not all(i.functions for i in images):
        skip("nvdisasm cannot count live registers in this NVRTC's code")
    for name in sys.argv[3:] or TESTS:
        TESTS[name](images)


try:
    main()
finally:
    shutil.rmtree(WORK)

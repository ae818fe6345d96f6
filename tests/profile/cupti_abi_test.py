"""Compares runtime/inject/cupti_abi.h with NVIDIA's cupti_activity.h, for every
version whose headers are found: in the folders of KILN_TEST_CUPTI (separated by
colons; each is the root of unpacked wheels or of a toolkit), and in the usual
places of toolkits. Exits with 77 if there are no headers."""

import glob
import os
import subprocess
import sys
import tempfile

KERNEL = {"kind": "kind", "registers": "registersPerThread", "start": "start",
          "end": "end", "device": "deviceId", "context": "contextId",
          "stream": "streamId", "grid": "gridX", "block": "blockX",
          "static_shared": "staticSharedMemory",
          "dynamic_shared": "dynamicSharedMemory",
          "local_per_thread": "localMemoryPerThread",
          "correlation": "correlationId", "name": "name", "graph": "graphId"}
PLACE = {"bytes": "bytes", "start": "start", "end": "end", "device": "deviceId",
         "context": "contextId", "stream": "streamId",
         "correlation": "correlationId", "graph": "graphId"}
COPY = {"kind": "kind", "copy_kind": "copyKind", "from": "srcKind",
        "to": "dstKind", "flags": "flags", **PLACE}
PEER = {**COPY, "from_device": "srcDeviceId", "to_device": "dstDeviceId"}
FILL = {"kind": "kind", "value": "value", "memory": "memoryKind",
        "flags": "flags", **PLACE}
API = {"kind": "kind", "function": "cbid", "start": "start", "end": "end",
       "process": "processId", "thread": "threadId",
       "correlation": "correlationId", "result": "returnValue"}
SYNC = {"kind": "kind", "type": "type", "start": "start", "end": "end",
        "correlation": "correlationId", "context": "contextId",
        "stream": "streamId"}
OVERHEAD = {"kind": "kind", "type": "overheadKind", "object": "objectKind",
            "ids": "objectId", "start": "start", "end": "end"}
NAME = {"kind": "kind", "object": "objectKind", "ids": "objectId",
        "name": "name"}
DEVICE = {"kind": "kind", "id": "id", "name": "name",
          "cc_major": "computeCapabilityMajor",
          "cc_minor": "computeCapabilityMinor"}
CONTEXT = {"kind": "kind", "context": "contextId", "device": "deviceId",
           "default_stream": "nullStreamId"}
STREAM = {"kind": "kind", "context": "contextId", "stream": "streamId",
          "priority": "priority", "flag": "flag"}

# Kiln's record, NVIDIA's name without version, the versions, the members.
RECORDS = [("cupti_kernel", "Kernel", (8, 9, 10), KERNEL),
           ("cupti_memcpy", "Memcpy", (5, 6), COPY),
           ("cupti_memcpy2", "MemcpyPtoP", (4,), PEER),
           ("cupti_memset", "Memset", (4,), FILL),
           ("cupti_api", "API", ("",), API),
           ("cupti_sync", "Synchronization", ("", 2), SYNC),
           ("cupti_overhead", "Overhead", ("", 2, 3), OVERHEAD),
           ("cupti_name", "Name", ("",), NAME),
           ("cupti_device", "Device", (4, 5), DEVICE),
           ("cupti_context", "Context", ("", 2, 3), CONTEXT),
           ("cupti_stream", "Stream", ("",), STREAM)]

VALUES = [(f"CUPTI_KIND_{kind}", f"CUPTI_ACTIVITY_KIND_{kind}") for kind in (
    "MEMCPY", "MEMSET", "KERNEL", "DRIVER", "RUNTIME", "DEVICE", "CONTEXT",
    "CONCURRENT_KERNEL", "NAME", "OVERHEAD", "MEMCPY2", "STREAM",
    "SYNCHRONIZATION")] + [
        ("CUPTI_OK", "CUPTI_SUCCESS"),
        ("CUPTI_MAX_LIMIT_REACHED", "CUPTI_ERROR_MAX_LIMIT_REACHED"),
        ("CUPTI_FLUSH_FORCED", "CUPTI_ACTIVITY_FLAG_FLUSH_FORCED"),
        ("CUPTI_OBJECT_THREAD", "CUPTI_ACTIVITY_OBJECT_THREAD"),
        ("CUPTI_DOMAIN_DRIVER", "CUPTI_CB_DOMAIN_DRIVER_API"),
        ("CUPTI_DOMAIN_RUNTIME", "CUPTI_CB_DOMAIN_RUNTIME_API")]


def program(text):
    """A C program that compiles only if all declarations agree. `text` is the
    text of NVIDIA's headers, which have some versions of each record."""
    lines = ["#include <cupti.h>", '#include "inject/cupti_abi.h"']
    found = {}
    for ours, name, versions, members in RECORDS:
        for version in versions:
            theirs = f"CUpti_Activity{name}{version}"
            if f"}} {theirs};" not in text:
                continue
            found[ours] = theirs
            for mine, other in members.items():
                lines.append(
                    f"_Static_assert(offsetof({ours}, {mine}) == "
                    f'offsetof({theirs}, {other}), "{theirs}.{other}");')
    for ours, theirs in VALUES:
        lines.append(f'_Static_assert((int){ours} == (int){theirs}, "{theirs}");')
    missing = [ours for ours, *_ in RECORDS if ours not in found]
    assert not missing, f"no record of NVIDIA's for {missing}"
    return "\n".join(lines + ["int main(void) { return 0; }", ""])


def include_folders(root):
    """The folders with cupti.h and cuda.h below a root."""
    for pattern in ("include", "extras/CUPTI/include", "nvidia/*/include",
                    "*/nvidia/*/include", "targets/*/include"):
        yield from glob.glob(os.path.join(root, pattern))


def headers():
    """Pairs of folders: with cupti.h, with cuda.h."""
    roots = [r for r in os.environ.get("KILN_TEST_CUPTI", "").split(":") if r]
    seen = set()
    for root in roots + sorted(glob.glob("/usr/local/cuda*")) + ["/usr"]:
        folders = list(include_folders(root))
        cuda = [f for f in folders if os.path.exists(f"{f}/cuda.h")]
        for folder in folders:
            header = os.path.realpath(f"{folder}/cupti_activity.h")
            if cuda and os.path.exists(header) and header not in seen:
                seen.add(header)
                yield folder, cuda[0]


def main():
    n = 0
    for cupti, cuda in headers():
        text = ""
        for path in glob.glob(f"{cupti}/cupti_activity*.h"):
            with open(path, encoding="utf-8", errors="replace") as file:
                text += file.read()
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "abi.c")
            with open(source, "w", encoding="utf-8") as file:
                file.write(program(text))
            subprocess.run(
                [os.environ.get("CC", "cc"), "-w", f"-I{cupti}", f"-I{cuda}",
                 f"-I{os.environ['SOURCE']}/runtime", "-c", source, "-o",
                 os.path.join(folder, "abi.o")], check=True)
        print("agrees with", cupti)
        n += 1
    if n == 0:
        print("no cupti_activity.h was found; set KILN_TEST_CUPTI")
        sys.exit(77)


if __name__ == "__main__":
    main()

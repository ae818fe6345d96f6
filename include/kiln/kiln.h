/* kiln.h -- CUDA kernels in any C program: no nvcc, no link to CUDA.
 *
 * The headers in the order of use:
 *   status.h    what a call returns, and the record of what went wrong
 *   runtime.h   the root object: allocator, log, driver, compilers, cache
 *   arch.h      GPU generations as data; compatibility ladder; occupancy
 *   program.h   source -> image -> module -> kernel; embedded programs
 *   cache.h     look at and tend the compile cache; packs
 *   device.h    GPUs and their contexts
 *   stream.h    streams, events, timing
 *   memory.h    device and pinned memory, copies, fills
 *   launch.h    run kernels
 *   texture.h   arrays, textures, surfaces
 *   timeline.h  what ran when
 *
 * Rules that hold everywhere:
 * - An object made through `T **out` is yours; free it with its _free(), which
 *   takes NULL. *out is NULL after any failure. Everything else is borrowed.
 * - Options structs start from {0}: every zero means "default".
 * - Kiln never prints, exits, aborts or keeps global state; it restores the
 *   calling thread's current context on every path.
 * - After fork() the child gets KILN_EFORKED from calls that need the driver. */
#ifndef KILN_KILN_H
#define KILN_KILN_H

#include <kiln/arch.h>
#include <kiln/cache.h>
#include <kiln/device.h>
#include <kiln/gather.h>
#include <kiln/histogram.h>
#include <kiln/launch.h>
#include <kiln/map.h>
#include <kiln/memory.h>
#include <kiln/merge.h>
#include <kiln/ops.h>
#include <kiln/program.h>
#include <kiln/reduce.h>
#include <kiln/runtime.h>
#include <kiln/scan.h>
#include <kiln/search.h>
#include <kiln/select.h>
#include <kiln/sort.h>
#include <kiln/status.h>
#include <kiln/stream.h>
#include <kiln/texture.h>
#include <kiln/timeline.h>
#include <kiln/tune.h>
#include <kiln/types.h>

#endif

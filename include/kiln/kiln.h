/* kiln.h -- run CUDA kernels from any C program, without nvcc and without
 * linking to CUDA.
 *
 * This header is the first chapter of the manual. The other chapters are, in
 * the order of use:
 *
 *   types.h      names that all headers share; the version
 *   status.h     status codes, and the record of the last failure
 *   runtime.h    the root object: allocator, log, driver, compilers, cache
 *   arch.h       traits of GPU generations; compatibility ladder; occupancy
 *   program.h    source -> image -> module -> kernel; embedded programs
 *   inspect.h    look inside an image: line tables, machine code, SASS
 *   device.h     GPUs and their contexts
 *   stream.h     streams, events, graphs, host functions
 *   memory.h     device, pinned and managed memory; copies; fills
 *   launch.h     launch kernels
 *   ops.h        types and rules that all operations share. Each family of
 *                operations has its own header:
 *                map.h reduce.h scan.h select.h sort.h merge.h search.h
 *                histogram.h gather.h gemm.h all_pairs.h stencil.h
 *                permute.h random.h move.h merge_sort.h sets.h top_k.h
 *   tune.h       tuning parameters of the operations
 *   cache.h      inspect and maintain the compile cache; write packs
 *   texture.h    CUDA arrays, textures, surfaces
 *   timeline.h   record when work ran on the host and the device
 *   cpu.h        run kernels on the CPU, with checks. The CPU device is in a
 *                separate library, so kiln.h does not include cpu.h
 *   kiln.hpp     header-only C++ interface: RAII owners, setters for descs
 *
 *
 * A complete program
 * ------------------
 *
 *   #include <kiln/kiln.h>
 *   #include <stdio.h>
 *
 *   static const char source[] =
 *       "extern \"C\" __global__ void scale(float *x, float a, unsigned n)\n"
 *       "{\n"
 *       "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
 *       "  if (i < n)\n"
 *       "    x[i] *= a;\n"
 *       "}\n";
 *
 *   int main(void)
 *   {
 *     const kiln_program_desc program = {.source = source, .name = "scale.cu"};
 *     float host[4] = {1, 2, 3, 4}, a = 2;
 *     uint32_t n = 4;
 *     kiln_runtime *rt = NULL;
 *     kiln_device *device = NULL;
 *     kiln_module *module = NULL;
 *     kiln_kernel *kernel;
 *     CUdeviceptr x = 0;
 *     kiln_launch_config config = kiln_launch_1d(n, 256);
 *
 *     if (kiln_runtime_create(&rt, NULL) != KILN_OK ||
 *         kiln_device_open(&device, rt, 0, NULL) != KILN_OK ||
 *         kiln_module_load(&module, device, &program) != KILN_OK ||
 *         kiln_module_kernel(&kernel, module, "scale") != KILN_OK ||
 *         kiln_memory_alloc(&x, device, sizeof host) != KILN_OK ||
 *         kiln_copy_to_device(device, x, host, sizeof host) != KILN_OK ||
 *         KILN_LAUNCH(kernel, &config, KILN_ARG(x), KILN_ARG(a),
 *                     KILN_ARG(n)) != KILN_OK ||
 *         kiln_copy_to_host(device, host, x, sizeof host) != KILN_OK)
 *       printf("%s\n%s\n", kiln_last_error()->message,
 *              kiln_last_error()->hint);
 *     else
 *       printf("%g %g %g %g\n", host[0], host[1], host[2], host[3]);
 *     if (device != NULL)
 *       kiln_memory_free(device, x);
 *     kiln_module_free(module);
 *     kiln_device_free(device);
 *     kiln_runtime_free(rt);
 *     return 0;
 *   }
 *
 * Link either kiln or kiln_core. kiln_core is kiln without the operations
 * (ops.h and its families, tune.h). Both exist as a shared and as a static
 * library. The static library exports no symbols from a plug-in that contains
 * it. CMake: find_package(kiln) with kiln::kiln, kiln::kiln_static, kiln::core
 * or kiln::core_static. pkg-config: kiln, kiln_core, kiln_cpu. Kiln loads
 * libcuda and NVRTC at run time, so a program also starts on machines without
 * them.
 *
 *
 * Life of the objects
 * -------------------
 *
 *   kiln_runtime                       usually one per process
 *     +- kiln_image, kiln_job          these need no device
 *     +- kiln_device                   one GPU with one context
 *          +- kiln_module              a program in that context
 *          |    +- kiln_kernel         borrowed from its module, never freed
 *          +- kiln_stream, kiln_event, kiln_graph, kiln_timeline
 *          +- memory, kiln_cuda_array, textures, surfaces
 *
 * Free each object before its parent in this tree. Every _free() function
 * accepts NULL.
 *
 *
 * Ownership
 * ---------
 *
 * - The caller owns an object that a function returns through `T **out`. *out
 *   is NULL after any failure.
 * - Every other pointer that a function returns is borrowed. The contract of
 *   the function says how long the pointer is valid.
 * - Arguments are borrowed for the call, unless a contract says that Kiln
 *   copies them or that they must live longer.
 * - Initialise desc and option structs with {0}: zero means "default" in each
 *   member.
 *
 *
 * Errors
 * ------
 *
 * Functions that can fail return a kiln_status; kiln_last_error() explains the
 * last failure of the calling thread. A contract lists the statuses of its
 * function after "@retval". Any function that calls the driver may also return
 * KILN_ENODRIVER if the driver is no longer available. Any function may return
 * KILN_EINTERNAL, which reports a defect in Kiln.
 *
 * Kiln never prints, exits or aborts, and keeps no global state except one
 * error record per thread. Every function restores the context that was current
 * in the calling thread, also on failure. After fork(), calls in the child that
 * need the driver return KILN_EFORKED.
 *
 *
 * Threads
 * -------
 *
 * "Thread-safe" in a contract means that any number of CPU threads may call the
 * function concurrently, also with the same objects. "Not thread-safe" is
 * always followed by the object that only one thread may use during the call.
 * Functions that create, compile, launch or copy are thread-safe, and so are
 * all operations. A function that frees an object needs exclusive use of that
 * object. A callback runs in the thread that its contract names. Kiln holds no
 * lock while a callback runs.
 *
 * "Never blocks" means that the call waits neither for the device, nor for
 * files, nor for the compiler. The call may lock a mutex for a short time.
 *
 *
 * Streams
 * -------
 *
 * Functions that take a device are synchronous: they return when the work is
 * done. Functions that take a stream queue the work and return. Work in one
 * stream runs in order. Work in different streams may overlap, unless events
 * order it. A launch config without a stream uses the default stream. A kernel
 * that fails is reported later: the next call that uses the context returns
 * KILN_ESTICKY, and the context is then unusable.
 *
 *
 * Versions
 * --------
 *
 * KILN_VERSION is the version of the header, and kiln_version() returns the
 * version of the library. A version has the form major.minor.patch.
 *
 * - The soname is libkiln.so.N. N is 0 before version 1.0 and equals the major
 *   version from 1.0 on. Only an incompatible change increases N. Before 1.0, a
 *   minor version may contain an incompatible change, which CHANGELOG.md then
 *   lists.
 * - Within one soname, functions, enumerators and struct members may be added.
 *   They are never removed or reordered, and their meaning never changes. A
 *   program must therefore expect enumerators, such as statuses, that its
 *   header does not define.
 * - Desc, option and result structs may get new members at the end. A program
 *   that was compiled against an older header still works: each function that
 *   takes such a struct is an inline wrapper over an exported NAME_sized(). The
 *   wrapper passes the size of the caller's struct. Kiln treats members that
 *   the caller's struct lacks as 0.
 * - A program that was compiled against a newer header works with an older
 *   library if it leaves new members at 0. Otherwise the call returns
 *   KILN_EINVAL.
 * - Structs that are nested in descs or passed in arrays never change their
 *   size: kiln_array, kiln_input, kiln_op, kiln_param, kiln_code,
 *   kiln_workspace, kiln_target, kiln_header, kiln_arg, kiln_dim3, kiln_extent,
 *   kiln_allocator, kiln_tuning, kiln_place, kiln_line_row. New members will be
 *   added to the descs that contain these structs instead.
 * - Use NAME_sized() if you look up functions with dlsym() or bind them from
 *   another language, and pass the size of your struct. The address of the
 *   wrapper NAME() may be taken like the address of any function.
 * - A disk cache file or a pack that another version of Kiln wrote is a cache
 *   miss, not an error. */
#ifndef KILN_KILN_H
#define KILN_KILN_H

#include <kiln/all_pairs.h>
#include <kiln/arch.h>
#include <kiln/cache.h>
#include <kiln/device.h>
#include <kiln/gather.h>
#include <kiln/gemm.h>
#include <kiln/histogram.h>
#include <kiln/inspect.h>
#include <kiln/launch.h>
#include <kiln/map.h>
#include <kiln/memory.h>
#include <kiln/merge.h>
#include <kiln/merge_sort.h>
#include <kiln/move.h>
#include <kiln/ops.h>
#include <kiln/permute.h>
#include <kiln/program.h>
#include <kiln/random.h>
#include <kiln/reduce.h>
#include <kiln/runtime.h>
#include <kiln/scan.h>
#include <kiln/search.h>
#include <kiln/select.h>
#include <kiln/sets.h>
#include <kiln/sort.h>
#include <kiln/status.h>
#include <kiln/stencil.h>
#include <kiln/stream.h>
#include <kiln/texture.h>
#include <kiln/timeline.h>
#include <kiln/top_k.h>
#include <kiln/tune.h>
#include <kiln/types.h>

#endif

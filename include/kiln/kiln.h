/* kiln.h -- CUDA kernels in any C program: no nvcc, no link to CUDA.
 *
 * This is the first chapter of the manual. The other chapters, in the order of use:
 *
 *   types.h      names that all headers share; the version
 *   status.h     what a call returns, and the record of what went wrong
 *   runtime.h    the root object: allocator, log, driver, compilers, cache
 *   arch.h       GPU generations as data; compatibility ladder; occupancy
 *   program.h    source -> image -> module -> kernel; embedded programs
 *   device.h     GPUs and their contexts
 *   stream.h     streams, events, graphs, host functions
 *   memory.h     device, pinned and managed memory; copies; fills
 *   launch.h     run kernels
 *   ops.h        what all operations share; then one header per family:
 *                map.h reduce.h scan.h select.h sort.h merge.h search.h
 *                histogram.h gather.h
 *   tune.h       parameters that the operations run with
 *   cache.h      inspect and maintain the compile cache; packs
 *   texture.h    CUDA arrays, textures, surfaces
 *   timeline.h   record what ran when
 *   cpu.h        kernels on the CPU, with checks; a library of its own (kiln_cpu),
 *                so this header does not include it
 *   kiln.hpp     C++: owners that free, setters for descs; header-only
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
 *       printf("%s\n%s\n", kiln_last_error()->message, kiln_last_error()->hint);
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
 * Link one of two libraries: kiln, or kiln_core, which is kiln without operations
 * (ops.h and its families, tune.h). Each is a shared library and a static one. The
 * static one exports nothing from a plug-in that contains it. CMake: find_package(kiln)
 * with kiln::kiln, kiln::kiln_static, kiln::core or kiln::core_static. pkg-config: kiln,
 * kiln_core, kiln_cpu. Kiln loads libcuda and NVRTC at run time, so a program also starts
 * on machines without them.
 *
 *
 * Life of the objects
 * -------------------
 *
 *   kiln_runtime                       one per process is usual
 *     +- kiln_image, kiln_job          need no device
 *     +- kiln_device                   one GPU with one context
 *          +- kiln_module              a program in that context
 *          |    +- kiln_kernel         borrowed from its module, never freed
 *          +- kiln_stream, kiln_event, kiln_graph, kiln_timeline
 *          +- memory, kiln_cuda_array, textures, surfaces
 *
 * Free an object before the one above it. Each _free() function takes NULL.
 *
 *
 * Ownership
 * ---------
 *
 * - An object made through `T **out` is yours. *out is NULL after any failure.
 * - Every other pointer that a function returns is borrowed; its contract says how
 *   long it is valid.
 * - Arguments are borrowed for the call, unless a contract says that they are copied
 *   or must outlive something.
 * - Descs and options start from {0}: zero means "default" in each member.
 *
 *
 * Errors
 * ------
 *
 * Functions that can fail return a kiln_status; kiln_last_error() explains the last
 * failure of the calling thread. Contracts list the statuses after "@retval"; "as
 * kiln_x()" means the list of that function. Any function that makes a driver call
 * may also return KILN_ENODRIVER if the driver is gone, and any function
 * KILN_EINTERNAL, which is a defect in Kiln.
 *
 * Kiln never prints, exits or aborts, and keeps no global state except the threads'
 * error records. On every path it restores the context that was current in the
 * calling thread. After fork(), calls in the child that need the driver return
 * KILN_EFORKED.
 *
 *
 * Threads
 * -------
 *
 * "Threads: any" in a contract means that any number of threads may call the
 * function at once, also with the same objects. Otherwise the contract says which
 * object needs exclusive use. Creating, compiling, launching, copying and all
 * operations are "any"; freeing needs exclusive use of the object that is freed.
 * A callback runs in the thread that its contract names; Kiln holds no lock meanwhile.
 *
 * "Blocks: never" means that a call waits neither for the device, nor for files, nor
 * for the compiler. It may take a mutex for a short time.
 *
 *
 * Streams
 * -------
 *
 * Functions that take a device are synchronous: they return when the work is done.
 * Functions that take a stream queue work and return. Work of one stream runs in
 * order; work of different streams may overlap, ordered by events. A launch config
 * without a stream uses the default stream. Errors of kernels appear later, as
 * KILN_ESTICKY from any call that meets them; the context is then lost.
 *
 *
 * Versions
 * --------
 *
 * KILN_VERSION is the header's version, kiln_version() the library's. Versions are
 * major.minor.patch.
 *
 * - The soname is libkiln.so.N. N is 0 before version 1.0 and the major version from
 *   then on. It changes only with an incompatible change; before 1.0 a minor version
 *   may make one, and CHANGELOG.md says so.
 * - Within one soname, functions, enumerators and struct members are added, never
 *   removed, reordered or given another meaning. A status or another enumerator that
 *   is new may reach programs that do not know it.
 * - Descs, options and results may grow at the end. A program that was compiled
 *   against an older header keeps working: each function that takes such a struct is
 *   an inline wrapper over an exported NAME_sized(), which takes the size of the
 *   caller's struct as well. Members that the caller does not have count as 0.
 * - A program that was compiled against a newer header works with an older library if
 *   it leaves new members at 0. Otherwise the call returns KILN_EINVAL.
 * - Structs that are nested in descs or passed in arrays never change their size:
 *   kiln_array, kiln_input, kiln_op, kiln_param, kiln_code, kiln_workspace,
 *   kiln_target, kiln_header, kiln_arg, kiln_dim3, kiln_extent, kiln_allocator,
 *   kiln_tuning. What they lack will be added to the descs that contain them.
 * - Load NAME_sized() if you look functions up with dlsym(), or bind them from another
 *   language, and pass the size of your struct. The address of the wrapper NAME() may
 *   be taken as that of any function.
 * - A file of the disk cache or a pack of another version is a miss, not an error. */
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

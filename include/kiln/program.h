/* program.h -- compile CUDA C++ source into images; load modules and kernels.
 *
 *   kiln_program_desc -> kiln_compile() -> kiln_image    (no GPU needed)
 *   kiln_program_desc -> kiln_module_load() -> kiln_module -> kiln_kernel
 *
 * Both functions take the compiled image from the cache if the cache holds it.
 *
 * NVRTC runs on the thread that calls kiln_compile() or kiln_module_load(), or
 * on a compile thread of the runtime. NVRTC needs at least 128 KiB of stack on
 * the calling thread. */
#ifndef KILN_PROGRAM_H
#define KILN_PROGRAM_H

#include <kiln/arch.h>
#include <kiln/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A virtual header: source code may #include <name> although no such file
 * exists. The size of this struct never changes. */
typedef struct kiln_header {
  const char *name; /**< name of the virtual header, as written in the
                         #include */
  const char *text; /**< contents of the virtual header, NUL-terminated */
} kiln_header;

/**
 * A program and how to specialise it. Initialise the struct with {0}. All
 * members are borrowed for the call that takes the desc; kiln_job_start()
 * copies what it needs.
 *
 * Kiln compiles every program with the traits of its target as macros
 * (KILN_ARCH, KILN_WARP_SIZE, KILN_HAS_SHFL, KILN_HAS_ITS, KILN_HAS_MATCH,
 * KILN_HAS_REDUX, KILN_HAS_CP_ASYNC, KILN_HAS_TMA, KILN_HAS_CLUSTER,
 * KILN_HAS_WGMMA, KILN_SMEM_PER_BLOCK, KILN_SMEM_PER_BLOCK_OPTIN,
 * KILN_REGS_PER_SM). KILN_HAS_WGMMA is 1 only for the target sm_90a, which a
 * program requests by the member `suffix`. A program may #include
 * <kiln/prelude.cuh>, which offers warp and block collectives with the same
 * names on every target.
 *
 * Kiln provides small versions of the standard C headers (<stdint.h>, <math.h>,
 * <assert.h>, <stdio.h>, ...). CUDA's own headers (<cuda_fp16.h>,
 * <cuda_bf16.h>, <mma.h>, ...) are taken from the installation of the NVRTC
 * that compiles the program, if they are installed there. Virtual headers and
 * files in -I folders take precedence over both.
 */
typedef struct kiln_program_desc {
  const char *builtin; /**< name of an embedded program to compile, or NULL */
  /** The program as CUDA C++ source; used if builtin is NULL. CR LF line ends
   * and a byte order mark are allowed. */
  const char *source;
  /** Size of the source in bytes; 0 means that the source is NUL-terminated.
   * The source must not contain a NUL. */
  size_t source_size;
  const char *name; /**< file name of the source in compile messages, at most
                         8,192 bytes; default: "program.cu" */
  int first_line;   /**< line number of the first line of the source;
                         default: 1 */
  const kiln_header *headers; /**< array of virtual headers; they take
                                   precedence over files of the same name */
  size_t n_headers;           /**< number of virtual headers */
  /** Macro definitions "NAME" or "NAME=VALUE". Defining the same name twice is
   * an error unless the values are equal. */
  const char *const *defines;
  size_t n_defines;          /**< number of macro definitions */
  const char *const *traits; /**< overrides of the target's traits, e.g.
                                  "KILN_HAS_SHFL=0" */
  size_t n_traits;           /**< number of trait overrides */
  const char *const *names; /**< name expressions of kernels and variables, e.g.
                                 "scale<float>", at most 8,192 bytes each */
  size_t n_names;           /**< number of name expressions */
  /** Further NVRTC options, one per entry; "-I" and its folder may be two
   * entries. Options that Kiln sets itself (-arch, --gpu-architecture, -ptx,
   * -dlto, -time, ...) are refused. The contents of included files are part of
   * the cache key. A program that contains `#include MACRO` is not cached. */
  const char *const *options;
  size_t n_options; /**< number of NVRTC options */
  char suffix;    /**< target suffix 'a' or 'f' if the code needs it, otherwise
                       0 */
  bool debug;     /**< compile device code for debugging (-G) */
  bool lineinfo;  /**< compile with source line information (-lineinfo) */
  bool fast_math; /**< compile with --use_fast_math */
  /** Compile with -Ofast-compile=min (no effect before NVRTC 12.9), which takes
   * 0.4 to 0.9 of the compile time. The code may be slower, so measure its
   * speed. */
  bool fast_compile;
  /** Compile with --minimal (no effect before NVRTC 12.9), which saves a few
   * milliseconds. The option suits programs that use neither textures,
   * surfaces, CUDA's runtime API nor launches from the device. If a program
   * fails to compile with the option, Kiln compiles the program again without
   * it. */
  bool minimal;
  int max_registers;  /**< largest number of registers per thread
                           (-maxrregcount); 0 means no limit */
  bool fail_on_spill; /**< fail with KILN_ESPILL if a kernel spills registers */
  bool no_cache;      /**< neither read nor write the memory cache and the disk
                           cache */
  bool refresh;       /**< always compile the program, then replace the cached
                           entry */
  /** Callback that receives the complete compile log, including warnings. The
   * log contains the program's `name` and line numbers that count from
   * first_line. The callback runs in the thread that compiles. */
  void (*on_log)(void *user, const char *text, size_t size);
  void *log_user; /**< pointer that is passed to the callback on_log */
} kiln_program_desc;

/** Where an image came from: the compiler, a cache tier or a pack. */
typedef enum kiln_origin {
  KILN_FROM_COMPILER = 0, /**< NVRTC compiled the image for this call */
  KILN_FROM_MEMORY,       /**< the image came from the memory cache */
  KILN_FROM_DISK,         /**< the image came from the disk cache */
  KILN_FROM_PACK,         /**< the image came from a pack file */
  KILN_FROM_OTHER_PROCESS /**< another process compiled the image while this
                               process waited */
} kiln_origin;

/** Returns the name of an origin: "compiled", "memory", "disk", "pack" or
 * "other process". The string is static.
 * Thread-safe. Never blocks. */
KILN_API const char *kiln_origin_name(kiln_origin origin);

/**
 * Compiles a program for a target, or takes the image from the cache. The call
 * needs no GPU.
 *
 * @param[out] out  the image; the caller frees it with kiln_image_free(). NULL
 *                  on failure.
 * @param desc      the program to compile; borrowed for the call.
 * @param target    the target to compile for; its suffix takes precedence over
 *                  desc->suffix.
 * @retval KILN_OK
 * @retval KILN_EINVAL       both or neither of builtin and source are given;
 *                           the source contains a NUL; or an option, define or
 *                           trait is not valid
 * @retval KILN_ENOTFOUND    there is no such embedded program, or the program
 *                           does not define a name expression
 * @retval KILN_ENONVRTC     NVRTC is not available, and no cache holds the
 *                           image
 * @retval KILN_EUNSUPPORTED no NVRTC library that Kiln found supports the
 *                           target
 * @retval KILN_ECOMPILE     the program does not compile; see
 *                           kiln_last_error()->log
 * @retval KILN_ESPILL, KILN_ENOMEM, KILN_ECANCELED
 * Thread-safe, also for concurrent calls with the same program: only one of
 * them compiles. Blocks while it accesses files, while it compiles, and for at
 * most flight_wait_ms while another process compiles the same program.
 */
KILN_INLINE kiln_status kiln_compile(kiln_image **out, kiln_runtime *rt,
                                     const kiln_program_desc *desc,
                                     const kiln_target *target);

/** Frees the caller's reference to an image; NULL is allowed. Modules that were
 * loaded from the image stay valid, because each module holds its own
 * reference.
 * Thread-safe. Never blocks. */
KILN_API void kiln_image_free(kiln_image *image);

/* The functions below read properties of an image. For a NULL image they return
 * NULL or 0. The image owns the pointers that they return, which are valid
 * until the image is freed.
 * Thread-safe. Never blocks. */

/** Returns the PTX of the image as a NUL-terminated string, or NULL if the
 * image holds only machine code.
 * @param[out] size  receives the length in bytes without the NUL; may be
 *                   NULL. */
KILN_API const char *kiln_image_ptx(const kiln_image *image, size_t *size);
/** Returns the machine code (CUBIN) of the image, or NULL if the image holds
 * only PTX.
 * @param[out] size  receives the size in bytes; may be NULL. */
KILN_API const void *kiln_image_cubin(const kiln_image *image, size_t *size);
/** Returns the compile log as a NUL-terminated string, which may be empty. The
 * log contains warnings and the resource usage that the assembler reports. */
KILN_API const char *kiln_image_log(const kiln_image *image);
/** Returns the target that an image was compiled for. */
KILN_API kiln_target kiln_image_target(const kiln_image *image);
/** Returns where an image came from: the compiler, a cache tier or a pack. */
KILN_API kiln_origin kiln_image_origin(const kiln_image *image);
/** Returns the version of the NVRTC that compiled an image; 13000 means
 * 13.0. */
KILN_API int kiln_image_nvrtc(const kiln_image *image);
/** Returns the time in milliseconds that the compiler took for the image, even
 * if the image was later loaded from a cache. */
KILN_API double kiln_image_compile_ms(const kiln_image *image);
/** Returns the cache key of the image as a string.
 * @param[out] hash  receives the 32-digit hash of the key, which is the name of
 *                   the cache file; may be NULL. */
KILN_API const char *kiln_image_key(const kiln_image *image, const char **hash);
/** Returns the lowered (mangled) name of a name expression or of a kernel, or
 * NULL if the image contains no such name. */
KILN_API const char *kiln_image_lowered(const kiln_image *image,
                                        const char *name);

/** The resources that a kernel uses, as reported by the assembler. */
typedef struct kiln_resources {
  const char *name;  /**< lowered name of the kernel; owned by the image */
  int registers;     /**< number of registers per thread */
  int spill_stores;  /**< register spill stores in bytes per thread */
  int spill_loads;   /**< register spill loads in bytes per thread */
  int stack;         /**< stack frame in bytes per thread */
  int shared_static; /**< static shared memory in bytes per block */
  int constant;      /**< constant memory of the kernel in bytes, including
                          parameters */
  int local;         /**< local memory in bytes per thread */
  int max_threads; /**< launch bound (__launch_bounds__) in threads per block; 0
                        means that there is none */
  int n_params;    /**< number of kernel parameters */
  int code;        /**< machine code in bytes; 0 if the image holds only PTX */
} kiln_resources;

/** Returns the number of kernels in an image. */
KILN_API size_t kiln_image_kernels(const kiln_image *image);
/** Describes the resources that one kernel in an image uses.
 * @param i         index of the kernel, 0 to kiln_image_kernels() - 1.
 * @param[out] out  the resources; filled on success.
 * @retval KILN_OK, KILN_EINVAL (an argument is NULL, or there is no kernel
 *         i). */
KILN_INLINE kiln_status kiln_image_resources(const kiln_image *image, size_t i,
                                             kiln_resources *out);

/* ---- Compiling many programs in the background --------------------------- */

/** A job: a set of programs that compile in the background. The type is
 * opaque. */
typedef struct kiln_job kiln_job;

/** Progress of a job. All counts are numbers of programs. */
typedef struct kiln_job_progress {
  size_t total;    /**< number of programs in the job */
  size_t done;     /**< number of finished programs, with success or failure */
  size_t failed;   /**< number of finished programs that failed */
  size_t compiled; /**< number of finished programs that were compiled rather
                        than loaded from a cache */
} kiln_job_progress;

/** Callback that receives the progress of a job after each program. `now` is
 * borrowed for the call. Kiln calls it from a compile thread and holds no lock
 * meanwhile. For programs that are canceled before they start,
 * kiln_job_cancel() or kiln_job_free() calls it in the thread of their
 * caller. */
typedef void (*kiln_progress_fn)(void *user, const kiln_job_progress *now);

/**
 * Starts to compile n programs, desc[i] for target[i], on the compile threads
 * of the runtime. The programs start in order, and at most compile_threads of
 * them are compiled concurrently.
 *
 * @param[out] out  the job; the caller frees it with kiln_job_free(). NULL on
 *                  failure.
 * @param desc      array of n programs; copied.
 * @param target    array of n targets; copied.
 * @param progress  called after each program; may be NULL.
 * @param user      passed to progress.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM.
 * Thread-safe. Never blocks.
 */
KILN_INLINE kiln_status kiln_job_start(kiln_job **out, kiln_runtime *rt,
                                       const kiln_program_desc *desc,
                                       const kiln_target *target, size_t n,
                                       kiln_progress_fn progress, void *user);

/**
 * Waits until every program of a job has finished.
 *
 * @param timeout_ms  timeout in milliseconds; 0 only polls, and UINT64_MAX
 *                    waits without limit.
 * @retval KILN_OK (all programs have finished, with success or failure),
 *         KILN_ETIMEOUT, KILN_EINVAL.
 * Thread-safe. Blocks for at most timeout_ms.
 */
KILN_API kiln_status kiln_job_wait(kiln_job *job, uint64_t timeout_ms);

/** Reports the progress of a job.
 * @param[out] out  the progress; filled on success.
 * @retval KILN_OK, KILN_EINVAL.
 * Thread-safe. Never blocks. */
KILN_INLINE kiln_status kiln_job_state(kiln_job *job, kiln_job_progress *out);

/**
 * Returns the image of one program of a job after the program has finished.
 *
 * @param i         index of the program in the arrays passed to
 *                  kiln_job_start().
 * @param[out] out  the image; the caller frees it with kiln_image_free(). NULL
 *                  on failure.
 * @retval KILN_OK
 * @retval KILN_ENOTREADY  the program has not finished yet
 * @retval KILN_EINVAL     an argument is NULL, or there is no program i
 * @retval other           the program failed; the status is one of
 *                         kiln_compile(), and kiln_last_error() returns the
 *                         record of that failure
 * Thread-safe. Never blocks.
 */
KILN_API kiln_status kiln_job_image(kiln_job *job, size_t i, kiln_image **out);

/** Cancels a job. Programs that have not started finish with KILN_ECANCELED.
 * Running compilations stop immediately if NVRTC supports it (12.8 and later).
 * Otherwise they run to completion.
 * @retval KILN_OK, KILN_EINVAL.
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_job_cancel(kiln_job *job);

/** Cancels a job and frees it; NULL is allowed. Images that kiln_job_image()
 * returned stay valid.
 * Not thread-safe: no other thread may use the job. Blocks until running
 * compilations have stopped. */
KILN_API void kiln_job_free(kiln_job *job);

/* ---- Modules ------------------------------------------------------------- */

/**
 * Compiles a program for a device, or takes its image from the cache, and loads
 * the image into the context of the device.
 *
 * kiln_ladder() (arch.h) chooses the target to compile for. If the driver
 * rejects the image, Kiln removes the image from the cache and compiles the
 * program again. If the driver rejects the new image as well, Kiln loads its
 * PTX.
 *
 * @param[out] out  the module; the caller frees it with kiln_module_free().
 *                  NULL on failure.
 * @param device    the device to load into; must outlive the module.
 * @param desc      the program to load; borrowed for the call.
 * @retval the same statuses as kiln_compile(), and KILN_EDRIVER, KILN_EDEVMEM,
 *         KILN_ESTICKY, KILN_EFORKED.
 * Thread-safe. Blocks like kiln_compile(). The first use of a device also
 * creates its context, while a compile thread compiles the program.
 */
KILN_INLINE kiln_status kiln_module_load(kiln_module **out, kiln_device *device,
                                         const kiln_program_desc *desc);

/**
 * Loads an image that kiln_compile() returned. The call compiles nothing.
 *
 * @param[out] out  the module; the caller frees it with kiln_module_free().
 *                  NULL on failure.
 * @param device    the device to load into; must outlive the module.
 * @param image     the image to load; the caller may free it afterwards.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM, KILN_EDRIVER (the driver accepts
 *         neither the machine code nor the PTX), KILN_EDEVMEM, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Thread-safe. Blocks while the driver loads the image or assembles its PTX.
 */
KILN_API kiln_status kiln_module_from_image(kiln_module **out,
                                            kiln_device *device,
                                            const kiln_image *image);

/**
 * Wraps a module that the caller has loaded with the driver. The caller remains
 * the owner of `handle`.
 *
 * Kiln checks the arguments of launches if it knows the parameters of the
 * kernels, either from the driver (12.4 and later) or from `ptx`. Otherwise
 * Kiln does not check the arguments.
 *
 * @param[out] out  the module; the caller frees it with kiln_module_free().
 *                  NULL on failure.
 * @param device    the device whose context holds the module; must outlive the
 *                  module.
 * @param handle    handle of the module; must not be NULL.
 * @param ptx       PTX source of the module, NUL-terminated, copied; may be
 *                  NULL.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM, KILN_EFORKED.
 * Thread-safe. Never blocks.
 */
KILN_API kiln_status kiln_module_wrap(kiln_module **out, kiln_device *device,
                                      CUmodule handle, const char *ptx);

/** Unloads a module and frees it together with its kernels; NULL is allowed. A
 * wrapped module is freed but not unloaded.
 * Not thread-safe: no other thread may use the module, and none of its kernels
 * may be running. Blocks while the driver unloads the module. */
KILN_API void kiln_module_free(kiln_module *module);

/** Returns the image that the module was loaded from, or NULL for a wrapped
 * module and for NULL. The module owns the image.
 * Thread-safe. Never blocks. */
KILN_API const kiln_image *kiln_module_image(const kiln_module *module);

/** Returns how Kiln obtained the code of a module: the chosen rung of the
 * compatibility ladder (way to obtain code), and the reason why each rung was
 * chosen or rejected. Returns NULL for a wrapped module and for NULL. The
 * module owns the result.
 * Thread-safe. Never blocks. */
KILN_API const kiln_ladder_result *
kiln_module_ladder(const kiln_module *module);

/** Returns the driver's handle of the module, or NULL for NULL. The call does
 * not transfer ownership of the handle.
 * Thread-safe. Never blocks. */
KILN_API CUmodule kiln_module_handle(const kiln_module *module);

/**
 * Finds a kernel of a module by its name expression, plain name (extern "C") or
 * lowered name.
 *
 * @param[out] out  the kernel, which the module owns; valid until the module is
 *                  freed. The same name always returns the same kernel. NULL on
 *                  failure.
 * @param name      name of the kernel, NUL-terminated.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOTFOUND (the error record lists the
 *         kernels of the module), KILN_EDRIVER, KILN_ENOMEM, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Thread-safe. Blocks only on the first use of a name, while the driver loads
 * code.
 */
KILN_API kiln_status kiln_module_kernel(kiln_kernel **out, kiln_module *module,
                                        const char *name);

/**
 * Finds a __device__, __constant__ or __managed__ variable of a module.
 *
 * @param name          extern "C" name, or a name expression such as "&table".
 * @param[out] address  receives the device address, valid until the module is
 *                      freed; may be NULL.
 * @param[out] size     receives the size of the variable in bytes; may be NULL.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOTFOUND, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Thread-safe. Never blocks.
 */
KILN_API kiln_status kiln_module_symbol(kiln_module *module, const char *name,
                                        CUdeviceptr *address, size_t *size);

/**
 * Copies host memory into a variable of a module.
 *
 * @param name    name of the variable, as for kiln_module_symbol().
 * @param offset  distance from the start of the variable in bytes.
 * @param src     `size` bytes in host memory.
 * @param size    number of bytes; offset + size must not exceed the size of the
 *                variable.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOTFOUND, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_EFORKED, KILN_ECAPTURE.
 * Thread-safe. Blocks until the copy is done.
 */
KILN_API kiln_status kiln_symbol_write(kiln_module *module, const char *name,
                                       size_t offset, const void *src,
                                       size_t size);

/**
 * Copies a variable of a module into host memory.
 *
 * @param name    name of the variable, as for kiln_module_symbol().
 * @param offset  distance from the start of the variable in bytes.
 * @param dst     host memory that receives `size` bytes.
 * @param size    number of bytes; offset + size must not exceed the size of the
 *                variable.
 * @retval the same statuses as kiln_symbol_write().
 * Thread-safe. Blocks until the copy is done.
 */
KILN_API kiln_status kiln_symbol_read(kiln_module *module, const char *name,
                                      size_t offset, void *dst, size_t size);

/* ---- Embedded programs --------------------------------------------------- */

/** An entry of the table of programs that are embedded in the library. The size
 * of this struct never changes. */
typedef struct kiln_builtin {
  const char *name;   /**< name of the embedded program, e.g. "reduce" or
                           "ladder/reduce_shared" */
  const char *source; /**< CUDA C++ source of the embedded program */
  size_t size;        /**< size of the embedded program's source in bytes */
} kiln_builtin;

/** Returns the table of embedded programs.
 * @param[out] n  receives the number of entries.
 * @return a static array.
 * Thread-safe. Never blocks. */
KILN_API const kiln_builtin *kiln_builtin_list(size_t *n);

/** A variant: one specialisation of an embedded program that is shipped with
 * Kiln. The size of this struct never changes. */
typedef struct kiln_variant {
  const char *builtin; /**< name of the embedded program */
  const char *label;   /**< description of the variant, e.g. "f32 sum, block
                            256" */
  const char *const *defines; /**< NULL-terminated array of macro definitions
                                   for the compiler */
  const char *const *traits;  /**< NULL-terminated array of overrides of the
                                   target's traits */
  const char *const *names;   /**< NULL-terminated array of name expressions of
                                   the kernels */
  int min_cc; /**< lowest compute capability that the variant is meant for */
  bool may_spill; /**< register spills are allowed; if false, a register spill
                       is a defect of the kernel */
} kiln_variant;

/** Returns the table of shipped specialisations. `kiln pack` builds them, and
 * the tests compile them for every architecture.
 * @param[out] n  receives the number of entries.
 * @return a static array.
 * Thread-safe. Never blocks. */
KILN_API const kiln_variant *kiln_variant_list(size_t *n);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

KILN__SIZED(kiln_compile,
            (kiln_image * *out, kiln_runtime *rt, const kiln_program_desc *desc,
             const kiln_target *target),
            (size_t desc_size), (out, rt, desc, target, sizeof *desc))
KILN__SIZED(kiln_image_resources,
            (const kiln_image *image, size_t i, kiln_resources *out),
            (size_t out_size), (image, i, out, sizeof *out))
KILN__SIZED(kiln_job_start,
            (kiln_job * *out, kiln_runtime *rt, const kiln_program_desc *desc,
             const kiln_target *target, size_t n, kiln_progress_fn progress,
             void *user),
            (size_t desc_size),
            (out, rt, desc, target, n, progress, user, sizeof *desc))
KILN__SIZED(kiln_job_state, (kiln_job * job, kiln_job_progress *out),
            (size_t out_size), (job, out, sizeof *out))
KILN__SIZED(kiln_module_load,
            (kiln_module * *out, kiln_device *device,
             const kiln_program_desc *desc),
            (size_t desc_size), (out, device, desc, sizeof *desc))

#ifdef __cplusplus
}
#endif
#endif

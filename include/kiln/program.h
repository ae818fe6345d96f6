/* program.h -- CUDA C++ source in; image, module and kernels out.
 *
 *   kiln_program_desc -> kiln_compile() -> kiln_image    (no GPU needed)
 *   kiln_program_desc -> kiln_module_load() -> kiln_module -> kiln_kernel
 *
 * Both take the result from the cache if it is there.
 *
 * NVRTC runs on the thread that calls kiln_compile() or kiln_module_load(), or
 * on a compile thread of the runtime. The calling thread needs at least 128 KiB
 * of stack for it. */
#ifndef KILN_PROGRAM_H
#define KILN_PROGRAM_H

#include <kiln/arch.h>
#include <kiln/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A header that the source may #include <name> without a file. Its size never
 * changes. */
typedef struct kiln_header {
  const char *name; /**< as written in the #include */
  const char *text; /**< NUL-terminated */
} kiln_header;

/**
 * A program and how to specialise it. Start from {0}. Everything is borrowed for
 * the call that takes it; kiln_job_start() copies what it needs.
 *
 * Kiln compiles every program with the traits of its target as macros
 * (KILN_ARCH, KILN_WARP_SIZE, KILN_HAS_SHFL, KILN_HAS_ITS, KILN_HAS_MATCH,
 * KILN_HAS_REDUX, KILN_HAS_CP_ASYNC, KILN_HAS_TMA, KILN_HAS_CLUSTER,
 * KILN_SMEM_PER_BLOCK, KILN_SMEM_PER_BLOCK_OPTIN, KILN_REGS_PER_SM). A
 * program may #include <kiln/prelude.cuh>, which spells warp and block
 * collectives the same way for every target.
 *
 * Small versions of C's headers (<stdint.h>, <math.h>, <assert.h>, <stdio.h>,
 * ...) are there, and CUDA's own (<cuda_fp16.h>, <cuda_bf16.h>, <mma.h>, ...)
 * are found beside the NVRTC that compiles, if they are installed. Virtual
 * headers and files in -I folders win over both.
 */
typedef struct kiln_program_desc {
  const char *builtin; /**< name of an embedded program, or NULL */
  const char *source;  /**< else CUDA C++; may hold CR LF and a BOM */
  size_t source_size;  /**< bytes, 0 = NUL-terminated; a NUL inside is an
                          error */
  const char *name;    /**< file name shown in compile messages, at most 8,192
                          bytes; default "program.cu" */
  int first_line;      /**< line number of the source's first line; default 1 */
  const kiln_header *headers; /**< virtual headers; they win over files */
  size_t n_headers;           /**< entries of headers */
  const char *const *defines; /**< "NAME" or "NAME=VALUE"; the same name twice
                                 is an error unless the values are equal */
  size_t n_defines;           /**< entries of defines */
  const char *const *traits;  /**< overrides: "KILN_HAS_SHFL=0" */
  size_t n_traits;            /**< entries of traits */
  const char *const *names;   /**< name expressions: "scale<float>", at most
                                 8,192 bytes each */
  size_t n_names;             /**< entries of names */
  const char *const *options; /**< further NVRTC options, one word each; "-I"
                                 and its folder may be two words. Options that
                                 Kiln sets itself (-arch, --gpu-architecture,
                                 -ptx, -dlto, -time, ...) are refused. The
                                 contents of files that may be included are part
                                 of the cache key; a program with
                                 `#include MACRO` is not cached */
  size_t n_options;           /**< entries of options */
  char suffix;                /**< 'a' or 'f' if the code needs it */
  bool debug;                 /**< -G */
  bool lineinfo;              /**< -lineinfo */
  bool fast_math;             /**< --use_fast_math */
  bool fast_compile;  /**< -Ofast-compile=min (NVRTC 12.9, no effect before):
                          compiles in 0.4 to 0.9 of the time. The code may be
                          slower, so measure it */
  bool minimal;       /**< --minimal (NVRTC 12.9, no effect before): compiles a
                          few milliseconds sooner. For programs without textures,
                          surfaces, CUDA's runtime API and launches from the
                          device. Kiln compiles a program that fails with it
                          again without it */
  int max_registers;  /**< -maxrregcount, 0 = none */
  bool fail_on_spill; /**< KILN_ESPILL if a kernel spills */
  bool no_cache;      /**< neither read nor write any tier */
  bool refresh;       /**< compile, then replace the cached entry */
  void (*on_log)(void *user, const char *text, size_t size); /**< receives the
                     complete log, with `name` and lines from first_line; also
                     warnings. Called from the thread that compiles */
  void *log_user; /**< passed to on_log */
} kiln_program_desc;

/** Where Kiln took an image from. */
typedef enum kiln_origin {
  KILN_FROM_COMPILER = 0, /**< NVRTC ran */
  KILN_FROM_MEMORY,       /**< memory tier */
  KILN_FROM_DISK,         /**< disk tier */
  KILN_FROM_PACK,         /**< a pack */
  KILN_FROM_OTHER_PROCESS /**< another process compiled it meanwhile */
} kiln_origin;

/** Returns an origin as text: "compiled", "memory", "disk", "pack" or "other
 * process". The text is static. Threads: any. Blocks: never. */
KILN_API const char *kiln_origin_name(kiln_origin origin);

/**
 * Compiles a program for a target, or takes the image from the cache. Needs no
 * GPU.
 *
 * @param[out] out  yours, free with kiln_image_free(); NULL on failure.
 * @param desc      the program; borrowed for the call.
 * @param target    the target; its suffix takes precedence over desc->suffix.
 * @retval KILN_OK
 * @retval KILN_EINVAL       both or neither of builtin and source, NUL in the
 *                           source, a bad option, define or trait
 * @retval KILN_ENOTFOUND    no such builtin, or a name expression that the
 *                           program does not define
 * @retval KILN_ENONVRTC     no compiler, and no cached image
 * @retval KILN_EUNSUPPORTED no NVRTC that was found supports the target
 * @retval KILN_ECOMPILE     see kiln_last_error()->log
 * @retval KILN_ESPILL, KILN_ENOMEM, KILN_ECANCELED
 * Threads: any, also at once for the same program (one compiles).
 * Blocks: on files, while compiling, and for at most flight_wait_ms on another
 * process that compiles the same.
 */
KILN_INLINE kiln_status kiln_compile(kiln_image **out, kiln_runtime *rt,
                                     const kiln_program_desc *desc,
                                     const kiln_target *target);

/** Frees the caller's reference to an image; NULL is allowed. Modules that were
 * loaded from the image keep references of their own. Threads: any. Blocks:
 * never. */
KILN_API void kiln_image_free(kiln_image *image);

/* The functions below read an image; they return NULL or 0 for NULL. Pointers
 * that they return belong to the image and are valid until it is freed.
 * Threads: any. Blocks: never. */

/** Returns the PTX, NUL-terminated; NULL if the image holds machine code only.
 * @param[out] size  bytes without the NUL; may be NULL. */
KILN_API const char *kiln_image_ptx(const kiln_image *image, size_t *size);
/** Returns the machine code (CUBIN); NULL if the image holds PTX only.
 * @param[out] size  bytes; may be NULL. */
KILN_API const void *kiln_image_cubin(const kiln_image *image, size_t *size);
/** Returns the compile log, with warnings and the assembler's resource lines;
 * NUL-terminated, may be empty. */
KILN_API const char *kiln_image_log(const kiln_image *image);
/** Returns the target that the image was compiled for. */
KILN_API kiln_target kiln_image_target(const kiln_image *image);
/** Returns where Kiln took the image from. */
KILN_API kiln_origin kiln_image_origin(const kiln_image *image);
/** Returns the version of the NVRTC that compiled the image, 13000 = 13.0. */
KILN_API int kiln_image_nvrtc(const kiln_image *image);
/** Returns the milliseconds that the compiler took when it made the image, also
 * if the image has come from a cache since. */
KILN_API double kiln_image_compile_ms(const kiln_image *image);
/** Returns the cache key as text.
 * @param[out] hash  the key's 32-digit hash, which names the cache file; may be
 *                   NULL. */
KILN_API const char *kiln_image_key(const kiln_image *image, const char **hash);
/** Returns the lowered (mangled) name of a name expression or of a kernel; NULL
 * if the image has no such name. */
KILN_API const char *kiln_image_lowered(const kiln_image *image,
                                        const char *name);

/** The resources that a kernel needs, as the assembler reported them. */
typedef struct kiln_resources {
  const char *name;  /**< lowered name; borrowed from the image */
  int registers;     /**< per thread */
  int spill_stores;  /**< bytes per thread */
  int spill_loads;   /**< bytes per thread */
  int stack;         /**< frame bytes per thread */
  int shared_static; /**< bytes per block */
  int constant;      /**< bytes, including parameters */
  int local;         /**< bytes per thread */
  int max_threads;   /**< threads per block by launch bounds, 0 = unbounded */
  int n_params;      /**< parameters */
} kiln_resources;

/** Returns the number of kernels in the image. */
KILN_API size_t kiln_image_kernels(const kiln_image *image);
/** Describes the resources of one kernel.
 * @param i         0 to kiln_image_kernels() - 1.
 * @param[out] out  filled on success.
 * @retval KILN_OK, KILN_EINVAL (NULL, or no kernel i). */
KILN_INLINE kiln_status kiln_image_resources(const kiln_image *image, size_t i,
                                             kiln_resources *out);

/* ---- Many at once, in the background ------------------------------------ */

/** Programs that compile in the background. Opaque. */
typedef struct kiln_job kiln_job;

/** How far a job is. Counts are programs. */
typedef struct kiln_job_progress {
  size_t total;    /**< of the job */
  size_t done;     /**< finished, with success or failure */
  size_t failed;   /**< of `done`: failed */
  size_t compiled; /**< of `done`: compiled rather than taken from a cache */
} kiln_job_progress;

/** Receives the progress after each program; borrowed for the call. Kiln calls
 * it from a compile thread and holds no lock meanwhile. For programs that were
 * canceled before they started, kiln_job_cancel() or kiln_job_free() calls it in
 * their caller's thread. */
typedef void (*kiln_progress_fn)(void *user, const kiln_job_progress *now);

/**
 * Starts to compile n programs, desc[i] for target[i], on the runtime's compile
 * threads. Programs start in order; at most compile_threads run at once.
 *
 * @param[out] out  yours, free with kiln_job_free(); NULL on failure.
 * @param desc      n programs; copied.
 * @param target    n targets; copied.
 * @param progress  called after each program; may be NULL.
 * @param user      passed to progress.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM.
 * Threads: any. Blocks: never.
 */
KILN_INLINE kiln_status kiln_job_start(kiln_job **out, kiln_runtime *rt,
                                       const kiln_program_desc *desc,
                                       const kiln_target *target, size_t n,
                                       kiln_progress_fn progress, void *user);

/**
 * Waits until every program of a job is done.
 *
 * @param timeout_ms  milliseconds; 0 polls, UINT64_MAX waits without limit.
 * @retval KILN_OK (also if programs failed), KILN_ETIMEOUT, KILN_EINVAL.
 * Threads: any. Blocks: for at most timeout_ms.
 */
KILN_API kiln_status kiln_job_wait(kiln_job *job, uint64_t timeout_ms);

/** Reports how far a job is.
 * @param[out] out  filled on success.
 * @retval KILN_OK, KILN_EINVAL. Threads: any. Blocks: never. */
KILN_INLINE kiln_status kiln_job_state(kiln_job *job, kiln_job_progress *out);

/**
 * Returns the result of one program after it is done.
 *
 * @param i         index of the program in kiln_job_start()'s arrays.
 * @param[out] out  yours, free with kiln_image_free(); NULL on failure.
 * @retval KILN_OK
 * @retval KILN_ENOTREADY  the program is not done yet
 * @retval KILN_EINVAL     NULL, or no program i
 * @retval other           the program failed; as kiln_compile(), with the
 *                         failure's own record in kiln_last_error()
 * Threads: any. Blocks: never.
 */
KILN_API kiln_status kiln_job_image(kiln_job *job, size_t i, kiln_image **out);

/** Cancels a job. Programs that have not started end with KILN_ECANCELED.
 * Programs that are being compiled stop at once if the compiler supports it
 * (NVRTC 12.8 and later), otherwise they run to their end.
 * @retval KILN_OK, KILN_EINVAL. Threads: any. Blocks: never. */
KILN_API kiln_status kiln_job_cancel(kiln_job *job);

/** Cancels a job and frees it; NULL is allowed. Images that kiln_job_image()
 * returned stay valid. Threads: no other thread may use the job. Blocks: until
 * compiles that are running have stopped. */
KILN_API void kiln_job_free(kiln_job *job);

/* ---- Modules ------------------------------------------------------------- */

/**
 * Compiles a program for a device, or takes it from the cache, and loads it.
 *
 * The compatibility ladder (arch.h) chooses what to compile. If the driver
 * rejects the image, Kiln drops it from the cache, compiles it once more, and
 * then tries its PTX.
 *
 * @param[out] out  yours, free with kiln_module_free(); NULL on failure.
 * @param device    must outlive the module.
 * @param desc      the program; borrowed for the call.
 * @retval as kiln_compile(), and KILN_EDRIVER, KILN_EDEVMEM, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Threads: any. Blocks: as kiln_compile(). The first use of a device also
 * creates its context, while a compile thread compiles.
 */
KILN_INLINE kiln_status kiln_module_load(kiln_module **out, kiln_device *device,
                                         const kiln_program_desc *desc);

/**
 * Loads an image that kiln_compile() returned. Compiles nothing.
 *
 * @param[out] out  yours, free with kiln_module_free(); NULL on failure.
 * @param device    must outlive the module.
 * @param image     may be freed afterwards.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM, KILN_EDRIVER (the driver takes
 *         neither the machine code nor the PTX), KILN_EDEVMEM, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Threads: any. Blocks: while the driver loads, or assembles PTX.
 */
KILN_API kiln_status kiln_module_from_image(kiln_module **out,
                                            kiln_device *device,
                                            const kiln_image *image);

/**
 * Wraps a module that the caller loaded. The caller keeps owning `handle`.
 *
 * Kiln checks launches if it knows the kernels' parameters: from the driver
 * (12.4 and later) or from `ptx`. Otherwise it does not check them.
 *
 * @param[out] out  yours, free with kiln_module_free(); NULL on failure.
 * @param device    the device of the context that holds the module.
 * @param handle    not NULL.
 * @param ptx       the module's PTX, NUL-terminated, copied; may be NULL.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM, KILN_EFORKED.
 * Threads: any. Blocks: never.
 */
KILN_API kiln_status kiln_module_wrap(kiln_module **out, kiln_device *device,
                                      CUmodule handle, const char *ptx);

/** Unloads a module and frees it with its kernels; NULL is allowed. A wrapped
 * module is not unloaded. Threads: no launch of its kernels may be running.
 * Blocks: while the driver unloads. */
KILN_API void kiln_module_free(kiln_module *module);

/** Returns the image that the module was loaded from; NULL for a wrapped module
 * and for NULL. Borrowed from the module. Threads: any. Blocks: never. */
KILN_API const kiln_image *kiln_module_image(const kiln_module *module);

/** Returns the rung that the module was loaded on, with all reasons; NULL for a
 * wrapped module and for NULL. Borrowed from the module. Threads: any. Blocks:
 * never. */
KILN_API const kiln_ladder_result *
kiln_module_ladder(const kiln_module *module);

/** Returns the driver's handle, which the module keeps owning; NULL for NULL.
 * Threads: any. Blocks: never. */
KILN_API CUmodule kiln_module_handle(const kiln_module *module);

/**
 * Finds a kernel by name expression, plain name (extern "C") or lowered name.
 *
 * @param[out] out  borrowed from the module, valid until it is freed; NULL on
 *                  failure. The same name gives the same kernel.
 * @param name      NUL-terminated.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOTFOUND (lists the module's kernels),
 *         KILN_EDRIVER, KILN_ENOMEM, KILN_ESTICKY, KILN_EFORKED.
 * Threads: any. Blocks: on the first use of a name, while the driver loads code.
 */
KILN_API kiln_status kiln_module_kernel(kiln_kernel **out, kiln_module *module,
                                        const char *name);

/**
 * Finds a __device__, __constant__ or __managed__ variable.
 *
 * @param name          extern "C" name, or a name expression such as "&table".
 * @param[out] address  device address, valid until the module is freed; may be
 *                      NULL.
 * @param[out] size     bytes; may be NULL.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOTFOUND, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Threads: any. Blocks: never.
 */
KILN_API kiln_status kiln_module_symbol(kiln_module *module, const char *name,
                                        CUdeviceptr *address, size_t *size);

/**
 * Copies host memory into a variable of a module.
 *
 * @param name    as for kiln_module_symbol().
 * @param offset  bytes from the variable's start.
 * @param src     `size` bytes in host memory.
 * @param size    bytes; offset + size must not exceed the variable.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOTFOUND, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_EFORKED, KILN_ECAPTURE.
 * Threads: any. Blocks: until the copy is done.
 */
KILN_API kiln_status kiln_symbol_write(kiln_module *module, const char *name,
                                       size_t offset, const void *src,
                                       size_t size);

/**
 * Copies a variable of a module into host memory.
 *
 * @param name    as for kiln_module_symbol().
 * @param offset  bytes from the variable's start.
 * @param dst     receives `size` bytes.
 * @param size    bytes; offset + size must not exceed the variable.
 * @retval as kiln_symbol_write().
 * Threads: any. Blocks: until the copy is done.
 */
KILN_API kiln_status kiln_symbol_read(kiln_module *module, const char *name,
                                      size_t offset, void *dst, size_t size);

/* ---- Embedded programs ---------------------------------------------------- */

/** One program that is embedded in the library. Its size never changes. */
typedef struct kiln_builtin {
  const char *name;   /**< "reduce", "ladder/reduce_shared" */
  const char *source; /**< CUDA C++ */
  size_t size;        /**< bytes of source */
} kiln_builtin;

/** Returns the table of embedded programs.
 * @param[out] n  number of entries. @return static array. Threads: any. Blocks:
 * never. */
KILN_API const kiln_builtin *kiln_builtin_list(size_t *n);

/** One shipped specialisation of an embedded program. Its size never changes. */
typedef struct kiln_variant {
  const char *builtin;        /**< the program */
  const char *label;          /**< "f32 sum, block 256" */
  const char *const *defines; /**< NULL-terminated */
  const char *const *traits;  /**< NULL-terminated trait overrides */
  const char *const *names;   /**< NULL-terminated name expressions */
  int min_cc;                 /**< oldest GPU it is meant for */
  bool may_spill;             /**< false: a register spill is a defect */
} kiln_variant;

/** Returns the table of shipped specialisations. `kiln pack` builds them, and
 * the tests compile them for every architecture.
 * @param[out] n  number of entries. @return static array. Threads: any. Blocks:
 * never. */
KILN_API const kiln_variant *kiln_variant_list(size_t *n);

/* ---- Exported forms that take sizes; see "Versions" in kiln.h ------------- */

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

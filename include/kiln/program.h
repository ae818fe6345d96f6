/* program.h -- CUDA C++ source in, image, module and kernels out.
 *
 *   kiln_program_desc -> kiln_compile() -> kiln_image    (no GPU needed)
 *   kiln_program_desc -> kiln_module_load() -> kiln_module -> kiln_kernel
 *
 * Both take the result from the cache where it has it. */
#ifndef KILN_PROGRAM_H
#define KILN_PROGRAM_H

#include <kiln/arch.h>
#include <kiln/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A header that the source may #include <name> without a file. */
typedef struct kiln_header {
  const char *name; /**< as written in the #include */
  const char *text; /**< NUL-terminated */
} kiln_header;

/**
 * A program and how to specialise it. Start from {0}; everything is borrowed
 * for the call that takes it (kiln_job_start() copies what it needs).
 *
 * Every program is compiled with the traits of its target as macros
 * (KILN_ARCH, KILN_WARP_SIZE, KILN_HAS_SHFL, KILN_HAS_ITS, KILN_HAS_MATCH,
 * KILN_HAS_REDUX, KILN_HAS_CP_ASYNC, KILN_HAS_TMA, KILN_HAS_CLUSTER,
 * KILN_SMEM_PER_BLOCK, KILN_SMEM_PER_BLOCK_OPTIN, KILN_REGS_PER_SM) and may
 * #include <kiln/prelude.cuh>: warp and block collectives in one spelling.
 */
typedef struct kiln_program_desc {
  const char *builtin; /**< name of an embedded program, or NULL */
  const char *source;  /**< else CUDA C++; may hold CR LF and a BOM */
  size_t source_size;  /**< bytes, 0 = NUL-terminated; a NUL inside is an
                          error */
  const char *name;    /**< file name shown in compile messages; default
                          "program.cu" */
  int first_line;      /**< line number of the source's first line; default 1 */
  const kiln_header *headers; /**< virtual headers; they win over files */
  size_t n_headers;           /**< entries of headers */
  const char *const *defines; /**< "NAME" or "NAME=VALUE"; the same name twice
                                 is an error unless the values are equal */
  size_t n_defines;           /**< entries of defines */
  const char *const *traits;  /**< overrides: "KILN_HAS_SHFL=0" */
  size_t n_traits;            /**< entries of traits */
  const char *const *names;   /**< name expressions: "scale<float>" */
  size_t n_names;             /**< entries of names */
  const char *const *options; /**< further NVRTC options, one word each; "-I"
                                 and its folder may be two words. Options that
                                 Kiln owns (-arch, --gpu-architecture, -ptx,
                                 -dlto, -time, ...) are refused. Files that may
                                 be included count for the cache by contents; a
                                 program with `#include MACRO` is not cached */
  size_t n_options;           /**< entries of options */
  char suffix;                /**< 'a' or 'f' if the code needs it */
  bool debug;                 /**< -G */
  bool lineinfo;              /**< -lineinfo */
  bool fast_math;             /**< --use_fast_math */
  bool fast_compile;  /**< -Ofast-compile=min (NVRTC 12.9, no effect before):
                          compiled in 0.4 to 0.9 of the time, to code that may
                          be slower: measure it */
  bool minimal;       /**< --minimal (NVRTC 12.9, no effect before): some ms
                          sooner, for programs without textures, surfaces, CUDA's
                          runtime API and launches from the device. One that does
                          not compile so is compiled again without it */
  int max_registers;  /**< -maxrregcount, 0 = none */
  bool fail_on_spill; /**< KILN_ESPILL if a kernel spills */
  bool no_cache;      /**< neither read nor write any tier */
  bool refresh;       /**< compile, then replace the cached entry */
  void (*on_log)(void *user, const char *text, size_t size); /**< the complete
                     log, mapped to `name` and first_line; warnings too */
  void *log_user;                                            /**< for on_log */
} kiln_program_desc;

/** Where an image came from. */
typedef enum kiln_origin {
  KILN_FROM_COMPILER = 0, /**< NVRTC ran */
  KILN_FROM_MEMORY,       /**< memory tier */
  KILN_FROM_DISK,         /**< disk tier */
  KILN_FROM_PACK,         /**< a pack */
  KILN_FROM_OTHER_PROCESS /**< another process compiled it meanwhile */
} kiln_origin;

/** "compiled", "memory", "disk", "pack", "other process"; static text. */
KILN_API const char *kiln_origin_name(kiln_origin origin);

/**
 * Compile for a target, or take it from the cache. Needs no GPU.
 *
 * @param[out] out  yours, free with kiln_image_free(); NULL on failure.
 * @param target    what for; its suffix wins over desc->suffix.
 * @retval KILN_OK
 * @retval KILN_EINVAL       both or neither of builtin and source, NUL in the
 *                           source, a bad option, define or trait
 * @retval KILN_ENOTFOUND    no such builtin, or a name expression that the
 *                           program does not define
 * @retval KILN_ENONVRTC     no compiler, and no cached image
 * @retval KILN_EUNSUPPORTED no NVRTC found knows the target
 * @retval KILN_ECOMPILE     see kiln_last_error()->log
 * @retval KILN_ESPILL, KILN_ENOMEM, KILN_ECANCELED
 * Threads: any, also at once for the same program (one compiles).
 * Blocks: on files, while compiling, and for at most flight_wait_ms on another
 * process that compiles the same.
 */
KILN_API kiln_status kiln_compile(kiln_image **out, kiln_runtime *rt,
                                  const kiln_program_desc *desc,
                                  const kiln_target *target);

/** Drop a reference; NULL is fine. Any thread. */
KILN_API void kiln_image_free(kiln_image *image);

/* Views into an image: borrowed, valid until it is freed; any thread. */

/** PTX text with terminating NUL; *size (may be NULL) counts no NUL. */
KILN_API const char *kiln_image_ptx(const kiln_image *image, size_t *size);
/** Machine code, NULL if only PTX was made. */
KILN_API const void *kiln_image_cubin(const kiln_image *image, size_t *size);
/** Compile log with warnings and the resource lines. */
KILN_API const char *kiln_image_log(const kiln_image *image);
/** What it was compiled for. */
KILN_API kiln_target kiln_image_target(const kiln_image *image);
/** Where it came from. */
KILN_API kiln_origin kiln_image_origin(const kiln_image *image);
/** Version of the NVRTC that made it, 13000 = 13.0. */
KILN_API int kiln_image_nvrtc(const kiln_image *image);
/** Time the compiler took when the image was made, in milliseconds. */
KILN_API double kiln_image_compile_ms(const kiln_image *image);
/** The cache key as text and its 32-digit hash. */
KILN_API const char *kiln_image_key(const kiln_image *image, const char **hash);
/** Lowered (mangled) name of a name expression or kernel; NULL if unknown. */
KILN_API const char *kiln_image_lowered(const kiln_image *image,
                                        const char *name);

/** What a kernel takes, as the assembler reported it. */
typedef struct kiln_resources {
  const char *name;  /**< lowered name; borrowed from the image */
  int registers;     /**< a thread */
  int spill_stores;  /**< bytes a thread */
  int spill_loads;   /**< bytes a thread */
  int stack;         /**< frame bytes a thread */
  int shared_static; /**< bytes a block */
  int constant;      /**< bytes, parameters included */
  int local;         /**< bytes a thread */
  int max_threads;   /**< by launch bounds, 0 = unbounded */
  int n_params;      /**< parameters */
} kiln_resources;

/** Number of kernels in the image. */
KILN_API size_t kiln_image_kernels(const kiln_image *image);
/** Resources of kernel i. @retval KILN_OK, KILN_EINVAL. */
KILN_API kiln_status kiln_image_resources(const kiln_image *image, size_t i,
                                          kiln_resources *out);

/* ---- Many at once, in the background ------------------------------------ */

typedef struct kiln_job kiln_job;

typedef struct kiln_job_progress {
  size_t total;    /**< programs */
  size_t done;     /**< finished, well or not */
  size_t failed;   /**< of these, not well */
  size_t compiled; /**< of these, by the compiler rather than a cache */
} kiln_job_progress;

/** Called after each program with no lock held: from a compile thread, or, for
 * programs that were canceled before they started, from kiln_job_cancel() or
 * kiln_job_free(). */
typedef void (*kiln_progress_fn)(void *user, const kiln_job_progress *now);

/**
 * Start compiling n programs, desc[i] for target[i], on the runtime's compile
 * threads; at most compile_threads at once, in order.
 *
 * @param[out] out  yours, free with kiln_job_free(); NULL on failure.
 * @param desc      copied.
 * @param progress  may be NULL.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM.
 * Threads: any. Blocks: never.
 */
KILN_API kiln_status kiln_job_start(kiln_job **out, kiln_runtime *rt,
                                    const kiln_program_desc *desc,
                                    const kiln_target *target, size_t n,
                                    kiln_progress_fn progress, void *user);

/** Wait until all are done.
 * @param timeout_ms  0 polls, UINT64_MAX waits for ever.
 * @retval KILN_OK, KILN_ETIMEOUT, KILN_EINVAL. */
KILN_API kiln_status kiln_job_wait(kiln_job *job, uint64_t timeout_ms);

/** How far it is. Never blocks. */
KILN_API kiln_status kiln_job_state(kiln_job *job, kiln_job_progress *out);

/** Result of program i, after it is done: an image of your own, or the failure
 * of that program with its record in kiln_last_error().
 * @retval KILN_ENOTREADY if it is not done yet, otherwise as kiln_compile(). */
KILN_API kiln_status kiln_job_image(kiln_job *job, size_t i, kiln_image **out);

/** Programs not started end with KILN_ECANCELED; those under way stop at once
 * where the compiler can (NVRTC 12.8 on), else when they are through. */
KILN_API kiln_status kiln_job_cancel(kiln_job *job);

/** Cancel, wait for what runs, and free; NULL is fine. */
KILN_API void kiln_job_free(kiln_job *job);

/* ---- Modules ------------------------------------------------------------- */

/**
 * Compile for a device, or take it from the cache, and load it there.
 *
 * Walks the compatibility ladder (arch.h). An image that the driver rejects is
 * dropped from the cache, rebuilt once, then tried as PTX.
 *
 * @param[out] out  yours, free with kiln_module_free(); NULL on failure.
 * @param device    must outlive the module.
 * @retval as kiln_compile(), and KILN_EDRIVER, KILN_EDEVMEM, KILN_EFORKED.
 * Threads: any. Blocks: as kiln_compile(); the first use of a device also
 * makes its context, at the same time as a compile that is needed.
 */
KILN_API kiln_status kiln_module_load(kiln_module **out, kiln_device *device,
                                      const kiln_program_desc *desc);

/** Load an image that kiln_compile() made; it may be freed afterwards. */
KILN_API kiln_status kiln_module_from_image(kiln_module **out,
                                            kiln_device *device,
                                            const kiln_image *image);

/** Use a module that the caller loaded; the caller keeps owning it. Parameters
 * are known if the driver can tell them (12.4 on) or `ptx` is given (may be
 * NULL), else launches are not checked. */
KILN_API kiln_status kiln_module_wrap(kiln_module **out, kiln_device *device,
                                      CUmodule handle, const char *ptx);

/** Unload and free, with its kernels; NULL is fine. No launch of its kernels
 * may be running. */
KILN_API void kiln_module_free(kiln_module *module);

/** The image it was loaded from; NULL for a wrapped module. Borrowed. */
KILN_API const kiln_image *kiln_module_image(const kiln_module *module);

/** The rung it was loaded on and why; NULL for a wrapped module. Borrowed. */
KILN_API const kiln_ladder_result *
kiln_module_ladder(const kiln_module *module);

/** The driver's handle; stays the module's. */
KILN_API CUmodule kiln_module_handle(const kiln_module *module);

/**
 * A kernel by name expression, plain name (extern "C") or lowered name.
 *
 * @param[out] out  the module's, valid until the module is freed.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOTFOUND (lists the module's kernels),
 *         KILN_EDRIVER, KILN_ENOMEM.
 * Threads: any. Blocks: briefly.
 */
KILN_API kiln_status kiln_module_kernel(kiln_kernel **out, kiln_module *module,
                                        const char *name);

/** Address and size of a __device__, __constant__ or __managed__ variable
 * (lecture row B1). Either out may be NULL.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOTFOUND, KILN_EDRIVER. */
KILN_API kiln_status kiln_module_symbol(kiln_module *module, const char *name,
                                        CUdeviceptr *address, size_t *size);

/** Copy `size` bytes to a variable, `offset` bytes in; synchronous.
 * @retval KILN_OK, KILN_EINVAL (past its end), KILN_ENOTFOUND, KILN_EDRIVER. */
KILN_API kiln_status kiln_symbol_write(kiln_module *module, const char *name,
                                       size_t offset, const void *src,
                                       size_t size);

/** Copy `size` bytes from a variable; synchronous. As kiln_symbol_write(). */
KILN_API kiln_status kiln_symbol_read(kiln_module *module, const char *name,
                                      size_t offset, void *dst, size_t size);

/* ---- Embedded programs ---------------------------------------------------- */

/** One program that travels inside the library. */
typedef struct kiln_builtin {
  const char *name;   /**< "reduce", "ladder/reduce_shared" */
  const char *source; /**< CUDA C++ */
  size_t size;        /**< bytes of source */
} kiln_builtin;

/** The table of embedded programs. @return static array of *n entries. */
KILN_API const kiln_builtin *kiln_builtin_list(size_t *n);

/** One shipped way to specialise an embedded program. */
typedef struct kiln_variant {
  const char *builtin;        /**< the program */
  const char *label;          /**< "f32 sum, block 256" */
  const char *const *defines; /**< NULL-terminated */
  const char *const *traits;  /**< NULL-terminated trait overrides */
  const char *const *names;   /**< NULL-terminated name expressions */
  int min_cc;                 /**< oldest GPU it is meant for */
  bool may_spill;             /**< false: a spill is a defect */
} kiln_variant;

/** The table of shipped specialisations: what `kiln pack` builds and what the
 * tests compile for every architecture. @return static array of *n entries. */
KILN_API const kiln_variant *kiln_variant_list(size_t *n);

#ifdef __cplusplus
}
#endif
#endif

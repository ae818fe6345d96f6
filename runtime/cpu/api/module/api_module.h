/* api_module.h -- images, modules, functions and JIT options: what modules,
 * libraries, links and launches share. */
#ifndef KILN_CPU_MODULE_H
#define KILN_CPU_MODULE_H

#include "../machine.h"

/* ---- Images: PTX texts, whatever they came wrapped in ----------------------- */

typedef struct kiln__cpu_ptx_text {
  char *data; /* NUL-terminated, owned */
  size_t size;
} kiln__cpu_ptx_text;

/* PTX texts to be linked together. Most images have one; those of cuLinkComplete
 * and of relocatable code have several. */
typedef struct kiln__cpu_image {
  const kiln_allocator *alloc;
  kiln__cpu_ptx_text *texts;
  size_t n;
} kiln__cpu_image;

enum { KILN__PTX_VERSION = 90 }; /* newest .version: 90 is PTX 9.0 */

/* Recognises `bytes` as a PTX text, a fat binary, the wrapper of one, or a linked
 * image, and stores copies of the texts. Of a fat binary it takes the best PTX
 * for `arch`, 10 * major + minor. Size 0 means unknown, as for cuModuleLoadData;
 * then the lengths that the formats carry are trusted. Messages go to `log`. On
 * failure `out` is empty; else the caller frees it.
 *
 * CUDA_SUCCESS, CUDA_ERROR_INVALID_IMAGE (no known format, or damaged),
 * CUDA_ERROR_NO_BINARY_FOR_GPU (machine code alone, or PTX for later devices),
 * CUDA_ERROR_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_NOT_SUPPORTED (this build lacks
 * the decompressor), CUDA_ERROR_OUT_OF_MEMORY. */
CUresult kiln__cpu_image_read(kiln__cpu_image *out, const kiln_allocator *a,
                              const void *bytes, size_t size, int arch,
                              kiln__buf *log);
/* The same from a file; also CUDA_ERROR_FILE_NOT_FOUND. */
CUresult kiln__cpu_image_file(kiln__cpu_image *out, const kiln_allocator *a,
                              const char *path, int arch, kiln__buf *log);
void kiln__cpu_image_free(kiln__cpu_image *image);
/* Appends a copy of a text. False: no memory. */
bool kiln__cpu_image_add(kiln__cpu_image *image, const char *data, size_t size);
/* Appends to `out` one image of all texts, which kiln__cpu_image_read() takes. */
void kiln__cpu_image_write(const kiln__cpu_image *image, kiln__buf *out);

/* The .version and .target of a PTX text. */
typedef struct kiln__cpu_ptx_head {
  int version; /* 90 = 9.0; 0: not found */
  int target;  /* 90 = sm_90; 0: not found */
  char suffix; /* 'a', 'f' or 0 */
} kiln__cpu_ptx_head;
kiln__cpu_ptx_head kiln__cpu_ptx_head_of(const char *text, size_t size);
/* Can a device of capability `arch` run PTX of this target? Targets with the
 * suffix a run on that capability only, those with f within its family. */
bool kiln__cpu_ptx_fits(const kiln__cpu_ptx_head *head, int arch);

/* fatbin.c: stores the best PTX of a fat binary. Arguments and codes as of
 * kiln__cpu_image_read(). */
CUresult kiln__cpu_fatbin_read(kiln__cpu_image *out, const uint8_t *bytes,
                               size_t size, int arch, kiln__buf *log);
/* The parts of relocatable device code: `parts` are fat binaries in memory, with
 * NULL at the end. Adds the best PTX of each to `out`; the program linker joins
 * them. Parts of machine code alone, as in libcudadevrt, are left out. Codes as
 * of kiln__cpu_fatbin_read(); texts that were added stay in `out`. */
CUresult kiln__cpu_fatbin_link(kiln__cpu_image *out, const void *const *parts,
                               int arch, kiln__buf *log);

/* ---- JIT options ---------------------------------------------------------------- */

/* The options of cuModuleLoadDataEx and cuLinkCreate that have an effect: where
 * logs go. */
typedef struct kiln__cpu_jit {
  char *info, *error;
  size_t info_size, error_size;
  void **info_out, **error_out, **time_out; /* options that are written back */
  uint64_t started;
} kiln__cpu_jit;

/* Reads the options. Those without effect here are accepted. CUDA_SUCCESS, or
 * CUDA_ERROR_INVALID_VALUE: an array is NULL. */
CUresult kiln__cpu_jit_read(kiln__cpu_jit *jit, unsigned n,
                            const CUjit_option *options, void **values);
/* Writes `text` into the error log if `rc` is a failure, else into the info log,
 * and the sizes and the time back into the options. */
void kiln__cpu_jit_write(const kiln__cpu_jit *jit, CUresult rc,
                         const char *text);

/* ---- Modules ------------------------------------------------------------------------ */

/* Parses and links the texts of an image into a program that is not bound to
 * handlers yet. The caller frees it. CUDA_SUCCESS, CUDA_ERROR_INVALID_PTX with a
 * message in `log`, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult kiln__cpu_module_program(kiln__cpu_program **out,
                                  const kiln_allocator *a,
                                  const kiln__cpu_image *image, kiln__buf *log);
/* Loads the texts of an image into a context. Codes as of cuModuleLoadData. */
CUresult kiln__cpu_module_link(CUmodule *out, CUcontext context,
                               const kiln__cpu_image *image, kiln__buf *log);
/* Adds or drops a reference. The last drop frees the module. */
void kiln__cpu_module_hold(CUmodule module);
void kiln__cpu_module_drop(CUmodule module);

/* texref.c: frees the texture and surface references of a module that ends. */
void kiln__cpu_texrefs_free(struct CUtexref_st *list);
/* array.c: frees the arrays of a context that ends. */
void kiln__cpu_context_end_arrays(CUcontext context);

/* Returns the number of a visible variable; UINT32_MAX: there is none. */
uint32_t kiln__cpu_module_global(const kiln__cpu_program *program,
                                 const char *name);

/* Stores the function that a CUfunction or CUkernel means in `context`. */
CUresult kiln__cpu_function_of(CUfunction handle, CUcontext context,
                               CUfunction *out);
/* library.c: stores the function of a CUkernel in `context`, and loads its
 * library there first if need be. */
CUresult kiln__cpu_kernel_function(CUfunction handle, CUcontext context,
                                   CUfunction *out);

/* Sets the attributes that a function has after loading. */
void kiln__cpu_function_init(CUfunction f, CUmodule module,
                             const kiln__cpu_code *code);
int kiln__cpu_function_max_threads(const kiln__cpu_code *code, int arch);
int kiln__cpu_function_registers(const kiln__cpu_code *code,
                                 const kiln__cpu_limits *l);
CUresult kiln__cpu_function_param(const kiln__cpu_code *code, size_t index,
                                  size_t *offset, size_t *size);
CUresult kiln__cpu_function_attribute(CUfunction f,
                                      CUfunction_attribute attribute,
                                      int *value);
CUresult kiln__cpu_function_set(CUfunction f, CUfunction_attribute attribute,
                                int value);

/* Returns the blocks of that shape that one multiprocessor holds at once; 0: a
 * block does not fit. */
int kiln__cpu_resident_blocks(const kiln__cpu_limits *limits,
                              const kiln__cpu_code *code, uint64_t threads,
                              uint64_t dynamic_shared);

/* ---- What is kept for reports: keep.c --------------------------------------------------- */

/* Returns a copy of a name that is never freed, since messages name variables
 * that are gone. Equal names share one copy. NULL: no memory. */
const char *kiln__cpu_keep_name(const char *name);
void kiln__cpu_keep_fault(const char *text, size_t size);
/* A launch ran under at least one check. */
void kiln__cpu_keep_checked(void);
void kiln__cpu_keep_finding(void *user, const kiln_cpu_finding *finding);
/* Adds the counters of a launch to the totals. */
void kiln__cpu_keep_counters(struct kiln__cpu_watch *watch);

#endif

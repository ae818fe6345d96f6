/* module.h -- what modules, libraries, links and launches share inside api/. */
#ifndef KILN_CPU_MODULE_H
#define KILN_CPU_MODULE_H

#include "../machine.h"

/* ---- Images: PTX texts, whatever they came wrapped in ----------------------- */

typedef struct kiln__cpu_ptx_text {
  char *data; /* NUL-terminated, owned */
  size_t size;
} kiln__cpu_ptx_text;

/* Texts to be linked together; one, but for images made by cuLinkComplete. */
typedef struct kiln__cpu_image {
  const kiln_allocator *alloc;
  kiln__cpu_ptx_text *texts;
  size_t n;
} kiln__cpu_image;

enum { KILN__PTX_VERSION = 90 }; /* newest .version that is understood */

/* Recognise and unwrap `bytes`: PTX text, fat binary, its wrapper, or a linked
 * image. size 0: not known, as with cuModuleLoadData; then what the formats say
 * of themselves is trusted. Out of a fat binary the best PTX for `arch` is
 * taken. What is wrong goes to `log`. On failure `out` is empty.
 *
 * CUDA_SUCCESS, CUDA_ERROR_INVALID_IMAGE (nothing known),
 * CUDA_ERROR_NO_BINARY_FOR_GPU (machine code alone, or PTX for later devices),
 * CUDA_ERROR_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult kiln__cpu_image_read(kiln__cpu_image *out, const kiln_allocator *a,
                              const void *bytes, size_t size, int arch,
                              kiln__buf *log);
/* The same from a file; CUDA_ERROR_FILE_NOT_FOUND. */
CUresult kiln__cpu_image_file(kiln__cpu_image *out, const kiln_allocator *a,
                              const char *path, int arch, kiln__buf *log);
void kiln__cpu_image_free(kiln__cpu_image *image);
/* Append a copy of a text. False: no memory. */
bool kiln__cpu_image_add(kiln__cpu_image *image, const char *data, size_t size);
/* All texts as one image that kiln__cpu_image_read() takes. */
void kiln__cpu_image_write(const kiln__cpu_image *image, kiln__buf *out);

/* What the head of a PTX text says: .version and .target. */
typedef struct kiln__cpu_ptx_head {
  int version; /* 90 = 9.0; 0: not found */
  int target;  /* 90 = sm_90; 0: not found */
  char suffix; /* 'a', 'f' or 0 */
} kiln__cpu_ptx_head;
kiln__cpu_ptx_head kiln__cpu_ptx_head_of(const char *text, size_t size);
/* Can a device of `arch` run what was made for this head's target? */
bool kiln__cpu_ptx_fits(const kiln__cpu_ptx_head *head, int arch);

/* fatbin.c: the best PTX of a fat binary container. */
CUresult kiln__cpu_fatbin_read(kiln__cpu_image *out, const uint8_t *bytes,
                               size_t size, int arch, kiln__buf *log);
/* The parts of relocatable device code: `parts` are fat binaries in memory, with
 * NULL at the end. Adds the best PTX of each to `out`; the program linker joins
 * them. Parts of machine code alone, as in libcudadevrt, are left out. Codes as
 * of kiln__cpu_fatbin_read(); texts that were added stay in `out`. */
CUresult kiln__cpu_fatbin_link(kiln__cpu_image *out, const void *const *parts,
                               int arch, kiln__buf *log);

/* ---- JIT options ---------------------------------------------------------------- */

/* The options of cuModuleLoadDataEx and cuLinkCreate: where logs go. */
typedef struct kiln__cpu_jit {
  char *info, *error;
  size_t info_size, error_size;
  void **info_out, **error_out, **time_out; /* values to be written back */
  uint64_t started;
} kiln__cpu_jit;

/* CUDA_ERROR_INVALID_VALUE: NULL where something has to be. Options that
 * change nothing here are taken. */
CUresult kiln__cpu_jit_read(kiln__cpu_jit *jit, unsigned n,
                            const CUjit_option *options, void **values);
/* Fill the buffers. */
void kiln__cpu_jit_write(const kiln__cpu_jit *jit, CUresult rc,
                         const char *text);

/* ---- Modules ------------------------------------------------------------------------ */

/* Texts as a program that is not bound to anything. */
CUresult kiln__cpu_module_program(kiln__cpu_program **out,
                                  const kiln_allocator *a,
                                  const kiln__cpu_image *image, kiln__buf *log);
/* Load texts into a context. */
CUresult kiln__cpu_module_link(CUmodule *out, CUcontext context,
                               const kiln__cpu_image *image, kiln__buf *log);
/* Work in flight holds modules; the last one frees. */
void kiln__cpu_module_hold(CUmodule module);
void kiln__cpu_module_drop(CUmodule module);

/* texref.c: a module's texture and surface references end with it. */
void kiln__cpu_texrefs_free(struct CUtexref_st *list);
/* array.c: a context's arrays end with it. */
void kiln__cpu_context_end_arrays(CUcontext context);

/* Program global by name, UINT32_MAX: none that can be found. */
uint32_t kiln__cpu_module_global(const kiln__cpu_program *program,
                                 const char *name);

/* A CUfunction or CUkernel as a function of the current context's module. */
CUresult kiln__cpu_function_of(CUfunction handle, CUcontext context,
                               CUfunction *out);
/* Is it a CUkernel? Then its function in `context`, loaded if need be. */
CUresult kiln__cpu_kernel_function(CUfunction handle, CUcontext context,
                                   CUfunction *out);

/* As it is after loading. */
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

/* Resident blocks of one multiprocessor; 0: does not fit. */
int kiln__cpu_resident_blocks(const kiln__cpu_limits *limits,
                              const kiln__cpu_code *code, uint64_t threads,
                              uint64_t dynamic_shared);

/* ---- What is kept for people: keep.c --------------------------------------------------- */

/* A name that stays valid for good: names of freed variables appear in
 * messages. NULL: no memory. */
const char *kiln__cpu_keep_name(const char *name);
void kiln__cpu_keep_fault(const char *text, size_t size);
/* A launch ran under at least one check. */
void kiln__cpu_keep_checked(void);
void kiln__cpu_keep_finding(void *user, const kiln_cpu_finding *finding);
/* Add what a launch counted. */
void kiln__cpu_keep_counters(struct kiln__cpu_watch *watch);

#endif

/* api_module.h -- declares images, modules, functions and JIT options, which
 * modules, libraries, links and launches share. */
#ifndef KILN_CPU_MODULE_H
#define KILN_CPU_MODULE_H

#include "../machine.h"

/* ---- Images: PTX source and its containers ------------------------------- */

typedef struct kiln__cpu_ptx_text {
  char *data; /* NUL-terminated PTX source, owned by this struct */
  size_t size;
} kiln__cpu_ptx_text;

/* PTX sources that are linked together. Most images hold one PTX source; images
 * from cuLinkComplete and from relocatable device code hold several. */
typedef struct kiln__cpu_image {
  const kiln_allocator *alloc;
  kiln__cpu_ptx_text *texts;
  size_t n;
  /* Accept every .version. Linked images and the inputs of nvJitLink stand for
   * machine code, which a driver loads whatever version its PTX had. */
  bool any_version;
  /* The sources are linked, so functions that no kernel reaches may call functions that
   * are not defined. Otherwise ptxas rejects them. */
  bool linked;
  /* maximum number of registers per thread, for kernels that set none of their
   * own; 0 means that there is none */
  uint32_t max_registers;
} kiln__cpu_image;

/* newest supported .version, where 90 means PTX 9.0 */
enum { KILN__PTX_VERSION = 90 };

/* Recognises the format of `bytes` and stores copies of the PTX sources. The
 * formats are PTX source, a fat binary, the wrapper of a fat binary, and a
 * linked image. From a fat binary it takes the best PTX for `arch`, which is 10
 * * major + minor.
 *
 * A `size` of 0 means that the size is unknown, as for cuModuleLoadData. Then
 * the lengths in the format's own headers are trusted. Messages are appended to
 * `log`. After success, the caller frees `out`. After a failure, `out` is
 * empty.
 *
 * Returns CUDA_SUCCESS, CUDA_ERROR_INVALID_IMAGE (unknown or damaged format),
 * CUDA_ERROR_NO_BINARY_FOR_GPU (only machine code, or only PTX for later
 * devices), CUDA_ERROR_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_NOT_SUPPORTED (this
 * build lacks the decompressor), or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult kiln__cpu_image_read(kiln__cpu_image *out, const kiln_allocator *a,
                              const void *bytes, size_t size, int arch,
                              kiln__buf *log);
/* Does the same as kiln__cpu_image_read() for an image that the caller has
 * initialised, and appends to it. On failure, frees all of `out`. */
CUresult kiln__cpu_image_append(kiln__cpu_image *out, const void *bytes,
                                size_t size, int arch, kiln__buf *log);
/* Does the same as kiln__cpu_image_read(), with the allocator and the
 * architecture of the CPU device. If `path` is not NULL, reads the image from
 * this file; the function then may also return CUDA_ERROR_FILE_NOT_FOUND. */
CUresult kiln__cpu_image_open(kiln__cpu_image *out, const char *path,
                              const void *bytes, size_t size, kiln__buf *log);
void kiln__cpu_image_free(kiln__cpu_image *image);
/* Appends a copy of a PTX source to the image. Returns false if there is no
 * memory. */
bool kiln__cpu_image_add(kiln__cpu_image *image, const char *data, size_t size);
/* Sets the maximum number of registers per thread, unless the image has one. */
void kiln__cpu_image_limit(kiln__cpu_image *image, uint32_t max_registers);
/* Appends to `out` a linked image of all PTX sources, in the format that
 * kiln__cpu_image_read() accepts. */
void kiln__cpu_image_write(const kiln__cpu_image *image, kiln__buf *out);

/* The .version and .target directives of a PTX source. */
typedef struct kiln__cpu_ptx_head {
  int version; /* value of .version, where 90 means 9.0; 0 if not found */
  int target;  /* value of .target, where 90 means sm_90; 0 if not found */
  char suffix; /* suffix of .target: 'a' or 'f'; 0 if there is none */
} kiln__cpu_ptx_head;
kiln__cpu_ptx_head kiln__cpu_ptx_head_of(const char *text, size_t size);
/* Returns whether a device of compute capability `arch` can run PTX of this
 * target. PTX for a target with the suffix `a` runs on that capability only.
 * With the suffix `f`, PTX runs on the same or a later capability of the same
 * major version. */
bool kiln__cpu_ptx_fits(const kiln__cpu_ptx_head *head, int arch);

/* the first four bytes of a fat binary */
#define KILN__FATBIN_MAGIC UINT32_C(0xba55ed50)

/* Stores the best PTX of a fat binary. The arguments and result codes are those
 * of kiln__cpu_image_read(). Defined in fatbin.c. */
CUresult kiln__cpu_fatbin_read(kiln__cpu_image *out, const uint8_t *bytes,
                               size_t size, int arch, kiln__buf *log);
/* Reads relocatable device code. `parts` is a NULL-terminated array of fat
 * binaries in memory. Adds the best PTX of each part to `out`; the program
 * linker joins them. Parts that hold only machine code, as in libcudadevrt, are
 * skipped. Returns the result codes of kiln__cpu_fatbin_read(). On failure, PTX
 * that was already added stays in `out`. */
CUresult kiln__cpu_fatbin_link(kiln__cpu_image *out, const void *const *parts,
                               int arch, kiln__buf *log);

/* Returns whether the bytes are an object file of the host or an archive
 * (`ar`). An object file with machine code of a GPU is not one. Defined in
 * host_objects.c. */
bool kiln__cpu_is_objects(const uint8_t *bytes, size_t size);
/* Adds the best PTX of every fat binary in an object file of the host, or in
 * the members of an archive. Members without PTX for this device are skipped, so
 * that a link with libcudadevrt.a works. Returns CUDA_SUCCESS,
 * CUDA_ERROR_INVALID_IMAGE if the file is damaged, and
 * CUDA_ERROR_NO_BINARY_FOR_GPU if an object file alone has no PTX. */
CUresult kiln__cpu_objects_read(kiln__cpu_image *out, const uint8_t *bytes,
                                size_t size, int arch, kiln__buf *log);

/* Returns the PTX of the functions for grid-wide synchronisation if a source of
 * the image names one of them, or else NULL. Defined in grid_sync_ptx.c. */
const char *kiln__cpu_grid_sync_ptx(const kiln__cpu_image *image);

/* Parses the PTX sources of a link input to produce its diagnostics. Each
 * diagnostic begins with `name`, or with "input" if that is NULL. Defined in
 * api_link.c. Returns CUDA_SUCCESS or CUDA_ERROR_INVALID_PTX. */
CUresult kiln__cpu_link_check(const kiln__cpu_image *image, const char *name,
                              kiln__buf *log);

/* ---- JIT options --------------------------------------------------------- */

/* The options of cuModuleLoadDataEx and cuLinkCreate that have an effect here:
 * the buffers for log messages and the wall time. */
typedef struct kiln__cpu_jit {
  char *info, *error;
  size_t info_size, error_size;
  /* addresses to which option values are written back */
  void **info_out, **error_out, **time_out;
  uint32_t max_registers; /* 0 if the option is absent */
  uint64_t started;
} kiln__cpu_jit;

/* Reads the JIT options. Options that have no effect on the CPU device are
 * accepted. Returns CUDA_SUCCESS, or CUDA_ERROR_INVALID_VALUE if an array is
 * NULL. */
CUresult kiln__cpu_jit_read(kiln__cpu_jit *jit, unsigned n,
                            const CUjit_option *options, void **values);
/* Writes `text` into the error log if `rc` is a failure, else into the info
 * log. Also writes the sizes of the logs and the wall time back into the
 * options. */
void kiln__cpu_jit_write(const kiln__cpu_jit *jit, CUresult rc,
                         const char *text);

/* ---- Modules ------------------------------------------------------------- */

/* Parses and links the PTX sources of an image into a program that is not yet
 * bound to handlers. The caller frees the program. Returns CUDA_SUCCESS,
 * CUDA_ERROR_INVALID_PTX with a message in `log`, or
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult kiln__cpu_module_program(kiln__cpu_program **out,
                                  const kiln_allocator *a,
                                  const kiln__cpu_image *image, kiln__buf *log);
/* Loads the PTX sources of an image into a context. Returns the result codes of
 * cuModuleLoadData. */
CUresult kiln__cpu_module_link(CUmodule *out, CUcontext context,
                               const kiln__cpu_image *image, kiln__buf *log);
/* The first function adds a reference to a module, the second releases one. The
 * module is freed with its last reference. */
void kiln__cpu_module_hold(CUmodule module);
void kiln__cpu_module_drop(CUmodule module);

/* Frees the texture and surface references of a module that is unloaded.
 * Defined in texref.c. */
void kiln__cpu_texrefs_free(struct CUtexref_st *list);
/* Frees the arrays of a context that is destroyed or reset. Defined in
 * array.c. */
void kiln__cpu_context_end_arrays(CUcontext context);

/* Returns the index of a visible variable, or UINT32_MAX if there is none with
 * this name. */
uint32_t kiln__cpu_module_global(const kiln__cpu_program *program,
                                 const char *name);

/* Stores the function that a CUfunction or CUkernel handle refers to in
 * `context`. */
CUresult kiln__cpu_function_of(CUfunction handle, CUcontext context,
                               CUfunction *out);
/* Stores the function that a CUkernel refers to in `context`. If the kernel's
 * library is not yet loaded in this context, the function loads it. Defined in
 * api_library.c. */
CUresult kiln__cpu_kernel_function(CUfunction handle, CUcontext context,
                                   CUfunction *out);

/* Initialises the attributes of a function that has just been loaded. */
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

/* Returns the number of blocks with these properties that are resident on one
 * multiprocessor at once. Returns 0 if not even one block fits. */
int kiln__cpu_resident_blocks(const kiln__cpu_limits *limits,
                              const kiln__cpu_code *code, uint64_t threads,
                              uint64_t dynamic_shared);

/* ---- What a running launch asks of the driver API ------------------------ */

/* The services for one launch. `held` lists the modules whose functions the
 * launch used, with a reference each. */
typedef struct kiln__cpu_launch_services {
  kiln__cpu_services base;
  CUcontext context;
  pthread_mutex_t lock; /* guards the members below */
  CUmodule *held;
  size_t n_held, capacity;
  uint64_t spent_ns; /* duration of the launches of kernels that have ended */
} kiln__cpu_launch_services;

/* Checks the shape of a launch of `f` and completes it. Returns the result codes
 * of cuLaunchKernel. Defined in api_launch.c, as the next function. */
CUresult kiln__cpu_launch_check(CUfunction f, kiln__cpu_launch_desc *launch);
/* Runs a launch and keeps its fault, its findings and its counters. Returns the
 * status of kiln__cpu_grid_run(). */
kiln_status kiln__cpu_launch_run(kiln__cpu_launch_desc *launch,
                                 kiln__cpu_fault_info *fault);
/* Reads the limits of the context when a kernel starts. The program may change
 * the limits until then, as with the driver. */
void kiln__cpu_launch_limits(kiln__cpu_launch_desc *out, CUcontext context);

/* The first function prepares the services for a launch in `context`. The
 * second releases the modules that the launch used. */
void kiln__cpu_services_begin(kiln__cpu_launch_services *s, CUcontext context);
/* The first function returns the nanoseconds that launches of kernels have taken
 * so far. The second records a launch that took `ns` nanoseconds, where `before`
 * is what the first returned when it began. It returns the part of them that the
 * launches of its own kernels did not take. */
uint64_t kiln__cpu_services_spent(const kiln__cpu_launch_desc *launch);
uint64_t kiln__cpu_services_spend(const kiln__cpu_launch_desc *launch,
                                  uint64_t before, uint64_t ns);
void kiln__cpu_services_end(kiln__cpu_launch_services *s);

/* ---- Data that keep.c stores for reports --------------------------------- */

/* Returns a copy of a name. The copy is never freed, since messages also name
 * variables that no longer exist. Equal names share one copy. Returns NULL if
 * there is no memory. */
const char *kiln__cpu_keep_name(const char *name);
void kiln__cpu_keep_fault(const char *text, size_t size);
/* Records that a launch ran with at least one check enabled. */
void kiln__cpu_keep_checked(void);
void kiln__cpu_keep_finding(void *user, const kiln_cpu_finding *finding);
/* Adds the counters of a launch to the totals of the process. */
void kiln__cpu_keep_counters(struct kiln__cpu_watch *watch);

#endif

/* api_library.c -- implements libraries and their kernels. A library belongs to
 * no context. It is loaded into a context when one of the library's kernels is
 * first used in that context. */
#include "api_module.h"

#include <string.h>

/* The module that results from loading a library into one context. The entry
 * stays when the context is destroyed. The id distinguishes the context from a
 * later context at the same address. */
typedef struct loaded {
  CUcontext context;
  uint64_t context_id;
  CUmodule module;
  struct loaded *next;
} loaded;

struct CUkern_st {
  CUlibrary library;
  const char *name; /* name of the kernel, owned by the library's program */
  /* Kernel attributes that were set before the library was loaded into a
   * context. They are applied when the library is loaded. */
  int wanted[16];
  bool set[16];
};

struct CUlib_st {
  pthread_mutex_t lock; /* guards `loaded` and `wanted` */
  kiln__cpu_image image;
  /* program without a context, for names and parameter layouts */
  kiln__cpu_program *program;
  struct CUkern_st *kernels;
  uint32_t n_kernels;
  loaded *contexts;
};

/* ---- Loading and unloading ----------------------------------------------- */

/* Parses the library's image once without a context, for the names and
 * attributes of kernels. Makes a handle for each kernel. */
static CUresult parse(CUlibrary library, kiln__buf *log)
{
  const kiln_allocator *a = &machine()->alloc;
  uint32_t n = 0;
  CUresult rc =
      kiln__cpu_module_program(&library->program, a, &library->image, log);

  if (rc != CUDA_SUCCESS)
    return rc;
  for (uint32_t i = 0; i < library->program->n_functions; i++)
    n += library->program->functions[i].entry &&
         library->program->functions[i].defined;
  library->kernels = kiln__calloc(a, n == 0 ? 1 : n, sizeof *library->kernels);
  CU_TRY(allocated(library->kernels));
  for (uint32_t i = 0; i < library->program->n_functions; i++) {
    const kiln__cpu_code *code = &library->program->functions[i];
    struct CUkern_st *k = &library->kernels[library->n_kernels];

    if (!code->entry || !code->defined)
      continue;
    k->library = library;
    k->name = code->name;
    if (!kiln__cpu_live_add(k, KILN__HANDLE_KERNEL))
      return CUDA_ERROR_OUT_OF_MEMORY;
    library->n_kernels++;
  }
  return CUDA_SUCCESS;
}

/* Removes all handles of the library. Unloads the library's modules from the
 * contexts that still exist. */
static void free_library(CUlibrary library)
{
  const kiln_allocator *a = &machine()->alloc;

  kiln__cpu_live_remove(library);
  for (uint32_t i = 0; i < library->n_kernels; i++)
    kiln__cpu_live_remove(&library->kernels[i]);
  while (library->contexts != NULL) {
    loaded *l = library->contexts;

    library->contexts = l->next;
    if (kiln__cpu_live(l->module, KILN__HANDLE_MODULE) &&
        l->module->context_id == l->context_id)
      kiln__cpu_module_free(l->module);
    kiln__free(a, l);
  }
  kiln__cpu_program_free(library->program);
  kiln__cpu_image_free(&library->image);
  kiln__free(a, library->kernels);
  pthread_mutex_destroy(&library->lock);
  kiln__free(a, library);
}

/* Makes a library from a file, or from memory if `path` is NULL. */
static CUresult make(CUlibrary *out, const void *bytes, const char *path,
                     const kiln__cpu_jit *jit, kiln__buf *log)
{
  kiln__cpu_machine *m = machine();
  CUlibrary library = kiln__calloc(&m->alloc, 1, sizeof *library);
  CUresult rc;

  if (library == NULL || pthread_mutex_init(&library->lock, NULL) != 0) {
    kiln__free(&m->alloc, library);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  rc = kiln__cpu_image_open(&library->image, path, bytes, 0, log);
  kiln__cpu_image_limit(&library->image, jit->max_registers);
  if (rc == CUDA_SUCCESS)
    rc = parse(library, log);
  if (rc == CUDA_SUCCESS && !kiln__cpu_live_add(library, KILN__HANDLE_LIBRARY))
    rc = CUDA_ERROR_OUT_OF_MEMORY;
  if (rc != CUDA_SUCCESS)
    free_library(library);
  else
    *out = library;
  return rc;
}

static CUresult load(CUlibrary *out, const void *bytes, const char *path,
                     unsigned n, const CUjit_option *options, void **values)
{
  kiln__cpu_jit jit;
  kiln__buf log;
  CUresult rc;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(out != NULL && (bytes != NULL || path != NULL)));
  CU_TRY(kiln__cpu_jit_read(&jit, n, options, values));
  kiln__buf_init(&log, &machine()->alloc);
  rc = make(out, bytes, path, &jit, &log);
  kiln__cpu_jit_write(&jit, rc, log.data == NULL ? "" : log.data);
  kiln__buf_free(&log);
  return rc;
}

/* Library options control how long the program keeps the image and when the
 * image is loaded. The options have no effect here: the image is copied at
 * once, and loaded at first use. */
CUresult kiln__cpu_libraryLoadData(CUlibrary *library, const void *image,
                                   CUjit_option *options, void **values,
                                   unsigned int n,
                                   CUlibraryOption *library_options,
                                   void **library_values,
                                   unsigned int n_library)
{
  CU_TRY(valid(n_library == 0 ||
               (library_options != NULL && library_values != NULL)));
  return load(library, image, NULL, n, options, values);
}

CUresult kiln__cpu_libraryLoadFromFile(CUlibrary *library, const char *path,
                                       CUjit_option *options, void **values,
                                       unsigned int n,
                                       CUlibraryOption *library_options,
                                       void **library_values,
                                       unsigned int n_library)
{
  CU_TRY(valid(n_library == 0 ||
               (library_options != NULL && library_values != NULL)));
  return load(library, NULL, path, n, options, values);
}

CUresult kiln__cpu_libraryUnload(CUlibrary library)
{
  CU_TRY(kiln__cpu_ready_with(library, KILN__HANDLE_LIBRARY));
  free_library(library);
  return CUDA_SUCCESS;
}

/* ---- Loading a library into a context ------------------------------------ */

/* Stores the library's module in a context. At first use in that context, loads
 * the module and applies the attributes that were set so far. The caller holds
 * the library's lock. */
static CUresult load_locked(CUlibrary library, CUcontext context, CUmodule *out)
{
  const kiln_allocator *a = &machine()->alloc;
  kiln__buf log;
  loaded *l;
  CUresult rc;

  for (l = library->contexts; l != NULL; l = l->next) {
    if (l->context == context && l->context_id == context->id) {
      *out = l->module;
      return CUDA_SUCCESS;
    }
  }
  l = kiln__alloc(a, sizeof *l);
  CU_TRY(allocated(l));
  kiln__buf_init(&log, a);
  rc = kiln__cpu_module_link(out, context, &library->image, &log);
  kiln__buf_free(&log);
  if (rc != CUDA_SUCCESS) {
    kiln__free(a, l);
    return rc;
  }
  (*out)->of_library = true;
  *l = (loaded){context, context->id, *out, library->contexts};
  library->contexts = l;
  for (uint32_t i = 0; i < library->n_kernels; i++) {
    for (int k = 0; k < 16; k++) {
      if (library->kernels[i].set[k])
        kiln__cpu_function_set(&(*out)->functions[i], k,
                               library->kernels[i].wanted[k]);
    }
  }
  return CUDA_SUCCESS;
}

static CUresult module_in(CUlibrary library, CUcontext context, CUmodule *out)
{
  CUresult rc;

  pthread_mutex_lock(&library->lock);
  rc = load_locked(library, context, out);
  pthread_mutex_unlock(&library->lock);
  return rc;
}

/* The functions of a loaded module have the same order as the library's
 * kernels, so one index serves for both. */
CUresult kiln__cpu_kernel_function(CUfunction handle, CUcontext context,
                                   CUfunction *out)
{
  CUkernel kernel = (CUkernel)(void *)handle;
  CUmodule module;

  CU_TRY(module_in(kernel->library, context, &module));
  *out = &module->functions[kernel - kernel->library->kernels];
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_libraryGetModule(CUmodule *module, CUlibrary library)
{
  CUcontext context;

  CU_TRY(kiln__cpu_current(&context));
  CU_TRY(kiln__cpu_ready_with(library, KILN__HANDLE_LIBRARY));
  return module == NULL ? CUDA_ERROR_INVALID_VALUE
                        : module_in(library, context, module);
}

CUresult kiln__cpu_libraryGetGlobal(CUdeviceptr *address, size_t *bytes,
                                    CUlibrary library, const char *name)
{
  CUmodule module;

  CU_TRY(kiln__cpu_libraryGetModule(&module, library));
  return kiln__cpu_moduleGetGlobal(address, bytes, module, name);
}

CUresult kiln__cpu_libraryGetManaged(CUdeviceptr *address, size_t *bytes,
                                     CUlibrary library, const char *name)
{
  CUmodule module;
  uint32_t i;

  CU_TRY(kiln__cpu_libraryGetModule(&module, library));
  CU_TRY(valid(name != NULL));
  i = kiln__cpu_module_global(module->program, name);
  if (i == UINT32_MAX || !module->program->globals[i].managed)
    return CUDA_ERROR_NOT_FOUND;
  return kiln__cpu_moduleGetGlobal(address, bytes, module, name);
}

CUresult kiln__cpu_libraryGetUnifiedFunction(void **fn, CUlibrary library,
                                             const char *name)
{
  CU_TRY(kiln__cpu_ready_with(library, KILN__HANDLE_LIBRARY));
  return fn == NULL || name == NULL ? CUDA_ERROR_INVALID_VALUE
                                    : CUDA_ERROR_NOT_FOUND;
}

/* ---- Kernels ------------------------------------------------------------- */

CUresult kiln__cpu_libraryGetKernel(CUkernel *kernel, CUlibrary library,
                                    const char *name)
{
  CU_TRY(kiln__cpu_ready_with(library, KILN__HANDLE_LIBRARY));
  CU_TRY(valid(kernel != NULL && name != NULL));
  for (uint32_t i = 0; i < library->n_kernels; i++) {
    if (strcmp(library->kernels[i].name, name) == 0) {
      *kernel = &library->kernels[i];
      return CUDA_SUCCESS;
    }
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult kiln__cpu_libraryGetKernelCount(unsigned int *count, CUlibrary library)
{
  CU_TRY(kiln__cpu_ready_with(library, KILN__HANDLE_LIBRARY));
  return CU_STORE(count, library->n_kernels);
}

CUresult kiln__cpu_libraryEnumerateKernels(CUkernel *kernels, unsigned int n,
                                           CUlibrary library)
{
  CU_TRY(kiln__cpu_ready_with(library, KILN__HANDLE_LIBRARY));
  CU_TRY(valid(kernels != NULL && n != 0));
  for (uint32_t i = 0; i < n && i < library->n_kernels; i++)
    kernels[i] = &library->kernels[i];
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_kernelGetFunction(CUfunction *function, CUkernel kernel)
{
  CUcontext context;

  CU_TRY(kiln__cpu_current(&context));
  CU_TRY(kiln__cpu_ready_with(kernel, KILN__HANDLE_KERNEL));
  return function == NULL ? CUDA_ERROR_INVALID_VALUE
                          : kiln__cpu_kernel_function(
                                (CUfunction)(void *)kernel, context, function);
}

CUresult kiln__cpu_kernelGetLibrary(CUlibrary *library, CUkernel kernel)
{
  CU_TRY(kiln__cpu_ready_with(kernel, KILN__HANDLE_KERNEL));
  return CU_STORE(library, kernel->library);
}

CUresult kiln__cpu_kernelGetName(const char **name, CUkernel kernel)
{
  CU_TRY(kiln__cpu_ready_with(kernel, KILN__HANDLE_KERNEL));
  return CU_STORE(name, kernel->name);
}

static const kiln__cpu_code *code_of(CUkernel kernel)
{
  return kiln__cpu_program_entry(kernel->library->program, kernel->name);
}

CUresult kiln__cpu_kernelGetParamInfo(CUkernel kernel, size_t index,
                                      size_t *offset, size_t *size)
{

  CU_TRY(kiln__cpu_ready_with(kernel, KILN__HANDLE_KERNEL));
  return kiln__cpu_function_param(code_of(kernel), index, offset, size);
}

static CUresult check_device(CUkernel kernel, CUdevice device)
{
  CU_TRY(kiln__cpu_ready_with(kernel, KILN__HANDLE_KERNEL));
  return kiln__cpu_known_device(device);
}

/* Makes a temporary function without a context. Its attributes are those of the
 * kernel. */
static void as_function(CUkernel kernel, struct CUmod_st *module,
                        struct CUfunc_st *f)
{
  *module = (struct CUmod_st){.program = kernel->library->program};
  kiln__cpu_function_init(f, module, code_of(kernel));
  pthread_mutex_lock(&kernel->library->lock);
  for (int k = 0; k < 16; k++) {
    if (kernel->set[k])
      kiln__cpu_function_set(f, k, kernel->wanted[k]);
  }
  pthread_mutex_unlock(&kernel->library->lock);
}

CUresult kiln__cpu_kernelGetAttribute(int *value,
                                      CUfunction_attribute attribute,
                                      CUkernel kernel, CUdevice device)
{
  struct CUmod_st module;
  struct CUfunc_st f;

  CU_TRY(check_device(kernel, device));
  CU_TRY(valid(value != NULL));
  as_function(kernel, &module, &f);
  return kiln__cpu_function_attribute(&f, attribute, value);
}

CUresult kiln__cpu_kernelSetAttribute(CUfunction_attribute attribute, int value,
                                      CUkernel kernel, CUdevice device)
{
  CUlibrary library;
  struct CUmod_st module;
  struct CUfunc_st f;

  CU_TRY(check_device(kernel, device));
  as_function(kernel, &module, &f);
  CU_TRY(kiln__cpu_function_set(&f, attribute, value));
  library = kernel->library;
  pthread_mutex_lock(&library->lock);
  kernel->wanted[attribute] = value;
  kernel->set[attribute] = true;
  for (loaded *l = library->contexts; l != NULL; l = l->next) {
    if (kiln__cpu_live(l->module, KILN__HANDLE_MODULE) &&
        l->module->context_id == l->context_id && l->module->device == device)
      kiln__cpu_function_set(&l->module->functions[kernel - library->kernels],
                             attribute, value);
  }
  pthread_mutex_unlock(&library->lock);
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_kernelSetCacheConfig(CUkernel kernel, CUfunc_cache config,
                                        CUdevice device)
{
  CU_TRY(check_device(kernel, device));
  return valid(config >= 0 && config <= 3);
}

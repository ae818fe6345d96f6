/* api_module.c -- implements modules. A module is PTX that is loaded into a
 * context, with memory for its variables.
 *
 * Loading parses and links the PTX sources, and allocates memory for each
 * variable. It then writes the initial values and the addresses in them. Last,
 * it lists the kernels and binds the program to the handlers of the instruction
 * set. Launches in flight hold references to the module. Unloading therefore
 * takes effect when the last launch is done. */
#include "api_module.h"
#include "../../model/demangle.h"
#include "../driver_log.h"
#include "../memory/api_memory.h"
#include "../missing.h"
#include "../observe.h"

#include <string.h>

/* ---- From PTX source to a program ---------------------------------------- */

/* Copies the text between `before`, which ends with a quote, and the next quote of
 * the log. Returns false if the log has no such text, or if it is too long. */
static bool quoted(char *out, size_t size, const kiln__buf *log,
                   const char *before)
{
  const char *at = log->data == NULL ? NULL : strstr(log->data, before);
  size_t n;

  if (at == NULL)
    return false;
  at += strlen(before);
  n = strcspn(at, "'");
  if (n >= size)
    return false;
  memcpy(out, at, n);
  out[n] = '\0';
  return true;
}

/* Tells the user of `kiln exec` which device function is undefined. This happens
 * if a fat binary with the function was left out because it has no PTX. */
static void note_undefined(const kiln__buf *log)
{
  char name[512], readable[KILN__READABLE], text[KILN__READABLE + 32];

  if (!quoted(name, sizeof name, log, "undefined function '"))
    return;
  kiln__format(text, sizeof text, "the device function %s",
               kiln__cpu_demangle(name, readable, sizeof readable));
  kiln__cpu_note(text, "If a library of the program defines it, compile that "
                       "library for a virtual architecture as well, such as "
                       "-gencode arch=compute_75,code=compute_75");
}

/* Tells the user of `kiln exec` which instruction is unknown. Programs often check no
 * launch, so nothing else says why a kernel did not run. */
static void note_instruction(const kiln__buf *log)
{
  char name[128], text[160];

  if (!quoted(name, sizeof name, log, "unknown instruction '") &&
      !quoted(name, sizeof name, log, "matrix and tensor instructions: '"))
    return;
  kiln__format(text, sizeof text, "the PTX instruction %s", name);
  kiln__cpu_note(text, "No kernel of its module runs; their launches "
                       "fail with CUDA_ERROR_INVALID_PTX");
}

/* Maps the status of the PTX parser to a result code of the driver, and appends
 * the parser's messages to the log. */
static CUresult result_of(kiln_status st, kiln__buf *log)
{
  if (st == KILN_OK)
    return CUDA_SUCCESS;
  if (st == KILN_ENOMEM)
    return CUDA_ERROR_OUT_OF_MEMORY;
  kiln__buf_text(log, kiln_last_error()->log[0] != '\0'
                          ? kiln_last_error()->log
                          : kiln_last_error()->message);
  note_undefined(log);
  note_instruction(log);
  if (log->data != NULL)
    kiln__cpu_log_error(log->data, log->size);
  return CUDA_ERROR_INVALID_PTX;
}

/* Parses all PTX sources of an image, and then `more` unless it is NULL. On
 * failure it frees the sources that were already parsed. */
static CUresult parse_all(kiln__cpu_ptx_module **parts, const kiln_allocator *a,
                          const kiln__cpu_image *image, const char *more,
                          kiln__buf *log)
{
  for (size_t i = 0; i < image->n + (more != NULL); i++) {
    const char *text = i < image->n ? image->texts[i].data : more;
    const kiln_status st = kiln__cpu_ptx_parse(
        &parts[i], a, text, i < image->n ? image->texts[i].size : strlen(text));

    if (st == KILN_OK)
      continue;
    while (i > 0)
      kiln__cpu_ptx_free(parts[--i]);
    return result_of(st, log);
  }
  return CUDA_SUCCESS;
}

/* Limits the registers of all kernels that set no limit of their own. */
static void limit_registers(kiln__cpu_program *program, uint32_t most)
{
  for (uint32_t i = 0; i < program->n_functions; i++) {
    if (program->functions[i].most_registers == 0)
      program->functions[i].most_registers = most;
  }
}

CUresult kiln__cpu_module_program(kiln__cpu_program **out,
                                  const kiln_allocator *a,
                                  const kiln__cpu_image *image, kiln__buf *log)
{
  const char *more = kiln__cpu_grid_sync_ptx(image);
  const size_t n = image->n + (more != NULL);
  kiln__cpu_ptx_module **parts =
      kiln__calloc(a, n, sizeof(kiln__cpu_ptx_module *));
  CUresult rc = CUDA_ERROR_OUT_OF_MEMORY;

  *out = NULL;
  if (parts == NULL)
    return rc;
  rc = parse_all(parts, a, image, more, log);
  if (rc == CUDA_SUCCESS)
    rc = result_of(n == 1 && !image->linked
                       ? kiln__cpu_program_make(out, a, parts[0])
                       : kiln__cpu_program_link(out, a, parts, n),
                   log);
  if (rc == CUDA_SUCCESS)
    limit_registers(*out, image->max_registers);
  kiln__free(a, parts);
  return rc;
}

/* ---- Variables ----------------------------------------------------------- */

static kiln__cpu_range_kind range_kind(const kiln__cpu_global *g)
{
  if (g->constant)
    return KILN__RANGE_CONST;
  return g->managed ? KILN__RANGE_MANAGED : KILN__RANGE_GLOBAL;
}

/* Returns the size of a variable in bytes. A texture or surface reference takes
 * 8 bytes, which hold the handle of the bound object. The size is never 0,
 * since each variable needs an address. */
static uint64_t size_of(const kiln__cpu_global *g)
{
  if (g->texture || g->surface)
    return 8;
  return g->size == 0 ? 1 : g->size;
}

/* Alignment of variables in bytes, measured on an H200. Programs rely on it, since they
 * access arrays by vectors. */
enum { ALIGN = 256 };

/* Allocates the memory of a variable. The memory is charged to the device
 * before the memory is touched, since a variable may be larger than the
 * device's memory. */
static CUresult place(CUmodule module, uint32_t number, kiln__buf *log)
{
  const kiln__cpu_machine *m = machine();
  const kiln__cpu_global *g = &module->program->globals[number];
  const uint64_t size = size_of(g);
  kiln__cpu_range range = {.kind = range_kind(g),
                           .device = module->device,
                           .owner = module->context,
                           .name = kiln__cpu_keep_name(g->name)};

  if (g->external) {
    kiln__buf_format(log, "unresolved extern variable '%s'\n", g->name);
    return CUDA_ERROR_INVALID_PTX;
  }
  if (range.name == NULL || !kiln__cpu_charge(module->device, size)) {
    kiln__buf_format(log,
                     "variable '%s' of %llu bytes does not fit into the memory "
                     "that is left on the device\n",
                     g->name, (unsigned long long)size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (kiln__cpu_memory_add(m->memory, &range, size,
                           g->align < ALIGN ? ALIGN : g->align) != KILN_OK) {
    kiln__cpu_uncharge(module->device, size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  module->globals[number] = range.first;
  if (g->init != NULL)
    memcpy(range.host, g->init, (size_t)g->init_size);
  kiln__cpu_memory_written(m->memory, range.first, size);
  return CUDA_SUCCESS;
}

/* Writes the addresses of other variables and of functions into an initial
 * value. All variables already have their memory. */
static void patch(CUmodule module, uint32_t number)
{
  const kiln__cpu_machine *m = machine();
  const kiln__cpu_global *g = &module->program->globals[number];

  for (uint32_t i = 0; i < g->n_patches; i++) {
    const struct kiln__cpu_patch *p = &g->patches[i];
    const uint64_t base = p->function ? KILN__WINDOW_CODE +
                                            module->program->code_offset +
                                            (uint64_t)p->number * 16
                                      : module->globals[p->number];
    const uint64_t value = (base + (uint64_t)p->addend) >> p->shift;
    uint8_t *at = kiln__cpu_memory_host(
        m->memory, module->globals[number] + p->offset, p->size);

    if (at == NULL)
      /* The offset lies outside of the variable. code/ has already rejected PTX
       * of this kind. */
      continue;
    /* The device is little-endian, so the bytes are written in ascending
     * order. */
    for (unsigned k = 0; k < p->size; k++)
      at[k] = (uint8_t)(value >> (8 * k));
  }
}

/* Assigns addresses to the functions of a module. No two modules of the process
 * share an address, so that kernels of one module can call functions of another
 * one. Addresses are not reused. */
static CUresult place_code(CUmodule module)
{
  const uint64_t size = module->program->n_functions * UINT64_C(16);
  const uint64_t at = atomic_fetch_add(&machine()->next_code, size);

  module->program->code_offset = at;
  return size <= KILN__WINDOW_BYTES && at <= KILN__WINDOW_BYTES - size
             ? CUDA_SUCCESS
             : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult place_all(CUmodule module, kiln__buf *log)
{
  const uint32_t n = module->program->n_globals;

  module->globals =
      kiln__calloc(&machine()->alloc, n == 0 ? 1 : n, sizeof *module->globals);
  CU_TRY(allocated(module->globals));
  module->program->addresses = module->globals;
  CU_TRY(place_code(module));
  for (uint32_t i = 0; i < n; i++)
    CU_TRY(place(module, i, log));
  for (uint32_t i = 0; i < n; i++)
    patch(module, i);
  return CUDA_SUCCESS;
}

/* ---- Functions ----------------------------------------------------------- */

/* Makes a handle for each kernel that the program defines. */
static CUresult list_functions(CUmodule module)
{
  const kiln__cpu_program *p = module->program;
  uint32_t n = 0;

  for (uint32_t i = 0; i < p->n_functions; i++)
    n += p->functions[i].entry && p->functions[i].defined;
  module->functions = kiln__calloc(&machine()->alloc, n == 0 ? 1 : n,
                                   sizeof *module->functions);
  CU_TRY(allocated(module->functions));
  for (uint32_t i = 0; i < p->n_functions; i++) {
    struct CUfunc_st *f = &module->functions[module->n_functions];
    const kiln__cpu_code *code = &p->functions[i];

    if (!code->entry || !code->defined)
      continue;
    kiln__cpu_function_init(f, module, code);
    if (!kiln__cpu_live_add(f, KILN__HANDLE_FUNCTION))
      return CUDA_ERROR_OUT_OF_MEMORY;
    module->n_functions++;
  }
  return CUDA_SUCCESS;
}

/* Rejects kernels with more static shared memory than the maximum per block.
 * The driver also rejects these kernels at load time. The message has the
 * wording of ptxas. */
static CUresult check_functions(CUmodule module, kiln__buf *log)
{
  const kiln__cpu_limits *l = kiln__cpu_limits_of(machine()->opts.arch);

  for (uint32_t i = 0; i < module->n_functions; i++) {
    const kiln__cpu_code *code = module->functions[i].code;

    if (code->static_shared <= (uint32_t)l->block_shared)
      continue;
    kiln__buf_format(log,
                     "function '%s' uses too much shared data (0x%x bytes, "
                     "0x%x max)\n",
                     code->name, code->static_shared,
                     (unsigned)l->block_shared);
    return CUDA_ERROR_INVALID_PTX;
  }
  return CUDA_SUCCESS;
}

/* Rejects kernels that wait for the kernels that they launched. Devices of
 * compute capability 9.0 and later cannot do this, and do not load such code. */
static CUresult check_waits(const struct CUmod_st *module, kiln__buf *log)
{
  const int arch = machine()->opts.arch;

  for (uint32_t i = 0; arch >= 90 && i < module->program->n_functions; i++) {
    if (module->program->functions[i].system != KILN__SYSTEM_SYNCHRONIZE)
      continue;
    kiln__buf_format(log,
                     "a kernel calls cudaDeviceSynchronize(), which does not "
                     "exist on capability %d.%d; launch what follows into "
                     "cudaStreamTailLaunch, or choose a CPU device of "
                     "capability 8.9 or less\n",
                     arch / 10, arch % 10);
    return CUDA_ERROR_CDP_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

/* ---- Creation and destruction -------------------------------------------- */

static void destroy(CUmodule module)
{
  kiln__cpu_machine *m = machine();

  for (uint32_t i = 0; module->globals != NULL && module->program != NULL &&
                       i < module->program->n_globals;
       i++) {
    if (module->globals[i] == 0)
      continue;
    kiln__cpu_memory_remove(m->memory, module->globals[i]);
    kiln__cpu_uncharge(module->device, size_of(&module->program->globals[i]));
  }
  for (uint32_t i = 0; i < module->n_functions; i++)
    kiln__free(&m->alloc, module->functions[i].old);
  kiln__cpu_program_free(module->program);
  kiln__free(&m->alloc, module->globals);
  kiln__free(&m->alloc, module->functions);
  kiln__free(&m->alloc, module);
}

void kiln__cpu_module_hold(CUmodule module)
{
  atomic_fetch_add(&module->refs, 1);
}

void kiln__cpu_module_drop(CUmodule module)
{
  if (atomic_fetch_sub(&module->refs, 1) == 1)
    destroy(module);
}

/* Removes the module's handles and releases the reference that they hold. Work
 * in flight continues. */
static void forget(CUmodule module)
{
  kiln__cpu_live_remove(module);
  for (uint32_t i = 0; i < module->n_functions; i++)
    kiln__cpu_live_remove(&module->functions[i]);
  kiln__cpu_texrefs_free(module->texrefs);
  module->texrefs = NULL;
  kiln__cpu_module_drop(module);
}

/* Removes the module from the list of its context. Returns false if another
 * thread has already removed the module; that thread frees the module. */
static bool unlist(CUmodule module)
{
  CUcontext context = module->context;
  bool found = false;

  pthread_mutex_lock(&context->lock);
  for (CUmodule *at = &context->modules; *at != NULL; at = &(*at)->next) {
    if (*at == module) {
      *at = module->next;
      found = true;
      break;
    }
  }
  pthread_mutex_unlock(&context->lock);
  return found;
}

void kiln__cpu_module_free(CUmodule module)
{
  if (unlist(module))
    forget(module);
}

void kiln__cpu_context_end_modules(CUcontext context)
{
  for (;;) {
    CUmodule module;

    pthread_mutex_lock(&context->lock);
    module = context->modules;
    if (module != NULL)
      context->modules = module->next;
    pthread_mutex_unlock(&context->lock);
    if (module == NULL)
      break;
    forget(module);
  }
  kiln__cpu_context_end_arrays(context);
}

static CUresult fill(CUmodule module, const kiln__cpu_image *image,
                     kiln__buf *log)
{
  const kiln__cpu_machine *m = machine();
  CUresult rc =
      kiln__cpu_module_program(&module->program, &m->alloc, image, log);

  if (rc == CUDA_SUCCESS)
    rc = place_all(module, log);
  if (rc == CUDA_SUCCESS)
    rc = list_functions(module);
  if (rc == CUDA_SUCCESS)
    rc = check_functions(module, log);
  if (rc == CUDA_SUCCESS)
    rc = check_waits(module, log);
  if (rc == CUDA_SUCCESS)
    kiln__cpu_program_bind(module->program, m->isa->handlers);
  if (rc == CUDA_SUCCESS && !kiln__cpu_live_add(module, KILN__HANDLE_MODULE))
    rc = CUDA_ERROR_OUT_OF_MEMORY;
  return rc;
}

CUresult kiln__cpu_module_link(CUmodule *out, CUcontext context,
                               const kiln__cpu_image *image, kiln__buf *log)
{
  const uint64_t begin = kiln__clock_ns();
  CUmodule module = kiln__calloc(&machine()->alloc, 1, sizeof *module);
  CUresult rc;

  CU_TRY(allocated(module));
  module->context = context;
  module->context_id = context->id;
  module->device = context->device;
  module->refs = 1;
  rc = fill(module, image, log);
  kiln__cpu_report_load(1, begin);
  if (rc != CUDA_SUCCESS) {
    forget(module);
    return rc;
  }
  pthread_mutex_lock(&context->lock);
  module->next = context->modules;
  context->modules = module;
  pthread_mutex_unlock(&context->lock);
  *out = module;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_module_make(CUmodule *out, CUcontext context,
                               const char *ptx, size_t size, kiln__buf *log)
{
  kiln__cpu_image image;
  CUresult rc;

  CU_TRY(kiln__cpu_image_open(&image, NULL, ptx, size, log));
  rc = kiln__cpu_module_link(out, context, &image, log);
  kiln__cpu_image_free(&image);
  return rc;
}

/* ---- The driver's functions ---------------------------------------------- */

/* Loads a module from the file `path`, or from memory if `path` is NULL. */
static CUresult load(CUmodule *out, const void *bytes, const char *path,
                     unsigned n, const CUjit_option *options, void **values)
{
  CUcontext context;
  kiln__cpu_jit jit;
  kiln__cpu_image image;
  kiln__buf log;
  CUresult rc;

  CU_TRY(kiln__cpu_current_unsafe(&context));
  CU_TRY(valid(out != NULL && (bytes != NULL || path != NULL)));
  CU_TRY(kiln__cpu_jit_read(&jit, n, options, values));
  kiln__buf_init(&log, &machine()->alloc);
  rc = kiln__cpu_image_open(&image, path, bytes, 0, &log);
  if (rc == CUDA_SUCCESS) {
    kiln__cpu_image_limit(&image, jit.max_registers);
    rc = kiln__cpu_module_link(out, context, &image, &log);
    kiln__cpu_image_free(&image);
  }
  kiln__cpu_jit_write(&jit, rc, log.data == NULL ? "" : log.data);
  kiln__buf_free(&log);
  return rc;
}

CUresult kiln__cpu_moduleLoadDataEx(CUmodule *module, const void *image,
                                    unsigned int n, CUjit_option *options,
                                    void **values)
{
  return load(module, image, NULL, n, options, values);
}

CUresult kiln__cpu_moduleLoadData(CUmodule *module, const void *image)
{
  return load(module, image, NULL, 0, NULL, NULL);
}

CUresult kiln__cpu_moduleLoad(CUmodule *module, const char *path)
{
  return load(module, NULL, path, 0, NULL, NULL);
}

CUresult kiln__cpu_moduleUnload(CUmodule module)
{
  CUcontext context;

  CU_TRY(kiln__cpu_current_unsafe(&context));
  if (!kiln__cpu_live(module, KILN__HANDLE_MODULE) || module->of_library)
    return CUDA_ERROR_INVALID_HANDLE;
  kiln__cpu_module_free(module);
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_moduleGetFunction(CUfunction *function, CUmodule module,
                                     const char *name)
{
  CU_TRY(kiln__cpu_current_with(module, KILN__HANDLE_MODULE));
  CU_TRY(valid(function != NULL && name != NULL && name[0] != '\0'));
  for (uint32_t i = 0; i < module->n_functions; i++) {
    if (strcmp(module->functions[i].code->name, name) == 0) {
      *function = &module->functions[i];
      return CUDA_SUCCESS;
    }
  }
  return CUDA_ERROR_NOT_FOUND;
}

uint32_t kiln__cpu_module_global(const kiln__cpu_program *program,
                                 const char *name)
{
  for (uint32_t i = 0; i < program->n_globals; i++) {
    const kiln__cpu_global *g = &program->globals[i];

    if (g->visible && strcmp(g->name, name) == 0)
      return i;
  }
  return UINT32_MAX;
}

CUresult kiln__cpu_moduleGetGlobal(CUdeviceptr *address, size_t *bytes,
                                   CUmodule module, const char *name)
{
  uint32_t i;

  CU_TRY(kiln__cpu_current_with(module, KILN__HANDLE_MODULE));
  CU_TRY(valid(name != NULL && (address != NULL || bytes != NULL)));
  i = kiln__cpu_module_global(module->program, name);
  if (i == UINT32_MAX || module->program->globals[i].texture ||
      module->program->globals[i].surface)
    return CUDA_ERROR_NOT_FOUND;
  if (address != NULL)
    *address = module->globals[i];
  if (bytes != NULL)
    *bytes = (size_t)module->program->globals[i].size;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_moduleGetFunctionCount(unsigned int *count, CUmodule module)
{
  CU_TRY(kiln__cpu_current_with(module, KILN__HANDLE_MODULE));
  return CU_STORE(count, module->n_functions);
}

CUresult kiln__cpu_moduleEnumerateFunctions(CUfunction *functions,
                                            unsigned int n, CUmodule module)
{
  CU_TRY(kiln__cpu_current_with(module, KILN__HANDLE_MODULE));
  CU_TRY(valid(functions != NULL && n != 0));
  for (unsigned i = 0; i < n && i < module->n_functions; i++)
    functions[i] = &module->functions[i];
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_moduleGetLoadingMode(CUmoduleLoadingMode *mode)
{
  CU_TRY(kiln__cpu_ready());
  return CU_STORE(mode, CU_MODULE_EAGER_LOADING);
}

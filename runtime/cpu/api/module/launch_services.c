/* launch_services.c -- implements what a running launch asks of the driver API:
 * the functions of other modules, launches by kernels, and answers to the
 * questions of the device runtime.
 *
 * A kernel may call a function of another module of its context through a
 * pointer. The launch then holds a reference to that module until it ends, so
 * the program may unload the module while the launch runs. */
#include "../stream/streams.h"
#include "api_module.h"

#include <ctype.h>
#include <string.h>

/* ---- Functions of other modules ------------------------------------------ */

static bool contains(const struct CUmod_st *module, uint64_t address)
{
  const uint64_t first = KILN__WINDOW_CODE + module->program->code_offset;

  return address >= first &&
         (address - first) / 16 < module->program->n_functions;
}

static CUmodule find(const struct CUctx_st *context, uint64_t address)
{
  CUmodule module = context->modules;

  while (module != NULL && !contains(module, address))
    module = module->next;
  return module;
}

/* Looks for the module in its context and adds a reference. The caller holds
 * the lock of `s`. */
static CUmodule hold(kiln__cpu_launch_services *s, uint64_t address)
{
  CUmodule module;

  if (!kiln__grow(&machine()->alloc, &s->held, s->n_held, &s->capacity,
                  sizeof(CUmodule)))
    return NULL;
  pthread_mutex_lock(&s->context->lock);
  module = find(s->context, address);
  if (module != NULL)
    kiln__cpu_module_hold(module);
  pthread_mutex_unlock(&s->context->lock);
  if (module != NULL)
    s->held[s->n_held++] = module;
  return module;
}

/* Returns the module that contains the function at an address, or NULL. */
static CUmodule module_at(kiln__cpu_launch_services *s, uint64_t address)
{
  CUmodule module = NULL;

  pthread_mutex_lock(&s->lock);
  for (size_t i = 0; i < s->n_held && module == NULL; i++) {
    if (contains(s->held[i], address))
      module = s->held[i];
  }
  if (module == NULL)
    module = hold(s, address);
  pthread_mutex_unlock(&s->lock);
  return module;
}

static const kiln__cpu_program *program_at(void *user, uint64_t address)
{
  const CUmodule module = module_at(user, address);

  return module == NULL ? NULL : module->program;
}

/* Returns the kernel at an address, or NULL. */
static CUfunction kernel_at(kiln__cpu_launch_services *s, uint64_t address)
{
  const CUmodule module = module_at(s, address);
  const kiln__cpu_code *code;

  if (module == NULL)
    return NULL;
  code = &module->program->functions[(address - KILN__WINDOW_CODE -
                                      module->program->code_offset) /
                                     16];
  for (uint32_t i = 0; i < module->n_functions; i++) {
    if (module->functions[i].code == code)
      return &module->functions[i];
  }
  return NULL;
}

/* ---- Launches by kernels ------------------------------------------------- */

/* Error codes of the CUDA runtime that differ from those of the driver. */
enum { INVALID_CONFIGURATION = 9, INVALID_FUNCTION = 98 };

void kiln__cpu_launch_limits(kiln__cpu_launch_desc *out, CUcontext context)
{
  size_t stack;

  pthread_mutex_lock(&context->lock);
  stack = context->limit[CU_LIMIT_STACK_SIZE];
  out->heap_limit = context->limit[CU_LIMIT_MALLOC_HEAP_SIZE];
  out->sync_depth = (uint32_t)context->limit[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH];
  out->max_pending =
      (uint32_t)context->limit[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT];
  pthread_mutex_unlock(&context->lock);
  out->local_limit = stack > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)stack;
  if (out->local_limit < out->code->reach_local)
    out->local_limit = out->code->reach_local;
}

static uint64_t address_of(const kiln__cpu_code *code)
{
  return KILN__WINDOW_CODE + code->program->code_offset +
         code->number * UINT64_C(16);
}

static int check_child(void *user, kiln__cpu_launch_desc *child)
{
  kiln__cpu_launch_services *const s = user;
  const CUfunction f = kernel_at(s, address_of(child->code));
  CUresult rc;

  if (f == NULL)
    return INVALID_FUNCTION;
  rc = kiln__cpu_launch_check(f, child);
  return rc == CUDA_ERROR_INVALID_VALUE ? INVALID_CONFIGURATION : (int)rc;
}

static kiln_status run_child(void *user, kiln__cpu_launch_desc *child,
                             kiln__cpu_fault_info *fault)
{
  const kiln__cpu_launch_services *const s = user;

  child->number = kiln__cpu_next_id();
  kiln__cpu_launch_limits(child, s->context);
  return kiln__cpu_launch_run(child, fault);
}

/* ---- Questions of the device runtime ------------------------------------- */

static int answer_with(kiln__cpu_answer *out, const void *value, size_t size)
{
  memcpy(out->bytes, value, size);
  out->size = size;
  return 0;
}

static int answer_int(kiln__cpu_answer *out, int value)
{
  return answer_with(out, &value, sizeof value);
}

/* The errors that device functions return and the driver does not have. */
static const struct {
  int code;
  const char *name, *text;
} runtime_errors[] = {
    {INVALID_CONFIGURATION, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {65, "cudaErrorLaunchMaxDepthExceeded",
     "launch would exceed maximum depth of nested launches"},
    {68, "cudaErrorSyncDepthExceeded",
     "cudaDeviceSynchronize failed because caller's grid depth exceeds "
     "cudaLimitDevRuntimeSyncDepth"},
    {69, "cudaErrorLaunchPendingCountExceeded",
     "launch failed because launch would exceed "
     "cudaLimitDevRuntimePendingLaunchCount"},
    {INVALID_FUNCTION, "cudaErrorInvalidDeviceFunction",
     "invalid device function"}};

/* Makes the runtime's name of an error from the driver's name:
 * CUDA_ERROR_INVALID_VALUE becomes cudaErrorInvalidValue. */
static void runtime_name(char *to, size_t size, const char *name)
{
  size_t n = 4;
  bool upper = true;

  kiln__copy_text(to, size, "cuda");
  for (name += strlen("CUDA_"); *name != '\0' && n + 1 < size; name++) {
    if (*name != '_')
      to[n++] = (char)(upper ? toupper(*name) : tolower(*name));
    upper = *name == '_';
  }
  to[n] = '\0';
}

/* Answers with the name or the text of an error code of the runtime. */
static int answer_error(kiln__cpu_answer *out, int code, bool name)
{
  static const char unknown[] = "unrecognized error code";
  const size_t n = sizeof runtime_errors / sizeof *runtime_errors;
  const char *found = NULL;
  char text[400];

  for (size_t i = 0; i < n && found == NULL; i++) {
    if (runtime_errors[i].code == code)
      found = name ? runtime_errors[i].name : runtime_errors[i].text;
  }
  if (found != NULL)
    kiln__copy_text(text, sizeof text, found);
  else if (name && kiln__cpu_getErrorName((CUresult)code, &found) == 0)
    runtime_name(text, sizeof text, found);
  else if (!name && kiln__cpu_getErrorString((CUresult)code, &found) == 0)
    kiln__copy_text(text, sizeof text, found);
  else
    kiln__copy_text(text, sizeof text, unknown);
  return answer_with(out, text, strlen(text) + 1);
}

static int answer_limit(const kiln__cpu_launch_services *s,
                        kiln__cpu_answer *out, uint64_t limit)
{
  size_t value;

  if (limit >= sizeof s->context->limit / sizeof *s->context->limit)
    return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&s->context->lock);
  value = s->context->limit[limit];
  pthread_mutex_unlock(&s->context->lock);
  return answer_with(out, &value, sizeof value);
}

/* The first members of cudaFuncAttributes, which all versions share. */
typedef struct function_attributes {
  size_t shared, constant, local;
  int max_threads, registers, ptx, binary, cache_ca, max_dynamic, carveout;
} function_attributes;

static int answer_function(kiln__cpu_answer *out, CUfunction f)
{
  static const CUfunction_attribute wanted[] = {
      CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
      CU_FUNC_ATTRIBUTE_NUM_REGS,
      CU_FUNC_ATTRIBUTE_PTX_VERSION,
      CU_FUNC_ATTRIBUTE_BINARY_VERSION,
      CU_FUNC_ATTRIBUTE_CACHE_MODE_CA,
      CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
      CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
      CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
      CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES,
      CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES};
  int v[sizeof wanted / sizeof *wanted];
  function_attributes all;

  if (f == NULL)
    return INVALID_FUNCTION;
  for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
    if (kiln__cpu_function_attribute(f, wanted[i], &v[i]) != CUDA_SUCCESS)
      v[i] = 0;
  }
  all = (function_attributes){(size_t)v[7], (size_t)v[8], (size_t)v[9], v[0],
                              v[1],         v[2],         v[3],         v[4],
                              v[5],         v[6]};
  return answer_with(out, &all, sizeof all);
}

static int answer_occupancy(kiln__cpu_answer *out, CUfunction f,
                            const uint64_t args[3])
{
  const kiln__cpu_limits *const l = kiln__cpu_limits_of(machine()->opts.arch);

  if (f == NULL)
    return INVALID_FUNCTION;
  if ((int32_t)args[1] <= 0)
    return CUDA_ERROR_INVALID_VALUE;
  return answer_int(
      out, kiln__cpu_resident_blocks(l, f->code, (uint32_t)args[1], args[2]));
}

static int query(void *user, const kiln__cpu_launch_desc *launch,
                 kiln__cpu_system function, const uint64_t args[3],
                 kiln__cpu_answer *out)
{
  kiln__cpu_launch_services *const s = user;
  int value = 0;
  CUresult rc;

  switch (function) {
  case KILN__SYSTEM_GET_DEVICE:
    return answer_int(out, launch->device);
  case KILN__SYSTEM_DEVICE_COUNT:
    return answer_int(out, machine()->n_devices);
  case KILN__SYSTEM_DEVICE_ATTRIBUTE:
    rc = kiln__cpu_deviceGetAttribute(&value, (CUdevice_attribute)args[0],
                                      (CUdevice)args[1]);
    return rc != CUDA_SUCCESS ? (int)rc : answer_int(out, value);
  case KILN__SYSTEM_DEVICE_LIMIT:
    return answer_limit(s, out, args[0]);
  case KILN__SYSTEM_CACHE_CONFIG:
  case KILN__SYSTEM_BANK_CONFIG:
    return answer_int(out, 0);
  case KILN__SYSTEM_RUNTIME_VERSION:
    return answer_int(out, KILN__DRIVER_VERSION);
  case KILN__SYSTEM_FUNCTION_ATTRIBUTES:
    return answer_function(out, kernel_at(s, args[0]));
  case KILN__SYSTEM_OCCUPANCY:
  case KILN__SYSTEM_OCCUPANCY_FLAGS:
    return answer_occupancy(out, kernel_at(s, args[0]), args);
  case KILN__SYSTEM_ERROR_NAME:
    return answer_error(out, (int)args[0], true);
  case KILN__SYSTEM_ERROR_STRING:
    return answer_error(out, (int)args[0], false);
  default:
    return CUDA_ERROR_NOT_SUPPORTED;
  }
}

/* ---- Begin and end of a launch ------------------------------------------- */

void kiln__cpu_services_begin(kiln__cpu_launch_services *s, CUcontext context)
{
  *s = (kiln__cpu_launch_services){.base = {.user = s,
                                            .program_at = program_at,
                                            .check_child = check_child,
                                            .run_child = run_child,
                                            .query = query},
                                   .context = context};
  pthread_mutex_init(&s->lock, NULL);
}

uint64_t kiln__cpu_services_spent(const kiln__cpu_launch_desc *launch)
{
  kiln__cpu_launch_services *const s = launch->services->user;
  uint64_t ns;

  pthread_mutex_lock(&s->lock);
  ns = s->spent_ns;
  pthread_mutex_unlock(&s->lock);
  return ns;
}

uint64_t kiln__cpu_services_spend(const kiln__cpu_launch_desc *launch,
                                  uint64_t before, uint64_t ns)
{
  kiln__cpu_launch_services *const s = launch->services->user;
  uint64_t inner;

  pthread_mutex_lock(&s->lock);
  inner = s->spent_ns - before;
  s->spent_ns = before + ns;
  pthread_mutex_unlock(&s->lock);
  return inner < ns ? ns - inner : 0;
}

void kiln__cpu_services_end(kiln__cpu_launch_services *s)
{
  for (size_t i = 0; i < s->n_held; i++)
    kiln__cpu_module_drop(s->held[i]);
  kiln__free(&machine()->alloc, s->held);
  pthread_mutex_destroy(&s->lock);
}

/* api_function.c -- implements the functions for attributes and parameters of
 * kernels. */
#include "api_module.h"

/* Estimates the number of registers per thread that ptxas would allocate. The
 * estimate is the largest number of registers that are live at once. Its upper
 * bounds are the maximum number of registers per thread, the size of the
 * register file divided by the maximum number of threads per block, and the
 * bound that the kernel or the program sets. */
int kiln__cpu_function_registers(const kiln__cpu_code *code,
                                 const kiln__cpu_limits *l)
{
  const int warps = ((int)code->max_threads + KILN__WARP - 1) / KILN__WARP;
  const int slots = (warps + l->warp_unit - 1) / l->warp_unit * l->warp_unit;
  const int fitting = l->block_registers / (slots > 0 ? slots : 1) /
                      l->register_unit * l->register_unit / KILN__WARP;
  const int fewest = 8;
  int n = code->registers > (uint32_t)l->thread_registers
              ? l->thread_registers
              : (int)code->registers;

  if (n > fitting)
    n = fitting;
  if (code->most_registers != 0 && n > (int)code->most_registers)
    n = (int)code->most_registers;
  return n < fewest ? fewest : n;
}

void kiln__cpu_function_init(CUfunction f, CUmodule module,
                             const kiln__cpu_code *code)
{
  const kiln__cpu_limits *l = kiln__cpu_limits_of(machine()->opts.arch);

  *f = (struct CUfunc_st){.module = module, .code = code, .carveout = -1};
  f->max_dynamic_shared = (int)code->static_shared < l->block_shared
                              ? l->block_shared - (int)code->static_shared
                              : 0;
  for (int i = 0; i < 3; i++)
    f->cluster[i] = (int)code->cluster[i];
}

int kiln__cpu_function_max_threads(const kiln__cpu_code *code, int arch)
{
  const kiln__cpu_limits *l = kiln__cpu_limits_of(arch);

  return (int)code->max_threads < l->block_threads ? (int)code->max_threads
                                                   : l->block_threads;
}

CUresult kiln__cpu_function_of(CUfunction handle, CUcontext context,
                               CUfunction *out)
{
  if (kiln__cpu_live(handle, KILN__HANDLE_FUNCTION)) {
    *out = handle;
    return CUDA_SUCCESS;
  }
  if (kiln__cpu_live(handle, KILN__HANDLE_KERNEL))
    return kiln__cpu_kernel_function(handle, context, out);
  return CUDA_ERROR_INVALID_HANDLE;
}

static int const_bytes(const kiln__cpu_program *program)
{
  uint64_t sum = 0;

  for (uint32_t i = 0; i < program->n_globals; i++) {
    if (program->globals[i].constant)
      sum += program->globals[i].size;
  }
  return sum > INT32_MAX ? INT32_MAX : (int)sum;
}

CUresult kiln__cpu_function_attribute(CUfunction f,
                                      CUfunction_attribute attribute,
                                      int *value)
{
  const int arch = machine()->opts.arch;
  const kiln__cpu_code *code = f->code;

  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    return CU_STORE(value, kiln__cpu_function_max_threads(code, arch));
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    return CU_STORE(value, (int)code->static_shared);
  case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    return CU_STORE(value, const_bytes(f->module->program));
  case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    return CU_STORE(value, (int)code->reach_local);
  case CU_FUNC_ATTRIBUTE_NUM_REGS:
    return CU_STORE(
        value, kiln__cpu_function_registers(code, kiln__cpu_limits_of(arch)));
  case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    return CU_STORE(value, (int)f->module->program->target);
  case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
    return CU_STORE(value, arch);
  case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    return CU_STORE(value, 0);
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    return CU_STORE(value, f->max_dynamic_shared);
  case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    return CU_STORE(value, f->carveout);
  case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
    return CU_STORE(value, code->explicit_cluster && code->cluster[0] == 0);
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    return CU_STORE(
        value,
        f->cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH]);
  case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    return CU_STORE(value, f->non_portable_cluster);
  case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    return CU_STORE(value, f->cluster_policy);
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

static CUresult set_within(atomic_int *where, int value, int low, int high)
{
  CU_TRY(valid(value >= low && value <= high));
  *where = value;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_function_set(CUfunction f, CUfunction_attribute attribute,
                                int value)
{
  const kiln__cpu_limits *l = kiln__cpu_limits_of(machine()->opts.arch);

  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    return set_within(&f->max_dynamic_shared, value, 0,
                      l->block_shared_optin - (int)f->code->static_shared);
  case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    return set_within(&f->carveout, value, -1, 100);
  case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    return set_within(&f->non_portable_cluster, value, 0, 1);
  case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    return set_within(&f->cluster_policy, value, 0, 2);
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    if (f->code->cluster[0] != 0)
      return CUDA_ERROR_NOT_PERMITTED;
    return set_within(
        &f->cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH],
        value, 0, 16);
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

/* Finds the function in the current context for the handle of a function or
 * kernel. */
static CUresult enter(CUfunction handle, CUfunction *out)
{
  CUcontext context;

  CU_TRY(kiln__cpu_current(&context));
  return kiln__cpu_function_of(handle, context, out);
}

CUresult kiln__cpu_funcGetAttribute(int *value, CUfunction_attribute attribute,
                                    CUfunction function)
{
  CUfunction f;

  CU_TRY(enter(function, &f));
  return value == NULL ? CUDA_ERROR_INVALID_VALUE
                       : kiln__cpu_function_attribute(f, attribute, value);
}

CUresult kiln__cpu_funcSetAttribute(CUfunction function,
                                    CUfunction_attribute attribute, int value)
{
  CUfunction f;

  CU_TRY(enter(function, &f));
  return kiln__cpu_function_set(f, attribute, value);
}

CUresult kiln__cpu_function_param(const kiln__cpu_code *code, size_t index,
                                  size_t *offset, size_t *size)
{
  CU_TRY(valid(offset != NULL && index < code->n_params));
  *offset = code->params[index].offset;
  if (size != NULL)
    *size = code->params[index].size;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_funcGetParamInfo(CUfunction function, size_t index,
                                    size_t *offset, size_t *size)
{
  CUfunction f;

  CU_TRY(enter(function, &f));
  return kiln__cpu_function_param(f->code, index, offset, size);
}

CUresult kiln__cpu_funcGetName(const char **name, CUfunction function)
{
  CUfunction f;

  CU_TRY(enter(function, &f));
  return CU_STORE(name, f->code->name);
}

CUresult kiln__cpu_funcGetModule(CUmodule *module, CUfunction function)
{
  CUfunction f;

  CU_TRY(enter(function, &f));
  return CU_STORE(module, f->module);
}

/* The cache preference has no effect on the CPU device. */
CUresult kiln__cpu_funcSetCacheConfig(CUfunction function, CUfunc_cache config)
{
  CUfunction f;

  CU_TRY(enter(function, &f));
  return valid(config >= 0 && config <= 3);
}

CUresult kiln__cpu_funcSetSharedMemConfig(CUfunction function,
                                          CUsharedconfig config)
{
  CUfunction f;

  CU_TRY(enter(function, &f));
  return valid(config >= 0 && config <= 2);
}

CUresult kiln__cpu_funcIsLoaded(int *state, CUfunction function)
{
  CUfunction f;
  const int loaded = 1;

  CU_TRY(enter(function, &f));
  return CU_STORE(state, loaded);
}

CUresult kiln__cpu_funcLoad(CUfunction function)
{
  CUfunction f;

  return enter(function, &f);
}

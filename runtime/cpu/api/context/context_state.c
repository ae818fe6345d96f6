/* context_state.c -- implements the functions that get or set the current
 * context and the attributes of contexts. */
#include "api_context.h"

/* ---- The calling thread's context stack ---------------------------------- */

CUresult kiln__cpu_ctxPushCurrent(CUcontext context)
{
  CU_TRY(kiln__cpu_ready_with(context, KILN__HANDLE_CONTEXT));
  return kiln__cpu_push(context);
}

CUresult kiln__cpu_ctxPopCurrent(CUcontext *context)
{
  kiln__cpu_thread *t = kiln__cpu_this_thread();

  CU_TRY(kiln__cpu_ready());
  if (t == NULL || t->n == 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  if (context != NULL)
    *context = t->stack[t->n - 1].context;
  kiln__cpu_pop();
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_ctxGetCurrent(CUcontext *context)
{
  const kiln__cpu_thread *t = kiln__cpu_this_thread();

  CU_TRY(kiln__cpu_ready());
  return CU_STORE(context,
                  t != NULL && t->n > 0 ? t->stack[t->n - 1].context : NULL);
}

CUresult kiln__cpu_ctxSetCurrent(CUcontext context)
{
  kiln__cpu_thread *t = kiln__cpu_this_thread();

  CU_TRY(context == NULL ? kiln__cpu_ready()
                         : kiln__cpu_ready_with(context, KILN__HANDLE_CONTEXT));
  CU_TRY(allocated(t));
  if (context == NULL) {
    if (t->n > 0)
      kiln__cpu_pop();
    return CUDA_SUCCESS;
  }
  if (t->n == 0)
    return kiln__cpu_push(context);
  t->stack[t->n - 1].context = context;
  t->stack[t->n - 1].object = context->object;
  return CUDA_SUCCESS;
}

/* ---- Queries ------------------------------------------------------------- */

CUresult kiln__cpu_ctxGetDeviceV2(CUdevice *device, CUcontext context)
{
  CUcontext c;

  CU_TRY(kiln__cpu_context_of(context, &c));
  return CU_STORE(device, c->device);
}

CUresult kiln__cpu_ctxGetDevice(CUdevice *device)
{
  return kiln__cpu_ctxGetDeviceV2(device, NULL);
}

CUresult kiln__cpu_ctxGetId(CUcontext context, unsigned long long *id)
{
  CUcontext c;

  CU_TRY(kiln__cpu_context_of(context, &c));
  return CU_STORE(id, c->id);
}

CUresult kiln__cpu_ctxGetApiVersion(CUcontext context, unsigned int *version)
{
  CUcontext c;

  CU_TRY(kiln__cpu_context_of(context, &c));
  return CU_STORE(version, 3020);
}

CUresult kiln__cpu_ctxGetFlags(unsigned int *flags)
{
  CUcontext c;

  CU_TRY(kiln__cpu_current(&c));
  return CU_STORE(flags, c->flags);
}

CUresult kiln__cpu_ctxSetFlags(unsigned int flags)
{
  CUcontext c;

  CU_TRY(kiln__cpu_current(&c));
  CU_TRY(valid(kiln__cpu_context_flags_ok(flags)));
  c->flags = flags;
  return CUDA_SUCCESS;
}

/* ---- Limits -------------------------------------------------------------- */

static bool known_limit(CUlimit limit)
{
  return limit >= CU_LIMIT_STACK_SIZE &&
         limit <= CU_LIMIT_PERSISTING_L2_CACHE_SIZE;
}

/* Returns CUDA_SUCCESS, or CUDA_ERROR_UNSUPPORTED_LIMIT if the architecture
 * does not have this CUlimit. */
static CUresult supported(CUlimit limit)
{
  const int arch = machine()->opts.arch;

  CU_TRY(valid(limit >= CU_LIMIT_STACK_SIZE &&
               limit <= CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED));
  if (!known_limit(limit) ||
      (limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH && arch >= 90) ||
      (limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE && arch < 80))
    return CUDA_ERROR_UNSUPPORTED_LIMIT;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_ctxGetLimit(size_t *value, CUlimit limit)
{
  CUcontext c;

  CU_TRY(kiln__cpu_current(&c));
  CU_TRY(valid(value != NULL));
  CU_TRY(supported(limit));
  pthread_mutex_lock(&c->lock);
  *value = c->limit[limit];
  pthread_mutex_unlock(&c->lock);
  return CUDA_SUCCESS;
}

/* Rounds and bounds the value of a limit as the driver does. The driver refuses
 * a stack size above the maximum per thread, and reduces a fetch granularity
 * that is too large. */
static CUresult adjusted(CUlimit limit, size_t *value)
{
  switch (limit) {
  case CU_LIMIT_STACK_SIZE:
    CU_TRY(valid(*value <= 512 * 1024));
    *value = (*value + 15) & ~(size_t)15;
    return CUDA_SUCCESS;
  case CU_LIMIT_PRINTF_FIFO_SIZE:
  case CU_LIMIT_MALLOC_HEAP_SIZE:
    return *value > machine()->opts.memory_bytes ? CUDA_ERROR_OUT_OF_MEMORY
                                                 : CUDA_SUCCESS;
  case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
    if (*value > 128)
      *value = 128;
    return CUDA_SUCCESS;
  default:
    return CUDA_SUCCESS;
  }
}

CUresult kiln__cpu_ctxSetLimit(CUlimit limit, size_t value)
{
  CUcontext c;

  CU_TRY(kiln__cpu_current(&c));
  CU_TRY(supported(limit));
  CU_TRY(adjusted(limit, &value));
  pthread_mutex_lock(&c->lock);
  c->limit[limit] = value;
  pthread_mutex_unlock(&c->lock);
  return CUDA_SUCCESS;
}

/* ---- Context settings that have no effect -------------------------------- */

CUresult kiln__cpu_ctxGetCacheConfig(CUfunc_cache *config)
{
  CUcontext c;

  CU_TRY(kiln__cpu_current(&c));
  return CU_STORE(config, c->cache_config);
}

CUresult kiln__cpu_ctxSetCacheConfig(CUfunc_cache config)
{
  CUcontext c;

  CU_TRY(kiln__cpu_current(&c));
  CU_TRY(valid(config >= 0 && config <= 3));
  c->cache_config = config;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_ctxGetSharedMemConfig(CUsharedconfig *config)
{
  CUcontext c;

  CU_TRY(kiln__cpu_current(&c));
  return CU_STORE(config, c->shared_config == 0 ? 1 : c->shared_config);
}

CUresult kiln__cpu_ctxSetSharedMemConfig(CUsharedconfig config)
{
  CUcontext c;

  CU_TRY(kiln__cpu_current(&c));
  CU_TRY(valid(config >= 0 && config <= 2));
  c->shared_config = config;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_ctxResetPersistingL2Cache(void)
{
  return kiln__cpu_check_current();
}

CUresult kiln__cpu_ctxGetExecAffinity(CUexecAffinityParam *affinity,
                                      CUexecAffinityType type)
{
  CU_TRY(kiln__cpu_check_current());
  CU_TRY(valid(affinity != NULL && type == 0));
  affinity->type = type;
  affinity->param.smCount.val = KILN__SM_COUNT;
  return CUDA_SUCCESS;
}

/* ---- Other functions that create and destroy contexts -------------------- */

CUresult kiln__cpu_ctxCreateV3(CUcontext *context, CUexecAffinityParam *params,
                               int n, unsigned int flags, CUdevice device)
{
  CU_TRY(valid(n >= 0 && (params != NULL || n == 0)));
  if (n > 0)
    return CUDA_ERROR_NOT_SUPPORTED;
  return kiln__cpu_ctxCreate(context, flags, device);
}

CUresult kiln__cpu_ctxCreateV4(CUcontext *context, CUctxCreateParams *params,
                               unsigned int flags, CUdevice device)
{
  if (params != NULL && params->cigParams != NULL)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (params == NULL)
    return kiln__cpu_ctxCreate(context, flags, device);
  return kiln__cpu_ctxCreateV3(context, params->execAffinityParams,
                               params->numExecAffinityParams, flags, device);
}

CUresult kiln__cpu_ctxAttach(CUcontext *context, unsigned int flags)
{
  CUcontext c;

  CU_TRY(kiln__cpu_current(&c));
  CU_TRY(valid(context != NULL && flags == 0));
  pthread_mutex_lock(&machine()->lock);
  c->retained++;
  pthread_mutex_unlock(&machine()->lock);
  *context = c;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_ctxDetach(CUcontext context)
{
  CUcontext c;
  bool last;

  CU_TRY(kiln__cpu_context_of(context, &c));
  if (context == NULL)
    return CUDA_ERROR_INVALID_CONTEXT;
  pthread_mutex_lock(&machine()->lock);
  last = c->retained <= 1;
  if (!last)
    c->retained--;
  pthread_mutex_unlock(&machine()->lock);
  return last ? kiln__cpu_ctxDestroy(c) : CUDA_SUCCESS;
}

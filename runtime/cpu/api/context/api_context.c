/* api_context.c -- implements contexts: creation, destruction, primary
 * contexts, and the check of the current context that most driver calls start
 * with.
 *
 * Each thread has a stack of contexts, and the context on top is the current
 * one. A stack entry also stores the context's id. A destroyed context is
 * therefore recognised even if a new context has the same address. */
#include "api_context.h"

#include <string.h>

/* ---- The calling thread's context stack ---------------------------------- */

CUresult kiln__cpu_push(CUcontext context)
{
  kiln__cpu_machine *m = machine();
  kiln__cpu_thread *t = kiln__cpu_this_thread();

  CU_TRY(allocated(t));
  if (!kiln__grow(&m->alloc, &t->stack, t->n, &t->capacity, sizeof *t->stack))
    return CUDA_ERROR_OUT_OF_MEMORY;
  t->stack[t->n].context = context;
  t->stack[t->n++].object = context->object;
  return CUDA_SUCCESS;
}

void kiln__cpu_pop(void)
{
  kiln__cpu_this_thread()->n--;
}

/* Returns CUDA_SUCCESS if the stack entry's context is still the context that
 * was pushed, else CUDA_ERROR_CONTEXT_IS_DESTROYED. */
static CUresult check(CUcontext context, uint64_t object)
{
  if (!kiln__cpu_live(context, KILN__HANDLE_CONTEXT) ||
      context->object != object)
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return CUDA_SUCCESS;
}

/* Stores the context on top of the calling thread's stack, even if that context
 * was destroyed or has failed. */
static CUresult top(CUcontext *out)
{
  const kiln__cpu_thread *t = kiln__cpu_this_thread();

  *out = NULL;
  CU_TRY(kiln__cpu_ready());
  CU_TRY(allocated(t));
  if (t->n == 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  *out = t->stack[t->n - 1].context;
  return check(*out, t->stack[t->n - 1].object);
}

CUcontext kiln__cpu_current_or_null(void)
{
  CUcontext context;

  return top(&context) == CUDA_SUCCESS ? context : NULL;
}

CUresult kiln__cpu_current(CUcontext *out)
{
  CU_TRY(top(out));
  if (kiln__cpu_this_thread()->in_callback)
    return CUDA_ERROR_NOT_PERMITTED;
  return atomic_load(&(*out)->sticky);
}

CUresult kiln__cpu_check_current(void)
{
  CUcontext context;

  return kiln__cpu_current(&context);
}

CUresult kiln__cpu_context_of(CUcontext given, CUcontext *out)
{
  if (given == NULL)
    return top(out);
  *out = given;
  return kiln__cpu_ready_with(given, KILN__HANDLE_CONTEXT);
}

void kiln__cpu_stick(CUcontext context, CUresult rc)
{
  CUresult none = CUDA_SUCCESS;

  atomic_compare_exchange_strong(&context->sticky, &none, rc);
}

/* ---- Creation and destruction -------------------------------------------- */

bool kiln__cpu_device_exists(int device)
{
  return device >= 0 && device < machine()->n_devices;
}

CUresult kiln__cpu_known_device(int device)
{
  return kiln__cpu_device_exists(device) ? CUDA_SUCCESS
                                         : CUDA_ERROR_INVALID_DEVICE;
}

bool kiln__cpu_context_flags_ok(unsigned flags)
{
  const unsigned schedule = flags & 7;

  return (flags & ~0xffu) == 0 && (schedule & (schedule - 1)) == 0;
}

/* Sets the default limits of driver 13.0 on a current GPU. */
static void default_limits(CUcontext c)
{
  memset(c->limit, 0, sizeof c->limit);
  c->limit[CU_LIMIT_STACK_SIZE] = 1024;
  c->limit[CU_LIMIT_PRINTF_FIFO_SIZE] = (size_t)1 << 20;
  c->limit[CU_LIMIT_MALLOC_HEAP_SIZE] = (size_t)8 << 20;
  c->limit[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
  c->limit[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  c->limit[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
}

/* Allocates the limits, output buffer and streams of a context that has
 * none. */
CUresult kiln__cpu_context_begin(CUcontext context)
{
  kiln__cpu_machine *m = machine();
  CUresult rc;

  /* A context that begins again after a reset gets another id, since libraries
   * recognise the modules of a context by its id. */
  context->id = kiln__cpu_next_id();
  default_limits(context);
  context->peers = 0;
  context->cache_config = context->shared_config = 0;
  atomic_store(&context->dying, false);
  if (kiln__cpu_out_create(&context->out, &m->alloc,
                           context->limit[CU_LIMIT_PRINTF_FIFO_SIZE],
                           kiln__cpu_print, m) != KILN_OK)
    return CUDA_ERROR_OUT_OF_MEMORY;
  rc = kiln__cpu_stream_make(&context->legacy, context, 0, 0);
  if (rc != CUDA_SUCCESS) {
    kiln__cpu_out_free(context->out);
    context->out = NULL;
    return rc;
  }
  pthread_mutex_lock(&m->queue_lock);
  /* kiln__cpu_stream_make() put the legacy stream first in the list; unlink
   * it. */
  context->streams = context->legacy->next;
  context->legacy->next = NULL;
  context->legacy->legacy = true;
  context->legacy->blocking = false;
  pthread_mutex_unlock(&m->queue_lock);
  atomic_store(&context->sticky, CUDA_SUCCESS);
  return CUDA_SUCCESS;
}

void kiln__cpu_context_end(CUcontext context)
{
  atomic_store(&context->dying, true);
  kiln__cpu_end_captures(context);
  kiln__cpu_wait_context(context);
  kiln__cpu_end_streams(context);
  kiln__cpu_end_events(context);
  kiln__cpu_context_end_modules(context);
  kiln__cpu_end_memory(context);
  kiln__cpu_out_free(context->out);
  context->out = NULL;
}

static CUresult begin_live(CUcontext c)
{
  CUresult rc;

  if (!kiln__cpu_live_add(c, KILN__HANDLE_CONTEXT))
    return CUDA_ERROR_OUT_OF_MEMORY;
  rc = kiln__cpu_context_begin(c);
  if (rc != CUDA_SUCCESS)
    kiln__cpu_live_remove(c);
  return rc;
}

CUresult kiln__cpu_context_make(CUcontext *out, int device, unsigned flags,
                                bool primary)
{
  kiln__cpu_machine *m = machine();
  CUcontext c = kiln__calloc(&m->alloc, 1, sizeof *c);
  CUresult rc;

  *out = NULL;
  CU_TRY(allocated(c));
  if (pthread_mutex_init(&c->lock, NULL) != 0) {
    kiln__free(&m->alloc, c);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  c->device = device;
  c->flags = flags;
  c->is_primary = primary;
  c->retained = 1;
  c->object = kiln__cpu_next_id();
  rc = begin_live(c);
  if (rc != CUDA_SUCCESS) {
    kiln__cpu_context_free(c);
    return rc;
  }
  *out = c;
  return CUDA_SUCCESS;
}

void kiln__cpu_context_free(CUcontext context)
{
  pthread_mutex_destroy(&context->lock);
  kiln__free(&machine()->alloc, context);
}

static void count_contexts(int change)
{
  kiln__cpu_machine *m = machine();

  pthread_mutex_lock(&m->lock);
  m->n_contexts += (unsigned)change;
  pthread_mutex_unlock(&m->lock);
}

CUresult kiln__cpu_ctxCreate(CUcontext *context, unsigned int flags,
                             CUdevice device)
{
  CUresult rc;
  CUcontext made;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(context != NULL && kiln__cpu_context_flags_ok(flags)));
  CU_TRY(kiln__cpu_known_device(device));
  /* From here on a context exists, so the settings can no longer change. */
  count_contexts(1);
  rc = kiln__cpu_context_make(&made, device, flags, false);
  if (rc == CUDA_SUCCESS) {
    rc = kiln__cpu_push(made);
    if (rc != CUDA_SUCCESS) {
      kiln__cpu_live_remove(made);
      kiln__cpu_context_end(made);
      kiln__cpu_context_free(made);
    }
  }
  if (rc == CUDA_SUCCESS)
    *context = made;
  else
    count_contexts(-1);
  return rc;
}

CUresult kiln__cpu_ctxDestroy(CUcontext context)
{
  kiln__cpu_thread *t = kiln__cpu_this_thread();

  CU_TRY(kiln__cpu_ready());
  if (!kiln__cpu_live(context, KILN__HANDLE_CONTEXT) || context->is_primary)
    return CUDA_ERROR_INVALID_CONTEXT;
  if (t == NULL || t->in_callback)
    return CUDA_ERROR_NOT_PERMITTED;
  kiln__cpu_live_remove(context);
  if (t->n > 0 && t->stack[t->n - 1].context == context)
    kiln__cpu_pop();
  kiln__cpu_context_end(context);
  kiln__cpu_context_free(context);
  count_contexts(-1);
  return CUDA_SUCCESS;
}

/* ---- Primary contexts ---------------------------------------------------- */

CUresult kiln__cpu_devicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
  kiln__cpu_machine *m = machine();
  CUresult rc = CUDA_SUCCESS;
  CUcontext c;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(context != NULL));
  CU_TRY(kiln__cpu_known_device(device));
  pthread_mutex_lock(&m->lock);
  c = m->primary[device];
  if (c == NULL) {
    rc = kiln__cpu_context_make(&c, device, m->primary_flags[device], true);
    if (rc == CUDA_SUCCESS) {
      m->primary[device] = c;
      m->n_contexts++;
    }
  } else if (c->retained > 0) {
    c->retained++;
  } else {
    rc = begin_live(c);
    if (rc == CUDA_SUCCESS) {
      c->retained = 1;
      c->flags = m->primary_flags[device];
      m->n_contexts++;
    }
  }
  pthread_mutex_unlock(&m->lock);
  if (rc == CUDA_SUCCESS)
    *context = c;
  return rc;
}

CUresult kiln__cpu_devicePrimaryCtxRelease(CUdevice device)
{
  kiln__cpu_machine *m = machine();
  CUresult rc = CUDA_SUCCESS;
  CUcontext c, ended = NULL;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(kiln__cpu_known_device(device));
  pthread_mutex_lock(&m->lock);
  c = m->primary[device];
  if (c == NULL || c->retained == 0) {
    rc = CUDA_ERROR_INVALID_CONTEXT;
  } else if (--c->retained == 0) {
    kiln__cpu_live_remove(c);
    m->n_contexts--;
    ended = c;
  }
  pthread_mutex_unlock(&m->lock);
  if (ended != NULL)
    kiln__cpu_context_end(ended);
  return rc;
}

CUresult kiln__cpu_devicePrimaryCtxReset(CUdevice device)
{
  kiln__cpu_machine *m = machine();
  CUcontext c;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(kiln__cpu_known_device(device));
  pthread_mutex_lock(&m->lock);
  c = m->primary[device];
  if (c != NULL && c->retained == 0)
    c = NULL;
  pthread_mutex_unlock(&m->lock);
  if (c == NULL)
    return CUDA_SUCCESS;
  kiln__cpu_context_end(c);
  return kiln__cpu_context_begin(c);
}

CUresult kiln__cpu_devicePrimaryCtxGetState(CUdevice device,
                                            unsigned int *flags, int *active)
{
  kiln__cpu_machine *m = machine();

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(flags != NULL && active != NULL));
  CU_TRY(kiln__cpu_known_device(device));
  pthread_mutex_lock(&m->lock);
  *flags = m->primary_flags[device];
  *active = m->primary[device] != NULL && m->primary[device]->retained > 0;
  pthread_mutex_unlock(&m->lock);
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_devicePrimaryCtxSetFlags(CUdevice device, unsigned int flags)
{
  kiln__cpu_machine *m = machine();

  CU_TRY(kiln__cpu_ready());
  CU_TRY(kiln__cpu_known_device(device));
  CU_TRY(valid(kiln__cpu_context_flags_ok(flags)));
  pthread_mutex_lock(&m->lock);
  m->primary_flags[device] = flags;
  if (m->primary[device] != NULL)
    m->primary[device]->flags = flags;
  pthread_mutex_unlock(&m->lock);
  return CUDA_SUCCESS;
}

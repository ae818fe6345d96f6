/* api_stream.c -- implements the stream functions of the API: handles, work,
 * creation and destruction, waiting, and attributes. The work that these
 * functions enqueue is run by queue.c. */
#include "../context/api_context.h"
#include "../graph/graph.h"

/* ---- Handles ------------------------------------------------------------- */

/* Stores the calling thread's own default stream in `context`, and makes the
 * stream at first use. */
static CUresult own_stream(CUcontext context, CUstream *out)
{
  kiln__cpu_machine *m = machine();
  kiln__cpu_thread *t = kiln__cpu_this_thread();
  kiln__cpu_thread_stream *own;
  CUresult rc;

  CU_TRY(allocated(t));
  for (own = t->streams; own != NULL; own = own->next) {
    if (own->context_id == context->id &&
        kiln__cpu_live(own->stream, KILN__HANDLE_STREAM) &&
        own->stream->context == context) {
      *out = own->stream;
      return CUDA_SUCCESS;
    }
  }
  own = kiln__calloc(&m->alloc, 1, sizeof *own);
  CU_TRY(allocated(own));
  rc = kiln__cpu_stream_make(&own->stream, context, 0, 0);
  if (rc == CUDA_SUCCESS &&
      !kiln__cpu_live_add(own->stream, KILN__HANDLE_STREAM)) {
    kiln__cpu_stream_end(own->stream);
    rc = CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (rc != CUDA_SUCCESS) {
    kiln__free(&m->alloc, own);
    return rc;
  }
  own->stream->per_thread = true;
  own->context_id = context->id;
  own->next = t->streams;
  t->streams = own;
  *out = own->stream;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_stream_of(CUcontext context, CUstream handle, CUstream *out)
{
  const kiln__cpu_thread *t = kiln__cpu_this_thread();

  *out = NULL;
  CU_TRY(allocated(t));
  if (handle == NULL)
    handle = t->per_thread > 0 ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  if (handle == CU_STREAM_LEGACY) {
    *out = context->legacy;
    return CUDA_SUCCESS;
  }
  if (handle == CU_STREAM_PER_THREAD)
    return own_stream(context, out);
  CU_TRY(kiln__cpu_known(handle, KILN__HANDLE_STREAM));
  *out = handle;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_current_stream(CUstream handle, CUstream *out)
{
  CUcontext context;

  CU_TRY(kiln__cpu_current(&context));
  return kiln__cpu_stream_of(context, handle, out);
}

/* ---- Work ---------------------------------------------------------------- */

static void drop_work(kiln__cpu_work *work)
{
  if (work != NULL && work->free != NULL)
    work->free(work);
}

CUresult kiln__cpu_enqueue_as(CUcontext context, CUstream handle,
                              kiln__cpu_work *work, unsigned manner)
{
  const bool wait = (manner & KILN__WAIT) != 0;
  CUstream s;
  CUresult rc = kiln__cpu_stream_of(context, handle, &s);
  kiln__cpu_mark *mark = NULL;
  bool taken = false;

  if (rc == CUDA_SUCCESS && work->kind == KILN__WORK_KERNEL &&
      s->context != context)
    rc = CUDA_ERROR_INVALID_HANDLE;
  if (rc == CUDA_SUCCESS)
    rc = kiln__cpu_capture_work(s, work, (manner & KILN__SYNC_CALL) != 0,
                                &taken);
  if (rc == CUDA_SUCCESS && !taken)
    rc = atomic_load(&s->context->sticky);
  if (rc != CUDA_SUCCESS)
    drop_work(work);
  if (rc != CUDA_SUCCESS || taken)
    return rc;
  context = s->context;
  rc = kiln__cpu_queue_add(
      s, work, (manner & KILN__MAY_RUN_HERE) != 0 ? KILN__HERE : KILN__LATER,
      NULL, 0, wait ? &mark : NULL);
  if (rc != CUDA_SUCCESS || !wait)
    return rc;
  kiln__cpu_mark_wait(mark);
  kiln__cpu_mark_drop(mark);
  kiln__cpu_out_flush(context->out);
  return atomic_load(&context->sticky);
}

CUresult kiln__cpu_enqueue(CUcontext context, CUstream stream,
                           kiln__cpu_work *work)
{
  return kiln__cpu_enqueue_as(context, stream, work, 0);
}

CUresult kiln__cpu_enqueue_and_wait(CUcontext context, CUstream stream,
                                    kiln__cpu_work *work)
{
  return kiln__cpu_enqueue_as(
      context, stream, work, KILN__MAY_RUN_HERE | KILN__WAIT | KILN__SYNC_CALL);
}

CUresult kiln__cpu_wait_context(CUcontext context)
{
  size_t n;
  kiln__cpu_mark **marks = kiln__cpu_marks_of_context(context, &n);

  CU_TRY(allocated(marks));
  kiln__cpu_marks_wait(marks, n);
  if (context->out != NULL)
    kiln__cpu_out_flush(context->out);
  return atomic_load(&context->sticky);
}

/* ---- Creation and destruction -------------------------------------------- */

CUresult kiln__cpu_streamCreateWithPriority(CUstream *stream,
                                            unsigned int flags, int priority)
{
  CUcontext context;
  CUstream s;

  CU_TRY(kiln__cpu_current(&context));
  CU_TRY(valid(stream != NULL &&
               (flags & ~(unsigned)CU_STREAM_NON_BLOCKING) == 0));
  if (priority > 0)
    priority = 0;
  if (priority < KILN__GREATEST_PRIORITY)
    priority = KILN__GREATEST_PRIORITY;
  CU_TRY(kiln__cpu_stream_make(&s, context, flags, priority));
  if (!kiln__cpu_live_add(s, KILN__HANDLE_STREAM)) {
    kiln__cpu_stream_end(s);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *stream = s;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_streamDestroy(CUstream stream)
{
  CU_TRY(kiln__cpu_check_current());
  if (stream == NULL || stream == CU_STREAM_LEGACY ||
      stream == CU_STREAM_PER_THREAD ||
      !kiln__cpu_live(stream, KILN__HANDLE_STREAM) || stream->per_thread)
    return CUDA_ERROR_INVALID_HANDLE;
  kiln__cpu_capture_forget(stream);
  kiln__cpu_live_remove(stream);
  kiln__cpu_stream_end(stream);
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_streamSynchronize(CUstream stream)
{
  CUstream s;
  kiln__cpu_mark **marks;
  size_t n;

  CU_TRY(kiln__cpu_current_stream(stream, &s));
  CU_TRY(kiln__cpu_capture_sync(s));
  marks = kiln__cpu_marks_of_stream(s, &n);
  CU_TRY(allocated(marks));
  kiln__cpu_marks_wait(marks, n);
  kiln__cpu_out_flush(s->context->out);
  kiln__cpu_pools_settle(s->context);
  return atomic_load(&s->context->sticky);
}

CUresult kiln__cpu_streamQuery(CUstream stream)
{
  CUstream s;
  CUresult rc;
  kiln__cpu_mark **marks;
  bool done = true;
  size_t n;

  CU_TRY(kiln__cpu_current_stream(stream, &s));
  CU_TRY(kiln__cpu_capture_sync(s));
  marks = kiln__cpu_marks_of_stream(s, &n);
  CU_TRY(allocated(marks));
  for (size_t i = 0; i < n; i++) {
    done = done && kiln__cpu_mark_done(marks[i]);
    kiln__cpu_mark_drop(marks[i]);
  }
  kiln__free(&machine()->alloc, marks);
  rc = atomic_load(&s->context->sticky);
  if (rc == CUDA_SUCCESS && !done)
    return CUDA_ERROR_NOT_READY;
  return rc;
}

CUresult kiln__cpu_ctxSynchronize(void)
{
  CUcontext context;
  CUresult rc;

  CU_TRY(kiln__cpu_current(&context));
  CU_TRY(kiln__cpu_capture_sync_context(context));
  rc = kiln__cpu_wait_context(context);
  kiln__cpu_pools_settle(context);
  return rc;
}

CUresult kiln__cpu_ctxSynchronizeV2(CUcontext context)
{
  CUcontext c;
  CUresult rc;

  if (context == NULL)
    return kiln__cpu_ctxSynchronize();
  CU_TRY(kiln__cpu_context_of(context, &c));
  rc = kiln__cpu_check_current();
  if (rc == CUDA_ERROR_NOT_PERMITTED)
    return rc;
  CU_TRY(kiln__cpu_capture_sync_context(c));
  return kiln__cpu_wait_context(c);
}

/* ---- Queries ------------------------------------------------------------- */

CUresult kiln__cpu_streamGetCtx(CUstream stream, CUcontext *context)
{
  CUstream s;

  CU_TRY(kiln__cpu_current_stream(stream, &s));
  return CU_STORE(context, s->context);
}

CUresult kiln__cpu_streamGetCtxV2(CUstream stream, CUcontext *context,
                                  CUgreenCtx *green)
{
  CU_TRY(valid(context != NULL || green != NULL));
  if (context != NULL) {
    CU_TRY(kiln__cpu_streamGetCtx(stream, context));
  }
  if (green != NULL)
    *green = NULL;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_streamGetDevice(CUstream stream, CUdevice *device)
{
  CUcontext context;
  CUresult rc;

  CU_TRY(valid(device != NULL));
  rc = kiln__cpu_streamGetCtx(stream, &context);
  if (rc == CUDA_SUCCESS)
    *device = context->device;
  return rc;
}

CUresult kiln__cpu_streamGetId(CUstream stream, unsigned long long *id)
{
  CUstream s;

  CU_TRY(kiln__cpu_current_stream(stream, &s));
  return CU_STORE(id, s->id);
}

CUresult kiln__cpu_streamGetPriority(CUstream stream, int *priority)
{
  CUstream s;

  CU_TRY(kiln__cpu_current_stream(stream, &s));
  return CU_STORE(priority, s->priority);
}

CUresult kiln__cpu_streamGetFlags(CUstream stream, unsigned int *flags)
{
  CUstream s;

  CU_TRY(kiln__cpu_current_stream(stream, &s));
  return CU_STORE(flags, s->flags);
}

CUresult kiln__cpu_ctxGetStreamPriorityRange(int *least, int *greatest)
{
  CU_TRY(kiln__cpu_check_current());
  if (least != NULL)
    *least = 0;
  if (greatest != NULL)
    *greatest = KILN__GREATEST_PRIORITY;
  return CUDA_SUCCESS;
}

/* Returns the stream's member that stores an attribute. The synchronisation
 * policy and the priority are stored for the getter and have no other effect.
 * Other attributes are accepted and ignored; for these it stores NULL. */
static CUresult attribute_of(CUstream s, CUstreamAttrID attribute, int **member)
{
  *member = NULL;
  switch (attribute) {
  case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
  case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
  case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    return CUDA_SUCCESS;
  case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    return CU_STORE(member, &s->policy);
  case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    return CU_STORE(member, &s->priority);
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

/* The values of both attributes are the first int of the union. */
CUresult kiln__cpu_streamSetAttribute(CUstream stream, CUstreamAttrID attribute,
                                      const CUstreamAttrValue *value)
{
  CUstream s;
  int *member;

  CU_TRY(kiln__cpu_current_stream(stream, &s));
  CU_TRY(valid(value != NULL));
  CU_TRY(attribute_of(s, attribute, &member));
  CU_TRY(valid(member != &s->policy ||
               (value->priority >= CU_SYNC_POLICY_AUTO &&
                value->priority <= CU_SYNC_POLICY_BLOCKING_SYNC)));
  if (member != NULL)
    *member = value->priority;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_streamGetAttribute(CUstream stream, CUstreamAttrID attribute,
                                      CUstreamAttrValue *value)
{
  CUstream s;
  int *member;

  CU_TRY(kiln__cpu_current_stream(stream, &s));
  CU_TRY(valid(value != NULL));
  *value = (CUstreamAttrValue){{0}};
  CU_TRY(attribute_of(s, attribute, &member));
  if (member != NULL)
    value->priority = *member;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_streamCopyAttributes(CUstream to, CUstream from)
{
  CUstream t, f;

  CU_TRY(kiln__cpu_current_stream(to, &t));
  CU_TRY(kiln__cpu_current_stream(from, &f));
  t->policy = f->policy;
  return CUDA_SUCCESS;
}

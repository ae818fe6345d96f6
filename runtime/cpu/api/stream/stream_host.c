/* stream_host.c -- implements host functions that streams run, and the memory
 * operations of streams. A memory operation writes a value to memory, or waits
 * until the value in memory meets a condition. */
#include "../context/api_context.h"
#include "../memory/api_memory.h"

#include <string.h>

static void free_work(kiln__cpu_work *work)
{
  kiln__free(&machine()->alloc, work);
}

/* ---- Host functions ------------------------------------------------------ */

typedef struct host_work {
  kiln__cpu_work base;
  CUDA_HOST_NODE_PARAMS params;
} host_work;

/* Marks this thread as one that runs a host function. CUDA does not allow host
 * functions to call the driver. Until the host function returns, driver calls
 * of this thread return CUDA_ERROR_NOT_PERMITTED. Otherwise they could wait for
 * the stream that runs the host function. */
static bool enter_callback(void)
{
  kiln__cpu_thread *t = kiln__cpu_this_thread();

  if (t != NULL)
    t->in_callback = true;
  return t != NULL;
}

static void leave_callback(void)
{
  kiln__cpu_thread *t = kiln__cpu_this_thread();

  if (t != NULL)
    t->in_callback = false;
}

static CUresult run_host(kiln__cpu_work *work, CUstream stream)
{
  const host_work *h = (const host_work *)(void *)work;

  (void)stream;
  enter_callback();
  h->params.fn(h->params.userData);
  leave_callback();
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_host_work(CUhostFn fn, void *user, kiln__cpu_work **out)
{
  host_work *h;

  *out = NULL;
  CU_TRY(valid(fn != NULL));
  h = kiln__calloc(&machine()->alloc, 1, sizeof *h);
  CU_TRY(allocated(h));
  h->base.run = run_host;
  h->base.free = free_work;
  h->base.kind = KILN__WORK_HOST;
  h->params.fn = fn;
  h->params.userData = user;
  *out = &h->base;
  return CUDA_SUCCESS;
}

CUDA_HOST_NODE_PARAMS kiln__cpu_host_params(const kiln__cpu_work *work)
{
  return ((const host_work *)(const void *)work)->params;
}

CUresult kiln__cpu_launchHostFunc(CUstream stream, CUhostFn fn, void *user)
{
  CUcontext context;
  kiln__cpu_work *work;

  CU_TRY(kiln__cpu_current(&context));
  CU_TRY(kiln__cpu_host_work(fn, user, &work));
  return kiln__cpu_enqueue(context, stream, work);
}

/* ---- Stream callbacks, which run even after a failure -------------------- */

typedef struct callback_work {
  kiln__cpu_work base;
  CUstreamCallback fn;
  CUstream handle;
  void *user;
} callback_work;

static CUresult run_callback(kiln__cpu_work *work, CUstream stream)
{
  const callback_work *c = (const callback_work *)(void *)work;

  enter_callback();
  c->fn(c->handle, atomic_load(&stream->context->sticky), c->user);
  leave_callback();
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_streamAddCallback(CUstream stream, CUstreamCallback callback,
                                     void *user, unsigned int flags)
{
  CUcontext context;
  callback_work *c;

  CU_TRY(kiln__cpu_current(&context));
  CU_TRY(valid(callback != NULL && flags == 0));
  c = kiln__calloc(&machine()->alloc, 1, sizeof *c);
  CU_TRY(allocated(c));
  c->base.run = run_callback;
  c->base.free = free_work;
  c->base.kind = KILN__WORK_HOST;
  c->base.always = true;
  c->fn = callback;
  c->handle = stream;
  c->user = user;
  return kiln__cpu_enqueue(context, stream, &c->base);
}

/* ---- Memory operations --------------------------------------------------- */

typedef struct ops_work {
  kiln__cpu_work base;
  unsigned n;
  CUstreamBatchMemOpParams ops[];
} ops_work;

static bool is_wait(const CUstreamBatchMemOpParams *op)
{
  return op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
         op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

static bool is_write(const CUstreamBatchMemOpParams *op)
{
  return op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 ||
         op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

static size_t width_of(const CUstreamBatchMemOpParams *op)
{
  return op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
                 op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32
             ? 4
             : 8;
}

static bool met(uint64_t now, const CUstreamBatchMemOpParams *op)
{
  const bool wide = width_of(op) == 8;
  const uint64_t value = wide ? op->waitValue.value64 : op->waitValue.value;

  switch (op->waitValue.flags & 3) {
  /* This comparison is cyclic, since the value in memory may wrap around. */
  case CU_STREAM_WAIT_VALUE_GEQ:
    return wide ? (int64_t)(now - value) >= 0
                : (int32_t)((uint32_t)now - (uint32_t)value) >= 0;
  case CU_STREAM_WAIT_VALUE_EQ:
    return now == value;
  case CU_STREAM_WAIT_VALUE_AND:
    return (now & value) != 0;
  default:
    return (~(now | value) & (wide ? UINT64_MAX : UINT32_MAX)) != 0;
  }
}

/* Loads the value that a memory operation waits for. check_op() has tested the
 * alignment of its address, and the host memory of a device range is aligned to
 * at least 8 bytes. */
static uint64_t load(const uint8_t *p, size_t width)
{
  return width == 4 ? __atomic_load_n((const uint32_t *)(const void *)p,
                                      __ATOMIC_ACQUIRE)
                    : __atomic_load_n((const uint64_t *)(const void *)p,
                                      __ATOMIC_ACQUIRE);
}

/* Polls a value in memory, with pauses from 1 to 200 microseconds, since
 * kernels and the host write the value without notifying this thread. Stops
 * when the context fails or is destroyed. */
static CUresult wait_value(const CUstreamBatchMemOpParams *op,
                           CUcontext context)
{
  const uint64_t longest = 200 * 1000;
  uint64_t nap = 1000;

  for (;;) {
    const size_t width = width_of(op);
    uint8_t *p;
    bool done = false;

    kiln__cpu_memory_enter(machine()->memory);
    p = kiln__cpu_device_bytes(op->waitValue.address, width);
    if (p != NULL)
      done = met(load(p, width), op);
    kiln__cpu_memory_leave(machine()->memory);
    if (p == NULL)
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (done || atomic_load(&context->dying) ||
        atomic_load(&context->sticky) != CUDA_SUCCESS)
      return CUDA_SUCCESS;
    kiln__sleep_ns(nap);
    if (nap < longest)
      nap *= 2;
  }
}

static CUresult write_value(const CUstreamBatchMemOpParams *op)
{
  const size_t width = width_of(op);
  uint8_t *p;

  kiln__cpu_memory_enter(machine()->memory);
  p = kiln__cpu_device_bytes(op->writeValue.address, width);
  if (p != NULL && width == 4)
    __atomic_store_n((uint32_t *)(void *)p, op->writeValue.value,
                     __ATOMIC_RELEASE);
  else if (p != NULL)
    __atomic_store_n((uint64_t *)(void *)p, op->writeValue.value64,
                     __ATOMIC_RELEASE);
  if (p != NULL)
    kiln__cpu_memory_written(machine()->memory, op->writeValue.address, width);
  kiln__cpu_memory_leave(machine()->memory);
  return p != NULL ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

static CUresult run_ops(kiln__cpu_work *work, CUstream stream)
{
  const ops_work *o = (const ops_work *)(void *)work;
  CUresult rc = CUDA_SUCCESS;

  for (unsigned i = 0; i < o->n && rc == CUDA_SUCCESS; i++) {
    if (is_wait(&o->ops[i]))
      rc = wait_value(&o->ops[i], stream->context);
    else if (is_write(&o->ops[i]))
      rc = write_value(&o->ops[i]);
  }
  return rc;
}

static CUresult check_op(const CUstreamBatchMemOpParams *op)
{
  const unsigned flags =
      is_wait(op) ? 3u | (unsigned)CU_STREAM_WAIT_VALUE_FLUSH : 1u;

  if (op->operation == CU_STREAM_MEM_OP_BARRIER ||
      op->operation == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES)
    return CUDA_SUCCESS;
  CU_TRY(valid(is_wait(op) || is_write(op)));
  CU_TRY(valid((op->waitValue.flags & ~flags) == 0));
  CU_TRY(valid(op->waitValue.address % width_of(op) == 0 &&
               kiln__cpu_device_bytes(op->waitValue.address, width_of(op)) !=
                   NULL));
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_mem_ops_work(CUcontext context, unsigned n,
                                const CUstreamBatchMemOpParams *ops,
                                kiln__cpu_work **out)
{
  ops_work *o;

  (void)context;
  *out = NULL;
  CU_TRY(valid(n != 0 && n <= 256 && ops != NULL));
  for (unsigned i = 0; i < n; i++) {
    CU_TRY(check_op(&ops[i]));
  }
  o = kiln__calloc(&machine()->alloc, 1, sizeof *o + n * sizeof *ops);
  CU_TRY(allocated(o));
  o->base.run = run_ops;
  o->base.free = free_work;
  o->base.kind = KILN__WORK_MEM_OP;
  o->n = n;
  memcpy(o->ops, ops, n * sizeof *ops);
  *out = &o->base;
  return CUDA_SUCCESS;
}

CUstreamBatchMemOpParams *kiln__cpu_mem_ops_params(kiln__cpu_work *work,
                                                   unsigned *n)
{
  ops_work *o = (ops_work *)(void *)work;

  *n = o->n;
  return o->ops;
}

CUresult kiln__cpu_streamBatchMemOp(CUstream stream, unsigned int n,
                                    CUstreamBatchMemOpParams *ops,
                                    unsigned int flags)
{
  CUcontext context;
  kiln__cpu_work *work;

  CU_TRY(kiln__cpu_current(&context));
  CU_TRY(valid(flags == 0));
  CU_TRY(kiln__cpu_mem_ops_work(context, n, ops, &work));
  return kiln__cpu_enqueue(context, stream, work);
}

static CUresult one_op(CUstream stream, CUstreamBatchMemOpType operation,
                       CUdeviceptr address, uint64_t value, unsigned flags)
{
  CUstreamBatchMemOpParams op = {.pad = {0}};

  op.operation = operation;
  op.waitValue.address = address;
  op.waitValue.flags = flags;
  if (width_of(&op) == 4)
    op.waitValue.value = (uint32_t)value;
  else
    op.waitValue.value64 = value;
  return kiln__cpu_streamBatchMemOp(stream, 1, &op, 0);
}

/* Defines a function that enqueues one memory operation, as a batch of one. */
#define VALUE_FN(name, operation, type)                                        \
  CUresult kiln__cpu_##name(CUstream stream, CUdeviceptr address, type value,  \
                            unsigned int flags)                                \
  {                                                                            \
    return one_op(stream, operation, address, value, flags);                   \
  }

VALUE_FN(streamWaitValue32, CU_STREAM_MEM_OP_WAIT_VALUE_32, uint32_t)
VALUE_FN(streamWaitValue64, CU_STREAM_MEM_OP_WAIT_VALUE_64, uint64_t)
VALUE_FN(streamWriteValue32, CU_STREAM_MEM_OP_WRITE_VALUE_32, uint32_t)
VALUE_FN(streamWriteValue64, CU_STREAM_MEM_OP_WRITE_VALUE_64, uint64_t)

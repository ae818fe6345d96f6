/* temporary_storage.c -- provides the temporary memory and tile descriptors of
 * a call.
 *
 * Problem: an allocation from the stream-ordered pool takes longer than a small
 * operation, and clearing tile descriptors takes an additional launch.
 *
 * Idea: a stream keeps up to 8 MiB of memory and 2^20 descriptors between
 * calls. Calls in one stream run one after the other on the GPU, so they may
 * share this storage. Descriptors carry an epoch. Each kernel uses a new epoch
 * and treats descriptors of all other epochs as empty. Therefore the
 * descriptors are cleared only when they are allocated or when the epochs run
 * out.
 *
 * Invariant: the lock of the kept storage is held from kiln__storage_open() to
 * kiln__storage_close(), that is, until the call's kernels are queued. A
 * captured call never uses the kept storage, since its graph may run at any
 * time. Captured calls, and calls that need more than a stream keeps, get
 * memory of their own: captured calls from the default pool, since the graph
 * then owns it, the others from a pool that the device keeps for them. */
#include "ops.h"

enum {
  ALIGN = 256,
  /* Maximum number of bytes of temporary memory that a stream keeps between
   * calls. */
  KEPT_TEMP = 8 << 20,
  /* Maximum number of tile descriptors that a stream keeps between calls. */
  KEPT_DESCRIPTORS = 1 << 20,
  LEAST_TEMP = 64 << 10,
  LEAST_DESCRIPTORS = 4096,
  LAST_EPOCH = (1 << 30) - 1
};

/* The storage that a stream keeps between calls. */
typedef struct kept {
  pthread_mutex_t lock;
  CUdeviceptr temp, descriptors;
  size_t temp_size, n_descriptors;
  uint32_t epoch; /* the epoch that the last kernel used */
} kept;

static size_t round_up(size_t n)
{
  return (n + ALIGN - 1) / ALIGN * ALIGN;
}

size_t kiln__need_bytes(kiln__need need)
{
  return round_up(need.temp) + round_up(8 * need.descriptors);
}

size_t kiln__need_temp(kiln__need *need, size_t bytes)
{
  const size_t offset = need->temp;

  need->temp += round_up(bytes);
  return offset;
}

/* ---- Storage that a stream keeps ---------------------------------------- */

/* Frees the kept storage in stream order, since queued work may still use
 * the memory. */
static void free_kept(kiln_stream *stream)
{
  kept *k = stream->ops;
  kiln_error record;

  kiln__error_get(&record);
  kiln_memory_free_async(stream, k->temp);
  kiln_memory_free_async(stream, k->descriptors);
  kiln__error_set(&record);
  pthread_mutex_destroy(&k->lock);
  kiln__free(&stream->device->rt->alloc, k);
}

static kiln_status make_kept(kiln_stream *stream)
{
  kiln_status st = KILN_OK;

  pthread_mutex_lock(&stream->device->lock);
  if (atomic_load(&stream->ops) == NULL) {
    kept *k = kiln__calloc(&stream->device->rt->alloc, 1, sizeof *k);

    if (k == NULL || pthread_mutex_init(&k->lock, NULL) != 0) {
      kiln__free(&stream->device->rt->alloc, k);
      st = kiln__fail_memory("a stream's workspace");
    } else {
      stream->ops_free = free_kept;
      atomic_store(&stream->ops, k);
    }
  }
  pthread_mutex_unlock(&stream->device->lock);
  return st;
}

static size_t grown(size_t have, size_t wanted, size_t least, size_t most)
{
  size_t size = have < least ? least : have;

  while (size < wanted)
    size *= 2;
  return size < most ? size : most;
}

/* Enlarges the temporary memory that a stream keeps. The larger memory is
 * allocated before the old memory is freed, so that a failure changes
 * nothing. */
static kiln_status keep_temp(kept *k, kiln_stream *stream, size_t wanted)
{
  const size_t size = grown(k->temp_size, wanted, LEAST_TEMP, KEPT_TEMP);
  kiln_status st = KILN_OK;
  CUdeviceptr made = 0;

  if (wanted <= k->temp_size)
    return KILN_OK;
  KILN_TRY(kiln_memory_alloc_async(&made, stream, size));
  KILN_TRY(kiln_memory_free_async(stream, k->temp));
  k->temp = made;
  k->temp_size = size;
  made = 0;

done:
  kiln_memory_free_async(stream, made);
  return st;
}

static kiln_status keep_descriptors(kept *k, kiln_stream *stream, size_t wanted)
{
  const size_t n =
      grown(k->n_descriptors, wanted, LEAST_DESCRIPTORS, KEPT_DESCRIPTORS);
  kiln_status st = KILN_OK;
  CUdeviceptr made = 0;

  if (wanted <= k->n_descriptors)
    return KILN_OK;
  KILN_TRY(kiln_memory_alloc_async(&made, stream, 8 * n));
  KILN_TRY(kiln_fill_async(stream, made, 0, 4, 2 * n));
  KILN_TRY(kiln_memory_free_async(stream, k->descriptors));
  k->descriptors = made;
  k->n_descriptors = n;
  made = 0;

done:
  kiln_memory_free_async(stream, made);
  return st;
}

/* Restarts the epochs. A call must never use an epoch twice with the same
 * descriptors. When fewer epochs are left than a call may need, this function
 * clears the descriptors and starts again with the first epoch. */
static kiln_status renew_epochs(kept *k, kiln_stream *stream)
{
  kiln_status st = KILN_OK;

  if (k->epoch < LAST_EPOCH - 1000000)
    return KILN_OK;
  KILN_TRY(kiln_fill_async(stream, k->descriptors, 0, 4, 2 * k->n_descriptors));
  k->epoch = 0;

done:
  return st;
}

static kiln_status open_kept(kiln__storage *storage, kiln__need need)
{
  kiln_stream *stream = storage->stream;
  kiln_status st = KILN_OK;
  kept *k;

  if (atomic_load(&stream->ops) == NULL)
    KILN_TRY(make_kept(stream));
  k = stream->ops;
  pthread_mutex_lock(&k->lock);
  storage->locked = true;
  KILN_TRY(keep_temp(k, stream, need.temp));
  KILN_TRY(keep_descriptors(k, stream, need.descriptors));
  KILN_TRY(renew_epochs(k, stream));
  storage->temp = k->temp;
  storage->descriptors = k->descriptors;
  storage->epoch = k->epoch;

done:
  return st;
}

/* ---- Memory of a single call --------------------------------------------- */

/* Divides one allocation into temporary memory and tile descriptors, and clears
 * the descriptors. */
static kiln_status split_piece(kiln__storage *storage, CUdeviceptr piece,
                               kiln__need need)
{
  storage->temp = piece;
  storage->descriptors = piece + round_up(need.temp);
  storage->epoch = 0;
  return kiln_fill_async(storage->stream, storage->descriptors, 0, 4,
                         2 * need.descriptors);
}

static kiln_status open_given(kiln__storage *storage, const kiln_workspace *w,
                              kiln__need need)
{
  if (w->data % ALIGN != 0)
    return kiln__fail(KILN_EINVAL, "align it to 256 bytes",
                      "the workspace is not aligned");
  if (w->size < kiln__need_bytes(need))
    return kiln__fail(
        KILN_EINVAL,
        "ask the operation's ..._workspace() function for the size",
        "the workspace has %zu bytes, %zu are needed", w->size,
        kiln__need_bytes(need));
  return split_piece(storage, w->data, need);
}

static kiln_status open_pool(kiln__storage *storage, kiln__need need,
                             bool captured)
{
  const size_t size = kiln__need_bytes(need);
  kiln_status st = KILN_OK;
  CUdeviceptr piece;

  KILN_TRY(captured ? kiln_memory_alloc_async(&piece, storage->stream, size)
                    : kiln__memory_alloc_pooled(&piece, storage->stream, size));
  storage->from_pool = true;
  KILN_TRY(split_piece(storage, piece, need));

done:
  return st;
}

/* The device's context must be current. Without a current context, the driver
 * would report that the stream is not being captured. */
static kiln_status open_storage(kiln__storage *storage,
                                const kiln_workspace *workspace,
                                kiln__need need)
{
  const kiln_stream *stream = storage->stream;
  bool captured;

  if (workspace != NULL && workspace->data != 0)
    return open_given(storage, workspace, need);
  if (kiln__need_bytes(need) == 0)
    return KILN_OK;
  captured = kiln__capturing(stream->device->driver, stream->handle);
  return !captured && need.temp <= KEPT_TEMP &&
                 need.descriptors <= KEPT_DESCRIPTORS
             ? open_kept(storage, need)
             : open_pool(storage, need, captured);
}

kiln_status kiln__storage_open(kiln__storage *storage, kiln_stream *stream,
                               const kiln_workspace *workspace, kiln__need need)
{
  kiln_status st;

  *storage = (kiln__storage){.stream = stream};
  st = kiln__enter(stream->device, &storage->scope);
  if (st != KILN_OK)
    return st;
  storage->entered = true;
  st = open_storage(storage, workspace, need);
  if (st != KILN_OK)
    kiln__storage_close(storage);
  return st;
}

uint32_t kiln__storage_epoch(kiln__storage *storage)
{
  return ++storage->epoch;
}

void kiln__storage_close(kiln__storage *storage)
{
  kiln_error record;

  if (storage->locked) {
    kept *k = storage->stream->ops;

    if (storage->epoch > k->epoch)
      k->epoch = storage->epoch;
    pthread_mutex_unlock(&k->lock);
  }
  if (storage->from_pool) {
    kiln__error_get(&record);
    kiln_memory_free_async(storage->stream, storage->temp);
    kiln__error_set(&record);
  }
  if (storage->entered)
    kiln__leave(&storage->scope);
  *storage = (kiln__storage){.stream = storage->stream};
}

kiln_status kiln__call_open(kiln__call *call, kiln_stream *stream,
                            const kiln__spec *spec,
                            const kiln_workspace *workspace, kiln__need need)
{
  kiln_status st = KILN_OK;

  KILN_TRY(kiln__specialise(&call->set, stream->device, spec));
  KILN_TRY(kiln__storage_open(&call->storage, stream, workspace, need));
  kiln__user_args(&call->args, spec);
  call->epoch = kiln__storage_epoch(&call->storage);

done:
  return st;
}

kiln_status kiln__zero(kiln_stream *stream, kiln_array a, uint64_t n)
{
  const size_t size = kiln__size(a.type), width = size < 4 ? size : 4;

  return kiln_fill_async(stream, a.data, 0, (int)width,
                         (size_t)n * (size / width));
}

/* indexed.c -- the host side of index_check.cu and buckets.cu. It checks
 * indices, and it reorders a gather or scatter by buckets.
 *
 * Problem: each random access to a target larger than the cache costs a memory
 * burst. The target is the array that the indices point into.
 *
 * Idea: a partition moves the indices, and the values of a scatter, into the
 * order of buckets. A bucket is a range of the target that fits the cache. The
 * gather or scatter then handles one bucket after the other. For a gather, the
 * results are moved back at the end.
 *
 * Cost: each index and value is read and written once or twice more, by
 * streaming accesses.
 *
 * Source: He et al., Efficient Gather and Scatter Operations on Graphics
 * Processors, 2007. */
#include "indexed.h"
#include "kernel_params.h"

kiln_dtype kiln__raw_type(unsigned size)
{
  switch (size) {
  case 1:
    return KILN_U8;
  case 2:
    return KILN_U16;
  case 4:
    return KILN_U32;
  case 8:
    return KILN_U64;
  default:
    return KILN_DTYPE_NONE;
  }
}

kiln_dtype kiln__moved_type(kiln_dtype type, CUdeviceptr addresses)
{
  const size_t size = kiln__size(type);
  size_t align = kiln__align(type);

  while (align < 16 && size % (2 * align) == 0 && addresses % (2 * align) == 0)
    align *= 2;
  return align == size && size <= 8 ? kiln__raw_type((unsigned)size)
                                    : KILN_STRUCT(size, align);
}

bool kiln__as_bits(kiln_input *x, kiln_array *out)
{
  if (x->map != NULL || x->in[0].type != out->type)
    return false;
  out->type = kiln__moved_type(out->type, x->in[0].data | out->data);
  x->in[0].type = out->type;
  x->in[1].type = KILN_DTYPE_NONE;
  return true;
}

unsigned kiln__input_bytes(const kiln_input *x)
{
  unsigned bytes = 0;

  for (size_t k = 0; k < kiln__input_arrays(x); k++)
    bytes += (unsigned)kiln__size(x->in[k].type);
  return bytes > 0 ? bytes : 1;
}

/* A window is the range of the target that one pass handles. Its start must be
 * representable in the type of an index, so the target counts as at most 2^32
 * elements for indices of 32 bits. */
uint64_t kiln__window(kiln_array index, uint64_t n_target, uint64_t n,
                      uint32_t windows)
{
  const uint64_t all = n_target != 0 ? n_target : n;
  const uint64_t most =
      kiln__size(index.type) == 4 ? UINT64_C(1) << 32 : UINT64_MAX;

  return kiln__divide_up(all < most ? all : most, windows);
}

uint64_t kiln__extent(uint64_t rows, uint64_t width, uint64_t stride)
{
  if (rows == 0 || width == 0)
    return 0;
  if (rows - 1 > (UINT64_MAX - width) / stride)
    return UINT64_MAX;
  return (rows - 1) * stride + width;
}

void kiln__check_index(kiln__checker *c, kiln_array index, uint64_t n)
{
  kiln__check_that(c, kiln__is_index(index.type) || kiln__is_narrow(index.type),
                   "index has type %s; it must be u8, u16, i32, u32, i64 or "
                   "u64",
                   kiln_dtype_name(index.type));
  kiln__check_read(c, "index", index, n);
}

void kiln__check_method(kiln__checker *c, kiln_dtype index,
                        kiln_index_method method, uint32_t passes, bool checked,
                        uint64_t n_target)
{
  kiln__check_that(c, (unsigned)method <= KILN_INDEX_SORT,
                   "method %d is no kiln_index_method", (int)method);
  kiln__check_that(c, !kiln__is_narrow(index) || method <= KILN_INDEX_DIRECT,
                   "indices of type %s need the method KILN_INDEX_AUTO or "
                   "KILN_INDEX_DIRECT",
                   kiln_dtype_name(index));
  kiln__check_that(c, method != KILN_INDEX_WINDOWS || passes <= 65535,
                   "%u passes; the maximum is 65,535", passes);
  kiln__check_that(
      c, method != KILN_INDEX_PARTITION || passes <= KILN__MAX_BUCKETS,
      "%u buckets; the maximum is 1,024", passes);
  kiln__check_that(c, !checked || n_target > 0,
                   ".checked needs n_target, the elements that the indices "
                   "point into");
}

/* ---- Range check --------------------------------------------------------- */

enum { CHECK_BLOCK = 256, CHECK_BYTES = 256 };

static const char *const check_kernels[] = {"index_check", NULL};
static const kiln__family check_family = {"index_check", check_kernels,
                                          kiln__index_check_params};

kiln__need kiln__range_need(void)
{
  return (kiln__need){.temp = CHECK_BYTES};
}

/* Reads one index from device memory, extends its sign to 64 bits, and waits
 * until the value has arrived. */
static kiln_status element_at(int64_t *out, kiln_stream *stream,
                              kiln_array index, uint64_t i)
{
  const size_t size = kiln__size(index.type);
  uint32_t narrow = 0;
  uint64_t wide = 0;
  kiln_status st = KILN_OK;

  KILN_TRY(kiln_copy_to_host_async(stream, size <= 4 ? (void *)&narrow : &wide,
                                   index.data + i * size, size));
  KILN_TRY(kiln_stream_synchronize(stream));
  if (size <= 4)
    wide = index.type == KILN_I32 ? (uint64_t)(int64_t)(int32_t)narrow : narrow;
  *out = (int64_t)wide;

done:
  return st;
}

static kiln_status complain(kiln_stream *stream, const kiln__range *r,
                            uint64_t i)
{
  const bool is_signed = r->index.type == KILN_I32 || r->index.type == KILN_I64;
  int64_t at = 0, before = 0;
  kiln_status st = KILN_OK;

  KILN_TRY(element_at(&at, stream, r->index, i));
  if (r->rising && i > 0)
    KILN_TRY(element_at(&before, stream, r->index, i - 1));
  if (is_signed && at < 0)
    st = kiln__fail(KILN_EINVAL, "nothing was written", "%s: %s[%llu] is %lld",
                    r->call, r->what, (unsigned long long)i, (long long)at);
  else if ((uint64_t)at >= r->end)
    st =
        kiln__fail(KILN_EINVAL, "nothing was written",
                   "%s: %s[%llu] is %llu, and there are %llu elements", r->call,
                   r->what, (unsigned long long)i, (unsigned long long)at,
                   (unsigned long long)(r->rising ? r->end - 1 : r->end));
  else
    st = kiln__fail(KILN_EINVAL, "nothing was written",
                    "%s: %s[%llu] is %llu, less than %llu before it", r->call,
                    r->what, (unsigned long long)i, (unsigned long long)at,
                    (unsigned long long)before);

done:
  return st;
}

static kiln_status first_outside(uint64_t *first, const kiln__kernel_set *set,
                                 const kiln__storage *storage,
                                 const kiln__range *r)
{
  const kiln_device *device = storage->stream->device;
  const uint64_t most = 8 * kiln__sm_count(device);
  kiln_launch_config config = kiln_launch_1d(r->n, CHECK_BLOCK);
  kiln_status st = KILN_OK;

  if (config.grid.x > most)
    config.grid.x = (uint32_t)most;
  config.stream = storage->stream;
  KILN_TRY(kiln_fill_async(storage->stream, storage->temp, UINT32_MAX, 4, 2));
  KILN_TRY(KILN_LAUNCH(set->kernel[0], &config, KILN_ARG(r->index.data),
                       KILN_ARG(r->n), KILN_ARG(r->end),
                       KILN_ARG(storage->temp)));
  KILN_TRY(kiln_copy_to_host_async(storage->stream, first, storage->temp,
                                   sizeof *first));
  KILN_TRY(kiln_stream_synchronize(storage->stream));

done:
  return st;
}

kiln_status kiln__in_range(kiln_stream *stream, const kiln__range *r,
                           const kiln_workspace *workspace)
{
  kiln__spec spec = {.family = &check_family,
                     .value = {[INDEX_CHECK_BLOCK] = CHECK_BLOCK,
                               [INDEX_CHECK_INDEX] = r->index.type,
                               [INDEX_CHECK_RISING] = r->rising},
                     .quick = true};
  const kiln__kernel_set *set;
  kiln_status st = KILN_OK;
  kiln__storage storage = {.stream = stream};
  uint64_t first = UINT64_MAX;

  if (r->n == 0)
    return KILN_OK;
  if (kiln__capturing(stream->device->driver, stream->handle))
    return kiln__fail(KILN_ECAPTURE,
                      "check the indices before the capture begins",
                      "%s: .checked waits for the GPU, which a capture does "
                      "not allow",
                      r->call);
  KILN_TRY(kiln__specialise(&set, stream->device, &spec));
  KILN_TRY(kiln__storage_open(&storage, stream, workspace, kiln__range_need()));
  st = first_outside(&first, set, &storage, r);
  kiln__storage_close(&storage);
  if (st == KILN_OK && first != UINT64_MAX)
    st = complain(stream, r, first);

done:
  return st;
}

/* ---- Choice on the device ------------------------------------------------ */

uint32_t kiln__tiles_each(const kiln_stream *stream, uint64_t tiles,
                          uint32_t most, CUdeviceptr skip)
{
  enum { BLOCKS_PER_SM = 32 };
  const uint64_t each =
      skip == 0 ? 1 : tiles / (BLOCKS_PER_SM * kiln__sm_count(stream->device));

  return each < 1 ? 1 : each < most ? (uint32_t)each : most;
}

/* ---- Partition ----------------------------------------------------------- */

/* Maximum number of tiles per block of a partition that may be left out. */
enum { MOST_TILES = 4 };

static const char *const scatter_kernels[] = {"bucket_count", "bucket_begin",
                                              "bucket_split", NULL};
static const char *const gather_kernels[] = {
    "bucket_count", "bucket_begin", "bucket_split", "bucket_join", NULL};
static const kiln__family scatter_family = {"buckets", scatter_kernels,
                                            kiln__buckets_params};
static const kiln__family gather_family = {"buckets", gather_kernels,
                                           kiln__buckets_params};

static uint64_t padded(const kiln__partition *p)
{
  return p->tiles * p->block * p->items * 4;
}

/* Chooses the block size and the elements per thread. A tile takes at most
 * 32 KiB of shared memory. An SM of an older GPU holds one such tile; an SM
 * of a newer GPU holds several. */
static void lay_out(kiln__partition *p)
{
  const size_t place = kiln__size(p->place);
  const uint64_t n = p->n, runs = p->tiles * p->buckets;

  p->need = (kiln__need){0};
  p->cursor = kiln__need_temp(&p->need, 8 * (size_t)p->buckets);
  p->at = kiln__need_temp(&p->need, n * kiln__size(p->stored));
  p->values = kiln__need_temp(&p->need, n * kiln__size(p->value));
  if (p->scatter)
    return;
  p->slot = kiln__need_temp(&p->need, 2 * padded(p));
  p->begin = kiln__need_temp(&p->need, 2 * runs);
  p->delta = kiln__need_temp(&p->need, place * runs);
}

void kiln__partition_plan(kiln__partition *p, kiln_array index, uint64_t n,
                          uint64_t n_target, kiln_array out, uint32_t parts,
                          bool scatter)
{
  const uint64_t target = n_target != 0 ? n_target : n;
  const bool narrow = n_target != 0 && n_target <= UINT64_C(1) << 32;
  size_t bytes;

  *p = (kiln__partition){.buckets = 1,
                         .block = 256,
                         .n = n,
                         .scatter = scatter,
                         .out = scatter ? 0 : out.data,
                         .place = n <= UINT32_MAX ? KILN_U32 : KILN_U64};
  p->value =
      scatter ? out.type : kiln__raw_type((unsigned)kiln__size(out.type));
  p->index.data = index.data;
  p->index.type = kiln__raw_type((unsigned)kiln__size(index.type));
  p->stored = narrow ? KILN_U32 : p->index.type;
  while (p->buckets < parts)
    p->buckets *= 2;
  while (p->shift < 63 && (target - 1) >> p->shift >= p->buckets)
    p->shift++;
  if (p->stored == KILN_U32 && p->shift > 31)
    p->shift = 31;
  bytes = kiln__size(p->stored) + (scatter ? kiln__size(out.type) : 0);
  p->items = bytes <= 8 ? 4 : 2;
  p->tiles = kiln__divide_up(n, (uint64_t)p->block * p->items * 4);
  lay_out(p);
}

kiln_status kiln__partition_prepare(kiln__partition *p, kiln_device *device,
                                    const kiln_input *x, const kiln_code *code)
{
  const kiln__spec spec = {
      .family = p->scatter ? &scatter_family : &gather_family,
      .value = {[BUCKETS_BLOCK] = p->block,
                [BUCKETS_ITEMS] = p->items,
                [BUCKETS_BUCKETS] = p->buckets,
                [BUCKETS_INDEX] = p->index.type,
                [BUCKETS_STORED] = p->stored,
                [BUCKETS_DESTINATION] = p->place,
                [BUCKETS_VALUE] = p->value,
                [BUCKETS_SCATTER] = p->scatter,
                [BUCKETS_ALIGNED] = (p->index.data % 16 == 0) |
                                    (uint32_t)(p->out % 16 == 0) << 1},
      /* One bit per kernel. The kernels compile in parallel. */
      .kernels = p->scatter ? 7 : 15,
      .input = p->scatter ? x : NULL,
      .code = p->scatter ? code : NULL,
      .quick = !p->scatter};

  kiln__user_args(&p->args, &spec);
  return kiln__specialise(&p->set, device, &spec);
}

/* Returns the number of blocks of the counting kernel. It is the number of
 * blocks that can be resident at the same time, but at most one block per
 * tile. */
static uint64_t counting_blocks(const kiln__partition *p,
                                const kiln_device *device)
{
  const uint64_t most = 8 * kiln__sm_count(device);

  return p->tiles < most ? p->tiles : most;
}

/* A struct argument of the kernels in buckets.cu, with the members that the
 * kernels declare. */
typedef struct split_arrays {
  CUdeviceptr index, cursor, stored, more[3];
} split_arrays;

static split_arrays arrays_of(const kiln__partition *p, CUdeviceptr temp)
{
  split_arrays a = {
      p->index.data, temp + p->cursor, temp + p->at, {temp + p->values, 0, 0}};

  if (!p->scatter) {
    a.more[0] = temp + p->slot;
    a.more[1] = temp + p->begin;
    a.more[2] = temp + p->delta;
  }
  return a;
}

kiln_status kiln__partition_split(const kiln__partition *p,
                                  const kiln__storage *storage,
                                  CUdeviceptr skip)
{
  const split_arrays a = arrays_of(p, storage->temp);
  const kiln_arg arrays = {&a, p->scatter ? 4 * sizeof(CUdeviceptr) : sizeof a};
  kiln_kernel *const *kernel = p->set->kernel;
  const uint32_t each =
      kiln__tiles_each(storage->stream, p->tiles, MOST_TILES, skip);
  kiln_launch_config config;
  kiln_status st = KILN_OK;

  KILN_TRY(
      kiln_fill_async(storage->stream, a.cursor, 0, 4, 2 * (size_t)p->buckets));
  config = kiln__grid(storage->stream,
                      counting_blocks(p, storage->stream->device), p->block);
  KILN_TRY(KILN_LAUNCH(kernel[0], &config, KILN_ARG(a.index), KILN_ARG(p->n),
                       KILN_ARG(p->shift), KILN_ARG(a.cursor), KILN_ARG(skip)));
  config = kiln__grid(storage->stream, 1, p->block);
  KILN_TRY(KILN_LAUNCH(kernel[1], &config, KILN_ARG(a.cursor), KILN_ARG(skip)));
  config =
      kiln__grid(storage->stream, kiln__divide_up(p->tiles, each), p->block);
  KILN_TRY(KILN_LAUNCH(kernel[2], &config, KILN__USER_ARG(p->args), arrays,
                       KILN_ARG(p->n), KILN_ARG(p->shift), KILN_ARG(each),
                       KILN_ARG(skip)));

done:
  return st;
}

kiln_status kiln__partition_join(const kiln__partition *p,
                                 const kiln__storage *storage, CUdeviceptr skip)
{
  const CUdeviceptr values = storage->temp + p->values;
  const CUdeviceptr slot = storage->temp + p->slot;
  const CUdeviceptr begin = storage->temp + p->begin;
  const CUdeviceptr delta = storage->temp + p->delta;
  const uint32_t each =
      kiln__tiles_each(storage->stream, p->tiles, MOST_TILES, skip);
  const kiln_launch_config config =
      kiln__grid(storage->stream, kiln__divide_up(p->tiles, each), p->block);

  return KILN_LAUNCH(p->set->kernel[3], &config, KILN_ARG(values),
                     KILN_ARG(slot), KILN_ARG(begin), KILN_ARG(delta),
                     KILN_ARG(p->out), KILN_ARG(p->n), KILN_ARG(each),
                     KILN_ARG(skip));
}

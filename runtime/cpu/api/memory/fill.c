/* fill.c -- implements cuMemset with values of 8, 16 and 32 bits, in one and
 * two dimensions. */
#include "../context/api_context.h"
#include "api_memory.h"

#include <string.h>

typedef struct fill_work {
  kiln__cpu_work base;
  CUDA_MEMSET_NODE_PARAMS params;
} fill_work;

/* Treats rows without gaps between them as one row. */
static CUDA_MEMSET_NODE_PARAMS joined(CUDA_MEMSET_NODE_PARAMS p)
{
  if (p.height > 1 && p.pitch == p.width * p.elementSize) {
    p.width *= p.height;
    p.height = 1;
  }
  return p;
}

static void fill_row(uint8_t *to, const CUDA_MEMSET_NODE_PARAMS *p)
{
  if (p->elementSize == 1) {
    memset(to, (int)(p->value & 0xff), p->width);
  } else if (p->elementSize == 2) {
    const uint16_t value = (uint16_t)p->value;

    for (size_t i = 0; i < p->width; i++)
      memcpy(to + 2 * i, &value, 2);
  } else {
    for (size_t i = 0; i < p->width; i++)
      memcpy(to + 4 * i, &p->value, 4);
  }
}

/* Returns the host pointer to the first byte to fill, or NULL if the bytes do
 * not all lie in one range. */
static uint8_t *bytes_of(const CUDA_MEMSET_NODE_PARAMS *p)
{
  size_t row, extent;

  if (__builtin_mul_overflow(p->width, (size_t)p->elementSize, &row) ||
      __builtin_mul_overflow(p->height - 1, p->pitch, &extent) ||
      __builtin_add_overflow(extent, row, &extent))
    return NULL;
  return kiln__cpu_device_bytes(p->dst, extent);
}

static CUresult run(kiln__cpu_work *work, CUstream stream)
{
  const CUDA_MEMSET_NODE_PARAMS p = *kiln__cpu_fill_params(work);
  uint8_t *to;

  (void)stream;
  if (p.width == 0 || p.height == 0)
    return CUDA_SUCCESS;
  kiln__cpu_memory_enter(machine()->memory);
  to = bytes_of(&p);
  for (size_t y = 0; to != NULL && y < p.height; y++) {
    fill_row(to + y * p.pitch, &p);
    kiln__cpu_memory_written(machine()->memory, p.dst + y * p.pitch,
                             p.width * p.elementSize);
  }
  kiln__cpu_memory_leave(machine()->memory);
  return to != NULL ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

static void free_work(kiln__cpu_work *work)
{
  kiln__free(&machine()->alloc, work);
}

const CUDA_MEMSET_NODE_PARAMS *kiln__cpu_fill_params(const kiln__cpu_work *work)
{
  return &((const fill_work *)(const void *)work)->params;
}

static void describe(const kiln__cpu_work *work, kiln_cpu_activity *out)
{
  const CUDA_MEMSET_NODE_PARAMS *p = kiln__cpu_fill_params(work);

  out->bytes = (uint64_t)p->width * p->height * p->elementSize;
  out->to = kiln__cpu_place_of(p->dst);
}

CUresult kiln__cpu_fill_work(CUcontext context,
                             const CUDA_MEMSET_NODE_PARAMS *params,
                             kiln__cpu_work **out)
{
  const CUDA_MEMSET_NODE_PARAMS p = joined(*params);
  const size_t size = p.elementSize;
  fill_work *f;

  (void)context;
  *out = NULL;
  CU_TRY(valid((size == 1 || size == 2 || size == 4) && p.dst % size == 0));
  CU_TRY(valid(p.height <= 1 ||
               (p.pitch % size == 0 && p.pitch / size >= p.width)));
  CU_TRY(valid(p.width == 0 || p.height == 0 ||
               (bytes_of(&p) != NULL && kiln__cpu_is_writable(p.dst))));
  f = kiln__calloc(&machine()->alloc, 1, sizeof *f);
  CU_TRY(allocated(f));
  f->base.run = run;
  f->base.free = free_work;
  f->base.kind = KILN__WORK_FILL;
  f->base.describe = describe;
  f->params = p;
  *out = &f->base;
  return CUDA_SUCCESS;
}

enum { SMALL = 64 * 1024 };

static CUresult fill(CUdeviceptr to, size_t pitch, unsigned value,
                     unsigned size, size_t width, size_t height,
                     CUstream stream, bool async)
{
  const CUDA_MEMSET_NODE_PARAMS p = {.dst = to,
                                     .pitch = pitch,
                                     .value = value,
                                     .elementSize = size,
                                     .width = width,
                                     .height = height};
  CUcontext context;
  kiln__cpu_work *work;
  kiln__cpu_range range;
  unsigned manner = 0;

  CU_TRY(kiln__cpu_current(&context));
  CU_TRY(kiln__cpu_fill_work(context, &p, &work));
  if (!async) {
    manner = KILN__MAY_RUN_HERE | KILN__SYNC_CALL;
    if (kiln__cpu_memory_find(machine()->memory, to, &range) &&
        (range.kind == KILN__RANGE_HOST || range.kind == KILN__RANGE_MANAGED))
      /* Wait for the fill, since the host may read this memory next. */
      manner |= KILN__WAIT;
  } else if (width * size * height <= SMALL) {
    manner = KILN__MAY_RUN_HERE;
  }
  return kiln__cpu_enqueue_as(context, stream, work, manner);
}

/* Defines the four functions that fill memory with values of one type: in one
 * or two dimensions, each as a synchronous and an asynchronous function. */
#define FILLS(bits, type)                                                      \
  CUresult kiln__cpu_memsetD##bits(CUdeviceptr to, type value, size_t n)       \
  {                                                                            \
    return fill(to, 0, value, (bits) / 8, n, 1, NULL, false);                  \
  }                                                                            \
                                                                               \
  CUresult kiln__cpu_memsetD##bits##Async(CUdeviceptr to, type value,          \
                                          size_t n, CUstream stream)           \
  {                                                                            \
    return fill(to, 0, value, (bits) / 8, n, 1, stream, true);                 \
  }                                                                            \
                                                                               \
  CUresult kiln__cpu_memsetD2D##bits(CUdeviceptr to, size_t pitch, type value, \
                                     size_t width, size_t height)              \
  {                                                                            \
    return fill(to, pitch, value, (bits) / 8, width, height, NULL, false);     \
  }                                                                            \
                                                                               \
  CUresult kiln__cpu_memsetD2D##bits##Async(CUdeviceptr to, size_t pitch,      \
                                            type value, size_t width,          \
                                            size_t height, CUstream stream)    \
  {                                                                            \
    return fill(to, pitch, value, (bits) / 8, width, height, stream, true);    \
  }

FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned int)

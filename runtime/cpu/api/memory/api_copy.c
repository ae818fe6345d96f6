/* api_copy.c -- implements the work of a copy. A copy moves a three-dimensional
 * box of bytes from a source to a destination. Each of them is host memory,
 * device memory or an array.
 *
 * Every copy function of the API is converted to CUDA_MEMCPY3D. Adjacent rows
 * and slices are joined first, so that a contiguous copy is one memcpy. */
#include "api_copy.h"
#include "../context/api_context.h"

#include <string.h>

typedef struct copy_work {
  kiln__cpu_work base;
  CUDA_MEMCPY3D params;
  /* copy of the pageable source memory, made during the call; NULL without
   * one */
  uint8_t *staged;
} copy_work;

/* The source or the destination of a copy: the location and the layout of its
 * memory. */
typedef struct side {
  CUmemorytype type;
  size_t x, y, z;
  uint64_t address; /* base address of the memory; 0 for arrays */
  CUarray array;
  size_t pitch, height; /* bytes per row, and rows per slice */
} side;

typedef struct box {
  uint8_t *first;
  /* device address of `first`; 0 for arrays and pageable memory */
  uint64_t address;
  size_t row, slice;
} box;

/* ---- Source and destination of a copy ------------------------------------ */

static side source_of(const CUDA_MEMCPY3D *p)
{
  return (side){.type = p->srcMemoryType,
                .x = p->srcXInBytes,
                .y = p->srcY,
                .z = p->srcZ,
                .address = p->srcMemoryType == CU_MEMORYTYPE_HOST
                               ? (uint64_t)(uintptr_t)p->srcHost
                               : p->srcDevice,
                .array = p->srcArray,
                .pitch = p->srcPitch,
                .height = p->srcHeight};
}

static side target_of(const CUDA_MEMCPY3D *p)
{
  return (side){.type = p->dstMemoryType,
                .x = p->dstXInBytes,
                .y = p->dstY,
                .z = p->dstZ,
                .address = p->dstMemoryType == CU_MEMORYTYPE_HOST
                               ? (uint64_t)(uintptr_t)p->dstHost
                               : p->dstDevice,
                .array = p->dstArray,
                .pitch = p->dstPitch,
                .height = p->dstHeight};
}

/* Returns whether the `n` items that start at index `at` lie within `most`
 * items. The test cannot overflow. */
static bool within(size_t at, size_t n, size_t most)
{
  return at <= most && n <= most - at;
}

/* Finds the bytes of the copied box in an array. Returns false if the array is
 * not live, if the box exceeds the array, or if the box does not consist of
 * whole texels. */
static bool array_box(box *out, const side *s, const CUDA_MEMCPY3D *p)
{
  const kiln__cpu_texels *t;

  if (!kiln__cpu_live(s->array, KILN__HANDLE_ARRAY))
    return false;
  t = &s->array->texels;
  if (!within(s->x, p->WidthInBytes, (size_t)t->width * t->texel_bytes) ||
      !within(s->y, p->Height, t->height == 0 ? 1 : t->height) ||
      !within(s->z, p->Depth,
              t->layers > 0  ? t->layers
              : t->depth > 0 ? t->depth
                             : 1) ||
      s->x % t->texel_bytes != 0 || p->WidthInBytes % t->texel_bytes != 0)
    return false;
  *out = (box){.first =
                   t->data + s->z * t->plane_bytes + s->y * t->row_bytes + s->x,
               .row = t->row_bytes,
               .slice = t->plane_bytes};
  return true;
}

/* Computes the start of the copied box, and the number of bytes from its first
 * to its last byte. */
static bool linear_extent(const side *s, const CUDA_MEMCPY3D *p, box *out,
                          uint64_t *start, size_t *extent)
{
  const bool rows = p->Height > 1 || p->Depth > 1 || s->y > 0 || s->z > 0;
  size_t pitch = s->pitch, height = s->height, a, b, c;

  if (__builtin_add_overflow(s->x, p->WidthInBytes, &a) ||
      __builtin_add_overflow(s->y, p->Height, &b))
    return false;
  if (pitch == 0)
    pitch = a;
  if (height == 0)
    height = b;
  if ((rows && pitch < a) || (p->Depth > 1 && height < b) ||
      __builtin_mul_overflow(pitch, height, &out->slice))
    return false;
  out->row = pitch;
  if (__builtin_mul_overflow(out->slice, s->z, &a) ||
      __builtin_mul_overflow(pitch, s->y, &b) ||
      __builtin_add_overflow(a, b, &a) || __builtin_add_overflow(a, s->x, &a) ||
      __builtin_add_overflow(s->address, a, start))
    return false;
  return !__builtin_mul_overflow(out->slice, p->Depth - 1, &b) &&
         !__builtin_mul_overflow(pitch, p->Height - 1, &c) &&
         !__builtin_add_overflow(b, c, &b) &&
         !__builtin_add_overflow(b, p->WidthInBytes, extent);
}

/* Finds the bytes of the box at the source or the destination of a copy.
 * Returns false if they do not all lie in one allocation. */
static bool box_of(box *out, const side *s, const CUDA_MEMCPY3D *p)
{
  uint64_t start;
  size_t extent;

  *out = (box){0};
  if (s->type == CU_MEMORYTYPE_ARRAY)
    return array_box(out, s, p);
  if (s->address == 0 || !linear_extent(s, p, out, &start, &extent))
    return false;
  out->first = s->type == CU_MEMORYTYPE_DEVICE
                   ? kiln__cpu_device_bytes(start, extent)
                   : kiln__cpu_bytes_of(start, extent);
  out->address = s->type != CU_MEMORYTYPE_DEVICE && kiln__cpu_is_pageable(start)
                     ? 0
                     : start;
  return out->first != NULL;
}

/* ---- Execution ----------------------------------------------------------- */

/* Copies n bytes and updates the bitmap of the initialisation check. Bytes that
 * are copied from device memory keep their initialisation state. Bytes that are
 * copied from host memory count as written. */
static void copy_row(const box *to, const box *from, size_t to_at,
                     size_t from_at, size_t n)
{
  memmove(to->first + to_at, from->first + from_at, n);
  if (to->address != 0 && from->address != 0)
    kiln__cpu_memory_copied(machine()->memory, to->address + to_at,
                            from->address + from_at, n);
  else if (to->address != 0)
    kiln__cpu_memory_written(machine()->memory, to->address + to_at, n);
}

static void copy_box(const box *to, const box *from, size_t width,
                     size_t height, size_t depth)
{
  /* Rows without gaps between them are copied as one row. */
  if (to->row == width && from->row == width) {
    width *= height;
    height = 1;
  }
  for (size_t z = 0; z < depth; z++) {
    for (size_t y = 0; y < height; y++)
      copy_row(to, from, z * to->slice + y * to->row,
               z * from->slice + y * from->row, width);
  }
}

static bool is_empty(const CUDA_MEMCPY3D *p)
{
  return p->WidthInBytes == 0 || p->Height == 0 || p->Depth == 0;
}

static CUresult run(kiln__cpu_work *work, CUstream stream)
{
  const copy_work *c = (const copy_work *)(void *)work;
  const CUDA_MEMCPY3D *p = &c->params;
  const side to_side = target_of(p), from_side = source_of(p);
  box to, from;
  bool ok;

  (void)stream;
  if (is_empty(p))
    return CUDA_SUCCESS;
  kiln__cpu_memory_enter(machine()->memory);
  ok = box_of(&to, &to_side, p) && box_of(&from, &from_side, p);
  if (ok)
    copy_box(&to, &from, p->WidthInBytes, p->Height, p->Depth);
  kiln__cpu_memory_leave(machine()->memory);
  return ok ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

static kiln_cpu_place place_of(const side *s)
{
  return s->type == CU_MEMORYTYPE_ARRAY ? KILN_CPU_PLACE_ARRAY
                                        : kiln__cpu_place_of(s->address);
}

static void describe(const kiln__cpu_work *work, kiln_cpu_activity *out)
{
  const CUDA_MEMCPY3D *p = &((const copy_work *)(const void *)work)->params;
  const side to = target_of(p), from = source_of(p);

  out->bytes = (uint64_t)p->WidthInBytes * p->Height * p->Depth;
  out->from = place_of(&from);
  out->to = place_of(&to);
}

static void free_work(kiln__cpu_work *work)
{
  copy_work *c = (copy_work *)(void *)work;

  kiln__free(&machine()->alloc, c->staged);
  kiln__free(&machine()->alloc, c);
}

/* ---- Creation ------------------------------------------------------------ */

static bool known_type(CUmemorytype type)
{
  return type >= CU_MEMORYTYPE_HOST && type <= CU_MEMORYTYPE_UNIFIED;
}

CUresult kiln__cpu_copy_work(CUcontext context, const CUDA_MEMCPY3D *params,
                             kiln__cpu_work **out)
{
  const side to_side = target_of(params), from_side = source_of(params);
  box to, from;
  copy_work *c;

  (void)context;
  *out = NULL;
  CU_TRY(valid(known_type(to_side.type) && known_type(from_side.type) &&
               params->srcLOD == 0 && params->dstLOD == 0));
  CU_TRY(valid(is_empty(params) || (box_of(&to, &to_side, params) &&
                                    box_of(&from, &from_side, params) &&
                                    kiln__cpu_is_writable(to.address))));
  c = kiln__calloc(&machine()->alloc, 1, sizeof *c);
  CU_TRY(allocated(c));
  c->base.run = run;
  c->base.free = free_work;
  c->base.kind = KILN__WORK_COPY;
  c->base.describe = describe;
  c->params = *params;
  *out = &c->base;
  return CUDA_SUCCESS;
}

const CUDA_MEMCPY3D *kiln__cpu_copy_params(const kiln__cpu_work *work)
{
  return &((const copy_work *)(const void *)work)->params;
}

static bool pageable(const side *s)
{
  return s->type != CU_MEMORYTYPE_ARRAY && s->type != CU_MEMORYTYPE_DEVICE &&
         kiln__cpu_is_pageable(s->address);
}

/* Copies a pageable source during the call, since the program may change the
 * source as soon as the call returns. */
static CUresult stage(copy_work *c)
{
  CUDA_MEMCPY3D *p = &c->params;
  const side from_side = source_of(p);
  const size_t slice = p->WidthInBytes * p->Height;
  box from, to;

  if (is_empty(p) || !box_of(&from, &from_side, p))
    return CUDA_SUCCESS;
  c->staged = kiln__alloc(&machine()->alloc, slice * p->Depth);
  CU_TRY(allocated(c->staged));
  to = (box){.first = c->staged, .row = p->WidthInBytes, .slice = slice};
  copy_box(&to, &from, p->WidthInBytes, p->Height, p->Depth);
  p->srcMemoryType = CU_MEMORYTYPE_HOST;
  p->srcHost = c->staged;
  p->srcXInBytes = p->srcY = p->srcZ = 0;
  p->srcPitch = p->WidthInBytes;
  p->srcHeight = p->Height;
  return CUDA_SUCCESS;
}

/* Size in bytes. For smaller copies, waking a thread costs more than the copy
 * itself. */
enum { SMALL = 64 * 1024 };

/* Checks a copy and enqueues it. The call waits in the cases in which the
 * driver waits. A synchronous copy from device memory to device memory returns
 * early; other synchronous copies wait. An asynchronous copy from pageable
 * memory copies its source during the call; an asynchronous copy to pageable
 * memory waits. */
CUresult kiln__cpu_issue_copy(CUstream stream, const CUDA_MEMCPY3D *params,
                              bool async)
{
  const side to = target_of(params), from = source_of(params);
  CUcontext context;
  kiln__cpu_work *work;
  unsigned manner = 0;
  CUresult rc = CUDA_SUCCESS;

  CU_TRY(kiln__cpu_current(&context));
  CU_TRY(kiln__cpu_copy_work(context, params, &work));
  if (!async) {
    manner = KILN__MAY_RUN_HERE | KILN__SYNC_CALL;
    if (to.type != CU_MEMORYTYPE_DEVICE || from.type != CU_MEMORYTYPE_DEVICE)
      manner |= KILN__WAIT;
  } else if (!kiln__cpu_is_capturing(context, stream)) {
    if (params->WidthInBytes * params->Height * params->Depth <= SMALL)
      manner = KILN__MAY_RUN_HERE;
    if (pageable(&to))
      manner = KILN__MAY_RUN_HERE | KILN__WAIT;
    else if (pageable(&from))
      rc = stage((copy_work *)(void *)work);
  }
  if (rc != CUDA_SUCCESS) {
    free_work(work);
    return rc;
  }
  return kiln__cpu_enqueue_as(context, stream, work, manner);
}

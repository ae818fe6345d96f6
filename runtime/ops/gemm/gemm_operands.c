/* gemm_operands.c -- operands of matrix products on tensor cores, and the host
 * side of gemm_pack.cu.
 *
 * Tensor cores' kernels copy 16 bytes at a time, turn only elements of 2 bytes,
 * and multiply no f32. An operand that fits is read in place. Otherwise
 * gemm_pack copies it to temporary storage first: if its lines do not start at
 * multiples of 16 bytes, if an array of pointers gives it, if it has to be
 * turned (unless the kernel does that itself, see form_of() in gemm_wgmma.c), or
 * if f32 has to be split into parts of bf16. */
#include "gemm.h"
#include "kernel_params.h"

static const char *const pack_kernels[] = {"gemm_pack", NULL};
static const kiln__family pack_family = {"gemm_pack", pack_kernels,
                                         kiln__gemm_pack_params};

enum {
  PACK_BLOCK = 256,
  PACK_ALIGN = 16,  /* elements; lines of a copy start at multiples of these */
  PACK_SQUARE = 64, /* side of the squares that gemm_pack turns */
  PACK_VECTOR = 8   /* elements that a thread of gemm_pack writes at a time */
};

/* ---- What a call needs --------------------------------------------------- */

uint32_t kiln__gemm_parts(const kiln__gemm *call)
{
  if (call->type != KILN_F32)
    return 0;
  return call->precision == KILN_GEMM_F32        ? 3
         : call->precision == KILN_GEMM_F32_FAST ? 2
                                                 : 0;
}

uint32_t kiln__gemm_math(const kiln__gemm *call)
{
  if (kiln__gemm_parts(call) > 0 || call->type == KILN_BF16)
    return 1;
  switch (call->type) {
  case KILN_F16:
    return 0;
  case KILN_F32:
    return 2;
  case KILN_F64:
    return 4;
  default:
    return 3;
  }
}

static uint64_t round_up(uint64_t n, uint64_t to)
{
  return kiln__divide_up(n, to) * to;
}

bool kiln__gemm_is_aligned(const kiln__gemm *call, const kiln__gemm_operand *o,
                           uint32_t bit, uint64_t size)
{
  const uint64_t stride = call->args.batch > 1 ? o->stride * size : 0;

  return (call->pointers & bit) == 0 &&
         ((o->data | o->leading * size | stride) & 15) == 0;
}

kiln__gemm_source kiln__gemm_source_of(const kiln__gemm *call, bool a)
{
  const kiln__gemm_args *g = &call->args;
  const uint64_t rows = a ? g->m : g->n;
  kiln__gemm_source s = {.operand = a ? &g->a : &g->b,
                         .bit = a ? KILN__GEMM_A : KILN__GEMM_B,
                         .parts = kiln__gemm_parts(call),
                         .size = (uint32_t)kiln__size(call->type)};

  s.k_major = a ? call->a_k : call->b_k;
  s.lines = s.k_major ? rows : g->k;
  s.width = s.k_major ? g->k : rows;
  s.size = s.parts > 0 ? 2 : s.size;
  /* ldmatrix and wgmma turn elements of 2 bytes; f64 is loaded singly. */
  s.turned = s.size != 2 && s.size != 8 && !s.k_major && !(a && call->turns_a);
  s.packed = s.parts > 0 || s.turned ||
             !kiln__gemm_is_aligned(call, s.operand, s.bit, s.size);
  s.k_major |= s.turned;
  s.to_lines = s.turned ? s.width : s.lines;
  s.to_width = s.turned ? s.lines : s.width;
  s.leading = s.packed ? round_up(s.to_width, PACK_ALIGN) : s.operand->leading;
  s.batch =
      s.operand->stride == 0 && (call->pointers & s.bit) == 0 ? 1 : g->batch;
  if (s.parts == 0)
    s.parts = 1;
  s.bytes = s.packed ? s.batch * s.parts * s.to_lines * s.leading * s.size : 0;
  return s;
}

/* ---- Packing ------------------------------------------------------------- */

/* The argument of gemm_pack. */
typedef struct pack_args {
  uint64_t from, from_leading, from_stride, to, leading;
  uint32_t lines, width, batch;
} pack_args;

static void specify_pack(kiln__spec *spec, const kiln__gemm *call,
                         const kiln__gemm_source *s)
{
  const uint32_t most = (uint32_t)(16 / kiln__size(call->type));

  *spec = (kiln__spec){.family = &pack_family};
  spec->value[GEMM_PACK_T] = call->type;
  spec->value[GEMM_PACK_PARTS] = kiln__gemm_parts(call);
  spec->value[GEMM_PACK_TURN] = s->turned;
  spec->value[GEMM_PACK_POINTERS] = (call->pointers & s->bit) != 0;
  spec->value[GEMM_PACK_VECTOR] =
      kiln__gemm_vector(call, s->operand, s->bit, call->type, 0,
                        most < PACK_VECTOR ? most : PACK_VECTOR);
}

static kiln_status launch_pack(kiln_stream *stream, kiln_kernel *kernel,
                               const kiln__gemm_source *s, uint64_t to)
{
  const pack_args args = {s->operand->data,   s->operand->leading,
                          s->operand->stride, to,
                          s->leading,         (uint32_t)s->lines,
                          (uint32_t)s->width, (uint32_t)s->batch};
  const uint64_t most = kiln__sm_count(stream->device) * 16;
  const uint64_t work =
      s->turned ? kiln__divide_up(s->lines, PACK_SQUARE) *
                      kiln__divide_up(s->width, PACK_SQUARE) * s->batch
                : kiln__divide_up(kiln__divide_up(s->width, PACK_VECTOR) *
                                      s->lines * s->batch,
                                  PACK_BLOCK);
  const kiln_launch_config config =
      kiln__grid(stream, work < most ? work : most, PACK_BLOCK);

  return KILN_LAUNCH(kernel, &config, KILN_ARG(args));
}

static kiln_status launch_packs(kiln_stream *stream,
                                const kiln__kernel_set *const set[3],
                                const kiln__gemm_source s[2],
                                const uint64_t copy[2])
{
  kiln_status st = KILN_OK;
  size_t n = 1;

  for (int i = 0; i < 2 && st == KILN_OK; i++)
    if (s[i].packed)
      st = launch_pack(stream, set[n++]->kernel[0], &s[i], copy[i]);
  return st;
}

void kiln__gemm_need_copies(kiln__need *need, const kiln__gemm *call)
{
  for (int i = 0; i < 2; i++) {
    const kiln__gemm_source s = kiln__gemm_source_of(call, i == 0);

    if (s.packed)
      kiln__need_temp(need, (size_t)s.bytes);
  }
}

kiln_status kiln__gemm_launch(kiln_stream *stream, const kiln__gemm *call,
                              const kiln_workspace *workspace, kiln__spec *spec,
                              kiln_status (*launch)(const kiln__gemm_product *))
{
  kiln__gemm_product p = {.stream = stream, .call = call, .spec = spec};
  const kiln__kernel_set *set[3];
  const kiln__spec *list[3] = {spec};
  kiln__spec pack[2];
  kiln__storage storage;
  kiln_status st = KILN_OK;
  size_t n = 1;

  for (int i = 0; i < 2; i++) {
    p.source[i] = kiln__gemm_source_of(call, i == 0);
    if (!p.source[i].packed)
      continue;
    specify_pack(&pack[n - 1], call, &p.source[i]);
    list[n] = &pack[n - 1];
    n++;
  }
  KILN_TRY(kiln__specialise_all(set, stream->device, list, n));
  KILN_TRY(kiln__storage_open(&storage, stream, workspace, call->need));
  p.kernel = set[0]->kernel[0];
  p.copy[0] = storage.temp;
  p.copy[1] = storage.temp + round_up(p.source[0].bytes, 256);
  st = launch_packs(stream, set, p.source, p.copy);
  if (st == KILN_OK)
    st = launch(&p);
  kiln__storage_close(&storage);

done:
  return st;
}

/* segmented_reduce.c -- the host side of segmented.cu and segmented_rows.cu.
 *
 * Problem: segments have any length, from zero to all elements. One thread or
 * block per segment leaves most of the GPU idle if lengths differ.
 *
 * Idea: segment ends and elements are merged into one sequence. Every block
 * takes the same number of items of this sequence. A binary search on the
 * offsets finds the position where a block starts (merge path). If the last
 * segment of a block continues, the block passes the partial result to the next
 * block through a tile descriptor.
 *
 * Invariant: every segment end belongs to exactly one block, which writes the
 * result of that segment. Elements are combined in order unless the operation
 * is commutative.
 *
 * Cost: each element, index and offset is read once. All blocks do the same
 * amount of work.
 *
 * Source: Merrill and Garland, Merge-Based Parallel Sparse Matrix-Vector
 * Multiplication, 2016.
 *
 * Segments of rows (width above 1) are reduced by groups of lanes, with one
 * lane per vector of the row. Segments of equal length without gaps are the
 * rows of a matrix, and reduce_matrix.c reduces them. */
#include "../index/indexed.h"
#include "kernel_params.h"
#include "reduce.h"

enum {
  SEGMENT_THREADS = 1024, /* target number of resident threads per SM */
  /* Minimum number of segment ends and matrix rows that a group of lanes
   * handles. */
  LEAST_ROWS = 8,
  ROWS_FLIGHT = 64 /* number of bytes that a lane loads at the same time */
};

/* The parameters of one launch of segmented.cu or segmented_rows.cu. */
typedef struct plan {
  kiln__spec spec;
  uint64_t blocks, strips, per;
  kiln__need need;
  bool by_rows;
} plan;

/* A call of a segmented reduction whose arguments have been checked. */
typedef struct bags {
  const char *call; /* name of the public function, for messages */
  kiln__reduction_kind kind;
  /* The desc of kiln_segmented_reduce(). Descs of other functions are converted
   * to such a desc, which is the member `own`. */
  const kiln_segmented_reduce_desc *desc;
  kiln_segmented_reduce_desc own;
  kiln_array out, out2;
  double extra; /* correction of the divisor of a variance */
  uint64_t width, leading;
  /* Maximum number of elements (or matrix rows) in all segments. */
  uint64_t items;
  bool is_matrix; /* true if `matrix` is the plan, otherwise `plan` */
  kiln__matrix matrix;
  plan plan;
  kiln__need need;
} bags;

static uint64_t product(uint64_t a, uint64_t b)
{
  return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

static void check_layout(kiln__checker *c, bags *b)
{
  const kiln_segmented_reduce_desc *desc = b->desc;

  if (kiln__given(desc->offsets)) {
    kiln__check_index_type(c, "offsets", desc->offsets);
    kiln__check_that(c, desc->n_segments < UINT64_MAX, "too many segments");
    kiln__check_read(c, "offsets", desc->offsets,
                     desc->n_segments == 0 ? 0 : desc->n_segments + 1);
    b->items = desc->n;
  } else {
    kiln__check_that(c, !kiln__given(desc->index), "index needs offsets");
    b->items = product(desc->n_segments, desc->length);
    kiln__check_that(c, b->items <= desc->n, "n_segments * length is above n");
  }
  if (kiln__given(desc->index)) {
    kiln__check_index_type(c, "index", desc->index);
    kiln__check_read(c, "index", desc->index, desc->n_index);
    b->items = desc->n_index;
  }
  kiln__check_that(c, b->leading >= b->width, "leading is below width");
  kiln__check_that(c, desc->n_segments <= INT64_MAX && b->items <= INT64_MAX,
                   "more ends and elements than 64 bits count");
}

/* Returns whether 32 bits can represent the number of segment ends and
 * elements, including one round of loads beyond the end. */
static bool is_small(const bags *b)
{
  return b->desc->n_segments < UINT32_C(1) << 30 &&
         b->items < UINT32_C(1) << 30 && b->desc->n < UINT32_C(1) << 30;
}

/* Returns whether the segments are the rows of a matrix, that is, of equal
 * length without gaps. */
static bool is_matrix(const bags *b)
{
  return !kiln__given(b->desc->offsets) && b->width == 1 && b->leading == 1;
}

static kiln_dtype out_type(kiln_array a)
{
  return kiln__given(a) ? a.type : KILN_F32;
}

static kiln_dtype or_u32(kiln_dtype type)
{
  return type != KILN_DTYPE_NONE ? type : KILN_U32;
}

/* ---- Elements ------------------------------------------------------------ */

static const char *const element_kernels[] = {"segmented", NULL};
static const kiln__family element_family = {"segmented", element_kernels,
                                            kiln__segmented_params};

/* ---- Rows ---------------------------------------------------------------- */

static const char *const row_kernels[] = {"segmented_rows", NULL};
static const kiln__family row_family = {"segmented_rows", row_kernels,
                                        kiln__segmented_rows_params};

/* ---- Plan ---------------------------------------------------------------- */

static void start(plan *p, const bags *b, const kiln__family *family)
{
  *p = (plan){.spec = {.family = family,
                       .input = &b->desc->x,
                       .code = &b->desc->code,
                       .elements = b->items * (b->width > 1 ? b->width : 1)},
              .strips = 1};
  if (b->kind == KILN__REDUCTION_OP) {
    p->spec.op = &b->desc->op;
    p->spec.acc = kiln__op_type(b->out.type);
  }
}

static void plan_elements(plan *p, kiln_device *device, const bags *b)
{
  const kiln_segmented_reduce_desc *desc = b->desc;
  const uint64_t total = b->items + desc->n_segments;
  const unsigned words = kiln__result_words(b->kind, &desc->x, b->out.type);
  kiln__tuning t =
      kiln__tuned(device, KILN__TUNED_SEGMENTED,
                  words > 1 ? 8u : (unsigned)kiln__size(b->out.type), total);
  /* cppcheck-suppress ctuuninitvar; only the address of *p is used */
  uint32_t *value = p->spec.value;
  uint64_t tile, tiles;

  if (b->kind == KILN__REDUCTION_MOMENTS)
    /* Means and variances need more registers. */
    t.per_sm = (uint16_t)(SEGMENT_THREADS / 2 / t.block);
  start(p, b, &element_family);
  p->spec.unaligned = true;
  value[SEGMENTED_KIND] = b->kind;
  value[SEGMENTED_OUT] = out_type(b->out);
  value[SEGMENTED_OUT2] = out_type(b->out2);
  value[SEGMENTED_OFFSET] = or_u32(desc->offsets.type);
  value[SEGMENTED_INDEX] = or_u32(desc->index.type);
  value[SEGMENTED_GATHER] = kiln__given(desc->index);
  value[SEGMENTED_BLOCK] = t.block;
  value[SEGMENTED_ITEMS] = t.items;
  value[SEGMENTED_THREADS] =
      t.per_sm != 0 ? (uint32_t)t.block * t.per_sm : t.block;
  value[SEGMENTED_ORDERED] =
      b->kind == KILN__REDUCTION_OP && kiln__op_ordered(&desc->op);
  value[SEGMENTED_SMALL] = is_small(b);
  tile = (uint64_t)t.block * t.items;
  tiles = kiln__divide_up(total, tile);
  p->per = kiln__divide_up(tiles, kiln__resident(device, &t)) * tile;
  p->blocks = kiln__divide_up(total, p->per);
  p->need.descriptors = p->blocks * words;
}

static unsigned row_vec(const bags *b)
{
  const size_t acc = kiln__size(kiln__op_type(b->out.type));
  unsigned vec = kiln__input_vec(&b->desc->x);

  if (!kiln__input_in_phase(&b->desc->x, 0, vec))
    return 1;
  while (vec > 1 &&
         (vec * acc > 16 || b->width % vec != 0 || b->leading % vec != 0))
    vec /= 2;
  return vec;
}

static void plan_rows(plan *p, const kiln_device *device, const bags *b)
{
  const kiln_segmented_reduce_desc *desc = b->desc;
  const kiln__tuning t = {256, 0, SEGMENT_THREADS / 256, 0};
  const uint64_t total = b->items + desc->n_segments;
  const unsigned vec = row_vec(b);
  const unsigned bytes = vec * kiln__input_width(&desc->x);
  uint64_t lanes = kiln__divide_up(b->width, vec), blocks;
  uint32_t *value = p->spec.value;
  unsigned group = 1;

  start(p, b, &row_family);
  while (group < 32 && group < lanes)
    group *= 2;
  p->strips = kiln__divide_up(lanes, group);
  value[SEGMENTED_ROWS_OUT] = b->out.type;
  value[SEGMENTED_ROWS_OFFSET] = or_u32(desc->offsets.type);
  value[SEGMENTED_ROWS_OFFSETS] = kiln__given(desc->offsets);
  value[SEGMENTED_ROWS_INDEX] = or_u32(desc->index.type);
  value[SEGMENTED_ROWS_GATHER] = kiln__given(desc->index);
  value[SEGMENTED_ROWS_BLOCK] = t.block;
  value[SEGMENTED_ROWS_GROUP] = group;
  value[SEGMENTED_ROWS_VECTOR] = vec;
  value[SEGMENTED_ROWS_ITEMS] = bytes >= ROWS_FLIGHT      ? 1
                                : bytes < ROWS_FLIGHT / 8 ? 8
                                                          : ROWS_FLIGHT / bytes;
  value[SEGMENTED_ROWS_ALIGNED] = b->out.data % 16 == 0;
  value[SEGMENTED_ROWS_THREADS] = SEGMENT_THREADS;
  value[SEGMENTED_ROWS_SMALL] = is_small(b);
  blocks = kiln__resident(device, &t) / (p->strips > 0 ? p->strips : 1);
  if (blocks == 0)
    blocks = 1;
  p->per = kiln__divide_up(total, blocks * (t.block / group));
  if (p->per < LEAST_ROWS)
    p->per = LEAST_ROWS;
  p->blocks = kiln__divide_up(total, p->per * (t.block / group));
  p->need.descriptors = p->blocks * b->width * kiln__acc_words(b->out.type);
  p->by_rows = true;
}

static void plan_bags(bags *b, kiln_device *device)
{
  if (kiln__given(b->desc->offsets) && b->width == 1 && b->leading == 1)
    plan_elements(&b->plan, device, b);
  else
    plan_rows(&b->plan, device, b);
  b->need = b->plan.need;
  /* The range check runs before the reduction and uses the same temporary
   * memory. */
  if (b->desc->checked &&
      kiln__need_bytes(b->need) < kiln__need_bytes(kiln__range_need()))
    b->need = kiln__range_need();
}

static void make_plan(bags *b, const kiln_stream *stream)
{
  const kiln_segmented_reduce_desc *desc = b->desc;

  b->is_matrix = is_matrix(b);
  if (b->is_matrix) {
    b->matrix = (kiln__matrix){.kind = b->kind,
                               .x = &desc->x,
                               .rows = desc->n_segments,
                               .columns = desc->length,
                               .leading = desc->length,
                               .op = &desc->op,
                               .out = b->out,
                               .out2 = b->out2,
                               .extra = b->extra,
                               .code = &desc->code};
    kiln__rows_plan(&b->matrix, stream);
    b->need = b->matrix.need;
  } else if (desc->n_segments > 0) {
    plan_bags(b, stream->device);
  }
}

static kiln_status prepare(bags *b, const kiln_stream *stream,
                           const kiln_segmented_reduce_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln__checker c;
  uint64_t n;

  if (kiln__check_begin(&c, "kiln_segmented_reduce", stream, desc) != KILN_OK)
    return c.st;
  *b = (bags){.call = "kiln_segmented_reduce",
              .desc = desc,
              .out = kiln__or_type(desc->out, kiln__input_type(&desc->x)),
              .width = desc->width != 0 ? desc->width : 1};
  b->leading = desc->leading != 0 ? desc->leading : b->width;
  check_layout(&c, b);
  if (c.st != KILN_OK)
    return c.st;
  n = kiln__extent(desc->n, b->width, b->leading);
  kiln__check_that(&c, n < UINT64_MAX, "more elements than 64 bits count");
  kiln__check_input(&c, "x", &desc->x, n);
  kiln__check_write(&c, "out", b->out, product(desc->n_segments, b->width));
  kiln__check_reduction_op(&c, &desc->op, b->out.type);
  if (kiln__check_workspace(&c, workspace) == KILN_OK)
    make_plan(b, stream);
  return c.st;
}

/* ---- Launch -------------------------------------------------------------- */

static kiln_status launch(kiln_stream *stream, const bags *b,
                          const kiln_workspace *workspace)
{
  const kiln_segmented_reduce_desc *desc = b->desc;
  const plan *p = &b->plan;
  const kiln_launch_config config = {
      .stream = stream,
      .grid = {(uint32_t)p->blocks, (uint32_t)p->strips, 1},
      .block.x = p->spec.value[p->by_rows ? (int)SEGMENTED_ROWS_BLOCK
                                          : (int)SEGMENTED_BLOCK]};
  kiln_status st = KILN_OK;
  kiln__call c;

  if (p->strips > 65535)
    return kiln__fail(KILN_EINVAL, "reduce parts of the columns",
                      "kiln_segmented_reduce: width is too large");
  KILN_TRY(kiln__call_open(&c, stream, &p->spec, workspace, p->need));
  if (p->by_rows)
    st = KILN_LAUNCH(c.set->kernel[0], &config, KILN__USER_ARG(c.args),
                     KILN_ARG(desc->offsets.data), KILN_ARG(desc->n_segments),
                     KILN_ARG(desc->length), KILN_ARG(desc->index.data),
                     KILN_ARG(b->width), KILN_ARG(b->leading), KILN_ARG(p->per),
                     KILN_ARG(c.storage.descriptors), KILN_ARG(c.epoch),
                     KILN_ARG(b->out.data));
  else
    st = KILN_LAUNCH(c.set->kernel[0], &config, KILN__USER_ARG(c.args),
                     KILN_ARG(desc->offsets.data), KILN_ARG(desc->n_segments),
                     KILN_ARG(desc->index.data), KILN_ARG(p->per),
                     KILN_ARG(c.storage.descriptors), KILN_ARG(c.epoch),
                     KILN_ARG(b->extra), KILN_ARG(b->out.data),
                     KILN_ARG(b->out2.data));
  kiln__storage_close(&c.storage);

done:
  return st;
}

static kiln_status offsets_in_range(kiln_stream *stream, const bags *b,
                                    const kiln_workspace *workspace)
{
  const kiln_segmented_reduce_desc *desc = b->desc;
  const kiln__range offsets = {b->call,       "offsets",
                               desc->offsets, desc->n_segments + 1,
                               b->items + 1,  true},
                    index = {b->call,       "index", desc->index,
                             desc->n_index, desc->n, false};
  kiln_status st = KILN_OK;

  KILN_TRY(kiln__in_range(stream, &offsets, workspace));
  if (kiln__given(desc->index))
    st = kiln__in_range(stream, &index, workspace);

done:
  return st;
}

static kiln_status run(kiln_stream *stream, const bags *b,
                       const kiln_workspace *workspace)
{
  const kiln_segmented_reduce_desc *desc = b->desc;
  kiln_status st = KILN_OK;

  if (desc->n_segments == 0)
    return KILN_OK;
  if (desc->checked && kiln__given(desc->offsets))
    KILN_TRY(offsets_in_range(stream, b, workspace));
  st = b->is_matrix ? kiln__rows_run(stream, &b->matrix, workspace)
                    : launch(stream, b, workspace);

done:
  return st;
}

KILN__DEFINE_OPERATION(kiln_segmented_reduce, kiln_segmented_reduce_desc, bags,
                       prepare, run)

/* ---- Extremes, and means and variances ----------------------------------- */

/* Ends the argument checks of a reduction of segments of single elements. */
static kiln_status finish(bags *b, kiln__checker *c, const kiln_stream *stream,
                          const kiln_workspace *workspace)
{
  b->desc = &b->own;
  b->width = b->leading = 1;
  check_layout(c, b);
  kiln__check_input(c, "x", &b->own.x, b->own.n);
  if (kiln__check_workspace(c, workspace) == KILN_OK)
    make_plan(b, stream);
  return c->st;
}

/* Returns the desc of kiln_segmented_reduce() for the same segments as another
 * desc. */
#define SEGMENTS_OF(other)                                                     \
  (kiln_segmented_reduce_desc)                                                 \
  {                                                                            \
    .x = (other)->x, .n = (other)->n, .n_segments = (other)->n_segments,       \
    .offsets = (other)->offsets, .length = (other)->length,                    \
    .checked = (other)->checked, .code = (other)->code                         \
  }

static kiln_status prepare_extremum(bags *b, const kiln_stream *stream,
                                    const kiln_segmented_arg_reduce_desc *desc,
                                    const kiln_workspace *workspace)
{
  static const char call[] = "kiln_segmented_arg_reduce";
  kiln__checker c;

  if (kiln__check_begin(&c, call, stream, desc) != KILN_OK)
    return c.st;
  *b = (bags){.call = call,
              .kind = kiln__extremum_kind(desc->op),
              .own = SEGMENTS_OF(desc),
              .out = desc->value,
              .out2 = desc->index};
  kiln__check_extremum(&c, desc->op, &b->out, &b->out2, desc->n_segments);
  return finish(b, &c, stream, workspace);
}

KILN__DEFINE_OPERATION(kiln_segmented_arg_reduce,
                       kiln_segmented_arg_reduce_desc, bags, prepare_extremum,
                       run)

static kiln_status
prepare_moments(bags *b, const kiln_stream *stream,
                const kiln_segmented_mean_variance_desc *desc,
                const kiln_workspace *workspace)
{
  static const char call[] = "kiln_segmented_mean_variance";
  kiln__checker c;

  if (kiln__check_begin(&c, call, stream, desc) != KILN_OK)
    return c.st;
  *b = (bags){.call = call,
              .kind = KILN__REDUCTION_MOMENTS,
              .own = SEGMENTS_OF(desc),
              .out = desc->mean,
              .out2 = desc->variance,
              .extra = desc->correction};
  kiln__check_moments(&c, &b->out, &b->out2, desc->correction,
                      desc->n_segments);
  return finish(b, &c, stream, workspace);
}

KILN__DEFINE_OPERATION(kiln_segmented_mean_variance,
                       kiln_segmented_mean_variance_desc, bags, prepare_moments,
                       run)

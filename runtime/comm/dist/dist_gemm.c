/* dist_gemm.c -- matrix products on a grid of ranks.
 *
 * Problem: D = alpha A B + beta C, where rank (r, c) of a grid holds block (r, c)
 * of each matrix.
 *
 * Idea: the sum over k is divided into panels. For each panel, the ranks that hold
 * these columns of A send them along their grid row, and the ranks that hold these
 * rows of B send them along their grid column. Each rank then adds the product of
 * the two panels to its block of D. A panel ends where a block of A or of B ends,
 * so it has one owner per grid row and one per grid column.
 *
 * Invariant: before panel t, the block holds beta C and the products of the panels
 * before t. The panels are added in the order of k on all ranks.
 *
 * If D has the type of the sums and there is no epilogue, D itself holds the sums.
 * Otherwise they stay in temporary memory, and the last product stores D.
 *
 * Cost: each rank receives its row of A and its column of B once. While the device
 * multiplies two panels, the next two arrive. A pair of ranks shares a row or a
 * column of the grid but never both, so one exchange moves A and B. Source: van de
 * Geijn and Watts, SUMMA: Scalable Universal Matrix Multiplication Algorithm,
 * 1997. */
#include "overlap.h"

#include <stdlib.h>

/* Most columns of A per panel. */
enum { MOST_WIDTH = 1024 };

/* One panel of the sum over k. */
typedef struct panel {
  uint64_t first, width; /* its part of k */
  uint32_t column, row;  /* grid column with its part of A, grid row with B's */
} panel;

/* A matrix that is cut along k. `other` is its other size, m or n. */
typedef struct strip {
  const kiln_gemm_matrix *whole;
  bool along; /* elements along k are consecutive */
  uint64_t other;
  uint64_t first, length; /* this rank's part of k */
} strip;

typedef struct product {
  kiln__dist *d;
  kiln_gemm_desc desc; /* of this rank */
  kiln_dtype sums;     /* type of the sums */
  uint32_t rows, columns, row, column;
  strip a, b;
  bool direct; /* D holds the sums */
  uint64_t n_panels;
  size_t slot_a[2], slot_b[2], sum, inner, inner_size, total;
} product;

uint64_t kiln_dist_part(uint64_t n, uint32_t parts, uint32_t part,
                        uint64_t *length)
{
  uint64_t first, next;

  if (length != NULL)
    *length = 0;
  if (parts == 0 || part >= parts)
    return n;
  first = n / parts * part + n % parts * part / parts;
  next = part + 1 == parts
             ? n
             : n / parts * (part + 1) + n % parts * (part + 1) / parts;
  if (length != NULL)
    *length = next - first;
  return first;
}

/* ---- Panels -------------------------------------------------------------- */

/* Returns the part of k that holds index i, and the index behind it. */
static uint32_t part_with(uint64_t k, uint32_t parts, uint64_t i, uint64_t *end)
{
  uint32_t part = 0;

  for (;; part++) {
    uint64_t length;
    const uint64_t first = kiln_dist_part(k, parts, part, &length);

    *end = first + length;
    if (i < *end)
      return part;
  }
}

/* The panel that begins at index `first` of k. */
static panel panel_at(const product *p, uint64_t first)
{
  uint64_t end_a = 0, end_b = 0;
  panel t = {.first = first};
  uint64_t end = first + MOST_WIDTH;

  t.column = part_with(p->desc.k, p->columns, first, &end_a);
  t.row = part_with(p->desc.k, p->rows, first, &end_b);
  end = end < end_a ? end : end_a;
  end = end < end_b ? end : end_b;
  t.width = end - first;
  return t;
}

/* A panel of a matrix, at the start of a slot. */
static kiln_gemm_matrix panel_matrix(const strip *s, CUdeviceptr slot)
{
  return (kiln_gemm_matrix){.data = slot,
                            .type = s->whole->type,
                            .order = s->whole->order,
                            .transposed = s->whole->transposed};
}

/* The product of panel t from slots at base + slot. */
static kiln_gemm_desc panel_product(const product *p, const panel *t,
                                    uint64_t step, CUdeviceptr base)
{
  const kiln_gemm_matrix sums = {.data = base + p->sum, .type = p->sums};
  const bool first = t->first == 0, last = t->first + t->width == p->desc.k;
  kiln_gemm_desc own = p->desc;

  own.k = t->width;
  own.a = panel_matrix(&p->a, base + p->slot_a[step % 2]);
  own.b = panel_matrix(&p->b, base + p->slot_b[step % 2]);
  if (!first) {
    own.beta = 1;
    own.c = p->direct ? own.d : sums;
  }
  if (!last && !p->direct) {
    own.d = sums;
    own.epilogue = NULL;
    for (int k = 0; k < KILN_GEMM_MAX_INPUTS; k++)
      own.in[k].x.type = KILN_DTYPE_NONE;
  }
  return own;
}

/* ---- Checks and sizes ---------------------------------------------------- */

static kiln_dtype type_of_sums(kiln_dtype type)
{
  if (type == KILN_I8)
    return KILN_I32;
  return type == KILN_F64 ? KILN_F64 : KILN_F32;
}

static strip make_strip(const kiln_gemm_matrix *m, kiln_gemm_order along,
                        uint64_t other, uint64_t first, uint64_t length)
{
  return (strip){.whole = m,
                 .along = (m->order == along) != m->transposed,
                 .other = other,
                 .first = first,
                 .length = length};
}

static kiln_status check_desc(const kiln__dist *d, const kiln_gemm_desc *desc,
                              uint32_t rows)
{
  if (rows == 0 || (uint32_t)d->comm->ranks % rows != 0)
    return kiln__comm_fail(KILN_EINVAL, "pass a divisor of the number of ranks",
                           "%d ranks cannot be a grid of %u rows",
                           d->comm->ranks, rows);
  if (desc->batch > 1 || desc->a.pointers != 0 || desc->b.pointers != 0 ||
      desc->c.pointers != 0 || desc->d.pointers != 0)
    return kiln__comm_fail(KILN_EINVAL, "make one call per product",
                           "a product of a group of ranks has no batch");
  return KILN_OK;
}

/* Distance between the starts of consecutive rows or columns. */
static uint64_t leading_of(const strip *s)
{
  if (s->whole->leading != 0)
    return s->whole->leading;
  return s->along ? s->length : s->other;
}

static kiln_status check_strip(const strip *s, const char *name)
{
  if (s->length == 0 || s->other == 0)
    return KILN_OK;
  if (s->whole->data == 0)
    return kiln__comm_fail(KILN_EINVAL, NULL, "the address of %s is 0", name);
  if (leading_of(s) < (s->along ? s->length : s->other))
    return kiln__comm_fail(KILN_EINVAL, NULL,
                           "the leading dimension of %s is smaller than a row",
                           name);
  return KILN_OK;
}

/* What all ranks must agree on. */
typedef struct agreed {
  uint64_t m, n, k;
  uint32_t rows, type_a, type_b, layout;
} agreed;

static agreed to_agree(const product *p)
{
  const kiln_gemm_desc *const e = &p->desc;

  return (agreed){.m = e->m,
                  .n = e->n,
                  .k = e->k,
                  .rows = p->rows,
                  .type_a = (uint32_t)e->a.type,
                  .type_b = (uint32_t)e->b.type,
                  .layout = (uint32_t)p->a.along | (uint32_t)p->b.along << 1};
}

/* Compares the sizes with those of all other ranks. */
static kiln_status compare_sizes(const product *p)
{
  kiln_comm *const comm = p->d->comm;
  const agreed mine = to_agree(p);
  agreed *const all = calloc((size_t)comm->ranks, sizeof *all);
  kiln_status st;

  if (all == NULL)
    return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory");
  st = kiln_comm_share(comm, &mine, sizeof mine, all);
  for (int q = 0; q < comm->ranks && st == KILN_OK; q++) {
    const agreed *const a = &all[q];
    const uint32_t row = (uint32_t)q / p->columns;
    const uint32_t column = (uint32_t)q % p->columns;

    if (a->k != mine.k || a->rows != mine.rows || a->type_a != mine.type_a ||
        a->type_b != mine.type_b || a->layout != mine.layout ||
        (row == p->row && a->m != mine.m) ||
        (column == p->column && a->n != mine.n))
      st = kiln__comm_break(comm, q,
                            "rank %d passes other sizes, types or orders to a "
                            "matrix product than rank %d",
                            q, comm->rank);
  }
  free(all);
  return st;
}

/* Largest workspace of the products of panels; counts the panels. */
static kiln_status measure_panels(product *p)
{
  const CUdeviceptr nowhere = (CUdeviceptr)1 << 62;
  kiln_status st = KILN_OK;
  panel t;

  for (uint64_t at = 0; at < p->desc.k && st == KILN_OK; at += t.width) {
    size_t size = 0;
    kiln_gemm_desc own;

    t = panel_at(p, at);
    own = panel_product(p, &t, p->n_panels++, nowhere);
    st = kiln_gemm_workspace(p->d->stream, &own, &size);
    p->inner_size = size > p->inner_size ? size : p->inner_size;
  }
  return st;
}

/* Fills the members of a product and lays out its temporary memory. */
static kiln_status prepare(product *p, uint32_t rows)
{
  const uint32_t rank = (uint32_t)p->d->comm->rank;
  kiln_gemm_desc *const e = &p->desc;
  uint64_t first, length, width;
  size_t size = kiln_dtype_size(e->a.type);
  kiln_status st = check_desc(p->d, e, rows);

  if (st != KILN_OK)
    return st;
  p->rows = rows;
  p->columns = (uint32_t)p->d->comm->ranks / rows;
  p->row = rank / p->columns;
  p->column = rank % p->columns;
  first = kiln_dist_part(e->k, p->columns, p->column, &length);
  p->a = make_strip(&e->a, KILN_ROW_MAJOR, e->m, first, length);
  first = kiln_dist_part(e->k, rows, p->row, &length);
  p->b = make_strip(&e->b, KILN_COLUMN_MAJOR, e->n, first, length);
  p->sums = type_of_sums(e->a.type);
  p->direct = e->d.type == p->sums && e->epilogue == NULL;
  st = check_strip(&p->a, "a");
  if (st == KILN_OK)
    st = check_strip(&p->b, "b");
  if (st == KILN_OK)
    st = compare_sizes(p);
  if (st != KILN_OK)
    return st;
  width = e->k < MOST_WIDTH ? e->k : MOST_WIDTH;
  for (int k = 0; k < 2; k++) {
    p->slot_a[k] = kiln__dist_place(&p->total, e->m, width * size);
    p->slot_b[k] = kiln__dist_place(&p->total, e->n, width * size);
  }
  if (!p->direct)
    p->sum = kiln__dist_place(&p->total, e->m, e->n * kiln_dtype_size(p->sums));
  st = measure_panels(p);
  p->inner = kiln__dist_place(&p->total, p->inner_size, 1);
  return st;
}

/* ---- Transport ----------------------------------------------------------- */

/* Copies this rank's part of a panel to its slot without gaps. */
static kiln_status pack(const strip *s, const panel *t, CUdeviceptr slot,
                        kiln_stream *stream)
{
  const size_t size = kiln_dtype_size(s->whole->type);
  const uint64_t leading = leading_of(s);
  const uint64_t at = t->first - s->first;
  const kiln_extent extent = {.width = (s->along ? t->width : s->other) * size,
                              .height = s->along ? s->other : t->width,
                              .src_pitch = leading * size};

  if (extent.width == 0 || extent.height == 0)
    return KILN_OK;
  return kiln_copy_2d_on_device_async(
      stream, slot, s->whole->data + (s->along ? at : at * leading) * size,
      &extent);
}

/* Rank q, which shares the grid row (for A) or column (for B) with this one, has
 * the panel if `has`, and this rank has it if `mine`. */
static void plan_block(const kiln__trade *b, int q, bool mine, bool has,
                       CUdeviceptr slot, uint64_t size)
{
  if (mine) {
    b->from[q] = slot;
    b->sizes[q] = size;
  } else if (has) {
    b->to[q] = slot;
    b->to_sizes[q] = size;
  }
}

/* Brings the panels of A and B to the slots of a step. */
static kiln_status fetch(const product *p, kiln__overlap *o, const panel *t,
                         uint64_t step)
{
  kiln_comm *const comm = p->d->comm;
  const size_t size = kiln_dtype_size(p->desc.a.type);
  const CUdeviceptr a = p->d->scratch + p->slot_a[step % 2];
  const CUdeviceptr b = p->d->scratch + p->slot_b[step % 2];
  const bool has_a = p->column == t->column, has_b = p->row == t->row;
  kiln__trade plan;
  kiln_status st = kiln__trade_create(&plan, comm);

  if (st != KILN_OK)
    return st;
  if (has_a)
    COMM_TRY(pack(&p->a, t, a, o->moves));
  if (has_b)
    COMM_TRY(pack(&p->b, t, b, o->moves));
  for (int q = 0; q < comm->ranks; q++) {
    const uint32_t row = (uint32_t)q / p->columns;
    const uint32_t column = (uint32_t)q % p->columns;

    if (q == comm->rank)
      continue;
    if (row == p->row)
      plan_block(&plan, q, has_a, column == t->column, a,
                 p->desc.m * t->width * size);
    if (column == p->column)
      plan_block(&plan, q, has_b, row == t->row, b,
                 p->desc.n * t->width * size);
  }
  st = kiln__trade_run(&plan, comm, o->moves);

done:
  free(plan.from);
  return st;
}

/* ---- The product --------------------------------------------------------- */

/* Queues the product of the panels of a step. */
static kiln_status multiply(const product *p, const panel *t, uint64_t step)
{
  const kiln_gemm_desc own = panel_product(p, t, step, p->d->scratch);
  const kiln_workspace workspace = {p->d->scratch + p->inner, p->inner_size};

  return kiln_gemm(p->d->stream, &own, p->inner_size > 0 ? &workspace : NULL);
}

static kiln_status run_panels(const product *p, kiln__overlap *o)
{
  panel t = panel_at(p, 0), next = t;
  kiln_status st = fetch(p, o, &t, 0);

  for (uint64_t step = 0; step < p->n_panels && st == KILN_OK; step++) {
    st = multiply(p, &t, step);
    if (st == KILN_OK)
      st = kiln__overlap_computed(o, p->d, step);
    if (st == KILN_OK && step + 1 < p->n_panels) {
      next = panel_at(p, t.first + t.width);
      st = kiln__overlap_wait(o, step + 1);
      if (st == KILN_OK)
        st = fetch(p, o, &next, step + 1);
    }
    t = next;
  }
  return st;
}

kiln_status kiln_dist_gemm_sized(kiln_comm *comm, kiln_stream *stream,
                                 const kiln_gemm_desc *desc, uint32_t rows,
                                 size_t desc_size)
{
  kiln__overlap overlap = {.moves = NULL};
  kiln__dist d;
  product p = {.d = &d};
  kiln_status st = kiln__dist_begin(&d, comm, stream, desc, desc_size, &p.desc,
                                    sizeof p.desc);

  if (st != KILN_OK)
    return st;
  COMM_TRY(prepare(&p, rows));
  COMM_TRY(kiln__dist_scratch(&d, p.total));
  COMM_TRY(kiln__overlap_open(&overlap, &d));
  if (p.n_panels == 0)
    COMM_TRY(kiln_gemm(stream, &p.desc, NULL));
  else
    COMM_TRY(run_panels(&p, &overlap));
  COMM_TRY(kiln_stream_synchronize(stream));

done:
  kiln__overlap_close(&overlap);
  return kiln__dist_end(&d, st);
}

kiln_status kiln_dist_gemm_workspace_sized(kiln_comm *comm, kiln_stream *stream,
                                           const kiln_gemm_desc *desc,
                                           uint32_t rows, size_t *bytes,
                                           size_t desc_size)
{
  kiln__dist d;
  product p = {.d = &d};
  kiln_status st = kiln__dist_size_begin(&d, comm, stream, desc, desc_size,
                                         &p.desc, sizeof p.desc, bytes);

  if (st != KILN_OK)
    return st;
  st = prepare(&p, rows);
  if (st == KILN_OK)
    *bytes = p.total;
  return kiln__comm_leave(comm, st);
}

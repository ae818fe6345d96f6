/* bench_comm_scaling.c -- the second half of `kiln bench comm`: distributed
 * operations on 1, 2, 4, ... ranks of the same group.
 *
 * The sum, the dot product and the scan keep the size per rank, and the others the
 * size of the whole problem. The speed-up is the work per time, relative to that of
 * one rank. */
#include "bench/bench_comm.h"

#include <kiln/distributed.h>

#include <math.h>

enum { FIELDS = 4, OUTPUTS = 3 };

/* One operation on some ranks. The threads of all ranks share it; only rank 0
 * writes the result. */
typedef struct problem {
  const struct operation *what;
  uint64_t n; /* size of the whole problem */
  unsigned repeats;
  double ms;
} problem;

/* The arrays of one rank. */
typedef struct block {
  uint64_t n;
  CUdeviceptr x[FIELDS], out[OUTPUTS];
  kiln_gemm_desc gemm;
  uint32_t rows; /* of the grid of ranks */
} block;

typedef struct operation {
  const char *name, *unit;
  bool per_rank;  /* the size grows with the number of ranks */
  unsigned scale; /* the size is 2^(elements * scale / 12) */
  unsigned fields, outputs;
  comm_call_fn call;
} operation;

static kiln_status call_sum(comm_rank *r, void *user)
{
  const block *const b = user;

  return kiln_dist_reduce(
      r->comm, r->stream,
      &(kiln_reduce_desc){.x = {.in = {{b->x[0], KILN_F32}}},
                          .n = b->n,
                          .out = {b->out[0], KILN_F32}});
}

static kiln_status call_dot(comm_rank *r, void *user)
{
  const block *const b = user;

  return kiln_dist_dot(r->comm, r->stream,
                       &(kiln_dot_desc){.x = {b->x[0], KILN_F32},
                                        .y = {b->x[1], KILN_F32},
                                        .n = b->n,
                                        .out = {b->out[0], KILN_F32}});
}

static kiln_status call_scan(comm_rank *r, void *user)
{
  const block *const b = user;

  return kiln_dist_scan(r->comm, r->stream,
                        &(kiln_scan_desc){.x = {.in = {{b->x[0], KILN_U32}}},
                                          .n = b->n,
                                          .out = {b->out[0], KILN_U32}});
}

static kiln_status call_sort(comm_rank *r, void *user)
{
  const block *const b = user;

  return kiln_dist_sort(r->comm, r->stream,
                        &(kiln_sort_desc){.keys_in = {b->x[0], KILN_U32},
                                          .keys_out = {b->out[0], KILN_U32},
                                          .n = b->n});
}

static kiln_status call_bodies(comm_rank *r, void *user)
{
  const block *const b = user;
  kiln_all_pairs_desc d = {
      .n = b->n,
      .common = "const float dx = s.x - t.x, dy = s.y - t.y, dz = s.z - t.z;"
                "const float r = rsqrtf(1e-4f + dz * dz + dy * dy + dx * dx);"
                "const float f = s.w * (r * r * r);",
      .expr = {"f * dx", "f * dy", "f * dz"},
      .code = {.fast_math = true}};

  for (int k = 0; k < FIELDS; k++)
    d.target[k] = (kiln_array){b->x[k], KILN_F32};
  for (int k = 0; k < OUTPUTS; k++)
    d.out[k] = (kiln_array){b->out[k], KILN_F32};
  return kiln_dist_all_pairs(r->comm, r->stream, &d);
}

static kiln_status call_gemm(comm_rank *r, void *user)
{
  const block *const b = user;

  return kiln_dist_gemm(r->comm, r->stream, &b->gemm, b->rows);
}

static const operation operations[] = {
    {"sum f32", "elements", true, 12, 1, 1, call_sum},
    {"dot f32", "elements", true, 12, 2, 1, call_dot},
    {"scan u32", "elements", true, 12, 1, 1, call_scan},
    {"sort u32", "keys", false, 12, 1, 1, call_sort},
    {"n-body f32", "bodies", false, 8, FIELDS, OUTPUTS, call_bodies},
    {"gemm f32", "rows", false, 6, 2, 1, call_gemm},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

/* ---- Arrays -------------------------------------------------------------- */

/* Chooses the grid and describes the blocks of this rank. */
static void shape_gemm(block *b, kiln_comm *comm, uint64_t side)
{
  const int size = kiln_comm_size(comm);
  const uint32_t ranks = size > 0 ? (uint32_t)size : 1;
  const uint32_t me = (uint32_t)kiln_comm_rank(comm);
  kiln_gemm_desc *const d = &b->gemm;
  uint64_t deep = 0, high = 0;
  uint32_t columns;

  b->rows = 1;
  for (uint32_t rows = 1; rows * rows <= ranks; rows++)
    b->rows = ranks % rows == 0 ? rows : b->rows;
  columns = ranks / b->rows; /* at least 1 */
  *d = (kiln_gemm_desc){.k = side, .alpha = 1};
  (void)kiln_dist_part(side, b->rows, me / columns, &d->m);
  (void)kiln_dist_part(side, columns, me % columns, &d->n);
  (void)kiln_dist_part(side, columns, me % columns, &deep);
  (void)kiln_dist_part(side, b->rows, me / columns, &high);
  d->a.type = d->b.type = d->d.type = KILN_F32;
  b->n = d->m * deep > high * d->n ? d->m * deep : high * d->n;
  b->n = b->n > d->m * d->n ? b->n : d->m * d->n;
}

static kiln_status fill(const comm_rank *r, const operation *what, block *b,
                        unsigned k)
{
  const bool keys = what->call == call_sort || what->call == call_scan;

  CLI_TRY(kiln_memory_alloc(&b->x[k], kiln_comm_device(r->comm),
                            (b->n + 1) * sizeof(float)));
  return kiln__bench_fill_input(
      r->stream, b->x[k], keys ? KILN_U32 : KILN_F32, b->n,
      keys ? "hash(i)" : "float(hash(i) >> 40) * 0x1p-24f",
      &(bench_input){BENCH_UNIFORM,
                     (uint64_t)kiln_comm_rank(r->comm) * 16 + k});
}

static kiln_status make_block(const comm_rank *r, const problem *p, block *b)
{
  const operation *const what = p->what;

  (void)kiln_dist_part(p->n, (uint32_t)kiln_comm_size(r->comm),
                       (uint32_t)kiln_comm_rank(r->comm), &b->n);
  if (what->call == call_gemm)
    shape_gemm(b, r->comm, p->n);
  for (unsigned k = 0; k < what->fields; k++)
    CLI_TRY(fill(r, what, b, k));
  for (unsigned k = 0; k < what->outputs; k++)
    CLI_TRY(kiln_memory_alloc(&b->out[k], kiln_comm_device(r->comm),
                              (b->n + 1) * sizeof(float)));
  b->gemm.a.data = b->x[0];
  b->gemm.b.data = b->x[1];
  b->gemm.d.data = b->out[0];
  return KILN_OK;
}

static void free_block(const comm_rank *r, const block *b)
{
  kiln_device *const device = kiln_comm_device(r->comm);

  for (int k = 0; k < FIELDS; k++)
    (void)kiln_memory_free(device, b->x[k]);
  for (int k = 0; k < OUTPUTS; k++)
    (void)kiln_memory_free(device, b->out[k]);
}

/* What each rank does. */
static kiln_status run_rank(kiln_comm *comm, void *user)
{
  problem *const p = user;
  comm_rank r = {.comm = comm, .repeats = p->repeats};
  block b = {.n = 0};
  double ms = 0;
  kiln_status st = kiln_stream_create(&r.stream, kiln_comm_device(comm), NULL);

  if (st == KILN_OK)
    st = make_block(&r, p, &b);
  if (st == KILN_OK)
    st = kiln_stream_synchronize(r.stream);
  if (st == KILN_OK)
    st = kiln__bench_comm_time(&r, p->what->call, &b, &ms);
  if (kiln_comm_rank(comm) == 0)
    p->ms = ms;
  free_block(&r, &b);
  kiln_stream_free(r.stream);
  return st;
}

/* ---- The table ----------------------------------------------------------- */

static void add_row(cli_table *t, cJSON *rows, const problem *p, int ranks,
                    double speedup)
{
  cJSON *const row = kiln__cli_json_item(rows);

  kiln__cli_cells(t, "%s\t%d\t%llu\t%s\t%.4f\t%.2f", p->what->name, ranks,
                  (unsigned long long)p->n, p->what->unit, p->ms, speedup);
  JSON_TEXT(row, "operation", p->what->name);
  JSON_NUMBER(row, "ranks", ranks);
  JSON_NUMBER(row, "n", p->n);
  JSON_NUMBER(row, "ms", p->ms);
  JSON_NUMBER(row, "speedup", speedup);
}

/* Measures one operation on 1, 2, 4, ... and all ranks. */
static kiln_status one_operation(const operation *what, const cli_ranks *all,
                                 unsigned repeats, unsigned elements,
                                 const kiln_comm_opts *opts, cli_table *t,
                                 cJSON *rows)
{
  const uint64_t size = UINT64_C(1) << (elements * what->scale / 12);
  double one = 0;

  for (int ranks = 1; ranks <= all->size;
       ranks = ranks < all->size && 2 * ranks > all->size ? all->size
                                                          : 2 * ranks) {
    problem p = {.what = what,
                 .n = what->per_rank ? size * (uint64_t)ranks : size,
                 .repeats = repeats};
    cli_ranks part;
    kiln_status st = kiln__cli_ranks_part(&part, all, ranks, opts);

    if (st == KILN_OK)
      st = kiln__cli_ranks_run(&part, run_rank, &p);
    kiln__cli_ranks_part_close(&part);
    CLI_TRY(st);
    if (ranks == 1)
      one = p.ms;
    if (all->first == 0)
      add_row(t, rows, &p, ranks,
              (what->per_rank ? ranks : 1) * one / fmax(p.ms, 1e-9));
  }
  return KILN_OK;
}

kiln_status kiln__bench_comm_scaling(cli *c, const cli_ranks *all,
                                     const bench_options *o,
                                     const kiln_comm_opts *opts,
                                     unsigned elements, cJSON *rows)
{
  static const char *const heads[] = {"operation", ">ranks",    ">n", "of",
                                      ">ms",       ">speed-up", NULL};
  cli_table table;

  kiln__cli_table(&table, c, heads);
  for (size_t i = 0; i < OPERATIONS; i++) {
    if (kiln__bench_chosen(o, operations[i].name))
      CLI_TRY(one_operation(&operations[i], all, o->repeats, elements, opts,
                            &table, rows));
  }
  if (all->first == 0 && table.n > 0) {
    puts("\nDistributed operations; speed-up: work per time relative to one "
         "rank");
    kiln__cli_table_print(&table, 0);
  }
  return KILN_OK;
}

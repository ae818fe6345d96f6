/* dist_pairs.c -- expressions over all pairs of targets and sources on a ring of
 * ranks.
 *
 * Problem: each target meets all sources, but a rank holds only its block of
 * them.
 *
 * Idea: in step s, rank r computes the pairs of its targets with the sources of
 * rank (r + s) % ranks. Meanwhile it sends this block to the rank before it, and
 * receives the next one from the rank behind it. Two buffers take turns.
 *
 * Invariant: after step s, the results hold the pairs with the blocks of the ranks
 * r, r + 1, ..., r + s. The first step stores its results; all others combine
 * theirs with them.
 *
 * An epilogue must see the complete results, so it runs as a map afterwards. The
 * results stay in temporary memory until then.
 *
 * Cost: each block travels ranks - 1 times, while the device works on n * m pairs.
 * Source of the ring: Plimpton, Fast Parallel Algorithms for Short-Range Molecular
 * Dynamics, 1995 (force decomposition), and Nyland, Harris and Prins, Fast N-Body
 * Simulation with CUDA, GPU Gems 3, 2007. */
#include "overlap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a rank tells the others: its numbers of targets and of sources. */
typedef struct lengths {
  uint64_t n, m;
} lengths;

typedef struct pairs {
  kiln__dist *d;
  kiln_all_pairs_desc desc;
  lengths *all;              /* of all ranks */
  uint64_t first_i, first_j; /* parameters of the expressions */
  kiln__dist_code code;
  const kiln_array *fields; /* of the sources: KILN_MAX_INPUTS arrays */
  kiln_dtype type;          /* of the results before the epilogue */
  unsigned outputs;
  bool direct; /* the outputs hold the results */
  size_t buffer[2], results[KILN_MAX_OUTPUTS], inner, inner_size, total;
} pairs;

/* ---- Checks and sizes ---------------------------------------------------- */

static unsigned count_arrays(const kiln_array *list, unsigned most)
{
  unsigned n = 0;

  while (n < most && list[n].type != KILN_DTYPE_NONE)
    n++;
  return n;
}

static bool has_epilogue(const kiln_all_pairs_desc *desc)
{
  for (int k = 0; k < KILN_MAX_OUTPUTS; k++) {
    if (desc->epilogue[k] != NULL)
      return true;
  }
  return false;
}

static kiln_dtype result_type(const kiln_all_pairs_desc *desc)
{
  const kiln_dtype type =
      desc->type != KILN_DTYPE_NONE ? desc->type : desc->out[0].type;

  return type == KILN_F16 || type == KILN_BF16 ? KILN_F32 : type;
}

static kiln_status check_desc(const pairs *p)
{
  const kiln_all_pairs_desc *const desc = &p->desc;
  const unsigned targets = count_arrays(desc->target, KILN_MAX_INPUTS);

  if (desc->index.type != KILN_DTYPE_NONE)
    return kiln__comm_fail(KILN_EINVAL, "leave index without a type",
                           "a group of ranks computes no indices of extremes");
  if (desc->accumulate && !p->direct)
    return kiln__comm_fail(KILN_EINVAL, "accumulate by a kiln_map() afterwards",
                           "a group of ranks cannot accumulate with an "
                           "epilogue or outputs of several types");
  if (has_epilogue(desc) && targets + p->outputs > KILN_MAX_INPUTS)
    return kiln__comm_fail(KILN_EINVAL,
                           "compute the epilogue by a kiln_map() afterwards",
                           "an epilogue has %u fields and results, and at most "
                           "%d are possible",
                           targets + p->outputs, KILN_MAX_INPUTS);
  return KILN_OK;
}

/* Sets the members that follow from the desc. */
static kiln_status describe(pairs *p)
{
  const kiln_param added[] = {{"first_i", KILN_U64, &p->first_i, false},
                              {"first_j", KILN_U64, &p->first_j, false}};
  kiln_all_pairs_desc *const desc = &p->desc;

  p->fields =
      desc->source[0].type != KILN_DTYPE_NONE ? desc->source : desc->target;
  if (p->fields == desc->target)
    desc->m = desc->n;
  p->outputs = count_arrays(desc->out, KILN_MAX_OUTPUTS);
  p->type = result_type(desc);
  p->direct = !has_epilogue(desc);
  for (unsigned k = 0; k < p->outputs; k++)
    p->direct = p->direct && desc->out[k].type == p->type;
  return kiln__dist_extend(&p->code, &desc->code, added, 2);
}

/* Offset of field f in a buffer with m sources. The offset behind the last field
 * is the size of the block. */
static size_t field_at(const pairs *p, unsigned f, uint64_t m)
{
  size_t total = 0, at = 0;

  for (unsigned k = 0; k <= f; k++)
    at = kiln__dist_place(
        &total, m,
        k < KILN_MAX_INPUTS ? kiln_dtype_size(p->fields[k].type) : 0);
  return at;
}

static size_t block_size(const pairs *p, uint64_t m)
{
  return field_at(p, count_arrays(p->fields, KILN_MAX_INPUTS), m);
}

static kiln_status share_lengths(pairs *p)
{
  const lengths mine = {p->desc.n, p->desc.m};
  const int ranks = p->d->comm->ranks;
  kiln_status st;

  p->all = calloc((size_t)ranks, sizeof *p->all);
  if (p->all == NULL)
    return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory");
  st = kiln_comm_share(p->d->comm, &mine, sizeof mine, p->all);
  for (int q = 0; q < p->d->comm->rank; q++)
    p->first_i += p->all[q].n;
  return st;
}

/* ---- Steps --------------------------------------------------------------- */

/* The rank with the sources of a step. */
static int source_of(const pairs *p, int step)
{
  return (p->d->comm->rank + step) % p->d->comm->ranks;
}

/* The operation of a step, with the temporary memory at `base`. Also sets the
 * parameter first_j. */
static kiln_all_pairs_desc step_desc(pairs *p, int step, CUdeviceptr base)
{
  kiln_all_pairs_desc own = p->desc;
  const int from = source_of(p, step);
  const uint64_t m = p->all[from].m;

  p->first_j = 0;
  for (int q = 0; q < from; q++)
    p->first_j += p->all[q].m;
  own.code = p->code.all;
  own.type = p->type;
  memset(own.epilogue, 0, sizeof own.epilogue);
  for (unsigned k = 0; k < p->outputs && !p->direct; k++)
    own.out[k] = (kiln_array){base + p->results[k], p->type};
  if (step == 0)
    return own;
  own.accumulate = true;
  own.symmetry = KILN_PAIRS_UNRELATED;
  own.m = m;
  for (unsigned f = 0; f < KILN_MAX_INPUTS; f++) {
    own.source[f].type = p->fields[f].type;
    own.source[f].data = base + p->buffer[step % 2] + field_at(p, f, m);
  }
  return own;
}

static kiln_status prepare(pairs *p)
{
  const CUdeviceptr nowhere = (CUdeviceptr)1 << 62;
  uint64_t longest = 0;
  kiln_status st = describe(p);

  if (st == KILN_OK)
    st = check_desc(p);
  if (st == KILN_OK)
    st = share_lengths(p);
  if (st != KILN_OK)
    return st;
  for (int q = 0; q < p->d->comm->ranks; q++)
    longest = p->all[q].m > longest ? p->all[q].m : longest;
  for (int k = 0; k < 2; k++)
    p->buffer[k] = kiln__dist_place(&p->total, block_size(p, longest), 1);
  for (unsigned k = 0; k < p->outputs && !p->direct; k++)
    p->results[k] =
        kiln__dist_place(&p->total, p->desc.n, kiln_dtype_size(p->type));
  for (int step = 0; step < p->d->comm->ranks && st == KILN_OK; step++) {
    const kiln_all_pairs_desc own = step_desc(p, step, nowhere);
    size_t size = 0;

    st = kiln_all_pairs_workspace(p->d->stream, &own, &size);
    p->inner_size = size > p->inner_size ? size : p->inner_size;
  }
  p->inner = kiln__dist_place(&p->total, p->inner_size, 1);
  return st;
}

/* Queues the pairs of a step. */
static kiln_status compute(pairs *p, int step)
{
  const kiln_all_pairs_desc own = step_desc(p, step, p->d->scratch);
  const kiln_workspace workspace = {p->d->scratch + p->inner, p->inner_size};

  if (step > 0 && own.m == 0)
    return KILN_OK;
  return kiln_all_pairs(p->d->stream, &own,
                        p->inner_size > 0 ? &workspace : NULL);
}

/* Copies this rank's sources to the first buffer. */
static kiln_status pack(const pairs *p, kiln_stream *stream)
{
  const CUdeviceptr to = p->d->scratch + p->buffer[0];
  const uint64_t m = p->desc.m;
  kiln_status st = KILN_OK;

  for (unsigned f = 0; f < KILN_MAX_INPUTS && st == KILN_OK; f++) {
    const size_t size = m * kiln_dtype_size(p->fields[f].type);

    if (size > 0)
      st = kiln_copy_on_device_async(stream, to + field_at(p, f, m),
                                     p->fields[f].data, size);
    if (p->fields[f].type == KILN_DTYPE_NONE)
      break;
  }
  return st;
}

/* Sends the block of a step to the rank before this one, and receives that of the
 * next step from the rank behind. */
static kiln_status pass_on(const pairs *p, kiln__overlap *o, int step)
{
  kiln_comm *const comm = p->d->comm;
  const int before = (comm->rank + comm->ranks - 1) % comm->ranks;
  const int behind = (comm->rank + 1) % comm->ranks;
  kiln__trade t;
  kiln_status st = kiln__trade_create(&t, comm);

  if (st != KILN_OK)
    return st;
  t.from[before] = p->d->scratch + p->buffer[step % 2];
  t.sizes[before] = block_size(p, p->all[source_of(p, step)].m);
  t.to[behind] = p->d->scratch + p->buffer[(step + 1) % 2];
  t.to_sizes[behind] = block_size(p, p->all[source_of(p, step + 1)].m);
  st = kiln__trade_run(&t, comm, o->moves);
  free(t.from);
  return st;
}

static kiln_status run_ring(pairs *p, kiln__overlap *o)
{
  kiln_status st = pack(p, o->moves);

  for (int step = 0; step < p->d->comm->ranks && st == KILN_OK; step++) {
    st = compute(p, step);
    if (st == KILN_OK)
      st = kiln__overlap_computed(o, p->d, (uint64_t)step);
    if (st == KILN_OK && step + 1 < p->d->comm->ranks) {
      st = kiln__overlap_wait(o, (uint64_t)step + 1);
      if (st == KILN_OK)
        st = pass_on(p, o, step);
    }
  }
  return st;
}

/* ---- Epilogues ----------------------------------------------------------- */

/* Writes the expression of output k of the map that follows: its epilogue, with
 * the fields of the target in t and the results in r0, r1 and so on. */
static void write_epilogue(const pairs *p, unsigned k, char *text, size_t size)
{
  static const char *const names[] = {"x",  "y",  "z",  "w",
                                      "x4", "x5", "x6", "x7"};
  const unsigned fields = count_arrays(p->desc.target, KILN_MAX_INPUTS);
  size_t at = 0;

  if (p->desc.epilogue[k] == NULL) {
    (void)snprintf(text, size, "x%u", has_epilogue(&p->desc) ? fields + k : k);
    return;
  }
  at += (size_t)snprintf(text + at, size - at, "[&] { struct {");
  for (unsigned f = 0; f < fields; f++)
    at += (size_t)snprintf(text + at, size - at, " decltype(x%u) %s;", f,
                           names[f]);
  at += (size_t)snprintf(text + at, size - at, " } t = {");
  for (unsigned f = 0; f < fields; f++)
    at += (size_t)snprintf(text + at, size - at, "%sx%u", f > 0 ? ", " : "", f);
  at += (size_t)snprintf(text + at, size - at, "}; (void)t;");
  for (unsigned q = 0; q < p->outputs; q++)
    at +=
        (size_t)snprintf(text + at, size - at,
                         " const auto r%u = x%u; (void)r%u;", q, fields + q, q);
  (void)snprintf(text + at, size - at, " return (%s); }()",
                 p->desc.epilogue[k]);
}

/* Returns the size of the text of an epilogue, which has at most 90 characters per
 * array besides the user's. */
static size_t epilogue_size(const pairs *p, unsigned k)
{
  const char *const text = p->desc.epilogue[k];

  return 128 + 90 * (KILN_MAX_INPUTS + KILN_MAX_OUTPUTS) +
         (text != NULL ? strlen(text) : 0);
}

/* Computes the outputs from the results. */
static kiln_status store_results(pairs *p)
{
  const unsigned fields = has_epilogue(&p->desc)
                              ? count_arrays(p->desc.target, KILN_MAX_INPUTS)
                              : 0;
  kiln_map_desc map = {.n = p->desc.n, .code = p->code.all};
  char *text[KILN_MAX_OUTPUTS] = {NULL};
  kiln_status st = KILN_OK;

  for (unsigned f = 0; f < fields; f++)
    map.in[f] = p->desc.target[f];
  for (unsigned k = 0; k < p->outputs; k++) {
    map.in[fields + k] = (kiln_array){p->d->scratch + p->results[k], p->type};
    map.out[k] = p->desc.out[k];
    text[k] = malloc(epilogue_size(p, k));
    if (text[k] == NULL)
      COMM_TRY(kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory"));
    write_epilogue(p, k, text[k], epilogue_size(p, k));
    map.expr[k] = text[k];
  }
  st = kiln_map(p->d->stream, &map, NULL);

done:
  for (unsigned k = 0; k < p->outputs; k++)
    free(text[k]);
  return st;
}

/* ---- Calls --------------------------------------------------------------- */

kiln_status kiln_dist_all_pairs_sized(kiln_comm *comm, kiln_stream *stream,
                                      const kiln_all_pairs_desc *desc,
                                      size_t desc_size)
{
  kiln__overlap overlap = {.moves = NULL};
  kiln__dist d;
  pairs p = {.d = &d};
  kiln_status st = kiln__dist_begin(&d, comm, stream, desc, desc_size, &p.desc,
                                    sizeof p.desc);

  if (st != KILN_OK)
    return st;
  COMM_TRY(prepare(&p));
  COMM_TRY(kiln__dist_scratch(&d, p.total));
  COMM_TRY(kiln__overlap_open(&overlap, &d));
  COMM_TRY(run_ring(&p, &overlap));
  if (!p.direct)
    COMM_TRY(store_results(&p));
  COMM_TRY(kiln_stream_synchronize(stream));

done:
  kiln__overlap_close(&overlap);
  free(p.all);
  return kiln__dist_end(&d, st);
}

kiln_status kiln_dist_all_pairs_workspace_sized(kiln_comm *comm,
                                                kiln_stream *stream,
                                                const kiln_all_pairs_desc *desc,
                                                size_t *bytes, size_t desc_size)
{
  kiln__dist d;
  pairs p = {.d = &d};
  kiln_status st = kiln__dist_size_begin(&d, comm, stream, desc, desc_size,
                                         &p.desc, sizeof p.desc, bytes);

  if (st != KILN_OK)
    return st;
  st = prepare(&p);
  if (st == KILN_OK)
    *bytes = p.total;
  free(p.all);
  return kiln__comm_leave(comm, st);
}

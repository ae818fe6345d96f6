/* dist_index.c -- gather and scatter by indices within the whole array.
 *
 * Problem: element i of a rank refers to an element that any rank may hold.
 *
 * Idea: the owner of an index follows from the first indices of all blocks by a
 * binary search. A stable split of the positions i by owner orders the requests.
 * The ranks share how many requests each has for each other one. Requests then
 * travel to their owners as indices within the block. For a gather the owners
 * send the elements back, in the order of the requests; for a scatter the
 * elements travel with the requests.
 *
 * Invariant: in a round a rank sends at most `quota` requests to each owner, so an
 * owner receives at most ranks * quota of them, however skewed the indices are.
 * The quota is a little more than an even share of the longest block's requests,
 * so spread indices take one round.
 *
 * Cost: per element two reads of the index, a split, and the transport of an
 * index and an element. All elements for one owner take up to `ranks` rounds. */
#include "dist.h"

#include <kiln/gather.h>

#include <stdlib.h>
#include <string.h>

/* Requests per pair of ranks and round beyond an even share. */
enum { SPARE_REQUESTS = 1024 };

/* The sizes that all ranks know of a call. */
typedef struct lengths {
  uint64_t n, block; /* elements to move; elements of the target's block */
} lengths;

/* The parameters of the device functions. */
typedef struct owner_params {
  uint64_t table;
  uint32_t ranks;
  kiln_param list[2];
  kiln_code code;
} owner_params;

/* A call on one rank. Arrays in the temporary memory are offsets until route()
 * has allocated it. */
typedef struct route {
  kiln__dist *d;
  kiln_array index;
  uint64_t n;
  kiln_dtype type; /* of the elements that travel */
  uint64_t quota;
  uint64_t *firsts;            /* first index of each block, and the total */
  uint64_t *counts;            /* [rank * ranks + owner]: requests of a rank */
  uint64_t *starts;            /* [owner]: this rank's first request for it */
  kiln_array positions;        /* i, ordered by owner */
  kiln_array requests, values; /* of this rank, in this order */
  kiln_array incoming, incoming_values; /* of a round, from all ranks */
  owner_params owner;
  CUdeviceptr table, offsets;  /* firsts; results of the split */
  kiln_workspace split, inner; /* of the split; of the owner's operation */
  size_t total;
} route;

/* The functions of the device that find the owner of an index and the index
 * within the owner's block. The table has the first index of each block, and the
 * number of elements. */
static const char owner_code[] =
    "static __device__ unsigned kiln_owner(unsigned long long i,\n"
    "                                      unsigned long long table,\n"
    "                                      unsigned ranks)\n"
    "{\n"
    "  const unsigned long long *const ends =\n"
    "      (const unsigned long long *)table + 1;\n"
    "  unsigned low = 0, high = ranks;\n"
    "  while (low < high) {\n"
    "    const unsigned middle = (low + high) / 2;\n"
    "    if (ends[middle] <= i)\n"
    "      low = middle + 1;\n"
    "    else\n"
    "      high = middle;\n"
    "  }\n"
    "  return low;\n"
    "}\n"
    "static __device__ unsigned long long\n"
    "kiln_within(unsigned long long i, unsigned long long table,\n"
    "            unsigned ranks)\n"
    "{\n"
    "  return i - ((const unsigned long long *)table)[kiln_owner(i, table,\n"
    "                                                            ranks)];\n"
    "}\n";

/* ---- Sizes --------------------------------------------------------------- */

static kiln_dtype index_type(uint64_t n)
{
  return n > UINT32_MAX ? KILN_U64 : KILN_U32;
}

/* Where arrays are assumed while their place is not known yet: far from any array
 * of the caller, so that they overlap none. */
static const CUdeviceptr nowhere = (CUdeviceptr)1 << 62;

static kiln_split_desc split_desc(const route *r)
{
  return (kiln_split_desc){
      .x = {.in = {r->index}, .map = "i", .type = r->positions.type},
      .key = "kiln_owner((unsigned long long)x, kiln_table, kiln_ranks)",
      .parts = (uint32_t)r->d->comm->ranks + 1,
      .n = r->n,
      .out = r->positions,
      .offsets = {r->offsets, KILN_U64},
      .code = r->owner.code};
}

/* Shares the lengths of all blocks. Sets firsts[], *longest to the largest number
 * of requests of a rank, and *block to the longest block. */
static kiln_status share_lengths(route *r, uint64_t block, uint64_t *longest,
                                 uint64_t *longest_block)
{
  const lengths mine = {r->n, block};
  lengths *const all = calloc((size_t)r->d->comm->ranks, sizeof *all);
  kiln_status st;

  if (all == NULL)
    return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory");
  st = kiln_comm_share(r->d->comm, &mine, sizeof mine, all);
  *longest = *longest_block = 0;
  for (int p = 0; p < r->d->comm->ranks; p++) {
    if (all[p].n > *longest)
      *longest = all[p].n;
    if (all[p].block > *longest_block)
      *longest_block = all[p].block;
    r->firsts[p + 1] = r->firsts[p] + all[p].block;
  }
  free(all);
  return st;
}

static void place(route *r, uint64_t longest, uint64_t block)
{
  const uint64_t ranks = (uint64_t)r->d->comm->ranks;
  const uint64_t most = longest / ranks + longest / ranks / 8 + SPARE_REQUESTS;
  const kiln_dtype within = index_type(block);
  const size_t size = kiln_dtype_size(r->type);
  size_t *const total = &r->total;

  r->quota = most < longest ? most : longest;
  r->positions.type = index_type(r->n);
  r->requests.type = r->incoming.type = within;
  r->values.type = r->incoming_values.type = r->type;
  r->table = kiln__dist_place(total, ranks + 1, sizeof(uint64_t));
  r->offsets = kiln__dist_place(total, ranks + 2, sizeof(uint64_t));
  r->positions.data =
      kiln__dist_place(total, r->n, kiln_dtype_size(r->positions.type));
  r->requests.data = kiln__dist_place(total, r->n, kiln_dtype_size(within));
  r->values.data = kiln__dist_place(total, r->n, size);
  r->incoming.data =
      kiln__dist_place(total, ranks * r->quota, kiln_dtype_size(within));
  r->incoming_values.data = kiln__dist_place(total, ranks * r->quota, size);
}

/* Adds the workspaces of the operations on one device. `inner` is the size for
 * that of an owner. */
static kiln_status place_workspaces(route *r, size_t inner)
{
  kiln_split_desc desc = split_desc(r);
  kiln_status st;

  desc.out.data += nowhere;
  desc.offsets.data += nowhere;
  st = kiln_split_workspace(r->d->stream, &desc, &r->split.size);

  if (st != KILN_OK)
    return st;
  r->inner.size = inner;
  r->split.data = kiln__dist_place(&r->total, r->split.size, 1);
  r->inner.data = kiln__dist_place(&r->total, inner, 1);
  return KILN_OK;
}

/* Turns offsets into addresses. */
static kiln_status allocate(route *r)
{
  CUdeviceptr *const addresses[] = {
      &r->table,         &r->offsets,     &r->positions.data,
      &r->requests.data, &r->values.data, &r->incoming.data,
      &r->split.data,    &r->inner.data,  &r->incoming_values.data};
  const kiln_status st = kiln__dist_scratch(r->d, r->total);

  for (size_t k = 0; k < sizeof addresses / sizeof *addresses; k++)
    *addresses[k] += r->d->scratch;
  r->owner.table = r->table;
  return st;
}

static kiln_status check_index(kiln_array index, uint64_t n)
{
  switch (index.type) {
  case KILN_U8:
  case KILN_U16:
  case KILN_I32:
  case KILN_U32:
  case KILN_I64:
  case KILN_U64:
    break;
  default:
    return kiln__comm_fail(KILN_EINVAL, "pass indices of type u32 or u64",
                           "indices have the type %s",
                           kiln_dtype_name(index.type));
  }
  if (n > 0 && index.data == 0)
    return kiln__comm_fail(KILN_EINVAL, NULL, "the address of index is 0");
  return KILN_OK;
}

/* Allocates the numbers of a call. release_numbers() frees them. */
static kiln_status take_numbers(route *r)
{
  const size_t ranks = (size_t)r->d->comm->ranks;

  r->firsts = calloc(ranks + 1, sizeof *r->firsts);
  r->counts = calloc(ranks * ranks, sizeof *r->counts);
  r->starts = calloc(ranks + 2, sizeof *r->starts);
  if (r->firsts == NULL || r->counts == NULL || r->starts == NULL)
    return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory");
  return KILN_OK;
}

static void release_numbers(route *r)
{
  free(r->firsts);
  free(r->counts);
  free(r->starts);
}

/* ---- Requests ------------------------------------------------------------ */

/* Counts the requests for each owner, from the results of the split. */
static kiln_status count_requests(route *r)
{
  const size_t ranks = (size_t)r->d->comm->ranks;
  uint64_t *const mine = calloc(ranks, sizeof *mine);
  kiln_status st = KILN_OK;

  if (mine == NULL)
    return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory");
  if (r->n > 0)
    COMM_TRY(kiln__dist_get(r->d, r->starts, r->offsets,
                            (ranks + 2) * sizeof *r->starts));
  for (size_t owner = 0; owner < ranks; owner++)
    mine[owner] = r->starts[owner + 1] - r->starts[owner];
  if (r->starts[ranks] != r->n)
    COMM_TRY(kiln__comm_fail(
        KILN_EINVAL, "pass indices below the number of elements of all blocks",
        "%llu of %llu indices are not below %llu, the number of elements",
        (unsigned long long)(r->n - r->starts[ranks]), (unsigned long long)r->n,
        (unsigned long long)r->firsts[ranks]));
  st = kiln_comm_share(r->d->comm, mine, ranks * sizeof *mine, r->counts);

done:
  free(mine);
  return st;
}

/* Orders the positions by owner, and computes the requests. */
static kiln_status make_requests(route *r)
{
  const kiln_split_desc split = split_desc(r);
  const kiln_gather_desc within = {
      .x = {.in = {r->index},
            .map = "kiln_within((unsigned long long)x, kiln_table, "
                   "kiln_ranks)",
            .type = r->requests.type},
      .index = r->positions,
      .out = r->requests,
      .n = r->n,
      .n_target = r->n,
      .method = KILN_INDEX_DIRECT,
      .code = r->owner.code};
  kiln_status st = KILN_OK;

  if (r->n > 0) {
    st = kiln__dist_put(r->d, r->table, r->firsts,
                        ((size_t)r->d->comm->ranks + 1) * sizeof *r->firsts);
    if (st == KILN_OK)
      st = kiln_split(r->d->stream, &split, &r->split);
  }
  if (st == KILN_OK)
    st = count_requests(r);
  return st == KILN_OK ? kiln_gather(r->d->stream, &within, NULL) : st;
}

/* ---- Rounds -------------------------------------------------------------- */

/* Number of requests of rank p for an owner in a round. */
static uint64_t share_of(const route *r, int p, int owner, uint64_t round)
{
  const uint64_t all =
      r->counts[(size_t)p * (size_t)r->d->comm->ranks + (size_t)owner];
  const uint64_t at = round * r->quota;

  if (at >= all)
    return 0;
  return all - at < r->quota ? all - at : r->quota;
}

static uint64_t rounds_of(const route *r)
{
  const size_t pairs = (size_t)r->d->comm->ranks * (size_t)r->d->comm->ranks;
  uint64_t most = 0;

  for (size_t k = 0; k < pairs; k++)
    most = r->counts[k] > most ? r->counts[k] : most;
  return most == 0 ? 0 : (most - 1) / r->quota + 1;
}

static uint64_t received_in(const route *r, uint64_t round)
{
  uint64_t sum = 0;

  for (int p = 0; p < r->d->comm->ranks; p++)
    sum += share_of(r, p, r->d->comm->rank, round);
  return sum;
}

/* Moves what a round exchanges: from the array `mine`, in the order of this
 * rank's requests, to the array `theirs` of the owners; or back. */
static kiln_status trade(const route *r, kiln_array mine, kiln_array theirs,
                         uint64_t round, bool back)
{
  kiln_comm *const comm = r->d->comm;
  const size_t size = kiln_dtype_size(mine.type);
  CUdeviceptr at = theirs.data;
  kiln__trade t, reverse;
  kiln_status st = kiln__trade_create(&t, comm);

  if (st != KILN_OK)
    return st;
  for (int p = 0; p < comm->ranks; p++) {
    t.from[p] = mine.data + (r->starts[p] + round * r->quota) * size;
    t.sizes[p] = share_of(r, comm->rank, p, round) * size;
    t.to[p] = at;
    t.to_sizes[p] = share_of(r, p, comm->rank, round) * size;
    at += t.to_sizes[p];
  }
  reverse = (kiln__trade){t.to, t.to_sizes, t.from, t.sizes};
  st = kiln__trade_run(back ? &reverse : &t, comm, r->d->stream);
  free(t.from);
  return st;
}

/* Returns the size of the workspace of the owner's operation. */
typedef kiln_status (*inner_fn)(const route *r, const void *desc, size_t *size);

static void describe_owner(route *r)
{
  owner_params *const o = &r->owner;

  o->ranks = (uint32_t)r->d->comm->ranks;
  o->list[0] = (kiln_param){"kiln_table", KILN_U64, &o->table, false};
  o->list[1] = (kiln_param){"kiln_ranks", KILN_U32, &o->ranks, false};
  o->code =
      (kiln_code){.preamble = owner_code, .params = o->list, .n_params = 2};
}

/* Begins a call: exchanges the lengths and lays out the temporary memory. `block`
 * is the length of this rank's block of the target. */
static kiln_status prepare(route *r, uint64_t block, inner_fn inner,
                           const void *desc)
{
  uint64_t longest = 0, longest_block = 0;
  size_t size = 0;
  kiln_status st = check_index(r->index, r->n);

  if (st == KILN_OK && kiln_dtype_size(r->type) == 0)
    st = kiln__comm_fail(KILN_EINVAL, NULL, "the output has no valid type");
  if (st == KILN_OK)
    st = take_numbers(r);
  if (st == KILN_OK)
    st = share_lengths(r, block, &longest, &longest_block);
  if (st != KILN_OK)
    return st;
  describe_owner(r);
  place(r, longest, longest_block);
  st = inner(r, desc, &size);
  return st == KILN_OK ? place_workspaces(r, size) : st;
}

/* ---- Gather -------------------------------------------------------------- */

/* The gather of an owner from its block, for n requests. */
static kiln_gather_desc owner_gather(const route *r,
                                     const kiln_gather_desc *desc, uint64_t n)
{
  kiln_gather_desc own = *desc;

  own.index = r->incoming;
  own.out = r->incoming_values;
  own.n = n;
  own.method = KILN_INDEX_AUTO;
  own.passes = 0;
  own.checked = false;
  return own;
}

static kiln_status owner_gather_size(const route *r, const void *desc,
                                     size_t *size)
{
  kiln_gather_desc own =
      owner_gather(r, desc, (uint64_t)r->d->comm->ranks * r->quota);

  own.index.data += nowhere;
  own.out.data += nowhere;
  return kiln_gather_workspace(r->d->stream, &own, size);
}

/* Answers the requests of a round. */
static kiln_status answer(const route *r, const kiln_gather_desc *desc,
                          uint64_t round)
{
  kiln_gather_desc own = owner_gather(r, desc, received_in(r, round));
  size_t need = 0;
  kiln_status st;

  if (own.n == 0)
    return KILN_OK;
  st = kiln_gather_workspace(r->d->stream, &own, &need);
  if (need > r->inner.size)
    own.method = KILN_INDEX_DIRECT;
  return st == KILN_OK ? kiln_gather(r->d->stream, &own, &r->inner) : st;
}

static kiln_status gather(route *r, const kiln_gather_desc *desc)
{
  const kiln_scatter_desc store = {.x = {.in = {r->values}},
                                   .index = r->positions,
                                   .out = desc->out,
                                   .n = r->n,
                                   .n_target = r->n,
                                   .method = KILN_INDEX_DIRECT};
  kiln_status st = KILN_OK;

  for (uint64_t round = 0; round < rounds_of(r) && st == KILN_OK; round++) {
    st = trade(r, r->requests, r->incoming, round, false);
    if (st == KILN_OK)
      st = answer(r, desc, round);
    if (st == KILN_OK)
      st = trade(r, r->values, r->incoming_values, round, true);
  }
  if (st == KILN_OK)
    st = kiln_scatter(r->d->stream, &store, NULL);
  return st == KILN_OK ? kiln_stream_synchronize(r->d->stream) : st;
}

/* Begins a gather, and gives the output its type. */
static kiln_status prepare_gather(route *r, kiln_gather_desc *own)
{
  own->out.type = kiln__dist_type(own->out, &own->x);
  r->index = own->index;
  r->n = own->n;
  r->type = own->out.type;
  return prepare(r, own->n_target, owner_gather_size, own);
}

kiln_status kiln_dist_gather_sized(kiln_comm *comm, kiln_stream *stream,
                                   const kiln_gather_desc *desc,
                                   size_t desc_size)
{
  kiln_gather_desc own;
  kiln__dist d;
  route r = {.d = &d};
  kiln_status st =
      kiln__dist_begin(&d, comm, stream, desc, desc_size, &own, sizeof own);

  if (st != KILN_OK)
    return st;
  COMM_TRY(prepare_gather(&r, &own));
  COMM_TRY(allocate(&r));
  COMM_TRY(make_requests(&r));
  COMM_TRY(gather(&r, &own));

done:
  release_numbers(&r);
  return kiln__dist_end(&d, st);
}

kiln_status kiln_dist_gather_workspace_sized(kiln_comm *comm,
                                             kiln_stream *stream,
                                             const kiln_gather_desc *desc,
                                             size_t *bytes, size_t desc_size)
{
  kiln_gather_desc own;
  kiln__dist d;
  route r = {.d = &d};
  kiln_status st = kiln__dist_size_begin(&d, comm, stream, desc, desc_size,
                                         &own, sizeof own, bytes);

  if (st != KILN_OK)
    return st;
  st = prepare_gather(&r, &own);
  if (st == KILN_OK)
    *bytes = r.total;
  release_numbers(&r);
  return kiln__comm_leave(comm, st);
}

/* ---- Scatter ------------------------------------------------------------- */

/* The scatter of an owner to its block, for n requests. */
static kiln_scatter_desc
owner_scatter(const route *r, const kiln_scatter_desc *desc, uint64_t n)
{
  return (kiln_scatter_desc){.x = {.in = {r->incoming_values}},
                             .index = r->incoming,
                             .out = desc->out,
                             .n = n,
                             .n_target = desc->n_target};
}

static kiln_status owner_scatter_size(const route *r, const void *desc,
                                      size_t *size)
{
  kiln_scatter_desc own =
      owner_scatter(r, desc, (uint64_t)r->d->comm->ranks * r->quota);

  own.index.data += nowhere;
  own.x.in[0].data += nowhere;
  return kiln_scatter_workspace(r->d->stream, &own, size);
}

/* Stores the elements of a round. */
static kiln_status store(const route *r, const kiln_scatter_desc *desc,
                         uint64_t round)
{
  kiln_scatter_desc own = owner_scatter(r, desc, received_in(r, round));
  size_t need = 0;
  kiln_status st;

  if (own.n == 0)
    return KILN_OK;
  st = kiln_scatter_workspace(r->d->stream, &own, &need);
  if (need > r->inner.size)
    own.method = KILN_INDEX_DIRECT;
  return st == KILN_OK ? kiln_scatter(r->d->stream, &own, &r->inner) : st;
}

static kiln_status scatter(route *r, const kiln_scatter_desc *desc)
{
  const kiln_gather_desc take = {.x = desc->x,
                                 .index = r->positions,
                                 .out = r->values,
                                 .n = r->n,
                                 .n_target = r->n,
                                 .method = KILN_INDEX_DIRECT,
                                 .code = desc->code};
  kiln_status st = kiln_gather(r->d->stream, &take, NULL);

  for (uint64_t round = 0; round < rounds_of(r) && st == KILN_OK; round++) {
    st = trade(r, r->requests, r->incoming, round, false);
    if (st == KILN_OK)
      st = trade(r, r->values, r->incoming_values, round, false);
    if (st == KILN_OK)
      st = store(r, desc, round);
  }
  return st == KILN_OK ? kiln_stream_synchronize(r->d->stream) : st;
}

/* Begins a scatter, and gives the output its type. */
static kiln_status prepare_scatter(route *r, kiln_scatter_desc *own)
{
  own->out.type = kiln__dist_type(own->out, &own->x);
  r->index = own->index;
  r->n = own->n;
  r->type = own->out.type;
  return prepare(r, own->n_target, owner_scatter_size, own);
}

kiln_status kiln_dist_scatter_sized(kiln_comm *comm, kiln_stream *stream,
                                    const kiln_scatter_desc *desc,
                                    size_t desc_size)
{
  kiln_scatter_desc own;
  kiln__dist d;
  route r = {.d = &d};
  kiln_status st =
      kiln__dist_begin(&d, comm, stream, desc, desc_size, &own, sizeof own);

  if (st != KILN_OK)
    return st;
  COMM_TRY(prepare_scatter(&r, &own));
  COMM_TRY(allocate(&r));
  COMM_TRY(make_requests(&r));
  COMM_TRY(scatter(&r, &own));

done:
  release_numbers(&r);
  return kiln__dist_end(&d, st);
}

kiln_status kiln_dist_scatter_workspace_sized(kiln_comm *comm,
                                              kiln_stream *stream,
                                              const kiln_scatter_desc *desc,
                                              size_t *bytes, size_t desc_size)
{
  kiln_scatter_desc own;
  kiln__dist d;
  route r = {.d = &d};
  kiln_status st = kiln__dist_size_begin(&d, comm, stream, desc, desc_size,
                                         &own, sizeof own, bytes);

  if (st != KILN_OK)
    return st;
  st = prepare_scatter(&r, &own);
  if (st == KILN_OK)
    *bytes = r.total;
  release_numbers(&r);
  return kiln__comm_leave(comm, st);
}

/* collectives.c -- the collectives of comm.h on a wire (wire.h).
 *
 * Idea: all of them are an exchange of blocks between all pairs of ranks, with
 * blocks of length 0 where nothing is to be sent. Blocks pass through a staging
 * area in host memory in chunks. In each round a rank sends one chunk to every
 * rank and receives one from every rank.
 *
 * A reduction sends block p of each rank to rank p, which combines the chunks in
 * the order of the ranks. An all-reduce then joins the blocks.
 *
 * Invariant: both sides of a pair know the length of their blocks from the
 * announcements, so their numbers of rounds agree.
 *
 * Cost: the bytes of an exchange, which no algorithm can reduce, except for
 * broadcasts, whose root sends n elements to each rank. Reductions follow
 * Rabenseifner 2004 (reduce-scatter, then all-gather) with direct exchanges. */
#include "group.h"

#include <stdlib.h>
#include <string.h>

/* A block of device memory per rank, in bytes. */
typedef struct blocks {
  CUdeviceptr data;
  const uint64_t *at, *size;
} blocks;

static char *send_chunk(kiln_comm *comm, int p)
{
  return comm->staging + (size_t)p * KILN_COMM_STAGING;
}

static char *receive_chunk(kiln_comm *comm, int p)
{
  return send_chunk(comm, comm->ranks + p);
}

static kiln_status need_staging(kiln_comm *comm)
{
  if (comm->staging == NULL)
    comm->staging = malloc(2 * (size_t)comm->ranks * KILN_COMM_STAGING);
  if (comm->staging == NULL)
    return kiln__comm_fail(KILN_ENOMEM, "free memory or use fewer ranks",
                           "out of host memory for %d chunks of %zu bytes",
                           2 * comm->ranks, KILN_COMM_STAGING);
  return KILN_OK;
}

/* Returns arrays of one number per rank, all 0; the caller frees them. */
static uint64_t *numbers(const kiln_comm *comm, int arrays)
{
  return calloc((size_t)comm->ranks * (size_t)arrays, sizeof(uint64_t));
}

static kiln_status no_numbers(void)
{
  return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory for counts");
}

/* Returns the size of chunk `round` of a block. */
static size_t chunk_of(uint64_t size, uint64_t round, size_t chunk)
{
  const uint64_t at = round * chunk;

  if (at >= size)
    return 0;
  return size - at < chunk ? (size_t)(size - at) : chunk;
}

static uint64_t rounds_of(const kiln_comm *comm, const uint64_t *out,
                          const uint64_t *in, size_t chunk)
{
  uint64_t most = 0;

  for (int p = 0; p < comm->ranks; p++) {
    if (out[p] > most)
      most = out[p];
    if (in[p] > most)
      most = in[p];
  }
  return (most + chunk - 1) / chunk;
}

/* ---- Checks that all collectives share ----------------------------------- */

/* Checks the group, the stream and an array, and waits for the stream. */
static kiln_status enter(kiln_comm *comm, kiln_stream *stream, kiln_array x,
                         uint64_t n)
{
  kiln_status st;

  if (comm == NULL)
    return kiln__comm_fail(KILN_EINVAL, NULL, "comm is NULL");
  st = kiln__comm_whole(comm);
  if (st != KILN_OK)
    return st;
  if (stream == NULL || kiln_stream_device(stream) != comm->device)
    st = kiln__comm_fail(KILN_EINVAL, "pass a stream of kiln_comm_device()",
                         "stream is NULL or belongs to another device");
  else if (kiln_dtype_size(x.type) == 0)
    st = kiln__comm_fail(KILN_EINVAL, NULL, "the array has no valid type");
  else if (n > 0 && x.data == 0)
    st = kiln__comm_fail(KILN_EINVAL, NULL, "the array's address is 0");
  else if (!kiln__comm_silent(comm)) /* NCCL's work is queued in the stream */
    st = kiln_stream_synchronize(stream);
  if (st == KILN_OK)
    st = need_staging(comm);
  return kiln__comm_leave(comm, st);
}

static kiln_status check_root(kiln_comm *comm, int root)
{
  if (root >= 0 && root < comm->ranks)
    return KILN_OK;
  return kiln__comm_leave(
      comm, kiln__comm_fail(KILN_EINVAL, NULL,
                            "rank %d is not in the group of %d ranks", root,
                            comm->ranks));
}

static kiln_status check_reduction(kiln_comm *comm, kiln_dtype type,
                                   kiln_op_name op)
{
  if (kiln__comm_foldable(type, op))
    return KILN_OK;
  return kiln__comm_leave(
      comm, kiln__comm_fail(KILN_EINVAL,
                            "see kiln_op_name for the types of each operation",
                            "operation %d cannot combine elements of type %s",
                            (int)op, kiln_dtype_name(type)));
}

static kiln_status check_out(kiln_comm *comm, kiln_array in, kiln_array out,
                             uint64_t n)
{
  kiln_status st = KILN_OK;

  if (out.type != in.type)
    st = kiln__comm_fail(KILN_EINVAL, NULL,
                         "the output has the type %s and the input %s",
                         kiln_dtype_name(out.type), kiln_dtype_name(in.type));
  else if (n > 0 && out.data == 0)
    st = kiln__comm_fail(KILN_EINVAL, NULL, "the output's address is 0");
  return kiln__comm_leave(comm, st);
}

/* ---- Exchange of blocks -------------------------------------------------- */

static kiln_status stage_out(kiln_comm *comm, kiln_stream *stream,
                             const blocks *out, uint64_t round, size_t chunk,
                             kiln__piece *pieces)
{
  kiln_status st = KILN_OK;

  for (int p = 0; p < comm->ranks && st == KILN_OK; p++) {
    const size_t size = chunk_of(out->size[p], round, chunk);

    pieces[p].out = send_chunk(comm, p);
    pieces[p].out_size = size;
    if (size > 0)
      st =
          kiln_copy_to_host_async(stream, send_chunk(comm, p),
                                  out->data + out->at[p] + round * chunk, size);
  }
  return st == KILN_OK ? kiln_stream_synchronize(stream) : st;
}

static kiln_status stage_in(kiln_comm *comm, kiln_stream *stream,
                            const blocks *in, uint64_t round, size_t chunk)
{
  kiln_status st = KILN_OK;

  for (int p = 0; p < comm->ranks && st == KILN_OK; p++) {
    const size_t size = chunk_of(in->size[p], round, chunk);

    if (p != comm->rank && size > 0)
      st = kiln_copy_to_device_async(stream,
                                     in->data + in->at[p] + round * chunk,
                                     receive_chunk(comm, p), size);
  }
  return st == KILN_OK ? kiln_stream_synchronize(stream) : st;
}

/* Copies this rank's block for itself. */
static kiln_status move_own(kiln_comm *comm, kiln_stream *stream,
                            const blocks *out, const blocks *in)
{
  const CUdeviceptr from = out->data + out->at[comm->rank];
  const CUdeviceptr to = in->data + in->at[comm->rank];
  const uint64_t size = in->size[comm->rank];

  if (size == 0 || from == to)
    return KILN_OK;
  return kiln_copy_on_device_async(stream, to, from, size);
}

/* Sends out's block p to rank p, and receives in's block p from it. The sizes
 * were announced. */
static kiln_status move(kiln_comm *comm, kiln_stream *stream, const blocks *out,
                        const blocks *in)
{
  const size_t chunk = KILN_COMM_STAGING;
  kiln__piece *const pieces = calloc((size_t)comm->ranks, sizeof *pieces);
  uint64_t rounds = 0; /* of copies through host memory */
  kiln_status st = KILN_OK;

  if (pieces == NULL)
    return kiln__comm_leave(comm, no_numbers());
  if (comm->nccl != NULL) {
    COMM_TRY(kiln__nccl_move(comm, stream, out->data, out->at, out->size,
                             in->data, in->at, in->size));
  } else if (kiln__comm_peers(comm)) {
    COMM_TRY(
        kiln__peer_move(comm, stream,
                        &(kiln__peer_blocks){out->data, in->data, out->at,
                                             out->size, in->at, in->size}));
  } else {
    rounds = rounds_of(comm, out->size, in->size, chunk);
  }
  for (uint64_t round = 0; round < rounds; round++) {
    COMM_TRY(stage_out(comm, stream, out, round, chunk, pieces));
    for (int p = 0; p < comm->ranks; p++) {
      pieces[p].in = receive_chunk(comm, p);
      pieces[p].in_size = chunk_of(in->size[p], round, chunk);
    }
    COMM_TRY(kiln__comm_exchange(comm, pieces));
    COMM_TRY(stage_in(comm, stream, in, round, chunk));
  }
  COMM_TRY(move_own(comm, stream, out, in));
  COMM_TRY(kiln_stream_synchronize(stream));

done:
  free(pieces);
  return kiln__comm_leave(comm, st);
}

static void offsets_of(const kiln_comm *comm, const uint64_t *size,
                       uint64_t *at)
{
  uint64_t sum = 0;

  for (int p = 0; p < comm->ranks; p++) {
    at[p] = sum;
    sum += size[p];
  }
}

static void scaled(const kiln_comm *comm, uint64_t *out, const uint64_t *counts,
                   uint64_t size)
{
  for (int p = 0; p < comm->ranks; p++)
    out[p] = counts[p] * size;
}

static bool same_counts(const kiln_comm *comm, const uint64_t *counts)
{
  for (int p = 1; p < comm->ranks; p++) {
    if (counts[p] != counts[0])
      return false;
  }
  return true;
}

static uint64_t sum_of(const kiln_comm *comm, const uint64_t *counts)
{
  uint64_t sum = 0;

  for (int p = 0; p < comm->ranks; p++)
    sum += counts[p];
  return sum;
}

static kiln_status check_counts(kiln_comm *comm, const uint64_t *counts)
{
  if (counts != NULL)
    return KILN_OK;
  return kiln__comm_leave(comm, kiln__comm_fail(KILN_EINVAL,
                                                "pass one count per rank",
                                                "counts is NULL"));
}

/* ---- Data that are only moved -------------------------------------------- */

kiln_status kiln_comm_broadcast(kiln_comm *comm, kiln_stream *stream,
                                kiln_array x, uint64_t n, int root)
{
  kiln__call call = {.kind = KILN__CALL_BROADCAST,
                     .type = (uint32_t)x.type,
                     .n = n,
                     .root = root};
  uint64_t *counts = NULL;
  kiln_status st;
  blocks out, in;

  st = enter(comm, stream, x, n);
  if (st == KILN_OK)
    st = check_root(comm, root);
  if (st != KILN_OK)
    return st;
  counts = numbers(comm, 3);
  if (counts == NULL)
    return kiln__comm_leave(comm, no_numbers());
  out = (blocks){x.data, counts, counts + comm->ranks};
  in = (blocks){x.data, counts, counts + 2 * comm->ranks};
  for (int p = 0; p < comm->ranks; p++) {
    if (comm->rank == root && p != root)
      counts[comm->ranks + p] = n * kiln_dtype_size(x.type);
  }
  if (comm->rank != root)
    counts[2 * comm->ranks + root] = n * kiln_dtype_size(x.type);
  st = kiln__comm_announce(comm, &call, out.size, in.size);
  if (st == KILN_OK && comm->nccl != NULL)
    st = kiln__comm_leave(
        comm, kiln__nccl_broadcast(comm, stream, x.data,
                                   n * kiln_dtype_size(x.type), root));
  else if (st == KILN_OK)
    st = move(comm, stream, &out, &in);
  free(counts);
  return st;
}

/* Joins blocks whose sizes were announced: the block of this rank is at `from`,
 * and block p is stored at to + at[p]. */
static kiln_status gather(kiln_comm *comm, kiln_stream *stream,
                          CUdeviceptr from, CUdeviceptr to, const uint64_t *at,
                          const uint64_t *size)
{
  uint64_t *const own = numbers(comm, 2);
  kiln_status st;

  if (own == NULL)
    return kiln__comm_leave(comm, no_numbers());
  for (int p = 0; p < comm->ranks; p++)
    own[comm->ranks + p] = size[comm->rank];
  st = move(comm, stream, &(blocks){from, own, own + comm->ranks},
            &(blocks){to, at, size});
  free(own);
  return st;
}

kiln_status kiln_comm_all_gather(kiln_comm *comm, kiln_stream *stream,
                                 kiln_array in, kiln_array out,
                                 const uint64_t *counts)
{
  kiln__call call = {.kind = KILN__CALL_ALL_GATHER, .type = (uint32_t)in.type};
  uint64_t *at = NULL, *size, *own;
  kiln_status st;

  st = enter(comm, stream, in, 0);
  if (st == KILN_OK)
    st = check_counts(comm, counts);
  if (st != KILN_OK)
    return st;
  call.n = sum_of(comm, counts);
  st = check_out(comm, in, out, call.n);
  if (st != KILN_OK)
    return st;
  at = numbers(comm, 3);
  if (at == NULL)
    return kiln__comm_leave(comm, no_numbers());
  size = at + comm->ranks;
  own = size + comm->ranks;
  scaled(comm, size, counts, kiln_dtype_size(in.type));
  offsets_of(comm, size, at);
  for (int p = 0; p < comm->ranks; p++)
    own[p] = size[comm->rank];
  st = kiln__comm_announce(comm, &call, own, size);
  if (st == KILN_OK && comm->nccl != NULL && same_counts(comm, counts))
    st = kiln__comm_leave(
        comm, kiln__nccl_all_gather(comm, stream, in.data, out.data, size[0]));
  else if (st == KILN_OK)
    st = gather(comm, stream, in.data, out.data, at, size);
  free(at);
  return st;
}

/* Takes the sizes that the other ranks announced, and checks that they fit. */
static kiln_status take_sizes(kiln_comm *comm, uint64_t *size, uint64_t limit)
{
  for (int p = 0; p < comm->ranks; p++)
    size[p] = comm->peers[p].got.sends;
  if (sum_of(comm, size) <= limit)
    return KILN_OK;
  return kiln__comm_leave(
      comm,
      kiln__comm_fail(KILN_EINVAL, "pass a larger output",
                      "this rank receives %llu bytes, and its output has space "
                      "for %llu",
                      (unsigned long long)sum_of(comm, size),
                      (unsigned long long)limit));
}

kiln_status kiln_comm_all_to_all(kiln_comm *comm, kiln_stream *stream,
                                 kiln_array in, const uint64_t *sends,
                                 kiln_array out, const uint64_t *receives,
                                 uint64_t capacity, uint64_t *received)
{
  const kiln__call call = {.kind = KILN__CALL_ALL_TO_ALL,
                           .type = (uint32_t)in.type};
  const uint64_t width = kiln_dtype_size(in.type);
  uint64_t *at, *size, *in_at, *in_size;
  kiln_status st;

  st = enter(comm, stream, in, 0);
  if (st == KILN_OK)
    st = check_counts(comm, sends);
  if (st == KILN_OK)
    st = check_out(comm, in, out, 0);
  if (st != KILN_OK)
    return st;
  at = numbers(comm, 4);
  if (at == NULL)
    return kiln__comm_leave(comm, no_numbers());
  size = at + comm->ranks;
  in_at = size + comm->ranks;
  in_size = in_at + comm->ranks;
  scaled(comm, size, sends, width);
  offsets_of(comm, size, at);
  for (int p = 0; p < comm->ranks; p++)
    in_size[p] = receives != NULL ? receives[p] * width : KILN__ANY_SIZE;
  COMM_TRY(kiln__comm_announce(comm, &call, size, in_size));
  if (receives == NULL)
    COMM_TRY(take_sizes(comm, in_size, capacity * width));
  offsets_of(comm, in_size, in_at);
  COMM_TRY(move(comm, stream, &(blocks){in.data, at, size},
                &(blocks){out.data, in_at, in_size}));
  for (int p = 0; received != NULL && p < comm->ranks; p++)
    received[p] = in_size[p] / width;

done:
  free(at);
  return st;
}

kiln_status kiln__comm_trade(kiln_comm *comm, kiln_stream *stream,
                             const uint64_t *from, const uint64_t *sizes,
                             const uint64_t *to, const uint64_t *to_sizes)
{
  const kiln__call call = {.kind = KILN__CALL_TRADE};
  const kiln_array bytes = {0, KILN_U8};
  kiln_status st = enter(comm, stream, bytes, 0);

  if (st == KILN_OK)
    st = kiln__comm_announce(comm, &call, sizes, to_sizes);
  if (st != KILN_OK)
    return st;
  return move(comm, stream, &(blocks){0, from, sizes},
              &(blocks){0, to, to_sizes});
}

/* ---- Reductions ---------------------------------------------------------- */

/* A reduction of blocks: rank p receives the combined block p. */
typedef struct reduction {
  kiln_array in;
  CUdeviceptr out;           /* this rank's block of the result */
  const uint64_t *at, *size; /* blocks of `in` in bytes */
  kiln_op_name op;
  size_t chunk; /* bytes per chunk */
  char *sums;   /* accumulators of a chunk */
} reduction;

/* Combines the chunks of all ranks in their order. The result replaces this
 * rank's own chunk. */
static void combine(kiln_comm *comm, const reduction *r, size_t size)
{
  const size_t n = size / kiln_dtype_size(r->in.type);

  for (int p = 0; p < comm->ranks; p++) {
    const char *const x =
        p == comm->rank ? send_chunk(comm, p) : receive_chunk(comm, p);

    if (p == 0)
      kiln__comm_widen(r->in.type, r->sums, x, n);
    else
      kiln__comm_fold(r->in.type, r->op, r->sums, x, n);
  }
  kiln__comm_narrow(r->in.type, send_chunk(comm, comm->rank), r->sums, n);
}

static kiln_status reduce_round(kiln_comm *comm, kiln_stream *stream,
                                const reduction *r, uint64_t round,
                                kiln__piece *pieces)
{
  const blocks out = {r->in.data, r->at, r->size};
  const size_t own = chunk_of(r->size[comm->rank], round, r->chunk);
  kiln_status st = stage_out(comm, stream, &out, round, r->chunk, pieces);

  for (int p = 0; p < comm->ranks; p++) {
    pieces[p].in = receive_chunk(comm, p);
    pieces[p].in_size = own;
  }
  if (st == KILN_OK)
    st = kiln__comm_exchange(comm, pieces);
  if (st != KILN_OK || own == 0)
    return st;
  combine(comm, r, own);
  st = kiln_copy_to_device_async(stream, r->out + round * r->chunk,
                                 send_chunk(comm, comm->rank), own);
  return st == KILN_OK ? kiln_stream_synchronize(stream) : st;
}

/* Performs a reduction whose sizes were announced. Chunks are half as large as
 * the staging area, because accumulators of f16 have twice its size. */
static kiln_status reduce_blocks(kiln_comm *comm, kiln_stream *stream,
                                 reduction *r)
{
  const size_t width = kiln_dtype_size(r->in.type);
  kiln__piece *pieces;
  kiln_status st = KILN_OK;
  uint64_t rounds;

  if (kiln__nccl_reduces(comm, r->in.type, r->op))
    return kiln__comm_leave(comm, kiln__nccl_reduce_blocks(comm, stream, r->in,
                                                           r->out, r->at,
                                                           r->size, r->op));
  pieces = calloc((size_t)comm->ranks, sizeof *pieces);
  r->chunk = KILN_COMM_STAGING / 2 / width * width;
  r->sums = malloc(KILN_COMM_STAGING);
  rounds = rounds_of(comm, r->size, r->size, r->chunk);
  if (pieces == NULL || r->sums == NULL)
    st = no_numbers();
  for (uint64_t round = 0; round < rounds && st == KILN_OK; round++)
    st = reduce_round(comm, stream, r, round, pieces);
  free(r->sums);
  free(pieces);
  return kiln__comm_leave(comm, st);
}

/* Announces a reduction with blocks of `size` bytes. */
static kiln_status announce_reduction(kiln_comm *comm, kiln__call *call,
                                      kiln_array in, kiln_op_name op,
                                      const uint64_t *size)
{
  uint64_t *const own = numbers(comm, 1);
  kiln_status st;

  if (own == NULL)
    return kiln__comm_leave(comm, no_numbers());
  for (int p = 0; p < comm->ranks; p++)
    own[p] = size[comm->rank];
  call->type = (uint32_t)in.type;
  call->op = (uint32_t)op;
  st = kiln__comm_announce(comm, call, size, own);
  free(own);
  return st;
}

kiln_status kiln_comm_reduce_scatter(kiln_comm *comm, kiln_stream *stream,
                                     kiln_array in, kiln_array out,
                                     const uint64_t *counts, kiln_op_name op)
{
  kiln__call call = {.kind = KILN__CALL_REDUCE_SCATTER};
  reduction r = {.in = in, .out = out.data, .op = op};
  uint64_t *at;
  kiln_status st;

  st = enter(comm, stream, in, 0);
  if (st == KILN_OK)
    st = check_counts(comm, counts);
  if (st == KILN_OK)
    st = check_reduction(comm, in.type, op);
  if (st == KILN_OK)
    st = check_out(comm, in, out, counts[comm->rank]);
  if (st != KILN_OK)
    return st;
  at = numbers(comm, 2);
  if (at == NULL)
    return kiln__comm_leave(comm, no_numbers());
  r.at = at;
  r.size = at + comm->ranks;
  scaled(comm, at + comm->ranks, counts, kiln_dtype_size(in.type));
  offsets_of(comm, r.size, at);
  call.n = sum_of(comm, counts);
  st = announce_reduction(comm, &call, in, op, r.size);
  if (st == KILN_OK)
    st = reduce_blocks(comm, stream, &r);
  free(at);
  return st;
}

kiln_status kiln_comm_all_reduce(kiln_comm *comm, kiln_stream *stream,
                                 kiln_array in, kiln_array out, uint64_t n,
                                 kiln_op_name op)
{
  kiln__call call = {.kind = KILN__CALL_ALL_REDUCE, .n = n};
  reduction r = {.in = in, .op = op};
  uint64_t *at, *size, width;
  kiln_status st;

  st = enter(comm, stream, in, n);
  if (st == KILN_OK)
    st = check_reduction(comm, in.type, op);
  if (st == KILN_OK)
    st = check_out(comm, in, out, n);
  if (st != KILN_OK)
    return st;
  if (kiln__comm_silent(comm) && kiln__nccl_reduces(comm, in.type, op))
    return kiln__comm_leave(
        comm, kiln__nccl_all_reduce(comm, stream, in, out.data, n, op));
  at = numbers(comm, 2);
  if (at == NULL)
    return kiln__comm_leave(comm, no_numbers());
  size = at + comm->ranks;
  width = kiln_dtype_size(in.type);
  for (int p = 0; p < comm->ranks; p++)
    size[p] = (n / (uint64_t)comm->ranks +
               ((uint64_t)p < n % (uint64_t)comm->ranks)) *
              width;
  offsets_of(comm, size, at);
  r.at = at;
  r.size = size;
  r.out = out.data + at[comm->rank];
  st = announce_reduction(comm, &call, in, op, size);
  if (st == KILN_OK && kiln__nccl_reduces(comm, in.type, op)) {
    free(at);
    return kiln__comm_leave(
        comm, kiln__nccl_all_reduce(comm, stream, in, out.data, n, op));
  }
  if (st == KILN_OK)
    st = reduce_blocks(comm, stream, &r);
  if (st == KILN_OK)
    st = gather(comm, stream, r.out, out.data, at, size);
  free(at);
  return st;
}

kiln_status kiln_comm_reduce(kiln_comm *comm, kiln_stream *stream,
                             kiln_array in, kiln_array out, uint64_t n,
                             kiln_op_name op, int root)
{
  kiln__call call = {.kind = KILN__CALL_REDUCE, .n = n, .root = root};
  reduction r = {.in = in, .out = out.data, .op = op};
  uint64_t *at;
  kiln_status st;

  st = enter(comm, stream, in, n);
  if (st == KILN_OK)
    st = check_root(comm, root);
  if (st == KILN_OK)
    st = check_reduction(comm, in.type, op);
  if (st == KILN_OK && comm->rank == root)
    st = check_out(comm, in, out, n);
  if (st != KILN_OK)
    return st;
  at = numbers(comm, 2);
  if (at == NULL)
    return kiln__comm_leave(comm, no_numbers());
  r.at = at;
  r.size = at + comm->ranks;
  at[comm->ranks + root] = n * kiln_dtype_size(in.type);
  st = announce_reduction(comm, &call, in, op, r.size);
  if (st == KILN_OK)
    st = reduce_blocks(comm, stream, &r);
  free(at);
  return st;
}

/* ---- Pairs, barriers, host memory ---------------------------------------- */

/* Sends or receives the announcement of a pair, and compares the sizes. */
static kiln_status agree(kiln_comm *comm, bool receive, int peer, uint64_t size)
{
  kiln__call mine = {.kind = KILN__CALL_PAIR, .sends = size}, theirs = mine;
  char *const staged = send_chunk(comm, peer);
  kiln_status st;

  memcpy(staged, &mine, sizeof mine);
  st = kiln__comm_pair(comm, receive, peer, staged, sizeof mine);
  memcpy(&theirs, staged, sizeof theirs);
  if (st != KILN_OK || theirs.sends == size)
    return st;
  return kiln__comm_break(comm, peer,
                          "rank %d sends %llu bytes to rank %d, which expects "
                          "%llu",
                          peer, (unsigned long long)theirs.sends, comm->rank,
                          (unsigned long long)size);
}

static kiln_status pair(kiln_comm *comm, kiln_stream *stream, kiln_array x,
                        uint64_t n, int peer, bool receive)
{
  const uint64_t size = n * kiln_dtype_size(x.type);
  kiln_status st = enter(comm, stream, x, n);

  if (st == KILN_OK)
    st = check_root(comm, peer);
  if (st != KILN_OK)
    return st;
  if (peer == comm->rank)
    return kiln__comm_leave(
        comm, kiln__comm_fail(KILN_EINVAL, NULL, "peer is this rank itself"));
  if (!kiln__comm_silent(comm))
    st = agree(comm, receive, peer, size);
  if (comm->nccl != NULL) {
    if (st == KILN_OK && size > 0)
      st = kiln__nccl_pair(comm, stream, receive, peer, x.data, size);
    return kiln__comm_leave(comm, st);
  }
  if (kiln__comm_peers(comm)) {
    if (st == KILN_OK && size > 0)
      st = kiln__peer_pair(comm, stream, receive, peer, x.data, size);
    return kiln__comm_leave(comm, st);
  }
  for (uint64_t at = 0; at < size && st == KILN_OK; at += KILN_COMM_STAGING) {
    const size_t part =
        chunk_of(size, at / KILN_COMM_STAGING, KILN_COMM_STAGING);
    char *const staged = send_chunk(comm, peer);

    if (!receive)
      st = kiln_copy_to_host_async(stream, staged, x.data + at, part);
    if (st == KILN_OK)
      st = kiln_stream_synchronize(stream);
    if (st == KILN_OK)
      st = kiln__comm_pair(comm, receive, peer, staged, part);
    if (st == KILN_OK && receive)
      st = kiln_copy_to_device_async(stream, x.data + at, staged, part);
  }
  if (st == KILN_OK)
    st = kiln_stream_synchronize(stream);
  return kiln__comm_leave(comm, st);
}

kiln_status kiln_comm_send(kiln_comm *comm, kiln_stream *stream, kiln_array x,
                           uint64_t n, int peer)
{
  return pair(comm, stream, x, n, peer, false);
}

kiln_status kiln_comm_receive(kiln_comm *comm, kiln_stream *stream,
                              kiln_array x, uint64_t n, int peer)
{
  return pair(comm, stream, x, n, peer, true);
}

kiln_status kiln_comm_barrier(kiln_comm *comm)
{
  const kiln__call call = {.kind = KILN__CALL_BARRIER};

  if (comm == NULL)
    return kiln__comm_fail(KILN_EINVAL, NULL, "comm is NULL");
  return kiln__comm_announce(comm, &call, NULL, NULL);
}

/* Fills the pieces of kiln_comm_share(), and posts them. */
static kiln_status share_pieces(kiln_comm *comm, const void *mine, size_t size,
                                void *all)
{
  kiln__piece *const pieces = calloc((size_t)comm->ranks, sizeof *pieces);
  kiln_status st;

  if (pieces == NULL)
    return no_numbers();
  if (size > 0)
    memcpy(send_chunk(comm, 0), mine, size);
  for (int p = 0; p < comm->ranks; p++)
    pieces[p] =
        (kiln__piece){send_chunk(comm, 0), receive_chunk(comm, p), size, size};
  st = kiln__comm_exchange(comm, pieces);
  for (int p = 0; p < comm->ranks && st == KILN_OK && size > 0; p++)
    memcpy((char *)all + (size_t)p * size,
           p == comm->rank ? mine : receive_chunk(comm, p), size);
  free(pieces);
  return st;
}

kiln_status kiln_comm_share(kiln_comm *comm, const void *mine, size_t size,
                            void *all)
{
  const kiln__call call = {.kind = KILN__CALL_SHARE, .n = size};
  kiln_status st;

  if (comm == NULL)
    return kiln__comm_fail(KILN_EINVAL, NULL, "comm is NULL");
  st = kiln__comm_whole(comm);
  if (st != KILN_OK)
    return st;
  if (size > KILN_COMM_STAGING || (size > 0 && (mine == NULL || all == NULL)))
    st = kiln__comm_fail(
        KILN_EINVAL, "use kiln_comm_all_gather() for more data",
        "mine or all is NULL, or size is above %zu bytes", KILN_COMM_STAGING);
  else
    st = need_staging(comm);
  if (st == KILN_OK)
    st = kiln__comm_announce(comm, &call, NULL, NULL);
  if (st == KILN_OK)
    st = share_pieces(comm, mine, size, all);
  return kiln__comm_leave(comm, st);
}

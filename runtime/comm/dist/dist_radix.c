/* dist_radix.c -- finds the parts of a sorted whole by the top bits of the keys,
 * and moves them.
 *
 * Problem: each rank is to receive a part of the sorted whole that has exactly the
 * length of its block, before anything is sorted.
 *
 * Idea: a histogram of the top bits of all keys shows the bins in which the cuts
 * between the parts lie. While these bins hold many keys, a histogram of the next
 * bits divides them further. If few keys are left, the candidates, they are sorted,
 * and cut.c finds the exact cuts in them. If no bits are left, all keys of a bin
 * are equal, and their numbers on each rank decide. A cut then has a threshold on
 * each rank: keys before the threshold lie before the cut, keys behind it behind,
 * and of the keys that equal it the first `equal` ones lie before the cut. One
 * stable split by the thresholds orders the block: the keys between two
 * thresholds are a class, and the keys that equal one are a class. The parts for
 * the ranks are then consecutive, and one all-to-all moves them.
 *
 * Invariant: a class is either within one part or all its keys are equal. The split
 * and the exchange are stable, so a stable sort of what a rank receives completes a
 * stable sort of the whole.
 *
 * Cost: besides the sort of the result, four reads and one write of the block for
 * random keys, and a read for each further histogram: three for 32 bits. Source:
 * Ilic et al., RMG Sort: Radix-Partitioning-Based Multi-GPU Sorting, BTW 2023
 * (partition by the top bits first, one exchange). */
#include "dist_radix.h"
#include "radix_code.h"

#include <stdlib.h>
#include <string.h>

#include <kiln/gather.h>

enum {
  MOST_BITS = 12,      /* bits of the keys per histogram and bin before it */
  MOST_BINS = 1 << 15, /* of all bins together, from the second one on */
  FEW = 32             /* one FEW-th of all keys may be candidates */
};

/* Where a cut lies on this rank. */
typedef struct threshold {
  uint64_t key;   /* rank of a key in the order of the sort */
  uint64_t equal; /* of the keys with this rank, so many lie before the cut */
  bool open;      /* all keys of this rank lie before the cut */
} threshold;

/* Where a cut lies in the whole: `inside` keys of the bin that begins with the rank
 * `key` lie before the cut. It is found if inside is 0, or if no key is behind. */
typedef struct place {
  uint64_t key, inside;
  bool open; /* all keys lie before the cut */
} place;

/* A bin that a cut divides: its number in the list is the first part of the number
 * of a bin of the next histogram. */
typedef struct bin {
  uint64_t prefix; /* the ranks of its keys, without their low bits */
  uint64_t count;  /* keys of all ranks in it */
  uint64_t own;    /* keys of this rank in it */
} bin;

typedef struct radix {
  kiln__dist *d;
  const kiln_sort_desc *desc;
  const kiln__sort_memory *memory;
  kiln__key_order order;
  unsigned bits;   /* of a key's rank */
  kiln_array keys; /* the caller's keys, as unsigned numbers */
  kiln__radix_code code;
  /* Of the host */
  int cuts;
  uint64_t total;         /* keys of all ranks */
  uint64_t *counts, *own; /* of the bins: of all ranks, of this rank */
  bin *divided;  /* the bins that cuts divide; their number is `listed` */
  bin *coarse;   /* those of the histogram before */
  place *places; /* of the cuts */
  threshold *thresholds; /* of the cuts */
  uint64_t n_candidates; /* of this rank */
} radix;

/* ---- Keys ---------------------------------------------------------------- */

static kiln_dtype unsigned_of(size_t size)
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

/* The rank of a key on the host, like kiln_rank(). */
static uint64_t rank_of(const radix *r, const void *key)
{
  return kiln__key_rank(&r->order, key) & kiln__low_bits(r->bits);
}

static void describe(radix *r, kiln__dist *d, const kiln_sort_desc *desc,
                     const kiln__sort_memory *memory)
{
  const size_t size = kiln_dtype_size(desc->keys_in.type);
  const unsigned end = desc->end_bit == 0 ? 8 * (unsigned)size : desc->end_bit;

  r->d = d;
  r->desc = desc;
  r->memory = memory;
  r->order = (kiln__key_order){desc->keys_in.type, desc->descending,
                               desc->begin_bit, desc->end_bit};
  r->bits = end - desc->begin_bit;
  r->cuts = d->comm->ranks - 1;
  r->keys = (kiln_array){desc->keys_in.data, unsigned_of(size)};
  kiln__radix_write(&r->code, &r->order, r->bits, r->cuts);
}

/* Number of bits of the first histogram, and of the ones behind it. */
static unsigned first_bits(const radix *r)
{
  return r->bits < MOST_BITS ? r->bits : MOST_BITS;
}

static unsigned further_bits(const radix *r)
{
  unsigned bits = MOST_BITS;

  while (bits > 1 && (uint64_t)r->cuts << bits > MOST_BINS)
    bits--;
  return bits;
}

/* Number of bins of a histogram: the same for all but the first one, since each
 * number needs a kernel of its own. */
static uint32_t bins_of(const radix *r)
{
  if (r->code.above == r->bits)
    return (uint32_t)1 << first_bits(r);
  return (uint32_t)r->cuts << further_bits(r);
}

/* Largest number of bins. */
static uint64_t most_bins(const radix *r)
{
  const uint64_t first = (uint64_t)1 << first_bits(r);
  const uint64_t further = (uint64_t)r->cuts << further_bits(r);

  return first > further ? first : further;
}

/* ---- The operations of a device ------------------------------------------ */

/* All take their arrays in the temporary memory at `base`. */

static kiln_histogram_desc histogram_of(const radix *r, CUdeviceptr base)
{
  return (kiln_histogram_desc){
      .x = {.in = {r->keys},
            .map = r->code.above == r->bits ? r->code.top : r->code.bin,
            .type = KILN_U32},
      .n = r->desc->n,
      .bins = bins_of(r),
      .counts = {base + r->memory->counts, KILN_U64},
      .code = r->code.code};
}

static kiln_select_desc selection_of(const radix *r, CUdeviceptr base)
{
  return (kiln_select_desc){.x = {.in = {r->keys}},
                            .predicate = r->code.marked,
                            .n = r->desc->n,
                            .out = {base + r->memory->keys, r->keys.type},
                            .count = {base + r->memory->number, KILN_U64},
                            .code = r->code.code};
}

/* The split of the keys. The number of partitions is that for the longest list,
 * since each number needs a kernel of its own. */
static kiln_split_desc split_of(const radix *r, CUdeviceptr base)
{
  return (kiln_split_desc){.x = {.in = {r->keys}},
                           .key = r->code.class_of,
                           .parts = (uint32_t)(2 * r->cuts + 1),
                           .n = r->desc->n,
                           .out = {base + r->memory->keys, r->keys.type},
                           .offsets = {base + r->memory->offsets, KILN_U64},
                           .code = r->code.code};
}

/* Whether values move as unsigned numbers. Others, structs, move by positions. */
static bool values_are_numbers(const kiln_sort_desc *desc)
{
  return desc->values_in.type < KILN_DTYPE_STRUCT &&
         unsigned_of(kiln_dtype_size(desc->values_in.type)) != KILN_DTYPE_NONE;
}

static kiln_dtype position_type(const kiln_sort_desc *desc)
{
  return desc->n > UINT32_MAX ? KILN_U64 : KILN_U32;
}

/* The split of the values, or of the positions, by the same keys. */
static kiln_split_desc value_split_of(const radix *r, CUdeviceptr base)
{
  const kiln_array values = {
      r->desc->values_in.data,
      unsigned_of(kiln_dtype_size(r->desc->values_in.type))};
  kiln_split_desc split = split_of(r, base);

  split.offsets.type = KILN_DTYPE_NONE;
  if (values_are_numbers(r->desc)) {
    split.x =
        (kiln_input){.in = {r->keys, values}, .map = "y", .type = values.type};
    split.out = (kiln_array){base + r->memory->values, values.type};
  } else {
    split.x = (kiln_input){
        .in = {r->keys}, .map = "i", .type = position_type(r->desc)};
    split.out =
        (kiln_array){base + r->memory->positions, position_type(r->desc)};
  }
  return split;
}

/* ---- Temporary memory ---------------------------------------------------- */

static void keep_larger(size_t *most, size_t size)
{
  if (size > *most)
    *most = size;
}

/* Finds the largest workspace of the operations. */
static kiln_status measure(radix *r, kiln__sort_memory *m)
{
  const CUdeviceptr nowhere = (CUdeviceptr)1 << 62;
  kiln_stream *const stream = r->d->stream;
  kiln_histogram_desc histogram;
  const kiln_select_desc selection = selection_of(r, nowhere);
  kiln_split_desc split;
  size_t size = 0;
  kiln_sort_desc last = *r->desc; /* sorts in place */
  kiln_status st = kiln_sort_workspace(stream, r->desc, &size);

  last.keys_in = last.keys_out;
  last.values_in.data = last.values_out.data;
  r->code.above = r->bits;
  histogram = histogram_of(r, nowhere);
  r->code.listed = (uint32_t)r->cuts;
  split = split_of(r, nowhere);
  keep_larger(&m->inner_size, size);
  if (st == KILN_OK)
    st = kiln_sort_workspace(stream, &last, &size);
  keep_larger(&m->inner_size, size);
  if (st == KILN_OK)
    st = kiln_histogram_workspace(stream, &histogram, &size);
  keep_larger(&m->inner_size, size);
  histogram.bins = (uint32_t)r->cuts << further_bits(r);
  if (st == KILN_OK && r->cuts > 0)
    st = kiln_histogram_workspace(stream, &histogram, &size);
  keep_larger(&m->inner_size, size);
  if (st == KILN_OK)
    st = kiln_select_workspace(stream, &selection, &size);
  keep_larger(&m->inner_size, size);
  if (st == KILN_OK)
    st = kiln_split_workspace(stream, &split, &size);
  keep_larger(&m->inner_size, size);
  if (st != KILN_OK || r->desc->values_in.type == KILN_DTYPE_NONE)
    return st;
  split = value_split_of(r, nowhere);
  st = kiln_split_workspace(stream, &split, &size);
  keep_larger(&m->inner_size, size);
  return st;
}

kiln_status kiln__radix_plan(const kiln__dist *d, const kiln_sort_desc *desc,
                             kiln__sort_memory *memory)
{
  const uint64_t ranks = (uint64_t)d->comm->ranks;
  kiln__dist own = *d;
  kiln__sort_memory m = {.total = 0};
  kiln_status st;
  radix r = {.counts = NULL};

  m.keys =
      kiln__dist_place(&m.total, desc->n, kiln_dtype_size(desc->keys_in.type));
  m.values = kiln__dist_place(&m.total, desc->n,
                              kiln_dtype_size(desc->values_in.type));
  m.positions =
      kiln__dist_place(&m.total, values_are_numbers(desc) ? 0 : desc->n,
                       desc->values_in.type == KILN_DTYPE_NONE
                           ? 0
                           : kiln_dtype_size(position_type(desc)));
  describe(&r, &own, desc, &m);
  m.counts = kiln__dist_place(&m.total, most_bins(&r), sizeof(uint64_t));
  m.table = kiln__dist_place(&m.total, ranks, sizeof(uint64_t));
  m.offsets = kiln__dist_place(&m.total, 2 * ranks + 1, sizeof(uint64_t));
  m.number = kiln__dist_place(&m.total, 1, sizeof(uint64_t));
  st = measure(&r, &m);
  m.inner = kiln__dist_place(&m.total, m.inner_size, 1);
  *memory = m;
  return st;
}

static kiln_workspace workspace_of(const radix *r)
{
  return (kiln_workspace){r->d->scratch + r->memory->inner,
                          r->memory->inner_size};
}

/* ---- Bins ---------------------------------------------------------------- */

/* Writes the list that the functions of the device search. */
static kiln_status put_list(radix *r, const uint64_t *list, uint64_t n)
{
  r->code.listed = (uint32_t)n;
  if (n == 0)
    return KILN_OK;
  if (r->cuts > KILN__FEW_CUTS)
    return kiln__dist_put(r->d, r->code.table, list, n * sizeof *list);
  memcpy(r->code.list, list, n * sizeof *list);
  return KILN_OK;
}

static kiln_status put_divided(radix *r)
{
  uint64_t *const list = calloc((size_t)r->code.listed + 1, sizeof *list);
  kiln_status st;

  if (list == NULL)
    return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory");
  for (uint64_t k = 0; k < r->code.listed; k++)
    list[k] = r->divided[k].prefix;
  st = put_list(r, list, r->code.listed);
  free(list);
  return st;
}

/* Counts the keys in the divided bins by their next bits. */
static kiln_status count_bins(radix *r)
{
  const kiln_histogram_desc histogram = histogram_of(r, r->d->scratch);
  const kiln_workspace workspace = workspace_of(r);
  const size_t size = histogram.bins * sizeof *r->counts;
  kiln_status st = put_divided(r);

  if (st == KILN_OK)
    st = kiln_histogram(r->d->stream, &histogram, &workspace);
  if (st == KILN_OK)
    st = kiln__dist_get(r->d, r->own, histogram.counts.data, size);
  if (st == KILN_OK)
    st = kiln_comm_all_reduce(r->d->comm, r->d->stream, histogram.counts,
                              histogram.counts, histogram.bins, KILN_SUM);
  if (st == KILN_OK)
    st = kiln__dist_get(r->d, r->counts, histogram.counts.data, size);
  return st;
}

static bool is_found(const place *p)
{
  return p->open || p->inside == 0;
}

/* Moves a cut in the divided bin number k to the bin of the present histogram in
 * which it lies. Returns that bin. */
static bin refine(const radix *r, place *p, uint64_t k)
{
  const unsigned step = r->code.above - r->code.below;
  const uint64_t first = k << step, n = (uint64_t)1 << step;
  uint64_t at = 0;

  while (at < n && r->counts[first + at] <= p->inside)
    p->inside -= r->counts[first + at++];
  if (at == n) { /* only the first histogram, if no key is behind the cut */
    p->open = true;
    return (bin){0, 0, 0};
  }
  p->key += at << r->code.below;
  return (bin){p->key >> r->code.below, r->counts[first + at],
               r->own[first + at]};
}

/* Refines all cuts, and lists the bins that they divide now. Returns the number of
 * keys in these bins. */
static uint64_t refine_all(radix *r)
{
  const uint64_t before = r->code.listed;
  bin *const coarse = r->divided;
  uint64_t n = 0, keys = 0, k = 0;

  r->divided = r->coarse;
  r->coarse = coarse;
  for (int c = 0; c < r->cuts; c++) {
    place *const p = &r->places[c];
    bin found;

    if (is_found(p))
      continue;
    while (k + 1 < before &&
           coarse[k].prefix !=
               (r->code.above < 64 ? p->key >> r->code.above : 0))
      k++;
    found = refine(r, p, k);
    if (is_found(p) || (n > 0 && r->divided[n - 1].prefix == found.prefix))
      continue;
    r->divided[n++] = found;
    keys += found.count;
  }
  r->code.listed = (uint32_t)n;
  return keys;
}

/* Finds the bins that cuts divide, until few keys are in them or no bits are
 * left. */
static kiln_status find_bins(radix *r, const uint64_t *sizes)
{
  uint64_t wanted = 0, keys;

  for (int c = 0; c < r->cuts; c++) {
    wanted += sizes[c];
    r->places[c] = (place){.inside = wanted};
  }
  r->total = wanted + sizes[r->cuts];
  r->divided[0] = (bin){0, r->total, r->desc->n};
  r->code.listed = 1;
  r->code.above = r->bits;
  r->code.below = r->bits - first_bits(r);
  for (;;) {
    const kiln_status st = count_bins(r);

    if (st != KILN_OK)
      return st;
    keys = refine_all(r);
    if (r->code.below == 0 || keys <= r->total / FEW)
      return KILN_OK;
    r->code.above = r->code.below;
    r->code.below -=
        r->code.below < further_bits(r) ? r->code.below : further_bits(r);
  }
}

/* ---- Candidates ---------------------------------------------------------- */

/* Copies the keys in divided bins to the temporary keys and sorts them. */
static kiln_status sort_candidates(radix *r)
{
  const kiln_workspace workspace = workspace_of(r);
  const CUdeviceptr keys = r->d->scratch + r->memory->keys;
  kiln_sort_desc sort = {.keys_in = {keys, r->order.type},
                         .keys_out = {keys, r->order.type},
                         .descending = r->order.descending,
                         .begin_bit = r->order.begin_bit,
                         .end_bit = r->order.end_bit};
  kiln_select_desc selection;
  size_t need = 0;
  kiln_status st = put_divided(r);

  selection = selection_of(r, r->d->scratch);
  if (st == KILN_OK)
    st = kiln_select(r->d->stream, &selection, &workspace);
  if (st == KILN_OK)
    st = kiln__dist_get(r->d, &r->n_candidates, selection.count.data,
                        sizeof r->n_candidates);
  sort.n = r->n_candidates;
  if (st == KILN_OK)
    st = kiln_sort_workspace(r->d->stream, &sort, &need);
  if (st != KILN_OK)
    return st;
  return kiln_sort(r->d->stream, &sort,
                   need <= workspace.size ? &workspace : NULL);
}

/* Sets lengths[] to the numbers of candidates of all ranks between the cuts. */
static void divide_candidates(const radix *r, uint64_t *lengths)
{
  uint64_t before = 0, last = 0, k = 0;

  for (int c = 0; c < r->cuts; c++) {
    const place *const p = &r->places[c];

    while (k < r->code.listed &&
           (p->open || r->divided[k].prefix < p->key >> r->code.below))
      before += r->divided[k++].count;
    lengths[c] = before + (is_found(p) ? 0 : p->inside) - last;
    last += lengths[c];
  }
  while (k < r->code.listed)
    before += r->divided[k++].count;
  lengths[r->cuts] = before - last;
}

/* Reads the rank of candidate i. */
static kiln_status candidate(const radix *r, uint64_t i, uint64_t *rank)
{
  const size_t size = kiln_dtype_size(r->order.type);
  unsigned char key[8] = {0};
  const kiln_status st = kiln__dist_get(
      r->d, key, r->d->scratch + r->memory->keys + i * size, size);

  *rank = st == KILN_OK ? rank_of(r, key) : 0;
  return st;
}

/* Looks whether candidate i has a rank. */
static kiln_status has_rank(const radix *r, uint64_t i, uint64_t wanted,
                            bool *has)
{
  uint64_t rank = 0;
  const kiln_status st = candidate(r, i, &rank);

  *has = st == KILN_OK && rank == wanted;
  return st;
}

/* Counts the candidates before position `at` that equal the one at it: the
 * distance doubles until another key is found, then a binary search follows. */
static kiln_status count_equal(const radix *r, uint64_t at, uint64_t key,
                               uint64_t *n)
{
  uint64_t equal = 0, other = 1; /* distances before `at` */
  bool has = true;
  kiln_status st = KILN_OK;

  while (other <= at && st == KILN_OK) {
    st = has_rank(r, at - other, key, &has);
    if (!has)
      break;
    equal = other;
    other *= 2;
  }
  other = other <= at ? other : at + 1;
  while (st == KILN_OK && equal + 1 < other) {
    const uint64_t middle = equal + (other - equal) / 2;

    st = has_rank(r, at - middle, key, &has);
    if (has)
      equal = middle;
    else
      other = middle;
  }
  *n = equal;
  return st;
}

/* The threshold of a cut behind all keys of a bin of this rank. */
static threshold behind_bin(const radix *r, uint64_t prefix)
{
  const unsigned width = r->bits - r->code.below;
  const bool last = prefix == kiln__low_bits(width);

  return (threshold){.key = last ? 0 : (prefix + 1) << r->code.below,
                     .open = last};
}

/* Finds the threshold of a cut that lies at position `at` of the candidates. */
static kiln_status find_threshold(const radix *r, const place *p, uint64_t at,
                                  threshold *t)
{
  const uint64_t prefix = p->key >> r->code.below;
  uint64_t rank = 0;
  kiln_status st = KILN_OK;

  *t = (threshold){.key = p->key, .open = p->open};
  if (is_found(p))
    return KILN_OK;
  *t = behind_bin(r, prefix);
  if (at >= r->n_candidates)
    return KILN_OK;
  st = candidate(r, at, &rank);
  if (st == KILN_OK && rank >> r->code.below == prefix) {
    *t = (threshold){.key = rank};
    st = count_equal(r, at, rank, &t->equal);
  }
  return st;
}

/* Finds all thresholds by the candidates. */
static kiln_status use_candidates(radix *r)
{
  const size_t ranks = (size_t)r->cuts + 1;
  uint64_t *const counts = calloc(ranks, sizeof *counts);
  uint64_t *const lengths = calloc(ranks, sizeof *lengths);
  uint64_t *const cuts = calloc(ranks + 1, sizeof *cuts);
  kiln_status st = KILN_OK;

  if (counts == NULL || lengths == NULL || cuts == NULL)
    COMM_TRY(kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory"));
  COMM_TRY(sort_candidates(r));
  divide_candidates(r, lengths);
  COMM_TRY(kiln_comm_share(r->d->comm, &r->n_candidates, sizeof r->n_candidates,
                           counts));
  COMM_TRY(kiln__cut_blocks(r->d, &r->order, r->d->scratch + r->memory->keys,
                            counts, lengths, cuts));
  for (int c = 0; c < r->cuts; c++)
    COMM_TRY(find_threshold(r, &r->places[c], cuts[c + 1], &r->thresholds[c]));

done:
  free(counts);
  free(lengths);
  free(cuts);
  return st;
}

/* Finds all thresholds if no bits are left, or if no cut divides a bin. All keys of
 * a divided bin are equal: the first ones in the order of the ranks lie before the
 * cut. */
static kiln_status use_equal_keys(radix *r)
{
  const size_t n = (size_t)r->code.listed;
  uint64_t *const own = calloc(n + 1, sizeof *own);
  uint64_t *const all = calloc((n + 1) * ((size_t)r->cuts + 1), sizeof *all);
  size_t k = 0;
  kiln_status st = KILN_OK;

  if (own == NULL || all == NULL)
    COMM_TRY(kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory"));
  for (size_t i = 0; i < n; i++)
    own[i] = r->divided[i].own;
  COMM_TRY(kiln_comm_share(r->d->comm, own, n * sizeof *own, all));
  for (int c = 0; c < r->cuts; c++) {
    const place *const p = &r->places[c];
    uint64_t left = p->inside;

    r->thresholds[c] = (threshold){.key = p->key, .open = p->open};
    if (is_found(p))
      continue;
    while (r->divided[k].prefix != p->key)
      k++;
    for (int q = 0; q < r->d->comm->rank; q++)
      left -= left < all[(size_t)q * n + k] ? left : all[(size_t)q * n + k];
    r->thresholds[c].equal = left < own[k] ? left : own[k];
  }

done:
  free(own);
  free(all);
  return st;
}

/* ---- Exchange ------------------------------------------------------------ */

/* Writes the different thresholds to the table, in ascending order. */
static kiln_status put_thresholds(radix *r)
{
  uint64_t *const keys = calloc((size_t)r->cuts + 1, sizeof *keys);
  uint64_t n = 0;
  kiln_status st;

  if (keys == NULL)
    return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory");
  for (int c = 0; c < r->cuts; c++) {
    const threshold *const t = &r->thresholds[c];

    if (!t->open && (n == 0 || keys[n - 1] != t->key))
      keys[n++] = t->key;
  }
  st = put_list(r, keys, n);
  free(keys);
  return st;
}

/* Sets starts[p] to the start of part p among the split keys. */
static void find_starts(const radix *r, const uint64_t *offsets,
                        uint64_t *starts)
{
  const int ranks = r->d->comm->ranks;
  uint64_t number = 0, key = 0;
  bool any = false;

  starts[0] = 0;
  starts[ranks] = r->desc->n;
  for (int c = 0; c + 1 < ranks; c++) {
    const threshold *const t = &r->thresholds[c];

    if (t->open) {
      starts[c + 1] = r->desc->n;
      continue;
    }
    if (any && t->key != key)
      number++;
    any = true;
    key = t->key;
    starts[c + 1] = offsets[2 * number + 1] + t->equal;
  }
}

/* Splits the block by the thresholds, and finds the part of each rank. */
static kiln_status split_block(radix *r, uint64_t *offsets, uint64_t *starts)
{
  const kiln_workspace workspace = workspace_of(r);
  const CUdeviceptr base = r->d->scratch;
  kiln_split_desc split;
  kiln_status st = put_thresholds(r);

  if (st != KILN_OK || r->desc->n == 0)
    return st;
  split = split_of(r, base);
  st = kiln_split(r->d->stream, &split, &workspace);
  if (st == KILN_OK)
    st = kiln__dist_get(r->d, offsets, split.offsets.data,
                        (split.parts + 1) * sizeof *offsets);
  if (st != KILN_OK)
    return st;
  find_starts(r, offsets, starts);
  if (r->desc->values_in.type == KILN_DTYPE_NONE)
    return KILN_OK;
  split = value_split_of(r, base);
  st = kiln_split(r->d->stream, &split, &workspace);
  if (st == KILN_OK && !values_are_numbers(r->desc)) {
    const kiln_gather_desc move = {
        .x = {.in = {r->desc->values_in}},
        .index = split.out,
        .out = {base + r->memory->values, r->desc->values_in.type},
        .n = r->desc->n,
        .n_target = r->desc->n,
        .method = KILN_INDEX_DIRECT};

    st = kiln_gather(r->d->stream, &move, NULL);
  }
  return st;
}

static kiln_status move_parts(const radix *r, const uint64_t *sends)
{
  const kiln_sort_desc *const desc = r->desc;
  const kiln_array keys = {r->d->scratch + r->memory->keys, desc->keys_in.type};
  const kiln_array values = {r->d->scratch + r->memory->values,
                             desc->values_in.type};
  kiln_status st = kiln_comm_all_to_all(r->d->comm, r->d->stream, keys, sends,
                                        desc->keys_out, NULL, desc->n, NULL);

  if (st == KILN_OK && values.type != KILN_DTYPE_NONE)
    st = kiln_comm_all_to_all(r->d->comm, r->d->stream, values, sends,
                              desc->values_out, NULL, desc->n, NULL);
  return st;
}

kiln_status kiln__radix_exchange(kiln__dist *d, const kiln_sort_desc *desc,
                                 const kiln__sort_memory *memory,
                                 const uint64_t *sizes)
{
  const size_t ranks = (size_t)d->comm->ranks;
  uint64_t *offsets = NULL, *starts = NULL;
  kiln_status st = KILN_OK;
  radix r = {.counts = NULL};

  describe(&r, d, desc, memory);
  r.code.table = d->scratch + memory->table;
  r.counts = calloc(most_bins(&r), sizeof *r.counts);
  r.own = calloc(most_bins(&r), sizeof *r.own);
  r.divided = calloc(ranks, sizeof *r.divided);
  r.coarse = calloc(ranks, sizeof *r.coarse);
  r.places = calloc(ranks, sizeof *r.places);
  r.thresholds = calloc(ranks, sizeof *r.thresholds);
  offsets = calloc(2 * ranks + 2, sizeof *offsets);
  starts = calloc(ranks + 1, sizeof *starts);
  if (r.counts == NULL || r.own == NULL || r.divided == NULL ||
      r.coarse == NULL || r.places == NULL || r.thresholds == NULL ||
      offsets == NULL || starts == NULL)
    COMM_TRY(kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory"));
  COMM_TRY(find_bins(&r, sizes));
  COMM_TRY(r.code.below == 0 || r.code.listed == 0 ? use_equal_keys(&r)
                                                   : use_candidates(&r));
  COMM_TRY(split_block(&r, offsets, starts));
  for (size_t p = 0; p < ranks; p++)
    offsets[p] = starts[p + 1] - starts[p];
  COMM_TRY(move_parts(&r, offsets));

done:
  free(r.counts);
  free(r.own);
  free(r.divided);
  free(r.coarse);
  free(r.places);
  free(r.thresholds);
  free(offsets);
  free(starts);
  return st;
}

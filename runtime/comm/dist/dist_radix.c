/* dist_radix.c -- finds the parts of a sorted whole by the top bits of the keys,
 * and moves them.
 *
 * Problem: each rank is to receive a part of the sorted whole that has exactly the
 * length of its block, before anything is sorted.
 *
 * Idea: a histogram of the top bits of all keys shows the bins in which the cuts
 * between the parts lie. Only the keys in these few bins, the candidates, are
 * sorted, and cut.c finds the exact cuts in them. A cut then has a threshold on
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
 * Cost: three reads and one write of the block besides the sort of the result, and
 * the sort of the candidates: 1 / 4096 of random keys per cut, all keys if they are
 * constant (whose sort skips its passes). Source: Ilic, Maltenberger et al.,
 * RMG Sort: Radix-Partitioning-Based Multi-GPU Sorting, BTW 2023 (partition by the
 * top bits first, one exchange); the treatment of equal keys follows regular
 * sampling (see cut.c). */
#include "dist_radix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/gather.h>

enum { TOP_BITS = 12, CODE_SIZE = 2048 };

/* Where a cut lies on this rank. */
typedef struct threshold {
  uint64_t key;   /* rank of a key in the order of the sort */
  uint64_t equal; /* of the keys with this rank, so many lie before the cut */
  bool open;      /* all keys of this rank lie before the cut */
} threshold;

/* A cut within the bins of the top bits. */
typedef struct place {
  uint64_t bin, inside; /* `inside` keys of the bin lie before the cut */
} place;

typedef struct radix {
  kiln__dist *d;
  const kiln_sort_desc *desc;
  const kiln__sort_memory *memory;
  kiln__key_order order;
  unsigned bits, shift; /* bits of a key's rank; those below the top bits */
  uint64_t bins;
  kiln_array keys;      /* the caller's keys, as unsigned numbers */
  char text[CODE_SIZE]; /* functions of the device */
  uint64_t table, cuts_in_table;
  kiln_param params[2];
  kiln_code code;
  /* Of the host */
  uint64_t *counts;      /* of the bins, all ranks together */
  place *places;         /* of the cuts */
  threshold *thresholds; /* of the cuts */
  uint64_t n_candidates; /* of this rank */
} radix;

/* ---- Functions of the device --------------------------------------------- */

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

static uint64_t low_bits(unsigned n)
{
  return n >= 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;
}

/* The functions that the expressions call. kiln_rank() is kiln__key_rank() of
 * cut.c. */
static const char device_code[] =
    "typedef unsigned long long kiln_u64;\n"
    "static __device__ kiln_u64 kiln_rank(kiln_u64 x)\n"
    "{\n"
    "  const kiln_u64 sign = %lluull, mask = %lluull;\n"
    "  if (%d)\n"
    "    x = x & sign ? ~x & mask : x ^ sign;\n"
    "  else if (%d)\n"
    "    x ^= sign;\n"
    "  if (%d)\n"
    "    x = (x - %lluull) & mask;\n"
    "  x = x >> %u & %lluull;\n"
    "  return %d ? ~x & %lluull : x;\n"
    "}\n"
    "static __device__ unsigned kiln_bin(kiln_u64 x)\n"
    "{\n"
    "  return (unsigned)(kiln_rank(x) >> %u);\n"
    "}\n"
    "static __device__ bool kiln_marked(kiln_u64 x, kiln_u64 table)\n"
    "{\n"
    "  return ((const unsigned char *)table)[kiln_bin(x)] != 0;\n"
    "}\n"
    "static __device__ unsigned kiln_class(kiln_u64 x, kiln_u64 table,\n"
    "                                      kiln_u64 n)\n"
    "{\n"
    "  const kiln_u64 *const thresholds = (const kiln_u64 *)table;\n"
    "  const kiln_u64 rank = kiln_rank(x);\n"
    "  unsigned low = 0, high = (unsigned)n;\n"
    "  while (low < high) {\n"
    "    const unsigned middle = (low + high) / 2;\n"
    "    if (thresholds[middle] < rank)\n"
    "      low = middle + 1;\n"
    "    else\n"
    "      high = middle;\n"
    "  }\n"
    "  return 2 * low + (low < n && thresholds[low] == rank);\n"
    "}\n";

static bool is_float(kiln_dtype type)
{
  return type >= KILN_F16 && type <= KILN_F64;
}

static bool is_signed(kiln_dtype type)
{
  return type == KILN_I8 || type == KILN_I16 || type == KILN_I32 ||
         type == KILN_I64;
}

/* Bits of the fraction of a float. */
static unsigned fraction_of(kiln_dtype type)
{
  switch (type) {
  case KILN_F16:
    return 10;
  case KILN_BF16:
    return 7;
  case KILN_F32:
    return 23;
  default:
    return 52;
  }
}

static void write_code(radix *r)
{
  const kiln_dtype type = r->order.type;
  const unsigned width = 8 * (unsigned)kiln_dtype_size(type);
  const uint64_t mask = low_bits(width), kept = low_bits(r->bits);
  const bool whole = is_float(type) && r->bits == width; /* NaNs come last */

  (void)snprintf(r->text, sizeof r->text, device_code,
                 (unsigned long long)(mask ^ mask >> 1),
                 (unsigned long long)mask, is_float(type), is_signed(type),
                 whole,
                 (unsigned long long)(whole ? low_bits(fraction_of(type)) : 0),
                 r->order.begin_bit, (unsigned long long)kept,
                 r->order.descending, (unsigned long long)kept, r->shift);
  r->params[0] = (kiln_param){"kiln_table", KILN_U64, &r->table, false};
  r->params[1] = (kiln_param){"kiln_cuts", KILN_U64, &r->cuts_in_table, false};
  r->code =
      (kiln_code){.preamble = r->text, .params = r->params, .n_params = 2};
}

/* The rank of a key on the host, like kiln_rank(). */
static uint64_t rank_of(const radix *r, const void *key)
{
  return kiln__key_rank(&r->order, key) & low_bits(r->bits);
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
  r->shift = r->bits > TOP_BITS ? r->bits - TOP_BITS : 0;
  r->bins = (uint64_t)1 << (r->bits - r->shift);
  r->keys = (kiln_array){desc->keys_in.data, unsigned_of(size)};
  write_code(r);
}

/* ---- The operations of a device ------------------------------------------ */

/* All take their arrays in the temporary memory at `base`. */

static kiln_histogram_desc histogram_of(const radix *r, CUdeviceptr base)
{
  return (kiln_histogram_desc){
      .x = {.in = {r->keys}, .map = "kiln_bin(x)", .type = KILN_U32},
      .n = r->desc->n,
      .bins = (uint32_t)r->bins,
      .counts = {base + r->memory->counts, KILN_U64},
      .code = r->code};
}

static kiln_select_desc selection_of(const radix *r, CUdeviceptr base)
{
  return (kiln_select_desc){.x = {.in = {r->keys}},
                            .predicate = "kiln_marked(x, kiln_table)",
                            .n = r->desc->n,
                            .out = {base + r->memory->keys, r->keys.type},
                            .count = {base + r->memory->number, KILN_U64},
                            .code = r->code};
}

/* The split of the keys. */
static kiln_split_desc split_of(const radix *r, CUdeviceptr base)
{
  return (kiln_split_desc){.x = {.in = {r->keys}},
                           .key = "kiln_class(x, kiln_table, kiln_cuts)",
                           .parts = (uint32_t)(2 * r->cuts_in_table + 1),
                           .n = r->desc->n,
                           .out = {base + r->memory->keys, r->keys.type},
                           .offsets = {base + r->memory->offsets, KILN_U64},
                           .code = r->code};
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
  const kiln_histogram_desc histogram = histogram_of(r, nowhere);
  const kiln_select_desc selection = selection_of(r, nowhere);
  kiln_split_desc split;
  size_t size = 0;
  kiln_sort_desc last = *r->desc; /* sorts in place */
  kiln_status st = kiln_sort_workspace(stream, r->desc, &size);

  last.keys_in = last.keys_out;
  last.values_in.data = last.values_out.data;
  r->cuts_in_table = (uint64_t)r->d->comm->ranks - 1;
  split = split_of(r, nowhere);
  keep_larger(&m->inner_size, size);
  if (st == KILN_OK)
    st = kiln_sort_workspace(stream, &last, &size);
  keep_larger(&m->inner_size, size);
  if (st == KILN_OK)
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
  radix r;

  m.keys =
      kiln__dist_place(&m.total, desc->n, kiln_dtype_size(desc->keys_in.type));
  m.values = kiln__dist_place(&m.total, desc->n,
                              kiln_dtype_size(desc->values_in.type));
  m.positions =
      kiln__dist_place(&m.total, values_are_numbers(desc) ? 0 : desc->n,
                       desc->values_in.type == KILN_DTYPE_NONE
                           ? 0
                           : kiln_dtype_size(position_type(desc)));
  m.counts =
      kiln__dist_place(&m.total, (uint64_t)1 << TOP_BITS, sizeof(uint64_t));
  m.table =
      kiln__dist_place(&m.total, (uint64_t)1 << TOP_BITS, sizeof(uint64_t));
  m.offsets = kiln__dist_place(&m.total, 2 * ranks + 1, sizeof(uint64_t));
  m.number = kiln__dist_place(&m.total, 1, sizeof(uint64_t));
  describe(&r, &own, desc, &m);
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

/* ---- Cuts ---------------------------------------------------------------- */

/* Counts the keys of all ranks by their top bits. */
static kiln_status count_bins(radix *r)
{
  const kiln_histogram_desc histogram = histogram_of(r, r->d->scratch);
  const kiln_workspace workspace = workspace_of(r);
  kiln_status st = kiln_histogram(r->d->stream, &histogram, &workspace);

  if (st == KILN_OK)
    st = kiln_comm_all_reduce(r->d->comm, r->d->stream, histogram.counts,
                              histogram.counts, r->bins, KILN_SUM);
  if (st == KILN_OK)
    st = kiln__dist_get(r->d, r->counts, histogram.counts.data,
                        r->bins * sizeof *r->counts);
  return st;
}

/* Finds the bins of the cuts. */
static void find_places(radix *r, const uint64_t *sizes)
{
  uint64_t wanted = 0, before = 0, bin = 0;

  for (int c = 0; c + 1 < r->d->comm->ranks; c++) {
    wanted += sizes[c];
    while (bin < r->bins && before + r->counts[bin] <= wanted)
      before += r->counts[bin++];
    r->places[c] = (place){bin, wanted - before};
  }
}

/* Marks the bins that cuts divide: marks[] has one byte per bin, 0 at first. */
static void mark_bins(const radix *r, unsigned char *marks)
{
  for (int c = 0; c + 1 < r->d->comm->ranks; c++) {
    if (r->places[c].inside > 0)
      marks[r->places[c].bin] = 1;
  }
}

/* Copies the keys in marked bins to the temporary keys and sorts them. */
static kiln_status sort_candidates(radix *r, const unsigned char *marks)
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
  kiln_status st = kiln__dist_put(r->d, r->table, marks, r->bins);

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
static void divide_candidates(const radix *r, const unsigned char *marks,
                              uint64_t *lengths)
{
  const int cuts = r->d->comm->ranks - 1;
  uint64_t before = 0, bin = 0, last = 0;

  for (int c = 0; c < cuts; c++) {
    for (; bin < r->places[c].bin; bin++)
      before += marks[bin] != 0 ? r->counts[bin] : 0;
    lengths[c] = before + r->places[c].inside - last;
    last += lengths[c];
  }
  for (; bin < r->bins; bin++)
    before += marks[bin] != 0 ? r->counts[bin] : 0;
  lengths[cuts] = before - last;
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

/* Sets the threshold of a cut that lies at position `at` of the candidates. */
static kiln_status find_threshold(const radix *r, const place *p, uint64_t at,
                                  threshold *t)
{
  const uint64_t behind = p->bin + (p->inside > 0);
  kiln_status st = KILN_OK;

  *t = (threshold){.key = behind << r->shift, .open = behind >= r->bins};
  if (p->inside > 0 && at < r->n_candidates) {
    uint64_t rank = 0;

    st = candidate(r, at, &rank);
    if (st == KILN_OK && rank >> r->shift == p->bin) {
      *t = (threshold){.key = rank};
      st = count_equal(r, at, rank, &t->equal);
    }
  }
  return st;
}

/* Sets all thresholds. */
static kiln_status find_thresholds(radix *r, const uint64_t *sizes)
{
  const size_t ranks = (size_t)r->d->comm->ranks;
  uint64_t *const counts = calloc(ranks, sizeof *counts);
  uint64_t *const lengths = calloc(ranks, sizeof *lengths);
  uint64_t *const cuts = calloc(ranks + 1, sizeof *cuts);
  unsigned char *const marks = calloc(r->bins, 1);
  kiln_status st = KILN_OK;

  if (counts == NULL || lengths == NULL || cuts == NULL || marks == NULL)
    COMM_TRY(kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory"));
  COMM_TRY(count_bins(r));
  find_places(r, sizes);
  mark_bins(r, marks);
  COMM_TRY(sort_candidates(r, marks));
  divide_candidates(r, marks, lengths);
  COMM_TRY(kiln_comm_share(r->d->comm, &r->n_candidates, sizeof r->n_candidates,
                           counts));
  COMM_TRY(kiln__cut_blocks(r->d, &r->order, r->d->scratch + r->memory->keys,
                            counts, lengths, cuts));
  for (size_t c = 0; c + 1 < ranks; c++)
    COMM_TRY(find_threshold(r, &r->places[c], cuts[c + 1], &r->thresholds[c]));

done:
  free(counts);
  free(lengths);
  free(cuts);
  free(marks);
  return st;
}

/* ---- Exchange ------------------------------------------------------------ */

/* Writes the different thresholds to the table, in ascending order. */
static kiln_status fill_table(radix *r)
{
  uint64_t *const keys = calloc((size_t)r->d->comm->ranks, sizeof *keys);
  kiln_status st = KILN_OK;

  if (keys == NULL)
    return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory");
  r->cuts_in_table = 0;
  for (int c = 0; c + 1 < r->d->comm->ranks; c++) {
    const threshold *const t = &r->thresholds[c];

    if (!t->open &&
        (r->cuts_in_table == 0 || keys[r->cuts_in_table - 1] != t->key))
      keys[r->cuts_in_table++] = t->key;
  }
  if (r->cuts_in_table > 0)
    st = kiln__dist_put(r->d, r->table, keys, r->cuts_in_table * sizeof *keys);
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
  kiln_status st = fill_table(r);

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
  r.table = d->scratch + memory->table;
  r.counts = calloc(r.bins, sizeof *r.counts);
  r.places = calloc(ranks, sizeof *r.places);
  r.thresholds = calloc(ranks, sizeof *r.thresholds);
  offsets = calloc(2 * ranks + 2, sizeof *offsets);
  starts = calloc(ranks + 1, sizeof *starts);
  if (r.counts == NULL || r.places == NULL || r.thresholds == NULL ||
      offsets == NULL || starts == NULL)
    COMM_TRY(kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory"));
  COMM_TRY(find_thresholds(&r, sizes));
  COMM_TRY(split_block(&r, offsets, starts));
  for (size_t p = 0; p < ranks; p++)
    offsets[p] = starts[p + 1] - starts[p];
  COMM_TRY(move_parts(&r, offsets));

done:
  free(r.counts);
  free(r.places);
  free(r.thresholds);
  free(offsets);
  free(starts);
  return st;
}

/* top_k.c -- kiln_top_k(), the host side of top_k.cu. Long rows pass through
 * the kernels of rank_select.cu first. More than MOST keys per row are sorted
 * by place, which makes the sort by word stable. */
#include "kernel_params.h"
#include "rank_select.h"

#include <kiln/top_k.h>

enum { ROW, LIST, EMIT };
enum {
  MOST = 2048, /* most keys that a block sorts in shared memory */
  /* Rows of up to this number of keys use blocks of 256 threads. */
  SHORT_ROW = 4096,
  EMIT_BLOCK = 256,
  N_SORTS = 2
};

static const char *const kernels[] = {"top_k_row", "top_k_list", "top_k_emit",
                                      NULL};
static const kiln__family family = {"top_k", kernels, kiln__top_k_params};

/* The argument `outputs` of the kernels. */
typedef struct outputs {
  CUdeviceptr out, out_index;
  uint64_t k;
  kiln__sort_order order;
  uint32_t by_place;
} outputs;

typedef struct request {
  const kiln_top_k_desc *desc;
  uint64_t rows;
  bool direct; /* one block per row reads the keys */
  bool large;  /* k is above MOST */
  unsigned place_size;
  kiln__rank_plan rank;
  /* For a large k: the sorts by place and by word, and their pairs. */
  kiln__sort_call sort[N_SORTS];
  kiln__sort_plan sort_plan[N_SORTS];
  size_t words, places, sorting;
  kiln__need need;
} request;

/* ---- Plan ---------------------------------------------------------------- */

/* Returns the number of the sorts that a large k needs. */
static size_t n_sorts(const request *r)
{
  return !r->large ? 0 : r->desc->by_index ? 1 : 2;
}

/* Sort 0 has places as keys and words as values, sort 1 the other way round. */
static void plan_sorts(request *r, kiln_device *device)
{
  const unsigned key = (unsigned)kiln__size(r->desc->keys.type);
  const size_t n = n_sorts(r);
  size_t temp = 0;

  for (size_t k = 0; k < n; k++) {
    const bool by_place = k == 0;
    kiln__sort_call *call = &r->sort[k];
    kiln__sort_facts facts;

    *call = (kiln__sort_call){
        .shape = {.n = r->desc->k,
                  .key_size = by_place ? r->place_size : key,
                  .value_size = by_place ? key : r->place_size,
                  .end_bit = 8 * (by_place ? r->place_size : key)}};
    facts = kiln__sort_facts_of(device, &call->shape);
    kiln__sort_plan_make(&r->sort_plan[k], &call->shape, &facts);
    if (r->sort_plan[k].need.temp > temp)
      temp = r->sort_plan[k].need.temp;
    if (r->sort_plan[k].need.descriptors > r->need.descriptors)
      r->need.descriptors = r->sort_plan[k].need.descriptors;
  }
  r->sorting = kiln__need_temp(&r->need, temp);
  r->words = kiln__need_temp(&r->need, r->desc->k * key);
  r->places = kiln__need_temp(&r->need, r->desc->k * r->place_size);
}

static void make_plan(request *r, kiln_device *device)
{
  const kiln_top_k_desc *desc = r->desc;
  const kiln__rank_targets targets = {.rank = {desc->k}, .n = 1};
  kiln__rank_shape shape = {.keys = desc->keys,
                            .n = desc->n,
                            .rows = r->rows,
                            .descending = !desc->smallest,
                            .kept = desc->k};

  r->large = desc->k > MOST;
  r->direct = !r->large && desc->n <= KILN__RANK_DIRECT;
  r->place_size = desc->n > UINT32_MAX ? 8 : 4;
  shape.place_size = r->place_size;
  shape.own_digits = !r->large;
  if (r->direct) {
    r->rank.shape = shape;
    r->rank.quick = device->traits.cc >= 90;
    r->rank.args = (kiln__rank_args){
        .n = desc->n, .order = kiln__rank_order(&shape), .targets = targets};
    return;
  }
  kiln__rank_plan_make(&r->rank, &r->need, device, &shape, &targets, false);
  if (r->large)
    plan_sorts(r, device);
}

/* ---- Kernels ------------------------------------------------------------- */

static uint32_t row_block(const request *r)
{
  return r->desc->n <= SHORT_ROW ? 256 : 1024;
}

static kiln__spec own_spec(const request *r)
{
  const kiln_top_k_desc *desc = r->desc;
  kiln__spec spec = {.family = &family};

  spec.quick = r->rank.quick;
  spec.kernels = r->large ? 1u << EMIT : r->direct ? 1u << ROW : 1u << LIST;
  spec.value[TOP_K_BLOCK] = r->large    ? EMIT_BLOCK
                            : r->direct ? row_block(r)
                                        : r->rank.block;
  spec.value[TOP_K_ITEMS] = kiln__rank_digit_items(&r->rank);
  spec.value[TOP_K_ALIGNED] =
      !r->direct && !r->large && kiln__rank_aligned(&r->rank.shape);
  spec.value[TOP_K_KEY] = (uint32_t)kiln__size(desc->keys.type);
  spec.value[TOP_K_FLOAT] = kiln__dtype_of(desc->keys.type)->is_float;
  spec.value[TOP_K_PLACE] = r->place_size;
  spec.value[TOP_K_MOST] = MOST;
  spec.value[TOP_K_INDEX] =
      kiln__given(desc->indices) ? desc->indices.type : KILN_U32;
  return spec;
}

/* ---- Launches ------------------------------------------------------------ */

typedef struct call {
  const request *r;
  kiln__storage storage;
  const kiln__kernel_set *own, *rank[3], *sort[N_SORTS][2];
} call;

static outputs outputs_of(const request *r, uint64_t row)
{
  const kiln_top_k_desc *desc = r->desc;
  const uint64_t first = row * desc->k;

  return (outputs){
      .out = kiln__given(desc->keys_out)
                 ? desc->keys_out.data + first * kiln__size(desc->keys.type)
                 : 0,
      .out_index =
          kiln__given(desc->indices)
              ? desc->indices.data + first * kiln__size(desc->indices.type)
              : 0,
      .k = desc->k,
      .order = r->rank.args.order,
      .by_place = desc->by_index};
}

/* Queues the kernel that reads short rows, one block per row. */
static kiln_status launch_rows(kiln_stream *stream, const request *r,
                               const kiln__kernel_set *own)
{
  const outputs to = outputs_of(r, 0);
  const kiln_launch_config config =
      kiln__sort_launch(stream, own->kernel[ROW], r->rows, row_block(r), 0);
  kiln__rank_args args = r->rank.args;

  args.in = r->desc->keys.data;
  return KILN_LAUNCH(own->kernel[ROW], &config, KILN_ARG(args), KILN_ARG(to));
}

/* Queues the kernel that reads the candidates of long rows. */
static kiln_status launch_lists(const call *c, const kiln__rank_args *args,
                                uint64_t row, uint64_t rows)
{
  const kiln_kernel *kernel = c->own->kernel[LIST];
  const outputs to = outputs_of(c->r, row);
  kiln_launch_config config = kiln__sort_launch(
      c->storage.stream, kernel, kiln__rank_blocks(args), c->r->rank.block, 0);

  config.grid.y = (uint32_t)rows;
  return KILN_LAUNCH(c->own->kernel[LIST], &config, KILN_ARG(*args),
                     KILN_ARG(to));
}

/* Sorts the selected words of one row, and writes the result. */
static kiln_status sort_row(call *c, const kiln__rank_args *args, uint64_t row,
                            uint64_t in_chunk)
{
  const request *r = c->r;
  const outputs to = outputs_of(r, row);
  const kiln_launch_config config =
      kiln__sort_launch(c->storage.stream, c->own->kernel[EMIT],
                        kiln__divide_up(r->desc->k, EMIT_BLOCK), EMIT_BLOCK, 0);
  const uint64_t first = in_chunk * r->desc->k;
  /* The pairs move between the two arrays with each sort. */
  CUdeviceptr words[2] = {args->chosen_words +
                              first * kiln__size(r->desc->keys.type),
                          c->storage.temp + r->words};
  CUdeviceptr places[2] = {args->chosen_places + first * r->place_size,
                           c->storage.temp + r->places};
  const size_t n = n_sorts(r);
  kiln_status st = KILN_OK;

  for (size_t k = 0; k < n; k++) {
    kiln__sort_call sort = r->sort[k];

    sort.in = k == 0 ? places[0] : words[1];
    sort.out = k == 0 ? places[1] : words[0];
    sort.values_in = k == 0 ? words[0] : places[1];
    sort.values_out = k == 0 ? words[1] : places[0];
    KILN_TRY(kiln__sort_queue(&c->storage, r->sorting, c->sort[k], &sort,
                              &r->sort_plan[k]));
  }
  st = KILN_LAUNCH(c->own->kernel[EMIT], &config, KILN_ARG(words[n % 2]),
                   KILN_ARG(places[n % 2]), KILN_ARG(to));

done:
  return st;
}

static kiln_status run_chunk(call *c, uint64_t row, uint64_t rows)
{
  kiln__rank_args args;
  kiln_status st = KILN_OK;

  KILN_TRY(
      kiln__rank_queue(&args, &c->storage, c->rank, &c->r->rank, row, rows));
  if (!c->r->large)
    return launch_lists(c, &args, row, rows);
  for (uint64_t k = 0; k < rows; k++)
    KILN_TRY(sort_row(c, &args, row + k, k));

done:
  return st;
}

/* Compiles the kernels, or finds them. */
static kiln_status specialise(call *c, kiln_stream *stream)
{
  const request *r = c->r;
  kiln__spec spec[4 + 2 * N_SORTS];
  const kiln__spec *specs[4 + 2 * N_SORTS];
  const kiln__kernel_set *set[4 + 2 * N_SORTS];
  size_t n = 0, sort_begin[N_SORTS];
  kiln_status st = KILN_OK;

  spec[n++] = own_spec(r);
  if (!r->direct)
    n += kiln__rank_specs(spec + n, &r->rank);
  for (size_t k = 0; k < n_sorts(r); k++) {
    sort_begin[k] = n;
    n += kiln__sort_specs(spec + n, &r->sort[k], &r->sort_plan[k]);
  }
  for (size_t k = 0; k < n; k++)
    specs[k] = &spec[k];
  KILN_TRY(kiln__specialise_all(set, stream->device, specs, n));
  c->own = set[0];
  for (size_t k = 0; k < 3; k++)
    c->rank[k] = k + 1 < n ? set[k + 1] : NULL;
  for (size_t k = 0; k < n_sorts(r); k++) {
    c->sort[k][0] = set[sort_begin[k]];
    c->sort[k][1] = sort_begin[k] + 1 < n ? set[sort_begin[k] + 1] : NULL;
  }

done:
  return st;
}

static kiln_status run(kiln_stream *stream, const request *r,
                       const kiln_workspace *workspace)
{
  call c = {.r = r};
  kiln_status st = KILN_OK;

  if (r->desc->k == 0)
    return KILN_OK;
  KILN_TRY(specialise(&c, stream));
  if (r->direct)
    return launch_rows(stream, r, c.own);
  KILN_TRY(kiln__storage_open(&c.storage, stream, workspace, r->need));
  for (uint64_t row = 0; st == KILN_OK && row < r->rows; row += r->rank.chunk) {
    const uint64_t rest = r->rows - row;

    st = run_chunk(&c, row, rest < r->rank.chunk ? rest : r->rank.chunk);
  }
  kiln__storage_close(&c.storage);

done:
  return st;
}

/* ---- Checks -------------------------------------------------------------- */

static void check_outputs(kiln__checker *c, const kiln_top_k_desc *desc,
                          uint64_t selected)
{
  const kiln_dtype type = desc->indices.type;

  kiln__check_that(c, kiln__given(desc->keys_out) || kiln__given(desc->indices),
                   "neither keys_out nor indices is given");
  if (kiln__given(desc->keys_out)) {
    kiln__check_write(c, "keys_out", desc->keys_out, selected);
    kiln__check_that(c, desc->keys_out.type == desc->keys.type,
                     "keys and keys_out differ in type");
  }
  if (!kiln__given(desc->indices))
    return;
  kiln__check_write(c, "indices", desc->indices, selected);
  kiln__check_that(c, kiln__is_index(type),
                   "indices have type %s; it must be i32, u32, i64 or u64",
                   kiln_dtype_name(type));
  kiln__check_that(c,
                   (type != KILN_I32 || desc->n <= UINT64_C(1) << 31) &&
                       (type != KILN_U32 || desc->n <= UINT64_C(1) << 32),
                   "indices of type %s cannot count n", kiln_dtype_name(type));
}

static kiln_status prepare(request *r, const kiln_stream *stream,
                           const kiln_top_k_desc *desc,
                           const kiln_workspace *workspace)
{
  const uint64_t most = UINT64_C(1) << 48;
  kiln__checker c;
  uint64_t rows;

  if (kiln__check_begin(&c, "kiln_top_k", stream, desc) != KILN_OK)
    return c.st;
  rows = desc->rows == 0 ? 1 : desc->rows;
  kiln__check_that(&c, desc->k <= desc->n, "k is %llu, above n, which is %llu",
                   (unsigned long long)desc->k, (unsigned long long)desc->n);
  kiln__check_that(&c, desc->k <= KILN_TOP_K_MOST, "k is %llu; at most %d",
                   (unsigned long long)desc->k, KILN_TOP_K_MOST);
  kiln__check_that(&c,
                   desc->n <= most && rows <= INT32_MAX &&
                       (desc->n == 0 || rows <= most / desc->n),
                   "too many rows or keys: rows * n is above 2^48, or rows is "
                   "2^31 or more");
  if (c.st != KILN_OK)
    return c.st;
  kiln__check_read(&c, "keys", desc->keys, rows * desc->n);
  check_outputs(&c, desc, rows * desc->k);
  if (kiln__check_workspace(&c, workspace) != KILN_OK)
    return c.st;
  *r = (request){.desc = desc, .rows = rows};
  if (desc->k > 0)
    make_plan(r, stream->device);
  return KILN_OK;
}

KILN__DEFINE_OPERATION(kiln_top_k, kiln_top_k_desc, request, prepare, run)

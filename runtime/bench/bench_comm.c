/* bench_comm.c -- `kiln bench comm`: the collectives of a group of ranks over sizes,
 * beside NCCL called directly in the same run, and the scaling of distributed
 * operations (bench_comm_scaling.c).
 *
 * Ranks are threads of this process, or the processes that mpirun has started. Each
 * call is timed from a barrier until its results are there, on the slowest rank. */
#include "bench/bench_comm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOST_TIME_MS = 1000 /* per measurement, apart from the first repeats */
};

typedef struct nccl_id {
  char bytes[128];
} nccl_id;

/* The functions of NCCL that are called directly, with their own signatures. */
typedef struct nccl_api {
  int (*get_id)(nccl_id *);
  int (*init)(void **, int, nccl_id, int);
  int (*destroy)(void *);
  int (*start)(void), (*end)(void);
  int (*send)(const void *, size_t, int, int, void *, void *);
  int (*receive)(void *, size_t, int, int, void *, void *);
  int (*all_reduce)(const void *, void *, size_t, int, int, void *, void *);
  int (*all_gather)(const void *, void *, size_t, int, void *, void *);
  bench_set_current_fn set_current;
} nccl_api;

enum { NCCL_BYTES = 1, NCCL_F32 = 7, NCCL_SUM = 0 };

/* A collective at one size. The threads of all ranks share it; only rank 0 writes the
 * results. */
typedef struct collective {
  const struct kind *what;
  const nccl_api *nccl; /* NULL: there is no comparison */
  uint64_t bytes;
  unsigned repeats;
  double ms, nccl_ms; /* NAN if it was not measured */
} collective;

/* One rank's share of it. */
typedef struct share {
  const nccl_api *nccl;
  void *nccl_comm;
  uint64_t n, part; /* elements of f32: all, and per pair of ranks */
  int ranks, rank;
} share;

/* ---- Time ---------------------------------------------------------------- */

/* Returns the largest of a number over all ranks. */
static kiln_status largest(const comm_rank *r, double mine, double *out)
{
  double all[CLI_MOST_RANKS];

  CLI_TRY(kiln_comm_share(r->comm, &mine, sizeof mine, all));
  *out = all[0];
  for (int p = 1; p < kiln_comm_size(r->comm); p++)
    *out = fmax(*out, all[p]);
  return KILN_OK;
}

static kiln_status time_once(comm_rank *r, comm_call_fn call, void *user,
                             double *ms)
{
  double start;

  CLI_TRY(kiln_comm_barrier(r->comm));
  start = kiln__cli_now_ns();
  CLI_TRY(call(r, user));
  return largest(r, (kiln__cli_now_ns() - start) / 1e6, ms);
}

kiln_status kiln__bench_comm_time(comm_rank *r, comm_call_fn call, void *user,
                                  double *ms)
{
  double times[BENCH_MOST_REPEATS], first = 0;
  unsigned repeats = r->repeats;

  CLI_TRY(time_once(r, call, user, &first)); /* it may compile */
  CLI_TRY(time_once(r, call, user, &first));
  if (first * repeats > MOST_TIME_MS)
    repeats = (unsigned)fmax(3, MOST_TIME_MS / first);
  if (repeats > r->repeats)
    repeats = r->repeats;
  for (unsigned k = 0; k < repeats; k++)
    CLI_TRY(time_once(r, call, user, &times[k]));
  *ms = kiln__cli_median(times, repeats);
  return KILN_OK;
}

/* ---- Collectives --------------------------------------------------------- */

static kiln_array whole(CUdeviceptr p)
{
  return (kiln_array){p, KILN_F32};
}

static kiln_status own_all_reduce(comm_rank *r, void *user)
{
  const share *const s = user;

  return kiln_comm_all_reduce(r->comm, r->stream, whole(r->in), whole(r->out),
                              s->n, KILN_SUM);
}

/* Fills the counts of blocks of the same length. */
static void same_counts(const share *s, uint64_t counts[CLI_MOST_RANKS])
{
  for (int p = 0; p < s->ranks; p++)
    counts[p] = s->part;
}

static kiln_status own_all_gather(comm_rank *r, void *user)
{
  const share *const s = user;
  uint64_t counts[CLI_MOST_RANKS];

  same_counts(s, counts);
  return kiln_comm_all_gather(r->comm, r->stream, whole(r->in), whole(r->out),
                              counts);
}

static kiln_status own_all_to_all(comm_rank *r, void *user)
{
  const share *const s = user;
  uint64_t counts[CLI_MOST_RANKS];

  same_counts(s, counts);
  return kiln_comm_all_to_all(r->comm, r->stream, whole(r->in), counts,
                              whole(r->out), counts, 0, NULL);
}

/* Even ranks send to the next rank. The last of an odd number does nothing. */
static kiln_status own_send(comm_rank *r, void *user)
{
  const share *const s = user;
  const int peer = s->rank ^ 1;

  if (peer >= s->ranks)
    return KILN_OK;
  if (s->rank < peer)
    return kiln_comm_send(r->comm, r->stream, whole(r->in), s->n, peer);
  return kiln_comm_receive(r->comm, r->stream, whole(r->out), s->n, peer);
}

static void *at(CUdeviceptr p, uint64_t element)
{
  return (void *)(uintptr_t)(p + element * sizeof(float));
}

static kiln_status checked(int result)
{
  if (result == 0)
    return KILN_OK;
  return kiln_error_write(KILN_ECOMM, "set NCCL_DEBUG=WARN to see its messages",
                          "a direct call of NCCL failed");
}

/* Ends a direct call: waits for its results, as Kiln's calls do. */
static kiln_status finished(const comm_rank *r, int result)
{
  return result != 0 ? checked(result) : kiln_stream_synchronize(r->stream);
}

static kiln_status nccl_all_reduce(comm_rank *r, void *user)
{
  const share *const s = user;

  return finished(r, s->nccl->all_reduce(at(r->in, 0), at(r->out, 0), s->n,
                                         NCCL_F32, NCCL_SUM, s->nccl_comm,
                                         kiln_stream_handle(r->stream)));
}

static kiln_status nccl_all_gather(comm_rank *r, void *user)
{
  const share *const s = user;

  return finished(r, s->nccl->all_gather(at(r->in, 0), at(r->out, 0), s->part,
                                         NCCL_F32, s->nccl_comm,
                                         kiln_stream_handle(r->stream)));
}

static kiln_status nccl_all_to_all(comm_rank *r, void *user)
{
  const share *const s = user;
  CUstream stream = kiln_stream_handle(r->stream);
  int result = s->nccl->start();

  for (int p = 0; p < s->ranks && result == 0; p++) {
    result = s->nccl->send(at(r->in, (uint64_t)p * s->part), s->part, NCCL_F32,
                           p, s->nccl_comm, stream);
    if (result == 0)
      result = s->nccl->receive(at(r->out, (uint64_t)p * s->part), s->part,
                                NCCL_F32, p, s->nccl_comm, stream);
  }
  return finished(r, result != 0 ? result : s->nccl->end());
}

static kiln_status nccl_send(comm_rank *r, void *user)
{
  const share *const s = user;
  CUstream stream = kiln_stream_handle(r->stream);
  const int peer = s->rank ^ 1;

  if (peer >= s->ranks)
    return KILN_OK;
  if (s->rank < peer)
    return finished(r, s->nccl->send(at(r->in, 0), s->n, NCCL_F32, peer,
                                     s->nccl_comm, stream));
  return finished(r, s->nccl->receive(at(r->out, 0), s->n, NCCL_F32, peer,
                                      s->nccl_comm, stream));
}

typedef struct kind {
  const char *name;
  comm_call_fn own, nccl;
  bool pairs; /* needs two ranks */
} kind;

static const kind kinds[] = {
    {"all-reduce", own_all_reduce, nccl_all_reduce, false},
    {"all-gather", own_all_gather, nccl_all_gather, false},
    {"all-to-all", own_all_to_all, nccl_all_to_all, false},
    {"send", own_send, nccl_send, true},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- NCCL, called directly ----------------------------------------------- */

static bool find_nccl(cli *c, nccl_api *out)
{
  const bench_symbol list[] = {
      {"ncclGetUniqueId", &out->get_id},   {"ncclCommInitRank", &out->init},
      {"ncclCommDestroy", &out->destroy},  {"ncclGroupStart", &out->start},
      {"ncclGroupEnd", &out->end},         {"ncclSend", &out->send},
      {"ncclRecv", &out->receive},         {"ncclAllReduce", &out->all_reduce},
      {"ncclAllGather", &out->all_gather}, {NULL, NULL}};
  const bench_symbol driver[] = {{"cuCtxSetCurrent", &out->set_current},
                                 {NULL, NULL}};
  kiln_nccl_info *const info = kiln__cli_alloc(c, 1, sizeof *info);
  const char *why;

  return !c->on_cpu && kiln_comm_nccl(info, NULL) == KILN_OK &&
         kiln__bench_symbols(info->path, list, &why) != NULL &&
         kiln__bench_driver_symbols(c, driver, &why) != NULL;
}

/* Creates a communicator of NCCL for this rank, from an id of rank 0. If NCCL refuses
 * a rank, for example since two of them share a GPU, no rank is compared with it. */
static kiln_status join_nccl(const comm_rank *r, share *s)
{
  nccl_id id, all[CLI_MOST_RANKS];
  CUcontext context;
  double worst;
  int result;

  memset(&id, 0, sizeof id);
  CLI_TRY(kiln_device_context(kiln_comm_device(r->comm), &context));
  CLI_TRY(checked(s->nccl->set_current(context)));
  if (s->rank == 0)
    CLI_TRY(checked(s->nccl->get_id(&id)));
  CLI_TRY(kiln_comm_share(r->comm, &id, sizeof id, all));
  result = s->nccl->init(&s->nccl_comm, s->ranks, all[0], s->rank);
  CLI_TRY(largest(r, result, &worst));
  if (worst > 0)
    s->nccl = NULL;
  return KILN_OK;
}

/* ---- One measurement ----------------------------------------------------- */

static kiln_status measure(comm_rank *r, collective *m, share *s)
{
  const size_t size =
      ((size_t)s->part * (size_t)s->ranks + (size_t)s->n + 1) * sizeof(float);
  double own = 0, direct = NAN;

  CLI_TRY(kiln_memory_alloc(&r->in, kiln_comm_device(r->comm), size));
  CLI_TRY(kiln_memory_alloc(&r->out, kiln_comm_device(r->comm), size));
  CLI_TRY(kiln_fill(kiln_comm_device(r->comm), r->in, 0, 4, size / 4));
  CLI_TRY(kiln__bench_comm_time(r, m->what->own, s, &own));
  if (s->nccl != NULL) {
    CLI_TRY(join_nccl(r, s));
    if (s->nccl != NULL)
      CLI_TRY(kiln__bench_comm_time(r, m->what->nccl, s, &direct));
  }
  if (s->rank == 0) {
    m->ms = own;
    m->nccl_ms = direct;
  }
  return KILN_OK;
}

static kiln_status run_rank(kiln_comm *comm, void *user)
{
  collective *const m = user;
  comm_rank r = {.comm = comm, .repeats = m->repeats};
  share s = {.nccl = m->nccl,
             .ranks = kiln_comm_size(comm),
             .rank = kiln_comm_rank(comm)};
  kiln_status st = kiln_stream_create(&r.stream, kiln_comm_device(comm), NULL);

  s.n = m->bytes / sizeof(float);
  s.part = (s.n + (uint64_t)s.ranks - 1) / (uint64_t)s.ranks;
  if (st == KILN_OK)
    st = measure(&r, m, &s);
  if (s.nccl_comm != NULL)
    (void)m->nccl->destroy(s.nccl_comm);
  (void)kiln_memory_free(kiln_comm_device(comm), r.in);
  (void)kiln_memory_free(kiln_comm_device(comm), r.out);
  kiln_stream_free(r.stream);
  return st;
}

static void add_row(cli *c, cli_table *t, cJSON *rows, const collective *m,
                    const cli_ranks *all)
{
  cJSON *const row = kiln__cli_json_item(rows);
  const double rate = (double)m->bytes / (m->ms * 1e6);
  const bool both = isfinite(m->nccl_ms);

  kiln__cli_cells(t, "%s\t%s\t%.2f\t%.3f\t%s\t%s", m->what->name,
                  kiln__cli_bytes(c, m->bytes), m->ms * 1e3, rate,
                  both ? kiln__cli_text(c, "%.2f", m->nccl_ms * 1e3) : "",
                  both ? kiln__cli_text(c, "%.3f", m->nccl_ms / m->ms) : "");
  JSON_TEXT(row, "call", m->what->name);
  JSON_TEXT(row, "engine", kiln_comm_engine(all->comms[0]));
  JSON_NUMBER(row, "ranks", all->size);
  JSON_NUMBER(row, "bytes", m->bytes);
  JSON_NUMBER(row, "ms", m->ms);
  JSON_NUMBER(row, "gb_per_s", rate);
  if (both)
    JSON_NUMBER(row, "nccl_ms", m->nccl_ms);
}

static kiln_status bench_collectives(cli *c, const cli_ranks *all,
                                     const bench_options *o, cJSON *rows)
{
  static const char *const heads[] = {"call",     ">bytes", ">us", ">GB/s",
                                      ">NCCL us", ">ratio", NULL};
  nccl_api api;
  const bool direct = find_nccl(c, &api);
  cli_table table;

  kiln__cli_table(&table, c, heads);
  for (int k = 0; k < KINDS; k++) {
    if (!kiln__bench_chosen(o, kinds[k].name) ||
        (kinds[k].pairs && all->size < 2))
      continue;
    for (size_t i = 0; i < o->sizes.n; i++) {
      collective m = {.what = &kinds[k],
                      .nccl = direct ? &api : NULL,
                      .bytes = UINT64_C(1) << o->sizes.bits[i],
                      .repeats = o->repeats};

      CLI_TRY(kiln__cli_ranks_run(all, run_rank, &m));
      if (all->first == 0)
        add_row(c, &table, rows, &m, all);
    }
  }
  if (all->first == 0 && table.n > 0)
    kiln__cli_table_print(&table, 0);
  return KILN_OK;
}

/* ---- The command --------------------------------------------------------- */

typedef struct request {
  bench_options o;
  unsigned ranks, elements;
  bool nccl, nccl_only;
} request;

static kiln_status run(cli *c, const request *q, cJSON *json, bool *speaks)
{
  const kiln_comm_opts opts = {.data =
                                   q->nccl ? KILN_COMM_NCCL : KILN_COMM_HOST};
  cli_ranks all;
  kiln_device_info info;
  kiln_status st;

  CLI_TRY(kiln__cli_ranks_open(&all, c, (int)q->ranks, q->o.device, &opts));
  *speaks = all.first == 0;
  st = kiln_device_describe(all.devices[0], &info);
  if (st == KILN_OK && q->nccl_only)
    st = kiln__cli_ranks_nccl_only(&all);
  if (st == KILN_OK && *speaks) {
    printf("%d ranks, engine %s, %s; medians of up to %u\n\n", all.size,
           kiln_comm_engine(all.comms[0]), info.name, q->o.repeats);
    JSON_TEXT(json, "device", info.name);
    JSON_NUMBER(json, "ranks", all.size);
  }
  if (st == KILN_OK)
    st = bench_collectives(c, &all, &q->o,
                           cJSON_AddArrayToObject(json, "collectives"));
  if (st == KILN_OK && !q->nccl_only)
    st = kiln__bench_comm_scaling(c, &all, &q->o, &opts, q->elements,
                                  cJSON_AddArrayToObject(json, "scaling"));
  kiln__cli_ranks_close(&all);
  return st;
}

/* Returns the number of GPUs, at least one. */
static unsigned count_devices(const cli *c)
{
  int count = 0;

  if (c->on_cpu || kiln_device_count(c->rt, &count) != KILN_OK || count < 1)
    return c->on_cpu ? 4 : 1;
  return (unsigned)(count < CLI_MOST_RANKS ? count : CLI_MOST_RANKS);
}

int kiln__bench_comm(cli *c, int argc, char **argv)
{
  request q = {.o = {.repeats = 21}};
  const cli_option options[] = {
      CLI_OPTION_NUMBER("ranks", &q.ranks, 1, CLI_MOST_RANKS,
                        "ranks, as threads that use the GPUs in turn; default: "
                        "one per GPU, or 4 on the CPU device"),
      CLI_OPTION_FLAG("nccl", &q.nccl,
                      "let NCCL move the data; needs one GPU per rank"),
      CLI_OPTION_FLAG("nccl-only", &q.nccl_only,
                      "collectives of a group that has only NCCL and announces "
                      "nothing"),
      CLI_OPTION_SIZES(&q.o.sizes, 2, 34,
                       "log2 of the bytes; default 3,10,16,20,24,27,30, on the "
                       "CPU device 3,10,16,20"),
      CLI_OPTION_NUMBER(
          "elements", &q.elements, 4, 33,
          "log2 of the elements of the operations; default 28, on "
          "the CPU device 12"),
      CLI_OPTION_NUMBER("repeats", &q.o.repeats, 3, BENCH_MOST_REPEATS,
                        "timed runs of each, at most; default 21"),
      BENCH_OPTION_ONLY(&q.o, "run only the collective or operation"),
      BENCH_OPTION_DEVICE(&q.o),
      BENCH_OPTION_OUTPUT(&q.o),
      CLI_OPTIONS_END};
  const cli_syntax syntax = {
      .synopsis = "kiln bench comm [options]\n"
                  "mpirun -n N kiln bench comm [options]\n",
      .about =
          "Measures the collectives of a group of ranks from 8 bytes on, on a "
          "GPU beside NCCL called directly in the same run, and distributed "
          "operations on 1, 2, 4, ... ranks. Ranks are threads, or the "
          "processes "
          "of mpirun. The sum, the dot product and the scan have 2^elements "
          "per "
          "rank. The sort has 2^elements keys in all, the matrices "
          "2^(elements/2) "
          "rows, and there are 2^(2/3 elements) bodies.",
      .options = options,
      .example = "kiln bench comm --ranks 4 --nccl --plot comm.svg"};
  cli_words words;
  cJSON *json;
  kiln_status st;
  bool speaks = true;
  int rc = kiln__cli_parse(c, &syntax, argc, argv, &words);

  if (rc != CLI_OK)
    return rc;
  if (q.o.sizes.n == 0)
    q.o.sizes = c->on_cpu ? (cli_sizes){{3, 10, 16, 20}, 4}
                          : (cli_sizes){{3, 10, 16, 20, 24, 27, 30}, 7};
  if (q.elements == 0)
    q.elements = c->on_cpu ? 12 : 28;
  if (q.ranks == 0 && !kiln__cli_under_mpi())
    q.ranks = count_devices(c);
  json = cJSON_CreateObject();
  st = run(c, &q, json, &speaks);
  rc = st == KILN_OK ? CLI_OK : kiln__cli_failure(c, "comm");
  if (!speaks) { /* another process writes the results */
    cJSON_Delete(json);
    return rc;
  }
  return kiln__bench_end(c, &q.o, rc, json);
}

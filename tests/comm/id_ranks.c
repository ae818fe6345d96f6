/* id_ranks.c -- groups from ids and from the caller's ncclComm_t: ids that are not
 * valid, wrong numbers of ranks, ranks that never join, a device array that passes
 * through the caller's communicator. */
#include "rank_main.h"

#include <dlfcn.h>

static const kiln_comm_opts impatient = {.timeout_ms = 300};

static void check_text(kiln_comm *comm, kiln_status st, kiln_status want,
                       const char *text)
{
  if (st != want || strstr(kiln_last_error()->message, text) == NULL)
    printf("%s: %s\n", kiln_status_name(st), kiln_last_error()->message);
  CHECK(st == want);
  CHECK(strstr(kiln_last_error()->message, text) != NULL);
}

static void invalid_ids(kiln_comm *comm)
{
  kiln_device *const device = kiln_comm_device(comm);
  kiln_comm *made = comm;
  kiln_comm_id id = {"no id"};

  check_text(comm, kiln_comm_create_id(&made, device, &id, 1, 0, NULL),
             KILN_EINVAL, "not one of kiln_comm_unique_id()");
  CHECK(made == NULL);
  CHECK_OK(kiln_comm_unique_id(&id, NULL));
  check_text(comm, kiln_comm_create_id(&made, device, &id, 2, 2, NULL),
             KILN_EINVAL, "rank 2 of 2 ranks");
  check_text(comm, kiln_comm_create_id(&made, device, &id, 65, 0, NULL),
             KILN_EINVAL, "at most 64 ranks");
  check_text(comm, kiln_comm_create_id(&made, device, &id, 2, 0, &impatient),
             KILN_ECOMM, "only 1 of 2 ranks have joined");
  id.bytes[12] ^= 1; /* the machine */
  check_text(comm, kiln_comm_create_id(&made, device, &id, 1, 0, NULL),
             KILN_EINVAL, "another machine");
}

/* The ranks disagree about the size of the group. */
static void wrong_size(kiln_comm *comm)
{
  const int me = kiln_comm_rank(comm), n = kiln_comm_size(comm);
  kiln_comm_id id, ids[MOST_RANKS];
  kiln_comm *made;
  kiln_status st;

  CHECK_OK(kiln_comm_unique_id(&id, NULL));
  CHECK_OK(kiln_comm_share(comm, &id, sizeof id, ids));
  if (me > 1)
    return;
  st = kiln_comm_create_id(&made, kiln_comm_device(comm), &ids[0], n + 1 + me,
                           me, &impatient);
  CHECK(st == KILN_ECOMM && made == NULL);
}

static void check_sum(kiln_comm *comm)
{
  const int32_t mine[3] = {1, kiln_comm_rank(comm), 2};
  const CUdeviceptr x = upload(comm, mine, sizeof mine);
  const int n = kiln_comm_size(comm);
  kiln_stream *stream;
  int32_t sum[3];

  CHECK_OK(kiln_stream_create(&stream, kiln_comm_device(comm), NULL));
  CHECK_OK(kiln_comm_all_reduce(comm, stream, (kiln_array){x, KILN_I32},
                                (kiln_array){x, KILN_I32}, 3, KILN_SUM));
  CHECK_OK(kiln_comm_barrier(comm));
  download(comm, sum, x, sizeof sum);
  CHECK(sum[0] == n && sum[1] == n * (n - 1) / 2 && sum[2] == 2 * n);
  release(comm, x);
  kiln_stream_free(stream);
}

/* A group inside the group, from an id that rank 0 makes. */
static void inner_group(kiln_comm *comm)
{
  kiln_comm_id id, ids[MOST_RANKS];
  kiln_comm *made;

  CHECK_OK(kiln_comm_unique_id(&id, NULL));
  CHECK_OK(kiln_comm_share(comm, &id, sizeof id, ids));
  CHECK_OK(kiln_comm_create_id(&made, kiln_comm_device(comm), &ids[0],
                               kiln_comm_size(comm), kiln_comm_rank(comm),
                               NULL));
  CHECK(strcmp(kiln_comm_engine(made), "shared memory") == 0);
  check_sum(made);
  kiln_comm_free(made);
}

/* The functions of NCCL that a program calls which has its own communicator. */
typedef struct nccl_id {
  char bytes[128];
} nccl_id;

static void *nccl_function(kiln_comm *comm, const char *name)
{
  void *const library = dlopen(getenv("KILN_NCCL"), RTLD_NOW);
  void *const symbol = library != NULL ? dlsym(library, name) : NULL;

  CHECK(symbol != NULL);
  return symbol;
}

static void callers_nccl(kiln_comm *comm)
{
  int (*get)(nccl_id *), (*init)(void **, int, nccl_id, int), (*end)(void *);
  void *symbol, *theirs = NULL;
  nccl_id id, ids[MOST_RANKS];
  kiln_comm *made, *part;

  symbol = nccl_function(comm, "ncclGetUniqueId");
  memcpy(&get, &symbol, sizeof get);
  symbol = nccl_function(comm, "ncclCommInitRank");
  memcpy(&init, &symbol, sizeof init);
  symbol = nccl_function(comm, "ncclCommDestroy");
  memcpy(&end, &symbol, sizeof end);
  memset(&id, 0, sizeof id);
  CHECK(kiln_comm_rank(comm) != 0 || get(&id) == 0);
  CHECK_OK(kiln_comm_share(comm, &id, sizeof id, ids));
  CHECK(init(&theirs, kiln_comm_size(comm), ids[0], kiln_comm_rank(comm)) == 0);
  CHECK_OK(kiln_comm_from_nccl(&made, kiln_comm_device(comm), theirs, NULL));
  CHECK(kiln_comm_rank(made) == kiln_comm_rank(comm));
  CHECK(kiln_comm_size(made) == kiln_comm_size(comm));
  CHECK(strcmp(kiln_comm_engine(made), "nccl") == 0);
  check_sum(made);
  CHECK_OK(kiln_comm_split(&part, made, kiln_comm_rank(comm) % 2, 0));
  check_sum(part);
  kiln_comm_free(part);
  kiln_comm_free(made);
  CHECK_OK(kiln_comm_from_nccl(&made, kiln_comm_device(comm), theirs, NULL));
  check_sum(made); /* it was not destroyed */
  kiln_comm_free(made);
  CHECK(end(theirs) == 0);
}

static kiln_status ids(kiln_comm *comm, void *user)
{
  (void)user;
  check_text(comm, kiln_comm_unique_id(NULL, NULL), KILN_EINVAL, "out is NULL");
  if (nccl_only) {
    callers_nccl(comm);
    return KILN_OK;
  }
  invalid_ids(comm);
  inner_group(comm);
  wrong_size(comm);
  return KILN_OK;
}

int main(int argc, char **argv)
{
  return rank_main(argc, argv, ids, NULL);
}

/* failure_ranks.c -- groups that break: a wrong count, an invalid argument, a rank
 * that stays away, an abort. Every other rank must get KILN_ECOMM with the rank
 * and the cause, in time. A new group must work afterwards.
 *
 *   comm_failure kill SEED   one of the processes that MPI has started kills
 *                            itself at a random moment; the others must notice
 *   comm_failure kills N     the same with N groups of processes that share memory */
#include "rank_main.h"

#include <signal.h>
#include <time.h>

enum { TIMEOUT_MS = 1500, CULPRIT = 1, N = 100 };

/* Only the scenes in which a rank does not answer have a short timeout, so that a
 * slow machine fails no test. */
static const kiln_comm_opts impatient = {.timeout_ms = TIMEOUT_MS};

/* Time after the timeout within which a rank must return. */
static uint64_t slack_ms(void)
{
  return thorough() ? 2000 : 20000;
}

static uint64_t now_ms(void)
{
  struct timespec t;

  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void sleep_ms(unsigned ms)
{
  const struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};

  (void)nanosleep(&t, NULL);
}

/* The arrays of a rank. */
typedef struct arrays {
  kiln_stream *stream;
  kiln_array in, out;
} arrays;

static arrays make_arrays(kiln_comm *comm)
{
  arrays a = {.in = {0, KILN_I32}, .out = {0, KILN_I32}};

  CHECK_OK(kiln_stream_create(&a.stream, kiln_comm_device(comm), NULL));
  a.in.data = device_bytes(comm, N * sizeof(int32_t));
  a.out.data = device_bytes(comm, N * sizeof(int32_t));
  CHECK_OK(kiln_fill(kiln_comm_device(comm), a.in.data, 1, 4, N));
  return a;
}

static void free_arrays(kiln_comm *comm, const arrays *a)
{
  release(comm, a->in.data);
  release(comm, a->out.data);
  kiln_stream_free(a->stream);
}

static kiln_status all_reduce(kiln_comm *comm, const arrays *a, uint64_t n)
{
  return kiln_comm_all_reduce(comm, a->stream, a->in, a->out, n, KILN_SUM);
}

/* The group must be broken because of CULPRIT, with this text in the cause. */
static void check_broken(kiln_comm *comm, const arrays *a, kiln_status st,
                         const char *text)
{
  int rank = -1;
  const char *cause = kiln_comm_failure(comm, &rank);

  if (st == KILN_OK) /* at the latest the next call reports it */
    st = all_reduce(comm, a, N);
  cause = kiln_comm_failure(comm, &rank);
  if (st != KILN_ECOMM || rank != CULPRIT || strstr(cause, text) == NULL)
    printf("%s, rank %d: %s\n", kiln_status_name(st), rank, cause);
  CHECK(st == KILN_ECOMM && rank == CULPRIT);
  CHECK(strstr(cause, text) != NULL);
  CHECK(strstr(kiln_last_error()->message, cause) != NULL);
  CHECK(all_reduce(comm, a, N) == KILN_ECOMM);
  CHECK(kiln_comm_barrier(comm) == KILN_ECOMM);
}

static kiln_status wrong_count(kiln_comm *comm, void *user)
{
  const arrays a = make_arrays(comm);
  const bool culprit = kiln_comm_rank(comm) == CULPRIT;

  (void)user;
  check_broken(comm, &a, all_reduce(comm, &a, culprit ? N - 1 : N),
               "all-reduce of 99 elements of type i32");
  free_arrays(comm, &a);
  return KILN_OK;
}

static kiln_status other_call(kiln_comm *comm, void *user)
{
  const arrays a = make_arrays(comm);
  const bool culprit = kiln_comm_rank(comm) == CULPRIT;

  (void)user;
  check_broken(comm, &a,
               culprit ? kiln_comm_barrier(comm) : all_reduce(comm, &a, N),
               "barrier");
  free_arrays(comm, &a);
  return KILN_OK;
}

static kiln_status invalid_argument(kiln_comm *comm, void *user)
{
  const arrays a = make_arrays(comm);
  kiln_status st;

  (void)user;
  if (kiln_comm_rank(comm) == CULPRIT) {
    st = kiln_comm_all_reduce(comm, a.stream, a.in, a.out, N, (kiln_op_name)99);
    CHECK(st == KILN_EINVAL);
    CHECK(all_reduce(comm, &a, N) == KILN_ECOMM);
  } else {
    check_broken(comm, &a, all_reduce(comm, &a, N),
                 "rank 1 failed: KILN_EINVAL");
  }
  free_arrays(comm, &a);
  return KILN_OK;
}

static kiln_status stays_away(kiln_comm *comm, void *user)
{
  const arrays a = make_arrays(comm);
  const uint64_t before = now_ms();

  (void)user;
  if (kiln_comm_rank(comm) == CULPRIT)
    sleep_ms(2 * TIMEOUT_MS);
  check_broken(comm, &a, all_reduce(comm, &a, N), "rank 1 did not answer");
  CHECK(kiln_comm_rank(comm) == CULPRIT ||
        now_ms() - before < TIMEOUT_MS + slack_ms());
  free_arrays(comm, &a);
  return KILN_OK;
}

static kiln_status aborts(kiln_comm *comm, void *user)
{
  const arrays a = make_arrays(comm);

  (void)user;
  if (kiln_comm_rank(comm) == CULPRIT)
    CHECK_OK(kiln_comm_abort(comm, "the input is empty"));
  check_broken(comm, &a, all_reduce(comm, &a, N), "the input is empty");
  free_arrays(comm, &a);
  return KILN_OK;
}

/* One rank's output is too small for what it receives. */
static kiln_status small_output(kiln_comm *comm, void *user)
{
  const arrays a = make_arrays(comm);
  const uint64_t sends[MOST_RANKS] = {1, 1, 1, 1, 1, 1, 1, 1};
  const bool culprit = kiln_comm_rank(comm) == CULPRIT;
  kiln_status st;

  (void)user;
  st = kiln_comm_all_to_all(comm, a.stream, a.in, sends, a.out, NULL,
                            culprit ? 1 : N, NULL);
  if (culprit)
    CHECK(st == KILN_EINVAL);
  else
    check_broken(comm, &a, st, "has space for");
  free_arrays(comm, &a);
  return KILN_OK;
}

/* A wrong size of a pair: the receiver finds it. */
static kiln_status wrong_pair(kiln_comm *comm, void *user)
{
  const arrays a = make_arrays(comm);
  kiln_status st = KILN_OK;

  (void)user;
  if (kiln_comm_rank(comm) == CULPRIT)
    st = kiln_comm_send(comm, a.stream, a.in, N - 1, 0);
  else if (kiln_comm_rank(comm) == 0)
    st = kiln_comm_receive(comm, a.stream, a.in, N, CULPRIT);
  check_broken(comm, &a, st, "sends 396 bytes to rank 0, which expects 400");
  free_arrays(comm, &a);
  return KILN_OK;
}

static kiln_status works(kiln_comm *comm, void *user)
{
  const arrays a = make_arrays(comm);
  int32_t sums[N];

  (void)user;
  CHECK_OK(all_reduce(comm, &a, N));
  download(comm, sums, a.out.data, sizeof sums);
  for (int i = 0; i < N; i++)
    CHECK(sums[i] == kiln_comm_size(comm));
  CHECK(kiln_comm_failure(comm, NULL)[0] == '\0');
  free_arrays(comm, &a);
  return KILN_OK;
}

typedef struct scene {
  kiln_comm_fn fn;
  const kiln_comm_opts *opts;
  const char *wait; /* seconds for which the fake NCCL waits, NULL: 60 */
} scene;

/* With the fake NCCL, the culprit fails in its third exchange. The others notice it
 * there, or while they still wait for the end of the second, which it has left. */
static kiln_status nccl_fails(kiln_comm *comm, void *user)
{
  const arrays a = make_arrays(comm);
  const bool culprit = kiln_comm_rank(comm) == CULPRIT;
  kiln_status st = KILN_OK;
  const char *cause;
  int calls = 0;

  (void)user;
  if (strcmp(kiln_comm_engine(comm), "nccl") == 0) {
    while (st == KILN_OK && calls++ < 10)
      st = all_reduce(comm, &a, N);
    CHECK(st == KILN_ECOMM);
    CHECK(calls == 3 || (calls == 2 && !culprit));
    cause = kiln_comm_failure(comm, NULL);
    CHECK(strstr(cause, calls == 3 ? "ncclAllReduce failed" : "failed") !=
          NULL);
    CHECK(all_reduce(comm, &a, N) == KILN_ECOMM);
  }
  free_arrays(comm, &a);
  return KILN_OK;
}

/* With NCCL alone, a rank that stays away is not named. */
static kiln_status stays_away_alone(kiln_comm *comm, void *user)
{
  const arrays a = make_arrays(comm);
  kiln_status st;

  (void)user;
  if (kiln_comm_rank(comm) == CULPRIT)
    sleep_ms(3000); /* longer than the fake NCCL waits in this scene */
  st = all_reduce(comm, &a, N);
  CHECK(kiln_comm_rank(comm) == CULPRIT || st == KILN_ECOMM);
  CHECK(kiln_comm_rank(comm) == CULPRIT ||
        kiln_comm_failure(comm, NULL)[0] != '\0');
  free_arrays(comm, &a);
  return KILN_OK;
}

static const scene scenes_alone[] = {{works, NULL, NULL},
                                     {stays_away_alone, NULL, "1"},
                                     {nccl_fails, NULL, NULL},
                                     {works, NULL, NULL}};

/* In small_output() the fake NCCL cannot know that the culprit sends nothing. */
static const scene scenes[] = {
    {wrong_count, NULL, NULL},      {works, NULL, NULL},
    {other_call, NULL, NULL},       {invalid_argument, NULL, NULL},
    {stays_away, &impatient, NULL}, {aborts, NULL, NULL},
    {small_output, NULL, "3"},      {wrong_pair, NULL, NULL},
    {nccl_fails, NULL, NULL},       {works, NULL, NULL}};
enum { SCENES = sizeof scenes / sizeof *scenes };

/* ---- A rank that dies ---------------------------------------------------- */

/* Each process makes all-reduces until the group breaks. One process kills
 * itself after a random number of microseconds; with seed 0 none does, and the
 * network breaks the group. */
static kiln_status die_or_survive(kiln_comm *comm, uint64_t seed)
{
  const arrays a = make_arrays(comm);
  uint64_t last;
  int victim, rank = -1;
  kiln_status st = KILN_OK;

  CHECK_OK(all_reduce(comm, &a, N));
  victim = (int)(mixed(seed, 1, 2) % (uint64_t)kiln_comm_size(comm));
  printf("ready\n");
  fflush(stdout);
  if (kiln_comm_rank(comm) == victim && seed != 0) {
    const struct itimerspec when = {
        .it_value.tv_nsec = 1 + (long)(mixed(seed, 3, 4) % 50000000)};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
                             .sigev_signo = SIGKILL};
    timer_t timer;

    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    CHECK(timer_settime(timer, 0, &when, NULL) == 0);
  }
  do {
    last = now_ms();
    st = all_reduce(comm, &a, N);
  } while (st == KILN_OK);
  (void)kiln_comm_failure(comm, &rank);
  printf("rank %d: %s after %llu ms: %s\n", kiln_comm_rank(comm),
         kiln_status_name(st), (unsigned long long)(now_ms() - last),
         kiln_last_error()->message);
  CHECK(st == KILN_ECOMM);
  CHECK(now_ms() - last < TIMEOUT_MS + slack_ms());
  if (rank == victim)
    printf("named of seed %llu\n", (unsigned long long)seed);
  free_arrays(comm, &a);
  printf("survivor of seed %llu\n", (unsigned long long)seed);
  fflush(stdout);
  return KILN_OK;
}

static int kill_one(uint64_t seed)
{
  kiln_comm *comm = NULL;

  need(kiln_comm_create_mpi(&comm, open_device(0), NULL, &impatient));
  need(die_or_survive(comm, seed));
  kiln_comm_free(comm);
  _exit(0);
}

static uint64_t kill_seed;

static kiln_status kill_scene(kiln_comm *comm, void *user)
{
  (void)user;
  return die_or_survive(comm, kill_seed);
}

/* run_shared() fails because of the process that was killed; the others print that
 * they survived, which launch.sh counts. */
static int kill_many(uint64_t groups)
{
  for (kill_seed = 1; kill_seed <= groups; kill_seed++)
    (void)run_shared(4, kill_scene, &impatient);
  return 0;
}

static int run_scenes(int argc, char **argv, const scene *list, int n)
{
  int result = 0;

  for (int i = 0; i < n && result == 0; i++) {
    if (list[i].fn == nccl_fails)
      setenv("FAKE_NCCL_FAIL", "3", 1);
    else
      unsetenv("FAKE_NCCL_FAIL");
    setenv("FAKE_NCCL_WAIT", list[i].wait != NULL ? list[i].wait : "60", 1);
    result = rank_main(argc, argv, list[i].fn, list[i].opts);
    rank_runtime = NULL;
  }
  return result;
}

int main(int argc, char **argv)
{
  if (argc == 3 && strcmp(argv[1], "kill") == 0)
    return kill_one(strtoull(argv[2], NULL, 10));
  if (argc == 3 && strcmp(argv[1], "kills") == 0)
    return kill_many(strtoull(argv[2], NULL, 10));
  if (argc == 3 && strcmp(argv[1], "alone") == 0)
    return run_scenes(argc, argv, scenes_alone,
                      sizeof scenes_alone / sizeof *scenes_alone);
  return run_scenes(argc, argv, scenes, SCENES);
}

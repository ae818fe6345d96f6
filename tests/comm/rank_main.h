/* rank_main.h -- main() of the tests of groups.
 *
 *   comm_X local 4       four threads of this process
 *   comm_X nccl 4        the same, and NCCL moves the data (KILN_NCCL)
 *   comm_X alone 4       four threads that have only NCCL
 *   comm_X shared 4      four processes that share memory
 *   mpirun -n 4 comm_X mpi   processes that MPI has started
 *
 * Each rank runs the same function. A check that fails prints the rank and the
 * line, and ends the process. */
#ifndef KILN_RANK_MAIN_H
#define KILN_RANK_MAIN_H

#include <kiln/comm.h>
#include <kiln/cpu.h>
#include <kiln/kiln.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_RANKS = 16 };

static kiln_runtime *rank_runtime;

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      printf("rank %d: %s:%d: %s does not hold\n", kiln_comm_rank(comm),       \
             __FILE__, __LINE__, #condition);                                  \
      fflush(stdout);                                                          \
      _exit(1);                                                                \
    }                                                                          \
  } while (0)

#define CHECK_OK(call)                                                         \
  do {                                                                         \
    const kiln_status check_st_ = (call);                                      \
    if (check_st_ != KILN_OK) {                                                \
      printf("rank %d: %s:%d: %s: %s: %s\n%s\n", kiln_comm_rank(comm),         \
             __FILE__, __LINE__, #call, kiln_status_name(check_st_),           \
             kiln_last_error()->message, kiln_last_error()->log);              \
      fflush(stdout);                                                          \
      _exit(check_st_ == KILN_ENONVRTC ? 77 : 1);                              \
    }                                                                          \
  } while (0)

static inline void need(kiln_status st)
{
  if (st == KILN_OK)
    return;
  printf("%s: %s\n", kiln_status_name(st), kiln_last_error()->message);
  fflush(stdout);
  _exit(1);
}

static inline bool thorough(void)
{
  const char *text = getenv("KILN_TEST_THOROUGH");

  return text != NULL && text[0] == '1';
}

static inline bool on_gpu(void)
{
  const char *which = getenv("KILN_DEVICE");

  return which != NULL && strcmp(which, "gpu") == 0;
}

/* A finding of the CPU device's checks fails the test. */
static inline void fail_on_finding(void *user, const kiln_cpu_finding *finding)
{
  (void)user;
  printf("%s\n", finding->text);
  fflush(stdout);
  _exit(1);
}

/* Opens the CPU device, or GPU `ordinal` if KILN_DEVICE is "gpu". */
static inline kiln_device *open_device(int ordinal)
{
  const char *which = getenv("KILN_DEVICE");
  kiln_runtime_opts opts = {.driver = NULL};
  kiln_device *device = NULL;
  int count = 1;

  if (rank_runtime == NULL) {
    if (!on_gpu()) {
      kiln_cpu_opts cpu;

      need(kiln_cpu_parse(&cpu,
                          which != NULL && which[0] != '\0' ? which : "cpu"));
      need(kiln_cpu_configure(&cpu));
      if (cpu.checks != 0)
        need(kiln_cpu_on_finding(fail_on_finding, NULL));
      opts.driver = kiln_cpu_driver();
    }
    need(kiln_runtime_create(&rank_runtime, &opts));
  }
  need(kiln_device_count(rank_runtime, &count));
  need(kiln_device_open(&device, rank_runtime, ordinal % count, NULL));
  return device;
}

static inline int run_local(int n, kiln_comm_fn fn, const kiln_comm_opts *opts)
{
  kiln_device *devices[MOST_RANKS];
  kiln_comm *comms[MOST_RANKS];

  if (n < 1 || n > MOST_RANKS)
    return 2;
  for (int i = 0; i < n; i++)
    devices[i] = open_device(i);
  need(kiln_comm_create_all(comms, devices, n, opts));
  need(kiln_comm_run(comms, n, fn, NULL));
  printf("%d ranks, %s: ok\n", n, kiln_comm_engine(comms[0]));
  for (int i = 0; i < n; i++)
    kiln_comm_free(comms[i]);
  for (int i = 0; i < n; i++)
    kiln_device_free(devices[i]);
  kiln_runtime_free(rank_runtime);
  return 0;
}

static inline int run_mpi(kiln_comm_fn fn, const kiln_comm_opts *opts)
{
  const char *local = getenv("OMPI_COMM_WORLD_LOCAL_RANK");
  kiln_device *device = open_device(local != NULL ? atoi(local) : 0);
  kiln_comm *comm = NULL;

  need(kiln_comm_create_mpi(&comm, device, NULL, opts));
  need(fn(comm, NULL));
  if (kiln_comm_rank(comm) == 0)
    printf("%d ranks, %s: ok\n", kiln_comm_size(comm), kiln_comm_engine(comm));
  kiln_comm_free(comm);
  kiln_device_free(device);
  kiln_runtime_free(rank_runtime);
  return 0;
}

/* ---- Ids ----------------------------------------------------------------- */

/* How the fake NCCL accesses the memory of the CPU device. NCCL's work begins after
 * what is queued in its stream. */
static inline void copy_memory(void *to, const void *from, size_t size,
                               int to_device)
{
  kiln_device *const device = open_device(0);

  need(kiln_device_synchronize(device));
  if (to_device)
    need(kiln_copy_to_device(device, (CUdeviceptr)(uintptr_t)to, from, size));
  else
    need(kiln_copy_to_host(device, to, (CUdeviceptr)(uintptr_t)from, size));
  kiln_device_free(device);
}

static inline void let_nccl_copy(void)
{
  void (*const function)(void *, const void *, size_t, int) = copy_memory;
  uintptr_t address;
  char text[32];

  memcpy(&address, &function, sizeof address);
  (void)snprintf(text, sizeof text, "%lx", (unsigned long)address);
  if (!on_gpu())
    (void)setenv("FAKE_NCCL_COPY", text, 1);
}

typedef struct id_rank {
  pthread_t thread;
  kiln_comm_id id;
  kiln_device *device;
  int rank, ranks;
  kiln_comm_fn fn;
  const kiln_comm_opts *opts;
} id_rank;

static inline void *run_id_rank(void *argument)
{
  const id_rank *const r = argument;
  kiln_comm *comm = NULL;

  need(kiln_comm_create_id(&comm, r->device, &r->id, r->ranks, r->rank,
                           r->opts));
  need(r->fn(comm, NULL));
  if (r->rank == 0)
    printf("%d ranks, %s: ok\n", r->ranks, kiln_comm_engine(comm));
  kiln_comm_free(comm);
  return NULL;
}

/* Whether the group has only NCCL. */
static bool nccl_only;

/* Runs the ranks of an id of NCCL as threads. */
static inline int run_alone(int n, kiln_comm_fn fn, const kiln_comm_opts *opts)
{
  const kiln_comm_opts nccl = {.data = KILN_COMM_NCCL};
  static id_rank ranks[MOST_RANKS];

  if (n < 1 || n > MOST_RANKS)
    return 2;
  nccl_only = true;
  let_nccl_copy();
  need(kiln_comm_unique_id(&ranks[0].id, &nccl));
  for (int i = 0; i < n; i++)
    ranks[i] = (id_rank){.id = ranks[0].id,
                         .device = open_device(i),
                         .rank = i,
                         .ranks = n,
                         .fn = fn,
                         .opts = opts};
  for (int i = 0; i < n; i++) {
    if (pthread_create(&ranks[i].thread, NULL, run_id_rank, &ranks[i]) != 0)
      return 1;
  }
  for (int i = 0; i < n; i++)
    (void)pthread_join(ranks[i].thread, NULL);
  for (int i = 0; i < n; i++)
    kiln_device_free(ranks[i].device);
  kiln_runtime_free(rank_runtime);
  return 0;
}

/* Runs the ranks of an id of shared memory as processes. */
static inline int run_shared(int n, kiln_comm_fn fn, const kiln_comm_opts *opts)
{
  id_rank r = {.ranks = n, .fn = fn, .opts = opts};
  int failed = 0, status;

  need(kiln_comm_unique_id(&r.id, NULL));
  fflush(stdout);
  for (int i = 0; i < n; i++) {
    if (fork() != 0)
      continue;
    r.rank = i;
    r.device = open_device(i);
    (void)run_id_rank(&r);
    fflush(stdout);
    kiln_device_free(r.device);
    kiln_runtime_free(rank_runtime);
    _exit(0);
  }
  while (wait(&status) > 0) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
      failed = 77;
    else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
      failed = 1;
  }
  return failed;
}

static inline int rank_main(int argc, char **argv, kiln_comm_fn fn,
                            const kiln_comm_opts *opts)
{
  if (argc == 3 && strcmp(argv[1], "local") == 0)
    return run_local(atoi(argv[2]), fn, opts);
  if (argc == 3 && strcmp(argv[1], "nccl") == 0) {
    kiln_comm_opts with_nccl = {.timeout_ms = 0};

    if (opts != NULL)
      with_nccl = *opts;
    with_nccl.data = KILN_COMM_NCCL;
    let_nccl_copy();
    return run_local(atoi(argv[2]), fn, &with_nccl);
  }
  if (argc == 3 && strcmp(argv[1], "alone") == 0)
    return run_alone(atoi(argv[2]), fn, opts);
  if (argc == 3 && strcmp(argv[1], "shared") == 0)
    return run_shared(atoi(argv[2]), fn, opts);
  if (argc == 2 && strcmp(argv[1], "mpi") == 0)
    return run_mpi(fn, opts);
  fprintf(stderr, "usage: %s local|nccl|alone|shared RANKS | %s mpi\n", argv[0],
          argv[0]);
  return 2;
}

/* ---- Arrays -------------------------------------------------------------- */

static inline CUdeviceptr device_bytes(kiln_comm *comm, size_t size)
{
  CUdeviceptr p = 0;

  CHECK_OK(kiln_memory_alloc(&p, kiln_comm_device(comm), size + 1));
  return p;
}

static inline CUdeviceptr upload(kiln_comm *comm, const void *data, size_t size)
{
  const CUdeviceptr p = device_bytes(comm, size);

  CHECK_OK(kiln_copy_to_device(kiln_comm_device(comm), p, data, size));
  return p;
}

static inline void download(kiln_comm *comm, void *out, CUdeviceptr p,
                            size_t size)
{
  CHECK_OK(kiln_copy_to_host(kiln_comm_device(comm), out, p, size));
}

static inline void release(kiln_comm *comm, CUdeviceptr p)
{
  CHECK_OK(kiln_memory_free(kiln_comm_device(comm), p));
}

static inline void *host_bytes(size_t size)
{
  void *p = calloc(1, size + 1);

  if (p == NULL)
    _exit(1);
  return p;
}

/* A number that depends on all arguments (splitmix64). */
static inline uint64_t mixed(uint64_t a, uint64_t b, uint64_t c)
{
  uint64_t z = a * 0x9e3779b97f4a7c15u + b * 0xd1b54a32d192ed03u + c;

  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

#endif

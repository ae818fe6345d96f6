/* rank_main.h -- main() of the tests of groups.
 *
 *   comm_X local 4       four threads of this process
 *   comm_X nccl 4        the same, and NCCL moves the data (KILN_NCCL)
 *   mpirun -n 4 comm_X mpi   processes that MPI has started
 *
 * Each rank runs the same function. A check that fails prints the rank and the
 * line, and ends the process. */
#ifndef KILN_RANK_MAIN_H
#define KILN_RANK_MAIN_H

#include <kiln/comm.h>
#include <kiln/cpu.h>
#include <kiln/kiln.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_RANKS = 16 };

static kiln_runtime *rank_runtime;

/* Arrays in managed memory, for the fake NCCL. */
static bool managed;

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
    managed = !on_gpu();
    return run_local(atoi(argv[2]), fn, &with_nccl);
  }
  if (argc == 2 && strcmp(argv[1], "mpi") == 0)
    return run_mpi(fn, opts);
  fprintf(stderr, "usage: %s local|nccl RANKS | %s mpi\n", argv[0], argv[0]);
  return 2;
}

/* ---- Arrays -------------------------------------------------------------- */

static inline CUdeviceptr device_bytes(kiln_comm *comm, size_t size)
{
  CUdeviceptr p = 0;

  if (managed)
    CHECK_OK(kiln_memory_alloc_managed(&p, kiln_comm_device(comm), size + 1));
  else
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

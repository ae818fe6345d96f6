/* ranks.h -- main() of the samples for several devices and machines.
 *
 *   ranks              four threads of this process, which use the GPUs in turn
 *   mpirun -n 4 ranks  four processes, under Open MPI or MPICH
 *
 * Every rank runs the same function on its own device. `user` is the sample. */
#ifndef KILN_SAMPLE_RANKS_H
#define KILN_SAMPLE_RANKS_H

#include "sample.h"

#include <kiln/distributed.h>

enum { SAMPLE_RANKS = 4, SAMPLE_MOST_RANKS = 64 };

/* Whether mpirun, mpiexec or srun has started this process as one of several. */
static inline bool sample_under_mpi(void)
{
  return getenv("OMPI_COMM_WORLD_SIZE") != NULL || getenv("PMI_SIZE") != NULL ||
         getenv("PMIX_RANK") != NULL;
}

/* Opens a device for rank `rank` among those of this machine. */
static inline kiln_device *sample_device(const sample *s, int rank)
{
  kiln_device *device;
  int count;

  SAMPLE_TRY(kiln_device_count(s->rt, &count));
  SAMPLE_TRY(kiln_device_open(&device, s->rt, rank % count, NULL));
  return device;
}

static inline void sample_one_process(sample *s, kiln_comm_fn fn)
{
  const char *const local = getenv("OMPI_COMM_WORLD_LOCAL_RANK");
  kiln_device *const device = sample_device(s, local != NULL ? atoi(local) : 0);
  kiln_comm *comm;

  SAMPLE_TRY(kiln_comm_create_mpi(&comm, device, NULL, NULL));
  SAMPLE_TRY(fn(comm, s));
  kiln_comm_free(comm);
  kiln_device_free(device);
}

static inline void sample_threads(sample *s, kiln_comm_fn fn)
{
  kiln_device *devices[SAMPLE_RANKS];
  kiln_comm *comms[SAMPLE_RANKS];

  for (int i = 0; i < SAMPLE_RANKS; i++)
    devices[i] = sample_device(s, i);
  SAMPLE_TRY(kiln_comm_create_all(comms, devices, SAMPLE_RANKS, NULL));
  SAMPLE_TRY(kiln_comm_run(comms, SAMPLE_RANKS, fn, s));
  for (int i = 0; i < SAMPLE_RANKS; i++) {
    kiln_comm_free(comms[i]);
    kiln_device_free(devices[i]);
  }
}

/* Runs fn on all ranks. Returns the exit code. */
static inline int sample_run_ranks(int argc, char **argv, kiln_comm_fn fn)
{
  sample s;

  sample_open(&s, argc, argv);
  if (sample_under_mpi())
    sample_one_process(&s, fn);
  else
    sample_threads(&s, fn);
  return sample_end(&s, true);
}

#endif

/* mpi_wire.c -- messages between processes through MPI: a plug-in library.
 *
 * The ABIs of Open MPI and MPICH differ, so this file is compiled once per MPI.
 * Kiln loads the library that fits the process (find_mpi.c).
 *
 * Only non-blocking point-to-point calls are used, because a collective of MPI
 * could not be left when a rank has died. Errors are returned to the caller. */
#include "../wire.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct mpi_wire {
  MPI_Comm comm;
  unsigned rests; /* since the last message that was done */
} mpi_wire;

typedef struct mpi_request {
  MPI_Request request;
  int receive;
} mpi_request;

/* Whether a group of this process broke, and no group of all processes was made
 * since. MPI_Finalize() might then wait for a dead rank. Only the thread that calls
 * MPI uses the variable. */
static int broke;

static void finalize_at_exit(void)
{
  int done = 1;

  (void)MPI_Finalized(&done);
  if (!done && !broke)
    (void)MPI_Finalize();
}

static void explain(int code, char why[KILN__WHY_SIZE])
{
  char text[MPI_MAX_ERROR_STRING] = "unknown error";
  int size = 0;

  (void)MPI_Error_string(code, text, &size);
  (void)snprintf(why, KILN__WHY_SIZE, "MPI: %.150s", text);
}

/* A new group of all processes shows that all of them live. */
static void note_group(int ranks)
{
  int all = 0;

  if (MPI_Comm_size(MPI_COMM_WORLD, &all) == MPI_SUCCESS && all == ranks)
    broke = 0;
}

static int start_mpi(char why[KILN__WHY_SIZE])
{
  int started = 0, level, code = MPI_Initialized(&started);

  if (code == MPI_SUCCESS && !started) {
    code = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    if (code == MPI_SUCCESS)
      (void)atexit(finalize_at_exit);
  }
  if (code != MPI_SUCCESS)
    explain(code, why);
  return code == MPI_SUCCESS;
}

static void *mpi_open(const void *parent, int *rank, int *ranks,
                      char why[KILN__WHY_SIZE])
{
  mpi_wire *const wire = calloc(1, sizeof *wire);
  MPI_Comm from;
  int code;

  if (wire == NULL) {
    (void)snprintf(why, KILN__WHY_SIZE, "out of host memory");
    return NULL;
  }
  if (!start_mpi(why)) {
    free(wire);
    return NULL;
  }
  from = parent != NULL ? *(const MPI_Comm *)parent : MPI_COMM_WORLD;
  code = MPI_Comm_dup(from, &wire->comm);
  if (code == MPI_SUCCESS)
    code = MPI_Comm_set_errhandler(wire->comm, MPI_ERRORS_RETURN);
  if (code == MPI_SUCCESS)
    code = MPI_Comm_rank(wire->comm, rank);
  if (code == MPI_SUCCESS)
    code = MPI_Comm_size(wire->comm, ranks);
  if (code != MPI_SUCCESS) {
    explain(code, why);
    free(wire);
    return NULL;
  }
  note_group(*ranks);
  return wire;
}

static void mpi_close(void *opened, int broken)
{
  mpi_wire *const wire = opened;
  int done = 0;

  (void)MPI_Finalized(&done);
  if (broken)
    broke = 1;
  else if (!done)
    (void)MPI_Comm_free(&wire->comm);
  free(wire);
}

static void *mpi_post(void *opened, int receive, int peer, int channel,
                      void *data, size_t size, char why[KILN__WHY_SIZE])
{
  mpi_wire *const wire = opened;
  mpi_request *const posted = calloc(1, sizeof *posted);
  int code;

  if (posted == NULL) {
    (void)snprintf(why, KILN__WHY_SIZE, "out of host memory for a message");
    return NULL;
  }
  posted->receive = receive;
  if (receive)
    code = MPI_Irecv(data, (int)size, MPI_BYTE, peer, channel, wire->comm,
                     &posted->request);
  else
    code = MPI_Isend(data, (int)size, MPI_BYTE, peer, channel, wire->comm,
                     &posted->request);
  if (code == MPI_SUCCESS)
    return posted;
  explain(code, why);
  free(posted);
  return NULL;
}

static int mpi_test(void *opened, void *request, char why[KILN__WHY_SIZE])
{
  mpi_wire *const wire = opened;
  mpi_request *const posted = request;
  int done = 0;
  const int code = MPI_Test(&posted->request, &done, MPI_STATUS_IGNORE);

  if (code == MPI_SUCCESS && !done)
    return 0;
  if (code != MPI_SUCCESS)
    explain(code, why);
  wire->rests = 0;
  free(posted);
  return code == MPI_SUCCESS ? 1 : -1;
}

/* A receive can always be cancelled. A send that its receiver never takes stays
 * with MPI, which may still read its memory. */
static int mpi_drop(void *opened, void *request)
{
  mpi_request *const posted = request;
  int done = 0;

  (void)opened;
  if (posted->receive) {
    (void)MPI_Cancel(&posted->request);
    (void)MPI_Wait(&posted->request, MPI_STATUS_IGNORE);
    done = 1;
  } else {
    for (int i = 0; i < 100 && !done; i++)
      if (MPI_Test(&posted->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        break;
    if (!done && posted->request != MPI_REQUEST_NULL)
      (void)MPI_Request_free(&posted->request);
  }
  free(posted);
  return done;
}

/* The first rests yield the processor. Later ones sleep, longer and longer, up to
 * a millisecond. */
static void mpi_rest(void *opened)
{
  mpi_wire *const wire = opened;
  struct timespec t = {0, 0};

  if (wire->rests < 1000)
    wire->rests++;
  if (wire->rests > 50)
    t.tv_nsec = (long)wire->rests * 1000;
  (void)nanosleep(&t, NULL);
}

#ifdef OPEN_MPI
#define MPI_NAME "mpi (Open MPI)"
#elif defined(MPICH_VERSION)
#define MPI_NAME "mpi (MPICH)"
#else
#define MPI_NAME "mpi"
#endif

static const kiln__wire_api wire_api = {
    .version = KILN__WIRE_VERSION,
    .name = MPI_NAME,
    .open = mpi_open,
    .close = mpi_close,
    .post = mpi_post,
    .test = mpi_test,
    .drop = mpi_drop,
    .rest = mpi_rest,
};

__attribute__((visibility("default"))) const kiln__wire_api *
kiln_mpi_wire(void);
const kiln__wire_api *kiln_mpi_wire(void)
{
  return &wire_api;
}

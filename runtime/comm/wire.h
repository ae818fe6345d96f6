/* wire.h -- what moves bytes between the ranks of a group: a table of functions.
 *
 * The table has two implementations: local_wire.c for threads of one process,
 * and mpi_wire.c, a library of its own that Kiln loads. Both only post messages
 * and test whether they are done; wait.c does all waiting, so that timeouts and
 * failures are handled in one place.
 *
 * This header includes nothing of Kiln, because the MPI plug-in is built without
 * Kiln. */
#ifndef KILN_COMM_WIRE_H
#define KILN_COMM_WIRE_H

#include <stddef.h>

/* Incremented when the table or its contracts change. A plug-in with another
 * number is not used. */
enum { KILN__WIRE_VERSION = 2 };

/* Messages of different channels never meet. Messages of one channel between two
 * ranks arrive in order. */
typedef enum kiln__channel {
  KILN__CHANNEL_CALL = 0, /* announcements of collectives, and failures */
  KILN__CHANNEL_DATA,     /* contents of collectives */
  KILN__CHANNEL_PAIR,     /* kiln_comm_send(): announcements and contents */
  KILN__CHANNELS /* a group that was split off has its own: context c uses the
                    channels c * KILN__CHANNELS + channel */
} kiln__channel;

enum { KILN__WHY_SIZE = 160 };

typedef struct kiln__wire_api {
  int version;      /* KILN__WIRE_VERSION */
  const char *name; /* such as "mpi (Open MPI)" */
  /* Joins a group. `parent` identifies it: a hub (local), or the address of an
   * MPI_Comm or NULL (MPI). Sets *rank and *ranks. Returns NULL on failure and
   * writes the reason. */
  void *(*open)(const void *parent, int *rank, int *ranks,
                char why[KILN__WHY_SIZE]);
  /* Leaves the group. If `broken`, other ranks may not answer any more, so the
   * call waits for none of them. */
  void (*close)(void *wire, int broken);
  /* Starts to send `size` bytes to a rank, or to receive exactly `size` bytes
   * from it. The memory must stay valid until the request is done or dropped.
   * Returns NULL on failure and writes the reason. */
  void *(*post)(void *wire, int receive, int peer, int channel, void *data,
                size_t size, char why[KILN__WHY_SIZE]);
  /* Returns 1 if the request is done, and frees it. Returns 0 if it is pending,
   * and -1 if it failed, which frees it and writes the reason. */
  int (*test)(void *wire, void *request, char why[KILN__WHY_SIZE]);
  /* Gives up a request and frees it. Returns 0 if its memory may still be read,
   * which happens to a message that a dead rank never took. */
  int (*drop)(void *wire, void *request);
  /* Rests for a moment, at most some milliseconds, because nothing is done. */
  void (*rest)(void *wire);
} kiln__wire_api;

/* The function that a plug-in exports. */
#define KILN__WIRE_ENTRY "kiln_mpi_wire"
typedef const kiln__wire_api *(*kiln__wire_entry)(void);

#endif

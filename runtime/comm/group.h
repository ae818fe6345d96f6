/* group.h -- the rank of a group, and the functions that the files of runtime/comm
 * share. */
#ifndef KILN_COMM_GROUP_H
#define KILN_COMM_GROUP_H

#include "wire.h"

#include <kiln/comm.h>
#include <kiln/kiln.h>

#include <stdatomic.h>

/* For functions with `kiln_status st = KILN_OK;` and a label `done`. */
#define COMM_TRY(expression)                                                   \
  do {                                                                         \
    st = (expression);                                                         \
    if (st != KILN_OK)                                                         \
      goto done;                                                               \
  } while (0)

enum { KILN__MAX_RANKS = 1024, KILN__CAUSE_SIZE = 256 };

/* The calls that ranks announce to each other, with their names in messages. */
#define KILN__COMM_CALLS(X)                                                    \
  X(FAILED, "a failure")                                                       \
  X(ALL_REDUCE, "all-reduce")                                                  \
  X(REDUCE, "reduce")                                                          \
  X(BROADCAST, "broadcast")                                                    \
  X(ALL_GATHER, "all-gather")                                                  \
  X(REDUCE_SCATTER, "reduce-scatter")                                          \
  X(ALL_TO_ALL, "all-to-all")                                                  \
  X(TRADE, "an exchange of blocks")                                            \
  X(BARRIER, "barrier")                                                        \
  X(SHARE, "share")                                                            \
  X(PAIR, "send")                                                              \
  X(ROLL_CALL, "a roll call")
typedef enum kiln__call_kind {
#define KILN__CALL_ENUM(name, text) KILN__CALL_##name,
  KILN__COMM_CALLS(KILN__CALL_ENUM)
#undef KILN__CALL_ENUM
      KILN__CALLS
} kiln__call_kind;

/* An announcement: what a rank is about to do, or why it failed. The ranks of a
 * group run the same build of Kiln on machines of the same byte order, so the
 * struct travels as it is. */
typedef struct kiln__call {
  uint64_t number; /* number of the collective in this group, from 0 */
  uint32_t kind;   /* kiln__call_kind */
  uint32_t type, op;
  int32_t root;
  uint64_t n;        /* elements, the same on all ranks */
  uint64_t sends;    /* bytes for the receiver of this announcement */
  uint64_t receives; /* bytes that it is expected to send; ANY_SIZE: any */
  int32_t failed;    /* FAILED: the rank that failed */
  uint32_t reserved;
  char cause[KILN__CAUSE_SIZE]; /* FAILED: why */
} kiln__call;

#define KILN__ANY_SIZE UINT64_MAX

/* One message that is under way. `request` is NULL if there is none. */
typedef struct kiln__message {
  void *request;
} kiln__message;

/* What a rank exchanges with one other rank: a piece in each direction. */
typedef struct kiln__piece {
  const void *out;
  void *in;
  size_t out_size, in_size; /* in bytes; 0: no message */
} kiln__piece;

typedef struct kiln__peer {
  kiln__call sent, got; /* announcements of the present call */
  kiln__call next;      /* receives the peer's next announcement */
  kiln__call farewell;  /* tells the peer that this rank leaves */
  /* of sent, next, farewell, and of pieces */
  kiln__message sending, listening, leaving, out, in;
  bool has_next; /* `next` has arrived */
} kiln__peer;

typedef struct kiln__nccl kiln__nccl;
typedef struct kiln__nccl_id kiln__nccl_id;

/* The wire of a group that no other group was split into. The groups that were
 * split from it use it, too; the last one closes it. */
typedef struct kiln__root {
  const kiln__wire_api *api;
  void *wire;
  atomic_int users;    /* ranks of this process that use the wire */
  atomic_int contexts; /* number of the next context; 0 is the group itself */
  atomic_bool broken;  /* one of the groups broke */
} kiln__root;

struct kiln_comm {
  kiln__root *root;
  kiln__nccl *nccl; /* moves the data of collectives, or NULL */
  const kiln__wire_api *api;
  void *wire;
  kiln_device *device;
  int rank, ranks;
  unsigned timeout_ms;
  uint64_t number; /* of the next collective */
  kiln_stream
      *stream;        /* of a group that has only NCCL: copies of host memory */
  CUdeviceptr bounce; /* of such a group: 2 * ranks * KILN_COMM_STAGING bytes */
  char *staging;      /* 2 * ranks blocks of KILN_COMM_STAGING bytes, or NULL */
  bool staging_busy;  /* a dropped message may still read `staging` */
  bool peers_busy;    /* a dropped message may still read `peers` */
  kiln__peer *peers;  /* one per rank */
  kiln_workspace workspace; /* of the caller, for distributed operations */
  int failed;               /* rank that failed, or -1 */
  char cause[KILN__CAUSE_SIZE];
};

/* ---- failure.c ----------------------------------------------------------- */

/* Formats a message, writes the error record and returns `status`. */
kiln_status kiln__comm_fail(kiln_status status, const char *hint,
                            const char *format, ...)
    __attribute__((__format__(__printf__, 3, 4)));

/* Breaks the group because of the rank `culprit`: tells all ranks that still
 * listen, gives up all messages, writes the error record, returns KILN_ECOMM. */
kiln_status kiln__comm_break(kiln_comm *comm, int culprit, const char *format,
                             ...) __attribute__((__format__(__printf__, 3, 4)));

/* Breaks the group because this rank fails with `status`, whose error record is
 * kept. Does nothing for KILN_OK and for a broken group. Returns `status`. */
kiln_status kiln__comm_leave(kiln_comm *comm, kiln_status status);

/* Returns KILN_OK, or KILN_ECOMM with an error record if the group is broken. */
kiln_status kiln__comm_whole(const kiln_comm *comm);

#ifdef __clang_analyzer__
/* The static analyzer looks at one file at a time. These macros show it which
 * status the functions return. */
#define kiln__comm_fail(status, ...)                                           \
  (kiln__comm_fail(status, __VA_ARGS__), (status))
#define kiln__comm_leave(comm, status)                                         \
  (kiln__comm_leave(comm, status), (status))
#endif

/* Give up all messages of pieces, and all of announcements. */
void kiln__comm_drop_pieces(kiln_comm *comm);
void kiln__comm_drop_calls(kiln_comm *comm);

/* ---- collectives.c ------------------------------------------------------- */

/* Sends sizes[p] bytes of device memory at from[p] to rank p, and receives
 * to_sizes[p] bytes at to[p] from it. Blocks that are sent may be the same or
 * overlap; blocks that are received must not overlap any other. This rank's own
 * block is copied if its to_size is not 0. A collective; it waits for the work in
 * the stream, and returns when the blocks have arrived. */
kiln_status kiln__comm_trade(kiln_comm *comm, kiln_stream *stream,
                             const uint64_t *from, const uint64_t *sizes,
                             const uint64_t *to, const uint64_t *to_sizes);

/* ---- wait.c -------------------------------------------------------------- */

/* Announces a call to all ranks and receives their announcements. `sends` and
 * `receives` are bytes per rank, or NULL for none. Fails if another rank
 * announces something else. The results are in comm->peers[].got. */
kiln_status kiln__comm_announce(kiln_comm *comm, const kiln__call *call,
                                const uint64_t *sends,
                                const uint64_t *receives);

/* Exchanges one piece with each rank; pieces[comm->rank] is ignored. */
kiln_status kiln__comm_exchange(kiln_comm *comm, const kiln__piece *pieces);

/* Sends to or receives from one rank on the channel of pairs. */
kiln_status kiln__comm_pair(kiln_comm *comm, bool receive, int peer, void *data,
                            size_t size);

/* Receives announcements in advance. Called once when the group is created. */
kiln_status kiln__comm_listen(kiln_comm *comm);

/* Looks once whether a rank has sent a farewell. Fails then. */
kiln_status kiln__comm_attend(kiln_comm *comm);

/* Breaks the group after `what` did not finish in time: because of a rank that
 * does not answer any more, if there is one. */
kiln_status kiln__comm_roll_call(kiln_comm *comm, const char *what);

/* Returns a clock in milliseconds. */
uint64_t kiln__comm_now(void);

/* ---- nccl.c, find_nccl.c ------------------------------------------------- */

/* Joins a NCCL communicator with n ranks of this process: one, or all. */
kiln_status kiln__nccl_join(kiln_comm *const *comms, int n, const char *path);
/* Joins the communicator that `id` names, or takes the caller's if `handle` is not
 * NULL: the group `comm` has no other engine. */
kiln_status kiln__nccl_join_alone(kiln_comm *comm, const kiln__nccl_id *id,
                                  void *handle, const char *path);
/* Divides the communicator of `parent`, a collective of all its ranks. `comm` is
 * this rank of the new group, or NULL if it joins none. */
kiln_status kiln__nccl_split(kiln_comm *comm, kiln_comm *parent, int colour,
                             int key);
/* Leaves it. If the group is broken, NCCL's work is aborted. */
void kiln__nccl_leave(kiln_comm *comm);
/* Sends blocks of bytes to all ranks and receives theirs, then waits. at[] and
 * size[] have one number per rank. */
kiln_status kiln__nccl_move(kiln_comm *comm, kiln_stream *stream,
                            CUdeviceptr out, const uint64_t *out_at,
                            const uint64_t *out_size, CUdeviceptr in,
                            const uint64_t *in_at, const uint64_t *in_size);
/* Sends bytes of device memory to one rank or receives them, and waits. */
kiln_status kiln__nccl_pair(kiln_comm *comm, kiln_stream *stream, bool receive,
                            int peer, CUdeviceptr data, uint64_t size);
/* Returns whether NCCL has a reduction. */
bool kiln__nccl_reduces(const kiln_comm *comm, kiln_dtype type,
                        kiln_op_name op);
/* Joins blocks of the same size, and copies bytes of the root to all ranks. */
kiln_status kiln__nccl_all_gather(kiln_comm *comm, kiln_stream *stream,
                                  CUdeviceptr in, CUdeviceptr out,
                                  uint64_t size);
kiln_status kiln__nccl_broadcast(kiln_comm *comm, kiln_stream *stream,
                                 CUdeviceptr x, uint64_t size, int root);
/* Combines n elements on all ranks, or blocks of them, block p on rank p. */
kiln_status kiln__nccl_all_reduce(kiln_comm *comm, kiln_stream *stream,
                                  kiln_array in, CUdeviceptr out, uint64_t n,
                                  kiln_op_name op);
kiln_status kiln__nccl_reduce_blocks(kiln_comm *comm, kiln_stream *stream,
                                     kiln_array in, CUdeviceptr out,
                                     const uint64_t *at, const uint64_t *size,
                                     kiln_op_name op);

/* ---- peer_copy.c --------------------------------------------------------- */

/* Blocks of device memory for each rank and from each one, in bytes. */
typedef struct kiln__peer_blocks {
  CUdeviceptr out, in;
  const uint64_t *out_at, *out_size, *in_at, *in_size;
} kiln__peer_blocks;

/* Returns whether the ranks see each other's device memory. */
bool kiln__comm_peers(const kiln_comm *comm);
/* Lets the devices of this process access each other where they can. */
void kiln__peers_enable(kiln_comm *const *comms, int n);
/* Copies blocks from the memory of the other ranks. The ranks' streams have
 * finished their earlier work. */
kiln_status kiln__peer_move(kiln_comm *comm, kiln_stream *stream,
                            const kiln__peer_blocks *b);
kiln_status kiln__peer_pair(kiln_comm *comm, kiln_stream *stream, bool receive,
                            int peer, CUdeviceptr data, uint64_t size);

/* ---- nccl_only.c --------------------------------------------------------- */

/* The wire of groups that have only NCCL: it moves nothing. */
extern const kiln__wire_api kiln__silent_wire;
/* Returns whether a group has only NCCL, and thus no announcements. */
bool kiln__comm_silent(const kiln_comm *comm);
/* Does what kiln__comm_announce() does in such a group: receives the sizes that
 * this rank does not know. */
kiln_status kiln__silent_announce(kiln_comm *comm, const kiln__call *call,
                                  const uint64_t *sends,
                                  const uint64_t *receives);
/* kiln__comm_exchange() in such a group, through device memory. */
kiln_status kiln__silent_exchange(kiln_comm *comm, const kiln__piece *pieces);
/* Joins the group of the kiln__nccl_id `id`. */
kiln_status kiln__comm_join_nccl_id(kiln_comm **out, kiln_device *device,
                                    const void *id, int ranks, int rank,
                                    const char *path, unsigned timeout_ms);

/* ---- fold.c -------------------------------------------------------------- */

/* Returns whether a reduction has this type and operation. */
bool kiln__comm_foldable(kiln_dtype type, kiln_op_name op);
/* acc[i] = acc[i] op x[i] for n elements in host memory. The type of an
 * accumulator is that of the elements, except float for f16 and bf16. */
void kiln__comm_fold(kiln_dtype type, kiln_op_name op, void *acc, const void *x,
                     size_t n);
/* Begin and end such a sum: copy elements to the accumulators and back. */
void kiln__comm_widen(kiln_dtype type, void *acc, const void *x, size_t n);
void kiln__comm_narrow(kiln_dtype type, void *x, const void *acc, size_t n);

/* ---- group.c ------------------------------------------------------------- */

kiln_status kiln__comm_check_opts(const kiln_comm_opts *opts);
/* Returns the timeout that the options choose. */
unsigned kiln__comm_timeout(const kiln_comm_opts *opts);

/* Joins the group `parent` through a wire. The rank shares `root`, or gets a new
 * one if it is NULL. */
kiln_status kiln__comm_join(kiln_comm **out, const kiln__wire_api *api,
                            const void *parent, kiln__root *root,
                            kiln_device *device, unsigned timeout_ms);

/* ---- local_wire.c, shared_wire.c, find_mpi.c ----------------------------- */

extern const kiln__wire_api kiln__local_wire;
typedef struct kiln__hub kiln__hub;
/* Shared memory: the ranks are processes of one machine. */
extern const kiln__wire_api kiln__shared_wire;
/* The group that kiln__shared_wire.open() joins. */
typedef struct kiln__shared_group {
  const char *name; /* of the segment: a slash and letters */
  int ranks, rank;
  unsigned timeout_ms; /* how long this rank waits for the others to join */
} kiln__shared_group;
enum { KILN__SHARED_MOST = 64 }; /* ranks */

/* Creates the mailboxes of a group of threads. Each open() takes the next rank.
 * Freed when the caller has released it and all ranks have closed their wires.
 * Returns NULL if memory ran out. */
kiln__hub *kiln__hub_create(int ranks);
void kiln__hub_release(kiln__hub *hub);

/* Loads the MPI plug-in. */
kiln_status kiln__find_mpi(const kiln__wire_api **out, const char *path);

#endif

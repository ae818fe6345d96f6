/* comm.h -- groups of ranks: collectives across GPUs, processes and machines.
 *
 *   kiln_comm_create_mpi(&comm, device, NULL, NULL);  one process per rank
 *   kiln_comm_all_reduce(comm, stream, in, out, n, KILN_SUM);
 *   kiln_comm_free(comm);
 *
 * A kiln_comm is one rank of a group. The ranks of a group are threads of one
 * process (kiln_comm_create_all(), kiln_comm_run()), processes that MPI has
 * started on any number of machines (kiln_comm_create_mpi()), processes of any
 * other launcher (kiln_comm_create_id()), or all of them at once on different
 * groups. This header belongs to the library kiln_comm, which stands
 * above kiln. Neither of the two links MPI: the plug-in libkiln_mpi_*.so does,
 * and is loaded by kiln_comm_create_mpi().
 *
 * Engines
 *   local  ranks are threads of one process. Blocks are copied from device to
 *          device (cuMemcpyPeerAsync()), after peer access was enabled between
 *          devices that have it. Reductions pass through host memory
 *   shared memory
 *          ranks are processes of one machine (kiln_comm_create_id()). Data pass
 *          through host memory
 *   mpi    ranks are processes. Data pass through host memory and MPI
 *   nccl   one of these, and NCCL moves the data of collectives and pairs between
 *          the devices, if kiln_comm_opts.data asks for it. Announcements and
 *          kiln_comm_share() stay with the engine below. Or NCCL alone, from an id
 *          of NCCL or the caller's communicator
 * All but nccl work for CPU devices and GPUs. They copy at most
 * KILN_COMM_STAGING bytes per pair of ranks and direction at a time, so their
 * host memory is bounded by twice that size times the number of ranks.
 *
 * Calls
 * - A collective must be called by all ranks, in the same order, each with a
 *   stream of its own device. The calls of one rank come from one thread at a
 *   time; ranks of one process call from different threads.
 * - A collective waits for the work that is queued in the stream, and returns
 *   when this rank has its results. It cannot be captured: it then returns
 *   KILN_ECAPTURE.
 * - Before any data move, all ranks compare what they called. If the calls or
 *   their counts differ, all ranks get KILN_ECOMM. Outputs are undefined after
 *   a failure.
 * - Reductions combine the elements of the ranks in the order of the ranks.
 *   Results are therefore the same bits on all ranks and in every run. With the
 *   engine nccl the order is that of NCCL, for the types and operations that
 *   NCCL has; the others pass through host memory.
 *   Reductions have the predefined operations of ops.h, for all types that
 *   kiln_reduce() allows. Elements of f16 and bf16 are combined in float and
 *   rounded once.
 * - Data that are only moved may have any type, structs included.
 *
 * All collectives return the following statuses.
 *   KILN_OK        this rank has its results
 *   KILN_EINVAL    an argument is not valid. The other ranks get KILN_ECOMM,
 *                  except if `comm` is NULL
 *   KILN_ECOMM     another rank died, made another call, failed, or did not
 *                  answer in time; kiln_comm_failure() has the rank and the
 *                  cause
 *   KILN_ENOMEM, KILN_EDRIVER, KILN_ESTICKY, KILN_ECAPTURE, KILN_EFORKED
 * After any failure except KILN_EINVAL for NULL the group is broken: all ranks
 * get KILN_ECOMM from this call or the next one. Free the kiln_comm and create a
 * new one to continue. */
#ifndef KILN_COMM_H
#define KILN_COMM_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Largest number of bytes that one rank sends to another at a time. */
#define KILN_COMM_STAGING ((size_t)1 << 20)

/** One rank of a group. Opaque. */
typedef struct kiln_comm kiln_comm;

/** What moves the data of collectives. */
typedef enum kiln_comm_data {
  KILN_COMM_HOST = 0, /**< copies through host memory; the default */
  KILN_COMM_NCCL      /**< NCCL 2.18 or later; it is an error if it cannot be
                           loaded or joined. Needs one GPU per rank */
} kiln_comm_data;

/** Options of a group. Initialise the struct with {0}; zero means "default" in
 * each member. All ranks of a group pass the same options. The size of this
 * struct never changes. */
typedef struct kiln_comm_opts {
  /** Time in milliseconds without any progress after which a waiting rank gives
   * up and returns KILN_ECOMM. It includes the time that slower ranks spend in
   * their own work before they make the call. Default: 60,000. */
  unsigned timeout_ms;
  kiln_comm_data data; /**< what moves the data of collectives */
  /** Path of the MPI plug-in. Default: the environment variable KILN_MPI, else
   * the plug-in for the MPI that the process has loaded or was started by, from
   * the folder of the library kiln_comm. */
  const char *mpi_plugin;
  /** Path of libnccl. Default: see kiln_comm_nccl(). */
  const char *nccl;
  uint64_t reserved[5]; /**< 0 */
} kiln_comm_opts;

/* ---- Groups -------------------------------------------------------------- */

/**
 * Creates a group of all given devices of this process, one rank per device.
 *
 * @param[out] out  receives n ranks: out[i] is rank i, with device i. The caller
 *                  frees each by kiln_comm_free(). All NULL on failure.
 * @param devices   the devices; must outlive the ranks. The same device may be
 *                  given several times.
 * @param n         number of ranks, 1 to 1,024.
 * @param opts      options; NULL selects all defaults. Borrowed for the call.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM, KILN_ENOTFOUND (no NCCL can be
 *         loaded; the record lists the paths), KILN_ECOMM (NCCL failed).
 * Thread-safe. Blocks only while NCCL starts.
 */
KILN_API kiln_status kiln_comm_create_all(kiln_comm **out,
                                          kiln_device *const *devices, int n,
                                          const kiln_comm_opts *opts);

/**
 * Creates a group of the processes of an MPI communicator. All of them must call
 * this function.
 *
 * The plug-in duplicates the communicator, so that messages of the caller and of
 * Kiln never meet. If MPI is not initialised yet, the plug-in calls
 * MPI_Init_thread(), and MPI_Finalize() when the process ends.
 *
 * @param[out] out  this process's rank; the caller frees it by kiln_comm_free()
 *                  before MPI_Finalize(). NULL on failure.
 * @param device    the device of this rank; must outlive the rank.
 * @param mpi_comm  address of the caller's MPI_Comm, or NULL for MPI_COMM_WORLD.
 *                  Borrowed for the call.
 * @param opts      options; NULL selects all defaults. Borrowed for the call.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM, KILN_ENOTFOUND (no plug-in can be
 *         loaded; the record lists the paths), KILN_ECOMM (MPI failed).
 * Not thread-safe: one thread of a process calls MPI at a time. Blocks until all
 * processes have called.
 */
KILN_API kiln_status kiln_comm_create_mpi(kiln_comm **out, kiln_device *device,
                                          const void *mpi_comm,
                                          const kiln_comm_opts *opts);

/** Names a group that is about to be created. One process makes it and gives its
 * bytes to all others, by any means of its launcher: a file, a socket, an
 * environment variable. */
typedef struct kiln_comm_id {
  char bytes[192];
} kiln_comm_id;

/**
 * Makes the id of a group for kiln_comm_create_id(). Each id serves one group.
 *
 * @param[out] out  receives the id.
 * @param opts      NULL or data = KILN_COMM_HOST: the ranks are at most 64
 *                  processes or threads of one machine, which share memory of the
 *                  operating system (/dev/shm). data = KILN_COMM_NCCL: an id of
 *                  NCCL; the ranks are on any machines, each with a GPU of its
 *                  own, and NCCL connects them.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOTFOUND (no NCCL can be loaded), KILN_ECOMM
 *         (NCCL failed).
 * Thread-safe. Never blocks.
 */
KILN_API kiln_status kiln_comm_unique_id(kiln_comm_id *out,
                                         const kiln_comm_opts *opts);

/**
 * Creates a group of the ranks that pass the same id.
 *
 * With an id of shared memory all rules of this header hold. If opts->data is
 * KILN_COMM_NCCL then, NCCL moves the data of collectives.
 *
 * With an id of NCCL the group has only NCCL, and nothing is announced. Small calls
 * take no longer than NCCL's own. In return a wrong call or count is not named:
 * the ranks get KILN_ECOMM after the timeout, as for a rank that is dead, and with
 * the own rank as the failed one. kiln_comm_all_to_all() needs `receives` on all
 * ranks or on none. kiln_comm_abort() does not reach the other ranks.
 *
 * @param[out] out  this rank; the caller frees it by kiln_comm_free(). NULL on
 *                  failure.
 * @param device    the device of this rank; must outlive the rank.
 * @param id        the id from kiln_comm_unique_id().
 * @param ranks     number of ranks of the group.
 * @param rank      number of this rank, from 0; each one once.
 * @param opts      options; NULL selects all defaults.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM, KILN_ENOTFOUND, KILN_ECOMM (another
 *         rank did not join within the timeout, or passed another number of
 *         ranks; or NCCL failed).
 * Thread-safe. Blocks until all ranks have called. With an id of NCCL the timeout
 * does not apply to this call.
 */
KILN_API kiln_status kiln_comm_create_id(kiln_comm **out, kiln_device *device,
                                         const kiln_comm_id *id, int ranks,
                                         int rank, const kiln_comm_opts *opts);

/**
 * Creates a rank on a communicator of NCCL that the caller has made. The group has
 * only NCCL: what kiln_comm_create_id() says about ids of NCCL holds. All ranks of
 * the communicator must call.
 *
 * @param[out] out    this rank; the caller frees it by kiln_comm_free(). NULL on
 *                    failure.
 * @param device      the device that the communicator was made for; must outlive
 *                    the rank.
 * @param nccl_comm   the ncclComm_t. It stays the caller's, who destroys it after
 *                    kiln_comm_free(). Kiln never aborts it: after KILN_ECOMM the
 *                    caller calls ncclCommAbort(), which ends work that still
 *                    waits in streams.
 * @param opts        options; opts->nccl must name the libnccl that made the
 *                    communicator if the process has loaded several. NULL selects
 *                    all defaults.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM, KILN_ENOTFOUND (no NCCL can be
 *         loaded), KILN_ECOMM (NCCL does not accept the communicator).
 * Thread-safe. Never blocks.
 */
KILN_API kiln_status kiln_comm_from_nccl(kiln_comm **out, kiln_device *device,
                                         void *nccl_comm,
                                         const kiln_comm_opts *opts);

/** NCCL as this process would load it. */
typedef struct kiln_nccl_info {
  int version;      /**< such as 22703 for 2.27.3; 0 if none was found */
  char path[512];   /**< path of the library; "" if none was found */
  char tried[1024]; /**< what was tried without success, and why; may be "" */
} kiln_nccl_info;

/** Finds NCCL. Places, in order: `path`, the environment variable KILN_NCCL (if one
 * is given, no other is tried), a NCCL that the process has loaded, the system's
 * loader, the folders of CUDA toolkits (CUDA_HOME, CUDA_PATH, /usr/local/cuda),
 * NVIDIA's Python wheels in VIRTUAL_ENV, in CONDA_PREFIX and of the user, and
 * conda's folder.
 * @param[out] out  receives what was found.
 * @param path      path of libnccl, or NULL.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOTFOUND (out->tried lists the places).
 * Thread-safe. May read files. */
KILN_API kiln_status kiln_comm_nccl(kiln_nccl_info *out, const char *path);

/**
 * Divides a group: the ranks that pass the same colour form a new group. The
 * group `comm` stays as it is. All ranks of `comm` must call this function, like
 * a collective. A row and a column of a grid of ranks are made by two calls.
 *
 * The new group uses the connections of `comm`: the engine, the device and the
 * timeout are the same. Its calls never meet those of other groups. Groups that
 * were split from another may be freed before or after it.
 *
 * @param[out] out  receives this rank of the new group; the caller frees it by
 *                  kiln_comm_free(). NULL on failure, and if colour is negative.
 * @param comm      the group to divide.
 * @param colour    selects the new group; negative: this rank joins none.
 * @param key       determines the order of the ranks in the new group. Ranks
 *                  with the same key keep the order of `comm`.
 * @retval the statuses at the top of this header. Blocks.
 */
KILN_API kiln_status kiln_comm_split(kiln_comm **out, kiln_comm *comm,
                                     int colour, int key);

/** Frees a rank; NULL is allowed. The other ranks keep theirs, but must not call
 * collectives any more. In a group of the engine mpi that is not broken, all
 * ranks must make this call, since MPI_Comm_free() is collective.
 * Not thread-safe: no other thread may use the rank. May block in MPI. */
KILN_API void kiln_comm_free(kiln_comm *comm);

/** Breaks a group: this rank and all others get KILN_ECOMM from the collective
 * that they wait in, or from their next one.
 * @param cause  text that the other ranks find in kiln_comm_failure(), at most
 *               160 bytes; NULL selects a general one.
 * @retval KILN_OK, KILN_EINVAL.
 * Not thread-safe: only the thread that calls this rank's collectives may call.
 * Never blocks. */
KILN_API kiln_status kiln_comm_abort(kiln_comm *comm, const char *cause);

/** Returns the number of this rank, from 0; -1 for NULL.
 * Thread-safe. Never blocks. */
KILN_API int kiln_comm_rank(const kiln_comm *comm);
/** Returns the number of ranks of the group; 0 for NULL.
 * Thread-safe. Never blocks. */
KILN_API int kiln_comm_size(const kiln_comm *comm);
/** Returns the device of this rank, or NULL for NULL. The caller does not own
 * the result.
 * Thread-safe. Never blocks. */
KILN_API kiln_device *kiln_comm_device(const kiln_comm *comm);
/** Returns the engine that moves the data, such as "local" or "mpi (Open MPI)";
 * "" for NULL. The rank owns the string.
 * Thread-safe. Never blocks. */
KILN_API const char *kiln_comm_engine(const kiln_comm *comm);

/** Describes why a group is broken.
 * @param[out] rank  receives the rank that died, failed or made another call;
 *                   -1 if the group is not broken. May be NULL.
 * @return one sentence with the cause; "" if the group is not broken and for
 * NULL. The rank `comm` owns the string.
 * Not thread-safe: no other thread may use the rank. Never blocks. */
KILN_API const char *kiln_comm_failure(const kiln_comm *comm, int *rank);

/** The function of one rank, for kiln_comm_run(). Returns KILN_OK, or the status
 * with which the rank failed. */
typedef kiln_status (*kiln_comm_fn)(kiln_comm *comm, void *user);

/**
 * Runs a function on all ranks of kiln_comm_create_all(), each in a thread of
 * its own, and waits for all of them. A rank that returns a failure breaks the
 * group, so that the others do not wait for it.
 *
 * @param comms  the n ranks.
 * @param fn     function that each rank runs.
 * @param user   pointer that is passed to fn.
 * @retval KILN_OK if all ranks returned KILN_OK. Otherwise the failure of the
 *         lowest rank that did not fail because of another one, whose record
 *         this thread receives. KILN_EINVAL, KILN_ENOMEM (a thread cannot be
 *         started).
 * Thread-safe. Blocks until all ranks have returned.
 */
KILN_API kiln_status kiln_comm_run(kiln_comm *const *comms, int n,
                                   kiln_comm_fn fn, void *user);

/* ---- Collectives --------------------------------------------------------- */

/** Combines the elements of all ranks: out[i] = in of rank 0 [i] op in of rank
 * 1 [i] op ..., on every rank.
 * @param in   n elements.
 * @param out  receives n elements of the type of `in`; may be the same array.
 * @param n    number of elements, the same on all ranks; may be 0.
 * @param op   a predefined operation.
 * @retval the statuses at the top of this header.
 * Each rank sends and receives 2 n elements in all. Blocks. */
KILN_API kiln_status kiln_comm_all_reduce(kiln_comm *comm, kiln_stream *stream,
                                          kiln_array in, kiln_array out,
                                          uint64_t n, kiln_op_name op);

/** Like kiln_comm_all_reduce(), but only the rank `root` receives the result.
 * The array `out` of the other ranks is not used and may be empty.
 * @retval the statuses at the top of this header. Blocks. */
KILN_API kiln_status kiln_comm_reduce(kiln_comm *comm, kiln_stream *stream,
                                      kiln_array in, kiln_array out, uint64_t n,
                                      kiln_op_name op, int root);

/** Copies the n elements of x on the rank `root` to x on all other ranks.
 * @retval the statuses at the top of this header.
 * The root sends to each rank in turn. Blocks. */
KILN_API kiln_status kiln_comm_broadcast(kiln_comm *comm, kiln_stream *stream,
                                         kiln_array x, uint64_t n, int root);

/** Joins the blocks of all ranks, in the order of the ranks, on every rank.
 * @param in      the block of this rank.
 * @param out     receives the sum of all counts elements; must not overlap `in`,
 *                unless `in` is this rank's part of `out`.
 * @param counts  number of elements of each rank's block, as many entries as
 *                ranks and the same on all ranks; may contain 0.
 * @retval the statuses at the top of this header. Blocks. */
KILN_API kiln_status kiln_comm_all_gather(kiln_comm *comm, kiln_stream *stream,
                                          kiln_array in, kiln_array out,
                                          const uint64_t *counts);

/** Combines the elements of all ranks as kiln_comm_all_reduce() does. Each rank
 * receives one block of the result, in the order of the ranks.
 * @param in      the sum of all counts elements.
 * @param out     receives counts[rank] elements; must not overlap `in`, unless
 *                it is this rank's part of `in`.
 * @param counts  number of elements of each rank's block, as many entries as
 *                ranks and the same on all ranks; may contain 0.
 * @retval the statuses at the top of this header. Blocks. */
KILN_API kiln_status kiln_comm_reduce_scatter(kiln_comm *comm,
                                              kiln_stream *stream,
                                              kiln_array in, kiln_array out,
                                              const uint64_t *counts,
                                              kiln_op_name op);

/** Sends one block to every rank and receives one from every rank.
 * @param in     the blocks for rank 0, rank 1, ..., one after another.
 * @param sends  number of elements for each rank; may contain 0.
 * @param out    receives the blocks of rank 0, rank 1, ..., one after another;
 *               must not overlap `in`.
 * @param receives  number of elements from each rank: what that rank passes in
 *               `sends` for this one. Otherwise all ranks get KILN_ECOMM. NULL
 *               if the caller does not know them: the other ranks' counts are
 *               then used, and `out` needs space for `capacity` elements.
 * @param capacity  number of elements that `out` has space for; ignored if
 *               `receives` is given. If it is too small, this rank gets
 *               KILN_EINVAL and the others KILN_ECOMM.
 * @param[out] received  receives the number of elements from each rank; may be
 *               NULL.
 * @retval the statuses at the top of this header. Blocks. */
KILN_API kiln_status kiln_comm_all_to_all(kiln_comm *comm, kiln_stream *stream,
                                          kiln_array in, const uint64_t *sends,
                                          kiln_array out,
                                          const uint64_t *receives,
                                          uint64_t capacity,
                                          uint64_t *received);

/** Sends n elements to one rank, which calls kiln_comm_receive() with the same n
 * and element size. Only these two ranks take part. Two ranks that exchange data
 * must not both send first: use kiln_comm_all_to_all() instead.
 * @param peer  another rank.
 * @retval the statuses at the top of this header. Blocks. */
KILN_API kiln_status kiln_comm_send(kiln_comm *comm, kiln_stream *stream,
                                    kiln_array x, uint64_t n, int peer);
/** Receives n elements from one rank, which calls kiln_comm_send().
 * @param peer  another rank.
 * @retval the statuses at the top of this header. Blocks. */
KILN_API kiln_status kiln_comm_receive(kiln_comm *comm, kiln_stream *stream,
                                       kiln_array x, uint64_t n, int peer);

/** Waits until all ranks have made this call.
 * @retval the statuses at the top of this header. Blocks. */
KILN_API kiln_status kiln_comm_barrier(kiln_comm *comm);

/** Gives every rank a small block of host memory from every rank.
 * @param mine  `size` bytes of this rank.
 * @param size  number of bytes, the same on all ranks; at most
 *              KILN_COMM_STAGING.
 * @param all   receives size bytes per rank, in the order of the ranks.
 * @retval the statuses at the top of this header. Blocks. */
KILN_API kiln_status kiln_comm_share(kiln_comm *comm, const void *mine,
                                     size_t size, void *all);

#ifdef __cplusplus
}
#endif
#endif

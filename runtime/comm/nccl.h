/* nccl.h -- the functions of NCCL that Kiln calls, declared without its header.
 * tests/comm/nccl_abi.c compares the declarations with NVIDIA's. */
#ifndef KILN_COMM_NCCL_H
#define KILN_COMM_NCCL_H

#include <stddef.h>

typedef struct kiln__nccl_id {
  char bytes[128];
} kiln__nccl_id;

/* Results, types and operations of NCCL that Kiln uses. */
enum {
  KILN__NCCL_SUCCESS = 0,
  KILN__NCCL_IN_PROGRESS = 7,
  KILN__NCCL_LEAST_VERSION = 21800
};
#define KILN__NCCL_TYPES(X)                                                    \
  X(I8, ncclInt8, 0)                                                           \
  X(U8, ncclUint8, 1)                                                          \
  X(I32, ncclInt32, 2)                                                         \
  X(U32, ncclUint32, 3)                                                        \
  X(I64, ncclInt64, 4)                                                         \
  X(U64, ncclUint64, 5)                                                        \
  X(F16, ncclFloat16, 6)                                                       \
  X(F32, ncclFloat32, 7)                                                       \
  X(F64, ncclFloat64, 8)                                                       \
  X(BF16, ncclBfloat16, 9)
#define KILN__NCCL_OPS(X)                                                      \
  X(SUM, ncclSum, 0)                                                           \
  X(PROD, ncclProd, 1)                                                         \
  X(MAX, ncclMax, 2)                                                           \
  X(MIN, ncclMin, 3)

/* Functions that return a result: name and parameters. Communicators, streams
 * and enums are passed as what they are in the ABI. */
#define KILN__NCCL_FUNCTIONS(X)                                                \
  X(GetVersion, (int *version))                                                \
  X(GetUniqueId, (kiln__nccl_id * id))                                         \
  X(CommInitRank, (void **comm, int ranks, kiln__nccl_id id, int rank))        \
  X(CommSplit, (void *comm, int colour, int key, void **out, void *config))    \
  X(CommCount, (const void *comm, int *ranks))                                 \
  X(CommUserRank, (const void *comm, int *rank))                               \
  X(CommDestroy, (void *comm))                                                 \
  X(CommAbort, (void *comm))                                                   \
  X(CommGetAsyncError, (void *comm, int *result))                              \
  X(GroupStart, (void))                                                        \
  X(GroupEnd, (void))                                                          \
  X(Send, (const void *data, size_t n, int type, int peer, void *comm,         \
           void *stream))                                                      \
  X(Recv,                                                                      \
    (void *data, size_t n, int type, int peer, void *comm, void *stream))      \
  X(AllReduce, (const void *in, void *out, size_t n, int type, int op,         \
                void *comm, void *stream))                                     \
  X(AllGather,                                                                 \
    (const void *in, void *out, size_t n, int type, void *comm, void *stream)) \
  X(ReduceScatter, (const void *in, void *out, size_t n, int type, int op,     \
                    void *comm, void *stream))                                 \
  X(Broadcast, (const void *in, void *out, size_t n, int type, int root,       \
                void *comm, void *stream))                                     \
  X(Reduce, (const void *in, void *out, size_t n, int type, int op, int root,  \
             void *comm, void *stream))

typedef struct kiln__nccl_api {
#define KILN__NCCL_MEMBER(name, parameters) int(*name) parameters;
  KILN__NCCL_FUNCTIONS(KILN__NCCL_MEMBER)
#undef KILN__NCCL_MEMBER
  const char *(*GetErrorString)(int result);
} kiln__nccl_api;

#endif

/* nccl_abi.c -- compares the declarations in runtime/comm/nccl.h with NVIDIA's
 * nccl.h, whose folder is passed by -I. Compiling is the test. */
#include <nccl.h>

#include "../../runtime/comm/nccl.h"

_Static_assert(sizeof(ncclUniqueId) == sizeof(kiln__nccl_id), "unique id");
_Static_assert((int)ncclSuccess == (int)KILN__NCCL_SUCCESS, "success");
_Static_assert((int)ncclInProgress == (int)KILN__NCCL_IN_PROGRESS, "progress");
#define SAME(name, theirs, value)                                              \
  _Static_assert((int)(theirs) == (value), #theirs);
KILN__NCCL_TYPES(SAME)
KILN__NCCL_OPS(SAME)

/* Each function, called with the arguments of our declaration, with enums as int
 * and handles as void pointers, compiles against NVIDIA's prototype. */
static int uses(void *comm, void *stream, const void *in, void *out,
                ncclUniqueId id)
{
  int number = 0;
  ncclResult_t result = ncclSuccess;
  ncclDataType_t type = ncclInt8;
  ncclRedOp_t op = ncclSum;

  _Static_assert(sizeof type == sizeof(int) && sizeof op == sizeof(int) &&
                     sizeof result == sizeof(int) &&
                     sizeof(ncclComm_t) == sizeof(void *) &&
                     sizeof(cudaStream_t) == sizeof(void *),
                 "enums and handles");
  return (int)ncclGetVersion(&number) + (int)ncclGetUniqueId(&id) +
         (int)ncclCommInitRank((ncclComm_t *)&comm, 1, id, 0) +
         (int)ncclCommSplit(comm, -1, 0, (ncclComm_t *)&comm, NULL) +
         (int)ncclCommCount(comm, &number) +
         (int)ncclCommUserRank(comm, &number) + (int)ncclCommDestroy(comm) +
         (int)ncclCommAbort(comm) + (int)ncclCommGetAsyncError(comm, &result) +
         (int)ncclGroupStart() + (int)ncclGroupEnd() +
         (int)ncclSend(in, 1, type, 0, comm, stream) +
         (int)ncclRecv(out, 1, type, 0, comm, stream) +
         (int)ncclAllReduce(in, out, 1, type, op, comm, stream) +
         (int)ncclAllGather(in, out, 1, type, comm, stream) +
         (int)ncclReduceScatter(in, out, 1, type, op, comm, stream) +
         (int)ncclBroadcast(in, out, 1, type, 0, comm, stream) +
         (int)ncclReduce(in, out, 1, type, op, 0, comm, stream);
}

int (*nccl_abi_uses)(void *, void *, const void *, void *, ncclUniqueId) = uses;

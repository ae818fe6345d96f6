/* copy_box.c -- implements copies in two and three dimensions. */
#include "api_copy.h"

#include <string.h>

/* ---- Two dimensions ------------------------------------------------------ */

static CUresult copy_2d(const CUDA_MEMCPY2D *c, CUstream stream, bool async)
{
  CUDA_MEMCPY3D p;

  CU_TRY(valid(c != NULL));
  p = (CUDA_MEMCPY3D){.srcXInBytes = c->srcXInBytes,
                      .srcY = c->srcY,
                      .srcMemoryType = c->srcMemoryType,
                      .srcHost = c->srcHost,
                      .srcDevice = c->srcDevice,
                      .srcArray = c->srcArray,
                      .srcPitch = c->srcPitch,
                      .dstXInBytes = c->dstXInBytes,
                      .dstY = c->dstY,
                      .dstMemoryType = c->dstMemoryType,
                      .dstHost = c->dstHost,
                      .dstDevice = c->dstDevice,
                      .dstArray = c->dstArray,
                      .dstPitch = c->dstPitch,
                      .WidthInBytes = c->WidthInBytes,
                      .Height = c->Height,
                      .Depth = 1};
  return kiln__cpu_issue_copy(stream, &p, async);
}

CUresult kiln__cpu_memcpy2D(const CUDA_MEMCPY2D *copy)
{
  return copy_2d(copy, NULL, false);
}

CUresult kiln__cpu_memcpy2DAsync(const CUDA_MEMCPY2D *copy, CUstream stream)
{
  return copy_2d(copy, stream, true);
}

/* ---- Three dimensions ---------------------------------------------------- */

CUresult kiln__cpu_memcpy3D(const CUDA_MEMCPY3D *copy)
{
  return copy == NULL ? CUDA_ERROR_INVALID_VALUE
                      : kiln__cpu_issue_copy(NULL, copy, false);
}

CUresult kiln__cpu_memcpy3DAsync(const CUDA_MEMCPY3D *copy, CUstream stream)
{
  return copy == NULL ? CUDA_ERROR_INVALID_VALUE
                      : kiln__cpu_issue_copy(stream, copy, true);
}

_Static_assert(sizeof(CUDA_MEMCPY3D_PEER) == sizeof(CUDA_MEMCPY3D),
               "copy_peer() copies one struct into the other");

/* Stores the context of one side of a copy, which is NULL for memory of the host. NULL
 * stands for the current context, as an H200's driver takes it. */
static CUresult peer(CUmemorytype type, CUcontext context, CUcontext *out)
{
  *out = NULL;
  if (type != CU_MEMORYTYPE_DEVICE)
    return CUDA_SUCCESS;
  if (context == NULL)
    return kiln__cpu_current(out);
  *out = context;
  return kiln__cpu_known(context, KILN__HANDLE_CONTEXT);
}

static CUresult copy_peer(const CUDA_MEMCPY3D_PEER *c, CUstream stream,
                          bool async)
{
  CUcontext to, from;
  CUDA_MEMCPY3D p;

  CU_TRY(valid(c != NULL));
  CU_TRY(peer(c->srcMemoryType, c->srcContext, &from));
  CU_TRY(peer(c->dstMemoryType, c->dstContext, &to));
  /* The two structs differ only in the members that CUDA_MEMCPY3D reserves. */
  memcpy(&p, c, sizeof p);
  p.reserved0 = p.reserved1 = NULL;
  if (async)
    return kiln__cpu_issue_copy(stream, &p, true);
  CU_TRY(kiln__cpu_before_peer_copy(to, from));
  CU_TRY(kiln__cpu_issue_copy(stream, &p, false));
  return kiln__cpu_after_peer_copy(to, from);
}

CUresult kiln__cpu_memcpy3DPeer(const CUDA_MEMCPY3D_PEER *copy)
{
  return copy_peer(copy, NULL, false);
}

CUresult kiln__cpu_memcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *copy,
                                     CUstream stream)
{
  return copy_peer(copy, stream, true);
}

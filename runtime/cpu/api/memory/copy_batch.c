/* copy_batch.c -- implements batches of copies in three dimensions.
 *
 * The copies of a batch are issued one after another into the stream. The driver may also
 * issue them in another order, so programs cannot rely on one. Sources are read in stream
 * order, which is valid for every order of access that a program may ask for. */
#include "api_copy.h"

/* Returns the bytes of an element, by which lengths are measured: those of the array that
 * takes part, else 1. Returns 0 if two arrays have different elements or one is
 * invalid. */
static size_t element_of(const CUDA_MEMCPY3D_BATCH_OP *op)
{
  const CUmemcpy3DOperand *const operands[2] = {&op->src, &op->dst};
  size_t bytes = 0;

  for (int i = 0; i < 2; i++) {
    const CUarray array = operands[i]->op.array.array;

    if (operands[i]->type != CU_MEMCPY_OPERAND_TYPE_ARRAY)
      continue;
    if (!kiln__cpu_live(array, KILN__HANDLE_ARRAY) ||
        (bytes != 0 && bytes != array->texels.texel_bytes))
      return 0;
    bytes = array->texels.texel_bytes;
  }
  return bytes == 0 ? 1 : bytes;
}

/* The geometry of one operand, in bytes and rows. */
typedef struct place {
  CUmemorytype type;
  CUdeviceptr address;
  CUarray array;
  size_t x, y, z, pitch, height;
} place;

static CUresult place_of(const CUmemcpy3DOperand *o, CUextent3D e, size_t bytes,
                         place *out)
{
  if (o->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    *out = (place){.type = CU_MEMORYTYPE_ARRAY,
                   .array = o->op.array.array,
                   .x = o->op.array.offset.x * bytes,
                   .y = o->op.array.offset.y,
                   .z = o->op.array.offset.z};
    return CUDA_SUCCESS;
  }
  CU_TRY(
      valid(o->type == CU_MEMCPY_OPERAND_TYPE_POINTER && o->op.ptr.ptr != 0 &&
            (o->op.ptr.rowLength == 0 || o->op.ptr.rowLength >= e.width) &&
            (o->op.ptr.layerHeight == 0 || o->op.ptr.layerHeight >= e.height)));
  *out = (place){
      .type = CU_MEMORYTYPE_UNIFIED,
      .address = o->op.ptr.ptr,
      .pitch =
          (o->op.ptr.rowLength != 0 ? o->op.ptr.rowLength : e.width) * bytes,
      .height = o->op.ptr.layerHeight != 0 ? o->op.ptr.layerHeight : e.height};
  return CUDA_SUCCESS;
}

static CUresult box_of(const CUDA_MEMCPY3D_BATCH_OP *op, CUDA_MEMCPY3D *box)
{
  const CUextent3D e = op->extent;
  const size_t bytes = element_of(op);
  place from, to;

  CU_TRY(valid(bytes != 0 && e.width != 0 && e.height != 0 && e.depth != 0 &&
               op->srcAccessOrder >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM &&
               op->srcAccessOrder <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY &&
               (op->flags &
                ~(unsigned)CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE) == 0));
  CU_TRY(place_of(&op->src, e, bytes, &from));
  CU_TRY(place_of(&op->dst, e, bytes, &to));
  *box = (CUDA_MEMCPY3D){.srcXInBytes = from.x,
                         .srcY = from.y,
                         .srcZ = from.z,
                         .srcMemoryType = from.type,
                         .srcDevice = from.address,
                         .srcArray = from.array,
                         .srcPitch = from.pitch,
                         .srcHeight = from.height,
                         .dstXInBytes = to.x,
                         .dstY = to.y,
                         .dstZ = to.z,
                         .dstMemoryType = to.type,
                         .dstDevice = to.address,
                         .dstArray = to.array,
                         .dstPitch = to.pitch,
                         .dstHeight = to.height,
                         .WidthInBytes = e.width * bytes,
                         .Height = e.height,
                         .Depth = e.depth};
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_batch_stream(CUstream stream)
{
  CUcontext context;

  CU_TRY(kiln__cpu_current(&context));
  CU_TRY(valid(stream != NULL));
  return kiln__cpu_is_capturing(context, stream)
             ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
             : CUDA_SUCCESS;
}

CUresult kiln__cpu_memcpy3DBatchAsyncV1(size_t n, CUDA_MEMCPY3D_BATCH_OP *list,
                                        size_t *failed,
                                        unsigned long long flags,
                                        CUstream stream)
{
  CUresult rc = CUDA_SUCCESS;

  CU_TRY(kiln__cpu_check_current());
  if (failed != NULL)
    *failed = SIZE_MAX;
  CU_TRY(valid(n != 0 && list != NULL && flags == 0));
  CU_TRY(kiln__cpu_batch_stream(stream));
  for (size_t i = 0; i < n && rc == CUDA_SUCCESS; i++) {
    CUDA_MEMCPY3D box;

    rc = box_of(&list[i], &box);
    if (rc == CUDA_SUCCESS)
      rc = kiln__cpu_issue_copy(stream, &box, true);
    if (rc != CUDA_SUCCESS && failed != NULL)
      *failed = i;
  }
  return rc;
}

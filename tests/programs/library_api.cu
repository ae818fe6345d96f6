/* library_api.cu -- loads PTX as a library and launches its kernel by its handle. */
#include "program.cuh"

static const char ptx[] = R"(
.version 7.0
.target sm_52
.address_size 64
.global .align 4 .u32 bias = 5;
.visible .entry plus(.param .u64 p)
{
  .reg .b32 %r<4>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [p];
  cvta.to.global.u64 %d1, %d1;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %d2, %r1, 4;
  add.s64 %d1, %d1, %d2;
  ld.global.u32 %r2, [bias];
  add.u32 %r2, %r2, %r1;
  st.global.u32 [%d1], %r2;
  ret;
}
)";

int main()
{
  cudaLibrary_t lib;
  cudaKernel_t k;
  unsigned n = 0;
  int *out, five = 50;
  void *bias;
  size_t size;
  CALL(
      cudaLibraryLoadData(&lib, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CALL(cudaLibraryGetKernel(&k, lib, "plus"));
  CALL(cudaLibraryGetKernelCount(&n, lib));
  CHECK(n == 1);
  FAILS(cudaLibraryGetKernel(&k, lib, "minus"), cudaErrorSymbolNotFound);
  CALL(cudaLibraryGetKernel(&k, lib, "plus"));
  CALL(cudaMalloc(&out, 32 * sizeof(int)));
  void *args[] = {&out};
  CALL(cudaLaunchKernel((const void *)k, dim3(1), dim3(32), args, 0, 0));
  CHECK(to_host(out, 32)[9] == 14);
  CALL(cudaLibraryGetGlobal(&bias, &size, lib, "bias"));
  CHECK(size == 4);
  CALL(cudaMemcpy(bias, &five, 4, cudaMemcpyHostToDevice));
  CALL(cudaLaunchKernel((const void *)k, dim3(1), dim3(32), args, 0, 0));
  CHECK(to_host(out, 32)[9] == 59);
  CALL(cudaLibraryUnload(lib));
  return verdict();
}

// kiln run: --grid 2 --block 64 --arg u32[2048]=ramp --arg f32[1024]
// Each warp loads matrices of 16 x 16, multiplies them through shared memory,
// and stores the product.
extern "C" __global__ void wmma(const unsigned *in, float *out)
{
  __shared__ __align__(32) float tile[2][256];
  const unsigned warp = threadIdx.x / 32, number = blockIdx.x * 2 + warp;
  const unsigned *const a = in + number * 256;
  unsigned x[8], y[8];
  float c[8] = {};

  asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 "
               "{%0, %1, %2, %3, %4, %5, %6, %7}, [%8], 16;"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]), "=r"(x[4]),
                 "=r"(x[5]), "=r"(x[6]), "=r"(x[7])
               : "l"(a) : "memory");
  asm volatile("wmma.load.b.sync.aligned.col.m16n16k16.global.f16 "
               "{%0, %1, %2, %3, %4, %5, %6, %7}, [%8], 16;"
               : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]), "=r"(y[3]), "=r"(y[4]),
                 "=r"(y[5]), "=r"(y[6]), "=r"(y[7])
               : "l"(a + 128) : "memory");
  asm volatile("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 "
               "{%0, %1, %2, %3, %4, %5, %6, %7}, "
               "{%8, %9, %10, %11, %12, %13, %14, %15}, "
               "{%16, %17, %18, %19, %20, %21, %22, %23}, "
               "{%0, %1, %2, %3, %4, %5, %6, %7};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]),
                 "+f"(c[5]), "+f"(c[6]), "+f"(c[7])
               : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]),
                 "r"(x[5]), "r"(x[6]), "r"(x[7]), "r"(y[0]), "r"(y[1]),
                 "r"(y[2]), "r"(y[3]), "r"(y[4]), "r"(y[5]), "r"(y[6]),
                 "r"(y[7]));
  asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 "
               "[%0], {%1, %2, %3, %4, %5, %6, %7, %8}, 16;"
               :
               : "r"((unsigned)__cvta_generic_to_shared(tile[warp])), "f"(c[0]),
                 "f"(c[1]), "f"(c[2]), "f"(c[3]), "f"(c[4]), "f"(c[5]),
                 "f"(c[6]), "f"(c[7])
               : "memory");
  __syncwarp();
  for (unsigned i = threadIdx.x % 32; i < 256; i += 32)
    out[number * 256 + i] = tile[warp][i];
}

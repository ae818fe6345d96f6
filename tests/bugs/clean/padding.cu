// kiln run: --grid 2 --block 32 --arg i32[64]=none --arg i32[32]
// Block 0 loads pairs of which only the first half was written and is used, as
// compilers do for structs with padding. Block 1 writes the second halves.
extern "C" __global__ void padding(int2 *pairs, int *out)
{
  const int i = threadIdx.x;
  int value, unused;
  if (blockIdx.x == 1) {
    pairs[i].y = i;
    return;
  }
  pairs[i].x = i;
  asm volatile(".pragma \"used_bytes_mask 15\";\n\t"
               "ld.global.v2.s32 {%0, %1}, [%2];"
               : "=r"(value), "=r"(unused)
               : "l"(__cvta_generic_to_global(pairs + i))
               : "memory");
  out[i] = value;
}

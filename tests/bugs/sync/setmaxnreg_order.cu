// kiln run: --grid 1 --block 384 --arg f32[384]
// The threads start with 168 registers each, so 160 is a decrease.
extern "C" __global__ void __launch_bounds__(384, 1) setmaxnreg_order(float *out)
{
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    out[threadIdx.x] = 1;
  } else if (threadIdx.x < 256) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 160;"); // BUG wrong setmaxnreg
    out[threadIdx.x] = 2;
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    out[threadIdx.x] = 3;
  }
}

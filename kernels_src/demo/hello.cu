/* hello.cu -- every thread prints its indices (samples/README.md, row A1).
 *
 * Launch: any grid and block size; the lecture uses 3 blocks of 4 threads.
 * Result: each thread prints one line to stdout. The lines appear when the host
 *         synchronises with the device. */
#ifndef __CUDACC_RTC__
#include <cstdio>
#endif

extern "C" __global__ void hello()
{
  printf("hello from block %u, thread %u\n", blockIdx.x, threadIdx.x);
}

/* hello.cu -- every thread prints its indices (samples/README.md, row A1).
 *
 * Launch: any grid and block; the lecture uses 3 blocks of 4 threads.
 * Result: one line per thread on stdout, when the device is synchronised. */
#ifndef __CUDACC_RTC__
#include <cstdio>
#endif

extern "C" __global__ void hello()
{
  printf("hello from block %u, thread %u\n", blockIdx.x, threadIdx.x);
}

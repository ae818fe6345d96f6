/* fake_libcuda_least.c -- a driver with the required functions alone. */
#define FAKE_ANSWER CUDA_SUCCESS
#define FAKE_VERSION 11020
#include "fake_libcuda.h"

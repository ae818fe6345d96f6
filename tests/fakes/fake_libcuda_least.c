/* fake_libcuda_least.c -- a fake driver that has only the required functions.
 */
#define FAKE_ANSWER CUDA_SUCCESS
#define FAKE_VERSION 11020
#include "fake_libcuda.h"

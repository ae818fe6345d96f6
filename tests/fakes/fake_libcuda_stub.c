/* fake_libcuda_stub.c -- a fake of the toolkit's stub library, which is only
 * for linking. */
#define FAKE_ANSWER CUDA_ERROR_STUB_LIBRARY
#define FAKE_VERSION 0
#define FAKE_OPTIONAL_TOO
#include "fake_libcuda.h"

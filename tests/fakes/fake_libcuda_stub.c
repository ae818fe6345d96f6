/* fake_libcuda_stub.c -- a fake of the CUDA toolkit's stub of libcuda, which
 * exists only for linking. */
#define FAKE_ANSWER CUDA_ERROR_STUB_LIBRARY
#define FAKE_VERSION 0
#define FAKE_OPTIONAL_TOO
#include "fake_libcuda.h"

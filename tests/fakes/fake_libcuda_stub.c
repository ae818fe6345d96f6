/* fake_libcuda_stub.c -- like the toolkit's stub: for linking, not running. */
#define FAKE_ANSWER CUDA_ERROR_STUB_LIBRARY
#define FAKE_VERSION 0
#define FAKE_OPTIONAL_TOO
#include "fake_libcuda.h"

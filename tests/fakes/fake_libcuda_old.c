/* fake_libcuda_old.c -- a fake driver that lacks a required function. */
#define FAKE_ANSWER CUDA_SUCCESS
#define FAKE_VERSION 10020
#define FAKE_LACKS
#include "fake_libcuda.h"

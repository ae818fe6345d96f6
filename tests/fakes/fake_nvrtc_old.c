/* fake_nvrtc_old.c -- a fake NVRTC without the functions that were added after
 * NVRTC 11.2. */
#define FAKE_NVRTC_OLD
#include "fake_nvrtc.c"

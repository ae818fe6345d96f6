/* fake_nvrtc_old.c -- the fake without what came after NVRTC 11.2. */
#define FAKE_NVRTC_OLD
#include "fake_nvrtc.c"

/* missing.c -- implements stubs for the driver functions that the CPU device
 * lacks.
 *
 * Each of these functions has a stub in this file, so that the drop-in library
 * can report which functions a program called. The table entry_points.def lists
 * the functions. */
#include "missing.h"

#include "machine.h"

enum {
#define KILN__MISSING_FN(symbol, since) MISSING_##symbol,
#include "entry_points.def"
  N_MISSING
};

static const char *const names[] = {
#define KILN__MISSING_FN(symbol, since) #symbol,
#include "entry_points.def"
};

static atomic_uint calls[N_MISSING];

/* Records a call of an unimplemented function. Before cuInit it returns
 * CUDA_ERROR_NOT_INITIALIZED, as all driver functions do. */
static CUresult refuse(unsigned which)
{
  CU_TRY(kiln__cpu_ready());
  calls[which]++;
  return CUDA_ERROR_NOT_SUPPORTED;
}

#define KILN__MISSING_FN(symbol, since)                                        \
  CUresult kiln__cpu_missing_##symbol(void)                                    \
  {                                                                            \
    return refuse(MISSING_##symbol);                                           \
  }
#include "entry_points.def"

void kiln__cpu_each_missing(kiln__cpu_missing_fn each, void *user)
{
  for (unsigned i = 0; i < N_MISSING; i++) {
    if (calls[i] > 0)
      each(user, names[i], calls[i]);
  }
}

/* cu_try.h -- defines CU_TRY, the only control-flow macro of the CPU device's
 * driver, and the short forms of the checks that most driver functions begin
 * with. */
#ifndef KILN_CPU_CU_TRY_H
#define KILN_CPU_CU_TRY_H

#include "../../driver/abi.h"

#include <stdbool.h>

/* Evaluates `expr`, a CUresult, once. Returns the value from the enclosing
 * function unless it is CUDA_SUCCESS. Use the macro only where no lock is held
 * and nothing has to be freed. Elsewhere, keep the result in `rc`. */
#define CU_TRY(expr)                                                           \
  do {                                                                         \
    const CUresult cu_try_rc_ = (expr);                                        \
                                                                               \
    if (cu_try_rc_ != CUDA_SUCCESS)                                            \
      return cu_try_rc_;                                                       \
  } while (0)

/* Returns CUDA_SUCCESS if `arguments`, the caller's check of its arguments, is
 * true. Otherwise returns CUDA_ERROR_INVALID_VALUE. */
static inline CUresult valid(bool arguments)
{
  return arguments ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Returns CUDA_SUCCESS if `p`, the result of an allocation, is not NULL.
 * Otherwise returns CUDA_ERROR_OUT_OF_MEMORY. */
static inline CUresult allocated(const void *p)
{
  return p != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The result of a getter function. Stores `value` in *out; the result is
 * CUDA_SUCCESS. If `out` is NULL, the result is CUDA_ERROR_INVALID_VALUE and
 * `value` is not evaluated. */
#define CU_STORE(out, value)                                                   \
  ((out) != NULL ? (*(out) = (value), CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE)

#endif

/* cu_try.h -- defines CU_TRY, the only control-flow macro of the CPU device's
 * driver. */
#ifndef KILN_CPU_CU_TRY_H
#define KILN_CPU_CU_TRY_H

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

#endif

/* cu_try.h -- the one control-flow macro of the CPU device's driver. */
#ifndef KILN_CPU_CU_TRY_H
#define KILN_CPU_CU_TRY_H

/* Evaluates `expr`, a CUresult, once; returns it from the enclosing function
 * unless it is CUDA_SUCCESS. Only for places where nothing has to be undone: no
 * lock is held, nothing is allocated. Elsewhere keep the code in `rc`. */
#define CU_TRY(expr)                                                           \
  do {                                                                         \
    const CUresult cu_try_rc_ = (expr);                                        \
                                                                               \
    if (cu_try_rc_ != CUDA_SUCCESS)                                            \
      return cu_try_rc_;                                                       \
  } while (0)

#endif

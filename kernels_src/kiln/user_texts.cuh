/* user_texts.cuh -- the caller's expressions, after everything else.
 *
 * A kernel that includes user.cuh includes this file in its last line. Here the library
 * defines the functions that user.cuh has declared. No line of a kernel follows, so no
 * macro of the caller's preamble can change one. */
#ifndef KILN_USER_TEXTS_CUH
#define KILN_USER_TEXTS_CUH

#if KILN_GENERATED
#include <kiln/generated_texts.cuh>
#endif

#endif

/* user_texts.cuh -- the caller's expressions, behind everything else.
 *
 * A kernel that includes user.cuh includes this file as its last line. There the
 * library defines the functions that user.cuh has declared. Since no line of a
 * kernel follows, a macro of the caller's preamble cannot change one. */
#ifndef KILN_USER_TEXTS_CUH
#define KILN_USER_TEXTS_CUH

#if KILN_GENERATED
#include <kiln/generated_texts.cuh>
#endif

#endif

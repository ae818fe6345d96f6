/* user_texts.cuh -- the functions that contain the user's expressions.
 *
 * A kernel that includes user.cuh includes this file in its last line. The library
 * generates the definitions of the functions that user.cuh declares. No kernel code
 * follows this file, so the macros of the user's preamble cannot change kernel code. */
#ifndef KILN_USER_TEXTS_CUH
#define KILN_USER_TEXTS_CUH

#if KILN_GENERATED
#include <kiln/generated_texts.cuh>
#endif

#endif

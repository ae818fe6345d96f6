/* c_headers.c -- small versions of C headers for programs that include them.
 *
 * NVRTC has no C headers, and the host's headers do not compile for a GPU. The
 * small headers of this file declare what device code can use: fixed-width
 * integers, limits, M_PI, assert, and functions that NVRTC provides. The names
 * are also declared in namespace std. If the caller supplies a header of the
 * same name, or a -I folder has such a file, that header takes precedence. The
 * 64-bit integer types are long long, as in libcu++, so that programs can
 * include both headers. */
#include "builtin.h"

#include <string.h>

#define STDDEF                                                                 \
  "#ifndef KILN_STDDEF_H\n#define KILN_STDDEF_H\n"                             \
  "typedef decltype(sizeof(0)) size_t;\n"                                      \
  "typedef decltype((char *)0 - (char *)0) ptrdiff_t;\n"                       \
  "#ifndef NULL\n#define NULL 0\n#endif\n"                                     \
  "#ifndef offsetof\n#define offsetof(t, m) ((size_t)&reinterpret_cast<"       \
  "const volatile char &>(((t *)0)->m))\n#endif\n#endif\n"

#define STDINT                                                                 \
  "#ifndef KILN_STDINT_H\n#define KILN_STDINT_H\n"                             \
  "typedef signed char int8_t; typedef short int16_t; typedef int int32_t;\n"  \
  "typedef long long int64_t;\n"                                               \
  "typedef unsigned char uint8_t; typedef unsigned short uint16_t;\n"          \
  "typedef unsigned uint32_t; typedef unsigned long long uint64_t;\n"          \
  "typedef int64_t intptr_t; typedef uint64_t uintptr_t;\n"                    \
  "typedef int64_t intmax_t; typedef uint64_t uintmax_t;\n"                    \
  "typedef int8_t int_least8_t; typedef int16_t int_least16_t;\n"              \
  "typedef int32_t int_least32_t; typedef int64_t int_least64_t;\n"            \
  "typedef uint8_t uint_least8_t; typedef uint16_t uint_least16_t;\n"          \
  "typedef uint32_t uint_least32_t; typedef uint64_t uint_least64_t;\n"        \
  "typedef int8_t int_fast8_t; typedef int16_t int_fast16_t;\n"                \
  "typedef int int_fast32_t; typedef int64_t int_fast64_t;\n"                  \
  "typedef uint8_t uint_fast8_t; typedef uint16_t uint_fast16_t;\n"            \
  "typedef unsigned uint_fast32_t; typedef uint64_t uint_fast64_t;\n"          \
  "#ifndef INT8_MIN\n#define INT8_MIN (-128)\n#define INT8_MAX 127\n#define "  \
  "UINT8_MAX 255\n"                                                            \
  "#define INT16_MIN (-32768)\n#define INT16_MAX 32767\n"                      \
  "#define UINT16_MAX 65535\n"                                                 \
  "#define INT32_MIN (-2147483647 - 1)\n#define INT32_MAX 2147483647\n"        \
  "#define UINT32_MAX 4294967295u\n"                                           \
  "#define INT64_MIN (-9223372036854775807ll - 1)\n"                           \
  "#define INT64_MAX 9223372036854775807ll\n"                                  \
  "#define UINT64_MAX 18446744073709551615ull\n"                               \
  "#define INTPTR_MIN INT64_MIN\n#define INTPTR_MAX INT64_MAX\n"               \
  "#define UINTPTR_MAX UINT64_MAX\n#define SIZE_MAX UINT64_MAX\n"              \
  "#define INTMAX_MIN INT64_MIN\n#define INTMAX_MAX INT64_MAX\n"               \
  "#define UINTMAX_MAX UINT64_MAX\n"                                           \
  "#endif\n#ifndef INT8_C\n#define INT8_C(c) c\n#define INT16_C(c) "           \
  "c\n#define INT32_C(c) c\n"                                                  \
  "#define INT64_C(c) c##ll\n#define UINT8_C(c) c\n#define UINT16_C(c) c\n"    \
  "#define UINT32_C(c) c##u\n#define UINT64_C(c) c##ull\n#endif\n#endif\n"

#define LIMITS                                                                 \
  "#ifndef KILN_LIMITS_H\n#define KILN_LIMITS_H\n"                             \
  "#define CHAR_BIT 8\n#define SCHAR_MIN (-128)\n#define SCHAR_MAX 127\n"      \
  "#define UCHAR_MAX 255\n#define CHAR_MIN SCHAR_MIN\n"                        \
  "#define CHAR_MAX SCHAR_MAX\n#define SHRT_MIN (-32768)\n"                    \
  "#define SHRT_MAX 32767\n#define USHRT_MAX 65535\n"                          \
  "#define INT_MIN (-2147483647 - 1)\n#define INT_MAX 2147483647\n"            \
  "#define UINT_MAX 4294967295u\n"                                             \
  "#define LONG_MIN (-9223372036854775807l - 1)\n"                             \
  "#define LONG_MAX 9223372036854775807l\n"                                    \
  "#define ULONG_MAX 18446744073709551615ul\n"                                 \
  "#define LLONG_MIN (-9223372036854775807ll - 1)\n"                           \
  "#define LLONG_MAX 9223372036854775807ll\n"                                  \
  "#define ULLONG_MAX 18446744073709551615ull\n#endif\n"

#define FLOAT                                                                  \
  "#ifndef KILN_FLOAT_H\n#define KILN_FLOAT_H\n"                               \
  "#define FLT_RADIX 2\n#define FLT_MANT_DIG 24\n#define FLT_DIG 6\n"          \
  "#define FLT_MIN_EXP (-125)\n#define FLT_MAX_EXP 128\n"                      \
  "#define FLT_EPSILON 1.1920928955078125e-07f\n"                              \
  "#define FLT_MIN 1.17549435e-38f\n#define FLT_MAX 3.402823466e+38f\n"        \
  "#define DBL_MANT_DIG 53\n#define DBL_DIG 15\n"                              \
  "#define DBL_MIN_EXP (-1021)\n#define DBL_MAX_EXP 1024\n"                    \
  "#define DBL_EPSILON 2.2204460492503131e-16\n"                               \
  "#define DBL_MIN 2.2250738585072014e-308\n"                                  \
  "#define DBL_MAX 1.7976931348623157e+308\n#endif\n"

/* NVRTC itself provides the mathematical functions. */
#define MATH                                                                   \
  "#ifndef KILN_MATH_H\n#define KILN_MATH_H\n"                                 \
  "#define M_E 2.7182818284590452354\n#define M_LOG2E 1.4426950408889634\n"    \
  "#define M_LOG10E 0.43429448190325182765\n"                                  \
  "#define M_LN2 0.69314718055994530942\n#define M_LN10 2.302585092994045\n"   \
  "#define M_PI 3.14159265358979323846\n"                                      \
  "#define M_PI_2 1.57079632679489661923\n"                                    \
  "#define M_PI_4 0.78539816339744830962\n"                                    \
  "#define M_1_PI 0.31830988618379067154\n"                                    \
  "#define M_2_PI 0.63661977236758134308\n"                                    \
  "#define M_2_SQRTPI 1.12837916709551257390\n"                                \
  "#define M_SQRT2 1.41421356237309504880\n"                                   \
  "#define M_SQRT1_2 0.70710678118654752440\n"                                 \
  "#ifndef INFINITY\n#define INFINITY __int_as_float(0x7f800000)\n#endif\n"    \
  "#ifndef NAN\n#define NAN __int_as_float(0x7fffffff)\n#endif\n"              \
  "#ifndef HUGE_VAL\n"                                                         \
  "#define HUGE_VAL __longlong_as_double(0x7ff0000000000000ll)\n#endif\n"      \
  "#endif\n"

/* No include guard: as in C, each inclusion evaluates NDEBUG again. */
#define ASSERT                                                                 \
  "#undef assert\n#ifdef NDEBUG\n#define assert(e) ((void)0)\n#else\n"         \
  "#ifndef KILN_ASSERT_H\n#define KILN_ASSERT_H\n"                             \
  "extern \"C\" __device__ void __assertfail(const char *message,\n"           \
  "  const char *file, unsigned line, const char *function,\n"                 \
  "  decltype(sizeof(0)) char_size);\n#endif\n"                                \
  "#define assert(e) ((e) ? (void)0 : __assertfail(#e, __FILE__, "             \
  "__LINE__, __func__, 1))\n#endif\n"

#define IN_STD(names) "namespace std {\n" names "}\n"

static const kiln_header headers[] = {
    {"assert.h", ASSERT},
    {"float.h", FLOAT},
    {"limits.h", LIMITS},
    {"math.h", MATH},
    {"stdbool.h", "/* C++ has bool, true and false. */\n"},
    {"stddef.h", STDDEF},
    {"stdint.h", STDINT},
    {"stdio.h", STDDEF}, /* NVRTC provides printf() without a header */
    {"stdlib.h", STDDEF},
    /* NVRTC provides memcpy() and memset() without a header */
    {"string.h", STDDEF},
    {"cassert", ASSERT},
    {"cfloat", FLOAT},
    {"climits", LIMITS},
    {"cstddef", STDDEF IN_STD("using ::size_t;\nusing ::ptrdiff_t;\n")},
    {"cstdint", STDINT IN_STD("using ::int8_t; using ::int16_t;\n"
                              "using ::int32_t; using ::int64_t;\n"
                              "using ::uint8_t; using ::uint16_t;\n"
                              "using ::uint32_t; using ::uint64_t;\n"
                              "using ::intptr_t; using ::uintptr_t;\n"
                              "using ::intmax_t; using ::uintmax_t;\n")},
    {"cmath",
     MATH IN_STD("using ::abs; using ::fabs; using ::sqrt; using ::cbrt;\n"
                 "using ::exp; using ::exp2; using ::expm1; using ::log;\n"
                 "using ::log2; using ::log10; using ::log1p; using ::pow;\n"
                 "using ::sin; using ::cos; using ::tan; using ::asin;\n"
                 "using ::acos; using ::atan; using ::atan2; using ::sinh;\n"
                 "using ::cosh; using ::tanh; using ::floor; using ::ceil;\n"
                 "using ::round; using ::trunc; using ::rint; using ::fmod;\n"
                 "using ::fma; using ::fmin; using ::fmax; using ::hypot;\n"
                 "using ::erf; using ::erfc; using ::tgamma; using ::lgamma;\n"
                 "using ::isnan; using ::isinf; using ::isfinite;\n"
                 "using ::copysign; using ::ldexp;\n")},
    {"cstdio", STDDEF IN_STD("using ::printf;\n")},
    {"cstdlib", STDDEF IN_STD("using ::size_t; using ::abs;\n")},
    {"cstring", STDDEF IN_STD("using ::memcpy; using ::memset;\n")},
};

const kiln_header *kiln__c_header(const char *name)
{
  for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
    if (strcmp(headers[i].name, name) == 0)
      return &headers[i];
  }
  return NULL;
}

/* rt_majors.h -- selects the rows of runtime_functions.def that the library of major
 * version KILN__RT_MAJOR exports. KILN__RT_IN_<majors>(text) expands to `text` if the
 * column `majors` of a row includes this version. */
#ifndef KILN_CPU_RT_MAJORS_H
#define KILN_CPU_RT_MAJORS_H

#define KILN__RT_IN_ALL(text) text
#if KILN__RT_MAJOR == 11
#define KILN__RT_IN_11(text) text
#define KILN__RT_IN_12(text)
#define KILN__RT_IN_13(text)
#define KILN__RT_IN_11_12(text) text
#define KILN__RT_IN_12_13(text)
#elif KILN__RT_MAJOR == 12
#define KILN__RT_IN_11(text)
#define KILN__RT_IN_12(text) text
#define KILN__RT_IN_13(text)
#define KILN__RT_IN_11_12(text) text
#define KILN__RT_IN_12_13(text) text
#else
#define KILN__RT_IN_11(text)
#define KILN__RT_IN_12(text)
#define KILN__RT_IN_13(text) text
#define KILN__RT_IN_11_12(text)
#define KILN__RT_IN_12_13(text) text
#endif

#endif

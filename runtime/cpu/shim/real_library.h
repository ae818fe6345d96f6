/* real_library.h -- opens NVIDIA's library that a shim of `kiln exec` replaces. */
#ifndef KILN_CPU_REAL_LIBRARY_H
#define KILN_CPU_REAL_LIBRARY_H

/* Opens the library that the shim `own` (such as "libnvrtc.so.13") stands for.
 * If the program asked for it by a path, that file is opened. Otherwise the paths
 * are tried that KILN_EXEC_NVRTC lists, separated by ':': first those with the
 * shim's file name, then, for NVRTC, all of them. For other libraries the folders
 * of these paths, and their neighbours in NVIDIA's Python wheels, are searched.
 * Returns a handle of dlopen, or NULL. The library stays open. */
void *kiln__real_library(const char *own);

#endif

/* types.h -- names that every Kiln header shares.
 *
 * The CUDA handle types are repeated here so that Kiln builds on a machine
 * without CUDA. C11 and C++ allow identical typedefs, so this header and cuda.h
 * may be included together, in either order. */
#ifndef KILN_TYPES_H
#define KILN_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#error "Kiln supports Linux only"
#endif

/* An exported function. Only the shared library exports: a plug-in that links
 * libkiln.a keeps Kiln's names to itself. */
#ifndef KILN_API
#if defined(KILN_BUILDING) && !defined(KILN_BUILDING_SHARED)
#define KILN_API __attribute__((visibility("hidden")))
#else
#define KILN_API __attribute__((visibility("default")))
#endif
#endif

/* A function that takes a struct which may grow in later versions. In a
 * caller's translation unit it is an inline wrapper: it passes the size that
 * the struct has in the caller's header to the exported NAME_sized(). See
 * "Versions" in kiln.h. */
#ifndef KILN_INLINE
#ifdef KILN_BUILDING
#define KILN_INLINE
#else
#define KILN_INLINE static inline
#endif
#endif

/* Declares NAME_sized() and defines the wrapper NAME(). `sizes` are the
 * parameters that follow those of NAME, `arguments` are those of the call. */
#define KILN__SIZED_AS(result, name, parameters, sizes, arguments)             \
  KILN_API result name##_sized(KILN__LIST parameters, KILN__LIST sizes);       \
  KILN__WRAPPER(result, name, parameters, arguments)
#define KILN__SIZED(name, parameters, sizes, arguments)                        \
  KILN__SIZED_AS(kiln_status, name, parameters, sizes, arguments)
#define KILN__LIST(...) __VA_ARGS__
#ifdef KILN_BUILDING
#define KILN__WRAPPER(result, name, parameters, arguments)
#else
#define KILN__WRAPPER(result, name, parameters, arguments)                     \
  static inline result name parameters                                         \
  {                                                                            \
    return name##_sized arguments;                                             \
  }
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Version of this header: major * 10000 + minor * 100 + patch. */
#define KILN_VERSION 100
#define KILN_VERSION_TEXT "0.1.0"

typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraphExec_st *CUgraphExec;
typedef unsigned long long CUdeviceptr;

/** The CUDA driver API as a table of functions. Kiln fills one from libcuda;
 * kiln_cpu_driver() in cpu.h returns another. Opaque. */
typedef struct kiln__driver kiln_driver;

/** The root object, from which everything else is made; see runtime.h. */
typedef struct kiln_runtime kiln_runtime;
/** A GPU with one context; see device.h. */
typedef struct kiln_device kiln_device;
/** An ordered queue of work on a device; see stream.h. */
typedef struct kiln_stream kiln_stream;
/** A point in a stream; see stream.h. */
typedef struct kiln_event kiln_event;
/** Captured work that can be launched again and again; see stream.h. */
typedef struct kiln_graph kiln_graph;
/** A compiled program, not bound to a device; see program.h. */
typedef struct kiln_image kiln_image;
/** A program loaded into a device's context; see program.h. */
typedef struct kiln_module kiln_module;
/** One launchable function of a module; see launch.h. */
typedef struct kiln_kernel kiln_kernel;
/** A recorder of what ran when; see timeline.h. */
typedef struct kiln_timeline kiln_timeline;

/** Returns KILN_VERSION of the library that is linked. Compare it with the
 * macro to find out whether the header and the library differ. Threads: any.
 * Blocks: never. */
KILN_API int kiln_version(void);

#ifdef __cplusplus
}
#endif
#endif

/* types.h -- macros and type names that all Kiln headers share.
 *
 * This header repeats the CUDA handle types, so that Kiln builds on a machine
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

/* Marks an exported function. Only the shared library exports symbols: a
 * plug-in that links libkiln.a does not export the symbols of Kiln. */
#ifndef KILN_API
#if defined(KILN_BUILDING) && !defined(KILN_BUILDING_SHARED)
#define KILN_API __attribute__((visibility("hidden")))
#else
#define KILN_API __attribute__((visibility("default")))
#endif
#endif

/* Marks a function that takes a struct that may get new members in later
 * versions. In the caller's code such a function is an inline wrapper over the
 * exported NAME_sized(). The wrapper passes the size that the struct has in the
 * caller's header. See "Versions" in kiln.h. */
#ifndef KILN_INLINE
#ifdef KILN_BUILDING
#define KILN_INLINE
#else
#define KILN_INLINE static inline
#endif
#endif

/* Declares NAME_sized() and defines the wrapper NAME(). `parameters` are the
 * parameters of both functions, `sizes` are the additional parameters of
 * NAME_sized(), and `arguments` are the arguments of the call in the
 * wrapper. */
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

/** The CUDA driver API as a table of functions. Kiln fills a table from
 * libcuda, and kiln_cpu_driver() in cpu.h returns the table of the CPU device.
 * The type is opaque. */
typedef struct kiln__driver kiln_driver;

/** The root object, from which all other objects are created; see runtime.h. */
typedef struct kiln_runtime kiln_runtime;
/** A GPU with one context; see device.h. */
typedef struct kiln_device kiln_device;
/** An ordered queue of work on a device; see stream.h. */
typedef struct kiln_stream kiln_stream;
/** A point in the work of a stream, for which the host or other streams can
 * wait; see stream.h. */
typedef struct kiln_event kiln_event;
/** Captured work that can be launched repeatedly; see stream.h. */
typedef struct kiln_graph kiln_graph;
/** A compiled program, not bound to a device; see program.h. */
typedef struct kiln_image kiln_image;
/** A program loaded into a device's context; see program.h. */
typedef struct kiln_module kiln_module;
/** One launchable function of a module; see launch.h. */
typedef struct kiln_kernel kiln_kernel;
/** A recorder of the times at which work ran; see timeline.h. */
typedef struct kiln_timeline kiln_timeline;

/** Returns the version of the linked library, in the format of KILN_VERSION.
 * Compare the result with the macro KILN_VERSION to find out whether the header
 * and the library differ.
 * Thread-safe. Never blocks. */
KILN_API int kiln_version(void);

#ifdef __cplusplus
}
#endif
#endif

/* types.h -- names shared by every Kiln header.
 *
 * The CUDA handle types are repeated here so that Kiln builds on a machine
 * with no CUDA files; C11 allows identical typedefs, so this header mixes with
 * cuda.h in either order. */
#ifndef KILN_TYPES_H
#define KILN_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#error "Kiln supports Linux only"
#elif defined(KILN_BUILDING) || defined(__GNUC__)
#define KILN_API __attribute__((visibility("default")))
#else
#define KILN_API
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
typedef unsigned long long CUdeviceptr;

/** The CUDA driver API as a table of functions: Kiln finds libcuda's by itself;
 * kiln_cpu_driver() of cpu.h gives another. Opaque. */
typedef struct kiln__driver kiln_driver;

/** Everything below hangs off a runtime; see runtime.h. */
typedef struct kiln_runtime kiln_runtime;
/** A GPU with one context; see device.h. */
typedef struct kiln_device kiln_device;
/** An ordered queue of work on a device; see stream.h. */
typedef struct kiln_stream kiln_stream;
/** A point in a stream; see stream.h. */
typedef struct kiln_event kiln_event;
/** A compiled program, not bound to a device; see program.h. */
typedef struct kiln_image kiln_image;
/** A program loaded into a device's context; see program.h. */
typedef struct kiln_module kiln_module;
/** One launchable function of a module; see launch.h. */
typedef struct kiln_kernel kiln_kernel;
/** A recorder of what ran when; see timeline.h. */
typedef struct kiln_timeline kiln_timeline;

/** Version of the library that was linked, as KILN_VERSION. Any thread. */
KILN_API int kiln_version(void);

#ifdef __cplusplus
}
#endif
#endif

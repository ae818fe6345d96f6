/* status.h -- status codes, and the record of the last failure.
 *
 * Every Kiln function that can fail returns a kiln_status. After a failure,
 * kiln_last_error() returns the calling thread's record: what failed, the error
 * code of the driver or the compiler, the compile log, and the next step. Only
 * a failing call writes the record, so read the record only after a failure. */
#ifndef KILN_STATUS_H
#define KILN_STATUS_H

#include <kiln/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* This table defines the enum, the names and the descriptions of all statuses.
 * The values of existing statuses never change. New statuses are added at the
 * end, so a program must expect values that its header does not list. */
#define KILN_STATUS_MAP(X)                                                     \
  X(OK, 0, "success")                                                          \
  X(EINVAL, 1, "an argument is not valid")                                     \
  X(ENOMEM, 2, "host memory ran out")                                          \
  X(ENODRIVER, 3, "the NVIDIA driver library was not found or is unusable")    \
  X(ENODEVICE, 4, "no such GPU")                                               \
  X(ENONVRTC, 5, "no usable NVRTC library was found")                          \
  X(ECOMPILE, 6, "the program does not compile; see kiln_error.log")           \
  X(EDRIVER, 7, "a CUDA driver call failed; see kiln_error.native")            \
  X(ENOTFOUND, 8, "no such name")                                              \
  X(EUNSUPPORTED, 9, "this device, driver or compiler cannot do that")         \
  X(EARGS, 10, "arguments do not match the kernel's parameters")               \
  X(ELIMIT, 11, "a limit of the device was exceeded")                          \
  X(EFORKED, 12, "CUDA state does not survive fork; use it in one process")    \
  X(ECAPTURE, 13, "not possible while a stream is being captured")             \
  X(ECANCELED, 14, "canceled by the caller")                                   \
  X(ETIMEOUT, 15, "did not finish in the given time")                          \
  X(ENOTREADY, 16, "not finished yet")                                         \
  X(EIO, 17, "a file could not be read or written")                            \
  X(ECORRUPT, 18, "a file holds something else than it should")                \
  X(ESPILL, 19, "the kernel spills registers and the caller forbade that")     \
  X(EDEVMEM, 20, "device memory ran out")                                      \
  X(ESTICKY, 21, "an earlier kernel failed and took the context with it")      \
  X(EINTERNAL, 22, "a defect in Kiln; please report it")                       \
  X(ECOMM, 23, "communication with another rank failed")

typedef enum kiln_status {
#define KILN_STATUS_ENUM(name, value, text) KILN_##name = (value),
  KILN_STATUS_MAP(KILN_STATUS_ENUM)
#undef KILN_STATUS_ENUM
} kiln_status;

/** The library that returned the error code in kiln_error.native. */
typedef enum kiln_error_source {
  KILN_SOURCE_NONE = 0,  /**< no library returned an error code */
  KILN_SOURCE_DRIVER,    /**< CUDA driver; the error code is a CUresult */
  KILN_SOURCE_NVRTC,     /**< NVRTC; the error code is an nvrtcResult */
  KILN_SOURCE_NVJITLINK, /**< nvJitLink; the error code is an nvJitLinkResult */
  KILN_SOURCE_OS /**< operating system; the error code is an errno value */
} kiln_error_source;

/** Sizes of the strings in kiln_error in bytes, including the NUL. A longer
 * string is cut at a character boundary and ends in "...". */
enum {
  KILN_ERROR_MESSAGE_SIZE = 768,
  KILN_ERROR_HINT_SIZE = 512,
  KILN_ERROR_LOG_SIZE = 8192
};

/** The error record of a thread, which describes the last failing call of that
 * thread. */
typedef struct kiln_error {
  kiln_status status;       /**< status that the failing call returned */
  kiln_error_source source; /**< library that returned the native error code */
  int native;    /**< error code that this library returned, or 0 if there is
                      none */
  char call[64]; /**< name of the library function that failed, e.g.
                      "cuLaunchKernel" */
  char message[KILN_ERROR_MESSAGE_SIZE]; /**< one sentence that says what
                                              failed */
  char hint[KILN_ERROR_HINT_SIZE];       /**< the next step for the user; may be
                                              empty */
  /** Compile log with the file names and line numbers of the caller's source;
   * may be empty or cut. kiln_program_desc.on_log receives the complete log. */
  char log[KILN_ERROR_LOG_SIZE];
} kiln_error;

/**
 * Returns the error record of the last failing call in the calling thread.
 *
 * @return the record, never NULL. The caller borrows the record. Its contents
 * are valid until the next failing call in the same thread.
 * Thread-safe, because each thread has its own record. Never blocks.
 */
KILN_API const kiln_error *kiln_last_error(void);

/**
 * Writes the error record of the calling thread. Libraries that build on Kiln
 * (comm.h) use it, so that kiln_last_error() describes their failures too.
 *
 * @param status   status of the failure; returned unchanged.
 * @param hint     the next step for the user, or NULL. Copied.
 * @param message  one sentence that says what failed. Copied. Both texts may be
 *                 parts of the current record.
 * @retval the value of `status`.
 * Thread-safe. Never blocks.
 */
KILN_API kiln_status kiln_error_write(kiln_status status, const char *hint,
                                      const char *message);

/** Returns the name of a status, such as "KILN_EINVAL", or "KILN_?" for a value
 * that this library does not define. The string is static.
 * Thread-safe. Never blocks. */
KILN_API const char *kiln_status_name(kiln_status status);

/** Returns one sentence that explains a status. The string is static.
 * Thread-safe. Never blocks. */
KILN_API const char *kiln_status_text(kiln_status status);

#ifdef __cplusplus
}
#endif
#endif

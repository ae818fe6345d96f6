/* status.h -- what a call returns, and the record of what went wrong.
 *
 * Every Kiln function that can fail returns a kiln_status. After a failure,
 * kiln_last_error() returns the calling thread's record: what failed, the
 * driver's or the compiler's own code, the compile log, and the next step. Only
 * failing calls write the record, so read it only after a failure. */
#ifndef KILN_STATUS_H
#define KILN_STATUS_H

#include <kiln/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One table makes the enum, the names and the texts. Values never change; new
 * ones are added at the end, so a program must expect values that its header
 * does not list. */
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
  X(EINTERNAL, 22, "a defect in Kiln; please report it")

typedef enum kiln_status {
#define KILN_STATUS_ENUM(name, value, text) KILN_##name = (value),
  KILN_STATUS_MAP(KILN_STATUS_ENUM)
#undef KILN_STATUS_ENUM
} kiln_status;

/** Which library returned kiln_error.native. */
typedef enum kiln_error_source {
  KILN_SOURCE_NONE = 0,  /**< there is no native code */
  KILN_SOURCE_DRIVER,    /**< native is a CUresult */
  KILN_SOURCE_NVRTC,     /**< native is an nvrtcResult */
  KILN_SOURCE_NVJITLINK, /**< native is an nvJitLinkResult */
  KILN_SOURCE_OS         /**< native is an errno value */
} kiln_error_source;

/** Sizes of the record's texts in bytes, including the NUL. A longer text is
 * cut at a character boundary and ends in "...". */
enum {
  KILN_ERROR_MESSAGE_SIZE = 768,
  KILN_ERROR_HINT_SIZE = 512,
  KILN_ERROR_LOG_SIZE = 8192
};

/** The record of a thread's last failing call. */
typedef struct kiln_error {
  kiln_status status;       /**< what the call returned */
  kiln_error_source source; /**< which library returned `native` */
  int native;               /**< that library's code, 0 if there is none */
  char call[64];            /**< the native function, e.g. "cuLaunchKernel" */
  char message[KILN_ERROR_MESSAGE_SIZE]; /**< what failed, one sentence */
  char hint[KILN_ERROR_HINT_SIZE];       /**< the next step; may be empty */
  char log[KILN_ERROR_LOG_SIZE]; /**< compile log with the caller's file names
                                    and lines; may be empty. The complete log
                                    goes to kiln_program_desc.on_log */
} kiln_error;

/**
 * Returns the record of the last failure in the calling thread.
 *
 * @return never NULL; borrowed, valid until the thread's next failing call.
 * Threads: any; each thread has one record. Blocks: never.
 */
KILN_API const kiln_error *kiln_last_error(void);

/** Returns the name of a status, such as "KILN_EINVAL", or "KILN_?" for a value
 * that this library does not define. The text is static. Threads: any. Blocks:
 * never. */
KILN_API const char *kiln_status_name(kiln_status status);

/** Returns one sentence that explains a status. The text is static. Threads:
 * any. Blocks: never. */
KILN_API const char *kiln_status_text(kiln_status status);

#ifdef __cplusplus
}
#endif
#endif

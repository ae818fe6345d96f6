/* result.c -- converts a CUresult to a status, and records the driver's name
 * and message for the code and a hint. */
#include "driver.h"

#include <string.h>

typedef struct meaning {
  CUresult rc;
  kiln_status status;
  const char *hint;
} meaning;

static const char lost_hint[] =
    "a kernel failed and the context is lost: free this device's objects, "
    "open the device again (for a primary context: a new process), and run "
    "compute-sanitizer to find the kernel";
static const char image_hint[] =
    "the image does not fit this GPU: compile for the device at hand";
static const char ptx_hint[] =
    "the driver is older than the compiler: update the driver, or let NVRTC "
    "make machine code (sm_) for this GPU";
static const char capture_hint[] =
    "end the capture first, or do this before it begins";
static const char mps_hint[] = "check the MPS daemon and its client limits";

/* Maps driver result codes to a status and a hint. A code that is not listed
 * gives KILN_EDRIVER without a hint. */
static const meaning meanings[] = {
    {CUDA_ERROR_INVALID_VALUE, KILN_EDRIVER, NULL},
    {CUDA_ERROR_OUT_OF_MEMORY, KILN_EDEVMEM,
     "free device memory, or check with `nvidia-smi` which process holds it"},
    {CUDA_ERROR_NOT_INITIALIZED, KILN_EDRIVER,
     "check the driver with `nvidia-smi`"},
    {CUDA_ERROR_DEINITIALIZED, KILN_EDRIVER,
     "the driver shuts down with the process: free Kiln's objects before "
     "main returns"},
    {CUDA_ERROR_STUB_LIBRARY, KILN_ENODRIVER,
     "a stub libcuda was loaded: take the toolkit's stubs folder off "
     "LD_LIBRARY_PATH"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, KILN_EDRIVER,
     "another process holds the GPU exclusively: check `nvidia-smi`"},
    {CUDA_ERROR_NO_DEVICE, KILN_ENODEVICE,
     "check `nvidia-smi` and CUDA_VISIBLE_DEVICES"},
    {CUDA_ERROR_INVALID_DEVICE, KILN_ENODEVICE,
     "ask kiln_device_count() for the number of GPUs"},
    {CUDA_ERROR_INVALID_IMAGE, KILN_EDRIVER, image_hint},
    {CUDA_ERROR_INVALID_CONTEXT, KILN_EDRIVER,
     "the context was destroyed, or belongs to another device"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, KILN_EDRIVER, image_hint},
    {CUDA_ERROR_ECC_UNCORRECTABLE, KILN_ESTICKY,
     "the GPU's memory is damaged: check `nvidia-smi -q -d ECC`"},
    {CUDA_ERROR_UNSUPPORTED_LIMIT, KILN_EUNSUPPORTED, NULL},
    {CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, KILN_EUNSUPPORTED,
     "copy through the host between these two GPUs"},
    {CUDA_ERROR_INVALID_PTX, KILN_EDRIVER,
     "the driver cannot assemble this PTX; the log says where"},
    {CUDA_ERROR_NVLINK_UNCORRECTABLE, KILN_ESTICKY,
     "an NVLink failed: check `nvidia-smi nvlink -s`"},
    {CUDA_ERROR_JIT_COMPILER_NOT_FOUND, KILN_EDRIVER,
     "libnvidia-ptxjitcompiler is missing: install the driver completely, or "
     "use machine code (sm_)"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, KILN_EDRIVER, ptx_hint},
    {CUDA_ERROR_JIT_COMPILATION_DISABLED, KILN_EDRIVER,
     "unset CUDA_DISABLE_PTX_JIT, or use machine code (sm_)"},
    {CUDA_ERROR_CONTAINED, KILN_ESTICKY, lost_hint},
    {CUDA_ERROR_INVALID_SOURCE, KILN_EDRIVER, image_hint},
    {CUDA_ERROR_FILE_NOT_FOUND, KILN_EDRIVER, NULL},
    {CUDA_ERROR_OPERATING_SYSTEM, KILN_EDRIVER,
     "check `dmesg` and the limits of this process"},
    {CUDA_ERROR_INVALID_HANDLE, KILN_EDRIVER,
     "the handle was freed, or belongs to another context"},
    {CUDA_ERROR_NOT_FOUND, KILN_ENOTFOUND, NULL},
    {CUDA_ERROR_NOT_READY, KILN_ENOTREADY, NULL},
    {CUDA_ERROR_ILLEGAL_ADDRESS, KILN_ESTICKY, lost_hint},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, KILN_ELIMIT,
     "use fewer threads per block or fewer registers (__launch_bounds__)"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, KILN_ESTICKY,
     "the display's watchdog stopped the kernel: make it shorter, or use a "
     "GPU without a display"},
    {CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, KILN_EDRIVER, NULL},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, KILN_ESTICKY,
     "the context was destroyed: open the device again"},
    {CUDA_ERROR_ASSERT, KILN_ESTICKY,
     "an assert in a kernel failed; its text is on stdout"},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, KILN_ESTICKY, lost_hint},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, KILN_ESTICKY, lost_hint},
    {CUDA_ERROR_MISALIGNED_ADDRESS, KILN_ESTICKY, lost_hint},
    {CUDA_ERROR_INVALID_ADDRESS_SPACE, KILN_ESTICKY, lost_hint},
    {CUDA_ERROR_INVALID_PC, KILN_ESTICKY, lost_hint},
    {CUDA_ERROR_LAUNCH_FAILED, KILN_ESTICKY, lost_hint},
    {CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, KILN_ELIMIT,
     "a cooperative grid must fit on the GPU at once: launch fewer blocks"},
    {CUDA_ERROR_TENSOR_MEMORY_LEAK, KILN_ESTICKY, lost_hint},
    {CUDA_ERROR_NOT_PERMITTED, KILN_EUNSUPPORTED, NULL},
    {CUDA_ERROR_NOT_SUPPORTED, KILN_EUNSUPPORTED, NULL},
    {CUDA_ERROR_SYSTEM_NOT_READY, KILN_EDRIVER,
     "start the nvidia-fabricmanager service"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, KILN_EDRIVER,
     "libcuda and the kernel module differ in version: reboot"},
    {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, KILN_EDRIVER,
     "remove the `compat` folder from LD_LIBRARY_PATH"},
    {CUDA_ERROR_MPS_CONNECTION_FAILED, KILN_EDRIVER, mps_hint},
    {CUDA_ERROR_MPS_RPC_FAILURE, KILN_EDRIVER, mps_hint},
    {CUDA_ERROR_MPS_SERVER_NOT_READY, KILN_EDRIVER, mps_hint},
    {CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, KILN_EDRIVER, mps_hint},
    {CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, KILN_EDRIVER, mps_hint},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, KILN_ECAPTURE, capture_hint},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, KILN_ECAPTURE, capture_hint},
    {CUDA_ERROR_STREAM_CAPTURE_MERGE, KILN_ECAPTURE, capture_hint},
    {CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, KILN_ECAPTURE, capture_hint},
    {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, KILN_ECAPTURE, capture_hint},
    {CUDA_ERROR_STREAM_CAPTURE_ISOLATION, KILN_ECAPTURE, capture_hint},
    {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, KILN_ECAPTURE, capture_hint},
    {CUDA_ERROR_CAPTURED_EVENT, KILN_ECAPTURE, capture_hint},
    {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, KILN_ECAPTURE, capture_hint},
    {CUDA_ERROR_TIMEOUT, KILN_ETIMEOUT, NULL},
    {CUDA_ERROR_INVALID_CLUSTER_SIZE, KILN_ELIMIT,
     "use a cluster of 8 blocks at most, and a grid that it divides"},
};

static const char *own_name(CUresult rc)
{
  switch (rc) {
#define KILN__CU_RESULT(name, value)                                           \
  case name:                                                                   \
    return #name;
#define KILN__CU_CONSTANT(name, value)
#include "driver_constants.def"
#undef KILN__CU_RESULT
#undef KILN__CU_CONSTANT
  }
  return "unknown CUresult";
}

/* Logs the CPU device's description of a failed launch, which names the thread
 * and its fault. Nothing is logged for a destroyed context, since in that case
 * no launch failed. */
static void log_fault(const kiln__driver *driver, kiln_status status,
                      CUresult rc)
{
  char fault[4096];

  if (status == KILN_ESTICKY && rc != CUDA_ERROR_CONTEXT_IS_DESTROYED &&
      driver != NULL && driver->last_fault != NULL &&
      driver->last_fault(fault, sizeof fault) == KILN_OK)
    kiln__error_log(fault, strlen(fault));
}

static const char *hint_of(const kiln__driver *driver, const meaning *known)
{
  if (known == NULL)
    return NULL;
  if (known->rc == CUDA_ERROR_LAUNCH_TIMEOUT && driver != NULL &&
      driver->last_fault != NULL)
    return "the kernel waits for ever or used up its budget: the log lists the "
           "threads that wait, and where";
  return known->hint;
}

kiln_status kiln__cu(const kiln__driver *driver, CUresult rc, const char *call)
{
  const meaning *known = NULL;
  const char *name = NULL, *text = NULL;
  kiln_status status;

  if (rc == CUDA_SUCCESS)
    return KILN_OK;
  for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
    if (meanings[i].rc == rc)
      known = &meanings[i];
  }
  if (driver == NULL || driver->getErrorName == NULL ||
      driver->getErrorName(rc, &name) != CUDA_SUCCESS || name == NULL)
    name = own_name(rc);
  if (driver == NULL || driver->getErrorString == NULL ||
      driver->getErrorString(rc, &text) != CUDA_SUCCESS)
    text = NULL;
  status = kiln__fail_native(
      known == NULL ? KILN_EDRIVER : known->status, KILN_SOURCE_DRIVER, rc,
      call, hint_of(driver, known), "%s failed: %s (%d)%s%s", call, name, rc,
      text == NULL ? "" : ": ", text == NULL ? "" : text);
  log_fault(driver, status, rc);
  return status;
}

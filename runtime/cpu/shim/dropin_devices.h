/* dropin_devices.h -- the facts about devices that the drop-in libcuda.so.1
 * exports for the shim of NVML, which may be used without cuInit. */
#ifndef KILN_CPU_DROPIN_DEVICES_H
#define KILN_CPU_DROPIN_DEVICES_H

#include <stdint.h>

typedef struct kiln_cpu_device_facts {
  int n_devices, driver_version; /* 13000 for CUDA 13.0 */
  int arch;                      /* 10 * major + minor */
  uint64_t total_bytes, used_bytes;
  char name[96];
  unsigned char uuid[16];
  unsigned bus; /* PCI bus; domain and device are 0 */
} kiln_cpu_device_facts;

/* Stores the facts about a device. Needs no cuInit and creates no context, so
 * a child process may still use CUDA after fork. Returns a CUresult:
 * CUDA_SUCCESS, CUDA_ERROR_INVALID_DEVICE (n_devices and driver_version are
 * stored) or CUDA_ERROR_OUT_OF_MEMORY. Thread-safe. */
int kiln_cpu_get_device_facts(int device, kiln_cpu_device_facts *facts);

#endif

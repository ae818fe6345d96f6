/* nvml_shim.c -- a shim that replaces NVML (libnvidia-ml.so.1) for programs on
 * the CPU device.
 *
 * It has the functions by which programs and frameworks list devices: number,
 * name, UUID, PCI address, memory and versions. Sensors are not supported; see
 * nvml_refused.def. Unlike NVIDIA's library it sees only the devices and the
 * memory of its own process. The layouts are those of NVIDIA's documentation of
 * NVML. */
#include "dropin_devices.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Marks the symbols that the version script exports, and declares them. */
#define EXPORT(declaration)                                                    \
  __attribute__((visibility("default"))) declaration;                          \
  declaration

enum {
  OK = 0,
  UNINITIALIZED = 1,
  INVALID_ARGUMENT = 2,
  NOT_SUPPORTED = 3,
  NOT_FOUND = 6,
  INSUFFICIENT_SIZE = 7,
  VERSION_MISMATCH = 25,
  UNKNOWN = 999
};

enum { MOST_DEVICES = 64 };

/* A device handle is the address of an element. */
static char handles[MOST_DEVICES];
static atomic_int users; /* calls of nvmlInit without nvmlShutdown */

/* Reads the facts about the device of a handle. */
static int facts_of(const void *handle, kiln_cpu_device_facts *facts)
{
  const char *at = handle;

  if (users == 0)
    return UNINITIALIZED;
  for (int i = 0; i < MOST_DEVICES; i++) {
    if (at == &handles[i])
      return kiln_cpu_get_device_facts(i, facts) == 0 ? OK : INVALID_ARGUMENT;
  }
  return INVALID_ARGUMENT;
}

static int number_of_devices(void)
{
  kiln_cpu_device_facts facts = {0};

  (void)kiln_cpu_get_device_facts(0, &facts);
  return facts.n_devices < MOST_DEVICES ? facts.n_devices : MOST_DEVICES;
}

/* Stores a text of a function with a buffer and its size. */
static int store(char *to, unsigned size, const char *text)
{
  if (users == 0)
    return UNINITIALIZED;
  if (to == NULL)
    return INVALID_ARGUMENT;
  if (strlen(text) >= size)
    return INSUFFICIENT_SIZE;
  memcpy(to, text, strlen(text) + 1);
  return OK;
}

static int store_number(unsigned *to, unsigned value)
{
  if (users == 0)
    return UNINITIALIZED;
  if (to == NULL)
    return INVALID_ARGUMENT;
  *to = value;
  return OK;
}

/* ---- The library --------------------------------------------------------- */

EXPORT(int nvmlInitWithFlags(unsigned flags))
{
  (void)flags;
  users++;
  return OK;
}

EXPORT(int nvmlInit_v2(void))
{
  return nvmlInitWithFlags(0);
}

EXPORT(int nvmlInit(void))
{
  return nvmlInitWithFlags(0);
}

EXPORT(int nvmlShutdown(void))
{
  if (users == 0)
    return UNINITIALIZED;
  users--;
  return OK;
}

EXPORT(const char *nvmlErrorString(int result))
{
  switch (result) {
  case OK:
    return "Success";
  case UNINITIALIZED:
    return "Uninitialized";
  case INVALID_ARGUMENT:
    return "Invalid Argument";
  case NOT_SUPPORTED:
    return "Not Supported";
  case NOT_FOUND:
    return "Not Found";
  case INSUFFICIENT_SIZE:
    return "Insufficient Size";
  case VERSION_MISMATCH:
    return "Argument version mismatch";
  default:
    return "Unknown Error";
  }
}

/* The version of the first driver with CUDA 13.0. */
#define DRIVER_VERSION "580.65.06"

EXPORT(int nvmlSystemGetDriverVersion(char *version, unsigned size))
{
  return store(version, size, DRIVER_VERSION);
}

EXPORT(int nvmlSystemGetNVMLVersion(char *version, unsigned size))
{
  return store(version, size, "13." DRIVER_VERSION);
}

EXPORT(int nvmlSystemGetCudaDriverVersion_v2(int *version))
{
  kiln_cpu_device_facts facts = {0};

  if (version == NULL)
    return INVALID_ARGUMENT;
  (void)kiln_cpu_get_device_facts(0, &facts);
  *version = facts.driver_version;
  return OK;
}

EXPORT(int nvmlSystemGetCudaDriverVersion(int *version))
{
  return nvmlSystemGetCudaDriverVersion_v2(version);
}

/* ---- Handles ------------------------------------------------------------- */

EXPORT(int nvmlDeviceGetCount_v2(unsigned *n))
{
  return store_number(n, (unsigned)number_of_devices());
}

EXPORT(int nvmlDeviceGetCount(unsigned *n))
{
  return nvmlDeviceGetCount_v2(n);
}

EXPORT(int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device))
{
  if (users == 0)
    return UNINITIALIZED;
  if (device == NULL || index >= (unsigned)number_of_devices())
    return INVALID_ARGUMENT;
  *device = &handles[index];
  return OK;
}

EXPORT(int nvmlDeviceGetHandleByIndex(unsigned index, void **device))
{
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

/* Writes a UUID as NVML does: GPU-6b696c6e-2d63-7075-2d64-657669636500. */
static void write_uuid(char text[48], const unsigned char uuid[16])
{
  size_t n = 4;

  memcpy(text, "GPU-", 5);
  for (int i = 0; i < 16; i++)
    n += (size_t)snprintf(text + n, 48 - n, "%s%02x",
                          i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                          uuid[i]);
}

EXPORT(int nvmlDeviceGetUUID(const void *device, char *text, unsigned size))
{
  kiln_cpu_device_facts facts;
  char uuid[48];
  const int rc = facts_of(device, &facts);

  if (rc != OK)
    return rc;
  write_uuid(uuid, facts.uuid);
  return store(text, size, uuid);
}

/* Finds the device for which `is` returns true. */
static int find(int (*is)(const void *device, const char *text),
                const char *text, void **device)
{
  if (users == 0)
    return UNINITIALIZED;
  if (text == NULL || device == NULL)
    return INVALID_ARGUMENT;
  for (int i = 0; i < number_of_devices(); i++) {
    if (is(&handles[i], text)) {
      *device = &handles[i];
      return OK;
    }
  }
  return NOT_FOUND;
}

static int has_uuid(const void *device, const char *text)
{
  char uuid[48];

  return nvmlDeviceGetUUID(device, uuid, sizeof uuid) == OK &&
         strcmp(uuid, text) == 0;
}

EXPORT(int nvmlDeviceGetHandleByUUID(const char *uuid, void **device))
{
  return find(has_uuid, uuid, device);
}

/* Accepts domain:bus:device.function, with or without the domain. */
static int has_bus_id(const void *device, const char *text)
{
  kiln_cpu_device_facts facts;
  char *end;
  unsigned long part = strtoul(text, &end, 16);

  if (*end == ':' && strchr(end + 1, ':') != NULL) {
    if (part != 0)
      return 0;
    part = strtoul(end + 1, &end, 16);
  }
  return facts_of(device, &facts) == OK && *end == ':' && part == facts.bus &&
         strtoul(end + 1, NULL, 16) == 0;
}

EXPORT(int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device))
{
  return find(has_bus_id, id, device);
}

EXPORT(int nvmlDeviceGetHandleByPciBusId(const char *id, void **device))
{
  return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

/* ---- Facts --------------------------------------------------------------- */

EXPORT(int nvmlDeviceGetName(const void *device, char *name, unsigned size))
{
  kiln_cpu_device_facts facts;
  const int rc = facts_of(device, &facts);

  return rc != OK ? rc : store(name, size, facts.name);
}

EXPORT(int nvmlDeviceGetIndex(const void *device, unsigned *index))
{
  kiln_cpu_device_facts facts;
  const int rc = facts_of(device, &facts);

  return rc != OK
             ? rc
             : store_number(index, (unsigned)((const char *)device - handles));
}

EXPORT(int nvmlDeviceGetMinorNumber(const void *device, unsigned *number))
{
  return nvmlDeviceGetIndex(device, number);
}

typedef struct pci_info {
  char legacy_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char id[32];
} pci_info;

EXPORT(int nvmlDeviceGetPciInfo_v3(const void *device, pci_info *pci))
{
  kiln_cpu_device_facts facts;
  const int rc = facts_of(device, &facts);

  if (rc != OK || pci == NULL)
    return rc != OK ? rc : INVALID_ARGUMENT;
  *pci = (pci_info){.bus = facts.bus};
  snprintf(pci->legacy_id, sizeof pci->legacy_id, "0000:%02X:00.0", facts.bus);
  snprintf(pci->id, sizeof pci->id, "00000000:%02X:00.0", facts.bus);
  return OK;
}

EXPORT(int nvmlDeviceGetPciInfo(const void *device, pci_info *pci))
{
  return nvmlDeviceGetPciInfo_v3(device, pci);
}

typedef struct memory_info {
  unsigned long long total, unused, used;
} memory_info;

EXPORT(int nvmlDeviceGetMemoryInfo(const void *device, memory_info *memory))
{
  kiln_cpu_device_facts facts;
  const int rc = facts_of(device, &facts);

  if (rc != OK || memory == NULL)
    return rc != OK ? rc : INVALID_ARGUMENT;
  *memory = (memory_info){.total = facts.total_bytes,
                          .unused = facts.total_bytes - facts.used_bytes,
                          .used = facts.used_bytes};
  return OK;
}

/* `version` is the size of the struct and, in the highest byte, 2. */
typedef struct memory_info_v2 {
  unsigned version;
  unsigned long long total, reserved, unused, used;
} memory_info_v2;

EXPORT(int nvmlDeviceGetMemoryInfo_v2(const void *device,
                                      memory_info_v2 *memory))
{
  memory_info whole;
  int rc;

  if (memory == NULL)
    return INVALID_ARGUMENT;
  if (memory->version != (sizeof *memory | 2u << 24))
    return VERSION_MISMATCH;
  rc = nvmlDeviceGetMemoryInfo(device, &whole);
  if (rc == OK)
    *memory = (memory_info_v2){.version = memory->version,
                               .total = whole.total,
                               .unused = whole.unused,
                               .used = whole.used};
  return rc;
}

EXPORT(int nvmlDeviceGetCudaComputeCapability(const void *device, int *major,
                                              int *minor))
{
  kiln_cpu_device_facts facts;
  const int rc = facts_of(device, &facts);

  if (rc != OK || major == NULL || minor == NULL)
    return rc != OK ? rc : INVALID_ARGUMENT;
  *major = facts.arch / 10;
  *minor = facts.arch % 10;
  return OK;
}

/* NVML numbers the architectures: 2 = Kepler, 9 = Hopper, 10 = Blackwell. */
EXPORT(int nvmlDeviceGetArchitecture(const void *device, unsigned *number))
{
  static const struct {
    int least;
    unsigned number;
  } known[] = {{100, 10}, {90, 9}, {89, 8}, {80, 7},
               {75, 6},   {70, 5}, {60, 4}, {50, 3}};
  kiln_cpu_device_facts facts;
  const int rc = facts_of(device, &facts);

  if (rc != OK)
    return rc;
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (facts.arch >= known[i].least)
      return store_number(number, known[i].number);
  }
  return store_number(number, 2);
}

/* 0 is the default mode: any number of processes. */
EXPORT(int nvmlDeviceGetComputeMode(const void *device, unsigned *mode))
{
  kiln_cpu_device_facts facts;
  const int rc = facts_of(device, &facts);

  return rc != OK ? rc : store_number(mode, 0);
}

/* No other process can use a simulated device, and no display is attached. */
static int none(const void *device, unsigned *n)
{
  return nvmlDeviceGetComputeMode(device, n);
}

#define KILN__NVML_NONE(name)                                                  \
  EXPORT(int name(const void *device, unsigned *n, void *infos))               \
  {                                                                            \
    (void)infos;                                                               \
    return none(device, n);                                                    \
  }
KILN__NVML_NONE(nvmlDeviceGetComputeRunningProcesses)
KILN__NVML_NONE(nvmlDeviceGetComputeRunningProcesses_v2)
KILN__NVML_NONE(nvmlDeviceGetComputeRunningProcesses_v3)
KILN__NVML_NONE(nvmlDeviceGetGraphicsRunningProcesses)
KILN__NVML_NONE(nvmlDeviceGetGraphicsRunningProcesses_v2)
KILN__NVML_NONE(nvmlDeviceGetGraphicsRunningProcesses_v3)
KILN__NVML_NONE(nvmlDeviceGetDisplayMode)
KILN__NVML_NONE(nvmlDeviceGetDisplayActive)
KILN__NVML_NONE(nvmlDeviceGetMultiGpuBoard)

#define KILN__NVML_REFUSED(name)                                               \
  EXPORT(int name(void))                                                       \
  {                                                                            \
    return users == 0 ? UNINITIALIZED : NOT_SUPPORTED;                         \
  }
#include "nvml_refused.def"

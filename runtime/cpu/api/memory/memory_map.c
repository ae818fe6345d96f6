/* memory_map.c -- implements virtual memory management: memory without an address,
 * reserved addresses, and mappings of the one to the other.
 *
 * Memory of cuMemCreate is a file in memory, of which each mapping shows all bytes
 * (memory/address_reserve.c). Handles and mappings count; the file is closed when both
 * counts are 0. A last page of the file describes the memory, and seals keep its size, so
 * that a process that imports the descriptor can trust both.
 *
 * machine.lock guards the counts. */
#include "../../memory/address_reserve.h"
#include "../context/api_context.h"
#include "api_memory.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Granularity of the driver: pages of 2 MiB. */
#define GRAIN ((size_t)2 << 20)

enum { DESCRIPTION_BYTES = 4096 };

/* The memory that a CUmemGenericAllocationHandle points to. */
typedef struct physical {
  CUmemAllocationProp prop;
  size_t size;
  int fd;
  unsigned handles, mappings;
  CUdeviceptr shown; /* address of a mapping, if there is one */
  /* true if the initialisation check counts all bytes as written, since they may have
   * been written through another mapping or by another process */
  bool written;
  bool imported; /* charged to the process that created it */
} physical;

typedef struct description {
  char magic[16];
  uint64_t size;
  int32_t device;
} description;

static const char magic[16] = "kiln-cuMemCreate";

static physical *physical_of(CUmemGenericAllocationHandle handle)
{
  return (physical *)(uintptr_t)handle;
}

static CUresult known(CUmemGenericAllocationHandle handle)
{
  return valid(kiln__cpu_live(physical_of(handle), KILN__HANDLE_PHYSICAL));
}

static bool whole(uint64_t bytes)
{
  return bytes != 0 && bytes % GRAIN == 0;
}

/* ---- Memory -------------------------------------------------------------- */

/* Returns whether a property is zero where the driver requires it. */
static bool plain(const CUmemAllocationProp *prop)
{
  static const unsigned char zeros[sizeof prop->allocFlags.reserved];

  return prop->win32HandleMetaData == NULL &&
         memcmp(prop->allocFlags.reserved, zeros, sizeof zeros) == 0;
}

static CUresult check_prop(const CUmemAllocationProp *prop)
{
  const int types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

  CU_TRY(valid(prop != NULL && prop->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
               (prop->requestedHandleTypes & ~types) == 0 && plain(prop) &&
               prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE));
  return kiln__cpu_device_exists(prop->location.id) ? CUDA_SUCCESS
                                                    : CUDA_ERROR_INVALID_DEVICE;
}

/* As NVIDIA's driver, this function does not check the properties. */
CUresult
kiln__cpu_memGetAllocationGranularity(size_t *granularity,
                                      const CUmemAllocationProp *prop,
                                      CUmemAllocationGranularity_flags option)
{
  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(granularity != NULL && prop != NULL &&
               (option == CU_MEM_ALLOC_GRANULARITY_MINIMUM ||
                option == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)));
  *granularity = GRAIN;
  return CUDA_SUCCESS;
}

/* Makes the file of new memory. Returns -1 if the system has no memory. */
static int file_make(const physical *p)
{
  description about = {.size = p->size, .device = p->prop.location.id};
  const int fd = memfd_create("kiln-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);

  memcpy(about.magic, magic, sizeof magic);
  if (fd >= 0 && ftruncate(fd, (off_t)(p->size + DESCRIPTION_BYTES)) == 0 &&
      pwrite(fd, &about, sizeof about, (off_t)p->size) ==
          (ssize_t)sizeof about &&
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
    return fd;
  if (fd >= 0)
    close(fd);
  return -1;
}

static void physical_free(physical *p)
{
  if (p->fd >= 0)
    close(p->fd);
  if (!p->imported)
    kiln__cpu_uncharge(p->prop.location.id, p->size);
  kiln__free(&machine()->alloc, p);
}

/* Makes a handle of new memory, or frees the memory. */
static CUresult publish(physical *p, CUmemGenericAllocationHandle *handle)
{
  if (p->fd < 0 || !kiln__cpu_live_add(p, KILN__HANDLE_PHYSICAL)) {
    physical_free(p);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *handle = (CUmemGenericAllocationHandle)(uintptr_t)p;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_memCreate(CUmemGenericAllocationHandle *handle, size_t size,
                             const CUmemAllocationProp *prop,
                             unsigned long long flags)
{
  physical *p;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(handle != NULL && flags == 0));
  CU_TRY(check_prop(prop));
  CU_TRY(valid(whole(size)));
  if (!kiln__cpu_charge(prop->location.id, size))
    return CUDA_ERROR_OUT_OF_MEMORY;
  p = kiln__calloc(&machine()->alloc, 1, sizeof *p);
  if (p == NULL) {
    kiln__cpu_uncharge(prop->location.id, size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  p->prop = *prop;
  p->size = size;
  p->handles = 1;
  p->fd = file_make(p);
  return publish(p, handle);
}

/* Ends the memory if neither handles nor mappings refer to it. The caller holds
 * machine.lock, which this function unlocks. */
static void settle_and_unlock(physical *p)
{
  const bool last = p->handles == 0 && p->mappings == 0;

  if (p->handles == 0)
    kiln__cpu_live_remove(p);
  pthread_mutex_unlock(&machine()->lock);
  if (last)
    physical_free(p);
}

CUresult kiln__cpu_memRelease(CUmemGenericAllocationHandle handle)
{
  physical *p = physical_of(handle);

  CU_TRY(kiln__cpu_ready());
  pthread_mutex_lock(&machine()->lock);
  if (known(handle) != CUDA_SUCCESS) {
    pthread_mutex_unlock(&machine()->lock);
    return CUDA_ERROR_INVALID_VALUE;
  }
  p->handles--;
  settle_and_unlock(p);
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_memGetAllocationPropertiesFromHandle(
    CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(prop != NULL));
  CU_TRY(known(handle));
  *prop = physical_of(handle)->prop;
  return CUDA_SUCCESS;
}

CUresult
kiln__cpu_memRetainAllocationHandle(CUmemGenericAllocationHandle *handle,
                                    void *address)
{
  kiln__cpu_machine *m = machine();
  kiln__cpu_range range;
  physical *p;
  bool ok = true;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(handle != NULL));
  pthread_mutex_lock(&m->lock);
  if (!kiln__cpu_memory_mapped_at(m->memory, (uintptr_t)address, &range)) {
    pthread_mutex_unlock(&m->lock);
    return CUDA_ERROR_INVALID_VALUE;
  }
  p = range.owner;
  if (p->handles == 0)
    ok = kiln__cpu_live_add(p, KILN__HANDLE_PHYSICAL);
  if (ok) {
    p->handles++;
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)p;
  }
  pthread_mutex_unlock(&m->lock);
  return ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- Addresses ----------------------------------------------------------- */

CUresult kiln__cpu_memAddressReserve(CUdeviceptr *address, size_t size,
                                     size_t align, CUdeviceptr wanted,
                                     unsigned long long flags)
{
  uint64_t first = wanted;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(address != NULL && whole(size) && flags == 0 &&
               (align & (align - 1)) == 0 && wanted % GRAIN == 0));
  if (kiln__cpu_memory_reserve(machine()->memory, &first, size,
                               align < GRAIN ? GRAIN : align) != KILN_OK)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *address = first;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_memAddressFree(CUdeviceptr address, size_t size)
{
  CU_TRY(kiln__cpu_ready());
  return valid(kiln__cpu_memory_unreserve(machine()->memory, address, size));
}

/* ---- Mappings ------------------------------------------------------------ */

/* As with NVIDIA's driver, a mapping shows all bytes of its memory. */
static CUresult map_locked(physical *p, CUdeviceptr address, size_t size,
                           size_t offset)
{
  const kiln__cpu_range wanted = {.device = p->prop.location.id, .owner = p};
  kiln__cpu_memory *memory = machine()->memory;
  kiln_status st;

  if (offset != 0 || size != p->size)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (p->mappings > 0) {
    kiln__cpu_memory_written(memory, p->shown, p->size);
    p->written = true;
  }
  st = kiln__cpu_memory_map_file(memory, &wanted, address, size, p->fd,
                                 p->written);
  if (st != KILN_OK)
    return st == KILN_ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY
                             : CUDA_ERROR_INVALID_VALUE;
  p->mappings++;
  p->shown = address;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_memMap(CUdeviceptr address, size_t size, size_t offset,
                          CUmemGenericAllocationHandle handle,
                          unsigned long long flags)
{
  CUresult rc;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(whole(size) && address % GRAIN == 0 && flags == 0));
  pthread_mutex_lock(&machine()->lock);
  rc = known(handle);
  if (rc == CUDA_SUCCESS)
    rc = map_locked(physical_of(handle), address, size, offset);
  pthread_mutex_unlock(&machine()->lock);
  return rc;
}

/* Removes the mapping at the address. Returns its end, or the next page if there is
 * none. */
static CUdeviceptr unmap_one(CUdeviceptr address)
{
  kiln__cpu_machine *m = machine();
  kiln__cpu_range range;
  physical *p;

  pthread_mutex_lock(&m->lock);
  if (!kiln__cpu_memory_unmap_file(m->memory, address, &range)) {
    pthread_mutex_unlock(&m->lock);
    return address + GRAIN;
  }
  p = range.owner;
  p->mappings--;
  p->written = true;
  settle_and_unlock(p);
  return range.last;
}

/* Addresses to which nothing is mapped are skipped, as NVIDIA's driver does. */
CUresult kiln__cpu_memUnmap(CUdeviceptr address, size_t size)
{
  const CUdeviceptr end = address + size;
  kiln__cpu_memory *memory = machine()->memory;
  kiln__cpu_range range;
  CUcontext context;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(whole(size) && address % GRAIN == 0 && end > address &&
               address >= KILN__RESERVED_BASE && end <= KILN__RESERVED_END));
  /* A mapping is removed whole, or not at all. */
  CU_TRY(valid((!kiln__cpu_memory_mapped_at(memory, address, &range) ||
                range.first == address) &&
               (!kiln__cpu_memory_mapped_at(memory, end - 1, &range) ||
                range.last == end)));
  context = kiln__cpu_current_or_null();
  if (context != NULL)
    (void)kiln__cpu_wait_context(context);
  while (address < end)
    address = unmap_one(address);
  return CUDA_SUCCESS;
}

/* ---- Access -------------------------------------------------------------- */

static CUresult check_access(const CUmemAccessDesc *access)
{
  if (access->location.type == CU_MEM_LOCATION_TYPE_HOST)
    return CUDA_ERROR_NOT_SUPPORTED;
  return valid(access->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
               kiln__cpu_device_exists(access->location.id) &&
               (access->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
                access->flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
}

CUresult kiln__cpu_memSetAccess(CUdeviceptr address, size_t size,
                                const CUmemAccessDesc *access, size_t n)
{
  kiln__cpu_memory *memory = machine()->memory;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(access != NULL && n != 0 && whole(size)));
  for (size_t i = 0; i < n; i++)
    CU_TRY(check_access(&access[i]));
  for (size_t i = 0; i < n; i++)
    CU_TRY(valid(kiln__cpu_memory_set_access(
        memory, address, size, 1u << access[i].location.id,
        (access[i].flags & CU_MEM_ACCESS_FLAGS_PROT_READ) != 0,
        access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)));
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_memGetAccess(unsigned long long *flags,
                                const CUmemLocation *location,
                                CUdeviceptr address)
{
  kiln__cpu_range range;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(flags != NULL && location != NULL &&
               location->type == CU_MEM_LOCATION_TYPE_DEVICE));
  if (!kiln__cpu_device_exists(location->id))
    return CUDA_ERROR_INVALID_DEVICE;
  *flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  /* Other device memory has no access flags, but is no error. */
  if (kiln__cpu_memory_find(machine()->memory, address, &range) &&
      !range.mapped && range.kind == KILN__RANGE_DEVICE)
    return CUDA_SUCCESS;
  CU_TRY(valid(kiln__cpu_memory_mapped_at(machine()->memory, address, &range)));
  if ((range.denied >> location->id & 1) == 0)
    *flags = (range.read_only >> location->id & 1) != 0
                 ? CU_MEM_ACCESS_FLAGS_PROT_READ
                 : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return CUDA_SUCCESS;
}

int kiln__cpu_mapped_types(const kiln__cpu_range *range)
{
  return ((const physical *)range->owner)->prop.requestedHandleTypes;
}

/* ---- Other processes ----------------------------------------------------- */

CUresult kiln__cpu_memExportToShareableHandle(
    void *out, CUmemGenericAllocationHandle handle,
    CUmemAllocationHandleType type, unsigned long long flags)
{
  physical *p = physical_of(handle);
  int fd;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(out != NULL && flags == 0 &&
               type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  CU_TRY(known(handle));
  CU_TRY(valid((p->prop.requestedHandleTypes & type) != 0));
  fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 0);
  if (fd < 0)
    return CUDA_ERROR_OPERATING_SYSTEM;
  pthread_mutex_lock(&machine()->lock);
  p->written = true;
  if (p->mappings > 0)
    kiln__cpu_memory_written(machine()->memory, p->shown, p->size);
  pthread_mutex_unlock(&machine()->lock);
  memcpy(out, &fd, sizeof fd);
  return CUDA_SUCCESS;
}

/* Reads what the last page of a file says. Returns false if the file is not memory of
 * cuMemCreate, or if another process could still change its size. */
static bool describe(int fd, description *about)
{
  const int seals = fcntl(fd, F_GET_SEALS);
  const int sealed = F_SEAL_SHRINK | F_SEAL_GROW;
  const off_t size = lseek(fd, 0, SEEK_END);

  return seals >= 0 && (seals & sealed) == sealed && size > DESCRIPTION_BYTES &&
         pread(fd, about, sizeof *about, size - DESCRIPTION_BYTES) ==
             (ssize_t)sizeof *about &&
         memcmp(about->magic, magic, sizeof magic) == 0 &&
         about->size == (uint64_t)(size - DESCRIPTION_BYTES) &&
         whole(about->size) && kiln__cpu_device_exists(about->device);
}

CUresult
kiln__cpu_memImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
                                       void *from,
                                       CUmemAllocationHandleType type)
{
  const int fd = (int)(intptr_t)from;
  description about;
  physical *p;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(handle != NULL));
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (fcntl(fd, F_GETFD) < 0)
    return CUDA_ERROR_UNKNOWN;
  CU_TRY(valid(describe(fd, &about)));
  p = kiln__calloc(&machine()->alloc, 1, sizeof *p);
  CU_TRY(allocated(p));
  p->prop = (CUmemAllocationProp){
      .type = CU_MEM_ALLOCATION_TYPE_PINNED,
      .location = {CU_MEM_LOCATION_TYPE_DEVICE, about.device}};
  p->size = about.size;
  p->handles = 1;
  p->imported = p->written = true;
  p->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  return publish(p, handle);
}

/* pool_ipc.c -- shares memory pools between processes of one machine.
 *
 * Problem: a process hands its pool to another process as a file descriptor, and each
 * allocation as 64 bytes of data. Idea: the descriptor refers to a file in memory
 * that contains a description of the pool, and the inode of the file is the pool's name.
 * An allocation is shared as cuIpcGetMemHandle() shares it (memory_ipc.c), and its data
 * contain the pool's name, so that an import from another pool fails. The file is sealed,
 * so that no process can change it. An imported pool has no memory of its own.
 * Source: the CUDA Programming Guide, chapter on stream-ordered allocation. */
#include "../context/api_context.h"
#include "memory_ipc.h"
#include "memory_pool.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct description {
  char magic[8];
  int32_t device;
} description;

typedef struct pointer_data {
  kiln__cpu_ipc_name allocation;
  uint64_t pool; /* name of the pool */
} pointer_data;

static const char magic[8] = "kilnpol";
static const int seals =
    F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

_Static_assert(sizeof(pointer_data) <= sizeof(CUmemPoolPtrExportData),
               "the data of an allocation fit");

static bool live(CUmemoryPool pool)
{
  return kiln__cpu_live(pool, KILN__HANDLE_POOL);
}

/* ---- Pools --------------------------------------------------------------- */

/* Makes the file of a pool at its first export. The caller holds machine.lock. */
static CUresult name_pool(CUmemoryPool pool)
{
  description about = {.device = pool->device};
  struct stat st;
  int fd;

  if (pool->name_fd >= 0)
    return CUDA_SUCCESS;
  memcpy(about.magic, magic, sizeof magic);
  fd = memfd_create("kiln-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0)
    return CUDA_ERROR_OPERATING_SYSTEM;
  if (write(fd, &about, sizeof about) != (ssize_t)sizeof about ||
      fcntl(fd, F_ADD_SEALS, seals) != 0 || fstat(fd, &st) != 0) {
    close(fd);
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  pool->name_fd = fd;
  pool->name = st.st_ino;
  return CUDA_SUCCESS;
}

CUresult
kiln__cpu_memPoolExportToShareableHandle(void *handle, CUmemoryPool pool,
                                         CUmemAllocationHandleType type,
                                         unsigned long long flags)
{
  CUresult rc;
  int fd = -1;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(handle != NULL && live(pool) && flags == 0 &&
               type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
               (pool->props.handleTypes & type) != 0 && !pool->imported));
  pthread_mutex_lock(&machine()->lock);
  rc = name_pool(pool);
  if (rc == CUDA_SUCCESS)
    fd = fcntl(pool->name_fd, F_DUPFD_CLOEXEC, 0);
  pthread_mutex_unlock(&machine()->lock);
  if (rc == CUDA_SUCCESS && fd < 0)
    rc = CUDA_ERROR_OPERATING_SYSTEM;
  if (rc == CUDA_SUCCESS)
    memcpy(handle, &fd, sizeof fd);
  return rc;
}

/* Reads the file of a pool. Returns false if it is another file, or if the device does
 * not exist in this process. */
static bool describe(int fd, description *about, struct stat *st)
{
  return fcntl(fd, F_GET_SEALS) == seals && fstat(fd, st) == 0 &&
         pread(fd, about, sizeof *about, 0) == (ssize_t)sizeof *about &&
         memcmp(about->magic, magic, sizeof magic) == 0 &&
         kiln__cpu_device_exists(about->device);
}

CUresult
kiln__cpu_memPoolImportFromShareableHandle(CUmemoryPool *out, void *from,
                                           CUmemAllocationHandleType type,
                                           unsigned long long flags)
{
  const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemoryPool pool;
  description about;
  struct stat st;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(out != NULL && flags == 0));
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_NOT_SUPPORTED;
  CU_TRY(valid(describe((int)(intptr_t)from, &about, &st)));
  pthread_mutex_lock(&machine()->lock);
  pool = kiln__cpu_pool_new(about.device, &props);
  if (pool != NULL) {
    pool->props.location.id = about.device;
    pool->name = st.st_ino;
    pool->imported = true;
    *out = pool;
  }
  pthread_mutex_unlock(&machine()->lock);
  return allocated(pool);
}

/* ---- Allocations --------------------------------------------------------- */

CUresult kiln__cpu_memPoolExportPointer(CUmemPoolPtrExportData *out,
                                        CUdeviceptr address)
{
  kiln__cpu_block_info info;
  pointer_data data;

  CU_TRY(kiln__cpu_check_current());
  CU_TRY(valid(out != NULL && kiln__cpu_block_of(address, &info) &&
               info.kind == KILN__RANGE_POOL && info.pool != NULL &&
               info.pool->name != 0 && !info.pool->imported));
  data.pool = info.pool->name;
  CU_TRY(kiln__cpu_ipc_share(&info, &data.allocation));
  memset(out, 0, sizeof *out);
  memcpy(out, &data, sizeof data);
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_memPoolImportPointer(CUdeviceptr *address, CUmemoryPool pool,
                                        CUmemPoolPtrExportData *from)
{
  kiln__cpu_block_info wanted = {.kind = KILN__RANGE_POOL, .pool = pool};
  pointer_data data;
  CUresult rc;

  CU_TRY(kiln__cpu_current_unsafe(&wanted.context));
  CU_TRY(valid(address != NULL && from != NULL && live(pool)));
  memcpy(&data, from, sizeof data);
  CU_TRY(valid(pool->imported && data.pool == pool->name &&
               kiln__cpu_ipc_is_name(&data.allocation)));
  wanted.size = data.allocation.size;
  wanted.device = pool->device;
  if (!kiln__cpu_pool_take(pool, wanted.size))
    return CUDA_ERROR_OUT_OF_MEMORY;
  rc = kiln__cpu_ipc_open(&data.allocation, &wanted, address);
  if (rc != CUDA_SUCCESS)
    kiln__cpu_pool_returned(pool, wanted.size);
  return rc;
}

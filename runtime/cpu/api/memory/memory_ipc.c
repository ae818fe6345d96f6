/* memory_ipc.c -- shares device memory between processes of one machine.
 *
 * Problem: the bytes of an allocation belong to one process. Idea: when the program asks
 * for a handle, the bytes move into a file in memory (memfd_create), which other
 * processes open through /proc/PID/fd/FD and map. The address in the device's address
 * space stays the same, so pointers that the program holds stay valid. A file in memory
 * has no name, so a process that crashes leaves nothing behind.
 *
 * A handle names the process, its descriptor, and the inode, by which a stale handle is
 * recognised. A process opens the same handle once; further calls return the same address
 * and count. */
#include "memory_ipc.h"
#include "../../memory/range_share.h"
#include "../context/api_context.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* the only flag of cuIpcOpenMemHandle(), which has no effect */
enum { LAZY_ENABLE_PEER_ACCESS = 1 };

static const char magic[8] = "kilnipc";

_Static_assert(sizeof(kiln__cpu_ipc_name) <= sizeof(CUipcMemHandle),
               "a name fits into a handle");

/* An allocation that this process shares or has opened. */
typedef struct shared_block {
  kiln__cpu_ipc_name name;
  CUdeviceptr address;
  uint64_t number; /* of the range, to recognise a freed allocation */
  unsigned
      opened; /* number of opens minus closes; 0 if this process shares it */
  struct shared_block *next;
} shared_block;

typedef struct shared_list {
  pthread_mutex_t lock;
  shared_block *first;
} shared_list;

static shared_list *locked(void)
{
  static shared_list list = {.lock = PTHREAD_MUTEX_INITIALIZER};

  pthread_mutex_lock(&list.lock);
  return &list;
}

static void unlock(shared_list *list)
{
  pthread_mutex_unlock(&list->lock);
}

static bool still_lives(const shared_block *b)
{
  kiln__cpu_range range;

  return kiln__cpu_memory_find(machine()->memory, b->address, &range) &&
         range.first == b->address && range.number == b->number;
}

/* Closes the files of allocations that the program has freed. */
static void sweep(shared_list *list)
{
  for (shared_block **at = &list->first; *at != NULL;) {
    shared_block *b = *at;

    if (b->opened == 0 && !still_lives(b)) {
      *at = b->next;
      close(b->name.fd);
      kiln__free(&machine()->alloc, b);
    } else {
      at = &b->next;
    }
  }
}

static shared_block *find_address(const shared_list *list, CUdeviceptr address)
{
  shared_block *b = list->first;

  while (b != NULL && b->address != address)
    b = b->next;
  return b;
}

/* Adds a block to the list. Returns CUDA_ERROR_OUT_OF_MEMORY if there is no memory. */
static CUresult put(shared_list *list, const shared_block *block)
{
  shared_block *b = kiln__calloc(&machine()->alloc, 1, sizeof *b);
  kiln__cpu_range range;

  CU_TRY(allocated(b));
  *b = *block;
  if (kiln__cpu_memory_find(machine()->memory, b->address, &range))
    b->number = range.number;
  b->next = list->first;
  list->first = b;
  return CUDA_SUCCESS;
}

/* ---- Sharing ------------------------------------------------------------- */

static size_t mapped_size(uint64_t size)
{
  const uint64_t page = 4096;

  return (size_t)((size + page - 1) & ~(page - 1));
}

/* Moves the bytes of an allocation into a new file. Stores the name of the file. */
static CUresult move_to_file(const kiln__cpu_block_info *info,
                             kiln__cpu_ipc_name *name)
{
  const size_t bytes = mapped_size(info->size);
  const uint8_t *from = kiln__cpu_bytes_of(info->first, info->size);
  const int fd = memfd_create("kiln-device-memory", MFD_CLOEXEC);
  void *p = MAP_FAILED;
  struct stat st;

  if (fd < 0)
    return CUDA_ERROR_OPERATING_SYSTEM;
  if (from != NULL && ftruncate(fd, (off_t)bytes) == 0 && fstat(fd, &st) == 0)
    p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (p == MAP_FAILED) {
    close(fd);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  memcpy(p, from, info->size);
  if (!kiln__cpu_memory_share(machine()->memory, info->first, p, bytes)) {
    munmap(p, bytes);
    close(fd);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *name = (kiln__cpu_ipc_name){.pid = (int32_t)getpid(),
                               .fd = fd,
                               .inode = st.st_ino,
                               .size = info->size};
  memcpy(name->magic, magic, sizeof magic);
  return CUDA_SUCCESS;
}

static CUresult name_of(shared_list *list, const kiln__cpu_block_info *info,
                        kiln__cpu_ipc_name *out)
{
  shared_block made = {.address = info->first};
  const shared_block *b;

  sweep(list);
  b = find_address(list, info->first);
  if (b != NULL) {
    *out = b->name;
    return CUDA_SUCCESS;
  }
  CU_TRY(move_to_file(info, &made.name));
  *out = made.name;
  return put(list, &made);
}

CUresult kiln__cpu_ipc_share(const kiln__cpu_block_info *info,
                             kiln__cpu_ipc_name *name)
{
  shared_list *list;
  CUresult rc;

  if (info->context != NULL)
    CU_TRY(kiln__cpu_wait_context(info->context));
  list = locked();
  rc = name_of(list, info, name);
  unlock(list);
  return rc;
}

CUresult kiln__cpu_ipcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address)
{
  kiln__cpu_block_info info;
  kiln__cpu_ipc_name name;

  CU_TRY(kiln__cpu_check_current());
  CU_TRY(valid(handle != NULL && kiln__cpu_block_of(address, &info) &&
               info.kind == KILN__RANGE_DEVICE && !kiln__cpu_is_opened(&info)));
  CU_TRY(kiln__cpu_ipc_share(&info, &name));
  memset(handle, 0, sizeof *handle);
  memcpy(handle, &name, sizeof name);
  return CUDA_SUCCESS;
}

/* ---- Opening ------------------------------------------------------------- */

bool kiln__cpu_ipc_is_name(const kiln__cpu_ipc_name *name)
{
  return memcmp(name->magic, magic, sizeof magic) == 0 && name->size > 0 &&
         name->size <= (uint64_t)1 << 40;
}

static CUresult map_file(const kiln__cpu_ipc_name *name, void **out)
{
  char path[64];
  struct stat st;
  int fd;

  snprintf(path, sizeof path, "/proc/%d/fd/%d", name->pid, name->fd);
  fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0)
    return CUDA_ERROR_INVALID_HANDLE;
  *out = MAP_FAILED;
  if (fstat(fd, &st) == 0 && st.st_ino == name->inode &&
      (uint64_t)st.st_size == mapped_size(name->size))
    *out = mmap(NULL, mapped_size(name->size), PROT_READ | PROT_WRITE,
                MAP_SHARED, fd, 0);
  close(fd);
  return *out == MAP_FAILED ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult kiln__cpu_ipc_open(const kiln__cpu_ipc_name *name,
                            const kiln__cpu_block_info *wanted,
                            CUdeviceptr *out)
{
  void *p;

  CU_TRY(map_file(name, &p));
  if (kiln__cpu_block_add(out, wanted) != CUDA_SUCCESS) {
    munmap(p, mapped_size(name->size));
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (!kiln__cpu_memory_share(machine()->memory, *out, p,
                              mapped_size(name->size))) {
    munmap(p, mapped_size(name->size));
    kiln__cpu_block_remove(*out);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  /* Which bytes the other process has written is unknown here. */
  kiln__cpu_memory_written(machine()->memory, *out, name->size);
  return CUDA_SUCCESS;
}

static CUresult open_locked(shared_list *list, CUcontext context,
                            const kiln__cpu_ipc_name *name, CUdeviceptr *out)
{
  const kiln__cpu_block_info wanted = {.kind = KILN__RANGE_DEVICE,
                                       .size = name->size,
                                       .device = context->device,
                                       .context = context,
                                       .flags = KILN__OPENED_MEMORY};
  shared_block made = {.name = *name, .opened = 1};
  shared_block *b = list->first;
  CUresult rc;

  while (b != NULL && (b->opened == 0 || !still_lives(b) ||
                       memcmp(&b->name, name, sizeof *name) != 0))
    b = b->next;
  if (b != NULL) {
    b->opened++;
    *out = b->address;
    return CUDA_SUCCESS;
  }
  CU_TRY(kiln__cpu_ipc_open(name, &wanted, &made.address));
  rc = put(list, &made);
  if (rc == CUDA_SUCCESS)
    *out = made.address;
  else
    kiln__cpu_block_remove(made.address);
  return rc;
}

/* A process cannot open its own handle, as with NVIDIA's driver. */
CUresult kiln__cpu_ipcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle handle,
                                    unsigned int flags)
{
  CUcontext context;
  shared_list *list;
  kiln__cpu_ipc_name name;
  CUresult rc;

  CU_TRY(kiln__cpu_current_unsafe(&context));
  memcpy(&name, &handle, sizeof name);
  CU_TRY(valid(address != NULL &&
               (flags & ~(unsigned)LAZY_ENABLE_PEER_ACCESS) == 0));
  CU_TRY(valid(kiln__cpu_ipc_is_name(&name)));
  if (name.pid == (int32_t)getpid())
    return CUDA_ERROR_INVALID_CONTEXT;
  list = locked();
  rc = open_locked(list, context, &name, address);
  unlock(list);
  return rc;
}

/* Removes an opened block from the list at its last close. Stores whether this was the
 * last one. Returns CUDA_ERROR_INVALID_VALUE if nothing was opened at the address. */
static CUresult close_locked(shared_list *list, CUdeviceptr address, bool *last)
{
  shared_block **at = &list->first;
  shared_block *b;

  while (*at != NULL && ((*at)->opened == 0 || (*at)->address != address))
    at = &(*at)->next;
  b = *at;
  CU_TRY(valid(b != NULL));
  *last = --b->opened == 0;
  if (*last) {
    *at = b->next;
    kiln__free(&machine()->alloc, b);
  }
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_ipcCloseMemHandle(CUdeviceptr address)
{
  kiln__cpu_block_info info;
  shared_list *list;
  CUcontext context;
  bool last = false;
  CUresult rc;

  CU_TRY(kiln__cpu_current_unsafe(&context));
  CU_TRY(
      valid(kiln__cpu_block_at(address, &info) && kiln__cpu_is_opened(&info)));
  list = locked();
  rc = close_locked(list, address, &last);
  unlock(list);
  if (rc != CUDA_SUCCESS || !last)
    return rc;
  rc = kiln__cpu_wait_context(info.context);
  kiln__cpu_block_remove(address);
  return rc;
}

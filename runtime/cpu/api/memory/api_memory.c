/* api_memory.c -- implements device memory, pitched memory and managed memory,
 * and the allocation table (the ledger).
 *
 * The address map records which addresses exist. The allocation table is keyed
 * by the first address of an allocation. It records the data that only the API
 * needs: context, flags, pool and requested size. It also counts the bytes in
 * use of each device, so that allocations fail when the simulated device has no
 * memory left. */
#include "api_memory.h"
#include "../../memory/address_reserve.h"
#include "../context/api_context.h"
#include "../module/api_module.h"
#include "memory_ipc.h"

#include <string.h>

enum { DEVICE_ALIGN = 512, HOST_ALIGN = 4096, PITCH_ALIGN = 512 };

/* Drivers map large allocations in pages of 2 MiB, and programs rely on the
 * resulting alignment. This alignment was measured on an H200 for device and
 * managed memory. Memory pools split their pages and align allocations to 512
 * bytes only. */
enum { LARGE = 1 << 20, LARGE_ALIGN = 2 << 20 };

typedef struct block {
  kiln__cpu_block_info info;
  struct block *next; /* next block in the hash bucket */
} block;

/* The allocation table: a hash table whose key is the first address of an
 * allocation. */
struct kiln__cpu_blocks {
  pthread_mutex_t lock;
  block *buckets[1024];
};

/* ---- The allocation table ------------------------------------------------ */

static struct kiln__cpu_blocks *locked(void)
{
  struct kiln__cpu_blocks *b = machine()->blocks;

  pthread_mutex_lock(&b->lock);
  return b;
}

static void unlock(void)
{
  pthread_mutex_unlock(&machine()->blocks->lock);
}

static block **bucket_of(struct kiln__cpu_blocks *b, CUdeviceptr first)
{
  const uint64_t h = (uint64_t)first * UINT64_C(0x9e3779b97f4a7c15);

  return &b->buckets[h >> 54];
}

static block **slot_of(struct kiln__cpu_blocks *b, CUdeviceptr first)
{
  block **at = bucket_of(b, first);

  while (*at != NULL && (*at)->info.first != first)
    at = &(*at)->next;
  return at;
}

bool kiln__cpu_ledger_make(kiln__cpu_machine *m)
{
  m->blocks = kiln__calloc(&m->alloc, 1, sizeof *m->blocks);
  return m->blocks != NULL && pthread_mutex_init(&m->blocks->lock, NULL) == 0;
}

static bool counted(kiln__cpu_range_kind kind)
{
  return kind != KILN__RANGE_HOST;
}

static uint64_t counted_size(uint64_t size)
{
  return (size + DEVICE_ALIGN - 1) & ~(uint64_t)(DEVICE_ALIGN - 1);
}

static uint64_t align_of(kiln__cpu_range_kind kind, size_t size)
{
  const bool paged = kind == KILN__RANGE_DEVICE || kind == KILN__RANGE_MANAGED;

  if (!counted(kind))
    return HOST_ALIGN;
  return paged && size >= LARGE ? LARGE_ALIGN : DEVICE_ALIGN;
}

bool kiln__cpu_charge(int device, uint64_t size)
{
  kiln__cpu_machine *m = machine();
  bool ok = size <= m->opts.memory_bytes;

  if (ok) {
    locked();
    ok = counted_size(size) <= m->opts.memory_bytes - m->used_bytes[device];
    if (ok)
      m->used_bytes[device] += counted_size(size);
    unlock();
  }
  return ok;
}

void kiln__cpu_uncharge(int device, uint64_t size)
{
  locked();
  machine()->used_bytes[device] -= counted_size(size);
  unlock();
}

/* Adds a range to the address map and an entry to the allocation table. `host`
 * is the program's memory that is registered, or NULL. */
static CUresult add(CUdeviceptr *out, void *host,
                    const kiln__cpu_block_info *info)
{
  kiln__cpu_machine *m = machine();
  kiln__cpu_range range = {.kind = info->kind,
                           .host = host,
                           .owner = info->context,
                           .device = counted(info->kind) ? info->device : -1};
  block *b = kiln__calloc(&m->alloc, 1, sizeof *b);
  struct kiln__cpu_blocks *table;
  block **at;
  kiln_status st;

  CU_TRY(allocated(b));
  st = kiln__cpu_memory_add(m->memory, &range, info->size,
                            align_of(info->kind, info->size));
  if (st != KILN_OK) {
    kiln__free(&m->alloc, b);
    return st == KILN_EINVAL ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
                             : CUDA_ERROR_OUT_OF_MEMORY;
  }
  b->info = *info;
  b->info.first = range.first;
  table = locked();
  at = bucket_of(table, range.first);
  b->next = *at;
  *at = b;
  unlock();
  *out = range.first;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_block_add(CUdeviceptr *out,
                             const kiln__cpu_block_info *wanted)
{
  CUresult rc;

  *out = 0;
  if (counted(wanted->kind) && !kiln__cpu_charge(wanted->device, wanted->size))
    return CUDA_ERROR_OUT_OF_MEMORY;
  rc = add(out, NULL, wanted);
  if (rc != CUDA_SUCCESS && counted(wanted->kind))
    kiln__cpu_uncharge(wanted->device, wanted->size);
  return rc;
}

CUresult kiln__cpu_block_register(void *p, size_t size, CUcontext context,
                                  unsigned flags)
{
  CUdeviceptr first;

  return add(&first, p,
             &(kiln__cpu_block_info){.kind = KILN__RANGE_HOST,
                                     .size = size,
                                     .device = context->device,
                                     .context = context,
                                     .flags = flags,
                                     .registered = true});
}

bool kiln__cpu_block_at(CUdeviceptr first, kiln__cpu_block_info *out)
{
  const block *b = *slot_of(locked(), first);

  if (b != NULL)
    *out = b->info;
  unlock();
  return b != NULL;
}

bool kiln__cpu_block_of(CUdeviceptr address, kiln__cpu_block_info *out)
{
  kiln__cpu_range range;

  return kiln__cpu_memory_find(machine()->memory, address, &range) &&
         kiln__cpu_block_at(range.first, out);
}

void kiln__cpu_block_set_sync(CUdeviceptr first, bool sync_memops)
{
  block *b = *slot_of(locked(), first);

  if (b != NULL)
    b->info.sync_memops = sync_memops;
  unlock();
}

void kiln__cpu_block_set_advice(CUdeviceptr first,
                                const kiln__cpu_advice *advice)
{
  block *b = *slot_of(locked(), first);

  if (b != NULL)
    b->info.advice = *advice;
  unlock();
}

bool kiln__cpu_block_claim(CUdeviceptr first, kiln__cpu_block_info *out)
{
  block *b = *slot_of(locked(), first);
  const bool ok = b != NULL && !b->info.freed;

  if (ok) {
    *out = b->info;
    b->info.freed = b->info.graph == NULL;
  }
  unlock();
  return ok;
}

/* Frees an allocation that was removed from the allocation table. */
static void release(block *b)
{
  kiln__cpu_memory_remove(machine()->memory, b->info.first);
  if (counted(b->info.kind))
    kiln__cpu_uncharge(b->info.device, b->info.size);
  kiln__free(&machine()->alloc, b);
}

void kiln__cpu_block_remove(CUdeviceptr first)
{
  block **at = slot_of(locked(), first);
  block *b = *at;

  if (b != NULL)
    *at = b->next;
  unlock();
  if (b != NULL)
    release(b);
}

/* ---- Destruction of a context -------------------------------------------- */

/* Records a finding for an allocation that the program did not free. */
static void report_leak(const kiln__cpu_block_info *info)
{
  char text[200];
  kiln__cpu_range range;
  kiln_cpu_finding f = {.check = KILN_CPU_CHECK_MEMORY,
                        .kind = "leak",
                        .kernel = "",
                        .function = "",
                        .file = "",
                        .outer_file = "",
                        .insn = "",
                        .space = "global",
                        .other = "",
                        .address = info->first,
                        .bytes = info->size > UINT32_MAX ? UINT32_MAX
                                                         : (unsigned)info->size,
                        .allocation = info->first,
                        .allocation_size = info->size,
                        .count = 1,
                        .text = text};
  const char *call = info->kind == KILN__RANGE_HOST      ? "cuMemHostAlloc"
                     : info->kind == KILN__RANGE_MANAGED ? "cuMemAllocManaged"
                     : info->kind == KILN__RANGE_POOL    ? "cuMemAllocAsync"
                                                         : "cuMemAlloc";

  if (!kiln__cpu_memory_find(machine()->memory, info->first, &range))
    return;
  kiln__format(text, sizeof text,
               "leak: %llu bytes at 0x%llx, allocation %llu, made by %s, were "
               "not freed when the context ended",
               (unsigned long long)info->size, (unsigned long long)info->first,
               (unsigned long long)range.number, call);
  kiln__cpu_keep_finding(NULL, &f);
}

/* Removes one allocation of the context from the allocation table and returns
 * it. Returns NULL if no allocation is left. */
static block *take_block_of(CUcontext context)
{
  struct kiln__cpu_blocks *table = locked();
  block *found = NULL;

  for (size_t i = 0;
       found == NULL && i < sizeof table->buckets / sizeof(block *); i++) {
    block **at = &table->buckets[i];

    while (*at != NULL && (*at)->info.context != context)
      at = &(*at)->next;
    found = *at;
    if (found != NULL)
      *at = found->next;
  }
  unlock();
  return found;
}

void kiln__cpu_end_memory(CUcontext context)
{
  /* After a failed kernel no leaks are reported, since the program cannot free
   * memory any more. */
  const bool leaks = (machine()->opts.checks & KILN_CPU_CHECK_MEMORY) != 0 &&
                     atomic_load(&context->sticky) == CUDA_SUCCESS;
  block *b;

  while ((b = take_block_of(context)) != NULL) {
    if (leaks && !b->info.registered)
      report_leak(&b->info);
    if (b->info.pool != NULL)
      kiln__cpu_pool_returned(b->info.pool, b->info.size);
    release(b);
  }
}

/* ---- Bytes that copies and fills access ---------------------------------- */

uint8_t *kiln__cpu_device_bytes(CUdeviceptr address, size_t size)
{
  return kiln__cpu_memory_host(machine()->memory, address, size);
}

/* Returns whether the address lies in the range that the address map assigns,
 * or in a window of another state space. */
static bool is_device_address(CUdeviceptr address)
{
  return (address >= KILN__WINDOW_SHARED &&
          address < KILN__WINDOW_CODE + KILN__WINDOW_BYTES) ||
         (address >= KILN__DEVICE_BASE &&
          address < KILN__DEVICE_BASE + ((uint64_t)KILN__MAX_DEVICES << 40)) ||
         (address >= KILN__RESERVED_BASE && address < KILN__RESERVED_END);
}

kiln_cpu_place kiln__cpu_place_of(CUdeviceptr address)
{
  kiln__cpu_range range;

  if (!kiln__cpu_memory_find(machine()->memory, address, &range) ||
      range.kind == KILN__RANGE_HOST)
    return KILN_CPU_PLACE_HOST;
  return range.kind == KILN__RANGE_MANAGED ? KILN_CPU_PLACE_MANAGED
                                           : KILN_CPU_PLACE_DEVICE;
}

bool kiln__cpu_is_writable(CUdeviceptr address)
{
  kiln__cpu_range range;

  return address == 0 ||
         !kiln__cpu_memory_find(machine()->memory, address, &range) ||
         !range.mapped || (range.read_only >> range.device & 1) == 0;
}

bool kiln__cpu_is_pageable(CUdeviceptr address)
{
  kiln__cpu_range range;

  return !is_device_address(address) &&
         !kiln__cpu_memory_find(machine()->memory, address, &range);
}

uint8_t *kiln__cpu_bytes_of(CUdeviceptr address, size_t size)
{
  kiln__cpu_range range;

  if (address == 0 || address + size < address)
    return NULL;
  if (is_device_address(address))
    return kiln__cpu_device_bytes(address, size);
  /* Only the end of pinned host memory is known, so other host memory is not
   * checked. */
  if (kiln__cpu_memory_find(machine()->memory, address, &range) &&
      range.last - address < size)
    return NULL;
  return (uint8_t *)(uintptr_t)address;
}

/* ---- Driver functions ---------------------------------------------------- */

static CUresult allocate(CUdeviceptr *address, size_t bytes,
                         kiln__cpu_range_kind kind, unsigned flags)
{
  CUcontext context;
  CUdeviceptr first;

  CU_TRY(kiln__cpu_check_current());
  CU_TRY(valid(address != NULL && bytes != 0));
  CU_TRY(kiln__cpu_current_unsafe(&context));
  CU_TRY(kiln__cpu_block_add(&first,
                             &(kiln__cpu_block_info){.kind = kind,
                                                     .size = bytes,
                                                     .device = context->device,
                                                     .context = context,
                                                     .flags = flags}));
  *address = first;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_memAlloc(CUdeviceptr *address, size_t bytes)
{
  return allocate(address, bytes, KILN__RANGE_DEVICE, 0);
}

CUresult kiln__cpu_memAllocManaged(CUdeviceptr *address, size_t bytes,
                                   unsigned int flags)
{
  CU_TRY(kiln__cpu_check_current());
  CU_TRY(valid(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST));
  return allocate(address, bytes, KILN__RANGE_MANAGED, flags);
}

CUresult kiln__cpu_memAllocPitch(CUdeviceptr *address, size_t *pitch,
                                 size_t width, size_t height,
                                 unsigned int element)
{
  size_t row;

  CU_TRY(kiln__cpu_check_current());
  CU_TRY(valid(address != NULL && pitch != NULL && width != 0 && height != 0 &&
               (element == 4 || element == 8 || element == 16) &&
               width <= SIZE_MAX - PITCH_ALIGN));
  row = (width + PITCH_ALIGN - 1) & ~(size_t)(PITCH_ALIGN - 1);
  if (height > SIZE_MAX / row)
    return CUDA_ERROR_OUT_OF_MEMORY;
  CU_TRY(allocate(address, row * height, KILN__RANGE_DEVICE, 0));
  *pitch = row;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_memFree(CUdeviceptr address)
{
  CUcontext context, owner;
  kiln__cpu_block_info info;
  CUresult rc = kiln__cpu_current(&context);

  if (rc != CUDA_SUCCESS || address == 0)
    return rc;
  CU_TRY(valid(kiln__cpu_block_at(address, &info) &&
               info.kind != KILN__RANGE_HOST && !kiln__cpu_is_opened(&info)));
  CU_TRY(kiln__cpu_current_unsafe(&context));
  CU_TRY(valid(kiln__cpu_block_claim(address, &info)));
  owner = info.context != NULL ? info.context : context;
  rc = kiln__cpu_wait_context(owner);
  if (info.graph != NULL) {
    kiln__cpu_footprint_freed(info.graph);
    return rc;
  }
  kiln__cpu_block_remove(address);
  if (info.pool != NULL)
    kiln__cpu_pool_returned(info.pool, info.size);
  return rc;
}

CUresult kiln__cpu_memGetInfo(size_t *unused, size_t *total)
{
  kiln__cpu_machine *m = machine();
  CUcontext context;

  CU_TRY(kiln__cpu_current(&context));
  CU_TRY(valid(unused != NULL || total != NULL));
  locked();
  if (unused != NULL)
    *unused = (size_t)(m->opts.memory_bytes - m->used_bytes[context->device]);
  unlock();
  if (total != NULL)
    *total = (size_t)m->opts.memory_bytes;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_memGetAddressRange(CUdeviceptr *base, size_t *bytes,
                                      CUdeviceptr address)
{
  kiln__cpu_range range;

  CU_TRY(kiln__cpu_check_current());
  CU_TRY(valid(base != NULL || bytes != NULL));
  if (base != NULL)
    *base = 0;
  if (bytes != NULL)
    *bytes = 0;
  /* As with NVIDIA's driver, mapped memory counts if its device has access. */
  if (!kiln__cpu_memory_find(machine()->memory, address, &range) ||
      (range.denied >> (range.device < 0 ? 0 : range.device) & 1) != 0)
    return CUDA_ERROR_NOT_FOUND;
  if (range.mapped)
    (void)kiln__cpu_memory_mapped_at(machine()->memory, address, &range);
  if (base != NULL)
    *base = range.first;
  if (bytes != NULL)
    *bytes = (size_t)(range.last - range.first);
  return CUDA_SUCCESS;
}

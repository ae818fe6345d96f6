/* memory_pointer.c -- implements attributes of addresses, advice and
 * prefetches. Advice and prefetches are checked but have no effect. */
#include "../../memory/address_reserve.h"
#include "../context/api_context.h"
#include "api_memory.h"

#include <string.h>

/* ---- Attributes ---------------------------------------------------------- */

/* The data that the CPU device records about an address. */
typedef struct subject {
  CUdeviceptr address;
  kiln__cpu_range range;
  /* record of the allocation; all zero if the address is in no allocation */
  kiln__cpu_block_info info;
  bool known; /* true if the address map contains the address */
} subject;

static subject subject_of(CUdeviceptr address)
{
  subject s = {.address = address};

  s.known = kiln__cpu_memory_find(machine()->memory, address, &s.range);
  if (s.known && !kiln__cpu_block_at(s.range.first, &s.info))
    s.info = (kiln__cpu_block_info){.device = s.range.device,
                                    .context =
                                        s.range.mapped ? NULL : s.range.owner};
  return s;
}

static bool host_can(const subject *s)
{
  return s->range.kind == KILN__RANGE_HOST ||
         s->range.kind == KILN__RANGE_MANAGED;
}

/* Stores an attribute with memcpy, since the program's `data` may be unaligned
 * for the attribute's type. */
static CUresult put(void *data, const void *value, size_t size)
{
  memcpy(data, value, size);
  return CUDA_SUCCESS;
}

static CUresult put_int(void *data, int value)
{
  return put(data, &value, sizeof value);
}

static CUresult put_u64(void *data, uint64_t value)
{
  return put(data, &value, sizeof value);
}

static CUresult put_bool(void *data, bool value)
{
  const unsigned char b = value;

  return put(data, &b, sizeof b);
}

/* Stores the attributes in which mapped memory differs from other memory, as measured on
 * an H200. Returns CUDA_ERROR_NOT_FOUND for other attributes. */
static CUresult mapped_attribute(const subject *s,
                                 CUpointer_attribute attribute, void *data)
{
  const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, s->info.device};
  unsigned long long access = 0;
  uint64_t first = 0, size = 0;
  kiln__cpu_range own = s->range;

  (void)kiln__cpu_memory_mapped_at(machine()->memory, s->address, &own);
  (void)kiln__cpu_memory_reserved_at(machine()->memory, s->address, &first,
                                     &size);
  (void)kiln__cpu_memGetAccess(&access, &here, s->address);
  switch (attribute) {
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    put_u64(data, access != 0 ? s->address : 0);
    return valid(access != 0);
  case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    return put_bool(data, false);
  case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    return put_u64(data, first);
  case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    return put_u64(data, size);
  case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    return put_u64(data, own.first);
  case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    return put_u64(data, own.last - own.first);
  case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    return put_int(data, (int)access);
  case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    return put_u64(data, (uint64_t)kiln__cpu_mapped_types(&own));
  case CU_POINTER_ATTRIBUTE_BUFFER_ID:
  case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
    return put_u64(data, own.number);
  default:
    return CUDA_ERROR_NOT_FOUND;
  }
}

static CUresult attribute_of(const subject *s, CUpointer_attribute attribute,
                             void *data)
{
  void *host = s->range.host + (s->address - s->range.first);
  CUcontext context = s->info.context;

  if (s->range.mapped) {
    const CUresult rc = mapped_attribute(s, attribute, data);

    if (rc != CUDA_ERROR_NOT_FOUND)
      return rc;
  }
  switch (attribute) {
  case CU_POINTER_ATTRIBUTE_CONTEXT:
    return put(data, &context, sizeof context);
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    return put_int(data, s->range.kind == KILN__RANGE_HOST
                             ? CU_MEMORYTYPE_HOST
                             : CU_MEMORYTYPE_DEVICE);
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    return put_u64(data, s->address);
  case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    CU_TRY(valid(host_can(s)));
    return put(data, &host, sizeof host);
  case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    return put_int(data, s->info.sync_memops);
  case CU_POINTER_ATTRIBUTE_BUFFER_ID:
  case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
    return put_u64(data, s->range.number);
  case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    return put_int(data, s->range.kind == KILN__RANGE_MANAGED);
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    return put_int(data, s->info.device);
  case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    return put_bool(data, s->range.kind == KILN__RANGE_DEVICE);
  case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
  case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
    return put_bool(data, false);
  case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
  case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    return put_u64(data, s->range.first);
  case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
  case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    return put_u64(data, s->range.last - s->range.first);
  case CU_POINTER_ATTRIBUTE_MAPPED:
    return put_bool(data, true);
  case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    return put_u64(data, 0);
  case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    return put_int(data, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    return put(data, &s->info.pool, sizeof s->info.pool);
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult kiln__cpu_pointerGetAttribute(void *data,
                                       CUpointer_attribute attribute,
                                       CUdeviceptr address)
{
  subject s;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(data != NULL));
  s = subject_of(address);
  return s.known ? attribute_of(&s, attribute, data) : CUDA_ERROR_INVALID_VALUE;
}

static size_t size_of(CUpointer_attribute attribute)
{
  switch (attribute) {
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
  case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
  case CU_POINTER_ATTRIBUTE_IS_MANAGED:
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
  case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    return 4;
  case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
  case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
  case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
  case CU_POINTER_ATTRIBUTE_MAPPED:
    return 1;
  default:
    return 8;
  }
}

/* This function succeeds for any address. The attributes of an unknown address
 * are 0. */
CUresult kiln__cpu_pointerGetAttributes(unsigned int n,
                                        CUpointer_attribute *attributes,
                                        void **data, CUdeviceptr address)
{
  subject s;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(n != 0 && attributes != NULL && data != NULL));
  s = subject_of(address);
  for (unsigned i = 0; i < n; i++) {
    CU_TRY(valid(
        data[i] != NULL && attributes[i] >= CU_POINTER_ATTRIBUTE_CONTEXT &&
        attributes[i] <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE &&
        attributes[i] != CU_POINTER_ATTRIBUTE_P2P_TOKENS));
    memset(data[i], 0, size_of(attributes[i]));
    if (s.known)
      (void)attribute_of(&s, attributes[i], data[i]);
    else if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
      put_int(data[i], -2); /* The driver reports device -2 for host memory. */
  }
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_pointerSetAttribute(const void *value,
                                       CUpointer_attribute attribute,
                                       CUdeviceptr address)
{
  kiln__cpu_block_info info;
  unsigned on;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(value != NULL && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS &&
               kiln__cpu_block_of(address, &info)));
  memcpy(&on, value, sizeof on);
  kiln__cpu_block_set_sync(info.first, on != 0);
  return CUDA_SUCCESS;
}

/* ---- Memory advice, which has no effect but on queries ------------------- */

/* Advice is stored per allocation. Advice for a part makes the allocation mixed, so
 * it clears what it contradicts; queries of the whole allocation then report none, as
 * the driver does. */

static CUresult managed(CUdeviceptr address, size_t size)
{
  kiln__cpu_range range;

  CU_TRY(kiln__cpu_check_current());
  return valid(
      size > 0 && kiln__cpu_memory_find(machine()->memory, address, &range) &&
      range.kind == KILN__RANGE_MANAGED && size <= range.last - address);
}

static bool place_exists(CUmemLocation where)
{
  return where.type == CU_MEM_LOCATION_TYPE_DEVICE
             ? kiln__cpu_device_exists(where.id)
             : where.type >= CU_MEM_LOCATION_TYPE_HOST &&
                   where.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

static CUmemLocation place_of(CUdevice device)
{
  CUmemLocation place = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};

  if (device == -1)
    place = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST};
  return place;
}

static uint32_t place_bit(CUmemLocation where)
{
  return where.type == CU_MEM_LOCATION_TYPE_DEVICE ? UINT32_C(2) << where.id
                                                   : 1;
}

/* Stores a location for a whole allocation, or clears it if a part gets another. */
static void put_place(CUmemLocation *at, CUmemLocation where, bool whole)
{
  if (whole)
    *at = where;
  else if (at->type != where.type || at->id != where.id)
    *at = (CUmemLocation){0};
}

static void advise(kiln__cpu_advice *a, CUmem_advise advice,
                   CUmemLocation where, bool whole)
{
  switch (advice) {
  case CU_MEM_ADVISE_SET_READ_MOSTLY:
    a->read_mostly = a->read_mostly || whole;
    break;
  case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
    a->read_mostly = false;
    break;
  case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
    put_place(&a->preferred, where, whole);
    break;
  case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
    a->preferred = (CUmemLocation){0};
    break;
  case CU_MEM_ADVISE_SET_ACCESSED_BY:
    a->accessed_by |= whole ? place_bit(where) : 0;
    break;
  default:
    a->accessed_by &= ~place_bit(where);
    break;
  }
}

CUresult kiln__cpu_memAdvise(CUdeviceptr address, size_t n, CUmem_advise advice,
                             CUmemLocation location)
{
  const bool placed = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
                      advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
                      advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
  kiln__cpu_block_info info;

  CU_TRY(managed(address, n));
  CU_TRY(valid(advice >= CU_MEM_ADVISE_SET_READ_MOSTLY &&
               advice <= CU_MEM_ADVISE_UNSET_ACCESSED_BY));
  if (placed && !place_exists(location))
    return CUDA_ERROR_INVALID_DEVICE;
  if (kiln__cpu_block_of(address, &info)) {
    advise(&info.advice, advice, location,
           address == info.first && n >= info.size);
    kiln__cpu_block_set_advice(info.first, &info.advice);
  }
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_memAdviseV1(CUdeviceptr address, size_t n,
                               CUmem_advise advice, CUdevice device)
{
  return kiln__cpu_memAdvise(address, n, advice, place_of(device));
}

CUresult kiln__cpu_memPrefetchAsync(CUdeviceptr address, size_t n,
                                    CUmemLocation location, unsigned int flags,
                                    CUstream stream)
{
  kiln__cpu_block_info info;
  CUstream s;

  CU_TRY(managed(address, n));
  CU_TRY(valid(flags == 0));
  if (!place_exists(location))
    return CUDA_ERROR_INVALID_DEVICE;
  CU_TRY(kiln__cpu_current_stream(stream, &s));
  if (kiln__cpu_block_of(address, &info)) {
    put_place(&info.advice.prefetched, location,
              address == info.first && n >= info.size);
    kiln__cpu_block_set_advice(info.first, &info.advice);
  }
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_memPrefetchAsyncV1(CUdeviceptr address, size_t n,
                                      CUdevice device, CUstream stream)
{
  return kiln__cpu_memPrefetchAsync(address, n, place_of(device), 0, stream);
}

CUresult kiln__cpu_memPrefetchBatchAsync(CUdeviceptr *addresses, size_t *sizes,
                                         size_t n, CUmemLocation *locations,
                                         size_t *location_of,
                                         size_t n_locations,
                                         unsigned long long flags,
                                         CUstream stream)
{
  size_t at = 0;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(addresses != NULL && sizes != NULL && n != 0 &&
               locations != NULL && location_of != NULL && n_locations != 0 &&
               n_locations <= n && flags == 0));
  for (size_t i = 0; i < n; i++) {
    while (at + 1 < n_locations && location_of[at + 1] <= i)
      at++;
    CU_TRY(kiln__cpu_memPrefetchAsync(addresses[i], sizes[i], locations[at], 0,
                                      stream));
  }
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_memDiscardBatchAsync(CUdeviceptr *addresses, size_t *sizes,
                                        size_t n, unsigned long long flags,
                                        CUstream stream)
{
  CUstream s;

  CU_TRY(kiln__cpu_check_current());
  CU_TRY(valid(addresses != NULL && sizes != NULL && n != 0 && flags == 0));
  for (size_t i = 0; i < n; i++)
    CU_TRY(managed(addresses[i], sizes[i]));
  return kiln__cpu_current_stream(stream, &s);
}

/* ---- Queries of memory advice -------------------------------------------- */

/* Returns the number of a location: a device, -1 for the host, -2 for none. */
static int place_number(CUmemLocation where)
{
  if (where.type == 0)
    return -2;
  return where.type == CU_MEM_LOCATION_TYPE_DEVICE ? where.id : -1;
}

/* Stores the numbers of all locations of a set, and -2 in the rest of the array. */
static CUresult put_places(void *data, size_t size, uint32_t set)
{
  for (size_t i = 0; i < size; i += 4) {
    const int number = set == 0 ? -2 : __builtin_ctz(set) - 1;

    memcpy((char *)data + i, &number, 4);
    set &= set - 1;
  }
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_memRangeGetAttribute(void *data, size_t size,
                                        CUmem_range_attribute attribute,
                                        CUdeviceptr address, size_t n)
{
  kiln__cpu_block_info info = {0};
  const kiln__cpu_advice *a = &info.advice;

  CU_TRY(managed(address, n));
  CU_TRY(valid(data != NULL && size >= 4 && size % 4 == 0));
  (void)kiln__cpu_block_of(address, &info);
  switch (attribute) {
  case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
    return put_int(data, a->read_mostly);
  case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
    return put_int(data, (int)a->preferred.type);
  case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
    return put_int(data, (int)a->prefetched.type);
  case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
    return put_int(data, a->preferred.id);
  case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
    return put_int(data, a->prefetched.id);
  case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
    return put_int(data, place_number(a->preferred));
  case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
    return put_int(data, place_number(a->prefetched));
  case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
    return put_places(data, size, a->accessed_by);
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult kiln__cpu_memRangeGetAttributes(void **data, size_t *sizes,
                                         CUmem_range_attribute *attributes,
                                         size_t n, CUdeviceptr address,
                                         size_t bytes)
{
  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(data != NULL && sizes != NULL && attributes != NULL && n != 0));
  for (size_t i = 0; i < n; i++)
    CU_TRY(kiln__cpu_memRangeGetAttribute(data[i], sizes[i], attributes[i],
                                          address, bytes));
  return CUDA_SUCCESS;
}

/* Returns whether the program made the stream. */
static bool is_made(CUstream stream)
{
  return stream != NULL && stream != CU_STREAM_LEGACY &&
         stream != CU_STREAM_PER_THREAD;
}

CUresult kiln__cpu_streamAttachMemAsync(CUstream stream, CUdeviceptr address,
                                        size_t length, unsigned int flags)
{
  CUstream s;
  kiln__cpu_block_info info;

  CU_TRY(kiln__cpu_current_stream(stream, &s));
  CU_TRY(valid(kiln__cpu_block_at(address, &info) &&
               info.kind == KILN__RANGE_MANAGED &&
               (length == 0 || length == info.size) &&
               (flags != CU_MEM_ATTACH_SINGLE || is_made(stream)) &&
               (flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST ||
                flags == CU_MEM_ATTACH_SINGLE)));
  return CUDA_SUCCESS;
}

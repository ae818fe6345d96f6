/* api_map_test.c -- tests virtual memory management through the driver's functions. */
#include "api_fixture.h"
#include "support.h"

#include <stdlib.h>
#include <unistd.h>

#define GRAIN ((size_t)2 << 20)

static CUmemAllocationProp prop_of(int device)
{
  return (CUmemAllocationProp){
      .type = CU_MEM_ALLOCATION_TYPE_PINNED,
      .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
      .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
}

static CUmemGenericAllocationHandle create(size_t size)
{
  const CUmemAllocationProp prop = prop_of(0);
  CUmemGenericAllocationHandle handle;

  ok(cu(memCreate)(&handle, size, &prop, 0));
  return handle;
}

static CUdeviceptr reserve(size_t size)
{
  CUdeviceptr p;

  ok(cu(memAddressReserve)(&p, size, 0, 0, 0));
  ck_assert_uint_eq(p % GRAIN, 0);
  return p;
}

static void allow(CUdeviceptr p, size_t size)
{
  const CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

  ok(cu(memSetAccess)(p, size, &access, 1));
}

static size_t unused(void)
{
  size_t bytes;

  ok(cu(memGetInfo)(&bytes, NULL));
  return bytes;
}

/* ---- Memory -------------------------------------------------------------- */

START_TEST(memory_is_counted_until_the_last_owner_is_gone)
{
  const size_t before = unused();
  const CUmemGenericAllocationHandle h = create(2 * GRAIN);
  const CUdeviceptr p = reserve(2 * GRAIN);
  CUmemGenericAllocationHandle again;
  CUmemAllocationProp prop;

  ck_assert_uint_eq(before - unused(), 2 * GRAIN);
  ok(cu(memGetAllocationPropertiesFromHandle)(&prop, h));
  ck_assert_int_eq(prop.requestedHandleTypes, 1);
  ok(cu(memMap)(p, 2 * GRAIN, 0, h, 0));
  ok(cu(memRelease)(h));
  is(cu(memRelease)(h), CUDA_ERROR_INVALID_VALUE);
  ck_assert_uint_eq(before - unused(), 2 * GRAIN);
  ok(cu(memRetainAllocationHandle)(&again, (void *)(uintptr_t)(p + 5)));
  ck_assert_uint_eq(again, h);
  ok(cu(memUnmap)(p, 2 * GRAIN));
  ck_assert_uint_eq(before - unused(), 2 * GRAIN);
  ok(cu(memRelease)(again));
  ck_assert_uint_eq(before, unused());
  ok(cu(memAddressFree)(p, 2 * GRAIN));
}
END_TEST

/* ---- Mappings ------------------------------------------------------------ */

START_TEST(adjacent_mappings_are_one_range)
{
  const CUdeviceptr p = reserve(3 * GRAIN);
  uint32_t *back = malloc(2 * GRAIN), at_edge[2];
  CUmemGenericAllocationHandle h[3];

  ck_assert_ptr_nonnull(back);
  for (int i = 0; i < 3; i++) {
    h[i] = create(GRAIN);
    ok(cu(memMap)(p + (unsigned)(2 - i) * GRAIN, GRAIN, 0, h[i], 0));
    ok(cu(memRelease)(h[i]));
  }
  is(cu(memsetD32)(p, 1, 1), CUDA_ERROR_INVALID_VALUE);
  allow(p, GRAIN);
  allow(p + 2 * GRAIN, GRAIN);
  ok(cu(memsetD32)(p, 1, GRAIN / 4));
  is(cu(memsetD32)(p, 1, GRAIN / 4 + 1), CUDA_ERROR_INVALID_VALUE);
  allow(p + GRAIN, GRAIN);
  ok(cu(memsetD32)(p + 4, 3, 3 * GRAIN / 4 - 1));
  is(cu(memsetD32)(p + 8, 3, 3 * GRAIN / 4 - 1), CUDA_ERROR_INVALID_VALUE);
  ok(cu(memcpyDtoH)(back, p, 2 * GRAIN));
  ck_assert_uint_eq(back[0], 1);
  ck_assert_uint_eq(back[1], 3);
  ck_assert_uint_eq(back[2 * GRAIN / 4 - 1], 3);
  ok(cu(memUnmap)(p + GRAIN, GRAIN));
  is(cu(memcpyDtoH)(back, p, 2 * GRAIN), CUDA_ERROR_INVALID_VALUE);
  ok(cu(memcpyDtoH)(at_edge, p + 2 * GRAIN, 8));
  is(cu(memAddressFree)(p, 3 * GRAIN), CUDA_ERROR_INVALID_VALUE);
  ok(cu(memUnmap)(p, 3 * GRAIN)); /* what is not mapped is skipped */
  ok(cu(memUnmap)(p, GRAIN));
  ok(cu(memAddressFree)(p, 3 * GRAIN));
  free(back);
}
END_TEST

START_TEST(memory_keeps_its_bytes_at_all_addresses)
{
  const CUmemGenericAllocationHandle h = create(GRAIN);
  const CUdeviceptr p = reserve(2 * GRAIN), q = reserve(GRAIN);
  CUmemGenericAllocationHandle imported;
  uint32_t value = 0;
  int fd = -1;

  ok(cu(memMap)(p, GRAIN, 0, h, 0));
  allow(p, GRAIN);
  ok(cu(memsetD32)(p, 5, 100));
  ok(cu(memMap)(q, GRAIN, 0, h, 0));
  allow(q, GRAIN);
  ok(cu(memcpyDtoH)(&value, q + 396, 4));
  ck_assert_uint_eq(value, 5);
  ok(cu(memExportToShareableHandle)(&fd, h, 1, 0));
  ok(cu(memImportFromShareableHandle)(&imported, (void *)(intptr_t)fd, 1));
  close(fd);
  ok(cu(memMap)(p + GRAIN, GRAIN, 0, imported, 0));
  allow(p + GRAIN, GRAIN);
  ok(cu(memsetD32)(q, 6, 1));
  ok(cu(memUnmap)(p, GRAIN));
  ok(cu(memUnmap)(q, GRAIN));
  ok(cu(memRelease)(h));
  ok(cu(memcpyDtoH)(&value, p + GRAIN, 4));
  ck_assert_uint_eq(value, 6);
  ok(cu(memUnmap)(p + GRAIN, GRAIN));
  ok(cu(memRelease)(imported));
  ok(cu(memAddressFree)(p, 2 * GRAIN));
  ok(cu(memAddressFree)(q, GRAIN));
}
END_TEST

/* Access is per device. */
START_TEST(each_device_has_its_own_access)
{
  const CUmemGenericAllocationHandle h = create(GRAIN);
  const CUdeviceptr p = reserve(GRAIN);
  CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemAccessDesc none = {.location = here, .flags = 0};
  unsigned long long flags = 9;

  ok(cu(memMap)(p, GRAIN, 0, h, 0));
  ok(cu(memGetAccess)(&flags, &here, p));
  ck_assert_uint_eq(flags, 0);
  allow(p, GRAIN);
  ok(cu(memGetAccess)(&flags, &here, p + GRAIN - 1));
  ck_assert_uint_eq(flags, 3);
  none.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  ok(cu(memSetAccess)(p, GRAIN, &none, 1));
  ok(cu(memGetAccess)(&flags, &here, p));
  ck_assert_uint_eq(flags, 1);
  none.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  ok(cu(memSetAccess)(p, GRAIN, &none, 1));
  ok(cu(memGetAccess)(&flags, &here, p));
  ck_assert_uint_eq(flags, 0);
  none.location.id = 1; /* there is one device */
  is(cu(memSetAccess)(p, GRAIN, &none, 1), CUDA_ERROR_INVALID_VALUE);
  here.id = 1;
  is(cu(memGetAccess)(&flags, &here, p), CUDA_ERROR_INVALID_DEVICE);
  ok(cu(memUnmap)(p, GRAIN));
  ok(cu(memRelease)(h));
  ok(cu(memAddressFree)(p, GRAIN));
}
END_TEST

/* What the driver of an H200 reports about mapped memory. */
START_TEST(attributes_of_mapped_memory)
{
  const CUmemGenericAllocationHandle h = create(GRAIN);
  const CUdeviceptr p = reserve(3 * GRAIN), a = p + GRAIN + 100;
  uint64_t value = 0;
  size_t size;
  CUcontext owner = context;
  unsigned char capable = 9;

  is(cu(pointerGetAttribute)(&value, CU_POINTER_ATTRIBUTE_RANGE_SIZE, a),
     CUDA_ERROR_INVALID_VALUE);
  ok(cu(memMap)(p + GRAIN, GRAIN, 0, h, 0));
  is(cu(pointerGetAttribute)(&value, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, a),
     CUDA_ERROR_INVALID_VALUE);
  allow(p + GRAIN, GRAIN);
#define attribute(name, want)                                                  \
  value = 0;                                                                   \
  ok(cu(pointerGetAttribute)(&value, CU_POINTER_ATTRIBUTE_##name, a));         \
  ck_assert_uint_eq(value, want)
  attribute(DEVICE_POINTER, a);
  attribute(RANGE_START_ADDR, p);
  attribute(RANGE_SIZE, 3 * GRAIN);
  attribute(MAPPING_BASE_ADDR, p + GRAIN);
  attribute(MAPPING_SIZE, GRAIN);
  attribute(ACCESS_FLAGS, 3);
  attribute(ALLOWED_HANDLE_TYPES, 1);
  ok(cu(pointerGetAttribute)(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, a));
  ck_assert_ptr_null(owner);
  ok(cu(pointerGetAttribute)(
      &capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, a));
  ck_assert_uint_eq(capable, 0);
  ok(cu(memGetAddressRange)(NULL, &size, a));
  ck_assert_uint_eq(size, GRAIN);
  ok(cu(memUnmap)(p, 3 * GRAIN));
  ok(cu(memRelease)(h));
  ok(cu(memAddressFree)(p, 3 * GRAIN));
}
END_TEST

/* ---- Wrong arguments ----------------------------------------------------- */

START_TEST(wrong_arguments_are_refused)
{
  const CUmemAllocationProp prop = prop_of(0);
  CUmemAllocationProp other = prop_of(7);
  CUmemGenericAllocationHandle h = create(2 * GRAIN), x;
  const CUdeviceptr p = reserve(4 * GRAIN);
  CUdeviceptr at;
  size_t size;
  int fd[2];

#define bad(call) is(call, CUDA_ERROR_INVALID_VALUE)
  bad(cu(memCreate)(NULL, GRAIN, &prop, 0));
  bad(cu(memCreate)(&x, GRAIN, NULL, 0));
  bad(cu(memCreate)(&x, GRAIN + 4096, &prop, 0));
  bad(cu(memCreate)(&x, 0, &prop, 0));
  bad(cu(memCreate)(&x, GRAIN, &prop, 1));
  is(cu(memCreate)(&x, GRAIN, &other, 0), CUDA_ERROR_INVALID_DEVICE);
  is(cu(memCreate)(&x, (size_t)1 << 44, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
  other = prop;
  other.type = 0;
  bad(cu(memCreate)(&x, GRAIN, &other, 0));
  other = prop;
  other.win32HandleMetaData = &other;
  bad(cu(memCreate)(&x, GRAIN, &other, 0));
  bad(cu(memGetAllocationGranularity)(&size, &prop, 2));
  bad(cu(memAddressReserve)(&at, GRAIN - 1, 0, 0, 0));
  bad(cu(memAddressReserve)(&at, GRAIN, 3, 0, 0));
  is(cu(memAddressReserve)(&at, (size_t)1 << 50, 0, 0, 0),
     CUDA_ERROR_OUT_OF_MEMORY);
  bad(cu(memAddressFree)(p, GRAIN));
  bad(cu(memAddressReserve)(&at, GRAIN, 0, 4096, 0));
  is(cu(memMap)(p, 4 * GRAIN, 0, h, 0), CUDA_ERROR_NOT_SUPPORTED);
  is(cu(memMap)(p, GRAIN, GRAIN, h, 0), CUDA_ERROR_NOT_SUPPORTED);
  bad(cu(memMap)(p + 3 * GRAIN, 2 * GRAIN, 0, h, 0));
  bad(cu(memMap)(p + 1, 2 * GRAIN, 0, h, 0));
  bad(cu(memMap)(p, 2 * GRAIN, 0, h + 1, 0));
  ok(cu(memMap)(p, 2 * GRAIN, 0, h, 0));
  bad(cu(memMap)(p, 2 * GRAIN, 0, h, 0));
  bad(cu(memUnmap)(p, GRAIN));
  bad(cu(memUnmap)(p + GRAIN, 3 * GRAIN));
  bad(cu(memFree)(p));
  bad(cu(memExportToShareableHandle)(fd, h, 2, 0));
  is(cu(memImportFromShareableHandle)(&x, (void *)(intptr_t)-1, 1),
     CUDA_ERROR_UNKNOWN);
  ck_assert_int_eq(pipe(fd), 0);
  bad(cu(memImportFromShareableHandle)(&x, (void *)(intptr_t)fd[0], 1));
  close(fd[0]);
  close(fd[1]);
  ok(cu(memUnmap)(p, 2 * GRAIN));
  ok(cu(memRelease)(h));
  ok(cu(memAddressFree)(p, 4 * GRAIN));
}
END_TEST

/* ---- Random calls -------------------------------------------------------- */

/* Maps and unmaps pieces at random and compares with a table of what lies where. */
START_TEST(random_mappings_show_the_right_bytes)
{
  enum { PIECES = 6, PLACES = 12, STEPS = 400 };
  const CUdeviceptr p = reserve(PLACES * GRAIN);
  CUmemGenericAllocationHandle h[PIECES];
  uint32_t bytes[PIECES] = {0}, random = 12345, value;
  int at[PLACES];

  for (int i = 0; i < PIECES; i++)
    h[i] = create(GRAIN);
  for (int i = 0; i < PLACES; i++)
    at[i] = -1;
  for (uint32_t step = 1; step <= STEPS; step++) {
    const unsigned place = (random = random * 1664525 + 1013904223) >> 16;
    const unsigned w = place % PLACES, piece = place / PLACES % PIECES;
    const CUdeviceptr a = p + w * GRAIN;

    if (at[w] < 0) {
      ok(cu(memMap)(a, GRAIN, 0, h[piece], 0));
      allow(a, GRAIN);
      at[w] = (int)piece;
    } else if (place % 3 == 0) {
      ok(cu(memUnmap)(a, GRAIN));
      at[w] = -1;
    } else {
      ok(cu(memsetD32)(a + 4096, step, 1));
      bytes[at[w]] = step;
    }
    for (unsigned i = 0; i < PLACES; i++) {
      is(cu(memcpyDtoH)(&value, p + i * GRAIN + 4096, 4),
         at[i] < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
      if (at[i] >= 0)
        ck_assert_uint_eq(value, bytes[at[i]]);
    }
  }
  for (unsigned i = 0; i < PLACES; i++) {
    if (at[i] >= 0)
      ok(cu(memUnmap)(p + i * GRAIN, GRAIN));
  }
  for (int i = 0; i < PIECES; i++)
    ok(cu(memRelease)(h[i]));
  ok(cu(memAddressFree)(p, PLACES * GRAIN));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_api_map");

  kiln_test_case(s, "map", 60, setup, teardown,
                 TESTS(memory_is_counted_until_the_last_owner_is_gone,
                       adjacent_mappings_are_one_range,
                       memory_keeps_its_bytes_at_all_addresses,
                       each_device_has_its_own_access,
                       attributes_of_mapped_memory, wrong_arguments_are_refused,
                       random_mappings_show_the_right_bytes));
  return kiln_test_run(s);
}

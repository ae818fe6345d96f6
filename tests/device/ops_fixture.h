/* ops_fixture.h -- what the tests of operations share: a device with a stream,
 * arrays between guard zones at any alignment, and values of every type. */
#ifndef KILN_OPS_FIXTURE_H
#define KILN_OPS_FIXTURE_H

#include "test_device.h"

#include "device/device.h"

#include <kiln/kiln.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static kiln_runtime *rt;
static kiln_device *device;
static kiln_stream *stream;

/* Sets the tuning in KILN_TEST_TUNING, for example "select 0 64 128 64 0 20":
 * kernel, element size in bytes (0 means every size), log2 of the length, block
 * size, items per thread, blocks per SM, and an extra value. Small inputs can
 * thus use the large tiles of large inputs. */
static inline void tune_as_asked(void)
{
  const char *const text = getenv("KILN_TEST_TUNING");
  unsigned size, log2_n, block, items, per_sm, extra;
  kiln_tuning t;
  char family[32];

  if (text == NULL)
    return;
  ck_assert_int_eq(sscanf(text, "%31s %u %u %u %u %u %u", family, &size,
                          &log2_n, &block, &items, &per_sm, &extra),
                   7);
  t = (kiln_tuning){(uint16_t)block, (uint16_t)items, (uint16_t)per_sm,
                    (uint16_t)extra};
  for (unsigned bytes = 1; bytes <= 8; bytes *= 2)
    ck_kiln_ok(
        kiln_tuning_set(device, family, size == 0 ? bytes : size, log2_n, &t));
}

static inline void setup(void)
{
  ck_kiln_ok(test_runtime(&rt, NULL));
  ck_kiln_ok(kiln_device_open(&device, rt, 0, NULL));
  ck_kiln_ok(kiln_stream_create(&stream, device, NULL));
  tune_as_asked();
}

/* ---- Memory of a test ---------------------------------------------------- */

/* Host or device memory that is freed when the test ends. */
typedef struct kept_memory {
  void *host;
  CUdeviceptr device;
} kept_memory;

static kept_memory *kept_list; /* allocations in their order */
static size_t n_kept;

static inline void keep_memory(kept_memory memory)
{
  kept_list = realloc(kept_list, (n_kept + 1) * sizeof *kept_list);
  ck_assert_ptr_nonnull(kept_list);
  kept_list[n_kept++] = memory;
}

/* Registers host memory, which must not be NULL, to be freed by teardown(). */
static inline void *kept(void *host)
{
  ck_assert_ptr_nonnull(host);
  keep_memory((kept_memory){.host = host});
  return host;
}

/* Frees the memory that was registered since n_kept was `mark`. Functions that
 * a test calls many times use it. */
static inline void release(size_t mark)
{
  while (n_kept > mark) {
    const kept_memory last = kept_list[--n_kept];

    free(last.host);
    if (last.device != 0)
      ck_kiln_ok(kiln_memory_free(device, last.device));
  }
  if (n_kept == 0) {
    free(kept_list);
    kept_list = NULL;
  }
}

static inline void teardown(void)
{
  release(0);
  kiln_stream_free(stream);
  kiln_device_free(device);
  kiln_runtime_free(rt);
}

/* ---- Cases --------------------------------------------------------------- */

/* Time limit of a test. It ends a test that hangs, but no test on a slow
 * machine. */
enum { CASE_SECONDS = 3600 };

/* Returns whether every combination is tested. The default run of the tests leaves some
 * of the combinations out, because each costs a compile. */
static inline bool test_thoroughly(void)
{
  return getenv("KILN_TEST_THOROUGH") != NULL;
}

/* Returns the number of random calls: KILN_TEST_RANDOM_CALLS if it is set,
 * otherwise `many` in a thorough run and half of it by default. A fifth of that
 * remains if KILN_TEST_SHORT is set. Most calls need a kernel of their own, whose
 * compilation takes longer than the call. */
static inline unsigned long random_calls(unsigned long many)
{
  const char *wanted = getenv("KILN_TEST_RANDOM_CALLS");
  const unsigned long by_default = test_thoroughly() ? many : many / 2;

  if (wanted != NULL)
    return strtoul(wanted, NULL, 10);
  return getenv("KILN_TEST_SHORT") != NULL ? by_default / 5 : by_default;
}

/* Makes a test case whose tests start with a device and a stream. */
static inline TCase *device_case(Suite *s, const char *name)
{
  TCase *t = tcase_create(name);

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, CASE_SECONDS);
  suite_add_tcase(s, t);
  return t;
}

/* Makes a test case that also runs with other schedules of the CPU device. Such
 * runs set CK_INCLUDE_TAGS=brief. */
static inline TCase *brief_case(Suite *s)
{
  TCase *t = device_case(s, "brief");

  tcase_set_tags(t, "brief");
  return t;
}

/* ---- Captures ------------------------------------------------------------ */

/* Starts to capture the stream's work into a graph. */
static inline void capture_begin_in(int mode)
{
  bool capturing = false;
  kiln__scope scope;

  ck_kiln_ok(kiln__enter(device, &scope));
  ck_assert_int_eq(
      device->driver->streamBeginCapture(kiln_stream_handle(stream), mode), 0);
  kiln__leave(&scope);
  ck_kiln_ok(kiln_stream_capturing(stream, &capturing));
  ck_assert(capturing);
}

static inline void capture_begin(void)
{
  capture_begin_in(CU_STREAM_CAPTURE_MODE_GLOBAL);
}

/* Ends the capture and returns the executable graph, which capture_free()
 * frees. */
static inline CUgraphExec capture_end(void)
{
  const kiln__driver *driver = device->driver;
  kiln__scope scope;
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;

  ck_kiln_ok(kiln__enter(device, &scope));
  ck_assert_int_eq(driver->streamEndCapture(kiln_stream_handle(stream), &graph),
                   0);
  if (driver->graphInstantiateWithFlags != NULL)
    ck_assert_int_eq(driver->graphInstantiateWithFlags(&exec, graph, 0), 0);
  else
    ck_assert_int_eq(driver->graphInstantiate(&exec, graph, NULL, NULL, 0), 0);
  ck_assert_int_eq(driver->graphDestroy(graph), 0);
  kiln__leave(&scope);
  return exec;
}

/* Runs the graph once in the stream. */
static inline void capture_replay(CUgraphExec exec)
{
  kiln__scope scope;

  ck_kiln_ok(kiln__enter(device, &scope));
  ck_assert_int_eq(
      device->driver->graphLaunch(exec, kiln_stream_handle(stream)), 0);
  kiln__leave(&scope);
}

static inline void capture_free(CUgraphExec exec)
{
  kiln__scope scope;

  ck_kiln_ok(kiln__enter(device, &scope));
  ck_assert_int_eq(device->driver->graphExecDestroy(exec), 0);
  kiln__leave(&scope);
}

/* ---- Arrays -------------------------------------------------------------- */

enum { GUARD = 256, GUARD_BYTE = 0xa5 };

/* n elements in device memory, `shift` elements behind an aligned address,
 * between guard zones. teardown() frees the array unless array_free() has done
 * so. */
typedef struct test_array {
  CUdeviceptr block;
  size_t n, width, before;
  kiln_array array;
} test_array;

/* Copies the elements from `data`, or sets every byte to `poison` if `data` is
 * NULL. */
static inline test_array array_make(kiln_dtype type, size_t n, size_t shift,
                                    const void *data, unsigned char poison)
{
  test_array a = {.n = n, .width = kiln_dtype_size(type)};
  const size_t bytes = n * a.width;

  a.before = GUARD + shift * a.width;
  ck_kiln_ok(kiln_memory_alloc(&a.block, device, a.before + bytes + GUARD));
  keep_memory((kept_memory){.device = a.block});
  ck_kiln_ok(
      kiln_fill(device, a.block, GUARD_BYTE, 1, a.before + bytes + GUARD));
  a.array = (kiln_array){a.block + a.before, type};
  if (data != NULL)
    ck_kiln_ok(kiln_copy_to_device(device, a.array.data, data, bytes));
  else
    ck_kiln_ok(kiln_fill(device, a.array.data, poison, 1, bytes));
  return a;
}

/* Returns the elements, which the caller must free, after all queued work has
 * ended. Fails if a guard zone was written. */
static inline void *array_read(const test_array *a)
{
  const size_t bytes = a->n * a->width, whole = a->before + bytes + GUARD;
  unsigned char *copy = malloc(whole + 1);

  ck_assert_ptr_nonnull(copy);
  ck_kiln_ok(kiln_device_synchronize(device));
  ck_kiln_ok(kiln_copy_to_host(device, copy, a->block, whole));
  for (size_t i = 0; i < whole; i++)
    if ((i < a->before || i >= a->before + bytes) && copy[i] != GUARD_BYTE)
      ck_abort_msg("guard byte %zd was written",
                   (ssize_t)i - (ssize_t)a->before);
  memmove(copy, copy + a->before, bytes);
  return copy;
}

/* Frees the array before the test ends. */
static inline void array_free(test_array *a)
{
  size_t k = n_kept;

  while (k > 0 && kept_list[k - 1].device != a->block)
    k--;
  ck_assert_uint_gt(k, 0);
  memmove(kept_list + k - 1, kept_list + k, (n_kept - k) * sizeof *kept_list);
  n_kept--;
  ck_kiln_ok(kiln_memory_free(device, a->block));
}

/* ---- Values -------------------------------------------------------------- */

static const kiln_dtype all_types[] = {KILN_I8,  KILN_U8,   KILN_I16, KILN_U16,
                                       KILN_I32, KILN_U32,  KILN_I64, KILN_U64,
                                       KILN_F16, KILN_BF16, KILN_F32, KILN_F64};

enum { N_ALL_TYPES = sizeof all_types / sizeof all_types[0] };

static inline bool type_is_float(kiln_dtype type)
{
  return type >= KILN_F16;
}

static inline bool type_is_signed(kiln_dtype type)
{
  return type_is_float(type) || type == KILN_I8 || type == KILN_I16 ||
         type == KILN_I32 || type == KILN_I64;
}

/* Converts an IEEE half to double. */
static inline double half_value(uint16_t bits)
{
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  double v;

  if (exponent == 31)
    v = fraction != 0 ? (double)NAN : (double)INFINITY;
  else if (exponent == 0)
    v = ldexp(fraction, -24);
  else
    v = ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 ? -v : v;
}

static inline double bfloat_value(uint16_t bits)
{
  const uint32_t wide = (uint32_t)bits << 16;
  float f;

  memcpy(&f, &wide, sizeof f);
  return (double)f;
}

/* Returns element i of an array in host memory. Large 64-bit integers are
 * rounded. */
static inline double value_at(kiln_dtype type, const void *data, size_t i)
{
  switch (type) {
  case KILN_I8:
    return ((const int8_t *)data)[i];
  case KILN_U8:
    return ((const uint8_t *)data)[i];
  case KILN_I16:
    return ((const int16_t *)data)[i];
  case KILN_U16:
    return ((const uint16_t *)data)[i];
  case KILN_I32:
    return ((const int32_t *)data)[i];
  case KILN_U32:
    return ((const uint32_t *)data)[i];
  case KILN_I64:
    return (double)((const int64_t *)data)[i];
  case KILN_U64:
    return (double)((const uint64_t *)data)[i];
  case KILN_F16:
    return half_value(((const uint16_t *)data)[i]);
  case KILN_BF16:
    return bfloat_value(((const uint16_t *)data)[i]);
  case KILN_F32:
    return (double)((const float *)data)[i];
  default:
    return ((const double *)data)[i];
  }
}

/* Stores a small whole number as an element. Every type holds it exactly if |v|
 * <= 100, and unsigned types store it modulo their size. */
static inline void set_whole(kiln_dtype type, void *data, size_t i, int64_t v)
{
  const float f = (float)v;
  uint32_t bits;

  memcpy(&bits, &f, sizeof bits);
  switch (type) {
  case KILN_I8:
  case KILN_U8:
    ((uint8_t *)data)[i] = (uint8_t)v;
    break;
  case KILN_I16:
  case KILN_U16:
    ((uint16_t *)data)[i] = (uint16_t)v;
    break;
  case KILN_I32:
  case KILN_U32:
    ((uint32_t *)data)[i] = (uint32_t)v;
    break;
  case KILN_I64:
  case KILN_U64:
    ((uint64_t *)data)[i] = (uint64_t)v;
    break;
  case KILN_F16: /* f16 keeps the upper 10 bits of the fraction */
    ((uint16_t *)data)[i] =
        v == 0 ? 0
               : (uint16_t)((bits >> 16 & 0x8000u) |
                            (((bits >> 23 & 255u) - 112u) << 10) |
                            (bits >> 13 & 1023u));
    break;
  case KILN_BF16:
    ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
    break;
  case KILN_F32:
    ((float *)data)[i] = f;
    break;
  default:
    ((double *)data)[i] = (double)v;
    break;
  }
}

/* Makes an array of an integer type from indices or offsets. */
static inline test_array array_of_indices(kiln_dtype type, const uint64_t *v,
                                          size_t n, size_t shift)
{
  void *data = kept(malloc(n * kiln_dtype_size(type) + 1));

  for (size_t i = 0; i < n; i++)
    set_whole(type, data, i, (int64_t)v[i]);
  return array_make(type, n, shift, data, 0);
}

/* Returns n random whole numbers from `least` to `most` as elements. The caller
 * frees them. */
static inline void *random_wholes(kiln_dtype type, size_t n, int64_t least,
                                  int64_t most, uint64_t *state)
{
  void *data = malloc(n * kiln_dtype_size(type) + 1);

  ck_assert_ptr_nonnull(data);
  for (size_t i = 0; i < n; i++)
    set_whole(type, data, i,
              least +
                  (int64_t)(test_random(state) % (uint64_t)(most - least + 1)));
  return data;
}

/* Returns random bytes, which the caller frees. */
static inline void *random_bits(size_t bytes, uint64_t *state)
{
  unsigned char *data = malloc(bytes + 8);

  ck_assert_ptr_nonnull(data);
  for (size_t i = 0; i < bytes; i += 8) {
    const uint64_t r = test_random(state);

    memcpy(data + i, &r, 8);
  }
  return data;
}

#endif

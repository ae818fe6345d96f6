/* Tests the entry format: any change to the bytes of an entry is detected. */
#include "cache_fixture.h"

#include <stdlib.h>
#include <string.h>

static test_allocator mem;
static kiln__key key;

static void begin(void)
{
  test_allocator_init(&mem);
  key_make(&key, &mem.alloc, "entry");
}

static void end(void)
{
  kiln__key_free(&key);
  ck_assert_int_eq(mem.live, 0);
}

/* Returns the bytes of an entry's file, in memory that the caller frees with
 * free(). */
static unsigned char *wire_of(const kiln__entry *entry)
{
  unsigned char *wire = malloc(entry->wire_size);
  size_t at = KILN__WIRE_HEAD;

  kiln__entry_head(entry, wire);
  for (int i = 0; i < KILN__WIRE_PARTS; i++) {
    memcpy(wire + at, entry->parts[i].data, entry->parts[i].size);
    at += entry->parts[i].size;
  }
  ck_assert_uint_eq(at, entry->wire_size);
  return wire;
}

static kiln__entry *decode(const unsigned char *wire, size_t size)
{
  kiln__entry *entry = kiln__entry_reserve(&mem.alloc, size);

  memcpy(entry->block, wire, size);
  if (kiln__entry_decode(entry))
    return entry;
  kiln__entry_unref(entry);
  return NULL;
}

/* Recomputes the checksum of an entry's header. */
static void reseal(unsigned char *wire)
{
  kiln__put64(wire + KILN__WIRE_HEAD - 8,
              kiln__sum64(wire, KILN__WIRE_HEAD - 8));
}

START_TEST(comes_back_whole)
{
  static const size_t sizes[] = {0, 1, 31, 255, 4097, 1000003};

  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    kiln__entry *a = image_make(&mem.alloc, &key, "entry", sizes[i]), *b;
    unsigned char *wire = wire_of(a);

    ck_assert(image_is(a, "entry", sizes[i]));
    b = decode(wire, a->wire_size);
    ck_assert_ptr_nonnull(b);
    ck_assert(image_is(b, "entry", sizes[i]));
    ck_assert(kiln__entry_same(a, b));
    ck_assert(kiln__entry_has_key(b, &key.text));
    ck_assert_str_eq(kiln__entry_hash(b), key.hash);
    ck_assert_uint_eq(kiln__entry_key(b).size, key.text.size);
    kiln__entry_unref(a);
    kiln__entry_unref(b);
    free(wire);
  }
}
END_TEST

START_TEST(references_count)
{
  kiln__entry *e = image_make(&mem.alloc, &key, "entry", 10);
  const long live = mem.live;

  ck_assert_ptr_eq(kiln__entry_ref(e), e);
  kiln__entry_unref(e);
  ck_assert_int_eq(mem.live, live);
  kiln__entry_unref(e);
  ck_assert_int_eq(mem.live, live - 1);
  kiln__entry_unref(NULL);
  ck_assert_ptr_null(kiln__entry_ref(NULL));
}
END_TEST

START_TEST(every_bit_is_covered)
{
  kiln__entry *e = image_make(&mem.alloc, &key, "entry", 40);
  unsigned char *wire = wire_of(e);

  for (size_t bit = 0; bit < e->wire_size * 8; bit++) {
    wire[bit / 8] ^= (unsigned char)(1u << bit % 8);
    ck_assert_msg(decode(wire, e->wire_size) == NULL, "bit %zu", bit);
    wire[bit / 8] ^= (unsigned char)(1u << bit % 8);
  }
  for (size_t size = 0; size < e->wire_size; size++)
    ck_assert_msg(decode(wire, size) == NULL, "length %zu", size);
  kiln__entry_unref(e);
  free(wire);
}
END_TEST

START_TEST(longer_is_refused)
{
  kiln__entry *e = image_make(&mem.alloc, &key, "entry", 40);
  unsigned char *wire = wire_of(e), *more = calloc(1, e->wire_size + 8);

  memcpy(more, wire, e->wire_size);
  for (size_t extra = 1; extra <= 8; extra++)
    ck_assert_ptr_null(decode(more, e->wire_size + extra));
  /* The header now claims 8 bytes more than the entry has. */
  kiln__put64(more + 16, e->wire_size + 8);
  reseal(more);
  ck_assert_ptr_null(decode(more, e->wire_size + 8));
  kiln__entry_unref(e);
  free(wire);
  free(more);
}
END_TEST

/* An entry is refused if its header has invalid content, even with a valid
 * checksum. */
START_TEST(forged_heads_are_refused)
{
  static const uint64_t huge[] = {UINT64_MAX,           UINT64_MAX / 2,
                                  (uint64_t)1 << 63,    (uint64_t)1 << 32,
                                  UINT64_MAX - 1000000, 1000000};
  kiln__entry *e = image_make(&mem.alloc, &key, "entry", 40);
  unsigned char *good = wire_of(e), *bad = malloc(e->wire_size);

  for (int field = 0; field < 4; field++) {
    /* offsets of the version, the byte order, the number of parts and the
     * header size */
    static const size_t at[] = {8, 12, 24, 28};
    static const uint32_t values[] = {0, 2, 0x04030201, UINT32_MAX};

    for (int v = 0; v < 4; v++) {
      memcpy(bad, good, e->wire_size);
      kiln__put32(bad + at[field], values[v]);
      reseal(bad);
      ck_assert_ptr_null(decode(bad, e->wire_size));
    }
  }
  for (int part = 0; part < KILN__WIRE_PARTS; part++) {
    for (size_t h = 0; h < sizeof huge / sizeof huge[0]; h++) {
      memcpy(bad, good, e->wire_size);
      kiln__put64(bad + 32 + part * 16, huge[h]);
      reseal(bad);
      ck_assert_ptr_null(decode(bad, e->wire_size));
    }
  }
  memcpy(bad, good, e->wire_size);
  memcpy(bad, "not ours", 8);
  reseal(bad);
  ck_assert_ptr_null(decode(bad, e->wire_size));
  /* The sum of the part sizes overflows, so that it is correct modulo 2^64. The
   * entry is refused. */
  memcpy(bad, good, e->wire_size);
  kiln__put64(bad + 32, kiln__get64(bad + 32) + ((uint64_t)1 << 63));
  kiln__put64(bad + 48, kiln__get64(bad + 48) + ((uint64_t)1 << 63));
  reseal(bad);
  ck_assert_ptr_null(decode(bad, e->wire_size));
  kiln__entry_unref(e);
  free(good);
  free(bad);
}
END_TEST

START_TEST(memory_runs_out)
{
  mem.calls = 0;
  mem.fail_at = 0;
  ck_assert_ptr_null(image_make(&mem.alloc, &key, "entry", 40));
  mem.fail_at = -1;
}
END_TEST

int main(void)
{
  return kiln_test_main("cache entry", 0, begin, end,
                        TESTS(comes_back_whole, references_count,
                              every_bit_is_covered, longer_is_refused,
                              forged_heads_are_refused, memory_runs_out));
}

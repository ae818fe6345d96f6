/* Tests cache keys: each field affects the key, and no value can be mistaken
 * for another field. */
#include "cache_fixture.h"

#include <string.h>

static test_allocator mem;

static void begin(void)
{
  test_allocator_init(&mem);
}

static void end(void)
{
  ck_assert_int_eq(mem.live, 0);
}

typedef struct field {
  const char *name, *value;
  bool portable;
} field;

static void hash_of(const field *fields, size_t n, char hash[33],
                    char portable[33])
{
  kiln__key key;

  kiln__key_init(&key, &mem.alloc);
  for (size_t i = 0; i < n; i++)
    kiln__key_add(&key, fields[i].name, fields[i].value,
                  strlen(fields[i].value), fields[i].portable);
  ck_kiln_ok(kiln__key_seal(&key));
  memcpy(hash, key.hash, 33);
  memcpy(portable, key.portable_hash, 33);
  kiln__key_free(&key);
}

/* The hash values are part of the cache format. Builds with another compiler,
 * byte order or word size must compute the same hashes. */
START_TEST(hash_is_stable)
{
  const field fields[] = {{"program", "hello.cu", true},
                          {"source", "a\nb\n", true},
                          {"target", "sm_90", false}};
  char hash[33], portable[33];

  hash_of(fields, 3, hash, portable);
  ck_assert_str_eq(hash, "133c52ad6b874cbf01f486043c81ceff");
  ck_assert_str_eq(portable, "3763d0876354ab8b84432bbe26412638");
  hash_of(fields, 0, hash, portable);
  ck_assert_str_eq(hash, "99aa06d3014798d86001c324468d497f");
}
END_TEST

START_TEST(each_field_counts)
{
  field fields[] = {{"format", "1", false},     {"nvrtc", "13.0", false},
                    {"target", "sm_90", false}, {"source", "text", true},
                    {"define", "A=1", true},    {"name", "f<int>", true}};
  char seen[32][33], portable[33], base_portable[33];
  size_t n = 0;

  hash_of(fields, 6, seen[n++], base_portable);
  for (size_t i = 0; i < 6; i++) {
    const field kept = fields[i];

    fields[i].value = "other";
    hash_of(fields, 6, seen[n++], portable);
    ck_assert_int_eq(strcmp(portable, base_portable) != 0, kept.portable);
    fields[i] = kept;
    fields[i].name = "other";
    hash_of(fields, 6, seen[n++], portable);
    fields[i] = kept;
    fields[i].portable = !kept.portable;
    hash_of(fields, 6, seen[n++], portable);
    ck_assert_str_ne(portable, base_portable);
    fields[i] = kept;
  }
  hash_of(fields, 5, seen[n++], portable);
  for (size_t i = 0; i < n; i++) {
    for (size_t j = i + 1; j < n; j++)
      ck_assert_str_ne(seen[i], seen[j]);
  }
}
END_TEST

START_TEST(fields_do_not_run_together)
{
  static const field pairs[][2] = {
      {{"a", "ab", true}, {"a", "c", true}},
      {{"a", "a", true}, {"a", "bc", true}},
      {{"ab", "a", true}, {"", "bc", true}},
      {{"a", "", true}, {"a", "abc", true}},
      {{"a", "abc", true}, {"a", "", true}},
      {{"a", "\np 1 1 a\n", true}, {"a", "abc", true}},
      {{"a", "ab\np 1 1 a\nc", true}, {"", "", true}},
  };
  char seen[9][33], portable[33];
  size_t n = sizeof pairs / sizeof pairs[0];

  for (size_t i = 0; i < n; i++)
    hash_of(pairs[i], 2, seen[i], portable);
  {
    /* This value would look like two fields if the key did not store the
     * sizes. */
    static const field one[] = {{"a", "ab\np a\nc", true}};

    hash_of(one, 1, seen[n++], portable);
  }
  for (size_t i = 0; i < n; i++) {
    for (size_t j = i + 1; j < n; j++)
      ck_assert_str_ne(seen[i], seen[j]);
  }
}
END_TEST

START_TEST(fields_are_read_back)
{
  static const char odd[] = "two\nlines\0and a NUL";
  kiln__key key;
  kiln__field f;
  size_t at = 0;

  kiln__key_init(&key, &mem.alloc);
  kiln__key_add(&key, "first", odd, sizeof odd, true);
  kiln__key_add(&key, "empty", "", 0, false);
  kiln__key_add(&key, "p 1 1 x", "9", 1, true);
  ck_kiln_ok(kiln__key_seal(&key));

  ck_assert(kiln__key_next(key.text.data, key.text.size, &at, &f));
  ck_assert(f.name_size == 5 && memcmp(f.name, "first", 5) == 0 && f.portable);
  ck_assert(f.size == sizeof odd && memcmp(f.value, odd, sizeof odd) == 0);
  ck_assert(kiln__key_next(key.text.data, key.text.size, &at, &f));
  ck_assert(f.name_size == 5 && f.size == 0 && !f.portable);
  ck_assert(kiln__key_next(key.text.data, key.text.size, &at, &f));
  ck_assert(f.name_size == 7 && f.size == 1 && f.value[0] == '9');
  ck_assert(!kiln__key_next(key.text.data, key.text.size, &at, &f));
  ck_assert_uint_eq(at, key.text.size);

  /* If the key's text is truncated at any byte, the iteration ends without
   * reading past the end. The copy has the exact length, so that the sanitizers
   * detect a read past the end. */
  for (size_t n = 0; n < key.text.size; n++) {
    char *cut = kiln__alloc(&mem.alloc, n);

    memcpy(cut, key.text.data, n);
    at = 0;
    while (kiln__key_next(cut, n, &at, &f))
      ck_assert_uint_le(at, n);
    ck_assert_uint_lt(at, key.text.size);
    kiln__free(&mem.alloc, cut);
  }
  kiln__key_free(&key);
}
END_TEST

START_TEST(malformed_text_ends_the_walk)
{
  static const char *const bad[] = {"",
                                    "p",
                                    "x 1 1 a\nb\n",
                                    "p  1 a\nb\n",
                                    "p 1 a\nb\n",
                                    "p 1 9 a\nb\n",
                                    "p 9 1 a\nb\n",
                                    "p 1 1 ab\nb\n",
                                    "p 1 1 a\nbb\n",
                                    "p 99999999999999999999 1 a\nb\n",
                                    "p 1 99999999999999999999999999999 a\nb\n",
                                    "p -1 1 a\nb\n"};
  kiln__field f;

  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    size_t at = 0;

    ck_assert_msg(!kiln__key_next(bad[i], strlen(bad[i]), &at, &f), "%s",
                  bad[i]);
    ck_assert_uint_eq(at, 0);
  }
}
END_TEST

START_TEST(memory_runs_out)
{
  for (long i = 0;; i++) {
    kiln_status st;
    kiln__key key;

    mem.calls = 0;
    mem.fail_at = i;
    kiln__key_init(&key, &mem.alloc);
    for (int k = 0; k < 20; k++)
      kiln__key_add(&key, "field", "some value that fills a buffer", 30,
                    k % 2 == 0);
    st = kiln__key_seal(&key);
    kiln__key_free(&key);
    ck_assert_int_eq(mem.live, 0);
    if (st == KILN_OK) {
      ck_assert_int_ge(i, 4);
      break;
    }
    ck_kiln_is(st, KILN_ENOMEM);
  }
}
END_TEST

int main(void)
{
  return kiln_test_main("cache key", 0, begin, end,
                        TESTS(hash_is_stable, each_field_counts,
                              fields_do_not_run_together, fields_are_read_back,
                              malformed_text_ends_the_walk, memory_runs_out));
}

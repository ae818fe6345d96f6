/* nvrtc_memo_test.c -- tests the memo, a file in which processes store the
 * NVRTC libraries that they found, and the identification of library files. */
#include "nvrtc_fixture.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <elf.h>

/* ---- Memo ---------------------------------------------------------------- */

static int slow_steps;

static void count_step(void *user, const kiln_trail_step *s)
{
  int *n = user;

  ck_assert_str_eq(s->what, "libnvrtc");
  (*n)++;
}

START_TEST(warm_start_loads_nothing)
{
  const char *path = put(FAKE, "usr/local/cuda/lib64", "libnvrtc.so.12", NULL);
  kiln__nvrtc_set *set;
  const kiln__nvrtc_id *ids;
  const kiln__nvrtc *nvrtc;
  kiln__trail *cold;
  struct stat info;
  uint64_t begin, took;
  size_t n;
  int steps = 0;

  places.memo_path = memo;
  age();
  list_elsewhere();
  ck_assert_int_eq(stat(memo, &info), 0);
  ck_assert_int_eq(info.st_mode & 0777, 0600);
  ck_assert_int_eq(stat(below("cache/deep"), &info), 0);
  ck_assert_int_eq(info.st_mode & 0777, 0700);

  set = open_set();
  begin = kiln__clock_ns();
  ck_kiln_ok(kiln__nvrtc_list(set, &ids, &n));
  took = kiln__clock_ns() - begin;
  printf("warm list: %.0f us\n", (double)took / 1e3);
  ck_assert(!mapped(path));
  ck_assert_uint_eq(n, 1);
  ck_assert_int_eq(ids[0].info.version, 12080);
  ck_assert_str_eq(ids[0].info.path, path);
  ck_assert_uint_eq(ids[0].info.n_archs, 17);
  ck_assert(!ids[0].info.loaded);
  ck_assert_int_ne(ids[0].build[0], '\0');
  ck_assert_int_eq(stat(path, &info), 0);
  ck_assert_uint_eq(ids[0].size, (uint64_t)info.st_size);

  /* The record of searched places (the trail) lists the same places as in the
   * first search. */
  kiln__trail_each(trail, count_step, &steps);
  cold = trail;
  trail = kiln__trail_create(&memory.alloc);
  places.memo_path = NULL;
  versions_here();
  slow_steps = 0;
  kiln__trail_each(trail, count_step, &slow_steps);
  ck_assert_int_eq(steps, slow_steps);
  kiln__trail_free(cold);

  /* Using a library loads it. The array of the earlier call stays valid and
   * unchanged. */
  ck_kiln_ok(kiln__nvrtc_use(set, 0, &nvrtc));
  ck_assert(mapped(path));
  ck_assert(!ids[0].info.loaded);
  ck_kiln_ok(kiln__nvrtc_list(set, &ids, &n));
  ck_assert(ids[0].info.loaded);
  kiln__nvrtc_set_free(set);

  /* Other load on the machine may slow down one measurement, but not all
   * measurements. */
  places.memo_path = memo;
  for (int again = 0; took >= 20000000u && again < 4; again++) {
    set = open_set();
    begin = kiln__clock_ns();
    ck_kiln_ok(kiln__nvrtc_list(set, &ids, &n));
    took = kiln__clock_ns() - begin;
    kiln__nvrtc_set_free(set);
  }
  ck_assert_uint_lt(took, 20000000u);
}
END_TEST

START_TEST(memo_notices_changes)
{
  places.memo_path = memo;
  setenv("CUDA_PATH", below("mine"), 1);
  put(FAKE, "usr/local/cuda/lib64", "libnvrtc.so.12", NULL);
  age();
  list_elsewhere();
  ck_assert_str_eq(versions(), "12080 ");

  /* Add a library to a folder that was searched. */
  put(FAKE, "usr/local/cuda/lib64", "libnvrtc.so.13", NULL);
  ck_assert_str_eq(versions(), "13000 12080 ");
  /* Add a library in a folder that did not exist during the search. */
  age();
  list_elsewhere();
  put(FAKE, "usr/lib/python3/dist-packages/nvidia/cu13/lib", "libnvrtc.so.13",
      "version 13010\n");
  ck_assert_str_eq(versions(), "13010 13000 12080 ");
  age();
  list_elsewhere();
  put(FAKE, "usr/lib/python3/dist-packages/nvidia/cu14/lib", "libnvrtc.so.14",
      "version 14000\n");
  ck_assert_str_eq(versions(), "14000 13010 13000 12080 ");
  age();
  list_elsewhere();
  put(FAKE, "mine/lib64", "libnvrtc.so.12", "version 12010\n");
  ck_assert_str_eq(versions(), "14000 13010 13000 12080 12010 ");
  /* Remove a library. */
  age();
  list_elsewhere();
  ck_assert_int_eq(unlink(below("mine/lib64/libnvrtc.so.12")), 0);
  ck_assert_str_eq(versions(), "14000 13010 13000 12080 ");
}
END_TEST

START_TEST(memo_notices_a_replaced_library)
{
  const char *path = put(FAKE, "usr/local/cuda/lib64", "libnvrtc.so.12", NULL);
  char before[48], again[512];
  kiln__nvrtc_set *set;
  const kiln__nvrtc_id *ids;
  size_t n;
  FILE *f;

  places.memo_path = memo;
  age();
  list_elsewhere();
  set = open_set();
  ck_kiln_ok(kiln__nvrtc_list(set, &ids, &n));
  memcpy(before, ids[0].build, sizeof before);
  kiln__nvrtc_set_free(set);

  /* Change a library in place: the file is one byte longer and has another
   * version. */
  f = fopen(path, "ab");
  ck_assert_ptr_nonnull(f);
  fputc(0, f);
  fclose(f);
  snprintf(again, sizeof again, "%s.fake", path);
  test_write_file(again, "version 12050\n", 14);
  ck_assert_str_eq(versions(), "12050 ");
}
END_TEST

START_TEST(memo_notices_a_turned_link)
{
  const char *one = put(FAKE, "one", "libnvrtc.so.12", "version 12010\n");
  const char *two = put(FAKE, "two", "libnvrtc.so.12", "version 12020\n");

  /* The library is found through a chain of symbolic links:
   * usr/local/cuda/lib64/libnvrtc.so.12 -> alternatives/nvrtc -> one/... */
  below("alternatives/");
  below("usr/local/cuda/lib64/");
  ck_assert_int_eq(symlink(one, below("alternatives/nvrtc")), 0);
  ck_assert_int_eq(symlink(below("alternatives/nvrtc"),
                           below("usr/local/cuda/lib64/libnvrtc.so.12")),
                   0);
  places.memo_path = memo;
  age();
  list_elsewhere();
  ck_assert_str_eq(versions(), "12010 ");
  ck_assert_int_eq(unlink(below("alternatives/nvrtc")), 0);
  ck_assert_int_eq(symlink(two, below("alternatives/nvrtc")), 0);
  ck_assert_str_eq(versions(), "12020 ");
  /* The option nvrtc_path names a symbolic link whose target changes. */
  places.explicit_path = below("alternatives/nvrtc");
  list_elsewhere();
  ck_assert_str_eq(versions(), "12020 ");
  ck_assert_int_eq(unlink(places.explicit_path), 0);
  ck_assert_int_eq(symlink(one, places.explicit_path), 0);
  ck_assert_str_eq(versions(), "12010 ");
}
END_TEST

START_TEST(memo_keeps_several_answers)
{
  const char *path = put(FAKE, "x", "own.so", "version 12010\n");

  put(FAKE, "usr/local/cuda/lib64", "libnvrtc.so.12", NULL);
  places.memo_path = memo;
  age();
  list_elsewhere();
  places.explicit_path = path;
  list_elsewhere();
  ck_assert_str_eq(versions_here(), "12010 ");
  places.explicit_path = NULL;
  ck_assert_str_eq(versions_here(), "12080 ");
  ck_assert(!mapped(root));
  setenv("CUDA_HOME", below("elsewhere"), 1);
  /* CUDA_HOME changes the search, but the memo already describes the library
   * that is found. */
  ck_assert_str_eq(versions_here(), "12080 ");
  ck_assert(!mapped(root));
}
END_TEST

START_TEST(broken_library_is_not_loaded_again)
{
  const char *path =
      put(FAKE_BROKEN, "usr/local/cuda/lib64", "libnvrtc.so.13", NULL);
  size_t size;
  char *data;

  put(FAKE, "usr/local/cuda/lib64", "libnvrtc.so.12", NULL);
  places.memo_path = memo;
  age();
  list_elsewhere();
  data = test_read_file(memo, &size);
  ck_contains(data, "libnvrtc.so.13");
  free(data);
  ck_assert_str_eq(versions_here(), "12080 ");
  ck_assert(!mapped(root));
  /* The broken library is replaced by a working one in the same file. */
  data = test_read_file(FAKE, &size);
  test_write_file(path, data, size);
  free(data);
  ck_assert_str_eq(versions_here(), "13000 12080 ");
}
END_TEST

static int answers_in_memo(void)
{
  size_t size;
  char *data = test_read_file(memo, &size);
  int n = 0;

  for (const char *at = strstr(data, "\nfind\t"); at != NULL;
       at = strstr(at + 1, "\nfind\t"))
    n++;
  free(data);
  return n;
}

START_TEST(what_changed_just_now_is_not_remembered)
{
  places.memo_path = memo;
  places.explicit_path =
      put(FAKE, "usr/local/cuda/lib64", "libnvrtc.so.12", NULL);
  age();
  ck_assert_int_eq(utimensat(AT_FDCWD, places.explicit_path, NULL, 0), 0);
  ck_assert_str_eq(versions(), "12080 ");
  ck_assert_int_eq(answers_in_memo(), 0);
  age();
  ck_assert_str_eq(versions(), "12080 ");
  ck_assert_int_eq(answers_in_memo(), 1);
}
END_TEST

START_TEST(memo_has_one_answer_a_search)
{
  char name[64];

  places.memo_path = memo;
  put(FAKE, "usr/local/cuda/lib64", "libnvrtc.so.12", NULL);
  age();
  list_elsewhere();
  setenv("CUDA_HOME", below("elsewhere"), 1);
  list_elsewhere();
  ck_assert_int_eq(answers_in_memo(), 2);
  put(FAKE, "usr/local/cuda/lib64", "libnvrtc.so.13", NULL);
  age();
  list_elsewhere();
  ck_assert_int_eq(answers_in_memo(), 2);
  /* Searches with many different settings must not make the memo grow for
   * ever. */
  for (int i = 0; i < 20; i++) {
    snprintf(name, sizeof name, "elsewhere%d", i);
    setenv("CUDA_HOME", below(name), 1);
    list_elsewhere();
  }
  ck_assert_int_eq(answers_in_memo(), 8);
}
END_TEST

START_TEST(success_leaves_the_error_record_alone)
{
  put(FAKE_BROKEN, "usr/local/cuda/lib64", "libnvrtc.so.13", NULL);
  put(FAKE, "usr/local/cuda/lib64", "libnvrtc.so.12", NULL);
  kiln__fail(KILN_EINVAL, NULL, "an earlier failure");
  ck_assert_str_eq(versions_here(), "12080 ");
  ck_assert_str_eq(kiln_last_error()->message, "an earlier failure");
}
END_TEST

/* Replaces `from` by `to` in the memo and updates its checksum. */
static void forge(const char *from, const char *to)
{
  char sum[32], *data, *at, *made;
  size_t size, kept;

  data = test_read_file(memo, &size);
  made = malloc(size + strlen(to) + 32);
  at = strstr(data, from);
  ck_assert_ptr_nonnull(at);
  kept = (size_t)(at - data);
  memcpy(made, data, kept);
  strcpy(made + kept, to);
  strcat(made, at + strlen(from));
  at = strstr(made, "\nsum\t") + 1;
  snprintf(sum, sizeof sum, "sum\t%016llx\n",
           (unsigned long long)XXH3_64bits(made, (size_t)(at - made)));
  strcpy(at, sum);
  test_write_file(memo, made, strlen(made));
  free(made);
  free(data);
}

START_TEST(memo_of_others_is_ignored)
{
  places.memo_path = memo;
  put(FAKE, "usr/local/cuda/lib64", "libnvrtc.so.12", NULL);
  age();
  list_elsewhere();
  forge("\t12080\t", "\t12070\t");
  /* A memo that only this user can write is trusted, so the forged version is
   * reported. */
  ck_assert_str_eq(versions(), "12070 ");
  ck_assert_int_eq(chmod(memo, 0620), 0);
  ck_assert_str_eq(versions(), "12080 ");
  list_elsewhere();
  forge("\t12080\t", "\t12070\t");
  ck_assert_int_eq(chmod(memo, 0602), 0);
  ck_assert_str_eq(versions(), "12080 ");
  forge("\t12080\t", "\t12070\t");
  ck_assert_int_eq(rename(memo, below("moved")), 0);
  ck_assert_int_eq(symlink(below("moved"), memo), 0);
  ck_assert_str_eq(versions(), "12080 ");
  if (geteuid() == 0) {
    forge("\t12080\t", "\t12070\t");
    ck_assert_int_eq(chown(memo, 1234, 1234), 0);
    ck_assert_str_eq(versions(), "12080 ");
  }
}
END_TEST

/* A memo in a folder that other users may write to, or behind another user's
 * symbolic link, is neither read nor written. */
START_TEST(memo_stays_out_of_others_folders)
{
  put(FAKE, "usr/local/cuda/lib64", "libnvrtc.so.12", NULL);
  places.memo_path = memo;
  below("cache/deep/");
  ck_assert_int_eq(chmod(below("cache/deep"), 0777), 0);
  age();
  ck_assert_str_eq(versions(), "12080 ");
  ck_assert_int_ne(access(memo, F_OK), 0);
  ck_assert_int_eq(chmod(below("cache/deep"), 0700), 0);
  ck_assert_str_eq(versions(), "12080 ");
  ck_assert_int_eq(access(memo, F_OK), 0);
  forge("\t12080\t", "\t12070\t");
  ck_assert_int_eq(chmod(below("cache/deep"), 0777), 0);
  /* Other users may write to the folder, so this memo is not trusted. */
  ck_assert_str_eq(versions(), "12080 ");
  if (geteuid() == 0) {
    below("target/");
    ck_assert_int_eq(symlink(below("target"), below("link")), 0);
    ck_assert_int_eq(lchown(below("link"), 1234, 1234), 0);
    places.memo_path = below("link/nvrtc.memo");
    ck_assert_str_eq(versions(), "12080 ");
    ck_assert_int_ne(access(below("target/nvrtc.memo"), F_OK), 0);
  }
}
END_TEST

/* The memo still describes a library after it was removed. */
START_TEST(memo_remembers_what_is_gone)
{
  const char *path = put(FAKE, "usr/local/cuda/lib64", "libnvrtc.so.12", NULL);
  const kiln__nvrtc *nvrtc;
  const kiln__nvrtc_id *ids;
  kiln__nvrtc_set *set;
  bool gone;
  size_t n;

  places.memo_path = memo;
  age();
  list_elsewhere();
  ck_assert_int_eq(unlink(path), 0);
  set = open_set();
  ck_kiln_ok(kiln__nvrtc_known(set, &ids, &n, &gone));
  ck_assert(gone);
  ck_assert_uint_eq(n, 1);
  ck_assert_int_eq(ids[0].info.version, 12080);
  ck_assert_str_eq(ids[0].info.path, path);
  ck_kiln_is(kiln__nvrtc_list(set, &ids, &n), KILN_ENONVRTC);
  ck_assert_uint_eq(n, 0);
  ck_kiln_is(kiln__nvrtc_use(set, 0, &nvrtc), KILN_ENONVRTC);
  ck_contains(kiln_last_error()->message, "no NVRTC: tried");
  kiln__nvrtc_set_free(set);
}
END_TEST

START_TEST(memo_of_another_format_is_ignored)
{
  places.memo_path = memo;
  put(FAKE, "usr/local/cuda/lib64", "libnvrtc.so.12", NULL);
  age();
  list_elsewhere();
  forge("\t12080\t", "\t12070\t");
  forge("kiln-nvrtc 1\n", "kiln-nvrtc 2\n");
  ck_assert_str_eq(versions(), "12080 ");
}
END_TEST

START_TEST(memo_fields_out_of_range)
{
  static const char *const edits[][2] = {
      {"\t12080\t", "\t99999999999999999999\t"},
      {"\t12080\t", "\t-12080\t"},
      {"\t12080\t", "\t\t"},
      {"\t12080\t", "\t12080"},
      {"\t50,52,", "\t50,,52,"},
      {"\t50,52,", "\t0,52,"},
      {"\t50,52,", "\tx,52,"},
      {"\nend\n", "\n"},
      {"\nhit\t", "\nhit\t/nonexistent"},
      {"\nhit\t", "\nmiss\t"},
      {"\nlib\t", "\nlib"},
      {"\nwatch\t", "\nwatch\t\t"},
  };

  places.memo_path = memo;
  put(FAKE, "usr/local/cuda/lib64", "libnvrtc.so.12", NULL);
  age();
  for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
    unlink(memo);
    list_elsewhere();
    forge(edits[i][0], edits[i][1]);
    ck_assert_msg(strcmp(versions(), "12080 ") == 0, "edit %zu: %s", i,
                  versions());
  }
}
END_TEST

START_TEST(memo_damaged_anywhere)
{
  char *data;
  size_t size;

  places.memo_path = memo;
  put(FAKE, "usr/local/cuda/lib64", "libnvrtc.so.12", NULL);
  age();
  list_elsewhere();
  data = test_read_file(memo, &size);
  for (size_t i = 0; i < size; i += 1 + size / (size_t)test_rounds(300)) {
    data[i] = (char)(data[i] ^ (1 << i % 8));
    test_write_file(memo, data, size);
    ck_assert_str_eq(versions(), "12080 ");
    data[i] = (char)(data[i] ^ (1 << i % 8));
  }
  for (size_t n = 0; n < size; n += 1 + size / (size_t)test_rounds(60)) {
    test_write_file(memo, data, n);
    ck_assert_str_eq(versions(), "12080 ");
  }
  free(data);
}
END_TEST

START_TEST(memo_that_cannot_be_written)
{
  put(FAKE, "usr/local/cuda/lib64", "libnvrtc.so.12", NULL);
  test_write_file(below("file"), "x", 1);
  /* The path of the memo's folder names a file. */
  places.memo_path = below("file/nvrtc.memo");
  kiln__fail(KILN_EINVAL, NULL, "an earlier failure");
  ck_assert_str_eq(versions_here(), "12080 ");
  /* A successful call leaves the error record unchanged, even if the memo
   * cannot be written. */
  ck_assert_str_eq(kiln_last_error()->message, "an earlier failure");
  places.memo_path = "/proc/nvrtc.memo";
  ck_assert_str_eq(versions(), "12080 ");
  places.memo_path = below("folder/");
  ck_assert_str_eq(versions(), "12080 ");
}
END_TEST

START_TEST(odd_characters_in_paths)
{
  put(FAKE, "odd\tname\nhere/lib64", "libnvrtc.so.12", NULL);
  setenv("CUDA_PATH", below("odd\tname\nhere"), 1);
  places.memo_path = memo;
  age();
  list_elsewhere();
  ck_assert_str_eq(versions(), "12080 ");
  put(FAKE, "\xc3\xa4 b/lib64", "libnvrtc.so.13", NULL);
  setenv("CUDA_PATH", below("\xc3\xa4 b"), 1);
  age();
  list_elsewhere();
  ck_assert_str_eq(versions(), "13000 ");
}
END_TEST

/* ---- Identification of a library file ----------------------------------- */

enum { ELF_SIZE = 300000 };

/* Makes an ELF file that contains a note of another kind and then a build id of
 * `size` bytes. */
static void make_elf(unsigned char *out, unsigned size)
{
  const Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64},
                           .e_phoff = sizeof head,
                           .e_phentsize = sizeof(Elf64_Phdr),
                           .e_phnum = 2};
  const Elf64_Nhdr other = {.n_namesz = 4, .n_descsz = 3, .n_type = 1};
  const Elf64_Nhdr id = {
      .n_namesz = 4, .n_descsz = size, .n_type = NT_GNU_BUILD_ID};
  const Elf64_Phdr segments[2] = {
      {.p_type = PT_LOAD},
      {.p_type = PT_NOTE, .p_offset = 256, .p_filesz = 36 + size}};
  unsigned char *at = out + 256;

  memset(out, 0x55, ELF_SIZE);
  memcpy(out, &head, sizeof head);
  memcpy(out + sizeof head, segments, sizeof segments);
  memcpy(at, &other, sizeof other);
  memcpy(at + 12, "XYZ", 4);
  memcpy(at + 20, &id, sizeof id);
  memcpy(at + 32, "GNU", 4);
  for (unsigned i = 0; i < size; i++)
    at[36 + i] = (unsigned char)(i + 1);
}

static const char *build_of(const unsigned char *data, size_t size)
{
  static char out[2][48];
  static int turn;
  char *build = out[turn++ % 2];

  test_write_file(below("lib.so"), data, size);
  return kiln__library_build(below("lib.so"), build) ? build : "none";
}

START_TEST(build_id_identifies)
{
  unsigned char *data = malloc(ELF_SIZE);
  char before[48];

  make_elf(data, 20);
  ck_assert_str_eq(build_of(data, ELF_SIZE),
                   "id-0102030405060708090a0b0c0d0e0f1011121314");
  /* With a build id, changes outside the ELF notes do not affect the
   * identity. */
  data[ELF_SIZE - 1] ^= 1;
  ck_assert_str_eq(build_of(data, ELF_SIZE),
                   "id-0102030405060708090a0b0c0d0e0f1011121314");
  /* This build id is too long for the identity, so it is hashed. */
  make_elf(data, 32);
  strcpy(before, build_of(data, ELF_SIZE));
  ck_assert_int_eq(strncmp(before, "id-", 3), 0);
  ck_assert_uint_eq(strlen(before), 35);
  data[256 + 36 + 31] ^= 1;
  ck_assert_str_ne(build_of(data, ELF_SIZE), before);
  /* This build id is too short to identify the file, so it is not used. */
  make_elf(data, 4);
  ck_assert_int_eq(strncmp(build_of(data, ELF_SIZE), "fx-", 3), 0);
  free(data);
}
END_TEST

START_TEST(without_build_id_pieces_identify)
{
  unsigned char *data = malloc(ELF_SIZE);
  char before[48];

  memset(data, 0x55, ELF_SIZE);
  strcpy(before, build_of(data, ELF_SIZE));
  ck_assert_int_eq(strncmp(before, "fx-", 3), 0);
  ck_assert_str_eq(build_of(data, ELF_SIZE), before);
  ck_assert_str_ne(build_of(data, ELF_SIZE - 1), before);
  /* A change of the first or the last byte changes the identity. */
  for (size_t at = 0; at < ELF_SIZE; at += ELF_SIZE - 1) {
    data[at] ^= 1;
    ck_assert_str_ne(build_of(data, ELF_SIZE), before);
    data[at] ^= 1;
  }
  ck_assert_str_ne(build_of(data, 1), before);
  ck_assert_str_eq(build_of(data, 0), "none");
  ck_assert(!kiln__library_build(root, before));
  ck_assert(!kiln__library_build("/nonexistent", before));
  free(data);
}
END_TEST

START_TEST(damaged_elf_does_no_harm)
{
  unsigned char *data = malloc(ELF_SIZE);
  uint64_t seed = 88172645463325252u;

  make_elf(data, 20);
  for (size_t n = 1; n < 400; n++)
    build_of(data, n);
  for (int i = 0; i < 2000; i++) {
    const size_t at = test_random(&seed) % 320;
    const unsigned char was = data[at];

    data[at] = (unsigned char)test_random(&seed);
    build_of(data, 400);
    data[at] = was;
  }
  free(data);
}
END_TEST

int main(void)
{
  return kiln_test_main(
      "nvrtc_memo", 60, setup, teardown,
      TESTS(warm_start_loads_nothing, memo_notices_changes,
            memo_notices_a_replaced_library, memo_notices_a_turned_link,
            memo_keeps_several_answers, broken_library_is_not_loaded_again,
            what_changed_just_now_is_not_remembered,
            memo_has_one_answer_a_search, success_leaves_the_error_record_alone,
            memo_of_others_is_ignored, memo_stays_out_of_others_folders,
            memo_remembers_what_is_gone, memo_of_another_format_is_ignored,
            memo_fields_out_of_range, memo_damaged_anywhere,
            memo_that_cannot_be_written, odd_characters_in_paths,
            build_id_identifies, without_build_id_pieces_identify,
            damaged_elf_does_no_harm));
}

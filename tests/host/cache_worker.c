/* cache_worker.c -- a process that fetches one key. The cache tests start many
 * of these processes.
 *
 *   cache_worker FOLDER NAME COUNTFILE MS
 *
 * The process waits for the end of its standard input and then fetches NAME. A
 * compile takes MS milliseconds and appends a byte to COUNTFILE. The exit code
 * is 0 if the result is correct. */
#include "cache_fixture.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { SIZE = 5000 };

typedef struct compile {
  maker maker;
  const char *count_file;
} compile;

static kiln_status run_compile(void *user, kiln__entry **out)
{
  compile *c = user;
  const int fd = open(c->count_file, O_WRONLY | O_APPEND | O_CREAT, 0600);

  if (fd < 0 || write(fd, "x", 1) != 1)
    return kiln__fail(KILN_EIO, NULL, "cannot count");
  close(fd);
  return maker_run(&c->maker, out);
}

int main(int argc, char **argv)
{
  kiln_allocator alloc = {0};
  kiln__cache_config config = {.alloc = &alloc, .wait_ms = 20000};
  kiln__cache *cache;
  kiln__entry *entry = NULL;
  kiln_origin origin;
  kiln__key key;
  compile c;
  kiln__fetch f = {.key = &key, .make = run_compile, .user = &c};
  char byte;
  bool right;

  if (argc != 5)
    return 2;
  kiln__allocator_default(&alloc);
  config.dir = argv[1];
  key_make(&key, &alloc, argv[2]);
  c = (compile){.maker = {&alloc, &key, argv[2], SIZE,
                          (unsigned)strtoul(argv[4], NULL, 10), KILN_OK, 0},
                .count_file = argv[3]};
  if (kiln__cache_open(&cache, &config) != KILN_OK)
    return 3;
  while (read(STDIN_FILENO, &byte, 1) > 0)
    continue;
  right = kiln__cache_fetch(cache, &f, &entry, &origin) == KILN_OK &&
          image_is(entry, argv[2], SIZE);
  kiln__entry_unref(entry);
  kiln__cache_close(cache);
  kiln__key_free(&key);
  return right ? 0 : 1;
}

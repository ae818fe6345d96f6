/* record_file.c -- appends records to the record file of a profiled process.
 *
 * Problem: the file must be readable whenever the process ends, by exit(), by a
 * signal that cannot be caught, or in the middle of a record. Memory must stay
 * bounded, and a record should cost no system call.
 *
 * Idea: the file is mapped and records are copied into the mapping. What was
 * stored there is in the page cache and survives the process. The writer stores
 * the type of a record last, so that a reader stops before an incomplete record.
 *
 * Invariant: all bytes of the file behind the last record are zero. Space is
 * reserved before it is mapped, so that a full disk is an error code and not a
 * signal.
 *
 * Cost: one uncontended lock and a copy of at most a hundred bytes per record,
 * two system calls per window of 4 MiB. */
#include "inject.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WINDOW = PROFILE_LEAST_LIMIT, SLOTS = 2 * PROFILE_MOST_NAMES };

static const uint64_t default_limit = (uint64_t)4 << 30;

/* A text that has a number, in a hash table with linear probing. */
typedef struct slot {
  uint64_t hash;
  char *text;
  uint32_t number;
} slot;

static struct {
  pthread_mutex_t lock;
  atomic_int fd; /* -1 before the file is open and after it is closed */
  pid_t pid;
  uint64_t limit, start; /* `start`: position of the window in the file */
  size_t used;           /* bytes used in the window */
  uint8_t *window;       /* NULL after a failure */
  uint64_t lost, lost_written;
  slot *slots;
  uint32_t n_names;
} file = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* Maps the window of the file that begins at `start`. */
static bool map_window(uint64_t start)
{
  void *at;

  if (start + WINDOW > file.limit ||
      posix_fallocate(file.fd, (off_t)start, WINDOW) != 0)
    return false;
  at = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd,
            (off_t)start);
  if (at == MAP_FAILED)
    return false;
  file.window = at;
  file.start = start;
  return true;
}

/* Moves the window so that `size` more bytes fit into it. A record may not
 * cross windows, so the next window begins at the page of the current end. */
static bool make_space(size_t size)
{
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const uint64_t end = file.start + file.used;
  const uint64_t next = end / page * page;

  if (file.window == NULL || file.used + size <= WINDOW)
    return file.window != NULL;
  munmap(file.window, WINDOW);
  file.window = NULL;
  if (!map_window(next))
    return false;
  file.used = (size_t)(end - next);
  return true;
}

static void write_lost(void)
{
  file.lost_written = file.lost;
  (void)!pwrite(file.fd, &file.lost, sizeof file.lost,
                offsetof(profile_header, dropped));
}

/* Counts lost records. The count is in the file's header, which needs no
 * further space. It is written for the first and for every thousandth record,
 * and when the file is closed. */
static void lose(uint64_t n)
{
  file.lost += n;
  if (file.lost_written == 0 || file.lost - file.lost_written >= 1000)
    write_lost();
}

static void append(const profile_record *record)
{
  uint8_t *at;
  profile_record head = *record;

  if (!make_space(record->size)) {
    lose(1);
    return;
  }
  at = file.window + file.used;
  memcpy(at + sizeof head, (const uint8_t *)record + sizeof head,
         record->size - sizeof head);
  head.type = 0;
  memcpy(at, &head, sizeof head);
  __atomic_store_n((uint16_t *)(void *)at, record->type, __ATOMIC_RELEASE);
  file.used += record->size;
}

/* Takes the lock if the file is open and this is not a forked child. */
static bool enter(void)
{
  if (file.fd < 0 || getpid() != file.pid)
    return false;
  pthread_mutex_lock(&file.lock);
  if (file.fd >= 0)
    return true;
  pthread_mutex_unlock(&file.lock);
  return false;
}

static void leave(void)
{
  pthread_mutex_unlock(&file.lock);
}

void kiln__record_put(const profile_record *record)
{
  if (!enter())
    return;
  append(record);
  leave();
}

void kiln__record_lost(uint64_t n)
{
  if (n == 0 || !enter())
    return;
  lose(n);
  leave();
}

/* ---- Names ---------------------------------------------------------------- */

/* Appends a text as a record of the given type. */
static void append_text(profile_type type, uint32_t number, const char *text,
                        size_t n)
{
  union {
    profile_name name;
    char bytes[sizeof(profile_record) + PROFILE_MOST_TEXT + 8];
  } r;
  const size_t size = (sizeof(profile_record) + n + 8) / 8 * 8;

  memset(r.bytes, 0, size);
  r.name.head = (profile_record){
      .type = (uint16_t)type, .size = (uint16_t)size, .name = number};
  memcpy(r.bytes + sizeof(profile_record), text, n);
  append(&r.name.head);
}

/* Computes the FNV-1a hash of a text. */
static uint64_t hash_of(const char *text, size_t n)
{
  uint64_t h = 14695981039346656037u;

  for (size_t i = 0; i < n; i++)
    h = (h ^ (unsigned char)text[i]) * 1099511628211u;
  return h;
}

/* Fills an unused slot. The last number is for all names that do not fit. */
static uint32_t new_name(slot *s, uint64_t hash, const char *text, size_t n)
{
  static const char others[] = "(others)";

  if (file.n_names + 1 >= PROFILE_MOST_NAMES) {
    if (file.n_names + 1 == PROFILE_MOST_NAMES)
      append_text(PROFILE_NAME, ++file.n_names, others, sizeof others - 1);
    return PROFILE_MOST_NAMES;
  }
  s->text = malloc(n + 1);
  if (s->text == NULL)
    return 0;
  memcpy(s->text, text, n);
  s->text[n] = '\0';
  s->hash = hash;
  s->number = ++file.n_names;
  append_text(PROFILE_NAME, s->number, text, n);
  return s->number;
}

uint32_t kiln__record_name(const char *text)
{
  const size_t n = text == NULL ? 0 : strnlen(text, PROFILE_MOST_TEXT - 1);
  const uint64_t hash = hash_of(text, n);
  uint32_t number = 0;
  size_t i;

  if (n == 0 || !enter())
    return 0;
  for (i = hash % SLOTS; file.slots[i].text != NULL; i = (i + 1) % SLOTS) {
    if (file.slots[i].hash == hash &&
        strncmp(file.slots[i].text, text, n) == 0 &&
        file.slots[i].text[n] == '\0')
      break;
  }
  number = file.slots[i].text != NULL ? file.slots[i].number
                                      : new_name(&file.slots[i], hash, text, n);
  leave();
  return number;
}

void kiln__record_note(const char *format, ...)
{
  char text[1024];
  va_list args;
  int n;

  va_start(args, format);
  n = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (n < 0 || !enter())
    return;
  append_text(PROFILE_NOTE, 0, text, strlen(text));
  leave();
}

/* ---- Opening and closing --------------------------------------------------- */

static const char *variable(const char *name)
{
  const char *value = secure_getenv(name);

  return value == NULL || *value == '\0' ? NULL : value;
}

uint32_t kiln__record_thread(void)
{
  static _Thread_local uint32_t id;

  if (id == 0)
    id = (uint32_t)syscall(SYS_gettid);
  return id;
}

bool kiln__inject_calls(void)
{
  const char *value = variable(PROFILE_CALLS_VARIABLE);

  return value == NULL || strcmp(value, "0") != 0;
}

/* Creates a file with an unused name. A process that calls exec() keeps its
 * number, so the name may exist. */
static int create_file(const char *dir)
{
  char path[4096], number[16] = "";
  int fd = -1;

  for (int i = 0; i < 1000 && fd < 0; i++) {
    if (i > 0)
      snprintf(number, sizeof number, ".%d", i);
    if (snprintf(path, sizeof path, "%s/%ld%s%s", dir, (long)getpid(), number,
                 PROFILE_SUFFIX) >= (int)sizeof path)
      return -1;
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno != EEXIST)
      return -1;
  }
  return fd;
}

static void put_header(profile_source source, uint32_t version,
                       uint64_t begin_ns)
{
  profile_header *h = (profile_header *)(void *)file.window;
  struct timespec now;

  clock_gettime(CLOCK_REALTIME, &now);
  h->pid = (uint32_t)getpid();
  h->parent = (uint32_t)getppid();
  h->source = source;
  h->version = version;
  h->begin_ns = begin_ns;
  h->real_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
  snprintf(h->program, sizeof h->program, "%s", program_invocation_short_name);
  memcpy(h->magic, PROFILE_MAGIC, sizeof h->magic);
  file.used = sizeof *h;
}

bool kiln__record_open(profile_source source, uint32_t version,
                       uint64_t begin_ns)
{
  const char *dir = variable(PROFILE_DIR_VARIABLE);
  const char *limit = variable(PROFILE_LIMIT_VARIABLE);

  file.fd = dir == NULL ? -1 : create_file(dir);
  if (file.fd < 0)
    return false;
  file.pid = getpid();
  file.limit = limit == NULL ? default_limit : strtoull(limit, NULL, 10);
  file.slots = calloc(SLOTS, sizeof *file.slots);
  if (file.slots == NULL || !map_window(0)) {
    close(file.fd);
    file.fd = -1;
    return false;
  }
  put_header(source, version, begin_ns);
  return true;
}

void kiln__record_close(void)
{
  const uint32_t ended = 1;

  if (!enter())
    return;
  if (file.window != NULL)
    munmap(file.window, WINDOW);
  file.window = NULL;
  if (file.lost > file.lost_written)
    write_lost();
  (void)!pwrite(file.fd, &ended, sizeof ended, offsetof(profile_header, ended));
  (void)!ftruncate(file.fd, (off_t)(file.start + file.used));
  close(file.fd);
  file.fd = -1;
  leave();
}

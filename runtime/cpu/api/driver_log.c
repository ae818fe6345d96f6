/* driver_log.c -- implements the log of the driver.
 *
 * The log has the newest messages of the CPU device: why a kernel failed, and why an image
 * was refused. NVIDIA's driver also logs the name and the result of each call that fails.
 *
 * Messages are numbered from 0. An iterator is the number of the next message. Callbacks
 * are called by the thread that logs, without a lock, so they may call the driver. */
#include "driver_log.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGES = 100, LINE = 1100 };

struct CUlogsCallbackEntry_st {
  CUlogsCallback function;
  void *user;
  struct CUlogsCallbackEntry_st *next;
};

typedef struct message {
  char line[LINE]; /* "[time][thread][CUDA][E] text\n" */
  size_t size;
} message;

typedef struct driver_log {
  pthread_mutex_t lock;
  message
      *messages; /* ring buffer of MESSAGES elements; NULL before first use */
  unsigned next; /* number of messages so far */
  struct CUlogsCallbackEntry_st *callbacks;
} driver_log;

static driver_log *locked(void)
{
  static driver_log log = {.lock = PTHREAD_MUTEX_INITIALIZER};

  pthread_mutex_lock(&log.lock);
  return &log;
}

static void unlock(driver_log *log)
{
  pthread_mutex_unlock(&log->lock);
}

/* ---- Writing ------------------------------------------------------------- */

static void write_line(message *m, const char *text, size_t size)
{
  struct timespec now = {0};
  struct tm local = {0};
  char clock[16] = "";

  (void)clock_gettime(CLOCK_REALTIME, &now);
  if (localtime_r(&now.tv_sec, &local) != NULL)
    (void)strftime(clock, sizeof clock, "%H:%M:%S", &local);
  kiln__format(m->line, sizeof m->line - 1, "[%s.%03ld][%ld][CUDA][E] %.*s",
               clock, now.tv_nsec / 1000000, (long)syscall(SYS_gettid),
               (int)(size < LINE ? size : LINE), text);
  m->size = strlen(m->line);
  m->line[m->size++] = '\n';
}

static void store(driver_log *log, const char *text, size_t size)
{
  if (log->messages == NULL)
    log->messages =
        kiln__calloc(&machine()->alloc, MESSAGES, sizeof *log->messages);
  if (log->messages != NULL)
    write_line(&log->messages[log->next++ % MESSAGES], text, size);
}

/* Passes a message to callback number n. Returns false if there is none. */
static bool call(unsigned n, const char *text, size_t size)
{
  driver_log *log = locked();
  const struct CUlogsCallbackEntry_st *c = log->callbacks;
  struct CUlogsCallbackEntry_st copy;
  char own[LINE];

  while (c != NULL && n-- > 0)
    c = c->next;
  if (c != NULL)
    copy = *c;
  unlock(log);
  if (c == NULL)
    return false;
  kiln__format(own, sizeof own, "%.*s", (int)(size < LINE ? size : LINE), text);
  copy.function(copy.user, CU_LOG_LEVEL_ERROR, own, strlen(own));
  return true;
}

void kiln__cpu_log_error(const char *text, size_t size)
{
  driver_log *log;

  while (size > 0 && (*text == '\n' || *text == ' '))
    text++, size--;
  while (size > 0 && text[size - 1] == '\n')
    size--;
  if (size == 0)
    return;
  log = locked();
  store(log, text, size);
  unlock(log);
  for (unsigned n = 0; call(n, text, size); n++)
    ;
}

/* ---- Callbacks ----------------------------------------------------------- */

CUresult kiln__cpu_logsRegisterCallback(CUlogsCallback function, void *user,
                                        CUlogsCallbackHandle *out)
{
  struct CUlogsCallbackEntry_st *made, **at;
  driver_log *log;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(function != NULL));
  made = kiln__calloc(&machine()->alloc, 1, sizeof *made);
  CU_TRY(allocated(made));
  made->function = function;
  made->user = user;
  log = locked();
  for (at = &log->callbacks; *at != NULL;)
    at = &(*at)->next;
  *at = made;
  unlock(log);
  if (out != NULL)
    *out = made;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_logsUnregisterCallback(CUlogsCallbackHandle callback)
{
  struct CUlogsCallbackEntry_st **at;
  driver_log *log;
  bool found;

  CU_TRY(kiln__cpu_ready());
  log = locked();
  for (at = &log->callbacks; *at != NULL && *at != callback;)
    at = &(*at)->next;
  found = *at != NULL;
  if (found)
    *at = callback->next;
  unlock(log);
  if (found)
    kiln__free(&machine()->alloc, callback);
  return valid(found);
}

/* ---- Reading ------------------------------------------------------------- */

CUresult kiln__cpu_logsCurrent(CUlogIterator *out, unsigned int flags)
{
  driver_log *log;

  (void)flags;
  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(out != NULL));
  log = locked();
  *out = log->next;
  unlock(log);
  return CUDA_SUCCESS;
}

/* Returns the number of the first message from `iterator` on that is still there. */
static unsigned first_of(const driver_log *log, const CUlogIterator *iterator)
{
  const unsigned oldest = log->next > MESSAGES ? log->next - MESSAGES : 0;
  const unsigned from = iterator == NULL ? 0 : *iterator;

  return from < oldest ? oldest : from;
}

/* If the buffer is too small for all messages, it gets the newest ones that fit. */
CUresult kiln__cpu_logsDumpToMemory(CUlogIterator *iterator, char *buffer,
                                    size_t *size, unsigned int flags)
{
  driver_log *log;
  size_t used = 0;
  unsigned first;
  bool any;

  (void)flags;
  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(buffer != NULL && size != NULL));
  log = locked();
  first = log->next;
  any = first_of(log, iterator) < first;
  while (first > first_of(log, iterator)) {
    const size_t more = log->messages[(first - 1) % MESSAGES].size;

    if (more >= *size - used)
      break;
    used += more;
    first--;
  }
  *size = used;
  for (unsigned i = first; i < log->next; i++) {
    const message *m = &log->messages[i % MESSAGES];

    memcpy(buffer, m->line, m->size);
    buffer += m->size;
  }
  if (used > 0)
    *buffer = '\0';
  if (iterator != NULL)
    *iterator = log->next;
  unlock(log);
  return valid(!any || used > 0);
}

CUresult kiln__cpu_logsDumpToFile(CUlogIterator *iterator, const char *path,
                                  unsigned int flags)
{
  driver_log *log;
  FILE *file;

  (void)flags;
  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(path != NULL));
  file = fopen(path, "we");
  CU_TRY(valid(file != NULL));
  log = locked();
  for (unsigned i = first_of(log, iterator); i < log->next; i++)
    (void)fwrite(log->messages[i % MESSAGES].line, 1,
                 log->messages[i % MESSAGES].size, file);
  if (iterator != NULL)
    *iterator = log->next;
  unlock(log);
  return fclose(file) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

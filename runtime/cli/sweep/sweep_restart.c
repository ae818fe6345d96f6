/* sweep_restart.c -- continues a sweep in a new program image after a kernel
 * broke the GPU's context.
 *
 * After an illegal access a process cannot use CUDA again: on an H200 with driver
 * 580, every call returns the error also in a new context and after a reset of the
 * primary one. So the process writes the results of the rows that are done into a
 * file in memory, and executes itself with the same arguments. The new image reads
 * the file, whose descriptor an environment variable names, and starts at the next
 * row. Each restart has one more row done, so the number of restarts is limited. */
#include "cli/sweep/sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DESCRIPTOR "KILN_SWEEP_ROWS"

enum { MOST_ARGUMENTS = 4096, LARGEST_REASON = 4096 };

/* What the file holds per row, followed by the reason. */
typedef struct saved_row {
  double ms;
  uint64_t result;
  uint32_t ran, timed, reason_size; /* bytes of the reason, 0 without one */
} saved_row;

static bool write_row(FILE *f, const sweep_row *row)
{
  const char *reason = row->reason != NULL ? row->reason : "";
  const saved_row saved = {.ms = row->ms,
                           .result = row->result,
                           .ran = row->ran,
                           .timed = row->timed,
                           .reason_size =
                               (uint32_t)strnlen(reason, LARGEST_REASON)};

  return fwrite(&saved, sizeof saved, 1, f) == 1 &&
         fwrite(reason, 1, saved.reason_size, f) == saved.reason_size;
}

static bool read_row(cli *c, FILE *f, sweep_row *row)
{
  saved_row saved;
  char reason[LARGEST_REASON + 1];

  if (fread(&saved, sizeof saved, 1, f) != 1 ||
      saved.reason_size > LARGEST_REASON ||
      fread(reason, 1, saved.reason_size, f) != saved.reason_size)
    return false;
  reason[saved.reason_size] = '\0';
  row->restored = true;
  row->ms = saved.ms;
  row->result = saved.result;
  row->ran = saved.ran != 0;
  row->timed = saved.timed != 0;
  if (saved.reason_size > 0)
    row->reason = kiln__cli_text(c, "%s", reason);
  return true;
}

void kiln__sweep_restore(sweep *s)
{
  const char *text = getenv(DESCRIPTOR);
  FILE *f;

  if (text == NULL)
    return;
  f = fdopen((int)strtol(text, NULL, 10), "rb");
  unsetenv(DESCRIPTOR);
  if (f == NULL)
    return;
  for (size_t i = 0; i < s->n_rows && read_row(s->c, f, &s->rows[i]); i++)
    continue;
  fclose(f);
}

/* Writes the rows that are done. @return the descriptor of the file, or -1 */
static int save_rows(const sweep *s)
{
  const int fd = memfd_create("kiln-sweep", 0);
  const int copy = fd >= 0 ? dup(fd) : -1;
  FILE *f = copy >= 0 ? fdopen(copy, "wb") : NULL;
  bool ok = f != NULL;

  for (size_t i = 0; ok && i < s->n_done; i++)
    ok = write_row(f, &s->rows[i]);
  if (f != NULL)
    ok = fclose(f) == 0 && ok;
  else if (copy >= 0)
    close(copy);
  if (ok && lseek(fd, 0, SEEK_SET) == 0)
    return fd;
  if (fd >= 0)
    close(fd);
  return -1;
}

/* Reads the arguments of this process. @return a list that ends with NULL, or
 * NULL */
static char **own_arguments(cli *c)
{
  FILE *f = fopen("/proc/self/cmdline", "rbe");
  char **list = kiln__cli_alloc(c, MOST_ARGUMENTS + 1, sizeof *list);
  char *line = NULL;
  size_t n = 0, size = 0;

  if (f == NULL)
    return NULL;
  while (n < MOST_ARGUMENTS && getdelim(&line, &size, '\0', f) > 0)
    list[n++] = kiln__cli_text(c, "%s", line);
  free(line);
  fclose(f);
  return n > 0 ? list : NULL;
}

void kiln__sweep_restart(const sweep *s)
{
  char **arguments = own_arguments(s->c);
  char number[16];
  int fd;

  /* The text of a program from a pipe cannot be read twice. */
  if (arguments == NULL || strcmp(s->program.label, "stdin") == 0)
    return;
  fd = save_rows(s);
  if (fd < 0)
    return;
  snprintf(number, sizeof number, "%d", fd);
  if (setenv(DESCRIPTOR, number, 1) == 0)
    execv("/proc/self/exe", arguments);
  unsetenv(DESCRIPTOR);
  close(fd);
}

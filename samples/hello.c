/* hello.c -- a kernel of twelve threads, each of which prints a greeting (row
 * A1 of the lectures).
 *
 * printf() on the device writes to a buffer. The driver copies this buffer to
 * the standard output of the process when the host waits for the device. The
 * sample redirects the standard output to a file, so that it can count the
 * lines. */
#include "sample.h"

#include <unistd.h>

enum { THREADS = 12 };

/* Redirects the standard output to `file`. Returns a copy of the previous file
 * descriptor. */
static int redirect(FILE *file)
{
  int saved;

  fflush(stdout);
  saved = dup(STDOUT_FILENO);
  if (file == NULL || saved < 0 || dup2(fileno(file), STDOUT_FILENO) < 0) {
    perror("hello: redirect");
    exit(1);
  }
  return saved;
}

static int restore_and_count(FILE *file, int saved)
{
  char line[256];
  int lines = 0;

  fflush(stdout);
  dup2(saved, STDOUT_FILENO);
  close(saved);
  rewind(file);
  while (fgets(line, sizeof line, file) != NULL) {
    fputs(line, stdout);
    lines++;
  }
  fclose(file);
  return lines;
}

int main(int argc, char **argv)
{
  const kiln_program_desc program = {.builtin = "hello"};
  const kiln_launch_config config = {.grid = {.x = 1}, .block = {.x = THREADS}};
  kiln_module *module;
  kiln_kernel *hello;
  FILE *file;
  sample s;
  int saved, lines;

  sample_open(&s, argc, argv);
  module = sample_module(&s, &program);
  SAMPLE_TRY(kiln_module_kernel(&hello, module, "hello"));

  file = tmpfile();
  saved = redirect(file);
  SAMPLE_TRY(kiln_launch(hello, &config, NULL, 0));
  /* The driver writes the lines. */
  SAMPLE_TRY(kiln_device_synchronize(s.device));
  lines = restore_and_count(file, saved);

  printf("%d threads, %d lines\n", THREADS, lines);
  kiln_module_free(module);
  return sample_end(&s, lines == THREADS);
}

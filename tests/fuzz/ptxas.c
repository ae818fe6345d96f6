/* ptxas.c -- runs ptxas as a child process. */
#include "ptxas.h"

#include "cpu_statements.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void give_up(const char *what)
{
  perror(what);
  exit(2);
}

static char *read_all(FILE *in, size_t *size)
{
  size_t capacity = 1 << 16, n;
  char *data = malloc(capacity);

  *size = 0;
  while (data != NULL &&
         (n = fread(data + *size, 1, capacity - *size - 1, in)) > 0) {
    *size += n;
    if (capacity - *size < 2) {
      capacity *= 2;
      data = realloc(data, capacity);
    }
  }
  if (data == NULL)
    give_up("memory");
  data[*size] = '\0';
  return data;
}

char *fuzz_read_file(const char *path, size_t *size)
{
  FILE *in = fopen(path, "rb");
  char *data;

  if (in == NULL)
    give_up(path);
  data = read_all(in, size);
  (void)fclose(in);
  return data;
}

/* Runs a program and returns its standard output and standard error in one
 * string. *status receives the status from wait(). */
static char *output_of(const char *path, char *const argv[], int *status)
{
  size_t n;
  int pipes[2];
  pid_t child;
  FILE *in;
  char *text;

  if (pipe(pipes) != 0)
    give_up("pipe");
  child = fork();
  if (child < 0)
    give_up("fork");
  if (child == 0) {
    (void)dup2(pipes[1], 1);
    (void)dup2(pipes[1], 2);
    (void)close(pipes[0]);
    (void)execv(path, argv);
    _exit(127);
  }
  (void)close(pipes[1]);
  in = fdopen(pipes[0], "r");
  text = read_all(in, &n);
  (void)fclose(in);
  *status = 0;
  (void)waitpid(child, status, 0);
  return text;
}

/* ---- Search for ptxas ---------------------------------------------------- */

static bool found(char *path, size_t size, const char *pattern)
{
  glob_t files;
  bool ok = false;

  if (glob(pattern, 0, NULL, &files) != 0)
    return false;
  for (size_t i = files.gl_pathc; i-- > 0 && !ok;) {
    ok = access(files.gl_pathv[i], X_OK) == 0;
    if (ok)
      (void)snprintf(path, size, "%s", files.gl_pathv[i]);
  }
  globfree(&files);
  return ok;
}

const char *ptxas_find(void)
{
  static char path[1024];
  const char *given = getenv("KILN_TEST_PTXAS"), *cuda = getenv("CUDA_PATH");
  char *folders = strdup(getenv("PATH") == NULL ? "" : getenv("PATH"));
  char *rest = folders, *folder, pattern[1024];
  bool ok = given != NULL && given[0] != '\0';

  if (ok)
    (void)snprintf(path, sizeof path, "%s", given);
  while (!ok && (folder = strsep(&rest, ":")) != NULL) {
    (void)snprintf(pattern, sizeof pattern, "%s/ptxas", folder);
    ok = found(path, sizeof path, pattern);
  }
  free(folders);
  if (!ok && cuda != NULL) {
    (void)snprintf(pattern, sizeof pattern, "%s/bin/ptxas", cuda);
    ok = found(path, sizeof path, pattern);
  }
  ok = ok || found(path, sizeof path, "/usr/local/cuda*/bin/ptxas");
  return ok ? path : NULL;
}

const char *ptxas_release(const char *ptxas)
{
  static char release[16];
  char *const argv[] = {(char *)"ptxas", (char *)"--version", NULL};
  int status;
  char *text = output_of(ptxas, argv, &status);
  const char *at = strstr(text, "release ");

  (void)snprintf(release, sizeof release, "%.*s",
                 at == NULL ? 0 : (int)strspn(at + 8, "0123456789."),
                 at == NULL ? "" : at + 8);
  free(text);
  return release;
}

/* ---- Compiling with ptxas ------------------------------------------------ */

static char input[300], result[300];
static char folder_of[256];

static void make_folder(void)
{
  const char *tmp = getenv("TMPDIR");

  (void)snprintf(folder_of, sizeof folder_of, "%s/mutate.XXXXXX",
                 tmp == NULL ? P_tmpdir : tmp);
  if (mkdtemp(folder_of) == NULL)
    give_up(folder_of);
  (void)snprintf(input, sizeof input, "%s/x.ptx", folder_of);
  (void)snprintf(result, sizeof result, "%s/x.o", folder_of);
}

void ptxas_end(void)
{
  if (folder_of[0] == '\0')
    return;
  (void)unlink(input);
  (void)unlink(result);
  (void)rmdir(folder_of);
  folder_of[0] = '\0';
}

static void write_input(const char *text, size_t size)
{
  FILE *out = fopen(input, "wb");

  if (out == NULL || fwrite(text, 1, size, out) != size || fclose(out) != 0)
    give_up(input);
}

char *ptxas_says(const char *ptxas, const char *text, size_t size,
                 unsigned target)
{
  char arch[32], died[64], *messages;
  char *const argv[] = {(char *)"ptxas",
                        (char *)"-arch",
                        arch,
                        (char *)"-O0",
                        (char *)"-c",
                        (char *)"-w",
                        input,
                        (char *)"-o",
                        result,
                        NULL};
  int status;

  if (folder_of[0] == '\0')
    make_folder();
  write_input(text, size);
  (void)snprintf(arch, sizeof arch, "sm_%u%s", target % STATEMENT_SPECIFIC,
                 target >= STATEMENT_SPECIFIC ? "a" : "");
  messages = output_of(ptxas, argv, &status);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    messages[0] = '\0';
  } else if (WIFSIGNALED(status) || messages[0] == '\0') {
    (void)snprintf(died, sizeof died, "ptxas ended with status %d", status);
    free(messages);
    messages = strdup(died);
  }
  return messages;
}

/* cli_file.c -- reads and writes files and JSON, and handles temporary
 * folders and the output of tools. */
#include "tool/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ---- Reading and writing ------------------------------------------------ */

static const char *odd_mode(mode_t mode)
{
  return S_ISREG(mode)    ? NULL
         : S_ISDIR(mode)  ? "a directory"
         : S_ISFIFO(mode) ? "a FIFO"
         : S_ISSOCK(mode) ? "a socket"
                          : "a device";
}

const char *kiln__cli_odd_file(const char *path)
{
  struct stat info;

  return stat(path, &info) == 0 ? odd_mode(info.st_mode) : NULL;
}

/* Opens a regular file of at most `most` bytes. Returns NULL having reported
 * why the file cannot be opened. */
static FILE *open_bounded(const cli *c, const char *path, size_t most)
{
  /* Without O_NONBLOCK, opening a FIFO would wait for a writer. */
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat info = {0};
  FILE *f = NULL;

  if (fd < 0 || fstat(fd, &info) != 0)
    kiln__cli_message(c, NULL, "cannot read '%s': %s", path, strerror(errno));
  else if (odd_mode(info.st_mode) != NULL)
    kiln__cli_message(c,
                      "copy it to a file, or give - and redirect it to stdin",
                      "cannot read '%s': it is %s, not a regular file", path,
                      odd_mode(info.st_mode));
  else if ((uint64_t)info.st_size > most)
    kiln__cli_message(
        c, NULL, "cannot read '%s': it has %lld bytes, and the limit is %zu",
        path, (long long)info.st_size, most);
  else
    f = fdopen(fd, "rb");
  if (f == NULL && fd >= 0)
    close(fd);
  return f;
}

char *kiln__cli_read(cli *c, const char *path, size_t most, size_t *size)
{
  const bool standard = strcmp(path, "-") == 0;
  FILE *f = standard ? stdin : open_bounded(c, path, most);
  size_t capacity = 1 << 16, n;
  char *text;

  *size = 0;
  if (f == NULL)
    return NULL;
  text = kiln__cli_alloc(c, capacity, 1);
  while ((n = fread(text + *size, 1, capacity - 1 - *size, f)) > 0) {
    *size += n;
    if (*size > most)
      break;
    if (*size == capacity - 1) {
      char *more = kiln__cli_alloc(c, 2 * capacity, 1);

      memcpy(more, text, *size);
      text = more;
      capacity *= 2;
    }
  }
  if (ferror(f) || *size > most) {
    kiln__cli_message(
        c, NULL, "cannot read '%s': %s", standard ? "stdin" : path,
        ferror(f) ? strerror(errno)
                  : kiln__cli_text(c, "it has more than the %zu bytes allowed",
                                   most));
    text = NULL;
  }
  if (!standard)
    fclose(f);
  return text;
}

int kiln__cli_write(const cli *c, const char *path, const void *data,
                    size_t size)
{
  FILE *f = fopen(path, "wbe");
  bool good = f != NULL;

  if (good)
    good = fwrite(data, 1, size, f) == size;
  if (f != NULL && fclose(f) != 0)
    good = false;
  if (good)
    return CLI_OK;
  kiln__cli_message(c, "check the folder, its permissions and its free space",
                    "cannot write '%s': %s", path, strerror(errno));
  return CLI_FAILED;
}

char *kiln__cli_make_folder(cli *c, const char *name)
{
  const char *base = getenv("TMPDIR");
  char *path = kiln__cli_text(
      c, "%s/%s-XXXXXX", base == NULL || base[0] == '\0' ? "/tmp" : base, name);

  if (mkdtemp(path) != NULL)
    return path;
  kiln__cli_message(c, "set TMPDIR to a folder that can be written",
                    "cannot create the folder '%s': %s", path, strerror(errno));
  return NULL;
}

static int remove_one(const char *path, const struct stat *info, int type,
                      struct FTW *at)
{
  (void)info, (void)type, (void)at;
  return remove(path);
}

void kiln__cli_remove_folder(const char *path)
{
  if (path != NULL)
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *kiln__cli_find_program(cli *c, const char *name)
{
  const char *p = getenv("PATH");

  while (p != NULL && *p != '\0') {
    const size_t n = strcspn(p, ":");
    const char *path = kiln__cli_text(c, "%.*s/%s", (int)n, p, name);

    if (n > 0 && access(path, X_OK) == 0)
      return path;
    p += n;
    p += *p == ':' ? 1 : 0;
  }
  return NULL;
}

char *kiln__cli_output_of(char *const argv[], int *status)
{
  posix_spawn_file_actions_t actions;
  int pipe_fd[2];
  pid_t pid;
  FILE *in;
  char *text = NULL;
  size_t capacity = 0;

  *status = -1;
  if (pipe2(pipe_fd, O_CLOEXEC) != 0)
    return NULL;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_fd[1], STDOUT_FILENO);
  errno = posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
  if (errno != 0)
    pid = -1;
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_fd[1]);
  in = pid < 0 ? NULL : fdopen(pipe_fd[0], "r");
  if (in == NULL) {
    close(pipe_fd[0]);
    return NULL;
  }
  if (getdelim(&text, &capacity, '\0', in) < 0) {
    free(text);
    text = calloc(1, 1);
  }
  fclose(in);
  while (waitpid(pid, status, 0) < 0 && errno == EINTR) {
  }
  return text;
}

/* ---- JSON --------------------------------------------------------------- */

/* Returns a copy of JSON text in which bytes that are not UTF-8 are U+FFFD.
 * JSON must be UTF-8, but a file name need not be UTF-8, and cJSON copies
 * every byte from 0x80 on. Such bytes occur only in strings. */
static char *as_utf8(const char *text)
{
  static const char instead[] = "\xef\xbf\xbd";
  char *out = malloc(3 * strlen(text) + 1), *at = out;

  while (out != NULL && *text != '\0') {
    bool control;
    size_t n = kiln__cli_utf8(text, &control);

    if (n == 0) {
      memcpy(at, instead, sizeof instead - 1);
      at += sizeof instead - 1;
      text++;
    }
    for (; n > 0; n--)
      *at++ = *text++;
  }
  if (out != NULL)
    *at = '\0';
  return out;
}

/* Writes the text of a JSON object, and frees it. */
static int write_json(const cli *c, char *text, const char *path)
{
  int rc = CLI_OK;

  if (text == NULL) {
    kiln__cli_message(c, NULL, "there is no memory to write JSON");
    return CLI_FAILED;
  }
  if (path == NULL || strcmp(path, "-") == 0)
    puts(text);
  else
    rc = kiln__cli_write(c, path, text, strlen(text));
  free(text);
  return rc;
}

/* Converts JSON text of cJSON, and frees it. */
static char *take_utf8(char *bytes)
{
  char *text = bytes == NULL ? NULL : as_utf8(bytes);

  cJSON_free(bytes);
  return text;
}

int kiln__cli_json(const cli *c, cJSON *json, const char *path)
{
  char *text = take_utf8(cJSON_Print(json));

  cJSON_Delete(json);
  return write_json(c, text, path);
}

char *kiln__cli_json_text(const cJSON *json)
{
  return take_utf8(cJSON_PrintUnformatted(json));
}

int kiln__cli_json_compact(const cli *c, cJSON *json, const char *path)
{
  char *text = kiln__cli_json_text(json);

  cJSON_Delete(json);
  return write_json(c, text, path);
}

cJSON *kiln__cli_json_item(cJSON *array)
{
  cJSON *item = cJSON_CreateObject();

  cJSON_AddItemToArray(array, item);
  return item;
}

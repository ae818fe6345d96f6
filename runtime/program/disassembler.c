/* disassembler.c -- finds nvdisasm, NVIDIA's disassembler, and runs it on the
 * machine code of an image.
 *
 * Problem: the format of machine code is not public, so only NVIDIA's program
 * can translate it to text (SASS). A library that starts programs must not
 * surprise its caller: no shell, no program or file from the current directory,
 * no files that remain after a crash, no endless wait, and no unlimited memory.
 * Idea: the machine code is in an anonymous file (memfd), which is standard
 * input of the child; the child opens it as /proc/self/fd/0. A pipe carries the
 * text, and another anonymous file receives the messages. The environment of
 * the child is empty.
 * Invariant: the child has ended or is killed before a function returns. */
#include "image.h"

#include <kiln/inspect.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOOL "nvdisasm"
static const char hint[] =
    "pip install nvidia-cuda-nvdisasm, or the package cuda-nvdisasm of "
    "conda or of NVIDIA's apt repository; then put nvdisasm into PATH or its "
    "path into KILN_NVDISASM";

/* ---- The search ---------------------------------------------------------- */

/* The places after PATH, in the order of the search: pairs of a variable and a
 * pattern for what follows its value. /bin/nvdisasm ends each path. Pairs with
 * an empty variable are absolute. One string needs no relocations. */
#define PLACE(variable, pattern) variable "\0" pattern "\0"
#define PYTHON "/lib/python3*/*-packages/nvidia/*"
static const char places[] =
    PLACE("CUDA_PATH", "") PLACE("CUDA_HOME", "") PLACE("CONDA_PREFIX", "")
        PLACE("", "/usr/local/cuda") PLACE("", "/usr/local/cuda-*")
            PLACE("", "/opt/cuda") PLACE("VIRTUAL_ENV", PYTHON)
                PLACE("CONDA_PREFIX", PYTHON) PLACE("HOME", "/.local" PYTHON)
                    PLACE("", "/usr/local" PYTHON) PLACE("", "/usr" PYTHON);

static const char *variable(const kiln_runtime *rt, const char *name)
{
  return rt->ignore_env ? NULL : kiln__env(name);
}

/* Returns true if the absolute path is that of an executable file. */
static bool is_tool(const char *path)
{
  struct stat info;

  return path[0] == '/' && stat(path, &info) == 0 && S_ISREG(info.st_mode) &&
         access(path, X_OK) == 0;
}

static bool in_path(const kiln_runtime *rt, char *path, size_t size)
{
  const char *p = variable(rt, "PATH");

  while (p != NULL && *p != '\0') {
    const size_t n = strcspn(p, ":");

    if (kiln__format(path, size, "%.*s/" TOOL, (int)n, p) && is_tool(path))
      return true;
    p += n;
    p += *p == ':';
  }
  return false;
}

/* Takes the last match of a pattern, which is the newest version. */
static bool in_glob(const char *pattern, char *path, size_t size)
{
  glob_t found = {0};
  bool good = false;

  if (glob(pattern, 0, NULL, &found) == 0)
    for (size_t i = found.gl_pathc; i > 0 && !good; i--)
      good =
          kiln__copy_text(path, size, found.gl_pathv[i - 1]) && is_tool(path);
  globfree(&found);
  return good;
}

static bool search(const kiln_runtime *rt, char *path, size_t size)
{
  char pattern[PATH_MAX];
  const char *next;

  if (in_path(rt, path, size))
    return true;
  for (const char *p = places; p < places + sizeof places - 1; p = next) {
    const char *below = p + strlen(p) + 1;
    const char *root = *p == '\0' ? "" : variable(rt, p);

    next = below + strlen(below) + 1;
    if (root != NULL &&
        kiln__format(pattern, sizeof pattern, "%s%s/bin/" TOOL, root, below) &&
        in_glob(pattern, path, size))
      return true;
  }
  return false;
}

kiln_status kiln_disassembler(kiln_runtime *rt, char *path, size_t size)
{
  const char *given;

  if (rt == NULL || path == NULL || size == 0)
    return kiln__fail(KILN_EINVAL, NULL, "rt or path is NULL, or size is 0");
  given = variable(rt, "KILN_NVDISASM");
  if (given != NULL ? kiln__copy_text(path, size, given) && is_tool(path)
                    : search(rt, path, size))
    return KILN_OK;
  path[0] = '\0';
  if (given != NULL)
    return kiln__fail(KILN_ENOTFOUND,
                      "correct KILN_NVDISASM, or unset it to search",
                      "KILN_NVDISASM is no executable file: %s", given);
  return kiln__fail(KILN_ENOTFOUND, hint,
                    "SASS needs nvdisasm, which was not found");
}

/* ---- The run ------------------------------------------------------------- */

enum { MAX_OPTIONS = 16, DEFAULT_MS = 60000, DEFAULT_BYTES = 1 << 30 };
enum { CHUNK = 1 << 16, POLL_NS = 200000 };

/* A running disassembler. */
typedef struct child {
  const char *tool;
  kiln_sass_opts opts;
  uint64_t deadline_ns;
  int code, messages;    /* anonymous files */
  int text_in, text_out; /* the ends of the pipe */
  pid_t pid;
  kiln__buf out;
} child;

static kiln_status fail_os(const char *call)
{
  return kiln__fail_os(errno, call, TOOL);
}

static kiln_status fail_late(const child *c)
{
  if (kiln__clock_ns() < c->deadline_ns)
    return KILN_OK;
  return kiln__fail(KILN_ETIMEOUT, "set timeout_ms higher",
                    "%s took longer than %u ms", c->tool, c->opts.timeout_ms);
}

/* Makes the anonymous files and the pipe. In this order, their descriptors
 * overwrite each other in no child, even if the caller has closed standard
 * input or output. */
static kiln_status open_files(child *c, kiln__slice code)
{
  int ends[2];

  c->code = memfd_create("cubin", MFD_CLOEXEC);
  c->messages = memfd_create("messages", MFD_CLOEXEC);
  if (c->code < 0 || c->messages < 0)
    return fail_os("memfd_create");
  if (!kiln__write_all(&kiln__fs_posix, c->code, code.data, code.size))
    return fail_os("write");
  if (pipe2(ends, O_CLOEXEC) != 0)
    return fail_os("pipe2");
  c->text_out = ends[0];
  c->text_in = ends[1];
  return KILN_OK;
}

static kiln_status start(child *c)
{
  char file[] = "/proc/self/fd/0";
  char *argv[MAX_OPTIONS + 3] = {(char *)(uintptr_t)c->tool, "-c"};
  char *environment[] = {NULL};
  posix_spawn_file_actions_t actions;
  size_t n = 0;

  for (; n < c->opts.n_options; n++)
    argv[n + 1] = (char *)(uintptr_t)c->opts.options[n];
  argv[n == 0 ? 2 : n + 1] = file;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, c->code, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, c->text_in, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, c->messages, STDERR_FILENO);
  errno = posix_spawn(&c->pid, c->tool, &actions, NULL, argv, environment);
  posix_spawn_file_actions_destroy(&actions);
  if (errno != 0) {
    c->pid = 0;
    return kiln__fail_os(errno, "posix_spawn", c->tool);
  }
  close(c->text_in);
  c->text_in = -1;
  return KILN_OK;
}

static kiln_status read_text(child *c)
{
  struct pollfd ready = {.fd = c->text_out, .events = POLLIN};
  kiln_status st = KILN_OK;
  ssize_t n;

  for (;;) {
    KILN_TRY(fail_late(c));
    if (poll(&ready, 1, 100) == 0)
      continue;
    kiln__buf_reserve(&c->out, CHUNK);
    KILN_TRY(kiln__buf_status(&c->out, "SASS"));
    n = read(c->text_out, c->out.data + c->out.size, CHUNK);
    if (n < 0 && errno != EINTR)
      KILN_TRY(fail_os("read"));
    if (n == 0)
      break;
    c->out.size += n > 0 ? (size_t)n : 0;
    if (c->out.size > c->opts.max_bytes)
      KILN_TRY(kiln__fail(KILN_ELIMIT, "set max_bytes higher",
                          "%s prints more than %zu bytes", c->tool,
                          c->opts.max_bytes));
  }
  c->out.data[c->out.size] = '\0';

done:
  return st;
}

/* Waits for the end of the child. Returns KILN_EUNSUPPORTED if it failed. */
static kiln_status finish(child *c, const kiln_image *image)
{
  char log[1024], target[24];
  kiln_status st = KILN_OK;
  int status = 0;
  ssize_t n;

  while (waitpid(c->pid, &status, WNOHANG) == 0) {
    KILN_TRY(fail_late(c));
    kiln__sleep_ns(POLL_NS);
  }
  c->pid = 0;
  if (status == 0 && c->out.size > 0)
    return KILN_OK;
  n = pread(c->messages, log, sizeof log, 0);
  st = kiln__fail(KILN_EUNSUPPORTED,
                  "use an nvdisasm that is as new as the target; version 13 "
                  "reads 7.5 and newer, version 11.8 reads 3.5 to 9.0",
                  "%s cannot read this machine code for %s", c->tool,
                  kiln_target_text(&image->target, target));
  kiln__error_log(log, n < 0 ? 0 : (size_t)n);

done:
  return st;
}

static void end(child *c)
{
  if (c->pid > 0 && waitpid(c->pid, NULL, WNOHANG) == 0) {
    kill(c->pid, SIGKILL);
    waitpid(c->pid, NULL, 0);
  }
  kiln__file_close(&kiln__fs_posix, c->code);
  kiln__file_close(&kiln__fs_posix, c->messages);
  kiln__file_close(&kiln__fs_posix, c->text_in);
  kiln__file_close(&kiln__fs_posix, c->text_out);
  kiln__buf_free(&c->out);
}

kiln_status kiln_image_sass(char **out, size_t *size, kiln_runtime *rt,
                            const kiln_image *image, const kiln_sass_opts *opts)
{
  child c = {.code = -1, .messages = -1, .text_in = -1, .text_out = -1};
  kiln_status st = KILN_OK;
  char path[PATH_MAX];
  kiln__slice code;

  if (out != NULL)
    *out = NULL;
  if (opts != NULL)
    c.opts = *opts;
  if (out == NULL || rt == NULL || image == NULL ||
      c.opts.n_options > MAX_OPTIONS)
    return kiln__fail(KILN_EINVAL, NULL,
                      "out, rt or image is NULL, or there are more than %d "
                      "options",
                      MAX_OPTIONS);
  code.data = kiln_image_cubin(image, &code.size);
  if (code.data == NULL)
    return kiln__fail(KILN_EUNSUPPORTED,
                      "compile for an sm_ target instead of compute_",
                      "the image holds only PTX, no machine code");
  kiln__buf_init(&c.out, &rt->alloc);
  c.opts.timeout_ms = c.opts.timeout_ms == 0 ? DEFAULT_MS : c.opts.timeout_ms;
  c.opts.max_bytes = c.opts.max_bytes == 0 ? DEFAULT_BYTES : c.opts.max_bytes;
  c.deadline_ns = kiln__clock_ns() + c.opts.timeout_ms * UINT64_C(1000000);
  c.tool = c.opts.tool;
  if (c.tool == NULL) {
    KILN_TRY(kiln_disassembler(rt, path, sizeof path));
    c.tool = path;
  } else if (!is_tool(c.tool)) {
    KILN_TRY(
        kiln__fail(KILN_ENOTFOUND, hint, "no executable file: %s", c.tool));
  }
  KILN_TRY(open_files(&c, code));
  KILN_TRY(start(&c));
  KILN_TRY(read_text(&c));
  KILN_TRY(finish(&c, image));
  if (size != NULL)
    *size = c.out.size;
  *out = kiln__buf_take(&c.out);

done:
  end(&c);
  return st;
}

void kiln_text_free(kiln_runtime *rt, char *text)
{
  if (rt != NULL)
    kiln__free(&rt->alloc, text);
}

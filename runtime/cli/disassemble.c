/* disassemble.c -- finds nvdisasm or cuobjdump, and runs the tool to print
 * SASS. */
#include "cli/commands.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char kiln__cli_disassembler_hint[] =
    "pip install nvidia-cuda-nvdisasm, or the package cuda-nvdisasm of "
    "conda or of NVIDIA's apt repository; then put nvdisasm into PATH";

static const char *const tools[] = {"nvdisasm", "cuobjdump"};

/* Returns the last executable file that matches the pattern. This file is
 * the newest if the paths contain a version. */
static const char *in_glob(cli *c, const char *pattern)
{
  glob_t found = {0};
  const char *path = NULL;

  if (glob(pattern, 0, NULL, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; i++)
      if (access(found.gl_pathv[i], X_OK) == 0)
        path = kiln__cli_text(c, "%s", found.gl_pathv[i]);
  globfree(&found);
  return path;
}

/* Returns the path of the tool in a Python package, below the root of an
 * installation or of a virtual environment. */
static const char *in_python(cli *c, const char *root, const char *tool)
{
  static const char *const places[] = {
      "nvidia/cu13/bin", "nvidia/cuda_nvdisasm/bin",
      "nvidia/cuda_cuobjdump/bin", "nvidia/cuda_nvcc/bin",
      "triton/backends/nvidia/bin"};

  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    const char *path =
        in_glob(c, kiln__cli_text(c, "%s/lib/python3*/*-packages/%s/%s", root,
                                  places[i], tool));

    if (path != NULL)
      return path;
  }
  return NULL;
}

/* Searches for the tool in PATH, then in CUDA toolkits, then in Python
 * packages. */
static const char *find_tool(cli *c, const char *tool)
{
  static const char *const toolkits[] = {"CUDA_HOME", "CUDA_PATH",
                                         "CONDA_PREFIX"};
  const char *home = getenv("HOME");
  const char *roots[5] = {getenv("VIRTUAL_ENV"), getenv("CONDA_PREFIX"), NULL,
                          "/usr/local", "/usr"};
  const char *path = kiln__cli_find_program(c, tool);

  if (home != NULL && home[0] == '/')
    roots[2] = kiln__cli_text(c, "%s/.local", home);
  for (size_t i = 0; path == NULL && i < 3; i++) {
    const char *root = getenv(toolkits[i]);

    if (root != NULL && root[0] == '/')
      path = in_glob(c, kiln__cli_text(c, "%s/bin/%s", root, tool));
  }
  if (path == NULL)
    path = in_glob(c, kiln__cli_text(c, "/usr/local/cuda*/bin/%s", tool));
  for (size_t i = 0; path == NULL && i < 5; i++)
    if (roots[i] != NULL && roots[i][0] == '/')
      path = in_python(c, roots[i], tool);
  return path;
}

const char *kiln__cli_disassembler(cli *c)
{
  for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++) {
    const char *path = find_tool(c, tools[i]);

    if (path != NULL)
      return path;
  }
  return NULL;
}

char *kiln__cli_disassemble(cli *c, const char *tool, const void *cubin,
                            size_t size)
{
  const char *slash = strrchr(tool, '/');
  const bool dump = strcmp(slash == NULL ? tool : slash + 1, "cuobjdump") == 0;
  const char *folder = getenv("TMPDIR");
  char *path = kiln__cli_text(c, "%s/kiln-XXXXXX", folder ? folder : "/tmp");
  char *argv[] = {(char *)(uintptr_t)tool, dump ? "-sass" : "-c", path, NULL};
  const int fd = mkstemp(path);
  char *text = NULL;
  int status = -1;

  if (fd < 0 || write(fd, cubin, size) != (ssize_t)size)
    kiln__cli_message(c, "set TMPDIR to a folder that can be written",
                      "cannot write '%s': %s", path, strerror(errno));
  else
    text = kiln__cli_output_of(argv, &status);
  if (fd >= 0) {
    close(fd);
    unlink(path);
  }
  if (text != NULL && status != 0) {
    kiln__cli_message(
        c, kiln__cli_disassembler_hint,
        "'%s' cannot read this machine code; it may be older than "
        "the target",
        tool);
    free(text);
    text = NULL;
  }
  return text;
}

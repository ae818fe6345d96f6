/* disassemble.c -- finds nvdisasm and disassembles machine code to SASS. */
#include "cli/commands.h"

#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns the disassembler that samples/setup.sh downloads, if this command was
 * built in a folder of the checkout, such as build/kiln. */
static const char *in_checkout(cli *c)
{
  char exe[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
  const char *path = NULL;
  glob_t found = {0};
  char *slash;

  if (n <= 0)
    return NULL;
  exe[n] = '\0';
  slash = strrchr(exe, '/');
  if (slash != NULL)
    *slash = '\0';
  if (glob(kiln__cli_text(c,
                          "%s/../.deps/nvidia-cuda-nvdisasm-*/nvidia/*/bin/"
                          "nvdisasm",
                          exe),
           0, NULL, &found) == 0 &&
      access(found.gl_pathv[found.gl_pathc - 1], X_OK) == 0)
    path = kiln__cli_text(c, "%s", found.gl_pathv[found.gl_pathc - 1]);
  globfree(&found);
  return path;
}

const char *kiln__cli_disassembler(cli *c)
{
  char path[PATH_MAX];

  if (kiln_disassembler(c->rt, path, sizeof path) == KILN_OK)
    return kiln__cli_text(c, "%s", path);
  return getenv("KILN_NVDISASM") == NULL ? in_checkout(c) : NULL;
}

char *kiln__cli_disassemble(cli *c, const char *tool, const kiln_image *image)
{
  const kiln_sass_opts opts = {.tool = tool};
  char *text;

  if (kiln_image_sass(&text, NULL, c->rt, image, &opts) != KILN_OK)
    kiln__cli_failure(c, NULL);
  return text;
}

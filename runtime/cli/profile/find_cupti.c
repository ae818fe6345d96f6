/* find_cupti.c -- finds CUPTI, the library with which `kiln profile` records a
 * GPU. The places are those of NVRTC: toolkits, NVIDIA's Python wheels, conda and
 * the folders of distributions. The command only looks for files; the profiled
 * program loads the library. */
#include "cli/commands.h"

#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

const char kiln__cli_cupti_hint[] =
    "pip install nvidia-cuda-cupti (for CUDA 13; nvidia-cuda-cupti-cu12 for "
    "CUDA 12), or install the CUDA toolkit";

enum { MOST = 32 };

#if defined(__aarch64__)
#define TRIPLE "aarch64-linux-gnu"
#define TARGET "sbsa-linux"
#else
#define TRIPLE "x86_64-linux-gnu"
#define TARGET "x86_64-linux"
#endif

/* The libraries that were found, without duplicates. */
typedef struct found {
  cli *c;
  const char *path[MOST];
  int major[MOST];
  size_t n;
} found;

/* Returns the CUDA version in the name of a libcupti: 13 for "libcupti.so.13",
 * 11 for "libcupti.so.11.8". Names such as libcupti.so.2022.3.0 belong to a file
 * that a symbolic link names, so the answer is 0. */
static int major_of(const char *path)
{
  const char *name = strrchr(path, '/');
  const char *version = strstr(name == NULL ? path : name, ".so.");
  const int major = version == NULL ? 0 : atoi(version + 4);

  return major >= 11 && major < 100 ? major : 0;
}

static void add_file(found *f, const char *path)
{
  char whole[PATH_MAX];
  const int major = major_of(path);

  if (major == 0 || f->n == MOST || realpath(path, whole) == NULL)
    return;
  for (size_t i = 0; i < f->n; i++) {
    char other[PATH_MAX];

    if (realpath(f->path[i], other) != NULL && strcmp(whole, other) == 0)
      return;
  }
  f->path[f->n] = kiln__cli_text(f->c, "%s", path);
  f->major[f->n++] = major;
}

/* Adds all libcupti of the folders that match a pattern. */
static void add_folder(found *f, const char *folder)
{
  glob_t files = {0};

  if (folder[0] == '/' && glob(kiln__cli_text(f->c, "%s/libcupti.so.*", folder),
                               0, NULL, &files) == 0) {
    for (size_t i = files.gl_pathc; i-- > 0;)
      add_file(f, files.gl_pathv[i]);
  }
  globfree(&files);
}

static void add_toolkit(found *f, const char *root)
{
  add_folder(f, kiln__cli_text(f->c, "%s/extras/CUPTI/lib64", root));
  add_folder(f, kiln__cli_text(f->c, "%s/lib64", root));
  add_folder(f, kiln__cli_text(f->c, "%s/targets/" TARGET "/lib", root));
}

/* Adds the libraries of NVIDIA's wheels. `root` is the root of an installation of
 * Python or of a virtual environment. */
static void add_python(found *f, const char *root)
{
  static const char *const wheels[] = {"nvidia/cu*/lib",
                                       "nvidia/cuda_cupti/lib"};

  for (size_t i = 0; i < sizeof wheels / sizeof *wheels; i++)
    add_folder(f, kiln__cli_text(f->c, "%s/lib/python3*/*-packages/%s", root,
                                 wheels[i]));
}

/* Adds the libraries beside the NVRTCs that Kiln found: in the same folder, in
 * the wheel next to it, or in the same toolkit. */
static void add_beside_nvrtc(found *f)
{
  enum { MOST_NVRTC = 16 };
  static const char *const steps[] = {"", "/../../cuda_cupti/lib",
                                      "/../extras/CUPTI/lib64",
                                      "/../../../extras/CUPTI/lib64"};
  kiln_nvrtc_info *all =
      kiln__cli_alloc(f->c, MOST_NVRTC, sizeof(kiln_nvrtc_info));
  size_t n = 0;

  if (kiln_runtime_nvrtc(f->c->rt, all, MOST_NVRTC, &n) != KILN_OK)
    return;
  for (size_t i = 0; i < n && i < MOST_NVRTC; i++) {
    char *folder = kiln__cli_text(f->c, "%s", all[i].path);

    if (strrchr(folder, '/') == NULL)
      continue;
    *strrchr(folder, '/') = '\0';
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++)
      add_folder(f, kiln__cli_text(f->c, "%s%s", folder, steps[k]));
  }
}

static void add_everything(found *f)
{
  static const char *const toolkits[] = {"CUDA_PATH", "CUDA_HOME"};
  static const char *const pythons[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
  const char *home = getenv("HOME"), *path = getenv("LD_LIBRARY_PATH");
  char *rest = kiln__cli_text(f->c, "%s", path == NULL ? "" : path), *folder;

  while ((folder = kiln__cli_word(&rest, ":")) != NULL)
    add_folder(f, folder);
  add_beside_nvrtc(f);
  for (size_t i = 0; i < sizeof toolkits / sizeof *toolkits; i++) {
    if (getenv(toolkits[i]) != NULL)
      add_toolkit(f, getenv(toolkits[i]));
  }
  add_toolkit(f, "/usr/local/cuda");
  add_toolkit(f, "/usr/local/cuda-*");
  add_toolkit(f, "/opt/cuda");
  for (size_t i = 0; i < sizeof pythons / sizeof *pythons; i++) {
    if (getenv(pythons[i]) != NULL) {
      add_python(f, getenv(pythons[i]));
      add_folder(f, kiln__cli_text(f->c, "%s/lib", getenv(pythons[i])));
    }
  }
  if (home != NULL)
    add_python(f, kiln__cli_text(f->c, "%s/.local", home));
  add_python(f, "/usr/local");
  add_python(f, "/usr");
  add_folder(f, "/usr/lib/" TRIPLE);
  add_folder(f, "/usr/lib64");
}

/* Returns the list of all paths with the given version of CUDA. */
static const char *of_version(const found *f, int major)
{
  const char *list = "";

  for (size_t i = 0; i < f->n; i++) {
    if (f->major[i] == major)
      list = kiln__cli_text(f->c, "%s%s%s", list, *list == '\0' ? "" : ":",
                            f->path[i]);
  }
  return list;
}

const char *kiln__cli_find_cupti(cli *c, int driver)
{
  const char *given = getenv("KILN_CUPTI"), *list = "";
  found f = {.c = c};

  if (given != NULL && *given != '\0')
    return given;
  add_everything(&f);
  /* A CUPTI that is newer than the driver does not work. */
  for (int major = driver == 0 ? 20 : driver / 1000; major >= 11; major--) {
    const char *some = of_version(&f, major);

    if (*some != '\0')
      list = kiln__cli_text(c, "%s%s%s", list, *list == '\0' ? "" : ":", some);
  }
  return list;
}

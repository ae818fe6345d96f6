/* find_mpi.c -- finds and loads the MPI plug-in.
 *
 * There is one plug-in per MPI: libkiln_mpi_openmpi.so and libkiln_mpi_mpich.so.
 * Which one fits is seen from the MPI that the process has loaded, else from the
 * environment variables that the launchers set. Otherwise each one is tried. A
 * plug-in is searched next to the library kiln_comm, then by the loader. */
#include "group.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An MPI: its plug-in, a symbol that only this MPI has, and the variable that its
 * launchers set. */
typedef struct mpi_kind {
  const char *plugin, *symbol, *variable;
} mpi_kind;

static const mpi_kind kinds[] = {
    {"libkiln_mpi_openmpi.so", "ompi_mpi_comm_world", "OMPI_COMM_WORLD_SIZE"},
    {"libkiln_mpi_mpich.so", "MPIR_Err_return_comm", "PMI_SIZE"},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Returns the number of the MPI of this process, or -1 if it is unknown. */
static int own_kind(void)
{
  for (int k = 0; k < KINDS; k++) {
    if (dlsym(RTLD_DEFAULT, kinds[k].symbol) != NULL)
      return k;
  }
  for (int k = 0; k < KINDS; k++) {
    if (secure_getenv(kinds[k].variable) != NULL)
      return k;
  }
  return -1;
}

/* Loads one plug-in. Appends to `tried` why it cannot be used. The MPI library
 * becomes visible to all later libraries, because Open MPI loads components that
 * need its symbols. The plug-in stays loaded, as MPI cannot be started twice. */
static const kiln__wire_api *load(const char *path, char *tried, size_t size)
{
  const size_t used = strlen(tried);
  void *const library = dlopen(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
  kiln__wire_entry entry = NULL;
  void *symbol;

  if (library == NULL) {
    const char *why = dlerror();

    (void)snprintf(tried + used, size - used, "%s%.200s", used > 0 ? "; " : "",
                   why != NULL ? why : path);
    return NULL;
  }
  symbol = dlsym(library, KILN__WIRE_ENTRY);
  memcpy(&entry, &symbol, sizeof entry);
  (void)dlclose(library); /* RTLD_NODELETE keeps it loaded */
  if (entry != NULL && entry()->version == KILN__WIRE_VERSION)
    return entry();
  (void)snprintf(tried + used, size - used,
                 "%s%s: not a plug-in of this version of Kiln",
                 used > 0 ? "; " : "", path);
  return NULL;
}

/* Writes the path of a plug-in in the folder of this library, or of the program that
 * contains it. */
static bool beside(char path[PATH_MAX], const char *plugin)
{
  char own[PATH_MAX];
  const char *slash;
  Dl_info info;
  int n;

  if (dladdr(&kinds, &info) == 0 || info.dli_fname == NULL)
    return false;
  /* The name of a program is what its caller wrote. */
  if (realpath(info.dli_fname[0] == '/' ? info.dli_fname : "/proc/self/exe",
               own) == NULL)
    return false;
  slash = strrchr(own, '/');
  n = snprintf(path, PATH_MAX, "%.*s/%s", (int)(slash - own), own, plugin);
  return n > 0 && n < PATH_MAX;
}

kiln_status kiln__find_mpi(const kiln__wire_api **out, const char *path)
{
  const int own = own_kind();
  char tried[600] = "";
  char near[PATH_MAX];

  if (path == NULL)
    path = secure_getenv("KILN_MPI");
  *out = NULL;
  if (path != NULL)
    *out = load(path, tried, sizeof tried);
  for (int k = 0; path == NULL && *out == NULL && k < KINDS; k++) {
    if (own >= 0 && k != own)
      continue;
    if (beside(near, kinds[k].plugin))
      *out = load(near, tried, sizeof tried);
    if (*out == NULL)
      *out = load(kinds[k].plugin, tried, sizeof tried);
  }
  if (*out != NULL)
    return KILN_OK;
  return kiln__comm_fail(KILN_ENOTFOUND,
                         "build Kiln where mpicc is installed, or set KILN_MPI "
                         "to the path of libkiln_mpi_*.so",
                         "no MPI plug-in can be loaded: %s", tried);
}

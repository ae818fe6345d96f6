/* bench_reduce_peer.c -- CUB's reduction from a shared object that only a
 * machine with nvcc can build; the command itself links nothing of CUDA. */
#include "bench_reduce.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void beside_executable(char *path, size_t size)
{
  const ssize_t n = readlink("/proc/self/exe", path, size - 1);
  char *slash;

  path[n > 0 ? n : 0] = '\0';
  slash = strrchr(path, '/');
  if (slash != NULL)
    slash[1] = '\0';
  strncat(path, "libkiln_peers.so", size - strlen(path) - 1);
}

/* dlsym gives a data pointer; a function pointer has to be copied from it. */
static bool symbol(void *library, const char *name, void *function)
{
  void *address = dlsym(library, name);

  memcpy(function, &address, sizeof address);
  return address != NULL;
}

bool kiln__bench_peer_open(bench_peer *peer, const char *path, int ordinal)
{
  int (*version)(void) = NULL;

  *peer = (bench_peer){0};
  if (path != NULL)
    snprintf(peer->place, sizeof peer->place, "%s", path);
  else
    beside_executable(peer->place, sizeof peer->place);
  if (access(peer->place, R_OK) != 0) {
    snprintf(peer->place, sizeof peer->place,
             "no libkiln_peers.so (build with -DKILN_PEERS=ON)");
    return false;
  }
  peer->library = dlopen(peer->place, RTLD_NOW | RTLD_LOCAL);
  if (peer->library == NULL) {
    const char *why = dlerror();

    snprintf(peer->place, sizeof peer->place, "%s",
             why != NULL ? why : "dlopen");
    return false;
  }
  if (symbol(peer->library, "kiln_peer_device", &peer->use_device) &&
      symbol(peer->library, "kiln_peer_version", &version) &&
      symbol(peer->library, "kiln_peer_reduce_sum_f32",
             &peer->reduce_sum_f32) &&
      peer->use_device(ordinal) == 0) {
    const int v = version();

    snprintf(peer->version, sizeof peer->version, "%d.%d.%d", v / 100000,
             v / 100 % 1000, v % 100);
    return true;
  }
  kiln__bench_peer_close(peer);
  snprintf(peer->place, sizeof peer->place,
           "the peers' library does not fit this command or this GPU");
  return false;
}

void kiln__bench_peer_close(bench_peer *peer)
{
  /* Not unloaded: the CUDA runtime inside registers exit handlers. */
  peer->library = NULL;
}

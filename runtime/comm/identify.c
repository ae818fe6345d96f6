/* identify.c -- unique ids of groups, for launchers that are not MPI.
 *
 * An id names either a segment of shared memory, together with the machine that made
 * it, or is an id of NCCL. Its bytes travel between ranks of the same build. */
#include "find_nccl.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static const char magic[8] = "kiln id";

typedef struct contents {
  char magic[sizeof magic];
  uint32_t data;    /* kiln_comm_data */
  char machine[20]; /* Linux's boot id, its first 19 characters */
  char name[32];    /* of the segment */
  kiln__nccl_id nccl;
} contents;
_Static_assert(sizeof(contents) <= sizeof(kiln_comm_id), "kiln_comm_id");

/* Reads what tells this machine from others. Empty if it cannot be read. */
static void read_machine(char machine[20])
{
  const int file =
      open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

  memset(machine, 0, 20);
  if (file < 0)
    return;
  if (read(file, machine, 19) < 0)
    machine[0] = '\0';
  (void)close(file);
}

static kiln_status make_nccl_id(contents *c, const char *path)
{
  kiln__nccl_api api;
  const kiln_status st = kiln__find_nccl(&api, path);

  if (st != KILN_OK)
    return st;
  if (api.GetUniqueId(&c->nccl) != KILN__NCCL_SUCCESS)
    return kiln__comm_fail(KILN_ECOMM,
                           "set NCCL_DEBUG=WARN to see its messages, and "
                           "NCCL_SOCKET_IFNAME to choose a network",
                           "ncclGetUniqueId failed");
  return KILN_OK;
}

kiln_status kiln_comm_unique_id(kiln_comm_id *out, const kiln_comm_opts *opts)
{
  kiln_status st = kiln__comm_check_opts(opts);
  unsigned long long number = 0;
  contents c;

  if (out == NULL)
    return kiln__comm_fail(KILN_EINVAL, NULL, "out is NULL");
  memset(out, 0, sizeof *out);
  if (st != KILN_OK)
    return st;
  memset(&c, 0, sizeof c);
  memcpy(c.magic, magic, sizeof magic);
  c.data = opts != NULL ? (uint32_t)opts->data : (uint32_t)KILN_COMM_HOST;
  if (c.data == KILN_COMM_NCCL) {
    st = make_nccl_id(&c, opts->nccl);
    if (st != KILN_OK)
      return st;
  }
  if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
    return kiln__comm_fail(KILN_ECOMM, NULL,
                           "the system gives no random number");
  read_machine(c.machine);
  (void)snprintf(c.name, sizeof c.name, "/kiln-%016llx", number);
  memcpy(out, &c, sizeof c);
  return KILN_OK;
}

static kiln_status check_id(contents *c, kiln_comm **out, kiln_device *device,
                            const kiln_comm_id *id, int ranks, int rank)
{
  if (out == NULL)
    return kiln__comm_fail(KILN_EINVAL, NULL, "out is NULL");
  *out = NULL;
  if (device == NULL || id == NULL)
    return kiln__comm_fail(KILN_EINVAL, NULL, "device or id is NULL");
  if (ranks < 1 || rank < 0 || rank >= ranks || ranks > KILN__MAX_RANKS)
    return kiln__comm_fail(KILN_EINVAL,
                           "ranks are numbered from 0 to ranks - 1",
                           "rank %d of %d ranks is not valid", rank, ranks);
  memcpy(c, id, sizeof *c);
  if (memcmp(c->magic, magic, sizeof magic) != 0)
    return kiln__comm_fail(KILN_EINVAL,
                           "pass all bytes of the id of kiln_comm_unique_id()",
                           "the id is not one of kiln_comm_unique_id()");
  c->machine[sizeof c->machine - 1] = c->name[sizeof c->name - 1] = '\0';
  return KILN_OK;
}

/* Joins the group of a segment of shared memory. */
static kiln_status join_shared(kiln_comm **out, kiln_device *device,
                               const contents *c, int ranks, int rank,
                               const kiln_comm_opts *opts)
{
  const unsigned timeout_ms = kiln__comm_timeout(opts);
  const kiln__shared_group group = {c->name, ranks, rank, timeout_ms};
  char machine[20];
  kiln_status st;

  read_machine(machine);
  if (strcmp(machine, c->machine) != 0)
    return kiln__comm_fail(KILN_EINVAL,
                           "use MPI, or make the id with data = KILN_COMM_NCCL",
                           "the id was made on another machine, and its ranks "
                           "share memory");
  if (ranks > KILN__SHARED_MOST)
    return kiln__comm_fail(KILN_EINVAL, "use MPI for larger groups",
                           "a group in shared memory has at most %d ranks",
                           KILN__SHARED_MOST);
  st = kiln__comm_join(out, &kiln__shared_wire, &group, NULL, device,
                       timeout_ms);
  if (st != KILN_OK || opts == NULL || opts->data != KILN_COMM_NCCL)
    return st;
  st = kiln__nccl_join(out, 1, opts->nccl);
  if (st != KILN_OK) {
    kiln_comm_free(*out);
    *out = NULL;
  }
  return st;
}

kiln_status kiln_comm_create_id(kiln_comm **out, kiln_device *device,
                                const kiln_comm_id *id, int ranks, int rank,
                                const kiln_comm_opts *opts)
{
  contents c;
  kiln_status st = check_id(&c, out, device, id, ranks, rank);

  if (st == KILN_OK)
    st = kiln__comm_check_opts(opts);
  if (st != KILN_OK)
    return st;
  if (c.data == KILN_COMM_NCCL)
    return kiln__comm_join_nccl_id(out, device, &c.nccl, ranks, rank,
                                   opts != NULL ? opts->nccl : NULL,
                                   kiln__comm_timeout(opts));
  return join_shared(out, device, &c, ranks, rank, opts);
}

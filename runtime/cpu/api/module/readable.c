/* readable.c -- finds out whether memory of this process can be read.
 *
 * Problem: the host code of a program registers fat binaries by pointers, without their
 * sizes. If a header is damaged, its lengths lead to addresses where nothing is mapped.
 *
 * Idea: a system call that reads the process's memory fails with EFAULT instead of ending
 * the process. One byte per page is written to a file in memory.
 *
 * Cost: one system call per page, which callers spend only on what they read anyway. */
#include "readable.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096 };

void kiln__cpu_probe_open(kiln__cpu_probe *probe)
{
  probe->fd = memfd_create("kiln-probe", MFD_CLOEXEC);
}

void kiln__cpu_probe_close(kiln__cpu_probe *probe)
{
  if (probe->fd >= 0)
    close(probe->fd);
  probe->fd = -1;
}

/* The C library's pwrite() will not do: the address sanitizer reports addresses that
 * the program itself must not read. */
static bool byte_is_readable(const kiln__cpu_probe *probe, uintptr_t at)
{
  return syscall(SYS_pwrite64, probe->fd, at, (size_t)1, (long)0) == 1 ||
         errno != EFAULT;
}

bool kiln__cpu_readable(const kiln__cpu_probe *probe, const void *p,
                        uint64_t size)
{
  const uintptr_t first = (uintptr_t)p;

  if (size > UINTPTR_MAX - first)
    return false;
  if (probe == NULL || probe->fd < 0 || size == 0)
    return true;
  for (uintptr_t at = first; at < first + size; at = (at / PAGE + 1) * PAGE) {
    if (!byte_is_readable(probe, at))
      return false;
  }
  return true;
}

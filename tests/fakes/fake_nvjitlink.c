/* fake_nvjitlink.c -- a fake of nvJitLink 12.4. As in the real library, symbol
 * names contain the release, and names without a release do not exist. PTX that
 * contains BAD does not assemble. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct job {
  char arch[32];
  char *ptx;
  char cubin[4096];
} job;

static int live; /* number of nvJitLink handles that were not destroyed yet */

#define RELEASE(minor)                                                         \
  EXPORT int __nvJitLinkCreate_12_##minor(job **out, uint32_t n,               \
                                          const char **options)                \
  {                                                                            \
    return create(out, n, options);                                            \
  }

static int create(job **out, uint32_t n, const char **options)
{
  if (n != 1 || strncmp(options[0], "-arch=sm_", 9) != 0)
    return 1;
  *out = calloc(1, sizeof **out);
  snprintf((*out)->arch, sizeof(*out)->arch, "%s", options[0] + 6);
  live++;
  return 0;
}

RELEASE(0)
RELEASE(4)

EXPORT int fake_nvjitlink_live(void)
{
  return live;
}

EXPORT int __nvJitLinkDestroy_12_4(job **j)
{
  free((*j)->ptx);
  free(*j);
  *j = NULL;
  live--;
  return 0;
}

EXPORT int __nvJitLinkAddData_12_4(job *j, int type, const void *data,
                                   size_t size, const char *name)
{
  if (type != 2 || name == NULL || size == 0 ||
      ((const char *)data)[size - 1] != '\0')
    return 3;
  j->ptx = strdup(data);
  return 0;
}

EXPORT int __nvJitLinkComplete_12_4(job *j)
{
  if (strstr(j->ptx, "BAD") != NULL)
    return 4;
  snprintf(j->cubin, sizeof j->cubin, "\177ELF fake cubin %s\n%s", j->arch,
           j->ptx);
  return 0;
}

EXPORT int __nvJitLinkGetLinkedCubinSize_12_4(job *j, size_t *size)
{
  *size = strlen(j->cubin);
  return 0;
}

EXPORT int __nvJitLinkGetLinkedCubin_12_4(job *j, void *out)
{
  memcpy(out, j->cubin, strlen(j->cubin));
  return 0;
}

static const char log_text[] = "ptxas line 1; error: BAD";

EXPORT int __nvJitLinkGetErrorLogSize_12_4(job *j, size_t *size)
{
  (void)j;
  *size = sizeof log_text;
  return 0;
}

EXPORT int __nvJitLinkGetErrorLog_12_4(job *j, char *out)
{
  (void)j;
  memcpy(out, log_text, sizeof log_text);
  return 0;
}

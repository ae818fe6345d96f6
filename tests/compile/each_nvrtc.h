/* each_nvrtc.h -- runs every test of a file once per available NVRTC.
 *
 * KILN_TEST_NVRTC lists the libraries, separated by colons. Without it, the
 * tests use the libraries that discovery finds. */
#ifndef KILN_TEST_EACH_NVRTC_H
#define KILN_TEST_EACH_NVRTC_H

#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EACH_MAX = 8 };

static char each_path[EACH_MAX][512];
static int each_version[EACH_MAX];
static int each_n;

static void each_describe(const kiln_runtime_opts *opts)
{
  kiln_nvrtc_info info[EACH_MAX];
  kiln_runtime *rt;
  size_t n = 0;

  if (kiln_runtime_create(&rt, opts) != KILN_OK)
    return;
  if (kiln_runtime_nvrtc(rt, info, EACH_MAX, &n) == KILN_OK) {
    for (size_t i = 0; i < n && i < EACH_MAX && each_n < EACH_MAX; i++) {
      snprintf(each_path[each_n], sizeof each_path[0], "%s", info[i].path);
      each_version[each_n++] = info[i].version;
    }
  }
  kiln_runtime_free(rt);
}

/* Returns the number of NVRTC libraries. If there is none, prints the reason
 * and returns 0. */
static int each_find(void)
{
  const char *list = getenv("KILN_TEST_NVRTC");
  char copy[4096], *rest = copy, *path;

  if (list == NULL || list[0] == '\0') {
    each_describe(&(kiln_runtime_opts){.cache_off = true});
  } else {
    snprintf(copy, sizeof copy, "%s", list);
    while ((path = strsep(&rest, ":")) != NULL) {
      if (path[0] != '\0')
        each_describe(&(kiln_runtime_opts){
            .ignore_env = true, .cache_off = true, .nvrtc_path = path});
    }
  }
  if (each_n == 0)
    printf("skipped: no NVRTC found; set KILN_TEST_NVRTC\n");
  return each_n;
}

static inline kiln_runtime *each_runtime(int i, const char *cache)
{
  const kiln_runtime_opts opts = {
      .ignore_env = true, .nvrtc_path = each_path[i], .cache_dir = cache};
  kiln_runtime *rt;

  ck_kiln_ok(kiln_runtime_create(&rt, &opts));
  return rt;
}

#endif

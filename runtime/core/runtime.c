/* runtime.c -- creates and frees the runtime (the root object of the API), and
 * finds the driver, NVRTC and nvJitLink on first use. */
#include "runtime.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
  DEFAULT_WAIT_MS = 20000,
  MAX_DEFAULT_THREADS = 8,
  MAX_PACKS = 64,
  PATH_SIZE = 4096
};

static const char *setting(const kiln_runtime_opts *opts, const char *given,
                           const char *variable)
{
  if (given != NULL || opts->ignore_env)
    return given;
  return kiln__env(variable);
}

/* Returns the value of KILN_LINK. */
static kiln__link_use link_use(void)
{
  const char *value = kiln__env("KILN_LINK");

  if (value != NULL && strcmp(value, "off") == 0)
    return KILN__LINK_NEVER;
  return value != NULL && strcmp(value, "always") == 0 ? KILN__LINK_ALWAYS
                                                       : KILN__LINK_CHEAP;
}

/* Parses a size such as "64M" and returns the number of bytes, or 0 if the text
 * is not a size. */
static uint64_t parse_bytes(const char *text)
{
  char *end;
  uint64_t value, unit = 1;

  if (text == NULL || text[0] < '0' || text[0] > '9')
    return 0;
  errno = 0;
  value = strtoull(text, &end, 10);
  switch (*end) {
  case 'K':
  case 'k':
    unit = (uint64_t)1 << 10;
    end++;
    break;
  case 'M':
  case 'm':
    unit = (uint64_t)1 << 20;
    end++;
    break;
  case 'G':
  case 'g':
    unit = (uint64_t)1 << 30;
    end++;
    break;
  default:
    break;
  }
  if (errno == ERANGE || *end != '\0' || value > UINT64_MAX / unit)
    return 0;
  return value * unit;
}

/* Returns the value of KILN_CACHE_SIZE in bytes. Returns 0, which selects the
 * default, if the variable is unset or not a size. */
static uint64_t cache_size(kiln_runtime *rt)
{
  static const char why[] =
      "it is not a size, so the default holds: write bytes, or a number with "
      "K, M or G, such as 64M";
  const char *text = kiln__env("KILN_CACHE_SIZE");
  const uint64_t bytes = parse_bytes(text);

  if (text != NULL && bytes == 0) {
    kiln__trail_add(rt->trail, "cache", "environment KILN_CACHE_SIZE", text,
                    why);
    kiln__logf(&rt->log, KILN_LOG_WARNING, "KILN_CACHE_SIZE=%s is ignored: %s",
               text, why);
  }
  return bytes;
}

/* Determines the path of the cache folder. Returns false if there is none. A
 * relative XDG_CACHE_HOME or HOME is ignored, as the XDG Base Directory
 * Specification requires. */
static bool cache_dir(const kiln_runtime_opts *opts, char out[PATH_SIZE])
{
  const char *dir = setting(opts, opts->cache_dir, "KILN_CACHE_DIR");

  if (opts->cache_off || (dir != NULL && strcmp(dir, "off") == 0))
    return false;
  if (dir != NULL)
    return kiln__copy_text(out, PATH_SIZE, dir);
  if (opts->ignore_env)
    return false;
  dir = kiln__env("XDG_CACHE_HOME");
  if (dir != NULL && dir[0] == '/')
    return kiln__format(out, PATH_SIZE, "%s/kiln", dir);
  dir = kiln__env("HOME");
  if (dir != NULL && dir[0] == '/')
    return kiln__format(out, PATH_SIZE, "%s/.cache/kiln", dir);
  return false;
}

/* Collects the paths of packs: first from the options, then from the
 * environment variable KILN_PACKS, whose value is split in place. */
static size_t pack_list(const kiln_runtime_opts *opts, char *env,
                        const char *out[MAX_PACKS])
{
  size_t n = 0;
  char *rest = env, *path;

  for (size_t i = 0; i < opts->n_packs && n < MAX_PACKS; i++)
    out[n++] = opts->packs[i];
  while (n < MAX_PACKS && (path = strsep(&rest, ":")) != NULL) {
    if (path[0] != '\0')
      out[n++] = path;
  }
  return n;
}

static kiln_status open_cache(kiln_runtime *rt, const kiln_runtime_opts *opts,
                              const char *dir)
{
  const char *packs[MAX_PACKS];
  const char *env = opts->ignore_env ? NULL : kiln__env("KILN_PACKS");
  char *list = kiln__strdup(&rt->alloc, env);
  kiln__cache_config config = {
      .alloc = &rt->alloc,
      .log = &rt->log,
      .dir = dir,
      .cap_bytes = opts->cache_bytes,
      .wait_ms =
          opts->flight_wait_ms != 0 ? opts->flight_wait_ms : DEFAULT_WAIT_MS,
      .packs = packs,
  };
  kiln_status st;

  if (env != NULL && list == NULL)
    return kiln__fail_memory("pack paths");
  if (config.cap_bytes == 0 && !opts->ignore_env)
    config.cap_bytes = cache_size(rt);
  config.n_packs = pack_list(opts, list, packs);
  st = kiln__cache_open(&rt->cache, &config);
  kiln__free(&rt->alloc, list);
  return st;
}

static kiln_status open_nvrtc(kiln_runtime *rt, const kiln_runtime_opts *opts)
{
  /* absolute path of the cache folder */
  const char *dir = kiln__cache_dir(rt->cache);
  char memo[PATH_SIZE];
  const kiln__nvrtc_places places = {
      .explicit_path = opts->nvrtc_path,
      .env_path = opts->ignore_env ? NULL : kiln__env("KILN_NVRTC"),
      .dirs = opts->nvrtc_dirs,
      .n_dirs = opts->n_nvrtc_dirs,
      .ignore_env = opts->ignore_env,
      .memo_path =
          dir != NULL && kiln__format(memo, sizeof memo, "%s/nvrtc.memo", dir)
              ? memo
              : NULL,
  };

  return kiln__nvrtc_set_create(&rt->nvrtc, &rt->alloc, &places, rt->trail,
                                &rt->log);
}

static kiln_status check_opts(const kiln_runtime_opts *opts)
{
  const kiln_allocator *a = &opts->allocator;
  const int set =
      (a->alloc != NULL) + (a->resize != NULL) + (a->release != NULL);
  const char *const paths[] = {opts->driver_path, opts->nvrtc_path,
                               opts->nvjitlink_path, opts->cache_dir};

  if (opts->driver != NULL && opts->driver_path != NULL)
    return kiln__fail(KILN_EINVAL, "set one of the two",
                      "both driver and driver_path are set");
  if (set != 0 && set != 3)
    return kiln__fail(KILN_EINVAL, "set alloc, resize and release, or none",
                      "the allocator is incomplete");
  for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
    if (paths[i] != NULL && paths[i][0] == '\0')
      return kiln__fail(KILN_EINVAL, "use NULL for the default",
                        "a path in kiln_runtime_opts is empty");
  }
  if ((opts->nvrtc_dirs == NULL && opts->n_nvrtc_dirs != 0) ||
      (opts->packs == NULL && opts->n_packs != 0))
    return kiln__fail(KILN_EINVAL, NULL,
                      "kiln_runtime_opts has a count without its list");
  return KILN_OK;
}

static kiln_status copy_paths(kiln_runtime *rt, const kiln_runtime_opts *opts)
{
  rt->driver_path = kiln__strdup(&rt->alloc, opts->driver_path);
  rt->nvjitlink_path = kiln__strdup(&rt->alloc, opts->nvjitlink_path);
  if ((opts->driver_path != NULL && rt->driver_path == NULL) ||
      (opts->nvjitlink_path != NULL && rt->nvjitlink_path == NULL))
    return kiln__fail_memory("runtime");
  return KILN_OK;
}

static unsigned thread_limit(const kiln_runtime_opts *opts)
{
  const unsigned cores = kiln__cores();

  if (opts->compile_threads != 0)
    return opts->compile_threads;
  return cores < MAX_DEFAULT_THREADS ? cores : MAX_DEFAULT_THREADS;
}

kiln_status kiln_runtime_create(kiln_runtime **out,
                                const kiln_runtime_opts *opts)
{
  static const kiln_runtime_opts defaults;
  kiln_status st = KILN_OK;
  kiln_allocator alloc;
  kiln_runtime *rt = NULL;
  char dir[PATH_SIZE];
  bool has_dir;

  if (out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out is NULL");
  *out = NULL;
  if (opts == NULL)
    opts = &defaults;
  KILN_TRY(check_opts(opts));

  alloc = opts->allocator;
  kiln__allocator_default(&alloc);
  rt = kiln__calloc(&alloc, 1, sizeof *rt);
  if (rt == NULL)
    return kiln__fail_memory("runtime");
  rt->alloc = alloc;
  rt->log = (kiln__log){opts->log, opts->log_user, opts->log_level};
  rt->ignore_env = opts->ignore_env;
  rt->link_use = opts->ignore_env ? KILN__LINK_CHEAP : link_use();
  rt->given_driver = opts->driver;
  pthread_mutex_init(&rt->lock, NULL);
  kiln__fork_guard_init(&rt->fork);

  rt->trail = kiln__trail_create(&rt->alloc);
  if (rt->trail == NULL)
    KILN_TRY(kiln__fail_memory("runtime"));
  KILN_TRY(copy_paths(rt, opts));
  has_dir = cache_dir(opts, dir);
  KILN_TRY(open_cache(rt, opts, has_dir ? dir : NULL));
  KILN_TRY(open_nvrtc(rt, opts));
  KILN_TRY(kiln__pool_create(&rt->pool, &rt->alloc, thread_limit(opts)));
  *out = rt;
  rt = NULL;

done:
  kiln_runtime_free(rt);
  return st;
}

void kiln_runtime_free(kiln_runtime *rt)
{
  kiln_allocator alloc;

  if (rt == NULL)
    return;
  alloc = rt->alloc;
  kiln__pool_free(rt->pool);
  kiln__nvjitlink_free(rt->link);
  kiln__nvrtc_set_free(rt->nvrtc);
  kiln__cache_close(rt->cache);
  kiln__trail_free(rt->trail);
  kiln__fork_guard_free(&rt->fork);
  pthread_mutex_destroy(&rt->lock);
  kiln__free(&alloc, rt->driver_path);
  kiln__free(&alloc, rt->nvjitlink_path);
  kiln__free(&alloc, rt);
}

kiln_status kiln__runtime_driver(kiln_runtime *rt, const kiln__driver **out)
{
  kiln_status st = kiln__fork_check(&rt->fork);

  *out = NULL;
  if (st != KILN_OK)
    return st;
  pthread_mutex_lock(&rt->lock);
  if (rt->driver_missing) {
    /* An earlier search for a driver failed. The search is not repeated, since
     * a driver does not appear while a program runs. */
    kiln__error_set(&rt->driver_error);
    st = KILN_ENODRIVER;
  } else if (!rt->driver_ready) {
    const char *env = rt->ignore_env ? NULL : kiln__env("KILN_DRIVER");

    if (rt->given_driver != NULL)
      st = kiln__driver_take(&rt->driver, rt->given_driver, rt->trail);
    else
      st = kiln__driver_open(&rt->driver, &rt->alloc, rt->driver_path, env,
                             rt->trail);
    rt->driver_ready = st == KILN_OK;
    rt->driver_missing = st == KILN_ENODRIVER;
    if (rt->driver_missing)
      kiln__error_get(&rt->driver_error);
  }
  pthread_mutex_unlock(&rt->lock);
  if (st == KILN_OK)
    *out = &rt->driver;
  return st;
}

/* Returns the path of the newest NVRTC with a CUDA major version that the
 * driver supports, or NULL if there is none. */
static const char *nvrtc_for_driver(kiln_runtime *rt, int newest_major)
{
  const kiln__nvrtc_id *ids;
  size_t n;

  if (kiln__nvrtc_list(rt->nvrtc, &ids, &n) != KILN_OK)
    return NULL;
  for (size_t i = 0; i < n; i++) {
    if (newest_major == 0 || ids[i].info.version / 1000 <= newest_major)
      return ids[i].info.path;
  }
  return NULL;
}

kiln_status kiln__runtime_link(kiln_runtime *rt, kiln__nvjitlink **out)
{
  kiln_status st = KILN_OK;

  pthread_mutex_lock(&rt->lock);
  if (!rt->link_tried) {
    const char *env = rt->ignore_env ? NULL : kiln__env("KILN_NVJITLINK");
    const int major = rt->driver_ready ? rt->driver.version / 1000 : 0;

    st = kiln__nvjitlink_open(&rt->link, &rt->alloc, rt->nvjitlink_path, env,
                              nvrtc_for_driver(rt, major), rt->ignore_env,
                              major, rt->trail);
    rt->link_tried = st != KILN_ENOMEM;
  }
  *out = rt->link;
  pthread_mutex_unlock(&rt->lock);
  return st == KILN_ENOMEM ? st : KILN_OK;
}

kiln_status kiln_runtime_driver(kiln_runtime *rt, kiln_driver_info *out)
{
  const kiln__driver *driver;
  kiln_status st;

  if (rt == NULL || out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "rt or out is NULL");
  memset(out, 0, sizeof *out);
  st = kiln__runtime_driver(rt, &driver);
  if (st != KILN_OK)
    return st;
  out->version = driver->version;
  out->ptx_only = driver->ptx_only;
  kiln__copy_text(out->path, sizeof out->path, driver->path);
  st = kiln__cu(driver, driver->deviceGetCount(&out->n_devices),
                "cuDeviceGetCount");
  if (st != KILN_OK)
    memset(out, 0, sizeof *out);
  return st;
}

kiln_status kiln_runtime_nvrtc(kiln_runtime *rt, kiln_nvrtc_info *out,
                               size_t capacity, size_t *n)
{
  const kiln__nvrtc_id *ids;
  kiln_status st;

  if (rt == NULL || n == NULL || (out == NULL && capacity != 0))
    return kiln__fail(KILN_EINVAL, NULL, "rt, n or out is NULL");
  *n = 0;
  st = kiln__nvrtc_list(rt->nvrtc, &ids, n);
  if (st != KILN_OK)
    return st;
  for (size_t i = 0; i < *n && i < capacity; i++)
    out[i] = ids[i].info;
  return KILN_OK;
}

kiln_status kiln_runtime_trail(kiln_runtime *rt, kiln_trail_fn fn, void *user)
{
  if (rt == NULL || fn == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "rt or fn is NULL");
  kiln__trail_each(rt->trail, fn, user);
  return KILN_OK;
}

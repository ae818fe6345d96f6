/* discovery.c -- searches all locations where an NVRTC library may be
 * installed.
 *
 * Problem: NVRTC is installed by toolkits, Python wheels, conda and
 * distributions, often in several versions. Loading a library to query its
 * version takes 50 ms.
 * Idea: search all locations in a fixed order. The order is: the caller's
 * folders, libraries loaded in the process, the system's loader, toolkits,
 * wheels and conda. The trail lists the examined paths in this order, for error
 * messages. Size, time and inode of every examined file and folder are recorded
 * as its stamp. As long as no stamp changes, the memo (a file with the results
 * of earlier searches) answers the next search without loading any library.
 * Invariant: the current directory is never searched. Relative paths in
 * variables and loader settings are skipped and recorded in the trail. */
#include "find.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#define WHAT "libnvrtc"

enum { NEWEST_MAJOR = 20, MAX_CHILDREN = 32, CHILD_SIZE = 64 };

#if defined(__aarch64__)
static const char *const triples[] = {"sbsa-linux", "aarch64-linux"};
#else
static const char *const triples[] = {"x86_64-linux"};
#endif

/* Environment variables that change which folders are searched. */
static const char *const variables[] = {"CUDA_PATH", "CUDA_HOME", "VIRTUAL_ENV",
                                        "CONDA_PREFIX", "HOME"};

/* ---- Stamps -------------------------------------------------------------- */

kiln__stamp kiln__stamp_of(const char *path)
{
  kiln__stamp out = {0};
  struct stat info;

  if (stat(path, &info) != 0)
    return out;
  out.exists = true;
  out.size = (uint64_t)info.st_size;
  out.inode = (uint64_t)info.st_ino;
  out.device = (uint64_t)info.st_dev;
  out.mtime_ns =
      (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
  return out;
}

bool kiln__stamp_same(const kiln__stamp *a, const kiln__stamp *b)
{
  return a->exists == b->exists && a->size == b->size && a->inode == b->inode &&
         a->mtime_ns == b->mtime_ns;
}

/* If a file changes twice within the time resolution of the file system, its
 * time stamp does not show the second change. If a search meets a file that
 * changed so recently, its result is not stored in the memo. */
static void note_age(kiln__search *s, const kiln__stamp *stamp)
{
  /* Time resolution in nanoseconds. The larger value is for file systems that
   * store whole seconds. */
  const int64_t grain =
      stamp->mtime_ns % 1000000000 == 0 ? 2000000000 : 50000000;

  if (stamp->exists && stamp->mtime_ns > s->began_ns - grain)
    s->fresh = true;
}

/* ---- Notes --------------------------------------------------------------- */

static void step(kiln__search *s, const char *how, const char *where,
                 const char *reason)
{
  kiln__trail_add(s->trail, WHAT, how, where, reason);
  kiln__memo_step(&s->lines, how, where, reason);
}

/* Records the stamp (size, time, inode) of a folder or file that is about to be
 * searched. */
static bool watch(kiln__search *s, const char *path)
{
  const kiln__stamp stamp = kiln__stamp_of(path);

  note_age(s, &stamp);
  s->odd_text = s->odd_text || strpbrk(path, "\t\n") != NULL;
  kiln__memo_watch(&s->lines, path, &stamp);
  return stamp.exists;
}

static bool join(char out[KILN__PATH_SIZE], const char *folder,
                 const char *name)
{
  return kiln__format(out, KILN__PATH_SIZE, "%s/%s", folder, name);
}

/* Returns a well-known absolute path. In tests, the path is below the test's
 * root folder. */
static const char *system_path(const kiln__search *s, const char *path,
                               char out[KILN__PATH_SIZE])
{
  const char *root = s->places->root;

  kiln__format(out, KILN__PATH_SIZE, "%s%s", root == NULL ? "" : root, path);
  return out;
}

bool kiln__search_push(kiln__search *s, const kiln__nvrtc_entry *entry)
{
  if (s->n == s->capacity) {
    const size_t capacity = s->capacity == 0 ? 4 : s->capacity * 2;
    kiln__nvrtc_entry *more =
        kiln__resize(s->alloc, s->entries, capacity * sizeof more[0]);

    if (more == NULL) {
      s->no_memory = true;
      return false;
    }
    s->entries = more;
    s->capacity = capacity;
  }
  s->entries[s->n++] = *entry;
  return true;
}

/* ---- One candidate ------------------------------------------------------- */

/* Sets the version, build and architectures of a library: from the memo of
 * earlier searches, or else by loading the library. */
static bool identify(kiln__search *s, kiln__nvrtc_entry *e, const char *path)
{
  kiln_status st;

  if (kiln__memo_library(s->memo, path, &e->stamp, &e->id))
    return true;
  kiln__copy_text(e->id.info.path, sizeof e->id.info.path, path);
  e->id.size = e->stamp.size;
  e->id.mtime_ns = e->stamp.mtime_ns;
  if (!kiln__library_build(path, e->id.build)) {
    char text[96];

    kiln__format(s->why, sizeof s->why, "cannot be read: %s",
                 errno == 0 ? "it is empty or no regular file"
                            : kiln__errno_text(errno, text, sizeof text));
    return false;
  }
  st = kiln__nvrtc_load(s->alloc, path, &e->table);
  if (st == KILN_OK) {
    e->id.info.version = e->table->version;
    e->id.info.loaded = true;
    st = kiln__nvrtc_archs(s->alloc, e->table, &e->id.info);
  }
  if (st == KILN_OK)
    return true;
  s->no_memory = s->no_memory || st == KILN_ENOMEM;
  kiln__copy_text(s->why, sizeof s->why, kiln_last_error()->message);
  if (e->table != NULL)
    dlclose(e->table->library);
  kiln__free(s->alloc, e->table);
  return false;
}

static const kiln__nvrtc_entry *known(const kiln__search *s,
                                      const kiln__stamp *stamp)
{
  for (size_t i = 0; i < s->n; i++) {
    if (s->entries[i].stamp.inode == stamp->inode &&
        s->entries[i].stamp.device == stamp->device)
      return &s->entries[i];
  }
  return NULL;
}

/* Adds an NVRTC library file to the results of the search if the file is
 * usable. Returns true if the file exists, even if it is unusable. */
static bool try_file(kiln__search *s, const char *how, const char *asked)
{
  kiln__nvrtc_entry e = {.stamp = kiln__stamp_of(asked)};
  char path[PATH_MAX];

  if (!e.stamp.exists || s->no_memory)
    return false;
  if (known(s, &e.stamp) != NULL) {
    watch(s, asked);
    return true;
  }
  s->why[0] = '\0';
  if (realpath(asked, path) == NULL)
    kiln__copy_text(s->why, sizeof s->why, strerror(errno));
  else if (strlen(path) >= KILN__PATH_SIZE)
    kiln__copy_text(s->why, sizeof s->why, "the path is too long");
  else if (identify(s, &e, path)) {
    note_age(s, &e.stamp);
    s->odd_text = s->odd_text || strpbrk(path, "\t\n") != NULL;
    if (strcmp(asked, path) != 0)
      /* The path is a symbolic link, and its target may change. */
      watch(s, asked);
    if (kiln__search_push(s, &e))
      step(s, how, path, NULL);
    else
      kiln__free(s->alloc, e.table);
    return true;
  }
  watch(s, asked); /* an unusable library file may be repaired in place */
  step(s, how, asked, s->why);
  return true;
}

static bool try_names(kiln__search *s, const char *how, const char *folder)
{
  char path[KILN__PATH_SIZE], name[32];
  bool found = false;

  for (int major = NEWEST_MAJOR; major >= 12; major--) {
    kiln__format(name, sizeof name, "libnvrtc.so.%d", major);
    if (join(path, folder, name))
      found = try_file(s, how, path) || found;
  }
  if (join(path, folder, "libnvrtc.so.11.2"))
    found = try_file(s, how, path) || found;
  if (join(path, folder, "libnvrtc.so"))
    found = try_file(s, how, path) || found;
  return found;
}

static void look_in(kiln__search *s, const char *how, const char *folder)
{
  if (!watch(s, folder))
    step(s, how, folder, "no such folder");
  else if (!try_names(s, how, folder))
    step(s, how, folder, "no libnvrtc in it");
}

/* ---- Search locations ---------------------------------------------------- */

typedef void place_fn(kiln__search *s, const char *how, const char *path);

/* Calls a function for each entry of a folder that has a name beginning with
 * `prefix`, in descending order of names. */
static void each_child(kiln__search *s, const char *how, const char *folder,
                       const char *prefix, place_fn *fn)
{
  char names[MAX_CHILDREN][CHILD_SIZE], path[KILN__PATH_SIZE];
  const struct dirent *entry;
  size_t n = 0;
  DIR *dir;

  if (!watch(s, folder))
    return;
  dir = opendir(folder);
  while (dir != NULL && n < MAX_CHILDREN && (entry = readdir(dir)) != NULL) {
    size_t at = n;

    if (!kiln__starts_with(entry->d_name, prefix) ||
        strlen(entry->d_name) >= CHILD_SIZE)
      continue;
    for (; at > 0 && strcmp(names[at - 1], entry->d_name) < 0; at--)
      memcpy(names[at], names[at - 1], CHILD_SIZE);
    kiln__copy_text(names[at], CHILD_SIZE, entry->d_name);
    n++;
  }
  if (dir != NULL)
    closedir(dir);
  for (size_t i = 0; i < n; i++) {
    if (join(path, folder, names[i]))
      fn(s, how, path);
  }
}

static void look_in_targets(kiln__search *s, const char *how, const char *root)
{
  char path[KILN__PATH_SIZE], below[64];

  for (size_t i = 0; i < sizeof triples / sizeof triples[0]; i++) {
    kiln__format(below, sizeof below, "targets/%s/lib", triples[i]);
    if (join(path, root, below) && watch(s, path))
      look_in(s, how, path);
  }
}

static void look_in_toolkit(kiln__search *s, const char *how, const char *root)
{
  char path[KILN__PATH_SIZE];

  if (!watch(s, root)) {
    step(s, how, root, "no such folder");
    return;
  }
  if (join(path, root, "lib64"))
    look_in(s, how, path);
  look_in_targets(s, how, root);
  if (join(path, root, "lib") && watch(s, path))
    look_in(s, how, path);
}

/* Searches a site-packages folder for NVRTC in NVIDIA's Python wheels. */
static void look_in_wheels(kiln__search *s, const char *how, const char *site)
{
  char nvidia[KILN__PATH_SIZE], path[KILN__PATH_SIZE], below[32];

  if (!join(nvidia, site, "nvidia") || !watch(s, nvidia))
    return;
  for (int major = NEWEST_MAJOR; major >= 13; major--) {
    kiln__format(below, sizeof below, "cu%d/lib", major);
    if (join(path, nvidia, below) && kiln__stamp_of(path).exists)
      look_in(s, how, path);
    kiln__format(below, sizeof below, "cu%d", major);
    if (join(path, nvidia, below) && kiln__stamp_of(path).exists)
      watch(s, path);
  }
  if (join(path, nvidia, "cuda_nvrtc/lib"))
    look_in(s, how, path);
}

static void look_in_python(kiln__search *s, const char *how, const char *python)
{
  static const char *const sites[] = {"site-packages", "dist-packages"};
  char path[KILN__PATH_SIZE];

  for (size_t i = 0; i < 2; i++) {
    if (join(path, python, sites[i]))
      look_in_wheels(s, how, path);
  }
}

static void look_in_pythons(kiln__search *s, const char *how,
                            const char *prefix)
{
  static const char *const libs[] = {"lib", "lib64"};
  char path[KILN__PATH_SIZE];

  for (size_t i = 0; i < 2; i++) {
    if (join(path, prefix, libs[i]))
      each_child(s, how, path, "python3", look_in_python);
  }
}

static void look_in_conda(kiln__search *s, const char *how, const char *prefix)
{
  char path[KILN__PATH_SIZE];

  if (join(path, prefix, "lib"))
    look_in(s, how, path);
  look_in_targets(s, how, prefix);
  look_in_pythons(s, how, prefix);
}

static void look_in_home(kiln__search *s, const char *how, const char *home)
{
  char path[KILN__PATH_SIZE];

  if (join(path, home, ".local"))
    look_in_pythons(s, how, path);
}

/* Searches the folder that an environment variable names, if its path is
 * absolute. */
static void look_at_variable(kiln__search *s, const char *variable,
                             place_fn *fn)
{
  const char *value = s->places->ignore_env ? NULL : kiln__env(variable);
  char how[64];

  if (value == NULL)
    return;
  kiln__format(how, sizeof how, "environment %s", variable);
  if (value[0] == '/')
    fn(s, how, value);
  else
    step(s, how, value, "not an absolute path");
}

/* ---- Libraries that the system's loader finds ---------------------------- */

static bool take_cached(void *user, const char *path)
{
  try_file(user, "system loader", path);
  return false;
}

static void look_in_loader_cache(kiln__search *s)
{
  char path[KILN__PATH_SIZE];

  system_path(s, "/etc/ld.so.cache", path);
  if (watch(s, path))
    kiln__loader_cache_each(s->alloc, path, WHAT ".so", take_cached, s,
                            &s->no_memory);
}

static void look_in_loader(kiln__search *s)
{
  for (size_t at = 0; at < s->loader.size;
       at += strlen(s->loader.data + at) + 1)
    look_in(s, "system loader", s->loader.data + at);
  look_in_loader_cache(s);
}

/* ---- Inputs -------------------------------------------------------------- */

static int take_loaded(struct dl_phdr_info *info, size_t size, void *user)
{
  kiln__search *s = user;
  const char *name = info->dlpi_name == NULL ? "" : info->dlpi_name;
  const char *slash = strrchr(name, '/');

  (void)size;
  if (slash != NULL && kiln__starts_with(slash + 1, WHAT ".so"))
    kiln__buf_add(&s->loaded, name, strlen(name) + 1);
  return 0;
}

static void add_input(kiln__buf *b, const char *text)
{
  const uint64_t n = text == NULL ? UINT64_MAX : strlen(text);

  kiln__buf_add(b, &n, sizeof n);
  if (text != NULL)
    kiln__buf_add(b, text, (size_t)n);
}

static void hash_inputs(kiln__search *s)
{
  const kiln__nvrtc_places *p = s->places;
  kiln__buf b;

  kiln__buf_init(&b, s->alloc);
  add_input(&b, s->given);
  add_input(&b, s->given_how);
  add_input(&b, p->root);
  for (size_t i = 0; i < p->n_dirs; i++)
    add_input(&b, p->dirs[i]);
  add_input(&b, p->ignore_env ? "" : NULL);
  for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
    add_input(&b, p->ignore_env ? NULL : kiln__env(variables[i]));
  kiln__buf_add(&b, &s->loaded.size, sizeof s->loaded.size);
  if (s->loaded.size > 0)
    kiln__buf_add(&b, s->loaded.data, s->loaded.size);
  if (s->loader.size > 0)
    kiln__buf_add(&b, s->loader.data, s->loader.size);
  s->no_memory = s->no_memory || b.failed;
  kiln__hash_text(s->inputs, b.data == NULL ? "" : b.data, b.size);
  kiln__buf_free(&b);
}

kiln_status kiln__search_init(kiln__search *s, const kiln_allocator *a,
                              const kiln__nvrtc_places *places,
                              kiln__trail *trail)
{
  *s = (kiln__search){.alloc = a, .places = places, .trail = trail, .memo = ""};
  kiln__buf_init(&s->loaded, a);
  kiln__buf_init(&s->loader, a);
  kiln__buf_init(&s->lines, a);
  s->began_ns = kiln__time_ns();
  if (places->explicit_path != NULL) {
    s->given = places->explicit_path;
    s->given_how = "option nvrtc_path";
  } else if (places->env_path != NULL) {
    s->given = places->env_path;
    s->given_how = "environment KILN_NVRTC";
  } else {
    dl_iterate_phdr(take_loaded, s);
    if (places->root == NULL)
      kiln__loader_folders(&s->loader, NULL, NULL);
  }
  hash_inputs(s);
  if (s->loaded.failed || s->loader.failed || s->no_memory)
    return kiln__fail_memory("the search for NVRTC");
  return KILN_OK;
}

void kiln__search_free(kiln__search *s)
{
  for (size_t i = 0; i < s->n; i++)
    kiln__free(s->alloc, s->entries[i].table);
  kiln__free(s->alloc, s->entries);
  kiln__buf_free(&s->loaded);
  kiln__buf_free(&s->loader);
  kiln__buf_free(&s->lines);
}

/* ---- The complete search for NVRTC libraries ---------------------------- */

static void look_at_given(kiln__search *s)
{
  const kiln__stamp stamp = kiln__stamp_of(s->given);

  if (!stamp.exists) {
    kiln__copy_text(s->why, sizeof s->why, strerror(errno));
    step(s, s->given_how, s->given, s->why);
  } else {
    try_file(s, s->given_how, s->given);
  }
}

static void look_in_dirs(kiln__search *s)
{
  for (size_t i = 0; i < s->places->n_dirs; i++) {
    const char *given = s->places->dirs[i];
    char path[PATH_MAX];

    if (given == NULL || given[0] == '\0')
      continue;
    if (realpath(given, path) == NULL || strlen(path) >= KILN__PATH_SIZE)
      step(s, "option nvrtc_dirs", given, "no such folder");
    else
      look_in(s, "option nvrtc_dirs", path);
    /* a symbolic link or a relative path may later refer to another file */
    watch(s, given);
  }
}

static void look_at_loaded(kiln__search *s)
{
  for (size_t at = 0; at < s->loaded.size;
       at += strlen(s->loaded.data + at) + 1) {
    const char *path = s->loaded.data + at;

    if (path[0] == '/')
      try_file(s, "loaded in this process", path);
    else
      step(s, "loaded in this process", path, "not an absolute path");
  }
}

static void look_in_toolkits(kiln__search *s)
{
  char path[KILN__PATH_SIZE];

  look_at_variable(s, "CUDA_PATH", look_in_toolkit);
  look_at_variable(s, "CUDA_HOME", look_in_toolkit);
  look_in_toolkit(s, "CUDA toolkit", system_path(s, "/usr/local/cuda", path));
  each_child(s, "CUDA toolkit", system_path(s, "/usr/local", path), "cuda-",
             look_in_toolkit);
  look_in_toolkit(s, "CUDA toolkit", system_path(s, "/opt/cuda", path));
}

static void look_in_environments(kiln__search *s)
{
  char path[KILN__PATH_SIZE];

  look_at_variable(s, "VIRTUAL_ENV", look_in_pythons);
  look_at_variable(s, "CONDA_PREFIX", look_in_conda);
  look_at_variable(s, "HOME", look_in_home);
  look_in_pythons(s, "Python wheel", system_path(s, "/usr/local", path));
  look_in_pythons(s, "Python wheel", system_path(s, "/usr", path));
}

kiln_status kiln__search_run(kiln__search *s)
{
  if (s->given != NULL) {
    look_at_given(s);
  } else {
    look_in_dirs(s);
    look_at_loaded(s);
    look_in_loader(s);
    look_in_toolkits(s);
    look_in_environments(s);
  }
  if (s->no_memory || s->lines.failed)
    return kiln__fail_memory("the search for NVRTC");
  return KILN_OK;
}

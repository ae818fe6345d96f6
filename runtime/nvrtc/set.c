/* set.c -- the set of NVRTC libraries that a runtime can use. The libraries are
 * found once, and each library is loaded on first use. */
#include "find.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* The array of descriptions of the libraries. Callers read the array without a
 * lock. When a library is loaded and its description changes, a new array is
 * created. The older arrays stay valid until the set is freed. */
typedef struct listing {
  struct listing *older;
  kiln__nvrtc_id ids[];
} listing;

struct kiln__nvrtc_set {
  const kiln_allocator *alloc;
  kiln__trail *trail;
  const kiln__log *log;
  /* settings of the search; the set owns the strings */
  kiln__nvrtc_places places;
  char **dirs;

  kiln__fork_mutex lock; /* mutex that guards the following members */
  bool searched;
  /* true if the libraries come from the memo (earlier runs) and none is
   * installed any more */
  bool gone;
  kiln__nvrtc_entry *entries; /* libraries sorted by version, newest first */
  size_t n;
  listing *list;
  /* Reason why the library at the only allowed path cannot be used. */
  char why[256];
};

/* ---- Making -------------------------------------------------------------- */

static bool copy(const kiln_allocator *a, const char **out, const char *text)
{
  *out = kiln__strdup(a, text);
  return text == NULL || *out != NULL;
}

static bool copy_places(kiln__nvrtc_set *set, const kiln__nvrtc_places *from)
{
  const kiln_allocator *a = set->alloc;
  kiln__nvrtc_places *to = &set->places;

  to->ignore_env = from->ignore_env;
  if (from->n_dirs > 0) {
    set->dirs = kiln__calloc(a, from->n_dirs, sizeof set->dirs[0]);
    if (set->dirs == NULL)
      return false;
  }
  to->dirs = (const char *const *)set->dirs;
  for (; to->n_dirs < from->n_dirs; to->n_dirs++) {
    set->dirs[to->n_dirs] = kiln__strdup(a, from->dirs[to->n_dirs]);
    if (set->dirs[to->n_dirs] == NULL && from->dirs[to->n_dirs] != NULL)
      return false;
  }
  return copy(a, &to->explicit_path, from->explicit_path) &&
         copy(a, &to->env_path, from->env_path) &&
         copy(a, &to->memo_path, from->memo_path) &&
         copy(a, &to->root, from->root);
}

kiln_status kiln__nvrtc_set_create(kiln__nvrtc_set **out,
                                   const kiln_allocator *a,
                                   const kiln__nvrtc_places *places,
                                   kiln__trail *trail, const kiln__log *log)
{
  kiln__nvrtc_set *set = kiln__calloc(a, 1, sizeof *set);

  *out = NULL;
  if (set == NULL)
    return kiln__fail_memory("NVRTC's places");
  set->alloc = a;
  set->trail = trail;
  set->log = log;
  kiln__fork_mutex_init(&set->lock);
  if (!copy_places(set, places)) {
    kiln__nvrtc_set_free(set);
    return kiln__fail_memory("NVRTC's places");
  }
  *out = set;
  return KILN_OK;
}

void kiln__nvrtc_set_free(kiln__nvrtc_set *set)
{
  const kiln_allocator *a;
  listing *older;

  if (set == NULL)
    return;
  a = set->alloc;
  for (size_t i = 0; i < set->n; i++)
    kiln__free(a, set->entries[i].table);
  kiln__free(a, set->entries);
  for (; set->list != NULL; set->list = older) {
    older = set->list->older;
    kiln__free(a, set->list);
  }
  for (size_t i = 0; i < set->places.n_dirs; i++)
    kiln__free(a, set->dirs[i]);
  kiln__free(a, set->dirs);
  kiln__free(a, (char *)set->places.explicit_path);
  kiln__free(a, (char *)set->places.env_path);
  kiln__free(a, (char *)set->places.memo_path);
  kiln__free(a, (char *)set->places.root);
  kiln__fork_mutex_destroy(&set->lock);
  kiln__free(a, set);
}

/* ---- Listing ------------------------------------------------------------- */

/* Creates a new array of descriptions for the callers. Returns false if memory
 * ran out. */
static bool publish(kiln__nvrtc_set *set)
{
  listing *list =
      kiln__calloc(set->alloc, 1, sizeof *list + set->n * sizeof list->ids[0]);

  if (list == NULL)
    return false;
  for (size_t i = 0; i < set->n; i++)
    list->ids[i] = set->entries[i].id;
  list->older = set->list;
  set->list = list;
  return true;
}

/* Sorts the libraries by version, newest first. Libraries of the same version
 * keep the order in which the search found them. */
static void sort(kiln__nvrtc_entry *entries, size_t n)
{
  for (size_t i = 1; i < n; i++) {
    const kiln__nvrtc_entry e = entries[i];
    size_t at = i;

    for (; at > 0 && entries[at - 1].id.info.version < e.id.info.version; at--)
      entries[at] = entries[at - 1];
    entries[at] = e;
  }
}

static kiln_status look(kiln__nvrtc_set *set, kiln__search *s)
{
  const char *path = set->places.memo_path;
  kiln_status st = KILN_OK;
  kiln_error record;
  kiln__buf memo;

  kiln__buf_init(&memo, set->alloc);
  if (path != NULL)
    KILN_TRY(kiln__memo_read(&memo, path));
  if (memo.size > 0)
    s->memo = memo.data;
  if (!kiln__memo_answer(s->memo, s)) {
    if (s->no_memory)
      KILN_TRY(kiln__fail_memory("the search for NVRTC"));
    /* Libraries that cannot be used left error records, although the search as
     * a whole has not failed. The caller's error record is therefore
     * restored. */
    kiln__error_get(&record);
    KILN_TRY(kiln__search_run(s));
    kiln__error_set(&record);
    if (path != NULL)
      kiln__memo_write(s->memo, path, s);
    if (s->n == 0) {
      kiln__memo_remembered(s->memo, s);
      set->gone = s->n > 0;
      if (s->no_memory)
        KILN_TRY(kiln__fail_memory("the search for NVRTC"));
    }
  }

done:
  s->memo = "";
  kiln__buf_free(&memo);
  return st;
}

static kiln_status search(kiln__nvrtc_set *set)
{
  kiln_status st = KILN_OK;
  kiln__search s;

  KILN_TRY(kiln__search_init(&s, set->alloc, &set->places, set->trail));
  KILN_TRY(look(set, &s));
  sort(s.entries, s.n);
  set->entries = s.entries;
  set->n = s.n;
  s.entries = NULL;
  s.n = 0;
  if (!publish(set)) {
    for (size_t i = 0; i < set->n; i++)
      kiln__free(set->alloc, set->entries[i].table);
    kiln__free(set->alloc, set->entries);
    set->entries = NULL;
    set->n = 0;
    KILN_TRY(kiln__fail_memory("NVRTC's list"));
  }
  kiln__copy_text(set->why, sizeof set->why, s.why);
  set->searched = true;

done:
  kiln__search_free(&s);
  return st;
}

static kiln_status fail_none(kiln__nvrtc_set *set)
{
  const kiln__nvrtc_places *p = &set->places;
  char text[KILN_ERROR_MESSAGE_SIZE - 32];

  if (p->explicit_path != NULL)
    return kiln__fail(KILN_ENONVRTC, "correct the path, or leave it NULL",
                      "%s (option nvrtc_path) cannot be used: %s",
                      p->explicit_path, set->why);
  if (p->env_path != NULL)
    return kiln__fail(KILN_ENONVRTC, "correct or unset KILN_NVRTC",
                      "%s (environment KILN_NVRTC) cannot be used: %s",
                      p->env_path, set->why);
  kiln__trail_text(set->trail, "libnvrtc", text, sizeof text);
  return kiln__fail(
      KILN_ENONVRTC,
      "install NVIDIA's run-time compiler (`pip install nvidia-cuda-nvrtc-cu12`"
      " or the package libnvrtc12), or set KILN_NVRTC to the path of "
      "libnvrtc.so",
      "no NVRTC: tried %s", text);
}

kiln_status kiln__nvrtc_known(kiln__nvrtc_set *set, const kiln__nvrtc_id **out,
                              size_t *n, bool *gone)
{
  kiln_status st = kiln__fork_mutex_lock(&set->lock);
  bool first;

  *out = NULL;
  *n = 0;
  *gone = false;
  if (st != KILN_OK)
    return st;
  first = !set->searched;
  if (first)
    st = search(set);
  if (st == KILN_OK && set->n > 0) {
    *out = set->list->ids;
    *n = set->n;
    *gone = set->gone;
  }
  kiln__fork_mutex_unlock(&set->lock);
  for (size_t i = 0; first && i < *n; i++)
    kiln__logf(set->log, KILN_LOG_INFO, "%s NVRTC %d.%d: %s",
               *gone ? "gone, but known from the memo:" : "found",
               (*out)[i].info.version / 1000,
               (*out)[i].info.version % 1000 / 10, (*out)[i].info.path);
  return st == KILN_OK && *n == 0 ? fail_none(set) : st;
}

kiln_status kiln__nvrtc_list(kiln__nvrtc_set *set, const kiln__nvrtc_id **out,
                             size_t *n)
{
  bool gone;
  const kiln_status st = kiln__nvrtc_known(set, out, n, &gone);

  if (!gone)
    return st;
  *out = NULL;
  *n = 0;
  return fail_none(set);
}

/* ---- Using --------------------------------------------------------------- */

/* Loads a library that the memo (the file with the results of earlier searches)
 * described. The library file may have changed since the memo was written. */
static kiln_status load(kiln__nvrtc_set *set, kiln__nvrtc_entry *e)
{
  kiln_status st;

  st = kiln__nvrtc_load(set->alloc, e->id.info.path, &e->table);
  if (st != KILN_OK || e->table->version == e->id.info.version)
    return st;
  st = kiln__fail(KILN_ENONVRTC, "start the program again",
                  "%s was replaced while the program ran: it is version %d "
                  "now and was %d",
                  e->id.info.path, e->table->version, e->id.info.version);
  kiln__free(set->alloc, e->table);
  e->table = NULL;
  return st;
}

kiln_status kiln__nvrtc_use(kiln__nvrtc_set *set, size_t i,
                            const kiln__nvrtc **out)
{
  kiln_status st = kiln__fork_mutex_lock(&set->lock);
  kiln__nvrtc_entry *e;

  *out = NULL;
  if (st != KILN_OK)
    return st;
  if (set->gone)
    KILN_TRY(fail_none(set));
  if (i >= set->n)
    KILN_TRY(
        kiln__fail(KILN_EINTERNAL, NULL, "there is no NVRTC number %zu", i));
  e = &set->entries[i];
  if (e->table == NULL)
    KILN_TRY(load(set, e));
  if (!e->in_use) {
    KILN_TRY(kiln__nvrtc_load_builtins(set->alloc, e->table));
    e->id.info.loaded = true;
    if (!publish(set))
      KILN_TRY(kiln__fail_memory("NVRTC's list"));
    e->in_use = true;
  }
  *out = e->table;

done:
  kiln__fork_mutex_unlock(&set->lock);
  return st;
}

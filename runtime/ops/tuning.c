/* tuning.c -- chooses the parameters that an operation runs with: threads per
 * block, elements per thread and so on. The parameters depend on the family of
 * operations (such as scan or sort), the element size, the size class (range of
 * n) and the GPU.
 *
 * The measurements of `kiln tune` on this GPU are searched first. The
 * measurements are read once from a file beside the disk cache. Then the table
 * in tuning.def is searched. If no row applies, a fixed default is used.
 *
 * Of the rows that apply to a call, the most specific row is used. A higher
 * compute capability is more specific. Among equal capabilities, a smaller size
 * class is more specific, and then a row for the element's own size.
 *
 * The measurements are an immutable list behind one atomic pointer. Readers
 * take no lock. Lists that were replaced stay allocated until the device is
 * freed. A file can make an operation slow but not wrong, since only rows that
 * this version itself would try are accepted. */
#include "ops.h"

#include "../base/os.h"

#include <kiln/cache.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct row {
  uint8_t family, size, log2_n, cc;
  kiln_tuning tuning;
} row;

static const row table[] = {
#define KILN_TUNED(family, size, log2_n, cc, block, items, per_sm, extra)      \
  {KILN__TUNED_##family, size, log2_n, cc, {block, items, per_sm, extra}},
#include "tuning.def"
};

static const char *const names[] = {
#define KILN_TUNED_FAMILY(id, name) name,
#include "tuning.def"
};

static const row candidates[] = {
#define KILN_CANDIDATE(family, block, items, per_sm, extra)                    \
  {KILN__TUNED_##family, 0, 64, 0, {block, items, per_sm, extra}},
#include "candidates.def"
};

enum {
  N_TABLE = sizeof table / sizeof table[0],
  N_CANDIDATES = sizeof candidates / sizeof candidates[0],
  LARGEST_FILE = 1 << 20
};

/* ---- Choosing a tuning row ----------------------------------------------- */

static bool fits(const row *r, unsigned cc, unsigned size, uint64_t n)
{
  return r->cc <= cc && (r->size == 0 || r->size == size) &&
         (r->log2_n >= 64 || n <= UINT64_C(1) << r->log2_n);
}

/* Returns whether row `a` is more specific than row `b`. Both rows apply to the
 * call. */
static bool beats(const row *a, const row *b)
{
  if (a->cc != b->cc)
    return a->cc > b->cc;
  if (a->log2_n != b->log2_n)
    return a->log2_n < b->log2_n;
  return a->size > b->size;
}

/* Returns the most specific row of a family that applies to a call, or NULL.
 * The rows of a family are consecutive in `rows`. */
static const row *best_of(const row *rows, size_t n_rows, unsigned family,
                          unsigned cc, unsigned size, uint64_t n)
{
  const row *best = NULL;
  size_t i = 0;

  while (i < n_rows && rows[i].family != family)
    i++;
  for (; i < n_rows && rows[i].family == family; i++)
    if (fits(&rows[i], cc, size, n) && (best == NULL || beats(&rows[i], best)))
      best = &rows[i];
  return best;
}

/* ---- Rows measured on this device --------------------------------------- */

typedef struct list {
  struct list *older; /* the older list that this list replaced */
  size_t n;
  row rows[];
} list;

static void free_lists(kiln_device *device)
{
  list *l = atomic_load(&device->tuned);

  while (l != NULL) {
    list *older = l->older;

    kiln__free(&device->rt->alloc, l);
    l = older;
  }
}

/* Publishes a new list of measured rows. The caller holds the device's lock. */
static kiln_status publish(kiln_device *device, const row *rows, size_t n)
{
  list *l = kiln__calloc(&device->rt->alloc, 1, sizeof *l + n * sizeof *rows);

  if (l == NULL)
    return kiln__fail_memory("tuned parameters");
  l->older = atomic_load(&device->tuned);
  for (unsigned family = 0; family < KILN__TUNED_COUNT; family++)
    for (size_t i = 0; i < n; i++)
      if (rows[i].family == family)
        l->rows[l->n++] = rows[i];
  device->tuned_free = free_lists;
  atomic_store(&device->tuned, l);
  return KILN_OK;
}

/* Publishes a copy of the list in which `added` replaces the row with the same
 * operation, element size and size class, or in which that row is missing. */
static kiln_status publish_with(kiln_device *device, const row *added,
                                bool missing)
{
  const list *l = atomic_load(&device->tuned);
  const size_t n = l == NULL ? 0 : l->n;
  row *rows = kiln__alloc(&device->rt->alloc, (n + 1) * sizeof *rows);
  kiln_status st;
  size_t kept = 0;

  if (rows == NULL)
    return kiln__fail_memory("tuned parameters");
  for (size_t i = 0; i < n; i++)
    if (l->rows[i].family != added->family || l->rows[i].size != added->size ||
        l->rows[i].log2_n != added->log2_n)
      rows[kept++] = l->rows[i];
  if (!missing)
    rows[kept++] = *added;
  st = publish(device, rows, kept);
  kiln__free(&device->rt->alloc, rows);
  return st;
}

/* ---- Tuning files: a header line, then one line per row ----------------- */

static const char head[] = "kiln tuning 1\n";

static int family_of(const char *name, size_t length)
{
  for (int i = 0; i < KILN__TUNED_COUNT; i++)
    if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
      return i;
  return -1;
}

static bool holds(const row *rows, size_t n, const row *r)
{
  for (size_t i = 0; i < n; i++)
    if (rows[i].family == r->family &&
        memcmp(&rows[i].tuning, &r->tuning, sizeof r->tuning) == 0)
      return true;
  return false;
}

static bool is_known(const row *r)
{
  return holds(candidates, N_CANDIDATES, r) || holds(table, N_TABLE, r);
}

/* Parses a line such as "scan 4 28 256 16 0 0": family, size, log2_n, block,
 * items, per_sm, extra. */
static bool parse_row(const char *line, size_t length, row *out)
{
  const char *at = memchr(line, ' ', length), *const end = line + length;
  unsigned long value[6];
  int family;

  if (at == NULL)
    return false;
  family = family_of(line, (size_t)(at - line));
  for (int i = 0; i < 6; i++) {
    char *behind;

    if (at >= end || *at != ' ')
      return false;
    value[i] = strtoul(at + 1, &behind, 10);
    if (behind == at + 1 || behind > end || value[i] > UINT16_MAX)
      return false;
    at = behind;
  }
  if (at != end || family < 0 || value[0] > 8 || value[1] > 64)
    return false;
  *out = (row){(uint8_t)family,
               (uint8_t)value[0],
               (uint8_t)value[1],
               0,
               {(uint16_t)value[2], (uint16_t)value[3], (uint16_t)value[4],
                (uint16_t)value[5]}};
  return is_known(out);
}

static kiln_status parse_file(const kiln__buf *file, kiln__buf *rows,
                              const char *path)
{
  const char *at = file->data;
  unsigned number = 1;

  if (!kiln__starts_with(at, head))
    return kiln__fail(KILN_ECORRUPT, "run `kiln tune` again",
                      "%s: not a file of tuned parameters", path);
  for (at += sizeof head - 1; *at != '\0'; at += *at == '\n') {
    const size_t length = strcspn(at, "\n");
    row r;

    number++;
    if (!parse_row(at, length, &r))
      return kiln__fail(KILN_ECORRUPT, "run `kiln tune` again",
                        "%s: line %u is not a row of parameters", path, number);
    kiln__buf_add(rows, &r, sizeof r);
    at += length;
  }
  return kiln__buf_status(rows, "tuned parameters");
}

/* Loads a tuning file. The caller holds the device's lock. */
static kiln_status load_locked(kiln_device *device, const char *path)
{
  kiln_status st = KILN_OK;
  kiln__buf file, rows;

  kiln__buf_init(&file, &device->rt->alloc);
  kiln__buf_init(&rows, &device->rt->alloc);
  KILN_TRY(kiln__read_file(&file, path, LARGEST_FILE));
  if (file.data == NULL || memchr(file.data, '\0', file.size) != NULL)
    st = kiln__fail(KILN_ECORRUPT, "run `kiln tune` again",
                    "%s: not a file of tuned parameters", path);
  if (st == KILN_OK)
    KILN_TRY(parse_file(&file, &rows, path));
  if (st == KILN_OK)
    st = publish(device, (const row *)(const void *)rows.data,
                 rows.size / sizeof(row));

done:
  kiln__buf_free(&file);
  kiln__buf_free(&rows);
  return st;
}

kiln_status kiln_tuning_path(kiln_device *device, char *buf, size_t size)
{
  const char *folder;
  char name[128];
  size_t n = 0;

  if (device == NULL || buf == NULL || size == 0)
    return kiln__fail(KILN_EINVAL, NULL, "device or buf is NULL");
  buf[0] = '\0';
  folder = kiln__cache_dir(device->rt->cache);
  if (folder == NULL)
    return kiln__fail(KILN_EIO, "set KILN_CACHE_DIR to a folder of your own",
                      "there is no cache folder");
  for (const char *p = device->info.name; *p != '\0' && n < sizeof name - 1;
       p++)
    name[n++] = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                       "0123456789",
                       *p) != NULL
                    ? *p
                    : '-';
  name[n] = '\0';
  if (!kiln__format(buf, size, "%s/tuning-%s-%d-%d.txt", folder, name,
                    device->traits.cc, KILN_VERSION))
    return kiln__fail(KILN_EINVAL, "give a larger buffer", "the path is cut");
  return KILN_OK;
}

/* Reads the tuning file beside the disk cache, once per device. If the file is
 * invalid, this function logs a warning, and the built-in table is used. The
 * caller's error record does not change. */
static void load_once(kiln_device *device)
{
  kiln_error record;
  char path[1024];

  pthread_mutex_lock(&device->lock);
  if (!device->tuned_read) {
    kiln__error_get(&record);
    if (kiln_tuning_path(device, path, sizeof path) == KILN_OK &&
        access(path, R_OK) == 0 && load_locked(device, path) != KILN_OK)
      kiln__logf(&device->rt->log, KILN_LOG_WARNING, "%s",
                 kiln_last_error()->message);
    kiln__error_set(&record);
    device->tuned_read = true;
  }
  pthread_mutex_unlock(&device->lock);
}

/* ---- Reading ------------------------------------------------------------- */

/* Returns the most specific measured row that applies to a call, or NULL. */
static const row *measured_row(kiln_device *device, unsigned family,
                               unsigned size, uint64_t n)
{
  const list *l;

  if (!device->tuned_read)
    load_once(device);
  l = atomic_load(&device->tuned);
  return l == NULL ? NULL
                   : best_of(l->rows, l->n, family, (unsigned)device->traits.cc,
                             size, n);
}

static kiln_tuning choose(kiln_device *device, unsigned family, unsigned size,
                          uint64_t n, bool *measured)
{
  const row *best = measured_row(device, family, size, n);

  *measured = best != NULL;
  if (best == NULL)
    best =
        best_of(table, N_TABLE, family, (unsigned)device->traits.cc, size, n);
  return best != NULL ? best->tuning : (kiln_tuning){256, 4, 0, 0};
}

uint64_t kiln__resident_blocks(const kiln_stream *stream,
                               const kiln_kernel *kernel, uint32_t threads)
{
  const kiln_device *device = stream->device;
  kiln_occupancy_result o = {0};
  kiln_kernel_info info = {0};

  kiln_kernel_describe(kernel, &info);
  kiln_occupancy(&device->traits, (int)threads, info.registers,
                 (size_t)info.shared_static, &o);
  return kiln__sm_count(device) *
         (o.blocks_per_sm > 0 ? (uint64_t)o.blocks_per_sm : 1);
}

kiln__tuning kiln__tuned(kiln_device *device, kiln__tuned_family family,
                         unsigned size, uint64_t n)
{
  bool measured;

  return choose(device, family, size, n, &measured);
}

kiln__tuning kiln__tuned_for(kiln_device *device, kiln__tuned_family family,
                             size_t size, uint64_t n)
{
  const unsigned nearest = size > 4 ? 8 : size == 3 ? 4 : (unsigned)size;
  const uint64_t times = size > 8 ? (size + 7) / 8 : 1;
  kiln__tuning t = kiln__tuned(device, family, nearest,
                               n > UINT64_MAX / times ? n : n * times);

  if (t.items > times)
    t.items = (uint16_t)(t.items / times);
  else
    t.items = 1;
  return t;
}

bool kiln__tuned_here(kiln_device *device, kiln__tuned_family family,
                      unsigned size, uint64_t n, kiln__tuning *out)
{
  const row *const r = measured_row(device, family, size, n);

  if (r != NULL)
    *out = r->tuning;
  return r != NULL;
}

uint32_t kiln__prefetch_tiles(const kiln_device *device, const kiln_input *x,
                              uint64_t n, uint64_t tiles)
{
  const uint64_t cache =
      device->info.l2_bytes > 0 ? (uint64_t)device->info.l2_bytes : 0;
  uint64_t bytes = 0, ahead;

  for (size_t k = 0; k < kiln__input_arrays(x); k++)
    bytes += n * kiln__size(x->in[k].type);
  if (cache == 0 || bytes < 4 * cache || tiles == 0 || bytes < tiles)
    return 0;
  ahead = cache / 10 * tiles / bytes;
  return ahead < 4096 ? (uint32_t)ahead : 4096;
}

/* ---- Public functions ---------------------------------------------------- */

enum {
  N_DETAILS = 0
#define KILN_TUNED_DETAIL(id, name, builtin, items, extra) +1
#include "candidates.def"
};

_Static_assert((int)N_DETAILS == (int)KILN__TUNED_COUNT,
               "candidates.def: a KILN_TUNED_DETAIL for every family");

const kiln_tuning_family *kiln_tuning_families(size_t *n)
{
  static const kiln_tuning_family families[KILN__TUNED_COUNT] = {
#define KILN_TUNED_DETAIL(id, name, builtin, items, extra)                     \
  [KILN__TUNED_##id] = {name, items, extra, builtin},
#include "candidates.def"
  };

  if (n != NULL)
    *n = KILN__TUNED_COUNT;
  return families;
}

const kiln_tuning *kiln_tuning_candidates(const char *family, size_t *n)
{
  static const kiln_tuning lists[] = {
#define KILN_CANDIDATE(name, block, items, per_sm, extra)                      \
  {block, items, per_sm, extra},
#include "candidates.def"
  };
  const int wanted = family == NULL ? -1 : family_of(family, strlen(family));
  size_t first = 0, count = 0;

  while (first < N_CANDIDATES && candidates[first].family != wanted)
    first++;
  while (first + count < N_CANDIDATES &&
         candidates[first + count].family == wanted)
    count++;
  if (n != NULL)
    *n = count;
  return count == 0 ? NULL : &lists[first];
}

static kiln_status find_family(const kiln_device *device, const char *name,
                               int *out)
{
  if (device == NULL || name == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "device or family is NULL");
  *out = family_of(name, strlen(name));
  if (*out < 0)
    return kiln__fail(KILN_ENOTFOUND, "kiln_tuning_families() lists them",
                      "no family \"%s\"", name);
  return KILN_OK;
}

kiln_status kiln_tuning_get(kiln_device *device, const char *family,
                            unsigned size, uint64_t n, kiln_tuning *out,
                            bool *measured)
{
  kiln_status st = KILN_OK;
  bool own;
  int which;

  if (out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out is NULL");
  *out = (kiln_tuning){0, 0, 0, 0};
  KILN_TRY(find_family(device, family, &which));
  *out = choose(device, (unsigned)which, size, n, &own);
  if (measured != NULL)
    *measured = own;

done:
  return st;
}

static kiln_status check_tuning(const kiln_tuning *t, unsigned size,
                                unsigned log2_n)
{
  if (t->block == 0 || t->block % 32 != 0 || t->block > 1024)
    return kiln__fail(KILN_EINVAL, "give a multiple of 32 up to 1,024",
                      "a block of %u threads", t->block);
  if (t->items == 0 || t->items > 256)
    return kiln__fail(KILN_EINVAL, "give 1 to 256", "%u items", t->items);
  if ((size != 0 && size != 1 && size != 2 && size != 4 && size != 8) ||
      log2_n > 64)
    return kiln__fail(KILN_EINVAL, "sizes are 1, 2, 4, 8 or 0 for any",
                      "elements of %u bytes, 2^%u of them", size, log2_n);
  return KILN_OK;
}

kiln_status kiln_tuning_set(kiln_device *device, const char *family,
                            unsigned size, unsigned log2_n,
                            const kiln_tuning *tuning)
{
  static const kiln_tuning any = {256, 1, 0, 0};
  kiln_status st = KILN_OK;
  int which;
  row added;

  KILN_TRY(find_family(device, family, &which));
  KILN_TRY(check_tuning(tuning != NULL ? tuning : &any, size, log2_n));
  if (!device->tuned_read)
    load_once(device);
  added = (row){(uint8_t)which, (uint8_t)size, (uint8_t)log2_n, 0,
                tuning != NULL ? *tuning : any};
  pthread_mutex_lock(&device->lock);
  st = publish_with(device, &added, tuning == NULL);
  pthread_mutex_unlock(&device->lock);

done:
  return st;
}

kiln_status kiln_tuning_reset(kiln_device *device)
{
  kiln_status st;

  if (device == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "device is NULL");
  pthread_mutex_lock(&device->lock);
  device->tuned_read = true;
  st = publish(device, NULL, 0);
  pthread_mutex_unlock(&device->lock);
  return st;
}

kiln_status kiln_tuning_save(kiln_device *device, const char *path)
{
  kiln_status st = KILN_OK;
  char own[1024];
  const list *l;
  kiln__buf text;

  if (device == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "device is NULL");
  kiln__buf_init(&text, &device->rt->alloc);
  if (path == NULL) {
    KILN_TRY(kiln_tuning_path(device, own, sizeof own));
    path = own;
  }
  kiln__buf_text(&text, head);
  l = atomic_load(&device->tuned);
  for (size_t i = 0; l != NULL && i < l->n; i++) {
    const row *r = &l->rows[i];

    kiln__buf_format(&text, "%s %u %u %u %u %u %u\n", names[r->family], r->size,
                     r->log2_n, r->tuning.block, r->tuning.items,
                     r->tuning.per_sm, r->tuning.extra);
  }
  KILN_TRY(kiln__buf_status(&text, "tuned parameters"));
  st = kiln__replace_file(path, text.data, text.size, 0600);

done:
  kiln__buf_free(&text);
  return st;
}

kiln_status kiln_tuning_load(kiln_device *device, const char *path)
{
  kiln_status st;

  if (device == NULL || path == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "device or path is NULL");
  pthread_mutex_lock(&device->lock);
  device->tuned_read = true;
  st = load_locked(device, path);
  pthread_mutex_unlock(&device->lock);
  return st;
}

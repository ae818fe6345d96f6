/* specialisation_cache.c -- the cache of specialised kernels, which are
 * compiled once per device.
 *
 * Problem: an operation's kernel is compiled for the types, expressions,
 * constants, tile and alignment of its call. A compilation takes at least 10
 * ms. A repeated call has to find its kernels in a fraction of a microsecond.
 *
 * Idea: everything that decides which code is compiled (kiln__spec) is
 * serialised to bytes, the key. The device has a hash table from keys to kernel
 * sets. A cache miss generates the headers for the user's expressions and
 * compiles through kiln__module_start(), which looks in the disk cache first.
 *
 * Invariant: two specs with equal keys compile to the same code. Therefore the
 * key holds everything that kiln__generate() and write_define() read. An entry
 * is never changed or removed before the device is freed, so pointers to kernel
 * sets stay valid without a lock.
 *
 * Threads: lookups share a read lock. No lock is held while compiling. If two
 * threads miss on the same key, both compile, and the second thread uses the
 * entry of the first.
 *
 * Cost: one hash (XXH3) and one comparison of a few hundred bytes, about 100 ns
 * per call. */
#include "link/link.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- Keys ---------------------------------------------------------------- */

enum { KEY_ON_STACK = 2048 };

/* A key of the cache while it is built. A short key stays on the stack. */
typedef struct key {
  unsigned char local[KEY_ON_STACK];
  unsigned char *data;
  size_t size, capacity;
  const kiln_allocator *alloc;
  bool failed;
} key;

static void key_init(key *k, const kiln_allocator *alloc)
{
  k->data = k->local;
  k->size = 0;
  k->capacity = sizeof k->local;
  k->alloc = alloc;
  k->failed = false;
}

static void key_free(key *k)
{
  if (k->data != k->local)
    kiln__free(k->alloc, k->data);
}

static bool key_grow(key *k, size_t more)
{
  const size_t wanted = 2 * (k->size + more);
  unsigned char *data = kiln__alloc(k->alloc, wanted);

  if (data == NULL) {
    k->failed = true;
    return false;
  }
  memcpy(data, k->data, k->size);
  key_free(k);
  k->data = data;
  k->capacity = wanted;
  return true;
}

static void key_add(key *k, const void *data, size_t size)
{
  if (k->failed || (size > k->capacity - k->size && !key_grow(k, size)))
    return;
  memcpy(k->data + k->size, data, size);
  k->size += size;
}

/* Adds a string with its terminating NUL to a key. A NULL pointer yields other
 * bytes than any string. */
static void key_text(key *k, const char *text)
{
  if (text == NULL)
    key_add(k, "\1", 1);
  else
    key_add(k, text, strlen(text) + 1);
}

static void key_code(key *k, const kiln_code *code)
{
  key_text(k, code->preamble);
  key_add(k, &code->fast_math, sizeof code->fast_math);
  key_add(k, &code->n_params, sizeof code->n_params);
  for (size_t i = 0; i < code->n_params && code->params != NULL; i++) {
    const kiln_param *p = &code->params[i];

    key_text(k, p->name);
    key_add(k, &p->type, sizeof p->type);
    key_add(k, &p->constant, sizeof p->constant);
    if (p->constant && p->value != NULL)
      key_add(k, p->value, kiln__size(p->type));
  }
}

static void key_shape(key *k, const kiln__spec *spec)
{
  uint32_t kinds = spec->shape->rank << 1 | spec->wide;

  for (size_t i = 0; i < KILN_MAX_INPUTS; i++)
    kinds = kinds << 2 | (uint32_t)spec->shape->view[i].kind;
  key_text(k, "views");
  key_add(k, &kinds, sizeof kinds);
}

/* The first part of every key. The struct has no padding, since padding
 * bytes would be undefined. */
typedef struct key_head {
  const kiln__family *family;
  uint32_t value[KILN__MAX_VALUES];
  uint32_t kernels, aligned, acc, quick;
} key_head;

_Static_assert(sizeof(key_head) == sizeof(void *) + 4 * (KILN__MAX_VALUES + 4),
               "key_head has padding");

static void key_of(key *k, const kiln__spec *spec, uint32_t aligned)
{
  key_head h = {.family = spec->family,
                .kernels = spec->kernels,
                .aligned = aligned,
                .acc = (uint32_t)spec->acc,
                .quick = spec->quick |
                         (uint32_t)(unsigned char)spec->suffix << 8 |
                         (uint32_t)kiln__size_class_of(spec->elements) << 16};

  memcpy(h.value, spec->value, sizeof h.value);
  key_add(k, &h, sizeof h);
  if (spec->input != NULL) {
    for (size_t i = 0; i < kiln__input_arrays(spec->input); i++)
      key_add(k, &spec->input->in[i].type, sizeof(kiln_dtype));
    key_add(k, "", 1);
    key_text(k, spec->input->map);
    key_add(k, &spec->input->type, sizeof spec->input->type);
  }
  if (spec->width != 0)
    key_text(k, spec->wide ? "wide rows" : "rows");
  if (spec->shape != NULL)
    key_shape(k, spec);
  if (spec->op != NULL) {
    key_add(k, &spec->op->name, sizeof spec->op->name);
    key_text(k, spec->op->expr);
    key_text(k, spec->op->identity);
  }
  for (size_t i = 0; i < KILN__MAX_FUNCTIONS && spec->function[i].name != NULL;
       i++)
    key_text(k, spec->function[i].expr);
  if (spec->pairs != NULL) {
    const char *what;

    key_add(k, &spec->pairs->n_targets, sizeof spec->pairs->n_targets);
    for (size_t i = 0; i < KILN__PAIR_TEXTS; i++)
      key_text(k, kiln__pair_text(spec->pairs, i, &what));
  }
  if (spec->code != NULL)
    key_code(k, spec->code);
}

/* Returns a mask of the input's arrays. Bit i is set if 16-byte loads may read
 * array i. */
static uint32_t aligned_arrays(const kiln__spec *spec)
{
  uint32_t mask = 0;

  if (spec->input == NULL || spec->unaligned)
    return 0;
  for (size_t i = 0; i < kiln__input_arrays(spec->input); i++) {
    const kiln_array *a = &spec->input->in[i];
    const uint64_t from = a->data + spec->first * kiln__size(a->type);

    mask |= (uint32_t)(from % 16 == 0) << i;
  }
  return mask;
}

/* ---- The hash table of a device ------------------------------------------ */

typedef struct entry {
  kiln__kernel_set set;
  uint64_t hash;
  size_t key_size;
  unsigned char key[];
} entry;

typedef struct table {
  pthread_rwlock_t lock;
  /* Hash table with open addressing and linear probing. Empty entries are
   * NULL. */
  entry **slot;
  size_t capacity, used;
} table;

static void entry_free(const kiln_allocator *alloc, entry *e)
{
  if (e == NULL)
    return;
  for (size_t i = 0; i < KILN__MAX_KERNELS; i++)
    kiln_module_free(e->set.module[i]);
  kiln__free(alloc, e);
}

static void table_free(kiln_device *device)
{
  table *t = device->ops;

  for (size_t i = 0; i < t->capacity; i++)
    entry_free(&device->rt->alloc, t->slot[i]);
  pthread_rwlock_destroy(&t->lock);
  kiln__free(&device->rt->alloc, t->slot);
  kiln__free(&device->rt->alloc, t);
}

static kiln_status make_table(kiln_device *device)
{
  kiln_status st = KILN_OK;

  pthread_mutex_lock(&device->lock);
  if (atomic_load(&device->ops) == NULL) {
    table *t = kiln__calloc(&device->rt->alloc, 1, sizeof *t);

    if (t == NULL || pthread_rwlock_init(&t->lock, NULL) != 0) {
      kiln__free(&device->rt->alloc, t);
      st = kiln__fail_memory("the table of operations");
    } else {
      device->ops_free = table_free;
      atomic_store(&device->ops, t);
    }
  }
  pthread_mutex_unlock(&device->lock);
  return st;
}

/* Returns the address of the hash table entry with this key. If the key is
 * missing, returns the address of the empty entry where the key belongs. */
static entry **slot_of(const table *t, const unsigned char *data, size_t size,
                       uint64_t hash)
{
  size_t i = (size_t)hash & (t->capacity - 1);

  for (;; i = (i + 1) & (t->capacity - 1)) {
    const entry *e = t->slot[i];

    if (e == NULL || (e->hash == hash && e->key_size == size &&
                      memcmp(e->key, data, size) == 0))
      return &t->slot[i];
  }
}

static const kiln__kernel_set *find(table *t, const key *k, uint64_t hash)
{
  const kiln__kernel_set *found = NULL;

  pthread_rwlock_rdlock(&t->lock);
  if (t->capacity > 0) {
    entry *const *slot = slot_of(t, k->data, k->size, hash);

    found = *slot == NULL ? NULL : &(*slot)->set;
  }
  pthread_rwlock_unlock(&t->lock);
  return found;
}

static bool grow(table *t, const kiln_allocator *alloc)
{
  const size_t capacity = t->capacity == 0 ? 64 : 2 * t->capacity;
  entry **slot = kiln__calloc(alloc, capacity, sizeof(entry *));

  if (slot == NULL)
    return false;
  for (size_t i = 0; i < t->capacity; i++) {
    size_t to;

    if (t->slot[i] == NULL)
      continue;
    to = (size_t)t->slot[i]->hash & (capacity - 1);
    while (slot[to] != NULL)
      to = (to + 1) & (capacity - 1);
    slot[to] = t->slot[i];
  }
  kiln__free(alloc, t->slot);
  t->slot = slot;
  t->capacity = capacity;
  return true;
}

/* Inserts the new entry `made` into the hash table and takes ownership of it.
 * If another thread has inserted the same key in the meantime, *out is the
 * kernel set of that thread, and `made` is freed. */
static kiln_status insert(const kiln__kernel_set **out, kiln_device *device,
                          entry *made)
{
  table *t = device->ops;
  kiln_status st = KILN_OK;
  entry **slot;

  pthread_rwlock_wrlock(&t->lock);
  if (2 * t->used >= t->capacity && !grow(t, &device->rt->alloc)) {
    st = kiln__fail_memory("the table of operations");
  } else {
    slot = slot_of(t, made->key, made->key_size, made->hash);
    if (*slot == NULL) {
      *slot = made;
      made = NULL;
      t->used++;
    }
    *out = &(*slot)->set;
  }
  pthread_rwlock_unlock(&t->lock);
  entry_free(&device->rt->alloc, made);
  return st;
}

/* ---- Programs ------------------------------------------------------------ */

enum { DEFINE_SIZE = 64, MORE_DEFINES = 3, N_HEADERS = 2 };

static void write_define(char text[DEFINE_SIZE], const char *define,
                         uint32_t value)
{
  const kiln_dtype type = (kiln_dtype)value;

  if (*define == ':')
    kiln__format(text, DEFINE_SIZE, "KILN_%s=%s", define + 1,
                 kiln__dtype_of(type) == NULL ? "void"
                                              : kiln__storage_text(type).c);
  else
    kiln__format(text, DEFINE_SIZE, "KILN_%s=%u", define, value);
}

/* One program that is compiled for a specialisation. The program contains all
 * kernels of the specialisation, or one of them. `body` is the same program with
 * undefined expressions, for a link. */
typedef struct part {
  char text[KILN__MAX_VALUES + MORE_DEFINES][DEFINE_SIZE];
  const char *define[KILN__MAX_VALUES + MORE_DEFINES];
  const char *body_define[KILN__MAX_VALUES + MORE_DEFINES + 1];
  kiln_program_desc desc, body;
  kiln__linked linked;
  kiln__loading loading;
  bool started;
} part;

/* A specialisation that is not in the hash table yet. */
typedef struct making {
  struct making *next;
  const kiln__spec *spec;
  const kiln__kernel_set **out;
  entry *made;
  kiln__buf types, texts;
  kiln_header generated[N_HEADERS];
  kiln_device *device;
  bool links; /* the programs are linked, and the following members are used */
  kiln__buf body_types, source;
  kiln_header body_generated[N_HEADERS];
  kiln_program_desc texts_desc; /* the program of the expressions */
  size_t n;
  part part[KILN__MAX_KERNELS];
} making;

static void making_free(making *m, const kiln_allocator *alloc)
{
  kiln__buf_free(&m->types);
  kiln__buf_free(&m->texts);
  kiln__buf_free(&m->body_types);
  kiln__buf_free(&m->source);
  entry_free(alloc, m->made);
  kiln__free(alloc, m);
}

static bool wanted(const kiln__spec *spec, size_t kernel)
{
  return (spec->kernels >> kernel & 1) != 0;
}

static char *next_define(part *p)
{
  char *text = p->text[p->desc.n_defines];

  p->define[p->desc.n_defines++] = text;
  return text;
}

/* Adds a program with one kernel to a specialisation. If `kernel` is NULL, the
 * program contains all kernels. */
static void add_part(making *m, const char *kernel)
{
  const kiln__spec *spec = m->spec;
  const char *define = spec->family->defines;
  part *p = &m->part[m->n++];

  p->desc = (kiln_program_desc){.builtin = spec->family->builtin,
                                .headers = m->generated,
                                .n_headers = N_HEADERS,
                                .defines = p->define,
                                .fast_math =
                                    spec->code != NULL && spec->code->fast_math,
                                .fast_compile = spec->quick,
                                .suffix = spec->suffix,
                                .minimal = true};
  kiln__copy_text(next_define(p), DEFINE_SIZE, "KILN_GENERATED=1");
  if (kernel != NULL) {
    kiln__copy_text(next_define(p), DEFINE_SIZE, "KILN_APART=1");
    kiln__format(next_define(p), DEFINE_SIZE, "KILN_ONLY_%s=1", kernel);
  }
  for (size_t k = 0; *define != '\0'; k++) {
    write_define(next_define(p), define, spec->value[k]);
    define += strlen(define) + 1;
  }
  p->body = p->desc;
  p->body.headers = m->body_generated;
  memcpy(p->body_define, p->define, sizeof p->define);
  p->body_define[p->body.n_defines++] = "KILN_LINKED=1";
  p->body.defines = p->body_define;
  p->linked = (kiln__linked){.make = kiln__linked_make,
                             .prepare = kiln__device_prepare_link,
                             .body = &p->body,
                             .texts = &m->texts_desc,
                             .link = kiln__device_link,
                             .user = m->device};
}

/* Sets the two generated headers of a program. */
static void set_headers(kiln_header headers[N_HEADERS], const kiln__buf *types,
                        const char *texts)
{
  headers[0] = (kiln_header){"kiln/generated.cuh", types->data};
  headers[1] = (kiln_header){"kiln/generated_texts.cuh", texts};
}

/* The expressions may use at most 64 registers, since blocks have up to 1,024
 * threads. */
static void add_parts(making *m)
{
  const kiln__family *family = m->spec->family;

  set_headers(m->generated, &m->types, m->texts.data);
  if (m->links)
    set_headers(m->body_generated, &m->body_types, "");
  m->texts_desc = (kiln_program_desc){.source = m->source.data,
                                      .name = "texts.cu",
                                      .fast_compile = m->spec->quick,
                                      .suffix = m->spec->suffix,
                                      .max_registers = 64,
                                      .minimal = true};
  if (m->spec->kernels == 0)
    add_part(m, NULL);
  for (size_t k = 0; family->kernels[k] != NULL; k++)
    if (wanted(m->spec, k))
      add_part(m, family->kernels[k]);
}

static kiln_status start_parts(making *m, kiln_device *device)
{
  kiln_status st = KILN_OK;

  for (size_t i = 0; i < m->n; i++) {
    KILN_TRY(kiln__module_start_linked(&m->part[i].loading, device,
                                       &m->part[i].desc,
                                       m->links ? &m->part[i].linked : NULL));
    m->part[i].started = true;
  }

done:
  return st;
}

/* Waits for every program whose compilation was started, even after a failure,
 * and returns the first error. */
static kiln_status finish_parts(making *m)
{
  kiln__kernel_set *set = &m->made->set;
  kiln_status first = KILN_OK;
  kiln_error record;

  for (size_t i = 0; i < m->n; i++) {
    kiln_status st = KILN_OK;

    if (m->part[i].started)
      st = kiln__module_finish(&m->part[i].loading, &set->module[i]);
    if (st == KILN_OK || first != KILN_OK)
      continue;
    first = st;
    kiln__error_get(&record);
  }
  if (first != KILN_OK)
    kiln__error_set(&record);
  return first;
}

static kiln_status find_kernels(making *m)
{
  const char *const *name = m->spec->family->kernels;
  const bool apart = m->spec->kernels != 0;
  kiln__kernel_set *set = &m->made->set;
  kiln_status st = KILN_OK;
  size_t i = 0;

  for (size_t k = 0; name[k] != NULL; k++)
    if (!apart || wanted(m->spec, k))
      KILN_TRY(kiln_module_kernel(&set->kernel[k], set->module[apart ? i++ : 0],
                                  name[k]));

done:
  return st;
}

static kiln_status check_pairs(const kiln__pairs *pairs)
{
  kiln_status st = KILN_OK;

  for (size_t i = 0; i < KILN__PAIR_TEXTS; i++) {
    const char *what;
    const char *const text = kiln__pair_text(pairs, i, &what);

    if (text != NULL)
      KILN_TRY(i == 0 ? kiln__check_statements(what, text)
                      : kiln__check_text(what, text));
  }

done:
  return st;
}

static kiln_status check_texts(const kiln__spec *spec)
{
  kiln_status st = KILN_OK;

  if (spec->code != NULL)
    KILN_TRY(kiln__check_code(spec->code));
  if (spec->input != NULL && spec->input->map != NULL)
    KILN_TRY(kiln__check_text(KILN__MAP_NAME, spec->input->map));
  if (spec->op != NULL && spec->op->expr != NULL) {
    KILN_TRY(kiln__check_text(KILN__OPERATION_NAME, spec->op->expr));
    KILN_TRY(kiln__check_text(KILN__IDENTITY_NAME, spec->op->identity));
  }
  for (size_t i = 0; i < KILN__MAX_FUNCTIONS && spec->function[i].name != NULL;
       i++)
    if (spec->function[i].expr != NULL)
      KILN_TRY(
          kiln__check_text(spec->function[i].what, spec->function[i].expr));
  if (spec->pairs != NULL)
    KILN_TRY(check_pairs(spec->pairs));

done:
  return st;
}

/* ---- Errors in the user's expressions ----------------------------------- */

/* Removes the last line of the compiler's log. That line counts the errors
 * and names a program that the user does not know. */
static void drop_count(char *log)
{
  char *at = strstr(log, " detected in the compilation of");

  if (at == NULL)
    return;
  while (at > log && at[-1] != '\n')
    at--;
  while (at - log > 1 && at[-2] == '\n')
    at--;
  *at = '\0';
}

static void point_into(kiln_error *record, const kiln_allocator *alloc,
                       const char *what, const char *text)
{
  kiln__buf log;

  if (text == NULL)
    return;
  kiln__buf_init(&log, alloc);
  kiln__point_into_text(&log, record->log, what, text);
  if (kiln__buf_status(&log, "a compile log") == KILN_OK)
    kiln__copy_text(record->log, sizeof record->log, log.data);
  kiln__buf_free(&log);
}

static void point_into_texts(kiln_error *record, const kiln_allocator *alloc,
                             const kiln__spec *spec)
{
  if (spec->input != NULL)
    point_into(record, alloc, KILN__MAP_NAME, spec->input->map);
  if (spec->op != NULL && spec->op->expr != NULL) {
    point_into(record, alloc, KILN__OPERATION_NAME, spec->op->expr);
    point_into(record, alloc, KILN__IDENTITY_NAME, spec->op->identity);
  }
  for (size_t i = 0; i < KILN__MAX_FUNCTIONS && spec->function[i].name != NULL;
       i++)
    point_into(record, alloc, spec->function[i].what, spec->function[i].expr);
  for (size_t i = 0; spec->pairs != NULL && i < KILN__PAIR_TEXTS; i++) {
    const char *what;
    const char *const text = kiln__pair_text(spec->pairs, i, &what);

    point_into(record, alloc, what, text);
  }
}

/* Explains the error about the layout of a struct, which is a failed static
 * assertion in records.cuh. The compiler's log contains the values of the
 * template arguments "kiln__layout<number, size, alignment>", the properties of
 * the C++ type. Returns whether the record is about such an error. */
static bool explain_layout(kiln_error *record, const kiln__spec *spec)
{
  static const char digits[] = "0123456789";
  const char *first = strstr(record->log, "): error: ");
  const char *why = strstr(record->log, "a struct has another layout");
  char *at = strstr(record->log, "kiln__layout<");
  const kiln_param *p;
  unsigned long number, size, align;

  if (first == NULL || why == NULL || at == NULL || spec->code == NULL ||
      why > first + strcspn(first, "\n"))
    return false;
  number = strtoul(at + strcspn(at, digits), &at, 10);
  size = strtoul(at + strcspn(at, digits), &at, 10);
  align = strtoul(at + strcspn(at, digits), &at, 10);
  if (number >= spec->code->n_params)
    return false;
  p = &spec->code->params[number];
  kiln__format(record->message, sizeof record->message,
               "the type %s has %lu bytes and an alignment of %lu on the "
               "device, but its kiln_dtype is KILN_STRUCT(%u, %u)",
               p->name, size, align, (unsigned)kiln__size(p->type),
               (unsigned)kiln__align(p->type));
  kiln__copy_text(record->hint, sizeof record->hint,
                  "declare the same members in the preamble as on the host");
  return true;
}

/* Changes the error message so that it names the wrong expression instead of
 * the program around the expression. */
static void name_the_text(const making *list, const kiln_allocator *alloc)
{
  static const char mark[] = "): error: ";
  kiln_error record;
  const char *end, *found;
  int what;

  kiln__error_get(&record);
  drop_count(record.log);
  for (const making *m = list; m != NULL; m = m->next) {
    if (explain_layout(&record, m->spec)) {
      kiln__error_set(&record);
      return;
    }
    point_into_texts(&record, alloc, m->spec);
  }
  found = strstr(record.log, mark);
  what = (int)strcspn(record.log, "(");
  if (found == NULL || memchr(record.log, '.', (size_t)what) != NULL)
    return; /* the log refers to a file, not to one of the user's expressions */
  end = found + strlen(mark) + strcspn(found + strlen(mark), "\n");
  kiln__format(record.message, sizeof record.message,
               "%.*s does not compile: line %.*s: %.*s", what, record.log,
               (int)(found - record.log) - what - 1, record.log + what + 1,
               (int)(end - found - (int)strlen(mark)), found + strlen(mark));
  kiln__copy_text(record.hint, sizeof record.hint,
                  "correct the expression; the log shows the line");
  kiln__error_set(&record);
}

/* ---- Making a specialisation --------------------------------------------- */

static kiln_status prepare(making **out, kiln_device *device,
                           const kiln__spec *spec, uint32_t aligned,
                           const key *k, uint64_t hash)
{
  const kiln_allocator *alloc = &device->rt->alloc;
  kiln_status st = KILN_OK;
  making *m = kiln__calloc(alloc, 1, sizeof *m);

  if (m == NULL)
    return kiln__fail_memory("an operation");
  m->spec = spec;
  m->device = device;
  kiln__buf_init(&m->types, alloc);
  kiln__buf_init(&m->texts, alloc);
  kiln__buf_init(&m->body_types, alloc);
  kiln__buf_init(&m->source, alloc);
  KILN_TRY(check_texts(spec));
  KILN_TRY(kiln__generate(&m->types, &m->texts, spec, aligned));
  m->links = kiln__links(spec, device->on_body != NULL ? KILN__LINK_ALWAYS
                                                       : device->rt->link_use);
  if (m->links)
    KILN_TRY(kiln__generate_linked(&m->body_types, &m->source, spec, aligned));
  m->made = kiln__calloc(alloc, 1, sizeof *m->made + k->size);
  if (m->made == NULL) {
    st = kiln__fail_memory("an operation");
    goto done;
  }
  m->made->hash = hash;
  m->made->key_size = k->size;
  memcpy(m->made->key, k->data, k->size);
  add_parts(m);
  *out = m;
  m = NULL;

done:
  if (m != NULL)
    making_free(m, alloc);
  return st;
}

/* Finds a spec in the hash table. If the spec is missing, *missing receives a
 * specialisation that is ready to compile. */
static kiln_status look_up(const kiln__kernel_set **out, making **missing,
                           kiln_device *device, const kiln__spec *spec)
{
  const uint32_t aligned = aligned_arrays(spec);
  kiln_status st = KILN_OK;
  uint64_t hash;
  key k;

  key_init(&k, &device->rt->alloc);
  key_of(&k, spec, aligned);
  if (k.failed) {
    st = kiln__fail_memory("the key of an operation");
    goto done;
  }
  hash = XXH3_64bits(k.data, k.size);
  *out = find(device->ops, &k, hash);
  if (*out == NULL)
    st = prepare(missing, device, spec, aligned, &k, hash);

done:
  key_free(&k);
  return st;
}

/* Reports the programs of a list instead of compiling them. */
static kiln_status report_bodies(making *list, kiln_device *device)
{
  kiln_status st = KILN_OK;

  for (making *m = list; m != NULL; m = m->next)
    for (size_t i = 0; m->links && i < m->n; i++)
      KILN_TRY(device->on_body(device, device->body_user, &m->part[i].body,
                               &m->texts_desc));
  st = kiln__fail(KILN_ECANCELED, "see kiln_ops_bodies()",
                  "this device compiles the bodies of operations only");

done:
  return st;
}

/* Compiles the specialisations of a list. Every program is started before
 * the first wait, so that all programs compile in parallel. Programs that
 * were started are finished even after a failure. The first error is
 * returned. */
static kiln_status make_all(making *list, kiln_device *device)
{
  kiln_status st = KILN_OK;
  kiln_error record;

  for (making *m = list; m != NULL && st == KILN_OK; m = m->next)
    st = start_parts(m, device);
  if (st != KILN_OK)
    kiln__error_get(&record);
  for (making *m = list; m != NULL; m = m->next) {
    kiln_status own = finish_parts(m);

    if (own == KILN_OK && st == KILN_OK)
      own = find_kernels(m);
    if (st != KILN_OK || own == KILN_OK)
      continue;
    st = own;
    kiln__error_get(&record);
  }
  if (st != KILN_OK)
    kiln__error_set(&record);
  if (st == KILN_ECOMPILE)
    name_the_text(list, &device->rt->alloc);
  for (making *m = list; m != NULL && st == KILN_OK; m = m->next) {
    st = insert(m->out, device, m->made);
    m->made = NULL;
  }
  return st;
}

kiln_status kiln__specialise_all(const kiln__kernel_set *out[],
                                 kiln_device *device,
                                 const kiln__spec *const spec[], size_t n)
{
  making *list = NULL, **end = &list;
  kiln_status st = KILN_OK;

  if (atomic_load(&device->ops) == NULL)
    KILN_TRY(make_table(device));
  for (size_t i = 0; i < n; i++) {
    KILN_TRY(look_up(&out[i], end, device, spec[i]));
    if (*end != NULL) {
      (*end)->out = &out[i];
      end = &(*end)->next;
    }
  }
  if (list != NULL && device->on_body != NULL)
    st = report_bodies(list, device);
  else if (list != NULL)
    st = make_all(list, device);

done:
  while (list != NULL) {
    making *next = list->next;

    making_free(list, &device->rt->alloc);
    list = next;
  }
  if (st != KILN_OK)
    memset(out, 0, n * sizeof *out);
  return st;
}

kiln_status kiln__specialise(const kiln__kernel_set **out, kiln_device *device,
                             const kiln__spec *spec)
{
  return kiln__specialise_all(out, device, &spec, 1);
}

/* Adds the sizes of the axes, their reciprocals, and the strides of each view.
 * Returns the number of slots. */
static size_t add_shape(kiln__args *out, size_t n, const kiln_shape *shape)
{
  for (uint32_t k = 0; k < shape->rank; k++)
    out->slot[n++] = shape->size[k];
  for (uint32_t k = 0; k < shape->rank; k++)
    out->slot[n++] = shape->size[k] > 1 ? UINT64_MAX / shape->size[k] + 1 : 0;
  for (size_t v = 0; v < KILN_MAX_INPUTS; v++)
    for (uint32_t k = 0; kiln__is_strided(shape, v) && k < shape->rank; k++)
      out->slot[n++] = (uint64_t)shape->view[v].stride[k];
  return n;
}

void kiln__user_args(kiln__args *out, const kiln__spec *spec)
{
  size_t n = 0;

  if (spec->input != NULL)
    for (; n < KILN_MAX_INPUTS && spec->input->in[n].type != KILN_DTYPE_NONE;
         n++)
      out->slot[n] = spec->input->in[n].data;
  if (spec->code != NULL)
    for (size_t i = 0; i < spec->code->n_params; i++) {
      const kiln_param *p = &spec->code->params[i];

      if (p->constant || kiln__names_type(p))
        continue;
      out->slot[n] = 0;
      memcpy(&out->slot[n++], p->value, kiln__size(p->type));
    }
  if (spec->width != 0) {
    out->slot[n++] = spec->width;
    out->slot[n++] = UINT64_MAX / spec->width + 1;
  }
  if (spec->shape != NULL && spec->shape->rank > 0)
    n = add_shape(out, n, spec->shape);
  if (n == 0)
    out->slot[n++] = 0;
  out->size = n * sizeof out->slot[0];
}

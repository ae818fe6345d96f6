/* includes.c -- determines which headers and files a program can include.
 *
 * Problem: a cached image must not be used after an included file has changed.
 * The compiler reads files itself, and macros decide which files it reads.
 * Idea: follow every #include, also in groups that the preprocessor would skip,
 * and put the contents of each file that the compiler could read into the key.
 * Invariant: the file contents in the key are a superset of what the compiler
 * reads. An extra file costs at most a needless compile, while a missing file
 * would run outdated code. If an include cannot be followed (#include MACRO, a
 * pipe), the program is not cached.
 *
 * A name is searched in this order:
 * - the caller's headers;
 * - Kiln's headers;
 * - the -I folders;
 * - the small C headers (c_headers.c);
 * - the headers that belong to the compiler, which are read only if a name is
 *   still unresolved. */
#include "plan.h"

#include "builtin.h"
#include "lexer.h"

#include <string.h>
#include <sys/stat.h>

enum { MAX_FILE = 64 << 20, PATH_SIZE = 4096, SLOTS = 64 };

typedef enum owner {
  CALLER,   /* the caller: the program, its headers and files */
  EMBEDDED, /* Kiln: embedded headers and the small C headers */
  COMPILER  /* NVRTC: headers that belong to the compiler */
} owner;

/* A source text that is queued so that its includes are followed. */
typedef struct text_job {
  struct text_job *next;
  const char *text;
  size_t size;
  /* folder of the including file: "" or a path ending in '/' */
  const char *dir;
  owner owner;
} text_job;

/* A hash set of strings: paths already examined, or header names already used.
 */
typedef struct name_set {
  const char **slots;
  /* number of strings, and size of the hash table, which is a power of two */
  size_t n, capacity;
} name_set;

typedef struct scan {
  kiln__plan *plan;
  text_job *first, *last;
  name_set seen;    /* paths of files already examined */
  name_set missing; /* header names that were found in no folder */
  kiln__include include;
  owner owner; /* owner of the source text whose includes are followed */
  /* True if the include is a file, or if it was examined earlier. */
  bool found;
  kiln__list folders; /* folders of the compiler's headers, in search order */
  char path[PATH_SIZE];
} scan;

static size_t hash_text(const char *text)
{
  uint64_t h = 1469598103934665603u;

  for (; *text != '\0'; text++)
    h = (h ^ (unsigned char)*text) * 1099511628211u;
  return (size_t)(h ^ h >> 32);
}

/* Returns the position of the string in the hash table, or the free position
 * where the string belongs. */
static const char **find_slot(const name_set *set, const char *text)
{
  size_t i = hash_text(text) & (set->capacity - 1);

  while (set->slots[i] != NULL && strcmp(set->slots[i], text) != 0)
    i = (i + 1) & (set->capacity - 1);
  return &set->slots[i];
}

static bool grow(kiln__arena *arena, name_set *set)
{
  const name_set old = *set;

  set->capacity = old.capacity == 0 ? SLOTS : old.capacity * 2;
  set->slots = kiln__arena_alloc(arena, set->capacity * sizeof *set->slots);
  if (set->slots == NULL) {
    *set = old;
    return false;
  }
  for (size_t i = 0; i < old.capacity; i++) {
    if (old.slots[i] != NULL)
      *find_slot(set, old.slots[i]) = old.slots[i];
  }
  return true;
}

/* Adds a string to the set. Returns true if the string was new. If memory runs
 * out, returns false and marks the arena as failed. */
static bool insert(kiln__arena *arena, name_set *set, const char *text)
{
  const char **slot;

  if (set->n * 2 >= set->capacity && !grow(arena, set))
    return false;
  slot = find_slot(set, text);
  if (*slot != NULL)
    return false;
  *slot = kiln__arena_text(arena, text);
  set->n += *slot != NULL;
  return *slot != NULL;
}

static const char *folder_of(kiln__arena *arena, const char *path)
{
  const char *slash = strrchr(path, '/');
  const char *dir =
      slash == NULL ? ""
                    : kiln__arena_copy(arena, path, (size_t)(slash - path) + 1);

  return dir == NULL ? "" : dir;
}

static void queue(scan *s, const char *text, size_t size, const char *path,
                  owner by)
{
  text_job *job = kiln__arena_alloc(&s->plan->arena, sizeof *job);

  if (job == NULL)
    return;
  job->text = text;
  job->size = size;
  job->dir = folder_of(&s->plan->arena, path);
  job->owner = by;
  if (s->last == NULL)
    s->first = job;
  else
    s->last->next = job;
  s->last = job;
}

/* ---- Virtual headers ----------------------------------------------------- */

static const kiln_header *find_header(const kiln_header *list, size_t n,
                                      const char *name)
{
  for (size_t i = 0; i < n; i++) {
    if (strcmp(list[i].name, name) == 0)
      return &list[i];
  }
  return NULL;
}

/* Finds a header by name. The caller's headers take precedence over the
 * embedded headers. */
static const kiln_header *virtual_header(const kiln__plan *plan,
                                         const char *name)
{
  size_t n;
  const kiln_header *embedded = kiln__builtin_headers(&n);
  const kiln_header *h =
      find_header(plan->desc->headers, plan->desc->n_headers, name);

  return h != NULL ? h : find_header(embedded, n, name);
}

static owner header_owner(const kiln_header *h)
{
  size_t n;
  const kiln_header *embedded = kiln__builtin_headers(&n);

  return (h >= embedded && h < embedded + n) || h == kiln__c_header(h->name)
             ? EMBEDDED
             : CALLER;
}

static bool has_header(const kiln__plan *plan, const char *name)
{
  for (size_t i = 0; i < plan->header_names.n; i++) {
    if (strcmp(plan->header_names.items[i], name) == 0)
      return true;
  }
  return false;
}

/* Passes a header to the compiler, and follows the header's includes. */
static void take_header(scan *s, const kiln_header *h)
{
  kiln__plan *plan = s->plan;
  const char *text = h->text;

  if (has_header(plan, h->name))
    return;
  if (strncmp(text, "\xef\xbb\xbf", 3) == 0)
    text += 3;
  kiln__list_add(&plan->arena, &plan->header_names, h->name);
  kiln__list_add(&plan->arena, &plan->header_texts, text);
  queue(s, text, strlen(text), h->name, header_owner(h));
}

static void take_all_headers(scan *s)
{
  const kiln_program_desc *desc = s->plan->desc;
  size_t n;
  const kiln_header *embedded = kiln__builtin_headers(&n);

  for (size_t i = 0; i < desc->n_headers; i++)
    take_header(s, &desc->headers[i]);
  for (size_t i = 0; i < n; i++)
    take_header(s, &embedded[i]);
}

/* ---- Files --------------------------------------------------------------- */

/* Adds two strings per file to the key's file list: the name as written, then
 * the size and hash. */
static kiln_status add_file(scan *s, const char *name, const kiln__buf *data)
{
  kiln__plan *plan = s->plan;
  kiln__list *list =
      s->owner == COMPILER ? &plan->compiler_files : &plan->files;
  kiln_status st = KILN_OK;
  char digest[64];
  kiln__key key;

  kiln__key_init(&key, plan->arena.alloc);
  kiln__key_add(&key, "file", data->data == NULL ? "" : data->data, data->size,
                false);
  KILN_TRY(kiln__key_seal(&key));
  kiln__format(digest, sizeof digest, "%zu %s", data->size, key.hash);
  kiln__list_add(&plan->arena, list, kiln__arena_text(&plan->arena, name));
  kiln__list_add(&plan->arena, list, kiln__arena_text(&plan->arena, digest));
  st = kiln__arena_status(&plan->arena, "included files");

done:
  kiln__key_free(&key);
  return st;
}

static void give_up(scan *s, const char *why)
{
  if (s->plan->untracked == NULL)
    s->plan->untracked = kiln__arena_text(&s->plan->arena, why);
}

/* Reads a file that the compiler may include. A file that exists but cannot be
 * read is not a failure, since the compiler may not need the file. */
static kiln_status read_candidate(scan *s, kiln__buf *data, bool *readable)
{
  kiln_error before;
  kiln_status st;

  kiln__error_get(&before);
  st = kiln__read_file(data, s->path, MAX_FILE);
  *readable = st == KILN_OK;
  if (st != KILN_EIO)
    return st;
  kiln__error_set(&before);
  give_up(s, s->path);
  return KILN_OK;
}

/* Queues the content of a file, so that its includes are followed. The compiler
 * finds the caller's files itself. The compiler's own headers are in a folder
 * that it does not search, so their contents are passed to the compiler. */
static void take_text(scan *s, const char *text, size_t size)
{
  kiln__plan *plan = s->plan;

  if (text == NULL)
    return;
  if (s->owner == COMPILER) {
    kiln__list_add(&plan->arena, &plan->header_names,
                   kiln__arena_text(&plan->arena, s->include.name));
    kiln__list_add(&plan->arena, &plan->header_texts, text);
  }
  queue(s, text, size, s->path, s->owner);
}

/* Reads the file s->path if it exists, since the compiler may read it too. */
static kiln_status try_file(scan *s)
{
  kiln__arena *arena = &s->plan->arena;
  kiln_status st = KILN_OK;
  struct stat info;
  bool readable;
  kiln__buf data;

  /* The compiler's headers are identified by the names in the #include
   * directives, since one file may have several names ("info.h",
   * "details/info.h"). */
  if (s->owner != COMPILER && !insert(arena, &s->seen, s->path)) {
    s->found = true;
    return KILN_OK;
  }
  if (stat(s->path, &info) != 0 || S_ISDIR(info.st_mode))
    return KILN_OK;
  s->found = true;
  /* not a regular file: reading a pipe would consume its data */
  if (!S_ISREG(info.st_mode)) {
    give_up(s, s->path);
    return KILN_OK;
  }
  kiln__buf_init(&data, arena->alloc);
  KILN_TRY(read_candidate(s, &data, &readable));
  if (!readable)
    goto done;
  KILN_TRY(add_file(s, s->include.name, &data));
  take_text(
      s, kiln__arena_copy(arena, data.data == NULL ? "" : data.data, data.size),
      data.size);

done:
  kiln__buf_free(&data);
  return st;
}

/* Looks for a header name in a folder. A path that is too long for the buffer
 * is also too long for system calls. */
static kiln_status try_in(scan *s, const char *dir)
{
  const size_t n = strlen(dir);
  const char *slash = n == 0 || dir[n - 1] == '/' ? "" : "/";

  if (!kiln__format(s->path, sizeof s->path, "%s%s%s", dir, slash,
                    s->include.name))
    return KILN_OK;
  return try_file(s);
}

/* ---- Following the #include directives ---------------------------------- */

/* Handles an include that was not found: it names no header of the caller, no
 * header of Kiln, and no file. */
static void resolve_missing(scan *s)
{
  kiln__plan *plan = s->plan;
  const char *name = s->include.name;
  const kiln_header *header = kiln__c_header(name);

  if (header != NULL)
    take_header(s, header);
  else if (insert(&plan->arena, &s->missing, name))
    kiln__list_add(&plan->arena, &plan->unresolved,
                   kiln__arena_text(&plan->arena, name));
}

/* Searches for an include that occurs in the caller's source texts. */
static kiln_status resolve_file(scan *s, const char *dir)
{
  const kiln__include *include = &s->include;
  const kiln__plan *plan = s->plan;
  kiln_status st = KILN_OK;

  s->found = false;
  if (include->name[0] == '/')
    return try_in(s, "");
  if (include->form == KILN__QUOTED)
    KILN_TRY(try_in(s, dir));
  for (size_t i = 0; i < plan->folders.n; i++)
    KILN_TRY(try_in(s, plan->folders.items[i]));
  if (!s->found && s->owner == CALLER)
    resolve_missing(s);

done:
  return st;
}

/* Searches for an include that occurs in one of the compiler's headers. */
static kiln_status resolve_compiler(scan *s, const char *dir)
{
  const kiln__include *include = &s->include;
  const kiln_header *header = kiln__c_header(include->name);
  kiln_status st = KILN_OK;

  s->found = has_header(s->plan, include->name);
  if (s->found)
    return KILN_OK;
  if (header != NULL) {
    take_header(s, header);
    return KILN_OK;
  }
  if (include->form == KILN__QUOTED)
    st = try_in(s, dir);
  for (size_t i = 0; i < s->folders.n && st == KILN_OK && !s->found; i++)
    st = try_in(s, s->folders.items[i]);
  return st;
}

static kiln_status resolve(scan *s, const char *dir)
{
  const kiln__include *include = &s->include;
  const kiln_header *header;

  if (include->form == KILN__COMPUTED) {
    if (s->owner != COMPILER)
      give_up(s, include->name);
    return KILN_OK;
  }
  header = virtual_header(s->plan, include->name);
  if (header != NULL) {
    take_header(s, header);
    return KILN_OK;
  }
  return s->owner == COMPILER ? resolve_compiler(s, dir) : resolve_file(s, dir);
}

/* Follows the includes of Kiln's headers, which are large and are scanned at
 * every first call. A fast scan suffices, since these headers include each
 * other only by a line `#include <name>`. */
static kiln_status walk_embedded(scan *s, const text_job *job)
{
  static const char line[] = "\n#include <";
  const char *at = job->text, *const end = job->text + job->size;
  kiln_status st = KILN_OK;

  while ((at = memmem(at, (size_t)(end - at), line, sizeof line - 1)) != NULL) {
    const char *name = at + sizeof line - 1;
    const char *stop = memchr(name, '>', (size_t)(end - name));

    at = name;
    if (stop == NULL || (size_t)(stop - name) >= sizeof s->include.name)
      continue;
    s->include.form = KILN__ANGLED;
    memcpy(s->include.name, name, (size_t)(stop - name));
    s->include.name[stop - name] = '\0';
    KILN_TRY(resolve(s, job->dir));
  }

done:
  return st;
}

static kiln_status walk(scan *s)
{
  kiln_status st = KILN_OK;

  for (; s->first != NULL; s->first = s->first->next) {
    kiln__lexer lexer;

    s->owner = s->first->owner;
    if (s->owner == EMBEDDED) {
      KILN_TRY(walk_embedded(s, s->first));
      continue;
    }
    kiln__lexer_init(&lexer, s->first->text, s->first->size);
    while (kiln__lexer_next(&lexer, &s->include))
      KILN_TRY(resolve(s, s->first->dir));
  }
  s->last = NULL;

done:
  return st;
}

/* Searches for the file of a -include option in the program's folder and in the
 * current folder. */
static kiln_status resolve_prelude(scan *s, const char *name)
{
  kiln_status st = KILN_OK;

  s->include.form = KILN__QUOTED;
  kiln__copy_text(s->include.name, sizeof s->include.name, name);
  KILN_TRY(resolve(s, folder_of(&s->plan->arena, s->plan->name)));
  st = resolve(s, "");

done:
  return st;
}

kiln_status kiln__plan_includes(kiln__plan *plan)
{
  kiln_status st = KILN_OK;
  scan *s = kiln__alloc(plan->arena.alloc, sizeof *s);

  if (s == NULL)
    return kiln__fail_memory("the program");
  *s = (scan){.plan = plan};
  queue(s, plan->source, plan->source_size, plan->name,
        plan->desc->builtin != NULL ? EMBEDDED : CALLER);
  for (size_t i = 0; i < plan->preludes.n; i++)
    KILN_TRY(resolve_prelude(s, plan->preludes.items[i]));
  KILN_TRY(walk(s));
  if (plan->untracked != NULL) {
    take_all_headers(s);
    KILN_TRY(walk(s));
  }

done:
  kiln__free(plan->arena.alloc, s);
  return st;
}

/* ---- Headers that belong to the compiler -------------------------------- */

/* Finds the header folders that belong to the NVRTC library at a path. The
 * first is the folder of cuda_fp16.h. Some installations have two more folders:
 * crt/, which <mma.h> includes, and libcu++, which the cooperative groups
 * header includes. */
static void find_folders(kiln__arena *arena, const char *nvrtc, kiln__list *out)
{
  /* Header folders relative to the NVRTC library: toolkits and wheels of CUDA
   * 13, wheels of CUDA 11 and 12, conda, Debian. */
  static const char *const places[] = {
      "../include", "../../cuda_runtime/include",
      "../targets/x86_64-linux/include", "../targets/sbsa-linux/include",
      "../../include"};
  static const char *const apart[] = {
      "../include/cccl", "../../cuda_nvcc/include", "../../cuda_cccl/include"};
  const char *dir = folder_of(arena, nvrtc);
  struct stat info;

  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    const char *folder = kiln__arena_join(arena, dir, places[i], NULL);
    const char *header =
        kiln__arena_join(arena, dir, places[i], "/cuda_fp16.h");

    if (header != NULL && stat(header, &info) == 0) {
      kiln__list_add(arena, out, folder);
      break;
    }
  }
  for (size_t i = 0; out->n > 0 && i < sizeof apart / sizeof apart[0]; i++)
    kiln__list_add(arena, out, kiln__arena_join(arena, dir, apart[i], NULL));
}

kiln_status kiln__plan_compiler_headers(kiln__plan *plan, const char *nvrtc)
{
  kiln_status st = KILN_OK;
  kiln__list folders = {0};
  scan *s;

  if (plan->unresolved.n == 0 || plan->compiler_files.n > 0)
    return KILN_OK;
  find_folders(&plan->arena, nvrtc, &folders);
  s = folders.n == 0 ? NULL : kiln__alloc(plan->arena.alloc, sizeof *s);
  if (folders.n > 0 && s == NULL)
    return kiln__fail_memory("the program");
  if (s == NULL)
    return kiln__arena_status(&plan->arena, "the program");
  *s = (scan){.plan = plan, .owner = COMPILER, .folders = folders};
  for (size_t i = 0; i < plan->unresolved.n; i++) {
    s->include.form = KILN__ANGLED;
    kiln__copy_text(s->include.name, sizeof s->include.name,
                    plan->unresolved.items[i]);
    KILN_TRY(resolve(s, ""));
  }
  KILN_TRY(walk(s));
  st = kiln__arena_status(&plan->arena, "the program");

done:
  kiln__free(plan->arena.alloc, s);
  return st;
}

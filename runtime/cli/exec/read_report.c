/* read_report.c -- reads the objects that the processes of a program wrote, and
 * merges them.
 *
 * Problem: a process writes an object when something first occurs, and again
 * with its final count. Several processes report the same finding.
 *
 * Idea: an object has a key, which is the hash of the members that identify its
 * subject, for example kind, kernel and line of a finding. A later object with
 * the same key and the same process replaces the earlier one. Objects with the
 * same key of different processes are then added up.
 *
 * Cost: each object is compared with the keys of all earlier ones of its type. A
 * process writes at most 10,000 findings. */
#include "cli/exec/exec_report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How the objects of one type are merged. The lists end with NULL. */
typedef struct merging {
  const char *type;
  size_t list; /* offset of the list in exec_report */
  const char *keys[8];
  const char *sums[8];
} merging;

#define LIST(member) offsetof(exec_report, member)

static const merging rules[] = {
    {"finding",
     LIST(findings),
     {"check", "kind", "kernel", "function", "file", "line", "ptx_line"},
     {"count"}},
    {"unsupported", LIST(missing), {"entry"}, {"count"}},
    {"time",
     LIST(kernels),
     {"kernel"},
     {"launches", "checked", "warp_insns", "ns"}},
    {"kernel", LIST(counters), {"kernel", "run"}, {NULL}},
    {"fault", LIST(faults), {"text"}, {NULL}},
    {"error", LIST(errors), {"text"}, {NULL}},
    {"process", LIST(processes), {"run"}, {NULL}},
    {"end", LIST(ended), {"run"}, {NULL}},
    {"loaded", LIST(loaded), {"type"}, {"modules", "ns"}},
    {"checked", LIST(checked), {"type"}, {"launches"}},
};

enum { N_RULES = sizeof rules / sizeof rules[0] };

static exec_list *list_of(exec_report *r, const merging *how)
{
  return (exec_list *)(void *)((char *)r + how->list);
}

/* ---- Keys ----------------------------------------------------------------- */

/* Continues an FNV-1a hash with a text and its NUL. */
static uint64_t hash_text(uint64_t h, const char *text)
{
  do
    h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211);
  while (*text++ != '\0');
  return h;
}

static uint64_t key_of(const cJSON *object, const merging *how)
{
  uint64_t h = UINT64_C(14695981039346656037);

  for (size_t i = 0; i < 8 && how->keys[i] != NULL; i++) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, how->keys[i]);
    char number[32] = "";

    if (cJSON_IsNumber(item))
      snprintf(number, sizeof number, "%.17g", item->valuedouble);
    h = hash_text(h, cJSON_IsString(item) ? item->valuestring : number);
  }
  /* Leaks have no line, so their text tells them apart. */
  if (exec_number(object, "ptx_line") == 0 && strcmp(how->type, "finding") == 0)
    h = hash_text(h, exec_text(object, "text"));
  return h;
}

/* ---- Reading -------------------------------------------------------------- */

static void put(exec_report *r, const merging *how, cJSON *object)
{
  exec_list *list = list_of(r, how);
  const exec_item item = {
      .key = key_of(object, how),
      .run = hash_text(0, exec_text(object, "run")),
      .json = object,
  };

  for (size_t i = 0; i < list->n; i++) {
    exec_item *old = &list->items[i];

    if (old->key == item.key && old->run == item.run) {
      cJSON_Delete(old->json);
      *old = item;
      return;
    }
  }
  list->items = kiln__cli_grow(r->c, list->items, list->n, &list->capacity,
                               sizeof *list->items);
  list->items[list->n++] = item;
}

static void put_line(exec_report *r, const char *text)
{
  cJSON *object = cJSON_Parse(text);

  for (size_t i = 0; object != NULL && i < N_RULES; i++) {
    if (strcmp(exec_text(object, "type"), rules[i].type) == 0) {
      put(r, &rules[i], object);
      return;
    }
  }
  cJSON_Delete(object);
}

/* ---- Merging -------------------------------------------------------------- */

static void add_to(cJSON *sum, const cJSON *object, const merging *how)
{
  for (size_t i = 0; i < 8 && how->sums[i] != NULL; i++) {
    cJSON *item = cJSON_GetObjectItemCaseSensitive(sum, how->sums[i]);

    if (item != NULL)
      cJSON_SetNumberValue(item, item->valuedouble +
                                     exec_number(object, how->sums[i]));
  }
}

/* Adds up the objects of different processes with the same key. */
static void merge(exec_list *list, const merging *how)
{
  size_t n = 0;

  for (size_t i = 0; i < list->n; i++) {
    size_t first = 0;

    while (first < n && list->items[first].key != list->items[i].key)
      first++;
    if (first == n) {
      list->items[n++] = list->items[i];
      continue;
    }
    add_to(list->items[first].json, list->items[i].json, how);
    cJSON_Delete(list->items[i].json);
  }
  list->n = n;
}

void kiln__exec_read(exec_report *r, const char *path)
{
  FILE *f = fopen(path, "re");
  char *text = NULL;
  size_t capacity = 0;

  while (f != NULL && getline(&text, &capacity, f) > 0)
    put_line(r, text);
  free(text);
  if (f != NULL)
    fclose(f);
  for (size_t i = 0; i < N_RULES; i++)
    merge(list_of(r, &rules[i]), &rules[i]);
}

void kiln__exec_free(exec_report *r)
{
  for (size_t i = 0; i < N_RULES; i++) {
    exec_list *list = list_of(r, &rules[i]);

    for (size_t k = 0; k < list->n; k++)
      cJSON_Delete(list->items[k].json);
    list->n = 0;
  }
}

exec_sums kiln__exec_sums(const exec_report *r)
{
  exec_sums sums = {0};

  for (size_t i = 0; i < r->findings.n; i++)
    *(r->findings.items[i].suppression == NULL ? &sums.findings
                                               : &sums.suppressed) += 1;
  for (size_t i = 0; i < r->kernels.n; i++)
    sums.kernels += exec_number(r->kernels.items[i].json, "checked") > 0;
  for (size_t i = 0; i < r->checked.n; i++)
    sums.launches += exec_number(r->checked.items[i].json, "launches");
  return sums;
}

/* Returns whether a file is in a folder `include` that is not below the current
 * folder, such as a header of the CUDA toolkit. */
static bool foreign_header(const char *file)
{
  char folder[4096];
  const size_t n = getcwd(folder, sizeof folder) == NULL ? 0 : strlen(folder);

  return file[0] == '/' && strstr(file, "/include/") != NULL &&
         (strncmp(file, folder, n) != 0 || file[n] != '/');
}

exec_place kiln__exec_place(const cJSON *finding)
{
  const exec_place inner = {exec_text(finding, "file"),
                            exec_number(finding, "line")};
  const exec_place outer = {exec_text(finding, "outer_file"),
                            exec_number(finding, "outer_line")};

  return outer.line > 0 && *outer.file != '\0' && foreign_header(inner.file) &&
                 !foreign_header(outer.file)
             ? outer
             : inner;
}

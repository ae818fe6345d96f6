/* profile_model.c -- collects the spans, rows and texts of a profile. */
#include "cli/profile/profile_model.h"

#include <stdlib.h>
#include <string.h>

/* ---- Texts ----------------------------------------------------------------- */

static uint64_t hash_of(const char *text)
{
  uint64_t h = 14695981039346656037u;

  for (; *text != '\0'; text++)
    h = (h ^ (unsigned char)*text) * 1099511628211u;
  return h ^ h >> 32;
}

/* Returns the slot of a text: its own, or the unused slot where it belongs. */
static uint32_t *slot_of(const text_set *set, const char *text)
{
  size_t i = hash_of(text) % set->n_slots;

  while (set->slots[i] != 0 && strcmp(set->at[set->slots[i] - 1], text) != 0)
    i = (i + 1) % set->n_slots;
  return &set->slots[i];
}

static void rehash(cli *c, text_set *set)
{
  set->n_slots = set->n_slots == 0 ? 256 : 4 * set->n_slots;
  set->slots = kiln__cli_alloc(c, set->n_slots, sizeof *set->slots);
  for (size_t i = 0; i < set->n; i++)
    *slot_of(set, set->at[i]) = (uint32_t)i + 1;
}

uint32_t kiln__profile_text(profile *p, text_set *set, const char *text)
{
  uint32_t *slot;

  if (2 * set->n >= set->n_slots)
    rehash(p->c, set);
  slot = slot_of(set, text);
  if (*slot == 0) {
    set->at =
        kiln__cli_grow(p->c, set->at, set->n, &set->capacity, sizeof *set->at);
    set->at[set->n++] = kiln__cli_text(p->c, "%s", text);
    *slot = (uint32_t)set->n;
  }
  return *slot - 1;
}

void kiln__profile_init(profile *p, cli *c)
{
  *p = (profile){.c = c, .n_devices = PROFILE_MOST_DEVICES};
  p->devices = kiln__cli_alloc(c, p->n_devices, sizeof *p->devices);
  (void)kiln__profile_text(p, &p->names, "");
  (void)kiln__profile_text(p, &p->details, "");
}

/* ---- Rows and spans -------------------------------------------------------- */

static bool same_row(const profile_row *a, const profile_row *b)
{
  return a->process == b->process && a->host == b->host &&
         a->device == b->device && a->context == b->context &&
         a->stream == b->stream && a->thread == b->thread;
}

uint32_t kiln__profile_row(profile *p, const profile_row *wanted)
{
  /* Most spans belong to one of the rows that were used last. */
  static size_t recent;

  if (recent < p->n_rows && same_row(&p->rows[recent], wanted))
    return (uint32_t)recent;
  for (recent = 0; recent < p->n_rows; recent++) {
    if (same_row(&p->rows[recent], wanted))
      return (uint32_t)recent;
  }
  if (p->n_rows == PROFILE_MOST_ROWS) {
    p->rows[p->n_rows - 1].title = "(all other rows)";
    return (uint32_t)p->n_rows - 1;
  }
  p->rows = kiln__cli_grow(p->c, p->rows, p->n_rows, &p->rows_capacity,
                           sizeof *p->rows);
  p->rows[p->n_rows] = *wanted;
  return (uint32_t)p->n_rows++;
}

span *kiln__profile_span(profile *p, span_kind kind, uint32_t row,
                         int64_t begin, int64_t end)
{
  span *s;

  p->spans = kiln__cli_grow(p->c, p->spans, p->n, &p->capacity, sizeof *s);
  s = &p->spans[p->n++];
  *s = (span){.begin = begin,
              .end = end < begin ? begin : end,
              .row = row,
              .kind = (uint8_t)kind,
              .process = (uint8_t)p->rows[row].process};
  p->rows[row].n++;
  return s;
}

void kiln__profile_note(profile *p, const char *text)
{
  for (size_t i = 0; i < p->n_notes; i++) {
    if (strcmp(p->notes[i], text) == 0)
      return;
  }
  if (p->n_notes >= 100)
    return;
  p->notes = kiln__cli_grow(p->c, p->notes, p->n_notes, &p->notes_capacity,
                            sizeof *p->notes);
  p->notes[p->n_notes++] = kiln__cli_text(p->c, "%s", text);
}

bool kiln__profile_on_device(const span *s)
{
  return s->kind == SPAN_KERNEL || s->kind == SPAN_COPY || s->kind == SPAN_FILL;
}

const char *kiln__profile_device(profile *p, uint32_t device)
{
  const char *name = device < p->n_devices ? p->devices[device] : NULL;

  /* A trace that this command wrote names the device in full. */
  if (name != NULL && strncmp(name, "device ", 7) == 0)
    return name;
  return name == NULL ? kiln__cli_text(p->c, "device %u", device)
                      : kiln__cli_text(p->c, "device %u, %s", device, name);
}

/* ---- Order ----------------------------------------------------------------- */

static int compare(uint64_t a, uint64_t b)
{
  return a < b ? -1 : a > b;
}

/* Orders streams before host threads, then by process, device, context and
 * number. */
static int by_place(const void *left, const void *right)
{
  const profile_row *a = *(profile_row *const *)left;
  const profile_row *b = *(profile_row *const *)right;
  int order = compare(a->process, b->process);

  order = order != 0 ? order : compare(a->host, b->host);
  order = order != 0 ? order : compare(a->device, b->device);
  order = order != 0 ? order : compare(a->context, b->context);
  order = order != 0 ? order : compare(a->stream, b->stream);
  return order != 0 ? order : compare(a->thread, b->thread);
}

static int by_begin(const void *left, const void *right)
{
  const span *a = left, *b = right;

  if (a->row != b->row)
    return compare(a->row, b->row);
  if (a->begin != b->begin)
    return a->begin < b->begin ? -1 : 1;
  return a->end > b->end ? -1 : a->end < b->end;
}

/* Sorts the rows, and changes the row numbers of the spans. */
static void sort_rows(profile *p)
{
  profile_row **order = kiln__cli_alloc(p->c, p->n_rows + 1, sizeof *order);
  profile_row *sorted = kiln__cli_alloc(p->c, p->n_rows + 1, sizeof *sorted);
  uint32_t *number = kiln__cli_alloc(p->c, p->n_rows + 1, sizeof *number);

  for (size_t i = 0; i < p->n_rows; i++)
    order[i] = &p->rows[i];
  qsort(order, p->n_rows, sizeof(profile_row *), by_place);
  for (size_t i = 0; i < p->n_rows; i++) {
    sorted[i] = *order[i];
    number[order[i] - p->rows] = (uint32_t)i;
  }
  for (size_t i = 0; i < p->n; i++)
    p->spans[i].row = number[p->spans[i].row];
  p->rows = sorted;
}

void kiln__profile_finish(profile *p)
{
  int64_t first = INT64_MAX;

  sort_rows(p);
  for (size_t i = 0; i < p->n; i++) {
    if (p->spans[i].begin < first)
      first = p->spans[i].begin;
  }
  for (size_t i = 0; i < p->n; i++) {
    p->spans[i].begin -= first;
    p->spans[i].end -= first;
    if (p->spans[i].end > p->length)
      p->length = p->spans[i].end;
  }
  if (p->n > 0)
    qsort(p->spans, p->n, sizeof *p->spans, by_begin);
}

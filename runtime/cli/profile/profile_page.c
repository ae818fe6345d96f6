/* profile_page.c -- writes the page with the timeline.
 *
 * Problem: a page should hold a million spans, open from a file and stay small.
 *
 * Idea: the spans of each row are sorted by begin. They are written as numbers of
 * variable length (seven bits per byte, low bits first), in which most members
 * take one or two bytes, and then in base64. The script decodes them into typed
 * arrays. Names and details are tables that occur once.
 *
 * If there are more than MOST_SPANS spans, neighbours in a row that are closer
 * than a limit become one span. The limit doubles until few enough remain. It
 * applies to host threads first, so that kernels stay single spans as long as
 * possible. */
#include "cli/profile/profile_model.h"
#include "tool/page/html_page.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SPANS = 2000000 };

/* Gaps up to these lengths in nanoseconds are closed. */
typedef struct limits {
  int64_t host, device;
} limits;

/* The longest gap that is closed in host threads before gaps in streams are. */
static const int64_t most_host_gap = 1000000000;

/* A growing array of bytes. */
typedef struct bytes {
  uint8_t *at;
  size_t n, capacity;
} bytes;

static void put_byte(cli *c, bytes *b, unsigned byte)
{
  b->at = kiln__cli_grow(c, b->at, b->n, &b->capacity, 1);
  b->at[b->n++] = (uint8_t)byte;
}

static void put_number(cli *c, bytes *b, uint64_t value)
{
  while (value >= 0x80) {
    put_byte(c, b, 0x80 | (unsigned)(value & 0x7f));
    value >>= 7;
  }
  put_byte(c, b, (unsigned)value);
}

/* Writes a number that may be negative: 0, -1, 1, -2, ... become 0, 1, 2, 3. */
static void put_signed(cli *c, bytes *b, int64_t value)
{
  put_number(c, b, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static void put_base64(FILE *out, const bytes *b)
{
  static const char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

  for (size_t i = 0; i < b->n; i += 3) {
    const size_t left = b->n - i;
    const unsigned word = (unsigned)b->at[i] << 16 |
                          (left > 1 ? (unsigned)b->at[i + 1] << 8 : 0) |
                          (left > 2 ? (unsigned)b->at[i + 2] : 0);
    const char four[4] = {digits[word >> 18], digits[word >> 12 & 63],
                          left > 1 ? digits[word >> 6 & 63] : '=',
                          left > 2 ? digits[word & 63] : '='};

    fwrite(four, 1, sizeof four, out);
  }
}

/* ---- Merging ----------------------------------------------------------------- */

/* Returns how many spans from `i` on become one, if gaps shorter than the limit
 * are closed. A merged span is at most 16 times as long as the limit. */
static size_t run_length(const profile *p, size_t i, const limits *l)
{
  const span *first = &p->spans[i];
  const int64_t limit = p->rows[first->row].host ? l->host : l->device;
  int64_t end = first->end;
  size_t k = i + 1;

  while (limit > 0 && k < p->n && p->spans[k].row == first->row &&
         p->spans[k].begin - end < limit &&
         p->spans[k].end - first->begin < 16 * limit) {
    if (p->spans[k].end > end)
      end = p->spans[k].end;
    k++;
  }
  return k - i;
}

static size_t count_runs(const profile *p, const limits *limit)
{
  size_t n = 0;

  for (size_t i = 0; i < p->n; i += run_length(p, i, limit))
    n++;
  return n;
}

/* Returns the span that stands for a run: the longest, from the begin of the
 * first to the end of the last. */
static span merged(profile *p, size_t i, size_t n)
{
  span one = p->spans[i];
  int64_t longest = one.end - one.begin, end = one.end;
  const int64_t begin = one.begin;

  for (size_t k = i + 1; k < i + n; k++) {
    const span *s = &p->spans[k];

    if (s->end - s->begin > longest) {
      longest = s->end - s->begin;
      one = *s;
    }
    end = s->end > end ? s->end : end;
  }
  one.begin = begin;
  one.end = end;
  if (n > 1) {
    one.correlation = 0;
    one.bytes = 0;
    one.detail = kiln__profile_text(
        p, &p->details,
        kiln__cli_text(p->c, "%zu activities, of which this is the longest",
                       n));
  }
  return one;
}

/* ---- Spans ------------------------------------------------------------------- */

/* Writes the spans of the row that begins at `*at`, and moves `*at` behind
 * it. @return the number of spans written */
static size_t put_row(profile *p, bytes *b, uint32_t row, size_t *at,
                      const limits *limit)
{
  int64_t begin = 0, correlation = 0;
  size_t n = 0;

  while (*at < p->n && p->spans[*at].row == row) {
    const size_t run = run_length(p, *at, limit);
    const span s = merged(p, *at, run);

    put_number(p->c, b, (uint64_t)(s.begin - begin));
    put_number(p->c, b, (uint64_t)(s.end - s.begin));
    put_number(p->c, b, (uint64_t)s.name * SPAN_N_KINDS + s.kind);
    put_number(p->c, b, s.detail);
    put_signed(p->c, b, (int64_t)s.correlation - correlation);
    if (s.kind == SPAN_COPY || s.kind == SPAN_FILL)
      put_number(p->c, b, s.bytes);
    begin = s.begin;
    correlation = s.correlation;
    *at += run;
    n++;
  }
  return n;
}

/* ---- The document -------------------------------------------------------------- */

/* Writes a member with a JSON value, and deletes the value. */
static void put_json(FILE *out, const char *key, cJSON *value)
{
  char *text = cJSON_PrintUnformatted(value);

  fprintf(out, ",\"%s\":%s", key, text == NULL ? "null" : text);
  free(text);
  cJSON_Delete(value);
}

static cJSON *texts_json(const char *const *texts, size_t n)
{
  cJSON *list = cJSON_CreateArray();

  for (size_t i = 0; i < n; i++)
    cJSON_AddItemToArray(list, cJSON_CreateString(texts[i]));
  return list;
}

static cJSON *processes_json(const profile *p)
{
  cJSON *list = cJSON_CreateArray();

  for (size_t i = 0; i < p->n_processes; i++) {
    cJSON *o = kiln__cli_json_item(list);

    JSON_NUMBER(o, "pid", p->processes[i].pid);
    JSON_TEXT(o, "program", p->processes[i].program);
    JSON_TEXT(o, "source", p->processes[i].source);
    JSON_FLAG(o, "exited", p->processes[i].ended);
    JSON_NUMBER(o, "lost", p->processes[i].dropped);
  }
  return list;
}

static cJSON *row_json(profile *p, const profile_row *row)
{
  const profile_process *process = &p->processes[row->process];
  cJSON *o = cJSON_CreateObject();

  JSON_NUMBER(o, "process", row->process);
  JSON_FLAG(o, "host", row->host);
  JSON_TEXT(o, "title", row->title);
  JSON_TEXT(o, "group",
            row->host ? kiln__cli_text(p->c, "%s, process %u", process->program,
                                       process->pid)
                      : kiln__profile_device(p, row->device));
  JSON_NUMBER(o, "spans", row->n);
  return o;
}

static void put_rows(profile *p, FILE *out, const limits *limit)
{
  bytes b = {0};
  size_t at = 0;

  fputs(",\"rows\":[", out);
  for (uint32_t i = 0; i < p->n_rows; i++) {
    size_t n;

    b.n = 0;
    n = put_row(p, &b, i, &at, limit);
    fprintf(out, "%s{\"n\":%zu", i == 0 ? "" : ",", n);
    put_json(out, "about", row_json(p, &p->rows[i]));
    fputs(",\"data\":\"", out);
    put_base64(out, &b);
    fputs("\"}", out);
  }
  putc(']', out);
}

/* Chooses how much must be merged. */
static limits choose_limits(const profile *p)
{
  limits l = {0};

  while (count_runs(p, &l) > MOST_SPANS) {
    int64_t *grows = l.host < most_host_gap ? &l.host : &l.device;

    *grows = *grows == 0 ? 1000 : 2 * *grows;
  }
  return l;
}

static void put_document(profile *p, FILE *out)
{
  const limits limit = choose_limits(p);

  fprintf(out, "{\"format\":1,\"length\":%lld,\"merged\":[%lld,%lld]",
          (long long)p->length, (long long)limit.host, (long long)limit.device);
  put_json(out, "processes", processes_json(p));
  put_json(out, "notes", texts_json(p->notes, p->n_notes));
  put_rows(p, out, &limit); /* may add details */
  put_json(out, "names", texts_json(p->names.at, p->names.n));
  put_json(out, "details", texts_json(p->details.at, p->details.n));
  putc('}', out);
}

int kiln__profile_write_page(profile *p, const char *path)
{
  const char *program = p->n_processes > 0 ? p->processes[0].program : "";
  char *json = NULL, *page = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&json, &size);
  int rc = CLI_FAILED;

  if (out != NULL) {
    put_document(p, out);
    fclose(out);
    page = kiln__html_page(p->c, "profile",
                           kiln__cli_text(p->c, "%s - kiln profile", program),
                           json, &size);
  }
  if (page != NULL)
    rc = kiln__cli_write(p->c, path, page, size);
  free(page);
  free(json);
  return rc;
}

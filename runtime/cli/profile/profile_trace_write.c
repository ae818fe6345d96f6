/* profile_trace_write.c -- writes a profile as a trace in Chrome's format, which
 * ui.perfetto.dev and chrome://tracing open.
 *
 * Each host process and each device of a process becomes a process of the trace,
 * and each row a thread. Arrows lead from a call to the work that it issued. The
 * file has one event per line. */
#include "cli/profile/profile_model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const categories[SPAN_N_KINDS] = {
    "kernel", "copy", "fill",     "host function",
    "call",   "wait", "overhead", "other"};

/* Writes the characters of a JSON string. Bytes that are not UTF-8 become
 * U+FFFD. */
static void put_text(FILE *out, const char *text)
{
  while (*text != '\0') {
    bool control = false;
    const size_t n = kiln__cli_utf8(text, &control);

    if (*text == '"' || *text == '\\')
      fprintf(out, "\\%c", *text);
    else if ((unsigned char)*text < 0x20 || *text == 0x7f)
      fprintf(out, "\\u%04x", (unsigned char)*text);
    else if (n == 0)
      fputs("\\ufffd", out);
    else
      fwrite(text, 1, n, out);
    text += n == 0 ? 1 : n;
  }
}

static void put_us(FILE *out, const char *key, int64_t ns)
{
  fprintf(out, ",\"%s\":%" PRId64 ".%03d", key, ns / 1000, (int)(ns % 1000));
}

/* Returns the number of a row's process in the trace. */
static unsigned trace_process(const profile_row *row)
{
  return 1 + row->process * (PROFILE_MOST_DEVICES + 1) +
         (row->host                            ? 0
          : row->device < PROFILE_MOST_DEVICES ? 1 + row->device
                                               : PROFILE_MOST_DEVICES);
}

static void put_title(FILE *out, const char *what, unsigned process,
                      size_t thread, const char *title)
{
  fprintf(out,
          "{\"ph\":\"M\",\"pid\":%u,\"tid\":%zu,\"name\":\"%s\",\"args\":{"
          "\"name\":\"",
          process, thread, what);
  put_text(out, title);
  fputs("\"}},\n", out);
}

static void put_titles(profile *p, FILE *out)
{
  unsigned last = 0;

  for (size_t i = 0; i < p->n_rows; i++) {
    const profile_row *row = &p->rows[i];
    const profile_process *process = &p->processes[row->process];
    const unsigned number = trace_process(row);

    if (number != last)
      put_title(out, "process_name", number, 0,
                row->host ? kiln__cli_text(p->c, "%s (%u)", process->program,
                                           process->pid)
                          : kiln__profile_device(p, row->device));
    last = number;
    put_title(out, "thread_name", number, i + 1, row->title);
  }
}

static void put_span(const profile *p, FILE *out, const span *s)
{
  fprintf(out, "{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"cat\":\"%s\",\"name\":\"",
          trace_process(&p->rows[s->row]), s->row + 1, categories[s->kind]);
  put_text(out, p->names.at[s->name]);
  putc('"', out);
  put_us(out, "ts", s->begin);
  put_us(out, "dur", s->end - s->begin);
  fprintf(out, ",\"args\":{\"correlation\":%u", s->correlation);
  if (s->bytes != 0)
    fprintf(out, ",\"bytes\":%" PRIu64, s->bytes);
  if (s->detail != 0) {
    fputs(",\"detail\":\"", out);
    put_text(out, p->details.at[s->detail]);
    putc('"', out);
  }
  fputs("}},\n", out);
}

/* ---- Arrows ---------------------------------------------------------------- */

static uint64_t key_of(const span *s)
{
  return (uint64_t)s->process << 32 | s->correlation;
}

static int by_key(const void *left, const void *right)
{
  const uint64_t a = key_of(*(const span *const *)left);
  const uint64_t b = key_of(*(const span *const *)right);

  return a < b ? -1 : a > b;
}

static void put_arrow_end(const profile *p, FILE *out, const span *s,
                          size_t number, bool start)
{
  fprintf(out,
          "{\"ph\":\"%s\",\"pid\":%u,\"tid\":%u,\"cat\":\"launch\",\"name\":"
          "\"launch\",\"id\":%zu",
          start ? "s" : "f\",\"bp\":\"e", trace_process(&p->rows[s->row]),
          s->row + 1, number);
  put_us(out, "ts", s->begin);
  fputs("},\n", out);
}

/* Writes an arrow from each call to each of its spans on the device. */
static void put_arrows(const profile *p, FILE *out)
{
  const span **calls = kiln__cli_alloc(p->c, p->n + 1, sizeof *calls);
  size_t n = 0, number = 0;

  for (size_t i = 0; i < p->n; i++) {
    if (p->spans[i].kind == SPAN_CALL && p->spans[i].correlation != 0)
      calls[n++] = &p->spans[i];
  }
  qsort(calls, n, sizeof *calls, by_key);
  for (size_t i = 0; i < p->n; i++) {
    const span *s = &p->spans[i];
    const span *const *call =
        n == 0 || s->correlation == 0 || !kiln__profile_on_device(s)
            ? NULL
            : bsearch(&s, calls, n, sizeof *calls, by_key);

    if (call == NULL)
      continue;
    number++;
    put_arrow_end(p, out, *call, number, true);
    put_arrow_end(p, out, s, number, false);
  }
}

/* Writes the whole trace, and closes the file. @return false if a write
 * failed */
static bool put_trace(profile *p, FILE *out)
{
  bool good;

  fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", out);
  put_titles(p, out);
  for (size_t i = 0; i < p->n; i++)
    put_span(p, out, &p->spans[i]);
  put_arrows(p, out);
  /* The last event has no comma after it. */
  fputs("{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"process_labels\","
        "\"args\":{\"labels\":\"kiln profile\"}}\n]}\n",
        out);
  good = ferror(out) == 0;
  return fclose(out) == 0 && good;
}

int kiln__profile_write_trace(profile *p, const char *path)
{
  FILE *out = fopen(path, "we");

  if (out != NULL && put_trace(p, out))
    return CLI_OK;
  kiln__cli_message(p->c,
                    "check the folder, its permissions and its free space",
                    "cannot write '%s': %s", path, strerror(errno));
  return CLI_FAILED;
}

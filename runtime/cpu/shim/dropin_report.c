/* dropin_report.c -- writes the report of the drop-in libcuda.so.1: JSON objects,
 * one per line. dropin_process.c says when.
 *
 * Every object has a member `type` and a member `run`, which identifies the
 * process. A later object replaces an earlier one of the same run that is about
 * the same thing, since findings and missing functions are written when they
 * first occur, and with their final counts at the end of the process:
 *
 *   process      the process uses the driver
 *   finding      a finding of a check: the members of kiln_cpu_finding
 *   unsupported  a function that is missing: entry, advice, count, text
 *   fault        the description of the last failed launch
 *   time         the sums of one kernel: launches, warp_insns, ns, threads
 *   loaded       the number of modules, and the time to read and translate them
 *   checked      the number of launches with checks
 *   kernel, line  counters
 *   end          the process has written all of its report */
#include "../api/missing.h"
#include "dropin.h"

#include <inttypes.h>

/* Writes a JSON member with a string value. NULL is written as "". */
static void text(FILE *out, const char *key, const char *value)
{
  fprintf(out, ",\"%s\":\"", key);
  for (const unsigned char *p = (const unsigned char *)value;
       p != NULL && *p != 0; p++) {
    if (*p == '"' || *p == '\\')
      fprintf(out, "\\%c", *p);
    else if (*p < 0x20)
      fprintf(out, "\\u%04x", *p);
    else
      putc(*p, out);
  }
  putc('"', out);
}

static void number(FILE *out, const char *key, uint64_t value)
{
  fprintf(out, ",\"%s\":%" PRIu64, key, value);
}

static void triple(FILE *out, const char *key, const unsigned value[3])
{
  fprintf(out, ",\"%s\":[%u,%u,%u]", key, value[0], value[1], value[2]);
}

/* Begins an object of the report. */
static void begin(FILE *out, const char *type)
{
  fprintf(out, "{\"type\":\"%s\"", type);
  text(out, "run", kiln__dropin_run());
}

void kiln__dropin_finding(void *user, const kiln_cpu_finding *f)
{
  char readable[512];
  FILE *out = user;

  begin(out, "finding");
  number(out, "check", f->check);
  text(out, "kind", f->kind);
  text(out, "kernel", f->kernel);
  /* The finding of a leak has no kernel. */
  text(out, "name",
       f->kernel == NULL
           ? NULL
           : kiln_cpu_readable_name(f->kernel, readable, sizeof readable));
  text(out, "function", f->function);
  text(out, "file", f->file);
  number(out, "line", f->line);
  text(out, "outer_file", f->outer_file);
  number(out, "outer_line", f->outer_line);
  number(out, "ptx_line", f->ptx_line);
  text(out, "insn", f->insn);
  triple(out, "block", f->block);
  triple(out, "thread", f->thread);
  text(out, "space", f->space);
  number(out, "address", f->address);
  number(out, "bytes", f->bytes);
  number(out, "allocation", f->allocation);
  number(out, "allocation_size", f->allocation_size);
  text(out, "other", f->other);
  number(out, "count", f->count);
  text(out, "text", f->text);
  fputs("}\n", out);
}

static void classes(FILE *out, const char *key, const uint64_t *values)
{
  fprintf(out, ",\"%s\":{", key);
  for (unsigned i = 0, n = 0; i < KILN_CPU_N_CLASSES; i++) {
    if (values[i] != 0)
      fprintf(out, "%s\"%s\":%" PRIu64, n++ == 0 ? "" : ",",
              kiln_cpu_class_name(i), values[i]);
  }
  putc('}', out);
}

static void counters(FILE *out, const char *type, const kiln_cpu_counters *c)
{
  begin(out, type);
  text(out, "kernel", c->kernel);
  text(out, "file", c->file);
  number(out, "line", c->line);
#define FIELD(name) number(out, #name, c->name);
  FIELD(launches)
  FIELD(warp_insns)
  FIELD(thread_insns)
  FIELD(branches)
  FIELD(divergent_branches)
  FIELD(global_load_requests)
  FIELD(global_load_sectors)
  FIELD(global_store_requests)
  FIELD(global_store_sectors)
  FIELD(shared_load_requests)
  FIELD(shared_load_passes)
  FIELD(shared_store_requests)
  FIELD(shared_store_passes)
  FIELD(local_load_requests)
  FIELD(local_load_sectors)
  FIELD(local_store_requests)
  FIELD(local_store_sectors)
  FIELD(atomics)
  FIELD(atomic_conflicts)
  FIELD(barriers)
#undef FIELD
  classes(out, "warp_class", c->warp_class);
  classes(out, "thread_class", c->thread_class);
  fputs("}\n", out);
}

static void kernel(void *user, const kiln_cpu_counters *c)
{
  counters(user, "kernel", c);
}

static void line(void *user, const kiln_cpu_counters *c)
{
  counters(user, "line", c);
}

void kiln__dropin_message(FILE *out, const char *type, const char *what)
{
  begin(out, type);
  text(out, "text", what);
  fputs("}\n", out);
}

/* Writes one JSON line for something that was called and is missing. */
static void missing(void *user, const char *name, const char *advice,
                    unsigned calls)
{
  FILE *out = user;
  char line[1024];

  snprintf(line, sizeof line,
           "the CPU device does not implement %s; the program called it %u "
           "time%s%s%s",
           name, calls, calls == 1 ? "" : "s",
           *advice == '\0' ? " and got CUDA_ERROR_NOT_SUPPORTED" : ". ",
           advice);
  begin(out, "unsupported");
  text(out, "entry", name);
  text(out, "advice", advice);
  number(out, "count", calls);
  text(out, "text", line);
  fputs("}\n", out);
}

void kiln__dropin_missing(FILE *out)
{
  kiln__cpu_each_missing(missing, out);
}

static void total(void *user, const kiln__dropin_total *t)
{
  char readable[512];
  FILE *out = user;

  begin(out, "time");
  text(out, "kernel", t->kernel);
  text(out, "name",
       kiln_cpu_readable_name(t->kernel, readable, sizeof readable));
  number(out, "launches", t->launches);
  number(out, "checked", t->checked);
  number(out, "warp_insns", t->warp_insns);
  number(out, "ns", t->ns);
  number(out, "threads", t->threads);
  fputs("}\n", out);
}

static void checked(FILE *out)
{
  begin(out, "checked");
  number(out, "launches", kiln_cpu_checked_launches());
  fputs("}\n", out);
}

void kiln__dropin_totals(FILE *out, unsigned modules, uint64_t loading_ns,
                         bool checks)
{
  kiln__dropin_missing(out);
  kiln_cpu_take_findings(kiln__dropin_finding, out);
  if (checks)
    checked(out);
  kiln_cpu_each_counters(kernel, line, out);
  kiln__dropin_each_total(total, out);
  begin(out, "loaded");
  number(out, "modules", modules);
  number(out, "ns", loading_ns);
  fputs("}\n", out);
  kiln__dropin_message(out, "end", "");
}

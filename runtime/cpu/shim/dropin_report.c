/* dropin_report.c -- settings and report of the drop-in libcuda.so.1.
 *
 * The program that loads this library need not know Kiln. Therefore `kiln exec`
 * communicates with the library through two environment variables:
 *
 * KILN_CPU         settings in the syntax of kiln_cpu_parse()
 * KILN_CPU_REPORT  path of the report file. At the end of the process, the
 *                  library appends JSON objects to the file, one per line:
 *                  functions that are not implemented, findings of checks, the
 *                  last fault, and counters. Several processes may append to
 *                  one file. */
#include "../api/machine.h"
#include "../api/missing.h"

#include "../../base/os.h"

#include <inttypes.h>
#include <stdio.h>

/* Writes a JSON member with a string value. */
static void text(FILE *out, const char *key, const char *value)
{
  fprintf(out, ",\"%s\":\"", key);
  for (const unsigned char *p = (const unsigned char *)value; *p != 0; p++) {
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

static void finding(void *user, const kiln_cpu_finding *f)
{
  FILE *out = user;

  fputs("{\"type\":\"finding\"", out);
  number(out, "check", f->check);
  text(out, "kind", f->kind);
  text(out, "kernel", f->kernel);
  text(out, "function", f->function);
  text(out, "file", f->file);
  number(out, "line", f->line);
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
  fprintf(out, "{\"type\":\"%s\"", type);
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

/* Writes a JSON object with a type and a message. */
static void message(FILE *out, const char *type, const char *what)
{
  fprintf(out, "{\"type\":\"%s\"", type);
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
  fputs("{\"type\":\"unsupported\"", out);
  text(out, "entry", name);
  number(out, "count", calls);
  text(out, "text", line);
  fputs("}\n", out);
}

static FILE *open_report(void)
{
  const char *path = kiln__env("KILN_CPU_REPORT");

  return path == NULL ? NULL : fopen(path, "ae");
}

__attribute__((constructor)) static void begin(void)
{
  const char *settings = kiln__env("KILN_CPU");
  kiln_cpu_opts opts;
  FILE *out;

  if (settings == NULL || (kiln_cpu_parse(&opts, settings) == KILN_OK &&
                           kiln_cpu_configure(&opts) == KILN_OK))
    return;
  out = open_report();
  if (out == NULL)
    return;
  message(out, "error", kiln_cpu_last_error()->message);
  fclose(out);
}

/* Returns whether this process has something to report. A process that never
 * called cuInit may have asked for something that is missing. A child that was
 * forked after cuInit reports nothing. */
static bool has_report(void)
{
  const kiln__cpu_machine *m = kiln__cpu_the_machine();

  return kiln__cpu_ready() == CUDA_SUCCESS ||
         (m != NULL && !m->initialised && m->notes != NULL);
}

/* Writes the report at the end of the process. */
__attribute__((destructor)) static void end(void)
{
  FILE *out = has_report() ? open_report() : NULL;
  char fault[8192];

  if (out == NULL)
    return;
  kiln__cpu_each_missing(missing, out);
  kiln_cpu_take_findings(finding, out);
  if (kiln__cpu_the_machine()->opts.checks != 0) {
    fputs("{\"type\":\"checked\"", out);
    number(out, "launches", kiln_cpu_checked_launches());
    fputs("}\n", out);
  }
  if (kiln_cpu_last_fault(fault, sizeof fault) == KILN_OK && fault[0] != '\0')
    message(out, "fault", fault);
  kiln_cpu_each_counters(kernel, line, out);
  fclose(out);
}

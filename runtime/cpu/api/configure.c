/* configure.c -- reads the settings of the CPU device, from a struct or from a
 * string such as "arch=9.0,memory=1G,check=mem". */
#include "../../base/sized.h"
#include "machine.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_ARCH = 90, OLDEST_ARCH = 30 };
static const uint64_t default_memory = UINT64_C(8) << 30;

void kiln__cpu_opts_fill(kiln_cpu_opts *opts)
{
  if (opts->arch == 0)
    opts->arch = DEFAULT_ARCH;
  if (opts->devices == 0)
    opts->devices = 1;
  if (opts->threads == 0)
    opts->threads = 1;
  if (opts->memory_bytes == 0)
    opts->memory_bytes = default_memory;
}

static kiln_status check(const kiln_cpu_opts *o)
{
  if (o->arch < OLDEST_ARCH || kiln__cpu_limits_of(o->arch) == NULL)
    return kiln__fail(
        KILN_EINVAL, "use for example 9.0, 8.0, 7.5 or 6.1",
        "the CPU device does not support compute capability %d.%d",
        o->arch / 10, o->arch % 10);
  if (o->devices < 1 || o->devices > KILN__MAX_DEVICES)
    return kiln__fail(KILN_EINVAL, NULL,
                      "%d devices: the CPU device supports 1 to %d", o->devices,
                      KILN__MAX_DEVICES);
  if (o->schedule > KILN_CPU_LOCK_STEP)
    return kiln__fail(KILN_EINVAL, NULL, "unknown schedule %d",
                      (int)o->schedule);
  if ((o->checks & ~(unsigned)KILN_CPU_CHECK_ALL) != 0)
    return kiln__fail(KILN_EINVAL, NULL, "unknown flags in checks %#x",
                      o->checks);
  if (kiln__cpu_isa_best(o->isa) == NULL)
    return kiln__fail(
        KILN_EINVAL,
        o->isa != NULL ? "leave isa unset to use the best one available"
                       : "build Kiln with -DKILN_CPU_ISAS=\"base;v3;v4\"",
        "this processor or build does not support the instruction set \"%s\"",
        o->isa == NULL ? "any" : o->isa);
  return KILN_OK;
}

/* Returns whether `o` differs from the current settings in a setting that
 * cannot change while a context exists. */
static bool fixed_differs(const kiln__cpu_machine *m, const kiln_cpu_opts *o)
{
  return o->arch != m->opts.arch || o->devices != m->opts.devices ||
         o->memory_bytes != m->opts.memory_bytes ||
         kiln__cpu_isa_best(o->isa) != m->isa;
}

kiln_status kiln_cpu_configure(const kiln_cpu_opts *opts)
{
  kiln_cpu_opts wanted = {0};
  kiln__cpu_machine *m = kiln__cpu_the_machine();
  kiln_status st;

  if (opts != NULL)
    wanted = *opts;
  if (m == NULL)
    return kiln__fail_memory("the CPU device");
  kiln__cpu_opts_fill(&wanted);
  st = check(&wanted);
  if (st != KILN_OK)
    return st;
  pthread_mutex_lock(&m->lock);
  if (m->n_contexts > 0 && fixed_differs(m, &wanted)) {
    st = kiln__fail(
        KILN_EUNSUPPORTED,
        "configure the CPU device before the first context is created",
        "the CPU device is in use: its architecture, number, "
        "memory and instruction set are fixed");
  } else if ((st = kiln__cpu_memory_keep_valid(
                  m->memory, (wanted.checks & KILN_CPU_CHECK_INIT) != 0)) ==
             KILN_OK) {
    m->isa = kiln__cpu_isa_best(wanted.isa);
    kiln__copy_text(m->isa_name, sizeof m->isa_name,
                    wanted.isa == NULL ? "" : wanted.isa);
    wanted.isa = m->isa_name[0] == '\0' ? NULL : m->isa_name;
    m->n_devices = wanted.devices;
    m->opts = wanted;
  }
  pthread_mutex_unlock(&m->lock);
  return st;
}

const kiln_error *kiln_cpu_last_error(void)
{
  return kiln_last_error();
}

/* ---- Parsing settings from a string -------------------------------------- */

static const struct check_name {
  const char *name;
  unsigned bits;
} check_names[] = {
    {"mem", KILN_CPU_CHECK_MEMORY},
    {"memory", KILN_CPU_CHECK_MEMORY},
    {"race", KILN_CPU_CHECK_RACE},
    {"init", KILN_CPU_CHECK_INIT},
    {"sync", KILN_CPU_CHECK_SYNC},
    {"all", KILN_CPU_CHECK_ALL},
    {"none", 0},
};

/* A slice of the settings string. The slice is not NUL-terminated. */
typedef struct piece {
  const char *at;
  size_t n;
} piece;

static bool is(piece p, const char *text)
{
  return strlen(text) == p.n && memcmp(p.at, text, p.n) == 0;
}

static piece cut(piece *rest, const char *at_any_of)
{
  piece head = {rest->at, 0};

  while (head.n < rest->n && strchr(at_any_of, head.at[head.n]) == NULL)
    head.n++;
  rest->at += head.n;
  rest->n -= head.n;
  return head;
}

/* Reads a decimal or hexadecimal number. If `scaled` is true, the number may
 * have a suffix K, M or G for powers of 1,024. Returns false if the text `p` is
 * no number, or is a number above `most`. */
static bool number(piece p, bool scaled, uint64_t most, uint64_t *out)
{
  static const char units[] = "KMG";
  char buf[32], *end;
  unsigned shift = 0;

  if (p.n == 0 || p.n >= sizeof buf || p.at[0] < '0' || p.at[0] > '9')
    return false;
  memcpy(buf, p.at, p.n);
  buf[p.n] = '\0';
  errno = 0;
  *out = strtoull(buf, &end, 0);
  if (scaled && *end != '\0' && strchr(units, *end) != NULL) {
    shift = 10 * (unsigned)(strchr(units, *end) - units + 1);
    end++;
  }
  if (errno != 0 || *end != '\0' || *out > (most >> shift))
    return false;
  *out <<= shift;
  return true;
}

static bool checks(piece p, unsigned *out)
{
  *out = 0;
  for (;;) {
    const piece one = cut(&p, "+|");
    size_t i = 0;

    while (i < sizeof check_names / sizeof check_names[0] &&
           !is(one, check_names[i].name))
      i++;
    if (i == sizeof check_names / sizeof check_names[0])
      return false;
    *out |= check_names[i].bits;
    if (p.n == 0)
      return true;
    p.at++;
    p.n--;
  }
}

static bool schedule(piece p, kiln_cpu_schedule *out)
{
  if (is(p, "lock-step"))
    *out = KILN_CPU_LOCK_STEP;
  else if (is(p, "independent"))
    *out = KILN_CPU_INDEPENDENT;
  else if (is(p, "by-arch"))
    *out = KILN_CPU_BY_ARCH;
  else
    return false;
  return true;
}

static bool isa(piece p, const char **out)
{
  static const char *const names[] = {"base", "x86-64-v3", "x86-64-v4"};

  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (is(p, names[i])) {
      *out = names[i];
      return true;
    }
  }
  return false;
}

/* Reads a compute capability, such as "9.0", "90", "12.1" or "sm_90". */
static bool arch(piece p, int *out)
{
  uint64_t major, minor = 0;
  piece whole;

  if (p.n > 3 && memcmp(p.at, "sm_", 3) == 0) {
    p.at += 3;
    p.n -= 3;
  }
  whole = cut(&p, ".");
  if (!number(whole, false, 999, &major))
    return false;
  if (p.n == 0) {
    *out = (int)major;
    return true;
  }
  if (!number((piece){p.at + 1, p.n - 1}, false, 9, &minor) || major > 99)
    return false;
  *out = (int)(major * 10 + minor);
  return true;
}

/* Applies one setting, which is "key=value" or "counters". Returns false if the
 * setting is unknown. */
static bool setting(kiln_cpu_opts *o, piece key, piece value)
{
  uint64_t n = 0;

  if (is(key, "check") || is(key, "checks"))
    return checks(value, &o->checks);
  if (is(key, "schedule"))
    return schedule(value, &o->schedule);
  if (is(key, "isa"))
    return isa(value, &o->isa);
  if (is(key, "seed"))
    return number(value, false, UINT64_MAX, &o->seed);
  if (is(key, "budget"))
    return number(value, true, UINT64_MAX, &o->budget);
  if (is(key, "memory"))
    return number(value, true, UINT64_MAX, &o->memory_bytes);
  if (is(key, "threads") && is(value, "auto")) {
    o->threads = KILN_CPU_THREADS_AUTO;
    return true;
  }
  if (is(key, "threads") && number(value, false, 1024, &n)) {
    o->threads = (unsigned)n;
    return true;
  }
  if (is(key, "devices") && number(value, false, KILN__MAX_DEVICES, &n)) {
    o->devices = (int)n;
    return true;
  }
  if (is(key, "counters") && (value.n == 0 || number(value, false, 1, &n))) {
    o->counters = value.n == 0 || n == 1;
    return true;
  }
  return false;
}

static kiln_status not_understood(piece p, const char *text)
{
  return kiln__fail(KILN_EINVAL,
                    "like cpu:9.0,threads=2,seed=7,check=mem+race,counters,"
                    "budget=1000000,schedule=lock-step,devices=2,memory=4G",
                    "\"%.*s\" in \"%s\" is not understood",
                    (int)(p.n < INT_MAX ? p.n : INT_MAX), p.at, text);
}

/* Takes a setting such as "devices=2". Returns whether it is understood. */
static bool key_and_value(kiln_cpu_opts *out, piece part)
{
  const piece key = cut(&part, "=");

  if (part.n > 0) {
    part.at++;
    part.n--;
  }
  return setting(out, key, part);
}

kiln_status kiln_cpu_parse(kiln_cpu_opts *out, const char *text)
{
  piece rest, part;

  if (out == NULL || text == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out or text is NULL");
  *out = (kiln_cpu_opts){0};
  rest = (piece){text, strlen(text)};
  part = cut(&rest, ",");
  if (part.n < 3 || memcmp(part.at, "cpu", 3) != 0 ||
      (part.n > 3 && part.at[3] != ':'))
    return not_understood(part, text);
  /* The architecture may be left out: cpu:devices=2. */
  if (part.n > 3) {
    part = (piece){part.at + 4, part.n - 4};
    if (!arch(part, &out->arch) && !key_and_value(out, part))
      return not_understood(part, text);
  }
  while (rest.n > 0) {
    rest.at++;
    rest.n--;
    part = cut(&rest, ",");
    if (!key_and_value(out, part))
      return not_understood(part, text);
  }
  return KILN_OK;
}

/* ---- Exported functions, which receive the size of a struct -------------- */

static const kiln__sized opts_type = KILN__SIZED_TYPE(kiln_cpu_opts, isa);

kiln_status kiln_cpu_configure_sized(const kiln_cpu_opts *opts,
                                     size_t opts_size)
{
  kiln_cpu_opts own;
  const void *in = opts;
  const kiln_status st = kiln__sized_in(&opts_type, &in, opts_size, &own);

  return st == KILN_OK ? kiln_cpu_configure(in) : st;
}

kiln_status kiln_cpu_parse_sized(kiln_cpu_opts *out, const char *text,
                                 size_t out_size)
{
  kiln_cpu_opts own = {0};
  bool direct;
  kiln_status st = kiln__sized_out(&opts_type, out, out_size, &direct);

  if (st != KILN_OK)
    return st;
  st = kiln_cpu_parse(direct ? out : &own, text);
  if (!direct)
    kiln__sized_give(&opts_type, &own, out, out_size);
  return st;
}

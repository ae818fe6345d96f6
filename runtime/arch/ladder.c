/* ladder.c -- the compatibility ladder decides which kind of code to make for
 * which GPU.
 *
 * Problem: an application meets any combination of GPU, driver, NVRTC,
 * nvJitLink and packs (files of precompiled code). Some combinations can run
 * only PTX, some only older machine code, some nothing. Each failure has a
 * different remedy.
 * Idea: a pure function tries the rungs of the ladder from best to worst. A
 * rung is one way to get code for a GPU. The rungs are: machine code for
 * exactly this GPU, machine code for an older minor version, PTX assembled by
 * the driver, PTX assembled by nvJitLink, an image from a pack, and refusal.
 * Each rejected rung records its reason, and a refusal names the next step. The
 * function loads and launches nothing, so `kiln doctor --what-if` can evaluate
 * it for any machine.
 *
 * The rules rest on these guarantees by NVIDIA:
 * - Machine code runs on its own compute capability and on later minor versions
 *   of the same major version. Between integrated (Tegra) and discrete GPUs
 *   there is no such compatibility.
 * - PTX runs on its own capability and on every later capability.
 * - Code with suffix a runs only on its own capability. Code with suffix f also
 *   runs on later minor versions of its family. Both rules hold for PTX and
 *   machine code.
 * - A driver loads machine code of every older compiler and, since 11.0, of
 *   every compiler with the same CUDA major version. A driver loads PTX only if
 *   the compiler's version, including the minor version, is not newer than the
 *   driver's.
 *
 * Source: CUDA C++ Programming Guide, "Compute Capabilities" and "Binary
 * Compatibility"; CUDA Compatibility guide. */
#include "arch.h"

#include <stdio.h>

enum {
  OLDEST_NVRTC = 11020,
  NEWEST_MAJOR = 13,
  FIRST_A = 90,
  FIRST_F = 100,
  FIRST_F_NVRTC = 12090
};

typedef struct climb {
  const kiln_ladder_query *q;
  const int *archs; /* compute capabilities that NVRTC supports */
  size_t n;
  bool tegra;
  kiln_ladder_result *out;
  /* version numbers formatted for messages */
  char gpu[24], nvrtc[16], driver[16], link[16];
} climb;

const char *kiln_rung_name(kiln_rung rung)
{
  switch (rung) {
#define NAME_CASE(name, id, text)                                              \
  case KILN_RUNG_##name:                                                       \
    return id;
    KILN_RUNG_MAP(NAME_CASE)
#undef NAME_CASE
  case KILN_RUNG_COUNT:
    break;
  }
  return "?";
}

/* Formats a version number: 12090 becomes "12.9". */
static void version_text(char buf[16], int version)
{
  kiln__format(buf, 16, "%d.%d", version / 1000, version % 1000 / 10);
}

static int major_of(int version)
{
  return version / 1000;
}

static bool same_major(int cc, int other)
{
  return cc / 10 == other / 10;
}

/* Records why a rung of the ladder was chosen or rejected. Always returns
 * false, so that a function that rejects its rung can `return because(...)`. */
KILN_PRINTF(3, 4)
static bool because(climb *c, kiln_rung rung, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  vsnprintf(c->out->reason[rung], KILN_REASON_SIZE, format, args);
  va_end(args);
  return false;
}

static bool listed(const climb *c, int cc)
{
  for (size_t i = 0; i < c->n; i++) {
    if (c->archs[i] == cc)
      return true;
  }
  return false;
}

/* Returns true if the GPU runs only machine code of exactly its own capability,
 * as integrated (Tegra) GPUs do. GB10 (12.1) is integrated too, but it also
 * runs machine code for 12.0. */
static bool is_alone(int cc, bool tegra)
{
  return cc != 121 && (tegra || kiln__arch_tegra(cc));
}

/* Returns true if machine code made for capability `code` runs on capability
 * `gpu`. */
static bool binary_runs(int code, char suffix, int gpu, bool gpu_alone)
{
  if (code == gpu)
    return true;
  return suffix != 'a' && code < gpu && same_major(code, gpu) && !gpu_alone &&
         !kiln__arch_tegra(code);
}

/* Returns true if PTX made for capability `code` can be assembled for
 * capability `gpu`. */
static bool ptx_runs(int code, char suffix, int gpu, bool gpu_alone)
{
  if (suffix != 0)
    return binary_runs(code, suffix, gpu, gpu_alone);
  return code <= gpu;
}

/* ---- Capabilities that NVRTC and the driver support ---------------------- */

static bool suffix_exists(const kiln_ladder_query *q)
{
  return q->suffix == 0 || q->cc >= (q->suffix == 'a' ? FIRST_A : FIRST_F);
}

/* Returns the first NVRTC version that supports the target suffix. 9.0a is
 * supported since 12.0, and suffix f since 12.9. From 10.0 on, suffix a was
 * introduced together with the capability. */
static int suffix_since(const kiln_ladder_query *q)
{
  if (q->suffix == 0)
    return OLDEST_NVRTC;
  return q->suffix == 'f' ? FIRST_F_NVRTC : 12000;
}

/* Returns true and records the reason if NVRTC cannot make any code for this
 * GPU. Returns false if nothing prevents it. */
static bool nvrtc_out(const climb *c, char reason[KILN_REASON_SIZE])
{
  const kiln_ladder_query *q = c->q;

  if (q->nvrtc_version == 0)
    kiln__copy_text(reason, KILN_REASON_SIZE, "there is no NVRTC");
  else if (q->nvrtc_version < OLDEST_NVRTC)
    kiln__format(reason, KILN_REASON_SIZE,
                 "NVRTC %s is older than 11.2, the oldest that Kiln uses",
                 c->nvrtc);
  else if (!suffix_exists(q))
    kiln__format(reason, KILN_REASON_SIZE,
                 "suffix %c exists only from %s on, and this GPU is %s",
                 q->suffix, q->suffix == 'a' ? "9.0" : "10.0", c->gpu);
  else if (q->nvrtc_version < suffix_since(q))
    kiln__format(reason, KILN_REASON_SIZE,
                 "NVRTC %s does not support suffix %c", c->nvrtc, q->suffix);
  else if (c->n == 0)
    kiln__format(reason, KILN_REASON_SIZE,
                 "the targets of NVRTC %s are unknown", c->nvrtc);
  else
    return false;
  return true;
}

/* Returns true and records the reason if the driver cannot load machine code
 * that this NVRTC makes. Returns false if nothing prevents it. */
static bool binary_out(const climb *c, char reason[KILN_REASON_SIZE])
{
  if (c->q->ptx_only) {
    kiln__copy_text(reason, KILN_REASON_SIZE,
                    "this device runs PTX and no machine code");
    return true;
  }
  if (nvrtc_out(c, reason))
    return true;
  if (c->q->driver_version == 0 ||
      major_of(c->q->nvrtc_version) <= major_of(c->q->driver_version))
    return false;
  kiln__format(reason, KILN_REASON_SIZE,
               "the driver (CUDA %s) refuses machine code of NVRTC %s, which "
               "is of a newer CUDA major",
               c->driver, c->nvrtc);
  return true;
}

/* Returns true if the driver can load this NVRTC's PTX. It can if the PTX
 * version (major and minor) is not newer than the driver. */
static bool driver_reads_ptx(const climb *c)
{
  return c->q->driver_version == 0 ||
         c->q->nvrtc_version / 10 <= c->q->driver_version / 10;
}

/* Returns the highest compute capability in NVRTC's list whose code the GPU can
 * run, or 0 if the GPU can run none of them. */
static int best_listed(const climb *c, bool ptx)
{
  int best = 0;

  for (size_t i = 0; i < c->n; i++) {
    const int code = c->archs[i];
    const bool fits = ptx ? ptx_runs(code, c->q->suffix, c->q->cc, c->tegra)
                          : binary_runs(code, c->q->suffix, c->q->cc, c->tegra);

    /* Compute capabilities before FIRST_F have no suffix f. */
    if (c->q->suffix == 'f' && code < FIRST_F)
      continue;
    if (fits && code > best && code >= 10)
      best = code;
  }
  return best;
}

/* ---- The rungs of the ladder: each function returns true if its rung is
 * chosen ---- */

static bool choose(climb *c, kiln_rung rung, int cc, bool ptx)
{
  c->out->rung = rung;
  c->out->target = (kiln_target){.cc = cc, .suffix = c->q->suffix, .ptx = ptx};
  return true;
}

static bool try_exact(climb *c)
{
  char target[24];

  if (binary_out(c, c->out->reason[KILN_RUNG_EXACT]))
    return false;
  if (!listed(c, c->q->cc))
    return because(c, KILN_RUNG_EXACT, "NVRTC %s does not make code for %s",
                   c->nvrtc, c->gpu);
  choose(c, KILN_RUNG_EXACT, c->q->cc, false);
  kiln_target_text(&c->out->target, target);
  if (c->q->driver_version == 0)
    because(c, KILN_RUNG_EXACT, "NVRTC %s makes %s", c->nvrtc, target);
  else
    because(c, KILN_RUNG_EXACT,
            "NVRTC %s makes %s, and the driver (CUDA %s) loads it", c->nvrtc,
            target, c->driver);
  return true;
}

static bool try_lower(climb *c)
{
  char target[24];
  int best;

  if (binary_out(c, c->out->reason[KILN_RUNG_LOWER]))
    return false;
  if (c->q->suffix == 'a')
    return because(c, KILN_RUNG_LOWER,
                   "code with suffix a runs on its own capability only");
  if (c->tegra)
    return because(c, KILN_RUNG_LOWER,
                   "an integrated GPU runs no machine code but its own (%s)",
                   c->gpu);
  best = best_listed(c, false);
  if (best == 0)
    return because(c, KILN_RUNG_LOWER,
                   "NVRTC %s makes no %d.x code that %s runs", c->nvrtc,
                   c->q->cc / 10, c->gpu);
  choose(c, KILN_RUNG_LOWER, best, false);
  because(c, KILN_RUNG_LOWER, "%s code runs on %s: same major, older minor",
          kiln_target_text(&c->out->target, target), c->gpu);
  return true;
}

static bool try_ptx(climb *c)
{
  char target[24];
  int best;

  if (nvrtc_out(c, c->out->reason[KILN_RUNG_PTX]))
    return false;
  if (!driver_reads_ptx(c))
    return because(c, KILN_RUNG_PTX,
                   "the driver (CUDA %s) does not read the newer PTX of "
                   "NVRTC %s",
                   c->driver, c->nvrtc);
  best = best_listed(c, true);
  if (best == 0)
    return c->q->suffix != 0
               ? because(c, KILN_RUNG_PTX,
                         "NVRTC %s makes no PTX with suffix %c for %s",
                         c->nvrtc, c->q->suffix, c->gpu)
               : because(c, KILN_RUNG_PTX,
                         "all that NVRTC %s makes is newer than %s", c->nvrtc,
                         c->gpu);
  choose(c, KILN_RUNG_PTX, best, true);
  because(c, KILN_RUNG_PTX,
          c->q->ptx_only ? "the device runs %s as %s"
                         : "the driver assembles %s for %s",
          kiln_target_text(&c->out->target, target), c->gpu);
  return true;
}

static bool link_knows(const climb *c)
{
  size_t n;
  const int *archs = kiln_nvrtc_known_archs(c->q->nvjitlink_version, &n);

  for (size_t i = 0; i < n; i++) {
    if (archs[i] == c->q->cc)
      return true;
  }
  /* The NVRTC version is newer than this table. Assume that it supports the
   * capability. */
  return n == 0;
}

static bool try_link(climb *c)
{
  char target[24];
  int best;

  if (c->q->ptx_only)
    return because(c, KILN_RUNG_LINK, "it would make machine code");
  if (nvrtc_out(c, c->out->reason[KILN_RUNG_LINK]))
    return false;
  if (driver_reads_ptx(c))
    return because(c, KILN_RUNG_LINK,
                   "it would assemble the same PTX as the driver");
  if (c->q->nvjitlink_version == 0)
    return because(c, KILN_RUNG_LINK, "there is no nvJitLink");
  if (c->q->nvjitlink_version / 10 < c->q->nvrtc_version / 10)
    return because(c, KILN_RUNG_LINK,
                   "nvJitLink %s does not read the newer PTX of NVRTC %s",
                   c->link, c->nvrtc);
  if (major_of(c->q->nvjitlink_version) > major_of(c->q->driver_version))
    return because(c, KILN_RUNG_LINK,
                   "the driver (CUDA %s) refuses machine code of nvJitLink %s, "
                   "which is of a newer CUDA major",
                   c->driver, c->link);
  if (!link_knows(c))
    return because(c, KILN_RUNG_LINK, "nvJitLink %s does not make code for %s",
                   c->link, c->gpu);
  best = best_listed(c, true);
  if (best == 0)
    return because(c, KILN_RUNG_LINK,
                   "NVRTC %s makes no PTX that can become code for %s",
                   c->nvrtc, c->gpu);
  choose(c, KILN_RUNG_LINK, best, true);
  because(c, KILN_RUNG_LINK, "nvJitLink %s assembles %s for %s", c->link,
          kiln_target_text(&c->out->target, target), c->gpu);
  return true;
}

/* A kernel that requires a target suffix needs code with that suffix. Code with
 * suffix a also satisfies a requirement for f. */
static bool has_suffix(char code, char needed)
{
  return needed == 0 || code == needed || (needed == 'f' && code == 'a');
}

static bool pack_fits(const climb *c, const kiln_target *t)
{
  if (t->cc < 10 || !has_suffix(t->suffix, c->q->suffix) ||
      (c->q->ptx_only && !t->ptx))
    return false;
  return t->ptx ? ptx_runs(t->cc, t->suffix, c->q->cc, c->tegra)
                : binary_runs(t->cc, t->suffix, c->q->cc, c->tegra);
}

/* Orders pack images: machine code is better than PTX, then a higher capability
 * is better, then code without a suffix is better. */
static bool pack_better(const kiln_target *a, const kiln_target *b)
{
  if (a->ptx != b->ptx)
    return !a->ptx;
  if (a->cc != b->cc)
    return a->cc > b->cc;
  return a->suffix == 0 && b->suffix != 0;
}

static bool try_pack(climb *c)
{
  const kiln_ladder_query *q = c->q;
  const kiln_target *best = NULL;
  char target[24];

  if (q->n_pack == 0)
    return because(c, KILN_RUNG_PACK, "there is no pack with this program");
  for (size_t i = 0; i < q->n_pack; i++) {
    if (pack_fits(c, &q->pack[i]) &&
        (best == NULL || pack_better(&q->pack[i], best)))
      best = &q->pack[i];
  }
  if (best == NULL)
    return because(c, KILN_RUNG_PACK, "no image in the packs runs on %s%.1s",
                   c->gpu, q->suffix == 0 ? "" : &q->suffix);
  c->out->rung = KILN_RUNG_PACK;
  c->out->target = *best;
  because(c, KILN_RUNG_PACK, "a pack holds %s, which runs on %s",
          kiln_target_text(best, target), c->gpu);
  return true;
}

/* ---- Refusal ------------------------------------------------------------- */

KILN_PRINTF(2, 3)
static void advise(climb *c, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  vsnprintf(c->out->hint, KILN_ERROR_HINT_SIZE, format, args);
  va_end(args);
}

/* Writes the hint if no compiler is installed or no installed compiler supports
 * the GPU. The hint names the NVRTC versions that do. */
static void hint_versions(climb *c, int first, int last)
{
  const kiln_ladder_query *q = c->q;
  char oldest[16], newest[16], gpu[32], limit[48] = "";

  if (first < suffix_since(q))
    first = suffix_since(q);
  version_text(oldest, first);
  version_text(newest, last);
  kiln__format(gpu, sizeof gpu, "%s%.1s", c->gpu, q->suffix ? &q->suffix : "");
  if (q->driver_version != 0)
    kiln__format(limit, sizeof limit, " and fits this driver (CUDA %d at most)",
                 major_of(q->driver_version));
  if (q->driver_version != 0 && major_of(first) > major_of(q->driver_version))
    advise(c, "update the driver to CUDA %d.0 or newer and install NVRTC %s",
           major_of(first), oldest);
  else if (major_of(q->nvrtc_version) > major_of(last))
    advise(c,
           "install NVRTC %s, the last that makes code for %s, beside this "
           "one, or ship a pack made with it",
           newest, gpu);
  else if (major_of(last) < NEWEST_MAJOR)
    advise(c,
           "install an NVRTC of %s to %s, which makes code for %s%s, or ship a "
           "pack",
           oldest, newest, gpu, limit);
  else
    advise(c,
           "install NVRTC %s or newer, which makes code for %s%s, or ship a "
           "pack",
           oldest, gpu, limit);
}

/* Writes the hint if the compiler is too new for the driver. The hint names two
 * remedies: a newer driver or an older compiler. */
static void hint_driver(climb *c)
{
  const int major = major_of(c->q->driver_version);

  if (major_of(c->q->nvrtc_version) > major)
    advise(c,
           "update the driver to CUDA %d.0 or newer, or install NVRTC %d.x "
           "beside this one",
           major_of(c->q->nvrtc_version), major);
  else
    advise(c,
           "update the driver to CUDA %s or newer, install nvJitLink %s or "
           "newer of CUDA %d, or use NVRTC %s",
           c->nvrtc, c->nvrtc, major, c->driver);
}

/* Returns true if a different NVRTC version could make code for the GPU. */
static bool wrong_version(const kiln_ladder_query *q, int first, int last)
{
  return q->nvrtc_version < first || q->nvrtc_version < suffix_since(q) ||
         major_of(q->nvrtc_version) > major_of(last);
}

static void write_hint(climb *c)
{
  const kiln_ladder_query *q = c->q;
  int first = 0, last = 0;
  const bool known = kiln__nvrtc_span(q->cc, &first, &last);

  if (q->cc < 35)
    advise(c,
           "no NVRTC that Kiln uses makes code for %s: use a GPU of 3.5 or "
           "newer",
           c->gpu);
  else if (!suffix_exists(q))
    advise(c, "compile without suffix %c, or for a GPU of %s or newer",
           q->suffix, q->suffix == 'a' ? "9.0" : "10.0");
  else if (q->nvrtc_version >= OLDEST_NVRTC && c->n == 0)
    advise(c, "give the list of architectures that this NVRTC reports");
  else if (known && wrong_version(q, first, last))
    hint_versions(c, first, last);
  else if (q->nvrtc_version != 0 && !driver_reads_ptx(c) &&
           best_listed(c, true) != 0)
    hint_driver(c);
  else
    advise(c, "install an NVRTC that makes code for %s%.1s, or ship a pack",
           c->gpu, q->suffix ? &q->suffix : "");
}

/* ---- The decision -------------------------------------------------------- */

static kiln_status check(const kiln_ladder_query *q,
                         const kiln_ladder_result *out)
{
  if (q == NULL || out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "query or out is NULL");
  if (q->cc < 10 || q->cc > 999)
    return kiln__fail(KILN_EINVAL, "write 9.0 as 90 and 12.1 as 121",
                      "%d is no compute capability", q->cc);
  if (q->suffix != 0 && q->suffix != 'a' && q->suffix != 'f')
    return kiln__fail(KILN_EINVAL, "use 0, 'a' or 'f'",
                      "there is no such suffix");
  if (q->driver_version < 0 || q->nvrtc_version < 0 || q->nvjitlink_version < 0)
    return kiln__fail(KILN_EINVAL, "write 12.2 as 12020, none as 0",
                      "a version is negative");
  if ((q->archs == NULL && q->n_archs != 0) ||
      (q->pack == NULL && q->n_pack != 0))
    return kiln__fail(KILN_EINVAL, NULL,
                      "the query has a count without its list");
  return KILN_OK;
}

static void prepare(climb *c, const kiln_ladder_query *q,
                    kiln_ladder_result *out)
{
  *out = (kiln_ladder_result){.rung = KILN_RUNG_REFUSE};
  *c = (climb){.q = q, .archs = q->archs, .n = q->n_archs, .out = out};
  if (q->archs == NULL)
    c->archs = kiln_nvrtc_known_archs(q->nvrtc_version, &c->n);
  c->tegra = is_alone(q->cc, q->tegra);
  kiln__format(c->gpu, sizeof c->gpu, "%d.%d", q->cc / 10, q->cc % 10);
  version_text(c->nvrtc, q->nvrtc_version);
  version_text(c->driver, q->driver_version);
  version_text(c->link, q->nvjitlink_version);
}

kiln_status kiln_ladder(const kiln_ladder_query *query, kiln_ladder_result *out)
{
  static bool (*const rungs[])(climb *) = {try_exact, try_lower, try_ptx,
                                           try_link, try_pack};
  const size_t n = sizeof rungs / sizeof rungs[0];
  const kiln_status st = check(query, out);
  climb c;
  size_t i;

  if (st != KILN_OK)
    return st;
  prepare(&c, query, out);
  for (i = 0; i < n && !rungs[i](&c); i++)
    continue;
  if (i == n) {
    because(&c, KILN_RUNG_REFUSE,
            "no compiler, driver and pack at hand fit this GPU (%s)", c.gpu);
    write_hint(&c);
    return KILN_OK;
  }
  while (++i < KILN_RUNG_COUNT)
    kiln__copy_text(out->reason[i], KILN_REASON_SIZE, "not needed");
  return KILN_OK;
}

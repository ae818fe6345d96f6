/* ladder_test.c -- tests the compatibility ladder, which chooses how to obtain
 * code for a GPU, on single cases and over all combinations.
 *
 * The expected choices ("rungs") follow NVIDIA's rules. Machine code runs
 * within a major version on later minor versions, but not across integrated and
 * discrete GPUs. PTX runs on later capabilities and on drivers that are not
 * older than the compiler. The suffixes a and f of a target restrict both. The
 * driver loads machine code of the same CUDA major version. */
#include "support.h"

#include <kiln/arch.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LIST = 16 };

static const struct rule {
  const char *what;
  int cc;
  char suffix;
  bool tegra;
  int driver, nvrtc, link;
  /* architectures that NVRTC supports; NULL for the built-in list */
  const char *archs;
  const char *pack; /* targets for which a pack has an image */
  kiln_rung rung;
  const char *target;
  const char *hint; /* string that the hint of the error must contain */
} rules[] = {
#define E KILN_RUNG_EXACT
#define L KILN_RUNG_LOWER
#define P KILN_RUNG_PTX
#define K KILN_RUNG_LINK
#define B KILN_RUNG_PACK
#define R KILN_RUNG_REFUSE
    /* Drivers that are older or newer than NVRTC. */
    {"same version", 90, 0, 0, 13000, 13000, 0, 0, 0, E, "sm_90", 0},
    {"newer minor", 90, 0, 0, 12020, 12090, 0, 0, 0, E, "sm_90", 0},
    {"newest minor on the first driver of its major", 75, 0, 0, 12000, 12090, 0,
     0, 0, E, "sm_75", 0},
    {"older major", 90, 0, 0, 13000, 11080, 0, 0, 0, E, "sm_90", 0},
    {"much older major", 86, 0, 0, 13010, 11020, 0, 0, 0, E, "sm_86", 0},
    {"newer major", 90, 0, 0, 12020, 13000, 0, 0, 0, R, "none", "12.x"},
    {"newer major, nvJitLink of the driver's", 90, 0, 0, 12090, 13000, 12090, 0,
     0, R, "none", "12.x"},
    {"newer major, nvJitLink as new", 90, 0, 0, 12090, 13000, 13000, 0, 0, R,
     "none", "driver to CUDA 13"},
    {"newer major, a pack", 90, 0, 0, 12020, 13000, 0, 0, "sm_90", B, "sm_90",
     0},
    /* GPUs that are newer than NVRTC. */
    {"B200 under 11.8", 100, 0, 0, 13000, 11080, 0, 0, 0, P, "compute_90", 0},
    {"RTX 50 under 12.4", 120, 0, 0, 12080, 12040, 0, 0, 0, P, "compute_90", 0},
    {"12.1 under 12.8", 121, 0, 0, 12090, 12080, 0, 0, 0, L, "sm_120", 0},
    {"10.3 under 12.8", 103, 0, 0, 12090, 12080, 0, 0, 0, L, "sm_100", 0},
    {"8.9 under 11.7: 8.6, as 8.7 is integrated", 89, 0, 0, 12000, 11070, 0, 0,
     0, L, "sm_86", 0},
    {"9.0 under 11.7", 90, 0, 0, 12000, 11070, 0, 0, 0, P, "compute_87", 0},
    {"12.0 is no 10.x", 120, 0, 0, 13000, 12080, 0, "90 100", 0, P,
     "compute_100", 0},
    {"11.0 is no 10.x", 110, 0, 0, 13000, 12090, 0, 0, 0, P, "compute_103", 0},
    {"a GPU of the future", 130, 0, 0, 14000, 13000, 0, 0, 0, P, "compute_121",
     0},
    {"PTX for a newer GPU, driver older than NVRTC", 90, 0, 0, 12020, 12090, 0,
     "75 80", 0, R, "none", "nvJitLink"},
    /* Integrated GPUs (Tegra). */
    {"Xavier", 72, 0, 1, 12020, 12020, 0, 0, 0, E, "sm_72", 0},
    {"Orin under 11.4", 87, 0, 1, 11040, 11040, 0, 0, 0, P, "compute_86", 0},
    {"Orin, told by its number", 87, 0, 0, 11040, 11040, 0, 0, 0, P,
     "compute_86", 0},
    {"Orin takes no 8.0 or 8.6 code", 87, 0, 0, 12000, 12000, 0, "80 86", 0, P,
     "compute_86", 0},
    {"7.5 takes no Xavier code", 75, 0, 0, 12000, 12000, 0, "60 72", 0, P,
     "compute_72", 0},
    {"an unknown integrated GPU", 84, 0, 1, 12000, 12000, 0, 0, 0, P,
     "compute_80", 0},
    {"the same, not integrated", 84, 0, 0, 12000, 12000, 0, 0, 0, L, "sm_80",
     0},
    {"GB10 is of the family of 12.0", 121, 0, 1, 12090, 12080, 0, 0, 0, L,
     "sm_120", 0},
    {"Thor under CUDA 12", 101, 0, 1, 12080, 12080, 0, 0, 0, E, "sm_101", 0},
    {"Thor under CUDA 13", 110, 0, 1, 13000, 13000, 0, 0, 0, E, "sm_110", 0},
    {"Thor under CUDA 12 finds no name in 13", 101, 0, 1, 12090, 13000, 0, 0, 0,
     R, "none", "12.9"},
    /* GPUs that are older than NVRTC supports. */
    {"Pascal under 13", 61, 0, 0, 13000, 13000, 0, 0, 0, R, "none", "12.9"},
    {"Volta under 13", 70, 0, 0, 12080, 13000, 0, 0, 0, R, "none", "12.9"},
    {"Kepler under 12", 35, 0, 0, 11040, 12000, 0, 0, 0, R, "none", "11.8"},
    {"Kepler under 11.8", 37, 0, 0, 11040, 11080, 0, 0, 0, E, "sm_37", 0},
    {"3.0 is lost", 30, 0, 0, 11040, 11080, 0, 0, 0, R, "none", "3.5 or newer"},
    {"Fermi is lost", 20, 0, 0, 0, 11020, 0, 0, 0, R, "none", "3.5 or newer"},
    {"2.0 from a pack", 20, 0, 0, 0, 11020, 0, 0, "sm_20", B, "sm_20", 0},
    {"Volta under 13, a pack", 70, 0, 0, 12080, 13000, 0, 0, "compute_60", B,
     "compute_60", 0},
    /* Targets with the suffix a or f. */
    {"9.0a", 90, 'a', 0, 12020, 12000, 0, 0, 0, E, "sm_90a", 0},
    {"9.0a under 11.8", 90, 'a', 0, 12020, 11080, 0, 0, 0, R, "none", "12.0"},
    {"9.0a on 10.0", 100, 'a', 0, 13000, 12000, 0, 0, 0, R, "none", "12.8"},
    {"10.3a from 10.0", 103, 'a', 0, 13000, 13000, 0, "90 100", 0, R, "none",
     "10.3a"},
    {"10.0a", 100, 'a', 0, 12080, 12080, 0, 0, 0, E, "sm_100a", 0},
    {"8.9a does not exist", 89, 'a', 0, 13000, 13000, 0, 0, 0, R, "none",
     "without suffix"},
    {"10.3f", 103, 'f', 0, 12090, 12090, 0, 0, 0, E, "sm_103f", 0},
    {"10.3f from 10.0", 103, 'f', 0, 12090, 12090, 0, "90 100", 0, L, "sm_100f",
     0},
    {"12.1f from 12.0", 121, 'f', 0, 12090, 12090, 0, "90 100 120", 0, L,
     "sm_120f", 0},
    {"11.0f", 110, 'f', 1, 13000, 13000, 0, 0, 0, E, "sm_110f", 0},
    {"11.0f is not of the family of 10.0", 110, 'f', 0, 13000, 13000, 0,
     "100 103", 0, R, "none", "11.0f"},
    {"10.3f is not of the family of 10.1", 103, 'f', 0, 12090, 12090, 0, "101",
     0, R, "none", "10.3f"},
    {"f under 12.8", 100, 'f', 0, 12080, 12080, 0, 0, 0, R, "none", "12.9"},
    {"9.0f does not exist", 90, 'f', 0, 13000, 13000, 0, 0, 0, R, "none",
     "without suffix"},
    /* No driver is present, so the code is compiled but not loaded. */
    {"compile only", 90, 0, 0, 0, 13000, 0, 0, 0, E, "sm_90", 0},
    {"compile only, too old", 70, 0, 0, 0, 13000, 0, 0, 0, R, "none", "12.9"},
    {"compile only, clamped", 100, 0, 0, 0, 11080, 0, 0, 0, P, "compute_90", 0},
    {"compile only, lower", 121, 0, 0, 0, 12080, 0, 0, 0, L, "sm_120", 0},
    {"compile only needs no nvJitLink", 120, 0, 0, 0, 12040, 12090, 0, 0, P,
     "compute_90", 0},
    /* PTX that nvJitLink assembles, for drivers older than NVRTC. */
    {"link", 90, 0, 0, 12020, 12090, 12090, "75 80", 0, K, "compute_80", 0},
    {"link, a later nvJitLink", 90, 0, 0, 12020, 12040, 12090, "80 75", 0, K,
     "compute_80", 0},
    {"one minor decides", 90, 0, 0, 12080, 12090, 12090, "75 80", 0, K,
     "compute_80", 0},
    {"no link needed", 90, 0, 0, 12090, 12090, 12090, "75 80", 0, P,
     "compute_80", 0},
    {"nvJitLink older than NVRTC", 90, 0, 0, 12020, 12090, 12080, "75 80", 0, R,
     "none", "nvJitLink 12.9"},
    {"nvJitLink of a newer major", 90, 0, 0, 12020, 12090, 13000, "75 80", 0, R,
     "none", "driver to CUDA 12.9"},
    {"nvJitLink that does not know the GPU", 130, 0, 0, 12020, 12090, 12090,
     "75 80", 0, R, "none", "nvJitLink 12.9"},
    {"link for an integrated GPU", 87, 0, 1, 12020, 12090, 12090, "75 80", 0, K,
     "compute_80", 0},
    {"link below the GPU only", 75, 0, 0, 12020, 12090, 12090, "80 90", 0, R,
     "none", "7.5"},
    /* Images that were compiled earlier and stored in packs. */
    {"the pack's own GPU", 90, 0, 0, 12020, 0, 0, 0, "sm_80 sm_90 compute_75",
     B, "sm_90", 0},
    {"the pack's lower code", 86, 0, 0, 12020, 0, 0, 0,
     "compute_86 sm_80 sm_90 sm_75", B, "sm_80", 0},
    {"the pack's PTX", 100, 0, 0, 13000, 0, 0, 0,
     "sm_80 compute_60 compute_75 sm_90", B, "compute_75", 0},
    {"the pack's PTX for Orin", 87, 0, 1, 12020, 0, 0, 0,
     "sm_80 sm_86 compute_75", B, "compute_75", 0},
    {"nothing from Orin's pack", 89, 0, 0, 12020, 0, 0, 0, "sm_87", R, "none",
     "NVRTC"},
    {"a pack only newer", 70, 0, 0, 12020, 0, 0, 0, "sm_75 compute_75", R,
     "none", "of 11.2 to 12.9"},
    {"a pack with suffix", 90, 0, 0, 12020, 0, 0, 0, "sm_90a", B, "sm_90a", 0},
    {"plain before suffix", 90, 0, 0, 12020, 0, 0, 0, "sm_90a sm_90", B,
     "sm_90", 0},
    {"9.0a is not for 10.0", 100, 0, 0, 13000, 0, 0, 0, "sm_90a compute_90a", R,
     "none", "NVRTC"},
    {"suffix a needed", 90, 'a', 0, 12020, 0, 0, 0, "sm_90 compute_80", R,
     "none", "NVRTC 12.0"},
    {"f serves the family", 103, 'f', 0, 12090, 0, 0, 0, "sm_100f", B,
     "sm_100f", 0},
    {"f as PTX", 121, 'f', 0, 12090, 0, 0, 0, "compute_120f", B, "compute_120f",
     0},
    {"a has all of f", 103, 'f', 0, 12090, 0, 0, 0, "sm_103a", B, "sm_103a", 0},
    {"a is not f", 103, 'f', 0, 12090, 0, 0, 0, "sm_100a", R, "none", "12.9"},
    {"a pack is not needed", 90, 0, 0, 13000, 13000, 0, 0, "sm_90", E, "sm_90",
     0},
    {"PTX before a pack", 120, 0, 0, 12080, 12040, 0, 0, "sm_120", P,
     "compute_90", 0},
    /* Lists of NVRTC's architectures in unusual orders. */
    {"unsorted", 103, 0, 0, 13000, 13000, 0, "90 75 120 80 100", 0, L, "sm_100",
     0},
    {"unsorted PTX", 110, 0, 0, 13000, 13000, 0, "120 100 75 90", 0, P,
     "compute_100", 0},
    {"twice", 90, 0, 0, 13000, 13000, 0, "90 90", 0, E, "sm_90", 0},
    {"rubbish in it", 90, 0, 0, 12000, 12000, 0, "0 -5 7 80 4711", 0, P,
     "compute_80", 0},
    {"an unknown NVRTC", 90, 0, 0, 14000, 14000, 0, 0, 0, R, "none", "list"},
    {"an unknown NVRTC with its list", 90, 0, 0, 14000, 14000, 0, "90 130", 0,
     E, "sm_90", 0},
    {"an ancient NVRTC", 75, 0, 0, 12000, 10020, 0, "70 75", 0, R, "none",
     "11.2"},
    {"nothing at all", 90, 0, 0, 0, 0, 0, 0, 0, R, "none", "11.8"},
    {"a driver alone", 90, 0, 0, 12020, 0, 0, 0, 0, R, "none",
     "CUDA 12 at most"},
#undef E
#undef L
#undef P
#undef K
#undef B
#undef R
};

static size_t read_list(const char *text, int out[MAX_LIST])
{
  size_t n = 0;
  char *end;

  while (text != NULL && *text != '\0') {
    ck_assert_uint_lt(n, MAX_LIST);
    out[n++] = (int)strtol(text, &end, 10);
    text = end;
  }
  return n;
}

static size_t read_targets(const char *text, kiln_target out[MAX_LIST])
{
  char copy[256], *rest = copy, *word;
  size_t n = 0;

  if (text == NULL)
    return 0;
  snprintf(copy, sizeof copy, "%s", text);
  while ((word = strsep(&rest, " ")) != NULL)
    ck_kiln_ok(kiln_target_parse(&out[n++], word));
  return n;
}

static bool has_word(const char *text, const char *words)
{
  char copy[128], *rest = copy, *word;

  snprintf(copy, sizeof copy, "%s", words);
  while ((word = strsep(&rest, "|")) != NULL) {
    if (strstr(text, word) != NULL)
      return true;
  }
  return false;
}

START_TEST(rules_hold)
{
  const struct rule *rule = &rules[_i];
  int archs[MAX_LIST];
  kiln_target pack[MAX_LIST];
  kiln_ladder_result r;
  char target[24];
  const kiln_ladder_query q = {
      .cc = rule->cc,
      .suffix = rule->suffix,
      .tegra = rule->tegra,
      .driver_version = rule->driver,
      .nvrtc_version = rule->nvrtc,
      .nvjitlink_version = rule->link,
      .archs = rule->archs == NULL ? NULL : archs,
      .n_archs = read_list(rule->archs, archs),
      .pack = pack,
      .n_pack = read_targets(rule->pack, pack),
  };

  memset(&r, 0x5a, sizeof r);
  ck_kiln_ok(kiln_ladder(&q, &r));
  ck_assert_msg(r.rung == rule->rung &&
                    strcmp(kiln_target_text(&r.target, target), rule->target) ==
                        0,
                "%s: %s %s (%s)", rule->what, kiln_rung_name(r.rung), target,
                r.reason[r.rung]);
  if (rule->hint == NULL)
    ck_assert_str_eq(r.hint, "");
  else
    ck_assert_msg(has_word(r.hint, rule->hint), "%s: %s", rule->what, r.hint);
}
END_TEST

START_TEST(a_device_of_ptx_gets_ptx)
{
  const kiln_target pack[] = {{.cc = 90}, {.cc = 80, .ptx = true}};
  kiln_ladder_query q = {.cc = 90,
                         .ptx_only = true,
                         .driver_version = 13000,
                         .nvrtc_version = 13000,
                         .nvjitlink_version = 13000,
                         .pack = pack,
                         .n_pack = 2};
  kiln_ladder_result r;

  ck_kiln_ok(kiln_ladder(&q, &r));
  ck_assert_int_eq(r.rung, KILN_RUNG_PTX);
  ck_assert(r.target.ptx && r.target.cc == 90);
  ck_assert_ptr_nonnull(strstr(r.reason[KILN_RUNG_EXACT], "no machine code"));
  /* PTX for a lower target is used if the compiler does not support the exact
   * capability. Machine code, even from a pack, is never used then. */
  q.cc = 61;
  q.nvrtc_version = 12090;
  ck_kiln_ok(kiln_ladder(&q, &r));
  ck_assert_int_eq(r.target.cc, 61);
  q.cc = 90;
  q.nvrtc_version = 0;
  ck_kiln_ok(kiln_ladder(&q, &r));
  ck_assert_int_eq(r.rung, KILN_RUNG_PACK);
  ck_assert(r.target.ptx && r.target.cc == 80);
  q.n_pack = 1;
  ck_kiln_ok(kiln_ladder(&q, &r));
  ck_assert_int_eq(r.rung, KILN_RUNG_REFUSE);
}
END_TEST

START_TEST(wrong_queries_are_refused)
{
  const int archs[] = {90};
  kiln_ladder_result r;
  kiln_ladder_query q = {.cc = 90, .nvrtc_version = 13000};

  ck_kiln_ok(kiln_ladder(&q, &r));
  ck_kiln_is(kiln_ladder(NULL, &r), KILN_EINVAL);
  ck_kiln_is(kiln_ladder(&q, NULL), KILN_EINVAL);
  q.cc = 9;
  ck_kiln_is(kiln_ladder(&q, &r), KILN_EINVAL);
  q.cc = 1000;
  ck_kiln_is(kiln_ladder(&q, &r), KILN_EINVAL);
  q = (kiln_ladder_query){.cc = 90, .suffix = 'b'};
  ck_kiln_is(kiln_ladder(&q, &r), KILN_EINVAL);
  q = (kiln_ladder_query){.cc = 90, .driver_version = -1};
  ck_kiln_is(kiln_ladder(&q, &r), KILN_EINVAL);
  q = (kiln_ladder_query){.cc = 90, .n_archs = 1};
  ck_kiln_is(kiln_ladder(&q, &r), KILN_EINVAL);
  q = (kiln_ladder_query){.cc = 90, .n_pack = 1};
  ck_kiln_is(kiln_ladder(&q, &r), KILN_EINVAL);
  /* An empty list of architectures is valid and means that NVRTC can compile
   * for no target. */
  q = (kiln_ladder_query){.cc = 90, .nvrtc_version = 13000, .archs = archs};
  ck_kiln_ok(kiln_ladder(&q, &r));
  ck_assert_int_eq(r.rung, KILN_RUNG_REFUSE);
}
END_TEST

START_TEST(rungs_have_names)
{
  static const char *const names[] = {"exact", "lower", "ptx",
                                      "link",  "pack",  "refuse"};

  ck_assert_int_eq(KILN_RUNG_COUNT, 6);
  for (int i = 0; i < KILN_RUNG_COUNT; i++)
    ck_assert_str_eq(kiln_rung_name((kiln_rung)i), names[i]);
  ck_assert_str_eq(kiln_rung_name(KILN_RUNG_COUNT), "?");
}
END_TEST

/* ---- Invariants that hold for every query ------------------------------- */

static const int drivers[] = {0,     11020, 11080, 12000, 12020,
                              12080, 12090, 13000, 13010, 14000};
static const int compilers[] = {0,     11020, 11070, 11080, 12000,
                                12040, 12080, 12090, 13000, 13010};
static const int linkers[] = {0, 12000, 12090, 13000};
static const char suffixes[] = {0, 'a', 'f'};
static const kiln_target packed[] = {
    {75, 0, true}, {80, 0, false}, {90, 'a', false}, {100, 'f', false}};

static bool on_chip(int cc)
{
  static const int list[] = {32, 53, 62, 72, 87, 101, 110};

  for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
    if (list[i] == cc)
      return true;
  }
  return false;
}

static bool made_by(int nvrtc, int cc)
{
  size_t n;
  const int *archs = kiln_nvrtc_known_archs(nvrtc, &n);

  for (size_t i = 0; i < n; i++) {
    if (archs[i] == cc)
      return true;
  }
  return false;
}

/* A cheap assertion. Check records each assertion that it evaluates, and this
 * test makes millions of them. */
#define HOLD(condition)                                                        \
  do {                                                                         \
    if (!(condition))                                                          \
      ck_abort_msg("%s", #condition);                                          \
  } while (0)

static void check_reasons(const kiln_ladder_result *r)
{
  for (int i = 0; i < KILN_RUNG_COUNT; i++) {
    const size_t n = strlen(r->reason[i]);

    HOLD(n > 0);
    /* The text of the reason is not truncated. */
    HOLD(n < KILN_REASON_SIZE - 1);
    HOLD(strstr(r->reason[i], " 0.0") == NULL);
    HOLD((strcmp(r->reason[i], "not needed") == 0) == (i > (int)r->rung));
  }
  HOLD((r->hint[0] != '\0') == (r->rung == KILN_RUNG_REFUSE));
  HOLD(strlen(r->hint) < KILN_ERROR_HINT_SIZE - 1);
  HOLD(strstr(r->hint, " 0.0") == NULL);
}

static void check_binary(const kiln_ladder_query *q,
                         const kiln_ladder_result *r)
{
  HOLD(!r->target.ptx);
  HOLD(r->target.suffix == q->suffix);
  HOLD(q->driver_version == 0 ||
       q->nvrtc_version / 1000 <= q->driver_version / 1000);
  HOLD(made_by(q->nvrtc_version, r->target.cc));
  HOLD(r->target.cc / 10 == q->cc / 10);
  if (r->rung == KILN_RUNG_EXACT) {
    HOLD(r->target.cc == q->cc);
  } else {
    HOLD(r->target.cc < q->cc);
    HOLD(q->suffix != 'a');
    HOLD(!on_chip(q->cc) && !on_chip(r->target.cc));
    HOLD(!q->tegra || q->cc == 121);
  }
}

static void check_ptx(const kiln_ladder_query *q, const kiln_ladder_result *r)
{
  HOLD(r->target.ptx);
  HOLD(r->target.suffix == q->suffix);
  HOLD(r->target.cc <= q->cc);
  HOLD(made_by(q->nvrtc_version, r->target.cc));
  HOLD(q->suffix != 'a' || r->target.cc == q->cc);
  /* NVRTC supports no capability between the chosen target and the GPU. */
  for (int cc = r->target.cc + 1; cc <= q->cc && q->suffix == 0; cc++)
    HOLD(!made_by(q->nvrtc_version, cc));
  if (r->rung == KILN_RUNG_PTX) {
    HOLD(q->driver_version == 0 || q->nvrtc_version <= q->driver_version);
  } else {
    HOLD(q->nvrtc_version > q->driver_version);
    HOLD(q->nvjitlink_version >= q->nvrtc_version);
    HOLD(q->nvjitlink_version / 1000 == q->driver_version / 1000);
    HOLD(made_by(q->nvjitlink_version, q->cc));
  }
}

static kiln_rung check_answer(const kiln_ladder_query *q)
{
  kiln_ladder_result r;

  HOLD(kiln_ladder(q, &r) == KILN_OK);
  check_reasons(&r);
  switch (r.rung) {
  case KILN_RUNG_EXACT:
  case KILN_RUNG_LOWER:
    check_binary(q, &r);
    break;
  case KILN_RUNG_PTX:
  case KILN_RUNG_LINK:
    check_ptx(q, &r);
    break;
  case KILN_RUNG_PACK:
    HOLD(q->n_pack > 0);
    HOLD(r.target.cc <= q->cc);
    HOLD(r.target.ptx || r.target.cc / 10 == q->cc / 10);
    break;
  default:
    HOLD(r.rung == KILN_RUNG_REFUSE);
    HOLD(r.target.cc == 0);
  }
  return r.rung;
}

static void check_with_all(kiln_ladder_query q, long count[KILN_RUNG_COUNT])
{
  for (size_t l = 0; l < sizeof linkers / sizeof linkers[0]; l++) {
    kiln_rung without, with;

    q.nvjitlink_version = linkers[l];
    q.pack = NULL;
    q.n_pack = 0;
    without = check_answer(&q);
    q.pack = packed;
    q.n_pack = sizeof packed / sizeof packed[0];
    with = check_answer(&q);
    /* A pack is used only if every other way fails. */
    if (without != KILN_RUNG_REFUSE)
      HOLD(with == without);
    else
      HOLD(with == KILN_RUNG_REFUSE || with == KILN_RUNG_PACK);
    count[without]++;
    count[with]++;
  }
}

START_TEST(invariants_hold_everywhere)
{
  size_t n;
  const int *list = kiln_arch_list(&n);
  long count[KILN_RUNG_COUNT] = {0};

  for (size_t g = 0; g < n; g++) {
    for (size_t d = 0; d < sizeof drivers / sizeof drivers[0]; d++) {
      for (size_t c = 0; c < sizeof compilers / sizeof compilers[0]; c++) {
        for (int k = 0; k < 6; k++)
          check_with_all((kiln_ladder_query){.cc = list[g],
                                             .suffix = suffixes[k % 3],
                                             .tegra = k >= 3,
                                             .driver_version = drivers[d],
                                             .nvrtc_version = compilers[c]},
                         count);
      }
    }
  }
  for (int i = 0; i < KILN_RUNG_COUNT; i++) {
    printf("%s %ld\n", kiln_rung_name((kiln_rung)i), count[i]);
    /* nvJitLink is chosen only if NVRTC's list is shorter than usual. */
    ck_assert(i == KILN_RUNG_LINK || count[i] > 100);
  }
}
END_TEST

/* A newer driver or a longer list of architectures never gives a worse
 * result. */
START_TEST(more_never_makes_worse)
{
  size_t n;
  const int *list = kiln_arch_list(&n);

  for (size_t g = 0; g < n; g++) {
    for (size_t c = 1; c < sizeof compilers / sizeof compilers[0]; c++) {
      kiln_ladder_query q = {.cc = list[g], .nvrtc_version = compilers[c]};
      kiln_rung before = KILN_RUNG_REFUSE;

      for (size_t d = 1; d < sizeof drivers / sizeof drivers[0]; d++) {
        kiln_ladder_result r;

        q.driver_version = drivers[d];
        ck_kiln_ok(kiln_ladder(&q, &r));
        ck_assert_int_le(r.rung, before);
        before = r.rung;
      }
      before = KILN_RUNG_REFUSE;
      q.archs = kiln_nvrtc_known_archs(compilers[c], &q.n_archs);
      for (size_t all = q.n_archs, k = 0; k <= all; k++) {
        kiln_ladder_result r;

        q.n_archs = k;
        ck_kiln_ok(kiln_ladder(&q, &r));
        ck_assert_int_le(r.rung, before);
        before = r.rung;
      }
    }
  }
}
END_TEST

/* The order of NVRTC's list of architectures does not affect the result. */
START_TEST(order_does_not_matter)
{
  uint64_t seed = 11;

  for (int round = 0; round < 2000; round++) {
    int archs[32];
    size_t n, all;
    const int *known = kiln_nvrtc_known_archs(12090, &n);
    const int *gpus = kiln_arch_list(&all);
    kiln_ladder_query q = {.cc = gpus[test_random(&seed) % all],
                           .driver_version = 12090,
                           .nvrtc_version = 12090};
    kiln_ladder_result sorted, shuffled;

    memcpy(archs, known, n * sizeof archs[0]);
    ck_kiln_ok(kiln_ladder(&q, &sorted));
    for (size_t i = n; i > 1; i--) {
      const size_t k = test_random(&seed) % i;
      const int t = archs[i - 1];

      archs[i - 1] = archs[k];
      archs[k] = t;
    }
    q.archs = archs;
    q.n_archs = n;
    ck_kiln_ok(kiln_ladder(&q, &shuffled));
    ck_assert_int_eq(sorted.rung, shuffled.rung);
    ck_assert_int_eq(sorted.target.cc, shuffled.target.cc);
    ck_assert_int_eq(sorted.target.ptx, shuffled.target.ptx);
    ck_assert_str_eq(sorted.hint, shuffled.hint);
    for (int r = 0; r < KILN_RUNG_COUNT; r++)
      ck_assert_str_eq(sorted.reason[r], shuffled.reason[r]);
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("ladder");
  TCase *c =
      kiln_test_case(s, "ladder", 120, NULL, NULL,
                     TESTS(a_device_of_ptx_gets_ptx, wrong_queries_are_refused,
                           rungs_have_names, invariants_hold_everywhere,
                           more_never_makes_worse, order_does_not_matter));

  tcase_add_loop_test(c, rules_hold, 0, sizeof rules / sizeof rules[0]);
  return kiln_test_run(s);
}

/* warp_test.c -- tests shuffles, votes, matches and reductions of a warp
 * against loops over lanes, with full, partial and divergent masks. */
#include "cpu_ptx.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cpu_ptx p;

/* Loads a kernel with three input words and two output words per lane. In the
 * lanes of the mask %r0, `body` computes %r4, %r5 and %q1 from %r1, %r2 and
 * %r3. */
static void load(const char *body)
{
  static char text[6000];

  snprintf(text, sizeof text,
           ".version 8.6\n.target sm_100a\n.address_size 64\n"
           ".visible .entry k(.param .u64 in, .param .u64 out,\n"
           " .param .u32 mask) {\n"
           ".reg .b32 %%r<20>; .reg .b64 %%a<9>; .reg .pred %%q<6>;\n"
           ".reg .f32 %%f<4>;\n"
           "ld.param.u32 %%r0, [mask]; mov.u32 %%r9, %%tid.x;\n"
           "ld.param.u64 %%a1, [in]; mul.wide.u32 %%a2, %%r9, 12;\n"
           "add.u64 %%a1, %%a1, %%a2; ld.global.u32 %%r1, [%%a1];\n"
           "ld.global.u32 %%r2, [%%a1+4]; ld.global.u32 %%r3, [%%a1+8];\n"
           "ld.param.u64 %%a3, [out]; mul.wide.u32 %%a4, %%r9, 8;\n"
           "add.u64 %%a3, %%a3, %%a4; mov.u32 %%r4, 77; mov.u32 %%r5, 77;\n"
           "setp.ne.u32 %%q5, %%r0, %%r0; mov.pred %%q1, %%q5;\n"
           "shr.u32 %%r10, %%r0, %%r9; and.b32 %%r10, %%r10, 1;\n"
           "setp.eq.u32 %%q4, %%r10, 0; @%%q4 bra END;\n"
           "%s\n"
           "END: st.global.u32 [%%a3], %%r4; st.global.u32 [%%a3+4], %%r5;\n"
           "ret; }\n",
           body);
  cpu_ptx_load(&p, text);
  p.launch.arch = 100;
}

static const uint32_t masks[] = {UINT32_MAX, 0x0000ffff, 0xffff0000,
                                 0x55555555, 1,          0x80000000,
                                 0x12345678, 0x7fffffff};
enum { N_MASKS = sizeof masks / sizeof *masks };

typedef struct words {
  uint32_t in[32][3], out[32][2];
} words;

static void run(words *v, uint32_t mask)
{
  const uint64_t in = cpu_ptx_buffer(&p, v->in, sizeof v->in);
  const uint64_t out = cpu_ptx_buffer(&p, NULL, sizeof v->out);

  cpu_ptx_ok(&p, "k", (uint64_t[]){in, out, mask});
  memcpy(v->out, cpu_ptx_at(&p, out, sizeof v->out), sizeof v->out);
  kiln__cpu_memory_remove(p.memory, in);
  kiln__cpu_memory_remove(p.memory, out);
}

/* ---- shfl ---------------------------------------------------------------- */

static const char *const modes[] = {"up", "down", "bfly", "idx"};

/* Computes the source lane and the segment bounds of a shuffle, as the PTX
 * manual describes. */
static uint32_t shuffled(int mode, int lane, const words *v, uint32_t mask,
                         bool *in_range)
{
  const uint32_t b = v->in[lane][1] % 32, c = v->in[lane][2];
  const uint32_t cval = c % 32, segmask = c / 256 % 32, l = (uint32_t)lane;
  const uint32_t max = (l & segmask) | (cval & ~segmask);
  const uint32_t min = l & segmask;
  long j;

  if (mode == 0) {
    j = (long)l - b;
    *in_range = j >= (long)max;
  } else if (mode == 1) {
    j = (long)l + b;
    *in_range = j <= (long)max;
  } else if (mode == 2) {
    j = (long)(l ^ b);
    *in_range = j <= (long)max;
  } else {
    j = (long)(min | (b & ~segmask));
    *in_range = j <= (long)max;
  }
  if (!*in_range || (mask >> j & 1) == 0)
    j = lane;
  return v->in[j][0];
}

START_TEST(shuffles)
{
  static const uint32_t clamps[] = {0, 31, 0x1f00, 0x181f, 0x1c1f, 0x1003};
  uint64_t random = 5;
  char body[200];
  words v;

  snprintf(body, sizeof body,
           "shfl.sync.%s.b32 %%r4|%%q1, %%r1, %%r2, %%r3, %%r0;\n"
           "selp.u32 %%r5, 1, 0, %%q1;",
           modes[_i % 4]);
  load(body);
  p.launch.lock_step = _i >= 4;
  for (unsigned k = 0; k < N_MASKS * 12; k++) {
    const uint32_t mask = masks[k % N_MASKS];

    for (int l = 0; l < 32; l++) {
      v.in[l][0] = (uint32_t)test_random(&random);
      v.in[l][1] = (uint32_t)test_random(&random) % 40;
      v.in[l][2] = clamps[k / N_MASKS % 6];
      if (k / N_MASKS >= 6) {
        v.in[l][1] = k / N_MASKS;
        v.in[l][2] = (uint32_t)test_random(&random);
      }
    }
    run(&v, mask);
    for (int l = 0; l < 32; l++) {
      bool in_range = false;
      const uint32_t want = shuffled(_i % 4, l, &v, mask, &in_range);

      if ((mask >> l & 1) == 0) {
        ck_assert_uint_eq(v.out[l][0], 77);
        continue;
      }
      ck_assert_uint_eq(v.out[l][1], in_range);
      ck_assert_uint_eq(v.out[l][0], want);
    }
  }
  cpu_ptx_free(&p);
}
END_TEST

/* ---- vote, activemask, elect --------------------------------------------- */

START_TEST(votes)
{
  uint64_t random = 9;
  words v;

  load("setp.ne.u32 %q1, %r1, 0; vote.sync.all.pred %q2, %q1, %r0;\n"
       "selp.u32 %r5, 1, 0, %q2; vote.sync.any.pred %q2, !%q1, %r0;\n"
       "selp.u32 %r11, 2, 0, %q2; or.b32 %r5, %r5, %r11;\n"
       "vote.sync.uni.pred %q2, %q1, %r0; selp.u32 %r11, 4, 0, %q2;\n"
       "or.b32 %r5, %r5, %r11; elect.sync %r12|%q3, %r0;\n"
       "selp.u32 %r11, 8, 0, %q3; or.b32 %r5, %r5, %r11;\n"
       "shl.b32 %r12, %r12, 4; or.b32 %r5, %r5, %r12;\n"
       "activemask.b32 %r13; setp.eq.u32 %q3, %r13, %r0;\n"
       "selp.u32 %r11, 512, 0, %q3; or.b32 %r5, %r5, %r11;\n"
       "vote.sync.ballot.b32 %r4, !%q1, %r0;");
  p.launch.lock_step = _i != 0;
  for (unsigned k = 0; k < N_MASKS * 3; k++) {
    const uint32_t mask = masks[k % N_MASKS];
    uint32_t zero = 0, want;

    for (int l = 0; l < 32; l++) {
      v.in[l][0] = k < N_MASKS       ? 0
                   : k < 2 * N_MASKS ? 9
                                     : (uint32_t)test_random(&random) & 1;
      zero |= (uint32_t)(v.in[l][0] == 0) << l;
    }
    zero &= mask;
    run(&v, mask);
    for (int l = 0; l < 32; l++) {
      if ((mask >> l & 1) == 0)
        continue;
      want = (zero == 0) | (uint32_t)(zero != 0) << 1 |
             (uint32_t)(zero == 0 || zero == mask) << 2 |
             (uint32_t)(l == __builtin_ctz(mask)) << 3 |
             (uint32_t)__builtin_ctz(mask) << 4 | 512;
      ck_assert_uint_eq(v.out[l][1], want);
      ck_assert_uint_eq(v.out[l][0], zero);
    }
  }
  cpu_ptx_free(&p);
}
END_TEST

/* ---- match --------------------------------------------------------------- */

START_TEST(matches)
{
  uint64_t random = 11;
  words v;

  load(_i == 0 ? "match.any.sync.b32 %r4, %r1, %r0;\n"
                 "match.all.sync.b32 %r5|%q1, %r1, %r0;\n"
                 "@!%q1 mov.u32 %r5, 5;"
               : "mov.b64 %a6, {%r1, %r2};\n"
                 "match.any.sync.b64 %r4, %a6, %r0;\n"
                 "match.all.sync.b64 %r5|%q1, %a6, %r0;\n"
                 "@!%q1 add.u32 %r5, %r5, 5;");
  for (unsigned k = 0; k < N_MASKS * 8; k++) {
    const uint32_t mask = masks[k % N_MASKS];
    bool all = true;

    for (int l = 0; l < 32; l++) {
      v.in[l][0] = (uint32_t)test_random(&random) % (1 + k / N_MASKS);
      v.in[l][1] =
          _i == 0 ? 0 : (uint32_t)test_random(&random) % (1 + k / N_MASKS);
    }
    run(&v, mask);
    for (int l = 0; l < 32; l++)
      all = all && ((mask >> l & 1) == 0 ||
                    memcmp(v.in[l], v.in[__builtin_ctz(mask)], 8) == 0);
    for (int l = 0; l < 32; l++) {
      uint32_t want = 0;

      for (int j = 0; j < 32; j++)
        want |=
            (uint32_t)((mask >> j & 1) != 0 && memcmp(v.in[l], v.in[j], 8) == 0)
            << j;
      if ((mask >> l & 1) == 0)
        continue;
      ck_assert_uint_eq(v.out[l][0], want);
      ck_assert_uint_eq(v.out[l][1], all ? mask : 5);
    }
  }
  cpu_ptx_free(&p);
}
END_TEST

/* ---- redux --------------------------------------------------------------- */

static uint32_t reduced(int op, uint32_t x, uint32_t y)
{
  switch (op) {
  case 0:
  case 1:
    return x + y;
  case 2:
    return x < y ? x : y;
  case 3:
    return x > y ? x : y;
  case 4:
    return (int64_t)(int32_t)x < (int32_t)y ? x : y;
  case 5:
    return (int64_t)(int32_t)x > (int32_t)y ? x : y;
  case 6:
    return x & y;
  case 7:
    return x | y;
  default:
    return x ^ y;
  }
}

static const char *const ops[] = {"add.u32", "add.s32", "min.u32",
                                  "max.u32", "min.s32", "max.s32",
                                  "and.b32", "or.b32",  "xor.b32"};

START_TEST(reductions)
{
  uint64_t random = 3;
  char body[80];
  words v;

  snprintf(body, sizeof body, "redux.sync.%s %%r4, %%r1, %%r0;", ops[_i]);
  load(body);
  for (unsigned k = 0; k < N_MASKS * 6; k++) {
    const uint32_t mask = masks[k % N_MASKS];
    uint32_t want = 0;
    bool first = true;

    for (int l = 0; l < 32; l++) {
      v.in[l][0] = (uint32_t)(test_random(&random) >> 20);
      if ((mask >> l & 1) != 0) {
        want = first ? v.in[l][0] : reduced(_i, want, v.in[l][0]);
        first = false;
      }
    }
    run(&v, mask);
    for (int l = 0; l < 32; l++)
      ck_assert_uint_eq(v.out[l][0], (mask >> l & 1) != 0 ? want : 77);
  }
  cpu_ptx_free(&p);
}
END_TEST

static float as_float(uint32_t bits)
{
  float f;

  memcpy(&f, &bits, 4);
  return f;
}

START_TEST(float_reductions)
{
  static const uint32_t odd[] = {0x7fc00001, 0x80000000, 0, 0xff800000,
                                 0x7f800000, 0xffc00000, 1, 0x80000001};
  const bool max = (_i & 1) != 0, nan = (_i & 2) != 0, abs = (_i & 4) != 0;
  uint64_t random = 3;
  char body[80];
  words v;

  snprintf(body, sizeof body, "redux.sync.%s%s%s.f32 %%r4, %%r1, %%r0;",
           max ? "max" : "min", abs ? ".abs" : "", nan ? ".NaN" : "");
  load(body);
  for (unsigned k = 0; k < N_MASKS * 8; k++) {
    const uint32_t mask = masks[k % N_MASKS];
    bool any_nan = false, found = false;
    uint32_t want = 0x7fffffff;

    for (int l = 0; l < 32; l++) {
      const uint64_t r = test_random(&random);
      uint32_t bits =
          r % 3 == 0 && k > N_MASKS ? odd[(r >> 8) % 8] : (uint32_t)(r >> 16);

      v.in[l][0] = bits;
      if (abs)
        bits &= 0x7fffffff;
      if ((mask >> l & 1) == 0)
        continue;
      if (isnan(as_float(bits))) {
        any_nan = true;
        continue;
      }
      if (!found)
        want = bits;
      else if (as_float(bits) == as_float(want)) /* -0 is less than +0 */
        want = max ? want & bits : want | bits;
      else if ((as_float(bits) > as_float(want)) == max)
        want = bits;
      found = true;
    }
    if (any_nan && nan)
      want = 0x7fffffff;
    run(&v, mask);
    for (int l = 0; l < 32; l++) {
      if ((mask >> l & 1) != 0)
        ck_assert_uint_eq(v.out[l][0], want);
    }
  }
  cpu_ptx_free(&p);
}
END_TEST

/* ---- Waiting for the lanes of a member mask ------------------------------ */

/* The member mask of each lane contains the lanes with the same key. One
 * instruction therefore has several different masks. */
START_TEST(several_masks_at_once)
{
  uint64_t random = 21;
  words v;

  load("match.any.sync.b32 %r6, %r1, %r0;\n"
       "redux.sync.add.u32 %r4, %r2, %r6;\n"
       "bar.warp.sync %r6; shfl.sync.idx.b32 %r5, %r2, %r3, 31, %r6;");
  p.launch.seed = (uint64_t)_i;
  for (unsigned k = 0; k < N_MASKS * 4; k++) {
    const uint32_t mask = masks[k % N_MASKS];

    for (int l = 0; l < 32; l++) {
      v.in[l][0] = (uint32_t)test_random(&random) % 5;
      v.in[l][1] = (uint32_t)test_random(&random);
    }
    /* Finds the last lane that has the key of lane l. */
    for (int l = 0; l < 32; l++) {
      for (int j = 0; j < 32; j++) {
        if ((mask >> j & 1) != 0 && v.in[j][0] == v.in[l][0])
          v.in[l][2] = (uint32_t)j;
      }
    }
    run(&v, mask);
    for (int l = 0; l < 32; l++) {
      uint32_t sum = 0;

      if ((mask >> l & 1) == 0)
        continue;
      for (int j = 0; j < 32; j++)
        sum +=
            (mask >> j & 1) != 0 && v.in[j][0] == v.in[l][0] ? v.in[j][1] : 0;
      ck_assert_uint_eq(v.out[l][0], sum);
      ck_assert_uint_eq(v.out[l][1], v.in[v.in[l][2]][1]);
    }
  }
  cpu_ptx_free(&p);
}
END_TEST

/* The lanes reach one shuffle at different times, through separate function
 * calls. The two sides of a branch synchronise at different bar.warp.sync
 * instructions. */
static const char apart[] =
    ".func (.param .b32 ret) total(.param .b32 x) {\n"
    ".reg .b32 %r<8>;\n"
    "ld.param.u32 %r1, [x];\n"
    "shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; add.u32 %r1, %r1, %r2;\n"
    "shfl.sync.bfly.b32 %r2, %r1, 2, 31, -1; add.u32 %r1, %r1, %r2;\n"
    "shfl.sync.bfly.b32 %r2, %r1, 4, 31, -1; add.u32 %r1, %r1, %r2;\n"
    "shfl.sync.bfly.b32 %r2, %r1, 8, 31, -1; add.u32 %r1, %r1, %r2;\n"
    "shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1; add.u32 %r1, %r1, %r2;\n"
    "st.param.b32 [ret], %r1; ret; }\n"
    ".visible .entry k(.param .u64 out) {\n"
    ".reg .b32 %r<9>; .reg .b64 %a<4>; .reg .pred %q<3>;\n"
    ".shared .align 4 .u32 cell;\n"
    "mov.u32 %r1, %tid.x; rem.u32 %r2, %r1, 3; setp.eq.u32 %q1, %r2, 1;\n"
    "@%q1 bra B; setp.eq.u32 %q1, %r2, 2; @%q1 bra C;\n"
    "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1;\n"
    "call (b), total, (a); ld.param.b32 %r3, [b]; } bra.uni SYNC1;\n"
    "B: { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1;\n"
    "call (b), total, (a); ld.param.b32 %r3, [b]; } bra.uni SYNC2;\n"
    "C: { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1;\n"
    "call (b), total, (a); ld.param.b32 %r3, [b]; }\n"
    "st.volatile.shared.u32 [cell], %r3; bar.warp.sync -1; bra.uni END;\n"
    "SYNC1: bar.warp.sync -1; ld.volatile.shared.u32 %r3, [cell];\n"
    "bra.uni END;\n"
    "SYNC2: bar.warp.sync -1; ld.volatile.shared.u32 %r3, [cell];\n"
    "END: ld.param.u64 %a1, [out]; mul.wide.u32 %a2, %r1, 4;\n"
    "add.u64 %a3, %a1, %a2; st.global.u32 [%a3], %r3; ret; }\n";

START_TEST(lanes_meet_in_other_frames)
{
  uint32_t *got;
  uint64_t out;

  cpu_ptx_load(&p, apart);
  p.launch.seed = (uint64_t)_i;
  out = cpu_ptx_buffer(&p, NULL, 128);
  cpu_ptx_ok(&p, "k", (uint64_t[]){out});
  got = cpu_ptx_at(&p, out, 128);
  for (int l = 0; l < 32; l++)
    ck_assert_uint_eq(got[l], 496);
  cpu_ptx_free(&p);
}
END_TEST

/* A .sync instruction does not wait for lanes that have exited. */
START_TEST(who_has_left_is_not_missed)
{
  static const char text[] =
      ".visible .entry k(.param .u64 out) {\n"
      ".reg .b32 %r<9>; .reg .b64 %a<4>; .reg .pred %q<3>;\n"
      "mov.u32 %r1, %tid.x; mov.u32 %r2, 0;\n"
      "LOOP: setp.eq.u32 %q1, %r1, %r2; @%q1 exit;\n"
      "redux.sync.add.u32 %r3, 1, -1; ld.param.u64 %a1, [out];\n"
      "mul.wide.u32 %a2, %r1, 4; add.u64 %a1, %a1, %a2;\n"
      "st.global.u32 [%a1], %r3; add.u32 %r2, %r2, 1; bra.uni LOOP; }\n";
  uint32_t *got;
  uint64_t out;

  cpu_ptx_load(&p, text);
  p.launch.seed = (uint64_t)_i;
  out = cpu_ptx_buffer(&p, NULL, 128);
  p.launch.block_dim[0] = 29;
  cpu_ptx_ok(&p, "k", (uint64_t[]){out});
  got = cpu_ptx_at(&p, out, 128);
  /* When lane l runs its last iteration, l lanes have exited. */
  for (uint32_t l = 1; l < 29; l++)
    ck_assert_uint_eq(got[l], 29 - l);
  cpu_ptx_free(&p);
}
END_TEST

/* The old instructions without .sync use the active lanes. */
START_TEST(old_forms)
{
  static const char text[] =
      ".version 6.0\n.target sm_60\n.address_size 64\n"
      ".visible .entry k(.param .u64 out) {\n"
      ".reg .b32 %r<9>; .reg .b64 %a<4>; .reg .pred %q<3>;\n"
      "mov.u32 %r1, %tid.x; setp.lt.u32 %q1, %r1, 12; @!%q1 bra END;\n"
      "shfl.down.b32 %r2|%q2, %r1, 4, 31; @!%q2 mov.u32 %r2, 99;\n"
      "and.b32 %r3, %r1, 1; setp.ne.u32 %q2, %r3, 0;\n"
      "vote.ballot.b32 %r4, %q2; vote.all.pred %q2, %q1;\n"
      "selp.u32 %r5, 1, 0, %q2; shl.b32 %r5, %r5, 16; or.b32 %r4, %r4, %r5;\n"
      "ld.param.u64 %a1, [out]; mul.wide.u32 %a2, %r1, 8;\n"
      "add.u64 %a1, %a1, %a2; st.global.u32 [%a1], %r2;\n"
      "st.global.u32 [%a1+4], %r4; END: ret; }\n";
  uint32_t *got;
  uint64_t out;

  cpu_ptx_load(&p, text);
  p.launch.lock_step = true;
  out = cpu_ptx_buffer(&p, NULL, 256);
  cpu_ptx_ok(&p, "k", (uint64_t[]){out});
  got = cpu_ptx_at(&p, out, 256);
  for (uint32_t l = 0; l < 12; l++) {
    ck_assert_uint_eq(got[2 * l], l + 4 < 12 ? l + 4 : l);
    ck_assert_uint_eq(got[2 * l + 1], 0x10aaa);
  }
  cpu_ptx_free(&p);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu warp");
  TCase *t = kiln_test_case(s, "values", 0, NULL, NULL, TESTS(old_forms));

  kiln_test_loops(t, 8, TESTS(shuffles, float_reductions));
  kiln_test_loops(t, 2, TESTS(votes, matches));
  tcase_add_loop_test(t, reductions, 0, 9);
  t = kiln_test_case(s, "waits", 0, NULL, NULL, TESTS(NULL));
  tcase_add_loop_test(t, several_masks_at_once, 0, 4);
  kiln_test_loops(
      t, 8, TESTS(lanes_meet_in_other_frames, who_has_left_is_not_missed));
  return kiln_test_run(s);
}

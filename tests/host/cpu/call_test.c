/* call_test.c -- tests the arguments and results of function calls. Arguments
 * are registers, literals and structures. Calls use function addresses and
 * recursion. */
#include "cpu_ptx.h"

#include <stdint.h>
#include <string.h>

enum { N = 40 };

static const char text[] =
    /* This function has parameters in registers. */
    ".func (.reg .b32 r) plain(.reg .b32 a, .reg .b64 b)\n{\n"
    ".reg .b32 x;\ncvt.u32.u64 x, b;\nmad.lo.u32 r, a, 10, x;\nret;\n}\n"
    /* This function has parameters in memory. */
    ".func (.param .b32 r) boxed(.param .b32 a, .param .b64 b, .param .b16 c)\n"
    "{\n.reg .b32 x, y;\n.reg .b64 z;\n.reg .b16 h;\n.reg .pred p;\n"
    "ld.param.b32 x, [a];\nld.param.b64 z, [b];\nld.param.b16 h, [c];\n"
    "cvt.u32.u64 y, z;\nmad.lo.u32 x, x, 100, y;\ncvt.u32.u16 y, h;\n"
    "mad.lo.u32 x, y, 10000, x;\nst.param.b32 [r], x;\n"
    "setp.eq.u32 p, y, 3;\n@p ret;\nadd.u32 x, x, 1;\nst.param.b32 [r], x;\n"
    "ret;\n}\n"
    /* This function reads a structure parameter through its address. */
    ".func (.param .b32 r) pick(.param .align 8 .b8 s[32], .param .b32 i)\n{\n"
    ".reg .b64 at, off;\n.reg .b32 i1, v;\nld.param.b32 i1, [i];\n"
    "mov.b64 at, s;\nmul.wide.u32 off, i1, 4;\nadd.u64 at, at, off;\n"
    "ld.param.b32 v, [at];\nst.param.b32 [r], v;\nret;\n}\n"
    /* This function calls itself as often as its argument says, and each call
     * has a local variable. */
    ".func (.param .b32 r) down(.param .b32 n)\n{\n.reg .b32 x, y, z;\n"
    ".reg .pred p;\n.reg .b64 at;\n.local .align 4 .b8 keep[8];\n"
    ".param .b32 a1, r1;\n"
    "ld.param.b32 x, [n];\nst.local.b32 [keep+4], x;\nmov.u32 z, 0;\n"
    "setp.eq.u32 p, x, 0;\n@p bra out;\nsub.u32 y, x, 1;\n"
    "st.param.b32 [a1], y;\ncall (r1), down, (a1);\nld.param.b32 z, [r1];\n"
    "out: mov.u64 at, keep;\ncvta.local.u64 at, at;\nld.b32 y, [at+4];\n"
    "add.u32 z, z, y;\nst.param.b32 [r], z;\nret;\n}\n"
    ".func (.param .b32 r) other(.param .b32 a, .param .b64 b, .param .b16 c)\n"
    "{\n.reg .b32 x;\nld.param.b32 x, [a];\nneg.s32 x, x;\n"
    "st.param.b32 [r], x;\nret;\n}\n"
    ".global .u64 table[2] = {boxed, other};\n"
    ".visible .entry k(.param .u64 out)\n{\n"
    ".reg .b64 o, off, f, t;\n.reg .b32 id, v, w;\n.reg .b64 wide;\n"
    ".reg .b16 h;\n.param .b32 ra;\n.param .b64 rb;\n.param .b16 rc;\n"
    ".param .b32 rr;\n.param .align 8 .b8 st[32];\n"
    "ld.param.u64 o, [out];\nmov.u32 id, %tid.x;\n"
    "mul.wide.u32 off, id, 24;\nadd.u64 o, o, off;\n"
    "cvt.u64.u32 wide, id;\ncvt.u16.u32 h, id;\n"
    /* Result 0: a call copies registers to registers. */
    "call (v), plain, (id, wide);\nst.global.b32 [o], v;\n"
    /* Result 1: a call copies registers and a literal to memory. */
    "call (v), boxed, (id, wide, 3);\nst.global.b32 [o+4], v;\n"
    /* Result 2: a call copies memory to memory. */
    "st.param.b32 [ra], id;\nst.param.b64 [rb], wide;\nst.param.b16 [rc], h;\n"
    "call (rr), boxed, (ra, rb, rc);\nld.param.b32 v, [rr];\n"
    "st.global.b32 [o+8], v;\n"
    /* Result 3: the argument of the call is a structure. */
    "st.param.v4.b32 [st], {id, 7, 8, 9};\nst.param.v2.b64 [st+16], {1, 2};\n"
    "and.b32 w, id, 3;\nst.param.b32 [ra], w;\n"
    "call (rr), pick, (st, ra);\nld.param.b32 v, [rr];\n"
    "st.global.b32 [o+12], v;\n"
    /* Result 4: each lane recurses to a different depth. */
    "and.b32 w, id, 7;\nst.param.b32 [ra], w;\n"
    "call (rr), down, (ra);\nld.param.b32 v, [rr];\n"
    "st.global.b32 [o+16], v;\n"
    /* Result 5: a call through an address, where odd and even lanes call
     * different functions. */
    "and.b32 w, id, 1;\nmul.wide.u32 off, w, 8;\nmov.u64 t, table;\n"
    "add.u64 t, t, off;\nld.global.u64 f, [t];\n"
    "st.param.b32 [ra], id;\nst.param.b64 [rb], 5;\nst.param.b16 [rc], 3;\n"
    "proto: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b64 _, "
    ".param .b16 _);\n"
    "call (rr), f, (ra, rb, rc), proto;\nld.param.b32 v, [rr];\n"
    "st.global.b32 [o+20], v;\nret;\n}\n";

static uint32_t boxed(uint32_t a, uint32_t b, uint32_t c)
{
  return a * 100 + b + c * 10000 + (c == 3 ? 0 : 1);
}

static void check(bool lock_step, uint64_t seed)
{
  cpu_ptx p;
  uint64_t out;
  const uint32_t *got;

  cpu_ptx_load(&p, text);
  out = cpu_ptx_buffer(&p, NULL, 24 * N);
  p.launch.block_dim[0] = N;
  p.launch.lock_step = lock_step;
  p.launch.seed = seed;
  cpu_ptx_ok(&p, "k", (uint64_t[]){out});
  got = cpu_ptx_at(&p, out, 24 * N);
  for (uint32_t i = 0; i < N; i++, got += 6) {
    const uint32_t structure[] = {i, 7, 8, 9}, deep = i % 8;

    ck_assert_uint_eq(got[0], i * 11);
    ck_assert_uint_eq(got[1], boxed(i, i, 3));
    ck_assert_uint_eq(got[2], boxed(i, i, i));
    ck_assert_uint_eq(got[3], structure[i % 4]);
    ck_assert_uint_eq(got[4], deep * (deep + 1) / 2);
    ck_assert_uint_eq(got[5], i % 2 == 0 ? boxed(i, 5, 3) : 0u - i);
  }
  cpu_ptx_free(&p);
}

START_TEST(arguments_arrive)
{
  check(_i % 2 != 0, (uint64_t)_i / 2);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_call");
  TCase *t = kiln_test_case(s, "calls", 0, NULL, NULL, TESTS(NULL));

  tcase_add_loop_test(t, arguments_arrive, 0, 8);
  return kiln_test_run(s);
}

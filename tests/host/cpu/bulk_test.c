/* bulk_test.c -- tests cp.async.bulk: copies from global to shared memory,
 * whose completion an mbarrier tracks, and copies from shared to global
 * memory. */
#include "cpu_ptx.h"

#include <stdint.h>
#include <string.h>

enum { N = 64 };

static const char text[] =
    ".shared .align 16 .b8 tile[256];\n"
    ".shared .align 8 .b64 bar;\n"
    ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 size)\n{\n"
    ".reg .pred p, q;\n.reg .b32 t, s, b, v, n;\n.reg .b64 i, o, a;\n"
    "ld.param.u64 i, [in];\nld.param.u64 o, [out];\n"
    "ld.param.u32 n, [size];\n"
    "mov.u32 t, %tid.x;\nmov.u32 s, tile;\nmov.u32 b, bar;\n"
    "setp.ne.s32 p, t, 0;\n"
    "@p bra ready;\n"
    "mbarrier.init.shared.b64 [b], 1;\n"
    "mbarrier.arrive.expect_tx.shared.b64 a, [b], n;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
    "[s+0], [i+16], n, [b];\n"
    "ready:\nbar.sync 0;\n"
    "wait:\nmbarrier.try_wait.parity.shared.b64 q, [b], 0;\n@!q bra wait;\n"
    "shl.b32 v, t, 2;\nadd.u32 s, s, v;\n"
    "ld.shared.u32 v, [s];\nadd.u32 v, v, 1;\nst.shared.u32 [s], v;\n"
    "bar.sync 0;\n@p bra done;\n"
    "cp.async.bulk.prefetch.L2.global [o], n;\n"
    "cp.async.bulk.global.shared::cta.bulk_group [o], [tile], n;\n"
    "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"
    "done: ret;\n}\n";

START_TEST(blocks_come_and_go)
{
  uint32_t in[N + 4];
  cpu_ptx p;
  uint64_t from, to;
  const uint32_t *got;

  for (uint32_t i = 0; i < N + 4; i++)
    in[i] = i * 1000;
  cpu_ptx_load(&p, text);
  from = cpu_ptx_buffer(&p, in, sizeof in);
  to = cpu_ptx_buffer(&p, NULL, 4 * N);
  p.launch.block_dim[0] = N;
  cpu_ptx_ok(&p, "k", (uint64_t[]){from, to, 4 * N});
  got = cpu_ptx_at(&p, to, 4 * N);
  for (uint32_t i = 0; i < N; i++)
    ck_assert_uint_eq(got[i], (i + 4) * 1000 + 1);
  cpu_ptx_free(&p);
}
END_TEST

START_TEST(bounds_and_sizes_are_checked)
{
  cpu_ptx p;
  uint64_t from, to;

  cpu_ptx_load(&p, text);
  from = cpu_ptx_buffer(&p, NULL, 4 * N);
  to = cpu_ptx_buffer(&p, NULL, 4 * N);
  p.launch.block_dim[0] = N;
  cpu_ptx_fails(&p, "k", (uint64_t[]){from, to, 4 * N}, KILN__FAULT_ADDRESS,
                (const char *const[]){"k", NULL});
  cpu_ptx_fails(&p, "k", (uint64_t[]){from, to, 20}, KILN__FAULT_INSTRUCTION,
                (const char *const[]){"k", NULL});
  cpu_ptx_fails(&p, "k", (uint64_t[]){from + 4, to, 16}, KILN__FAULT_MISALIGNED,
                (const char *const[]){"k", NULL});
  cpu_ptx_free(&p);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_bulk");

  kiln_test_case(s, "bulk", 0, NULL, NULL,
                 TESTS(blocks_come_and_go, bounds_and_sizes_are_checked));
  return kiln_test_run(s);
}

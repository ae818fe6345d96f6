/* bulk_test.c -- tests cp.async.bulk: copies from global to shared memory,
 * whose completion an mbarrier tracks, and copies from shared to global
 * memory. */
#include "cpu_ptx.h"

#include <stdint.h>
#include <stdio.h>
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

/* The begin of a kernel for a cluster of two blocks of 32 threads. Thread 0 of
 * each block initialises the mbarrier `bar` for one arrival and `n` bytes. */
#define CLUSTER_HEAD                                                           \
  ".shared .align 128 .b8 tile[256];\n.shared .align 128 .b8 mine[256];\n"     \
  ".shared .align 8 .b64 bar;\n"                                               \
  ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 size)\n{\n"  \
  ".reg .pred p, q;\n.reg .b32 t, s, b, v, n, r, m, c, g;\n"                   \
  ".reg .b64 i, o, a, w;\n.reg .b16 h;\n"                                      \
  "ld.param.u64 i, [in];\nld.param.u64 o, [out];\nld.param.u32 n, [size];\n"   \
  "mov.u32 t, %tid.x;\nmov.u32 s, tile;\nmov.u32 b, bar;\n"                    \
  "mov.u32 m, mine;\nmov.u32 r, %cluster_ctarank;\nxor.b32 g, r, 1;\n"         \
  "shl.b32 v, t, 2;\nadd.u32 c, m, v;\nmad.lo.u32 v, r, 1000, t;\n"            \
  "st.shared.u32 [c], v;\nshl.b32 v, t, 2;\nadd.u32 c, s, v;\n"                \
  "st.shared.u32 [c], t;\nsetp.ne.s32 p, t, 0;\n@p bra ready;\n"               \
  "mbarrier.init.shared.b64 [b], 1;\n"                                         \
  "mbarrier.arrive.expect_tx.shared.b64 a, [b], n;\n"                          \
  "fence.mbarrier_init.release.cluster;\n"                                     \
  "ready:\nfence.proxy.async;\n"                                               \
  "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"
/* The end: all threads wait for the bytes, and copy the tile to `out`. */
#define CLUSTER_TAIL                                                           \
  "wait:\nmbarrier.try_wait.parity.shared.b64 q, [b], 0;\n@!q bra wait;\n"     \
  "ld.shared.u32 v, [c];\nmad.lo.u32 r, r, 32, t;\n"                           \
  "mul.wide.u32 a, r, 4;\nadd.s64 o, o, a;\nst.global.u32 [o], v;\n"           \
  "barrier.cluster.arrive;\nbarrier.cluster.wait;\nret;\n}\n"

/* Copies between the blocks of a cluster. `expected` computes the result of
 * thread t of block r. */
static uint32_t from_global(uint32_t r, uint32_t t)
{
  (void)r;
  return 7 * t;
}

static uint32_t from_other(uint32_t r, uint32_t t)
{
  return (r ^ 1) * 1000 + t;
}

static uint32_t sum_with_other(uint32_t r, uint32_t t)
{
  return (r ^ 1) * 1000 + 2 * t;
}

static const struct {
  const char *copy;
  uint32_t (*expected)(uint32_t r, uint32_t t);
} cluster_copies[] = {
    {"@p bra done;\nsetp.ne.u32 q, r, 1;\n@q bra done;\nmov.u16 h, 3;\n"
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
     ".multicast::cluster [s], [i], 128, [b], h;\ndone:\n",
     from_global},
    {"@p bra done;\nmov.u64 w, 0;\n"
     "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
     ".L2::cache_hint [tile], [i], 128, [bar], w;\ndone:\n",
     from_global},
    {"@p bra done;\nmapa.shared::cluster.u32 s, s, g;\n"
     "mapa.shared::cluster.u32 v, b, g;\n"
     "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
     " [s], [m], n, [v+0];\ndone:\n",
     from_other},
    {"@p bra done;\nmapa.shared::cluster.u32 s, s, g;\n"
     "mapa.shared::cluster.u32 v, b, g;\n"
     "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::"
     "complete_tx::bytes.add.u32 [s], [m], n, [v];\ndone:\n",
     sum_with_other},
    {"mapa.shared::cluster.u32 s, c, g;\nmapa.shared::cluster.u32 v, b, g;\n"
     "mad.lo.u32 n, r, 1000, t;\n"
     "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [s], n, "
     "[v];\n",
     from_other},
    {"mapa.shared::cluster.u32 s, c, g;\nmapa.shared::cluster.u32 v, b, g;\n"
     "mad.lo.u32 n, r, 1000, t;\nand.b32 m, t, 3;\nsetp.ne.u32 q, m, 0;\n"
     "add.u32 m, n, 1;\nadd.u32 t, t, 0;\n.reg .b32 x, y;\nadd.u32 x, n, 2;\n"
     "add.u32 y, n, 3;\n"
     "@!q st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [s], "
     "{n, m, x, y}, [v];\n",
     from_other},
    {"mapa.shared::cluster.u32 s, c, g;\nmapa.shared::cluster.u32 v, b, g;\n"
     "mad.lo.u32 n, r, 1000, t;\n"
     "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes"
     ".add.u32 [s], n, [v];\n",
     sum_with_other},
};

START_TEST(blocks_of_a_cluster_receive_copies)
{
  char ptx[8192];
  uint32_t in[32];
  cpu_ptx p;
  uint64_t from, to;
  const uint32_t *got;

  for (uint32_t i = 0; i < 32; i++)
    in[i] = 7 * i;
  snprintf(ptx, sizeof ptx, "%s%s%s", CLUSTER_HEAD, cluster_copies[_i].copy,
           CLUSTER_TAIL);
  cpu_ptx_load(&p, ptx);
  from = cpu_ptx_buffer(&p, in, sizeof in);
  to = cpu_ptx_buffer(&p, NULL, 256);
  p.launch.block_dim[0] = 32;
  p.launch.grid_dim[0] = 2;
  p.launch.cluster_dim[0] = 2;
  p.launch.cluster_dim[1] = p.launch.cluster_dim[2] = 1;
  cpu_ptx_ok(&p, "k", (uint64_t[]){from, to, 128});
  got = cpu_ptx_at(&p, to, 256);
  for (uint32_t i = 0; i < 64; i++)
    ck_assert_uint_eq(got[i], cluster_copies[_i].expected(i / 32, i % 32));
  cpu_ptx_free(&p);
}
END_TEST

static const char reduction[] =
    ".shared .align 128 .b8 tile[256];\n"
    ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 size)\n{\n"
    ".reg .b32 t, s, n;\n.reg .b64 o;\n.reg .pred p;\n"
    "ld.param.u64 o, [out];\nld.param.u32 n, [size];\nmov.u32 t, %%tid.x;\n"
    "shl.b32 s, t, 2;\nmov.u32 n, tile;\nadd.u32 s, s, n;\n"
    "st.shared.u32 [s], t;\nfence.proxy.async;\nbar.sync 0;\n"
    "setp.ne.u32 p, t, 0;\n@p bra done;\n"
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.%s [o], [tile], 256;\n"
    "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;\n"
    "done:\nret;\n}\n";

static uint32_t incremented(uint32_t old, uint32_t b)
{
  return old >= b ? 0 : old + 1;
}

static uint32_t added(uint32_t old, uint32_t b)
{
  return old + b;
}

static uint32_t largest(uint32_t old, uint32_t b)
{
  return (int32_t)old > (int32_t)b ? old : b;
}

static const struct {
  const char *op;
  uint32_t (*expected)(uint32_t old, uint32_t b);
} reductions[] = {
    {"add.u32", added}, {"inc.u32", incremented}, {"max.s32", largest}};

START_TEST(stores_reduce)
{
  uint32_t before[64];
  char ptx[4096];
  cpu_ptx p;
  uint64_t to;
  const uint32_t *got;

  for (uint32_t i = 0; i < 64; i++)
    before[i] = i % 3 == 0 ? 0u - i : 60 - i;
  snprintf(ptx, sizeof ptx, reduction, reductions[_i].op);
  cpu_ptx_load(&p, ptx);
  to = cpu_ptx_buffer(&p, before, sizeof before);
  p.launch.block_dim[0] = 64;
  cpu_ptx_ok(&p, "k", (uint64_t[]){to, to, 0});
  got = cpu_ptx_at(&p, to, sizeof before);
  for (uint32_t i = 0; i < 64; i++)
    ck_assert_uint_eq(got[i], reductions[_i].expected(before[i], i));
  cpu_ptx_free(&p);
}
END_TEST

static const char invalid_map[] =
    ".shared .align 128 .b8 tile[256];\n.shared .align 8 .b64 bar;\n"
    ".visible .entry k(.param .u64 map, .param .u64 none, .param .u32 size)\n"
    "{\n.reg .b64 m;\nld.param.u64 m, [map];\n"
    "mbarrier.init.shared.b64 [bar], 1;\n"
    "cp.async.bulk.tensor.1d.shared::cluster.global"
    ".mbarrier::complete_tx::bytes [tile], [m, {0}], [bar];\nret;\n}\n";

START_TEST(invalid_maps_fault)
{
  cpu_ptx p;
  uint64_t map;

  cpu_ptx_load(&p, invalid_map);
  map = cpu_ptx_buffer(&p, NULL, 256);
  cpu_ptx_fails(&p, "k", (uint64_t[]){map, 0, 0}, KILN__FAULT_MAP,
                (const char *const[]){"cuTensorMapEncodeTiled", NULL});
  cpu_ptx_fails(&p, "k", (uint64_t[]){map + 16, 0, 0}, KILN__FAULT_MISALIGNED,
                (const char *const[]){"k", NULL});
  cpu_ptx_free(&p);
}
END_TEST

/* Copies `size` bytes without the first `left` and the last `right` to a tile of
 * 64 bytes that holds 0x11, and the tile to `out`. */
static const char without_ends[] =
    ".version 9.2\n.target sm_90\n.address_size 64\n"
    ".shared .align 16 .b8 tile[64];\n.shared .align 8 .b64 bar;\n"
    ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 size,\n"
    ".param .u32 left, .param .u32 right)\n{\n"
    ".reg .pred p;\n.reg .b32 t, s, v, n, l, r;\n.reg .b64 i, o, a;\n"
    "ld.param.u64 i, [in];\nld.param.u64 o, [out];\nld.param.u32 n, [size];\n"
    "ld.param.u32 l, [left];\nld.param.u32 r, [right];\n"
    "mov.u32 t, %tid.x;\nmov.u32 s, tile;\nadd.u32 s, s, t;\nmov.u32 v, 17;\n"
    "st.shared.u8 [s], v;\nfence.proxy.async;\nbar.sync 0;\n"
    "setp.ne.s32 p, t, 0;\n@p bra wait;\n"
    "mbarrier.init.shared.b64 [bar], 1;\n"
    "mbarrier.arrive.expect_tx.shared.b64 a, [bar], n;\n"
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob "
    "[tile], [i], n, l, r, [bar];\n"
    "go:\nmbarrier.try_wait.parity.shared.b64 p, [bar], 0;\n@!p bra go;\n"
    "wait:\nbar.sync 0;\nld.shared.u8 v, [s];\ncvt.u64.u32 a, t;\n"
    "add.s64 o, o, a;\nst.global.u8 [o], v;\nret;\n}\n";

static const struct {
  uint32_t size, left, right;
} ends[] = {{48, 0, 8}, {48, 3, 15}, {48, 15, 8}, {16, 9, 7}, {16, 0, 0}};

START_TEST(copies_leave_out_ends)
{
  const uint32_t size = ends[_i].size, left = ends[_i].left;
  const uint32_t last = size - ends[_i].right;
  uint8_t in[40];
  cpu_ptx p;
  uint64_t from, to;
  const uint8_t *got;

  for (uint32_t i = 0; i < sizeof in; i++)
    in[i] = (uint8_t)(100 + i);
  cpu_ptx_load(&p, without_ends);
  from = cpu_ptx_buffer(&p, in, sizeof in);
  to = cpu_ptx_buffer(&p, NULL, 64);
  p.launch.block_dim[0] = 64;
  cpu_ptx_ok(&p, "k", (uint64_t[]){from, to, size, left, ends[_i].right});
  got = cpu_ptx_at(&p, to, 64);
  for (uint32_t i = 0; i < 64; i++) {
    if (i >= left && i < last)
      ck_assert_uint_eq(got[i], in[i]);
    else if (i >= size)
      ck_assert_uint_eq(got[i], 17);
  }
  cpu_ptx_free(&p);
}
END_TEST

START_TEST(ends_are_checked)
{
  static const char *const no_words[] = {"k", NULL};
  cpu_ptx p;
  uint64_t from, to;

  cpu_ptx_load(&p, without_ends);
  from = cpu_ptx_buffer(&p, NULL, 40);
  to = cpu_ptx_buffer(&p, NULL, 64);
  p.launch.block_dim[0] = 64;
  cpu_ptx_fails(&p, "k", (uint64_t[]){from, to, 48, 0, 7}, KILN__FAULT_ADDRESS,
                no_words);
  cpu_ptx_fails(&p, "k", (uint64_t[]){from, to, 32, 16, 0},
                KILN__FAULT_INSTRUCTION, no_words);
  cpu_ptx_fails(&p, "k", (uint64_t[]){from, to, 32, 0, 16},
                KILN__FAULT_INSTRUCTION, no_words);
  cpu_ptx_fails(&p, "k", (uint64_t[]){from, to, 16, 9, 8},
                KILN__FAULT_INSTRUCTION, no_words);
  cpu_ptx_free(&p);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_bulk");
  TCase *t =
      kiln_test_case(s, "bulk", 0, NULL, NULL,
                     TESTS(blocks_come_and_go, bounds_and_sizes_are_checked,
                           invalid_maps_fault, ends_are_checked));

  tcase_add_loop_test(t, blocks_of_a_cluster_receive_copies, 0,
                      ROWS(cluster_copies));
  tcase_add_loop_test(t, copies_leave_out_ends, 0, ROWS(ends));
  tcase_add_loop_test(t, stores_reduce, 0, ROWS(reductions));
  return kiln_test_run(s);
}

/* tensor_test.c -- tests cp.async.bulk.tensor and cp.reduce.async.bulk.tensor
 * on random tensors, and compares with what an H200 did.
 *
 * tests/golden/tensor.txt has one line per case of tensor_cases.h: the result of
 * the encoding function, the number of bytes that the mbarrier counted, and a
 * hash of shared memory (loads) or of the tensor's buffer (stores). A count of -1
 * means that the launch failed with an illegal instruction. */
#include "api_fixture.h"
#include "cpu/memory/mbarrier.h"
#include "support.h"
#include "tensor_cases.h"

#include <inttypes.h>
#include <stdio.h>

/* Device memory: the buffer of the tensor, the initial contents of shared
 * memory, and the final contents followed by the words of the mbarrier. */
static CUdeviceptr buffer, image, dump;
static CUfunction kernels[6][TENSOR_XOR + 1];
static uint8_t bytes[TENSOR_BUFFER];

static void set_up(void)
{
  setup();
  buffer = make_memory(TENSOR_BUFFER);
  image = make_memory(TENSOR_SHARED);
  dump = make_memory(TENSOR_SHARED + 16);
  memset(kernels, 0, sizeof kernels);
}

/* ---- Kernels ------------------------------------------------------------- */

static const char *list_of(uint32_t rank)
{
  static const char *const lists[] = {"{c0}", "{c0,c1}", "{c0,c1,c2}",
                                      "{c0,c1,c2,c3}", "{c0,c1,c2,c3,c4}"};

  return lists[rank - 1];
}

/* Writes the copy instruction of a kernel. Register s has the address of the
 * box, b that of the mbarrier, and m that of the tensor map. */
static void put_copy(char *out, size_t size, uint32_t rank, tensor_kind kind)
{
  static const char *const names[] = {"add", "min", "max", "inc",
                                      "dec", "and", "or",  "xor"};
  static const char *const offsets[] = {"{o0}", "{o0,o1}", "{o0,o1,o2}"};
  const char *const list = list_of(rank);

  if (kind == TENSOR_LOAD)
    snprintf(out, size,
             "cp.async.bulk.tensor.%ud.shared::cluster.global.tile."
             "mbarrier::complete_tx::bytes [s], [m, %s], [b];\n",
             rank, list);
  else if (kind == TENSOR_LOAD_PIXELS)
    snprintf(out, size,
             "cp.async.bulk.tensor.%ud.shared::cluster.global.im2col."
             "mbarrier::complete_tx::bytes [s], [m, %s], [b], %s;\n",
             rank, list, offsets[rank - 3]);
  else if (kind == TENSOR_STORE || kind == TENSOR_STORE_PIXELS)
    snprintf(out, size,
             "cp.async.bulk.tensor.%ud.global.shared::cta.%s.bulk_group "
             "[m, %s], [s];\n",
             rank, kind == TENSOR_STORE ? "tile" : "im2col_no_offs", list);
  else
    snprintf(out, size,
             "cp.reduce.async.bulk.tensor.%ud.global.shared::cta.%s.tile."
             "bulk_group [m, %s], [s];\n",
             rank, names[kind - TENSOR_ADD], list);
}

/* Writes a loop that moves n words between shared memory and an array in global
 * memory. */
static void put_loop(char *out, size_t size, const char *name, bool in)
{
  snprintf(out, size,
           "mov.u32 i, t;\n%s:\nsetp.ge.u32 p, i, %s;\n@p bra %s_end;\n"
           "mul.wide.u32 a, i, 4;\nadd.s64 a, a, %s;\n"
           "shl.b32 k, i, 2;\nadd.s32 k, k, base;\n"
           "%s\nadd.u32 i, i, 128;\nbra %s;\n%s_end:\n",
           name, in ? "words" : "dumped", name, in ? "im" : "du",
           in ? "ld.global.u32 x, [a];\nst.shared.u32 [k], x;"
              : "ld.shared.u32 x, [k];\nst.global.u32 [a], x;",
           name, name);
}

static CUfunction kernel_of(uint32_t rank, tensor_kind kind)
{
  char copy[512], in[512], out[512], text[6000];
  CUmodule module;

  if (kernels[rank][kind] != NULL)
    return kernels[rank][kind];
  put_copy(copy, sizeof copy, rank, kind);
  put_loop(in, sizeof in, "fill", true);
  put_loop(out, sizeof out, "drain", false);
  snprintf(
      text, sizeof text,
      ".version 8.0\n.target sm_90\n.address_size 64\n"
      ".extern .shared .align 1024 .b8 box[];\n"
      ".visible .entry k(.param .align 64 .b8 map[128], .param .b32 q0,\n"
      ".param .b32 q1, .param .b32 q2, .param .b32 q3, .param .b32 q4,\n"
      ".param .u16 p0, .param .u16 p1, .param .u16 p2, .param .b32 at,\n"
      ".param .b32 n, .param .b64 image, .param .b64 dump)\n{\n"
      ".shared .align 8 .b64 bar;\n"
      ".reg .b32 c0, c1, c2, c3, c4, s, b, t, i, k, x, words, dumped, base;\n"
      ".reg .b16 o0, o1, o2;\n.reg .b64 m, a, im, du, w;\n.reg .pred p;\n"
      "ld.param.b32 c0, [q0];\nld.param.b32 c1, [q1];\n"
      "ld.param.b32 c2, [q2];\nld.param.b32 c3, [q3];\n"
      "ld.param.b32 c4, [q4];\nld.param.u16 o0, [p0];\n"
      "ld.param.u16 o1, [p1];\nld.param.u16 o2, [p2];\n"
      "ld.param.b64 im, [image];\nld.param.b64 du, [dump];\n"
      "ld.param.b32 s, [at];\nld.param.b32 dumped, [n];\n"
      "mov.u32 words, %d;\nmov.u32 base, box;\nadd.s32 s, s, base;\n"
      "mov.u32 b, bar;\nmov.b64 m, map;\ncvta.param.u64 m, m;\n"
      "mov.u32 t, %%tid.x;\n%s"
      "setp.ne.u32 p, t, 0;\n@p bra filled;\n"
      "mbarrier.init.shared.b64 [b], 5;\nfilled:\n"
      "fence.proxy.async;\nbar.sync 0;\n@p bra done;\n%s"
      "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"
      "ld.shared.b64 w, [b];\nst.global.b64 [du+%d], w;\n"
      "done:\nbar.sync 0;\n%sret;\n}\n",
      TENSOR_SHARED / 4, in, copy, TENSOR_SHARED, out);
  ok(cu(moduleLoadData)(&module, text));
  ok(cu(moduleGetFunction)(&kernels[rank][kind], module, "k"));
  ok(cu(funcSetAttribute)(kernels[rank][kind],
                          CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                          TENSOR_SHARED));
  return kernels[rank][kind];
}

/* ---- Running one case ---------------------------------------------------- */

static CUresult encode(const tensor_case *c, CUtensorMap *map)
{
  void *const at = (void *)(uintptr_t)(buffer + TENSOR_BASE + c->tensor_at);

  if (c->im2col)
    return cu(tensorMapEncodeIm2col)(
        map, c->type, c->rank, at, c->dim, c->stride, c->lower, c->upper,
        c->channels, c->pixels, c->step, c->interleave, c->swizzle, 0, c->fill);
  return cu(tensorMapEncodeTiled)(map, c->type, c->rank, at, c->dim, c->stride,
                                  c->box, c->step, c->interleave, c->swizzle, 0,
                                  c->fill);
}

static void fill(CUdeviceptr to, uint32_t size, uint32_t seed, uint32_t mode)
{
  for (uint32_t i = 0; i < size / 4; i++) {
    const uint32_t word = tensor_word(seed, mode, i);

    memcpy(bytes + (size_t)i * 4, &word, 4);
  }
  ok(cu(memcpyHtoD)(to, bytes, size));
}

typedef struct outcome {
  int encoded;
  int32_t counted; /* bytes that the mbarrier counted */
  uint32_t n;      /* number of bytes in `bytes` that the case is compared on */
} outcome;

static CUresult run_case(const tensor_case *c, outcome *out)
{
  _Alignas(64) CUtensorMap map;
  tensor_case args = *c;
  uint32_t n = TENSOR_SHARED;
  uint64_t word;

  *out = (outcome){.encoded = encode(c, &map)};
  if (out->encoded != CUDA_SUCCESS)
    return CUDA_SUCCESS;
  fill(buffer, TENSOR_BUFFER, c->seed, c->mode);
  if (tensor_case_loads(c))
    ok(cu(memsetD8)(image, 0xee, TENSOR_SHARED));
  else
    fill(image, TENSOR_SHARED, c->seed + 1, c->mode);
  out->n = tensor_case_loads(c) ? c->dumped : TENSOR_BUFFER;
  n = tensor_case_loads(c) ? c->dumped / 4 : 0;
  ok(cu(launchKernel)(
      kernel_of(c->rank, c->kind), 1, 1, 1, 128, 1, 1, TENSOR_SHARED, NULL,
      (void *[]){&map, &args.coord[0], &args.coord[1], &args.coord[2],
                 &args.coord[3], &args.coord[4], &args.offset[0],
                 &args.offset[1], &args.offset[2], &args.shared_at, &n, &image,
                 &dump},
      NULL));
  if (cu(ctxSynchronize)() != CUDA_SUCCESS)
    return CUDA_ERROR_LAUNCH_FAILED;
  ok(cu(memcpyDtoH)(&word, dump + TENSOR_SHARED, 8));
  out->counted = -kiln__cpu_mbarrier_bytes(word);
  ok(cu(memcpyDtoH)(bytes, tensor_case_loads(c) ? dump : buffer, out->n));
  return CUDA_SUCCESS;
}

static uint64_t hash_of(const uint8_t *p, size_t n)
{
  uint64_t h = UINT64_C(1469598103934665603);

  for (size_t i = 0; i < n; i++)
    h = (h ^ p[i]) * UINT64_C(1099511628211);
  return h;
}

static void describe(const tensor_case *c, char *out, size_t size)
{
  snprintf(
      out, size,
      "kind %d type %u rank %u swizzle %u interleave %u fill %u, dim %u %u "
      "%u %u %u, box %u %u %u %u %u, step %u %u %u %u %u, at %d %d %d %d "
      "%d, lower %d %d %d upper %d %d %d, channels %u pixels %u, offsets "
      "%u %u %u, shared %u",
      c->kind, c->type, c->rank, c->swizzle, c->interleave, c->fill,
      (unsigned)c->dim[0], (unsigned)c->dim[1], (unsigned)c->dim[2],
      (unsigned)c->dim[3], (unsigned)c->dim[4], c->box[0], c->box[1], c->box[2],
      c->box[3], c->box[4], c->step[0], c->step[1], c->step[2], c->step[3],
      c->step[4], c->coord[0], c->coord[1], c->coord[2], c->coord[3],
      c->coord[4], c->lower[0], c->lower[1], c->lower[2], c->upper[0],
      c->upper[1], c->upper[2], c->channels, c->pixels, c->offset[0],
      c->offset[1], c->offset[2], c->shared_at);
}

/* ---- Reductions of contiguous bytes -------------------------------------- */

static void check_reduction(uint32_t i, uint64_t expected)
{
  tensor_reduction r;
  char in[512], text[4000];
  CUmodule module;
  CUfunction f;

  tensor_reduction_make(&r, i);
  put_loop(in, sizeof in, "fill", true);
  snprintf(text, sizeof text,
           ".version 8.0\n.target sm_90\n.address_size 64\n"
           ".visible .entry k(.param .b64 to, .param .b64 image)\n{\n"
           ".shared .align 128 .b8 tile[%d];\n"
           ".reg .b32 t, i, k, x, words, base;\n.reg .b64 a, im, o;\n"
           ".reg .pred p;\nld.param.b64 o, [to];\nld.param.b64 im, [image];\n"
           "mov.u32 t, %%tid.x;\nmov.u32 words, %d;\nmov.u32 base, tile;\n%s"
           "fence.proxy.async;\nbar.sync 0;\nsetp.ne.u32 p, t, 0;\n"
           "@p bra done;\ncp.reduce.async.bulk.global.shared::cta.bulk_group."
           "%s [o], [tile], %d;\ncp.async.bulk.commit_group;\n"
           "cp.async.bulk.wait_group 0;\ndone:\nret;\n}\n",
           TENSOR_REDUCED_BYTES, TENSOR_REDUCED_BYTES / 4, in, r.op,
           TENSOR_REDUCED_BYTES);
  ok(cu(moduleLoadData)(&module, text));
  ok(cu(moduleGetFunction)(&f, module, "k"));
  fill(buffer, TENSOR_REDUCED_BYTES, r.seed, r.mode);
  fill(image, TENSOR_REDUCED_BYTES, r.seed + 1, r.mode);
  ok(cu(launchKernel)(f, 1, 1, 1, 128, 1, 1, 0, NULL,
                      (void *[]){&buffer, &image}, NULL));
  ok(cu(ctxSynchronize)());
  ok(cu(memcpyDtoH)(bytes, buffer, TENSOR_REDUCED_BYTES));
  ck_assert_msg(hash_of(bytes, TENSOR_REDUCED_BYTES) == expected,
                "reduction %u: %s, mode %u", i, r.op, r.mode);
  ok(cu(moduleUnload)(module));
}

/* In tensor.txt, this number of counted bytes means that the launch fails. */
enum { REFUSED = -1 };

START_TEST(copies_equal_those_of_an_h200)
{
  FILE *const golden = fopen(KILN_TEST_SOURCE "/tests/golden/tensor.txt", "r");
  unsigned n = 0, group, i;
  uint64_t hash;
  int encoded, counted;
  char line[256];

  ck_assert_ptr_nonnull(golden);
  while (fgets(line, sizeof line, golden) != NULL) {
    tensor_case c;
    outcome got;
    char what[512];

    if (line[0] == '#')
      continue;
    ck_assert_int_eq(sscanf(line, "%u %u %d %d %" SCNx64, &group, &i, &encoded,
                            &counted, &hash),
                     5);
    n++;
    if (group == TENSOR_REDUCE_BYTES) {
      check_reduction(i, hash);
      continue;
    }
    tensor_case_make(&c, group, i);
    describe(&c, what, sizeof what);
    if (run_case(&c, &got) != CUDA_SUCCESS) {
      ck_assert_msg(counted == REFUSED, "group %u case %u: %s", group, i, what);
      teardown();
      set_up();
      continue;
    }
    ck_assert_msg(got.encoded == encoded, "group %u case %u: encoded %d: %s",
                  group, i, got.encoded, what);
    ck_assert_msg(encoded != CUDA_SUCCESS ||
                      (got.counted == counted && hash_of(bytes, got.n) == hash),
                  "group %u case %u: counted %d, not %d: %s", group, i,
                  got.counted, counted, what);
  }
  fclose(golden);
  ck_assert_uint_gt(n, 0);
}
END_TEST

/* ---- Maps that a kernel changes ------------------------------------------ */

/* This kernel copies a tensor map to shared memory, replaces fields of the copy,
 * stores the map in global memory, and loads a box by it. */
static const char replaces[] =
    ".version 8.3\n.target sm_90a\n.address_size 64\n"
    ".visible .entry k(.param .align 64 .b8 map[128], .param .b64 to,\n"
    ".param .b64 address, .param .b64 out)\n{\n"
    ".shared .align 128 .b8 box[256];\n.shared .align 128 .b8 copy[128];\n"
    ".shared .align 8 .b64 bar;\n"
    ".reg .b32 t, c, s, x, n;\n.reg .b64 m, g, a, o, w;\n.reg .pred p;\n"
    "mov.u32 t, %tid.x;\nld.param.b64 g, [to];\nld.param.b64 a, [address];\n"
    "ld.param.b64 o, [out];\nmov.b64 m, map;\ncvta.param.u64 m, m;\n"
    "mov.u32 c, copy;\nshl.b32 s, t, 2;\nadd.u32 c, c, s;\n"
    "cvt.u64.u32 w, s;\nadd.s64 w, m, w;\nld.param.b32 x, [map];\n"
    "ld.b32 x, [w];\nst.shared.b32 [c], x;\nbar.warp.sync -1;\n"
    "setp.ne.u32 p, t, 0;\n@p bra filled;\nmov.u32 c, copy;\n"
    "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [c], a;\n"
    "tensormap.replace.tile.rank.shared::cta.b1024.b32 [c], 1;\n"
    "mov.u32 n, 4;\n"
    "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [c], 1, n;\n"
    "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [c], 1, n;\n"
    "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [c], 1, 1;\n"
    "mov.u64 w, 64;\n"
    "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [c], 0, w;\n"
    "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [c], 2;\n"
    "tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [c], 0;\n"
    "tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [c], 0;\n"
    "mbarrier.init.shared.b64 [bar], 1;\n"
    "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;\n"
    "filled:\nbar.warp.sync -1;\n"
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release"
    ".gpu.sync.aligned [g], [copy], 128;\n"
    "fence.proxy.tensormap::generic.acquire.gpu [g], 128;\n@p bra wait;\n"
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::"
    "bytes [box], [g, {0, 0}], [bar];\n"
    "wait:\nmbarrier.try_wait.parity.shared.b64 p, [bar], 0;\n@!p bra wait;\n"
    "mov.u32 c, box;\nadd.u32 c, c, s;\nld.shared.b32 x, [c];\n"
    "cvt.u64.u32 w, s;\nadd.s64 w, o, w;\nst.global.b32 [w], x;\n"
    "ld.shared.b32 x, [c+128];\nst.global.b32 [w+128], x;\nret;\n}\n";

START_TEST(kernels_change_maps)
{
  const uint64_t dim[] = {16}, strides[] = {0};
  const uint32_t box[] = {16}, steps[] = {1};
  _Alignas(64) CUtensorMap map;
  CUdeviceptr from = buffer + 4096, out = buffer + 65536, to = buffer;
  CUmodule module;
  CUfunction f;

  fill(buffer, TENSOR_BUFFER, 5, 0);
  ok(cu(moduleLoadData)(&module, replaces));
  ok(cu(moduleGetFunction)(&f, module, "k"));
  ok(cu(tensorMapEncodeTiled)(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 1,
                              (void *)(uintptr_t)(buffer + 1024), dim, strides,
                              box, steps, 0, 0, 0, 0));
  ok(cu(launchKernel)(f, 1, 1, 1, 32, 1, 1, 0, NULL,
                      (void *[]){&map, &to, &from, &out}, NULL));
  ok(cu(ctxSynchronize)());
  ok(cu(memcpyDtoH)(bytes, buffer, TENSOR_BUFFER));
  ck_assert_mem_eq(bytes + 65536, bytes + 4096, 256);
}
END_TEST

static CUresult encode_one(uintptr_t address, uint32_t box, uint32_t type)
{
  const uint64_t dim[] = {64, 4}, strides[] = {256};
  const uint32_t boxes[] = {box, 4}, steps[] = {1, 1};
  _Alignas(64) CUtensorMap map;

  return cu(tensorMapEncodeTiled)(&map, (int)type, 2, (void *)address, dim,
                                  strides, boxes, steps, 0, 0, 0, 0);
}

START_TEST(arguments_of_maps_are_checked)
{
  _Alignas(64) CUtensorMap map = {{0}};

  ok(encode_one(4096, 64, CU_TENSOR_MAP_DATA_TYPE_FLOAT32));
  is(encode_one(4104, 64, CU_TENSOR_MAP_DATA_TYPE_FLOAT32),
     CUDA_ERROR_INVALID_VALUE);
  is(encode_one(4096, 63, CU_TENSOR_MAP_DATA_TYPE_FLOAT32),
     CUDA_ERROR_INVALID_VALUE);
  is(encode_one(4096, 257, CU_TENSOR_MAP_DATA_TYPE_UINT8),
     CUDA_ERROR_INVALID_VALUE);
  is(encode_one(4096, 64, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B),
     CUDA_ERROR_INVALID_VALUE);
  /* Only a map that was encoded can get another address. */
  is(cu(tensorMapReplaceAddress)(&map, NULL), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_tensor");

  kiln_test_case(s, "tensor", 120, set_up, teardown,
                 TESTS(copies_equal_those_of_an_h200, kernels_change_maps,
                       arguments_of_maps_are_checked));
  return kiln_test_run(s);
}

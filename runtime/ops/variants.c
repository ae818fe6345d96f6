/* variants.c -- the table of kernel programs and their specialisations (macro
 * settings) that ship with Kiln. */
#include <kiln/program.h>

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static const char *const none[] = {NULL};

/* Macros that make a program use the code for hardware without the shuffle
 * instruction. One list is for independent thread scheduling, the other for
 * warps that run in lock-step. */
#define NO_SHUFFLE LIST("KILN_HAS_SHFL=0", "KILN_HAS_REDUX=0")
#define LOCK_STEP LIST("KILN_HAS_SHFL=0", "KILN_HAS_REDUX=0", "KILN_HAS_ITS=0")
#define SHUFFLE_ONLY LIST("KILN_HAS_REDUX=0")

/* Every program has the variant "default". The build writes the file
 * programs.def, which has one row "PROGRAM(name)," per program that the library
 * embeds. */
#define PROGRAM(name) WITH_TRAITS(name, "default", none)
#define WITH_TRAITS(name, label, traits)                                       \
  {                                                                            \
    name, label, none, traits, none, 35, false                                 \
  }
#define SPECIALISED(name, label, traits, ...)                                  \
  {                                                                            \
    name, label, LIST(__VA_ARGS__), traits, none, 35, false                    \
  }
#define FROM_80(name, label, ...)                                              \
  {                                                                            \
    name, label, LIST(__VA_ARGS__), none, none, 80, false                      \
  }
#define REDUCE(label, ...) SPECIALISED("reduce", label, none, __VA_ARGS__)
#define REDUCE_TYPE(id, type, op)                                              \
  REDUCE(id " " #op, "KILN_T=" type, "KILN_OP=" #op)

static const kiln_variant variants[] = {
#include "programs.def"
    WITH_TRAITS("radix_small", "lock-step", LOCK_STEP),
    WITH_TRAITS("ladder/reduce_shared_shuffle", "no shuffle", NO_SHUFFLE),
    WITH_TRAITS("ladder/reduce_shared_shuffle", "lock-step", LOCK_STEP),
    WITH_TRAITS("ladder/reduce_warp", "no shuffle", NO_SHUFFLE),
    WITH_TRAITS("ladder/reduce_warp", "lock-step", LOCK_STEP),

    SPECIALISED("all_pairs", "mirrored", none, "KILN_MIRROR=2",
                "KILN_OUTPUTS=3", "KILN_SPLIT=1"),
    SPECIALISED("all_pairs", "nearest", none, "KILN_ARG=1"),
    SPECIALISED("rank_select", "words of 64 bits, without places", none,
                "KILN_BLOCK=1024", "KILN_KEY=8", "KILN_PLACE=0", "KILN_APART=1",
                "KILN_ONLY_rank_sample=1"),
    SPECIALISED("rank_select", "bytes, anywhere", none, "KILN_KEY=1",
                "KILN_ITEMS=1", "KILN_ALIGNED=0", "KILN_PLACE=8"),
    SPECIALISED("top_k", "64 bits", none, "KILN_KEY=8", "KILN_PLACE=8"),
    SPECIALISED("scan", "staged", none, "KILN_BLOCK=160", "KILN_VECTORS=16",
                "KILN_STAGED=1"),
    SPECIALISED("scan_by_key", "by offsets", none, "KILN_HEADS=2"),
    SPECIALISED("reduce_by_key", "leader block", none, "KILN_LEADER=1"),
    SPECIALISED("buckets", "of a gather", none, "KILN_SCATTER=0"),
    SPECIALISED("index_sample", "64 bits", none,
                "KILN_INDEX=unsigned long long"),
    SPECIALISED("search", "with a table", none, "KILN_TABLE=1"),
    SPECIALISED("gather", "windows", none, "KILN_WINDOWS=1"),
    SPECIALISED("scatter", "windows", none, "KILN_WINDOWS=1"),
    SPECIALISED("stencil_rows", "line", none, "KILN_LINE=1", "KILN_RY=0",
                "KILN_ROWS=1"),
    SPECIALISED("stencil", "separable, radius 8", none, "KILN_RX=8",
                "KILN_RY=8", "KILN_SEPARABLE=1"),
    SPECIALISED("scatter_buckets", "bytes, anywhere", none, "KILN_BLOCK=512",
                "KILN_SHIFT=14", "KILN_VALUE=unsigned char", "KILN_ALIGNED=0"),
    SPECIALISED("scatter_buckets", "64 bits", none,
                "KILN_VALUE=unsigned long long",
                "KILN_INDEX=unsigned long long"),

    SPECIALISED("gemm_wgmma", "i8", none, "KILN_T=signed char", "KILN_C=int",
                "KILN_D=int", "KILN_MATH=3", "KILN_B_K=1", "KILN_STAGED=64"),
    SPECIALISED("gemm_wgmma", "tf32, turned", none, "KILN_T=float",
                "KILN_C=float", "KILN_D=float", "KILN_MATH=2", "KILN_A_K=0",
                "KILN_B_K=1", "KILN_STAGED=0", "KILN_VECTOR_D=2",
                "KILN_TURNED=2"),
    SPECIALISED("gemm_wgmma", "f32 in 6 terms", none, "KILN_T=float",
                "KILN_C=float", "KILN_D=float", "KILN_TILE_N=128",
                "KILN_STAGES=6", "KILN_TERMS=6", "KILN_PROMOTE=1",
                "KILN_STAGED=0", "KILN_VECTOR_D=2"),
    SPECIALISED("gemm_wgmma", "bf16, anywhere", none, "KILN_VECTOR_D=1"),
    FROM_80("gemm_mma", "f64", "KILN_T=double", "KILN_C=double",
            "KILN_D=double", "KILN_MATH=4"),
    FROM_80("gemm_mma", "f32 in 6 terms", "KILN_T=float", "KILN_C=float",
            "KILN_D=float", "KILN_MATH=1", "KILN_TERMS=6"),
    SPECIALISED("gemm_mma", "i8", none, "KILN_T=signed char", "KILN_C=int",
                "KILN_D=int", "KILN_MATH=3", "KILN_B_K=1"),
    SPECIALISED("gemm_pack", "3 parts", none, "KILN_PARTS=3", "KILN_VECTOR=4"),
    SPECIALISED("gemm_pack", "turned", none, "KILN_TURN=1"),

    FROM_80("gemm_small", "elements anywhere", "KILN_A_K=0", "KILN_B_K=1",
            "KILN_VECTOR_A=1", "KILN_VECTOR_B=1", "KILN_VECTOR_D=1"),
    SPECIALISED("gemm_vector", "2 columns of f16", none, "KILN_T=kiln::f16",
                "KILN_C=kiln::f16", "KILN_D=kiln::f16", "KILN_THIN=2",
                "KILN_ROWS=0", "KILN_ALONG=1", "KILN_VECTOR=8", "KILN_X_K=0",
                "KILN_VECTOR_X=1", "KILN_SPLIT=1", "KILN_WARPS=4",
                "KILN_LINES=4", "KILN_UNROLL=8", "KILN_PER_SM=1"),
    SPECIALISED("gemm_ffma", "elements anywhere", none, "KILN_VECTOR_B=1",
                "KILN_VECTOR_D=1"),
    SPECIALISED("gemm_simt", "64 x 64, elements anywhere", none,
                "KILN_TILE_M=64", "KILN_TILE_N=64", "KILN_THREAD_N=4",
                "KILN_WARPS_M=2", "KILN_PER_SM=5", "KILN_VECTOR_A=1",
                "KILN_VECTOR_B=1", "KILN_VECTOR_D=1"),
    SPECIALISED("gemm_simt", "f64, parts of a sum", none, "KILN_T=double",
                "KILN_C=double", "KILN_D=double", "KILN_TILE_M=64",
                "KILN_TILE_N=64", "KILN_TILE_K=16", "KILN_THREAD_M=4",
                "KILN_THREAD_N=4", "KILN_LANES_M=8", "KILN_WARPS_M=2",
                "KILN_VECTOR_A=2", "KILN_VECTOR_B=2", "KILN_VECTOR_D=2",
                "KILN_PER_SM=2", "KILN_SPLIT=1"),

    REDUCE_TYPE("f32", "float", sum),
    REDUCE_TYPE("f32", "float", min),
    REDUCE_TYPE("f32", "float", max),
    REDUCE_TYPE("f32", "float", prod),
    REDUCE("f32 sum in f64", "KILN_T=float", "KILN_ACC=double", "KILN_OP=sum"),
    REDUCE_TYPE("f64", "double", sum),
    REDUCE_TYPE("f64", "double", max),
    REDUCE_TYPE("i32", "int", sum),
    REDUCE_TYPE("i32", "int", max),
    REDUCE("i32 sum in i64", "KILN_T=int", "KILN_ACC=long long", "KILN_OP=sum"),
    REDUCE_TYPE("u32", "unsigned", sum),
    REDUCE_TYPE("i64", "long long", sum),
    REDUCE_TYPE("i64", "long long", min),
    REDUCE_TYPE("u64", "unsigned long long", max),
    REDUCE("f32 sum, up to 2^18", "KILN_ITEMS=2", "KILN_SMALL=1",
           "KILN_RESULTS=4"),
    REDUCE("f32 sum, up to 2^22", "KILN_BLOCK=256", "KILN_ITEMS=8",
           "KILN_SMALL=1", "KILN_RESULTS=4"),
    REDUCE("f32 sum, up to 2^26", "KILN_BLOCK=256", "KILN_ITEMS=8",
           "KILN_KEEP=24", "KILN_SMALL=1", "KILN_RESULTS=17"),
    REDUCE("f32 sum, above", "KILN_ITEMS=8", "KILN_KEEP=24"),
    SPECIALISED("reduce_any", "arg-max", none, "KILN_KIND=2",
                "KILN_OUT2=unsigned"),
    SPECIALISED("reduce_rows", "arg-min", none, "KILN_KIND=1",
                "KILN_OUT2=unsigned"),
    SPECIALISED("reduce_columns", "moments", none, "KILN_KIND=3",
                "KILN_VECTOR=2", "KILN_THREADS=512"),
    SPECIALISED("segmented", "arg-min", none, "KILN_KIND=1",
                "KILN_OUT2=unsigned"),
    SPECIALISED("reduce_any", "in order, lock-step", LOCK_STEP,
                "KILN_ORDERED=1"),
    SPECIALISED("reduce", "f32 sum, no shuffle", NO_SHUFFLE, "KILN_T=float"),
    SPECIALISED("reduce", "f32 sum, lock-step", LOCK_STEP, "KILN_T=float"),
    SPECIALISED("reduce", "f64 max, lock-step", LOCK_STEP, "KILN_T=double",
                "KILN_OP=max"),
    SPECIALISED("reduce", "i32 sum, no redux", SHUFFLE_ONLY, "KILN_T=int"),
};

const kiln_variant *kiln_variant_list(size_t *n)
{
  if (n != NULL)
    *n = sizeof variants / sizeof variants[0];
  return variants;
}

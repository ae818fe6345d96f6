/* variants.c -- the table of specialisations that ship with Kiln. */
#include <kiln/program.h>

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static const char *const none[] = {NULL};

/* Trait overrides that select the code for hardware without the shuffle
 * instruction. One list is for independent thread scheduling, the other for
 * warps that run in lock-step. */
#define NO_SHUFFLE LIST("KILN_HAS_SHFL=0", "KILN_HAS_REDUX=0")
#define LOCK_STEP LIST("KILN_HAS_SHFL=0", "KILN_HAS_REDUX=0", "KILN_HAS_ITS=0")
#define SHUFFLE_ONLY LIST("KILN_HAS_REDUX=0")

#define PLAIN(name)                                                            \
  {                                                                            \
    name, "default", none, none, none, 35, false                               \
  }
#define WITH_TRAITS(name, label, traits)                                       \
  {                                                                            \
    name, label, none, traits, none, 35, false                                 \
  }
#define REDUCE(label, ...)                                                     \
  {                                                                            \
    "reduce", label, LIST(__VA_ARGS__), none, none, 35, false                  \
  }
#define REDUCE_TYPE(id, type, op)                                              \
  REDUCE(id " " #op, "KILN_T=" type, "KILN_OP=" #op)
#define REDUCE_TRAITS(label, traits, ...)                                      \
  {                                                                            \
    "reduce", label, LIST(__VA_ARGS__), traits, none, 35, false                \
  }

static const kiln_variant variants[] = {
    PLAIN("buckets"),
    PLAIN("convolution"),
    PLAIN("difference"),
    PLAIN("counting_sort"),
    PLAIN("gather"),
    PLAIN("gather_rows"),
    PLAIN("find"),
    PLAIN("hello"),
    PLAIN("histogram"),
    PLAIN("ids"),
    PLAIN("julia"),
    PLAIN("index_check"),
    PLAIN("map"),
    PLAIN("matmul"),
    PLAIN("matrix_add"),
    PLAIN("merge"),
    PLAIN("nbody"),
    PLAIN("partition"),
    PLAIN("reduce_any"),
    PLAIN("reduce_columns"),
    PLAIN("reduce_rows"),
    PLAIN("run_length"),
    PLAIN("radix_histogram"),
    PLAIN("radix_pass"),
    PLAIN("radix_small"),
    PLAIN("saxpy"),
    PLAIN("scan"),
    PLAIN("scan_by_key"),
    PLAIN("segmented_sort"),
    PLAIN("scatter"),
    PLAIN("scatter_buckets"),
    PLAIN("search"),
    PLAIN("segmented"),
    PLAIN("segmented_rows"),
    PLAIN("select"),
    PLAIN("select_staged"),
    PLAIN("shared_memory"),
    PLAIN("slow"),
    PLAIN("split"),
    PLAIN("symbols"),

    PLAIN("ladder/dot"),
    PLAIN("ladder/histogram_global"),
    PLAIN("ladder/histogram_shared"),
    PLAIN("ladder/histogram_copies"),
    PLAIN("ladder/split_count"),
    PLAIN("ladder/split_prefix"),
    PLAIN("ladder/split_scatter"),
    PLAIN("ladder/reduce_one_thread"),
    PLAIN("ladder/reduce_atomic_global"),
    PLAIN("ladder/reduce_atomic_shared"),
    PLAIN("ladder/reduce_shared"),
    PLAIN("ladder/reduce_shared_shuffle"),
    PLAIN("ladder/reduce_final"),
    PLAIN("ladder/reduce_block"),
    PLAIN("ladder/reduce_grid_atomic"),
    PLAIN("ladder/reduce_grid_local"),
    PLAIN("ladder/reduce_warp"),
    PLAIN("ladder/scan_naive"),
    PLAIN("ladder/scan_hillis_steele"),
    PLAIN("ladder/scan_brent_kung"),
    PLAIN("ladder/scan_add"),
    PLAIN("ladder/scatter_single"),
    PLAIN("ladder/scatter_passes"),
    PLAIN("ladder/sort_one_bit"),
    PLAIN("ladder/sort_tile_bitonic"),
    WITH_TRAITS("radix_small", "lock-step", LOCK_STEP),
    WITH_TRAITS("ladder/reduce_shared_shuffle", "no shuffle", NO_SHUFFLE),
    WITH_TRAITS("ladder/reduce_shared_shuffle", "lock-step", LOCK_STEP),
    WITH_TRAITS("ladder/reduce_warp", "no shuffle", NO_SHUFFLE),
    WITH_TRAITS("ladder/reduce_warp", "lock-step", LOCK_STEP),

    {"scan", "staged",
     LIST("KILN_BLOCK=160", "KILN_VECTORS=16", "KILN_STAGED=1"), none, none, 35,
     false},
    {"scan_by_key", "by offsets", LIST("KILN_HEADS=2"), none, none, 35, false},
    {"buckets", "of a gather", LIST("KILN_SCATTER=0"), none, none, 35, false},
    {"gather", "windows", LIST("KILN_WINDOWS=1"), none, none, 35, false},
    {"scatter", "windows", LIST("KILN_WINDOWS=1"), none, none, 35, false},
    {"scatter_buckets", "bytes, anywhere",
     LIST("KILN_BLOCK=512", "KILN_SHIFT=14", "KILN_VALUE=unsigned char",
          "KILN_ALIGNED=0"),
     none, none, 35, false},
    {"scatter_buckets", "64 bits",
     LIST("KILN_VALUE=unsigned long long", "KILN_INDEX=unsigned long long"),
     none, none, 35, false},

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
    {"reduce_any", "arg-max", LIST("KILN_KIND=2", "KILN_OUT2=unsigned"), none,
     none, 35, false},
    {"reduce_any", "in order, lock-step", LIST("KILN_ORDERED=1"), LOCK_STEP,
     none, 35, false},
    REDUCE_TRAITS("f32 sum, no shuffle", NO_SHUFFLE, "KILN_T=float"),
    REDUCE_TRAITS("f32 sum, lock-step", LOCK_STEP, "KILN_T=float"),
    REDUCE_TRAITS("f64 max, lock-step", LOCK_STEP, "KILN_T=double",
                  "KILN_OP=max"),
    REDUCE_TRAITS("i32 sum, no redux", SHUFFLE_ONLY, "KILN_T=int"),
};

const kiln_variant *kiln_variant_list(size_t *n)
{
  if (n != NULL)
    *n = sizeof variants / sizeof variants[0];
  return variants;
}

/* arch.h -- GPU generations as data, the compatibility ladder, occupancy.
 *
 * Everything here is a pure function: it needs no GPU, driver or file and keeps
 * no state. Threads: any. Blocks: never.
 *
 * A compute capability is one number, major * 10 + minor: 35 = 3.5, 90 = 9.0,
 * 121 = 12.1. */
#ifndef KILN_ARCH_H
#define KILN_ARCH_H

#include <kiln/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a generation can do and how much it holds. Sizes are in bytes. */
typedef struct kiln_traits {
  int cc;               /**< compute capability, e.g. 90 */
  char family[16];      /**< "Kepler" ... "Blackwell" */
  bool tegra;           /**< system on a chip: its machine code runs on no other
                             capability, and no other's runs on it */
  bool has_shfl;        /**< warp shuffle (3.0) */
  bool has_its;         /**< independent thread scheduling (7.0) */
  bool has_match;       /**< match.any / match.all (7.0) */
  bool has_redux;       /**< redux.sync for 32-bit integers (8.0) */
  bool has_redux_f32;   /**< redux.sync for f32 min/max: 10.0 and 10.3 only,
                             with suffix a or f */
  bool has_cp_async;    /**< cp.async (8.0) */
  bool has_tma;         /**< bulk tensor copies and mbarrier tx (9.0) */
  bool has_cluster;     /**< thread block clusters (9.0) */
  bool has_pdl;         /**< programmatic dependent launch (9.0) */
  bool has_f16;         /**< half-precision arithmetic (5.3) */
  bool has_bf16;        /**< bfloat16 arithmetic (8.0) */
  bool has_tensor;      /**< tensor cores (7.0) */
  bool has_f64_atomics; /**< atomicAdd on double (6.0) */
  bool has_coop;        /**< cooperative launch (6.0) */
  int warp_size;        /**< lanes per warp, 32 */
  int max_threads_per_block; /**< 1,024; 512 before 2.0 */
  int max_threads_per_sm;    /**< resident threads */
  int max_blocks_per_sm;     /**< resident blocks */
  int max_warps_per_sm;      /**< resident warps */
  int regs_per_sm;           /**< 32-bit registers */
  int regs_per_block;        /**< 32-bit registers */
  int max_regs_per_thread;   /**< 255; 63 in 2.x and 3.0, 124 before */
  int reg_alloc_unit;        /**< registers are allocated per warp in multiples
                                    of this (before 2.0 per block) */
  int warp_alloc_unit;       /**< warps: slices of the register file */
  int smem_per_sm;           /**< shared memory, at the largest carve-out */
  int smem_per_block;        /**< without opt-in, 48 KiB (16 before 2.0) */
  int smem_per_block_optin;  /**< with opt-in */
  int smem_reserved_per_block; /**< taken by the system, 1 KiB from 8.0 */
  int smem_alloc_unit;         /**< shared memory is allocated in multiples of
                                    this */
} kiln_traits;

/** Returns the capabilities in the table, ascending (10 = 1.0 ... 121 = 12.1).
 * @param[out] n  number of entries. @return static array. */
KILN_API const int *kiln_arch_list(size_t *n);

/**
 * Looks up the traits of a compute capability.
 *
 * A capability that is not in the table gets the limits of the nearest older
 * one and its own number in `cc`. It keeps that one's features, except
 * has_redux_f32, which belongs to one family.
 *
 * @param cc        compute capability.
 * @param[out] out  filled on success.
 * @retval KILN_OK, KILN_EINVAL (out is NULL or cc is below 10).
 */
KILN_INLINE kiln_status kiln_arch_traits(int cc, kiln_traits *out);

/** Returns what a generation introduced, for people: "warp shuffle; ...".
 * @return static text; "" for an unknown capability. */
KILN_API const char *kiln_arch_brought(int cc);

/** What code is compiled for: "sm_90a" machine code or "compute_90" PTX. Its
 * size never changes. */
typedef struct kiln_target {
  int cc;      /**< compute capability, 0 = unset */
  char suffix; /**< 0, 'a' (this chip only) or 'f' (its family) */
  bool ptx;    /**< PTX only ("compute_") instead of machine code ("sm_") */
} kiln_target;

/**
 * Parses "sm_90a", "compute_75", "90", "9.0", "9.0a" or "100f".
 *
 * @param[out] out  zeroed on failure.
 * @param text      NUL-terminated; nothing may follow the target.
 * @retval KILN_OK, KILN_EINVAL (also for suffix a below 9.0 and f below 10.0).
 */
KILN_API kiln_status kiln_target_parse(kiln_target *out, const char *text);

/** Writes a target as text: "sm_90a", or "none" if it is unset.
 * @param buf  receives at most 24 bytes, always NUL-terminated. @return buf. */
KILN_API char *kiln_target_text(const kiln_target *target, char buf[24]);

/** The rungs of the compatibility ladder, best first. */
#define KILN_RUNG_MAP(X)                                                       \
  X(EXACT, "exact", "machine code for exactly this GPU")                       \
  X(LOWER, "lower", "machine code for a lower GPU of the same major")          \
  X(PTX, "ptx", "PTX that the driver assembles")                               \
  X(LINK, "link", "PTX assembled by nvJitLink, the driver being too old")      \
  X(PACK, "pack", "a pre-built image from a pack")                             \
  X(REFUSE, "refuse", "nothing fits")

typedef enum kiln_rung {
#define KILN_RUNG_ENUM(name, id, text) KILN_RUNG_##name,
  KILN_RUNG_MAP(KILN_RUNG_ENUM)
#undef KILN_RUNG_ENUM
      KILN_RUNG_COUNT
} kiln_rung;

/** Returns a rung's name: "exact", "lower", ... The text is static; "?" for a
 * value that is no rung. */
KILN_API const char *kiln_rung_name(kiln_rung rung);

/** What the ladder decides from. Start from {0}. */
typedef struct kiln_ladder_query {
  int cc;             /**< the GPU's capability */
  bool tegra;         /**< integrated GPU. Capabilities 32, 53, 62, 72, 87, 101
                         and 110 always count as such, 121 never: it runs 12.0
                         code */
  bool ptx_only;      /**< the device takes no machine code: the CPU device */
  char suffix;        /**< 0, or 'a' or 'f' if the kernel needs it */
  int driver_version; /**< 12020 = 12.2; 0 = no driver (compile only) */
  int nvrtc_version;  /**< 13000 = 13.0; 0 = no NVRTC */
  const int *archs;   /**< NVRTC's list, any order; NULL: the known list of
                         that version */
  size_t n_archs;     /**< entries of archs */
  int nvjitlink_version;   /**< 12080 = 12.8; 0 = none */
  const kiln_target *pack; /**< targets in packs */
  size_t n_pack;           /**< entries of pack */
} kiln_ladder_query;

enum { KILN_REASON_SIZE = 160 };

/** The decision, with a reason for every rung. */
typedef struct kiln_ladder_result {
  kiln_rung rung;     /**< the rung chosen */
  kiln_target target; /**< what to compile for; on PACK the pack's target */
  char reason[KILN_RUNG_COUNT][KILN_REASON_SIZE]; /**< why each rung was chosen
                                        or rejected, "not needed" below the
                                        chosen one */
  char hint[KILN_ERROR_HINT_SIZE]; /**< on REFUSE: what would help */
} kiln_ladder_result;

/**
 * Chooses the best rung that driver, compiler and packs allow for a GPU.
 *
 * @param query     borrowed for the call.
 * @param[out] out  the decision. KILN_RUNG_REFUSE is a decision, not a failure.
 * @retval KILN_OK, KILN_EINVAL.
 */
KILN_INLINE kiln_status kiln_ladder(const kiln_ladder_query *query,
                                    kiln_ladder_result *out);

/** Returns the architectures that a version of NVRTC is known to support,
 * ascending.
 * @param[out] n  number of entries, 0 for an unknown version.
 * @return static array. */
KILN_API const int *kiln_nvrtc_known_archs(int nvrtc_version, size_t *n);

/** The resource that keeps more blocks from residing on an SM. */
typedef enum kiln_limiter {
  KILN_LIMIT_NONE = 0,
  KILN_LIMIT_WARPS,
  KILN_LIMIT_BLOCKS,
  KILN_LIMIT_REGS,
  KILN_LIMIT_SMEM
} kiln_limiter;

/** How many blocks and warps reside on an SM. */
typedef struct kiln_occupancy_result {
  int blocks_per_sm;    /**< resident blocks, 0 if the block cannot run */
  int warps_per_sm;     /**< resident warps */
  double share;         /**< warps_per_sm / max_warps_per_sm, 0 to 1 */
  kiln_limiter limiter; /**< the tightest; the first in the enum among equals */
} kiln_occupancy_result;

/**
 * Computes occupancy from the table, with the rules of NVIDIA's CUDA occupancy
 * calculator.
 *
 * The SM is assumed to be configured for the most shared memory. For another
 * carve-out, lower traits->smem_per_sm in a copy: with 32 * 1024 there, 7.0
 * holds 8 blocks of 128 threads, 32 registers and 4,096 bytes, which is 50 %.
 *
 * @param traits  borrowed for the call.
 * @param block   threads per block, 1 to max_threads_per_block.
 * @param regs    registers per thread.
 * @param smem    shared memory per block in bytes, static plus dynamic.
 * @param[out] out  filled on success.
 * @retval KILN_OK, KILN_EINVAL.
 */
KILN_INLINE kiln_status kiln_occupancy(const kiln_traits *traits, int block,
                                       int regs, size_t smem,
                                       kiln_occupancy_result *out);

/**
 * Returns the block size with the highest occupancy: a multiple of the warp
 * size, the largest of equals.
 *
 * @param regs       registers per thread.
 * @param smem       shared memory per block in bytes.
 * @param max_block  largest block to consider in threads; 0 = the device's limit.
 * @return threads per block; 0 if no block can run.
 */
KILN_INLINE int kiln_occupancy_best_block(const kiln_traits *traits, int regs,
                                          size_t smem, int max_block);

/* ---- Exported forms that take sizes; see "Versions" in kiln.h ------------- */

KILN__SIZED(kiln_arch_traits, (int cc, kiln_traits *out), (size_t out_size),
            (cc, out, sizeof *out))
KILN__SIZED(kiln_ladder,
            (const kiln_ladder_query *query, kiln_ladder_result *out),
            (size_t query_size, size_t out_size),
            (query, out, sizeof *query, sizeof *out))
KILN__SIZED(kiln_occupancy,
            (const kiln_traits *traits, int block, int regs, size_t smem,
             kiln_occupancy_result *out),
            (size_t traits_size, size_t out_size),
            (traits, block, regs, smem, out, sizeof *traits, sizeof *out))
KILN__SIZED_AS(int, kiln_occupancy_best_block,
               (const kiln_traits *traits, int regs, size_t smem,
                int max_block),
               (size_t traits_size),
               (traits, regs, smem, max_block, sizeof *traits))

#ifdef __cplusplus
}
#endif
#endif

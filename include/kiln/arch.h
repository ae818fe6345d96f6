/* arch.h -- GPU generations as data; the compatibility ladder; occupancy.
 *
 * Everything here is a pure function: no GPU, no driver, no files, no state;
 * any thread, never blocks.
 *
 * A compute capability is one number, major * 10 + minor: 35 = 3.5,
 * 90 = 9.0, 121 = 12.1. */
#ifndef KILN_ARCH_H
#define KILN_ARCH_H

#include <kiln/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a generation can do and how much it holds. Sizes in bytes. */
typedef struct kiln_traits {
  int cc;               /**< compute capability, e.g. 90 */
  char family[16];      /**< "Kepler" ... "Blackwell" */
  bool tegra;           /**< system on a chip; its machine code runs on no
                             other capability, and no other's on it */
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
  int warp_size;        /**< lanes a warp, 32 */
  int max_threads_per_block;   /**< 1,024; 512 before 2.0 */
  int max_threads_per_sm;      /**< resident threads */
  int max_blocks_per_sm;       /**< resident blocks */
  int max_warps_per_sm;        /**< resident warps */
  int regs_per_sm;             /**< 32-bit registers */
  int regs_per_block;          /**< 32-bit registers */
  int max_regs_per_thread;     /**< 255; 63 in 2.x and 3.0, 124 before */
  int reg_alloc_unit;          /**< registers, granularity a warp (before 2.0
                                    a block) */
  int warp_alloc_unit;         /**< warps: slices of the register file */
  int smem_per_sm;             /**< shared memory, at the largest carve-out */
  int smem_per_block;          /**< without opting in, 48 KiB (16 before 2.0) */
  int smem_per_block_optin;    /**< with opting in */
  int smem_reserved_per_block; /**< taken by the system, 1 KiB from 8.0 */
  int smem_alloc_unit;         /**< granularity */
} kiln_traits;

/** Capabilities in the table, ascending (10 = 1.0 ... 121 = 12.1).
 * @param[out] n  how many. @return static array. */
KILN_API const int *kiln_arch_list(size_t *n);

/**
 * Traits of a compute capability from the table.
 *
 * A capability that is not in the table gets the limits of the nearest older
 * one, with its own number in `cc`; features are never removed, except
 * has_redux_f32, which belongs to one family.
 * @retval KILN_OK, KILN_EINVAL (out NULL or cc below 10).
 */
KILN_API kiln_status kiln_arch_traits(int cc, kiln_traits *out);

/** What a generation brought first, for people: "warp shuffle; ...".
 * Lecture row A2. @return static text, "" for an unknown capability. */
KILN_API const char *kiln_arch_brought(int cc);

/** What code is made for: "sm_90a" machine code or "compute_90" PTX. */
typedef struct kiln_target {
  int cc;      /**< compute capability, 0 = unset */
  char suffix; /**< 0, 'a' (this very chip) or 'f' (its family) */
  bool ptx;    /**< PTX only ("compute_") instead of machine code ("sm_") */
} kiln_target;

/** Read "sm_90a", "compute_75", "90", "9.0", "9.0a" or "100f". Nothing may
 * follow; suffix a is refused below 9.0 and f below 10.0. *out is zeroed on
 * failure.
 * @retval KILN_OK, KILN_EINVAL. */
KILN_API kiln_status kiln_target_parse(kiln_target *out, const char *text);

/** Write "sm_90a" into buf, "none" if unset; always terminated.
 * @return buf. */
KILN_API char *kiln_target_text(const kiln_target *target, char buf[24]);

/** The rungs of the ladder, best first. */
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

/** "exact", "lower", ... static text. */
KILN_API const char *kiln_rung_name(kiln_rung rung);

/** What the ladder decides on. */
typedef struct kiln_ladder_query {
  int cc;             /**< the GPU's capability */
  bool tegra;         /**< integrated GPU (also told by cc 32, 53, 62, 72, 87,
                         101 and 110). Set or not, 12.1 counts as a member
                         of its family: it runs 12.0 code */
  bool ptx_only;      /**< the device takes no machine code: the CPU device */
  char suffix;        /**< 0, or 'a'/'f' if the kernel needs it */
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
  kiln_rung rung;     /**< chosen */
  kiln_target target; /**< what to compile for; the pack's target on PACK */
  char reason[KILN_RUNG_COUNT][KILN_REASON_SIZE]; /**< why chosen or rejected,
                                        or "not needed" below the chosen one */
  char hint[KILN_ERROR_HINT_SIZE]; /**< on REFUSE: what would mend it */
} kiln_ladder_result;

/** Choose the rung. KILN_RUNG_REFUSE is an answer, not a failure.
 * @retval KILN_OK, KILN_EINVAL. */
KILN_API kiln_status kiln_ladder(const kiln_ladder_query *query,
                                 kiln_ladder_result *out);

/** The architectures that a version of NVRTC is known to support, ascending.
 * @param[out] n  how many, 0 for an unknown version. @return static array. */
KILN_API const int *kiln_nvrtc_known_archs(int nvrtc_version, size_t *n);

/** What keeps more blocks from residing on an SM. */
typedef enum kiln_limiter {
  KILN_LIMIT_NONE = 0,
  KILN_LIMIT_WARPS,
  KILN_LIMIT_BLOCKS,
  KILN_LIMIT_REGS,
  KILN_LIMIT_SMEM
} kiln_limiter;

typedef struct kiln_occupancy_result {
  int blocks_per_sm;    /**< resident blocks, 0 if the block cannot run */
  int warps_per_sm;     /**< resident warps */
  double share;         /**< warps_per_sm / max_warps_per_sm, 0 to 1 */
  kiln_limiter limiter; /**< the tightest; of equals the first above */
} kiln_occupancy_result;

/**
 * Occupancy by the table, as NVIDIA's occupancy calculator counts it
 * (CUDA occupancy calculator; lecture row E2).
 *
 * The SM is taken to be configured for the most shared memory. For another
 * carve-out lower traits->smem_per_sm in a copy: with 32 * 1024 there, 7.0
 * holds 8 blocks of 128 threads, 32 registers and 4,096 bytes, which is 50 %.
 *
 * @param block  threads a block, 1 to max_threads_per_block.
 * @param regs   registers a thread.
 * @param smem   shared memory a block in bytes, static and dynamic.
 * @retval KILN_OK, KILN_EINVAL.
 */
KILN_API kiln_status kiln_occupancy(const kiln_traits *traits, int block,
                                    int regs, size_t smem,
                                    kiln_occupancy_result *out);

/** Block size (a multiple of the warp) with the highest occupancy, the
 * largest such. @param max_block  0 = the device's limit. @return threads, 0
 * if none can run. */
KILN_API int kiln_occupancy_best_block(const kiln_traits *traits, int regs,
                                       size_t smem, int max_block);

#ifdef __cplusplus
}
#endif
#endif

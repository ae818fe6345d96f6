/* arch.h -- features and limits of GPU generations; ways to obtain code for a
 * GPU (the compatibility ladder); occupancy.
 *
 * All functions in this header are pure functions. They need no GPU, driver or
 * file and keep no state. They are thread-safe and never block.
 *
 * A compute capability is represented as one number, major * 10 + minor: 35
 * means 3.5, 90 means 9.0, 121 means 12.1. */
#ifndef KILN_ARCH_H
#define KILN_ARCH_H

#include <kiln/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Features and limits of a GPU generation. Sizes are in bytes. */
typedef struct kiln_traits {
  int cc;          /**< compute capability of the GPU, e.g. 90 for 9.0 */
  char family[16]; /**< name of the generation, "Kepler" ... "Blackwell" */
  /** The GPU is part of a system on a chip (Jetson). Machine code for this GPU
   * runs on no other compute capability, and machine code for other compute
   * capabilities does not run on this GPU. */
  bool tegra;
  bool has_shfl;  /**< has warp shuffle: compute capability 3.0 and later */
  bool has_its;   /**< has independent thread scheduling: compute capability 7.0
                       and later */
  bool has_match; /**< has the warp instructions match.any and match.all:
                       compute capability 7.0 and later */
  bool has_redux; /**< has the warp reduction redux.sync for 32-bit integers:
                       compute capability 8.0 and later */
  /** Has the warp reduction redux.sync for f32 min and max: only compute
   * capabilities 10.0 and 10.3, in targets with suffix a or f. */
  bool has_redux_f32;
  bool has_cp_async; /**< has cp.async, asynchronous copies to shared memory:
                          compute capability 8.0 and later */
  bool has_tma;      /**< has bulk tensor copies (TMA) and mbarrier transaction
                          counts: compute capability 9.0 and later */
  bool has_cluster;  /**< has thread block clusters: compute capability 9.0 and
                          later */
  bool has_pdl;      /**< supports programmatic dependent launches: compute
                          capability 9.0 and later */
  bool has_f16;  /**< has half-precision arithmetic: compute capability 5.3 and
                      later */
  bool has_bf16; /**< has bfloat16 arithmetic: compute capability 8.0 and
                      later */
  bool has_tensor; /**< has tensor cores: compute capability 7.0 and later */
  bool has_f64_atomics; /**< has atomicAdd on double: compute capability 6.0 and
                             later */
  bool has_coop; /**< supports cooperative launches: compute capability 6.0 and
                      later */
  int warp_size; /**< number of lanes per warp, always 32 */
  int max_threads_per_block; /**< largest number of threads per block: 1,024;
                                  512 before compute capability 2.0 */
  int max_threads_per_sm;    /**< largest number of resident threads per SM */
  int max_blocks_per_sm;     /**< largest number of resident blocks per SM */
  int max_warps_per_sm;      /**< largest number of resident warps per SM */
  int regs_per_sm;           /**< number of 32-bit registers per SM */
  int regs_per_block; /**< largest number of 32-bit registers per block */
  /** Largest number of registers per thread: 255; only 63 in compute
   * capability 2.x and 3.0, and 124 before 2.0. */
  int max_regs_per_thread;
  int reg_alloc_unit; /**< number of registers that are allocated at a time, per
                           warp (per block before compute capability 2.0) */
  int warp_alloc_unit; /**< number of warps that are allocated at a time, which
                            is the number of partitions of the register file */
  int smem_per_sm;     /**< shared memory per SM in bytes, at the largest
                            carve-out */
  /** Shared memory in bytes that a block can use without opt-in: 48 KiB, or
   * 16 KiB before compute capability 2.0. */
  int smem_per_block;
  int smem_per_block_optin; /**< shared memory in bytes that a block can use
                                 with opt-in */
  /** Shared memory in bytes that the system reserves per block: 1 KiB since
   * compute capability 8.0. */
  int smem_reserved_per_block;
  int smem_alloc_unit; /**< number of bytes of shared memory that are allocated
                            at a time */
} kiln_traits;

/** Returns all known compute capabilities in ascending order, from 10 (1.0) to
 * 121 (12.1).
 * @param[out] n  receives the number of entries.
 * @return a static array. */
KILN_API const int *kiln_arch_list(size_t *n);

/**
 * Looks up the traits of a compute capability.
 *
 * An unknown capability gets the features and limits of the nearest older
 * capability, but its own number in `cc`. The feature has_redux_f32 is an
 * exception, because only one family of GPUs has it.
 *
 * @param cc        compute capability, such as 90.
 * @param[out] out  the traits; filled on success.
 * @retval KILN_OK, KILN_EINVAL (out is NULL or cc is below 10).
 */
KILN_INLINE kiln_status kiln_arch_traits(int cc, kiln_traits *out);

/** Returns a human-readable list of the features that a generation introduced,
 * such as "warp shuffle; ...".
 * @return a static string; "" for an unknown capability. */
KILN_API const char *kiln_arch_brought(int cc);

/** A target that code is compiled for, such as "sm_90a" for machine code or
 * "compute_90" for PTX. The size of this struct never changes. */
typedef struct kiln_target {
  int cc;      /**< compute capability of the target, e.g. 90 for 9.0; 0 means
                    unset */
  char suffix; /**< target suffix: 0, 'a' (code for this chip only) or 'f' (code
                    for the chip's family) */
  bool ptx;    /**< the target is PTX ("compute_") instead of machine code
                    ("sm_") */
} kiln_target;

/**
 * Parses a target such as "sm_90a", "compute_75", "90", "9.0", "9.0a" or
 * "100f".
 *
 * @param[out] out  the target; zeroed on failure.
 * @param text      NUL-terminated string; nothing may follow the target.
 * @retval KILN_OK, KILN_EINVAL (also for the suffix a below 9.0 and the suffix
 *         f below 10.0).
 */
KILN_API kiln_status kiln_target_parse(kiln_target *out, const char *text);

/** Formats a target as a string such as "sm_90a", or "none" if the target is
 * unset.
 * @param buf  receives at most 24 bytes including the NUL.
 * @return buf. */
KILN_API char *kiln_target_text(const kiln_target *target, char buf[24]);

/** The rungs of the compatibility ladder, from best to worst. A rung is one way
 * to obtain code that runs on a GPU, such as machine code for exactly this GPU,
 * or PTX. */
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

/** Returns the name of a rung of the compatibility ladder (a way to obtain
 * code), such as "exact" or "lower". Returns "?" for a value that is not a
 * valid rung. The string is static. */
KILN_API const char *kiln_rung_name(kiln_rung rung);

/** Input of kiln_ladder(), which chooses the way to obtain code for a GPU.
 * Initialise the struct with {0}. */
typedef struct kiln_ladder_query {
  int cc; /**< compute capability of the GPU */
  /** The GPU is integrated in a system on a chip. Compute capabilities 3.2,
   * 5.3, 6.2, 7.2, 8.7, 10.1 and 11.0 always count as integrated. Compute
   * capability 12.1 never does, because it runs code for 12.0. */
  bool tegra;
  bool ptx_only; /**< the device accepts no machine code, like the CPU device */
  char suffix;   /**< target suffix 'a' or 'f' if the kernel needs it, otherwise
                      0 */
  int driver_version; /**< version of the driver; 12020 means 12.2, 0 means no
                           driver (compile only) */
  int nvrtc_version;  /**< version of NVRTC; 13000 means 13.0, 0 means no
                           NVRTC */
  /** Compute capabilities that NVRTC supports, in any order; NULL selects those
   * that nvrtc_version is known to support. */
  const int *archs;
  size_t n_archs;        /**< number of entries in the array archs */
  int nvjitlink_version; /**< version of nvJitLink; 12080 means 12.8, 0 means no
                              nvJitLink */
  const kiln_target *pack; /**< targets of the images in the pack files */
  size_t n_pack;           /**< number of entries in the array pack */
} kiln_ladder_query;

enum { KILN_REASON_SIZE = 160 };

/** Result of kiln_ladder(): the chosen way to obtain code for a GPU, and the
 * reasons why each way was chosen or rejected. */
typedef struct kiln_ladder_result {
  kiln_rung rung;     /**< the chosen rung of the compatibility ladder (way to
                           obtain code) */
  kiln_target target; /**< the target to compile for; if the code comes
                           from a pack, the target of the image in the pack */
  /** One reason per rung of the compatibility ladder (way to obtain code): why
   * the rung was chosen or rejected. The reason is "not needed" for rungs that
   * are worse than the chosen rung. */
  char reason[KILN_RUNG_COUNT][KILN_REASON_SIZE];
  char hint[KILN_ERROR_HINT_SIZE]; /**< advice for the user if no way to obtain
                                        code was found (KILN_RUNG_REFUSE) */
} kiln_ladder_result;

/**
 * Chooses the best way to obtain code for a GPU that driver, compiler and packs
 * allow. These ways are the rungs of the compatibility ladder.
 *
 * @param query     properties of the GPU, driver, compiler and packs; borrowed
 *                  for the call.
 * @param[out] out  the decision. KILN_RUNG_REFUSE is a decision, not a failure.
 * @retval KILN_OK, KILN_EINVAL.
 */
KILN_INLINE kiln_status kiln_ladder(const kiln_ladder_query *query,
                                    kiln_ladder_result *out);

/** Returns the compute capabilities that a version of NVRTC is known to
 * support, in ascending order.
 * @param[out] n  receives the number of entries; 0 for an unknown version.
 * @return a static array. */
KILN_API const int *kiln_nvrtc_known_archs(int nvrtc_version, size_t *n);

/** The resource that limits the number of resident blocks on an SM. */
typedef enum kiln_limiter {
  KILN_LIMIT_NONE = 0,
  KILN_LIMIT_WARPS,
  KILN_LIMIT_BLOCKS,
  KILN_LIMIT_REGS,
  KILN_LIMIT_SMEM
} kiln_limiter;

/** Numbers of blocks and warps that can be resident on an SM. */
typedef struct kiln_occupancy_result {
  int blocks_per_sm; /**< number of resident blocks; 0 if the block cannot
                          run */
  int warps_per_sm;  /**< number of resident warps per SM */
  double share; /**< occupancy: warps_per_sm divided by the largest number of
                     resident warps per SM, 0 to 1 */
  kiln_limiter limiter; /**< the resource that limits the occupancy; of several
                             such resources, the first in the enum */
} kiln_occupancy_result;

/**
 * Computes the occupancy from the traits of a GPU, by the rules of NVIDIA's
 * CUDA occupancy calculator.
 *
 * The SM is assumed to be configured for the largest amount of shared memory.
 * For another carve-out, change traits->smem_per_sm in a copy of the traits.
 * For example, consider blocks of 128 threads with 32 registers per thread and
 * 4,096 bytes of shared memory per block. With a carve-out of 32 KiB, a GPU of
 * compute capability 7.0 holds 8 such blocks per SM. That is an occupancy of 50
 * %.
 *
 * @param traits  traits of the GPU; borrowed for the call.
 * @param block   number of threads per block, 1 to max_threads_per_block.
 * @param regs    number of registers per thread.
 * @param smem    shared memory per block in bytes, static plus dynamic.
 * @param[out] out  the occupancy; filled on success.
 * @retval KILN_OK, KILN_EINVAL.
 */
KILN_INLINE kiln_status kiln_occupancy(const kiln_traits *traits, int block,
                                       int regs, size_t smem,
                                       kiln_occupancy_result *out);

/**
 * Returns the block size with the highest occupancy, which is a multiple of the
 * warp size. Among block sizes with the same occupancy the largest is returned.
 *
 * @param regs       number of registers per thread.
 * @param smem       shared memory per block in bytes.
 * @param max_block  largest block size to consider, in threads; 0 means the
 *                   limit of the device.
 * @return the number of threads per block; 0 if no block can run.
 */
KILN_INLINE int kiln_occupancy_best_block(const kiln_traits *traits, int regs,
                                          size_t smem, int max_block);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

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

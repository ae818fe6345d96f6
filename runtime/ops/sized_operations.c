/* sized_operations.c -- the exported functions of the operations. A caller that
 * was built against an older header passes a smaller desc, so these functions
 * also receive the size of the desc (base/sized.h). The public headers hold the
 * table, which has one row per operation with its desc and the last member of
 * the first version of that desc. */
#include "../base/sized.h"

#include <kiln/all_pairs.h>
#include <kiln/gather.h>
#include <kiln/gemm.h>
#include <kiln/histogram.h>
#include <kiln/map.h>
#include <kiln/merge.h>
#include <kiln/merge_sort.h>
#include <kiln/move.h>
#include <kiln/permute.h>
#include <kiln/random.h>
#include <kiln/reduce.h>
#include <kiln/scan.h>
#include <kiln/search.h>
#include <kiln/select.h>
#include <kiln/sets.h>
#include <kiln/sort.h>
#include <kiln/stencil.h>
#include <kiln/top_k.h>

#define OPERATION(name, desc_type, last)                                       \
  static const kiln__sized name##_type = KILN__SIZED_TYPE(desc_type, last);    \
  kiln_status name##_sized(kiln_stream *stream, const desc_type *desc,         \
                           const kiln_workspace *workspace, size_t desc_size)  \
  {                                                                            \
    desc_type own;                                                             \
    const void *in = desc;                                                     \
    const kiln_status st = kiln__sized_in(&name##_type, &in, desc_size, &own); \
                                                                               \
    return st == KILN_OK ? name(stream, in, workspace) : st;                   \
  }                                                                            \
  kiln_status name##_workspace_sized(kiln_stream *stream,                      \
                                     const desc_type *desc, size_t *bytes,     \
                                     size_t desc_size)                         \
  {                                                                            \
    desc_type own;                                                             \
    const void *in = desc;                                                     \
    const kiln_status st = kiln__sized_in(&name##_type, &in, desc_size, &own); \
                                                                               \
    if (st != KILN_OK && bytes != NULL)                                        \
      *bytes = 0;                                                              \
    return st == KILN_OK ? name##_workspace(stream, in, bytes) : st;           \
  }

KILN__ALL_PAIRS_OPERATIONS(OPERATION)
KILN__MAP_OPERATIONS(OPERATION)
KILN__MOVE_OPERATIONS(OPERATION)
KILN__PERMUTE_OPERATIONS(OPERATION)
KILN__RANDOM_OPERATIONS(OPERATION)
KILN__REDUCE_OPERATIONS(OPERATION)
KILN__SCAN_OPERATIONS(OPERATION)
KILN__SELECT_OPERATIONS(OPERATION)
KILN__GATHER_OPERATIONS(OPERATION)
KILN__GEMM_OPERATIONS(OPERATION)
KILN__HISTOGRAM_OPERATIONS(OPERATION)
KILN__MERGE_OPERATIONS(OPERATION)
KILN__MERGE_SORT_OPERATIONS(OPERATION)
KILN__SEARCH_OPERATIONS(OPERATION)
KILN__SET_OPERATIONS(OPERATION)
KILN__SORT_OPERATIONS(OPERATION)
KILN__STENCIL_OPERATIONS(OPERATION)
KILN__TOP_K_OPERATIONS(OPERATION)

kiln_status kiln_gemm_explain_sized(kiln_stream *stream,
                                    const kiln_gemm_desc *desc,
                                    kiln_gemm_choice *choice, size_t desc_size)
{
  kiln_gemm_desc own;
  const void *in = desc;
  const kiln_status st = kiln__sized_in(&kiln_gemm_type, &in, desc_size, &own);

  return st == KILN_OK ? kiln_gemm_explain(stream, in, choice) : st;
}

/* ---- The cost model of gather and scatter -------------------------------- */

static const kiln__sized info_type = KILN__SIZED_TYPE(kiln_device_info, mig);
static const kiln__sized shape_type =
    KILN__SIZED_TYPE(kiln_index_shape, index_size);
static const kiln__sized plan_type = KILN__SIZED_TYPE(kiln_index_plan, ms);
static const kiln__sized model_type =
    KILN__SIZED_TYPE(kiln_cache_model, threads);

/* Calls a planning function whose plan is both an input and an output. */
static kiln_status
plan(kiln_status (*fn)(const kiln_device_info *gpu,
                       const kiln_index_shape *shape, kiln_index_plan *plan),
     const void *gpu, size_t gpu_size, const void *shape, size_t shape_size,
     kiln_index_plan *given, size_t plan_size)
{
  kiln_device_info own_gpu;
  kiln_index_shape own_shape;
  kiln_index_plan own_plan;
  const void *in = given;
  kiln_status st = KILN_OK;

  KILN_TRY(kiln__sized_in(&info_type, &gpu, gpu_size, &own_gpu));
  KILN_TRY(kiln__sized_in(&shape_type, &shape, shape_size, &own_shape));
  KILN_TRY(kiln__sized_in(&plan_type, &in, plan_size, &own_plan));
  if (in != &own_plan)
    return fn(gpu, shape, given);
  KILN_TRY(fn(gpu, shape, &own_plan));
  kiln__sized_give(&plan_type, &own_plan, given, plan_size);

done:
  return st;
}

kiln_status kiln_scatter_plan_sized(const kiln_device_info *gpu,
                                    const kiln_index_shape *shape,
                                    kiln_index_plan *given, size_t gpu_size,
                                    size_t shape_size, size_t plan_size)
{
  return plan(kiln_scatter_plan, gpu, gpu_size, shape, shape_size, given,
              plan_size);
}

kiln_status kiln_gather_plan_sized(const kiln_device_info *gpu,
                                   const kiln_index_shape *shape,
                                   kiln_index_plan *given, size_t gpu_size,
                                   size_t shape_size, size_t plan_size)
{
  return plan(kiln_gather_plan, gpu, gpu_size, shape, shape_size, given,
              plan_size);
}

kiln_status kiln_scatter_misses_sized(const kiln_cache_model *cache,
                                      const uint32_t *index, size_t n,
                                      uint64_t n_target, uint32_t passes,
                                      uint64_t *misses, size_t cache_size)
{
  kiln_cache_model own;
  const void *in = cache;
  const kiln_status st = kiln__sized_in(&model_type, &in, cache_size, &own);

  return st == KILN_OK
             ? kiln_scatter_misses(in, index, n, n_target, passes, misses)
             : st;
}

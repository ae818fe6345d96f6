/* sized_core.c -- the exported variants of the runtime's functions, which take
 * the size of the caller's struct as an argument (see base/sized.h).
 *
 * Each function has one row: TAKES if the caller's struct is read, GIVES if the
 * struct is written. A row names the last member of the struct's first version.
 * Functions that read and write structs, or take arrays of structs, are written
 * out in full. The exported variant of kiln_launch() is in launch.c, next to
 * the fast path. */
#include "../base/sized.h"
#include "../core/runtime.h"

#include <kiln/cache.h>
#include <kiln/inspect.h>
#include <kiln/launch.h>
#include <kiln/texture.h>

#include <string.h>

/* Defines the exported variant of a function that reads a struct. `in` is the
 * struct that is passed to the plain function. `reset` sets *out to the value
 * that the plain function gives on failure. */
#define TAKES(name, type, last, given, parameters, arguments, reset)           \
  kiln_status name##_sized parameters                                          \
  {                                                                            \
    static const kiln__sized sized = KILN__SIZED_TYPE(type, last);             \
    const void *in = given;                                                    \
    type own;                                                                  \
    const kiln_status st = kiln__sized_in(&sized, &in, size, &own);            \
                                                                               \
    if (st == KILN_OK)                                                         \
      return name arguments;                                                   \
    reset;                                                                     \
    return st;                                                                 \
  }

/* Defines the exported variant of a function with a result struct. `to` is the
 * struct that the plain function writes. */
#define GIVES(name, type, last, parameters, arguments)                         \
  kiln_status name##_sized parameters                                          \
  {                                                                            \
    static const kiln__sized sized = KILN__SIZED_TYPE(type, last);             \
    type own;                                                                  \
    bool direct;                                                               \
    kiln_status st = kiln__sized_out(&sized, out, size, &direct);              \
    type *const to = direct ? out : &own;                                      \
                                                                               \
    if (st != KILN_OK)                                                         \
      return st;                                                               \
    memset(&own, 0, sizeof own);                                               \
    st = name arguments;                                                       \
    if (!direct)                                                               \
      kiln__sized_give(&sized, &own, out, size);                               \
    return st;                                                                 \
  }

#define NO_OUT                                                                 \
  if (out != NULL)                                                             \
  *out = 0

GIVES(kiln_arch_traits, kiln_traits, smem_alloc_unit,
      (int cc, kiln_traits *out, size_t size), (cc, to))
TAKES(kiln_runtime_create, kiln_runtime_opts, ignore_env, opts,
      (kiln_runtime * *out, const kiln_runtime_opts *opts, size_t size),
      (out, in), NO_OUT)
GIVES(kiln_runtime_driver, kiln_driver_info, ptx_only,
      (kiln_runtime * rt, kiln_driver_info *out, size_t size), (rt, to))
TAKES(kiln_compile, kiln_program_desc, log_user, desc,
      (kiln_image * *out, kiln_runtime *rt, const kiln_program_desc *desc,
       const kiln_target *target, size_t size),
      (out, rt, in, target), NO_OUT)
GIVES(kiln_image_resources, kiln_resources, n_params,
      (const kiln_image *image, size_t i, kiln_resources *out, size_t size),
      (image, i, to))
TAKES(kiln_image_sass, kiln_sass_opts, max_bytes, opts,
      (char **out, size_t *length, kiln_runtime *rt, const kiln_image *image,
       const kiln_sass_opts *opts, size_t size),
      (out, length, rt, image, in), NO_OUT)
GIVES(kiln_job_state, kiln_job_progress, compiled,
      (kiln_job * job, kiln_job_progress *out, size_t size), (job, to))
TAKES(kiln_module_load, kiln_program_desc, log_user, desc,
      (kiln_module * *out, kiln_device *device, const kiln_program_desc *desc,
       size_t size),
      (out, device, in), NO_OUT)
GIVES(kiln_cache_counters, kiln_cache_stats, evicted,
      (kiln_runtime * rt, kiln_cache_stats *out, size_t size), (rt, to))
GIVES(kiln_cache_describe, kiln_cache_info, cap,
      (kiln_runtime * rt, kiln_cache_info *out, size_t size), (rt, to))
TAKES(kiln_cache_why, kiln_program_desc, log_user, desc,
      (kiln_runtime * rt, const kiln_program_desc *desc,
       const kiln_target *target, bool *hit, kiln_why_fn report, void *user,
       size_t size),
      (rt, in, target, hit, report, user), (void)0)
TAKES(kiln_device_open, kiln_device_opts, context_flags, opts,
      (kiln_device * *out, kiln_runtime *rt, int ordinal,
       const kiln_device_opts *opts, size_t size),
      (out, rt, ordinal, in), NO_OUT)
GIVES(kiln_device_describe, kiln_device_info, mig,
      (const kiln_device *device, kiln_device_info *out, size_t size),
      (device, to))
TAKES(kiln_stream_create, kiln_stream_opts, priority, opts,
      (kiln_stream * *out, kiln_device *device, const kiln_stream_opts *opts,
       size_t size),
      (out, device, in), NO_OUT)
GIVES(kiln_kernel_describe, kiln_kernel_info, sizes,
      (const kiln_kernel *kernel, kiln_kernel_info *out, size_t size),
      (kernel, to))
TAKES(kiln_cuda_array_create, kiln_cuda_array_desc, surface, desc,
      (kiln_cuda_array * *out, kiln_device *device,
       const kiln_cuda_array_desc *desc, size_t size),
      (out, device, in), NO_OUT)
TAKES(kiln_texture_create, kiln_texture_desc, border, desc,
      (uint64_t * out, kiln_cuda_array *array, const kiln_texture_desc *desc,
       size_t size),
      (out, array, in), NO_OUT)
TAKES(kiln_texture_of_memory, kiln_texture_desc, border, desc,
      (uint64_t * out, kiln_device *device, CUdeviceptr p, kiln_texel texel,
       int channels, size_t width, size_t height, size_t pitch,
       const kiln_texture_desc *desc, size_t size),
      (out, device, p, texel, channels, width, height, pitch, in), NO_OUT)

/* ---- Functions that read and write structs ------------------------------- */

static const kiln__sized traits_type =
    KILN__SIZED_TYPE(kiln_traits, smem_alloc_unit);
static const kiln__sized desc_type =
    KILN__SIZED_TYPE(kiln_program_desc, log_user);

kiln_status kiln_ladder_sized(const kiln_ladder_query *query,
                              kiln_ladder_result *out, size_t query_size,
                              size_t out_size)
{
  static const kiln__sized query_type =
      KILN__SIZED_TYPE(kiln_ladder_query, n_pack);
  static const kiln__sized result_type =
      KILN__SIZED_TYPE(kiln_ladder_result, hint);
  kiln_ladder_query own_query;
  kiln_ladder_result own = {0};
  const void *in = query;
  kiln_status st = KILN_OK;
  bool direct;

  KILN_TRY(kiln__sized_in(&query_type, &in, query_size, &own_query));
  KILN_TRY(kiln__sized_out(&result_type, out, out_size, &direct));
  st = kiln_ladder(in, direct ? out : &own);
  if (!direct)
    kiln__sized_give(&result_type, &own, out, out_size);

done:
  return st;
}

kiln_status kiln_occupancy_sized(const kiln_traits *traits, int block, int regs,
                                 size_t smem, kiln_occupancy_result *out,
                                 size_t traits_size, size_t out_size)
{
  static const kiln__sized result_type =
      KILN__SIZED_TYPE(kiln_occupancy_result, limiter);
  kiln_occupancy_result own = {0};
  kiln_traits own_traits;
  const void *in = traits;
  kiln_status st = KILN_OK;
  bool direct;

  KILN_TRY(kiln__sized_in(&traits_type, &in, traits_size, &own_traits));
  KILN_TRY(kiln__sized_out(&result_type, out, out_size, &direct));
  st = kiln_occupancy(in, block, regs, smem, direct ? out : &own);
  if (!direct)
    kiln__sized_give(&result_type, &own, out, out_size);

done:
  return st;
}

int kiln_occupancy_best_block_sized(const kiln_traits *traits, int regs,
                                    size_t smem, int max_block,
                                    size_t traits_size)
{
  kiln_traits own;
  const void *in = traits;

  if (kiln__sized_in(&traits_type, &in, traits_size, &own) != KILN_OK)
    return 0;
  return kiln_occupancy_best_block(in, regs, smem, max_block);
}

/* ---- Arrays whose stride is the size of the caller's struct -------------- */

kiln_status kiln_runtime_nvrtc_sized(kiln_runtime *rt, kiln_nvrtc_info *out,
                                     size_t capacity, size_t *n, size_t size)
{
  static const kiln__sized type = KILN__SIZED_TYPE(kiln_nvrtc_info, loaded);
  kiln_nvrtc_info *own;
  kiln_status st;
  bool direct;

  st = kiln__sized_out(&type, out, size, &direct);
  if (st != KILN_OK)
    return st;
  if (direct || rt == NULL || capacity == 0)
    return kiln_runtime_nvrtc(rt, out, capacity, n);
  own = kiln__calloc(&rt->alloc, capacity, sizeof *own);
  if (own == NULL)
    return kiln__fail_memory("descriptions of NVRTC");
  st = kiln_runtime_nvrtc(rt, own, capacity, n);
  for (size_t i = 0; i < capacity; i++)
    kiln__sized_give(&type, &own[i], (char *)out + i * size, size);
  kiln__free(&rt->alloc, own);
  return st;
}

kiln_status kiln_job_start_sized(kiln_job **out, kiln_runtime *rt,
                                 const kiln_program_desc *desc,
                                 const kiln_target *target, size_t n,
                                 kiln_progress_fn progress, void *user,
                                 size_t size)
{
  kiln_program_desc *own;
  kiln_status st = KILN_OK;

  if (size == sizeof *desc || rt == NULL || desc == NULL || n == 0)
    return kiln_job_start(out, rt, desc, target, n, progress, user);
  NO_OUT;
  own = kiln__calloc(&rt->alloc, n, sizeof *own);
  if (own == NULL)
    return kiln__fail_memory("the programs of a job");
  for (size_t i = 0; i < n && st == KILN_OK; i++) {
    const void *in = (const char *)desc + i * size;

    st = kiln__sized_in(&desc_type, &in, size, &own[i]);
  }
  if (st == KILN_OK)
    st = kiln_job_start(out, rt, own, target, n, progress, user);
  kiln__free(&rt->alloc, own);
  return st;
}

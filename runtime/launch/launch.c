/* launch.c -- kiln_launch(): checks the arguments, then launches the kernel.
 *
 * Problem: the driver does not check the arguments of a kernel. With a wrong
 * number or size of arguments, the driver reads beyond the array or the kernel
 * computes with garbage.
 *
 * Idea: kiln_module_kernel() records the parameter sizes and all launch limits
 * once. A launch only compares numbers, without a branch per argument, and
 * calls the driver if all comparisons hold. After a failed comparison, one of
 * the fail_...() functions determines the cause and writes the message.
 *
 * Invariant: a launch without special features allocates no memory, takes no
 * lock and performs no search. All kernel data that it reads lies in one cache
 * line (struct kiln_kernel).
 *
 * Cost: a few nanoseconds in addition to cuLaunchKernel(), which takes about a
 * microsecond; `kiln bench launch` compares the two functions. Cooperative
 * launches, clusters, overlap with the preceding kernel and timelines take the
 * slower path through launch_extra(). */
#include "../base/sized.h"
#include "../device/device.h"

#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* The grid and block dimensions that are passed to the driver. A 0 in y or z is
 * replaced by 1. */
typedef struct shape {
  uint32_t gx, gy, gz, bx, by, bz;
} shape;

/* Finds the first argument with a wrong size or number, after collect() failed,
 * and writes the error record. */
static kiln_status fail_args(const kiln_kernel *k, const kiln_arg *args,
                             size_t n)
{
  if (n > KILN_MAX_PARAMS)
    return kiln__fail(KILN_EARGS, "put them into one struct parameter",
                      "%zu arguments for %s; a launch takes %d at most", n,
                      k->name, KILN_MAX_PARAMS);
  if (args == NULL && n > 0)
    return kiln__fail(KILN_EARGS, NULL, "%s: args is NULL, but n is %zu",
                      k->name, n);
  if (k->params_known && n != k->n_params)
    return kiln__fail(KILN_EARGS, "pass one argument per parameter, in order",
                      "%s has %d parameters, %zu arguments were given", k->name,
                      k->n_params, n);
  for (size_t i = 0; i < n; i++) {
    if (k->params_known && args[i].size != k->sizes[i])
      return kiln__fail(KILN_EARGS,
                        "give the variable the type that the kernel declares",
                        "argument %zu of %s has %zu bytes, the parameter has "
                        "%u",
                        i + 1, k->name, args[i].size, k->sizes[i]);
    if (args[i].value == NULL)
      return kiln__fail(KILN_EARGS, NULL,
                        "the value of argument %zu of %s is NULL", i + 1,
                        k->name);
  }
  return kiln__fail(KILN_EINTERNAL, NULL, "arguments of %s", k->name);
}

static kiln_status fail_block(const kiln_kernel *k, const shape *s)
{
  static const char axes[] = "xyz";
  const uint32_t block[] = {s->bx, s->by, s->bz};

  if (s->bx == 0)
    return kiln__fail(KILN_EINVAL, "set config->block.x",
                      "%s: a block of 0 threads", k->name);
  for (int i = 0; i < 3; i++) {
    if (block[i] > k->max_block[i])
      return kiln__fail(KILN_ELIMIT, NULL,
                        "%s: a block of %u threads in %c; the device allows %u",
                        k->name, block[i], axes[i], k->max_block[i]);
  }
  return kiln__fail(KILN_ELIMIT,
                    "use smaller blocks, or compile with __launch_bounds__ or "
                    "kiln_program_desc.max_registers",
                    "%s: a block of %llu threads; with its %d registers per "
                    "thread the kernel "
                    "allows at most %u",
                    k->name, (unsigned long long)s->bx * s->by * s->bz,
                    k->info.registers, k->max_threads);
}

static kiln_status fail_grid(const kiln_kernel *k, const shape *s)
{
  static const char axes[] = "xyz";
  const uint32_t grid[] = {s->gx, s->gy, s->gz};
  int i = 0;

  while (i < 2 && grid[i] <= k->max_grid[i])
    i++;
  return kiln__fail(KILN_ELIMIT,
                    i == 0 ? "let each thread process several elements"
                           : "put the longest dimension in x",
                    "%s: a grid of %u blocks in %c; the device allows %u",
                    k->name, grid[i], axes[i], k->max_grid[i]);
}

static kiln_status fail_smem(const kiln_kernel *k, uint32_t smem)
{
  return kiln__fail(
      KILN_ELIMIT, "use smaller tiles",
      "%s: %u bytes of dynamic shared memory per block; beside its %d static "
      "bytes the device allows %u",
      k->name, smem, k->info.shared_static, k->smem_limit);
}

/* Collects the addresses of the argument values for the driver. All sizes are
 * compared before the decision, so that the loop has no branch. Returns false
 * if any argument is wrong; fail_args() then determines the wrong argument. */
static inline bool collect(const kiln_kernel *k, const kiln_arg *args, size_t n,
                           void *values[KILN_MAX_PARAMS])
{
  const uint32_t *sizes = k->sizes;
  bool ok = true;

  if (UNLIKELY(n > KILN_MAX_PARAMS || (args == NULL && n > 0)))
    return false;
  if (UNLIKELY(!k->params_known)) {
    for (size_t i = 0; i < n; i++) {
      values[i] = (void *)(uintptr_t)args[i].value;
      ok &= values[i] != NULL;
    }
    return ok;
  }
  if (UNLIKELY(n != k->n_params))
    return false;
  for (size_t i = 0; i < n; i++) {
    values[i] = (void *)(uintptr_t)args[i].value;
    ok &= (args[i].size == sizes[i]) & (values[i] != NULL);
  }
  return ok;
}

static inline shape shape_of(const kiln_launch_config *c)
{
  return (shape){c->grid.x,
                 c->grid.y + (c->grid.y == 0),
                 c->grid.z + (c->grid.z == 0),
                 c->block.x,
                 c->block.y + (c->block.y == 0),
                 c->block.z + (c->block.z == 0)};
}

static inline bool block_fits(const kiln_kernel *k, const shape *s)
{
  /* If all dimensions are within their limits, each factor is below 2^16, so
   * the product does not overflow 64 bits. */
  return (s->bx != 0) & (s->bx <= k->max_block[0]) &
         (s->by <= k->max_block[1]) & (s->bz <= k->max_block[2]) &
         ((uint64_t)s->bx * s->by * s->bz <= k->max_threads);
}

static inline bool grid_fits(const kiln_kernel *k, const shape *s)
{
  return (s->gx <= k->max_grid[0]) & (s->gy <= k->max_grid[1]) &
         (s->gz <= k->max_grid[2]);
}

static kiln_status fail_cooperative(const kiln_kernel *k, const shape *s,
                                    uint32_t smem)
{
  const uint64_t wanted = (uint64_t)s->gx * s->gy * s->gz;
  int each = 0;

  k->device->driver->occupancyMaxActiveBlocksPerMultiprocessor(
      &each, k->handle, (int)(s->bx * s->by * s->bz), smem);
  return kiln__fail_native(
      KILN_ELIMIT, KILN_SOURCE_DRIVER, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
      "cuLaunchCooperativeKernel",
      "let each thread process several elements; kiln_kernel_suggest() returns "
      "the grid that fits",
      "%s: a cooperative grid of %llu blocks; %d blocks on each of %d "
      "multiprocessors make %lld that can reside at once",
      k->name, (unsigned long long)wanted, each, k->device->info.sm_count,
      (long long)each * k->device->info.sm_count);
}

/* Converts the driver's error for a launch to a status and an error record with
 * the next step. `rc` is an error code, never success. */
static kiln_status fail_launch(const kiln_kernel *k, const shape *s,
                               const kiln_launch_config *c, CUresult rc,
                               const char *call)
{
  kiln_status st;

  if (rc == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE)
    return fail_cooperative(k, s, c->smem);
  st = kiln__device_rc(k->device, rc, call);
  if (st == KILN_ELIMIT)
    kiln__error_hint(
        "%s uses blocks of %llu threads, %d registers per thread "
        "and %u bytes of dynamic shared memory: reduce one of them",
        k->name, (unsigned long long)s->bx * s->by * s->bz, k->info.registers,
        c->smem);
  return st;
}

/* ---- Launches with special features: cooperative, clusters, overlap,
 * timelines ---- */

static kiln_status check_cluster(const kiln_kernel *k, const shape *s,
                                 const kiln_dim3 *cluster)
{
  if (!k->device->traits.has_cluster ||
      k->device->driver->launchKernelEx == NULL)
    return kiln__fail(
        KILN_EUNSUPPORTED, "leave config->cluster at 0",
        "%s: clusters need a GPU of compute capability 9.0 and driver 11.8; "
        "this is %d.%d with driver %d.%d",
        k->name, k->device->traits.cc / 10, k->device->traits.cc % 10,
        k->device->driver->version / 1000,
        k->device->driver->version % 1000 / 10);
  if (s->gx % cluster->x != 0 || s->gy % cluster->y != 0 ||
      s->gz % cluster->z != 0)
    return kiln__fail(KILN_EINVAL, "round the grid up to whole clusters",
                      "%s: a grid of %u x %u x %u blocks is not a multiple of "
                      "clusters of %u x %u x %u",
                      k->name, s->gx, s->gy, s->gz, cluster->x, cluster->y,
                      cluster->z);
  return KILN_OK;
}

/* Allows clusters of more than 8 blocks. Every device with clusters runs up to
 * 8 blocks per cluster; larger clusters need an attribute of the kernel. */
static kiln_status allow_large_cluster(const kiln_kernel *k,
                                       const kiln_dim3 *cluster)
{
  enum { PORTABLE = 8, LARGEST = 16 };
  const uint64_t blocks = (uint64_t)cluster->x * cluster->y * cluster->z;

  if (blocks <= PORTABLE)
    return KILN_OK;
  if (blocks > LARGEST)
    return kiln__fail(KILN_ELIMIT, NULL,
                      "%s: clusters of %llu blocks; at most %d are possible",
                      k->name, (unsigned long long)blocks, (int)LARGEST);
  return kiln__device_rc(
      k->device,
      k->device->driver->funcSetAttribute(
          k->handle, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
      "cuFuncSetAttribute");
}

/* Calls cuLaunchKernelEx() with one attribute per feature that the launch
 * config requests. */
static kiln_status launch_ex(const kiln_kernel *k, const shape *s,
                             const kiln_launch_config *c,
                             const kiln_dim3 *cluster, bool overlap,
                             void **values)
{
  CUlaunchAttribute attributes[3] = {0};
  CUlaunchConfig config = {.gridDimX = s->gx,
                           .gridDimY = s->gy,
                           .gridDimZ = s->gz,
                           .blockDimX = s->bx,
                           .blockDimY = s->by,
                           .blockDimZ = s->bz,
                           .sharedMemBytes = c->smem,
                           .hStream = kiln_stream_handle(c->stream),
                           .attrs = attributes};
  unsigned n = 0;
  CUresult rc;

  if (c->cooperative) {
    attributes[n].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attributes[n++].value.cooperative = 1;
  }
  if (cluster->x != 0) {
    attributes[n].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[n].value.clusterDim.x = cluster->x;
    attributes[n].value.clusterDim.y = cluster->y;
    attributes[n++].value.clusterDim.z = cluster->z;
  }
  if (overlap) {
    attributes[n].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[n++].value.programmaticStreamSerializationAllowed = 1;
  }
  config.numAttrs = n;
  rc = k->device->driver->launchKernelEx(&config, k->handle, values, NULL);
  return rc == CUDA_SUCCESS ? KILN_OK
                            : fail_launch(k, s, c, rc, "cuLaunchKernelEx");
}

static kiln_status launch_plain(const kiln_kernel *k, const shape *s,
                                const kiln_launch_config *c, void **values)
{
  const CUresult rc = k->device->driver->launchKernel(
      k->handle, s->gx, s->gy, s->gz, s->bx, s->by, s->bz, c->smem,
      c->stream == NULL ? NULL : c->stream->handle, values, NULL);

  return rc == CUDA_SUCCESS ? KILN_OK
                            : fail_launch(k, s, c, rc, "cuLaunchKernel");
}

static kiln_status launch_cooperative(const kiln_kernel *k, const shape *s,
                                      const kiln_launch_config *c,
                                      void **values)
{
  const CUresult rc = k->device->driver->launchCooperativeKernel(
      k->handle, s->gx, s->gy, s->gz, s->bx, s->by, s->bz, c->smem,
      kiln_stream_handle(c->stream), values);

  return rc == CUDA_SUCCESS
             ? KILN_OK
             : fail_launch(k, s, c, rc, "cuLaunchCooperativeKernel");
}

/* Chooses the driver call for a launch with special features, and checks that
 * the device supports them. `overlap_prior` is only a hint and is ignored
 * silently if the device does not support it. */
static kiln_status choose(const kiln_kernel *k, const shape *s,
                          const kiln_launch_config *c, void **values)
{
  const kiln_device *device = k->device;
  const kiln_dim3 cluster = {c->cluster.x, c->cluster.y + (c->cluster.y == 0),
                             c->cluster.z + (c->cluster.z == 0)};
  const bool overlap = c->overlap_prior && device->traits.has_pdl &&
                       device->driver->launchKernelEx != NULL;
  kiln_status st = KILN_OK;

  if (c->cooperative && !device->info.cooperative)
    return kiln__fail(KILN_EUNSUPPORTED, "split it into several kernels",
                      "%s: this device has no cooperative launch", k->name);
  if (cluster.x != 0) {
    st = check_cluster(k, s, &cluster);
    if (st == KILN_OK)
      st = allow_large_cluster(k, &cluster);
    if (st != KILN_OK)
      return st;
  }
  if (cluster.x != 0 || overlap)
    return launch_ex(k, s, c, &cluster, overlap, values);
  return c->cooperative ? launch_cooperative(k, s, c, values)
                        : launch_plain(k, s, c, values);
}

/* Launches a kernel with special features or a timeline. The function is not
 * inlined, to keep the fast path of kiln_launch() short. */
static __attribute__((__noinline__)) kiln_status
launch_extra(const kiln_kernel *k, const shape *s, const kiln_launch_config *c,
             void **values)
{
  kiln__mark mark;
  const bool marked =
      c->stream != NULL && kiln__mark_begin(&mark, c->stream, k->name);
  const kiln_status st = choose(k, s, c, values);

  if (marked)
    kiln__mark_end(&mark, c->stream);
  return st;
}

kiln_status kiln_launch(kiln_kernel *k, const kiln_launch_config *c,
                        const kiln_arg *args, size_t n)
{
  void *values[KILN_MAX_PARAMS];
  kiln__scope scope;
  kiln_status st;
  shape s;

  if (UNLIKELY(k == NULL || c == NULL))
    return kiln__fail(KILN_EINVAL, NULL, "the kernel or config is NULL");
  if (UNLIKELY(!collect(k, args, n, values)))
    return fail_args(k, args, n);
  s = shape_of(c);
  if (UNLIKELY(!block_fits(k, &s)))
    return fail_block(k, &s);
  if (UNLIKELY(!grid_fits(k, &s)))
    return fail_grid(k, &s);
  if (UNLIKELY(c->smem > k->smem_limit))
    return fail_smem(k, c->smem);
  if (UNLIKELY(s.gx == 0))
    return kiln__fork_check(&k->device->rt->fork);

  st = kiln__enter(k->device, &scope);
  if (UNLIKELY(st != KILN_OK))
    return st;
  if (UNLIKELY(c->smem >
               atomic_load_explicit(&k->smem_opted_in, memory_order_acquire)))
    st = kiln__kernel_opt_in(k, c->smem);
  if (UNLIKELY(st != KILN_OK))
    goto done;
  if (UNLIKELY(c->cooperative | c->overlap_prior | (c->cluster.x != 0) |
               (c->stream != NULL && c->stream->timeline != NULL)))
    st = launch_extra(k, &s, c, values);
  else
    st = launch_plain(k, &s, c, values);

done:
  kiln__leave(&scope);
  return st;
}

/* Launches a kernel with a config struct of another version of Kiln. The
 * function is not inlined, since callers that were compiled against this
 * version never need it. */
static __attribute__((__noinline__)) kiln_status
launch_resized(kiln_kernel *kernel, const kiln_launch_config *config,
               const kiln_arg *args, size_t n, size_t config_size)
{
  static const kiln__sized type =
      KILN__SIZED_TYPE(kiln_launch_config, overlap_prior);
  kiln_launch_config own;
  const void *in = config;
  const kiln_status st = kiln__sized_in(&type, &in, config_size, &own);

  return st == KILN_OK ? kiln_launch(kernel, in, args, n) : st;
}

kiln_status kiln_launch_sized(kiln_kernel *kernel,
                              const kiln_launch_config *config,
                              const kiln_arg *args, size_t n,
                              size_t config_size)
{
  return UNLIKELY(config_size != sizeof *config)
             ? launch_resized(kernel, config, args, n, config_size)
             : kiln_launch(kernel, config, args, n);
}

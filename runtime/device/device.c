/* device.c -- opens a GPU and describes it (kiln/device.h). These functions
 * need no context; context.c creates the context when a call first needs one.
 */
#include "device.h"

#include <limits.h>
#include <string.h>

/* Reads a device attribute. Returns false and leaves *out unchanged if that
 * fails. */
static bool attribute(const kiln__driver *driver, CUdevice device, int number,
                      int *out)
{
  int value = 0;

  if (driver->deviceGetAttribute(&value, (CUdevice_attribute)number, device) !=
      CUDA_SUCCESS)
    return false; /* older drivers do not have this device attribute */
  *out = value;
  return true;
}

static bool flag(const kiln__driver *driver, CUdevice device, int number)
{
  int value = 0;

  return attribute(driver, device, number, &value) && value != 0;
}

/* Replaces the limits of the traits table by the limits that the driver reports
 * for this GPU. */
static void read_traits(const kiln__driver *driver, CUdevice handle,
                        kiln_traits *t)
{
  const struct {
    int number;
    int *to;
  } rows[] = {
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &t->max_threads_per_block},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
       &t->max_threads_per_sm},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR,
       &t->max_blocks_per_sm},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, &t->warp_size},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, &t->regs_per_block},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, &t->regs_per_sm},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, &t->smem_per_block},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
       &t->smem_per_sm},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
       &t->smem_per_block_optin},
      {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK,
       &t->smem_reserved_per_block},
  };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    int value = 0;

    if (attribute(driver, handle, rows[i].number, &value) && value > 0)
      *rows[i].to = value;
  }
  if (t->smem_per_block_optin < t->smem_per_block)
    t->smem_per_block_optin = t->smem_per_block;
  if (t->warp_size > 0)
    t->max_warps_per_sm = t->max_threads_per_sm / t->warp_size;
}

static void read_limits(const kiln__driver *driver, CUdevice handle,
                        kiln_device_info *info)
{
  const struct {
    int number;
    int *to;
  } rows[] = {
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &info->sm_count},
      {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &info->clock_khz},
      {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &info->memory_clock_khz},
      {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &info->memory_bus_bits},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &info->l2_bytes},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, &info->max_grid[0]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, &info->max_grid[1]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, &info->max_grid[2]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &info->max_block[0]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, &info->max_block[1]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &info->max_block[2]},
      {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, &info->copy_engines},
  };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    attribute(driver, handle, rows[i].number, rows[i].to);
}

_Static_assert(sizeof((kiln_device_info *)0)->uuid > 4 + 36,
               "a UUID with its prefix and NUL");

/* Reads the UUID in the form "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx". */
static void read_uuid(const kiln__driver *driver, CUdevice handle,
                      kiln_device_info *info)
{
  static const char digits[] = "0123456789abcdef";
  CUuuid uuid;
  char *p = info->uuid;

  if (driver->deviceGetUuid == NULL ||
      driver->deviceGetUuid(&uuid, handle) != CUDA_SUCCESS)
    return;
  kiln__copy_text(p, sizeof info->uuid, info->mig ? "MIG-" : "GPU-");
  p += 4;
  for (size_t i = 0; i < sizeof uuid.bytes; i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10)
      *p++ = '-';
    *p++ = digits[(unsigned char)uuid.bytes[i] >> 4];
    *p++ = digits[(unsigned char)uuid.bytes[i] & 15];
  }
  *p = '\0';
}

static void read_pci(const kiln__driver *driver, CUdevice handle,
                     kiln_device_info *info)
{
  int domain = 0, bus = 0, slot = 0;

  attribute(driver, handle, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, &domain);
  if (attribute(driver, handle, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, &bus) &&
      attribute(driver, handle, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, &slot))
    kiln__format(info->pci, sizeof info->pci, "%04x:%02x:%02x.0",
                 (unsigned)domain & 0xffffu, (unsigned)bus & 0xffu,
                 (unsigned)slot & 0xffu);
}

static kiln_status read_info(kiln_device *device, int ordinal)
{
  const kiln__driver *driver = device->driver;
  const CUdevice handle = device->handle;
  kiln_device_info *info = &device->info;
  kiln_status st = KILN_OK;
  size_t bytes = 0;
  int major = 0, minor = 0;

  if (!attribute(driver, handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                 &major) ||
      !attribute(driver, handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                 &minor))
    KILN_TRY(kiln__fail(KILN_EDRIVER, NULL,
                        "the driver does not report the compute capability of "
                        "device %d",
                        ordinal));
  KILN_TRY(kiln_arch_traits(major * 10 + minor, &device->traits));
  read_traits(driver, handle, &device->traits);

  *info = (kiln_device_info){.ordinal = ordinal,
                             .max_grid = {INT_MAX, 65535, 65535},
                             .max_block = {1024, 1024, 64}};
  KILN_TRY(kiln__cu(
      driver, driver->deviceGetName(info->name, sizeof info->name - 1, handle),
      "cuDeviceGetName"));
  KILN_TRY(kiln__cu(driver, driver->deviceTotalMem(&bytes, handle),
                    "cuDeviceTotalMem_v2"));
  info->memory_bytes = bytes;
  info->mig = strstr(info->name, "MIG ") != NULL;
  read_limits(driver, handle, info);
  read_uuid(driver, handle, info);
  read_pci(driver, handle, info);
  info->concurrent_kernels =
      flag(driver, handle, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS);
  info->memory_pools =
      flag(driver, handle, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) &&
      driver->memAllocAsync != NULL && driver->memFreeAsync != NULL;
  info->unified_addressing =
      flag(driver, handle, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
  info->cooperative =
      flag(driver, handle, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
  info->ecc = flag(driver, handle, CU_DEVICE_ATTRIBUTE_ECC_ENABLED);

done:
  return st;
}

/* Uses the caller's context, or the context that is current in this thread, and
 * finds the device of that context. */
static kiln_status adopt(kiln_device *device, CUcontext foreign,
                         CUdevice *handle)
{
  const kiln__driver *driver = device->driver;
  CUcontext popped;
  CUresult rc;

  if (foreign == NULL) {
    rc = driver->ctxGetCurrent(&foreign);
    if (rc != CUDA_SUCCESS)
      return kiln__cu(driver, rc, "cuCtxGetCurrent");
  }
  if (foreign == NULL)
    return kiln__fail(KILN_EINVAL,
                      "make one current, or set kiln_device_opts.foreign",
                      "no context is current in this thread");
  rc = driver->ctxPushCurrent(foreign);
  if (rc != CUDA_SUCCESS)
    return kiln__cu(driver, rc, "cuCtxPushCurrent_v2");
  rc = driver->ctxGetDevice(handle);
  if (rc == CUDA_SUCCESS && driver->ctxGetId != NULL) {
    unsigned long long id = 0;

    if (driver->ctxGetId(foreign, &id) == CUDA_SUCCESS)
      device->context_id = id;
  }
  driver->ctxPopCurrent(&popped);
  if (rc != CUDA_SUCCESS)
    return kiln__cu(driver, rc, "cuCtxGetDevice");
  atomic_store(&device->context, foreign);
  return KILN_OK;
}

/* Finds the ordinal of a device among the visible devices. */
static kiln_status find_ordinal(const kiln__driver *driver, CUdevice handle,
                                int count, int *ordinal)
{
  for (int i = 0; i < count; i++) {
    CUdevice other;

    if (driver->deviceGet(&other, i) == CUDA_SUCCESS && other == handle) {
      *ordinal = i;
      return KILN_OK;
    }
  }
  return kiln__fail(KILN_ENODEVICE, NULL,
                    "the context is on a device that this process cannot see");
}

/* Sets the driver's device handle in device->handle. If the context is foreign,
 * also sets *ordinal. */
static kiln_status select_device(kiln_device *device, int *ordinal,
                                 CUcontext foreign)
{
  const kiln__driver *driver = device->driver;
  kiln_status st = KILN_OK;
  int count = 0, actual = *ordinal;

  KILN_TRY(
      kiln__cu(driver, driver->deviceGetCount(&count), "cuDeviceGetCount"));
  if (device->kind == KILN_CONTEXT_FOREIGN) {
    KILN_TRY(adopt(device, foreign, &device->handle));
    KILN_TRY(find_ordinal(driver, device->handle, count, &actual));
    if (*ordinal != -1 && *ordinal != actual)
      KILN_TRY(kiln__fail(KILN_EINVAL, "pass that number, or -1",
                          "the context belongs to device %d, not %d", actual,
                          *ordinal));
    *ordinal = actual;
    goto done;
  }
  if (*ordinal < 0 || *ordinal >= count)
    KILN_TRY(kiln__fail(
        KILN_ENODEVICE, "check CUDA_VISIBLE_DEVICES and nvidia-smi",
        "there is no device %d: %d visible to this process", *ordinal, count));
  KILN_TRY(kiln__cu(driver, driver->deviceGet(&device->handle, *ordinal),
                    "cuDeviceGet"));

done:
  return st;
}

kiln_status kiln_device_count(kiln_runtime *rt, int *out)
{
  const kiln__driver *driver;
  kiln_status st;

  if (rt == NULL || out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "rt or out is NULL");
  *out = 0;
  st = kiln__runtime_driver(rt, &driver);
  if (st == KILN_ENODEVICE)
    return KILN_OK; /* a count of 0 GPUs is a result and not a failure */
  if (st != KILN_OK)
    return st;
  st = kiln__cu(driver, driver->deviceGetCount(out), "cuDeviceGetCount");
  if (st != KILN_OK)
    *out = 0;
  return st;
}

kiln_status kiln_device_open(kiln_device **out, kiln_runtime *rt, int ordinal,
                             const kiln_device_opts *opts)
{
  static const kiln_device_opts defaults;
  kiln_status st = KILN_OK;
  kiln_device *device = NULL;
  const kiln__driver *driver;

  if (out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out is NULL");
  *out = NULL;
  if (opts == NULL)
    opts = &defaults;
  if (rt == NULL || (unsigned)opts->context > KILN_CONTEXT_FOREIGN)
    return kiln__fail(KILN_EINVAL, NULL,
                      "rt is NULL or opts->context is no context kind");
  KILN_TRY(kiln__runtime_driver(rt, &driver));
  device = kiln__calloc(&rt->alloc, 1, sizeof *device);
  if (device == NULL)
    return kiln__fail_memory("a device");
  device->rt = rt;
  device->driver = driver;
  device->kind = opts->context;
  device->context_flags = opts->context_flags;
  pthread_mutex_init(&device->lock, NULL);
  KILN_TRY(select_device(device, &ordinal, opts->foreign));
  KILN_TRY(read_info(device, ordinal));
  *out = device;
  device = NULL;

done:
  kiln_device_free(device);
  return st;
}

/* ---- Memory pool --------------------------------------------------------- */

/* Creates the device's own pool, or returns NULL. A library must not change the
 * release threshold of the default pool, which belongs to the program. */
static CUmemoryPool make_pool(const kiln_device *device)
{
  const kiln__driver *driver = device->driver;
  const CUmemPoolProps props = {
      .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
      .location = {CU_MEM_LOCATION_TYPE_DEVICE, device->handle}};
  uint64_t kept = 64 << 20;
  CUmemoryPool pool = NULL;
  kiln__relaxed relaxed;

  if (!device->info.memory_pools || driver->memAllocFromPoolAsync == NULL)
    return NULL;
  kiln__relax(driver, &relaxed);
  if (driver->memPoolCreate(&pool, &props) != CUDA_SUCCESS ||
      driver->memPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                                  &kept) != CUDA_SUCCESS) {
    /* Without the threshold the pool is no better than the default one. */
    if (pool != NULL)
      driver->memPoolDestroy(pool);
    pool = NULL;
  }
  kiln__unrelax(&relaxed);
  return pool;
}

CUmemoryPool kiln__device_pool(kiln_device *device)
{
  CUmemoryPool pool;

  pthread_mutex_lock(&device->lock);
  if (!device->pool_tried)
    device->pool = make_pool(device);
  device->pool_tried = true;
  pool = device->pool;
  pthread_mutex_unlock(&device->lock);
  return pool;
}

/* Destroys the device's own pool. The driver keeps it until memory that a
 * stream still uses is freed. */
static void release_pool(kiln_device *device)
{
  kiln__scope scope;

  if (device->pool == NULL || !kiln__enter_to_free(device, &scope))
    return;
  device->driver->memPoolDestroy(device->pool);
  kiln__leave(&scope);
}

/* Releases the device's context. A foreign context is left to its owner. In a
 * forked child nothing is released, since the driver must not be called there.
 */
static void release_context(kiln_device *device)
{
  const CUcontext context = atomic_load(&device->context);

  if (context == NULL || kiln__forked(&device->rt->fork))
    return;
  if (device->kind == KILN_CONTEXT_PRIMARY)
    device->driver->devicePrimaryCtxRelease(device->handle);
  else if (device->kind == KILN_CONTEXT_OWN &&
           kiln__context_alive(device, context))
    device->driver->ctxDestroy(context);
}

void kiln_device_free(kiln_device *device)
{
  if (device == NULL)
    return;
  if (device->ops_free != NULL)
    device->ops_free(device);
  if (device->tuned_free != NULL)
    device->tuned_free(device);
  kiln__free(&device->rt->alloc, device->body_user);
  release_pool(device);
  release_context(device);
  pthread_mutex_destroy(&device->lock);
  kiln__free(&device->rt->alloc, device);
}

const kiln_traits *kiln_device_traits(const kiln_device *device)
{
  return device == NULL ? NULL : &device->traits;
}

kiln_runtime *kiln_device_runtime(const kiln_device *device)
{
  return device == NULL ? NULL : device->rt;
}

kiln_status kiln_device_describe(const kiln_device *device,
                                 kiln_device_info *out)
{
  if (device == NULL || out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "device or out is NULL");
  *out = device->info;
  return KILN_OK;
}

kiln_status kiln_device_attribute(const kiln_device *device, int number,
                                  int *out)
{
  kiln_status st;

  if (out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out is NULL");
  *out = 0;
  if (device == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "device is NULL");
  st = kiln__fork_check(&device->rt->fork);
  if (st != KILN_OK)
    return st;
  return kiln__cu(device->driver,
                  device->driver->deviceGetAttribute(
                      out, (CUdevice_attribute)number, device->handle),
                  "cuDeviceGetAttribute");
}

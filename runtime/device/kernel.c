/* kernel.c -- the kernels of a module. When a kernel is looked up, it records
 * everything that a launch checks: parameter sizes, and the limits of the grid,
 * the block and shared memory.
 *
 * The parameter sizes come from the driver (cuFuncGetParamInfo, 12.4 and
 * later), or else from the .param lines of the PTX. If neither is available,
 * the kernel is launched without a check of its arguments. */
#include "device.h"

#include "../program/program.h"

#include <string.h>

enum { LINE = 64 }; /* size of a cache line in bytes */

_Static_assert(offsetof(struct kiln_kernel, module) <= LINE,
               "what a launch reads fits one cache line");

/* Reads the parameter sizes from the driver. Returns false if they cannot be
 * determined. The driver does not report the number of parameters. If the PTX
 * does not give the number either (`number` is SIZE_MAX), the loop ends when
 * the driver refuses an index. Debugging tools report that refusal as an
 * error. */
static bool params_by_driver(const kiln__driver *driver, CUfunction function,
                             size_t number, uint32_t sizes[KILN_MAX_PARAMS],
                             size_t *n)
{
  size_t i;

  if (driver->funcGetParamInfo == NULL)
    return false;
  for (i = 0; i < number && i <= KILN_MAX_PARAMS; i++) {
    size_t offset, size;
    const CUresult rc = driver->funcGetParamInfo(function, i, &offset, &size);

    if (rc == CUDA_ERROR_INVALID_VALUE)
      break; /* the kernel has no parameter with this index */
    if (rc != CUDA_SUCCESS || i == KILN_MAX_PARAMS)
      return false;
    sizes[i] = (uint32_t)size;
  }
  *n = i;
  return true;
}

static const char *module_ptx(const kiln_module *m, size_t *size)
{
  if (m->image != NULL)
    return kiln_image_ptx(m->image, size);
  *size = m->ptx == NULL ? 0 : strlen(m->ptx);
  return m->ptx;
}

static bool params_by_ptx(const kiln_module *m, const char *lowered,
                          uint32_t sizes[KILN_MAX_PARAMS], size_t *n)
{
  size_t size;
  const char *ptx = module_ptx(m, &size);

  return ptx != NULL &&
         kiln__image_ptx_params(ptx, size, lowered, sizes, KILN_MAX_PARAMS,
                                n) &&
         *n <= KILN_MAX_PARAMS;
}

static bool find_params(const kiln_module *m, CUfunction function,
                        const char *lowered, uint32_t sizes[KILN_MAX_PARAMS],
                        size_t *n)
{
  const bool in_ptx = params_by_ptx(m, lowered, sizes, n);

  return params_by_driver(m->device->driver, function, in_ptx ? *n : SIZE_MAX,
                          sizes, n) ||
         in_ptx;
}

static kiln_status read_attributes(kiln_kernel *k, int *dynamic)
{
  const kiln__driver *driver = k->device->driver;
  const struct {
    int number;
    int *to;
  } rows[] = {
      {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &k->info.max_threads},
      {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &k->info.shared_static},
      {CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, &k->info.constant},
      {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &k->info.local},
      {CU_FUNC_ATTRIBUTE_NUM_REGS, &k->info.registers},
      {CU_FUNC_ATTRIBUTE_PTX_VERSION, &k->info.ptx_version},
      {CU_FUNC_ATTRIBUTE_BINARY_VERSION, &k->info.binary_version},
      {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, dynamic},
  };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const CUresult rc =
        driver->funcGetAttribute(rows[i].to, rows[i].number, k->handle);

    if (rc != CUDA_SUCCESS)
      return kiln__device_rc(k->device, rc, "cuFuncGetAttribute");
  }
  return KILN_OK;
}

static uint32_t at_least_0(int value)
{
  return value < 0 ? 0 : (uint32_t)value;
}

static uint16_t narrow(int value)
{
  return value < 0 ? 0 : value > UINT16_MAX ? UINT16_MAX : (uint16_t)value;
}

/* Stores the launch limits in integer types that a launch can compare without
 * conversion. */
static void set_limits(kiln_kernel *k, int dynamic)
{
  const kiln_device *device = k->device;

  k->max_threads = narrow(k->info.max_threads);
  k->smem_limit =
      at_least_0(device->traits.smem_per_block_optin - k->info.shared_static);
  atomic_init(&k->smem_opted_in, at_least_0(dynamic));
  for (int i = 0; i < 3; i++) {
    k->max_grid[i] = at_least_0(device->info.max_grid[i]);
    k->max_block[i] = narrow(device->info.max_block[i]);
  }
}

/* Allocates one block of memory for the kernel's struct, which is aligned to a
 * cache line, and for the parameter sizes and the name. */
static kiln_kernel *allocate(const kiln_allocator *a, const char *name,
                             const uint32_t *sizes, size_t n)
{
  const size_t length = strlen(name) + 1;
  const size_t bytes = sizeof(kiln_kernel) + n * sizeof *sizes + length;
  char *block = kiln__calloc(a, 1, bytes + LINE);
  kiln_kernel *k;
  uint32_t *own;

  if (block == NULL)
    return NULL;
  k = (kiln_kernel *)(void *)(block + (LINE - (uintptr_t)block % LINE) % LINE);
  own = (uint32_t *)(void *)(k + 1);
  if (n > 0)
    memcpy(own, sizes, n * sizeof *sizes);
  k->block = block;
  k->sizes = own;
  k->name = (char *)(own + n);
  memcpy(k->name, name, length);
  return k;
}

/* Creates a kernel. Call it between kiln__enter() and kiln__leave(), with the
 * module's lock held. */
static kiln_status make(kiln_kernel **out, kiln_module *m, CUfunction handle,
                        const char *lowered)
{
  const kiln_allocator *a = &m->device->rt->alloc;
  uint32_t sizes[KILN_MAX_PARAMS];
  kiln_status st = KILN_OK;
  kiln_kernel *k;
  size_t n = 0;
  int dynamic = 0;
  const bool known = find_params(m, handle, lowered, sizes, &n);

  k = allocate(a, lowered, sizes, known ? n : 0);
  if (k == NULL)
    return kiln__fail_memory("a kernel");
  k->handle = handle;
  k->device = m->device;
  k->module = m;
  k->params_known = known;
  k->n_params = (uint16_t)(known ? n : 0);
  KILN_TRY(read_attributes(k, &dynamic));
  set_limits(k, dynamic);
  k->info.name = k->name;
  k->info.params_known = known;
  k->info.n_params = k->n_params;
  k->info.sizes = k->sizes;
  *out = k;
  k = NULL;

done:
  if (k != NULL)
    kiln__free(a, k->block);
  return st;
}

/* Writes the names of the module's kernels, such as "saxpy, scale<float>, ...".
 */
static void list_kernels(const kiln_module *m, char *buf, size_t size)
{
  kiln__image_ptx_entry entry;
  size_t at = 0, used = 0, length;
  const char *ptx = module_ptx(m, &length);

  buf[0] = '\0';
  while (ptx != NULL && kiln__image_ptx_next(ptx, length, &at, &entry) &&
         used + 8 < size) {
    kiln__format(buf + used, size - used, "%s%.*s", used > 0 ? ", " : "",
                 (int)entry.name_size, entry.name);
    used = strlen(buf);
  }
}

static kiln_status not_found(const kiln_module *m, CUresult rc,
                             const char *name)
{
  char names[512];

  list_kernels(m, names, sizeof names);
  return kiln__fail_native(
      KILN_ENOTFOUND, KILN_SOURCE_DRIVER, rc, "cuModuleGetFunction",
      "declare the kernel extern \"C\", or add its name expression to "
      "kiln_program_desc.names",
      "the module has no kernel \"%s\"%s%s", name,
      names[0] != '\0' ? "; it has " : "", names);
}

static kiln_kernel *find(const kiln_module *m, const char *lowered)
{
  kiln_kernel *k = m->kernels;

  while (k != NULL && strcmp(k->name, lowered) != 0)
    k = k->next;
  return k;
}

/* Finds a kernel in the module's list, or asks the driver for it and adds it to
 * the list. The driver may load code on the first use of a function. Call it
 * between kiln__enter() and kiln__leave(). */
static kiln_status look_up(kiln_kernel **out, kiln_module *m, const char *name,
                           const char *lowered)
{
  kiln_status st = KILN_OK;
  CUfunction handle;
  CUresult rc;

  pthread_mutex_lock(&m->lock);
  *out = find(m, lowered);
  if (*out != NULL)
    goto done;
  rc = m->device->driver->moduleGetFunction(&handle, m->handle, lowered);
  if (rc == CUDA_ERROR_NOT_FOUND)
    KILN_TRY(not_found(m, rc, name));
  KILN_TRY(kiln__device_rc(m->device, rc, "cuModuleGetFunction"));
  KILN_TRY(make(out, m, handle, lowered));
  (*out)->next = m->kernels;
  m->kernels = *out;

done:
  pthread_mutex_unlock(&m->lock);
  return st;
}

kiln_status kiln_module_kernel(kiln_kernel **out, kiln_module *module,
                               const char *name)
{
  const char *lowered = NULL;
  kiln__relaxed relaxed;
  kiln__scope scope;
  kiln_status st;

  if (out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out is NULL");
  *out = NULL;
  if (module == NULL || name == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "the module or name is NULL");
  st = kiln__enter(module->device, &scope);
  if (st != KILN_OK)
    return st;
  if (module->image != NULL)
    lowered = kiln_image_lowered(module->image, name);
  kiln__relax(module->device->driver, &relaxed);
  st = look_up(out, module, name, lowered != NULL ? lowered : name);
  kiln__unrelax(&relaxed);
  kiln__leave(&scope);
  return st;
}

kiln_status kiln__kernel_opt_in(kiln_kernel *k, size_t smem)
{
  CUresult rc;

  if (smem <= atomic_load_explicit(&k->smem_opted_in, memory_order_acquire))
    return KILN_OK;
  rc = k->device->driver->funcSetAttribute(
      k->handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
      (int)k->smem_limit);
  if (rc == CUDA_SUCCESS)
    atomic_store_explicit(&k->smem_opted_in, k->smem_limit,
                          memory_order_release);
  return kiln__device_rc(k->device, rc, "cuFuncSetAttribute");
}

kiln_status kiln_kernel_describe(const kiln_kernel *kernel,
                                 kiln_kernel_info *out)
{
  if (kernel == NULL || out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "the kernel or out is NULL");
  *out = kernel->info;
  return KILN_OK;
}

CUfunction kiln_kernel_handle(const kiln_kernel *kernel)
{
  return kernel == NULL ? NULL : kernel->handle;
}

kiln_module *kiln_kernel_module(const kiln_kernel *kernel)
{
  return kernel == NULL ? NULL : kernel->module;
}

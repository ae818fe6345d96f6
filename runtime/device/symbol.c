/* symbol.c -- the global variables of a module: kiln_module_symbol(), and
 * copies from and to variables. */
#include "device.h"

#include "../program/program.h"

static kiln_status find(kiln_module *module, const char *name,
                        CUdeviceptr *address, size_t *size)
{
  const char *lowered = NULL;
  kiln__relaxed relaxed;
  kiln__scope scope;
  kiln_status st = kiln__enter(module->device, &scope);
  CUresult rc;

  if (st != KILN_OK)
    return st;
  if (module->image != NULL)
    lowered = kiln_image_lowered(module->image, name);
  kiln__relax(module->device->driver, &relaxed);
  rc = module->device->driver->moduleGetGlobal(
      address, size, module->handle, lowered != NULL ? lowered : name);
  kiln__unrelax(&relaxed);
  if (rc == CUDA_ERROR_NOT_FOUND)
    st = kiln__fail_native(KILN_ENOTFOUND, KILN_SOURCE_DRIVER, rc,
                           "cuModuleGetGlobal_v2",
                           "declare it extern \"C\", or add \"&name\" to the "
                           "program's name expressions and use that name",
                           "the module has no variable \"%s\"", name);
  else
    st = kiln__device_rc(module->device, rc, "cuModuleGetGlobal_v2");
  kiln__leave(&scope);
  return st;
}

kiln_status kiln_module_symbol(kiln_module *module, const char *name,
                               CUdeviceptr *address, size_t *size)
{
  CUdeviceptr found = 0;
  size_t bytes = 0;
  kiln_status st;

  if (address != NULL)
    *address = 0;
  if (size != NULL)
    *size = 0;
  if (module == NULL || name == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "the module or name is NULL");
  st = find(module, name, &found, &bytes);
  if (st != KILN_OK)
    return st;
  if (address != NULL)
    *address = found;
  if (size != NULL)
    *size = bytes;
  return KILN_OK;
}

/* Finds the device address of `size` bytes of a global variable, beginning at
 * byte `offset`. */
static kiln_status locate(kiln_module *module, const char *name, size_t offset,
                          size_t size, CUdeviceptr *out)
{
  size_t bytes;
  const kiln_status st = kiln_module_symbol(module, name, out, &bytes);

  if (st != KILN_OK)
    return st;
  if (offset > bytes || size > bytes - offset)
    return kiln__fail(KILN_EINVAL, NULL,
                      "%zu bytes at offset %zu exceed \"%s\", which has %zu "
                      "bytes",
                      size, offset, name, bytes);
  *out += offset;
  return KILN_OK;
}

kiln_status kiln_symbol_write(kiln_module *module, const char *name,
                              size_t offset, const void *src, size_t size)
{
  CUdeviceptr at;
  const kiln_status st = locate(module, name, offset, size, &at);

  if (st != KILN_OK)
    return st;
  return kiln_copy_to_device(module->device, at, src, size);
}

kiln_status kiln_symbol_read(kiln_module *module, const char *name,
                             size_t offset, void *dst, size_t size)
{
  CUdeviceptr at;
  const kiln_status st = locate(module, name, offset, size, &at);

  if (st != KILN_OK)
    return st;
  return kiln_copy_to_host(module->device, dst, at, size);
}

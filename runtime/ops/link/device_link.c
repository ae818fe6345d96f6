/* device_link.c -- links relocatable code for a device.
 *
 * nvJitLink is used if it was found and is not older than the compiler, since
 * it needs no context and its first link is fast. Otherwise the driver links,
 * which also serves PTX and the CPU device. The first link of a driver loads
 * its JIT library, which takes about 30 ms. */
#include "link.h"

#include <string.h>

/* Returns nvJitLink if it can link machine code of this compiler, or NULL. A
 * linker reads code of its own CUDA major version only. */
static kiln__nvjitlink *usable_linker(kiln_runtime *rt, int nvrtc)
{
  kiln__nvjitlink *link = NULL;
  int version;

  if (kiln__runtime_link(rt, &link) != KILN_OK || link == NULL)
    return NULL;
  version = kiln__nvjitlink_version(link);
  return version / 1000 == nvrtc / 1000 && version >= nvrtc ? link : NULL;
}

void kiln__device_prepare_link(void *device, const kiln__image_request *req)
{
  const kiln_device *const d = device;
  kiln__nvjitlink *link;

  if (!req->target.ptx && !d->driver->ptx_only)
    (void)kiln__runtime_link(d->rt, &link);
}

static kiln_status fail_link(kiln_device *device, CUresult rc, const char *call,
                             const char *log)
{
  const kiln_status st = kiln__device_rc(device, rc, call);

  kiln__error_log(log, strlen(log));
  return st;
}

/* Links with the driver. Call it between kiln__enter() and kiln__leave(). */
static kiln_status link_inside(kiln_device *device,
                               const kiln__object objects[2], kiln__buf *out)
{
  const kiln__driver *driver = device->driver;
  char log[KILN_ERROR_LOG_SIZE] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
  const char *call = "cuLinkCreate";
  CUlinkState state = NULL;
  void *code = NULL;
  size_t size = 0;
  CUresult rc = driver->linkCreate(2, options, values, &state);

  for (size_t i = 0; i < 2 && rc == CUDA_SUCCESS; i++) {
    const kiln__object *o = &objects[i];

    call = "cuLinkAddData";
    rc = driver->linkAddData(
        state, o->ptx ? CU_JIT_INPUT_PTX : CU_JIT_INPUT_CUBIN,
        (void *)(uintptr_t)o->data, o->size + o->ptx, o->name, 0, NULL, NULL);
  }
  if (rc == CUDA_SUCCESS) {
    call = "cuLinkComplete";
    rc = driver->linkComplete(state, &code, &size);
  }
  if (rc == CUDA_SUCCESS)
    kiln__buf_add(out, code, size); /* the link state owns `code` */
  if (state != NULL)
    driver->linkDestroy(state);
  return rc == CUDA_SUCCESS ? KILN_OK : fail_link(device, rc, call, log);
}

static kiln_status link_by_driver(kiln_device *device,
                                  const kiln__object objects[2], kiln__buf *out)
{
  const kiln__driver *driver = device->driver;
  kiln__relaxed relaxed;
  kiln__scope scope;
  kiln_status st;

  if (driver->linkCreate == NULL || driver->linkAddData == NULL ||
      driver->linkComplete == NULL || driver->linkDestroy == NULL)
    return kiln__fail(KILN_EUNSUPPORTED, "install nvJitLink",
                      "this driver cannot link");
  st = kiln__enter(device, &scope);
  if (st != KILN_OK)
    return st;
  kiln__relax(driver, &relaxed);
  st = link_inside(device, objects, out);
  kiln__unrelax(&relaxed);
  kiln__leave(&scope);
  return st;
}

kiln_status kiln__device_link(void *device, const kiln__object objects[2],
                              const kiln_target *target, int nvrtc,
                              kiln__buf *out)
{
  kiln_device *const d = device;
  const void *const code[] = {objects[0].data, objects[1].data};
  const size_t size[] = {objects[0].size, objects[1].size};
  kiln__nvjitlink *link = NULL;
  char arch[24];

  if (!target->ptx && !d->driver->ptx_only)
    link = usable_linker(d->rt, nvrtc);
  if (link == NULL)
    return link_by_driver(d, objects, out);
  return kiln__nvjitlink_link(link, code, size, 2,
                              kiln_target_text(target, arch), out);
}

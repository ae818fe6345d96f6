/* module.c -- loads programs into a context.
 *
 * kiln_module_load() first chooses a rung of the compatibility ladder, which is
 * a way to get code for the GPU. The function then compiles on a compile thread
 * while the calling thread creates the context, and loads the image. If the
 * driver refuses an image, the next attempts are, in this order:
 *   1. remove the image from the cache and compile it again, since it may be
 *     damaged or made for another driver;
 *   2. load the image's PTX, which the driver assembles itself;
 *   3. report an error that names both refusals. */
#include "device.h"

#include "../program/program.h"

#include <stdio.h>
#include <string.h>

/* Buffer for the messages of the driver's PTX assembler. */
typedef struct jit_log {
  char text[KILN_ERROR_LOG_SIZE];
} jit_log;

/* Returns true if the failure is caused by the image rather than by the device
 * or the context. Another image may load in that case. */
static bool refused(CUresult rc)
{
  switch (rc) {
  case CUDA_ERROR_INVALID_IMAGE:
  case CUDA_ERROR_NO_BINARY_FOR_GPU:
  case CUDA_ERROR_INVALID_PTX:
  case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
  case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
  case CUDA_ERROR_JIT_COMPILATION_DISABLED:
  case CUDA_ERROR_INVALID_SOURCE:
  case CUDA_ERROR_FILE_NOT_FOUND:
  case CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND:
    return true;
  default:
    return false;
  }
}

static const char *rc_name(const kiln__driver *driver, CUresult rc,
                           char buf[48])
{
  const char *name = NULL;

  if (driver->getErrorName != NULL &&
      driver->getErrorName(rc, &name) == CUDA_SUCCESS && name != NULL)
    kiln__format(buf, 48, "%s (%d)", name, rc);
  else
    kiln__format(buf, 48, "error %d", rc);
  return buf;
}

/* Loads one image. After KILN_OK, *rc is success or the driver's refusal of the
 * image. Other failures are returned as a status. */
static kiln_status load_data(kiln_module *m, const void *data, CUresult *rc,
                             jit_log *log)
{
  const kiln__driver *driver = m->device->driver;
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log->text, (void *)(uintptr_t)(sizeof log->text - 1)};
  kiln__relaxed relaxed;
  kiln__scope scope;
  kiln_status st = kiln__enter(m->device, &scope);

  if (st != KILN_OK)
    return st;
  memset(log->text, 0, sizeof log->text);
  kiln__relax(driver, &relaxed);
  *rc = driver->moduleLoadDataEx(&m->handle, data, 2, options, values);
  kiln__unrelax(&relaxed);
  if (*rc != CUDA_SUCCESS)
    m->handle = NULL;
  if (*rc != CUDA_SUCCESS && !refused(*rc))
    st = kiln__device_rc(m->device, *rc, "cuModuleLoadDataEx");
  kiln__leave(&scope);
  return st;
}

/* Returns the code to load: machine code if the image has it, otherwise PTX. If
 * an image from a pack was chosen for its PTX, the machine code in it is for
 * another GPU, so the PTX is returned. */
static const void *best_data(const kiln_module *m)
{
  const void *cubin = kiln_image_cubin(m->image, NULL);
  const bool only_ptx =
      m->ladder.rung == KILN_RUNG_PACK && m->ladder.target.ptx;

  return cubin != NULL && !only_ptx ? cubin : kiln_image_ptx(m->image, NULL);
}

/* Compiles a refused image again. If that is not possible (no NVRTC), the old
 * image is kept, since its PTX may still load. */
static void rebuild(kiln_module *m, const kiln_program_desc *desc,
                    const kiln__image_request *req)
{
  kiln_runtime *rt = m->device->rt;
  kiln_program_desc again = *desc;
  kiln_image *fresh;

  again.refresh = true;
  if (kiln__image_make(&fresh, rt, &again, &m->device->traits, req) !=
      KILN_OK) {
    kiln__logf(&rt->log, KILN_LOG_WARNING,
               "could not rebuild an image that the driver refused: %s",
               kiln_last_error()->message);
    return;
  }
  kiln_image_free(m->image);
  m->image = fresh;
}

static kiln_status refuse(kiln_module *m, CUresult first, CUresult last,
                          bool tried_ptx, const jit_log *log)
{
  const kiln__driver *driver = m->device->driver;
  const bool binary = best_data(m) != kiln_image_ptx(m->image, NULL);
  const kiln_target target = kiln_image_target(m->image);
  char a[48], b[48], text[24];
  kiln_status st;

  kiln_target_text(&target, text);
  if (binary && tried_ptx)
    st = kiln__fail_native(
        KILN_EDRIVER, KILN_SOURCE_DRIVER, last, "cuModuleLoadDataEx",
        "run `kiln doctor`: it shows which NVRTC fits this driver and GPU",
        "%s refuses both the machine code for %s (%s) and the PTX (%s)",
        m->device->info.name, text, rc_name(driver, first, a),
        rc_name(driver, last, b));
  else
    st = kiln__fail_native(
        KILN_EDRIVER, KILN_SOURCE_DRIVER, last, "cuModuleLoadDataEx",
        "run `kiln doctor`: it shows which NVRTC fits this driver and GPU",
        "%s refuses the %s for %s: %s", m->device->info.name,
        binary ? "machine code" : "PTX", text, rc_name(driver, last, a));
  kiln__error_log(log->text, strnlen(log->text, sizeof log->text - 1));
  return st;
}

/* Records in the ladder result (the explanation for the user) that the PTX was
 * loaded, and why. */
static void note_ptx(kiln_module *m, CUresult rc)
{
  kiln_ladder_result *ladder = &m->ladder;
  char buf[48];

  kiln__format(ladder->reason[ladder->rung], KILN_REASON_SIZE,
               "the driver refused the image: %s",
               rc_name(m->device->driver, rc, buf));
  ladder->rung = KILN_RUNG_PTX;
  ladder->target.ptx = true;
  kiln__format(ladder->reason[KILN_RUNG_PTX], KILN_REASON_SIZE,
               "the driver took the PTX after refusing the machine code");
}

/* Updates the ladder result (the explanation for the user) if the compiler
 * failed and an image from a pack was used instead. */
static void note_pack(kiln_module *m, const kiln_program_desc *desc)
{
  const kiln_traits *traits = &m->device->traits;
  kiln_target held[2] = {kiln_image_target(m->image),
                         kiln_image_target(m->image)};
  const kiln_ladder_query query = {.cc = traits->cc,
                                   .tegra = traits->tegra,
                                   .suffix = desc->suffix,
                                   .pack = held,
                                   .n_pack = 2};
  const kiln_rung rung = m->ladder.rung;
  kiln_ladder_result result;

  if (kiln_image_origin(m->image) != KILN_FROM_PACK || rung == KILN_RUNG_PACK ||
      held[0].cc == m->ladder.target.cc)
    return;
  held[1].ptx = true;
  if (kiln_ladder(&query, &result) != KILN_OK || result.rung != KILN_RUNG_PACK)
    return;
  kiln__copy_text(result.reason[rung], KILN_REASON_SIZE,
                  "the NVRTC that was found does not work");
  m->ladder = result;
}

/* Removes a refused image from the cache. If the image came from a cache, it is
 * compiled and loaded again. */
static kiln_status load_again(kiln_module *m, const kiln_program_desc *desc,
                              const kiln__image_request *req, CUresult *rc,
                              jit_log *log)
{
  kiln_runtime *rt = m->device->rt;
  char buf[48];

  kiln__logf(&rt->log, KILN_LOG_WARNING,
             "the driver refused an image (%s); dropping it from the cache",
             rc_name(m->device->driver, *rc, buf));
  kiln__cache_reject(rt->cache, kiln__image_entry(m->image));
  if (kiln_image_origin(m->image) == KILN_FROM_COMPILER)
    return KILN_OK;
  rebuild(m, desc, req);
  return load_data(m, best_data(m), rc, log);
}

/* Loads the image m->image. `desc` and `req` are NULL for an image that the
 * caller supplied. An image that exists only in a pack is marked as refused
 * only if neither its machine code nor its PTX loads. */
static kiln_status load(kiln_module *m, const kiln_program_desc *desc,
                        const kiln__image_request *req)
{
  const bool from_pack = req != NULL && req->rung == KILN_RUNG_PACK;
  kiln_status st = KILN_OK;
  bool tried_ptx = false;
  CUresult first, rc;
  const char *ptx;
  jit_log log;

  KILN_TRY(load_data(m, best_data(m), &rc, &log));
  if (rc != CUDA_SUCCESS && desc != NULL && !from_pack)
    KILN_TRY(load_again(m, desc, req, &rc, &log));
  first = rc;
  ptx = kiln_image_ptx(m->image, NULL);
  if (rc != CUDA_SUCCESS && ptx != NULL && best_data(m) != ptx) {
    tried_ptx = true;
    KILN_TRY(load_data(m, ptx, &rc, &log));
    if (rc == CUDA_SUCCESS)
      note_ptx(m, first);
  }
  if (rc != CUDA_SUCCESS && from_pack)
    kiln__cache_reject(m->device->rt->cache, kiln__image_entry(m->image));
  if (rc != CUDA_SUCCESS)
    KILN_TRY(refuse(m, first, rc, tried_ptx, &log));

done:
  return st;
}

/* Waits for the module's image. While a compile thread compiles the image, this
 * thread loads the linker and creates the context. */
static kiln_status wait_for_image(kiln__loading *l)
{
  kiln_module *m = l->module;
  kiln_status made = KILN_OK, st;
  CUcontext context;
  kiln_error record;

  if (!kiln__image_ready(l->pending)) {
    if (l->req.linked != NULL)
      l->req.linked->prepare(l->req.linked->user, &l->req);
    made = kiln_device_context(m->device, &context);
    if (made != KILN_OK)
      kiln__error_get(&record);
  }
  st = kiln__image_finish(l->pending, &m->image);
  l->pending = NULL;
  if (st == KILN_OK && made != KILN_OK) {
    kiln__error_set(&record);
    st = made;
  }
  return st;
}

static kiln_status allocate(kiln_module **out, kiln_device *device)
{
  kiln_module *m = kiln__calloc(&device->rt->alloc, 1, sizeof *m);

  if (m == NULL)
    return kiln__fail_memory("a module");
  m->device = device;
  pthread_mutex_init(&m->lock, NULL);
  *out = m;
  return KILN_OK;
}

static kiln_status check(kiln_module **out, kiln_device *device,
                         const void *what)
{
  if (out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out is NULL");
  *out = NULL;
  if (device == NULL || what == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "the device, desc or image is NULL");
  return kiln__fork_check(&device->rt->fork);
}

kiln_status kiln__module_start(kiln__loading *out, kiln_device *device,
                               const kiln_program_desc *desc)
{
  return kiln__module_start_linked(out, device, desc, NULL);
}

/* Returns whether images of this kind can be linked: the compiler must make the
 * code for the device. */
static bool can_link(const kiln__image_request *req)
{
  return req->rung == KILN_RUNG_EXACT || req->rung == KILN_RUNG_LOWER ||
         req->rung == KILN_RUNG_PTX;
}

/* Looks up the program in the cache. After a miss, the compile is queued for
 * the compile threads. */
kiln_status kiln__module_start_linked(kiln__loading *out, kiln_device *device,
                                      const kiln_program_desc *desc,
                                      const kiln__linked *linked)
{
  kiln_status st = KILN_OK;
  kiln_module *m = NULL;

  *out = (kiln__loading){.desc = desc};
  KILN_TRY(allocate(&m, device));
  KILN_TRY(kiln__image_choose(&out->req, &m->ladder, device->rt, desc,
                              device->traits.cc, device->traits.tegra,
                              device->driver));
  if (m->ladder.rung == KILN_RUNG_REFUSE)
    KILN_TRY(kiln__image_refuse(device->rt, &m->ladder));
  if (linked != NULL && can_link(&out->req))
    out->req.linked = linked;
  KILN_TRY(kiln__image_start(&out->pending, device->rt, desc, &device->traits,
                             &out->req));
  out->module = m;
  m = NULL;

done:
  kiln_module_free(m);
  return st;
}

kiln_status kiln__module_finish(kiln__loading *l, kiln_module **out)
{
  const kiln_program_desc *desc = l->desc;
  kiln_module *m = l->module;
  kiln_status st = KILN_OK;
  char target[24];

  KILN_TRY(wait_for_image(l));
  note_pack(m, desc);
  KILN_TRY(load(m, desc, &l->req));
  m->owned = true;
  kiln__logf(&m->device->rt->log, KILN_LOG_INFO, "loaded %s for %s (%s)",
             desc->builtin != NULL ? desc->builtin
             : desc->name != NULL  ? desc->name
                                   : "program.cu",
             kiln_target_text(&m->ladder.target, target),
             kiln_origin_name(kiln_image_origin(m->image)));
  *out = m;
  m = NULL;

done:
  kiln_module_free(m);
  l->module = NULL;
  return st;
}

kiln_status kiln_module_load(kiln_module **out, kiln_device *device,
                             const kiln_program_desc *desc)
{
  kiln_status st = check(out, device, desc);
  kiln__loading loading;

  if (st == KILN_OK)
    st = kiln__module_start(&loading, device, desc);
  return st == KILN_OK ? kiln__module_finish(&loading, out) : st;
}

/* Describes an image that the caller supplied as a result of the compatibility
 * ladder. */
static void describe_given(kiln_module *m)
{
  const kiln_target target = kiln_image_target(m->image);
  const int cc = m->device->traits.cc;
  kiln_ladder_result *ladder = &m->ladder;

  ladder->target = target;
  if (kiln_image_cubin(m->image, NULL) == NULL)
    ladder->rung = KILN_RUNG_PTX;
  else
    ladder->rung = target.cc == cc ? KILN_RUNG_EXACT : KILN_RUNG_LOWER;
  for (size_t i = 0; i < KILN_RUNG_COUNT; i++)
    kiln__copy_text(ladder->reason[i], KILN_REASON_SIZE,
                    i == (size_t)ladder->rung ? "the caller gave the image"
                                              : "not needed");
}

kiln_status kiln_module_from_image(kiln_module **out, kiln_device *device,
                                   const kiln_image *image)
{
  kiln_status st = check(out, device, image);
  kiln_module *m = NULL;

  if (st != KILN_OK)
    return st;
  KILN_TRY(allocate(&m, device));
  m->image = kiln__image_ref((kiln_image *)(uintptr_t)image);
  describe_given(m);
  KILN_TRY(load(m, NULL, NULL));
  m->owned = true;
  *out = m;
  m = NULL;

done:
  kiln_module_free(m);
  return st;
}

kiln_status kiln_module_wrap(kiln_module **out, kiln_device *device,
                             CUmodule handle, const char *ptx)
{
  kiln_status st = check(out, device, handle);
  kiln_module *m = NULL;

  if (st != KILN_OK)
    return st;
  KILN_TRY(allocate(&m, device));
  m->handle = handle;
  m->ptx = kiln__strdup(&device->rt->alloc, ptx);
  if (ptx != NULL && m->ptx == NULL)
    KILN_TRY(kiln__fail_memory("the PTX of a module"));
  *out = m;
  m = NULL;

done:
  kiln_module_free(m);
  return st;
}

void kiln_module_free(kiln_module *m)
{
  const kiln_allocator *a;
  kiln__relaxed relaxed;
  kiln__scope scope;

  if (m == NULL)
    return;
  a = &m->device->rt->alloc;
  if (m->owned && kiln__enter_to_free(m->device, &scope)) {
    kiln__relax(m->device->driver, &relaxed);
    m->device->driver->moduleUnload(m->handle);
    kiln__unrelax(&relaxed);
    kiln__leave(&scope);
  }
  while (m->kernels != NULL) {
    kiln_kernel *next = m->kernels->next;

    kiln__free(a, m->kernels->block);
    m->kernels = next;
  }
  kiln_image_free(m->image);
  kiln__free(a, m->ptx);
  pthread_mutex_destroy(&m->lock);
  kiln__free(a, m);
}

const kiln_image *kiln_module_image(const kiln_module *module)
{
  return module == NULL ? NULL : module->image;
}

const kiln_ladder_result *kiln_module_ladder(const kiln_module *module)
{
  return module == NULL || module->image == NULL ? NULL : &module->ladder;
}

CUmodule kiln_module_handle(const kiln_module *module)
{
  return module == NULL ? NULL : module->handle;
}

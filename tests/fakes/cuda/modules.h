/* modules.h -- the part of fake_cuda.c that implements modules, functions and
 * launches. */

/* ---- Modules and functions ---------------------------------------------- */

static bool is_cubin(const char *image)
{
  return memcmp(image, "\177ELF", 4) == 0;
}

/* Finds the compute capability of an image. Returns false if the image does not
 * specify the capability. Machine code of a real compiler stores it in the
 * flags of the ELF header, in the second byte since ABI version 8. */
static bool arch_of(const char *image, int *cc)
{
  enum { ABI_AT = 8, FLAGS_AT = 48 };
  const char *arch;

  if (is_cubin(image) && image[4] == 2) {
    *cc = (unsigned char)image[FLAGS_AT + (image[ABI_AT] >= 8)];
    return true;
  }
  arch = strstr(image, "sm_");
  if (arch != NULL)
    *cc = atoi(arch + 3);
  return arch != NULL;
}

/* Accepts or refuses an image. Machine code runs on GPUs of the same major
 * version with an equal or later minor version. */
static CUresult judge(const char *image)
{
  const fake_cuda_device *d = &control.devices[current()->device];
  const int major = d->attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR];
  const int minor = d->attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
  int cc;

  if (is_cubin(image) && control.cubin_rc != 0)
    return control.cubin_rc;
  if (!is_cubin(image) && control.ptx_rc != 0)
    return control.ptx_rc;
  if (!arch_of(image, &cc))
    return CUDA_ERROR_INVALID_IMAGE;
  if (is_cubin(image) ? cc / 10 != major || cc % 10 > minor
                      : cc > major * 10 + minor)
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  return CUDA_SUCCESS;
}

static void write_jit_log(unsigned n, const CUjit_option *options,
                          void **values)
{
  char *buffer = NULL;
  size_t size = 0;

  for (unsigned i = 0; i < n; i++) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
      buffer = values[i];
    else if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
      size = (size_t)(uintptr_t)values[i];
  }
  /* Like the real driver, this copy fills the buffer to the last byte and omits
   * the NUL if the log is too long. */
  if (buffer != NULL && control.jit_log != NULL)
    memcpy(buffer, control.jit_log,
           strlen(control.jit_log) < size ? strlen(control.jit_log) + 1 : size);
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned n,
                                   CUjit_option *options, void **values)
{
  object *module;
  CUresult rc;

  ENTER(moduleLoadDataEx, UNSAFE);
  rc = judge(image);
  if (rc != CUDA_SUCCESS) {
    write_jit_log(n, options, values);
    return rc;
  }
  module = make(MODULE, current());
  module->bytes = strdup(image);
  module->global = calloc(1, control.global_size);
  *out = (CUmodule)module;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
  ENTER(moduleLoadData, UNSAFE);
  return cuModuleLoadDataEx(out, image, 0, NULL, NULL);
}

static object *function_in(const object *module)
{
  object *o;

  pthread_mutex_lock(&lock);
  for (o = live; o != NULL; o = o->next) {
    if (o->kind == FUNCTION && o->module == module)
      break;
  }
  pthread_mutex_unlock(&lock);
  return o;
}

EXPORT CUresult cuModuleUnload(CUmodule handle)
{
  object *module, *function;

  ENTER(moduleUnload, UNSAFE);
  NEED_OWN(module, handle, MODULE);
  while ((function = function_in(module)) != NULL)
    destroy(function);
  destroy(module);
  return CUDA_SUCCESS;
}

/* Returns the parameter list of a kernel in PTX, or NULL. */
static const char *entry_of(const char *text, const char *name)
{
  const size_t n = strlen(name);

  while ((text = strstr(text, ".entry ")) != NULL) {
    text += 7;
    if (strncmp(text, name, n) == 0 && text[n] == '(')
      return text + n + 1;
  }
  return NULL;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *out, CUmodule handle,
                                    const char *name)
{
  object *module, *function;

  ENTER(moduleGetFunction, UNSAFE);
  NEED_OWN(module, handle, MODULE);
  if (entry_of(module->bytes, name) == NULL)
    return CUDA_ERROR_NOT_FOUND;
  function = make(FUNCTION, current());
  function->module = module;
  function->bytes = strdup(name);
  function->dynamic_smem = 49152 - control.static_smem;
  *out = (CUfunction)function;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes,
                                     CUmodule handle, const char *name)
{
  object *module;

  ENTER(moduleGetGlobal, UNSAFE);
  NEED_OWN(module, handle, MODULE);
  if (strcmp(name, control.global_name) != 0)
    return CUDA_ERROR_NOT_FOUND;
  *address = (CUdeviceptr)(uintptr_t)module->global;
  *bytes = control.global_size;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute,
                                   CUfunction handle)
{
  object *function;

  ENTER(funcGetAttribute, A_CONTEXT);
  NEED_OWN(function, handle, FUNCTION);
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    *value = control.max_threads;
    break;
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    *value = control.static_smem;
    break;
  case CU_FUNC_ATTRIBUTE_NUM_REGS:
    *value = control.registers;
    break;
  case CU_FUNC_ATTRIBUTE_PTX_VERSION:
  case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
    *value = 90;
    break;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    *value = function->dynamic_smem;
    break;
  default:
    *value = 0;
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncSetAttribute(CUfunction handle,
                                   CUfunction_attribute attribute, int value)
{
  object *function;

  ENTER(funcSetAttribute, A_CONTEXT);
  NEED_OWN(function, handle, FUNCTION);
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    __atomic_store_n(&function->dynamic_smem, value, __ATOMIC_RELAXED);
  return CUDA_SUCCESS;
}

/* Returns the size in bytes of parameter i in a list such as "\n\t.param .u64
 * a,\n\t.param .align 8 .b8 b[24]\n)". Returns 0 after the last parameter. */
static size_t param_size(const char *list, size_t i)
{
  const char *end = strchr(list, ')');
  const char *p = list, *bracket, *stop;

  do {
    p = strstr(p, ".param ");
    if (p == NULL || p > end)
      return 0;
    p += 7;
  } while (i-- > 0);
  stop = p + strcspn(p, ",)");
  bracket = memchr(p, '[', (size_t)(stop - p));
  if (bracket != NULL)
    return (size_t)atol(bracket + 1);
  return p[1] == 'p' ? 1 : (size_t)atol(p + 2) / 8;
}

EXPORT CUresult cuFuncGetParamInfo(CUfunction handle, size_t index,
                                   size_t *offset, size_t *size)
{
  const object *function;
  const char *list;

  ENTER(funcGetParamInfo, A_CONTEXT);
  NEED_OWN(function, handle, FUNCTION);
  list = entry_of(function->module->bytes, function->bytes);
  *size = param_size(list, index);
  *offset = 0;
  return *size == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetName(const char **name, CUfunction handle)
{
  const object *function;

  ENTER(funcGetName, A_CONTEXT);
  function = own(handle, FUNCTION, __func__);
  *name = function == NULL ? NULL : function->bytes;
  return function == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

/* ---- Launching ---------------------------------------------------------- */

static CUresult check_launch(const object *function, const CUlaunchConfig *c,
                             bool cooperative)
{
  const fake_cuda_device *d = &control.devices[current()->device];
  const uint64_t threads = (uint64_t)c->blockDimX * c->blockDimY * c->blockDimZ;
  const uint64_t blocks = (uint64_t)c->gridDimX * c->gridDimY * c->gridDimZ;

  if (threads == 0 || blocks == 0 || threads > 1024 || c->gridDimY > 65535 ||
      c->gridDimZ > 65535)
    return CUDA_ERROR_INVALID_VALUE;
  if (threads > (uint64_t)control.max_threads)
    return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  if ((int)c->sharedMemBytes >
      __atomic_load_n(&function->dynamic_smem, __ATOMIC_RELAXED))
    return CUDA_ERROR_INVALID_VALUE;
  if (cooperative &&
      blocks >
          (uint64_t)(control.blocks_per_sm *
                     d->attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT]))
    return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  return CUDA_SUCCESS;
}

static void keep_params(fake_cuda_launch *l, const object *function,
                        void **args)
{
  const char *list = entry_of(function->module->bytes, function->bytes);
  size_t at = 0, size;

  for (l->n_params = 0; l->n_params < 256; l->n_params++) {
    size = param_size(list, (size_t)l->n_params);
    if (size == 0)
      break;
    l->sizes[l->n_params] = (uint32_t)size;
    if (at + size <= sizeof l->params)
      memcpy(l->params + at, args[l->n_params], size);
    at += size;
  }
}

static CUresult launch(const CUlaunchConfig *c, CUfunction handle, void **args,
                       bool ex, const char *call)
{
  const object *function = own(handle, FUNCTION, call);
  fake_cuda_launch l = {.grid = {c->gridDimX, c->gridDimY, c->gridDimZ},
                        .block = {c->blockDimX, c->blockDimY, c->blockDimZ},
                        .smem = c->sharedMemBytes,
                        .stream = c->hStream,
                        .context = (CUcontext)current(),
                        .ex = ex};
  object *stream;
  CUresult rc;

  if (function == NULL || !stream_of(c->hStream, &stream, call))
    return CUDA_ERROR_INVALID_HANDLE;
  for (unsigned i = 0; i < c->numAttrs; i++) {
    const CUlaunchAttribute *a = &c->attrs[i];

    if (a->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
      l.cooperative = a->value.cooperative != 0;
    else if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      memcpy(l.cluster, &a->value.clusterDim, sizeof l.cluster);
    else if (a->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
      l.overlap = a->value.programmaticStreamSerializationAllowed != 0;
  }
  rc = check_launch(function, c, l.cooperative);
  if (rc != CUDA_SUCCESS)
    return rc;
  snprintf(l.kernel, sizeof l.kernel, "%s", function->bytes);
  keep_params(&l, function, args);
  if (stream != NULL && stream->capture == CU_STREAM_CAPTURE_STATUS_ACTIVE)
    stream->nodes++;
  else if (control.launch_sticky != 0)
    current()->sticky = control.launch_sticky;
  pthread_mutex_lock(&lock);
  control.last = l;
  pthread_mutex_unlock(&lock);
  atomic_fetch_add(&control.launches, 1);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy,
                               unsigned gz, unsigned bx, unsigned by,
                               unsigned bz, unsigned smem, CUstream stream,
                               void **args, void **extra)
{
  const CUlaunchConfig c = {gx, gy, gz, bx, by, bz, smem, stream, NULL, 0};

  ENTER(launchKernel, A_CONTEXT);
  return launch(&c, function, args, false, __func__);
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction function,
                                 void **args, void **extra)
{
  ENTER(launchKernelEx, A_CONTEXT);
  return launch(c, function, args, true, __func__);
}

EXPORT CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned gx,
                                          unsigned gy, unsigned gz, unsigned bx,
                                          unsigned by, unsigned bz,
                                          unsigned smem, CUstream stream,
                                          void **args)
{
  CUlaunchAttribute a = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                         .value.cooperative = 1};
  const CUlaunchConfig c = {gx, gy, gz, bx, by, bz, smem, stream, &a, 1};

  ENTER(launchCooperativeKernel, A_CONTEXT);
  return launch(&c, function, args, false, __func__);
}

EXPORT CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *user)
{
  object *s;

  ENTER(launchHostFunc, A_CONTEXT);
  NEED_STREAM(s, stream);
  fn(user);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                            CUfunction handle,
                                                            int block,
                                                            size_t smem)
{
  const object *function;

  ENTER(occupancyMaxActiveBlocksPerMultiprocessor, A_CONTEXT);
  function = own(handle, FUNCTION, __func__);
  if (function == NULL || block < 1)
    return CUDA_ERROR_INVALID_VALUE;
  *blocks = smem > (size_t)function->dynamic_smem ? 0 : control.blocks_per_sm;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuOccupancyMaxPotentialBlockSize(
    int *least_grid, int *block, CUfunction handle,
    CUoccupancyB2DSize smem_of_block, size_t smem, int limit)
{
  ENTER(occupancyMaxPotentialBlockSize, A_CONTEXT);
  if (own(handle, FUNCTION, __func__) == NULL)
    return CUDA_ERROR_INVALID_HANDLE;
  *block = limit > 0 && limit < 768 ? limit : 768;
  *least_grid = control.blocks_per_sm * 10;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function,
                                             const CUlaunchConfig *config)
{
  ENTER(occupancyMaxActiveClusters, A_CONTEXT);
  *clusters = 4;
  return CUDA_SUCCESS;
}

/* ---- The linker of the driver (cuLink functions) ------------------------ */

EXPORT CUresult cuLinkCreate_v2(unsigned n, CUjit_option *options,
                                void **values, CUlinkState *out)
{
  ENTER(linkCreate, A_CONTEXT);
  *out = (CUlinkState)make(LINK, NULL);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuLinkAddData_v2(CUlinkState handle, CUjitInputType type,
                                 void *data, size_t size, const char *name,
                                 unsigned n, CUjit_option *options,
                                 void **values)
{
  object *link;

  ENTER(linkAddData, A_CONTEXT);
  NEED_LIVE(link, handle, LINK);
  free(link->bytes);
  link->bytes = strndup(data, size);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuLinkComplete(CUlinkState handle, void **cubin, size_t *size)
{
  const object *link = find(handle, LINK);

  ENTER(linkComplete, A_CONTEXT);
  if (link == NULL || link->bytes == NULL)
    return CUDA_ERROR_INVALID_HANDLE;
  *cubin = link->bytes;
  *size = strlen(link->bytes);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuLinkDestroy(CUlinkState handle)
{
  object *link;

  ENTER(linkDestroy, A_CONTEXT);
  NEED_LIVE(link, handle, LINK);
  destroy(link);
  return CUDA_SUCCESS;
}

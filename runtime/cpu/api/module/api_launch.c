/* api_launch.c -- implements kernel launches. It checks a launch, copies its
 * arguments, and enqueues the launch as work.
 *
 * The dimensions and the arguments are checked and copied during the program's
 * call, so that the program may change or free them at once. The work holds a
 * reference to the module. A module may therefore be unloaded while launches
 * are in flight. */
#include "../driver_log.h"
#include "../observe.h"
#include "../stream/streams.h"
#include "api_module.h"

#include <string.h>

/* The grid, block and cluster dimensions of a launch, as the program requested
 * them. All dimensions are at least 1. */
typedef struct shape {
  uint32_t grid[3], block[3], cluster[3];
  uint32_t dynamic_shared;
  bool cooperative;
} shape;

typedef struct launch_work {
  kiln__cpu_work base;
  CUcontext context;
  /* launched function; the work holds a reference to its module */
  CUfunction function;
  /* kernel handle; NULL if the program launched a CUfunction */
  CUkernel kernel;
  shape shape;
  uint32_t max_resident;
  /* addresses of the arguments in `params`; NULL if the kernel has no
   * parameters */
  void **pointers;
  uint8_t *params;
} launch_work;

/* ---- Execution ----------------------------------------------------------- */

/* Returns the result code with which the driver reports this kind of fault. */
static CUresult result_of(kiln__cpu_fault_kind kind)
{
  switch (kind) {
  case KILN__FAULT_ADDRESS:
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  case KILN__FAULT_MISALIGNED:
    return CUDA_ERROR_MISALIGNED_ADDRESS;
  case KILN__FAULT_SPACE:
    return CUDA_ERROR_INVALID_ADDRESS_SPACE;
  case KILN__FAULT_PC:
    return CUDA_ERROR_INVALID_PC;
  case KILN__FAULT_INSTRUCTION:
  case KILN__FAULT_MAP:
    return CUDA_ERROR_ILLEGAL_INSTRUCTION;
  case KILN__FAULT_ASSERT:
    return CUDA_ERROR_ASSERT;
  case KILN__FAULT_DEADLOCK:
  case KILN__FAULT_BUDGET:
    return CUDA_ERROR_LAUNCH_TIMEOUT;
  case KILN__FAULT_MEMORY:
    return CUDA_ERROR_OUT_OF_MEMORY;
  case KILN__FAULT_TRAP:
  case KILN__FAULT_STACK:
  case KILN__FAULT_NONE:
    break;
  }
  return CUDA_ERROR_LAUNCH_FAILED;
}

static void keep_fault(const kiln__cpu_launch_desc *launch,
                       const kiln__cpu_fault_info *fault)
{
  kiln__buf text;

  kiln__buf_init(&text, &machine()->alloc);
  kiln__cpu_fault_text(launch, fault, &text);
  if (text.data != NULL) {
    kiln__cpu_keep_fault(text.data, text.size);
    kiln__cpu_log_error(text.data, text.size);
  }
  kiln__buf_free(&text);
}

/* Smallest number of threads of a grid for which several host threads are
 * started. Starting one takes about as long as 1,000 warp instructions. */
enum { MANY_THREADS = 8192 };

/* Returns the number of host threads for a launch; see KILN_CPU_THREADS_AUTO. */
static unsigned threads_of(const launch_work *w, const kiln_cpu_opts *opts)
{
  uint64_t blocks = 1, threads = 1;

  if (opts->threads != (unsigned)KILN_CPU_THREADS_AUTO)
    return opts->threads;
  for (int i = 0; i < 3; i++) {
    blocks *= w->shape.grid[i];
    threads *= w->shape.block[i];
  }
  if (w->function->code->ordered || w->shape.cooperative || opts->checks != 0 ||
      opts->seed != 0 || opts->budget != 0 || blocks * threads < MANY_THREADS)
    return 1;
  return blocks < kiln__cores() ? (unsigned)blocks : kiln__cores();
}

static void describe(kiln__cpu_launch_desc *out, const launch_work *w,
                     const kiln_cpu_opts *opts)
{
  kiln__cpu_machine *m = machine();
  const struct CUmod_st *module = w->function->module;

  *out = (kiln__cpu_launch_desc){
      .program = module->program,
      .code = w->function->code,
      .isa = m->isa,
      .memory = m->memory,
      .params = w->params,
      .dynamic_shared = w->shape.dynamic_shared,
      .number = kiln__cpu_next_id(),
      .device = w->context->device,
      .arch = opts->arch,
      .sm_count = KILN__SM_COUNT,
      .max_resident = w->max_resident,
      .lock_step = opts->schedule == KILN_CPU_BY_ARCH
                       ? opts->arch < 70
                       : opts->schedule == KILN_CPU_LOCK_STEP,
      .cooperative = w->shape.cooperative,
      .threads = threads_of(w, opts),
      .seed = opts->seed,
      .budget = opts->budget,
      .globals = module->globals,
      .textures = m->textures,
      .out = w->context->out,
  };
  for (int i = 0; i < 3; i++) {
    out->grid_dim[i] = w->shape.grid[i];
    out->block_dim[i] = w->shape.block[i];
    out->cluster_dim[i] = w->shape.cluster[i];
  }
}

/* Tells the drop-in library about a launch that has ended. `ns` is its duration
 * in nanoseconds without the launches that its kernels made. */
static void report_launch(const kiln__cpu_launch_desc *launch, uint64_t issued,
                          uint64_t ns, bool checked)
{
  if (kiln__cpu_report_to != NULL)
    kiln__cpu_report_to->launched(launch->code->name, launch->threads, checked,
                                  issued, ns);
}

/* Runs a launch that has been described. If checks or counters are enabled, the
 * launch has its own kiln__cpu_watch, whose results are added to the totals of
 * the process. */
kiln_status kiln__cpu_launch_run(kiln__cpu_launch_desc *launch,
                                 kiln__cpu_fault_info *fault)
{
  kiln__cpu_machine *m = machine();
  kiln_cpu_opts opts;
  kiln_status st = KILN_OK;
  const kiln_allocator store = kiln__cpu_store_allocator(&m->store);
  uint64_t issued = 0, begin, before;

  pthread_mutex_lock(&m->lock);
  opts = m->opts;
  pthread_mutex_unlock(&m->lock);
  if (opts.checks != 0 || opts.counters)
    st = kiln__cpu_watch_create(&launch->watch, &m->alloc, opts.checks,
                                opts.counters, launch->program, launch->code);
  if (st != KILN_OK)
    return st;
  /* cppcheck-suppress autoVariables; reset below */
  launch->issued = &issued;
  kiln__cpu_memory_enter(m->memory);
  before = kiln__cpu_services_spent(launch);
  begin = kiln__clock_ns();
  st = kiln__cpu_grid_run(launch, &store, fault);
  launch->issued = NULL;
  report_launch(
      launch, issued,
      kiln__cpu_services_spend(launch, before, kiln__clock_ns() - begin),
      opts.checks != 0);
  if (st == KILN_EDRIVER && !fault->of_child)
    keep_fault(launch, fault);
  kiln__cpu_memory_leave(m->memory);
  if (opts.checks != 0)
    kiln__cpu_keep_checked();
  if (launch->watch != NULL) {
    kiln__cpu_watch_findings(launch->watch, kiln__cpu_keep_finding, NULL);
    if (opts.counters)
      kiln__cpu_keep_counters(launch->watch);
    kiln__cpu_watch_free(launch->watch);
  }
  return st;
}

/* Runs one launch in the stream's thread. */
static CUresult run(kiln__cpu_work *work, CUstream stream)
{
  const launch_work *w = (const launch_work *)work;
  kiln__cpu_machine *m = machine();
  kiln__cpu_fault_info fault = {0};
  kiln__cpu_launch_services services;
  kiln__cpu_launch_desc launch;
  kiln_cpu_opts opts;
  kiln_status st;

  (void)stream;
  pthread_mutex_lock(&m->lock);
  opts = m->opts;
  pthread_mutex_unlock(&m->lock);
  describe(&launch, w, &opts);
  kiln__cpu_launch_limits(&launch, w->context);
  kiln__cpu_services_begin(&services, w->context);
  launch.services = &services.base;
  st = kiln__cpu_launch_run(&launch, &fault);
  kiln__cpu_services_end(&services);
  return st == KILN_OK        ? CUDA_SUCCESS
         : st == KILN_EDRIVER ? result_of(fault.kind)
                              : CUDA_ERROR_OUT_OF_MEMORY;
}

static void describe_work(const kiln__cpu_work *work, kiln_cpu_activity *out)
{
  const launch_work *w = (const launch_work *)work;
  const kiln__cpu_code *code = w->function->code;

  out->name = code->name;
  for (int i = 0; i < 3; i++) {
    out->grid[i] = w->shape.grid[i];
    out->block[i] = w->shape.block[i];
  }
  out->static_shared = code->static_shared;
  out->dynamic_shared = w->shape.dynamic_shared;
  out->registers = (unsigned)kiln__cpu_function_registers(
      code, kiln__cpu_limits_of(machine()->opts.arch));
}

static void release(kiln__cpu_work *work)
{
  launch_work *w = (launch_work *)work;

  kiln__cpu_module_drop(w->function->module);
  kiln__free(&machine()->alloc, w);
}

/* ---- Checks -------------------------------------------------------------- */

/* Returns whether the dimensions are between 1 and the maxima x, y and z. A
 * dimension of 0 wraps around to UINT32_MAX and fails the test. */
static bool within(const uint32_t dim[3], uint32_t x, uint32_t y, uint32_t z)
{
  return dim[0] - 1 < x && dim[1] - 1 < y && dim[2] - 1 < z;
}

static uint64_t product(const uint32_t dim[3])
{
  return (uint64_t)dim[0] * dim[1] * dim[2];
}

/* Checks the block size against the limits of the architecture and against
 * .maxntid and .reqntid. */
static CUresult check_block(const kiln__cpu_code *code,
                            const kiln__cpu_limits *l, const uint32_t block[3])
{
  const uint64_t most = (uint64_t)l->block_threads;

  CU_TRY(valid(within(block, (uint32_t)most, (uint32_t)most, 64) &&
               product(block) <= most));
  CU_TRY(valid(product(block) <= code->max_threads));
  if (code->req_ntid[0] != 0) {
    for (int i = 0; i < 3; i++) {
      const uint32_t wanted = code->req_ntid[i] == 0 ? 1 : code->req_ntid[i];

      CU_TRY(valid(block[i] == wanted));
    }
  }
  return CUDA_SUCCESS;
}

/* Checks the cluster dimensions. If the launch specifies no cluster, those of
 * the function are used. */
static CUresult check_cluster(CUfunction f, const kiln__cpu_limits *l, shape *s)
{
  const bool required = f->cluster[0] != 0;
  uint64_t blocks;

  for (int i = 0; i < 3; i++) {
    const uint32_t own = f->cluster[i] == 0 ? 1 : (uint32_t)f->cluster[i];

    if (s->cluster[i] == 0)
      s->cluster[i] = required ? own : 1;
    else if (required && s->cluster[i] != own)
      return CUDA_ERROR_INVALID_VALUE;
  }
  blocks = product(s->cluster);
  if (blocks == 1)
    return CUDA_SUCCESS;
  if (l->arch < 90)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (!within(s->cluster, 16, 16, 16) ||
      blocks > (f->non_portable_cluster != 0 ? 16U : 8U))
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  for (int i = 0; i < 3; i++) {
    CU_TRY(valid(s->grid[i] % s->cluster[i] == 0));
  }
  return CUDA_SUCCESS;
}

/* Checks all dimensions of a launch. Also stores the maximum number of resident
 * blocks on the device, which grid-wide barriers need. */
static CUresult check_shape(CUfunction f, shape *s, uint32_t *max_resident)
{
  const kiln__cpu_limits *l = kiln__cpu_limits_of(machine()->opts.arch);
  uint64_t resident;

  CU_TRY(valid(within(s->grid, INT32_MAX, 65535, 65535)));
  CU_TRY(check_block(f->code, l, s->block));
  CU_TRY(check_cluster(f, l, s));
  CU_TRY(valid(s->dynamic_shared <= (uint32_t)f->max_dynamic_shared));
  resident = (uint64_t)kiln__cpu_resident_blocks(l, f->code, product(s->block),
                                                 s->dynamic_shared);
  resident *= KILN__SM_COUNT;
  if (resident == 0)
    return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  if (s->cooperative && product(s->grid) > resident)
    return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  *max_resident = (uint32_t)resident;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_launch_check(CUfunction f, kiln__cpu_launch_desc *launch)
{
  shape s = {.dynamic_shared = launch->dynamic_shared};

  memcpy(s.grid, launch->grid_dim, sizeof s.grid);
  memcpy(s.block, launch->block_dim, sizeof s.block);
  CU_TRY(check_shape(f, &s, &launch->max_resident));
  memcpy(launch->cluster_dim, s.cluster, sizeof s.cluster);
  return CUDA_SUCCESS;
}

/* ---- Creation ------------------------------------------------------------ */

/* Copies the kernel arguments from `extra`, which describes one buffer with all
 * parameters. The buffer has the layout that the PTX declares. */
static CUresult copy_buffer(launch_work *w, void **extra)
{
  const void *from = NULL;
  const size_t *size = NULL;

  for (size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
      from = extra[i + 1];
    else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
      size = extra[i + 1];
    else
      return CUDA_ERROR_INVALID_VALUE;
  }
  CU_TRY(valid(from != NULL && size != NULL &&
               *size >= w->function->code->param_bytes));
  memcpy(w->params, from, w->function->code->param_bytes);
  return CUDA_SUCCESS;
}

/* Copies the kernel arguments from an array of pointers, one per parameter, or
 * from `extra`. The caller must pass exactly one of the two. */
static CUresult copy_params(launch_work *w, void **args, void **extra)
{
  const kiln__cpu_code *code = w->function->code;

  CU_TRY(valid(args == NULL || extra == NULL));
  for (uint32_t i = 0; i < code->n_params; i++)
    w->pointers[i] = w->params + code->params[i].offset;
  if (code->n_params == 0)
    return CUDA_SUCCESS;
  if (extra != NULL)
    return copy_buffer(w, extra);
  CU_TRY(valid(args != NULL));
  for (uint32_t i = 0; i < code->n_params; i++) {
    CU_TRY(valid(args[i] != NULL));
    memcpy(w->pointers[i], args[i], code->params[i].size);
  }
  return CUDA_SUCCESS;
}

/* Checks a launch and makes its work. One allocation holds the work, the
 * pointers to the arguments, and copies of the arguments aligned to 64
 * bytes. */
static CUresult make_work(CUcontext context, CUfunction handle, shape s,
                          void **args, void **extra, kiln__cpu_work **out)
{
  kiln__cpu_machine *m = machine();
  uint32_t max_resident;
  CUfunction f;
  launch_work *w;
  size_t head;
  CUresult rc;

  CU_TRY(kiln__cpu_function_of(handle, context, &f));
  if (f->module->context != context)
    return CUDA_ERROR_INVALID_CONTEXT;
  CU_TRY(check_shape(f, &s, &max_resident));
  head = sizeof *w + f->code->n_params * sizeof(void *);
  head = (head + 63) / 64 * 64;
  w = kiln__calloc(&m->alloc, 1, head + f->code->param_bytes);
  CU_TRY(allocated(w));
  *w = (launch_work){.base = {.run = run,
                              .free = release,
                              .kind = KILN__WORK_KERNEL,
                              .describe = describe_work},
                     .context = context,
                     .function = f,
                     .kernel = f == handle ? NULL : (CUkernel)(void *)handle,
                     .shape = s,
                     .max_resident = max_resident,
                     .pointers = (void **)(w + 1),
                     .params = (uint8_t *)w + head};
  kiln__cpu_module_hold(f->module);
  rc = copy_params(w, args, extra);
  if (rc != CUDA_SUCCESS) {
    release(&w->base);
    return rc;
  }
  *out = &w->base;
  return CUDA_SUCCESS;
}

/* ---- Kernel nodes of graphs ---------------------------------------------- */

CUresult kiln__cpu_kernel_work(CUcontext context,
                               const CUDA_KERNEL_NODE_PARAMS *p,
                               kiln__cpu_work **out)
{
  const shape s = {.grid = {p->gridDimX, p->gridDimY, p->gridDimZ},
                   .block = {p->blockDimX, p->blockDimY, p->blockDimZ},
                   .dynamic_shared = p->sharedMemBytes};
  const CUfunction f = p->func != NULL ? p->func : (CUfunction)(void *)p->kern;

  return make_work(p->func == NULL && p->ctx != NULL ? p->ctx : context, f, s,
                   p->kernelParams, p->extra, out);
}

CUresult kiln__cpu_kernel_work_params(const kiln__cpu_work *work,
                                      CUDA_KERNEL_NODE_PARAMS *out)
{
  const launch_work *w = (const launch_work *)work;

  *out = (CUDA_KERNEL_NODE_PARAMS){
      .func = w->kernel == NULL ? w->function : NULL,
      .gridDimX = w->shape.grid[0],
      .gridDimY = w->shape.grid[1],
      .gridDimZ = w->shape.grid[2],
      .blockDimX = w->shape.block[0],
      .blockDimY = w->shape.block[1],
      .blockDimZ = w->shape.block[2],
      .sharedMemBytes = w->shape.dynamic_shared,
      .kernelParams = w->pointers,
      .kern = w->kernel,
      .ctx = w->kernel == NULL ? NULL : w->context,
  };
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_kernel_work_set(kiln__cpu_work *work,
                                   CUlaunchAttributeID attribute,
                                   const CUlaunchAttributeValue *value)
{
  launch_work *w = (launch_work *)work;
  shape s = w->shape;

  if (attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
    s.cooperative = value->cooperative != 0;
  if (attribute == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
    s.cluster[0] = value->clusterDim.x;
    s.cluster[1] = value->clusterDim.y;
    s.cluster[2] = value->clusterDim.z;
  }
  CU_TRY(check_shape(w->function, &s, &w->max_resident));
  w->shape = s;
  return CUDA_SUCCESS;
}

void kiln__cpu_kernel_work_get(const kiln__cpu_work *work,
                               CUlaunchAttributeID attribute,
                               CUlaunchAttributeValue *value)
{
  const shape *s = &((const launch_work *)work)->shape;

  if (attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
    value->cooperative = s->cooperative;
  if (attribute == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
    value->clusterDim.x = s->cluster[0];
    value->clusterDim.y = s->cluster[1];
    value->clusterDim.z = s->cluster[2];
  }
}

/* ---- The driver's functions ---------------------------------------------- */

static CUresult launch(CUfunction function, const shape *s, CUstream stream,
                       void **args, void **extra)
{
  CUcontext context;
  kiln__cpu_work *work;

  CU_TRY(kiln__cpu_current(&context));
  CU_TRY(make_work(context, function, *s, args, extra, &work));
  return kiln__cpu_enqueue(context, stream, work);
}

CUresult kiln__cpu_launchKernel(CUfunction function, unsigned int grid_x,
                                unsigned int grid_y, unsigned int grid_z,
                                unsigned int block_x, unsigned int block_y,
                                unsigned int block_z, unsigned int smem,
                                CUstream stream, void **args, void **extra)
{
  const shape s = {.grid = {grid_x, grid_y, grid_z},
                   .block = {block_x, block_y, block_z},
                   .dynamic_shared = smem};

  return launch(function, &s, stream, args, extra);
}

CUresult kiln__cpu_launchCooperativeKernel(
    CUfunction function, unsigned int grid_x, unsigned int grid_y,
    unsigned int grid_z, unsigned int block_x, unsigned int block_y,
    unsigned int block_z, unsigned int smem, CUstream stream, void **args)
{
  const shape s = {.grid = {grid_x, grid_y, grid_z},
                   .block = {block_x, block_y, block_z},
                   .dynamic_shared = smem,
                   .cooperative = true};

  return launch(function, &s, stream, args, NULL);
}

/* Launches a kernel in the context of its module. */
static CUresult launch_there(const CUDA_LAUNCH_PARAMS *p)
{
  CUcontext ignored;
  CUresult rc;

  CU_TRY(kiln__cpu_ctxPushCurrent(p->function->module->context));
  rc = kiln__cpu_launchCooperativeKernel(
      p->function, p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX,
      p->blockDimY, p->blockDimZ, p->sharedMemBytes, p->hStream,
      p->kernelParams);
  (void)kiln__cpu_ctxPopCurrent(&ignored);
  return rc;
}

/* Each kernel waits for its own stream only. Kernels that synchronise across devices were
 * removed from CUDA 13, which has kept this function. */
CUresult kiln__cpu_launchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list,
                                                      unsigned int n,
                                                      unsigned int flags)
{
  const unsigned known =
      CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC |
      CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(list != NULL && n != 0 && n <= (unsigned)machine()->n_devices &&
               (flags & ~known) == 0));
  for (unsigned i = 0; i < n; i++) {
    if (list[i].hStream == NULL)
      return CUDA_ERROR_INVALID_HANDLE;
    CU_TRY(kiln__cpu_known(list[i].function, KILN__HANDLE_FUNCTION));
    for (unsigned k = 0; k < i; k++)
      CU_TRY(valid(list[i].function->module->device !=
                   list[k].function->module->device));
  }
  for (unsigned i = 0; i < n; i++)
    CU_TRY(launch_there(&list[i]));
  return CUDA_SUCCESS;
}

/* The largest number of a launch attribute that the driver of CUDA 13.0 knows */
enum { LAST_LAUNCH_ATTRIBUTE = 16 };

CUresult kiln__cpu_launchKernelEx(const CUlaunchConfig *config,
                                  CUfunction function, void **args,
                                  void **extra)
{
  shape s;

  CU_TRY(valid(config != NULL &&
               (config->attrs != NULL || config->numAttrs == 0)));
  s = (shape){
      .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
      .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
      .dynamic_shared = config->sharedMemBytes};
  for (unsigned i = 0; i < config->numAttrs; i++) {
    const CUlaunchAttributeValue *v = &config->attrs[i].value;

    switch (config->attrs[i].id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      s.cooperative = v->cooperative != 0;
      break;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      CU_TRY(valid(v->clusterDim.x != 0 && v->clusterDim.y != 0 &&
                   v->clusterDim.z != 0));
      s.cluster[0] = v->clusterDim.x;
      s.cluster[1] = v->clusterDim.y;
      s.cluster[2] = v->clusterDim.z;
      break;
    default:
      /* Other launch attributes, such as the priority, have no effect. */
      CU_TRY(valid(config->attrs[i].id <= LAST_LAUNCH_ATTRIBUTE));
      break;
    }
  }
  return launch(function, &s, config->hStream, args, extra);
}

/* ---- The launch functions from before CUDA 4.0 --------------------------- */

enum { OLD_PARAM_BYTES = 4096 };

struct kiln__cpu_old_launch {
  uint32_t block[3], shared, size;
  uint8_t params[OLD_PARAM_BYTES];
};

/* Returns the launch parameters that cuFuncSetBlockShape and cuParamSet* set
 * for a function. Allocates them at first use. CUDA leaves concurrent use
 * undefined. */
static CUresult old_of(CUfunction handle, struct kiln__cpu_old_launch **out)
{
  CUcontext context;
  CUfunction f;

  CU_TRY(kiln__cpu_current(&context));
  CU_TRY(kiln__cpu_function_of(handle, context, &f));
  if (f->old == NULL)
    f->old = kiln__calloc(&machine()->alloc, 1, sizeof *f->old);
  *out = f->old;
  return allocated(f->old);
}

CUresult kiln__cpu_funcSetBlockShape(CUfunction function, int x, int y, int z)
{
  struct kiln__cpu_old_launch *old;

  CU_TRY(old_of(function, &old));
  CU_TRY(valid(x > 0 && y > 0 && z > 0));
  old->block[0] = (uint32_t)x;
  old->block[1] = (uint32_t)y;
  old->block[2] = (uint32_t)z;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_funcSetSharedSize(CUfunction function, unsigned int bytes)
{
  struct kiln__cpu_old_launch *old;

  CU_TRY(old_of(function, &old));
  old->shared = bytes;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_paramSetSize(CUfunction function, unsigned int bytes)
{
  struct kiln__cpu_old_launch *old;

  CU_TRY(old_of(function, &old));
  CU_TRY(valid(bytes <= OLD_PARAM_BYTES));
  old->size = bytes;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_paramSetv(CUfunction function, int offset, void *data,
                             unsigned int bytes)
{
  struct kiln__cpu_old_launch *old;

  CU_TRY(old_of(function, &old));
  CU_TRY(valid(data != NULL && offset >= 0 && offset <= OLD_PARAM_BYTES &&
               bytes <= (unsigned)(OLD_PARAM_BYTES - offset)));
  memcpy(old->params + offset, data, bytes);
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_launchGridAsync(CUfunction function, int width, int height,
                                   CUstream stream)
{
  struct kiln__cpu_old_launch *old;
  size_t size = OLD_PARAM_BYTES;
  shape s;

  CU_TRY(old_of(function, &old));
  CU_TRY(valid(width > 0 && height > 0));
  s = (shape){.grid = {(uint32_t)width, (uint32_t)height, 1},
              .dynamic_shared = old->shared};
  memcpy(s.block, old->block, sizeof s.block);
  return launch(function, &s, stream, NULL,
                (void *[]){CU_LAUNCH_PARAM_BUFFER_POINTER, old->params,
                           CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                           CU_LAUNCH_PARAM_END});
}

/* fake_cuda.c -- a fake CUDA driver for tests; fake_cuda.h describes it. */
#include "fake_cuda.h"

#include <pthread.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* Many functions of the fake ignore some of the driver's parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* Declares every driver function from the table of its signatures, so that a
 * definition with a different signature does not compile. */
#define KILN__DRIVER_FN(name, symbol, need, since, result, params)             \
  EXPORT result symbol params;
#include "driver/driver_api.def"
#undef KILN__DRIVER_FN

typedef enum kind {
  DEAD = 0,
  CONTEXT,
  MODULE,
  FUNCTION,
  STREAM,
  EVENT,
  MEMORY,
  POOL,
  PINNED,
  REGISTERED,
  GRAPH,
  EXEC,
  LINK
} kind;

/* The object behind a handle. Before the fake dereferences a handle, it
 * searches for the handle among the live objects. It therefore never follows a
 * stale handle. */
typedef struct object {
  kind kind;
  struct object *context; /* context that owns the object; NULL for contexts */
  struct object *module;  /* module that contains this function */
  struct object *next, *prev;
  int device;            /* device of a context */
  unsigned long long id; /* unique id of a context */
  int sticky;       /* error code that every later call in a context returns */
  bool primary;     /* whether a context is the primary context */
  unsigned flags;   /* flags of a stream or an event */
  int priority;     /* priority of a stream */
  int capture;      /* capture status of a stream */
  int capture_mode; /* capture mode of a stream */
  pthread_t capturer; /* thread that began the capture of a stream */
  int nodes;          /* number of captured operations of a stream or graph */
  /* time at which an event was recorded, in nanoseconds; 0 if never */
  uint64_t ns;
  char *bytes; /* source of a module, data of memory, name of a function */
  const void *address; /* start address of memory of any kind */
  size_t size;         /* size of memory in bytes */
  int dynamic_smem;    /* dynamic shared memory limit of a function in bytes */
  char *global;        /* global variable of a module */
} object;

typedef struct primary {
  object *context;
  int count;
} primary;

enum { MAX_STACK = 16 };

static fake_cuda_control control;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static object *live;
static primary primaries[FAKE_CUDA_DEVICES];
static unsigned long long last_id;
/* number of captures in the mode CU_STREAM_CAPTURE_MODE_GLOBAL */
static atomic_int global_captures;
static atomic_int all_captures;
static pid_t started_in; /* id of the process that called cuInit */
static _Thread_local object *stack[MAX_STACK];
static _Thread_local int depth;
static _Thread_local int thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

__attribute__((format(printf, 1, 2))) static void violate(const char *format,
                                                          ...)
{
  va_list args;

  pthread_mutex_lock(&lock);
  va_start(args, format);
  vsnprintf(control.violation, sizeof control.violation, format, args);
  va_end(args);
  pthread_mutex_unlock(&lock);
  atomic_fetch_add(&control.violations, 1);
}

static void default_device(fake_cuda_device *d, int cc)
{
  static const int pairs[][2] = {
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
      {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 10},
      {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
      {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1},
      {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0x65},
      {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
      {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
      {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 2619000},
      {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 52428800},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
      {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
      {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
      {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
      {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
  };

  for (int i = 0; i < FAKE_CUDA_ATTRIBUTES; i++)
    d->attributes[i] = FAKE_CUDA_UNKNOWN;
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
    d->attributes[pairs[i][0]] = pairs[i][1];
  d->attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = cc / 10;
  d->attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] = cc % 10;
  snprintf(d->name, sizeof d->name, "Fake GPU %d.%d", cc / 10, cc % 10);
  d->memory = (size_t)80 << 30;
}

__attribute__((constructor)) static void set_up(void)
{
  control.version = 13000;
  control.n_devices = 1;
  for (int i = 0; i < FAKE_CUDA_DEVICES; i++)
    default_device(&control.devices[i], 90);
  control.fail_at = -1;
  control.registers = 16;
  control.max_threads = 1024;
  control.blocks_per_sm = 2;
  control.global_name = "counter";
  control.global_size = 64;
}

EXPORT fake_cuda_control *fake_cuda(void)
{
  return &control;
}

/* ---- Objects ------------------------------------------------------------ */

/* Returns the counter for live objects of a kind, or NULL if the control block
 * has no counter for this kind. */
static atomic_int *count_of(kind k)
{
  switch (k) {
  case MODULE:
    return &control.modules;
  case STREAM:
    return &control.streams;
  case EVENT:
    return &control.events;
  case MEMORY:
    return &control.allocations;
  case POOL:
    return &control.pools;
  case PINNED:
  case REGISTERED:
    return &control.pinned;
  case GRAPH:
  case EXEC:
    return &control.graphs;
  case LINK:
    return &control.links;
  default:
    return NULL;
  }
}

static object *make(kind k, object *context)
{
  object *o = calloc(1, sizeof *o);

  if (o == NULL)
    abort();
  o->kind = k;
  o->context = context;
  if (count_of(k) != NULL)
    atomic_fetch_add(count_of(k), 1);
  pthread_mutex_lock(&lock);
  o->next = live;
  if (live != NULL)
    live->prev = o;
  live = o;
  pthread_mutex_unlock(&lock);
  return o;
}

static void destroy(object *o)
{
  if (count_of(o->kind) != NULL)
    atomic_fetch_sub(count_of(o->kind), 1);
  pthread_mutex_lock(&lock);
  if (o->prev != NULL)
    o->prev->next = o->next;
  else
    live = o->next;
  if (o->next != NULL)
    o->next->prev = o->prev;
  pthread_mutex_unlock(&lock);
  free(o->bytes);
  free(o->global);
  free(o);
}

/* Returns the live object of a handle, or NULL. */
static object *find(const void *handle, kind k)
{
  object *o;

  pthread_mutex_lock(&lock);
  for (o = live; o != NULL; o = o->next) {
    if (o == handle && o->kind == k)
      break;
  }
  pthread_mutex_unlock(&lock);
  return o;
}

/* Returns the live memory object that starts at an address, or NULL. */
static object *find_at(const void *address, kind k)
{
  object *o;

  pthread_mutex_lock(&lock);
  for (o = live; o != NULL && (o->kind != k || o->address != address);
       o = o->next)
    continue;
  pthread_mutex_unlock(&lock);
  return o;
}

static object *current(void)
{
  return depth == 0 ? NULL : stack[depth - 1];
}

/* Returns the live object of a handle if the object belongs to the current
 * context, or NULL. */
static object *own(const void *handle, kind k, const char *call)
{
  object *o = find(handle, k);

  if (o == NULL)
    violate("%s: a handle that is stale or never was one", call);
  else if (o->context != current())
    violate("%s: a handle of another context than the current one", call);
  else
    return o;
  return NULL;
}

/* Finds the stream of a handle. *out is NULL for the default streams. Returns
 * false if the handle is not a stream. */
static bool stream_of(CUstream handle, object **out, const char *call)
{
  *out = NULL;
  if ((uintptr_t)handle <= 2)
    return true;
  *out = own(handle, STREAM, call);
  return *out != NULL;
}

/* ---- Checks on entering a function of the fake -------------------------- */

typedef enum need {
  ANYTHING = 0, /* no precondition; the function may be called before cuInit */
  STARTED,
  A_CONTEXT,
  /* The function needs a context, and fails while a stream capture forbids
   * it. */
  UNSAFE
} need;

static bool injectable(int f)
{
  switch (f) {
  case FAKE_CUDA_ctxPopCurrent:
  case FAKE_CUDA_ctxDestroy:
  case FAKE_CUDA_devicePrimaryCtxRelease:
  case FAKE_CUDA_moduleUnload:
  case FAKE_CUDA_streamDestroy:
  case FAKE_CUDA_eventDestroy:
  case FAKE_CUDA_memFree:
  case FAKE_CUDA_memFreeAsync:
  case FAKE_CUDA_memFreeHost:
  case FAKE_CUDA_memPoolDestroy:
  case FAKE_CUDA_memHostUnregister:
  case FAKE_CUDA_graphDestroy:
  case FAKE_CUDA_graphExecDestroy:
  case FAKE_CUDA_linkDestroy:
  case FAKE_CUDA_getErrorName:
  case FAKE_CUDA_getErrorString:
  case FAKE_CUDA_threadExchangeStreamCaptureMode:
    return false;
  default:
    return true;
  }
}

static CUresult injected(int f)
{
  if (injectable(f) && control.fail_at >= 0 &&
      atomic_fetch_add(&control.all_calls, 1) == control.fail_at)
    return control.fail_rc;
  if (control.rc[f] == 0 || control.skip[f]-- > 0)
    return CUDA_SUCCESS;
  if (control.times[f] > 0 && --control.times[f] == 0) {
    const int rc = control.rc[f];

    control.rc[f] = 0;
    return rc;
  }
  return control.rc[f];
}

static void spoil_captures(void)
{
  pthread_mutex_lock(&lock);
  for (object *o = live; o != NULL; o = o->next) {
    if (o->kind == STREAM && o->capture == CU_STREAM_CAPTURE_STATUS_ACTIVE)
      o->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  }
  pthread_mutex_unlock(&lock);
}

static CUresult enter(int f, need n, const char *call)
{
  const CUresult rc = injected(f);

  atomic_fetch_add(&control.calls[f], 1);
  if (rc != CUDA_SUCCESS)
    return rc;
  if (n == ANYTHING)
    return CUDA_SUCCESS;
  if (started_in != getpid()) {
    violate("%s: called %s", call,
            started_in == 0 ? "before cuInit" : "in a forked child");
    return CUDA_ERROR_NOT_INITIALIZED;
  }
  if (n == STARTED)
    return CUDA_SUCCESS;
  if (current() == NULL) {
    violate("%s: no context is current", call);
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (find(current(), CONTEXT) == NULL)
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (current()->sticky != 0)
    return current()->sticky;
  if (n == UNSAFE && atomic_load(&global_captures) > 0 &&
      thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL) {
    spoil_captures();
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return CUDA_SUCCESS;
}

#define ENTER(name, what)                                                      \
  do {                                                                         \
    const CUresult rc_ = enter(FAKE_CUDA_##name, what, __func__);              \
    if (rc_ != CUDA_SUCCESS)                                                   \
      return rc_;                                                              \
  } while (0)

/* These macros set `out` to the object of a handle. If there is no such object,
 * the calling function returns CUDA_ERROR_INVALID_HANDLE. NEED_LIVE() accepts
 * any live object, NEED_OWN() an object of the current context, and
 * NEED_STREAM() a stream, which is NULL for the default streams. */
#define NEED_OBJECT(out, found)                                                \
  do {                                                                         \
    out = found;                                                               \
    if (out == NULL)                                                           \
      return CUDA_ERROR_INVALID_HANDLE;                                        \
  } while (0)
#define NEED_LIVE(out, handle, kind) NEED_OBJECT(out, find(handle, kind))
#define NEED_OWN(out, handle, kind)                                            \
  NEED_OBJECT(out, own(handle, kind, __func__))
#define NEED_STREAM(out, handle)                                               \
  do {                                                                         \
    if (!stream_of(handle, &out, __func__))                                    \
      return CUDA_ERROR_INVALID_HANDLE;                                        \
  } while (0)

/* Defines a driver function that checks its preconditions and then succeeds
 * without doing anything. */
#define SUCCEED(name, symbol, params, what)                                    \
  EXPORT CUresult symbol params                                                \
  {                                                                            \
    ENTER(name, what);                                                         \
    return CUDA_SUCCESS;                                                       \
  }

/* ---- Initialisation, errors, symbols ------------------------------------ */

EXPORT CUresult cuInit(unsigned flags)
{
  ENTER(init, ANYTHING);
  if (flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  started_in = getpid();
  return control.n_devices > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
  ENTER(driverGetVersion, ANYTHING);
  *version = control.version;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGetProcAddress(const char *symbol, void **fn, int version,
                                 uint64_t flags)
{
  ENTER(getProcAddress, ANYTHING);
  *fn = NULL;
  return CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **fn, int version,
                                    uint64_t flags,
                                    CUdriverProcAddressQueryResult *found)
{
  if (found != NULL)
    *found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return cuGetProcAddress(symbol, fn, version, flags);
}

EXPORT CUresult cuGetErrorName(CUresult rc, const char **name)
{
  ENTER(getErrorName, ANYTHING);
  *name = NULL;
  switch (rc) {
#define KILN__CU_RESULT(id, value)                                             \
  case value:                                                                  \
    *name = #id;                                                               \
    break;
#define KILN__CU_CONSTANT(id, value)
#include "driver/driver_constants.def"
#undef KILN__CU_RESULT
#undef KILN__CU_CONSTANT
  }
  return *name == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorString(CUresult rc, const char **text)
{
  ENTER(getErrorString, ANYTHING);
  *text = "as the fake driver was told";
  return CUDA_SUCCESS;
}

SUCCEED(profilerStart, cuProfilerStart, (void), A_CONTEXT)

SUCCEED(profilerStop, cuProfilerStop, (void), A_CONTEXT)

/* Returns true if the legacy default stream is blocked because a blocking
 * stream is being captured. */
static bool legacy_tied(CUstream handle);

#include "cuda/contexts.h"
#include "cuda/memory.h"
#include "cuda/modules.h"
#include "cuda/streams.h"

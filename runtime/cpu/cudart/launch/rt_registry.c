/* rt_registry.c -- keeps what the host code of nvcc registers before main(): fat
 * binaries, and the kernels and variables in them.
 *
 * Problem: host code names a kernel by the address of its host function, and a
 * variable by the address of its host twin. Registration happens in constructors,
 * where no driver may be started.
 *
 * Idea: registration only records pointers. A hash table maps host addresses to
 * symbols. At first use of a symbol, its fat binary becomes a library of the driver
 * (cuLibraryLoadData()). A library belongs to no context: the driver loads it into
 * each context that uses it, and again after a reset. So one kernel handle serves all
 * devices for the life of the process, which the static handles in the host code of
 * CUDA 13 rely on.
 *
 * Invariant: `lock` guards the table and all images. The lock is not held while user
 * code runs. A symbol is found with one probe on average; the table is at most half
 * full.
 *
 * Names and texts that nvcc passes live in the object that registers them. They are
 * not copied, because that object unregisters its fat binaries before it is unloaded. */
#include "rt_registry.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct registry {
  pthread_mutex_t lock;
  kiln__rt_symbol **slots; /* hash table; NULL marks an empty slot */
  size_t n_slots, n_symbols;
} registry;

static registry *the_registry(void)
{
  static registry it = {.lock = PTHREAD_MUTEX_INITIALIZER};

  return &it;
}

/* ---- Fork ------------------------------------------------------------------ */

static void lock_registry(void)
{
  pthread_mutex_lock(&the_registry()->lock);
}

static void unlock_registry(void)
{
  pthread_mutex_unlock(&the_registry()->lock);
}

/* A child unregisters its images when it exits. It would wait forever for a lock that
 * another thread of the parent held, so fork() takes the lock first. */
static void watch_forks(void)
{
  pthread_atfork(lock_registry, unlock_registry, unlock_registry);
}

/* ---- The hash table -------------------------------------------------------- */

static size_t first_slot(const registry *r, const void *host)
{
  const uint64_t mixed =
      (uint64_t)(uintptr_t)host * UINT64_C(0x9e3779b97f4a7c15);

  return (size_t)(mixed >> 20) & (r->n_slots - 1);
}

/* Returns the slot of a host address: the slot with its symbol, or the empty slot
 * where the symbol would be. */
static kiln__rt_symbol **slot_of(const registry *r, const void *host)
{
  size_t i = first_slot(r, host);

  while (r->slots[i] != NULL && r->slots[i]->host != host)
    i = (i + 1) & (r->n_slots - 1);
  return &r->slots[i];
}

static kiln__rt_symbol *find(const registry *r, const void *host)
{
  return r->n_slots == 0 ? NULL : *slot_of(r, host);
}

/* Makes a table of `n` slots and moves all symbols there, except those of the image
 * `without`. Returns false if memory is exhausted. */
static bool rebuild(registry *r, size_t n, const kiln__rt_image *without)
{
  registry made = {.n_slots = n};

  made.slots = calloc(n, sizeof(kiln__rt_symbol *));
  if (made.slots == NULL)
    return false;
  for (size_t i = 0; i < r->n_slots; i++) {
    if (r->slots[i] != NULL && r->slots[i]->image != without) {
      *slot_of(&made, r->slots[i]->host) = r->slots[i];
      made.n_symbols++;
    }
  }
  free(r->slots);
  r->slots = made.slots;
  r->n_slots = n;
  r->n_symbols = made.n_symbols;
  return true;
}

void kiln__rt_register(void **handle, kiln__rt_symbol wanted)
{
  registry *r = the_registry();
  kiln__rt_image *image = (kiln__rt_image *)handle;
  kiln__rt_symbol *made;

  if (image == NULL)
    return;
  made = malloc(sizeof *made);
  pthread_mutex_lock(&r->lock);
  if (made != NULL && 2 * (r->n_symbols + 1) > r->n_slots &&
      !rebuild(r, r->n_slots == 0 ? 64 : 2 * r->n_slots, NULL)) {
    free(made);
    made = NULL;
  }
  if (made != NULL) {
    kiln__rt_symbol **slot = slot_of(r, wanted.host);

    *made = wanted;
    made->image = image;
    made->next = image->symbols;
    image->symbols = made;
    r->n_symbols += *slot == NULL;
    *slot = made;
  }
  pthread_mutex_unlock(&r->lock);
}

/* ---- Registration, called by constructors ---------------------------------- */

/* Without memory, the result is NULL, and nothing can be registered for it. */
void **kiln__rt_registerFatBinary(void *wrapper)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  kiln__rt_image *image = calloc(1, sizeof *image);

  if (image == NULL)
    return NULL;
  pthread_once(&once, watch_forks);
  image->wrapper = wrapper;
  return (void **)image;
}

/* Nothing is left to do: images are loaded at first use. */
void kiln__rt_registerFatBinaryEnd(void **image)
{
  (void)image;
}

/* Removes the image and its symbols. The driver unloads the library from all contexts
 * that still exist. */
void kiln__rt_unregisterFatBinary(void **handle)
{
  registry *r = the_registry();
  kiln__rt_image *image = (kiln__rt_image *)handle;

  if (image == NULL)
    return;
  pthread_mutex_lock(&r->lock);
  /* If memory is exhausted, the symbols stay in the table, so they must stay alive. */
  if (r->n_slots == 0 || rebuild(r, r->n_slots, image)) {
    while (image->symbols != NULL) {
      kiln__rt_symbol *symbol = image->symbols;

      image->symbols = symbol->next;
      free(symbol);
    }
    if (image->library != NULL)
      cuLibraryUnload(image->library);
    free(image);
  }
  pthread_mutex_unlock(&r->lock);
}

void kiln__rt_registerFunction(void **image, const void *host, char *device,
                               const char *name, int thread_limit, void *tid,
                               void *bid, void *block, void *grid,
                               int *warp_size)
{
  (void)device, (void)thread_limit, (void)tid, (void)bid, (void)block;
  (void)grid, (void)warp_size;
  kiln__rt_register(
      image,
      (kiln__rt_symbol){.host = host, .name = name, .kind = KILN__RT_KERNEL});
}

void kiln__rt_registerVar(void **image, const void *host, char *device,
                          const char *name, int external, size_t size,
                          int constant, int global)
{
  (void)device, (void)external, (void)constant, (void)global;
  kiln__rt_register(image, (kiln__rt_symbol){.host = host,
                                             .name = name,
                                             .size = size,
                                             .kind = KILN__RT_VARIABLE});
}

/* `host` is the address of a pointer. The host code reads the variable through this
 * pointer, after it has called __cudaInitModule(). */
void kiln__rt_registerManagedVar(void **image, void **host, char *device,
                                 const char *name, int external, size_t size,
                                 int constant, int global)
{
  (void)device, (void)external, (void)constant, (void)global;
  kiln__rt_register(image, (kiln__rt_symbol){.host = host,
                                             .name = name,
                                             .size = size,
                                             .kind = KILN__RT_MANAGED});
}

void kiln__rt_registerHostVar(void **image, const char *name, char *host,
                              size_t size)
{
  (void)image, (void)name, (void)host, (void)size;
}

void kiln__rt_registerUnifiedTable(void **image, void *table)
{
  (void)image, (void)table;
}

/* ---- Loading --------------------------------------------------------------- */

/* Makes a library of the image at first use. Remembers a failure, so that a program
 * that retries does not compile again. The caller holds the lock. */
static cudaError_t load_locked(kiln__rt_image *image)
{
  if (image->library != NULL || image->status != cudaSuccess)
    return image->status;
  KILN__RT_TRY(kiln__rt_ready());
  image->status = cuLibraryLoadData(&image->library, image->wrapper, NULL, NULL,
                                    0, NULL, NULL, 0);
  return image->status;
}

static cudaError_t kernel_locked(CUkernel *out, kiln__rt_symbol *symbol)
{
  cudaError_t rc = cudaSuccess;

  if (symbol->kernel == NULL) {
    KILN__RT_TRY(load_locked(symbol->image));
    rc = cuLibraryGetKernel(&symbol->kernel, symbol->image->library,
                            symbol->name);
  }
  *out = symbol->kernel;
  return rc == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidDeviceFunction : rc;
}

cudaError_t kiln__rt_kernel(CUkernel *out, const void *host)
{
  registry *r = the_registry();
  CUfunction function;
  kiln__rt_symbol *symbol;
  cudaError_t rc = cudaErrorInvalidDeviceFunction;

  *out = NULL;
  if (host == NULL)
    return rc;
  /* From version 12 on, an unknown address may be the handle of a kernel. */
  if (kiln__rt_version >= 12000)
    rc = cudaErrorInvalidResourceHandle;
  pthread_mutex_lock(&r->lock);
  symbol = find(r, host);
  if (symbol != NULL && symbol->kind == KILN__RT_KERNEL)
    rc = kernel_locked(out, symbol);
  pthread_mutex_unlock(&r->lock);
  if (symbol == NULL && kiln__rt_ready() == cudaSuccess) {
    union {
      const void *address;
      CUkernel kernel;
    } handle = {host};

    if (cuKernelGetFunction(&function, handle.kernel) == CUDA_SUCCESS) {
      *out = handle.kernel;
      rc = cudaSuccess;
    }
  }
  return rc;
}

cudaError_t kiln__rt_function(CUfunction *out, const void *host)
{
  CUkernel kernel;

  KILN__RT_TRY(kiln__rt_context());
  KILN__RT_TRY(kiln__rt_kernel(&kernel, host));
  return cuKernelGetFunction(out, kernel);
}

/* Searches the whole table, since graphs rarely ask for the host address. */
const void *kiln__rt_host_of(CUkernel kernel)
{
  registry *r = the_registry();
  const void *host = NULL;

  pthread_mutex_lock(&r->lock);
  for (size_t i = 0; i < r->n_slots && host == NULL; i++) {
    if (r->slots[i] != NULL && r->slots[i]->kernel == kernel)
      host = r->slots[i]->host;
  }
  pthread_mutex_unlock(&r->lock);
  return host;
}

static bool is_variable(const kiln__rt_symbol *symbol)
{
  return symbol->kind == KILN__RT_VARIABLE || symbol->kind == KILN__RT_MANAGED;
}

/* Finds a variable. A managed variable is found by the address of the host's pointer,
 * and by the value of this pointer: host code passes the value, since it reads the
 * variable through the pointer. */
static kiln__rt_symbol *find_variable(const registry *r, const void *host)
{
  kiln__rt_symbol *symbol = find(r, host);

  for (size_t i = 0; symbol == NULL && i < r->n_slots; i++) {
    if (r->slots[i] != NULL && r->slots[i]->kind == KILN__RT_MANAGED &&
        *(void *const *)r->slots[i]->host == host)
      symbol = r->slots[i];
  }
  return symbol != NULL && is_variable(symbol) ? symbol : NULL;
}

cudaError_t kiln__rt_variable(CUdeviceptr *address, size_t *size,
                              const void *host)
{
  registry *r = the_registry();
  cudaError_t rc = cudaErrorInvalidSymbol;
  kiln__rt_symbol *symbol;

  if (host == NULL)
    return rc;
  KILN__RT_TRY(kiln__rt_context());
  pthread_mutex_lock(&r->lock);
  symbol = find_variable(r, host);
  if (symbol != NULL) {
    rc = load_locked(symbol->image);
    if (rc == cudaSuccess && symbol->kind == KILN__RT_MANAGED)
      rc = cuLibraryGetManaged(address, size, symbol->image->library,
                               symbol->name);
    else if (rc == cudaSuccess)
      rc = cuLibraryGetGlobal(address, size, symbol->image->library,
                              symbol->name);
    if (rc == CUDA_ERROR_NOT_FOUND)
      rc = cudaErrorInvalidSymbol;
  }
  pthread_mutex_unlock(&r->lock);
  return rc;
}

cudaError_t kiln__rt_module_of(CUmodule *out, kiln__rt_symbol *symbol,
                               const void *host, kiln__rt_kind kind)
{
  registry *r = the_registry();
  cudaError_t rc = kind == KILN__RT_TEXTURE ? cudaErrorInvalidTexture
                                            : cudaErrorInvalidSurface;
  kiln__rt_symbol *found;

  KILN__RT_TRY(kiln__rt_context());
  pthread_mutex_lock(&r->lock);
  found = find(r, host);
  if (found != NULL && found->kind == kind) {
    *symbol = *found;
    rc = load_locked(found->image);
    if (rc == cudaSuccess)
      rc = cuLibraryGetModule(out, found->image->library);
  }
  pthread_mutex_unlock(&r->lock);
  return rc;
}

/* Points the host's pointers at the managed variables of an image. Host code calls
 * this function before it first reads a managed variable, and keeps the result. */
char kiln__rt_initModule(void **handle)
{
  registry *r = the_registry();
  kiln__rt_image *image = (kiln__rt_image *)handle;

  if (image == NULL || kiln__rt_context() != cudaSuccess)
    return 1;
  pthread_mutex_lock(&r->lock);
  if (load_locked(image) == cudaSuccess) {
    for (kiln__rt_symbol *s = image->symbols; s != NULL; s = s->next) {
      CUdeviceptr address = 0;

      if (s->kind != KILN__RT_MANAGED ||
          cuLibraryGetManaged(&address, NULL, image->library, s->name) !=
              CUDA_SUCCESS)
        continue;
      *(void **)(uintptr_t)s->host = (void *)(uintptr_t)address;
    }
  }
  pthread_mutex_unlock(&r->lock);
  return 1;
}

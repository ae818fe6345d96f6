/* proc.c -- cuGetProcAddress: every exported function by name and version. */
#include "machine.h"

#include <string.h>

typedef void (*any_fn)(void);

/* Stands for what libcuda exports and the CPU device does not do. */
CUresult kiln__cpu_not_supported(void)
{
  const CUresult rc = kiln__cpu_ready();

  return rc != CUDA_SUCCESS ? rc : CUDA_ERROR_NOT_SUPPORTED;
}

static const struct done {
  const char *symbol;
  any_fn fn;
} done[] = {
#define KILN__DRIVER_FN(name, symbol, need, since, result, params)             \
  {#symbol, (any_fn)KILN__CPU_FN(name)},
#define KILN__ALIAS(symbol, name) {#symbol, (any_fn)KILN__CPU_FN(name)},
#include "../../driver/driver_api.def"
#include "aliases.def"
#include "more.def"
#undef KILN__DRIVER_FN
#undef KILN__ALIAS
};

static const struct export_row {
  const char *symbol, *base;
  int since;
  bool per_thread;
} exports[] = {
#define KILN__EXPORT(symbol, base, since, per_thread)                          \
  {#symbol, #base, since, per_thread},
#include "exports.def"
#undef KILN__EXPORT
};

static any_fn function_of(const char *symbol)
{
  for (size_t i = 0; i < sizeof done / sizeof done[0]; i++) {
    if (strcmp(done[i].symbol, symbol) == 0)
      return done[i].fn;
  }
  return (any_fn)kiln__cpu_not_supported;
}

/* Of two that fit: the one for the stream NULL that is wanted, then the newer. */
static bool better(const struct export_row *a, const struct export_row *b,
                   bool per_thread)
{
  if (b == NULL || a->per_thread != b->per_thread)
    return b == NULL || a->per_thread == per_thread;
  return a->since > b->since;
}

static const struct export_row *find(const char *name, int version,
                                     bool per_thread, bool *too_old)
{
  const struct export_row *best = NULL;

  *too_old = false;
  for (size_t i = 0; i < sizeof exports / sizeof exports[0]; i++) {
    const struct export_row *e = &exports[i];

    if (strcmp(e->symbol, name) == 0 && strcmp(e->base, name) != 0)
      return e; /* with _vN: this very one */
    if (strcmp(e->base, name) != 0 || (e->per_thread && !per_thread))
      continue;
    if (e->since > version)
      *too_old = true;
    else if (better(e, best, per_thread))
      best = e;
  }
  return best;
}

CUresult kiln__cpu_getProcAddressV2(const char *symbol, void **fn, int version,
                                    uint64_t flags,
                                    CUdriverProcAddressQueryResult *found)
{
  const uint64_t known = CU_GET_PROC_ADDRESS_LEGACY_STREAM |
                         CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  const struct export_row *e;
  CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SUCCESS;
  bool too_old;
  any_fn address;

  if (symbol == NULL || fn == NULL || (flags & ~known) != 0 || flags == known)
    return CUDA_ERROR_INVALID_VALUE;
  /* Its own successor under another name. */
  if (strcmp(symbol, "cuGraphInstantiate") == 0 && version >= 12000)
    symbol = "cuGraphInstantiateWithFlags";
  e = find(symbol, version,
           flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &too_old);
  if (e == NULL)
    result = too_old ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                     : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  address = e == NULL ? NULL : function_of(e->symbol);
  memcpy(fn, &address, sizeof address);
  if (found != NULL)
    *found = result;
  return e == NULL ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

CUresult kiln__cpu_getProcAddress(const char *symbol, void **fn, int version,
                                  uint64_t flags)
{
  return kiln__cpu_getProcAddressV2(symbol, fn, version, flags, NULL);
}

/* Undocumented tables of functions, for NVIDIA's own libraries. */
CUresult kiln__cpu_getExportTable(const void **out, const CUuuid *id)
{
  if (out == NULL || id == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  *out = NULL;
  return CUDA_ERROR_NOT_FOUND;
}

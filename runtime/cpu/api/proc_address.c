/* proc_address.c -- implements cuGetProcAddress, which finds exported functions
 * by name and version.
 *
 * A program passes a base name such as "cuMemAlloc", and the driver version
 * that it was built for. It also says whether stream NULL means the thread's
 * own stream. The result is the newest symbol with that base name that is not
 * newer than the version: cuMemAlloc_v2 for 3020 and later. A name with _vN
 * selects exactly that symbol. */
#include "missing.h"
#include "observe.h"

#include <string.h>

typedef void (*any_fn)(void);

static const struct row {
  const char *symbol;
  int since;
  any_fn fn;
} rows[] = {
#define KILN__DRIVER_FN(name, symbol, need, since, result, params)             \
  {#symbol, since, (any_fn)KILN__CPU_FN(name)},
#define KILN__ALIAS_FN(symbol, since, name)                                    \
  {#symbol, since, (any_fn)KILN__CPU_FN(name)},
#define KILN__MISSING_FN(symbol, since)                                        \
  {#symbol, since, (any_fn)kiln__cpu_missing_##symbol},
#include "entry_points.def"
};

static const char *const own_bases[] = {
#define KILN__OWN_BASE(symbol) #symbol,
#include "entry_points.def"
};

/* Returns the suffix _ptsz or _ptds of a symbol, or NULL if the symbol has no
 * such suffix. */
static const char *form_of(const char *symbol)
{
  const size_t n = strlen(symbol);
  const char *end = n < 5 ? "" : symbol + n - 5;

  return strcmp(end, "_ptsz") == 0 || strcmp(end, "_ptds") == 0 ? end : NULL;
}

/* Returns whether `name` is the base name of `symbol`, which is the symbol
 * without _ptsz, _ptds and _vN. */
static bool is_base(const char *name, const char *symbol)
{
  const char *form = form_of(symbol);
  size_t n = form != NULL ? (size_t)(form - symbol) : strlen(symbol);

  for (size_t i = 0; i < sizeof own_bases / sizeof own_bases[0]; i++) {
    if (strncmp(symbol, own_bases[i], n) == 0 && own_bases[i][n] == '\0')
      return strcmp(name, own_bases[i]) == 0;
  }
  if (n > 3 && symbol[n - 3] == '_' && symbol[n - 2] == 'v')
    n -= 3;
  return strncmp(name, symbol, n) == 0 && name[n] == '\0';
}

/* Returns whether row `a` of the function table is a better match than row `b`.
 * A row with the requested suffix (_ptsz or _ptds) is better than a row
 * without. Otherwise the newer version is better. */
static bool better(const struct row *a, const struct row *b, bool per_thread)
{
  const bool form = form_of(a->symbol) != NULL;

  if (b == NULL || form != (form_of(b->symbol) != NULL))
    return b == NULL || form == per_thread;
  return a->since > b->since;
}

static const struct row *find(const char *name, int version, bool per_thread,
                              bool *too_old)
{
  const struct row *best = NULL;

  *too_old = false;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const struct row *e = &rows[i];
    const bool base = is_base(name, e->symbol);

    if (!base && strcmp(e->symbol, name) == 0)
      return e;
    if (!base || (form_of(e->symbol) != NULL && !per_thread))
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
  const struct row *e;
  CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SUCCESS;
  bool too_old;
  any_fn address;

  CU_TRY(valid(symbol != NULL && fn != NULL && (flags & ~known) == 0 &&
               flags != known));
  /* From version 12.0 on, cuGraphInstantiate refers to the symbol
   * cuGraphInstantiateWithFlags. */
  if (strcmp(symbol, "cuGraphInstantiate") == 0 && version >= 12000)
    symbol = "cuGraphInstantiateWithFlags";
  e = find(symbol, version,
           flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &too_old);
  if (e == NULL)
    result = too_old ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                     : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  address = e == NULL                    ? NULL
            : kiln__cpu_exported != NULL ? kiln__cpu_exported(e->symbol)
                                         : e->fn;
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

/* NVIDIA's own libraries request undocumented function tables. The CPU device
 * provides no such tables. The report names the library that asked. */
CUresult kiln__cpu_getExportTable(const void **out, const CUuuid *id)
{
  CU_TRY(valid(out != NULL && id != NULL));
  *out = NULL;
  kiln__cpu_note_table(__builtin_return_address(0));
  return CUDA_ERROR_NOT_FOUND;
}

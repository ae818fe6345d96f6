/* run_arguments.c -- parses grids and kernel arguments from the command
 * line, and manages the device memory of array arguments. */
#include "cli/command_run.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  size_t size;
} types[RUN_N_TYPES] = {{"i8", 1},  {"u8", 1},  {"i16", 2}, {"u16", 2},
                        {"i32", 4}, {"u32", 4}, {"i64", 8}, {"u64", 8},
                        {"f32", 4}, {"f64", 8}};

/* Returns the length of the type name at the start of `text`, or 0 if there is
 * none. The type name is followed by '=' or '['. */
static size_t take_type(const char *text, run_type *out)
{
  for (int i = 0; i < RUN_N_TYPES; i++) {
    const size_t n = strlen(types[i].name);

    if (strncmp(text, types[i].name, n) == 0 &&
        (text[n] == '=' || text[n] == '[')) {
      *out = (run_type)i;
      return n;
    }
  }
  return 0;
}

/* Stores one array element: `d` for a floating-point type, or the low bytes of
 * `v` for an integer type. */
static void store(run_type type, double d, uint64_t v, unsigned char *out)
{
  const float f = (float)d;

  memcpy(out,
         type == RUN_F32   ? (const void *)&f
         : type == RUN_F64 ? (const void *)&d
                           : (const void *)&v, /* the host is little-endian */
         types[type].size);
}

/* Stores a number as `type`. @return false if the text is not a number or
 * the number is too large */
static bool store_number(run_type type, const char *text, unsigned char *out)
{
  const bool is_float = type == RUN_F32 || type == RUN_F64;
  double d = 0;
  uint64_t v = 0;
  char *end;

  errno = 0;
  if (is_float)
    d = strtod(text, &end);
  else if (text[0] == '-')
    v = (uint64_t)strtoll(text, &end, 0);
  else
    v = strtoull(text, &end, 0);
  store(type, d, v, out);
  return end != text && *end == '\0' && errno != ERANGE;
}

static bool is_float_text(const char *text)
{
  return strncmp(text, "0x", 2) != 0 && strpbrk(text, ".eEin") != NULL;
}

static int bad_arg(cli *c, const char *text)
{
  return kiln__cli_usage(c,
                         "--arg \"%s\": write 5, 2.5, u64=5, f32[1000] or "
                         "f32[1000]=ramp",
                         text);
}

static int take_array(cli *c, run_arg *a, const char *text)
{
  char *end;

  a->array = true;
  errno = 0;
  a->n = strtoull(text, &end, 0);
  if (end == text || *end != ']' || errno != 0 || a->n == 0 ||
      a->n > UINT64_MAX / 16)
    return bad_arg(c, a->text);
  if (end[1] != '\0' && end[1] != '=')
    return bad_arg(c, a->text);
  a->init = end[1] == '=' ? end + 2 : "zero";
  return CLI_OK;
}

static int take_arg(cli *c, void *to, const char *text)
{
  run_spec *spec = to;
  run_arg *a = &spec->args[spec->n_args];
  size_t n;

  if (spec->n_args == RUN_MOST_ARGS)
    return kiln__cli_usage(c, "--arg may stand %d times at most",
                           RUN_MOST_ARGS);
  *a = (run_arg){.text = text};
  spec->n_args++;
  n = take_type(text, &a->type);
  if (n > 0 && text[n] == '[')
    return take_array(c, a, text + n + 1);
  a->typed = n > 0;
  if (!a->typed)
    a->type = is_float_text(text) ? RUN_F64 : RUN_I64;
  a->size = types[a->type].size;
  text += n > 0 ? n + 1 : 0;
  if (strcmp(text, "rank") == 0 || strcmp(text, "ranks") == 0) {
    a->stands_for = text[4] == 's' ? RUN_RANKS : RUN_RANK;
    a->type = a->typed ? a->type : RUN_I64;
    a->size = types[a->type].size;
    return CLI_OK;
  }
  return store_number(a->type, text, a->value) ? CLI_OK : bad_arg(c, a->text);
}

static int take_dim(cli *c, void *to, const char *text)
{
  kiln_dim3 *out = to;
  uint32_t v[3] = {1, 1, 1};
  const char *at = text;

  for (int i = 0; i < 3; i++) {
    char *end;
    const unsigned long value = strtoul(at, &end, 0);

    if (end == at || value == 0 || value > UINT32_MAX)
      break;
    v[i] = (uint32_t)value;
    if (*end == '\0') {
      *out = (kiln_dim3){v[0], v[1], v[2]};
      return CLI_OK;
    }
    if (*end != ',' && *end != 'x')
      break;
    at = end + 1;
  }
  return kiln__cli_usage(c, "\"%s\" is no grid or block: write 4, 4,2 or 4,2,1",
                         text);
}

static int take_save(cli *c, void *to, const char *text)
{
  run_spec *spec = to;
  char *end;
  const unsigned long i = strtoul(text, &end, 10);

  if (end == text || *end != '=' || end[1] == '\0' || i >= spec->n_args ||
      !spec->args[i].array)
    return kiln__cli_usage(c, "--save \"%s\": write I=FILE after array --arg I",
                           text);
  spec->args[i].save = end + 1;
  return CLI_OK;
}

static int take_shared(cli *c, void *to, const char *text)
{
  uint64_t bytes;

  if (!kiln__cli_parse_bytes(text, &bytes) || bytes > INT_MAX)
    return kiln__cli_usage(c, "--shared \"%s\": write bytes: 512 or 48K", text);
  *(uint32_t *)to = (uint32_t)bytes;
  return CLI_OK;
}

const cli_option *kiln__cli_run_options(cli *c, run_spec *spec)
{
  const cli_option table[] = {
      CLI_OPTION_TEXT("kernel", "NAME", &spec->kernel,
                      "the kernel to launch; default: the only one"),
      CLI_OPTION_TAKEN("grid", "X[,Y[,Z]]", take_dim, &spec->grid,
                       "blocks per grid; default 1"),
      CLI_OPTION_TAKEN("block", "X[,Y[,Z]]", take_dim, &spec->block,
                       "threads per block; default 1"),
      CLI_OPTION_TAKEN("shared", "BYTES", take_shared, &spec->shared,
                       "dynamic shared memory per block"),
      CLI_OPTION_FLAG("cooperative", &spec->cooperative,
                      "make all blocks resident, for grid-wide "
                      "synchronisation"),
      CLI_OPTION_TAKEN(
          "arg", "VALUE", take_arg, spec,
          "the next argument: a number, 5 or 2.5, as wide as the parameter; "
          "with its type, u64=5; or an array in device memory, f32[1000] or "
          "f32[1000]=START with START zero, none, ramp, random, @FILE or a "
          "number; or rank or ranks, see --ranks. Types: i8 u8 i16 u16 i32 u32 "
          "i64 u64 f32 f64"),
      CLI_OPTION_TAKEN("save", "I=FILE", take_save, spec,
                       "write array argument I (from 0) to FILE after the "
                       "launch"),
      CLI_OPTIONS_END};
  cli_option *kept = kiln__cli_alloc(c, 1, sizeof table);

  memcpy(kept, table, sizeof table);
  return kept;
}

/* ---- Device memory ------------------------------------------------------ */

/* Stores the next pseudo-random number (xorshift64). Floating-point numbers
 * are in [-1, 1); integers have random bits. The seed is constant, so every
 * run has the same input. */
static void store_random(run_type type, uint64_t *state, unsigned char *out)
{
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  /* Use as many random bits as the floating-point type represents exactly. */
  store(type,
        type == RUN_F32 ? (double)(*state >> 40) * 0x1p-23 - 1
                        : (double)(*state >> 11) * 0x1p-52 - 1,
        *state, out);
}

/* A file has the blocks of all ranks, one after another. */
static int fill_from_file(cli *c, const run_arg *a, const run_spec *spec)
{
  const size_t own = (size_t)a->n * types[a->type].size;
  const size_t bytes = own * (spec->ranks > 0 ? spec->ranks : 1);
  size_t size;
  const char *data = kiln__cli_read(c, a->init + 1, bytes, &size);

  if (data == NULL)
    return CLI_FAILED;
  if (size != bytes) {
    kiln__cli_message(c, NULL,
                      "--arg \"%s\": the file has %zu bytes, the array %zu",
                      a->text, size, bytes);
    return CLI_FAILED;
  }
  memcpy(a->host, data + own * spec->rank, own);
  return CLI_OK;
}

static int fill(cli *c, const run_arg *a, const run_spec *spec)
{
  const size_t size = types[a->type].size;
  const uint64_t first = spec->rank * a->n;
  uint64_t state = UINT64_C(88172645463325252) + spec->rank;
  unsigned char number[8] = {0};
  const bool ramp = strcmp(a->init, "ramp") == 0;
  const bool random = strcmp(a->init, "random") == 0;

  if (a->init[0] == '@')
    return fill_from_file(c, a, spec);
  if (!ramp && !random && strcmp(a->init, "zero") != 0 &&
      strcmp(a->init, "none") != 0 && !store_number(a->type, a->init, number))
    return bad_arg(c, a->text);
  for (uint64_t i = 0; i < a->n; i++) {
    unsigned char *out = a->host + i * size;

    if (ramp)
      store(a->type, (double)(first + i), first + i, out);
    else if (random)
      store_random(a->type, &state, out);
    else
      memcpy(out, number, size);
  }
  return CLI_OK;
}

/* Allocates and fills an array, and keeps a copy for a later comparison. */
static int prepare_array(cli *c, kiln_device *device, run_arg *a,
                         const run_spec *spec)
{
  const size_t bytes = (size_t)a->n * types[a->type].size;
  int rc;

  a->size = sizeof a->device;
  a->host = kiln__cli_alloc(c, 1, bytes);
  a->before = kiln__cli_alloc(c, 1, bytes);
  rc = fill(c, a, spec);
  if (rc != CLI_OK)
    return rc;
  memcpy(a->before, a->host, bytes);
  if (kiln_memory_alloc(&a->device, device, bytes) != KILN_OK)
    return kiln__cli_failure(c, a->text);
  memcpy(a->value, &a->device, sizeof a->device);
  if (strcmp(a->init, "none") != 0 &&
      kiln_copy_to_device(device, a->device, a->host, bytes) != KILN_OK)
    return kiln__cli_failure(c, a->text);
  return CLI_OK;
}

/* Converts a number without a type to the width of the kernel's parameter. */
static void fit_number(run_arg *a, uint32_t size)
{
  double d;
  float f;

  if (a->typed || a->size == size)
    return;
  if (a->type == RUN_F64 && size == 4) {
    memcpy(&d, a->value, sizeof d);
    f = (float)d;
    memcpy(a->value, &f, sizeof f);
    a->size = 4;
  } else if (a->type == RUN_I64 && size < 8) {
    a->size = size;
  }
}

/* Without ranks, the launch is that of rank 0 of 1. */
static void store_rank(run_arg *a, const run_spec *spec)
{
  const uint64_t v = a->stands_for == RUN_RANK ? spec->rank
                     : spec->ranks > 0         ? spec->ranks
                                               : 1;

  store(a->type, (double)v, v, a->value);
}

int kiln__cli_run_prepare(cli *c, kiln_device *device, run_spec *spec,
                          const kiln_kernel_info *info)
{
  int rc = CLI_OK;

  for (unsigned i = 0; i < spec->n_args && rc == CLI_OK; i++) {
    run_arg *a = &spec->args[i];

    if (a->stands_for != RUN_VALUE)
      store_rank(a, spec);
    if (a->array)
      rc = prepare_array(c, device, a, spec);
    else if (info->params_known && (int)i < info->n_params)
      fit_number(a, info->sizes[i]);
  }
  return rc;
}

kiln_array kiln__cli_run_array(const run_arg *a)
{
  static const kiln_dtype dtypes[RUN_N_TYPES] = {
      KILN_I8,  KILN_U8,  KILN_I16, KILN_U16, KILN_I32,
      KILN_U32, KILN_I64, KILN_U64, KILN_F32, KILN_F64};

  return (kiln_array){a->device, dtypes[a->type]};
}

void kiln__cli_run_save_per_rank(cli *c, run_spec *spec)
{
  for (unsigned i = 0; i < spec->n_args; i++) {
    if (spec->args[i].save != NULL)
      spec->args[i].save =
          kiln__cli_text(c, "%s.%u", spec->args[i].save, spec->rank);
  }
}

size_t kiln__cli_run_bytes(const run_arg *a)
{
  return (size_t)a->n * types[a->type].size;
}

void kiln__cli_run_release(kiln_device *device, run_spec *spec)
{
  for (unsigned i = 0; i < spec->n_args; i++) {
    if (spec->args[i].device != 0)
      (void)kiln_memory_free(device, spec->args[i].device);
    spec->args[i].device = 0;
  }
}

/* ---- Output ------------------------------------------------------------- */

static void print_element(run_type type, const unsigned char *at)
{
  uint64_t u = 0;
  int64_t i;
  const unsigned bits = (unsigned)types[type].size * 8;
  float f;
  double d;

  memcpy(&u, at, types[type].size);
  i = (int64_t)(u << (64 - bits)) >> (64 - bits);
  switch (type) {
  case RUN_F32:
    memcpy(&f, at, sizeof f);
    printf(" %.7g", (double)f);
    break;
  case RUN_F64:
    memcpy(&d, at, sizeof d);
    printf(" %.15g", d);
    break;
  case RUN_I8:
  case RUN_I16:
  case RUN_I32:
  case RUN_I64:
    printf(" %lld", (long long)i);
    break;
  default:
    printf(" %llu", (unsigned long long)u);
    break;
  }
}

/* Prints how many elements the kernel changed, and the first elements. */
static int show_array(cli *c, kiln_device *device, const run_arg *a,
                      unsigned index, unsigned elements)
{
  const size_t size = types[a->type].size, bytes = (size_t)a->n * size;
  uint64_t changed = 0;

  if (kiln_copy_to_host(device, a->host, a->device, bytes) != KILN_OK)
    return kiln__cli_failure(c, a->text);
  for (uint64_t i = 0; i < a->n; i++)
    changed += memcmp(a->host + i * size, a->before + i * size, size) != 0;
  printf("  argument %u  %s[%llu]: %llu changed:", index, types[a->type].name,
         (unsigned long long)a->n, (unsigned long long)changed);
  for (uint64_t i = 0; i < a->n && i < elements; i++)
    print_element(a->type, a->host + i * size);
  printf("%s\n", a->n > elements ? " ..." : "");
  return a->save != NULL ? kiln__cli_write(c, a->save, a->host, bytes) : CLI_OK;
}

int kiln__cli_run_show(cli *c, kiln_device *device, run_spec *spec,
                       unsigned elements)
{
  int rc = CLI_OK;

  for (unsigned i = 0; i < spec->n_args && rc == CLI_OK; i++) {
    if (spec->args[i].array)
      rc = show_array(c, device, &spec->args[i], i, elements);
  }
  return rc;
}

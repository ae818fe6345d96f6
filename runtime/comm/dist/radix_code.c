/* radix_code.c -- writes the functions of the device for a distributed sort.
 *
 * kiln_rank() is kiln__key_rank() of cut.c. Keys of up to 32 bits compute in 32
 * bits. The comparisons with a short list are unrolled: when four ranks on one H200
 * sorted 2^30 keys in 36 to 39 ms, splits that searched the list in memory took
 * 11 ms of them, three times the time of their memory traffic. */
#include "radix_code.h"

#include <stdio.h>

uint64_t kiln__low_bits(unsigned n)
{
  return n >= 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;
}

static const char rank_text[] =
    "typedef unsigned long long kiln_u64;\n"
    "typedef %s kiln_key;\n"
    "static __device__ kiln_key kiln_rank(kiln_key x)\n"
    "{\n"
    "  const kiln_key sign = %llu, mask = %llu;\n"
    "  if (%d)\n"
    "    x = x & sign ? ~x & mask : x ^ sign;\n"
    "  else if (%d)\n"
    "    x ^= sign;\n"
    "  if (%d)\n"
    "    x = (x - %llu) & mask;\n"
    "  x = x >> %u & %llu;\n"
    "  return %d ? ~x & %llu : x;\n"
    "}\n";

/* The search of a long list. */
static const char find_in_memory[] =
    "  const kiln_u64 *const list = (const kiln_u64 *)table;\n"
    "  unsigned low = 0, high = n;\n"
    "  while (low < high) {\n"
    "    const unsigned middle = (low + high) / 2;\n"
    "    if (list[middle] < key)\n"
    "      low = middle + 1;\n"
    "    else\n"
    "      high = middle;\n"
    "  }\n"
    "  return 2 * low + (low < n && list[low] == key);\n";

/* The functions that search. The arguments are the declaration of the list, and its
 * names. */
static const char search_text[] =
    "static __device__ unsigned kiln_bin(kiln_key x, unsigned above,\n"
    "                                    unsigned below, unsigned n%s)\n"
    "{\n"
    "  const kiln_key rank = kiln_rank(x);\n"
    "  const kiln_key top = above < 8 * sizeof(kiln_key) ? rank >> above : 0;\n"
    "  const unsigned at = kiln_find(top, n%s);\n"
    "  const unsigned low = (unsigned)(rank >> below) &\n"
    "                       ((1u << (above - below)) - 1);\n"
    "  return at & 1 ? at >> 1 << (above - below) | low : 0xffffffffu;\n"
    "}\n"
    "static __device__ bool kiln_marked(kiln_key x, unsigned below,\n"
    "                                   unsigned n%s)\n"
    "{\n"
    "  return kiln_find(kiln_rank(x) >> below, n%s) & 1;\n"
    "}\n"
    "static __device__ unsigned kiln_class(kiln_key x, unsigned n%s)\n"
    "{\n"
    "  return kiln_find(kiln_rank(x), n%s);\n"
    "}\n";

/* ---- Types --------------------------------------------------------------- */

static bool is_float(kiln_dtype type)
{
  return type >= KILN_F16 && type <= KILN_F64;
}

static bool is_signed(kiln_dtype type)
{
  return type == KILN_I8 || type == KILN_I16 || type == KILN_I32 ||
         type == KILN_I64;
}

/* Bits of the fraction of a float. */
static unsigned fraction_of(kiln_dtype type)
{
  switch (type) {
  case KILN_F16:
    return 10;
  case KILN_BF16:
    return 7;
  case KILN_F32:
    return 23;
  default:
    return 52;
  }
}

/* ---- Texts --------------------------------------------------------------- */

/* How the list of a call appears: in declarations, in calls of the functions among
 * each other, and in the expressions. */
typedef struct list_names {
  char declared[KILN__FEW_CUTS * 24 + 32];
  char inner[KILN__FEW_CUTS * 16 + 32];
  char outer[KILN__FEW_CUTS * 16 + 32];
} list_names;

static list_names name_list(int cuts)
{
  list_names names = {", kiln_u64 table", ", table", ", kiln_table"};
  size_t a = 0, b = 0, c = 0;

  if (cuts > KILN__FEW_CUTS)
    return names;
  names.declared[0] = names.inner[0] = names.outer[0] = '\0';
  for (int k = 0; k < cuts; k++) {
    a += (size_t)snprintf(names.declared + a, sizeof names.declared - a,
                          ", kiln_key t%d", k);
    b += (size_t)snprintf(names.inner + b, sizeof names.inner - b, ", t%d", k);
    c += (size_t)snprintf(names.outer + c, sizeof names.outer - c, ", kiln_t%d",
                          k);
  }
  return names;
}

/* Writes kiln_find() to `text`, and returns its length. */
static size_t write_find(char *text, size_t size, const list_names *names,
                         int cuts)
{
  size_t at = (size_t)snprintf(
      text, size,
      "static __device__ unsigned kiln_find(kiln_key key, unsigned n%s)\n{\n",
      names->declared);

  if (cuts > KILN__FEW_CUTS)
    return at + (size_t)snprintf(text + at, size - at, "%s}\n", find_in_memory);
  at += (size_t)snprintf(text + at, size - at, "  unsigned at = 0;\n");
  for (int k = 0; k < cuts; k++)
    at += (size_t)snprintf(text + at, size - at,
                           "  at += n > %d ? (t%d < key) + (t%d <= key) : 0;\n",
                           k, k, k);
  return at + (size_t)snprintf(text + at, size - at, "  return at;\n}\n");
}

static size_t write_rank(char *text, size_t size, const kiln__key_order *order,
                         unsigned bits)
{
  const unsigned width = 8 * (unsigned)kiln_dtype_size(order->type);
  const unsigned long long mask = kiln__low_bits(width);
  const unsigned long long kept = kiln__low_bits(bits);
  const bool whole = is_float(order->type) && bits == width; /* NaNs last */
  const unsigned long long fraction =
      whole ? kiln__low_bits(fraction_of(order->type)) : 0;

  return (size_t)snprintf(
      text, size, rank_text, width <= 32 ? "unsigned" : "kiln_u64",
      mask ^ mask >> 1, mask, is_float(order->type), is_signed(order->type),
      whole, fraction, order->begin_bit, kept, order->descending, kept);
}

static void write_expressions(kiln__radix_code *c, const list_names *names)
{
  (void)snprintf(c->top, sizeof c->top, "unsigned(kiln_rank(x) >> kiln_below)");
  (void)snprintf(c->bin, sizeof c->bin,
                 "kiln_bin(x, kiln_above, kiln_below, kiln_listed%s)",
                 names->outer);
  (void)snprintf(c->marked, sizeof c->marked,
                 "kiln_marked(x, kiln_below, kiln_listed%s)", names->outer);
  (void)snprintf(c->class_of, sizeof c->class_of,
                 "kiln_class(x, kiln_listed%s)", names->outer);
}

/* ---- Parameters ---------------------------------------------------------- */

static void name_params(kiln__radix_code *c, const kiln__key_order *order,
                        int cuts)
{
  static const char *const names[KILN__FEW_CUTS] = {
      "kiln_t0", "kiln_t1", "kiln_t2", "kiln_t3",
      "kiln_t4", "kiln_t5", "kiln_t6", "kiln_t7"};
  const kiln_dtype type =
      kiln_dtype_size(order->type) <= 4 ? KILN_U32 : KILN_U64;
  size_t n = 0;

  c->params[n++] = (kiln_param){"kiln_listed", KILN_U32, &c->listed, false};
  c->params[n++] = (kiln_param){"kiln_above", KILN_U32, &c->above, false};
  c->params[n++] = (kiln_param){"kiln_below", KILN_U32, &c->below, false};
  if (cuts > KILN__FEW_CUTS)
    c->params[n++] = (kiln_param){"kiln_table", KILN_U64, &c->table, false};
  /* little-endian: the lowest bytes are a u32 */
  for (int k = 0; k < cuts && cuts <= KILN__FEW_CUTS; k++)
    c->params[n++] = (kiln_param){names[k], type, &c->list[k], false};
  c->code =
      (kiln_code){.preamble = c->text, .params = c->params, .n_params = n};
}

void kiln__radix_write(kiln__radix_code *c, const kiln__key_order *order,
                       unsigned bits, int cuts)
{
  const list_names names = name_list(cuts);
  const size_t size = sizeof c->text;
  size_t at = write_rank(c->text, size, order, bits);

  at += write_find(c->text + at, size - at, &names, cuts);
  (void)snprintf(c->text + at, size - at, search_text, names.declared,
                 names.inner, names.declared, names.inner, names.declared,
                 names.inner);
  write_expressions(c, &names);
  name_params(c, order, cuts);
}

/* element_types.c -- the table of element types: names, sizes, and the C++
 * types that kernels store and compute. The kiln_dtype of a struct contains its
 * size (bits 0 to 7), alignment (bits 8 to 15) and number (bits 16 to 19);
 * kernels see it as kiln::record<size, alignment, number>. */
#include "ops.h"

/* clang-format off */
static const kiln__dtype types[] = {
    {"none", "", "", 0, false, false, KILN_DTYPE_NONE},
    {"i8", "signed char", "signed char", 1, false, true, KILN_I8},
    {"u8", "unsigned char", "unsigned char", 1, false, false, KILN_U8},
    {"i16", "short", "short", 2, false, true, KILN_I16},
    {"u16", "unsigned short", "unsigned short", 2, false, false, KILN_U16},
    {"i32", "int", "int", 4, false, true, KILN_I32},
    {"u32", "unsigned", "unsigned", 4, false, false, KILN_U32},
    {"i64", "long long", "long long", 8, false, true, KILN_I64},
    {"u64", "unsigned long long", "unsigned long long", 8, false, false, KILN_U64},
    {"f16", "kiln::f16", "float", 2, true, true, KILN_F32},
    {"bf16", "kiln::bf16", "float", 2, true, true, KILN_F32},
    {"f32", "float", "float", 4, true, true, KILN_F32},
    {"f64", "double", "double", 8, true, true, KILN_F64},
    {"c64", "kiln::c64", "kiln__c64", 8, true, true, KILN_C64},
    {"c128", "kiln::c128", "kiln__c128", 16, true, true, KILN_C128},
};
/* clang-format on */

static const kiln__dtype record = {
    .name = "struct", .storage = "kiln::record", .compute = "kiln__record"};

enum { N_TYPES = sizeof types / sizeof types[0] };

enum { MOST_BYTES = 64, MOST_ALIGN = 16 };

/* Returns the size of a struct in bytes, or 0 if the value is no struct. */
static size_t record_size(kiln_dtype type)
{
  const unsigned bits = (unsigned)type - KILN_DTYPE_STRUCT;
  const unsigned size = bits & 255, align = bits >> 8 & 255;

  if (!kiln__is_record(type) || bits >> 20 != 0 || size > MOST_BYTES ||
      align == 0 || align > MOST_ALIGN || (align & (align - 1)) != 0)
    return 0;
  return size % align == 0 ? size : 0;
}

const kiln__dtype *kiln__dtype_of(kiln_dtype type)
{
  const unsigned at = (unsigned)type;

  if (at >= N_TYPES)
    return record_size(type) != 0 ? &record : NULL;
  return at > 0 ? &types[at] : NULL;
}

size_t kiln_dtype_size(kiln_dtype type)
{
  const unsigned at = (unsigned)type;

  return at < N_TYPES ? types[at].size : record_size(type);
}

const char *kiln_dtype_name(kiln_dtype type)
{
  const kiln__dtype *t = kiln__dtype_of(type);

  return t != NULL ? t->name : type == KILN_DTYPE_NONE ? "none" : "?";
}

/* Returns `name`, or for a struct its type as a specialisation of the template
 * with the name `name`. */
static kiln__type_text text_of(kiln_dtype type, const char *name)
{
  kiln__type_text t = {.c = ""};

  if (kiln__is_record(type))
    kiln__format(t.c, sizeof t.c, "%s<%u, %u, %u>", name,
                 (unsigned)kiln__size(type), (unsigned)kiln__align(type),
                 (unsigned)type >> 16 & 15);
  else
    kiln__copy_text(t.c, sizeof t.c, name);
  return t;
}

kiln__type_text kiln__storage_text(kiln_dtype type)
{
  return text_of(type, kiln__dtype_of(type)->storage);
}

kiln__type_text kiln__compute_text(kiln_dtype type)
{
  return text_of(type, kiln__dtype_of(type)->compute);
}

unsigned kiln__vector_of(size_t size)
{
  enum { MOST = 64 };
  unsigned n = 1;

  while (n * size % 16 != 0 && 2 * n * size <= MOST)
    n *= 2;
  if (n * size % 16 == 0)
    return n;
  for (n = 1; 2 * n * size <= 16;)
    n *= 2;
  return n;
}

kiln_dtype kiln__input_type(const kiln_input *x)
{
  return x->map != NULL && x->type != KILN_DTYPE_NONE ? x->type : x->in[0].type;
}

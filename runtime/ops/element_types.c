/* element_types.c -- the table of element types: names, sizes, and the C++
 * types that kernels store and compute. */
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
};
/* clang-format on */

enum { N_TYPES = sizeof types / sizeof types[0] };

const kiln__dtype *kiln__dtype_of(kiln_dtype type)
{
  const unsigned at = (unsigned)type;

  return at > 0 && at < N_TYPES ? &types[at] : NULL;
}

size_t kiln_dtype_size(kiln_dtype type)
{
  const kiln__dtype *t = kiln__dtype_of(type);

  return t == NULL ? 0 : t->size;
}

const char *kiln_dtype_name(kiln_dtype type)
{
  return (unsigned)type < N_TYPES ? types[type].name : "?";
}

kiln_dtype kiln__input_type(const kiln_input *x)
{
  return x->map != NULL && x->type != KILN_DTYPE_NONE ? x->type : x->in[0].type;
}

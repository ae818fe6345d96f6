/* parse_initial.c -- converts initialisers into bytes and relocations. Braces
 * nest as in C, and missing values are zero. The address of a variable or
 * function is unknown until the module is loaded. Such an address therefore
 * becomes a relocation, as in an object file. */
#include "parse.h"

#include <float.h>
#include <math.h>

/* The state of the initialisation of one variable. */
typedef struct filler {
  kiln__buf bytes;
  kiln__cpu_ptx_type type;
  /* number of dimensions; the components of a vector are the last dimension */
  uint32_t n_dims;
  bool vector;
  uint64_t *dims;
  /* Size in bytes of one item of each dimension. */
  uint64_t stride[KILN__PTX_MAX_DIMENSIONS + 1];
} filler;

static bool mismatch(kiln__cpu_parser *p, kiln__cpu_ptx_pos pos)
{
  return kiln__cpu_wrong(p, pos, "this value does not fit the variable's type");
}

/* Extends the initial value to `end` bytes. The new bytes are zero. */
static bool reach(kiln__cpu_parser *p, filler *f, uint64_t end)
{
  static const char zeros[256];
  size_t source_size;

  kiln__cpu_ptx_source(p->module, &source_size);
  while (f->bytes.size < end) {
    const uint64_t gap = end - f->bytes.size;
    const size_t step = gap < sizeof zeros ? (size_t)gap : sizeof zeros;

    if (p->init_bytes > KILN__PTX_MAX_INIT + 16 * (uint64_t)source_size)
      return kiln__cpu_wrong(p, p->tok.pos,
                             "the initial values of the module exceed 64 MiB");
    p->init_bytes += step;
    kiln__buf_add(&f->bytes, zeros, step);
    if (f->bytes.failed) {
      p->no_memory = true;
      return false;
    }
  }
  return true;
}

/* Computes the bit pattern of one element of an initial value. Returns false if
 * the value is not valid for the type. */
static bool bits_of(const kiln__cpu_value *v, kiln__cpu_ptx_type type,
                    uint64_t *bits)
{
  const bool is_float = v->kind != KILN__OPERAND_INTEGER;
  double value = 0;
  float narrow;

  *bits = v->bits;
  if (!is_float)
    return type != KILN__F16 && type != KILN__F16X2 && type != KILN__F32 &&
           type != KILN__F64;
  if (v->kind == KILN__OPERAND_FLOAT32) {
    const uint32_t low = (uint32_t)v->bits;

    memcpy(&narrow, &low, sizeof narrow);
    value = narrow;
  } else {
    memcpy(&value, &v->bits, sizeof value);
  }
  if (type == KILN__F64 || type == KILN__B64) {
    memcpy(bits, &value, sizeof value);
    return true;
  }
  if (type != KILN__F32 && type != KILN__B32)
    return false;
  if (v->kind == KILN__OPERAND_FLOAT32)
    return true;
  if (isfinite(value) && fabs(value) >= (double)FLT_MAX * (1 + 0x1p-25))
    return false;
  narrow = isnan(value) ? NAN : (float)value;
  *bits = 0;
  memcpy(bits, &narrow, sizeof narrow);
  return true;
}

static bool store(kiln__cpu_parser *p, filler *f, uint64_t at, uint64_t bits)
{
  const uint32_t size = kiln__cpu_ptx_type_bytes[f->type];

  if (!reach(p, f, at + size))
    return false;
  for (uint32_t i = 0; i < size; i++)
    f->bytes.data[at + i] = (char)(i < 8 ? bits >> 8 * i & 0xff : 0);
  return true;
}

/* Parses the address of a variable or function: `a`, `a+4`, `generic(a)` or
 * `generic(a)+4`. */
static bool symbol_value(kiln__cpu_parser *p, kiln__cpu_ptx_reloc *r)
{
  const kiln__cpu_ptx_pos pos = p->tok.pos;
  kiln__cpu_token name = p->tok;
  bool offset;

  r->generic = kiln__cpu_ptx_is(p, "generic");
  kiln__cpu_ptx_next(p);
  if (r->generic && p->tok.kind == '(') {
    kiln__cpu_ptx_next(p);
    name = p->tok;
    if (!kiln__cpu_ptx_expect(p, KILN__TOKEN_NAME) ||
        !kiln__cpu_ptx_expect(p, ')'))
      return false;
  } else {
    r->generic = false;
  }
  offset = p->tok.kind == '+';
  if (offset) {
    kiln__cpu_ptx_next(p);
    if (!kiln__cpu_ptx_offset(p, &r->addend))
      return false;
  }
  r->symbol = kiln__cpu_ptx_lookup(p, name.text);
  if (r->symbol == NULL ||
      (r->symbol->kind == KILN__SYMBOL_VARIABLE
           ? r->symbol->u.variable->space != KILN__SPACE_GLOBAL &&
                 r->symbol->u.variable->space != KILN__SPACE_CONST
           : r->symbol->kind != KILN__SYMBOL_FUNCTION || r->generic ||
                 offset)) {
    kiln__cpu_wrong(
        p, pos,
        "only the address of a .global or .const variable, or of a function, "
        "can be an initial value");
    return !p->no_memory;
  }
  return true;
}

static bool add_reloc(kiln__cpu_parser *p, const kiln__cpu_ptx_reloc *r)
{
  if (!kiln__cpu_ptx_grow(p, &p->relocs, p->n_relocs, &p->relocs_capacity,
                          sizeof *p->relocs))
    return false;
  p->relocs[p->n_relocs++] = *r;
  return true;
}

static bool address_item(kiln__cpu_parser *p, filler *f, uint64_t at)
{
  kiln__cpu_ptx_reloc r = {.offset = (uint32_t)at,
                           .size = kiln__cpu_ptx_type_bytes[f->type]};

  if (f->type != KILN__U32 && f->type != KILN__U64)
    return mismatch(p, p->tok.pos);
  return store(p, f, at, 0) && symbol_value(p, &r) && add_reloc(p, &r);
}

/* Parses a masked address such as 0xFF00(symbol), which selects one byte of the
 * address. The mask has already been consumed. */
static bool masked_item(kiln__cpu_parser *p, filler *f, uint64_t at,
                        uint64_t mask, kiln__cpu_ptx_pos pos)
{
  kiln__cpu_ptx_reloc r = {.offset = (uint32_t)at, .size = 1};

  if (f->type != KILN__U8 && f->type != KILN__U32 && f->type != KILN__U64)
    return mismatch(p, pos);
  while (r.shift < 64 && mask != UINT64_C(0xff) << r.shift)
    r.shift = (uint8_t)(r.shift + 8);
  if (r.shift == 64)
    return kiln__cpu_wrong(p, pos,
                           "a mask must select one whole byte, as 0xFF00 does");
  kiln__cpu_ptx_next(p);
  return store(p, f, at, 0) && symbol_value(p, &r) &&
         kiln__cpu_ptx_expect(p, ')') && add_reloc(p, &r);
}

static bool scalar(kiln__cpu_parser *p, filler *f, uint64_t at)
{
  const kiln__cpu_place place = kiln__cpu_ptx_place(p);
  const kiln__cpu_token first = p->tok;
  kiln__cpu_value v = {0};
  uint64_t bits;

  if (at + 16 > UINT32_MAX)
    return kiln__cpu_wrong(p, first.pos,
                           "the initial values of the module exceed 64 MiB");
  if (first.kind == KILN__TOKEN_NAME && !kiln__cpu_ptx_is(p, "WARP_SZ"))
    return address_item(p, f, at);
  if (first.kind == KILN__TOKEN_INTEGER) {
    kiln__cpu_ptx_next(p);
    if (p->tok.kind == '(')
      return masked_item(p, f, at, first.bits, first.pos);
    if (p->tok.kind != ',' && p->tok.kind != '}' && p->tok.kind != ';')
      kiln__cpu_ptx_rewind(p, &place);
    else
      v = (kiln__cpu_value){KILN__OPERAND_INTEGER, first.is_unsigned,
                            first.bits};
  }
  if (p->tok.text.data == first.text.data && !kiln__cpu_ptx_constant(p, &v))
    return false;
  if (!bits_of(&v, f->type, &bits))
    return mismatch(p, first.pos);
  return store(p, f, at, bits);
}

/* Parses the braced initialiser of array dimension `level`. The items of the
 * last dimension are scalars. */
static bool level_of(kiln__cpu_parser *p, filler *f, uint32_t level,
                     uint64_t at)
{
  const kiln__cpu_ptx_pos pos = p->tok.pos;
  uint64_t n = 0;

  if (p->tok.kind != '{')
    return mismatch(p, pos);
  kiln__cpu_ptx_next(p);
  if (!kiln__cpu_ptx_accept(p, '}')) {
    do {
      if (f->dims[level] != 0 && n == f->dims[level])
        return kiln__cpu_wrong(
            p, p->tok.pos, "more initial values than the array has elements");
      if (!(level + 1 < f->n_dims
                ? level_of(p, f, level + 1, at + n * f->stride[level])
                : scalar(p, f, at + n * f->stride[level])))
        return false;
      n++;
    } while (kiln__cpu_ptx_accept(p, ','));
    if (!kiln__cpu_ptx_expect(p, '}'))
      return false;
  }
  if (f->dims[level] == 0) {
    if (n == 0)
      return mismatch(p, pos);
    f->dims[level] = n;
  }
  /* The initialiser of a vector must specify all components. */
  return level + 1 < f->n_dims || !f->vector || n == f->dims[level] ||
         mismatch(p, pos);
}

/* Copies the initial value and the relocations to the arena of the module. */
static bool keep(kiln__cpu_parser *p, filler *f, kiln__cpu_ptx_variable *v)
{
  uint8_t *bytes = kiln__cpu_ptx_new(p, f->bytes.size);
  kiln__cpu_ptx_reloc *relocs = NULL;

  if (bytes == NULL)
    return false;
  if (f->bytes.size > 0)
    memcpy(bytes, f->bytes.data, f->bytes.size);
  v->init = bytes;
  v->init_size = f->bytes.size;
  if (p->n_relocs > 0) {
    relocs = kiln__cpu_ptx_new(p, p->n_relocs * sizeof *relocs);
    if (relocs == NULL)
      return false;
    memcpy(relocs, p->relocs, p->n_relocs * sizeof *relocs);
  }
  v->relocs = relocs;
  v->n_relocs = p->n_relocs;
  return true;
}

bool kiln__cpu_ptx_initialiser(kiln__cpu_parser *p, kiln__cpu_ptx_variable *v,
                               uint64_t *dims, uint32_t n_dims)
{
  filler f = {
      .type = v->type, .dims = dims, .n_dims = n_dims, .vector = v->vector > 1};
  bool ok;

  if (v->type >= KILN__TEXREF || v->type == KILN__PRED)
    return mismatch(p, p->tok.pos);
  kiln__buf_init(&f.bytes, p->alloc);
  if (f.vector)
    dims[f.n_dims++] = v->vector;
  f.stride[f.n_dims] = kiln__cpu_ptx_type_bytes[v->type];
  for (uint32_t i = f.n_dims; i > 0; i--)
    f.stride[i - 1] = i == f.n_dims ? f.stride[i] : f.stride[i] * dims[i];
  p->n_relocs = 0;
  ok = f.n_dims > 0 ? level_of(p, &f, 0, 0) : scalar(p, &f, 0);
  ok = ok && keep(p, &f, v);
  kiln__buf_free(&f.bytes);
  return ok;
}

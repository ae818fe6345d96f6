/* bind_matrix.c -- binds the operands of mma and wmma.
 *
 * The modifiers of these opcodes state a shape and up to four element types.
 * They determine how many registers each fragment has and of which type, so
 * this file parses them instead of listing hundreds of rows in ops.def. */
#include "bind.h"

#include <string.h>

_Static_assert(sizeof(kiln__cpu_matrix) == sizeof(int64_t),
               "imm2 holds a kiln__cpu_matrix");

/* ---- Modifiers ----------------------------------------------------------- */

static const struct {
  const char *text;
  uint8_t bits;
} elements[] = {
    [KILN__ELEMENT_F16] = {".f16", 16},   [KILN__ELEMENT_BF16] = {".bf16", 16},
    [KILN__ELEMENT_TF32] = {".tf32", 32}, [KILN__ELEMENT_E4M3] = {".e4m3", 8},
    [KILN__ELEMENT_E5M2] = {".e5m2", 8},  [KILN__ELEMENT_S8] = {".s8", 8},
    [KILN__ELEMENT_U8] = {".u8", 8},      [KILN__ELEMENT_S4] = {".s4", 4},
    [KILN__ELEMENT_U4] = {".u4", 4},      [KILN__ELEMENT_B1] = {".b1", 1},
    [KILN__ELEMENT_F32] = {".f32", 32},   [KILN__ELEMENT_S32] = {".s32", 32},
    [KILN__ELEMENT_F64] = {".f64", 64},
};

enum { N_ELEMENTS = sizeof elements / sizeof *elements };

unsigned kiln__cpu_element_bits(kiln__cpu_element type)
{
  return elements[type].bits;
}

/* Reads a decimal number after the letter `name` of a shape. */
static bool read_size(kiln__cpu_slice *s, char name, unsigned *out)
{
  if (s->size == 0 || *s->data != name)
    return false;
  *out = 0;
  s->data++;
  for (s->size--; s->size > 0 && *s->data >= '0' && *s->data <= '9';
       s->data++, s->size--)
    *out = *out * 10 + (unsigned)(*s->data - '0');
  return true;
}

/* Reads a shape such as .m16n8k16. Returns false for any other modifier. */
static bool read_shape(kiln__cpu_slice s, kiln__cpu_matrix *x)
{
  unsigned m, n, k;

  s.data++;
  s.size--;
  if (!read_size(&s, 'm', &m) || !read_size(&s, 'n', &n) ||
      !read_size(&s, 'k', &k) || s.size != 0)
    return false;
  x->m = (uint8_t)m;
  x->n = (uint8_t)n;
  x->k4 = (uint8_t)(k / 4);
  return true;
}

static int element_named(kiln__cpu_slice s)
{
  for (int i = 0; i < N_ELEMENTS; i++) {
    if (kiln__cpu_slice_is(s, elements[i].text))
      return i;
  }
  return -1;
}

typedef struct reading {
  kiln__cpu_matrix x;
  uint8_t types[4];
  unsigned n_types, n_layouts;
} reading;

static void read_modifier(reading *r, kiln__cpu_slice s)
{
  const int element = element_named(s);

  if (element >= 0 && r->n_types < 4)
    r->types[r->n_types++] = (uint8_t)element;
  else if (kiln__cpu_slice_is(s, ".row") || kiln__cpu_slice_is(s, ".col"))
    r->x.column =
        (r->x.column | (unsigned)(s.data[1] == 'c') << (r->n_layouts++ & 1)) &
        3U;
  else if (s.size > 2 && memcmp(s.data, ".sp", 3) == 0)
    r->x.sparse = true;
  else if (s.size == 2 && s.data[1] >= 'a' && s.data[1] <= 'd')
    r->x.used = (unsigned)(s.data[1] - 'a') & 3U;
  else
    (void)read_shape(s, &r->x);
}

/* Assigns the types to the fragments. wmma.mma of f16 states D and C, every
 * other opcode with several types states D, A, B and C. */
static void assign_types(reading *r)
{
  static const kiln__cpu_fragment order[] = {
      KILN__FRAGMENT_D, KILN__FRAGMENT_A, KILN__FRAGMENT_B, KILN__FRAGMENT_C};

  memset(r->x.type, KILN__ELEMENT_F16, sizeof r->x.type);
  if (r->n_types == 4) {
    for (unsigned i = 0; i < 4; i++)
      r->x.type[order[i]] = r->types[i];
  } else if (r->n_types == 2) {
    r->x.type[KILN__FRAGMENT_D] = r->types[0];
    r->x.type[KILN__FRAGMENT_C] = r->types[1];
  } else {
    memset(r->x.type, r->types[0], sizeof r->x.type);
  }
}

kiln__cpu_matrix kiln__cpu_matrix_read(kiln__cpu_slice opcode)
{
  const char *end = opcode.data + opcode.size;
  reading r = {.x = {.wmma = opcode.data[0] == 'w'}};

  for (const char *at = memchr(opcode.data, '.', opcode.size); at != NULL;) {
    const char *next = memchr(at + 1, '.', (size_t)(end - at - 1));

    read_modifier(&r, (kiln__cpu_slice){
                          at, (uint32_t)((next != NULL ? next : end) - at)});
    at = next;
  }
  assign_types(&r);
  return r.x;
}

/* ---- Fragments ----------------------------------------------------------- */

unsigned kiln__cpu_fragment_registers(const kiln__cpu_matrix *x,
                                      kiln__cpu_fragment f)
{
  const kiln__cpu_element type = (kiln__cpu_element)x->type[f];
  const unsigned bits = elements[type].bits;
  const unsigned k = 4u * x->k4 / (x->sparse && f == KILN__FRAGMENT_A ? 2 : 1);
  unsigned n = f == KILN__FRAGMENT_A   ? x->m * k
               : f == KILN__FRAGMENT_B ? x->n * k
                                       : (unsigned)x->m * x->n;

  /* Four groups of lanes compute one m8n8k4 each. */
  if (x->k4 == 1 && x->m == 8 && type != KILN__ELEMENT_F64)
    n *= 4;
  /* The factors of wmma in f16 have registers for two copies. */
  if (x->wmma && type == KILN__ELEMENT_F16 && f <= KILN__FRAGMENT_B)
    return 8;
  return n * bits / KILN__WARP / (bits == 64 ? 64 : 32);
}

void kiln__cpu_fragment_type(kiln__cpu_form *form, const kiln__cpu_matrix *x,
                             kiln__cpu_element type, bool moved)
{
  switch (type) {
  case KILN__ELEMENT_F16:
    form->type = KILN__F16X2;
    break;
  case KILN__ELEMENT_F32:
    form->type = KILN__F32;
    break;
  case KILN__ELEMENT_S32:
    form->type = KILN__U32;
    break;
  case KILN__ELEMENT_F64:
    form->type = KILN__B64;
    break;
  case KILN__ELEMENT_BF16:
  case KILN__ELEMENT_TF32:
    form->type = KILN__B32;
    form->strict = !moved;
    break;
  default:
    form->type = x->wmma ? KILN__U32 : KILN__B32;
    break;
  }
  /* ptxas allows any register of 32 bits in wmma.load and wmma.store. */
  if (moved && form->type != KILN__B64)
    form->type = KILN__B32;
}

/* Returns whether the registers of a strict fragment have a bit type. */
static bool strict_fits(const kiln__cpu_ptx_operand *o)
{
  for (uint32_t i = 0; i < o->n_items; i++) {
    if (kiln__cpu_is_register(&o->items[i]) &&
        o->items[i].symbol->u.variable->type != KILN__B32)
      return false;
  }
  return true;
}

/* Returns whether the literals of a fragment have a type. ptxas gives a literal the
 * type of the registers beside it. Without a register, only sums of f32 and s32
 * and elements of f64 have one. It takes no literals beside registers of type
 * f16x2, nor in the integers of B in wmma. */
static bool literals_fit(const kiln__cpu_matrix *x, kiln__cpu_fragment which,
                         const kiln__cpu_ptx_operand *o)
{
  const kiln__cpu_element type = (kiln__cpu_element)x->type[which];
  const kiln__cpu_operand_kind sole =
      type == KILN__ELEMENT_F32 ? KILN__OPERAND_FLOAT32 : KILN__OPERAND_INTEGER;
  bool typed = false, packed = false,
       fit = which > KILN__FRAGMENT_B && type != KILN__ELEMENT_F16;
  uint32_t n_literals = 0;

  for (uint32_t i = 0; i < o->n_items; i++) {
    const kiln__cpu_ptx_operand *item = &o->items[i];

    if (kiln__cpu_is_register(item)) {
      typed = true;
      packed |= item->symbol->u.variable->type == KILN__F16X2;
    } else {
      n_literals++;
      fit &= item->kind == sole;
    }
  }
  if (n_literals == 0 || type == KILN__ELEMENT_F64)
    return true;
  if (packed ||
      (x->wmma && which == KILN__FRAGMENT_B && type != KILN__ELEMENT_F16))
    return false;
  return typed || fit;
}

bool kiln__cpu_bind_fragment(kiln__cpu_binder *k, const kiln__cpu_form *f,
                             const kiln__cpu_ptx_operand *o)
{
  const kiln__cpu_fragment which = (kiln__cpu_fragment)f->count;
  const bool moved = k->row->n_forms < 4;
  kiln__cpu_form form = {.shape = KILN__SHAPE_SOURCE};
  kiln__cpu_matrix x;
  unsigned n;
  int32_t ids[16];

  if (k->in->imm2 == 0) {
    x = kiln__cpu_matrix_read(k->l->matches->opcode);
    memcpy(&k->in->imm2, &x, sizeof x);
  }
  memcpy(&x, &k->in->imm2, sizeof x);
  n = kiln__cpu_fragment_registers(&x, which);
  kiln__cpu_fragment_type(&form, &x, (kiln__cpu_element)x.type[which], moved);
  if (o->n_items != n || n > sizeof ids / sizeof *ids ||
      (form.strict && !strict_fits(o)) ||
      (!moved && !literals_fit(&x, which, o)) ||
      k->n_more + n > sizeof k->more / sizeof *k->more)
    return kiln__cpu_mismatch(k, o);
  if (!kiln__cpu_bind_elements(k, &form, o, (uint8_t)n, f->written, ids))
    return false;
  if (f->written) {
    k->in->vec = kiln__cpu_keep_vector(k, ids, n);
    k->in->n_vec = (uint16_t)n;
    return k->in->vec != NULL;
  }
  memcpy(k->more + k->n_more, ids, n * sizeof *ids);
  k->n_more = (uint16_t)(k->n_more + n);
  return true;
}

bool kiln__cpu_bind_selector(kiln__cpu_binder *k,
                             const kiln__cpu_ptx_operand *o)
{
  kiln__cpu_matrix x;
  unsigned bits, groups;

  memcpy(&x, &k->in->imm2, sizeof x);
  /* The metadata of a sparse A fills 1, 2 or 4 words per group of 4 lanes. The
   * selector states which of the lanes provide them. */
  bits = elements[x.type[KILN__FRAGMENT_A]].bits;
  groups =
      (bits >= 16 ? 8 : 4) / kiln__cpu_fragment_registers(&x, KILN__FRAGMENT_A);
  if (o->bits >= groups)
    return kiln__cpu_complain(k->l, o->pos, "the sparsity selector is above %u",
                              groups - 1);
  x.selector = (unsigned)o->bits & 3U;
  memcpy(&k->in->imm2, &x, sizeof x);
  return true;
}

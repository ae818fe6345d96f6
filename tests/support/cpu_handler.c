/* cpu_handler.c -- determines the operands of an instruction, runs its handler
 * on test data, and compares the results with a reference. */
#include "cpu_handler.h"

#include "cpu_rows.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- Rows of ops.def and modifiers --------------------------------------- */

/* Returns the size in bytes of a register of this type, or 1 for a predicate.
 * The size is 2 for 8-bit types, because 8-bit values are stored like 16-bit
 * registers. */
static uint8_t type_bytes(unsigned type)
{
  return type == KILN__PRED                    ? 1
         : kiln__cpu_ptx_type_bytes[type] == 1 ? 2
                                               : kiln__cpu_ptx_type_bytes[type];
}

/* The state while the operand column of a row is processed from left to
 * right. */
typedef struct shaper {
  cpu_case *c;
  /* number of destinations and sources that were found so far */
  unsigned written, read;
} shaper;

static void add_result(shaper *s, uint8_t bytes)
{
  ck_assert_uint_lt(s->written, 2);
  *(s->written++ == 0 ? &s->c->d : &s->c->d2) = bytes;
}

static void add_source(shaper *s, unsigned slot, uint8_t bytes)
{
  uint8_t *const sources[] = {&s->c->a, &s->c->b, &s->c->c, &s->c->e};

  if (slot == 0) {
    ck_assert_uint_lt(s->read, 4);
    slot = ++s->read;
  }
  *sources[slot - 1] = bytes;
}

/* Adds a vector operand to the description of the operands. A vector of one
 * element is also a scalar operand. */
static void add_data(shaper *s, const kiln__cpu_form *f, uint8_t bytes)
{
  const bool written = f->shape == KILN__SHAPE_DATA_OUT;
  const uint8_t n = f->count != 0       ? f->count
                    : s->c->in.sub2 > 1 ? s->c->in.sub2
                                        : 1;

  s->c->vec_written = written;
  if (n > 1) {
    s->c->n_vec = n;
    s->c->vec = bytes;
    return;
  }
  s->c->vec_is_operand = true;
  if (written)
    add_result(s, bytes);
  else
    add_source(s, f->slot, bytes);
}

static void add_form(shaper *s, const kiln__cpu_form *f)
{
  const uint8_t bytes = type_bytes(cpu_form_type(&s->c->in, f->type));

  switch ((kiln__cpu_shape)f->shape) {
  case KILN__SHAPE_DEST_PAIR:
    s->c->d2 = 1;
    add_result(s, bytes);
    break;
  case KILN__SHAPE_DEST:
    add_result(s, bytes);
    break;
  case KILN__SHAPE_SOURCE:
  case KILN__SHAPE_PREDICATE:
    add_source(s, f->slot, bytes);
    break;
  case KILN__SHAPE_DATA_OUT:
  case KILN__SHAPE_DATA_IN:
    add_data(s, f, bytes);
    break;
  default: /* The test itself must describe these operands. */
    break;
  }
}

static void set_shape(cpu_case *c, const kiln__cpu_row *row)
{
  shaper s = {.c = c};

  for (unsigned i = 0; i < row->n_forms; i++)
    add_form(&s, &row->forms[i]);
  c->in.reg_bytes = c->d < 2 ? 2 : c->d;
  c->in.src_reg_bytes = c->a < 2 ? 2 : c->a;
}

/* Returns the row of ops.def with the given name if its pattern matches the
 * opcode. Without a name, returns the first row that the loader would select.
 * Returns -1 if there is no such row. Some rows can be selected only by name:
 * rows that the loader inserts ("@..."), and opcodes whose modifiers exclude
 * each other. */
static int find_row(const kiln__cpu_matches *m, const char *opcode,
                    const char *name, size_t n)
{
  if (n == 0 && *opcode != '@')
    return m->n > 0 ? m->ops[0] : -1;
  for (int op = 0; op < KILN__N_OPS; op++) {
    const char *text = kiln__cpu_op_name[op];

    if ((n == 0 || (strlen(text) == n && memcmp(text, name, n) == 0)) &&
        kiln__cpu_pattern_matches(kiln__cpu_op_pattern[op], opcode,
                                  strlen(opcode)))
      return op;
  }
  return -1;
}

bool cpu_case_find(cpu_case *c, const char *opcode)
{
  const char *const blank = strchr(opcode, ' ');
  const size_t named = blank == NULL ? 0 : (size_t)(blank - opcode);
  const char *const name = opcode;
  const kiln__cpu_matches *m;
  int op;

  memset(c, 0, sizeof *c);
  opcode += blank == NULL ? 0 : named + 1;
  m = kiln__cpu_matcher_find(cpu_rows(), opcode, strlen(opcode));
  ck_assert_ptr_nonnull(m);
  op = find_row(m, opcode, name, named);
  if (op < 0)
    return false;
  c->opcode = opcode;
  c->in = m->fields;
  c->in.op = (uint16_t)op;
  set_shape(c, &cpu_rows()->rows[op]);
  return true;
}

void cpu_case_init(cpu_case *c, const char *opcode)
{
  ck_assert_msg(cpu_case_find(c, opcode), "no row matches %s", opcode);
}

/* Expands one set of alternatives in a pattern. Writes alternative number k %
 * count, where count is the number of alternatives, and returns count. */
static size_t expand_group(const char **at, size_t k, char *out, size_t *n)
{
  const char *const end = strchr(*at, ')');
  const bool optional = end[1] == '?';
  size_t count = optional;
  size_t choice;
  const char *one = *at + 1;

  for (const char *p = *at; p < end; p++)
    count += *p == '|' || *p == '(';
  choice = k % count;
  if (choice < count - optional) {
    for (; choice > 0; choice--)
      one = strchr(one, '|') + 1;
    memcpy(out + *n, one, strcspn(one, "|)"));
    *n += strcspn(one, "|)");
  }
  *at = end + 1 + optional;
  return count;
}

size_t cpu_row_opcode(kiln__cpu_op op, size_t k, char *buf, size_t size)
{
  const char *at = kiln__cpu_op_pattern[op];
  size_t total = 1, n = 0;
  char text[256];

  while (*at != 0) {
    ck_assert_uint_lt(n, sizeof text - 40);
    if (*at == '(') {
      const size_t count = expand_group(&at, k, text, &n);

      k /= count;
      total *= count;
    } else {
      text[n++] = *at++;
    }
  }
  text[n] = 0;
  ck_assert_int_lt(snprintf(buf, size, "%s %s", kiln__cpu_op_name[op], text),
                   (int)size);
  return total;
}

/* ---- Builds -------------------------------------------------------------- */

const kiln__cpu_isa *cpu_isas[3];

unsigned cpu_isas_find(void)
{
  static const char *const names[] = {"base", "x86-64-v3", "x86-64-v4"};
  unsigned n = 0;

  for (unsigned i = 0; i < 3; i++) {
    const kiln__cpu_isa *isa = kiln__cpu_isa_best(names[i]);

    if (isa != NULL)
      cpu_isas[n++] = isa;
  }
  ck_assert_uint_gt(n, 0);
  return n;
}

/* One flag per row of ops.def. The flags are in memory that is shared with the
 * child processes that Check forks. */
static volatile bool *seen;

void cpu_seen_init(void)
{
  void *p = mmap(NULL, KILN__N_OPS, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

  seen = p == MAP_FAILED ? NULL : p;
  /* The test allocates and frees operands in blocks of a few hundred kilobytes.
   * With this setting, malloc keeps the blocks in the heap. */
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
}

bool cpu_seen(kiln__cpu_op op)
{
  return seen != NULL && seen[op];
}

/* ---- One run ------------------------------------------------------------- */

/* The layout of a warp's registers in memory. There are gaps between registers,
 * so that a write beyond the end of a register does not change other
 * operands. */
enum {
  SLOT_BYTES = 320,
  SLOT_D = 1,
  SLOT_D2,
  SLOT_A,
  SLOT_B,
  SLOT_C,
  SLOT_E,
  SLOT_VEC,
  N_SLOTS = SLOT_VEC + CPU_MAX_VEC + 1
};

typedef struct frame {
  _Alignas(64) uint8_t bytes[N_SLOTS * SLOT_BYTES];
  uint32_t carry[KILN__WARP];
} frame;

static uint64_t slot_mask(uint8_t bytes)
{
  return bytes == 8 ? UINT64_MAX : bytes == 2 ? 0xffff : UINT32_MAX;
}

static void put(frame *f, int32_t slot, uint8_t bytes, int lane, uint64_t value)
{
  if (slot < 0)
    return;
  if (bytes == 8) {
    memcpy(f->bytes + slot + lane * 8, &value, 8);
  } else {
    const uint32_t v = bytes == 1 ? (value != 0 ? UINT32_MAX : 0)
                                  : (uint32_t)(value & slot_mask(bytes));

    memcpy(f->bytes + slot + lane * 4, &v, 4);
  }
}

static uint64_t get(const frame *f, int32_t slot, uint8_t bytes, int lane)
{
  uint64_t wide;
  uint32_t v;

  if (slot < 0)
    return 0;
  if (bytes == 8) {
    memcpy(&wide, f->bytes + slot + lane * 8, 8);
    return wide;
  }
  memcpy(&v, f->bytes + slot + lane * 4, 4);
  if (bytes == 1 && v == UINT32_MAX)
    return 1;
  return v;
}

static int32_t slot_of(uint8_t bytes, int number)
{
  return bytes == 0 ? KILN__NO_SLOT : number * SLOT_BYTES;
}

static bool alias_slot(int32_t *to, uint8_t to_bytes, int32_t from,
                       uint8_t from_bytes)
{
  if (to_bytes == 0 || from_bytes == 0 || from < 0 || *to < 0 ||
      (to_bytes == 8) != (from_bytes == 8) ||
      (to_bytes == 1) != (from_bytes == 1))
    return false;
  *to = from;
  return true;
}

static bool set_alias(const cpu_case *c, kiln__cpu_insn *in, int32_t *vec,
                      cpu_alias alias);

static bool set_slots(const cpu_case *c, kiln__cpu_insn *in, int32_t *vec,
                      cpu_alias alias)
{
  bool fits;

  *in = c->in;
  in->d = slot_of(c->d, SLOT_D);
  in->d2 = slot_of(c->d2, SLOT_D2);
  in->a = slot_of(c->a, SLOT_A);
  in->b = slot_of(c->b, SLOT_B);
  in->c = slot_of(c->c, SLOT_C);
  in->e = slot_of(c->e, SLOT_E);
  in->guard = KILN__NO_SLOT;
  for (int k = 0; k < c->n_vec; k++) {
    vec[k] = (c->vec_sinks >> k & 1) != 0 ? KILN__NO_SLOT
                                          : slot_of(c->vec, SLOT_VEC + k);
  }
  in->vec = c->n_vec > 0 ? vec : NULL;
  in->n_vec = c->n_vec;
  fits = set_alias(c, in, vec, alias);
  if (c->vec_is_operand) {
    /* The data of a store instruction is its last source. */
    vec[0] = c->d != 0   ? in->d
             : c->e != 0 ? in->e
             : c->c != 0 ? in->c
             : c->b != 0 ? in->b
                         : in->a;
    in->vec = vec;
    in->n_vec = 1;
  }
  return fits;
}

static bool set_alias(const cpu_case *c, kiln__cpu_insn *in, int32_t *vec,
                      cpu_alias alias)
{
  switch (alias) {
  case CPU_ALIAS_D_A:
    return alias_slot(&in->d, c->d, in->a, c->a);
  case CPU_ALIAS_D_B:
    return alias_slot(&in->d, c->d, in->b, c->b);
  case CPU_ALIAS_D_C:
    return alias_slot(&in->d, c->d, in->c, c->c);
  case CPU_ALIAS_D_E:
    return alias_slot(&in->d, c->d, in->e, c->e);
  case CPU_ALIAS_D2_A:
    return alias_slot(&in->d2, c->d2, in->a, c->a);
  case CPU_ALIAS_D2_B:
    return alias_slot(&in->d2, c->d2, in->b, c->b);
  case CPU_ALIAS_VEC_A:
    return c->vec_written && c->n_vec > 0 &&
           alias_slot(&vec[0], c->vec, in->a, c->a);
  case CPU_ALIAS_D_VEC:
    return !c->vec_written && c->n_vec > 0 &&
           alias_slot(&in->d, c->d, vec[0], c->vec);
  default:
    return true;
  }
}

static void fill_frame(const cpu_case *c, const kiln__cpu_insn *in, frame *f,
                       const cpu_lane lanes[KILN__WARP])
{
  static frame noise;
  static bool made;

  if (!made) {
    uint64_t seed = 88172645463325252;

    for (size_t i = 0; i < sizeof noise.bytes; i += 8) {
      const uint64_t r = test_random(&seed);

      memcpy(noise.bytes + i, &r, 8);
    }
    made = true;
  }
  memcpy(f->bytes, noise.bytes, sizeof f->bytes);
  for (int i = 0; i < KILN__WARP; i++) {
    put(f, in->d, c->d, i, lanes[i].d);
    put(f, in->d2, c->d2, i, lanes[i].d2);
    for (int k = 0; k < c->n_vec; k++)
      put(f, in->vec[k], c->vec, i, lanes[i].vec[k]);
    put(f, in->a, c->a, i, lanes[i].a);
    put(f, in->b, c->b, i, lanes[i].b);
    put(f, in->c, c->c, i, lanes[i].c);
    put(f, in->e, c->e, i, lanes[i].e);
    f->carry[i] = lanes[i].carry;
  }
}

/* Checks that the handler changed nothing but its results. */
static void check_rest(const cpu_case *c, const kiln__cpu_isa *isa,
                       const kiln__cpu_insn *in, const frame *before,
                       const frame *after, const cpu_lane out[KILN__WARP],
                       uint32_t mask)
{
  static frame expected;
  frame *const want = &expected;

  memcpy(want, before, sizeof *want);
  for (int i = 0; i < KILN__WARP; i++) {
    if ((mask >> i & 1) == 0)
      continue;
    put(want, in->d, c->d, i, out[i].d);
    put(want, in->d2, c->d2, i, out[i].d2);
    for (int k = 0; c->vec_written && k < c->n_vec; k++)
      put(want, in->vec[k], c->vec, i, out[i].vec[k]);
    want->carry[i] = after->carry[i];
  }
  if (memcmp(want, after, sizeof *want) == 0)
    return;
  for (size_t i = 0; memcmp(want->bytes, after->bytes, sizeof want->bytes) != 0;
       i++) {
    ck_assert_msg(want->bytes[i] == after->bytes[i],
                  "%s (%s, mask %08x): byte %zu of slot %zu changed, or a "
                  "register holds more bits than it has",
                  c->opcode, isa->name, mask, i % SLOT_BYTES, i / SLOT_BYTES);
  }
  for (int i = 0; i < KILN__WARP; i++) {
    if (want->carry[i] != after->carry[i])
      ck_abort_msg("%s: carry of lane %d", c->opcode, i);
  }
}

bool cpu_case_run(const cpu_case *c, const kiln__cpu_isa *isa,
                  const cpu_lane in[KILN__WARP], uint32_t mask, cpu_alias alias,
                  cpu_lane out[KILN__WARP])
{
  kiln__cpu_handler *const fn = isa->handlers[c->in.op];
  int32_t vec[CPU_MAX_VEC];
  static frame before_run, after_run;
  frame *const before = &before_run, *const after = &after_run;
  kiln__cpu_insn insn;
  kiln__cpu_grid grid = {.arch = 90, .fault = {.kind = KILN__FAULT_NONE}};
  kiln__cpu_block block = {.grid = &grid};
  kiln__cpu_warp w = {.mask = mask,
                      .full = mask == UINT32_MAX,
                      .live = UINT32_MAX,
                      .block = &block,
                      .grid = &grid};

  if (!set_slots(c, &insn, vec, alias))
    return false;
  /* A plain comparison is used here, because Check writes to a file for each
   * passed assertion, which is too slow. */
  if (fn == NULL)
    ck_abort_msg("%s has no handler in %s", kiln__cpu_op_name[c->in.op],
                 isa->name);
  fill_frame(c, &insn, before, in);
  memcpy(after, before, sizeof *after);
  for (int i = 0; i < KILN__WARP; i++)
    w.lane[i] = (mask >> i & 1) != 0 ? UINT32_MAX : 0;
  w.regs = after->bytes;
  w.carry = after->carry;
  if (c->prepare != NULL)
    c->prepare(&w, c->user);
  fn(&w, &insn);
  if (seen != NULL)
    seen[c->in.op] = true;
  for (int i = 0; i < KILN__WARP; i++) {
    out[i] = in[i];
    out[i].d = get(after, insn.d, c->d, i);
    out[i].d2 = get(after, insn.d2, c->d2, i);
    for (int k = 0; c->vec_written && k < c->n_vec; k++)
      out[i].vec[k] = get(after, insn.vec[k], c->vec, i);
    out[i].carry = after->carry[i];
  }
  check_rest(c, isa, &insn, before, after, out, mask);
  return true;
}

/* ---- Comparison with a reference ----------------------------------------- */

static bool equal(const cpu_case *c, const cpu_lane *got, const cpu_lane *want)
{
  bool same = (c->d == 0 || got->d == want->d) &&
              (c->d2 == 0 || got->d2 == want->d2) && got->carry == want->carry;

  for (int k = 0; c->vec_written && k < c->n_vec; k++) {
    same =
        same && ((c->vec_sinks >> k & 1) != 0 || got->vec[k] == want->vec[k]);
  }
  return same;
}

static void complain(const cpu_case *c, const kiln__cpu_isa *isa, uint32_t mask,
                     cpu_alias alias, int lane, const cpu_lane *source,
                     const cpu_lane *got, const cpu_lane *want)
{
  ck_abort_msg(
      "%s (%s, mask %08x, alias %d, lane %d) a=%llx b=%llx c=%llx e=%llx "
      "imm=%llx carry=%x vec=%llx %llx: got d=%llx d2=%llx carry=%x vec=%llx "
      "%llx, want d=%llx d2=%llx carry=%x vec=%llx %llx",
      c->opcode, isa->name, mask, (int)alias, lane,
      (unsigned long long)source->a, (unsigned long long)source->b,
      (unsigned long long)source->c, (unsigned long long)source->e,
      (unsigned long long)c->in.imm, source->carry,
      (unsigned long long)source->vec[0], (unsigned long long)source->vec[1],
      (unsigned long long)got->d, (unsigned long long)got->d2, got->carry,
      (unsigned long long)got->vec[0], (unsigned long long)got->vec[1],
      (unsigned long long)want->d, (unsigned long long)want->d2, want->carry,
      (unsigned long long)want->vec[0], (unsigned long long)want->vec[1]);
}

static void compare(const cpu_case *c, const kiln__cpu_isa *isa,
                    const cpu_lane in[KILN__WARP],
                    const cpu_lane want[KILN__WARP], uint32_t mask,
                    cpu_alias alias)
{
  cpu_lane got[KILN__WARP];

  if (!cpu_case_run(c, isa, in, mask, alias, got))
    return;
  for (int i = 0; i < KILN__WARP; i++) {
    if ((mask >> i & 1) == 0)
      /* cpu_case_run() has checked that the handler changed nothing else. */
      continue;
    if (!equal(c, &got[i], &want[i]) &&
        (c->same == NULL || !c->same(&c->in, &in[i], &got[i], &want[i])))
      complain(c, isa, mask, alias, i, &in[i], &got[i], &want[i]);
  }
}

/* Truncates source values to the width of their registers, so that the
 * reference reads the same values as the handler. */
static void cut(const cpu_case *c, cpu_lane *l)
{
  l->a &= c->a == 1 ? 1 : slot_mask(c->a);
  l->b &= c->b == 1 ? 1 : slot_mask(c->b);
  l->c &= c->c == 1 ? 1 : slot_mask(c->c);
  l->e &= c->e == 1 ? 1 : slot_mask(c->e);
  for (int k = 0; k < CPU_MAX_VEC; k++)
    l->vec[k] &= c->vec == 1 ? 1 : slot_mask(c->vec);
  l->d &= c->d == 1 ? 1 : slot_mask(c->d);
  l->d2 &= c->d2 == 1 ? 1 : slot_mask(c->d2);
  l->carry &= 1;
}

void cpu_case_check(cpu_case *c, const cpu_lane *lanes, size_t n,
                    cpu_reference *reference)
{
  static const uint32_t masks[] = {0x1,        0x80000000, 0x55555555,
                                   0xffff0000, 0x7fffffff, 0x12488421,
                                   0xfffffffe};
  enum { N_MASKS = sizeof masks / sizeof *masks };
  const unsigned n_isas = cpu_isas_find();
  const size_t n_warps = (n + KILN__WARP - 1) / KILN__WARP;
  /* If there are few operand values, they are repeated until every lane mask
   * has been combined with every alias of operands. */
  const size_t turns = c->brief ? 14 : N_MASKS * CPU_N_ALIASES;
  const size_t rounds = n_warps < turns ? turns : n_warps;

  ck_assert_uint_gt(n, 0);
  for (size_t r = 0; r < rounds; r++) {
    const cpu_alias alias = (cpu_alias)(r % CPU_N_ALIASES);
    cpu_lane in[KILN__WARP], want[KILN__WARP];

    for (int i = 0; i < KILN__WARP; i++) {
      in[i] = lanes[(r % n_warps * KILN__WARP + (size_t)i) % n];
      cut(c, &in[i]);
      in[i].in = &c->in;
      want[i] = in[i];
      reference(&want[i]);
    }
    for (unsigned k = 0; k < n_isas; k++) {
      if (r < n_warps)
        compare(c, cpu_isas[k], in, want, UINT32_MAX, CPU_ALIAS_NONE);
    }
    /* The runs alternate between 7 lane masks, 9 aliases of operands and 3
     * builds of the handlers. */
    if (r < 2 * turns) {
      const kiln__cpu_isa *const isa = cpu_isas[r / CPU_N_ALIASES % n_isas];

      compare(c, isa, in, want, UINT32_MAX, alias);
      compare(c, isa, in, want, masks[r % N_MASKS], alias);
    }
  }
}

/* ---- Operands ------------------------------------------------------------ */

static const uint64_t edges16[] = {
    0,      1,      2,      3,      7,      8,     15,     16,
    31,     32,     0x7f,   0x80,   0xff,   0x100, 0x7ffe, 0x7fff,
    0x8000, 0x8001, 0xfffe, 0xffff, 0xff80, 0x5555};
static const uint64_t edges32[] = {
    0,          1,          2,          3,          7,          8,
    15,         16,         17,         24,         31,         32,
    33,         63,         64,         0x7f,       0x80,       0xff,
    0x7fff,     0x8000,     0xffff,     0x10000,    0x7ffffffe, 0x7fffffff,
    0x80000000, 0x80000001, 0xfffffffe, 0xffffffff, 0xffff8000, 0x00ffffff,
    0x01000000, 0x55555555, 0xaaaaaaaa, 0xffffff80, 0x80808080, 0x7f7f7f7f};
static const uint64_t edges64[] = {
    /* Small numbers and counts. */
    0, 1, 2, 3, 31, 32, 63, 64, 65,
    /* Limits of the types. */
    0x7f, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
    0x1ffffffff, 0x7ffffffffffffffe, 0x7fffffffffffffff, 0x8000000000000000,
    0x8000000000000001, 0xfffffffffffffffe, 0xffffffffffffffff,
    /* Patterns. */
    0xffffffff80000000, 0xffffffff00000000, 0xaaaaaaaaaaaaaaaa,
    0x0123456789abcdef};
/* Edge values of each type: zeros, subnormals, ones, halfway cases, integer
 * limits, infinities, and quiet and signalling NaNs. Both signs occur where the
 * sign matters. */
static const uint64_t edges_f16[] = {
    0,      0x8000, 1,      0x8001, 0x03ff, 0x83ff, 0x0400, 0x8400,
    0x3800, 0xb800, 0x3c00, 0xbc00, 0x3e00, 0xbe00, 0x4100, 0x4000,
    0x3bff, 0x3c01, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe00,
    0x7c01, 0xfc01, 0x7fff, 0xffff, 0x5bf8, 0x5c00, 0x4248};
static const uint64_t edges_bf16[] = {
    0,      0x8000, 1,      0x8001, 0x007f, 0x807f, 0x0080, 0x8080,
    0x3f00, 0xbf00, 0x3f80, 0xbf80, 0x3fc0, 0xbfc0, 0x4020, 0x4000,
    0x3f7f, 0x3f81, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0xffc0,
    0x7f81, 0xff81, 0x7fff, 0xffff, 0x4f00, 0x4f80, 0xcf00, 0x437f};
static const uint64_t edges_f32[] = {
    0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x807fffff,
    0x00800000, 0x80800000, 0x00800001, 0x3f000000, 0xbf000000, 0x3f800000,
    0xbf800000, 0x3fc00000, 0xbfc00000, 0x40200000, 0xc0200000, 0x3effffff,
    0x3f000001, 0x3f7fffff, 0x3f800001, 0x40000000, 0x40400000, 0x7f7fffff,
    0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001,
    0xff800001, 0x7fffffff, 0xffffffff, 0x4b7fffff, 0x4b800000, 0x4effffff,
    0x4f000000, 0xcf000000, 0xcf000001, 0x4f7fffff, 0x4f800000, 0x5f000000,
    0x5effffff, 0xdf000000, 0xdf000001, 0x5f800000, 0x5f7fffff, 0x477fe000,
    0x477ff000, 0x477fefff, 0x33800000, 0x33000000, 0x33000001, 0x387fc000,
    0x3f802000, 0x3f801000, 0x3f803000, 0x42fe0000, 0x42ff0000, 0x437f8000,
    0xc3000000, 0xc3008000, 0x46fffe00, 0x46ffff00, 0x40490fdb, 0x2f800000};
static const uint64_t edges_f64[] = {
    /* Zeros, and the limits of subnormals. */
    0, 0x8000000000000000, 1, 0x8000000000000001, 0x000fffffffffffff,
    0x800fffffffffffff, 0x0010000000000000, 0x8010000000000000,
    /* Numbers near 1. */
    0x3fe0000000000000, 0xbfe0000000000000, 0x3ff0000000000000,
    0xbff0000000000000, 0x3ff8000000000000, 0xbff8000000000000,
    0x4004000000000000, 0xc004000000000000, 0x3fdfffffffffffff,
    0x3fe0000000000001, 0x4000000000000000,
    /* The largest numbers, infinities and NaNs. */
    0x7fefffffffffffff, 0xffefffffffffffff, 0x7ff0000000000000,
    0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000000000,
    0x7ff0000000000001, 0xfff0000000000001, 0x7fffffffffffffff,
    0xffffffffffffffff,
    /* Limits of the integers. */
    0x41dfffffffc00000, 0x41dfffffffe00000, 0x41dfffffffdfffff,
    0x41e0000000000000, 0xc1e0000000000000, 0xc1e0000000100000,
    0xc1e0000000200000, 0x41efffffffe00000, 0x41effffffff00000,
    0x41f0000000000000, 0x43e0000000000000, 0x43dfffffffffffff,
    0xc3e0000000000000, 0xc3e0000000000001, 0x43f0000000000000,
    0x43efffffffffffff, 0x4330000000000001, 0x4340000000000000,
    0x4320000000000001,
    /* Limits of f32, and midpoints between its numbers. */
    0x47efffffe0000000, 0x47effffff0000000, 0x47efffffefffffff,
    0x47f0000000000000, 0x36a0000000000000, 0x3690000000000000,
    0x3690000000000001, 0x380fffffffffffff, 0x380fffffe0000000,
    0x380ffffff0000000, 0x3810000000000000, 0x3ff0000010000000,
    0x3ff0000030000000, 0x3ff0000010000001, 0x3ff0000020000000,
    0x40effe0000000000, 0x40effdffffffffff, 0x400921fb54442d18};

static const uint64_t *edges_of(kiln__cpu_ptx_type type, size_t *n)
{
#define EDGES(list) (*n = sizeof(list) / sizeof *(list), (list))
  switch (type) {
  case KILN__F16:
  case KILN__F16X2:
    return EDGES(edges_f16);
  case KILN__BF16:
  case KILN__BF16X2:
    return EDGES(edges_bf16);
  case KILN__F32:
  case KILN__TF32:
    return EDGES(edges_f32);
  case KILN__F64:
    return EDGES(edges_f64);
  default:
    break;
  }
  switch (kiln__cpu_ptx_type_bytes[type]) {
  case 8:
    return EDGES(edges64);
  case 4:
    return EDGES(edges32);
  default:
    return EDGES(edges16);
  }
#undef EDGES
}

size_t cpu_n_edges(kiln__cpu_ptx_type type)
{
  size_t n;

  if (type == KILN__PRED)
    return 2;
  edges_of(type, &n);
  return n;
}

/* Returns a random bit pattern. Half of the patterns have few significant bits
 * or a common exponent, so that small integers and nearly equal floats occur.
 */
static uint64_t random_value(kiln__cpu_ptx_type type, uint64_t *seed)
{
  const uint64_t r = test_random(seed);
  const uint64_t how = test_random(seed);

  switch (how % 4) {
  case 0:
    if (type == KILN__F32)
      return (r & 0x81ffffff) | 0x3e000000 | (r >> 32 & 0x3f) << 23;
    if (type == KILN__F64)
      return (r & UINT64_C(0x800fffffffffffff)) | (0x3c0 + (how >> 8 & 0x7f))
                                                      << 52;
    return r >> (how >> 8) % 64;
  case 1:
    if (type != KILN__F32 && type != KILN__F64)
      return ~(r >> (how >> 8) % 64);
    return r;
  default:
    return r;
  }
}

uint64_t cpu_value(kiln__cpu_ptx_type type, size_t i, uint64_t *seed)
{
  const bool packed = type == KILN__F16X2 || type == KILN__BF16X2;
  uint64_t v;
  size_t n;

  if (type == KILN__PRED)
    return i < 2 ? i : test_random(seed) & 1;
  if (type == KILN__NONE)
    return test_random(seed);
  {
    const uint64_t *edges = edges_of(type, &n);

    if (i < n)
      v = packed ? edges[i] | edges[test_random(seed) % n] << 16 : edges[i];
    else
      v = random_value(type, seed);
  }
  switch (kiln__cpu_ptx_type_bytes[type]) {
  case 1:
    return v & 0xff;
  case 2:
    return v & 0xffff;
  case 4:
    return v & UINT32_MAX;
  default:
    return v;
  }
}

static size_t edges_or_one(kiln__cpu_ptx_type type)
{
  return type == KILN__NONE ? 1 : cpu_n_edges(type);
}

cpu_lane *cpu_lanes_make(const cpu_case *c, kiln__cpu_ptx_type a,
                         kiln__cpu_ptx_type b, kiln__cpu_ptx_type cc,
                         size_t n_random, size_t *n)
{
  const size_t na = edges_or_one(a), nb = edges_or_one(b);
  const size_t nc = edges_or_one(cc);
  uint64_t seed = 0x9e3779b97f4a7c15;
  cpu_lane *lanes;

  *n = na * nb + n_random;
  lanes = calloc(*n, sizeof *lanes);
  ck_assert_ptr_nonnull(lanes);
  for (size_t i = 0; i < *n; i++) {
    cpu_lane *l = &lanes[i];
    const bool random = i >= na * nb;

    l->a = cpu_value(a, random ? SIZE_MAX : i % na, &seed);
    l->b = cpu_value(b, random ? SIZE_MAX : i / na, &seed);
    /* Most values of c are edge values, in an order that does not depend on a
     * and b. */
    l->c =
        cpu_value(cc, (size_t)(test_random(&seed) % (nc + nc / 4 + 1)), &seed);
    l->e = test_random(&seed);
    if (c->e == 1)
      l->e &= 1;
    l->d = test_random(&seed);
    l->d2 = test_random(&seed);
    l->carry = (uint32_t)(test_random(&seed) >> 40 & 1);
    for (int k = 0; k < CPU_MAX_VEC; k++)
      l->vec[k] = test_random(&seed);
  }
  return lanes;
}

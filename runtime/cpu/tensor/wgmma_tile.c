/* wgmma_tile.c -- gathers the operands of wgmma, multiplies, and scatters the
 * result.
 *
 * Problem: A and B lie in shared memory in one of eight layouts, or A in
 * registers; D lies in registers. The arithmetic needs plain matrices.
 *
 * Idea: a layout maps chunks of 16 bytes to addresses. Without swizzling, eight
 * lines of one chunk each form a core matrix of 128 consecutive bytes, and the
 * two strides of the descriptor lead to the next core matrix in each dimension.
 * With swizzling, a line has 32, 64 or 128 consecutive bytes, eight lines
 * follow each other, and the address bits 4 to 6 are exchanged within a line by
 * an exclusive or with the bits 7 to 9. The columns of B are processed in slices,
 * so that the matrices fit on the stack.
 *
 * Invariant: one warp computes the rows 16 * warp to 16 * warp + 15 of D from
 * the same rows of A and from all of B. Warps do not depend on each other.
 *
 * Cost: the products dominate; a slice decodes the 16 rows of A again.
 *
 * Source: the PTX ISA, sections on the matrix descriptor and the register
 * fragments of wgmma, and measurements on an H200. */
#include "wgmma_tile.h"

#include <string.h>

enum {
  ROWS = 16,  /* rows of D per warp */
  SLICE = 32, /* columns per slice */
  LINES = 8,  /* lines of a core matrix */
  DENSE_BYTES = 32,
  MOST_B = 2 * KILN__TENSOR_MAX_K
};

static const struct {
  kiln__tensor_type type;
  uint8_t bytes; /* bytes per element, or per word of B1 */
  uint32_t sign; /* the sign bit */
} types[] = {[KILN__WGMMA_F16] = {KILN__TENSOR_F16, 2, 0x8000},
             [KILN__WGMMA_BF16] = {KILN__TENSOR_BF16, 2, 0x8000},
             [KILN__WGMMA_TF32] = {KILN__TENSOR_TF32, 4, UINT32_C(0x80000000)},
             [KILN__WGMMA_E4M3] = {KILN__TENSOR_E4M3, 1, 0x80},
             [KILN__WGMMA_E5M2] = {KILN__TENSOR_E5M2, 1, 0x80},
             [KILN__WGMMA_S8] = {KILN__TENSOR_S8, 1, 0},
             [KILN__WGMMA_U8] = {KILN__TENSOR_U8, 1, 0},
             [KILN__WGMMA_B1] = {KILN__TENSOR_B1, 4, 0},
             [KILN__WGMMA_F32] = {KILN__TENSOR_F32, 4, 0},
             [KILN__WGMMA_S32] = {KILN__TENSOR_S32, 4, 0}};

/* ---- Layouts in shared memory -------------------------------------------- */

void kiln__wgmma_matrix_read(kiln__wgmma_matrix *out, uint64_t descriptor,
                             bool mn_major)
{
  static const uint8_t swizzles[] = {0, 128, 64, 32};

  out->start = (uint32_t)(descriptor & 0x3fff) << 4;
  out->leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4;
  out->stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4;
  out->base = (uint32_t)(descriptor >> 49 & 7);
  out->swizzle = swizzles[descriptor >> 62];
  out->mn_major = mn_major;
}

/* Exchanges the chunks within the lines of a swizzled layout. */
static uint32_t swizzled(const kiln__wgmma_matrix *m, uint32_t address)
{
  const uint32_t width = m->swizzle / KILN__WGMMA_CHUNK;
  const uint32_t line = (address >> 7) - m->base;

  return address ^ ((line & (width - 1)) << 4);
}

uint32_t kiln__wgmma_chunk(const kiln__wgmma_matrix *m, uint32_t line,
                           uint32_t chunk)
{
  const uint32_t block = line / LINES, in_block = line % LINES;
  uint32_t width = m->swizzle / KILN__WGMMA_CHUNK;

  if (width == 0) {
    const uint32_t along = m->mn_major ? m->stride : m->leading;
    const uint32_t across = m->mn_major ? m->leading : m->stride;

    return m->start + block * across + chunk * along +
           in_block * KILN__WGMMA_CHUNK;
  }
  return swizzled(m, m->start + block * m->stride + chunk / width * m->leading +
                         in_block * m->swizzle +
                         chunk % width * KILN__WGMMA_CHUNK);
}

/* Returns the number of bytes of B per column. */
static uint32_t k_bytes(const kiln__wgmma_part *p, bool of_a)
{
  return !of_a && (p->form.flags & KILN__WGMMA_SPARSE) != 0 ? 2 * DENSE_BYTES
                                                            : DENSE_BYTES;
}

void kiln__wgmma_extent(const kiln__wgmma_part *part, bool of_a,
                        uint32_t *lines, uint32_t *chunks, uint32_t *first)
{
  const kiln__wgmma_matrix *m = of_a ? &part->a : &part->b;
  const uint32_t bytes = types[part->form.a].bytes;
  const uint32_t wide = of_a ? ROWS : part->form.columns * LINES;
  const uint32_t k = k_bytes(part, of_a);

  *lines = m->mn_major ? k / bytes : wide;
  *chunks = (m->mn_major ? wide * bytes : k) / KILN__WGMMA_CHUNK;
  *first = of_a ? part->warp * (m->mn_major ? *chunks : *lines) : 0;
}

uint32_t kiln__wgmma_nth_chunk(const kiln__wgmma_part *part, bool of_a,
                               uint32_t i)
{
  const kiln__wgmma_matrix *m = of_a ? &part->a : &part->b;
  uint32_t lines, chunks, first;

  kiln__wgmma_extent(part, of_a, &lines, &chunks, &first);
  return m->mn_major ? kiln__wgmma_chunk(m, i / chunks, first + i % chunks)
                     : kiln__wgmma_chunk(m, first + i / chunks, i % chunks);
}

/* ---- Operands as plain matrices ------------------------------------------ */

static uint32_t element(const uint8_t *at, uint32_t bytes)
{
  uint32_t value = 0;

  memcpy(&value, at, bytes);
  return value;
}

/* Reads element (i, l) of A or B^T from shared memory: row i of A, or column i
 * of B. */
static uint32_t read_element(const kiln__wgmma_part *p,
                             const kiln__wgmma_matrix *m, uint32_t i,
                             uint32_t l, uint32_t bytes)
{
  const uint32_t line = m->mn_major ? l : i;
  const uint32_t at = (m->mn_major ? i : l) * bytes;

  return element(p->shared +
                     kiln__wgmma_chunk(m, line, at / KILN__WGMMA_CHUNK) +
                     at % KILN__WGMMA_CHUNK,
                 bytes);
}

static void gather(const kiln__wgmma_part *p, const kiln__wgmma_matrix *m,
                   uint32_t first, uint32_t n, uint32_t k, uint32_t *out)
{
  const uint32_t bytes = types[p->form.a].bytes;

  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t l = 0; l < k; l++)
      out[i * k + l] = read_element(p, m, first + i, l, bytes);
  }
}

static uint32_t *slot(const kiln__wgmma_part *p, int32_t offset)
{
  return (uint32_t *)(void *)(p->regs + offset);
}

/* Reads A from registers. Register r of lane l holds four bytes of row
 * l / 4 + 8 * (r % 2), from byte 4 * (l % 4) + 16 * (r / 2) of this row on. */
static void gather_registers(const kiln__wgmma_part *p, uint32_t k,
                             uint32_t *out)
{
  const uint32_t bytes = types[p->form.a].bytes;

  for (uint32_t i = 0; i < ROWS; i++) {
    for (uint32_t l = 0; l < k; l++) {
      const uint32_t at = l * bytes, r = i / 8 + at / 16 * 2;
      const uint32_t lane = i % 8 * 4 + at % 16 / 4;
      const uint32_t word = slot(p, p->sources[r])[lane];

      out[i * k + l] = bytes == 4 ? word
                                  : word >> (8 * (at % 4)) &
                                        ((UINT32_C(1) << (8 * bytes)) - 1);
    }
  }
}

static void negate(uint32_t *elements, uint32_t n, uint32_t sign)
{
  for (uint32_t i = 0; i < n; i++)
    elements[i] ^= sign;
}

/* ---- Sparse matrices ----------------------------------------------------- */

/* Finds the metadata of stored element l of row i: the lane, and in *bit the
 * lowest bit. For 8-bit types, a lane has the metadata of half a row. For other
 * types, it has those of a quarter of the rows i and i + 8, and `select` chooses
 * two of the four lanes. */
static uint32_t place_of_metadata(uint32_t i, uint32_t l, uint32_t bytes,
                                  bool select, uint32_t *bit)
{
  const uint32_t half = DENSE_BYTES / bytes / 2, lane = i % LINES * 4;
  const uint32_t width = bytes == 4 ? 4 : 2;

  *bit = l % half * width + (bytes == 1 ? 0 : i / LINES * 16);
  return lane + (bytes == 1 ? i / LINES + l / half * 2
                            : 2 * (uint32_t)select + l / half);
}

/* Finds the columns of the dense row that the stored elements of A belong to.
 * Each group of four columns stores two elements (tf32: two columns and one
 * element). */
static void select_columns(const kiln__wgmma_part *p, uint32_t k, uint8_t *out)
{
  const bool select = (p->form.flags & KILN__WGMMA_SELECT) != 0;
  const bool registers = (p->form.flags & KILN__WGMMA_REGISTERS) != 0;
  const uint32_t *const meta = slot(p, p->sources[registers ? 4 : 0]);
  const uint32_t bytes = types[p->form.a].bytes;

  for (uint32_t i = 0; i < ROWS; i++) {
    for (uint32_t l = 0; l < k; l++) {
      uint32_t bit;
      const uint32_t lane = place_of_metadata(i, l, bytes, select, &bit);
      const uint32_t index = meta[lane] >> bit & 3;

      out[i * k + l] =
          (uint8_t)(bytes == 4 ? l * 2 + (index >> 1) : l / 2 * 4 + index);
    }
  }
}

/* ---- D ------------------------------------------------------------------- */

/* Returns the place of element (row, column) of D in the registers: the lane,
 * and in *reg the number of the register. For f16, a register holds two
 * columns. */
static uint32_t place(uint32_t row, uint32_t column, bool half, uint32_t *reg)
{
  const uint32_t upper = row / 8;

  *reg =
      half ? column / 8 * 2 + upper : column / 8 * 4 + upper * 2 + column % 2;
  return row % 8 * 4 + column % 8 / 2;
}

static void load_d(const kiln__wgmma_part *p, uint32_t first, uint32_t n,
                   uint32_t *out)
{
  const bool half = p->form.d == KILN__WGMMA_F16;

  for (uint32_t i = 0; i < ROWS * n; i++) {
    uint32_t reg;
    const uint32_t column = first + i % n;
    const uint32_t lane = place(i / n, column, half, &reg);
    const uint32_t word = slot(p, p->d[reg])[lane];

    out[i] = half ? word >> (16 * (column % 2)) & 0xffff : word;
  }
}

static void store_d(const kiln__wgmma_part *p, uint32_t first, uint32_t n,
                    const uint32_t *values)
{
  const bool half = p->form.d == KILN__WGMMA_F16;

  for (uint32_t i = 0; i < ROWS * n; i++) {
    uint32_t reg;
    const uint32_t column = first + i % n;
    const uint32_t lane = place(i / n, column, half, &reg);
    uint32_t *const word = &slot(p, p->d[reg])[lane];

    if (!half)
      *word = values[i];
    else if (column % 2 == 0)
      *word = (*word & 0xffff0000u) | values[i];
    else
      *word = (*word & 0xffff) | values[i] << 16;
  }
}

void kiln__wgmma_compute(const kiln__wgmma_part *part)
{
  const uint8_t flags = part->form.flags;
  const uint32_t n = part->form.columns * LINES;
  const uint32_t k = DENSE_BYTES / types[part->form.a].bytes;
  const uint32_t k_b = k_bytes(part, false) / types[part->form.a].bytes;
  uint32_t a[ROWS * DENSE_BYTES], b[SLICE * MOST_B], d[ROWS * SLICE];
  uint8_t select[ROWS * DENSE_BYTES];
  kiln__tensor_rule rule;
  kiln__tensor_tile tile = {
      .m = ROWS, .k = k, .a = a, .b = b, .k_b = k_b, .c = d, .d = d};

  kiln__tensor_rule_init(&rule, KILN__TENSOR_WGMMA, types[part->form.a].type,
                         types[part->form.b].type, types[part->form.d].type,
                         types[part->form.d].type, k);
  rule.saturate = (flags & KILN__WGMMA_SATURATE) != 0;
  rule.conjunction = part->form.a == KILN__WGMMA_B1;
  if ((flags & KILN__WGMMA_REGISTERS) != 0)
    gather_registers(part, k, a);
  else
    gather(part, &part->a, part->warp * ROWS, ROWS, k, a);
  if ((flags & KILN__WGMMA_NEGATE_A) != 0)
    negate(a, ROWS * k, types[part->form.a].sign);
  if ((flags & KILN__WGMMA_SPARSE) != 0) {
    select_columns(part, k, select);
    tile.select = select;
  }
  for (uint32_t from = 0; from < n; from += tile.n) {
    tile.n = n - from < SLICE ? n - from : SLICE;
    gather(part, &part->b, from, tile.n, k_b, b);
    if ((flags & KILN__WGMMA_NEGATE_B) != 0)
      negate(b, tile.n * k_b, types[part->form.b].sign);
    if (part->accumulate)
      load_d(part, from, tile.n, d);
    else
      memset(d, 0, ROWS * tile.n * sizeof *d);
    kiln__tensor_multiply(&rule, &tile);
    store_d(part, from, tile.n, d);
  }
}

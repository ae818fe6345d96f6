/* bulk_copy.c -- performs bulk copies: cp.async.bulk, its tensor and reduction
 * forms, st.async and red.async.
 *
 * A copy is performed when it is issued, and the mbarrier of the copy counts
 * the bytes at once. PTX allows this, since a copy may complete at any time. The
 * race check finds programs that do not wait: it learns of every access from
 * kiln__cpu_watch_async_access(), and of completion from the mbarrier or from
 * cp.async.bulk.wait_group.
 *
 * A tensor copy moves the rows that memory/tensor_walk.c describes through a
 * buffer: it copies the part inside the tensor, fills the rest, and swizzles
 * the 16-byte chunks of the row. A multicast copy repeats this for each
 * destination block. */
#include "../../driver/abi_tensor.h"
#include "../memory/mbarrier.h"
#include "../memory/tensor_walk.h"
#include "bulk_reduce.h"
#include "grid_job.h"

#include "../exec/bulk.h"

enum {
  MAX_ROW = 256 * 32,
  CHUNK = 16,
  TENSOR_ALIGN = 128,
  MAP_ALIGN = 64,
  INDETERMINATE = 0xd5
};

/* A position in the shared memory of a block of the cluster. */
typedef struct shared_place {
  kiln__cpu_block *block;
  uint32_t at;
} shared_place;

/* One copy of one lane. */
typedef struct copy {
  kiln__cpu_warp *w;
  const kiln__cpu_insn *in;
  int lane;
  /* the operation; for stores, its reads, with its writes as a second one */
  kiln__cpu_async async, async_write;
  kiln__cpu_range range;    /* range of global memory that was used last */
  shared_place shared, bar; /* position in shared memory, and the mbarrier */
  kiln__cpu_ptx_type type;  /* type of the elements of a reduction */
  bool ftz;                 /* additions take subnormal numbers as zeros */
} copy;

static bool fail(const copy *c, kiln__cpu_fault_kind kind, uint64_t address,
                 uint32_t bytes)
{
  kiln__cpu_fault(c->w, c->in, kind, c->lane, address, bytes);
  return false;
}

/* ---- Operands and addresses ---------------------------------------------- */

static uint64_t value_of(const copy *c, int32_t slot, bool wide)
{
  const kiln__cpu_warp *const w = c->w;

  if (slot < 0)
    return 0;
  return wide ? KILN__SLOT(const uint64_t, slot)[c->lane]
              : KILN__SLOT(const uint32_t, slot)[c->lane];
}

static uint64_t address_of(const copy *c, int32_t slot, bool wide, int64_t more)
{
  const uint64_t at = value_of(c, slot, wide) + (uint64_t)more;

  return wide ? at : (uint32_t)at;
}

static uint64_t first_address(const copy *c)
{
  return address_of(c, c->in->a, (c->in->flags & KILN__WIDE_A) != 0,
                    c->in->imm);
}

static uint64_t second_address(const copy *c)
{
  return address_of(c, c->in->b, (c->in->flags & KILN__WIDE_B) != 0,
                    c->in->imm2);
}

/* Finds the block and the offset that an address in shared::cluster refers to.
 * The bytes must lie in the shared memory of that block. */
static bool find_shared(const copy *c, uint64_t address, uint32_t bytes,
                        uint32_t align, shared_place *out)
{
  const uint64_t rank = (address >> KILN__CLUSTER_SHIFT) - 1;
  const uint64_t at = address & ((UINT64_C(1) << KILN__CLUSTER_SHIFT) - 1);
  kiln__cpu_block *b = c->w->block;

  if (address >> KILN__CLUSTER_SHIFT != 0 && rank != b->cluster_rank) {
    if (b->cluster == NULL || rank >= b->cluster_size)
      return fail(c, KILN__FAULT_ADDRESS, address, bytes);
    b = b->cluster[rank];
    if (b->exited)
      kiln__cpu_watch_exited_block(c->w, c->in, c->lane);
  }
  if (at > b->shared_size || bytes > b->shared_size - at)
    return fail(c, KILN__FAULT_ADDRESS, address, bytes);
  if (at % align != 0)
    return fail(c, KILN__FAULT_MISALIGNED, address, align);
  *out = (shared_place){b, (uint32_t)at};
  return true;
}

static bool ignores_ends(const copy *c)
{
  return (c->in->flags & KILN__IGNORE_OOB) != 0;
}

/* Finds the mbarrier of a copy, whose address is at the begin of vec2, or behind
 * the two numbers of .ignore_oob. */
static bool find_barrier(copy *c)
{
  const kiln__cpu_insn *const in = c->in;
  const bool wide = (in->flags & KILN__WIDE_C) != 0;
  const int32_t *const at = in->vec2 + (ignores_ends(c) ? 2 : 0);
  const uint32_t more = (uint32_t)value_of(c, at[1], false);

  return find_shared(c, address_of(c, at[0], wide, (int32_t)more), 8, 8,
                     &c->bar);
}

static uint8_t *global_bytes(copy *c, uint64_t address, uint32_t bytes,
                             bool write)
{
  if (address < c->range.first || address >= c->range.last ||
      bytes > c->range.last - address) {
    if (!kiln__cpu_memory_find(c->w->grid->memory, address, &c->range) ||
        bytes > c->range.last - address ||
        kiln__cpu_range_denies(&c->range, c->w->grid)) {
      (void)fail(c, KILN__FAULT_ADDRESS, address, bytes);
      return NULL;
    }
  }
  if (write && kiln__cpu_range_is_read_only(&c->range, c->w->grid)) {
    (void)fail(c, KILN__FAULT_ADDRESS, address, bytes);
    return NULL;
  }
  return c->range.host + (address - c->range.first);
}

/* ---- Reports to the checks ----------------------------------------------- */

static void watch_shared(const copy *c, const shared_place *p, uint32_t bytes,
                         kiln__cpu_access access)
{
  if (c->w->watched)
    kiln__cpu_watch_async_access(c->w, c->in, c->lane, c->async, p->block,
                                 KILN__SPACE_SHARED, p->at, bytes, access);
}

static void watch_global(const copy *c, uint64_t address, uint32_t bytes,
                         kiln__cpu_access access)
{
  if (c->w->watched)
    kiln__cpu_watch_async_access(
        c->w, c->in, c->lane,
        access == KILN__ACCESS_READ ? c->async : c->async_write, NULL,
        KILN__SPACE_GLOBAL, address, bytes, access);
}

static kiln__cpu_access write_access(const copy *c)
{
  return kiln__cpu_bulk_reduces(c->in) ? KILN__ACCESS_ATOMIC
                                       : KILN__ACCESS_WRITE;
}

/* Counts one bulk copy and the bytes that it moves. */
static void count(const copy *c, uint32_t bytes)
{
  kiln__cpu_tally *const t = c->w->counted ? &c->w->tally[c->in->index] : NULL;

  if (t != NULL) {
    t->events++;
    t->cost += bytes;
  }
}

/* ---- Transfers ----------------------------------------------------------- */

/* Writes n bytes from `from` to `to`, or combines them with the bytes there. The
 * addresses may be NULL if a copy leaves out all of its bytes. */
static void put(const copy *c, uint8_t *to, const uint8_t *from, uint32_t n)
{
  if (n == 0)
    return;
  if (kiln__cpu_bulk_reduces(c->in))
    kiln__cpu_bulk_reduce(c->in, c->type, c->ftz, to, from, n);
  else
    memmove(to, from, n);
}

/* Counts bytes as arrived at the mbarrier of a copy. */
static void signal(const copy *c, const shared_place *bar, uint32_t bytes)
{
  const kiln__cpu_mbarrier_change come = {.come = bytes};
  const uintptr_t at = (uintptr_t)bar->block->shared + bar->at;
  const uint64_t old = __atomic_load_n((const uint64_t *)at, __ATOMIC_RELAXED);

  if (kiln__cpu_mbarrier_overflows(old, &come))
    kiln__cpu_watch_misuse(c->w, c->in, c->lane, "mbarrier overflow",
                           "counts more bytes at an mbarrier than it can hold",
                           "the bytes that expect_tx states per phase");
  if (c->async != 0)
    kiln__cpu_watch_async_signal(c->w, c->async, bar->block, bar->at,
                                 (uint32_t)kiln__cpu_mbarrier_phase(old));
  (void)kiln__cpu_mbarrier_update(at, &come);
}

/* Returns the mask of destination blocks of a multicast, or 0 for a copy to one
 * block. */
static uint32_t blocks_of(const copy *c)
{
  const kiln__cpu_insn *const in = c->in;

  return (in->flags & KILN__MULTICAST) != 0
             ? (uint32_t)value_of(c, in->vec2[in->n_vec2 - 1], false) & 0xffff
             : 0;
}

/* Calls `fn` once per destination block, with the positions of the destination
 * and of the mbarrier in that block. */
static bool each_block(copy *c, void *user, bool (*fn)(copy *c, void *user))
{
  const shared_place shared = c->shared, bar = c->bar;
  kiln__cpu_block *const own = c->w->block;
  uint32_t mask = blocks_of(c);

  if ((c->in->flags & KILN__MULTICAST) == 0)
    return fn(c, user);
  for (; mask != 0; mask &= mask - 1) {
    const uint32_t rank = (uint32_t)__builtin_ctz(mask);

    if (rank >= own->cluster_size)
      return fail(c, KILN__FAULT_INSTRUCTION, mask, 0);
    c->shared = (shared_place){own->cluster != NULL ? own->cluster[rank] : own,
                               shared.at};
    c->bar = (shared_place){c->shared.block, bar.at};
    if (!fn(c, user))
      return false;
  }
  return true;
}

/* ---- Contiguous bytes ---------------------------------------------------- */

/* The source of a copy to shared memory. The copy has n bytes, of which the
 * first `left` and the last `right` are not read. `bytes` is the first byte that
 * is read. */
typedef struct source {
  const uint8_t *bytes;
  uint32_t n, left, right;
} source;

static bool put_block(copy *c, void *user)
{
  const source *const s = user;
  shared_place to = c->shared;
  const uint32_t n = s->n - s->left - s->right;
  uint8_t *const at = to.block->shared + to.at;

  /* What the ends receive is indeterminate (an H200 copies bytes that exist).
   * The pattern reveals programs that rely on it. For the check of
   * initialisation, the copy does not write the ends. */
  memset(at, INDETERMINATE, s->left);
  memset(at + s->n - s->right, INDETERMINATE, s->right);
  to.at += s->left;
  watch_shared(c, &to, n, write_access(c));
  put(c, at + s->left, s->bytes, n);
  signal(c, &c->bar, s->n);
  return true;
}

static uint32_t size_of(const copy *c)
{
  return (uint32_t)value_of(c, c->in->c, false);
}

/* Reads the numbers of bytes that .ignore_oob leaves out at both ends. */
static bool read_ends(const copy *c, source *s)
{
  const int32_t *const ends = c->in->vec2;

  if (!ignores_ends(c))
    return true;
  s->left = (uint32_t)value_of(c, ends[0], false);
  s->right = (uint32_t)value_of(c, ends[1], false);
  if (s->left < CHUNK && s->right < CHUNK && s->left + s->right <= s->n)
    return true;
  return fail(c, KILN__FAULT_INSTRUCTION, s->left < CHUNK ? s->right : s->left,
              0);
}

static bool load(copy *c)
{
  const uint64_t from = second_address(c);
  source s = {.n = size_of(c)};
  uint32_t n;

  if (s.n % CHUNK != 0)
    return fail(c, KILN__FAULT_INSTRUCTION, s.n, 0);
  if (from % CHUNK != 0)
    return fail(c, KILN__FAULT_MISALIGNED, from, CHUNK);
  if (!find_shared(c, first_address(c), s.n, CHUNK, &c->shared) ||
      !find_barrier(c) || !read_ends(c, &s))
    return false;
  n = s.n - s.left - s.right;
  s.bytes = n == 0 ? NULL : global_bytes(c, from + s.left, n, false);
  if (n != 0 && s.bytes == NULL)
    return false;
  count(c, n);
  watch_global(c, from + s.left, n, KILN__ACCESS_READ);
  return each_block(c, &s, put_block);
}

static bool push(copy *c)
{
  source s = {.n = size_of(c)};
  shared_place from;

  if (s.n % CHUNK != 0)
    return fail(c, KILN__FAULT_INSTRUCTION, s.n, 0);
  if (!find_shared(c, second_address(c), s.n, CHUNK, &from) ||
      !find_shared(c, first_address(c), s.n, CHUNK, &c->shared) ||
      !find_barrier(c))
    return false;
  count(c, s.n);
  watch_shared(c, &from, s.n, KILN__ACCESS_READ);
  s.bytes = from.block->shared + from.at;
  return put_block(c, &s);
}

static bool store(copy *c)
{
  const uint64_t to = first_address(c);
  const uint32_t n = size_of(c);
  uint8_t *host;

  if (n % CHUNK != 0)
    return fail(c, KILN__FAULT_INSTRUCTION, n, 0);
  if (to % CHUNK != 0)
    return fail(c, KILN__FAULT_MISALIGNED, to, CHUNK);
  if (!find_shared(c, second_address(c), n, CHUNK, &c->shared))
    return false;
  if (n == 0)
    return true;
  host = global_bytes(c, to, n, true);
  if (host == NULL)
    return false;
  count(c, n);
  watch_shared(c, &c->shared, n, KILN__ACCESS_READ);
  watch_global(c, to, n, write_access(c));
  put(c, host, c->shared.block->shared + c->shared.at, n);
  return true;
}

/* ---- Tensors ------------------------------------------------------------- */

static kiln__cpu_ptx_type element_type(const kiln__cpu_tensor_map *map)
{
  static const uint8_t types[] = {KILN__U8,  KILN__U16, KILN__U32, KILN__S32,
                                  KILN__U64, KILN__S64, KILN__F16, KILN__F32,
                                  KILN__F64, KILN__BF16};

  return map->type < sizeof types ? (kiln__cpu_ptx_type)types[map->type]
                                  : KILN__F32;
}

/* Reads the tensor map at a generic address, and checks that it fits the
 * instruction. */
static bool read_map(copy *c, uint64_t address, kiln__cpu_tensor_map *map)
{
  const kiln__cpu_insn *const in = c->in;
  const kiln__cpu_grid *const g = c->w->grid;
  const uint64_t at = address - KILN__WINDOW_PARAM;
  const bool pixels = in->sub2 != KILN__TILE;
  const uint8_t *bytes;

  if (address % MAP_ALIGN != 0)
    return fail(c, KILN__FAULT_MISALIGNED, address, MAP_ALIGN);
  if (at < KILN__WINDOW_BYTES) {
    if (at + sizeof *map > g->code->param_bytes)
      return fail(c, KILN__FAULT_ADDRESS, address, sizeof *map);
    bytes = g->params + at;
  } else {
    bytes = global_bytes(c, address, sizeof *map, false);
  }
  if (bytes == NULL)
    return false;
  memcpy(map, bytes, sizeof *map);
  if (!kiln__cpu_tensor_map_valid(map) || map->rank != in->dim ||
      (map->mode == KILN__TENSOR_IM2COL) != pixels ||
      !kiln__cpu_bulk_supports(in, element_type(map)))
    return fail(c, KILN__FAULT_MAP, address, sizeof *map);
  c->type = element_type(map);
  c->ftz = map->type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ ||
           map->type == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
  return true;
}

/* Reads the coordinates and offsets of a copy, and checks that the hardware
 * accepts them. */
static bool read_place(const copy *c, const kiln__cpu_tensor_map *map,
                       bool is_store, kiln__cpu_tensor_place *place)
{
  const kiln__cpu_insn *const in = c->in;

  *place = (kiln__cpu_tensor_place){.map = map};
  for (uint32_t i = 0; i < in->dim; i++)
    place->coord[i] = (int32_t)(uint32_t)value_of(c, in->vec[i], false);
  for (uint32_t i = 0; i + 2 < in->dim && in->sub2 == KILN__IM2COL; i++)
    place->offset[i] = (uint16_t)value_of(c, in->vec2[2 + i], false);
  return kiln__cpu_tensor_starts(place, is_store) ||
         fail(c, KILN__FAULT_MAP, (uint32_t)place->coord[0], 0);
}

/* Moves one row between the buffer and the shared memory of a box, whose first
 * byte lies at `box`. The row has `bytes` bytes. */
static void move_row(const kiln__cpu_tensor_map *map, const shared_place *box,
                     uint32_t row, uint8_t *buffer, uint32_t bytes, bool load)
{
  for (uint32_t i = 0; i < bytes; i += CHUNK) {
    const uint32_t n = bytes - i < CHUNK ? bytes - i : CHUNK;
    uint8_t *const at =
        box->block->shared + kiln__cpu_tensor_swizzled(map, box->at + row + i);

    if (load)
      memcpy(at, buffer + i, n);
    else
      memcpy(buffer + i, at, n);
  }
}

/* A tensor copy of one lane to or from one block. */
typedef struct tensor_copy {
  copy *c;
  const kiln__cpu_tensor_place *place;
} tensor_copy;

/* Reads n bytes of global memory. */
static bool read_global(copy *c, uint8_t *to, uint64_t address, uint32_t n)
{
  const uint8_t *const from = global_bytes(c, address, n, false);

  if (from == NULL)
    return false;
  watch_global(c, address, n, KILN__ACCESS_READ);
  memcpy(to, from, n);
  return true;
}

static bool load_row(void *user, const kiln__cpu_tensor_row *row)
{
  const tensor_copy *const t = user;
  const kiln__cpu_tensor_map *const map = t->place->map;
  const uint32_t bytes = row->before + row->inside + row->after;
  const uint32_t step = row->unit != 0 ? row->unit : row->inside;
  uint64_t address = row->global;
  uint8_t buffer[MAX_ROW];

  kiln__cpu_tensor_fill(map, buffer, bytes);
  for (uint32_t i = 0; i < row->inside; i += step, address += row->apart) {
    if (!read_global(t->c, buffer + row->before + i, address, step))
      return false;
  }
  kiln__cpu_tensor_convert(map, buffer + row->before, row->inside);
  move_row(map, &t->c->shared, row->shared, buffer, bytes, true);
  return true;
}

static bool load_box(copy *c, void *user)
{
  const kiln__cpu_tensor_place *const place = user;
  tensor_copy t = {c, place};

  watch_shared(c, &c->shared, kiln__cpu_tensor_box_bytes(place->map),
               KILN__ACCESS_WRITE);
  if (!kiln__cpu_tensor_walk(place, load_row, &t))
    return false;
  signal(c, &c->bar, kiln__cpu_tensor_counted_bytes(place->map));
  return true;
}

static bool load_tensor(copy *c)
{
  kiln__cpu_tensor_map map;
  kiln__cpu_tensor_place place;

  if (!read_map(c, second_address(c), &map))
    return false;
  if (!find_shared(c, first_address(c), kiln__cpu_tensor_box_bytes(&map),
                   TENSOR_ALIGN, &c->shared) ||
      !find_barrier(c))
    return false;
  if (!read_place(c, &map, false, &place))
    return false;
  count(c, kiln__cpu_tensor_box_bytes(&map));
  return each_block(c, &place, load_box);
}

/* Writes n bytes to global memory, or combines them with the bytes there. Only
 * the first `least` bytes have to exist. */
static bool write_global(copy *c, const uint8_t *from, uint64_t address,
                         uint32_t n, uint32_t least)
{
  uint8_t *const to = global_bytes(c, address, least, true);

  if (to == NULL)
    return false;
  if (n > c->range.last - address)
    n = least;
  watch_global(c, address, n, write_access(c));
  put(c, to, from, n);
  return true;
}

/* Stores the part of a row inside the tensor. The hardware stores whole chunks
 * of 16 bytes, also where the tensor ends within a chunk. */
static bool store_row(void *user, const kiln__cpu_tensor_row *row)
{
  const tensor_copy *const t = user;
  const uint32_t bytes = row->before + row->inside + row->after;
  const uint32_t inside = (row->inside + CHUNK - 1) / CHUNK * CHUNK;
  const uint32_t step = row->unit != 0 ? row->unit : inside;
  uint64_t address = row->global;
  uint8_t buffer[MAX_ROW];

  if (inside == 0)
    return true;
  move_row(t->place->map, &t->c->shared, row->shared, buffer, bytes, false);
  for (uint32_t i = 0; i < inside; i += step, address += row->apart) {
    if (!write_global(t->c, buffer + row->before + i, address, step,
                      row->unit != 0 ? step : row->inside))
      return false;
  }
  return true;
}

static bool store_tensor(copy *c)
{
  kiln__cpu_tensor_map map;
  kiln__cpu_tensor_place place;
  tensor_copy t = {c, &place};
  uint32_t bytes;

  if (!read_map(c, first_address(c), &map))
    return false;
  bytes = kiln__cpu_tensor_box_bytes(&map);
  if (!find_shared(c, second_address(c), bytes, TENSOR_ALIGN, &c->shared))
    return false;
  if (!read_place(c, &map, true, &place))
    return false;
  count(c, bytes);
  watch_shared(c, &c->shared, bytes, KILN__ACCESS_READ);
  return kiln__cpu_tensor_walk(&place, store_row, &t);
}

/* ---- st.async and red.async ---------------------------------------------- */

/* Stores the elements of one lane, or combines one element, in the shared memory
 * of a block of the cluster. The mbarrier has the second address. */
static bool store_elements(copy *c)
{
  const kiln__cpu_insn *const in = c->in;
  const bool one = kiln__cpu_bulk_reduces(in);
  const uint32_t bytes = in->bytes, n = one ? 1 : in->n_vec;
  uint8_t data[64];
  source s = {.bytes = data, .n = bytes * n};

  for (uint32_t i = 0; i < n; i++) {
    const uint64_t x = value_of(c, one ? in->b : in->vec[i], bytes == 8);

    memcpy(data + (size_t)i * bytes, &x, bytes);
  }
  if (!find_shared(c, first_address(c), s.n, s.n, &c->shared) ||
      !find_shared(c,
                   address_of(c, one || n == 1 ? in->c : in->b,
                              (in->flags & KILN__WIDE_B) != 0, in->imm2),
                   8, 8, &c->bar))
    return false;
  return put_block(c, &s);
}

/* ---- Entry points -------------------------------------------------------- */

static bool run_one(copy *c, kiln__cpu_bulk_kind kind)
{
  switch (kind) {
  case KILN__BULK_LOAD:
    return load(c);
  case KILN__BULK_PUSH:
    return push(c);
  case KILN__BULK_STORE:
    return store(c);
  case KILN__BULK_TENSOR_LOAD:
    return load_tensor(c);
  case KILN__BULK_TENSOR_STORE:
    return store_tensor(c);
  case KILN__BULK_STORE_ELEMENTS:
  case KILN__BULK_REDUCE_ELEMENT:
    return store_elements(c);
  }
  return false;
}

void kiln__cpu_bulk_copy(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                         kiln__cpu_bulk_kind kind)
{
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    copy c = {.w = w,
              .in = in,
              .lane = __builtin_ctz(m),
              .type = (kiln__cpu_ptx_type)in->type};

    if (w->watched)
      c.async = kiln__cpu_watch_async_begin(w);
    if (w->watched &&
        (kind == KILN__BULK_STORE || kind == KILN__BULK_TENSOR_STORE)) {
      c.async_write = kiln__cpu_watch_async_begin(w);
      kiln__cpu_watch_store(w, c.lane, c.async, c.async_write);
    }
    if (!run_one(&c, kind))
      return;
  }
}

void kiln__cpu_bulk_commit(kiln__cpu_warp *w, const kiln__cpu_insn *in)
{
  (void)in;
  if (w->watched)
    kiln__cpu_watch_store_commit(w, w->mask);
}

void kiln__cpu_bulk_wait(kiln__cpu_warp *w, const kiln__cpu_insn *in)
{
  if (w->watched)
    kiln__cpu_watch_store_wait(w, w->mask, (uint64_t)in->imm,
                               in->op == KILN__OP_bulk_wait_read);
}

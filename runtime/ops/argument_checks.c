/* argument_checks.c -- checks the arguments of an operation before anything
 * is queued: types, alignment, address ranges and overlaps. Each operation's
 * check() adds its arrays here, and conditions of its own. */
#include "ops.h"

/* In builds for the static analyzer, ops.h replaces some check functions by
 * macros. The macros are removed here, since this file defines the
 * functions. */
#ifdef __clang_analyzer__
#undef kiln__check_begin
#undef kiln__check_failed
#undef kiln__check_end
#undef kiln__check_workspace
#endif

#include <stdio.h>

kiln_status kiln__check_begin(kiln__checker *c, const char *call,
                              const kiln_stream *stream, const void *desc)
{
  c->call = call;
  c->st = KILN_OK;
  c->allowed = 0;
  c->n = 0;
  if (stream == NULL)
    c->st = kiln__fail(KILN_EINVAL,
                       "make one with kiln_stream_create(), or wrap the "
                       "default stream with kiln_stream_wrap()",
                       "%s: no stream", call);
  else if (desc == NULL)
    c->st = kiln__fail(KILN_EINVAL, "start it from {0}", "%s: no desc", call);
  return c->st;
}

void kiln__check_failed(kiln__checker *c, const char *format, ...)
{
  char text[256];
  va_list args;

  if (c->st != KILN_OK)
    return;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  c->st = kiln__fail(KILN_EINVAL, NULL, "%s: %s", c->call, text);
}

/* Checks that the operation supports a type. */
static void check_allowed(kiln__checker *c, const char *name, kiln_dtype type)
{
  kiln__check_that(
      c, (c->allowed & KILN__ALLOW_STRUCTS) != 0 || !kiln__is_record(type),
      "%s has elements of type struct, which this operation does "
      "not support",
      name);
  kiln__check_that(
      c, (c->allowed & KILN__ALLOW_COMPLEX) != 0 || !kiln__is_complex(type),
      "%s has elements of type %s, which this operation does not "
      "support",
      name, kiln_dtype_name(type));
}

void kiln__check_converts(kiln__checker *c, const char *name, kiln_dtype from,
                          kiln_dtype to)
{
  const bool structs = kiln__is_record(from) || kiln__is_record(to);

  kiln__check_that(c, from == to || !structs,
                   "%s is of type %s, but the elements are of another type, %s",
                   name, kiln_dtype_name(to), kiln_dtype_name(from));
  kiln__check_that(c, !kiln__is_complex(from) || kiln__is_complex(to),
                   "%s is of type %s, but the elements are %s", name,
                   kiln_dtype_name(to), kiln_dtype_name(from));
}

static void add(kiln__checker *c, const char *name, kiln_array a, uint64_t n,
                bool written, bool may_equal)
{
  const uint64_t size = kiln__size(a.type);

  kiln__check_that(c, a.type != KILN_DTYPE_NONE, "%s has no type", name);
  kiln__check_that(c, size != 0, "the type of %s is %d, which is no kiln_dtype",
                   name, (int)a.type);
  kiln__check_that(c, n == 0 || a.data != 0, "%s is NULL", name);
  if (c->st == KILN_OK)
    check_allowed(c, name, a.type);
  if (c->st != KILN_OK || size == 0)
    return;
  kiln__check_that(c, a.data % kiln__align(a.type) == 0,
                   "%s is not aligned to its elements of %u bytes", name,
                   (unsigned)kiln__align(a.type));
  kiln__check_that(c, n <= (UINT64_MAX - a.data) / size,
                   "%s has more elements than the address space", name);
  kiln__check_that(c, c->n < KILN__MAX_RANGES, "too many arrays");
  if (c->st != KILN_OK || n == 0)
    return;
  c->range[c->n].begin = a.data;
  c->range[c->n].end = a.data + n * size;
  c->range[c->n].name = name;
  c->range[c->n].size = (uint32_t)size;
  c->range[c->n].written = written;
  c->range[c->n].may_equal = may_equal;
  c->n++;
}

void kiln__check_read(kiln__checker *c, const char *name, kiln_array a,
                      uint64_t n)
{
  add(c, name, a, n, false, false);
}

void kiln__check_write(kiln__checker *c, const char *name, kiln_array a,
                       uint64_t n)
{
  add(c, name, a, n, true, false);
}

void kiln__check_in_place(kiln__checker *c, const char *name, kiln_array a,
                          uint64_t n)
{
  add(c, name, a, n, true, true);
}

void kiln__check_input(kiln__checker *c, const char *name, const kiln_input *x,
                       uint64_t n)
{
  const size_t arrays = kiln__input_arrays(x);

  kiln__check_that(c, arrays > 0 || x->map != NULL,
                   "%s: neither an array nor a map", name);
  kiln__check_that(
      c, c->st != KILN_OK || kiln__dtype_of(kiln__input_type(x)) != NULL,
      "%s: a map without arrays needs .type", name);
  for (size_t k = 0; k < arrays; k++)
    kiln__check_read(c, name, x->in[k], n);
  if (c->st == KILN_OK)
    check_allowed(c, name, kiln__input_type(x));
}

void kiln__check_op(kiln__checker *c, const kiln_op *op, kiln_dtype acc)
{
  const kiln__dtype *type = kiln__dtype_of(acc);

  kiln__check_that(c, type != NULL, "the operation has no type");
  if (c->st != KILN_OK || type == NULL)
    return;
  if (op->expr != NULL) {
    kiln__check_that(c, op->identity != NULL,
                     "op.expr needs op.identity, the value that changes "
                     "nothing");
    return;
  }
  kiln__check_that(c, (unsigned)op->name <= KILN_XOR,
                   "op.name is no operation");
  kiln__check_that(c, !kiln__is_record(acc),
                   "elements of type struct need op.expr and op.identity");
  kiln__check_that(c, !kiln__is_complex(acc) || op->name <= KILN_PROD,
                   "of the predefined operations, %s has only sum and product",
                   type->name);
  kiln__check_that(c, op->name < KILN_AND || !type->is_float,
                   "bitwise operations do not support %s", type->name);
}

static bool apart(const kiln__checker *c, size_t i, size_t k)
{
  const bool same = c->range[i].begin == c->range[k].begin &&
                    c->range[i].size == c->range[k].size;

  if (!c->range[i].written && !c->range[k].written)
    return true;
  if (c->range[i].end <= c->range[k].begin ||
      c->range[k].end <= c->range[i].begin)
    return true;
  return same && c->range[i].written != c->range[k].written &&
         (c->range[i].may_equal || c->range[k].may_equal);
}

kiln_status kiln__check_end(kiln__checker *c)
{
  for (size_t i = 1; i < c->n; i++)
    for (size_t k = 0; k < i; k++)
      kiln__check_that(c, apart(c, i, k), "%s and %s overlap", c->range[k].name,
                       c->range[i].name);
  return c->st;
}

kiln_status kiln__check_workspace(kiln__checker *c, const kiln_workspace *w)
{
  if (w != NULL && w->data != 0 && w->size != 0)
    add(c, "the workspace", (kiln_array){w->data, KILN_U8}, w->size, true,
        false);
  return kiln__check_end(c);
}

/* views.c -- views of inputs: strided arrays, broadcasts and tables.
 *
 * A view with strides costs one division per axis but the first, for each
 * element. Therefore axes of one element are dropped here, and axes that every
 * view of the call passes through in one stride are merged. A view that remains
 * with one axis of stride 1 is no view. */
#include "ops.h"

#include <string.h>

bool kiln__has_strides(const kiln_shape *shape, size_t arrays)
{
  for (size_t k = 0; k < arrays; k++)
    if (kiln__is_strided(shape, k))
      return true;
  return false;
}

/* ---- Checks -------------------------------------------------------------- */

void kiln__check_shape(kiln__checker *c, const kiln_shape *shape, size_t arrays,
                       uint64_t n)
{
  uint64_t product = 1;
  bool fits = true;

  if (shape == NULL)
    return;
  for (size_t k = 0; k < arrays; k++)
    kiln__check_that(c, (unsigned)shape->view[k].kind <= KILN_VIEW_STRIDED,
                     "shape->view[%zu].kind is no kiln_view_kind", k);
  if (!kiln__has_strides(shape, arrays))
    return;
  kiln__check_that(c, shape->rank >= 1 && shape->rank <= KILN_MAX_AXES,
                   "shape->rank is %u, not 1 to %d", (unsigned)shape->rank,
                   (int)KILN_MAX_AXES);
  for (uint32_t k = 0; k < shape->rank && c->st == KILN_OK; k++) {
    fits =
        fits && (shape->size[k] == 0 || product <= UINT64_MAX / shape->size[k]);
    product *= shape->size[k];
  }
  kiln__check_that(c, fits && product == n,
                   "n is %llu, but not the product of shape->size",
                   (unsigned long long)n);
}

/* Adds the elements that a strided view reads. */
static void check_strides(kiln__checker *c, const char *name, kiln_array a,
                          const kiln_shape *shape, const kiln_view *view)
{
  const int64_t most = INT64_MAX / 16 / KILN_MAX_AXES;
  int64_t low = 0, high = 0;
  bool fits = true;

  for (uint32_t k = 0; k < shape->rank; k++) {
    const int64_t stride = view->stride[k];
    const uint64_t steps = shape->size[k] - 1;
    const uint64_t size =
        stride < 0 ? UINT64_C(0) - (uint64_t)stride : (uint64_t)stride;

    if (steps != 0 && size > (uint64_t)most / steps)
      fits = false;
    else if (stride < 0)
      low += stride * (int64_t)steps;
    else
      high += stride * (int64_t)steps;
  }
  kiln__check_that(c, fits, "the view of %s exceeds the address space", name);
  a.data += (uint64_t)low * kiln__size(a.type);
  if (c->st == KILN_OK)
    kiln__check_read(c, name, a, (uint64_t)(high - low) + 1);
}

void kiln__check_viewed(kiln__checker *c, const char *name, kiln_array a,
                        const kiln_shape *shape, size_t k, uint64_t n)
{
  if (c->st != KILN_OK)
    return;
  if (!kiln__is_viewed(shape, k))
    kiln__check_read(c, name, a, n);
  else if (shape->view[k].kind == KILN_VIEW_TABLE)
    kiln__check_read(c, name, a, shape->view[k].length);
  else if (n > 0)
    check_strides(c, name, a, shape, &shape->view[k]);
}

/* ---- Normal form --------------------------------------------------------- */

/* Returns whether every strided view goes from axis k to the axis behind it
 * without a gap. */
static bool merges(const kiln_shape *s, uint32_t k, size_t arrays)
{
  for (size_t v = 0; v < arrays; v++)
    if (kiln__is_strided(s, v) &&
        s->view[v].stride[k] !=
            s->view[v].stride[k + 1] * (int64_t)s->size[k + 1])
      return false;
  return true;
}

/* Removes axis k of several. */
static void remove_axis(kiln_shape *s, uint32_t k)
{
  const size_t behind = s->rank - 1 - k;

  memmove(s->size + k, s->size + k + 1, behind * sizeof s->size[0]);
  for (size_t v = 0; v < KILN_MAX_INPUTS; v++)
    memmove(s->view[v].stride + k, s->view[v].stride + k + 1,
            behind * sizeof s->view[v].stride[0]);
  s->rank--;
}

kiln_shape kiln__normal_shape(const kiln_shape *shape, size_t arrays)
{
  kiln_shape s = *shape;

  if (!kiln__has_strides(&s, arrays))
    s.rank = 0;
  for (size_t v = arrays; v < KILN_MAX_INPUTS; v++)
    s.view[v] = (kiln_view){.kind = KILN_VIEW_PLAIN};
  for (uint32_t k = s.rank; k-- > 0 && s.rank > 1;)
    if (s.size[k] == 1)
      remove_axis(&s, k);
  for (uint32_t k = s.rank; k-- > 1;)
    if (merges(&s, k - 1, arrays)) {
      s.size[k] *= s.size[k - 1];
      remove_axis(&s, k - 1);
    }
  for (size_t v = 0; v < arrays; v++)
    if (kiln__is_strided(&s, v) && s.rank == 1 && s.view[v].stride[0] == 1)
      s.view[v].kind = KILN_VIEW_PLAIN;
  if (!kiln__has_strides(&s, arrays))
    s.rank = 0;
  return s;
}

/* neighbourhood.cuh -- the elements around one element, for the user's expressions.
 *
 * Text of an expression calls at(dx), at(dx, dy) or at(dx, dy, dz) for the element at that
 * distance. Elements outside of the array follow the border rule (border.cuh). No distance
 * reads memory outside of the array. Within the radius, elements far from the border are
 * read without any test: the distances are usually constants, so the compiler removes the
 * comparisons with the radius. */
#ifndef KILN_NEIGHBOURHOOD_CUH
#define KILN_NEIGHBOURHOOD_CUH

#include <kiln/border.cuh>
#include <kiln/types.cuh>

namespace kiln
{

/* The input array. Distances between rows and planes are in elements. */
struct grid {
  const KILN_T *in;
  long long row, plane;
  long long width, height, depth;
  KILN_T outside;
};

struct neighbourhood {
  const grid &g;
  long long x, y, z;
  const KILN_T *centre; /* the element (x, y, z) */
  bool inside;          /* the radius does not reach beyond the array */

  static __device__ __forceinline__ bool within(int d, unsigned radius)
  {
    return static_cast<unsigned>(d) + radius <= 2 * radius;
  }

  __device__ __forceinline__ compute_t<KILN_T> operator()(int dx, int dy = 0,
                                                          int dz = 0) const
  {
    long long i, j, k;

    if (inside && within(dx, KILN_RX) && within(dy, KILN_RY) &&
        within(dz, KILN_RZ))
      return load(centre + (dz * g.plane + dy * g.row + dx));
    i = border_index(x + dx, g.width);
    j = border_index(y + dy, g.height);
    k = border_index(z + dz, g.depth);
    return i < 0 || j < 0 || k < 0 ? widen(g.outside)
                                   : load(g.in + (k * g.plane + j * g.row + i));
  }
};

} // namespace kiln

/* The names by which generated code refers to these types. */
typedef kiln::neighbourhood kiln__neighbourhood;
typedef kiln::compute_t<KILN_T> kiln__element;

#endif

/* sass_align.c -- aligns two sequences by a longest common subsequence.
 *
 * Problem: find which elements of two similar sequences belong together, for
 * lines of two source files and for the opcodes of two compiles of a line.
 *
 * Idea: a path through the grid of both sequences goes right to drop an element
 * of the first, down to drop one of the second, and diagonally along equal
 * elements at no cost. For d = 0, 1, 2, ... and each diagonal, remember the
 * furthest point that d drops can reach; the first d that reaches the end is the
 * least (Myers 1986, "An O(ND) Difference Algorithm and Its Variations"). The
 * kept points of each d lead back to the path.
 *
 * Cost: O((n + m) d) time and O(d^2) memory for d dropped elements. Common ends
 * are removed first. With more than MOST_DROPPED dropped elements the sequences
 * have little in common, and the elements between the ends stay unmatched. */
#include "cli/explore/sass_compare.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DROPPED = 1500 };

/* The part of both sequences between their common ends. */
typedef struct window {
  const sass_sequences *s;
  uint32_t first;   /* length of the common start */
  int32_t n, m;     /* lengths between the ends */
  int32_t *reached; /* reached[d * d + d + k]: furthest x on diagonal k */
} window;

static bool equal(const window *w, int32_t x, int32_t y)
{
  return w->s->equal(w->s->user, w->first + (uint32_t)x,
                     w->first + (uint32_t)y);
}

/* The points of d take 2 d + 1 places, those of all smaller d take d * d. */
static int32_t *point(const window *w, int32_t d, int32_t k)
{
  return &w->reached[(size_t)d * (size_t)d + (size_t)(d + k)];
}

/* Returns whether the best path to diagonal k with d drops comes from diagonal
 * k + 1, which drops an element of the second sequence. */
static bool is_down(const window *w, int32_t d, int32_t k)
{
  return k == -d ||
         (k != d && *point(w, d - 1, k - 1) < *point(w, d - 1, k + 1));
}

/* Computes the furthest points for d drops. Returns whether one is the end. */
static bool extend(const window *w, int32_t d)
{
  for (int32_t k = -d; k <= d; k += 2) {
    int32_t x = 0, y;

    if (d > 0)
      x = is_down(w, d, k) ? *point(w, d - 1, k + 1)
                           : *point(w, d - 1, k - 1) + 1;
    y = x - k;
    while (x < w->n && y >= 0 && y < w->m && equal(w, x, y)) {
      x++;
      y++;
    }
    *point(w, d, k) = x;
    if (x == w->n && y == w->m)
      return true;
  }
  return false;
}

/* Follows the path back from the end. Returns the number of matches. */
static uint32_t trace(const window *w, int32_t d, int32_t *match)
{
  int32_t x = w->n, y = w->m;
  uint32_t matches = 0;

  for (; d >= 0; d--) {
    const int32_t k = x - y;
    const bool down = d > 0 && is_down(w, d, k);
    const int32_t from = d == 0 ? 0
                         : down ? *point(w, d - 1, k + 1)
                                : *point(w, d - 1, k - 1) + 1;

    while (x > from) {
      x--;
      y--;
      match[w->first + (uint32_t)x] = (int32_t)(w->first + (uint32_t)y);
      matches++;
    }
    if (down)
      y--;
    else
      x--;
  }
  return matches;
}

static uint32_t align_window(window *w, int32_t *match)
{
  int32_t most = w->n + w->m;
  uint32_t matches = 0;

  if (w->n == 0 || w->m == 0)
    return 0;
  if (most > MOST_DROPPED)
    most = MOST_DROPPED;
  w->reached =
      calloc((size_t)(most + 1) * (size_t)(most + 1), sizeof *w->reached);
  for (int32_t d = 0; w->reached != NULL && d <= most; d++)
    if (extend(w, d)) {
      matches = trace(w, d, match);
      break;
    }
  free(w->reached);
  return matches;
}

uint32_t kiln__sass_align(const sass_sequences *s, int32_t *match)
{
  window w = {.s = s};
  uint32_t last = 0, matches;

  memset(match, 0xff, s->n * sizeof *match);
  while (w.first < s->n && w.first < s->m &&
         s->equal(s->user, w.first, w.first)) {
    match[w.first] = (int32_t)w.first;
    w.first++;
  }
  while (last < s->n - w.first && last < s->m - w.first &&
         s->equal(s->user, s->n - 1 - last, s->m - 1 - last)) {
    match[s->n - 1 - last] = (int32_t)(s->m - 1 - last);
    last++;
  }
  w.n = (int32_t)(s->n - w.first - last);
  w.m = (int32_t)(s->m - w.first - last);
  matches = align_window(&w, match);
  return w.first + last + matches;
}

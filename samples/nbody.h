/* nbody.h -- what the samples on n bodies share: a Plummer model, and reference
 * accelerations in double precision. */
#ifndef KILN_SAMPLE_NBODY_H
#define KILN_SAMPLE_NBODY_H

#include "sample.h"

#include <math.h>

/* Bodies, one array per field. */
typedef struct bodies {
  size_t n;
  float *m, *x, *y, *z, *vx, *vy, *vz;
} bodies;

static inline double nbody_random(uint64_t *state)
{
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return (double)(*state >> 11) * 0x1p-53;
}

/* Sets (*x, *y, *z) to a random point on a sphere of this radius. */
static inline void nbody_on_sphere(double radius, uint64_t *state, float *x,
                                   float *y, float *z)
{
  const double c = 2 * nbody_random(state) - 1, s = sqrt(1 - c * c);
  const double angle = 6.283185307179586 * nbody_random(state);

  *x = (float)(radius * s * cos(angle));
  *y = (float)(radius * s * sin(angle));
  *z = (float)(radius * c);
}

/* Returns the speed of a body in units of the escape velocity, by von Neumann's
 * rejection method: its density is proportional to q^2 (1 - q^2)^(7/2). */
static inline double nbody_speed(uint64_t *state)
{
  for (;;) {
    const double q = nbody_random(state);

    if (0.1 * nbody_random(state) < q * q * pow(1 - q * q, 3.5))
      return q;
  }
}

/* Makes a star cluster by the Plummer model, in units in which G, the total
 * mass and the scale radius are 1 (Aarseth, Henon and Wielen, 1974). Stars at more
 * than 20 scale radii are drawn again. The masses differ by up to a factor of
 * 3, or are equal. */
static inline bodies nbody_plummer(size_t n, bool equal)
{
  uint64_t state = 88172645463325252u;
  bodies b = {.n = n};
  float **const field[] = {&b.m, &b.x, &b.y, &b.z, &b.vx, &b.vy, &b.vz};

  for (size_t k = 0; k < sizeof field / sizeof field[0]; k++)
    *field[k] = sample_alloc(n * sizeof(float));
  for (size_t i = 0; i < n; i++) {
    double r = HUGE_VAL;

    while (!(r < 20))
      r = 1 / sqrt(pow(nbody_random(&state), -2.0 / 3) - 1);
    nbody_on_sphere(r, &state, &b.x[i], &b.y[i], &b.z[i]);
    nbody_on_sphere(nbody_speed(&state) * sqrt(2) * pow(1 + r * r, -0.25),
                    &state, &b.vx[i], &b.vy[i], &b.vz[i]);
    b.m[i] = (float)((equal ? 1 : 0.5 + nbody_random(&state)) / (double)n);
  }
  return b;
}

static inline void nbody_free(bodies *b)
{
  float *const field[] = {b->m, b->x, b->y, b->z, b->vx, b->vy, b->vz};

  for (size_t k = 0; k < sizeof field / sizeof field[0]; k++)
    free(field[k]);
}

/* Computes the acceleration of body i in double precision. */
static inline void nbody_reference(const bodies *b, size_t i, double eps2,
                                   double a[3])
{
  a[0] = a[1] = a[2] = 0;
  for (size_t j = 0; j < b->n; j++) {
    const double dx = (double)b->x[j] - (double)b->x[i];
    const double dy = (double)b->y[j] - (double)b->y[i];
    const double dz = (double)b->z[j] - (double)b->z[i];
    const double squared = dx * dx + dy * dy + dz * dz + eps2;
    const double f = (double)b->m[j] / (squared * sqrt(squared));

    a[0] += f * dx;
    a[1] += f * dy;
    a[2] += f * dz;
  }
}

/* Returns the largest relative error of some accelerations. The arrays have n
 * elements, of which every (n / 30)-th is compared. */
static inline double nbody_error(const bodies *b, double eps2,
                                 float *const a[3])
{
  double worst = 0;

  for (size_t i = 0; i < b->n; i += b->n / 30 + 1) {
    double want[3], off = 0, size = 0;

    nbody_reference(b, i, eps2, want);
    for (int k = 0; k < 3; k++) {
      off += ((double)a[k][i] - want[k]) * ((double)a[k][i] - want[k]);
      size += want[k] * want[k];
    }
    off = sqrt(off / size);
    worst = off <= worst ? worst : off; /* a NaN is an error, too */
  }
  return worst;
}

#endif

/* nbody.c -- two star clusters that fall through each other: Plummer models
 * whose bodies all attract each other (row B15 of the lectures).
 *
 * Accelerations and potentials come from one kiln_all_pairs(). The steps are
 * those of the leapfrog method: half a kick, a drift, half a kick. The method is
 * time-reversible, so the energy does not drift. It must stay within 0.1 % of
 * its first value, and the momentum within rounding errors of zero. A sheet of
 * frames shows the bodies from above.
 *
 * usage: nbody [--device gpu|cpu|cpu:9.0] */
#include "nbody.h"
#include "picture.h"

enum {
  GPU_BODIES = 1 << 15,
  CPU_BODIES = 512,
  GPU_STEPS = 1024,
  CPU_STEPS = 16,
  COLUMNS = 4, /* frames per row of the sheet */
  FRAMES = 8,
  SIDE = 256, /* pixels per side of a frame */
  VECTORS = 3,
  FIELDS = 11
};

enum { X, V = X + VECTORS, A = V + VECTORS, M = A + VECTORS, PHI };

static const double most_energy_error = 1e-3;
static const float softening = 0.05f, time_step = 1.0f / 64;

typedef struct simulation {
  sample s;
  kiln_stream *stream;
  size_t n;
  CUdeviceptr field[FIELDS];
  float *host[FIELDS];
} simulation;

static kiln_array array(const simulation *w, int field)
{
  return (kiln_array){w->field[field], KILN_F32};
}

/* ---- Forces and steps ---------------------------------------------------- */

/* Queues the computation of all accelerations and potentials. A body does not
 * contribute to its own potential. */
static void attract(simulation *w)
{
  const float eps2 = softening * softening;
  const kiln_param params[] = {{"eps", KILN_F32, &softening, true},
                               {"eps2", KILN_F32, &eps2, true}};
  const kiln_all_pairs_desc desc = {
      .target = {array(w, X), array(w, X + 1), array(w, X + 2), array(w, M)},
      .n = w->n,
      .common = "const float dx = s.x - t.x, dy = s.y - t.y, dz = s.z - t.z;\n"
                "const float r = rsqrtf(dx * dx + (dy * dy + (dz * dz + "
                "eps2)));\n"
                "const float p = s.w * r, f = p * (r * r);",
      .expr = {"f * dx", "f * dy", "f * dz", "-p"},
      .epilogue = {NULL, NULL, NULL, "r3 + t.w / eps"},
      .out = {array(w, A), array(w, A + 1), array(w, A + 2), array(w, PHI)},
      .code = {.params = params, .n_params = 2, .fast_math = true}};

  SAMPLE_OP(kiln_all_pairs(w->stream, &desc, NULL));
}

/* Adds `share` of a time step times one vector to another vector. */
static void add(simulation *w, int to, int from, float share)
{
  const float dt = share * time_step;
  const kiln_param param = {"dt", KILN_F32, &dt, false};
  const kiln_map_desc desc = {
      .in = {array(w, to), array(w, to + 1), array(w, to + 2), array(w, from),
             array(w, from + 1), array(w, from + 2)},
      .out = {array(w, to), array(w, to + 1), array(w, to + 2)},
      .expr = {"x0 + dt * x3", "x1 + dt * x4", "x2 + dt * x5"},
      .n = w->n,
      .code = {.params = &param, .n_params = 1}};

  SAMPLE_OP(kiln_map(w->stream, &desc, NULL));
}

static void leapfrog(simulation *w)
{
  add(w, V, A, 0.5f);
  add(w, X, V, 1);
  attract(w);
  add(w, V, A, 0.5f);
}

/* ---- Conserved quantities ------------------------------------------------ */

typedef struct totals {
  double energy, momentum;
} totals;

static void read_back(simulation *w)
{
  SAMPLE_TRY(kiln_stream_synchronize(w->stream));
  for (int k = 0; k < FIELDS; k++)
    SAMPLE_TRY(kiln_copy_to_host(w->s.device, w->host[k], w->field[k],
                                 w->n * sizeof(float)));
}

/* Returns the energy, and the length of the total momentum. Needs the fields on
 * the host. */
static totals measure(const simulation *w)
{
  double p[VECTORS] = {0};
  totals t = {0};

  for (size_t i = 0; i < w->n; i++) {
    const double m = (double)w->host[M][i];
    double squared = 0;

    for (int k = 0; k < VECTORS; k++) {
      const double v = (double)w->host[V + k][i];

      p[k] += m * v;
      squared += v * v;
    }
    t.energy += 0.5 * m * (squared + (double)w->host[PHI][i]);
  }
  t.momentum = sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]);
  return t;
}

/* ---- Pictures ------------------------------------------------------------ */

/* Draws the bodies from above into one frame of the sheet. A pixel is the
 * brighter, the more bodies it shows. */
static void draw(const simulation *w, uint8_t *sheet, int frame)
{
  const double extent = 8; /* half the side of a frame, in scale radii */
  uint8_t *const corner = sheet +
                          (size_t)(frame / COLUMNS) * SIDE * SIDE * COLUMNS +
                          (size_t)(frame % COLUMNS) * SIDE;

  for (size_t i = 0; i < w->n; i++) {
    const double x = ((double)w->host[X][i] / extent + 1) * SIDE / 2;
    const double y = ((double)w->host[X + 1][i] / extent + 1) * SIDE / 2;

    if (x >= 0 && x < SIDE && y >= 0 && y < SIDE) {
      uint8_t *const pixel = corner + (size_t)y * SIDE * COLUMNS + (size_t)x;

      *pixel = (uint8_t)(*pixel + (255 - *pixel) / 4);
    }
  }
  for (size_t k = 0; k < SIDE; k++) /* a line between frames */
    corner[k * SIDE * COLUMNS] = corner[k] = 96;
}

/* ---- Program ------------------------------------------------------------- */

/* Makes two Plummer models of mass 1 that move towards each other, off
 * centre. */
static void prepare(simulation *w)
{
  const size_t half = w->n / 2, bytes = w->n * sizeof(float);
  bodies b = nbody_plummer(half, false);
  const float *const from[] = {b.x, b.y, b.z, b.vx, b.vy, b.vz};
  const float shift[] = {4, 1, 0, -0.4f, 0, 0};

  for (int k = 0; k < FIELDS; k++) {
    w->host[k] = sample_alloc(bytes);
    SAMPLE_TRY(kiln_memory_alloc(&w->field[k], w->s.device, bytes));
  }
  for (size_t i = 0; i < half; i++) {
    for (int k = 0; k < 2 * VECTORS; k++) {
      /* The second cluster is the first one, turned by half a circle. */
      w->host[k][i] = from[k][i] + shift[k];
      w->host[k][half + i] = -w->host[k][i];
    }
    w->host[M][i] = w->host[M][half + i] = b.m[i];
  }
  for (int k = 0; k <= M; k++)
    if (k < A || k == M)
      SAMPLE_TRY(
          kiln_copy_to_device(w->s.device, w->field[k], w->host[k], bytes));
  nbody_free(&b);
  SAMPLE_TRY(kiln_stream_create(&w->stream, w->s.device, NULL));
}

static bool print_row(int step, totals now, totals first)
{
  const double error = fabs(now.energy / first.energy - 1);
  const bool good = error < most_energy_error && now.momentum < 1e-4;

  printf("  %6d %8.2f %12.7f %9.1e %9.1e%s\n", step,
         (double)step * (double)time_step, now.energy, error, now.momentum,
         good ? "" : "  WRONG");
  return good;
}

static bool simulate(simulation *w, int steps)
{
  uint8_t *sheet = calloc((size_t)FRAMES * SIDE, SIDE);
  const int timed = steps / FRAMES * (FRAMES - 1);
  totals first = {0};
  double began;
  bool good = sheet != NULL;

  attract(w);
  began = sample_now_ms();
  printf("  %6s %8s %12s %9s %9s\n", "step", "time", "energy", "error",
         "momentum");
  for (int frame = 0; frame < FRAMES && good; frame++) {
    for (int k = 0; frame > 0 && k < steps / FRAMES; k++)
      leapfrog(w);
    read_back(w);
    if (frame == 0)
      first = measure(w);
    good = print_row(frame * (steps / FRAMES), measure(w), first);
    draw(w, sheet, frame);
  }
  began = sample_now_ms() - began;
  printf("  %.1f ms, %.1f GFLOP/s at 20 operations per pair\n", began,
         20.0 * (double)w->n * (double)w->n * timed / (began * 1e6));
  good = good &&
         picture_write("nbody", sheet, COLUMNS * SIDE, FRAMES / COLUMNS * SIDE);
  free(sheet);
  return good;
}

int main(int argc, char **argv)
{
  simulation w = {.n = 0};
  bool good;

  sample_open(&w.s, argc, argv);
  w.n = w.s.few ? CPU_BODIES : GPU_BODIES;
  prepare(&w);
  printf("two clusters of %zu bodies, steps of 1/64, softening 0.05\n",
         w.n / 2);
  good = simulate(&w, w.s.few ? CPU_STEPS : GPU_STEPS);
  kiln_stream_free(w.stream);
  for (int k = 0; k < FIELDS; k++) {
    SAMPLE_TRY(kiln_memory_free(w.s.device, w.field[k]));
    free(w.host[k]);
  }
  return sample_end(&w.s, good);
}

/* nbody_ranks.c -- a star cluster whose bodies are distributed over several devices
 * or machines.
 *
 *   nbody_ranks              four threads of this process
 *   mpirun -n 4 nbody_ranks  four processes, under Open MPI or MPICH
 *
 * Each rank holds a block of the bodies. In kiln_dist_all_pairs() the blocks travel
 * around the ring of the ranks, while each device computes with the block before. The
 * steps are those of the leapfrog method (nbody.c). The accelerations of each rank's
 * bodies are compared with a sum in double precision over all bodies, and the total
 * momentum must stay zero within rounding errors. */
#include "ranks.h"

#include "nbody.h"

enum { GPU_BODIES = 1 << 15, CPU_BODIES = 250, STEPS = 4, CHECKED = 20 };
enum { X, V = X + 3, A = V + 3, M = A + 3, FIELDS };

static const float softening = 0.05f, time_step = 1.0f / 64;

/* The bodies of one rank. */
typedef struct block {
  kiln_comm *comm;
  kiln_stream *stream;
  uint64_t n, first;
  CUdeviceptr field[FIELDS];
} block;

static kiln_array array(const block *b, int field)
{
  return (kiln_array){b->field[field], KILN_F32};
}

static void attract(const block *b)
{
  const float eps2 = softening * softening;
  const kiln_param param = {"eps2", KILN_F32, &eps2, true};
  const kiln_all_pairs_desc desc = {
      .target = {array(b, X), array(b, X + 1), array(b, X + 2), array(b, M)},
      .n = b->n,
      .common =
          "const float dx = s.x - t.x, dy = s.y - t.y, dz = s.z - t.z;"
          "const float r = rsqrtf(dx * dx + (dy * dy + (dz * dz + eps2)));"
          "const float f = s.w * (r * r * r);",
      .expr = {"f * dx", "f * dy", "f * dz"},
      .out = {array(b, A), array(b, A + 1), array(b, A + 2)},
      .code = {.params = &param, .n_params = 1}};

  SAMPLE_OP(kiln_dist_all_pairs(b->comm, b->stream, &desc));
}

/* Adds `share` of a time step times one vector to another vector. Each rank needs
 * only its own block. */
static void add(const block *b, int to, int from, float share)
{
  const float dt = share * time_step;
  const kiln_param param = {"dt", KILN_F32, &dt, false};
  const kiln_map_desc desc = {
      .in = {array(b, to), array(b, to + 1), array(b, to + 2), array(b, from),
             array(b, from + 1), array(b, from + 2)},
      .out = {array(b, to), array(b, to + 1), array(b, to + 2)},
      .expr = {"x0 + dt * x3", "x1 + dt * x4", "x2 + dt * x5"},
      .n = b->n,
      .code = {.params = &param, .n_params = 1}};

  SAMPLE_OP(kiln_map(b->stream, &desc, NULL));
}

/* Returns the largest component of the momentum of all bodies. */
static double momentum(const block *b)
{
  kiln_device *const device = kiln_comm_device(b->comm);
  double worst = 0, p;
  CUdeviceptr out;

  SAMPLE_TRY(kiln_memory_alloc(&out, device, sizeof p));
  for (int k = 0; k < 3; k++) {
    const kiln_dot_desc desc = {.x = array(b, M),
                                .y = array(b, V + k),
                                .n = b->n,
                                .out = {out, KILN_F64}};

    SAMPLE_OP(kiln_dist_dot(b->comm, b->stream, &desc));
    SAMPLE_TRY(kiln_copy_to_host(device, &p, out, sizeof p));
    worst = fmax(worst, fabs(p));
  }
  SAMPLE_TRY(kiln_memory_free(device, out));
  return worst;
}

/* Returns the largest relative error of some accelerations of this rank's bodies, at
 * the positions of the model. */
static double error_of(const block *b, const bodies *all)
{
  float *const a = malloc((b->n + 1) * 3 * sizeof *a);
  double worst = 0;

  if (a == NULL)
    exit(1);
  for (int k = 0; k < 3; k++)
    SAMPLE_TRY(kiln_copy_to_host(kiln_comm_device(b->comm),
                                 a + (size_t)k * b->n, b->field[A + k],
                                 b->n * sizeof *a));
  for (uint64_t i = 0; i < b->n; i += b->n / CHECKED + 1) {
    double want[3], off = 0, size = 0;

    nbody_reference(all, b->first + i, (double)softening * (double)softening,
                    want);
    for (uint64_t k = 0; k < 3; k++) {
      const double d = (double)a[k * b->n + i] - want[k];

      off += d * d;
      size += want[k] * want[k];
    }
    worst = fmax(worst, sqrt(off / size));
  }
  free(a);
  return worst;
}

/* Uploads this rank's part of the model. */
static void open_block(block *b, const bodies *all)
{
  const float *const from[FIELDS] = {all->x,  all->y,  all->z,      all->vx,
                                     all->vy, all->vz, [M] = all->m};
  kiln_device *const device = kiln_comm_device(b->comm);

  b->first = kiln_dist_part(all->n, (uint32_t)kiln_comm_size(b->comm),
                            (uint32_t)kiln_comm_rank(b->comm), &b->n);
  SAMPLE_TRY(kiln_stream_create(&b->stream, device, NULL));
  for (int k = 0; k < FIELDS; k++) {
    SAMPLE_TRY(
        kiln_memory_alloc(&b->field[k], device, (b->n + 1) * sizeof(float)));
    if (from[k] != NULL)
      SAMPLE_TRY(kiln_copy_to_device(device, b->field[k], from[k] + b->first,
                                     b->n * sizeof(float)));
  }
}

static void close_block(const block *b)
{
  for (int k = 0; k < FIELDS; k++)
    SAMPLE_TRY(kiln_memory_free(kiln_comm_device(b->comm), b->field[k]));
  kiln_stream_free(b->stream);
}

/* What every rank does. */
static kiln_status simulate(kiln_comm *comm, void *user)
{
  const sample *const s = user;
  bodies all = nbody_plummer(s->on_cpu ? CPU_BODIES : GPU_BODIES, false);
  block b = {.comm = comm};
  double error, before, after;

  open_block(&b, &all);
  attract(&b);
  error = error_of(&b, &all);
  before = momentum(&b);
  for (int step = 0; step < STEPS; step++) {
    add(&b, V, A, 0.5f);
    add(&b, X, V, 1);
    attract(&b);
    add(&b, V, A, 0.5f);
  }
  after = momentum(&b);
  if (!(error < 1e-4 && fabs(after - before) < 1e-4)) {
    fprintf(stderr, "rank %d: error %g, momentum %g and %g\n",
            kiln_comm_rank(comm), error, before, after);
    exit(1);
  }
  if (kiln_comm_rank(comm) == 0)
    printf("%d ranks, %s: %zu bodies, %d steps; momentum changed by %.1e\n",
           kiln_comm_size(comm), kiln_comm_engine(comm), all.n, STEPS,
           fabs(after - before));
  close_block(&b);
  nbody_free(&all);
  return KILN_OK;
}

int main(int argc, char **argv)
{
  return sample_run_ranks(argc, argv, simulate);
}

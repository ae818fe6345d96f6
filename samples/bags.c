/* bags.c -- sums over bags of matrix rows (row C6 of the lectures). A bag is a
 * segment of consecutive rows, and the sum of a bag has one value for each of
 * the 128 columns. The bags are in random order: 1,000 bags of 1 to 10 rows,
 * 100 of 11 to 100 rows, and 10 of 101 to 1,000 rows. The lecture's loop over
 * the bags, with one kernel per bag, was slower than copying everything to the
 * CPU and back. Kiln needs one launch:
 *
 *   kiln_segmented_reduce_desc bags = {.x = {.in = {{x, KILN_F32}}}, .n = rows,
 *       .n_segments = n_bags, .offsets = {offsets, KILN_U32}, .width = 128,
 *       .out = {out, KILN_F32}};
 *   kiln_segmented_reduce(stream, &bags, NULL);
 *
 * The launch is timed beside the trip to the host and beside one reduction per
 * bag. */
#include "sample.h"

#include <math.h>

enum { COLUMNS = 128, SHORT = 1000, MEDIUM = 100, LONG = 10, REPEATS = 9 };
enum { BAGS = SHORT + MEDIUM + LONG };

typedef struct bags {
  uint32_t offsets[BAGS + 1];
  size_t rows;
  float *x, *want, *got;
  CUdeviceptr dx, doffsets, dout;
  kiln_device *device;
} bags;

static uint64_t next(uint64_t *r)
{
  *r = *r * 6364136223846793005u + 1442695040888963407u;
  return *r >> 33;
}

static void make_lengths(bags *b, uint64_t *r)
{
  uint32_t length[BAGS];

  for (int k = 0; k < BAGS; k++)
    length[k] = (uint32_t)(k < SHORT            ? 1 + next(r) % 10
                           : k < SHORT + MEDIUM ? 11 + next(r) % 90
                                                : 101 + next(r) % 900);
  for (uint32_t k = BAGS - 1; k > 0; k--) {
    const uint32_t other = (uint32_t)(next(r) % (k + 1)), l = length[k];

    length[k] = length[other];
    length[other] = l;
  }
  b->offsets[0] = 0;
  for (int k = 0; k < BAGS; k++)
    b->offsets[k + 1] = b->offsets[k] + length[k];
  b->rows = b->offsets[BAGS];
}

/* Computes the expected sums on the host by the loop that defines them. */
static void on_host(const bags *b, float *out)
{
  for (int k = 0; k < BAGS; k++)
    for (int c = 0; c < COLUMNS; c++) {
      float sum = 0;

      for (uint32_t i = b->offsets[k]; i < b->offsets[k + 1]; i++)
        sum += b->x[(size_t)i * COLUMNS + (size_t)c];
      out[k * COLUMNS + c] = sum;
    }
}

static void make(bags *b, kiln_device *device)
{
  uint64_t r = 1;

  make_lengths(b, &r);
  b->device = device;
  b->x = sample_alloc(b->rows * COLUMNS * sizeof *b->x);
  b->want = sample_alloc(sizeof(float[BAGS][COLUMNS]));
  b->got = sample_alloc(sizeof(float[BAGS][COLUMNS]));
  for (size_t i = 0; i < b->rows * COLUMNS; i++)
    b->x[i] = (float)(next(&r) % 2048) * 0x1p-10f - 1;
  on_host(b, b->want);
  SAMPLE_TRY(kiln_memory_alloc(&b->dx, device, b->rows * COLUMNS * 4));
  SAMPLE_TRY(kiln_memory_alloc(&b->doffsets, device, sizeof b->offsets));
  SAMPLE_TRY(kiln_memory_alloc(&b->dout, device, sizeof(float[BAGS][COLUMNS])));
  SAMPLE_TRY(kiln_copy_to_device(device, b->dx, b->x, b->rows * COLUMNS * 4));
  SAMPLE_TRY(
      kiln_copy_to_device(device, b->doffsets, b->offsets, sizeof b->offsets));
}

static kiln_status one_call(kiln_stream *stream, const void *desc)
{
  const bags *b = desc;
  const kiln_segmented_reduce_desc d = {.x = {.in = {{b->dx, KILN_F32}}},
                                        .n = b->rows,
                                        .n_segments = BAGS,
                                        .offsets = {b->doffsets, KILN_U32},
                                        .width = COLUMNS,
                                        .out = {b->dout, KILN_F32}};

  return kiln_segmented_reduce(stream, &d, NULL);
}

static kiln_status one_by_one(kiln_stream *stream, const void *desc)
{
  const bags *b = desc;
  kiln_status st = KILN_OK;

  for (size_t k = 0; k < BAGS && st == KILN_OK; k++) {
    const kiln_reduce_matrix_desc d = {
        .x = {.in = {{b->dx + (CUdeviceptr)b->offsets[k] * COLUMNS * 4,
                      KILN_F32}}},
        .rows = b->offsets[k + 1] - b->offsets[k],
        .columns = COLUMNS,
        .out = {b->dout + (CUdeviceptr)k * COLUMNS * 4, KILN_F32}};

    st = kiln_reduce_columns(stream, &d, NULL);
  }
  return st;
}

static bool is_right(const bags *b)
{
  bool good = true;

  SAMPLE_TRY(kiln_copy_to_host(b->device, b->got, b->dout,
                               sizeof(float[BAGS][COLUMNS])));
  for (size_t i = 0; i < (size_t)BAGS * COLUMNS; i++)
    good = good && fabsf(b->got[i] - b->want[i]) <= 1e-3f;
  SAMPLE_TRY(
      kiln_fill(b->device, b->dout, 0xff, 1, sizeof(float[BAGS][COLUMNS])));
  return good;
}

/* Measures the milliseconds of the trip to the host: copies all rows to the
 * host, sums them there, and copies the results back. */
static double round_trip(bags *b)
{
  double ms = sample_now_ms();

  SAMPLE_TRY(kiln_copy_to_host(b->device, b->x, b->dx, b->rows * COLUMNS * 4));
  on_host(b, b->got);
  SAMPLE_TRY(kiln_copy_to_device(b->device, b->dout, b->got,
                                 sizeof(float[BAGS][COLUMNS])));
  ms = sample_now_ms() - ms;
  return ms;
}

int main(int argc, char **argv)
{
  static bags b;
  kiln_stream *stream;
  double apart, together, host;
  bool good;
  sample s;

  sample_open(&s, argc, argv);
  SAMPLE_TRY(kiln_stream_create(&stream, s.device, NULL));
  make(&b, s.device);
  printf("%d bags of %zu rows of %d floats\n", BAGS, b.rows, COLUMNS);
  together = sample_op_ms(stream, one_call, &b, s.few ? 1 : REPEATS);
  good = is_right(&b);
  apart = sample_op_ms(stream, one_by_one, &b, s.few ? 1 : REPEATS);
  good = is_right(&b) && good;
  host = round_trip(&b);
  printf("  one launch a bag         %9.3f ms\n", apart);
  printf("  to the host and back     %9.3f ms\n", host);
  printf("  kiln_segmented_reduce    %9.3f ms\n", together);
  SAMPLE_TRY(kiln_memory_free(s.device, b.dx));
  SAMPLE_TRY(kiln_memory_free(s.device, b.doffsets));
  SAMPLE_TRY(kiln_memory_free(s.device, b.dout));
  free(b.x);
  free(b.want);
  free(b.got);
  kiln_stream_free(stream);
  return sample_end(&s, good);
}

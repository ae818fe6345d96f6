/* ranks.c -- one program for several devices and machines: a sum and a sort over
 * the blocks of a group of ranks.
 *
 *   ranks              four threads of this process
 *   mpirun -n 4 ranks  four processes, under Open MPI or MPICH
 *
 * Every rank runs sum_and_sort() on its own block. The last rung of the reduction
 * ladder: the arrays of all ranks are one array. */
#include "ranks.h"

enum { BLOCK = 10000, MOST = SAMPLE_MOST_RANKS };

/* Element i of the whole array. */
static uint32_t element(uint64_t i)
{
  return (uint32_t)(i * 2654435761u) ^ (uint32_t)i >> 3;
}

/* Checks the sum, and the order within this rank's sorted block and between the
 * blocks. */
static bool verified(kiln_comm *comm, const uint32_t *block, uint64_t sum)
{
  const uint64_t n = (uint64_t)kiln_comm_size(comm) * BLOCK;
  uint32_t ends[2] = {block[0], block[BLOCK - 1]}, all[MOST][2];
  uint64_t want = 0;
  bool right = true;

  for (uint64_t i = 0; i < n; i++)
    want += element(i);
  for (int i = 1; i < BLOCK; i++)
    right = right && block[i - 1] <= block[i];
  SAMPLE_TRY(kiln_comm_share(comm, ends, sizeof ends, all));
  for (int r = 1; r < kiln_comm_size(comm); r++)
    right = right && all[r - 1][1] <= all[r][0];
  return right && sum == want;
}

/* What every rank does. */
static kiln_status sum_and_sort(kiln_comm *comm, void *user)
{
  kiln_device *const device = kiln_comm_device(comm);
  uint32_t *const block = malloc(BLOCK * sizeof *block);
  uint64_t first = 0, sum = 0;
  kiln_stream *stream;
  CUdeviceptr x, total;

  (void)user;
  if (block == NULL || kiln_comm_size(comm) > MOST)
    return KILN_ENOMEM;
  SAMPLE_TRY(kiln_stream_create(&stream, device, NULL));
  SAMPLE_TRY(kiln_memory_alloc(&x, device, BLOCK * sizeof *block));
  SAMPLE_TRY(kiln_memory_alloc(&total, device, sizeof sum));
  SAMPLE_TRY(kiln_dist_blocks(comm, BLOCK, &first, NULL));
  for (uint64_t i = 0; i < BLOCK; i++)
    block[i] = element(first + i);
  SAMPLE_TRY(kiln_copy_to_device(device, x, block, BLOCK * sizeof *block));

  SAMPLE_OP(kiln_dist_reduce(comm, stream,
                             &(kiln_reduce_desc){.x = {.in = {{x, KILN_U32}}},
                                                 .n = BLOCK,
                                                 .out = {total, KILN_U64}}));
  SAMPLE_OP(kiln_dist_sort(comm, stream,
                           &(kiln_sort_desc){.keys_in = {x, KILN_U32},
                                             .keys_out = {x, KILN_U32},
                                             .n = BLOCK}));

  SAMPLE_TRY(kiln_copy_to_host(device, &sum, total, sizeof sum));
  SAMPLE_TRY(kiln_copy_to_host(device, block, x, BLOCK * sizeof *block));
  if (!verified(comm, block, sum)) {
    fprintf(stderr, "rank %d: wrong result\n", kiln_comm_rank(comm));
    exit(1);
  }
  if (kiln_comm_rank(comm) == 0)
    printf("%d ranks, %s: the sum of %d elements is %llu; sorted\n",
           kiln_comm_size(comm), kiln_comm_engine(comm),
           kiln_comm_size(comm) * BLOCK, (unsigned long long)sum);
  SAMPLE_TRY(kiln_memory_free(device, x));
  SAMPLE_TRY(kiln_memory_free(device, total));
  kiln_stream_free(stream);
  free(block);
  return KILN_OK;
}

int main(int argc, char **argv)
{
  return sample_run_ranks(argc, argv, sum_and_sort);
}

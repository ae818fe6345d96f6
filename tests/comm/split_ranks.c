/* split_ranks.c -- groups that are split from others: rows and columns of a grid,
 * orders by keys, ranks that join no group, groups of groups, and groups that
 * outlive the one they were split from. Every rank computes what its new group
 * must be from the colours and keys of all ranks. */
#include "rank_main.h"

enum { COLOURS = 3 };

static int colour_of(uint64_t seed, int rank)
{
  return (int)(mixed(seed, 1, (uint64_t)rank) % (COLOURS + 1)) - 1;
}

static int key_of(uint64_t seed, int rank)
{
  return (int)(mixed(seed, 2, (uint64_t)rank) % 4) - 2;
}

/* Returns how many ranks with this rank's colour come before rank `r` in the new
 * group, or all of them for r = -1. */
static int expected(kiln_comm *comm, uint64_t seed, int r)
{
  const int colour = colour_of(seed, kiln_comm_rank(comm));
  int n = 0;

  for (int p = 0; p < kiln_comm_size(comm); p++) {
    if (colour_of(seed, p) != colour)
      continue;
    n += r < 0 || key_of(seed, p) < key_of(seed, r) ||
         (key_of(seed, p) == key_of(seed, r) && p < r);
  }
  return n;
}

/* The sum of a number per rank, on the device. */
static int64_t sum_over(kiln_comm *comm, int64_t mine)
{
  const CUdeviceptr x = upload(comm, &mine, sizeof mine);
  const kiln_array a = {x, KILN_I64};
  kiln_stream *stream;
  int64_t sum = 0;

  CHECK_OK(kiln_stream_create(&stream, kiln_comm_device(comm), NULL));
  CHECK_OK(kiln_comm_all_reduce(comm, stream, a, a, 1, KILN_SUM));
  download(comm, &sum, x, sizeof sum);
  release(comm, x);
  kiln_stream_free(stream);
  return sum;
}

/* Splits by random colours and keys, and compares size, ranks and a sum. */
static void random_split(kiln_comm *comm, uint64_t seed)
{
  const int me = kiln_comm_rank(comm);
  int members[MOST_RANKS];
  int64_t want = 0;
  kiln_comm *part = comm;

  CHECK_OK(kiln_comm_split(&part, comm, colour_of(seed, me), key_of(seed, me)));
  CHECK((part == NULL) == (colour_of(seed, me) < 0));
  if (part == NULL)
    return;
  CHECK(kiln_comm_size(part) == expected(comm, seed, -1));
  CHECK(kiln_comm_rank(part) == expected(comm, seed, me));
  CHECK(kiln_comm_device(part) == kiln_comm_device(comm));
  CHECK(strcmp(kiln_comm_engine(part), kiln_comm_engine(comm)) == 0);
  CHECK_OK(kiln_comm_share(part, &me, sizeof me, members));
  for (int i = 0; i < kiln_comm_size(part); i++) {
    CHECK(colour_of(seed, members[i]) == colour_of(seed, me));
    CHECK(expected(comm, seed, members[i]) == i);
    want += 1 << members[i];
  }
  CHECK(sum_over(part, 1 << me) == want);
  kiln_comm_free(part);
}

/* Sums over the rows and columns of a grid, and over all ranks in between, without
 * a common order of the groups: no message may reach a wrong group. */
static void grid(kiln_comm *comm)
{
  const int n = kiln_comm_size(comm), me = kiln_comm_rank(comm), width = 2;
  const int row = me / width, column = me % width;
  kiln_comm *rows, *columns, *alone;

  CHECK_OK(kiln_comm_split(&rows, comm, row, column));
  CHECK_OK(kiln_comm_split(&columns, comm, column, row));
  CHECK_OK(kiln_comm_split(&alone, comm, me, 0));
  for (int i = 0; i < 5; i++) {
    int64_t in_row = 0, in_column = 0;

    for (int p = 0; p < n; p++) {
      in_row += p / width == row ? p + i : 0;
      in_column += p % width == column ? p - i : 0;
    }
    CHECK(sum_over(rows, me + i) == in_row);
    CHECK(sum_over(columns, me - i) == in_column);
    CHECK(sum_over(comm, 1) == n);
    CHECK(sum_over(alone, me) == me);
  }
  kiln_comm_free(rows);
  kiln_comm_free(columns);
  kiln_comm_free(alone);
}

/* Splits a half of the group again, in the opposite order. The larger group is
 * freed first. */
static void halves(kiln_comm *comm)
{
  const int n = kiln_comm_size(comm), me = kiln_comm_rank(comm);
  const bool low = me < (n + 1) / 2;
  const int size = low ? (n + 1) / 2 : n / 2, last = low ? size - 1 : n - 1;
  kiln_comm *half = NULL, *flipped = NULL;
  int members[MOST_RANKS];

  CHECK_OK(kiln_comm_split(&half, comm, low, 0));
  CHECK_OK(kiln_comm_split(&flipped, half, 0, -me));
  kiln_comm_free(half);
  CHECK_OK(kiln_comm_share(flipped, &me, sizeof me, members));
  for (int i = 0; i < size; i++)
    CHECK(members[i] == last - i);
  CHECK(sum_over(flipped, 1) == size);
  CHECK(sum_over(comm, me) == n * (n - 1) / 2);
  kiln_comm_free(flipped);
}

/* A group that breaks leaves the others as they are. */
static void broken_part(kiln_comm *comm)
{
  const int me = kiln_comm_rank(comm);
  kiln_comm *part;
  int rank = -1;

  CHECK_OK(kiln_comm_split(&part, comm, 0, -me));
  if (me == 0)
    CHECK_OK(kiln_comm_abort(part, "a test"));
  CHECK(kiln_comm_barrier(part) == KILN_ECOMM);
  CHECK(strstr(kiln_comm_failure(part, &rank), "a test") != NULL);
  CHECK(rank == kiln_comm_size(comm) - 1);
  CHECK(kiln_comm_failure(comm, NULL)[0] == '\0');
  CHECK(sum_over(comm, 1) == kiln_comm_size(comm));
  kiln_comm_free(part);
}

static kiln_status splits(kiln_comm *comm, void *user)
{
  const uint64_t seeds = thorough() ? 1000 : 8;

  (void)user;
  for (uint64_t seed = 0; seed < seeds; seed++)
    random_split(comm, seed);
  if (!nccl_only) /* nobody would tell the others */
    broken_part(comm);
  return KILN_OK;
}

/* The last scene leaves no broken group behind, since the processes of MPI then
 * end without MPI_Finalize(). */
static kiln_status grids(kiln_comm *comm, void *user)
{
  (void)user;
  grid(comm);
  halves(comm);
  return KILN_OK;
}

static kiln_status wrong_split(kiln_comm *comm, void *user)
{
  kiln_comm *part;
  kiln_status st;

  (void)user;
  CHECK(kiln_comm_split(&part, NULL, 0, 0) == KILN_EINVAL && part == NULL);
  if (nccl_only)
    return KILN_OK;
  if (kiln_comm_rank(comm) == 0) {
    CHECK(kiln_comm_split(NULL, comm, 0, 0) == KILN_EINVAL);
    return KILN_OK;
  }
  st = kiln_comm_split(&part, comm, 0, 0);
  CHECK(st == KILN_ECOMM && part == NULL);
  CHECK(strstr(kiln_comm_failure(comm, NULL), "out is NULL") != NULL);
  return KILN_OK;
}

int main(int argc, char **argv)
{
  static const kiln_comm_fn scenes[] = {splits, wrong_split, grids};
  int result = 0;

  for (int i = 0; i < 3 && result == 0; i++) {
    result = rank_main(argc, argv, scenes[i], NULL);
    rank_runtime = NULL;
  }
  return result;
}

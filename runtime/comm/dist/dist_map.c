/* dist_map.c -- maps with the index within the whole array, and shuffles by key.
 *
 * A map runs on each block alone, with two more parameters. A shuffle is a split
 * (dist_scan.c) whose partition is a hash of the user's key: equal keys meet on
 * one rank, and different keys spread evenly over the ranks, also if they are
 * multiples of a number. The hash is the finaliser of splitmix64 (Steele, Lea and
 * Flood, Fast splittable pseudorandom number generators, 2014), reduced to a rank
 * by a multiplication (Lemire, Fast random integer generation in an interval,
 * 2019). */
#include "dist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

kiln_status kiln_dist_map_sized(kiln_comm *comm, kiln_stream *stream,
                                const kiln_map_desc *desc, size_t desc_size)
{
  uint64_t first = 0, total = 0;
  const kiln_param added[] = {{"first", KILN_U64, &first, false},
                              {"total", KILN_U64, &total, false}};
  kiln_map_desc own;
  kiln__dist d;
  kiln__dist_code c;
  kiln_status st =
      kiln__dist_begin(&d, comm, stream, desc, desc_size, &own, sizeof own);

  if (st != KILN_OK)
    return st;
  st = kiln__dist_extend(&c, &own.code, added, 2);
  own.code = c.all;
  if (st == KILN_OK)
    st = kiln_dist_blocks(comm, own.n, &first, &total);
  if (st == KILN_OK)
    st = kiln_map(stream, &own, NULL);
  if (st == KILN_OK)
    st = kiln_stream_synchronize(stream);
  return kiln__dist_end(&d, st);
}

/* ---- Shuffles ------------------------------------------------------------ */

int kiln_dist_shuffle_rank(uint64_t key, int ranks)
{
  uint64_t z = key + 0x9e3779b97f4a7c15u;

  if (ranks <= 0)
    return -1;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return (int)((z >> 32) * (uint64_t)ranks >> 32);
}

/* The same function on the device. */
static const char shuffle_rank[] =
    "static __device__ unsigned kiln_shuffle_rank(unsigned long long z,\n"
    "                                             unsigned ranks)\n"
    "{\n"
    "  z += 0x9e3779b97f4a7c15ull;\n"
    "  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;\n"
    "  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;\n"
    "  z ^= z >> 31;\n"
    "  return (unsigned)((z >> 32) * ranks >> 32);\n"
    "}\n";

/* Returns the concatenation of three texts, which the caller frees. */
static char *joined_text(const char *a, const char *b, const char *c)
{
  const size_t size = strlen(a) + strlen(b) + strlen(c) + 1;
  char *const text = malloc(size);

  if (text != NULL)
    (void)snprintf(text, size, "%s%s%s", a, b, c);
  return text;
}

kiln_status kiln_dist_shuffle_sized(kiln_comm *comm, kiln_stream *stream,
                                    const kiln_split_desc *desc,
                                    uint64_t capacity, uint64_t *received,
                                    size_t desc_size)
{
  const uint32_t ranks = comm != NULL ? (uint32_t)comm->ranks : 0;
  const kiln_param added = {"kiln_shuffle_ranks", KILN_U32, &ranks, false};
  char *key = NULL, *preamble = NULL;
  kiln_split_desc own;
  kiln__dist d;
  kiln__dist_code c;
  kiln_status st =
      kiln__dist_begin(&d, comm, stream, desc, desc_size, &own, sizeof own);

  if (st != KILN_OK)
    return st;
  COMM_TRY(kiln__dist_extend(&c, &own.code, &added, 1));
  if (own.key == NULL)
    COMM_TRY(kiln__comm_fail(KILN_EINVAL, "pass an expression over x",
                             "a shuffle has no key"));
  key = joined_text("kiln_shuffle_rank((unsigned long long)(", own.key,
                    "), kiln_shuffle_ranks)");
  preamble = joined_text(own.code.preamble != NULL ? own.code.preamble : "",
                         "\n", shuffle_rank);
  if (key == NULL || preamble == NULL)
    COMM_TRY(kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory"));
  c.all.preamble = preamble;
  own.key = key;
  own.code = c.all;
  st =
      kiln_dist_split_sized(comm, stream, &own, capacity, received, sizeof own);

done:
  free(key);
  free(preamble);
  return kiln__dist_end(&d, st);
}

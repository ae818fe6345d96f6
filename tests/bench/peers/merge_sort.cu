/* merge_sort.cu -- CUB's merge sort, with which `kiln bench merge_sort` compares
 * Kiln. */
#include "peer.h"

#include <cub/device/device_merge_sort.cuh>

struct by_size {
  __device__ bool operator()(float a, float b) const
  {
    return fabsf(a) < fabsf(b);
  }
};

struct ascending {
  __device__ bool operator()(unsigned long long a, unsigned long long b) const
  {
    return a < b;
  }
};

struct record {
  unsigned long long key, rest;
};

struct by_key {
  __device__ bool operator()(const record &a, const record &b) const
  {
    return a.key < b.key;
  }
};

PEER(merge_sort_structs)
{
  return cub::DeviceMergeSort::SortKeysCopy(c->temp, *c->temp_bytes,
                                            in<record>(c), out<record>(c),
                                            count(c), by_key{}, stream(c));
}

PEER(merge_sort_f32)
{
  return cub::DeviceMergeSort::SortKeysCopy(c->temp, *c->temp_bytes,
                                            in<float>(c), out<float>(c),
                                            count(c), by_size{}, stream(c));
}

PEER(merge_sort_u64)
{
  return cub::DeviceMergeSort::SortKeysCopy(
      c->temp, *c->temp_bytes, in<unsigned long long>(c),
      out<unsigned long long>(c), count(c), ascending{}, stream(c));
}

PEER(merge_sort_pairs_f32)
{
  return cub::DeviceMergeSort::SortPairsCopy(
      c->temp, *c->temp_bytes, in<float>(c, 0), in<unsigned>(c, 1),
      out<float>(c, 0), out<unsigned>(c, 1), count(c), by_size{}, stream(c));
}

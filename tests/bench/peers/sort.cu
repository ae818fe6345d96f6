/* sort.cu -- CUB's radix sorts, with which `kiln bench sort` compares Kiln. */
#include "peer.h"

#include <cub/device/device_radix_sort.cuh>

template <class T> static int keys(const kiln_peer_call *c, int bits)
{
  return cub::DeviceRadixSort::SortKeys(c->temp, *c->temp_bytes, in<T>(c),
                                        out<T>(c), count(c), 0, bits,
                                        stream(c));
}

static int pairs(const kiln_peer_call *c, int bits)
{
  return cub::DeviceRadixSort::SortPairs(
      c->temp, *c->temp_bytes, in<unsigned>(c, 0), out<unsigned>(c, 0),
      in<unsigned>(c, 1), out<unsigned>(c, 1), count(c), 0, bits, stream(c));
}

PEER(sort_keys_u32)
{
  return keys<unsigned>(c, 32);
}

PEER(sort_keys_f32)
{
  return keys<float>(c, 32);
}

PEER(sort_keys_u64)
{
  return keys<unsigned long long>(c, 64);
}

template <class T> static int descending(const kiln_peer_call *c)
{
  return cub::DeviceRadixSort::SortKeysDescending(
      c->temp, *c->temp_bytes, in<T>(c), out<T>(c), count(c), 0,
      8 * static_cast<int>(sizeof(T)), stream(c));
}

PEER(sort_descending_f32)
{
  return descending<float>(c);
}

PEER(sort_descending_u64)
{
  return descending<unsigned long long>(c);
}

PEER(sort_pairs_u32)
{
  return pairs(c, 32);
}

PEER(sort_keys_16_u32)
{
  return keys<unsigned>(c, 16);
}

PEER(sort_pairs_16_u32)
{
  return pairs(c, 16);
}

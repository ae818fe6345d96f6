/* sort.cu -- CUB's radix sorts, with which `kiln bench sort` compares Kiln. */
#include "peer.h"

#include <cub/device/device_radix_sort.cuh>

template <class T> static int keys(const kiln_peer_call *c, int bits)
{
  return cub::DeviceRadixSort::SortKeys(c->temp, *c->temp_bytes, in<T>(c),
                                        out<T>(c), count(c), 0, bits,
                                        stream(c));
}

template <class K, class V> static int pairs(const kiln_peer_call *c, int bits)
{
  return cub::DeviceRadixSort::SortPairs(
      c->temp, *c->temp_bytes, in<K>(c, 0), out<K>(c, 0), in<V>(c, 1),
      out<V>(c, 1), count(c), 0, bits, stream(c));
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
  return pairs<unsigned, unsigned>(c, 32);
}

PEER(sort_keys_16_u32)
{
  return keys<unsigned>(c, 16);
}

PEER(sort_pairs_16_u32)
{
  return pairs<unsigned, unsigned>(c, 16);
}

PEER(sort_pairs_u32_u64)
{
  return pairs<unsigned, unsigned long long>(c, 32);
}

PEER(sort_pairs_u64_u32)
{
  return pairs<unsigned long long, unsigned>(c, 64);
}

PEER(sort_pairs_u64_u64)
{
  return pairs<unsigned long long, unsigned long long>(c, 64);
}

/* move.cu -- CUB's batched copy, with which `kiln bench` compares Kiln. */
#include "peer.h"

#include <cub/device/device_memcpy.cuh>

/* in[1] contains the sizes, and in[2] the addresses of the sources and then of the
 * destinations. Both libraries write to the same destinations. */
static int copies(const kiln_peer_call *c, size_t size)
{
  const unsigned n = static_cast<unsigned>(c->n / size);
  const auto address = static_cast<void **>(const_cast<void *>(c->in[2]));

  return cub::DeviceMemcpy::Batched(c->temp, *c->temp_bytes, address,
                                    address + n, in<unsigned>(c, 1), n,
                                    stream(c));
}

PEER(copy_batch_40)
{
  return copies(c, 40);
}

PEER(copy_batch_1000)
{
  return copies(c, 1000);
}

PEER(copy_batch_1m)
{
  return copies(c, 1000000);
}

/* peer.h -- how `kiln bench` calls a peer. The same lines stand in the command's
 * bench_ops.h: neither includes the other, since one is built by nvcc. */
#ifndef KILN_PEER_H
#define KILN_PEER_H

#include <cstddef>
#include <cuda_runtime_api.h>

/* Device pointers and the caller's stream. With temp NULL only *temp_bytes is
 * set. Peers return 0 or a code. */
struct kiln_peer_call {
  const void *in[3];
  void *out[3];
  size_t n;
  void *temp;
  size_t *temp_bytes;
  void *stream;
};

#define PEER(name)                                                             \
  extern "C" __attribute__((visibility("default"))) int kiln_peer_##name(      \
      const kiln_peer_call *c)

template <class T> static const T *in(const kiln_peer_call *c, int k = 0)
{
  return static_cast<const T *>(c->in[k]);
}

template <class T> static T *out(const kiln_peer_call *c, int k = 0)
{
  return static_cast<T *>(c->out[k]);
}

static inline cudaStream_t stream(const kiln_peer_call *c)
{
  return static_cast<cudaStream_t>(c->stream);
}

static inline long long count(const kiln_peer_call *c)
{
  return static_cast<long long>(c->n);
}

/* For peers that need no temporary storage. Returns true if the call only asked
 * for the size of the temporary storage. */
static inline bool needs_nothing(const kiln_peer_call *c)
{
  *c->temp_bytes = 0;
  return c->temp == nullptr;
}

#endif

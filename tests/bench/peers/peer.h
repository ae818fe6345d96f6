/* peer.h -- the interface through which `kiln bench` calls a peer, a function
 * of another library with which it compares Kiln. The command's bench_ops.h
 * contains a copy of these lines. Neither file includes the other, since this
 * file is compiled by nvcc. */
#ifndef KILN_PEER_H
#define KILN_PEER_H

#include <cstddef>
#include <cuda_runtime_api.h>

/* Arguments of a peer. in, out and temp are device pointers, and stream is the
 * caller's stream. If temp is NULL, the peer only sets *temp_bytes. A peer
 * returns 0 or an error code. */
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

/* Used by peers that need no temporary storage. Returns true if the caller only
 * asked for the size of the temporary storage. */
static inline bool needs_nothing(const kiln_peer_call *c)
{
  *c->temp_bytes = 0;
  return c->temp == nullptr;
}

#endif

/* rt_channel.c -- converts between the runtime's channel descriptors, which give the
 * bits of each channel, and the driver's formats, which give a type and a number of
 * channels. One table of rows (kind, bits, format) serves both directions. */
#include "rt_channel.h"

/* A channel type. `channels` is 0 if the descriptor's non-zero members give their
 * number; the normalised kinds have a kind per number of channels. */
static const struct row {
  cudaChannelFormatKind kind;
  int bits;
  CUarray_format format;
  unsigned channels;
} rows[] = {
    {cudaChannelFormatKindUnsigned, 8, CU_AD_FORMAT_UNSIGNED_INT8, 0},
    {cudaChannelFormatKindUnsigned, 16, CU_AD_FORMAT_UNSIGNED_INT16, 0},
    {cudaChannelFormatKindUnsigned, 32, CU_AD_FORMAT_UNSIGNED_INT32, 0},
    {cudaChannelFormatKindSigned, 8, CU_AD_FORMAT_SIGNED_INT8, 0},
    {cudaChannelFormatKindSigned, 16, CU_AD_FORMAT_SIGNED_INT16, 0},
    {cudaChannelFormatKindSigned, 32, CU_AD_FORMAT_SIGNED_INT32, 0},
    {cudaChannelFormatKindFloat, 16, CU_AD_FORMAT_HALF, 0},
    {cudaChannelFormatKindFloat, 32, CU_AD_FORMAT_FLOAT, 0},
/* The formats of the driver that name their number of channels, from
 * CU_AD_FORMAT_UNORM_INT8X1 on. */
#define NORMALISED(kind, bits, format)                                         \
  {kind, bits, format, 1}, {kind + 1, bits, (format) + 1, 2},                  \
  {                                                                            \
    kind + 2, bits, (format) + 2, 4                                            \
  }
    NORMALISED(cudaChannelFormatKindUnsignedNormalized8X1, 8, 0xc0),
    NORMALISED(cudaChannelFormatKindUnsignedNormalized16X1, 16, 0xc3),
    NORMALISED(cudaChannelFormatKindSignedNormalized8X1, 8, 0xc6),
    NORMALISED(cudaChannelFormatKindSignedNormalized16X1, 16, 0xc9),
#undef NORMALISED
};

/* Returns the number of channels of a descriptor, or 0 if its members are not of one
 * size, or have a gap, or there are three of them. */
static unsigned count(const cudaChannelFormatDesc *d)
{
  const int bits[4] = {d->x, d->y, d->z, d->w};
  unsigned n = 0;

  while (n < 4 && bits[n] == d->x && d->x > 0)
    n++;
  for (unsigned i = n; i < 4; i++) {
    if (bits[i] != 0)
      return 0;
  }
  return n == 3 ? 0 : n;
}

cudaError_t kiln__rt_texel_of(kiln__rt_texel *out,
                              const cudaChannelFormatDesc *desc)
{
  const unsigned n = count(desc);

  for (size_t i = 0; n != 0 && i < sizeof rows / sizeof *rows; i++) {
    if (rows[i].kind == desc->f && rows[i].bits == desc->x &&
        (rows[i].channels == 0 || rows[i].channels == n)) {
      *out = (kiln__rt_texel){rows[i].format, n};
      return cudaSuccess;
    }
  }
  return cudaErrorInvalidChannelDescriptor;
}

static const struct row *row_of(kiln__rt_texel texel)
{
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (rows[i].format == texel.format)
      return &rows[i];
  }
  return NULL;
}

cudaChannelFormatDesc kiln__rt_channels_of(kiln__rt_texel texel)
{
  const struct row *row = row_of(texel);
  cudaChannelFormatDesc d = {.f = cudaChannelFormatKindNone};
  unsigned n;

  if (row == NULL)
    return d;
  n = row->channels == 0 ? texel.channels : row->channels;
  d.f = row->kind;
  d.x = row->bits;
  d.y = n >= 2 ? row->bits : 0;
  d.z = d.w = n == 4 ? row->bits : 0;
  return d;
}

size_t kiln__rt_texel_bytes(kiln__rt_texel texel)
{
  const cudaChannelFormatDesc d = kiln__rt_channels_of(texel);

  return (size_t)(d.x + d.y + d.z + d.w) / 8;
}

cudaChannelFormatDesc kiln__rt_createChannelDesc(int x, int y, int z, int w,
                                                 cudaChannelFormatKind f)
{
  return (cudaChannelFormatDesc){x, y, z, w, f};
}

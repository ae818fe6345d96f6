/* rt_channel.h -- converts between channel descriptors and the driver's formats of
 * texels. */
#ifndef KILN_CPU_RT_CHANNEL_H
#define KILN_CPU_RT_CHANNEL_H

#include "../cudart.h"

/* The driver's description of a texel. */
typedef struct kiln__rt_texel {
  CUarray_format format;
  unsigned int channels;
} kiln__rt_texel;

/* Converts a descriptor. Returns cudaErrorInvalidChannelDescriptor if no format has
 * these channels. */
cudaError_t kiln__rt_texel_of(kiln__rt_texel *out,
                              const cudaChannelFormatDesc *desc);
/* Converts a format. Unknown formats become a descriptor without channels. */
cudaChannelFormatDesc kiln__rt_channels_of(kiln__rt_texel texel);
/* Returns the bytes of a texel; 0 for formats that consist of blocks of texels. */
size_t kiln__rt_texel_bytes(kiln__rt_texel texel);

#endif

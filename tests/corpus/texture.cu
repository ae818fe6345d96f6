// Textures of one to three dimensions, layered textures, and a surface.
extern "C" __global__ void textures(cudaTextureObject_t one,
                                    cudaTextureObject_t two,
                                    cudaTextureObject_t three,
                                    cudaTextureObject_t layers, float *out)
{
  const int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
  const int i = (z * 4 + y) * 8 + x;

  out[i] = tex1Dfetch<float>(one, i);
  out[128 + i] = tex2D<float>(two, x + 1.0f, y + 0.5f);
  out[256 + i] = tex3D<float>(three, x + 0.5f, y + 1.0f, z + 0.5f);
  out[384 + i] = tex2DLayered<float>(layers, x + 0.5f, y + 0.5f, 3 - z);
}

extern "C" __global__ void surfaces(cudaSurfaceObject_t surface)
{
  const int x = threadIdx.x, y = threadIdx.y;
  float v;

  surf2Dread(&v, surface, x * 4, y);
  surf2Dwrite(v * 2 + 1, surface, x * 4, y);
}

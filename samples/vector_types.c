/* vector_types.c -- CUDA's built-in vector types (row B3 of the lectures): char4,
 * int2, float3, float4, double2 and others.
 *
 * The sample prints size, alignment and the offset of the last member of each type
 * on the device, and compares them with C structs that have the same layout on the
 * host. Then it computes with float4 and int2 elements, and shows in the PTX that one
 * instruction reads the 16 bytes of a float4. float3 has no such instruction, since
 * its alignment is 4. */
#include "sample.h"

#include <stddef.h>

/* Calls X(name, C type, number of members, alignment) for each type. */
#define VECTOR_TYPES(X)                                                        \
  X(char2, signed char, 2, 2)                                                  \
  X(char3, signed char, 3, 1)                                                  \
  X(char4, signed char, 4, 4)                                                  \
  X(uchar4, unsigned char, 4, 4)                                               \
  X(short2, short, 2, 4)                                                       \
  X(short3, short, 3, 2)                                                       \
  X(short4, short, 4, 8)                                                       \
  X(int2, int, 2, 8)                                                           \
  X(int3, int, 3, 4)                                                           \
  X(int4, int, 4, 16)                                                          \
  X(uint4, unsigned, 4, 16)                                                    \
  X(longlong2, long long, 2, 16)                                               \
  X(float2, float, 2, 8)                                                       \
  X(float3, float, 3, 4)                                                       \
  X(float4, float, 4, 16)                                                      \
  X(double2, double, 2, 16)

/* The host's layout of a vector type. */
#define HOST_TYPE(name, type, n, alignment)                                    \
  typedef struct host_##name {                                                 \
    _Alignas(alignment) type member[n];                                        \
  } host_##name;
VECTOR_TYPES(HOST_TYPE)

typedef struct layout {
  uint32_t size, alignment, last; /* offset of the last member */
} layout;

static const struct {
  const char *name;
  layout host;
} types[] = {
#define HOST_ROW(name, type, n, alignment)                                     \
  {#name, {sizeof(host_##name), _Alignof(host_##name), (n - 1) * sizeof(type)}},
    VECTOR_TYPES(HOST_ROW)};

enum { N_TYPES = sizeof types / sizeof types[0], N = 10000 };

/* The last member of a type with 2, 3 or 4 members. */
#define LAST_2 "y"
#define LAST_3 "z"
#define LAST_4 "w"
#define DEVICE_ROW(name, type, n, alignment)                                   \
  "  *out++ = sizeof(" #name "); *out++ = alignof(" #name ");\n"               \
  "  { " #name " v; *out++ = (char *)&v." LAST_##n " - (char *)&v; }\n"

static const char source[] =
    "extern \"C\" __global__ void layouts(unsigned *out)\n"
    "{\n" VECTOR_TYPES(
        DEVICE_ROW) "}\n"
                    "extern \"C\" __global__ void blend(float4 *y, const "
                    "float4 *a,\n"
                    "                                 const float4 *b, "
                    "unsigned n)\n"
                    "{\n"
                    "  const unsigned i = blockIdx.x * blockDim.x + "
                    "threadIdx.x;\n"
                    "  if (i < n) {\n"
                    "    const float4 p = a[i], q = b[i];\n"
                    "    y[i] = make_float4(p.x * p.w + q.x, p.y * p.w + q.y,\n"
                    "                       p.z * p.w + q.z, p.w + q.w);\n"
                    "  }\n"
                    "}\n"
                    "extern \"C\" __global__ void swap_pairs(int2 *v, unsigned "
                    "n)\n"
                    "{\n"
                    "  const unsigned i = blockIdx.x * blockDim.x + "
                    "threadIdx.x;\n"
                    "  if (i < n)\n"
                    "    v[i] = make_int2(v[i].y, v[i].x);\n"
                    "}\n"
                    "extern \"C\" __global__ void lengths(float *out, const "
                    "float3 *v,\n"
                    "                                   unsigned n)\n"
                    "{\n"
                    "  const unsigned i = blockIdx.x * blockDim.x + "
                    "threadIdx.x;\n"
                    "  if (i < n)\n"
                    "    out[i] = v[i].x + v[i].y + v[i].z;\n"
                    "}\n";

static kiln_kernel *kernel(kiln_module *module, const char *name)
{
  kiln_kernel *k;

  SAMPLE_TRY(kiln_module_kernel(&k, module, name));
  return k;
}

static CUdeviceptr upload(const sample *s, const void *data, size_t size)
{
  CUdeviceptr d;

  SAMPLE_TRY(kiln_memory_alloc(&d, s->device, size));
  SAMPLE_TRY(kiln_copy_to_device(s->device, d, data, size));
  return d;
}

/* Copies device memory to the host and frees it. */
static void download(const sample *s, void *data, CUdeviceptr d, size_t size)
{
  SAMPLE_TRY(kiln_copy_to_host(s->device, data, d, size));
  SAMPLE_TRY(kiln_memory_free(s->device, d));
}

/* Prints the layouts and compares them with those of the host. */
static bool show_layouts(const sample *s, kiln_module *module)
{
  const kiln_launch_config one = {.grid = {.x = 1}, .block = {.x = 1}};
  layout got[N_TYPES] = {{0}};
  CUdeviceptr out = upload(s, got, sizeof got);
  bool good = true;

  SAMPLE_TRY(KILN_LAUNCH(kernel(module, "layouts"), &one, KILN_ARG(out)));
  download(s, got, out, sizeof got);
  printf("  type       size  alignment  last member at\n");
  for (size_t k = 0; k < N_TYPES; k++) {
    const bool same = memcmp(&got[k], &types[k].host, sizeof(layout)) == 0;

    printf("  %-9s  %4u  %9u  %14u%s\n", types[k].name, got[k].size,
           got[k].alignment, got[k].last, same ? "" : "  NOT AS ON THE HOST");
    good = good && same;
  }
  return good;
}

static bool run_float4(const sample *s, kiln_module *module)
{
  const kiln_launch_config config = kiln_launch_1d(N, 128);
  host_float4 *a = sample_alloc(N * sizeof *a),
              *y = sample_alloc(N * sizeof *y);
  const uint32_t n = N;
  CUdeviceptr da, dy;
  bool good = true;

  for (int i = 0; i < N; i++)
    for (int k = 0; k < 4; k++)
      a[i].member[k] = (float)(i % 100 + k);
  da = upload(s, a, N * sizeof *a);
  dy = upload(s, a, N * sizeof *a);
  SAMPLE_TRY(KILN_LAUNCH(kernel(module, "blend"), &config, KILN_ARG(dy),
                         KILN_ARG(da), KILN_ARG(da), KILN_ARG(n)));
  download(s, y, dy, N * sizeof *y);
  for (int i = 0; i < N; i++)
    for (int k = 0; k < 4; k++) {
      const float *const v = a[i].member;

      good = good && y[i].member[k] == (k < 3 ? v[k] * v[3] : v[3]) + v[k];
    }
  SAMPLE_TRY(kiln_memory_free(s->device, da));
  free(a);
  free(y);
  return good;
}

static bool run_int2(const sample *s, kiln_module *module)
{
  const kiln_launch_config config = kiln_launch_1d(N, 128);
  host_int2 *v = sample_alloc(N * sizeof *v);
  const uint32_t n = N;
  bool good = true;
  CUdeviceptr d;

  for (int i = 0; i < N; i++)
    v[i] = (host_int2){{i, -i}};
  d = upload(s, v, N * sizeof *v);
  SAMPLE_TRY(KILN_LAUNCH(kernel(module, "swap_pairs"), &config, KILN_ARG(d),
                         KILN_ARG(n)));
  download(s, v, d, N * sizeof *v);
  for (int i = 0; i < N; i++)
    good = good && v[i].member[0] == -i && v[i].member[1] == i;
  free(v);
  return good;
}

static bool run_float3(const sample *s, kiln_module *module)
{
  const kiln_launch_config config = kiln_launch_1d(N, 128);
  host_float3 *v = sample_alloc(N * sizeof *v);
  float *got = sample_alloc(N * sizeof *got);
  const uint32_t n = N;
  CUdeviceptr dv, out;
  bool good = true;

  for (int i = 0; i < N; i++)
    v[i] = (host_float3){{(float)i, 1, 2}};
  dv = upload(s, v, N * sizeof *v);
  out = upload(s, v, N * sizeof *got);
  SAMPLE_TRY(KILN_LAUNCH(kernel(module, "lengths"), &config, KILN_ARG(out),
                         KILN_ARG(dv), KILN_ARG(n)));
  download(s, got, out, N * sizeof *got);
  for (int i = 0; i < N; i++)
    good = good && got[i] == (float)(i + 3);
  SAMPLE_TRY(kiln_memory_free(s->device, dv));
  free(v);
  free(got);
  return good;
}

/* Counts the occurrences of a word in the PTX of the program. */
static int count(const char *ptx, const char *word)
{
  int n = 0;

  for (const char *p = ptx; (p = strstr(p, word)) != NULL; p += strlen(word))
    n++;
  return n;
}

static bool show_accesses(kiln_module *module)
{
  const char *const ptx = kiln_image_ptx(kiln_module_image(module), NULL);
  int loads, stores;

  if (ptx == NULL)
    return true; /* the image came from a pack without PTX */
  loads = count(ptx, "ld.global.v4");
  stores = count(ptx, "st.global.v4");
  printf("  accesses of 16 bytes in the PTX: %d loads, %d stores\n", loads,
         stores);
  return loads == 2 && stores == 1;
}

int main(int argc, char **argv)
{
  const kiln_program_desc program = {.name = "vector_types.cu",
                                     .source = source};
  kiln_module *module;
  bool good;
  sample s;

  sample_open(&s, argc, argv);
  module = sample_module(&s, &program);
  good = show_layouts(&s, module);
  good = run_float4(&s, module) && good;
  good = run_int2(&s, module) && good;
  good = run_float3(&s, module) && good;
  good = show_accesses(module) && good;
  kiln_module_free(module);
  return sample_end(&s, good);
}

/* warp_primitives.c -- lanes of a warp exchange values by vote and shuffle
 * instructions, or by a code path without these instructions (row A7 of the
 * lectures).
 *
 * Both implementations of the functions are compiled for the same device. The
 * second one is selected by overriding the trait that says whether the GPU has
 * shuffle instructions. The results must be equal in every lane. */
#include "sample.h"

static const char source[] =
    "#if !KILN_HAS_SHFL\n"
    "__shared__ volatile int seen[32];\n"
    "#endif\n"
    "__device__ void together()\n"
    "{\n"
    "#if KILN_HAS_ITS\n"
    "  __syncwarp();\n"
    "#endif\n"
    "}\n"
    "__device__ int from_lane(int v, int lane)\n"
    "{\n"
    "#if KILN_HAS_SHFL && KILN_HAS_ITS\n"
    "  return __shfl_sync(~0u, v, lane);\n"
    "#elif KILN_HAS_SHFL\n"
    "  return __shfl(v, lane);\n"
    "#else\n"
    "  seen[threadIdx.x] = v;\n"
    "  together();\n"
    "  v = seen[lane & 31];\n"
    "  together();\n"
    "  return v;\n"
    "#endif\n"
    "}\n"
    "__device__ unsigned ballot(bool yes)\n"
    "{\n"
    "#if KILN_HAS_SHFL && KILN_HAS_ITS\n"
    "  return __ballot_sync(~0u, yes);\n"
    "#elif KILN_HAS_SHFL\n"
    "  return __ballot(yes);\n"
    "#else\n"
    "  unsigned bits = 0;\n"
    "  for (int lane = 0; lane < 32; lane++)\n"
    "    bits |= (unsigned)(from_lane(yes, lane) != 0) << lane;\n"
    "  return bits;\n"
    "#endif\n"
    "}\n"
    "extern \"C\" __global__ void look(unsigned *out)\n"
    "{\n"
    "  const int lane = threadIdx.x;\n"
    "  const int v = lane * lane;\n"
    "  const unsigned odd = ballot(v & 1);\n"
    "  int sum = v;\n"
    "  for (int d = 16; d > 0; d /= 2)\n"
    "    sum += from_lane(sum, lane ^ d);\n"
    "  out[lane * 4 + 0] = odd;\n"
    "  out[lane * 4 + 1] = odd == ~0u;          /* all */\n"
    "  out[lane * 4 + 2] = from_lane(v, lane + 3);\n"
    "  out[lane * 4 + 3] = sum;\n"
    "}\n";

enum { VALUES = 32 * 4 };

static void look(sample *s, const char *trait, unsigned out[VALUES])
{
  const char *const traits[] = {trait};
  const kiln_program_desc desc = {.source = source,
                                  .name = "warp_primitives.cu",
                                  .traits = traits,
                                  .n_traits = trait != NULL ? 1 : 0};
  const kiln_launch_config config = {.grid = {.x = 1}, .block = {.x = 32}};
  kiln_module *module = sample_module(s, &desc);
  kiln_kernel *kernel;
  CUdeviceptr d;

  SAMPLE_TRY(kiln_module_kernel(&kernel, module, "look"));
  SAMPLE_TRY(kiln_memory_alloc(&d, s->device, VALUES * sizeof *out));
  SAMPLE_TRY(KILN_LAUNCH(kernel, &config, KILN_ARG(d)));
  SAMPLE_TRY(kiln_copy_to_host(s->device, out, d, VALUES * sizeof *out));
  SAMPLE_TRY(kiln_memory_free(s->device, d));
  kiln_module_free(module);
}

static bool right(const unsigned out[VALUES])
{
  bool good = true;

  for (unsigned lane = 0; lane < 32; lane++) {
    const unsigned other = (lane + 3) % 32;
    const unsigned *v = out + lane * 4;

    good = good && v[0] == 0xaaaaaaaau && v[1] == 0 && v[2] == other * other &&
           v[3] == 31 * 32 * 63 / 6;
  }
  return good;
}

int main(int argc, char **argv)
{
  unsigned with[VALUES], without[VALUES];
  bool good;
  sample s;

  sample_open(&s, argc, argv);
  look(&s, NULL, with);
  look(&s, "KILN_HAS_SHFL=0", without);
  good = right(with) && memcmp(with, without, sizeof with) == 0;
  printf("                       ballot(odd)  all(odd)  lane 5 from lane 8   "
         "sum\n"
         "  vote and shuffle     0x%08x   %u         %u                   %u\n"
         "  through shared       0x%08x   %u         %u                   %u\n",
         with[0], with[1], with[5 * 4 + 2], with[3], without[0], without[1],
         without[5 * 4 + 2], without[3]);
  if (!kiln_device_traits(s.device)->has_shfl)
    printf("this architecture has no shuffle: both are the second path\n");
  return sample_end(&s, good);
}

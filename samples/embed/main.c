/* main.c -- runs a CUDA kernel from C, without nvcc or a link to CUDA. */
#include <kiln/kiln.h>
#include <stdio.h>

static const char text[] = "extern \"C\" __global__ void square(float *x)"
                           "{ x[threadIdx.x] *= x[threadIdx.x]; }";

int main(void)
{
  const kiln_program_desc program = {.source = text};
  const kiln_launch_config four = kiln_launch_1d(4, 4);
  float x[4] = {1, 2, 3, 4};
  kiln_runtime *rt = NULL;
  kiln_device *gpu = NULL;
  kiln_module *module = NULL;
  kiln_kernel *square = NULL;
  CUdeviceptr p = 0;

  if (kiln_runtime_create(&rt, NULL) == KILN_OK &&
      kiln_device_open(&gpu, rt, 0, NULL) == KILN_OK &&
      kiln_module_load(&module, gpu, &program) == KILN_OK &&
      kiln_module_kernel(&square, module, "square") == KILN_OK &&
      kiln_memory_alloc(&p, gpu, sizeof x) == KILN_OK &&
      kiln_copy_to_device(gpu, p, x, sizeof x) == KILN_OK &&
      KILN_LAUNCH(square, &four, KILN_ARG(p)) == KILN_OK &&
      kiln_copy_to_host(gpu, x, p, sizeof x) == KILN_OK)
    printf("%g %g %g %g\n", x[0], x[1], x[2], x[3]);
  else
    printf("no GPU result: %s\nnext step: %s\n", kiln_last_error()->message,
           kiln_last_error()->hint);
  if (p != 0)
    kiln_memory_free(gpu, p);
  kiln_module_free(module);
  kiln_device_free(gpu);
  kiln_runtime_free(rt);
  return 0;
}

/* ptx_fuzz.c -- a libFuzzer target that runs the PTX parser on arbitrary bytes.
 */
#include "cpu/ptx/ptx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  kiln_allocator alloc = {0};
  kiln__cpu_ptx_module *module = NULL;

  kiln__allocator_default(&alloc);
  if (kiln__cpu_ptx_parse(&module, &alloc, (const char *)data, size) == KILN_OK)
    kiln__cpu_ptx_free(module);
  return 0;
}

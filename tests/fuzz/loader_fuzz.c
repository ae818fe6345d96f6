/* loader_fuzz.c -- a libFuzzer target that runs the PTX parser and the code
 * builder on arbitrary bytes. Input without a .version is also inserted as the
 * statements of a kernel, so that the fuzzer need not discover the surrounding
 * directives. */
#include "cpu/code/code.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char before[] =
    ".version 9.0\n.target sm_90a\n.address_size 64\n"
    ".extern .shared .align 16 .b8 sm[];\n.global .align 8 .b8 g[64];\n"
    ".func (.param .b32 o) f(.param .b32 i) { ret; }\n"
    ".visible .entry k(.param .u64 a, .param .align 8 .b8 s[16])\n{\n"
    ".reg .pred p<8>; .reg .b16 h<8>; .reg .b32 r<8>; .reg .b64 d<8>;\n"
    ".reg .f32 f<8>; .reg .f64 e<8>; .shared .align 16 .b8 sh[64];\n"
    ".local .align 16 .b8 lo[64];\n";
static const char after[] = "\nret;\n}\n";

static void load(const kiln_allocator *alloc, const char *text, size_t size)
{
  kiln__cpu_ptx_module *module = NULL;
  kiln__cpu_program *program = NULL;

  if (kiln__cpu_ptx_parse(&module, alloc, text, size) == KILN_OK &&
      kiln__cpu_program_make(&program, alloc, module) == KILN_OK)
    kiln__cpu_program_free(program);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  kiln_allocator alloc = {0};
  kiln__buf text;

  kiln__allocator_default(&alloc);
  if (memmem(data, size, ".version", 8) != NULL) {
    load(&alloc, (const char *)data, size);
    return 0;
  }
  kiln__buf_init(&text, &alloc);
  kiln__buf_text(&text, before);
  kiln__buf_add(&text, data, size);
  kiln__buf_text(&text, after);
  if (!text.failed)
    load(&alloc, text.data, text.size);
  kiln__buf_free(&text);
  return 0;
}

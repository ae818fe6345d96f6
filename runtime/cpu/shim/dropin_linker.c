/* dropin_linker.c -- implements dropin_linker.h with the functions that also
 * implement cuLinkCreate. */
#include "dropin_linker.h"

#include "../api/module/api_module.h"

/* Marks the symbols that the version script exports. */
#define EXPORT __attribute__((visibility("default")))

struct kiln_cpu_linker {
  int arch;
  kiln__cpu_image texts;
  kiln__buf log;
  kiln__buf image; /* result of the link; freed together with the linker */
};

EXPORT int kiln_cpu_linker_create(kiln_cpu_linker **out, int arch,
                                  unsigned max_registers)
{
  kiln__cpu_machine *m = kiln__cpu_the_machine();
  kiln_cpu_linker *l;

  CU_TRY(allocated(m));
  l = kiln__calloc(&m->alloc, 1, sizeof *l);
  CU_TRY(allocated(l));
  l->arch = arch;
  l->texts = (kiln__cpu_image){.alloc = &m->alloc,
                               .any_version = true,
                               .linked = true,
                               .max_registers = max_registers};
  kiln__buf_init(&l->log, &m->alloc);
  kiln__buf_init(&l->image, &m->alloc);
  *out = l;
  return CUDA_SUCCESS;
}

EXPORT int kiln_cpu_linker_add(kiln_cpu_linker *l, const void *data,
                               size_t size, const char *name)
{
  kiln__cpu_image input = {.alloc = l->texts.alloc, .any_version = true};
  CUresult rc;

  rc = kiln__cpu_image_append(&input, data, size, l->arch, &l->log);
  if (rc == CUDA_SUCCESS)
    rc = kiln__cpu_link_check(&input, name, &l->log);
  for (size_t i = 0; i < input.n && rc == CUDA_SUCCESS; i++) {
    if (!kiln__cpu_image_add(&l->texts, input.texts[i].data,
                             input.texts[i].size))
      rc = CUDA_ERROR_OUT_OF_MEMORY;
  }
  kiln__cpu_image_free(&input);
  return rc;
}

EXPORT int kiln_cpu_linker_complete(kiln_cpu_linker *l, const void **image,
                                    size_t *size)
{
  kiln__cpu_program *program = NULL;
  CUresult rc = CUDA_SUCCESS;

  /* This link only produces messages. Loading the image links again. */
  if (l->texts.n > 0)
    rc = kiln__cpu_module_program(&program, l->texts.alloc, &l->texts, &l->log);
  kiln__cpu_program_free(program);
  kiln__buf_clear(&l->image);
  if (rc != CUDA_SUCCESS)
    return rc;
  kiln__cpu_image_write(&l->texts, &l->image);
  if (l->image.failed)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *image = l->image.data;
  *size = l->image.size;
  return CUDA_SUCCESS;
}

EXPORT const char *kiln_cpu_linker_log(kiln_cpu_linker *l)
{
  return l->log.data == NULL ? "" : l->log.data;
}

EXPORT void kiln_cpu_linker_free(kiln_cpu_linker *l)
{
  if (l == NULL)
    return;
  kiln__cpu_image_free(&l->texts);
  kiln__buf_free(&l->log);
  kiln__buf_free(&l->image);
  kiln__free(&kiln__cpu_the_machine()->alloc, l);
}

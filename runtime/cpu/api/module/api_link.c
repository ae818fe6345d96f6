/* api_link.c -- implements the link API, which combines PTX sources into one
 * image.
 *
 * Each input is parsed when it is added, so that messages contain the input's
 * name. cuLinkComplete links the inputs once to report unresolved symbols. The
 * image holds the PTX sources themselves, so loading the image links them
 * again. */
#include "api_module.h"

#include "../../../base/os.h"

struct CUlinkState_st {
  kiln__cpu_jit jit;
  kiln__cpu_image texts;
  kiln__buf log;
  /* image that cuLinkComplete returns; freed together with the link state */
  kiln__buf image;
};

CUresult kiln__cpu_linkCreate(unsigned int n, CUjit_option *options,
                              void **values, CUlinkState *state)
{
  kiln__cpu_machine *m = machine();
  CUlinkState s;
  kiln__cpu_jit jit;

  CU_TRY(kiln__cpu_check_current());
  CU_TRY(kiln__cpu_jit_read(&jit, n, options, values));
  CU_TRY(valid(state != NULL));
  s = kiln__calloc(&m->alloc, 1, sizeof *s);
  if (s == NULL || !kiln__cpu_live_add(s, KILN__HANDLE_LINK)) {
    kiln__free(&m->alloc, s);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  s->jit = jit;
  s->texts.alloc = &m->alloc;
  s->texts.linked = true;
  s->texts.max_registers = jit.max_registers;
  kiln__buf_init(&s->log, &m->alloc);
  kiln__buf_init(&s->image, &m->alloc);
  *state = s;
  return CUDA_SUCCESS;
}

/* Appends copies of the PTX sources of `image` to the link state. */
static CUresult append(CUlinkState s, const kiln__cpu_image *image)
{
  for (size_t i = 0; i < image->n; i++) {
    if (!kiln__cpu_image_add(&s->texts, image->texts[i].data,
                             image->texts[i].size))
      return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_link_check(const kiln__cpu_image *image, const char *name,
                              kiln__buf *log)
{
  CUresult rc = CUDA_SUCCESS;

  for (size_t i = 0; i < image->n && rc == CUDA_SUCCESS; i++) {
    kiln__cpu_ptx_module *ptx = NULL;

    if (kiln__cpu_ptx_parse(&ptx, image->alloc, image->texts[i].data,
                            image->texts[i].size) == KILN_OK) {
      kiln__cpu_ptx_free(ptx);
      continue;
    }
    kiln__buf_format(log, "%s: %s\n", name == NULL ? "input" : name,
                     kiln_last_error()->log);
    rc = CUDA_ERROR_INVALID_PTX;
  }
  return rc;
}

static CUresult add(CUlinkState s, CUjitInputType type, const void *data,
                    size_t size, const char *path, const char *name)
{
  kiln__cpu_image image;
  CUresult rc;

  if (type == CU_JIT_INPUT_NVVM)
    /* A driver without libnvvm returns this result code. */
    return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
  CU_TRY(valid(type >= CU_JIT_INPUT_CUBIN && type <= CU_JIT_INPUT_LIBRARY));
  /* The first bytes of the input determine its format. `type` does not, since a
   * fat binary is valid under every type. */
  rc = kiln__cpu_image_open(&image, path, data, size, &s->log);
  if (rc == CUDA_SUCCESS) {
    rc = kiln__cpu_link_check(&image, name, &s->log);
    if (rc == CUDA_SUCCESS)
      rc = append(s, &image);
    kiln__cpu_image_free(&image);
  }
  if (rc != CUDA_SUCCESS)
    kiln__cpu_jit_write(&s->jit, rc, s->log.data == NULL ? "" : s->log.data);
  return rc;
}

CUresult kiln__cpu_linkAddData(CUlinkState state, CUjitInputType type,
                               void *data, size_t size, const char *name,
                               unsigned int n, CUjit_option *options,
                               void **values)
{
  kiln__cpu_jit unused;

  CU_TRY(kiln__cpu_current_with(state, KILN__HANDLE_LINK));
  CU_TRY(kiln__cpu_jit_read(&unused, n, options, values));
  return data == NULL || size == 0 ? CUDA_ERROR_INVALID_VALUE
                                   : add(state, type, data, size, NULL, name);
}

CUresult kiln__cpu_linkAddFile(CUlinkState state, CUjitInputType type,
                               const char *path, unsigned int n,
                               CUjit_option *options, void **values)
{
  kiln__cpu_jit unused;

  CU_TRY(kiln__cpu_current_with(state, KILN__HANDLE_LINK));
  CU_TRY(kiln__cpu_jit_read(&unused, n, options, values));
  return path == NULL ? CUDA_ERROR_INVALID_VALUE
                      : add(state, type, NULL, 0, path, path);
}

CUresult kiln__cpu_linkComplete(CUlinkState state, void **cubin, size_t *size)
{
  kiln__cpu_program *program = NULL;
  CUresult rc;

  CU_TRY(kiln__cpu_current_with(state, KILN__HANDLE_LINK));
  CU_TRY(valid(cubin != NULL));
  if (state->texts.n == 0)
    return CUDA_ERROR_INVALID_IMAGE;
  /* This link only produces messages. Loading the image links again. */
  rc = kiln__cpu_module_program(&program, state->texts.alloc, &state->texts,
                                &state->log);
  kiln__cpu_program_free(program);
  kiln__buf_clear(&state->image);
  if (rc == CUDA_SUCCESS)
    kiln__cpu_image_write(&state->texts, &state->image);
  if (state->image.failed)
    rc = CUDA_ERROR_OUT_OF_MEMORY;
  kiln__cpu_jit_write(&state->jit, rc,
                      state->log.data == NULL ? "" : state->log.data);
  if (rc != CUDA_SUCCESS)
    return rc;
  *cubin = state->image.data;
  if (size != NULL)
    *size = state->image.size;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_linkDestroy(CUlinkState state)
{
  CU_TRY(kiln__cpu_current_with(state, KILN__HANDLE_LINK));
  kiln__cpu_live_remove(state);
  kiln__cpu_image_free(&state->texts);
  kiln__buf_free(&state->log);
  kiln__buf_free(&state->image);
  kiln__free(&machine()->alloc, state);
  return CUDA_SUCCESS;
}

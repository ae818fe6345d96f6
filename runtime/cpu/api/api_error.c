/* api_error.c -- implements cuGetErrorName and cuGetErrorString. */
#include "machine.h"

typedef struct row {
  CUresult code;
  const char *name, *text;
} row;

static const row rows[] = {
#define KILN__CPU_ERROR(name, value, text) {value, #name, text},
#include "api_errors.def"
#undef KILN__CPU_ERROR
};

static const row *find(CUresult code)
{
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (rows[i].code == code)
      return &rows[i];
  }
  return NULL;
}

CUresult kiln__cpu_getErrorName(CUresult code, const char **name)
{
  const row *r = find(code);

  if (name == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  *name = r != NULL ? r->name : NULL;
  return r != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult kiln__cpu_getErrorString(CUresult code, const char **text)
{
  const row *r = find(code);

  if (text == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  *text = r != NULL ? r->text : NULL;
  return r != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

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

  CU_TRY(valid(name != NULL));
  *name = r != NULL ? r->name : NULL;
  return valid(r != NULL);
}

CUresult kiln__cpu_getErrorString(CUresult code, const char **text)
{
  const row *r = find(code);

  CU_TRY(valid(text != NULL));
  *text = r != NULL ? r->text : NULL;
  return valid(r != NULL);
}

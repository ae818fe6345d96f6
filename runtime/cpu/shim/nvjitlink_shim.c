/* nvjitlink_shim.c -- a shim that replaces nvJitLink for programs on the CPU device.
 *
 * The linker of the drop-in libcuda.so.1 links PTX, and everything that contains
 * PTX. The result is a linked image, which the CPU device loads where a GPU
 * loads a CUBIN. nvjitlink_lto.c handles LTO-IR.
 *
 * KILN__NVJITLINK_MAJOR  the major version that the file name has. */
#include "jump.h"
#include "nvjitlink.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KILN__NVJITLINK_FN(name, params) int kiln__nvjitlink##name params;
#include "nvjitlink.def"
#undef KILN__NVJITLINK_FN

/* ---- Messages ------------------------------------------------------------ */

void kiln__nvjitlink_say(nvjitlink_text *text, const char *format, ...)
{
  va_list args;
  char *more;
  int n;

  va_start(args, format);
  n = vsnprintf(NULL, 0, format, args);
  va_end(args);
  more = n < 0 ? NULL : realloc(text->data, text->size + (size_t)n + 2);
  if (more == NULL)
    return;
  text->data = more;
  va_start(args, format);
  vsnprintf(more + text->size, (size_t)n + 1, format, args);
  va_end(args);
  text->size += (size_t)n;
  if (n > 0 && more[text->size - 1] != '\n')
    memcpy(more + text->size++, "\n", 2);
}

/* Appends the new part of the linker's log to the error log. */
static void copy_log(nvjitlink *l)
{
  const char *log = kiln_cpu_linker_log(l->linker);
  const size_t size = strlen(log);

  if (size > l->log_seen)
    kiln__nvjitlink_say(&l->errors, "%s", log + l->log_seen);
  l->log_seen = size;
}

/* ---- A link -------------------------------------------------------------- */

int kiln__nvjitlinkDestroy(nvjitlink **link)
{
  nvjitlink *l;

  if (link == NULL || *link == NULL)
    return NVJITLINK_INVALID_INPUT;
  l = *link;
  kiln__nvjitlink_lto_free(l);
  kiln_cpu_linker_free(l->linker);
  for (unsigned i = 0; i < l->n_options; i++)
    free(l->options[i]);
  free(l->options);
  free(l->errors.data);
  free(l->info.data);
  free(l);
  *link = NULL;
  return NVJITLINK_OK;
}

int kiln__nvjitlinkCreate(nvjitlink **out, uint32_t n, const char **options)
{
  nvjitlink *l;
  int rc;

  if (out == NULL || (n > 0 && options == NULL))
    return NVJITLINK_INVALID_INPUT;
  l = calloc(1, sizeof *l);
  if (l == NULL)
    return NVJITLINK_INTERNAL;
  rc = kiln__nvjitlink_options(l, n, options);
  if (rc == NVJITLINK_OK &&
      kiln_cpu_linker_create(&l->linker, l->arch, l->max_registers) != 0)
    rc = NVJITLINK_INTERNAL;
  if (rc != NVJITLINK_OK)
    kiln__nvjitlinkDestroy(&l);
  *out = l;
  return rc;
}

/* ---- Inputs -------------------------------------------------------------- */

/* The result codes of the driver that kiln_cpu_linker_add() returns. */
enum {
  CU_INVALID_IMAGE = 200,
  CU_NO_BINARY = 209,
  CU_INVALID_PTX = 218,
};

static const uint8_t ltoir_magic[] = {0xed, 'C', 'N', 0x7f};

static bool is_ltoir(const void *data, size_t size)
{
  return size >= sizeof ltoir_magic &&
         memcmp(data, ltoir_magic, sizeof ltoir_magic) == 0;
}

static int result_of(nvjitlink *l, int driver, const char *name)
{
  copy_log(l);
  switch (driver) {
  case 0:
    return NVJITLINK_OK;
  case CU_INVALID_PTX:
    return NVJITLINK_PTX_COMPILE;
  case CU_NO_BINARY:
    kiln__nvjitlink_say(&l->errors, "%s: nothing for sm_%d that has PTX", name,
                        l->arch);
    return NVJITLINK_ARCH_MISMATCH;
  case CU_INVALID_IMAGE:
    kiln__nvjitlink_say(&l->errors,
                        "%s: the input does not have the type that was given",
                        name);
    return NVJITLINK_INCORRECT_INPUT_TYPE;
  default:
    return NVJITLINK_INTERNAL;
  }
}

static int add_ltoir(nvjitlink *l, int type, const void *data, size_t size,
                     const char *name)
{
  if (l->lto)
    return kiln__nvjitlink_lto_add(l, type, data, size, name);
  kiln__nvjitlink_say(&l->errors,
                      "%s: LTO-IR needs the option -lto of nvJitLink", name);
  return NVJITLINK_LTO_NOT_ENABLED;
}

/* Returns whether the input begins like PTX: with a directive or a comment. */
static bool is_text(const char *data, size_t size)
{
  size_t i = 0;

  while (i < size && (data[i] == ' ' || (data[i] >= '\t' && data[i] <= '\r')))
    i++;
  return i < size && (data[i] == '.' || data[i] == '/');
}

int kiln__nvjitlinkAddData(nvjitlink *l, int type, const void *data,
                           size_t size, const char *name)
{
  int rc;

  if (l == NULL || data == NULL || size == 0)
    return NVJITLINK_INVALID_INPUT;
  name = name == NULL ? "input" : name;
  if ((type < NVJITLINK_INPUT_CUBIN || type > NVJITLINK_INPUT_LIBRARY) &&
      type != NVJITLINK_INPUT_ANY) {
    kiln__nvjitlink_say(&l->errors, "%s: input type %d is not supported", name,
                        type);
    return NVJITLINK_INCORRECT_INPUT_TYPE;
  }
  if (is_ltoir(data, size))
    return add_ltoir(l, NVJITLINK_INPUT_LTOIR, data, size, name);
  if (type == NVJITLINK_INPUT_LTOIR ||
      (type == NVJITLINK_INPUT_PTX && !is_text(data, size)))
    return result_of(l, CU_INVALID_IMAGE, name);
  rc = kiln_cpu_linker_add(l->linker, data, size, name);
  /* Fat binaries and object files may hold LTO-IR alone. */
  if (rc == CU_NO_BINARY && l->lto)
    return add_ltoir(l, type, data, size, name);
  l->other_inputs = true;
  rc = result_of(l, rc, name);
  return type == NVJITLINK_INPUT_ANY && rc == NVJITLINK_INCORRECT_INPUT_TYPE
             ? NVJITLINK_UNRECOGNIZED_INPUT
             : rc;
}

/* Reads a whole file. Returns NULL if this fails. */
static char *read_file(const char *path, size_t *size)
{
  FILE *f = fopen(path, "rbe");
  char *data = NULL, *more;
  size_t room = 0;

  *size = 0;
  while (f != NULL && !feof(f) && !ferror(f)) {
    if (*size == room) {
      room = room == 0 ? 65536 : room * 2;
      more = realloc(data, room);
      if (more == NULL)
        break;
      data = more;
    }
    *size += fread(data + *size, 1, room - *size, f);
  }
  if (f == NULL || ferror(f) || !feof(f)) {
    free(data);
    data = NULL;
  }
  if (f != NULL)
    fclose(f);
  return data;
}

int kiln__nvjitlinkAddFile(nvjitlink *l, int type, const char *path)
{
  char *data;
  size_t size;
  int rc;

  if (l == NULL || path == NULL)
    return NVJITLINK_INVALID_INPUT;
  data = read_file(path, &size);
  if (data == NULL) {
    kiln__nvjitlink_say(&l->errors, "cannot read '%s'", path);
    return NVJITLINK_INVALID_INPUT;
  }
  rc = kiln__nvjitlinkAddData(l, type, data, size, path);
  free(data);
  return rc;
}

/* ---- The result ---------------------------------------------------------- */

/* Adds the PTX that the real library made of the LTO-IR. */
static int add_lto_ptx(nvjitlink *l)
{
  const int rc = kiln__nvjitlink_lto_complete(l);

  if (rc != NVJITLINK_OK || l->ptx)
    return rc;
  return result_of(l,
                   kiln_cpu_linker_add(l->linker, l->lto_ptx.data,
                                       l->lto_ptx.size, "LTO-IR"),
                   "LTO-IR");
}

int kiln__nvjitlinkComplete(nvjitlink *l)
{
  int rc = NVJITLINK_OK;

  if (l == NULL || l->completed)
    return NVJITLINK_INVALID_INPUT;
  if (l->ptx && l->other_inputs) {
    kiln__nvjitlink_say(&l->errors,
                        "with -ptx, every input of the link must be LTO-IR");
    return NVJITLINK_INCORRECT_INPUT_TYPE;
  }
  if (l->lto_link != NULL)
    rc = add_lto_ptx(l);
  if (rc == NVJITLINK_OK && !l->ptx &&
      kiln_cpu_linker_complete(l->linker, &l->image, &l->image_size) != 0)
    rc = NVJITLINK_INTERNAL; /* as the real one for undefined references */
  copy_log(l);
  l->completed = rc == NVJITLINK_OK;
  return rc;
}

/* Stores a size. @return a result code */
static int store(size_t *to, bool exists, size_t size)
{
  if (to == NULL || !exists)
    return NVJITLINK_INVALID_INPUT;
  *to = size;
  return NVJITLINK_OK;
}

static int copy(void *to, const void *from, size_t size)
{
  if (to == NULL || from == NULL)
    return NVJITLINK_INVALID_INPUT;
  memcpy(to, from, size);
  return NVJITLINK_OK;
}

int kiln__nvjitlinkGetLinkedCubinSize(nvjitlink *l, size_t *size)
{
  return l == NULL ? NVJITLINK_INVALID_INPUT
                   : store(size, l->image != NULL, l->image_size);
}

int kiln__nvjitlinkGetLinkedCubin(nvjitlink *l, void *cubin)
{
  return l == NULL ? NVJITLINK_INVALID_INPUT
                   : copy(cubin, l->image, l->image_size);
}

int kiln__nvjitlinkGetLinkedPtxSize(nvjitlink *l, size_t *size)
{
  return l == NULL ? NVJITLINK_INVALID_INPUT
                   : store(size, l->ptx && l->lto_ptx.data != NULL,
                           l->lto_ptx.size + 1);
}

int kiln__nvjitlinkGetLinkedPtx(nvjitlink *l, char *ptx)
{
  return l == NULL || !l->ptx ? NVJITLINK_INVALID_INPUT
                              : copy(ptx, l->lto_ptx.data, l->lto_ptx.size + 1);
}

/* Relocatable links of LTO-IR are not offered: nothing here keeps LTO-IR. */
int kiln__nvjitlinkGetLinkedLTOIRSize(nvjitlink *l, size_t *size)
{
  return l == NULL ? NVJITLINK_INVALID_INPUT : store(size, false, 0);
}

int kiln__nvjitlinkGetLinkedLTOIR(nvjitlink *l, void *ir)
{
  return l == NULL ? NVJITLINK_INVALID_INPUT : copy(ir, NULL, 0);
}

/* The sizes of logs include the NUL. The size of an empty log is 0. */
static int log_size(const nvjitlink_text *log, size_t *size)
{
  return store(size, true, log->size == 0 ? 0 : log->size + 1);
}

static int get_log(const nvjitlink_text *log, char *to)
{
  if (log->size == 0)
    return to == NULL ? NVJITLINK_INVALID_INPUT : NVJITLINK_OK;
  return copy(to, log->data, log->size + 1);
}

int kiln__nvjitlinkGetErrorLogSize(nvjitlink *l, size_t *size)
{
  return l == NULL ? NVJITLINK_INVALID_INPUT : log_size(&l->errors, size);
}

int kiln__nvjitlinkGetErrorLog(nvjitlink *l, char *log)
{
  return l == NULL ? NVJITLINK_INVALID_INPUT : get_log(&l->errors, log);
}

int kiln__nvjitlinkGetInfoLogSize(nvjitlink *l, size_t *size)
{
  return l == NULL ? NVJITLINK_INVALID_INPUT : log_size(&l->info, size);
}

int kiln__nvjitlinkGetInfoLog(nvjitlink *l, char *log)
{
  return l == NULL ? NVJITLINK_INVALID_INPUT : get_log(&l->info, log);
}

int kiln__nvjitlinkVersion(unsigned *major, unsigned *minor)
{
  if (major == NULL || minor == NULL)
    return NVJITLINK_INVALID_INPUT;
  if (kiln__nvjitlink_real_version(major, minor))
    return NVJITLINK_OK;
  *major = KILN__NVJITLINK_MAJOR;
  *minor = KILN__NVJITLINK_MAJOR == 12 ? 9 : 0;
  return NVJITLINK_OK;
}

/* ---- Symbols ------------------------------------------------------------- */

#if KILN__NVJITLINK_MAJOR == 12
#define MINOR(name, n)                                                         \
  KILN__JUMP(__nvJitLink##name##_12_##n, kiln__nvjitlink##name)
#else
#define MINOR(name, n)                                                         \
  KILN__JUMP(__nvJitLink##name##_13_##n, kiln__nvjitlink##name)
#endif
#define KILN__NVJITLINK_FN(name, params)                                       \
  KILN__JUMP(nvJitLink##name, kiln__nvjitlink##name)                           \
  MINOR(name, 0)                                                               \
  MINOR(name, 1)                                                               \
  MINOR(name, 2)                                                               \
  MINOR(name, 3)                                                               \
  MINOR(name, 4)                                                               \
  MINOR(name, 5)                                                               \
  MINOR(name, 6)                                                               \
  MINOR(name, 7)                                                               \
  MINOR(name, 8)                                                               \
  MINOR(name, 9)
#include "nvjitlink.def"

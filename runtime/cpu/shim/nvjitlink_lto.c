/* nvjitlink_lto.c -- link-time optimisation for the shim of nvJitLink.
 *
 * Only NVIDIA's compiler reads LTO-IR. The real nvJitLink needs no GPU, and its
 * options -lto -ptx compile LTO-IR to PTX. The shim therefore passes all LTO-IR
 * of a link to the real library and links the PTX with the other inputs. Without
 * a real library, LTO-IR is refused. */
#include "nvjitlink.h"
#include "real_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct real {
  int (*create)(void **out, uint32_t n, const char **options);
  int (*destroy)(void **link);
  int (*add)(void *link, int type, const void *data, size_t size,
             const char *name);
  int (*complete)(void *link);
  int (*ptx_size)(void *link, size_t *size);
  int (*ptx)(void *link, char *ptx);
  int (*log_size)(void *link, size_t *size);
  int (*log)(void *link, char *log);
  int (*version)(unsigned *major, unsigned *minor);
  bool complete_api; /* all functions were found */
} real;

static pthread_once_t opened = PTHREAD_ONCE_INIT;

static void open_real(void)
{
  void *library = kiln__real_library(KILN__NVJITLINK_NAME);
  const struct {
    void *to;
    const char *name;
  } functions[] = {{&real.create, "nvJitLinkCreate"},
                   {&real.destroy, "nvJitLinkDestroy"},
                   {&real.add, "nvJitLinkAddData"},
                   {&real.complete, "nvJitLinkComplete"},
                   {&real.ptx_size, "nvJitLinkGetLinkedPtxSize"},
                   {&real.ptx, "nvJitLinkGetLinkedPtx"},
                   {&real.log_size, "nvJitLinkGetErrorLogSize"},
                   {&real.log, "nvJitLinkGetErrorLog"},
                   {&real.version, "nvJitLinkVersion"}};

  if (library == NULL)
    return;
  real.complete_api = true;
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    void *found = dlsym(library, functions[i].name);

    memcpy(functions[i].to, &found, sizeof found);
    real.complete_api &= found != NULL;
  }
}

static const struct real *the_real(void)
{
  pthread_once(&opened, open_real);
  return real.complete_api ? &real : NULL;
}

bool kiln__nvjitlink_real_version(unsigned *major, unsigned *minor)
{
  const struct real *r = the_real();

  return r != NULL && r->version(major, minor) == NVJITLINK_OK;
}

/* Appends the error log of the real library. */
static void copy_log(nvjitlink *l)
{
  size_t size = 0;
  char *text;

  if (l->lto_link == NULL || real.log_size(l->lto_link, &size) != 0 ||
      size == 0)
    return;
  text = calloc(size + 1, 1);
  if (text != NULL && real.log(l->lto_link, text) == 0)
    kiln__nvjitlink_say(&l->errors, "%s", text);
  free(text);
}

/* Creates the link of the real library, with the program's options and -ptx. */
static int create(nvjitlink *l)
{
  const char **options = calloc(l->n_options + 1u, sizeof *options);
  uint32_t n = 0;
  int rc;

  if (options == NULL)
    return NVJITLINK_INTERNAL;
  for (unsigned i = 0; i < l->n_options; i++)
    options[n++] = l->options[i];
  if (!l->ptx)
    options[n++] = "-ptx";
  rc = real.create(&l->lto_link, n, options);
  free((void *)options);
  if (rc != NVJITLINK_OK) {
    l->lto_link = NULL;
    kiln__nvjitlink_say(&l->errors,
                        "the real nvJitLink rejects the options of this link "
                        "with code %d",
                        rc);
  }
  return rc;
}

int kiln__nvjitlink_lto_add(nvjitlink *l, int type, const void *data,
                            size_t size, const char *name)
{
  int rc = NVJITLINK_OK;

  if (the_real() == NULL) {
    kiln__nvjitlink_say(
        &l->errors,
        "%s: LTO-IR cannot be linked: Kiln found no " KILN__NVJITLINK_NAME
        " of NVIDIA that compiles it to PTX. Install nvJitLink beside NVRTC, "
        "or "
        "compile to PTX: without -dlto, and with lto=False in Numba",
        name == NULL ? "input" : name);
    return NVJITLINK_NVVM_COMPILE;
  }
  if (l->lto_link == NULL)
    rc = create(l);
  if (rc == NVJITLINK_OK)
    rc = real.add(l->lto_link, type, data, size, name);
  if (rc != NVJITLINK_OK)
    copy_log(l);
  return rc;
}

int kiln__nvjitlink_lto_complete(nvjitlink *l)
{
  size_t size = 0;
  int rc = real.complete(l->lto_link);

  if (rc == NVJITLINK_OK)
    rc = real.ptx_size(l->lto_link, &size);
  if (rc == NVJITLINK_OK) {
    l->lto_ptx.data = calloc(size + 1, 1);
    rc = l->lto_ptx.data == NULL ? NVJITLINK_INTERNAL
                                 : real.ptx(l->lto_link, l->lto_ptx.data);
    l->lto_ptx.size = l->lto_ptx.data == NULL ? 0 : strlen(l->lto_ptx.data);
  }
  if (rc != NVJITLINK_OK)
    copy_log(l);
  return rc;
}

void kiln__nvjitlink_lto_free(nvjitlink *l)
{
  if (l->lto_link != NULL)
    real.destroy(&l->lto_link);
  free(l->lto_ptx.data);
}

/* nvjitlink_options.c -- the options of nvJitLinkCreate.
 *
 * The table lists the options that NVIDIA documents. Options without an effect
 * on PTX are checked and otherwise ignored. */
#include "nvjitlink.h"

#include <stdlib.h>
#include <string.h>

enum { FLAG, VALUE, EITHER };

static const struct known {
  const char *name;
  int kind; /* FLAG: no value; VALUE: "name=value"; EITHER: both */
} known[] = {{"-arch", VALUE},
             {"-maxrregcount", VALUE},
             {"-time", FLAG},
             {"-verbose", FLAG},
             {"-lto", EITHER},
             {"-dlto", EITHER},
             {"-ptx", FLAG},
             {"-O0", FLAG},
             {"-O3", FLAG},
             {"-O", VALUE},
             {"-g", EITHER},
             {"-lineinfo", EITHER},
             {"-ftz", VALUE},
             {"-prec-div", VALUE},
             {"-prec-sqrt", VALUE},
             {"-fma", VALUE},
             {"-kernels-used", VALUE},
             {"-variables-used", VALUE},
             {"-optimize-unused-variables", FLAG},
             {"-Xptxas", VALUE},
             {"-Xnvvm", VALUE},
             {"-split-compile", VALUE},
             {"-split-compile-extended", VALUE},
             {"-jump-table-density", VALUE},
             {"-no-cache", FLAG},
             {"-cta-max-threads", VALUE},
             {"-r", FLAG},
             {"-device-stack-protector", EITHER}};

static bool is_known(const char *option)
{
  const size_t n = strcspn(option, "= ");

  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    const bool value = option[n] == '=';

    if (strlen(known[i].name) == n && strncmp(known[i].name, option, n) == 0)
      return known[i].kind == EITHER || value == (known[i].kind == VALUE);
  }
  return false;
}

/* Returns whether the option is `name` or `name=...`, but not `name=0`. */
static bool is_on(const char *option, const char *name)
{
  const size_t n = strlen(name);

  return strncmp(option, name, n) == 0 &&
         (option[n] == '\0' ||
          (option[n] == '=' && strcmp(option + n, "=0") != 0));
}

/* Reads the value of -arch: sm_90, sm_90a, sm_100f, compute_90. */
static int read_arch(nvjitlink *l, const char *value)
{
  const char *digits = strncmp(value, "sm_", 3) == 0        ? value + 3
                       : strncmp(value, "compute_", 8) == 0 ? value + 8
                                                            : "";
  char *end;
  const unsigned long arch = strtoul(digits, &end, 10);

  if (*digits < '0' || *digits > '9' || arch < 20 || arch > 999 ||
      strspn(end, "af") != strlen(end) || strlen(end) > 1) {
    kiln__nvjitlink_say(&l->errors,
                        "unknown architecture '%s'; write -arch=sm_90", value);
    return NVJITLINK_UNRECOGNIZED_ARCH;
  }
  l->arch = (int)arch;
  return NVJITLINK_OK;
}

/* Reads one option. A string may contain several, separated by blanks. */
static int read_option(nvjitlink *l, char *text)
{
  char *rest = NULL;
  int rc = NVJITLINK_OK;

  for (char *o = strtok_r(text, " ", &rest); o != NULL && rc == NVJITLINK_OK;
       o = strtok_r(NULL, " ", &rest)) {
    if (!is_known(o)) {
      kiln__nvjitlink_say(&l->errors, "unknown option '%s'", o);
      return NVJITLINK_UNRECOGNIZED_OPTION;
    }
    l->lto |= is_on(o, "-lto") || is_on(o, "-dlto");
    l->ptx |= strcmp(o, "-ptx") == 0;
    if (strncmp(o, "-maxrregcount=", 14) == 0)
      l->max_registers = (unsigned)strtoul(o + 14, NULL, 10);
    if (strncmp(o, "-arch=", 6) == 0)
      rc = read_arch(l, o + 6);
  }
  return rc;
}

int kiln__nvjitlink_options(nvjitlink *l, uint32_t n, const char **options)
{
  int rc = NVJITLINK_OK;

  l->options = calloc(n + 1u, sizeof *l->options);
  if (l->options == NULL)
    return NVJITLINK_INTERNAL;
  for (uint32_t i = 0; i < n && rc == NVJITLINK_OK; i++) {
    char *text = options[i] == NULL ? NULL : strdup(options[i]);

    l->options[i] = options[i] == NULL ? NULL : strdup(options[i]);
    l->n_options = i + 1;
    rc = text == NULL || l->options[i] == NULL ? NVJITLINK_INVALID_INPUT
                                               : read_option(l, text);
    free(text);
  }
  if (rc == NVJITLINK_OK && l->arch == 0)
    rc = NVJITLINK_MISSING_ARCH;
  if (rc == NVJITLINK_OK && l->ptx && !l->lto)
    rc = NVJITLINK_INCOMPATIBLE_OPTIONS;
  return rc;
}

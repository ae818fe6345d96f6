/* choose_device.c -- whether a command runs on the GPU or on the CPU device. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

static int open_cpu(cli *c, const kiln_runtime_opts *opts, const char *text)
{
  kiln_runtime_opts with_cpu = *opts;

  if (kiln_cpu_parse(&c->cpu, text) != KILN_OK ||
      kiln_cpu_configure(&c->cpu) != KILN_OK)
    return kiln__cli_failure(c, text);
  with_cpu.driver_path = NULL;
  with_cpu.driver = kiln_cpu_driver();
  if (kiln_runtime_create(&c->rt, &with_cpu) != KILN_OK)
    return kiln__cli_failure(c, NULL);
  c->on_cpu = true;
  return CLI_OK;
}

/* A driver that fails is worth its message; none at all is not. */
static bool no_gpu(const cli *c)
{
  kiln_driver_info driver;
  const kiln_status st = kiln_runtime_driver(c->rt, &driver);

  if (st == KILN_OK)
    return driver.n_devices == 0;
  return st == KILN_ENODEVICE || (st == KILN_ENODRIVER && c->driver == NULL &&
                                  getenv("KILN_DRIVER") == NULL);
}

int kiln__cli_open(cli *c, const kiln_runtime_opts *opts, cli_device_use use)
{
  const char *which = c->device != NULL ? c->device : getenv("KILN_DEVICE");

  c->opts = *opts;
  if (which != NULL && which[0] == '\0')
    which = NULL;
  if (which != NULL && strncmp(which, "cpu", 3) == 0)
    return open_cpu(c, opts, which);
  if (which != NULL && strcmp(which, "gpu") != 0)
    return kiln__cli_usage(c, "the device is gpu or cpu:9.0, not \"%s\"",
                           which);
  if (kiln_runtime_create(&c->rt, opts) != KILN_OK)
    return kiln__cli_failure(c, NULL);
  if (use == CLI_DEVICE_GIVEN || which != NULL || !no_gpu(c))
    return CLI_OK;
  kiln_runtime_free(c->rt);
  c->rt = NULL;
  kiln__cli_say(c, NULL,
                "no GPU here: this is the CPU device; results are right, times "
                "are not a GPU's");
  return open_cpu(c, opts, "cpu");
}

int kiln__cli_to_cpu(cli *c)
{
  const char *which = c->device != NULL ? c->device : getenv("KILN_DEVICE");

  if (c->on_cpu)
    return CLI_OK;
  if (which != NULL && strcmp(which, "gpu") == 0)
    return kiln__cli_usage(c, "checks and counters are the CPU device's: leave "
                              "--device gpu out");
  kiln_runtime_free(c->rt);
  c->rt = NULL;
  kiln__cli_say(c, NULL, "checks and counters: this is the CPU device");
  return open_cpu(c, &c->opts, "cpu");
}

/* cli_device.c -- creates the runtime of a command, on the GPU or on the CPU
 * device. */
#include "tool/cli.h"

#include <stdlib.h>
#include <string.h>

static int open_cpu(cli *c, const kiln_runtime_opts *opts, const char *text)
{
  kiln_runtime_opts with_cpu = *opts;

  if (kiln_cpu_parse(&c->cpu, text) != KILN_OK ||
      kiln_cpu_configure(&c->cpu) != KILN_OK) {
    (void)kiln__cli_failure(c, kiln__cli_text(c, "the device '%s'", text));
    return CLI_USAGE;
  }
  with_cpu.driver_path = NULL;
  with_cpu.driver = kiln_cpu_driver();
  if (kiln_runtime_create(&c->rt, &with_cpu) != KILN_OK)
    return kiln__cli_failure(c, NULL);
  c->on_cpu = true;
  return CLI_OK;
}

/* Returns whether the machine has no GPU. A driver that fails is a different
 * error, whose message must reach the user. */
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
    return kiln__cli_usage(
        c, "--device is gpu, cpu or cpu:9.0 with settings, not \"%s\"", which);
  if (kiln_runtime_create(&c->rt, opts) != KILN_OK)
    return kiln__cli_failure(c, NULL);
  if (use == CLI_DEVICE_GIVEN || which != NULL || !no_gpu(c))
    return CLI_OK;
  kiln_runtime_free(c->rt);
  c->rt = NULL;
  kiln__cli_message(
      c, NULL,
      "no GPU found, so this runs on the CPU device; its results are "
      "a GPU's, its times are not");
  return open_cpu(c, opts, "cpu");
}

int kiln__cli_to_cpu(cli *c)
{
  const char *which = c->device != NULL ? c->device : getenv("KILN_DEVICE");

  if (c->on_cpu)
    return CLI_OK;
  if (which != NULL && strcmp(which, "gpu") == 0)
    return kiln__cli_usage(c, "only the CPU device has checks and counters: "
                              "leave out --device gpu");
  kiln_runtime_free(c->rt);
  c->rt = NULL;
  kiln__cli_message(
      c, NULL, "checks and counters need the CPU device, so this runs there");
  return open_cpu(c, &c->opts, "cpu");
}

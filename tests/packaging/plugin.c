/* plugin.c -- a plug-in of an application. The plug-in uses Kiln and the CPU
 * device and exports one function; see install.sh. */
#include <kiln/cpu.h>
#include <kiln/kiln.h>

int plugin_devices(void);

int plugin_devices(void)
{
  kiln_runtime_opts opts = {0};
  kiln_runtime *rt;
  int n = -1;

  opts.driver = kiln_cpu_driver();
  opts.cache_off = true;
  if (kiln_runtime_create(&rt, &opts) == KILN_OK)
    kiln_device_count(rt, &n);
  kiln_runtime_free(rt);
  return n;
}

/* driver_table.c -- provides the CPU device as a kiln_driver, which kiln_open()
 * uses instead of NVIDIA's driver. */
#include "machine.h"

static const kiln__driver table = {
#define KILN__DRIVER_FN(name, symbol, need, since, result, params)             \
  .name = KILN__CPU_FN(name),
#include "../../driver/driver_api.def"
#undef KILN__DRIVER_FN
    .path = "CPU device",
    .version = KILN__DRIVER_VERSION,
    .kiln_version = KILN_VERSION,
    .ptx_only = true,
    .last_fault = kiln_cpu_last_fault,
};

const kiln_driver *kiln_cpu_driver(void)
{
  return &table;
}

/* dropin_devices.c -- see dropin_devices.h. */
#include "dropin_devices.h"

#include "../api/context/api_context.h"

__attribute__((visibility("default"))) int
kiln_cpu_get_device_facts(int device, kiln_cpu_device_facts *facts)
{
  kiln__cpu_machine *m = kiln__cpu_the_machine();
  kiln__cpu_identity identity;

  CU_TRY(allocated(m));
  *facts = (kiln_cpu_device_facts){.n_devices = m->n_devices,
                                   .driver_version = KILN__DRIVER_VERSION};
  if (device < 0 || device >= m->n_devices)
    return CUDA_ERROR_INVALID_DEVICE;
  kiln__cpu_device_identity(device, &identity);
  memcpy(facts->name, identity.name, sizeof facts->name);
  memcpy(facts->uuid, identity.uuid, sizeof facts->uuid);
  facts->arch = m->opts.arch;
  facts->bus = identity.bus;
  facts->total_bytes = m->opts.memory_bytes;
  facts->used_bytes = m->used_bytes[device];
  return CUDA_SUCCESS;
}

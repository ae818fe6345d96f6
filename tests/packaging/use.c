#include <kiln/kiln.h>
kiln_status start(kiln_kernel *kernel, const kiln_launch_config *config);
kiln_status start(kiln_kernel *kernel, const kiln_launch_config *config)
{
  float a = 1;
  kiln_status (*fn)(kiln_stream *, const kiln_map_desc *,
                    const kiln_workspace *) = kiln_map;
  (void)fn;
  return KILN_LAUNCH(kernel, config) == KILN_OK
             ? KILN_LAUNCH(kernel, config, KILN_ARG(a))
             : KILN_EINVAL;
}

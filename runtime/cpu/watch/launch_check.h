/* launch_check.h -- declares the race check between a kernel and the kernels that
 * it launches. */
#ifndef KILN_CPU_LAUNCH_CHECK_H
#define KILN_CPU_LAUNCH_CHECK_H

#include "watch.h"

/* What the thread that launches a kernel knows at that moment. Opaque. */
typedef struct kiln__cpu_origin kiln__cpu_origin;

/* Records a launch by one lane. Returns NULL if the race check is off, or if
 * there is no memory; the launch then runs unchecked. The caller passes the
 * result to one of the other functions. */
kiln__cpu_origin *kiln__cpu_origin_make(kiln__cpu_warp *w, int lane);
void kiln__cpu_origin_free(kiln__cpu_origin *origin);
/* Makes `watch` check its accesses against those of the launching grid. Takes
 * ownership of the origin, which may be NULL. */
void kiln__cpu_watch_launched_by(kiln__cpu_watch *watch,
                                 kiln__cpu_origin *origin);

#endif

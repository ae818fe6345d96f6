/* more.h -- types of the driver's ABI that only the CPU device needs: arrays,
 * copies in 2 and 3 dimensions, texture and surface descriptors, graphs,
 * libraries. Checked against cuda.h by a test. */
#ifndef KILN_CPU_MORE_H
#define KILN_CPU_MORE_H

#include "../../driver/abi.h"

#endif

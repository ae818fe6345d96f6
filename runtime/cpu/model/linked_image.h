/* linked_image.h -- the container of linked PTX, which takes the place of machine
 * code on the CPU device.
 *
 * cuLinkComplete, the shim of nvJitLink and the shim of NVRTC return it where a
 * program expects a CUBIN. It consists of a kiln__linked_head and, for each PTX
 * source, its length as a uint64_t, its bytes and a NUL. */
#ifndef KILN_CPU_LINKED_IMAGE_H
#define KILN_CPU_LINKED_IMAGE_H

#include <stdint.h>

#define KILN__LINKED_MAGIC "\177KILN PTX LINK\n"
enum { KILN__LINKED_MAGIC_SIZE = sizeof KILN__LINKED_MAGIC - 1 };

typedef struct kiln__linked_head {
  char magic[16];         /* KILN__LINKED_MAGIC, with its NUL */
  uint64_t size;          /* bytes of the container, including this struct */
  uint64_t n;             /* number of PTX sources */
  uint64_t max_registers; /* per thread; 0 means that there is no maximum */
} kiln__linked_head;

#endif

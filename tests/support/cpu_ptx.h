/* cpu_ptx.h -- PTX text to results on the CPU device, without the driver above
 * it: parse, check, bind, give its variables memory, launch with buffers.
 *
 *   cpu_ptx p;
 *   cpu_ptx_load(&p, text);                        fails the test on error
 *   uint64_t out = cpu_ptx_buffer(&p, NULL, 4 * n);
 *   p.launch.block_dim[0] = 64;                    the rest has defaults
 *   cpu_ptx_ok(&p, "kernel", (uint64_t[]){out, n});
 *   uint32_t *got = cpu_ptx_at(&p, out, 4 * n);
 *   cpu_ptx_free(&p);
 */
#ifndef KILN_TEST_CPU_PTX_H
#define KILN_TEST_CPU_PTX_H

#include "support.h"

#include "cpu/memory/address_space.h"
#include "cpu/run/grid_run.h"

typedef struct cpu_ptx {
  test_allocator memory_of; /* counts: all is given back */
  kiln__cpu_program *program;
  kiln__cpu_memory *memory;
  uint64_t *globals;
  kiln__cpu_launch_desc
      launch; /* change what a test needs; kept between launches */
  kiln__cpu_fault_info fault;
  char *text;   /* of the last fault; NULL: none */
  char *output; /* what printf wrote since the load */
  size_t output_size;
} cpu_ptx;

/* With .version 8.6, .target sm_90 and .address_size in front if the text has no
 * .version. arch as in the text's .target. */
void cpu_ptx_load(cpu_ptx *p, const char *text);
void cpu_ptx_free(cpu_ptx *p);

/* Device memory, from `init` or zero. */
uint64_t cpu_ptx_buffer(cpu_ptx *p, const void *init, size_t size);
/* Its bytes in this process. */
void *cpu_ptx_at(cpu_ptx *p, uint64_t address, size_t size);
/* Address of a .global or .const variable. */
uint64_t cpu_ptx_global(cpu_ptx *p, const char *name);

/* Launch with p->launch's sizes; args: one a parameter, low bytes used. */
kiln_status cpu_ptx_run(cpu_ptx *p, const char *kernel, const uint64_t *args);
/* The same, and it must end well. */
void cpu_ptx_ok(cpu_ptx *p, const char *kernel, const uint64_t *args);
/* The same, and it must fail in this way, with all of `words` (NULL at the end)
 * in the fault's text. */
void cpu_ptx_fails(cpu_ptx *p, const char *kernel, const uint64_t *args,
                   kiln__cpu_fault_kind kind, const char *const *words);

#endif

/* cpu_ptx.h -- runs PTX text on the CPU device without the driver above it:
 * parse, check, bind, allocate its variables, launch with buffers.
 *
 *     cpu_ptx p;
 *     cpu_ptx_load(&p, text);                        fails the test on error
 *     uint64_t out = cpu_ptx_buffer(&p, NULL, 4 * n);
 *     p.launch.block_dim[0] = 64;                    the rest has defaults
 *     cpu_ptx_ok(&p, "kernel", (uint64_t[]){out, n});
 *     uint32_t *got = cpu_ptx_at(&p, out, 4 * n);
 *     cpu_ptx_free(&p); */
#ifndef KILN_TEST_CPU_PTX_H
#define KILN_TEST_CPU_PTX_H

#include "support.h"

#include "cpu/memory/address_space.h"
#include "cpu/run/grid_run.h"

typedef struct cpu_ptx {
  test_allocator memory_of; /* counts, so that leaks are found */
  kiln__cpu_program *program;
  kiln__cpu_memory *memory;
  uint64_t *globals;
  kiln__cpu_launch_desc
      launch; /* what a test may change; kept between launches */
  kiln__cpu_fault_info fault;
  char *text;   /* of the last fault; NULL: none */
  char *output; /* what printf wrote since the load */
  size_t output_size;
} cpu_ptx;

/* Loads PTX. If the text has no .version, .version 8.6, .target sm_90 and
 * .address_size are added. The device has the architecture of the text's
 * .target. */
void cpu_ptx_load(cpu_ptx *p, const char *text);
void cpu_ptx_free(cpu_ptx *p);

/* Allocates device memory with the bytes of `init`, or zeros. */
uint64_t cpu_ptx_buffer(cpu_ptx *p, const void *init, size_t size);
/* Returns the bytes of device memory in this process. */
void *cpu_ptx_at(cpu_ptx *p, uint64_t address, size_t size);
/* Returns the address of a .global or .const variable. */
uint64_t cpu_ptx_global(cpu_ptx *p, const char *name);

/* Launches with the sizes of p->launch. args: one per parameter, of which the
 * low bytes are used. */
kiln_status cpu_ptx_run(cpu_ptx *p, const char *kernel, const uint64_t *args);
/* Launches; the launch must succeed. */
void cpu_ptx_ok(cpu_ptx *p, const char *kernel, const uint64_t *args);
/* Launches; the launch must fail with this fault, and its text must contain all
 * of `words` (NULL-terminated). */
void cpu_ptx_fails(cpu_ptx *p, const char *kernel, const uint64_t *args,
                   kiln__cpu_fault_kind kind, const char *const *words);

#endif

/* cpu_ptx.h -- runs PTX source on the CPU device without the driver API: it
 * parses, checks and binds the source, allocates the variables, and launches
 * kernels with buffers.
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
  /* an allocator that counts its calls and detects leaks */
  test_allocator memory_of;
  kiln__cpu_program *program;
  kiln__cpu_memory *memory;
  uint64_t *globals;
  /* launch settings that a test may change; they apply to all later launches */
  kiln__cpu_launch_desc launch;
  kiln__cpu_fault_info fault;
  char *text;   /* text of the last fault, or NULL if no fault occurred */
  char *output; /* output of printf since the program was loaded */
  size_t output_size;
} cpu_ptx;

/* Loads PTX source. If the source has no .version, the directives .version 8.6,
 * .target sm_90 and .address_size are added. The device has the compute
 * capability of the source's .target. */
void cpu_ptx_load(cpu_ptx *p, const char *text);
void cpu_ptx_free(cpu_ptx *p);

/* Allocates `size` bytes of device memory and copies `init` to it. If `init` is
 * NULL, the memory is zeroed. */
uint64_t cpu_ptx_buffer(cpu_ptx *p, const void *init, size_t size);
/* Returns the host address of device memory. */
void *cpu_ptx_at(cpu_ptx *p, uint64_t address, size_t size);
/* Returns the address of a .global or .const variable. */
uint64_t cpu_ptx_global(cpu_ptx *p, const char *name);

/* Launches a kernel with the grid and block sizes of p->launch. `args` has one
 * element per parameter, of which only the low bytes are used. */
kiln_status cpu_ptx_run(cpu_ptx *p, const char *kernel, const uint64_t *args);
/* Launches a kernel. Fails the test unless the launch succeeds. */
void cpu_ptx_ok(cpu_ptx *p, const char *kernel, const uint64_t *args);
/* Launches a kernel. Fails the test unless the launch ends in the given fault
 * and the fault text contains all of `words`. `words` is NULL-terminated. */
void cpu_ptx_fails(cpu_ptx *p, const char *kernel, const uint64_t *args,
                   kiln__cpu_fault_kind kind, const char *const *words);

#endif

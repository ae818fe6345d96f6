/* flow_programs_test.c -- tests random programs of nested loops, breaks, early
 * exits, jump tables and calls. A plain interpreter of the syntax tree runs
 * each program thread by thread. Lock-step scheduling, independent thread
 * scheduling and every seed have to leave the same memory.
 * KILN_TEST_FLOW_PROGRAMS sets the number of programs; the default is 300. */
#include "cpu_flow.h"
#include "cpu_ptx.h"

#include <stdlib.h>
#include <string.h>

static flow_results want;

static void compare(cpu_ptx *p, const char *text, uint64_t program,
                    const char *way)
{
  const uint64_t out = cpu_ptx_buffer(p, NULL, sizeof want.out);
  const uint64_t cells = cpu_ptx_buffer(p, NULL, sizeof want.cells);
  const uint32_t *got;

  cpu_ptx_ok(p, "k", (uint64_t[]){out, cells});
  got = cpu_ptx_at(p, out, sizeof want.out);
  for (unsigned i = 0; i < FLOW_THREADS * FLOW_BLOCKS * FLOW_VARIABLES; i++)
    ck_assert_msg(got[i] == want.out[i],
                  "program %llu, %s: thread %u variable %u: %08x, not %08x\n%s",
                  (unsigned long long)program, way, i / FLOW_VARIABLES,
                  i % FLOW_VARIABLES, got[i], want.out[i], text);
  ck_assert_msg(memcmp(cpu_ptx_at(p, cells, sizeof want.cells), want.cells,
                       sizeof want.cells) == 0,
                "program %llu, %s: other counts\n%s",
                (unsigned long long)program, way, text);
  kiln__cpu_memory_remove(p->memory, out);
  kiln__cpu_memory_remove(p->memory, cells);
}

enum { PARTS = 10 };

START_TEST(programs_give_the_same_everywhere)
{
  const char *const asked = getenv("KILN_TEST_FLOW_PROGRAMS");
  const long n = asked != NULL ? strtol(asked, NULL, 10) : 300;

  for (long i = _i; i < n; i += PARTS) {
    const char *const text = flow_make((uint64_t)i, &want);
    cpu_ptx p;

    cpu_ptx_load(&p, text);
    p.launch.local_limit = 4096;
    p.launch.grid_dim[0] = FLOW_BLOCKS;
    p.launch.block_dim[0] = FLOW_THREADS;
    compare(&p, text, (uint64_t)i, "independent");
    p.launch.seed = (uint64_t)i + 1;
    compare(&p, text, (uint64_t)i, "a seed");
    p.launch.seed = (uint64_t)i * 77 + 5;
    p.launch.threads = 2;
    compare(&p, text, (uint64_t)i, "another seed, two threads");
    p.launch.lock_step = true;
    compare(&p, text, (uint64_t)i, "lock-step, a seed, two threads");
    p.launch.seed = 0;
    p.launch.threads = 1;
    compare(&p, text, (uint64_t)i, "lock-step");
    cpu_ptx_free(&p);
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu flow programs");
  TCase *t = kiln_test_case(s, "flow", 3600, NULL, NULL, TESTS(NULL));

  tcase_add_loop_test(t, programs_give_the_same_everywhere, 0, PARTS);
  return kiln_test_run(s);
}

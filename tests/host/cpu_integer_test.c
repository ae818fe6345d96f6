/* cpu_integer_test.c -- moves and integer arithmetic of the CPU device. */
#include "cpu_handler.h"

#include <stdlib.h>

static void ref_mov(const kiln__insn *in, cpu_lane *l)
{
  (void)in;
  l->d = l->a;
}

START_TEST(moves)
{
  cpu_case c;
  cpu_lane *lanes;
  size_t n;

  cpu_case_init(&c, "mov.b32");
  lanes = cpu_lanes_make(&c, KILN__B32, KILN__NONE, KILN__NONE, 1000, &n);
  cpu_case_check(&c, lanes, n, ref_mov);
  free(lanes);
}
END_TEST

static Suite *make(void)
{
  Suite *s = suite_create("cpu integer");
  TCase *t = tcase_create("integer");

  cpu_seen_init();
  tcase_set_timeout(t, 120);
  tcase_add_test(t, moves);
  suite_add_tcase(s, t);
  return s;
}

KILN_TEST_MAIN(make)

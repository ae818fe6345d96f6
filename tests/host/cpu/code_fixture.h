/* code_fixture.h -- loads PTX modules and single statements for the tests of
 * cpu/code. Each test checks that all memory was freed. */
#ifndef CODE_FIXTURE_H
#define CODE_FIXTURE_H

#include "cpu_statements.h"
#include "support.h"

#include "cpu/code/code_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static test_allocator memory;
static kiln__cpu_program *program;

static inline void setup(void)
{
  test_allocator_init(&memory);
  program = NULL;
}

static inline void teardown(void)
{
  kiln__cpu_program_free(program);
  ck_assert_int_eq(memory.live, 0);
}

static inline kiln_status load(const char *text)
{
  kiln__cpu_ptx_module *module = NULL;
  kiln_status st;

  kiln__cpu_program_free(program);
  program = NULL;
  st = kiln__cpu_ptx_parse(&module, &memory.alloc, text, strlen(text));
  return st == KILN_OK ? kiln__cpu_program_make(&program, &memory.alloc, module)
                       : st;
}

#define HEAD(version, target)                                                  \
  ".version " version "\n.target " target "\n.address_size 64\n"
#define HEAD_90 HEAD("8.0", "sm_90")

/* Loads one statement in the module that cpu_statements.c creates. */
static inline kiln_status load_statement(const char *statement,
                                         unsigned version, unsigned target)
{
  kiln_allocator a = {0};
  kiln__buf text;
  kiln_status st;

  kiln__allocator_default(&a);
  kiln__buf_init(&text, &a);
  statements_head(&text, version, target);
  kiln__buf_format(&text, "%s\n", statement);
  statements_tail(&text);
  ck_assert(!text.failed);
  st = load(text.data);
  kiln__buf_free(&text);
  return st;
}

static inline kiln_status load_90(const char *statement)
{
  return load_statement(statement, 80, 90);
}

/* Checks that a module or statement was rejected, and that the log contains
 * `words`. */
static inline void refused(kiln_status st, const char *words)
{
  ck_kiln_is(st, KILN_ECOMPILE);
  ck_assert_msg(strstr(kiln_last_error()->log, words) != NULL, "%s",
                kiln_last_error()->log);
}

static const kiln__cpu_code *function(const char *name)
{
  for (uint32_t i = 0; i < program->n_functions; i++) {
    if (strcmp(program->functions[i].name, name) == 0)
      return &program->functions[i];
  }
  ck_abort_msg("no function %s", name);
  return NULL;
}

/* Whether the kernel `k` has an instruction of the row `op`. */
static inline bool has_op(unsigned op)
{
  const kiln__cpu_code *k = function("k");

  for (uint32_t i = 0; i < k->n_insns; i++) {
    if (k->insns[i].op == op)
      return true;
  }
  return false;
}

#endif

/* cpu_rows.c -- parses the rows of ops.def with the loader's matcher. */
#include "cpu_rows.h"

#include <stdio.h>
#include <stdlib.h>

kiln__cpu_matcher *cpu_rows(void)
{
  static const char text[] = ".version 8.0\n.target sm_90\n.address_size 64\n";
  static kiln__cpu_matcher matcher;
  static kiln__cpu_ptx_module *arena;
  kiln_allocator a = {0};

  if (arena == NULL) {
    kiln__allocator_default(&a);
    if (kiln__cpu_ptx_parse(&arena, &a, text, sizeof text - 1) != KILN_OK ||
        kiln__cpu_matcher_init(&matcher, arena) != KILN_OK) {
      fprintf(stderr, "%s\n", kiln_last_error()->message);
      exit(1);
    }
  }
  return &matcher;
}

unsigned cpu_form_type(const kiln__cpu_insn *fields, unsigned type)
{
  switch (type) {
  case KILN__TYPE_LAST:
    return fields->type;
  case KILN__TYPE_BEFORE:
    return fields->type2;
  case KILN__TYPE_TWICE:
    return fields->type == KILN__U16   ? KILN__U32
           : fields->type == KILN__S16 ? KILN__S32
           : fields->type == KILN__U32 ? KILN__U64
                                       : KILN__S64;
  case KILN__TYPE_WORD:
    return KILN__U64;
  default:
    return type;
  }
}

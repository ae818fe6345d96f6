/* handler_table.c -- the table of the instruction handlers of one build of
 * exec/. The table is the only symbol that a build exports; see isa.h. */
#include "isa.h"
#include "lanes.h"
#include "schedule.h"
#include "warpgroup.h"

/* KILN__TABLE(isa) is the name of the handler table of the build for the
 * instruction set `isa`. */
#define KILN__TABLE2(isa) kiln__cpu_isa_##isa
#define KILN__TABLE(isa) KILN__TABLE2(isa)

#define KILN__ISA_TEXT_base "base"
#define KILN__ISA_TEXT_v3 "x86-64-v3"
#define KILN__ISA_TEXT_v4 "x86-64-v4"
#define KILN__ISA_TEXT2(isa) KILN__ISA_TEXT_##isa
#define KILN__ISA_TEXT(isa) KILN__ISA_TEXT2(isa)

/* KILN__BY_<kind>(name) is the handler of an instruction of this kind.
 * Instructions that the schedulers execute themselves have no handler. */
#define KILN__BY_SIMPLE(name) KILN__ISA_NAME(op_##name)
#define KILN__BY_WARP(name) KILN__ISA_NAME(op_##name)
#define KILN__BY_YIELD(name) KILN__ISA_NAME(op_##name)
#define KILN__BY_BRANCH(name) NULL
#define KILN__BY_SWITCH(name) NULL
#define KILN__BY_CALL(name) NULL
#define KILN__BY_RETURN(name) NULL
#define KILN__BY_EXIT(name) NULL
#define KILN__BY_TRAP(name) NULL
#define KILN__BY_BARRIER(name) NULL
#define KILN__BY_CLUSTER(name) NULL

const kiln__cpu_isa KILN__TABLE(KILN__ISA) = {
    .name = KILN__ISA_TEXT(KILN__ISA),
    .handlers =
        {
#define KILN__OP_AS(name, handler, pattern, operands, kind, klass, ptx, sm,    \
                    text)                                                      \
  KILN__BY_##kind(handler),
#define KILN__OP(name, pattern, operands, kind, klass, ptx, sm, text)          \
  KILN__BY_##kind(name),
#include "../code/ops.def"
#undef KILN__OP
#undef KILN__OP_AS
        },
    .run_its = KILN__ISA_NAME(run_its),
    .run_lock_step = KILN__ISA_NAME(run_lock_step),
    .set_mask = KILN__ISA_NAME(set_mask),
    .predicate = KILN__ISA_NAME(predicate),
};

KILN__HANDLER(wgmma_touch)
{
  kiln__cpu_wgmma_touch(w, in);
  KILN__TABLE(KILN__ISA).handlers[in->op](w, in);
}

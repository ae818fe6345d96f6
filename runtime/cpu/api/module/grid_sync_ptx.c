/* grid_sync_ptx.c -- the functions of libcudadevrt for grid-wide synchronisation.
 *
 * Programs that do not include CUDA's header for cooperative groups, such as
 * Numba's, call cudaCGGetIntrinsicHandle and cudaCGSynchronize. On a GPU the
 * machine code of libcudadevrt.a defines them. Here, PTX defines them.
 *
 * The barrier is a counter in the workspace of a cooperative launch, whose
 * address %envreg1 and %envreg2 hold. One thread per block adds 1, after all
 * threads of the block have arrived. With N blocks, the barrier that the value v
 * belongs to is complete when the counter reaches the next multiple of N above v.
 * The counter never goes back, so the barrier can be used again at once. */
#include "api_module.h"

#include <string.h>

static const char source[] =
    ".version 6.0\n.target sm_30\n.address_size 64\n"
    ".weak .func (.param .b64 handle) cudaCGGetIntrinsicHandle"
    "(.param .b32 scope)\n{\n"
    "\t.reg .b32 %high, %low;\n\t.reg .b64 %at;\n"
    "\tmov.u32 %high, %envreg1;\n\tmov.u32 %low, %envreg2;\n"
    "\tmov.b64 %at, {%low, %high};\n"
    "\tst.param.b64 [handle], %at;\n\tret;\n}\n"
    ".weak .func (.param .b32 result) cudaCGSynchronize"
    "(.param .b64 handle, .param .b32 flags)\n{\n"
    "\t.reg .pred %other, %wait;\n\t.reg .b64 %at;\n"
    "\t.reg .b32 %id, %part, %n, %old, %goal, %now;\n"
    "\tbar.sync 0;\n"
    "\tmov.u32 %id, %tid.x;\n\tmov.u32 %part, %tid.y;\n"
    "\tor.b32 %id, %id, %part;\n\tmov.u32 %part, %tid.z;\n"
    "\tor.b32 %id, %id, %part;\n"
    "\tsetp.ne.u32 %other, %id, 0;\n\t@%other bra done;\n"
    "\tld.param.b64 %at, [handle];\n"
    "\tmov.u32 %n, %nctaid.x;\n\tmov.u32 %part, %nctaid.y;\n"
    "\tmul.lo.u32 %n, %n, %part;\n\tmov.u32 %part, %nctaid.z;\n"
    "\tmul.lo.u32 %n, %n, %part;\n"
    "\tmembar.gl;\n\tatom.global.add.u32 %old, [%at+4], 1;\n"
    "\tdiv.u32 %goal, %old, %n;\n\tadd.u32 %goal, %goal, 1;\n"
    "\tmul.lo.u32 %goal, %goal, %n;\n"
    "again:\n\tld.volatile.global.u32 %now, [%at+4];\n"
    "\tsub.u32 %now, %now, %goal;\n"
    "\tsetp.lt.s32 %wait, %now, 0;\n\t@%wait bra again;\n"
    "\tmembar.gl;\n"
    "done:\n\tbar.sync 0;\n\tst.param.b32 [result], 0;\n\tret;\n}\n";

const char *kiln__cpu_grid_sync_ptx(const kiln__cpu_image *image)
{
  for (size_t i = 0; i < image->n; i++) {
    if (strstr(image->texts[i].data, "cudaCGSynchronize") != NULL ||
        strstr(image->texts[i].data, "cudaCGGetIntrinsicHandle") != NULL)
      return source;
  }
  return NULL;
}

/* jump.h -- defines exported symbols that jump to internal functions.
 *
 * The jump preserves registers and the stack, so it works for functions of any
 * signature. A C wrapper would need a declaration of each signature. */
#ifndef KILN_CPU_JUMP_H
#define KILN_CPU_JUMP_H

/* The first instruction of each symbol is a landing pad for indirect calls (CET
 * on x86-64, BTI on aarch64). */
#if defined(__x86_64__)
#define KILN__JUMP_INSNS(target) "endbr64\n\tjmp " #target "\n"
#elif defined(__aarch64__)
#define KILN__JUMP_INSNS(target) "hint #34\n\tb " #target "\n"
#else
#error "the drop-in driver is for x86-64 and aarch64"
#endif

#define KILN__JUMP(symbol, target)                                             \
  __asm__("\t.text\n\t.balign 16\n\t.globl " #symbol "\n\t.type " #symbol      \
          ",%function\n" #symbol                                               \
          ":\n\t" KILN__JUMP_INSNS(target) "\t.size " #symbol ",.-" #symbol    \
                                           "\n");

#endif

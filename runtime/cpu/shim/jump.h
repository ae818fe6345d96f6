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

/* An observed symbol leads through kiln__cpu_observed_call while an observer
 * wants calls. The detour gets the internal function in r11 and the name in
 * r10, which no argument uses. On aarch64 no calls are observed. */
#if defined(__x86_64__)
#define KILN__OBSERVED_INSNS(symbol, target)                                   \
  "endbr64\n\tcmpb $0, kiln__cpu_calls_observed(%rip)\n\tjne "                 \
  "1f\n\tjmp " #target "\n1:\tleaq " #target                                   \
  "(%rip), %r11\n\tleaq 2f(%rip), %r10\n"                                      \
  "\tjmp kiln__cpu_observed_call\n\t.pushsection .rodata\n2:\t.string "        \
  "\"" #symbol "\"\n\t.popsection\n"
#else
#define KILN__OBSERVED_INSNS(symbol, target) KILN__JUMP_INSNS(target)
#endif

#define KILN__SYMBOL(symbol, insns)                                            \
  __asm__("\t.text\n\t.balign 16\n\t.globl " #symbol "\n\t.type " #symbol      \
          ",%function\n" #symbol ":\n\t" insns "\t.size " #symbol              \
          ",.-" #symbol "\n");
#define KILN__OBSERVED_JUMP(symbol, target)                                    \
  KILN__SYMBOL(symbol, KILN__OBSERVED_INSNS(symbol, target))
#define KILN__JUMP(symbol, target)                                             \
  KILN__SYMBOL(symbol, KILN__JUMP_INSNS(target))

#endif

/* jump.h -- an exported symbol that goes on to an internal function: the same
 * arguments, whatever they are. */
#ifndef KILN_CPU_JUMP_H
#define KILN_CPU_JUMP_H

#if defined(__x86_64__)
#define KILN__JUMP_INSNS(target) "endbr64\n\tjmp " #target "\n"
#elif defined(__aarch64__)
#define KILN__JUMP_INSNS(target) "hint #34\n\tb " #target "\n"
#else
#error "the drop-in driver is for x86-64 and aarch64"
#endif

/* binding: .globl, or .weak to be replaced by a .globl elsewhere. */
#define KILN__JUMP(binding, symbol, target)                                    \
  __asm__("\t.text\n\t.balign 16\n\t" binding " " #symbol "\n\t.type " #symbol \
          ",%function\n" #symbol                                               \
          ":\n\t" KILN__JUMP_INSNS(target) "\t.size " #symbol ",.-" #symbol    \
                                           "\n");

#endif

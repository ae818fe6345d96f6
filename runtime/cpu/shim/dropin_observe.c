/* dropin_observe.c -- lets tools observe a program that uses the drop-in
 * libcuda.so.1: the detour of observed calls, and the injection library.
 *
 * Like NVIDIA's driver, cuInit loads the library that CUDA_INJECTION64_PATH
 * names and calls its function InitializeInjection. `kiln profile` injects
 * libkiln_profile.so this way.
 *
 * Problem: the detour wraps functions of any signature, so it must pass on
 * arguments that it does not know.
 *
 * Idea: arguments are in six integer registers, in vector registers, and on the
 * stack. The detour saves the registers around kiln__cpu_call_begin(). It copies
 * a fixed number of words from the caller's stack, which is more than any driver
 * function takes, and then calls the function.
 *
 * Invariant: the words that the detour reads are mapped memory, since frames of
 * callers, or the environment of the process, are above every call.
 *
 * Cost: two readings of the clock and about fifty instructions per call. */
#include "../api/observe.h"
#include "dropin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__x86_64__)
/* Number of copied stack words. cuLaunchKernel and cuMemcpy3DPeer need the
 * most: 5 words after the six registers. The number is even, so that the stack
 * stays aligned to 16 bytes. */
#define STACK_WORDS "12"

/* Registers at the entry: r11 is the internal function, r10 its name. The frame
 * below rbp: the saved registers, and at -88 the time of the call. No driver
 * function has more than one floating-point argument. */
__asm__("\t.text\n\t.balign 16\n"
        "\t.globl kiln__cpu_observed_call\n"
        "\t.hidden kiln__cpu_observed_call\n"
        "\t.type kiln__cpu_observed_call,@function\n"
        "kiln__cpu_observed_call:\n"
        "\t.cfi_startproc\n"
        "\tpushq %rbp\n"
        "\t.cfi_def_cfa_offset 16\n"
        "\t.cfi_offset %rbp, -16\n"
        "\tmovq %rsp, %rbp\n"
        "\t.cfi_def_cfa_register %rbp\n"
        "\tsubq $96, %rsp\n"
        "\tmovq %rdi, -8(%rbp)\n"
        "\tmovq %rsi, -16(%rbp)\n"
        "\tmovq %rdx, -24(%rbp)\n"
        "\tmovq %rcx, -32(%rbp)\n"
        "\tmovq %r8, -40(%rbp)\n"
        "\tmovq %r9, -48(%rbp)\n"
        "\tmovq %r10, -56(%rbp)\n"
        "\tmovq %r11, -64(%rbp)\n"
        "\tmovsd %xmm0, -72(%rbp)\n"
        "\tcall kiln__cpu_call_begin\n"
        "\tmovq %rax, -88(%rbp)\n"
        "\tsubq $(8 * " STACK_WORDS "), %rsp\n"
        "\tmovl $" STACK_WORDS ", %ecx\n"
        "\tleaq 16(%rbp), %rsi\n"
        "\tmovq %rsp, %rdi\n"
        "\tcld\n"
        "\trep movsq\n"
        "\tmovq -8(%rbp), %rdi\n"
        "\tmovq -16(%rbp), %rsi\n"
        "\tmovq -24(%rbp), %rdx\n"
        "\tmovq -32(%rbp), %rcx\n"
        "\tmovq -40(%rbp), %r8\n"
        "\tmovq -48(%rbp), %r9\n"
        "\tmovsd -72(%rbp), %xmm0\n"
        "\tcall *-64(%rbp)\n"
        "\tmovq %rax, -8(%rbp)\n"
        "\tmovq -56(%rbp), %rdi\n"
        "\tmovq -88(%rbp), %rsi\n"
        "\tmovq %rax, %rdx\n"
        "\tcall kiln__cpu_call_end\n"
        "\tmovq -8(%rbp), %rax\n"
        "\tleave\n"
        "\t.cfi_def_cfa %rsp, 8\n"
        "\tret\n"
        "\t.cfi_endproc\n"
        "\t.size kiln__cpu_observed_call,.-kiln__cpu_observed_call\n");
#endif

/* Returns the exported function of this library with the given name. */
static void (*exported(const char *symbol))(void)
{
  static _Atomic(void *) self;
  void *handle = atomic_load(&self), *found;
  void (*fn)(void);
  Dl_info info;

  if (handle == NULL && dladdr((const void *)&self, &info) != 0) {
    handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    atomic_store(&self, handle);
  }
  found = handle == NULL ? NULL : dlsym(handle, symbol);
  *(void **)&fn = found;
  return fn;
}

/* Loads the injection library and starts it. A library that cannot be loaded is
 * ignored, as NVIDIA's driver does. */
void kiln__dropin_inject(void)
{
  const char *path = kiln__env("CUDA_INJECTION64_PATH");
  void *library = path == NULL ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  int (*start)(void);

  if (library == NULL)
    return;
  *(void **)&start = dlsym(library, "InitializeInjection");
  if (start != NULL)
    (void)start();
}

__attribute__((constructor)) static void begin(void)
{
  if (kiln__env("CUDA_INJECTION64_PATH") == NULL)
    return;
#if defined(__x86_64__)
  kiln__cpu_exported = exported;
#endif
}

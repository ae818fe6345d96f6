/* radix_code.h -- the functions of the device that a distributed sort calls in its
 * expressions. */
#ifndef KILN_COMM_RADIX_CODE_H
#define KILN_COMM_RADIX_CODE_H

#include "cut.h"

enum { KILN__FEW_CUTS = 8, KILN__RADIX_PARAMS = KILN__FEW_CUTS + 4 };

/* The functions search a sorted list of numbers. A short list travels in the
 * parameters of the kernel, a longer one lies in device memory. The struct must not
 * move: the parameters point into it. */
typedef struct kiln__radix_code {
  char text[4096]; /* the functions */
  /* Expressions over a key x, an unsigned number: */
  char top[64];       /* its top bits, those from `below` on */
  char bin[256];      /* its bin in the next histogram; UINT_MAX if in none */
  char marked[256];   /* whether its bits from `below` on are in the list */
  char class_of[256]; /* 2 k between the numbers k - 1 and k of the list, and
                         2 k + 1 if it equals number k */
  /* The values of the parameters: */
  uint64_t table;                /* address of a long list */
  uint64_t list[KILN__FEW_CUTS]; /* a short list */
  uint32_t listed, above, below; /* a bin has the bits from below to above */
  kiln_param params[KILN__RADIX_PARAMS];
  kiln_code code;
} kiln__radix_code;

/* Writes functions and expressions for keys whose rank has `bits` bits, and for
 * lists of at most `cuts` numbers. */
void kiln__radix_write(kiln__radix_code *c, const kiln__key_order *order,
                       unsigned bits, int cuts);

/* Returns the n lowest bits, as a mask. */
uint64_t kiln__low_bits(unsigned n);

#endif

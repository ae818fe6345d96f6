/* mbarrier.h -- the word of an mbarrier object in shared memory, which counts
 * arrivals and transferred bytes.
 *
 * The object is one 64-bit word:
 * bits 0 to 19: number of arrivals still missing in this phase
 * bits 20 to 39: number of arrivals per phase
 * bits 40 to 60: number of bytes that are expected but have not arrived
 *    (signed)
 * bits 61 to 63: number of the phase
 *
 * Invariant: a phase ends in the same update in which both counts reach zero.
 * The same update also restores the arrival count for the next phase. Every
 * change is a compare-and-swap of the whole word. */
#ifndef KILN_CPU_MBARRIER_H
#define KILN_CPU_MBARRIER_H

#include <stdbool.h>
#include <stdint.h>

enum {
  KILN__MBARRIER_COUNT_BITS = 20,
  KILN__MBARRIER_BYTES_BITS = 21,
  KILN__MBARRIER_EXPECTED_AT = KILN__MBARRIER_COUNT_BITS,
  KILN__MBARRIER_BYTES_AT = 2 * KILN__MBARRIER_COUNT_BITS,
  KILN__MBARRIER_PHASE_AT = KILN__MBARRIER_BYTES_AT + KILN__MBARRIER_BYTES_BITS,
  /* largest absolute value of the number of outstanding bytes */
  KILN__MBARRIER_MAX_BYTES = (1 << 20) - 1
};

#define KILN__MBARRIER_COUNT_MAX                                               \
  ((UINT64_C(1) << KILN__MBARRIER_COUNT_BITS) - 1)
#define KILN__MBARRIER_BYTES_MAX                                               \
  ((UINT64_C(1) << KILN__MBARRIER_BYTES_BITS) - 1)

static inline uint64_t kiln__cpu_mbarrier_make(uint64_t missing,
                                               uint64_t expected,
                                               uint64_t bytes, uint64_t phase)
{
  return (missing & KILN__MBARRIER_COUNT_MAX) |
         (expected & KILN__MBARRIER_COUNT_MAX) << KILN__MBARRIER_EXPECTED_AT |
         (bytes & KILN__MBARRIER_BYTES_MAX) << KILN__MBARRIER_BYTES_AT |
         phase << KILN__MBARRIER_PHASE_AT;
}

static inline uint64_t kiln__cpu_mbarrier_missing(uint64_t word)
{
  return word & KILN__MBARRIER_COUNT_MAX;
}

static inline uint64_t kiln__cpu_mbarrier_expected(uint64_t word)
{
  return word >> KILN__MBARRIER_EXPECTED_AT & KILN__MBARRIER_COUNT_MAX;
}

/* Returns the number of outstanding bytes, which is negative while more bytes
 * have arrived than were expected. */
static inline int32_t kiln__cpu_mbarrier_bytes(uint64_t word)
{
  const uint32_t bytes =
      (uint32_t)(word >> KILN__MBARRIER_BYTES_AT & KILN__MBARRIER_BYTES_MAX);

  return (int32_t)(bytes << (32 - KILN__MBARRIER_BYTES_BITS)) >>
         (32 - KILN__MBARRIER_BYTES_BITS);
}

static inline uint64_t kiln__cpu_mbarrier_phase(uint64_t word)
{
  return word >> KILN__MBARRIER_PHASE_AT;
}

typedef struct kiln__cpu_mbarrier_change {
  uint32_t arrive; /* number of arrivals to count in this phase */
  uint32_t drop;   /* number of threads that leave the barrier permanently */
  uint32_t expect; /* number of additional bytes to expect */
  uint32_t come;   /* number of bytes to count as arrived */
} kiln__cpu_mbarrier_change;

static inline uint64_t
kiln__cpu_mbarrier_changed(uint64_t word, const kiln__cpu_mbarrier_change *c)
{
  const int32_t bytes =
      kiln__cpu_mbarrier_bytes(word) + (int32_t)c->expect - (int32_t)c->come;
  uint64_t missing = kiln__cpu_mbarrier_missing(word) - c->arrive;
  uint64_t expected = kiln__cpu_mbarrier_expected(word) - c->drop;
  uint64_t phase = kiln__cpu_mbarrier_phase(word);

  missing &= KILN__MBARRIER_COUNT_MAX;
  expected &= KILN__MBARRIER_COUNT_MAX;
  if (missing == 0 && bytes == 0 && (c->arrive != 0 || c->come != 0)) {
    missing = expected;
    phase = (phase + 1) & 7;
  }
  return kiln__cpu_mbarrier_make(missing, expected, (uint32_t)bytes, phase);
}

/* Returns true if the change is impossible: more threads arrive than the phase
 * waits for, or the number of outstanding bytes leaves its range. */
static inline bool
kiln__cpu_mbarrier_overflows(uint64_t word, const kiln__cpu_mbarrier_change *c)
{
  const int64_t bytes =
      (int64_t)kiln__cpu_mbarrier_bytes(word) + c->expect - c->come;

  return c->arrive > kiln__cpu_mbarrier_missing(word) ||
         bytes > KILN__MBARRIER_MAX_BYTES || bytes < -KILN__MBARRIER_MAX_BYTES;
}

/* Applies a change to the mbarrier at host address `at`. Returns the previous
 * word. Thread-safe. */
static inline uint64_t
kiln__cpu_mbarrier_update(uintptr_t at, const kiln__cpu_mbarrier_change *c)
{
  uint64_t old = __atomic_load_n((const uint64_t *)at, __ATOMIC_RELAXED);

  while (!__atomic_compare_exchange_n((uint64_t *)at, &old,
                                      kiln__cpu_mbarrier_changed(old, c), false,
                                      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
    ;
  return old;
}

#endif

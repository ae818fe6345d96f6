/* profile_totals.h -- the figures of a profile's summary, which are printed as
 * text and as JSON. */
#ifndef KILN_CLI_PROFILE_TOTALS_H
#define KILN_CLI_PROFILE_TOTALS_H

#include "cli/profile/profile_model.h"

/* All spans of one kind with one name. Times are nanoseconds. */
typedef struct profile_total {
  uint32_t name;
  uint64_t calls, bytes;
  int64_t total, least, most;
} profile_total;

/* Totals, sorted by descending total time. */
typedef struct profile_totals {
  profile_total *at;
  size_t n;
  int64_t sum; /* total time of all */
} profile_totals;

/* A time in which a device had nothing to do. */
typedef struct profile_gap {
  int64_t begin, end;
  const span *before, *after; /* the work around the gap */
  const span *host; /* the host's span that covers most of it, or NULL */
  int64_t host_ns;  /* the part of the gap that `host` covers */
} profile_gap;

enum { PROFILE_GAPS = 5 };

/* How busy one device of one process was. Times are nanoseconds. */
typedef struct profile_use {
  uint32_t process, device;
  int64_t begin, end;      /* begin of the first work, end of the last */
  int64_t busy;            /* at least one piece of work ran */
  int64_t kernels, copies; /* at least one kernel, one copy or fill */
  int64_t both;            /* kernels and copies at the same time */
  int64_t several;         /* at least two pieces of work at the same time */
  uint64_t n_gaps;
  profile_gap gaps[PROFILE_GAPS]; /* the longest, in this order */
  profile_totals idle_after;      /* gaps by the name of the work before */
} profile_use;

profile_totals kiln__profile_totals(const profile *p, span_kind kind);
/* Computes the use of all devices. @return the number of uses */
size_t kiln__profile_uses(const profile *p, profile_use **out);

#endif

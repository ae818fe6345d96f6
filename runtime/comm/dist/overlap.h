/* overlap.h -- a second stream, so that data for the next step move while the
 * device computes the present one. */
#ifndef KILN_COMM_OVERLAP_H
#define KILN_COMM_OVERLAP_H

#include "dist.h"

/* Two buffers take turns: step k computes from buffer k % 2, while the data of step
 * k + 1 arrive in the other one. */
typedef struct kiln__overlap {
  kiln_stream *moves;  /* stream of the transports */
  kiln_event *done[2]; /* the computation from each buffer is done */
} kiln__overlap;

/* Creates the stream and the events. After a failure, too,
 * kiln__overlap_close() frees them. */
kiln_status kiln__overlap_open(kiln__overlap *o, kiln__dist *d);
/* Waits for the transports, and frees the stream and the events. */
void kiln__overlap_close(kiln__overlap *o);

/* Marks the end of the queued computation of a step. */
kiln_status kiln__overlap_computed(kiln__overlap *o, kiln__dist *d,
                                   uint64_t step);
/* Waits until the buffer of a step may be overwritten: until the computation of
 * the step before the last one is done. */
kiln_status kiln__overlap_wait(kiln__overlap *o, uint64_t step);

#endif

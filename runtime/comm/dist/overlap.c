/* overlap.c -- a second stream for transports; see overlap.h. */
#include "overlap.h"

kiln_status kiln__overlap_open(kiln__overlap *o, kiln__dist *d)
{
  kiln_device *const device = d->comm->device;
  kiln_status st = kiln_stream_create(&o->moves, device, NULL);

  for (int k = 0; k < 2 && st == KILN_OK; k++)
    st = kiln_event_create(&o->done[k], device, NULL);
  /* the transports read arrays that work in the caller's stream may write */
  return st == KILN_OK ? kiln_stream_synchronize(d->stream) : st;
}

void kiln__overlap_close(kiln__overlap *o)
{
  if (o->moves != NULL)
    (void)kiln_stream_synchronize(o->moves);
  kiln_event_free(o->done[0]);
  kiln_event_free(o->done[1]);
  kiln_stream_free(o->moves);
}

kiln_status kiln__overlap_computed(kiln__overlap *o, kiln__dist *d,
                                   uint64_t step)
{
  return kiln_event_record(o->done[step % 2], d->stream);
}

kiln_status kiln__overlap_wait(kiln__overlap *o, uint64_t step)
{
  return step < 2 ? KILN_OK : kiln_event_synchronize(o->done[step % 2]);
}

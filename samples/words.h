/* words.h -- arrays for samples whose kernel computes n words from n words: the
 * inputs, the host's results, and the arrays on the device. */
#ifndef KILN_SAMPLE_WORDS_H
#define KILN_SAMPLE_WORDS_H

#include "sample.h"

typedef struct sample_words {
  kiln_device *device;
  uint32_t n; /* number of words of each array */
  uint32_t *in, *expected, *out;
  CUdeviceptr d_in, d_out;
} sample_words;

/* Allocates the arrays, and fills the inputs on host and device. The caller
 * fills `expected`. */
static inline void sample_words_open(sample_words *w, const sample *s,
                                     uint32_t n)
{
  const size_t bytes = n * sizeof *w->in;

  w->device = s->device;
  w->n = n;
  w->in = sample_alloc(bytes);
  w->expected = sample_alloc(bytes);
  w->out = sample_alloc(bytes);
  for (uint32_t i = 0; i < n; i++)
    w->in[i] = i * 2654435761u + 1;
  SAMPLE_TRY(kiln_memory_alloc(&w->d_in, w->device, bytes));
  SAMPLE_TRY(kiln_memory_alloc(&w->d_out, w->device, bytes));
  SAMPLE_TRY(kiln_copy_to_device(w->device, w->d_in, w->in, bytes));
}

static inline void sample_words_close(sample_words *w)
{
  SAMPLE_TRY(kiln_memory_free(w->device, w->d_in));
  SAMPLE_TRY(kiln_memory_free(w->device, w->d_out));
  free(w->in);
  free(w->expected);
  free(w->out);
}

/* Runs the kernel on outputs that hold a pattern, and returns whether its
 * results are the expected ones. */
static inline bool sample_words_check(sample_words *w, sample_op_fn launch,
                                      const void *desc)
{
  const size_t bytes = w->n * sizeof *w->out;

  memset(w->out, 0xee, bytes);
  SAMPLE_TRY(kiln_copy_to_device(w->device, w->d_out, w->out, bytes));
  SAMPLE_TRY(launch(NULL, desc));
  SAMPLE_TRY(kiln_copy_to_host(w->device, w->out, w->d_out, bytes));
  return memcmp(w->out, w->expected, bytes) == 0;
}

#endif

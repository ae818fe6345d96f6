/* machine.c -- implements the global state of the CPU device (the machine), of
 * which a process has one, and the state of each thread. */
#include "memory/api_memory.h"

#include <stdlib.h>

static kiln__cpu_machine the_machine;
static pthread_once_t made = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;
static bool usable;

static _Thread_local kiln__cpu_thread *this_thread;

/* Called when a thread of the program ends. Each default stream of the thread
 * is destroyed when the stream's work is done. */
static void thread_gone(void *arg)
{
  kiln__cpu_thread *t = arg;

  this_thread = NULL;
  while (t->streams != NULL) {
    kiln__cpu_thread_stream *own = t->streams;

    t->streams = own->next;
    if (kiln__cpu_ready() == CUDA_SUCCESS &&
        kiln__cpu_live(own->stream, KILN__HANDLE_STREAM) &&
        own->stream->context->id == own->context_id) {
      kiln__cpu_live_remove(own->stream);
      kiln__cpu_stream_end(own->stream);
    }
    kiln__free(&the_machine.alloc, own);
  }
  kiln__free(&the_machine.alloc, t->stack);
  kiln__free(&the_machine.alloc, t);
}

static void make(void)
{
  kiln__cpu_machine *m = &the_machine;

  kiln__allocator_default(&m->alloc);
  kiln__cpu_opts_fill(&m->opts);
  m->n_devices = m->opts.devices;
  usable = pthread_mutex_init(&m->lock, NULL) == 0 &&
           pthread_mutex_init(&m->live_lock, NULL) == 0 &&
           pthread_mutex_init(&m->graph_lock, NULL) == 0 &&
           pthread_mutex_init(&m->queue_lock, NULL) == 0 &&
           pthread_cond_init(&m->queue_done, NULL) == 0 &&
           kiln__cpu_store_init(&m->store) &&
           pthread_key_create(&thread_key, thread_gone) == 0 &&
           kiln__cpu_memory_create(&m->memory, &m->alloc) == KILN_OK &&
           kiln__cpu_ledger_make(m) &&
           kiln__cpu_textures_create(&m->textures, &m->alloc) == KILN_OK;
}

kiln__cpu_machine *kiln__cpu_the_machine(void)
{
  pthread_once(&made, make);
  return usable ? &the_machine : NULL;
}

uint64_t kiln__cpu_next_id(void)
{
  kiln__cpu_machine *m = &the_machine;
  uint64_t id;

  pthread_mutex_lock(&m->live_lock);
  id = ++m->next_id;
  pthread_mutex_unlock(&m->live_lock);
  return id;
}

kiln__cpu_thread *kiln__cpu_this_thread(void)
{
  kiln__cpu_machine *m;
  kiln__cpu_thread *t = this_thread;

  if (t != NULL)
    return t;
  m = kiln__cpu_the_machine();
  t = m != NULL ? kiln__calloc(&m->alloc, 1, sizeof *t) : NULL;
  if (t == NULL)
    return NULL;
  t->mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  t->id = kiln__cpu_next_id();
  if (pthread_setspecific(thread_key, t) != 0) {
    kiln__free(&m->alloc, t);
    return NULL;
  }
  this_thread = t;
  return t;
}

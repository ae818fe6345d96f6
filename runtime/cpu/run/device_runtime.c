/* device_runtime.c -- implements the functions of the device runtime, which
 * kernels call: launches, streams, events, copies, errors and questions about
 * the device. device_launch.c runs what they submit.
 *
 * All work of a grid runs in the order in which it was submitted, so streams
 * and events only need handles. */
#include "device_launch.h"

#include <string.h>

/* A call of one lane. */
typedef struct device_call {
  kiln__cpu_warp *w;
  const kiln__cpu_frame *f;
  const kiln__cpu_call *site;
  kiln__cpu_submitted *s;
  kiln__cpu_system which;
  int lane;
} device_call;

static uint64_t arg(const device_call *c, uint32_t i)
{
  return kiln__cpu_argument(c->w, c->f, c->site, i, c->lane);
}

/* Copies a dim3 argument. */
static void dim_arg(const device_call *c, uint32_t i, uint32_t out[3])
{
  const uint8_t *const mine = kiln__cpu_schedule_of(c->w)->stack +
                              c->f->local_at +
                              (size_t)c->lane * c->w->local_stride;

  memset(out, 0, 3 * sizeof *out);
  if (i < c->site->n_in && c->site->in[i].size >= 3 * sizeof *out)
    memcpy(out, mine + c->site->in[i].from, 3 * sizeof *out);
}

/* Writes a value to an address that the kernel passed. */
static int write_to(const device_call *c, uint64_t address, const void *value,
                    size_t size)
{
  uint8_t *const at = kiln__cpu_lane_bytes(c->w, c->lane, address, size);

  if (at == NULL)
    return KILN__RT_INVALID_VALUE;
  memcpy(at, value, size);
  kiln__cpu_memory_written(c->w->grid->memory, address, size);
  return KILN__RT_SUCCESS;
}

/* ---- Errors -------------------------------------------------------------- */

static struct kiln__cpu_thread_error *error_of(const device_call *c, bool make)
{
  const uint64_t thread = c->w->block->number * KILN__MAX_WARPS * KILN__WARP +
                          c->w->index * KILN__WARP + (uint32_t)c->lane;
  kiln__cpu_submitted *const s = c->s;

  for (size_t i = 0; i < s->n_errors; i++) {
    if (s->errors[i].thread == thread)
      return &s->errors[i];
  }
  if (!make || !kiln__grow(&c->w->grid->alloc, &s->errors, s->n_errors,
                           &s->errors_capacity, sizeof *s->errors))
    return NULL;
  s->errors[s->n_errors].thread = thread;
  return &s->errors[s->n_errors++];
}

static void set_error(const device_call *c, int error)
{
  struct kiln__cpu_thread_error *e;

  pthread_mutex_lock(&c->s->lock);
  e = error_of(c, true);
  if (e != NULL)
    e->error = error;
  pthread_mutex_unlock(&c->s->lock);
}

static int last_error(const device_call *c, bool clear)
{
  struct kiln__cpu_thread_error *e;
  int error = 0;

  pthread_mutex_lock(&c->s->lock);
  e = error_of(c, false);
  if (e != NULL) {
    error = e->error;
    e->error = clear ? 0 : error;
  }
  pthread_mutex_unlock(&c->s->lock);
  return error;
}

/* ---- Streams and events -------------------------------------------------- */

enum { NON_BLOCKING = 1, DISABLE_TIMING = 2 };

/* Makes a stream or an event. `flags` are the only flags that are allowed. */
static int make_handle(const device_call *c, uint32_t *count, uint64_t flags)
{
  uint64_t handle;

  if (arg(c, 1) != flags)
    return KILN__RT_INVALID_VALUE;
  pthread_mutex_lock(&c->s->lock);
  handle = kiln__cpu_device_handle(c->w->grid, ++*count);
  pthread_mutex_unlock(&c->s->lock);
  return write_to(c, arg(c, 0), &handle, sizeof handle);
}

/* Checks a record of an event in a stream, or a wait of a stream for an event.
 * The tail stream and the fire-and-forget stream have neither. */
static int check_order(const device_call *c, uint64_t event, uint64_t stream)
{
  const int error = kiln__cpu_device_handle_check(c->w, event, true);

  if (error != 0)
    return error;
  return stream == KILN__STREAM_TAIL || stream == KILN__STREAM_FIRE_AND_FORGET
             ? KILN__RT_INVALID_VALUE
             : kiln__cpu_stream_check(c->w, stream);
}

static int destroy_stream(const device_call *c)
{
  return arg(c, 0) <= KILN__STREAM_FIRE_AND_FORGET
             ? KILN__RT_INVALID_HANDLE
             : kiln__cpu_stream_check(c->w, arg(c, 0));
}

/* ---- Launches ------------------------------------------------------------ */

static void read_shape(const device_call *c, uint32_t function, uint32_t dims,
                       kiln__cpu_child_shape *out)
{
  out->function = arg(c, function);
  dim_arg(c, dims, out->grid);
  dim_arg(c, dims + 1, out->block);
  out->shared = (uint32_t)arg(c, dims + 2);
}

/* Returns the address of a parameter buffer, or 0 after setting the error. */
static uint64_t get_buffer(const device_call *c)
{
  kiln__cpu_child_shape shape;
  uint64_t address = 0;
  int error;

  if (c->which == KILN__SYSTEM_GET_BUFFER_V2) {
    read_shape(c, 0, 1, &shape);
    error = kiln__cpu_child_prepare(c->w, &shape, &address);
  } else {
    error = kiln__cpu_child_buffer(c->w, arg(c, 1), &address);
  }
  if (error != 0)
    set_error(c, error);
  return address;
}

static int launch(const device_call *c)
{
  kiln__cpu_child_shape shape;

  if (c->which == KILN__SYSTEM_LAUNCH_V2)
    return kiln__cpu_child_launch(c->w, c->lane, NULL, arg(c, 0), arg(c, 1));
  read_shape(c, 0, 2, &shape);
  return kiln__cpu_child_launch(c->w, c->lane, &shape, arg(c, 1), arg(c, 5));
}

static int synchronise(const device_call *c)
{
  const kiln__cpu_launch_desc *const l = kiln__cpu_job_of(c->w)->launch;

  if (l->depth >= l->sync_depth)
    return KILN__RT_SYNC_DEPTH;
  kiln__cpu_submitted_sync(c->w);
  return KILN__RT_SUCCESS;
}

/* ---- Memory -------------------------------------------------------------- */

static int copy(const device_call *c)
{
  const bool flat = c->which == KILN__SYSTEM_COPY;
  const kiln__cpu_area area = {.to = arg(c, 0),
                               .from = arg(c, flat ? 1 : 2),
                               .to_pitch = flat ? 0 : arg(c, 1),
                               .from_pitch = flat ? 0 : arg(c, 3),
                               .width = arg(c, flat ? 2 : 4),
                               .height = flat ? 1 : arg(c, 5)};

  if (!flat && (area.to_pitch < area.width || area.from_pitch < area.width))
    return KILN__RT_INVALID_VALUE;
  return kiln__cpu_child_area(c->w, &area, false, arg(c, flat ? 4 : 7));
}

static int fill(const device_call *c)
{
  const bool flat = c->which == KILN__SYSTEM_FILL;
  const kiln__cpu_area area = {.to = arg(c, 0),
                               .to_pitch = flat ? 0 : arg(c, 1),
                               .value = (uint8_t)arg(c, flat ? 1 : 2),
                               .width = arg(c, flat ? 2 : 3),
                               .height = flat ? 1 : arg(c, 4)};

  if (!flat && area.to_pitch < area.width)
    return KILN__RT_INVALID_VALUE;
  return kiln__cpu_child_area(c->w, &area, true, arg(c, flat ? 3 : 5));
}

static int allocate(const device_call *c)
{
  const uint64_t address = kiln__cpu_heap_alloc(c->w, arg(c, 1));

  return address == 0 && arg(c, 1) != 0
             ? KILN__RT_NO_MEMORY
             : write_to(c, arg(c, 0), &address, sizeof address);
}

/* ---- Questions ----------------------------------------------------------- */

static int ask(const device_call *c, const uint64_t args[3],
               kiln__cpu_answer *answer)
{
  const kiln__cpu_launch_desc *const l = kiln__cpu_job_of(c->w)->launch;

  answer->size = 0;
  return l->services == NULL || l->services->query == NULL
             ? KILN__RT_NOT_SUPPORTED
             : l->services->query(l->services->user, l, c->which, args, answer);
}

/* Answers a question whose result is written to the first argument. */
static int question(const device_call *c)
{
  const uint64_t args[] = {arg(c, 1), arg(c, 2), arg(c, 3)};
  kiln__cpu_answer answer;
  const int error = ask(c, args, &answer);

  return error != 0 ? error : write_to(c, arg(c, 0), answer.bytes, answer.size);
}

/* Returns the address of the name or the text of an error code. */
static uint64_t error_text(const device_call *c)
{
  const uint64_t args[] = {arg(c, 0), 0, 0};
  kiln__cpu_answer answer;
  uint64_t address = 0;

  if (ask(c, args, &answer) != 0 ||
      kiln__cpu_child_buffer(c->w, answer.size, &address) != 0 ||
      write_to(c, address, answer.bytes, answer.size) != 0)
    return 0;
  return address;
}

/* ---- Calls --------------------------------------------------------------- */

/* Executes a call that returns an error code. */
static int call_for_error(const device_call *c)
{
  switch (c->which) {
  case KILN__SYSTEM_LAUNCH:
  case KILN__SYSTEM_LAUNCH_V2:
    return launch(c);
  case KILN__SYSTEM_SYNCHRONIZE:
    return synchronise(c);
  case KILN__SYSTEM_STREAM_CREATE:
    return make_handle(c, &c->s->n_streams, NON_BLOCKING);
  case KILN__SYSTEM_STREAM_DESTROY:
    return destroy_stream(c);
  case KILN__SYSTEM_STREAM_WAIT:
    return check_order(c, arg(c, 1), arg(c, 0));
  case KILN__SYSTEM_EVENT_CREATE:
    return make_handle(c, &c->s->n_events, DISABLE_TIMING);
  case KILN__SYSTEM_EVENT_RECORD:
  case KILN__SYSTEM_EVENT_RECORD_FLAGS:
    return check_order(c, arg(c, 0), arg(c, 1));
  case KILN__SYSTEM_EVENT_DESTROY:
    return kiln__cpu_device_handle_check(c->w, arg(c, 0), true);
  case KILN__SYSTEM_DEVICE_MALLOC:
    return allocate(c);
  case KILN__SYSTEM_DEVICE_FREE:
    return kiln__cpu_heap_free(c->w, arg(c, 0)) ? KILN__RT_SUCCESS
                                                : KILN__RT_INVALID_VALUE;
  case KILN__SYSTEM_COPY:
  case KILN__SYSTEM_COPY_2D:
    return copy(c);
  case KILN__SYSTEM_FILL:
  case KILN__SYSTEM_FILL_2D:
    return fill(c);
  default:
    return question(c);
  }
}

static uint64_t value_of(const device_call *c)
{
  int error;

  switch (c->which) {
  case KILN__SYSTEM_GET_BUFFER:
  case KILN__SYSTEM_GET_BUFFER_V2:
    return get_buffer(c);
  case KILN__SYSTEM_LAST_ERROR:
  case KILN__SYSTEM_PEEK_ERROR:
    return (uint64_t)last_error(c, c->which == KILN__SYSTEM_LAST_ERROR);
  case KILN__SYSTEM_ERROR_NAME:
  case KILN__SYSTEM_ERROR_STRING:
    return error_text(c);
  default:
    error = call_for_error(c);
    if (error != 0)
      set_error(c, error);
    return (uint64_t)error;
  }
}

bool kiln__cpu_device_call(kiln__cpu_warp *w, const kiln__cpu_frame *f,
                           const kiln__cpu_insn *in, kiln__cpu_system which,
                           int lane)
{
  const device_call c = {.w = w,
                         .f = f,
                         .site = &f->code->calls[in->imm],
                         .s = kiln__cpu_submitted_of(kiln__cpu_job_of(w)),
                         .which = which,
                         .lane = lane};

  if (c.s == NULL) {
    kiln__cpu_fault(w, in, KILN__FAULT_MEMORY, lane, 0, 0);
    return false;
  }
  kiln__cpu_result(w, f, c.site, lane, value_of(&c));
  return !w->fault;
}

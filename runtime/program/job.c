/* job.c -- jobs: asynchronous compilation of many programs on the compile
 * threads.
 *
 * Everything that the descriptions point to is copied, so the caller may free
 * the descriptions. Each program is one task of the pool, which runs tasks in
 * order and limits the number of threads. */
#include "image.h"

#include <errno.h>
#include <string.h>
#include <time.h>

typedef struct item {
  /* first member of the struct, since the pool passes the address of the task
   */
  kiln__task task;
  kiln_job *job;
  kiln_program_desc desc;
  kiln_target target;
  bool done; /* job->lock guards this member and the following members */
  kiln_status status;
  kiln_image *image;
  kiln_error *error; /* error record; NULL if memory for it ran out */
} item;

struct kiln_job {
  kiln_runtime *rt;
  kiln__arena arena; /* memory of the items and of everything they point to */
  item *items;
  size_t n;
  kiln_progress_fn progress;
  void *user;
  atomic_bool cancel;
  pthread_mutex_t lock;
  pthread_cond_t ended; /* condition that is signalled when an item is done */
  kiln_job_progress state;
  size_t busy; /* number of items (programs) whose end was not reported yet */
};

/* ---- Copies -------------------------------------------------------------- */

static const char *const *copy_texts(kiln__arena *arena,
                                     const char *const *texts, size_t n)
{
  const char **copy;

  if (texts == NULL || n == 0)
    return NULL;
  copy = kiln__arena_alloc(arena, n * sizeof *copy);
  for (size_t i = 0; copy != NULL && i < n; i++)
    copy[i] = kiln__arena_text(arena, texts[i]);
  return copy;
}

static const kiln_header *copy_headers(kiln__arena *arena,
                                       const kiln_header *headers, size_t n)
{
  kiln_header *copy;

  if (headers == NULL || n == 0)
    return NULL;
  copy = kiln__arena_alloc(arena, n * sizeof *copy);
  for (size_t i = 0; copy != NULL && i < n; i++) {
    copy[i].name = kiln__arena_text(arena, headers[i].name);
    copy[i].text = kiln__arena_text(arena, headers[i].text);
  }
  return copy;
}

static kiln_program_desc copy_desc(kiln__arena *arena,
                                   const kiln_program_desc *desc)
{
  kiln_program_desc copy = *desc;

  copy.builtin = kiln__arena_text(arena, desc->builtin);
  copy.source = desc->source_size == 0
                    ? kiln__arena_text(arena, desc->source)
                    : kiln__arena_copy(arena, desc->source, desc->source_size);
  copy.name = kiln__arena_text(arena, desc->name);
  copy.headers = copy_headers(arena, desc->headers, desc->n_headers);
  copy.defines = copy_texts(arena, desc->defines, desc->n_defines);
  copy.traits = copy_texts(arena, desc->traits, desc->n_traits);
  copy.names = copy_texts(arena, desc->names, desc->n_names);
  copy.options = copy_texts(arena, desc->options, desc->n_options);
  return copy;
}

/* ---- Running ------------------------------------------------------------- */

static kiln_status fail_canceled(const item *it)
{
  return kiln__fail(KILN_ECANCELED, NULL, "compiling %s was canceled",
                    it->desc.name != NULL      ? it->desc.name
                    : it->desc.builtin != NULL ? it->desc.builtin
                                               : "program.cu");
}

static kiln_status make(item *it, kiln_image **image)
{
  kiln_runtime *rt = it->job->rt;
  kiln__image_request req;
  kiln_traits traits;
  kiln_status st;

  *image = NULL;
  if (atomic_load(&it->job->cancel))
    return fail_canceled(it);
  st = kiln__compile_request(&req, &traits, rt, &it->desc, &it->target);
  if (st != KILN_OK)
    return st;
  req.cancel = &it->job->cancel;
  return kiln__image_make(image, rt, &it->desc, &traits, &req);
}

/* Records the result of an item, calls the progress callback, and only then
 * counts the item as ended, because the job may be freed after that. */
static void end(item *it, kiln_status status, kiln_image *image)
{
  kiln_job *job = it->job;
  kiln_job_progress now;
  kiln_error *error = NULL;

  if (status != KILN_OK)
    error = kiln__alloc(&job->rt->alloc, sizeof *error);
  if (error != NULL)
    kiln__error_get(error);
  pthread_mutex_lock(&job->lock);
  it->done = true;
  it->status = status;
  it->image = image;
  it->error = error;
  job->state.done++;
  job->state.failed += status != KILN_OK;
  job->state.compiled +=
      status == KILN_OK && kiln_image_origin(image) == KILN_FROM_COMPILER;
  now = job->state;
  pthread_mutex_unlock(&job->lock);
  if (job->progress != NULL)
    job->progress(job->user, &now);
  pthread_mutex_lock(&job->lock);
  job->busy--;
  pthread_cond_broadcast(&job->ended);
  pthread_mutex_unlock(&job->lock);
}

static void run_item(kiln__task *task)
{
  item *it = (item *)(void *)task;
  kiln_image *image;
  const kiln_status st = make(it, &image);

  end(it, st, image);
}

/* ---- Jobs ---------------------------------------------------------------- */

static kiln_status make_job(kiln_job **out, kiln_runtime *rt,
                            const kiln_program_desc *desc,
                            const kiln_target *target, size_t n)
{
  kiln_job *job = kiln__calloc(&rt->alloc, 1, sizeof *job);
  pthread_condattr_t attributes;

  if (job == NULL) {
    kiln__fail_memory("a job");
    return KILN_ENOMEM;
  }
  job->rt = rt;
  kiln__arena_init(&job->arena, &rt->alloc);
  atomic_init(&job->cancel, false);
  pthread_mutex_init(&job->lock, NULL);
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&job->ended, &attributes);
  pthread_condattr_destroy(&attributes);
  *out = job;
  job->items = n > SIZE_MAX / sizeof *job->items
                   ? NULL
                   : kiln__arena_alloc(&job->arena, n * sizeof *job->items);
  for (size_t i = 0; job->items != NULL && i < n; i++) {
    item *it = &job->items[i];

    it->task.run = run_item;
    it->job = job;
    it->desc = copy_desc(&job->arena, &desc[i]);
    it->target = target[i];
  }
  return job->items == NULL ? kiln__fail_memory("a job")
                            : kiln__arena_status(&job->arena, "a job");
}

/* Checks that a description with a non-zero count also has a list, since a
 * missing list cannot be copied. The other members are checked when the program
 * is compiled. */
static kiln_status check_descs(const kiln_program_desc *desc, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (!kiln__desc_has_lists(&desc[i]))
      return kiln__fail(KILN_EINVAL, NULL,
                        "desc[%zu] has a count without its list", i);
  }
  return KILN_OK;
}

kiln_status kiln_job_start(kiln_job **out, kiln_runtime *rt,
                           const kiln_program_desc *desc,
                           const kiln_target *target, size_t n,
                           kiln_progress_fn progress, void *user)
{
  kiln_status st = KILN_OK;
  kiln_job *job = NULL;

  if (out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out is NULL");
  *out = NULL;
  if (rt == NULL || (n > 0 && (desc == NULL || target == NULL)))
    return kiln__fail(KILN_EINVAL, NULL, "rt, desc or target is NULL");
  KILN_TRY(check_descs(desc, n));
  /* a forked child has no compile threads */
  KILN_TRY(kiln__fork_check(&rt->fork));
  KILN_TRY(make_job(&job, rt, desc, target, n));
  job->n = job->busy = job->state.total = n;
  job->progress = progress;
  job->user = user;
  *out = job;
  for (size_t i = 0; i < n; i++)
    kiln__pool_add(rt->pool, &job->items[i].task);
  return KILN_OK;

done:
  kiln_job_free(job);
  return st;
}

/* Returns the monotonic time `ms` milliseconds from now, clamped to avoid
 * overflow. */
static struct timespec deadline(uint64_t ms)
{
  const uint64_t far = (uint64_t)1 << 40;
  const uint64_t now = kiln__clock_ns() / 1000000;
  const uint64_t end = now + (ms < far ? ms : far);

  return (struct timespec){.tv_sec = (time_t)(end / 1000),
                           .tv_nsec = (long)(end % 1000) * 1000000};
}

kiln_status kiln_job_wait(kiln_job *job, uint64_t timeout_ms)
{
  struct timespec until;
  size_t left;
  int rc = 0;

  if (job == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "job is NULL");
  until = deadline(timeout_ms);
  pthread_mutex_lock(&job->lock);
  while (job->busy > 0 && timeout_ms > 0 && rc != ETIMEDOUT) {
    if (timeout_ms == UINT64_MAX)
      pthread_cond_wait(&job->ended, &job->lock);
    else
      rc = pthread_cond_timedwait(&job->ended, &job->lock, &until);
  }
  left = job->busy;
  pthread_mutex_unlock(&job->lock);
  if (left == 0)
    return KILN_OK;
  return kiln__fail(KILN_ETIMEOUT, NULL, "%zu of %zu programs are not done",
                    left, job->n);
}

kiln_status kiln_job_state(kiln_job *job, kiln_job_progress *out)
{
  if (job == NULL || out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "job or out is NULL");
  pthread_mutex_lock(&job->lock);
  *out = job->state;
  pthread_mutex_unlock(&job->lock);
  return KILN_OK;
}

static kiln_status fail_item(const item *it, size_t i)
{
  if (it->error != NULL)
    kiln__error_set(it->error);
  else
    kiln__fail(it->status, "compile it again for the reason",
               "program %zu of the job failed: %s", i,
               kiln_status_text(it->status));
  return it->status;
}

kiln_status kiln_job_image(kiln_job *job, size_t i, kiln_image **out)
{
  const item *it;
  bool done;

  if (out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out is NULL");
  *out = NULL;
  if (job == NULL || i >= job->n)
    return kiln__fail(KILN_EINVAL, NULL, "the job has no program %zu", i);
  it = &job->items[i];
  pthread_mutex_lock(&job->lock);
  /* the other members of the item do not change after `done` is set */
  done = it->done;
  pthread_mutex_unlock(&job->lock);
  if (!done)
    return kiln__fail(KILN_ENOTREADY, "wait with kiln_job_wait()",
                      "program %zu is not done yet", i);
  if (it->status != KILN_OK)
    return fail_item(it, i);
  *out = kiln__image_ref(it->image);
  return KILN_OK;
}

kiln_status kiln_job_cancel(kiln_job *job)
{
  if (job == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "job is NULL");
  atomic_store(&job->cancel, true);
  /* The cancelled tasks are removed from the queue immediately. If another
   * job's tasks are queued first, the cancelled tasks would otherwise wait long
   * until they detect the cancellation. */
  for (size_t i = 0; i < job->n; i++) {
    item *it = &job->items[i];

    if (kiln__pool_remove(job->rt->pool, &it->task))
      end(it, fail_canceled(it), NULL);
  }
  return KILN_OK;
}

void kiln_job_free(kiln_job *job)
{
  kiln_allocator a;

  if (job == NULL)
    return;
  a = job->rt->alloc;
  if (job->n > 0) {
    kiln_error before;

    /* the failures of cancelled items are not a failure of this call */
    kiln__error_get(&before);
    kiln_job_cancel(job);
    kiln_job_wait(job, UINT64_MAX);
    kiln__error_set(&before);
  }
  for (size_t i = 0; i < job->n; i++) {
    kiln_image_free(job->items[i].image);
    kiln__free(&a, job->items[i].error);
  }
  pthread_cond_destroy(&job->ended);
  pthread_mutex_destroy(&job->lock);
  kiln__arena_free(&job->arena);
  kiln__free(&a, job);
}

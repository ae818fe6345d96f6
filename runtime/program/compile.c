/* compile.c -- kiln_compile(): converts a source text to an image in these
 * steps.
 *
 *   description -> plan     check, normalise, follow includes   (plan.c)
 *   plan        -> request  choose target, ladder rung, NVRTC   (choose.c)
 *   plan        -> key      write every input as text           (program_key.c)
 *   key         -> entry    memory, packs, disk, single flight  (cache/)
 *   miss        -> entry    run NVRTC, read its log and report  (compiler.c)
 *   entry       -> image    parse sections, names, resources    (image.c)
 *
 * The calling thread plans a pending image and looks it up. A compile thread is
 * used only if the cache does not have the image. If NVRTC was removed from the
 * machine, the stored description of the removed library (memo) provides the
 * compiler fields of the key, and the cache is still usable. */
#include "image.h"

#include <string.h>

struct kiln__pending {
  /* first member of the struct, since the pool passes the address of the task
   */
  kiln__task task;
  kiln_runtime *rt;
  const kiln_program_desc *desc;
  kiln_traits traits;
  kiln__image_request req;
  kiln__plan plan;
  kiln__key key;
  kiln__build build;

  pthread_mutex_t lock; /* guards `done` */
  pthread_cond_t ended;
  /* no NVRTC is installed, so only the cache can provide the image */
  bool gone;
  bool queued, done;
  kiln_status status;
  kiln_error error; /* error record that the compile thread wrote */
  kiln__entry *entry;
  kiln_origin origin;
};

/* ---- Preparing ----------------------------------------------------------- */

static void pending_free(kiln__pending *p)
{
  kiln_allocator a;

  if (p == NULL)
    return;
  a = p->rt->alloc;
  kiln__entry_unref(p->entry);
  kiln__buf_free(&p->build.log);
  kiln__key_free(&p->key);
  kiln__plan_free(&p->plan);
  pthread_cond_destroy(&p->ended);
  pthread_mutex_destroy(&p->lock);
  kiln__free(&a, p);
}

static kiln_status pending_alloc(kiln__pending **out, kiln_runtime *rt,
                                 const kiln_program_desc *desc)
{
  const kiln_allocator *a = &rt->alloc;
  kiln__pending *p = kiln__calloc(a, 1, sizeof *p);
  kiln_status st;

  *out = NULL;
  if (p == NULL) {
    kiln__fail_memory("an image");
    return KILN_ENOMEM;
  }
  p->rt = rt;
  p->desc = desc;
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->ended, NULL);
  kiln__key_init(&p->key, a);
  kiln__buf_init(&p->build.log, a);
  st = kiln__plan_make(&p->plan, a, desc);
  if (st != KILN_OK) {
    pending_free(p);
    return st;
  }
  if (p->plan.untracked != NULL)
    kiln__logf(&rt->log, KILN_LOG_WARNING,
               "%s is not cached: what it includes cannot be known (%s)",
               p->plan.name, p->plan.untracked);
  *out = p;
  return KILN_OK;
}

/* Makes the cache key of the request p->req again. An image from a pack needs
 * no compiler, so its key has no compiler fields. */
static kiln_status make_key(kiln__pending *p)
{
  const kiln__nvrtc_id *ids = NULL, *id = NULL;
  kiln__nvjitlink *link = NULL;
  kiln_status st = KILN_OK;
  size_t n = 0;

  kiln__key_free(&p->key);
  kiln__key_init(&p->key, &p->rt->alloc);
  if (p->req.rung != KILN_RUNG_PACK) {
    KILN_TRY(kiln__nvrtc_known(p->rt->nvrtc, &ids, &n, &p->gone));
    if (p->req.nvrtc >= n)
      KILN_TRY(kiln__fail(KILN_EINVAL, NULL, "there is no such NVRTC"));
    id = &ids[p->req.nvrtc];
  }
  if (p->req.rung == KILN_RUNG_LINK)
    KILN_TRY(kiln__runtime_link(p->rt, &link));
  kiln__plan_key(&p->plan, &p->key);
  if (p->req.object)
    kiln__key_add(&p->key, "object", "1", 1, true);
  if (id != NULL)
    KILN_TRY(kiln__plan_compiler_headers(&p->plan, id->info.path));
  kiln__local_key(&p->plan, &p->key, id, &p->traits, &p->req,
                  link == NULL ? 0 : kiln__nvjitlink_version(link));
  st = kiln__key_seal(&p->key);

done:
  return st;
}

static kiln_status pending_key(kiln__pending *p, const kiln_traits *traits,
                               const kiln__image_request *req)
{
  p->traits = *traits;
  p->req = *req;
  p->build.rt = p->rt;
  p->build.plan = &p->plan;
  p->build.key = &p->key;
  p->build.traits = &p->traits;
  p->build.req = &p->req;
  return make_key(p);
}

static kiln_status prepare(kiln__pending **out, kiln_runtime *rt,
                           const kiln_program_desc *desc,
                           const kiln_traits *traits,
                           const kiln__image_request *req)
{
  kiln__pending *p;
  kiln_status st = pending_alloc(&p, rt, desc);

  *out = NULL;
  if (st != KILN_OK)
    return st;
  st = pending_key(p, traits, req);
  if (st != KILN_OK) {
    pending_free(p);
    return st;
  }
  *out = p;
  return KILN_OK;
}

/* ---- Cache look-up and compilation -------------------------------------- */

static bool private_only(const kiln__pending *p)
{
  return p->desc->no_cache || p->plan.untracked != NULL;
}

static kiln_status fetch(kiln__pending *p, bool lookup_only)
{
  const kiln__fetch fetch = {
      .key = &p->key,
      .target = p->req.target,
      .refresh = p->desc->refresh,
      .private_only = private_only(p),
      .lookup_only = lookup_only,
      .make = p->req.linked == NULL ? kiln__build_make : p->req.linked->make,
      .user = &p->build,
  };

  if (lookup_only && (fetch.refresh || fetch.private_only))
    return KILN_ENOTFOUND;
  return kiln__cache_fetch(p->rt->cache, &fetch, &p->entry, &p->origin);
}

static kiln_status take_pack(kiln__pending *p)
{
  p->origin = KILN_FROM_PACK;
  p->entry = kiln__cache_pack(p->rt->cache, &p->key, p->req.target, false);
  return p->entry == NULL ? KILN_ENOTFOUND : KILN_OK;
}

/* Advances to the next older NVRTC that supports this target, in the list of
 * NVRTC libraries that were removed from the machine. Returns false if there is
 * none. */
static bool next_gone(kiln__pending *p)
{
  const kiln__nvrtc_id *ids;
  bool gone;
  size_t n;

  if (!p->gone || kiln__nvrtc_known(p->rt->nvrtc, &ids, &n, &gone) != KILN_OK)
    return false;
  while (++p->req.nvrtc < n) {
    if (kiln__nvrtc_makes(&ids[p->req.nvrtc], &p->req.target))
      return true;
  }
  p->req.nvrtc = n - 1; /* keep a valid index after the last NVRTC library */
  return false;
}

/* It is unknown which of the removed NVRTC libraries made the image, so the key
 * of each library is looked up. */
static kiln_status look_up(kiln__pending *p)
{
  kiln_status st;

  if (p->req.rung == KILN_RUNG_PACK)
    return take_pack(p);
  st = fetch(p, true);
  while (st == KILN_ENOTFOUND && next_gone(p)) {
    st = make_key(p);
    if (st == KILN_OK)
      st = fetch(p, true);
  }
  return st;
}

/* Looks up the image in the cache on a machine without a compiler. */
static kiln_status look_up_gone(kiln__pending *p)
{
  const kiln__nvrtc_id *ids;
  size_t n;
  const kiln_status st = look_up(p);

  return st == KILN_ENOTFOUND ? kiln__nvrtc_list(p->rt->nvrtc, &ids, &n) : st;
}

/* Writes an error record: a pack no longer has the image that was found when
 * the request was planned. */
static kiln_status fail_pack(const kiln__pending *p)
{
  char target[24];

  return kiln__fail(KILN_ENOTFOUND, "put the pack back, or install NVRTC",
                    "no pack holds %s for %s any longer", p->plan.name,
                    kiln_target_text(&p->req.target, target));
}

/* Uses an image for a lower target from a pack, if the chosen NVRTC fails to
 * load. */
static kiln_status rescue(kiln__pending *p)
{
  char message[KILN_ERROR_MESSAGE_SIZE], hint[KILN_ERROR_HINT_SIZE];
  const bool linked = p->req.rung == KILN_RUNG_LINK;
  kiln_target target = p->req.target;

  if (p->desc->refresh || private_only(p))
    return KILN_ENONVRTC;
  if (linked)
    target = (kiln_target){.cc = p->req.cc, .suffix = target.suffix};
  p->entry = kiln__cache_pack(p->rt->cache, &p->key, target, false);
  if (p->entry == NULL)
    return KILN_ENONVRTC;
  p->origin = KILN_FROM_PACK;
  kiln__copy_text(message, sizeof message, kiln_last_error()->message);
  kiln__copy_text(hint, sizeof hint, kiln_last_error()->hint);
  kiln__logf(&p->rt->log, KILN_LOG_WARNING,
             "%s comes from a pack, since there is no compiler: %s: %s",
             p->plan.name, message, hint);
  return KILN_OK;
}

static kiln_status produce(kiln__pending *p)
{
  kiln_status st;

  if (p->req.rung == KILN_RUNG_PACK)
    return take_pack(p) == KILN_OK ? KILN_OK : fail_pack(p);
  st = p->gone ? look_up_gone(p) : fetch(p, false);
  return st == KILN_ENONVRTC ? rescue(p) : st;
}

static void produce_task(kiln__task *task)
{
  kiln__pending *p = (kiln__pending *)(void *)task;
  const kiln_status st = produce(p);

  if (st != KILN_OK)
    kiln__error_get(&p->error);
  pthread_mutex_lock(&p->lock);
  p->status = st;
  p->done = true;
  pthread_cond_broadcast(&p->ended);
  pthread_mutex_unlock(&p->lock);
}

/* ---- The image ----------------------------------------------------------- */

static void report_log(const kiln__pending *p, const char *text, size_t size)
{
  if (p->desc->on_log != NULL && size > 0)
    p->desc->on_log(p->desc->log_user, text, size);
}

static kiln_status open_entry(kiln__pending *p, kiln_image **out)
{
  kiln__slice log;
  kiln_status st;

  st = kiln__image_open(out, &p->rt->alloc, p->entry, p->origin);
  p->entry = NULL;
  if (st != KILN_OK)
    return st;
  log = kiln__entry_get((*out)->entry, KILN__LOG);
  report_log(p, log.data, log.size);
  if (p->desc->fail_on_spill)
    st = kiln__image_check_spill(*out, p->plan.name);
  if (st != KILN_OK) {
    kiln_image_free(*out);
    *out = NULL;
  }
  return st;
}

/* Passes the complete log to the callback on_log if this thread compiled, else
 * the log in the error record. The error record is restored afterwards, since
 * calls in the callback may change it. */
static void report_failure(kiln__pending *p)
{
  kiln__error_get(&p->error);
  if (p->build.log.size > 0)
    report_log(p, p->build.log.data, p->build.log.size);
  else
    report_log(p, p->error.log, strlen(p->error.log));
  kiln__error_set(&p->error);
}

/* Opens the image or reports the failure, and frees the pending image. */
static kiln_status conclude(kiln__pending *p, kiln_status st, kiln_image **out)
{
  if (st == KILN_OK)
    st = open_entry(p, out);
  else
    report_failure(p);
  pending_free(p);
  return st;
}

kiln_status kiln__image_make(kiln_image **out, kiln_runtime *rt,
                             const kiln_program_desc *desc,
                             const kiln_traits *traits,
                             const kiln__image_request *req)
{
  kiln__pending *p;
  kiln_status st;

  *out = NULL;
  st = prepare(&p, rt, desc, traits, req);
  return st != KILN_OK ? st : conclude(p, produce(p), out);
}

kiln_status kiln__image_lookup(kiln_image **out, kiln_runtime *rt,
                               const kiln_program_desc *desc,
                               const kiln_traits *traits,
                               const kiln__image_request *req)
{
  kiln__pending *p;
  kiln_status st;

  *out = NULL;
  st = prepare(&p, rt, desc, traits, req);
  if (st != KILN_OK)
    return st;
  st = look_up(p);
  if (st == KILN_OK)
    return conclude(p, st, out);
  pending_free(p);
  return st;
}

kiln_status kiln__request_key(kiln__key *key, kiln_image **cached,
                              kiln_runtime *rt, const kiln_program_desc *desc,
                              const kiln_traits *traits,
                              const kiln__image_request *req)
{
  kiln_program_desc quiet = *desc;
  kiln__pending *p;
  kiln_status st;

  *cached = NULL;
  quiet.on_log = NULL;
  quiet.fail_on_spill = false;
  st = prepare(&p, rt, &quiet, traits, req);
  if (st != KILN_OK)
    return st;
  if (look_up(p) == KILN_OK) {
    st = kiln__image_open(cached, &rt->alloc, p->entry, p->origin);
    p->entry = NULL;
  }
  kiln__key_free(key);
  *key = p->key; /* the caller owns the key from this point on */
  kiln__key_init(&p->key, &rt->alloc);
  pending_free(p);
  return st;
}

kiln_status kiln__image_start(kiln__pending **out, kiln_runtime *rt,
                              const kiln_program_desc *desc,
                              const kiln_traits *traits,
                              const kiln__image_request *req)
{
  kiln__pending *p;
  kiln_status st = prepare(&p, rt, desc, traits, req);

  *out = NULL;
  if (st != KILN_OK)
    return st;
  st = look_up(p);
  if (st == KILN_ENOTFOUND && p->req.rung == KILN_RUNG_PACK)
    st = fail_pack(p);
  if (st == KILN_OK) {
    p->done = true;
  } else if (st == KILN_ENOTFOUND && p->req.rung != KILN_RUNG_PACK) {
    p->queued = true;
    p->task.run = produce_task;
    kiln__pool_add(rt->pool, &p->task);
  } else {
    pending_free(p);
    return st;
  }
  *out = p;
  return KILN_OK;
}

bool kiln__image_ready(const kiln__pending *pending)
{
  kiln__pending *p = (kiln__pending *)(uintptr_t)pending;
  bool done;

  pthread_mutex_lock(&p->lock);
  done = p->done;
  pthread_mutex_unlock(&p->lock);
  return done;
}

kiln_status kiln__image_finish(kiln__pending *p, kiln_image **out)
{
  kiln_status st;

  *out = NULL;
  if (p == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "there is no pending image");
  if (!p->queued)
    return conclude(p, KILN_OK, out);
  /* The task has not started because every compile thread is busy. Waiting
   * could deadlock if this thread is a compile thread itself. The program is
   * therefore compiled in this thread. */
  if (kiln__pool_remove(p->rt->pool, &p->task))
    return conclude(p, produce(p), out);
  pthread_mutex_lock(&p->lock);
  while (!p->done)
    pthread_cond_wait(&p->ended, &p->lock);
  st = p->status;
  pthread_mutex_unlock(&p->lock);
  if (st != KILN_OK)
    kiln__error_set(&p->error);
  return conclude(p, st, out);
}

static kiln_status compile(kiln_image **out, kiln_runtime *rt,
                           const kiln_program_desc *desc,
                           const kiln_target *target, bool object)
{
  kiln__image_request req;
  kiln_traits traits;
  kiln_status st;

  if (out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out is NULL");
  *out = NULL;
  st = kiln__compile_request(&req, &traits, rt, desc, target);
  req.object = object;
  return st != KILN_OK ? st : kiln__image_make(out, rt, desc, &traits, &req);
}

kiln_status kiln_compile(kiln_image **out, kiln_runtime *rt,
                         const kiln_program_desc *desc,
                         const kiln_target *target)
{
  return compile(out, rt, desc, target, false);
}

kiln_status kiln__compile_object(kiln_image **out, kiln_runtime *rt,
                                 const kiln_program_desc *desc,
                                 const kiln_target *target)
{
  return compile(out, rt, desc, target, true);
}

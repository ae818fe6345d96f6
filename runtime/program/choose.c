/* choose.c -- chooses the NVRTC library and the rung of the compatibility
 * ladder (the way to get code for the GPU) for a request.
 *
 * A machine may have several NVRTC libraries with different targets and PTX
 * versions. The ladder (arch/ladder.c) evaluates each library. The library with
 * the best rung wins, and among equal rungs the newest NVRTC. The library
 * descriptions come from the memo of earlier searches, so no library is loaded.
 * nvJitLink is searched for only if no better rung remains, since finding
 * nvJitLink loads it. */
#include "image.h"

#include <string.h>

enum { MAX_PACK_TARGETS = 64 };

/* The NVRTC libraries and packs that are available for a request. */
typedef struct offer {
  kiln_runtime *rt;
  const kiln__nvrtc_id *ids;
  size_t n;
  /* status of the NVRTC search: KILN_OK or KILN_ENONVRTC */
  kiln_status list_status;
  kiln_target pack[MAX_PACK_TARGETS];
  size_t n_pack;
} offer;

static kiln_status pack_targets(offer *o, const kiln_program_desc *desc)
{
  const kiln_allocator *a = &o->rt->alloc;
  const bool packs = kiln__cache_has_packs(o->rt->cache);
  kiln_status st = KILN_OK;
  kiln__plan plan;
  kiln__key key;

  kiln__key_init(&key, a);
  KILN_TRY(kiln__plan_check(&plan, a, desc));
  if (!packs)
    goto done;
  KILN_TRY(kiln__plan_includes(&plan));
  if (desc->no_cache || desc->refresh || plan.untracked != NULL)
    goto done;
  kiln__plan_key(&plan, &key);
  KILN_TRY(kiln__key_seal(&key));
  o->n_pack =
      kiln__cache_pack_targets(o->rt->cache, &key, o->pack, MAX_PACK_TARGETS);
  if (o->n_pack > MAX_PACK_TARGETS)
    o->n_pack = MAX_PACK_TARGETS;

done:
  kiln__key_free(&key);
  kiln__plan_free(&plan);
  return st;
}

static kiln_status make_offer(offer *o, kiln_runtime *rt,
                              const kiln_program_desc *desc)
{
  kiln_status st;
  /* NVRTC was removed; the cache may still hold images that it made */
  bool gone;

  *o = (offer){.rt = rt};
  st = pack_targets(o, desc);
  if (st != KILN_OK)
    return st;
  st = kiln__nvrtc_known(rt->nvrtc, &o->ids, &o->n, &gone);
  if (st != KILN_OK)
    o->n = 0;
  o->list_status = st;
  return st == KILN_ENONVRTC ? KILN_OK : st;
}

static kiln_status ask(const offer *o, const kiln__nvrtc_id *id,
                       kiln_ladder_query *query, kiln_ladder_result *out)
{
  query->nvrtc_version = id == NULL ? 0 : id->info.version;
  query->archs = id == NULL ? NULL : id->info.archs;
  query->n_archs = id == NULL ? 0 : id->info.n_archs;
  query->pack = o->pack;
  query->n_pack = o->n_pack;
  return kiln_ladder(query, out);
}

/* Returns the best rung of the compatibility ladder over all NVRTC libraries.
 * The list begins with the newest library, so the newest library wins a tie. */
static kiln_status best_rung(const offer *o, kiln_ladder_query *query,
                             kiln_ladder_result *best, size_t *index)
{
  kiln_ladder_result other;
  kiln_status st;

  *index = 0;
  st = ask(o, o->n == 0 ? NULL : &o->ids[0], query, best);
  for (size_t i = 1; i < o->n && st == KILN_OK; i++) {
    st = ask(o, &o->ids[i], query, &other);
    if (st == KILN_OK && other.rung < best->rung) {
      *best = other;
      *index = i;
    }
  }
  return st;
}

kiln_status kiln__image_choose(kiln__image_request *req,
                               kiln_ladder_result *ladder, kiln_runtime *rt,
                               const kiln_program_desc *desc, int cc,
                               bool tegra, const kiln__driver *driver)
{
  kiln_ladder_query query = {.cc = cc,
                             .tegra = tegra,
                             .ptx_only = driver->ptx_only,
                             .suffix = desc->suffix,
                             .driver_version = driver->version};
  kiln_status st = KILN_OK;
  size_t index;
  offer o;

  *req = (kiln__image_request){.rung = KILN_RUNG_REFUSE};
  KILN_TRY(make_offer(&o, rt, desc));
  KILN_TRY(best_rung(&o, &query, ladder, &index));
  if (ladder->rung > KILN_RUNG_PTX && o.n > 0) {
    /* nvJitLink is searched for only at this point, since finding it loads it.
     */
    kiln__nvjitlink *link;

    KILN_TRY(kiln__runtime_link(rt, &link));
    if (link != NULL) {
      query.nvjitlink_version = kiln__nvjitlink_version(link);
      KILN_TRY(best_rung(&o, &query, ladder, &index));
    }
  }
  req->rung = ladder->rung;
  req->target = ladder->target;
  req->cc = cc;
  req->nvrtc = index;

done:
  return st;
}

kiln_status kiln__image_refuse(kiln_runtime *rt,
                               const kiln_ladder_result *ladder)
{
  const kiln__nvrtc_id *ids;
  size_t n;
  const kiln_status st = kiln__nvrtc_list(rt->nvrtc, &ids, &n);

  if (st != KILN_OK)
    return st;
  return kiln__fail(
      KILN_EUNSUPPORTED, ladder->hint,
      "no code can be made for this GPU: exact: %s; lower: %s; "
      "ptx: %s; link: %s; pack: %s",
      ladder->reason[KILN_RUNG_EXACT], ladder->reason[KILN_RUNG_LOWER],
      ladder->reason[KILN_RUNG_PTX], ladder->reason[KILN_RUNG_LINK],
      ladder->reason[KILN_RUNG_PACK]);
}

/* ---- Compiling for a target, without a GPU ------------------------------ */

bool kiln__nvrtc_makes(const kiln__nvrtc_id *id, const kiln_target *target)
{
  const kiln_ladder_query query = {.cc = target->cc,
                                   .suffix = target->suffix,
                                   .nvrtc_version = id->info.version,
                                   .archs = id->info.archs,
                                   .n_archs = id->info.n_archs};
  kiln_ladder_result result;

  return kiln_ladder(&query, &result) == KILN_OK &&
         result.rung == KILN_RUNG_EXACT;
}

/* Uses an image from a pack if no NVRTC can compile for the target. */
static bool take_from_pack(const offer *o, kiln__image_request *req)
{
  const kiln_ladder_query query = {.cc = req->target.cc,
                                   .suffix = req->target.suffix,
                                   .pack = o->pack,
                                   .n_pack = o->n_pack};
  kiln_ladder_result result;

  if (o->n_pack == 0 || kiln_ladder(&query, &result) != KILN_OK ||
      result.rung != KILN_RUNG_PACK)
    return false;
  req->rung = KILN_RUNG_PACK;
  req->target = result.target;
  return true;
}

/* Writes the hint, which names another NVRTC version, or another target whose
 * code runs on GPUs of this capability. */
static void advise_target(const offer *o, const kiln_target *target,
                          char hint[KILN_ERROR_HINT_SIZE])
{
  kiln_ladder_query query = {.cc = target->cc, .suffix = target->suffix};
  kiln_ladder_result result;
  char text[24];

  kiln__copy_text(hint, KILN_ERROR_HINT_SIZE,
                  "`kiln doctor --what-if` names the NVRTC that does");
  if (ask(o, &o->ids[0], &query, &result) != KILN_OK)
    return;
  if (result.rung == KILN_RUNG_REFUSE)
    kiln__copy_text(hint, KILN_ERROR_HINT_SIZE, result.hint);
  else
    kiln__format(hint, KILN_ERROR_HINT_SIZE,
                 "compile for %s, which a GPU of %d.%d runs",
                 kiln_target_text(&result.target, text), target->cc / 10,
                 target->cc % 10);
}

static kiln_status refuse_target(const offer *o, const kiln_target *target)
{
  char text[24], list[256] = "", hint[KILN_ERROR_HINT_SIZE];
  size_t used = 0;

  if (o->n == 0)
    /* the error record of the NVRTC search lists the paths that were tried */
    return o->list_status;
  advise_target(o, target, hint);
  for (size_t i = 0; i < o->n && used + 16 < sizeof list; i++) {
    kiln__format(list + used, sizeof list - used, "%s%d.%d", i > 0 ? ", " : "",
                 o->ids[i].info.version / 1000,
                 o->ids[i].info.version % 1000 / 10);
    used = strlen(list);
  }
  return kiln__fail(KILN_EUNSUPPORTED, hint,
                    "none of the NVRTC found (%s) makes code for %s", list,
                    kiln_target_text(target, text));
}

static kiln_status check_target(const kiln_target *target)
{
  if (target->cc < 10 || target->cc > 999)
    return kiln__fail(KILN_EINVAL, "write 9.0 as 90",
                      "the target's compute capability is %d", target->cc);
  if (target->suffix != 0 && target->suffix != 'a' && target->suffix != 'f')
    return kiln__fail(KILN_EINVAL, "use 0, 'a' or 'f'",
                      "the target's suffix is none");
  return KILN_OK;
}

kiln_status kiln__compile_request(kiln__image_request *req, kiln_traits *traits,
                                  kiln_runtime *rt,
                                  const kiln_program_desc *desc,
                                  const kiln_target *target)
{
  kiln_status st = KILN_OK;
  kiln_target wanted;
  offer o;

  if (rt == NULL || desc == NULL || target == NULL) {
    kiln__fail(KILN_EINVAL, NULL, "rt, desc or target is NULL");
    return KILN_EINVAL;
  }
  KILN_TRY(check_target(target));
  wanted = *target;
  if (wanted.suffix == 0)
    wanted.suffix = desc->suffix;
  *req = (kiln__image_request){.target = wanted, .cc = wanted.cc};
  req->rung = wanted.ptx ? KILN_RUNG_PTX : KILN_RUNG_EXACT;
  KILN_TRY(kiln_arch_traits(wanted.cc, traits));
  KILN_TRY(make_offer(&o, rt, desc));
  while (req->nvrtc < o.n && !kiln__nvrtc_makes(&o.ids[req->nvrtc], &wanted))
    req->nvrtc++;
  if (req->nvrtc < o.n)
    return KILN_OK;
  if (!take_from_pack(&o, req))
    return refuse_target(&o, &wanted);

done:
  return st;
}

/* linked.c -- makes an image by linking two objects.
 *
 * Problem: a kernel that calls a user's expression takes 50 to 500 ms to
 * compile, and each expression is new to the cache. The kernel itself is the
 * same for all of them.
 *
 * Idea: the kernel (the body) is compiled once to relocatable code, in which
 * the functions of the expressions are undefined. The body is a program like
 * any other, so the cache and the packs hold it. For a new expression, only its
 * functions (the texts) are compiled, and a linker joins both in less than a
 * millisecond. A missing body compiles at the same time as the texts.
 *
 * Invariant: the linked image has the key of the whole program, plus a local
 * field "linked". It is an ordinary entry of the cache, so later processes find
 * it without a link. If anything fails (no linker, a pack's body of another
 * compiler, an expression that needs the kernel's declarations), the whole
 * program is compiled instead. The caller ensures that both forms have the same
 * results.
 *
 * Cost: the compile of the texts, about 24 ms, and the link, 0.2 ms. */
#include "link.h"

#include <string.h>

/* The requests for the two objects of an image. */
typedef struct pair {
  kiln_program_desc desc[2];
  kiln__pending *pending[2];
  kiln_image *image[2];
  kiln__image_request req;
} pair;

static kiln_status start(pair *p, const kiln__build *b)
{
  const kiln__linked *linked = b->req->linked;
  kiln_status st = KILN_OK;

  p->req = *b->req;
  p->req.linked = NULL;
  p->req.object = true;
  p->desc[0] = *linked->body;
  p->desc[1] = *linked->texts;
  for (size_t i = 0; i < 2; i++) {
    p->desc[i].refresh = b->plan->desc->refresh;
    p->desc[i].no_cache = b->plan->desc->no_cache;
    KILN_TRY(kiln__image_start(&p->pending[i], b->rt, &p->desc[i], b->traits,
                               &p->req));
  }

done:
  return st;
}

/* Waits for both objects, even after a failure, and returns the first error. */
static kiln_status finish(pair *p, kiln_status st)
{
  kiln_error record;

  if (st != KILN_OK)
    kiln__error_get(&record);
  for (size_t i = 0; i < 2; i++) {
    kiln_status own;

    if (p->pending[i] == NULL)
      continue;
    own = kiln__image_finish(p->pending[i], &p->image[i]);
    if (own == KILN_OK || st != KILN_OK)
      continue;
    st = own;
    kiln__error_get(&record);
  }
  if (st != KILN_OK)
    kiln__error_set(&record);
  return st;
}

/* Replaces an object of another compiler, which only a pack can hold. Linkers
 * accept such code only sometimes, and its results need not be the same. */
static kiln_status check_compiler(pair *p, size_t i, const kiln__build *b,
                                  int wanted)
{
  const int found = p->image[i]->nvrtc;
  kiln_status st;

  if (found == wanted)
    return KILN_OK;
  kiln__logf(&b->rt->log, KILN_LOG_WARNING,
             "a pack's %s is not used: NVRTC %d.%d made it, and this is NVRTC "
             "%d.%d; make the pack again",
             p->desc[i].builtin != NULL ? p->desc[i].builtin : p->desc[i].name,
             found / 1000, found % 1000 / 10, wanted / 1000,
             wanted % 1000 / 10);
  kiln__cache_reject(b->rt->cache, p->image[i]->entry);
  kiln_image_free(p->image[i]);
  p->image[i] = NULL;
  st = kiln__image_make(&p->image[i], b->rt, &p->desc[i], b->traits, &p->req);
  if (st == KILN_OK && p->image[i]->nvrtc != wanted)
    st = kiln__fail(KILN_EUNSUPPORTED, "make the packs again",
                    "packs hold objects of another NVRTC");
  return st;
}

static kiln_status check_compilers(pair *p, const kiln__build *b)
{
  const kiln__nvrtc_id *ids;
  kiln_status st = KILN_OK;
  bool gone;
  size_t n;

  KILN_TRY(kiln__nvrtc_known(b->rt->nvrtc, &ids, &n, &gone));
  for (size_t i = 0; i < 2; i++)
    KILN_TRY(check_compiler(p, i, b, ids[p->req.nvrtc].info.version));

done:
  return st;
}

/* Links the machine code of both objects. */
static kiln_status link_code(const pair *p, const kiln__build *b,
                             kiln__buf *code)
{
  const kiln__linked *linked = b->req->linked;
  kiln__object objects[2] = {{.name = "body.cubin"}, {.name = "texts.cubin"}};
  kiln_status st;

  for (size_t i = 0; i < 2; i++)
    objects[i].data = kiln_image_cubin(p->image[i], &objects[i].size);
  if (objects[0].data == NULL || objects[1].data == NULL)
    return kiln__fail(KILN_EUNSUPPORTED, NULL, "%s has no object to link",
                      b->plan->name);
  st = linked->link(linked->user, objects, &b->req->target, p->image[1]->nvrtc,
                    code);
  return st == KILN_OK ? kiln__buf_status(code, "linked code") : st;
}

static kiln_status join(const pair *p, kiln__buf *ptx)
{
  const char *const body = kiln_image_ptx(p->image[0], NULL);
  const char *const texts = kiln_image_ptx(p->image[1], NULL);

  if (body == NULL || texts == NULL)
    return kiln__fail(KILN_EUNSUPPORTED, NULL, "an object has no PTX");
  return kiln__join_ptx(ptx, body, texts);
}

static kiln__slice slice(const kiln__buf *b)
{
  return (kiln__slice){b->data == NULL ? "" : b->data, b->size};
}

static kiln_status make_entry(const pair *p, const kiln__build *b,
                              const kiln__buf *ptx, const kiln__buf *code,
                              uint64_t ns, kiln__entry **out)
{
  const kiln__entry *body = p->image[0]->entry;
  const kiln__slice sections[KILN__SECTIONS] = {
      [KILN__PTX] = slice(ptx),
      [KILN__CUBIN] = slice(code),
      [KILN__NAMES] = kiln__entry_get(body, KILN__NAMES),
      [KILN__LOG] = kiln__entry_get(body, KILN__LOG)};
  const kiln__meta meta = {.target = b->req->target,
                           .nvrtc = p->image[1]->nvrtc,
                           .microseconds = ns / 1000};

  return kiln__build_entry(b, sections, &meta, out);
}

static kiln_status make(const kiln__build *b, kiln__entry **out)
{
  const uint64_t begin = kiln__clock_ns();
  kiln_status st = KILN_OK;
  kiln__buf ptx, code;
  pair p = {0};

  kiln__buf_init(&ptx, b->plan->arena.alloc);
  kiln__buf_init(&code, b->plan->arena.alloc);
  KILN_TRY(finish(&p, start(&p, b)));
  KILN_TRY(check_compilers(&p, b));
  KILN_TRY(join(&p, &ptx));
  if (!b->req->target.ptx)
    KILN_TRY(link_code(&p, b, &code));
  KILN_TRY(make_entry(&p, b, &ptx, &code, kiln__clock_ns() - begin, out));
  kiln__logf(&b->rt->log, KILN_LOG_INFO, "linked %s (its body: %s) in %llu ms",
             b->plan->name, kiln_origin_name(p.image[0]->origin),
             (unsigned long long)((kiln__clock_ns() - begin) / 1000000));

done:
  for (size_t i = 0; i < 2; i++)
    kiln_image_free(p.image[i]);
  kiln__buf_free(&ptx);
  kiln__buf_free(&code);
  return st;
}

kiln_status kiln__linked_make(void *user, kiln__entry **out)
{
  kiln__build *b = user;
  kiln_status st;

  *out = NULL;
  st = make(b, out);
  if (st == KILN_OK || st == KILN_ENOMEM || st == KILN_ECANCELED ||
      st == KILN_ENONVRTC)
    return st;
  kiln__logf(&b->rt->log, KILN_LOG_INFO, "%s is compiled as a whole: %s",
             b->plan->name, kiln_last_error()->message);
  return kiln__build_make(b, out);
}

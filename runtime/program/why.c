/* why.c -- kiln_cache_why(): reports which key fields prevent a cache hit for a
 * program.
 *
 * The cache entry that has the most key fields in common with the wanted key is
 * called the nearest entry. Entries of the same program rank above all other
 * entries. The fields of the nearest entry are compared with the wanted key,
 * name by name. */
#include "image.h"

#include <string.h>

enum { SHOWN = 80 };

typedef struct search {
  const kiln__key *wanted;
  kiln__buf nearest; /* key text of the most similar entry so far */
  long score;
  bool any;
} search;

static bool same(const kiln__field *a, const kiln__field *b)
{
  return a->name_size == b->name_size && a->size == b->size &&
         memcmp(a->name, b->name, a->name_size) == 0 &&
         memcmp(a->value, b->value, a->size) == 0;
}

static bool same_name(const kiln__field *a, const kiln__field *b)
{
  return a->name_size == b->name_size &&
         memcmp(a->name, b->name, a->name_size) == 0;
}

static bool holds(const char *text, size_t size, const kiln__field *field)
{
  kiln__field other;

  for (size_t at = 0; kiln__key_next(text, size, &at, &other);) {
    if (same(&other, field))
      return true;
  }
  return false;
}

static bool is_field(const kiln__field *field, const char *name)
{
  return field->name_size == strlen(name) &&
         memcmp(field->name, name, field->name_size) == 0;
}

/* Returns the number of fields that two keys have in common, weighted so that
 * entries of the same program rank first. */
static long score(const kiln__key *wanted, const char *text, size_t size)
{
  kiln__field field;
  long n = 0;

  for (size_t at = 0; kiln__key_next(text, size, &at, &field);) {
    if (holds(wanted->text.data, wanted->text.size, &field))
      n += is_field(&field, "program")  ? 1000
           : is_field(&field, "source") ? 8
                                        : 1;
  }
  return n;
}

static bool consider(void *user, const char *hash, const char *text,
                     size_t size)
{
  search *s = user;
  const long points = score(s->wanted, text, size);

  (void)hash;
  if (s->any && points <= s->score)
    return true;
  s->any = true;
  s->score = points;
  kiln__buf_clear(&s->nearest);
  kiln__buf_add(&s->nearest, text, size);
  return !s->nearest.failed;
}

/* ---- Reporting ----------------------------------------------------------- */

/* Writes a key field for users: short values unchanged, long values as length
 * and hash, and headers and files with their names. */
static kiln_status show(kiln__buf *out, const kiln__field *field)
{
  const char *nul = memchr(field->value, '\0', field->size);
  const char *value = field->value;
  size_t size = field->size;
  kiln_status st = KILN_OK;
  kiln__key digest;

  kiln__buf_clear(out);
  if (nul != NULL) {
    kiln__buf_format(out, "%s: ", value);
    size -= (size_t)(nul + 1 - value);
    value = nul + 1;
  }
  if (size <= SHOWN && memchr(value, '\n', size) == NULL) {
    kiln__buf_add(out, value, size);
    return kiln__buf_status(out, "a report");
  }
  kiln__key_init(&digest, out->alloc);
  kiln__key_add(&digest, "value", value, size, false);
  KILN_TRY(kiln__key_seal(&digest));
  kiln__buf_format(out, "%zu bytes, hash %.8s", size, digest.hash);
  st = kiln__buf_status(out, "a report");

done:
  kiln__key_free(&digest);
  return st;
}

/* Finds the k-th field with this name that the key text `text` has and the key
 * text `other` does not have. */
static bool differing(const char *text, size_t size, const char *other,
                      size_t other_size, const kiln__field *name, size_t k,
                      kiln__field *out)
{
  for (size_t at = 0; kiln__key_next(text, size, &at, out);) {
    if (same_name(out, name) && !holds(other, other_size, out) && k-- == 0)
      return true;
  }
  return false;
}

typedef struct comparison {
  const char *wanted, *found;
  size_t wanted_size, found_size;
  kiln__buf a, b, name;
  kiln_why_fn report;
  void *user;
} comparison;

/* Reports all differences between two keys in the fields of one name, side by
 * side. */
static kiln_status report_name(comparison *t, const kiln__field *name)
{
  kiln_status st = KILN_OK;
  kiln__field wanted, found;

  kiln__buf_clear(&t->name);
  kiln__buf_add(&t->name, name->name, name->name_size);
  KILN_TRY(kiln__buf_status(&t->name, "a report"));
  for (size_t k = 0;; k++) {
    const bool in_wanted = differing(t->wanted, t->wanted_size, t->found,
                                     t->found_size, name, k, &wanted);
    const bool in_found = differing(t->found, t->found_size, t->wanted,
                                    t->wanted_size, name, k, &found);

    if (!in_wanted && !in_found)
      break;
    if (in_wanted)
      KILN_TRY(show(&t->a, &wanted));
    if (in_found)
      KILN_TRY(show(&t->b, &found));
    t->report(t->user, t->name.data, in_wanted ? t->a.data : "(none)",
              in_found ? t->b.data : "(none)");
  }

done:
  return st;
}

/* Returns true if this is the first field with its name in the key text. */
static bool first_of_name(const char *text, size_t end, const kiln__field *f)
{
  kiln__field other;

  for (size_t at = 0; kiln__key_next(text, end, &at, &other);) {
    if (same_name(&other, f))
      return other.name == f->name;
  }
  return true;
}

static bool has_name(const char *text, size_t size, const kiln__field *f)
{
  kiln__field other;

  for (size_t at = 0; kiln__key_next(text, size, &at, &other);) {
    if (same_name(&other, f))
      return true;
  }
  return false;
}

static kiln_status report_all(comparison *t)
{
  kiln_status st = KILN_OK;
  kiln__field f;

  for (size_t at = 0; kiln__key_next(t->wanted, t->wanted_size, &at, &f);) {
    if (first_of_name(t->wanted, t->wanted_size, &f))
      KILN_TRY(report_name(t, &f));
  }
  for (size_t at = 0; kiln__key_next(t->found, t->found_size, &at, &f);) {
    if (first_of_name(t->found, t->found_size, &f) &&
        !has_name(t->wanted, t->wanted_size, &f))
      KILN_TRY(report_name(t, &f));
  }

done:
  return st;
}

static kiln_status report_nearest(const kiln__key *key,
                                  const kiln__buf *nearest, kiln_why_fn report,
                                  void *user)
{
  const kiln_allocator *a = nearest->alloc;
  comparison t = {.wanted = key->text.data,
                  .found = nearest->data,
                  .wanted_size = key->text.size,
                  .found_size = nearest->size,
                  .report = report,
                  .user = user};
  kiln_status st;

  kiln__buf_init(&t.a, a);
  kiln__buf_init(&t.b, a);
  kiln__buf_init(&t.name, a);
  st = report_all(&t);
  kiln__buf_free(&t.a);
  kiln__buf_free(&t.b);
  kiln__buf_free(&t.name);
  return st;
}

kiln_status kiln_cache_why(kiln_runtime *rt, const kiln_program_desc *desc,
                           const kiln_target *target, bool *hit,
                           kiln_why_fn report, void *user)
{
  kiln__image_request req;
  search s = {.score = -1};
  kiln_status st = KILN_OK;
  kiln_image *image = NULL;
  kiln_traits traits;
  kiln__key key;

  if (hit == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "hit is NULL");
  *hit = false;
  if (rt == NULL || report == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "rt or report is NULL");
  kiln__key_init(&key, &rt->alloc);
  kiln__buf_init(&s.nearest, &rt->alloc);
  KILN_TRY(kiln__compile_request(&req, &traits, rt, desc, target));
  KILN_TRY(kiln__request_key(&key, &image, rt, desc, &traits, &req));
  *hit = image != NULL;
  if (*hit)
    goto done;
  s.wanted = &key;
  KILN_TRY(kiln__cache_keys(rt->cache, consider, &s));
  KILN_TRY(kiln__buf_status(&s.nearest, "a key"));
  if (!s.any)
    KILN_TRY(kiln__fail(KILN_ENOTFOUND, "compile something first",
                        "the cache is empty"));
  st = report_nearest(&key, &s.nearest, report, user);

done:
  kiln_image_free(image);
  kiln__buf_free(&s.nearest);
  kiln__key_free(&key);
  return st;
}

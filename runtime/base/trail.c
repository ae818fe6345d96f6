/* trail.c -- the trail is the list of paths that the search for libraries
 * examined, for error messages and `kiln doctor`. Steps are only ever appended,
 * so a reader takes the lock only to read each link of the list. */
#include "os.h"

#include <string.h>

typedef struct step {
  struct step *next;
  /* the step as the public API shows it; its strings point into `text` */
  kiln_trail_step view;
  char text[];
} step;

struct kiln__trail {
  const kiln_allocator *alloc;
  kiln__fork_mutex lock;
  step *first, *last;
};

kiln__trail *kiln__trail_create(const kiln_allocator *a)
{
  kiln__trail *trail = kiln__calloc(a, 1, sizeof *trail);

  if (trail == NULL)
    return NULL;
  trail->alloc = a;
  kiln__fork_mutex_init(&trail->lock);
  return trail;
}

void kiln__trail_free(kiln__trail *trail)
{
  step *s, *next;

  if (trail == NULL)
    return;
  for (s = trail->first; s != NULL; s = next) {
    next = s->next;
    kiln__free(trail->alloc, s);
  }
  kiln__fork_mutex_destroy(&trail->lock);
  kiln__free(trail->alloc, trail);
}

static const char *append(char **to, const char *text)
{
  const size_t n = strlen(text) + 1;
  char *const start = *to;

  memcpy(start, text, n);
  *to += n;
  return start;
}

void kiln__trail_add(kiln__trail *trail, const char *what, const char *how,
                     const char *where, const char *reason)
{
  const char *why = reason == NULL ? "" : reason;
  kiln_error record;
  char *to;
  step *s;

  if (trail == NULL)
    return;
  s = kiln__alloc(trail->alloc, sizeof *s + strlen(what) + strlen(how) +
                                    strlen(where) + strlen(why) + 4);
  if (s == NULL)
    return;
  to = s->text;
  s->next = NULL;
  s->view.what = append(&to, what);
  s->view.how = append(&to, how);
  s->view.where = append(&to, where);
  s->view.reason = append(&to, why);
  s->view.found = reason == NULL;
  kiln__error_get(&record);
  if (kiln__fork_mutex_lock(&trail->lock) != KILN_OK) {
    kiln__error_set(&record);
    kiln__free(trail->alloc, s);
    return;
  }
  if (trail->last == NULL)
    trail->first = s;
  else
    trail->last->next = s;
  trail->last = s;
  kiln__fork_mutex_unlock(&trail->lock);
}

/* Returns the step that a link of the list points to, or NULL if the lock
 * cannot be acquired after a fork. */
static step *read_link(kiln__trail *trail, step *const *link)
{
  step *s = NULL;
  kiln_error record;

  kiln__error_get(&record);
  if (kiln__fork_mutex_lock(&trail->lock) == KILN_OK) {
    s = *link;
    kiln__fork_mutex_unlock(&trail->lock);
  } else {
    kiln__error_set(&record);
  }
  return s;
}

void kiln__trail_each(kiln__trail *trail, kiln_trail_fn fn, void *user)
{
  const step *s;

  if (trail == NULL)
    return;
  for (s = read_link(trail, &trail->first); s != NULL;
       s = read_link(trail, &s->next))
    fn(user, &s->view);
}

typedef struct text_sink {
  const char *what;
  char *buf;
  size_t size, used;
} text_sink;

static void add_step(void *user, const kiln_trail_step *s)
{
  text_sink *sink = user;

  if (strcmp(s->what, sink->what) != 0 || sink->used + 1 >= sink->size)
    return;
  kiln__format(sink->buf + sink->used, sink->size - sink->used, "%s%s (%s)",
               sink->used == 0 ? "" : ", ", s->where,
               s->found ? "found" : s->reason);
  sink->used += strlen(sink->buf + sink->used);
}

void kiln__trail_text(kiln__trail *trail, const char *what, char *buf,
                      size_t size)
{
  text_sink sink = {.what = what, .buf = buf, .size = size};

  buf[0] = '\0';
  kiln__trail_each(trail, add_step, &sink);
}

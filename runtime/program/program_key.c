/* program_key.c -- writes everything that an image depends on as fields of its
 * cache key.
 *
 * Portable fields describe the program. Local fields describe the compiler and
 * the target. Packs compare only the portable fields. kiln_cache_item reads the
 * fields "program" and "target" by name. The field "format" changes whenever
 * the meaning of an entry's sections changes. */
#include "plan.h"

#include <string.h>

enum { FORMAT = 1 };

static void add_text(kiln__key *key, const char *field, const char *value,
                     bool portable)
{
  kiln__key_add(key, field, value, strlen(value), portable);
}

static void add_number(kiln__key *key, const char *field, long value,
                       bool portable)
{
  char text[32];

  kiln__format(text, sizeof text, "%ld", value);
  add_text(key, field, text, portable);
}

static void add_list(kiln__key *key, const char *field, const kiln__list *list)
{
  for (size_t i = 0; i < list->n; i++)
    add_text(key, field, list->items[i], true);
}

/* Adds a field for a header or file; its value is a name, a NUL byte and the
 * content. */
static void add_pair(kiln__key *key, const kiln_allocator *a, const char *field,
                     const char *name, const char *text, bool portable)
{
  kiln__buf pair;

  kiln__buf_init(&pair, a);
  kiln__buf_add(&pair, name, strlen(name) + 1);
  kiln__buf_text(&pair, text);
  if (pair.failed)
    key->text.failed = true; /* kiln__key_seal() will report the failure */
  else
    kiln__key_add(key, field, pair.data, pair.size, portable);
  kiln__buf_free(&pair);
}

void kiln__plan_key(const kiln__plan *plan, kiln__key *key)
{
  const kiln_program_desc *desc = plan->desc;
  const kiln_allocator *a = plan->arena.alloc;
  const bool debug = desc->debug || plan->has_debug;
  const bool lineinfo = desc->lineinfo || plan->has_lineinfo;

  add_text(key, "program", plan->name, true);
  add_number(key, "first_line", desc->first_line == 0 ? 1 : desc->first_line,
             true);
  kiln__key_add(key, "source", plan->source, plan->source_size, true);
  for (size_t i = 0; i < plan->header_names.n; i++)
    add_pair(key, a, "header", plan->header_names.items[i],
             plan->header_texts.items[i], true);
  for (size_t i = 0; i + 1 < plan->files.n; i += 2)
    add_pair(key, a, "file", plan->files.items[i], plan->files.items[i + 1],
             true);
  /* with debug information the image contains file paths */
  if (debug || lineinfo)
    add_list(key, "folder", &plan->folders);
  add_list(key, "define", &plan->defines);
  add_list(key, "trait", &plan->traits);
  add_list(key, "name", &plan->names);
  add_list(key, "option", &plan->canonical);
  add_number(key, "debug", debug, true);
  add_number(key, "lineinfo", lineinfo, true);
  add_number(key, "fast_math", desc->fast_math || plan->has_fast_math, true);
  add_number(key, "max_registers", desc->max_registers, true);
  /* Each of the following fields is added only if it is set, so that the keys
   * of older packs remain valid. */
  if (desc->fast_compile)
    add_number(key, "fast_compile", 1, true);
  if (desc->minimal)
    add_number(key, "minimal", 1, true);
}

void kiln__local_key(const kiln__plan *plan, kiln__key *key,
                     const kiln__nvrtc_id *nvrtc, const kiln_traits *traits,
                     const kiln__image_request *req, int link_version)
{
  kiln__macro macros[KILN__MACROS];
  char text[96], target[24];

  add_number(key, "format", FORMAT, false);
  add_text(key, "kiln", KILN_VERSION_TEXT, false);
  if (nvrtc == NULL)
    kiln__format(text, sizeof text, "none");
  else
    kiln__format(text, sizeof text, "%d.%d %s", nvrtc->info.version / 1000,
                 nvrtc->info.version % 1000 / 10, nvrtc->build);
  add_text(key, "nvrtc", text, false);
  for (size_t i = 0; i + 1 < plan->compiler_files.n; i += 2)
    add_pair(key, plan->arena.alloc, "compiler file",
             plan->compiler_files.items[i], plan->compiler_files.items[i + 1],
             false);
  add_text(key, "target", kiln_target_text(&req->target, target), false);
  kiln__macros(macros, traits, &req->target);
  for (size_t i = 0; i < KILN__MACROS; i++)
    add_number(key, macros[i].name, macros[i].value, false);
  if (req->rung == KILN_RUNG_LINK) {
    kiln__format(text, sizeof text, "nvJitLink %d for %d", link_version,
                 req->cc);
    add_text(key, "link", text, false);
  }
  /* This field is local, since a pack may serve either form. */
  if (req->linked != NULL)
    add_number(key, "linked", 1, false);
}

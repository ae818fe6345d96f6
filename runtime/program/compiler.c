/* compiler.c -- runs NVRTC once, from the source text to PTX, machine code,
 * lowered names and log.
 *
 * NVRTC runs on the calling thread and needs about 128 KiB of its stack. Kiln
 * adds its own options, such as C++17 and the assembler's report. If this NVRTC
 * refuses such an option, the option is dropped and NVRTC runs again. The
 * caller's options are never dropped. */
#include "compiler.h"

#include <locale.h>
#include <string.h>

enum {
  NO_CACHE_SINCE = 12090,
  QUICK_SINCE = 12090,
  KEEPS_LOCALE_SINCE = 12000,
  CXX17 = 1 << 0,
  RESOURCES = 1 << 1,
  NO_CACHE = 1 << 2,
  FAST_COMPILE = 1 << 3,
  MINIMAL = 1 << 4
};

/* The results of one run of NVRTC. */
typedef struct output {
  kiln__buf raw, ptx, cubin, names;
  uint64_t ns;
} output;

static void output_init(output *o, const kiln_allocator *a)
{
  kiln__buf_init(&o->raw, a);
  kiln__buf_init(&o->ptx, a);
  kiln__buf_init(&o->cubin, a);
  kiln__buf_init(&o->names, a);
  o->ns = 0;
}

static void output_free(output *o)
{
  kiln__buf_free(&o->raw);
  kiln__buf_free(&o->ptx);
  kiln__buf_free(&o->cubin);
  kiln__buf_free(&o->names);
}

static bool canceled(const kiln__build *b)
{
  return b->req->cancel != NULL &&
         atomic_load_explicit(b->req->cancel, memory_order_relaxed);
}

static kiln_status fail_canceled(const kiln__build *b)
{
  return kiln__fail(KILN_ECANCELED, NULL, "compiling %s was canceled",
                    b->plan->name);
}

/* Callback that NVRTC calls from time to time. A result other than 0 stops the
 * compile. */
static int stop_compile(void *user, void *unused)
{
  (void)unused;
  return canceled(user);
}

/* ---- Options ------------------------------------------------------------- */

static void add_option(kiln__arena *arena, kiln__list *list, const char *text)
{
  kiln__list_add(arena, list, kiln__arena_text(arena, text));
}

static bool overridden(const kiln__plan *plan, const char *name)
{
  const size_t n = strlen(name);

  for (size_t i = 0; i < plan->traits.n; i++) {
    if (strncmp(plan->traits.items[i], name, n) == 0 &&
        plan->traits.items[i][n] == '=')
      return true;
  }
  return false;
}

static void add_define(kiln__arena *arena, kiln__list *list, const char *text)
{
  kiln__list_add(arena, list, kiln__arena_join(arena, "-D", text, NULL));
}

static void add_defines(const kiln__build *b, kiln__arena *arena,
                        kiln__list *list)
{
  kiln__macro macros[KILN__MACROS];
  char text[64];

  kiln__macros(macros, b->traits, &b->req->target);
  for (size_t i = 0; i < KILN__MACROS; i++) {
    if (overridden(b->plan, macros[i].name))
      continue;
    kiln__format(text, sizeof text, "%s=%ld", macros[i].name, macros[i].value);
    add_define(arena, list, text);
  }
  for (size_t i = 0; i < b->plan->traits.n; i++)
    add_define(arena, list, b->plan->traits.items[i]);
  for (size_t i = 0; i < b->plan->defines.n; i++)
    add_define(arena, list, b->plan->defines.items[i]);
}

/* Makes the list of compiler options. An option that occurs twice is passed
 * once, since NVRTC 11 refuses repeated flags. `extras` are the options that
 * Kiln adds itself. */
static void make_options(const kiln__build *b, kiln__arena *arena,
                         kiln__list *list, unsigned extras)
{
  const kiln_program_desc *desc = b->plan->desc;
  const kiln__plan *plan = b->plan;
  char target[24], text[64];

  kiln__format(text, sizeof text, "--gpu-architecture=%s",
               kiln_target_text(&b->req->target, target));
  add_option(arena, list, text);
  if ((extras & CXX17) != 0 && !plan->has_std)
    add_option(arena, list, "--std=c++17");
  if ((extras & RESOURCES) != 0)
    add_option(arena, list, "--ptxas-options=-v");
  if ((extras & NO_CACHE) != 0)
    add_option(arena, list, "--no-cache");
  if ((extras & FAST_COMPILE) != 0)
    add_option(arena, list, "--Ofast-compile=min");
  if ((extras & MINIMAL) != 0)
    add_option(arena, list, "--minimal");
  if (b->req->object)
    add_option(arena, list, "--relocatable-device-code=true");
  if (desc->debug && !plan->has_debug)
    add_option(arena, list, "--device-debug");
  if (desc->lineinfo && !plan->has_lineinfo && !desc->debug && !plan->has_debug)
    add_option(arena, list, "--generate-line-info");
  if (desc->fast_math && !plan->has_fast_math)
    add_option(arena, list, "--use_fast_math");
  if (desc->max_registers > 0) {
    kiln__format(text, sizeof text, "--maxrregcount=%d", desc->max_registers);
    add_option(arena, list, text);
  }
  add_defines(b, arena, list);
  for (size_t i = 0; i < plan->words.n; i++)
    kiln__list_add(arena, list, plan->words.items[i]);
}

/* ---- The run ------------------------------------------------------------- */

/* Returns the source text. If the source does not begin at line 1, a #line
 * directive precedes it. */
static const char *source_text(const kiln__build *b, kiln__arena *arena)
{
  const kiln__plan *plan = b->plan;
  char head[32];
  size_t n;
  char *text;

  if (plan->desc->first_line <= 1)
    return plan->source;
  kiln__format(head, sizeof head, "#line %d\n", plan->desc->first_line);
  n = strlen(head);
  text = kiln__arena_alloc(arena, n + plan->source_size + 1);
  if (text != NULL) {
    memcpy(text, head, n);
    memcpy(text + n, plan->source, plan->source_size);
  }
  return text;
}

typedef nvrtcResult (*size_fn)(nvrtcProgram program, size_t *size);
typedef nvrtcResult (*text_fn)(nvrtcProgram program, char *text);

static nvrtcResult fetch(kiln__buf *out, nvrtcProgram program, size_fn get_size,
                         text_fn get)
{
  size_t size = 0;
  nvrtcResult rc = get_size(program, &size);

  if (rc != NVRTC_SUCCESS || size == 0)
    return rc;
  if (!kiln__buf_reserve(out, size))
    return NVRTC_ERROR_OUT_OF_MEMORY;
  rc = get(program, out->data);
  if (rc == NVRTC_SUCCESS) {
    out->size = size;
    out->data[size] = '\0';
  }
  return rc;
}

/* NVRTC's sizes include the NUL byte, and sometimes NVRTC writes more than one
 * NUL byte. */
static void trim_nul(kiln__buf *b)
{
  while (b->size > 0 && b->data[b->size - 1] == '\0')
    b->size--;
}

static kiln_status open_program(const kiln__build *b, const kiln__nvrtc *nvrtc,
                                const char *source, nvrtcProgram *program)
{
  const kiln__plan *plan = b->plan;
  kiln_status st = KILN_OK;

  KILN_TRY(kiln__nvrtc_rc(nvrtc,
                          nvrtc->createProgram(program, source, plan->name,
                                               (int)plan->header_names.n,
                                               plan->header_texts.items,
                                               plan->header_names.items),
                          "nvrtcCreateProgram"));
  for (size_t i = 0; i < plan->names.n; i++)
    KILN_TRY(kiln__nvrtc_rc(
        nvrtc, nvrtc->addNameExpression(*program, plan->names.items[i]),
        "nvrtcAddNameExpression"));
  if (b->req->cancel != NULL && nvrtc->setFlowCallback != NULL)
    st = kiln__nvrtc_rc(
        nvrtc,
        nvrtc->setFlowCallback(*program, stop_compile, (void *)(uintptr_t)b),
        "nvrtcSetFlowCallback");

done:
  return st;
}

/* Writes the NAMES section of a cache entry: "expression NUL lowered NUL" for
 * each name expression. */
static kiln_status take_names(const kiln__build *b, const kiln__nvrtc *nvrtc,
                              nvrtcProgram program, kiln__buf *out)
{
  const kiln__list *names = &b->plan->names;

  for (size_t i = 0; i < names->n; i++) {
    const char *lowered = NULL;

    if (nvrtc->getLoweredName(program, names->items[i], &lowered) !=
            NVRTC_SUCCESS ||
        lowered == NULL)
      return kiln__fail(
          KILN_ENOTFOUND, "define it in the source, or correct the expression",
          "%s does not define \"%s\"", b->plan->name, names->items[i]);
    kiln__buf_add(out, names->items[i], strlen(names->items[i]) + 1);
    kiln__buf_add(out, lowered, strlen(lowered) + 1);
  }
  return kiln__buf_status(out, "lowered names");
}

static kiln_status take_images(const kiln__build *b, const kiln__nvrtc *nvrtc,
                               nvrtcProgram program, output *o)
{
  kiln_status st = KILN_OK;

  KILN_TRY(kiln__nvrtc_rc(
      nvrtc, fetch(&o->ptx, program, nvrtc->getPTXSize, nvrtc->getPTX),
      "nvrtcGetPTX"));
  trim_nul(&o->ptx);
  if (!b->req->target.ptx) {
    KILN_TRY(kiln__nvrtc_rc(
        nvrtc, fetch(&o->cubin, program, nvrtc->getCUBINSize, nvrtc->getCUBIN),
        "nvrtcGetCUBIN"));
    if (o->cubin.size == 0)
      KILN_TRY(kiln__fail(KILN_EUNSUPPORTED,
                          "remove options that stop the compiler before "
                          "machine code",
                          "NVRTC gave no machine code for %s", b->plan->name));
  }
  st = take_names(b, nvrtc, program, &o->names);

done:
  return st;
}

/* Compiles, and restores the locale. NVRTC 11 changes the thread's locale, and
 * sets LC_NUMERIC of the process to "C". */
static nvrtcResult compile_in_locale(const kiln__nvrtc *nvrtc,
                                     nvrtcProgram program,
                                     const kiln__list *options)
{
  const locale_t thread = uselocale((locale_t)0);
  char numeric[64] = "C";
  const char *now;
  nvrtcResult rc;

  if (nvrtc->version >= KEEPS_LOCALE_SINCE)
    return nvrtc->compileProgram(program, (int)options->n, options->items);
  kiln__copy_text(numeric, sizeof numeric, setlocale(LC_NUMERIC, NULL));
  rc = nvrtc->compileProgram(program, (int)options->n, options->items);
  now = setlocale(LC_NUMERIC, NULL);
  if (now != NULL && strcmp(now, numeric) != 0)
    setlocale(LC_NUMERIC, numeric);
  uselocale(thread);
  return rc;
}

/* Performs one run of NVRTC. *rc receives the compiler's result. The returned
 * status reports only other failures, such as a lack of memory. */
static kiln_status run(const kiln__build *b, const kiln__nvrtc *nvrtc,
                       unsigned extras, output *o, nvrtcResult *rc)
{
  kiln_status st = KILN_OK;
  const uint64_t start = kiln__clock_ns();
  nvrtcProgram program = NULL;
  kiln__list options = {0};
  kiln__arena arena;
  const char *source;

  *rc = NVRTC_SUCCESS;
  kiln__arena_init(&arena, b->plan->arena.alloc);
  make_options(b, &arena, &options, extras);
  source = source_text(b, &arena);
  KILN_TRY(kiln__arena_status(&arena, "compiler options"));
  KILN_TRY(open_program(b, nvrtc, source, &program));
  kiln__pool_enter(b->rt->pool);
  *rc = compile_in_locale(nvrtc, program, &options);
  kiln__pool_leave(b->rt->pool);
  kiln__buf_clear(&o->raw);
  if (fetch(&o->raw, program, nvrtc->getProgramLogSize, nvrtc->getProgramLog) ==
      NVRTC_ERROR_OUT_OF_MEMORY)
    KILN_TRY(kiln__fail_memory("the compile log"));
  trim_nul(&o->raw);
  if (*rc == NVRTC_SUCCESS)
    st = take_images(b, nvrtc, program, o);
  o->ns = kiln__clock_ns() - start;

done:
  if (program != NULL)
    nvrtc->destroyProgram(&program);
  kiln__arena_free(&arena);
  return st;
}

/* Returns those of Kiln's additional options that the log reports as unknown to
 * this NVRTC. */
static unsigned unknown_extras(const output *o)
{
  unsigned extras = 0;

  if (o->raw.data == NULL)
    return 0;
  if (strstr(o->raw.data, "--no-cache") != NULL)
    extras |= NO_CACHE;
  if (strstr(o->raw.data, "ptxas-options") != NULL)
    extras |= RESOURCES;
  if (strstr(o->raw.data, "Ofast-compile") != NULL)
    extras |= FAST_COMPILE;
  if (strstr(o->raw.data, "--minimal") != NULL)
    extras |= MINIMAL;
  if (strstr(o->raw.data, "c++17") != NULL ||
      strstr(o->raw.data, "--std") != NULL)
    extras |= CXX17;
  return extras;
}

static unsigned extras_for(const kiln__build *b, const kiln__nvrtc *nvrtc)
{
  const kiln__plan *plan = b->plan;
  const bool debug = plan->desc->debug || plan->has_debug;
  unsigned extras = CXX17 | RESOURCES;

  if (nvrtc->version >= NO_CACHE_SINCE)
    extras |= NO_CACHE;
  if (nvrtc->version < QUICK_SINCE)
    return extras;
  if (plan->desc->fast_compile && !plan->has_fast_compile && !debug)
    extras |= FAST_COMPILE;
  if (plan->desc->minimal && !plan->has_minimal)
    extras |= MINIMAL;
  return extras;
}

/* Returns the options to drop for the next run: options that this NVRTC does
 * not support, and --minimal if the program may need more than --minimal
 * offers. */
static unsigned to_drop(const output *o, nvrtcResult rc, unsigned extras)
{
  if (rc == NVRTC_ERROR_INVALID_OPTION)
    return unknown_extras(o) & extras;
  return rc == NVRTC_ERROR_COMPILATION ? extras & MINIMAL : 0;
}

static kiln_status run_with_extras(const kiln__build *b,
                                   const kiln__nvrtc *nvrtc, output *o,
                                   nvrtcResult *rc)
{
  unsigned extras = extras_for(b, nvrtc), without;
  kiln_status st;

  for (;;) {
    st = run(b, nvrtc, extras, o, rc);
    if (st != KILN_OK || *rc == NVRTC_SUCCESS)
      return st;
    without = to_drop(o, *rc, extras);
    if (without == 0)
      return KILN_OK;
    extras &= ~without;
  }
}

/* ---- Failures ------------------------------------------------------------ */

static const char *hint_for(const char *line, size_t size)
{
  if (memmem(line, size, "open source file", 16) != NULL)
    return "give its folder with -I, or its text in kiln_program_desc.headers";
  if (memmem(line, size, "includes itself", 15) != NULL)
    return "put an include guard or #pragma once into the header";
  if (memmem(line, size, "Unresolved extern", 17) != NULL)
    return "define the function in the program: nothing is linked to it";
  if (memmem(line, size, "too much shared data", 20) != NULL)
    return "use dynamic shared memory, which can be larger";
  return "correct the source; kiln_last_error()->log has every message";
}

static kiln_status fail_option(const kiln__build *b, const char *line,
                               size_t size)
{
  static const char prefix[] = "nvrtc: error: ";
  char target[24];

  if (memmem(line, size, "gpu-architecture", 16) != NULL)
    return kiln__fail(KILN_EUNSUPPORTED,
                      "use another NVRTC: kiln_runtime_nvrtc() lists them",
                      "this NVRTC does not support %s",
                      kiln_target_text(&b->req->target, target));
  if (size > sizeof prefix && memcmp(line, prefix, sizeof prefix - 1) == 0) {
    line += sizeof prefix - 1;
    size -= sizeof prefix - 1;
  }
  return kiln__fail(
      KILN_EINVAL, "correct the compiler options (kiln_program_desc.options)",
      "NVRTC refuses the options of %s: %.*s", b->plan->name, (int)size, line);
}

/* Converts the compiler's result to a status. b->log holds the log in the form
 * that users see. */
static kiln_status judge(const kiln__build *b, const kiln__nvrtc *nvrtc,
                         const output *o, nvrtcResult rc)
{
  const char *line = "the compiler reports no reason";
  size_t size = strlen(line);
  const char *log = b->log.data == NULL ? "" : b->log.data;
  const long name =
      o->raw.data == NULL
          ? -1
          : kiln__log_bad_name(o->raw.data, o->raw.size, &b->plan->names);
  kiln_status st;

  if (rc == NVRTC_ERROR_CANCELLED)
    return fail_canceled(b);
  kiln__log_error(log, b->log.size, &line, &size);
  if (rc == NVRTC_ERROR_INVALID_OPTION)
    st = fail_option(b, line, size);
  else if (rc == NVRTC_ERROR_COMPILATION && name >= 0)
    st = kiln__fail_native(
        KILN_ENOTFOUND, KILN_SOURCE_NVRTC, rc, "nvrtcCompileProgram",
        "define it in the source, or correct the expression",
        "%s does not define \"%s\"", b->plan->name, b->plan->names.items[name]);
  else if (rc == NVRTC_ERROR_COMPILATION)
    st = kiln__fail_native(KILN_ECOMPILE, KILN_SOURCE_NVRTC, rc,
                           "nvrtcCompileProgram", hint_for(line, size), "%.*s",
                           (int)size, line);
  else
    st = kiln__nvrtc_rc(nvrtc, rc, "nvrtcCompileProgram");
  kiln__error_log(log, b->log.size);
  return st;
}

/* ---- The entry ----------------------------------------------------------- */

/* Appends nvJitLink's log to the compiler's log. */
static void add_link_log(kiln__build *b)
{
  const kiln_error *record = kiln_last_error();

  if (record->log[0] == '\0')
    return;
  if (b->log.size > 0 && b->log.data[b->log.size - 1] != '\n')
    kiln__buf_text(&b->log, "\n");
  kiln__buf_text(&b->log, record->log);
  if (!b->log.failed)
    kiln__error_log(b->log.data, b->log.size);
}

static kiln_status link_image(kiln__build *b, output *o)
{
  const kiln_target machine = {.cc = b->req->cc,
                               .suffix = b->req->target.suffix};
  kiln_status st = KILN_OK;
  kiln__nvjitlink *link;
  char arch[24];

  KILN_TRY(kiln__runtime_link(b->rt, &link));
  if (link == NULL)
    KILN_TRY(kiln__fail(KILN_EUNSUPPORTED,
                        "install nvJitLink, or set KILN_NVJITLINK to its path",
                        "there is no nvJitLink to assemble the PTX with"));
  st = kiln__nvjitlink_assemble(link, o->ptx.data, o->ptx.size,
                                kiln_target_text(&machine, arch), &o->cubin);
  if (st == KILN_ECOMPILE)
    add_link_log(b);

done:
  return st;
}

static kiln__slice slice(const kiln__buf *b)
{
  return (kiln__slice){b->data == NULL ? "" : b->data, b->size};
}

kiln_status kiln__build_entry(const kiln__build *b,
                              const kiln__slice sections[KILN__SECTIONS],
                              const kiln__meta *meta, kiln__entry **out)
{
  const kiln_allocator *a = b->plan->arena.alloc;
  kiln__slice all[KILN__SECTIONS];
  kiln_status st = KILN_OK;
  kiln__buf report, text;

  kiln__buf_init(&report, a);
  kiln__buf_init(&text, a);
  kiln__report_write(&report, sections[KILN__PTX], sections[KILN__CUBIN],
                     sections[KILN__LOG]);
  kiln__meta_write(&text, meta);
  KILN_TRY(kiln__buf_status(&report, "the resource report"));
  KILN_TRY(kiln__buf_status(&text, "an image"));
  memcpy(all, sections, sizeof all);
  all[KILN__REPORT] = slice(&report);
  all[KILN__META] = slice(&text);
  *out = kiln__entry_create(a, b->key, all);
  if (*out == NULL)
    st = kiln__fail_memory("an image");

done:
  kiln__buf_free(&report);
  kiln__buf_free(&text);
  return st;
}

static kiln_status make_entry(const kiln__build *b, const kiln__nvrtc *nvrtc,
                              const output *o, kiln__entry **out)
{
  const kiln__slice sections[KILN__SECTIONS] = {
      [KILN__PTX] = slice(&o->ptx),
      [KILN__CUBIN] = slice(&o->cubin),
      [KILN__NAMES] = slice(&o->names),
      [KILN__LOG] = slice(&b->log)};
  kiln__meta meta = {.target = b->req->target,
                     .nvrtc = nvrtc->version,
                     .microseconds = o->ns / 1000};

  if (b->req->rung == KILN_RUNG_LINK)
    meta.target = (kiln_target){.cc = b->req->cc, .suffix = meta.target.suffix};
  return kiln__build_entry(b, sections, &meta, out);
}

kiln_status kiln__build_make(void *user, kiln__entry **out)
{
  kiln__build *b = user;
  kiln_status st = KILN_OK;
  const kiln__nvrtc *nvrtc;
  nvrtcResult rc;
  char target[24];
  output o;

  *out = NULL;
  output_init(&o, b->plan->arena.alloc);
  kiln__buf_clear(&b->log);
  if (canceled(b))
    KILN_TRY(fail_canceled(b));
  KILN_TRY(kiln__nvrtc_use(b->rt->nvrtc, b->req->nvrtc, &nvrtc));
  KILN_TRY(run_with_extras(b, nvrtc, &o, &rc));
  if (o.raw.data != NULL)
    kiln__log_map(&b->log, o.raw.data, o.raw.size, &b->plan->names);
  KILN_TRY(kiln__buf_status(&b->log, "the compile log"));
  if (rc != NVRTC_SUCCESS)
    KILN_TRY(judge(b, nvrtc, &o, rc));
  if (b->req->rung == KILN_RUNG_LINK)
    KILN_TRY(link_image(b, &o));
  KILN_TRY(make_entry(b, nvrtc, &o, out));
  kiln__logf(&b->rt->log, KILN_LOG_INFO,
             "compiled %s for %s with NVRTC %d.%d in %llu ms", b->plan->name,
             kiln_target_text(&b->req->target, target), nvrtc->version / 1000,
             nvrtc->version % 1000 / 10, (unsigned long long)(o.ns / 1000000));

done:
  output_free(&o);
  return st;
}

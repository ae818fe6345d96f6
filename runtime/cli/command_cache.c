/* command_cache.c -- `kiln cache`, which shows the compile cache and limits
 * its size. */
#include "cli/commands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The options and words of one subcommand of `kiln cache`. */
typedef struct cache_args {
  cli_program program;
  const char *arch;
  bool json, repair;
  int argc; /* number of words after the subcommand */
  char **argv;
} cache_args;

static int describe(cli *c, kiln_cache_info *info)
{
  if (kiln_cache_describe(c->rt, info) != KILN_OK)
    return kiln__cli_failure(c, NULL);
  return CLI_OK;
}

static int action_path(cli *c, cache_args *a)
{
  kiln_cache_info info;

  (void)a;
  if (describe(c, &info) != CLI_OK)
    return CLI_FAILED;
  if (info.path[0] == '\0') {
    kiln__cli_message(c, "set KILN_CACHE_DIR or --cache-dir",
                      "there is no cache folder: %s", info.reason);
    return CLI_FAILED;
  }
  puts(info.path);
  return CLI_OK;
}

/* ---- Entries ------------------------------------------------------------ */

typedef struct entry {
  char *hash, *program, *target;
  uint64_t bytes;
  int64_t used_s;
  bool good;
} entry;

typedef struct entries {
  cli *c;
  entry *list;
  size_t n, capacity, bad;
} entries;

/* Copies a cache entry's description, whose strings are only valid during the
 * call. Callback of kiln_cache_each(). */
static bool add_entry(void *user, const kiln_cache_item *item)
{
  entries *e = user;

  e->list = kiln__cli_grow(e->c, e->list, e->n, &e->capacity, sizeof *e->list);
  e->list[e->n++] =
      (entry){.hash = kiln__cli_text(e->c, "%s", item->hash),
              .program = kiln__cli_text(e->c, "%s", item->program),
              .target = kiln__cli_text(e->c, "%s", item->target),
              .bytes = item->bytes,
              .used_s = item->used_s,
              .good = item->good};
  e->bad += item->good ? 0 : 1;
  return true;
}

/* Orders cache entries by latest use, then by hash. Comparison function of
 * qsort(). */
static int latest_first(const void *a, const void *b)
{
  const entry *x = a, *y = b;

  if (x->used_s != y->used_s)
    return x->used_s < y->used_s ? 1 : -1;
  return strcmp(x->hash, y->hash);
}

static int collect(cli *c, bool verify, entries *out)
{
  *out = (entries){.c = c};
  if (kiln_cache_each(c->rt, verify, add_entry, out) != KILN_OK)
    return kiln__cli_failure(c, NULL);
  if (out->n > 1)
    qsort(out->list, out->n, sizeof *out->list, latest_first);
  return CLI_OK;
}

/* Formats seconds since the epoch as an age: "5 min ago". */
static const char *age(cli *c, int64_t used_s)
{
  const int64_t s = (int64_t)time(NULL) - used_s;

  if (s < 90)
    return s < 2 ? "now" : kiln__cli_text(c, "%d s ago", (int)s);
  if (s < 90 * 60)
    return kiln__cli_text(c, "%d min ago", (int)(s / 60));
  if (s < 36 * 3600)
    return kiln__cli_text(c, "%d h ago", (int)(s / 3600));
  return kiln__cli_text(c, "%d days ago", (int)(s / 86400));
}

static cJSON *entry_json(const entry *e)
{
  cJSON *o = cJSON_CreateObject();

  JSON_TEXT(o, "entry", e->hash);
  JSON_TEXT(o, "program", e->program);
  JSON_TEXT(o, "target", e->target);
  JSON_NUMBER(o, "bytes", e->bytes);
  JSON_NUMBER(o, "used", e->used_s);
  return o;
}

static void print_entries(const entries *e, bool bad_only)
{
  static const char *const heads[] = {"program", "target", ">size",
                                      "used",    "entry",  NULL};
  cli_table t;

  kiln__cli_table(&t, e->c, heads);
  for (size_t i = 0; i < e->n; i++) {
    const entry *one = &e->list[i];

    if (bad_only && one->good)
      continue;
    kiln__cli_cell(&t, "%s", one->program[0] != '\0' ? one->program : "?");
    kiln__cli_cell(&t, "%s", one->target[0] != '\0' ? one->target : "?");
    kiln__cli_cell(&t, "%s", kiln__cli_bytes(e->c, one->bytes));
    kiln__cli_cell(&t, "%s", age(e->c, one->used_s));
    kiln__cli_cell(&t, "%s", one->hash);
  }
  if (t.n > 0)
    kiln__cli_table_print(&t, 0);
}

static int action_list(cli *c, cache_args *a)
{
  entries e;

  if (collect(c, false, &e) != CLI_OK)
    return CLI_FAILED;
  if (a->json) {
    cJSON *list = cJSON_CreateArray();

    for (size_t i = 0; i < e.n; i++)
      cJSON_AddItemToArray(list, entry_json(&e.list[i]));
    return kiln__cli_json(c, list, NULL);
  }
  if (e.n == 0)
    puts("the cache is empty");
  else
    print_entries(&e, false);
  return CLI_OK;
}

cJSON *kiln__cli_cache_json(const kiln_cache_info *info)
{
  cJSON *o = cJSON_CreateObject();

  JSON_TEXT(o, "path", info->path);
  JSON_FLAG(o, "usable", info->usable);
  JSON_TEXT(o, "reason", info->usable ? "" : info->reason);
  JSON_NUMBER(o, "entries", info->entries);
  JSON_NUMBER(o, "bytes", info->bytes);
  JSON_NUMBER(o, "cap", info->cap);
  return o;
}

static int action_stats(cli *c, cache_args *a)
{
  kiln_cache_info info;
  cli_table t;

  if (describe(c, &info) != CLI_OK)
    return CLI_FAILED;
  if (a->json)
    return kiln__cli_json(c, kiln__cli_cache_json(&info), NULL);
  kiln__cli_sheet(&t, c);
  kiln__cli_row(&t, "folder", "%s", info.path[0] != '\0' ? info.path : "none");
  kiln__cli_row(&t, "state", "%s%s", info.usable ? "usable" : "not usable: ",
                info.usable ? "" : info.reason);
  kiln__cli_row(&t, "entries", "%" PRIu64, info.entries);
  kiln__cli_row(&t, "size", "%s of at most %s", kiln__cli_bytes(c, info.bytes),
                kiln__cli_bytes(c, info.cap));
  kiln__cli_table_print(&t, 0);
  return CLI_OK;
}

static int action_verify(cli *c, cache_args *a)
{
  uint64_t removed = 0;
  entries e;

  if (collect(c, true, &e) != CLI_OK)
    return CLI_FAILED;
  if (e.bad == 0)
    printf("%zu entr%s, all good\n", e.n, e.n == 1 ? "y" : "ies");
  else
    printf("%zu of %zu entr%s bad:\n\n", e.bad, e.n, e.n == 1 ? "y" : "ies");
  print_entries(&e, true);
  if (!a->repair) {
    if (e.bad > 0)
      puts("\nnext: kiln cache verify --repair (a program that meets a bad "
           "entry removes it, too)");
    return e.bad == 0 ? CLI_OK : CLI_FAILED;
  }
  if (kiln_cache_repair(c->rt, &removed) != KILN_OK)
    return kiln__cli_failure(c, NULL);
  printf("%s%" PRIu64 " files removed\n", e.bad > 0 ? "\n" : "", removed);
  return CLI_OK;
}

static int action_trim(cli *c, cache_args *a)
{
  uint64_t bytes, removed = 0;
  kiln_cache_info info;

  if (a->argc != 1 || !kiln__cli_parse_bytes(a->argv[0], &bytes))
    return kiln__cli_usage(c, "trim needs a size in bytes, for example: kiln "
                              "cache trim 64M");
  if (kiln_cache_trim(c->rt, bytes, &removed) != KILN_OK ||
      kiln_cache_describe(c->rt, &info) != KILN_OK)
    return kiln__cli_failure(c, NULL);
  printf("%" PRIu64 " removed, %" PRIu64 " left with %s\n", removed,
         info.entries, kiln__cli_bytes(c, info.bytes));
  return CLI_OK;
}

static int action_clear(cli *c, cache_args *a)
{
  uint64_t removed = 0;

  (void)a;
  if (kiln_cache_clear(c->rt, &removed) != KILN_OK)
    return kiln__cli_failure(c, NULL);
  printf("%" PRIu64 " removed\n", removed);
  return CLI_OK;
}

/* ---- Why ---------------------------------------------------------------- */

/* Adds a table row for one key field that differs. Callback of
 * kiln_cache_why(). */
static void add_field(void *user, const char *field, const char *wanted,
                      const char *found)
{
  cli_table *t = user;

  kiln__cli_cell(t, "%s", field);
  kiln__cli_cell(t, "%s", wanted[0] != '\0' ? wanted : "(none)");
  kiln__cli_cell(t, "%s", found[0] != '\0' ? found : "(none)");
}

static int action_why(cli *c, cache_args *a)
{
  static const char *const heads[] = {"field", "wanted", "nearest entry has",
                                      NULL};
  cli_targets targets;
  cli_table t;
  bool hit = false;
  char text[24];
  kiln_status st;
  int rc;

  if (a->argc != 1)
    return kiln__cli_usage(c, "why needs one program: FILE.cu or builtin:NAME");
  rc = kiln__cli_program_open(&a->program, c, a->argv[0]);
  if (rc == CLI_OK)
    rc = kiln__cli_targets(c, a->arch, &targets);
  for (size_t i = 0; rc == CLI_OK && i < targets.n; i++) {
    kiln_target_text(&targets.list[i], text);
    kiln__cli_table(&t, c, heads);
    st = kiln_cache_why(c->rt, &a->program.desc, &targets.list[i], &hit,
                        add_field, &t);
    if (st == KILN_ENOTFOUND) {
      printf("%s for %s is not in the cache: the cache is empty\n",
             a->program.label, text);
    } else if (st != KILN_OK) {
      rc = kiln__cli_failure(c, NULL);
    } else if (hit) {
      printf("%s for %s is in the cache\n", a->program.label, text);
    } else {
      printf("%s for %s is not in the cache; the nearest entry differs in:\n\n",
             a->program.label, text);
      kiln__cli_table_print(&t, 2);
    }
  }
  return rc;
}

/* ---- The command -------------------------------------------------------- */

static const struct {
  const char *name;
  int (*run)(cli *c, cache_args *a);
  bool takes_word;
} actions[] = {
    {"path", action_path, false}, {"stats", action_stats, false},
    {"list", action_list, false}, {"verify", action_verify, false},
    {"trim", action_trim, true},  {"clear", action_clear, false},
    {"why", action_why, true},
};

static int run_action(cli *c, cache_args *a, const char *name)
{
  for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
    if (strcmp(actions[i].name, name) != 0)
      continue;
    if (!actions[i].takes_word && a->argc > 0)
      return kiln__cli_usage(c, "the word \"%s\" is one too many for %s",
                             a->argv[0], name);
    return actions[i].run(c, a);
  }
  return kiln__cli_usage(c, "there is no action \"%s\"", name);
}

int kiln__cli_cache(cli *c, int argc, char **argv)
{
  cache_args *a = kiln__cli_alloc(c, 1, sizeof *a);
  const cli_option options[] = {
      CLI_OPTION_FLAG("json", &a->json, "stats and list: print JSON"),
      CLI_OPTION_FLAG("repair", &a->repair, "verify: remove bad entries"),
      CLI_OPTION_JOINED("arch", "LIST", &a->arch,
                        "why: targets as for kiln compile"),
      CLI_OPTIONS_END};
  cli_syntax syntax = {
      .synopsis = "kiln cache ACTION [options]\n",
      .about =
          "Inspects the compile cache and keeps it small. Actions:\n"
          "  path          print the folder\n"
          "  stats         print its state, entries and bytes\n"
          "  list          print every entry, latest use first\n"
          "  verify        check every byte of every entry\n"
          "  trim BYTES    remove the entries that were not used for longest, "
          "until\n"
          "                BYTES are left; 64M is 64 MiB\n"
          "  clear         remove every entry\n"
          "  why PROGRAM   name the fields of the key in which the nearest "
          "entry\n"
          "                differs; PROGRAM is FILE.cu or builtin:NAME, with "
          "the\n"
          "                options that it is compiled with",
      .options = options,
      .example = "kiln cache why saxpy.cu --arch sm_90 -D N=4",
      .exit_codes = "0 success, 1 the work failed or verify found a bad entry, "
                    "2 wrong use.",
      .least = 1,
      .most = -1,
      .missing = "name an action: path, stats, list, verify, trim, clear or "
                 "why"};
  cli_words words;
  int rc;

  kiln__cli_program_init(&a->program, c, argc);
  syntax.shared = a->program.table;
  rc = kiln__cli_parse(c, &syntax, argc, argv, &words);
  if (rc != CLI_OK)
    return rc;
  a->argc = words.n - 1;
  a->argv = words.at + 1;
  return run_action(c, a, words.at[0]);
}

/* command_cache.c -- `kiln cache`: look at and tend the compile cache. */
#include "tool/cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OPT_ARCH = CLI_OPT_OWN, OPT_JSON, OPT_REPAIR };

typedef struct cache_args {
  cli_program program;
  const char *arch;
  bool json, repair;
  int argc; /* words after the action */
  char **argv;
} cache_args;

static void help(void)
{
  fputs("usage: kiln cache ACTION [options]\n\n"
        "  path                 the folder\n"
        "  stats [--json]       its state, entries and bytes\n"
        "  list [--json]        every entry, latest use first\n"
        "  verify [--repair]    check every byte; --repair removes bad ones\n"
        "  trim BYTES           remove the longest unused; 64M is 64 MiB\n"
        "  clear                remove every entry\n"
        "  why PROGRAM          why a program is not in the cache: the field\n"
        "                       in which the nearest entry differs\n\n"
        "why takes FILE.cu or builtin:NAME, --arch ARCH, and:\n",
        stdout);
  fputs(kiln__cli_program_help, stdout);
}

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
    kiln__cli_say(c, NULL, "there is no cache folder: %s", info.reason);
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
  size_t n, room, bad;
} entries;

static bool add_entry(void *user, const kiln_cache_item *item)
{
  entries *e = user;

  if (e->n == e->room) {
    const size_t room = e->room == 0 ? 64 : 2 * e->room;
    entry *list = kiln__cli_alloc(e->c, room, sizeof *list);

    if (e->n > 0)
      memcpy(list, e->list, e->n * sizeof *list);
    e->list = list;
    e->room = room;
  }
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

static int latest_first(const void *a, const void *b)
{
  const entry *x = a, *y = b;

  if (x->used_s != y->used_s)
    return x->used_s < y->used_s ? 1 : -1;
  return strcmp(x->hash, y->hash);
}

static int gather(cli *c, bool verify, entries *out)
{
  *out = (entries){.c = c};
  if (kiln_cache_each(c->rt, verify, add_entry, out) != KILN_OK)
    return kiln__cli_failure(c, NULL);
  if (out->n > 1)
    qsort(out->list, out->n, sizeof *out->list, latest_first);
  return CLI_OK;
}

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

  cJSON_AddStringToObject(o, "entry", e->hash);
  cJSON_AddStringToObject(o, "program", e->program);
  cJSON_AddStringToObject(o, "target", e->target);
  cJSON_AddNumberToObject(o, "bytes", (double)e->bytes);
  cJSON_AddNumberToObject(o, "used", (double)e->used_s);
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

  if (gather(c, false, &e) != CLI_OK)
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

static int action_stats(cli *c, cache_args *a)
{
  static const char *const heads[] = {"", "", NULL};
  kiln_cache_info info;
  cli_table t;

  if (describe(c, &info) != CLI_OK)
    return CLI_FAILED;
  if (a->json) {
    cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "path", info.path);
    kiln__cli_json_flag(o, "usable", info.usable);
    cJSON_AddStringToObject(o, "reason", info.usable ? "" : info.reason);
    cJSON_AddNumberToObject(o, "entries", (double)info.entries);
    cJSON_AddNumberToObject(o, "bytes", (double)info.bytes);
    cJSON_AddNumberToObject(o, "cap", (double)info.cap);
    return kiln__cli_json(c, o, NULL);
  }
  kiln__cli_table(&t, c, heads);
  kiln__cli_cell(&t, "folder");
  kiln__cli_cell(&t, "%s", info.path[0] != '\0' ? info.path : "none");
  kiln__cli_cell(&t, "state");
  kiln__cli_cell(&t, "%s%s", info.usable ? "usable" : "not usable: ",
                 info.usable ? "" : info.reason);
  kiln__cli_cell(&t, "entries");
  kiln__cli_cell(&t, "%" PRIu64, info.entries);
  kiln__cli_cell(&t, "size");
  kiln__cli_cell(&t, "%s of at most %s", kiln__cli_bytes(c, info.bytes),
                 kiln__cli_bytes(c, info.cap));
  kiln__cli_table_print(&t, 0);
  return CLI_OK;
}

static int action_verify(cli *c, cache_args *a)
{
  uint64_t removed = 0;
  entries e;

  if (gather(c, true, &e) != CLI_OK)
    return CLI_FAILED;
  if (e.bad == 0)
    printf("%zu entr%s, all good\n", e.n, e.n == 1 ? "y" : "ies");
  else
    printf("%zu of %zu entr%s bad:\n\n", e.bad, e.n, e.n == 1 ? "y" : "ies");
  print_entries(&e, true);
  if (!a->repair) {
    if (e.bad > 0)
      puts("\nnext: kiln cache verify --repair (programs also do this by "
           "themselves)");
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
    return kiln__cli_usage(c, "trim to how many bytes? For example: kiln cache "
                              "trim 64M");
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
    return kiln__cli_usage(c, "why which program? FILE.cu or builtin:NAME");
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
      return kiln__cli_usage(c, "%s takes no \"%s\"", name, a->argv[0]);
    return actions[i].run(c, a);
  }
  return kiln__cli_usage(c, "no action \"%s\"", name);
}

int kiln__cli_cache(cli *c, int argc, char **argv)
{
  static const struct option options[] = {
      {"arch", required_argument, NULL, OPT_ARCH},
      {"json", no_argument, NULL, OPT_JSON},
      {"repair", no_argument, NULL, OPT_REPAIR},
      {"help", no_argument, NULL, 'h'},
      CLI_PROGRAM_LONG,
      {0}};
  cache_args *a = kiln__cli_alloc(c, 1, sizeof *a);
  int opt;

  kiln__cli_program_init(&a->program, c, argc);
  while ((opt = getopt_long(argc, argv, CLI_PROGRAM_SHORT "h", options,
                            NULL)) != -1) {
    const int rc = kiln__cli_program_option(&a->program, c, opt, optarg);

    if (rc == CLI_USAGE)
      return rc;
    if (rc == CLI_OK)
      continue;
    if (opt == OPT_ARCH) {
      a->arch = kiln__cli_join(c, a->arch, optarg);
    } else if (opt == OPT_JSON) {
      a->json = true;
    } else if (opt == OPT_REPAIR) {
      a->repair = true;
    } else if (opt == 'h') {
      help();
      return CLI_OK;
    } else {
      return kiln__cli_usage(c, NULL);
    }
  }
  if (optind == argc)
    return kiln__cli_usage(c, "what to do: path, stats, list, verify, trim, "
                              "clear or why");
  a->argc = argc - optind - 1;
  a->argv = argv + optind + 1;
  return run_action(c, a, argv[optind]);
}

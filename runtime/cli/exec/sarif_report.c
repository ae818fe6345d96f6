/* sarif_report.c -- writes the report of `kiln exec` in the format SARIF 2.1.0
 * (OASIS, "Static Analysis Results Interchange Format", 2020), which forges show
 * next to the source.
 *
 * Each kind of finding is a rule. A finding is located at its source line, or at
 * the program if the PTX has no line information. Paths below the current folder
 * are relative to it, as forges expect. Suppressed findings stay in the file and
 * are marked. Missing functions and faults are notifications of the run. */
#include "cli/exec/exec_report.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct kind {
  const char *kind, *text;
} kinds[] = {
    {"out of bounds", "A kernel accesses memory that is not its own."},
    {"misaligned", "A kernel uses an address that its access cannot have."},
    {"use after free", "A kernel accesses memory that was freed."},
    {"no access", "A kernel accesses mapped memory without cuMemSetAccess."},
    {"leak", "A context is destroyed while memory is allocated."},
    {"race", "Two threads access memory without an order, and one writes."},
    {"uninitialised read", "A kernel reads memory that was never written."},
    {"divergent barrier", "Only some threads of a block reach a barrier."},
    {"wrong mask", "A warp instruction names lanes that do not take part."},
    {"deadlock", "Threads wait for each other for ever."},
    {"exited block", "A kernel accesses the memory of a block that exited."},
    {"unordered wgmma", "A matrix instruction lacks a fence or a wait."},
};

enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

/* ---- Small parts ---------------------------------------------------------- */

static cJSON *add_object(cJSON *to, const char *key)
{
  return cJSON_AddObjectToObject(to, key);
}

static void add_text(cJSON *to, const char *key, const char *text)
{
  JSON_TEXT(add_object(to, key), "text", text);
}

/* Returns the identifier of a rule: "kiln/use-after-free". */
static char *rule_id(cli *c, const char *kind)
{
  char *id = kiln__cli_text(c, "kiln/%s", kind);

  for (char *p = id; *p != '\0'; p++)
    *p = *p == ' ' ? '-' : *p;
  return id;
}

/* Returns the URI of a path. Relative paths, and paths below the current folder,
 * become relative URIs. */
static const char *uri_of(cli *c, const char *path)
{
  static const char hex[] = "0123456789ABCDEF";
  char folder[4096];
  char *uri = kiln__cli_alloc(c, 3 * strlen(path) + 16, 1), *p = uri;
  const size_t n = getcwd(folder, sizeof folder) == NULL ? 0 : strlen(folder);

  if (n > 1 && strncmp(path, folder, n) == 0 && path[n] == '/')
    path += n + 1;
  if (path[0] == '/')
    p = stpcpy(p, "file://");
  while (strncmp(path, "./", 2) == 0)
    path += 2;
  for (; *path != '\0'; path++) {
    const unsigned char byte = (unsigned char)*path;

    if (isalnum(byte) || strchr("/._-~", byte) != NULL) {
      *p++ = (char)byte;
    } else {
      *p++ = '%';
      *p++ = hex[byte >> 4];
      *p++ = hex[byte & 15];
    }
  }
  return uri;
}

/* ---- The rules ------------------------------------------------------------ */

static void add_rules(cli *c, cJSON *driver)
{
  cJSON *rules = cJSON_AddArrayToObject(driver, "rules");

  for (size_t i = 0; i < N_KINDS; i++) {
    cJSON *rule = kiln__cli_json_item(rules);

    JSON_TEXT(rule, "id", rule_id(c, kinds[i].kind));
    add_text(rule, "shortDescription", kinds[i].text);
    JSON_TEXT(add_object(rule, "defaultConfiguration"), "level", "error");
  }
}

/* ---- The findings --------------------------------------------------------- */

static void add_location(const exec_report *r, cJSON *result, const cJSON *f)
{
  cJSON *location =
      kiln__cli_json_item(cJSON_AddArrayToObject(result, "locations"));
  cJSON *physical = add_object(location, "physicalLocation"), *function;
  const exec_place place = kiln__exec_place(f);
  const bool known = *place.file != '\0' && place.line > 0;

  JSON_TEXT(add_object(physical, "artifactLocation"), "uri",
            uri_of(r->c, known ? place.file : r->program[0]));
  JSON_NUMBER(add_object(physical, "region"), "startLine",
              known ? place.line : 1);
  if (exec_text(f, "kernel")[0] == '\0')
    return;
  function =
      kiln__cli_json_item(cJSON_AddArrayToObject(location, "logicalLocations"));
  JSON_TEXT(function, "name", exec_text(f, "name"));
  JSON_TEXT(function, "decoratedName", exec_text(f, "kernel"));
  JSON_TEXT(function, "kind", "function");
}

static void add_suppression(cJSON *result, const exec_suppression *s)
{
  cJSON *one;

  if (s == NULL)
    return;
  one = kiln__cli_json_item(cJSON_AddArrayToObject(result, "suppressions"));
  JSON_TEXT(one, "kind", "external");
  if (*s->reason != '\0')
    JSON_TEXT(one, "justification", s->reason);
}

static void add_result(const exec_report *r, cJSON *results,
                       const exec_item *item)
{
  const cJSON *f = item->json;
  const char *kind = exec_text(f, "kind");
  const double count = exec_number(f, "count");
  cJSON *result = kiln__cli_json_item(results);

  JSON_TEXT(result, "ruleId", rule_id(r->c, kind));
  for (size_t i = 0; i < N_KINDS; i++) {
    if (strcmp(kinds[i].kind, kind) == 0)
      JSON_NUMBER(result, "ruleIndex", i);
  }
  JSON_TEXT(result, "level", "error");
  add_text(result, "message", exec_text(f, "text"));
  add_location(r, result, f);
  JSON_TEXT(add_object(result, "partialFingerprints"), "kilnFinding/v1",
            kiln__cli_text(r->c, "%016llx", (unsigned long long)item->key));
  JSON_NUMBER(result, "occurrenceCount",
              count < 1            ? 1
              : count > 2147483647 ? 2147483647
                                   : count);
  add_suppression(result, item->suppression);
}

/* ---- The run -------------------------------------------------------------- */

static void add_notification(cJSON *list, const char *level, const char *text)
{
  cJSON *one = kiln__cli_json_item(list);

  JSON_TEXT(one, "level", level);
  add_text(one, "message", text);
}

static void add_invocation(const exec_report *r, cJSON *run)
{
  cJSON *one = kiln__cli_json_item(cJSON_AddArrayToObject(run, "invocations"));
  cJSON *words = cJSON_AddArrayToObject(one, "arguments"), *list;

  for (char **word = r->program; *word != NULL; word++)
    cJSON_AddItemToArray(words, cJSON_CreateString(*word));
  JSON_NUMBER(one, "exitCode", r->rc);
  JSON_FLAG(one, "executionSuccessful", r->rc == 0);
  list = cJSON_AddArrayToObject(one, "toolExecutionNotifications");
  for (size_t i = 0; i < r->errors.n; i++)
    add_notification(list, "error", exec_text(r->errors.items[i].json, "text"));
  for (size_t i = 0; i < r->faults.n; i++)
    add_notification(list, "error", exec_text(r->faults.items[i].json, "text"));
  for (size_t i = 0; i < r->missing.n; i++)
    add_notification(list, "warning",
                     kiln__exec_missing_text(r, r->missing.items[i].json));
}

int kiln__exec_sarif(const exec_report *r, const char *path)
{
  cJSON *root = cJSON_CreateObject(), *run, *driver, *results;

  JSON_TEXT(root, "$schema",
            "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/"
            "schemas/sarif-schema-2.1.0.json");
  JSON_TEXT(root, "version", "2.1.0");
  run = kiln__cli_json_item(cJSON_AddArrayToObject(root, "runs"));
  driver = add_object(add_object(run, "tool"), "driver");
  JSON_TEXT(driver, "name", "Kiln");
  JSON_TEXT(driver, "version", KILN_VERSION_TEXT);
  add_rules(r->c, driver);
  add_invocation(r, run);
  results = cJSON_AddArrayToObject(run, "results");
  for (size_t i = 0; i < r->findings.n; i++)
    add_result(r, results, &r->findings.items[i]);
  return kiln__cli_json(r->c, root, path);
}

/* json_report.c -- writes the report of `kiln exec` as one JSON document. */
#include "cli/exec/exec_report.h"

/* Adds a copy of each object of a list to the document, without the members that
 * only the lines of the processes need. */
static void add_list(cJSON *root, const char *name, const exec_list *list,
                     bool findings)
{
  cJSON *array = cJSON_AddArrayToObject(root, name);

  for (size_t i = 0; i < list->n; i++) {
    cJSON *copy = cJSON_Duplicate(list->items[i].json, true);
    const exec_suppression *s = list->items[i].suppression;

    cJSON_DeleteItemFromObjectCaseSensitive(copy, "type");
    cJSON_DeleteItemFromObjectCaseSensitive(copy, "run");
    if (findings) {
      const exec_place place = kiln__exec_place(copy);

      JSON_FLAG(copy, "suppressed", s != NULL);
      JSON_TEXT(copy, "shown_file", place.file);
      JSON_NUMBER(copy, "shown_line", place.line);
    }
    if (s != NULL)
      JSON_TEXT(copy, "reason", s->reason);
    cJSON_AddItemToArray(array, copy);
  }
}

int kiln__exec_json(const exec_report *r, const char *path)
{
  const exec_sums sums = kiln__exec_sums(r);
  cJSON *root = cJSON_CreateObject(), *program;

  JSON_TEXT(root, "tool", "kiln exec");
  JSON_TEXT(root, "version", KILN_VERSION_TEXT);
  program = cJSON_AddArrayToObject(root, "program");
  for (char **word = r->program; *word != NULL; word++)
    cJSON_AddItemToArray(program, cJSON_CreateString(*word));
  JSON_NUMBER(root, "exit_code", r->rc);
  JSON_NUMBER(root, "seconds", r->seconds);
  JSON_NUMBER(root, "n_findings", sums.findings);
  JSON_NUMBER(root, "n_suppressed", sums.suppressed);
  JSON_NUMBER(root, "checked_launches", sums.launches);
  JSON_NUMBER(root, "checked_kernels", sums.kernels);
  JSON_NUMBER(root, "processes", r->processes.n);
  add_list(root, "findings", &r->findings, true);
  add_list(root, "missing", &r->missing, false);
  add_list(root, "faults", &r->faults, false);
  add_list(root, "errors", &r->errors, false);
  add_list(root, "kernels", &r->kernels, false);
  add_list(root, "counters", &r->counters, false);
  return kiln__cli_json(r->c, root, path);
}

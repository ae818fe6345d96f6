/* line_report.c -- the line tables of an image as JSON, for
 * `kiln compile --emit lines`.
 *
 *   files       names of the source files
 *   places      [file, line, caller, function] for each place; caller is the
 *               index of the place that inlined it, or -1
 *   kernels     for each kernel: its name, the size of its code, and the rows
 *               `lines` [address, place] and `ptx` [address, PTX line]
 *   ptx_places  the place of each line of the PTX source, or -1 */
#include "cli/commands.h"

static void add_pair(cJSON *array, double a, double b)
{
  const double pair[] = {a, b};

  cJSON_AddItemToArray(array, cJSON_CreateDoubleArray(pair, 2));
}

static void add_rows(cJSON *kernel, const char *name, size_t index,
                     const kiln_line_row *rows, size_t n)
{
  cJSON *array = cJSON_AddArrayToObject(kernel, name);

  for (size_t i = 0; i < n; i++)
    if (rows[i].kernel == index)
      add_pair(array, rows[i].address, rows[i].at);
}

static void add_places(cJSON *root, const kiln_lines *lines)
{
  cJSON *array = cJSON_AddArrayToObject(root, "places");

  for (size_t i = 0; i < lines->n_places; i++) {
    const kiln_place *p = &lines->places[i];
    const int numbers[] = {p->file, p->line, p->caller};
    cJSON *place = cJSON_CreateIntArray(numbers, 3);

    cJSON_AddItemToArray(place, p->function == NULL
                                    ? cJSON_CreateNull()
                                    : cJSON_CreateString(p->function));
    cJSON_AddItemToArray(array, place);
  }
}

static void add_kernels(cJSON *root, const kiln_image *image,
                        const kiln_lines *lines)
{
  cJSON *array = cJSON_AddArrayToObject(root, "kernels");

  for (size_t i = 0; i < kiln_image_kernels(image); i++) {
    cJSON *kernel = kiln__cli_json_item(array);
    kiln_resources r;

    if (kiln_image_resources(image, i, &r) != KILN_OK)
      continue;
    JSON_TEXT(kernel, "name", r.name);
    JSON_NUMBER(kernel, "code_bytes", r.code);
    add_rows(kernel, "lines", i, lines->code, lines->n_code);
    add_rows(kernel, "ptx", i, lines->ptx, lines->n_ptx);
  }
}

char *kiln__cli_lines_json(cli *c, const kiln_image *image)
{
  cJSON *root;
  kiln_lines *lines;
  char *text;

  if (kiln_image_lines(&lines, image) != KILN_OK) {
    kiln__cli_failure(c, NULL);
    return NULL;
  }
  root = cJSON_CreateObject();
  cJSON_AddItemToObject(
      root, "files",
      cJSON_CreateStringArray(lines->files, (int)lines->n_files));
  add_places(root, lines);
  add_kernels(root, image, lines);
  cJSON_AddItemToObject(
      root, "ptx_places",
      cJSON_CreateIntArray(lines->ptx_places, (int)lines->n_ptx_lines));
  text = cJSON_PrintUnformatted(root);
  cJSON_Delete(root);
  kiln_lines_free(lines);
  if (text == NULL)
    kiln__cli_message(c, NULL, "there is no memory to write JSON");
  return text;
}

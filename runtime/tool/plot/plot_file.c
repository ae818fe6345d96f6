/* plot_file.c -- writes pictures as files. A PNG file is the SVG picture,
 * converted by a program that the system has for this purpose. The terminal and
 * a browser need no converter. */
#include "tool/plot/plot.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { MOST_WORDS = 8 };

/* Returns the command line of the first converter that is installed, or NULL.
 * Each doubles the size of the picture, for screens with small pixels. */
static char **converter(cli *c, const char *svg, const char *png)
{
  const struct {
    const char *words[MOST_WORDS];
  } known[] = {{{"rsvg-convert", "--zoom", "2", "--output", png, svg}},
               {{"resvg", "--zoom", "2", svg, png}},
               {{"inkscape", svg, "--export-dpi=192",
                 kiln__cli_text(c, "--export-filename=%s", png)}}};
  char **words = kiln__cli_alloc(c, MOST_WORDS, sizeof *words);

  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    const char *path = kiln__cli_find_program(c, known[i].words[0]);

    if (path == NULL)
      continue;
    for (size_t k = 0; k < MOST_WORDS && known[i].words[k] != NULL; k++)
      words[k] = kiln__cli_text(c, "%s", k == 0 ? path : known[i].words[k]);
    return words;
  }
  return NULL;
}

static int convert(cli *c, const char *svg, const char *png)
{
  struct stat made;
  char **words = converter(c, svg, png);
  char *output;
  int status = -1;

  if (words == NULL) {
    kiln__cli_message(c, "install librsvg2-bin, or write SVG",
                      "a PNG picture needs rsvg-convert, resvg or inkscape, "
                      "and none was found");
    return CLI_FAILED;
  }
  output = kiln__cli_output_of(words, &status);
  free(output);
  if (output != NULL && WIFEXITED(status) && WEXITSTATUS(status) == 0 &&
      stat(png, &made) == 0)
    return CLI_OK;
  kiln__cli_message(c, "write SVG instead", "%s could not draw '%s'", words[0],
                    png);
  return CLI_FAILED;
}

static int write_png(cli *c, const plot_figure *figure, const char *path,
                     bool dark)
{
  char *folder = kiln__cli_make_folder(c, "kiln-plot"), *text;
  const char *svg;
  size_t size;
  int rc = CLI_FAILED;

  if (folder == NULL)
    return CLI_FAILED;
  svg = kiln__cli_text(c, "%s/picture.svg", folder);
  text = kiln__plot_svg(c, figure, dark ? PLOT_DARK : PLOT_LIGHT, &size);
  if (text != NULL && kiln__cli_write(c, svg, text, size) == CLI_OK)
    rc = convert(c, svg, path);
  free(text);
  kiln__cli_remove_folder(folder);
  return rc;
}

int kiln__plot_write(cli *c, const plot_figure *figure, const char *svg,
                     const char *png, bool dark)
{
  int rc = CLI_OK;

  if (svg != NULL) {
    size_t size;
    char *text = kiln__plot_svg(c, figure, PLOT_AUTO, &size);

    rc = text == NULL ? CLI_FAILED : kiln__cli_write(c, svg, text, size);
    free(text);
  }
  if (rc == CLI_OK && png != NULL)
    rc = write_png(c, figure, png, dark);
  return rc;
}

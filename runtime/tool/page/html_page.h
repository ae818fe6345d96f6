/* html_page.h -- self-contained HTML pages from templates in the tree.
 *
 * A page is a template (NAME_page.html), one style and one script, which are
 * joined from the files that CMakeLists.txt lists. The build embeds them. The
 * command adds a title and the data, as JSON in an element that the script
 * reads.
 *
 * The page loads nothing. Its content security policy allows only this style
 * and this script, by their SHA-256, so a text in the data cannot run even if
 * it were taken for markup. */
#ifndef KILN_TOOL_HTML_PAGE_H
#define KILN_TOOL_HTML_PAGE_H

#include "tool/cli.h"

/* A text of a page, which the build embeds. */
typedef struct html_text {
  const unsigned char *bytes;
  size_t size;
  unsigned char sha256[32];
} html_text;

typedef struct html_page {
  const char *name; /* "explore" */
  html_text page, style, script;
} html_page;

/* The table that embed_pages.cmake writes; the last row has no name. */
extern const html_page kiln__html_pages[];

/* Makes a page.
 * @param name   name of the page in the table
 * @param title  title of the window; any bytes
 * @param json   the data, as JSON in UTF-8 or nearly so
 * @param[out] size  bytes of the result
 * @return the page, which the caller frees, or NULL having reported why */
char *kiln__html_page(const cli *c, const char *name, const char *title,
                      const char *json, size_t *size);

#endif

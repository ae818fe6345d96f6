/* html_page.c -- fills the template of a page.
 *
 * Problem: texts from anywhere (source files, kernel names, messages) stand in
 * the page, and none of them may end the element that contains it.
 * Idea: the data is JSON in an element that browsers do not run. JSON may write
 * every character as \uXXXX, so the characters with a meaning in HTML, and
 * those that HTML does not allow at all, are written this way. `<` then occurs
 * nowhere in the data.
 * Invariant: placeholders are searched for only in the template, never in the
 * texts that replace them. */
#include "tool/page/html_page.h"

#include <stdlib.h>
#include <string.h>

/* Decodes the UTF-8 character of `n` bytes at `s`. */
static unsigned long code_point(const unsigned char *s, size_t n)
{
  unsigned long code = n == 1 ? s[0] : s[0] & (0xffu >> (n + 1));

  for (size_t i = 1; i < n; i++)
    code = code << 6 | (s[i] & 0x3f);
  return code;
}

/* Returns whether HTML does not allow the character: controls and
 * noncharacters. Newline and tab are allowed. */
static bool is_forbidden(unsigned long code)
{
  return (code < 0x20 && code != '\n' && code != '\t') ||
         (code >= 0x7f && code < 0xa0) || (code >= 0xfdd0 && code < 0xfdf0) ||
         (code & 0xfffe) == 0xfffe;
}

static void put_escape(FILE *out, unsigned long code)
{
  if (code < 0x10000) {
    fprintf(out, "\\u%04lx", code);
    return;
  }
  code -= 0x10000;
  fprintf(out, "\\u%04lx\\u%04lx", 0xd800 + (code >> 10),
          0xdc00 + (code & 0x3ff));
}

/* Writes JSON so that it may stand in a script element. */
static void put_json(FILE *out, const char *json)
{
  while (*json != '\0') {
    bool control;
    const size_t n = kiln__cli_utf8(json, &control);
    unsigned long code = 0xfffd;

    if (n > 0)
      code = code_point((const unsigned char *)json, n);
    if (n == 0 || code == '<' || code == '>' || code == '&' || code == 0x2028 ||
        code == 0x2029 || is_forbidden(code))
      put_escape(out, code);
    else
      fwrite(json, 1, n, out);
    json += n > 0 ? n : 1;
  }
}

/* Writes text as the contents of an element. */
static void put_text(FILE *out, const char *text)
{
  while (*text != '\0') {
    bool control;
    const size_t n = kiln__cli_utf8(text, &control);

    if (n == 0 || is_forbidden(code_point((const unsigned char *)text, n)))
      fputs("\xef\xbf\xbd", out);
    else if (*text == '<')
      fputs("&lt;", out);
    else if (*text == '&')
      fputs("&amp;", out);
    else
      fwrite(text, 1, n, out);
    text += n > 0 ? n : 1;
  }
}

/* Writes 32 bytes in base64, which takes 44 characters. */
static void put_base64(FILE *out, const unsigned char bytes[32])
{
  static const char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

  for (size_t i = 0; i < 33; i += 3) {
    const unsigned long third = i + 2 < 32 ? bytes[i + 2] : 0;
    const unsigned long word = (unsigned long)bytes[i] << 16 |
                               (unsigned long)bytes[i + 1] << 8 | third;

    for (int k = 3; k >= 0; k--)
      fputc(i + 2 < 32 || k > 0 ? digits[word >> 6 * k & 63] : '=', out);
  }
}

static void put_policy(FILE *out, const html_page *page)
{
  fputs("default-src 'none'; script-src 'sha256-", out);
  put_base64(out, page->script.sha256);
  fputs("'; style-src 'sha256-", out);
  put_base64(out, page->style.sha256);
  fputs("'; img-src data:; base-uri 'none'; form-action 'none'", out);
}

/* Writes what a placeholder stands for. The name is followed by "}}". */
static void put_named(FILE *out, const html_page *page, const char *name,
                      const char *title, const char *json)
{
  if (strncmp(name, "title}}", 7) == 0)
    put_text(out, title);
  else if (strncmp(name, "policy}}", 8) == 0)
    put_policy(out, page);
  else if (strncmp(name, "style}}", 7) == 0)
    fwrite(page->style.bytes, 1, page->style.size, out);
  else if (strncmp(name, "script}}", 8) == 0)
    fwrite(page->script.bytes, 1, page->script.size, out);
  else if (strncmp(name, "data}}", 6) == 0)
    put_json(out, json);
}

static void put_page(FILE *out, const html_page *page, const char *title,
                     const char *json)
{
  const char *text = (const char *)page->page.bytes;

  for (;;) {
    const char *mark = strstr(text, "{{");
    const char *end = mark == NULL ? NULL : strstr(mark, "}}");

    if (end == NULL)
      break;
    fwrite(text, 1, (size_t)(mark - text), out);
    put_named(out, page, mark + 2, title, json);
    text = end + 2;
  }
  fputs(text, out);
}

char *kiln__html_page(const cli *c, const char *name, const char *title,
                      const char *json, size_t *size)
{
  const html_page *page = kiln__html_pages;
  char *text = NULL;
  FILE *out;

  while (page->name != NULL && strcmp(page->name, name) != 0)
    page++;
  out = page->name == NULL ? NULL : open_memstream(&text, size);
  if (out != NULL) {
    put_page(out, page, title, json);
    if (fclose(out) == 0)
      return text;
  }
  free(text);
  kiln__cli_message(c, NULL, "there is no memory to write the page \"%s\"",
                    name);
  return NULL;
}

/* cli_text.c -- memory and text functions for one run of the command. Nearly
 * all text lives as long as the run, so one list of blocks owns all memory. */
#include "tool/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct cli_block {
  struct cli_block *next;
  max_align_t data[];
};

void *kiln__cli_alloc(cli *c, size_t n, size_t size)
{
  struct cli_block *block = NULL;

  if (size == 0 || n < SIZE_MAX / 2 / size)
    block = calloc(1, sizeof *block + n * size);
  if (block == NULL) {
    fputs("kiln: out of memory\n", stderr);
    exit(CLI_FAILED);
  }
  block->next = c->pool;
  c->pool = block;
  return block->data;
}

void *kiln__cli_grow(cli *c, const void *array, size_t n, size_t *capacity,
                     size_t size)
{
  void *more;

  if (n < *capacity)
    return (void *)(uintptr_t)array;
  *capacity = *capacity == 0 ? 64 : 2 * *capacity;
  more = kiln__cli_alloc(c, *capacity, size);
  if (n > 0)
    memcpy(more, array, n * size);
  return more;
}

void kiln__cli_free_all(cli *c)
{
  while (c->pool != NULL) {
    struct cli_block *next = c->pool->next;

    free(c->pool);
    c->pool = next;
  }
  free(c->warnings);
  c->warnings = NULL;
}

char *kiln__cli_text(cli *c, const char *format, ...)
{
  va_list args;
  char *text;
  int n;

  va_start(args, format);
  n = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (n < 0)
    n = 0;
  text = kiln__cli_alloc(c, (size_t)n + 1, 1);
  va_start(args, format);
  vsnprintf(text, (size_t)n + 1, format, args);
  va_end(args);
  return text;
}

char *kiln__cli_word(char **rest, const char *separators)
{
  char *word = *rest + strspn(*rest, separators);
  const size_t n = strcspn(word, separators);

  if (n == 0)
    return NULL;
  *rest = word + n + (word[n] != '\0' ? 1 : 0);
  word[n] = '\0';
  return word;
}

/* ---- Characters --------------------------------------------------------- */

/* Returns the length in bytes of the UTF-8 character at `s`. Returns 0 if the
 * bytes are not a character, or are an overlong encoding or a surrogate. */
static size_t utf8_length(const unsigned char *s)
{
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const size_t n = s[0] < 0x80             ? 1
                   : (s[0] & 0xe0) == 0xc0 ? 2
                   : (s[0] & 0xf0) == 0xe0 ? 3
                   : (s[0] & 0xf8) == 0xf0 ? 4
                                           : 0;
  uint32_t value = n < 2 ? s[0] : s[0] & (0xffu >> (n + 1));

  for (size_t i = 1; i < n; i++) {
    if ((s[i] & 0xc0) != 0x80)
      return 0;
    value = value << 6 | (s[i] & 0x3f);
  }
  if (n == 0 || value < least[n] || value > 0x10ffff || value >> 11 == 0x1b)
    return 0;
  return n;
}

size_t kiln__cli_utf8(const char *text, bool *control)
{
  const unsigned char *s = (const unsigned char *)text;
  const size_t n = utf8_length(s);

  /* C1 control characters are U+0080 to U+009F: 0xc2 and a byte below 0xa0. */
  *control = n == 0 || (n == 1 && (s[0] < 0x20 || s[0] == 0x7f)) ||
             (n == 2 && s[0] == 0xc2 && s[1] < 0xa0);
  return n;
}

const char *kiln__cli_shown(cli *c, const char *text)
{
  const char *from = text;
  char *out = NULL, *at = NULL;
  bool control;

  while (*from != '\0') {
    size_t n = kiln__cli_utf8(from, &control);

    if (control && out == NULL) {
      out = kiln__cli_alloc(c, 4 * strlen(text) + 1, 1);
      memcpy(out, text, (size_t)(from - text));
      at = out + (from - text);
    }
    for (n = n == 0 ? 1 : n; n > 0; n--, from++)
      if (control)
        at += sprintf(at, "\\x%02x", (unsigned)(unsigned char)*from);
      else if (out != NULL)
        *at++ = *from;
  }
  return out == NULL ? text : out;
}

size_t kiln__cli_columns(const char *text)
{
  size_t n = 0;

  for (; *text != '\0'; text++)
    n += ((unsigned char)*text & 0xc0) != 0x80;
  return n;
}

/* Returns the number of bytes of `text` that fit into `columns` columns, up
 * to the first newline. A first word that is wider than the line stays
 * whole, since the user may copy it. */
static size_t line_length(const char *text, size_t columns)
{
  const size_t line = strcspn(text, "\n");
  size_t fits = 0, n = 0;

  while (n < line) {
    const size_t blanks = strspn(text + n, " ");
    const size_t end = n + blanks + strcspn(text + n + blanks, " \n");

    if (n > 0 && end > columns)
      break;
    fits = n = end;
  }
  return fits;
}

void kiln__cli_wrap(const char *text, size_t column, size_t width)
{
  for (;;) {
    const size_t n = line_length(text, width - column);

    printf("%.*s\n", (int)n, text);
    text += n;
    text += *text == '\n' ? 1 : strspn(text, " ");
    if (*text == '\0')
      return;
    if (*text != '\n')
      printf("%*s", (int)column, "");
  }
}

/* ---- Units -------------------------------------------------------------- */

const char *kiln__cli_bytes(cli *c, uint64_t bytes)
{
  static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = (double)bytes / 1024;
  size_t unit = 0;

  if (bytes < 1024)
    return kiln__cli_text(c, "%d B", (int)bytes);
  while (value >= 1023.95 && unit < 3) {
    value /= 1024;
    unit++;
  }
  /* Limits of a GPU are whole numbers and are printed without ".0". */
  if (value == (double)(uint64_t)value)
    return kiln__cli_text(c, "%d %s", (int)value, units[unit]);
  return kiln__cli_text(c, "%.1f %s", value, units[unit]);
}

const char *kiln__cli_version(cli *c, int version)
{
  return kiln__cli_text(c, "%d.%d", version / 1000, version % 1000 / 10);
}

const char *kiln__cli_cc(cli *c, int cc)
{
  return kiln__cli_text(c, "%d.%d", cc / 10, cc % 10);
}

const char *kiln__cli_cc_list(cli *c, const int *archs, size_t n)
{
  const char *text = "";

  for (size_t i = 0; i < n; i++)
    text = kiln__cli_text(c, "%s%s%d.%d", text, i > 0 ? " " : "", archs[i] / 10,
                          archs[i] % 10);
  return text;
}

const char *kiln__cli_plain_name(cli *c, const char *lowered)
{
  const char *p = lowered;
  const char *out = "";
  bool nested;

  if (strncmp(p, "_Z", 2) != 0)
    return lowered;
  p += 2;
  nested = *p == 'N';
  if (nested)
    p++;
  do {
    char *end;
    const unsigned long n = strtoul(p, &end, 10);

    if (end == p || n == 0 || n > strlen(end))
      break;
    out = kiln__cli_text(c, "%s%s%.*s", out, *out != '\0' ? "::" : "", (int)n,
                         end);
    p = end + n;
  } while (nested);
  if (*out == '\0')
    return lowered;
  return *p == 'I' ? kiln__cli_text(c, "%s<>", out) : out;
}

bool kiln__cli_parse_version(const char *text, int major, int minor, int *out)
{
  char *end;
  unsigned long a, b = 0;

  a = strtoul(text, &end, 10);
  if (end == text || text[0] == '-' || text[0] == '+')
    return false;
  if (*end == '.') {
    const char *rest = end + 1;

    b = strtoul(rest, &end, 10);
    if (end == rest)
      return false;
  }
  if (*end != '\0' || a > 1000 || b > 99)
    return false;
  *out = (int)a * major + (int)b * minor;
  return true;
}

bool kiln__cli_parse_bytes(const char *text, uint64_t *out)
{
  static const char units[] = "KMGT";
  char *end;
  unsigned long long value;
  int shift = 0;

  errno = 0;
  value = strtoull(text, &end, 10);
  if (end == text || text[0] == '-' || errno != 0)
    return false;
  if (*end != '\0') {
    const char *unit = strchr(units, *end >= 'a' ? *end - 'a' + 'A' : *end);

    if (unit == NULL)
      return false;
    shift = 10 * (int)(unit - units + 1);
    end++;
    if (strcmp(end, "iB") == 0 || strcmp(end, "B") == 0)
      end += strlen(end);
  }
  if (*end != '\0' || value > UINT64_MAX >> shift)
    return false;
  *out = (uint64_t)value << shift;
  return true;
}

/* meta.c -- the META section of a cache entry records the target of its image,
 * the compiler version, and the compile time.
 *
 * The section is text with one field per line: "target sm_90", "nvrtc 12090",
 * "microseconds 14000". An entry with a META section that names no target is
 * damaged, even if its checksums match, since its machine code could be for any
 * GPU. */
#include "cache.h"

#include <string.h>

void kiln__meta_write(kiln__buf *out, const kiln__meta *meta)
{
  char text[24];

  kiln__buf_format(out, "target %s\nnvrtc %d\nmicroseconds %llu\n",
                   kiln_target_text(&meta->target, text), meta->nvrtc,
                   (unsigned long long)meta->microseconds);
}

/* Finds the line "field value" in the text and returns the value, truncated to
 * the size of the buffer. */
static bool value_of(kiln__slice text, const char *field, char *buf,
                     size_t size)
{
  const size_t n = strlen(field);

  for (size_t at = 0; at < text.size;) {
    const char *line = (const char *)text.data + at;
    const char *stop = memchr(line, '\n', text.size - at);
    const size_t length = stop == NULL ? text.size - at : (size_t)(stop - line);

    if (length > n && length - n - 1 < size && memcmp(line, field, n) == 0 &&
        line[n] == ' ') {
      memcpy(buf, line + n + 1, length - n - 1);
      buf[length - n - 1] = '\0';
      return true;
    }
    at += length + 1;
  }
  return false;
}

static uint64_t number_of(kiln__slice text, const char *field)
{
  char digits[24];
  uint64_t value = 0;

  if (!value_of(text, field, digits, sizeof digits))
    return 0;
  for (const char *p = digits; *p >= '0' && *p <= '9'; p++)
    value = value * 10 + (uint64_t)(*p - '0');
  return value;
}

bool kiln__meta_read(kiln__slice text, kiln__meta *out)
{
  char target[24];

  *out = (kiln__meta){.nvrtc = (int)number_of(text, "nvrtc"),
                      .microseconds = number_of(text, "microseconds")};
  return value_of(text, "target", target, sizeof target) &&
         kiln__target_read(target, &out->target);
}

/* text_buffer.c -- strings of bounded size, byte buffers that grow, and
 * formatting of log lines. */
#include "base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the length of `text` truncated to `limit` bytes without splitting a
 * UTF-8 sequence. */
static size_t cut_length(const char *text, size_t limit)
{
  size_t n = limit;

  while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
    n--;
  return n;
}

void kiln__trim_cut(char *buf, size_t size)
{
  size_t start = size - 1, length;

  while (start > 0 && ((unsigned char)buf[start - 1] & 0xc0) == 0x80)
    start--;
  if (start == 0)
    return;
  /* The last character of the truncated text begins at start - 1, and its first
   * byte determines its length. Bytes that are not UTF-8 are kept. */
  switch ((unsigned char)buf[start - 1] >> 4) {
  case 0xc:
  case 0xd:
    length = 2;
    break;
  case 0xe:
    length = 3;
    break;
  case 0xf:
    length = 4;
    break;
  default:
    return;
  }
  if (size - start < length)
    buf[start - 1] = '\0';
}

bool kiln__copy_text(char *buf, size_t size, const char *text)
{
  const size_t n = strlen(text);

  if (n < size) {
    memmove(buf, text, n + 1);
    return true;
  }
  {
    const size_t kept = cut_length(text, size - 1);

    memmove(buf, text, kept);
    buf[kept] = '\0';
  }
  return false;
}

bool kiln__format(char *buf, size_t size, const char *format, ...)
{
  va_list args;
  int n;

  va_start(args, format);
  n = vsnprintf(buf, size, format, args);
  va_end(args);
  if (n < 0) {
    buf[0] = '\0';
    return false;
  }
  if ((size_t)n < size)
    return true;
  kiln__trim_cut(buf, size);
  return false;
}

const char *kiln__errno_text(int code, char *buf, size_t size)
{
#if defined(__GLIBC__) && defined(_GNU_SOURCE)
  return strerror_r(code, buf, size);
#else
  return strerror_r(code, buf, size) == 0 ? buf : "unknown error";
#endif
}

bool kiln__starts_with(const char *text, const char *prefix)
{
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

void kiln__format_double(char buf[32], double value)
{
  char *to = buf;

  if (value != value) {
    kiln__copy_text(buf, 32, "nan");
    return;
  }
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(buf, 32, "%.*g", digits, value);
    /* strtod() uses the locale's decimal point, as snprintf() does, so it reads
     * the number back correctly. */
    if (strtod(buf, NULL) == value)
      break;
  }
  /* The locale's decimal point may be a comma or may consist of several bytes.
   */
  for (const char *c = buf; *c != '\0'; c++) {
    if (strchr("0123456789+-einf.", *c) != NULL)
      *to++ = *c;
    else if (to == buf || to[-1] != '.')
      *to++ = '.';
  }
  *to = '\0';
}

void kiln__buf_init(kiln__buf *b, const kiln_allocator *a)
{
  *b = (kiln__buf){.alloc = a};
}

void kiln__buf_free(kiln__buf *b)
{
  if (b->alloc != NULL)
    kiln__free(b->alloc, b->data);
  *b = (kiln__buf){.alloc = b->alloc};
}

void kiln__buf_clear(kiln__buf *b)
{
  b->size = 0;
  b->failed = false;
  if (b->data != NULL)
    b->data[0] = '\0';
}

bool kiln__buf_reserve(kiln__buf *b, size_t more)
{
  size_t wanted, capacity;
  char *data;

  if (b->failed || more > SIZE_MAX / 2 - b->size - 1) {
    b->failed = true;
    return false;
  }
  wanted = b->size + more + 1;
  if (b->data != NULL && wanted <= b->capacity)
    return true;
  capacity = b->capacity < 128 ? 256 : b->capacity * 2;
  if (capacity < wanted)
    capacity = wanted;
  data = kiln__resize(b->alloc, b->data, capacity);
  if (data == NULL) {
    b->failed = true;
    return false;
  }
  b->data = data;
  b->capacity = capacity;
  return true;
}

void kiln__buf_add(kiln__buf *b, const void *data, size_t size)
{
  if (!kiln__buf_reserve(b, size))
    return;
  if (size > 0)
    memcpy(b->data + b->size, data, size);
  b->size += size;
  b->data[b->size] = '\0';
}

void kiln__buf_text(kiln__buf *b, const char *text)
{
  kiln__buf_add(b, text, strlen(text));
}

void kiln__buf_format(kiln__buf *b, const char *format, ...)
{
  va_list args, again;
  int n;

  va_start(args, format);
  va_copy(again, args);
  n = vsnprintf(NULL, 0, format, args);
  if (n < 0)
    b->failed = true;
  else if (kiln__buf_reserve(b, (size_t)n)) {
    vsnprintf(b->data + b->size, (size_t)n + 1, format, again);
    b->size += (size_t)n;
  }
  va_end(again);
  va_end(args);
}

char *kiln__buf_take(kiln__buf *b)
{
  char *data;

  if (b->data == NULL)
    kiln__buf_add(b, "", 0);
  if (b->failed) {
    kiln__buf_free(b);
    return NULL;
  }
  data = b->data;
  *b = (kiln__buf){.alloc = b->alloc};
  return data;
}

kiln_status kiln__buf_status(const kiln__buf *b, const char *what)
{
  return b->failed ? kiln__fail_memory(what) : KILN_OK;
}

void kiln__logf(const kiln__log *log, kiln_log_level level, const char *format,
                ...)
{
  char line[1024];
  va_list args;
  int n;

  if (log == NULL || log->fn == NULL || level > log->level)
    return;
  va_start(args, format);
  n = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (n < 0)
    return;
  if ((size_t)n >= sizeof line)
    kiln__trim_cut(line, sizeof line);
  log->fn(log->user, level, line);
}

/* error_record.c -- the per-thread record of the last failure, which
 * kiln_last_error() returns. A successful call does not change the record. */
#include "base.h"

#include <stdio.h>
#include <string.h>

/* For a static analyzer, base.h replaces these functions by macros. The macros
 * are removed here, where the functions are defined. */
#undef kiln__fail
#undef kiln__fail_native
#undef kiln__fail_os
#undef kiln__fail_memory

static _Thread_local kiln_error record;

const kiln_error *kiln_last_error(void)
{
  return &record;
}

const char *kiln_status_name(kiln_status status)
{
  switch (status) {
#define NAME_CASE(name, value, text)                                           \
  case KILN_##name:                                                            \
    return "KILN_" #name;
    KILN_STATUS_MAP(NAME_CASE)
#undef NAME_CASE
  }
  return "KILN_?";
}

const char *kiln_status_text(kiln_status status)
{
  switch (status) {
#define TEXT_CASE(name, value, text)                                           \
  case KILN_##name:                                                            \
    return text;
    KILN_STATUS_MAP(TEXT_CASE)
#undef TEXT_CASE
  }
  return "not a status of this library";
}

int kiln_version(void)
{
  return KILN_VERSION;
}

/* Ends a truncated string in "..." and removes a split UTF-8 sequence that
 * precedes the dots. */
static void mark_cut(char *buf, size_t size)
{
  size_t end = size - 4;

  while (end > 0 && ((unsigned char)buf[end] & 0xc0) == 0x80)
    end--;
  memcpy(buf + end, "...", 4);
}

static void print_into(char *buf, size_t size, const char *format, va_list args)
{
  const int n = vsnprintf(buf, size, format, args);

  if (n < 0)
    buf[0] = '\0';
  else if ((size_t)n >= size)
    mark_cut(buf, size);
}

/* Copies a string. The copy ends in "..." if it was truncated. */
static void copy_marked(char *buf, size_t size, const char *text)
{
  size_t length;

  if (text == NULL)
    text = "";
  length = strlen(text);
  if (length < size) {
    memcpy(buf, text, length + 1);
    return;
  }
  memcpy(buf, text, size - 1);
  buf[size - 1] = '\0';
  mark_cut(buf, size);
}

static void fill(kiln_status status, kiln_error_source source, int native,
                 const char *call, const char *hint, const char *format,
                 va_list args)
{
  char message[KILN_ERROR_MESSAGE_SIZE];
  char next[KILN_ERROR_HINT_SIZE];
  char name[sizeof record.call];

  /* The message is formatted in a local buffer first, since the arguments may
   * point into the old record. */
  print_into(message, sizeof message, format, args);
  copy_marked(next, sizeof next, hint);
  copy_marked(name, sizeof name, call);

  record.status = status;
  record.source = source;
  record.native = native;
  memcpy(record.call, name, sizeof name);
  memcpy(record.message, message, sizeof message);
  memcpy(record.hint, next, sizeof next);
  record.log[0] = '\0';
}

kiln_status kiln__fail(kiln_status status, const char *hint, const char *format,
                       ...)
{
  va_list args;

  va_start(args, format);
  fill(status, KILN_SOURCE_NONE, 0, NULL, hint, format, args);
  va_end(args);
  return status;
}

kiln_status kiln_error_write(kiln_status status, const char *hint,
                             const char *message)
{
  return kiln__fail(status, hint, "%s", message != NULL ? message : "");
}

kiln_status kiln__fail_native(kiln_status status, kiln_error_source source,
                              int native, const char *call, const char *hint,
                              const char *format, ...)
{
  va_list args;

  va_start(args, format);
  fill(status, source, native, call, hint, format, args);
  va_end(args);
  return status;
}

kiln_status kiln__fail_os(int code, const char *call, const char *path)
{
  char text[128];

  return kiln__fail_native(KILN_EIO, KILN_SOURCE_OS, code, call, NULL,
                           "%s: %s failed: %s", path, call,
                           kiln__errno_text(code, text, sizeof text));
}

kiln_status kiln__fail_memory(const char *what)
{
  return kiln__fail(KILN_ENOMEM, "free memory or give the allocator more",
                    "out of host memory for %s", what);
}

void kiln__error_log(const char *text, size_t size)
{
  const size_t limit = sizeof record.log;

  /* `text` may point into the error record itself, so memmove() is used. */
  if (size < limit) {
    memmove(record.log, text, size);
    record.log[size] = '\0';
    return;
  }
  memmove(record.log, text, limit - 1);
  record.log[limit - 1] = '\0';
  mark_cut(record.log, limit);
}

void kiln__error_hint(const char *format, ...)
{
  char hint[sizeof record.hint];
  va_list args;

  va_start(args, format);
  print_into(hint, sizeof hint, format, args);
  va_end(args);
  memcpy(record.hint, hint, sizeof hint);
}

void kiln__error_get(kiln_error *out)
{
  *out = record;
}

void kiln__error_set(const kiln_error *from)
{
  record = *from;
}

/* key_text.c -- the text format of cache keys.
 *
 * A field of a key is "<p|l> <name size> <value size> <name>\n<value>\n", where
 * p means portable (describes the program) and l means local (describes the
 * compiler and the target). The sizes precede the name and the value, so a
 * value can never be mistaken for the start of another field. Two different
 * lists of fields therefore never give the same text. */
#include "tiers.h"

#include <string.h>

void kiln__key_init(kiln__key *key, const kiln_allocator *a)
{
  *key = (kiln__key){.hash = ""};
  kiln__buf_init(&key->text, a);
  kiln__buf_init(&key->portable, a);
}

void kiln__key_free(kiln__key *key)
{
  kiln__buf_free(&key->text);
  kiln__buf_free(&key->portable);
}

static void add_field(kiln__buf *b, const char *field, const void *value,
                      size_t size, bool portable)
{
  kiln__buf_format(b, "%c %zu %zu %s\n", portable ? 'p' : 'l', strlen(field),
                   size, field);
  kiln__buf_add(b, value, size);
  kiln__buf_add(b, "\n", 1);
}

void kiln__key_add(kiln__key *key, const char *field, const void *value,
                   size_t size, bool portable)
{
  add_field(&key->text, field, value, size, portable);
  if (portable)
    add_field(&key->portable, field, value, size, portable);
}

kiln_status kiln__key_seal(kiln__key *key)
{
  kiln__buf_add(&key->text, "", 0);
  kiln__buf_add(&key->portable, "", 0);
  if (key->text.failed || key->portable.failed)
    return kiln__fail_memory("cache key");
  kiln__hash_text(key->hash, key->text.data, key->text.size);
  kiln__hash_text(key->portable_hash, key->portable.data, key->portable.size);
  return KILN_OK;
}

/* Reads the decimal size of a name or value, followed by a space. Returns false
 * if there is no number or if the size exceeds the size of the whole text. */
static bool read_size(const char *text, size_t size, size_t *at, size_t *out)
{
  const size_t start = *at;

  *out = 0;
  while (*at < size && text[*at] >= '0' && text[*at] <= '9') {
    *out = *out * 10 + (size_t)(text[*at] - '0');
    if (*out > size)
      return false;
    ++*at;
  }
  if (*at == start || *at == size || text[*at] != ' ')
    return false;
  ++*at;
  return true;
}

bool kiln__key_next(const char *text, size_t size, size_t *at, kiln__field *out)
{
  size_t i = *at;

  if (size < 2 || i >= size - 2 || (text[i] != 'p' && text[i] != 'l') ||
      text[i + 1] != ' ')
    return false;
  out->portable = text[i] == 'p';
  i += 2;
  if (!read_size(text, size, &i, &out->name_size) ||
      !read_size(text, size, &i, &out->size))
    return false;
  if (size - i < out->name_size || size - i - out->name_size < 2 ||
      size - i - out->name_size - 2 < out->size)
    return false;
  out->name = text + i;
  out->value = out->name + out->name_size + 1;
  if (out->value[-1] != '\n' || out->value[out->size] != '\n')
    return false;
  *at = i + out->name_size + out->size + 2;
  return true;
}

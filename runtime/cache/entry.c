/* entry.c -- cache entries in memory and their binary format.
 *
 * An entry consists of the complete key text and six sections: PTX, CUBIN,
 * lowered names, log, resource report, META. In a file, all numbers are
 * little-endian. The columns are the offset, the size in bytes and the content:
 *
 *    0  8  magic number
 *    8  4  format version
 *   12  4  a constant that reveals a different byte order
 *   16  8  size of the entry in bytes
 *   24  4  number of parts
 *   28  4  size of this header in bytes
 *   32     size (8) and XXH3-64 (8) of each part
 *          XXH3-64 of all preceding bytes (8)
 *          the parts: the key, then the sections, without padding
 *
 * Invariant: a checksum covers every bit of a file, so a flipped or missing bit
 * is always detected. The complete key is stored and compared on reading, so a
 * hash collision or a forged file name causes a miss rather than a wrong image.
 */
#include "tiers.h"

#include <string.h>

enum { WIRE_VERSION = 1, WIRE_MARK = 0x01020304 };

static const char magic[8] = {'k', 'i', 'l', 'n', 'e', 'n', 't', '\n'};

void kiln__put32(unsigned char *to, uint32_t value)
{
  for (int i = 0; i < 4; i++)
    to[i] = (unsigned char)(value >> (8 * i));
}

void kiln__put64(unsigned char *to, uint64_t value)
{
  for (int i = 0; i < 8; i++)
    to[i] = (unsigned char)(value >> (8 * i));
}

uint32_t kiln__get32(const unsigned char *from)
{
  return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 |
         (uint32_t)from[3] << 24;
}

uint64_t kiln__get64(const unsigned char *from)
{
  return kiln__get32(from) | (uint64_t)kiln__get32(from + 4) << 32;
}

kiln__entry *kiln__entry_reserve(const kiln_allocator *a, size_t wire_size)
{
  /* Decoding an entry file removes the header and appends a NUL byte to each
   * part. */
  kiln__entry *entry =
      kiln__alloc(a, sizeof *entry + wire_size + KILN__WIRE_PARTS);

  if (entry == NULL)
    return NULL;
  memset(entry, 0, sizeof *entry);
  entry->alloc = a;
  entry->refs = 1;
  entry->wire_size = wire_size;
  return entry;
}

kiln__entry *kiln__entry_create(const kiln_allocator *a, const kiln__key *key,
                                const kiln__slice sections[KILN__SECTIONS])
{
  size_t wire_size = KILN__WIRE_HEAD + key->text.size;
  kiln__entry *entry;
  unsigned char *to;

  for (int i = 0; i < KILN__SECTIONS; i++) {
    if (sections[i].size > SIZE_MAX / 2 - wire_size)
      return NULL;
    wire_size += sections[i].size;
  }
  entry = kiln__entry_reserve(a, wire_size);
  if (entry == NULL)
    return NULL;
  memcpy(entry->hash, key->hash, sizeof entry->hash);
  to = entry->block;
  for (int i = 0; i < KILN__WIRE_PARTS; i++) {
    const kiln__slice from = i == 0
                                 ? (kiln__slice){key->text.data, key->text.size}
                                 : sections[i - 1];

    if (from.size > 0)
      memcpy(to, from.data, from.size);
    to[from.size] = '\0';
    entry->parts[i] = (kiln__slice){to, from.size};
    to += from.size + 1;
  }
  return entry;
}

kiln__entry *kiln__entry_ref(kiln__entry *entry)
{
  if (entry != NULL)
    __atomic_fetch_add(&entry->refs, 1, __ATOMIC_RELAXED);
  return entry;
}

void kiln__entry_unref(kiln__entry *entry)
{
  if (entry != NULL &&
      __atomic_sub_fetch(&entry->refs, 1, __ATOMIC_ACQ_REL) == 0)
    kiln__free(entry->alloc, entry);
}

kiln__slice kiln__entry_get(const kiln__entry *entry, kiln__section section)
{
  return entry->parts[1 + (int)section];
}

kiln__slice kiln__entry_key(const kiln__entry *entry)
{
  return entry->parts[0];
}

const char *kiln__entry_hash(const kiln__entry *entry)
{
  return entry->hash;
}

static bool same_bytes(kiln__slice a, const void *data, size_t size)
{
  return a.size == size && (size == 0 || memcmp(a.data, data, size) == 0);
}

bool kiln__entry_has_key(const kiln__entry *entry, const kiln__buf *text)
{
  return same_bytes(entry->parts[0], text->data, text->size);
}

bool kiln__entry_same(const kiln__entry *a, const kiln__entry *b)
{
  for (int i = 0; i < KILN__WIRE_PARTS; i++) {
    if (!same_bytes(a->parts[i], b->parts[i].data, b->parts[i].size))
      return false;
  }
  return true;
}

void kiln__entry_head(const kiln__entry *entry,
                      unsigned char head[KILN__WIRE_HEAD])
{
  unsigned char *to = head + 32;

  memcpy(head, magic, sizeof magic);
  kiln__put32(head + 8, WIRE_VERSION);
  kiln__put32(head + 12, WIRE_MARK);
  kiln__put64(head + 16, entry->wire_size);
  kiln__put32(head + 24, KILN__WIRE_PARTS);
  kiln__put32(head + 28, KILN__WIRE_HEAD);
  for (int i = 0; i < KILN__WIRE_PARTS; i++, to += 16) {
    kiln__put64(to, entry->parts[i].size);
    kiln__put64(to + 8,
                kiln__sum64(entry->parts[i].data, entry->parts[i].size));
  }
  kiln__put64(to, kiln__sum64(head, (size_t)(to - head)));
}

bool kiln__wire_read(kiln__wire *out, const unsigned char *head, uint64_t size)
{
  const unsigned char *from = head + 32;
  uint64_t rest;

  if (size < KILN__WIRE_HEAD || memcmp(head, magic, sizeof magic) != 0 ||
      kiln__get32(head + 8) != WIRE_VERSION ||
      kiln__get32(head + 12) != WIRE_MARK || kiln__get64(head + 16) != size ||
      kiln__get32(head + 24) != KILN__WIRE_PARTS ||
      kiln__get32(head + 28) != KILN__WIRE_HEAD ||
      kiln__get64(head + KILN__WIRE_HEAD - 8) !=
          kiln__sum64(head, KILN__WIRE_HEAD - 8))
    return false;
  out->total = size;
  rest = size - KILN__WIRE_HEAD;
  for (int i = 0; i < KILN__WIRE_PARTS; i++, from += 16) {
    out->size[i] = kiln__get64(from);
    out->sum[i] = kiln__get64(from + 8);
    if (out->size[i] > rest)
      return false;
    rest -= out->size[i];
  }
  return rest == 0;
}

/* Moves the parts of the entry apart, the last part first, to make space for a
 * NUL byte after each part. */
static void spread(kiln__entry *entry, const kiln__wire *wire)
{
  uint64_t from = wire->total;

  for (int i = KILN__WIRE_PARTS - 1; i >= 0; i--) {
    unsigned char *to;

    from -= wire->size[i];
    to = entry->block + from + (size_t)i;
    memmove(to, entry->block + from, (size_t)wire->size[i]);
    to[wire->size[i]] = '\0';
    entry->parts[i] = (kiln__slice){to, (size_t)wire->size[i]};
  }
}

bool kiln__entry_decode(kiln__entry *entry)
{
  kiln__wire wire;
  kiln__meta meta;
  const unsigned char *from = entry->block + KILN__WIRE_HEAD;

  if (entry->wire_size < KILN__WIRE_HEAD ||
      !kiln__wire_read(&wire, entry->block, entry->wire_size))
    return false;
  for (int i = 0; i < KILN__WIRE_PARTS; i++) {
    if (kiln__sum64(from, (size_t)wire.size[i]) != wire.sum[i])
      return false;
    from += wire.size[i];
  }
  spread(entry, &wire);
  kiln__hash_text(entry->hash, entry->parts[0].data, entry->parts[0].size);
  return kiln__meta_read(kiln__entry_get(entry, KILN__META), &meta);
}

/* device_printf.c -- printf() of kernels: the output buffer and the formatting.
 *
 * The arguments are stored like the members of a struct, each at its natural
 * alignment. int and shorter types occupy 4 bytes; long long, double and
 * pointers occupy 8 bytes. The format specifiers are the subset of C that CUDA
 * documents. The output does not depend on the locale of the program. */
#include "grid_job.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

struct kiln__cpu_out {
  kiln_allocator alloc;
  pthread_mutex_t lock;
  size_t capacity, size;
  void (*write)(void *user, const char *text, size_t size);
  void *user;
  char *data;
};

kiln_status kiln__cpu_out_create(
    kiln__cpu_out **out, const kiln_allocator *a, size_t capacity,
    void (*write)(void *user, const char *text, size_t size), void *user)
{
  kiln__cpu_out *o = kiln__calloc(a, 1, sizeof *o);

  *out = NULL;
  if (o == NULL)
    return kiln__fail_memory("the printf buffer");
  o->alloc = *a;
  o->capacity = capacity < 64 ? 64 : capacity;
  o->write = write;
  o->user = user;
  o->data = kiln__alloc(a, o->capacity);
  if (o->data == NULL) {
    kiln__free(a, o);
    return kiln__fail_memory("the printf buffer");
  }
  pthread_mutex_init(&o->lock, NULL);
  *out = o;
  return KILN_OK;
}

static void flush(kiln__cpu_out *out)
{
  if (out->size != 0 && out->write != NULL)
    out->write(out->user, out->data, out->size);
  out->size = 0;
}

static void add(kiln__cpu_out *out, const char *text, size_t size)
{
  while (size != 0) {
    const size_t space = out->capacity - out->size;
    const size_t n = size < space ? size : space;

    memcpy(out->data + out->size, text, n);
    out->size += n;
    text += n;
    size -= n;
    if (out->size > out->capacity / 2)
      flush(out);
  }
}

void kiln__cpu_out_add(kiln__cpu_out *out, const char *text, size_t size)
{
  if (out == NULL)
    return;
  pthread_mutex_lock(&out->lock);
  add(out, text, size);
  pthread_mutex_unlock(&out->lock);
}

void kiln__cpu_out_flush(kiln__cpu_out *out)
{
  if (out == NULL)
    return;
  pthread_mutex_lock(&out->lock);
  flush(out);
  pthread_mutex_unlock(&out->lock);
}

void kiln__cpu_out_free(kiln__cpu_out *out)
{
  if (out == NULL)
    return;
  flush(out);
  pthread_mutex_destroy(&out->lock);
  kiln__free(&out->alloc, out->data);
  kiln__free(&out->alloc, out);
}

/* ---- Formatting ---------------------------------------------------------- */

enum { MAX_WIDTH = 1000, MAX_ARGUMENTS = 32, PIECE = 2200 };

/* The state of one call of printf() in a kernel. */
typedef struct printing {
  kiln__cpu_warp *w;
  int lane;
  uint64_t args;
  uint64_t at; /* number of argument bytes read so far */
  int n_args;
  kiln__buf text;
} printing;

/* One conversion specification of a printf() format, such as "%-8.3f". */
typedef struct conversion {
  char flags[8];
  /* a precision of -1 means that the format specifies no precision */
  int width, precision;
  bool wide; /* the argument has 64 bits (length modifier ll, l, j, z or t) */
  /* size of the argument in bytes: 2 after h, 1 after hh; otherwise 0 */
  unsigned narrow;
  char specifier;
} conversion;

static uint64_t next_argument(printing *p, unsigned bytes)
{
  uint64_t value = 0;
  uint32_t small = 0;
  const uint8_t *from;

  p->at = (p->at + bytes - 1) & ~(uint64_t)(bytes - 1);
  from = p->args != 0
             ? kiln__cpu_lane_bytes(p->w, p->lane, p->args + p->at, bytes)
             : NULL;
  p->at += bytes;
  p->n_args++;
  if (from == NULL)
    return 0;
  if (bytes == 8) {
    memcpy(&value, from, 8);
    return value;
  }
  memcpy(&small, from, 4);
  return small;
}

static int number_at(printing *p, const char **c)
{
  int value = 0;

  if (**c == '*') {
    ++*c;
    value = (int)(int32_t)(uint32_t)next_argument(p, 4);
    return value > MAX_WIDTH    ? MAX_WIDTH
           : value < -MAX_WIDTH ? -MAX_WIDTH
                                : value;
  }
  for (; **c >= '0' && **c <= '9'; ++*c) {
    value = value * 10 + (**c - '0');
    if (value > MAX_WIDTH)
      value = MAX_WIDTH;
  }
  return value;
}

static void read_flags(conversion *v, const char **c)
{
  size_t n = 0;

  for (; **c != '\0' && strchr("-+ #0", **c) != NULL; ++*c) {
    if (memchr(v->flags, **c, n) == NULL && n + 2 < sizeof v->flags)
      v->flags[n++] = **c;
  }
  v->flags[n] = '\0';
}

static void read_length(conversion *v, const char **c)
{
  for (; **c != '\0' && strchr("hljztLq", **c) != NULL; ++*c) {
    if (**c == 'h')
      v->narrow = v->narrow == 2 ? 1 : 2;
    else if (**c != 'L')
      v->wide = true;
  }
}

static bool read_conversion(printing *p, conversion *v, const char **c)
{
  *v = (conversion){.width = 0, .precision = -1};
  read_flags(v, c);
  v->width = number_at(p, c);
  if (v->width < 0) {
    const size_t n = strlen(v->flags);

    v->width = -v->width;
    if (strchr(v->flags, '-') == NULL) {
      v->flags[n] = '-';
      v->flags[n + 1] = '\0';
    }
  }
  if (**c == '.') {
    ++*c;
    v->precision = number_at(p, c);
  }
  read_length(v, c);
  v->specifier = **c;
  if (v->specifier == '\0' || strchr("diouxXcsfFeEgGaAp", v->specifier) == NULL)
    return false;
  ++*c;
  return true;
}

/* Builds a format string for the host's snprintf(): flags, width and precision,
 * followed by `tail` and the conversion specifier. */
static void host_format(const conversion *v, char out[40], const char *tail)
{
  char precision[16] = "";

  if (v->precision >= 0)
    kiln__format(precision, sizeof precision, ".%d", v->precision);
  if (v->width > 0)
    kiln__format(out, 40, "%%%s%d%s%s%c", v->flags, v->width, precision, tail,
                 v->specifier);
  else
    kiln__format(out, 40, "%%%s%s%s%c", v->flags, precision, tail,
                 v->specifier);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static void print_integer(printing *p, const conversion *v)
{
  uint64_t bits = next_argument(p, v->wide ? 8 : 4);
  char format[40], piece[PIECE];

  host_format(v, format, "ll");
  if (v->specifier == 'd' || v->specifier == 'i') {
    int64_t value = v->wide ? (int64_t)bits : (int64_t)(int32_t)(uint32_t)bits;

    if (v->narrow == 2)
      value = (int16_t)(uint16_t)bits;
    else if (v->narrow == 1)
      value = (int64_t)(bits & 0x7f) - (int64_t)(bits & 0x80);
    snprintf(piece, sizeof piece, format, (long long)value);
  } else {
    if (v->narrow == 2)
      bits &= 0xffff;
    else if (v->narrow == 1)
      bits &= 0xff;
    snprintf(piece, sizeof piece, format, (unsigned long long)bits);
  }
  kiln__buf_text(&p->text, piece);
}

/* Prints a floating-point number. The decimal point is '.' in every locale. */
static void print_float(printing *p, const conversion *v)
{
  const uint64_t bits = next_argument(p, 8);
  const char point = localeconv()->decimal_point[0];
  char format[40], piece[PIECE];
  double value;

  memcpy(&value, &bits, sizeof value);
  host_format(v, format, "");
  snprintf(piece, sizeof piece, format, value);
  if (point != '.') {
    char *const at = strchr(piece, point);

    if (at != NULL)
      *at = '.';
  }
  kiln__buf_text(&p->text, piece);
}

static void print_character(printing *p, const conversion *v)
{
  const char c = (char)(uint8_t)next_argument(p, 4);
  const int pad = v->width > 1 ? v->width - 1 : 0;
  const bool left = strchr(v->flags, '-') != NULL;

  for (int i = 0; !left && i < pad; i++)
    kiln__buf_add(&p->text, " ", 1);
  kiln__buf_add(&p->text, &c, 1);
  for (int i = 0; left && i < pad; i++)
    kiln__buf_add(&p->text, " ", 1);
}

static void print_string(printing *p, const conversion *v)
{
  const uint64_t address = next_argument(p, 8);
  const bool left = strchr(v->flags, '-') != NULL;
  const size_t start = p->text.size;
  size_t n = 0;

  while (v->precision < 0 || n < (size_t)v->precision) {
    const uint8_t *const c =
        address != 0 ? kiln__cpu_lane_bytes(p->w, p->lane, address + n, 1)
                     : NULL;

    if (c == NULL || *c == '\0')
      break;
    kiln__buf_add(&p->text, c, 1);
    n++;
  }
  if (address == 0)
    kiln__buf_text(&p->text, "(null)");
  n = p->text.size - start;
  for (; n < (size_t)v->width; n++) {
    kiln__buf_add(&p->text, " ", 1);
    if (!left && !p->text.failed) {
      memmove(p->text.data + start + 1, p->text.data + start,
              p->text.size - start - 1);
      p->text.data[start] = ' ';
    }
  }
}

static void print_pointer(printing *p, const conversion *v)
{
  const uint64_t address = next_argument(p, 8);
  conversion text = *v;
  char format[40], digits[32], piece[PIECE];

  kiln__format(digits, sizeof digits, "0x%llx", (unsigned long long)address);
  text.specifier = 's';
  text.precision = -1;
  kiln__copy_text(text.flags, sizeof text.flags,
                  strchr(v->flags, '-') != NULL ? "-" : "");
  host_format(&text, format, "");
  snprintf(piece, sizeof piece, format, digits);
  kiln__buf_text(&p->text, piece);
}

#pragma GCC diagnostic pop

static void print_one(printing *p, const conversion *v)
{
  switch (v->specifier) {
  case 'd':
  case 'i':
  case 'o':
  case 'u':
  case 'x':
  case 'X':
    print_integer(p, v);
    break;
  case 'c':
    print_character(p, v);
    break;
  case 's':
    print_string(p, v);
    break;
  case 'p':
    print_pointer(p, v);
    break;
  default:
    print_float(p, v);
    break;
  }
}

static void print_all(printing *p, const char *c)
{
  while (*c != '\0') {
    const char *const start = c;
    conversion v;

    if (*c != '%') {
      while (*c != '\0' && *c != '%')
        c++;
      kiln__buf_add(&p->text, start, (size_t)(c - start));
      continue;
    }
    c++;
    if (*c == '%') {
      kiln__buf_add(&p->text, c++, 1);
    } else if (p->n_args < MAX_ARGUMENTS && read_conversion(p, &v, &c)) {
      print_one(p, &v);
    } else { /* An invalid conversion specification is printed unchanged. */
      kiln__buf_add(&p->text, start, (size_t)(c - start));
    }
  }
}

int kiln__cpu_out_printf(kiln__cpu_out *out, kiln__cpu_warp *w, int lane,
                         uint64_t format, uint64_t args)
{
  printing p = {.w = w, .lane = lane, .args = args};
  kiln__buf pattern;
  uint64_t at = format;

  if (format == 0)
    return -1;
  if (out == NULL)
    return 0;
  kiln__buf_init(&pattern, &w->grid->alloc);
  kiln__buf_init(&p.text, &w->grid->alloc);
  for (const uint8_t *c = kiln__cpu_lane_bytes(w, lane, at, 1);
       c != NULL && *c != '\0'; c = kiln__cpu_lane_bytes(w, lane, ++at, 1))
    kiln__buf_add(&pattern, c, 1);
  if (pattern.data != NULL)
    print_all(&p, pattern.data);
  if (p.text.data != NULL && !p.text.failed)
    kiln__cpu_out_add(out, p.text.data, p.text.size);
  kiln__buf_free(&pattern);
  kiln__buf_free(&p.text);
  return p.n_args;
}

/* sweep_axis.c -- parses the axes of a sweep, and makes their product: one row
 * per combination of values, in the order of an odometer whose last axis turns
 * fastest. */
#include "cli/sweep/sweep.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Values ------------------------------------------------------------- */

static int add_value(cli *c, sweep_axis *axis, const char *text)
{
  if (axis->n == SWEEP_MOST_VALUES)
    return kiln__cli_usage(c, "--%s: at most %d values", axis->name,
                           SWEEP_MOST_VALUES);
  axis->values[axis->n++] = text;
  return CLI_OK;
}

/* Parses the unsigned number that `text` starts with. Returns what follows, or
 * NULL if there is no number. */
static const char *take_number(const char *text, unsigned long long *out)
{
  char *end;

  if (text[0] < '0' || text[0] > '9')
    return NULL;
  errno = 0;
  *out = strtoull(text, &end, 10);
  if ((*end == 'K' || *end == 'k') && *out < 1ull << 40) {
    *out <<= 10;
    end++;
  } else if (*end == 'M' && *out < 1ull << 40) {
    *out <<= 20;
    end++;
  }
  return errno == 0 ? end : NULL;
}

typedef struct span {
  unsigned long long from, to, step; /* a step of 0 doubles the value */
} span;

/* Parses "A..B" or "A..B:STEP". Returns false if the text is something else. */
static bool take_span(const char *text, span *out)
{
  const char *at = take_number(text, &out->from);

  if (at == NULL || strncmp(at, "..", 2) != 0)
    return false;
  at = take_number(at + 2, &out->to);
  out->step = 0;
  if (at != NULL && *at == ':') {
    at = take_number(at + 1, &out->step);
    if (out->step == 0)
      return false;
  }
  return at != NULL && *at == '\0' && out->from <= out->to;
}

static int add_span(cli *c, sweep_axis *axis, const span *s)
{
  unsigned long long value = s->from;
  int rc = CLI_OK;

  while (rc == CLI_OK && value < s->to) {
    rc = add_value(c, axis, kiln__cli_text(c, "%llu", value));
    value = s->step > 0 ? value + s->step : value == 0 ? 1 : value * 2;
  }
  /* By steps, the end belongs to the range only if a step reaches it. */
  if (rc == CLI_OK && (s->step == 0 || value == s->to))
    rc = add_value(c, axis, kiln__cli_text(c, "%llu", s->to));
  return rc;
}

int kiln__sweep_values(cli *c, const char *option, const char *text,
                       sweep_axis *out)
{
  char *word, *rest = kiln__cli_text(c, "%s", text);
  int rc = CLI_OK;

  out->name = option;
  out->values = kiln__cli_alloc(c, SWEEP_MOST_VALUES, sizeof *out->values);
  while (rc == CLI_OK && (word = kiln__cli_word(&rest, ",")) != NULL) {
    span s;

    if (take_span(word, &s))
      rc = add_span(c, out, &s);
    else if (strstr(word, "..") != NULL)
      rc = kiln__cli_usage(c,
                           "\"%s\" is no range: write 32..1024, which doubles, "
                           "or 32..256:32",
                           word);
    else
      rc = add_value(c, out, word);
  }
  if (rc == CLI_OK && out->n == 0)
    rc = kiln__cli_usage(c, "--%s needs a value", option);
  return rc;
}

/* Returns whether a macro's value is a list or a range. A value with brackets
 * or quotes is one value, whatever commas it has. */
static bool is_list(const char *value)
{
  span s;

  if (strpbrk(value, "(){}<>[]\"'") != NULL)
    return false;
  return strchr(value, ',') != NULL || take_span(value, &s);
}

int kiln__sweep_defines(sweep *s)
{
  kiln_program_desc *d = &s->program.desc;
  size_t kept = 0;

  for (size_t i = 0; i < d->n_defines; i++) {
    const char *text = s->program.defines[i];
    const char *equals = strchr(text, '=');
    sweep_axis *axis = &s->axes[s->n_axes];

    if (equals != NULL && strcmp(equals, "=@block") == 0) {
      s->block_macro = kiln__cli_text(s->c, "%.*s", (int)(equals - text), text);
      continue;
    }
    if (equals == NULL || !is_list(equals + 1)) {
      s->program.defines[kept++] = text;
      continue;
    }
    if (s->n_axes == SWEEP_MOST_AXES)
      return kiln__cli_usage(s->c, "a sweep has at most %d axes",
                             SWEEP_MOST_AXES);
    *axis = (sweep_axis){.kind = SWEEP_DEFINE};
    if (kiln__sweep_values(
            s->c, kiln__cli_text(s->c, "%.*s", (int)(equals - text), text),
            equals + 1, axis) != CLI_OK)
      return CLI_USAGE;
    s->n_axes++;
  }
  d->n_defines = kept;
  return CLI_OK;
}

/* ---- Rows --------------------------------------------------------------- */

/* Parses "256", "16x16" or "8x8x4". */
static bool take_dim(const char *text, kiln_dim3 *out)
{
  unsigned long long v[3] = {1, 1, 1};

  for (int i = 0; i < 3; i++) {
    text = take_number(text, &v[i]);
    if (text == NULL || v[i] == 0 || v[i] > UINT32_MAX)
      return false;
    if (*text == '\0') {
      *out = (kiln_dim3){(uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2]};
      return true;
    }
    if (*text != 'x')
      return false;
    text++;
  }
  return false;
}

/* Stores the value of one axis in a row. @return false if the value does not
 * suit the axis */
static bool apply(const sweep_axis *axis, const char *value, sweep_row *row)
{
  unsigned long long number = 0;
  const char *rest;

  if (axis->kind == SWEEP_BLOCK)
    return take_dim(value, &row->block);
  if (axis->kind == SWEEP_GRID)
    return take_dim(value, &row->grid);
  if (axis->kind == SWEEP_DEFINE)
    return true;
  if (axis->kind == SWEEP_MAXREG && strcmp(value, "none") == 0)
    return true;
  rest = take_number(value, &number);
  if (rest == NULL || *rest != '\0')
    return false;
  if (axis->kind == SWEEP_MAXREG) {
    row->max_registers = (int)number;
    return number >= 1 && number <= 255;
  }
  row->dynamic = (size_t)number;
  return number <= 1u << 30;
}

static int bad_value(cli *c, const sweep_axis *axis, const char *value)
{
  return kiln__cli_usage(c, "--%s \"%s\": write %s", axis->name, value,
                         axis->kind == SWEEP_MAXREG ? "1 to 255, or none"
                         : axis->kind == SWEEP_SMEM ? "bytes: 512 or 48K"
                                                    : "256, 16x16 or 8x8x4");
}

/* Returns the number that a macro has in a row, or 0 if it has none. */
static uint64_t macro_in(const sweep *s, const sweep_row *row, const char *name)
{
  const kiln_program_desc *d = &s->program.desc;
  const size_t n = strlen(name);
  unsigned long long value;

  for (size_t i = 0; i < s->n_axes; i++)
    if (s->axes[i].kind == SWEEP_DEFINE && strcmp(s->axes[i].name, name) == 0 &&
        take_number(s->axes[i].values[row->at[i]], &value) != NULL)
      return value;
  for (size_t i = 0; i < d->n_defines; i++)
    if (strncmp(d->defines[i], name, n) == 0 && d->defines[i][n] == '=' &&
        take_number(d->defines[i] + n + 1, &value) != NULL)
      return value;
  return 0;
}

/* Sets the grid that covers --items, if no axis gives the grid. */
static int settle_grid(const sweep *s, sweep_row *row)
{
  const uint64_t threads = (uint64_t)row->block.x * row->block.y * row->block.z;
  uint64_t blocks = 1, each = 1;

  if (row->grid.x != 0)
    return CLI_OK;
  if (s->per_thread != NULL)
    each = macro_in(s, row, s->per_thread);
  if (each == 0)
    return kiln__cli_usage(s->c,
                           "--per-thread %s: give it a number with -D %s=4",
                           s->per_thread, s->per_thread);
  if (s->items > 0)
    blocks = (s->items - 1) / threads / each + 1;
  if (s->items > 0 && (s->items - 1) / threads / each >= INT32_MAX)
    blocks = INT32_MAX;
  row->grid = (kiln_dim3){(uint32_t)blocks, 1, 1};
  return CLI_OK;
}

static int make_row(const sweep *s, size_t number, sweep_row *row)
{
  row->block = (kiln_dim3){256, 1, 1};
  for (size_t i = s->n_axes; i > 0; i--) {
    const sweep_axis *axis = &s->axes[i - 1];

    row->at[i - 1] = number % axis->n;
    number /= axis->n;
    if (!apply(axis, axis->values[row->at[i - 1]], row))
      return bad_value(s->c, axis, axis->values[row->at[i - 1]]);
  }
  return settle_grid(s, row);
}

int kiln__sweep_rows(sweep *s)
{
  size_t n = 1;

  for (size_t i = 0; i < s->n_axes; i++) {
    n *= s->axes[i].n;
    if (n > SWEEP_MOST_SETTINGS)
      return kiln__cli_usage(s->c,
                             "these axes have more than %d combinations: use "
                             "fewer values",
                             SWEEP_MOST_SETTINGS);
  }
  s->rows = kiln__cli_alloc(s->c, n, sizeof *s->rows);
  s->n_rows = n;
  for (size_t i = 0; i < n; i++)
    if (make_row(s, i, &s->rows[i]) != CLI_OK)
      return CLI_USAGE;
  return CLI_OK;
}

double kiln__sweep_number(const sweep *s, const sweep_row *row, size_t axis)
{
  const char *text = s->axes[axis].values[row->at[axis]];
  unsigned long long value;
  const char *rest = take_number(text, &value);

  if (s->axes[axis].kind == SWEEP_BLOCK || s->axes[axis].kind == SWEEP_GRID) {
    const kiln_dim3 d =
        s->axes[axis].kind == SWEEP_BLOCK ? row->block : row->grid;

    return (double)d.x * d.y * d.z;
  }
  /* Without a limit, a thread may have as many registers as the GPU allows. */
  if (s->axes[axis].kind == SWEEP_MAXREG && rest == NULL)
    return s->traits.max_regs_per_thread;
  return rest != NULL && *rest == '\0' ? (double)value : NAN;
}

bool kiln__sweep_compiled(const sweep *s, size_t axis)
{
  const sweep_kind kind = s->axes[axis].kind;

  return kind == SWEEP_DEFINE || kind == SWEEP_MAXREG ||
         (kind == SWEEP_BLOCK && s->block_macro != NULL);
}

bool kiln__sweep_varies(const sweep *s, size_t axis)
{
  return s->axes[axis].n > 1;
}

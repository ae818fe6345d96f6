/* option_table.c -- parses the words of a command line by tables of options,
 * and prints the help for these options. getopt_long() scans the words. This
 * file makes the arrays of getopt_long() from the tables and stores the
 * values. */
#include "tool/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOST_OPTIONS = 48,
  /* Value that getopt_long() returns for the first row of the option table. It
   * is above every character code. */
  LONG_VALUE = 256,
  /* Column of the help output in which the descriptions start. */
  HELP_COLUMN = 22,
  HELP_WIDTH = 79
};

/* All option tables of a command as one list, and as the arrays of
 * getopt_long(). */
typedef struct scan {
  const cli_option *rows[MOST_OPTIONS];
  size_t n;
  struct option longs[MOST_OPTIONS + 2];
  char letters[2 * MOST_OPTIONS + 4];
} scan;

static bool is_end(const cli_option *o)
{
  return o == NULL || (o->name == NULL && o->letter == 0);
}

static void add_rows(scan *s, const cli_option *o)
{
  for (; !is_end(o) && s->n < MOST_OPTIONS; o++)
    s->rows[s->n++] = o;
}

static void make_scan(scan *s, const cli_syntax *syntax)
{
  size_t n_longs = 0, n_letters = 0;

  *s = (scan){0};
  add_rows(s, syntax->options);
  add_rows(s, syntax->shared);
  add_rows(s, syntax->more);
  if (syntax->program_follows)
    s->letters[n_letters++] = '+'; /* lets getopt_long() stop at the first word
                                    * that is no option */
  s->letters[n_letters++] = 'h';
  s->longs[n_longs++] = (struct option){"help", no_argument, NULL, 'h'};
  for (size_t i = 0; i < s->n; i++) {
    const cli_option *o = s->rows[i];

    if (o->name != NULL)
      s->longs[n_longs++] = (struct option){
          o->name, o->kind == CLI_FLAG ? no_argument : required_argument, NULL,
          LONG_VALUE + (int)i};
    if (o->letter != 0) {
      s->letters[n_letters++] = o->letter;
      if (o->kind != CLI_FLAG)
        s->letters[n_letters++] = ':';
    }
  }
}

static const cli_option *find_row(const scan *s, int value)
{
  if (value >= LONG_VALUE)
    return s->rows[value - LONG_VALUE];
  for (size_t i = 0; i < s->n; i++)
    if (s->rows[i]->letter == value)
      return s->rows[i];
  return NULL;
}

/* ---- Values ------------------------------------------------------------- */

static int take_number(const cli *c, const cli_option *o, const char *text)
{
  char *end;
  long value;

  errno = 0;
  value = strtol(text, &end, 10);
  if (end == text || *end != '\0' || errno != 0 || value < o->least ||
      value > o->most)
    return kiln__cli_usage(c, "--%s is a number from %ld to %ld, not \"%s\"",
                           o->name, o->least, o->most, text);
  *(int *)o->to = (int)value; /* C permits access to an unsigned as an int */
  return CLI_OK;
}

static int take_sizes(const cli *c, const cli_option *o, const char *text)
{
  cli_sizes sizes = {.n = 0};
  const char *at = text;
  char *end;

  do {
    const long value = strtol(at, &end, 10);

    if (end == at || value < o->least || value > o->most ||
        sizes.n == CLI_MOST_SIZES)
      break;
    sizes.bits[sizes.n++] = (unsigned)value;
    at = end + 1;
    if (*end == '\0') {
      *(cli_sizes *)o->to = sizes;
      return CLI_OK;
    }
  } while (*end == ',');
  return kiln__cli_usage(c,
                         "--sizes is a list of up to %d numbers from %ld to "
                         "%ld, with commas, not \"%s\"",
                         (int)CLI_MOST_SIZES, o->least, o->most, text);
}

static int take(cli *c, const cli_option *o, const char *value)
{
  switch (o->kind) {
  case CLI_FLAG:
    *(bool *)o->to = true;
    return CLI_OK;
  case CLI_TEXT:
    *(const char **)o->to = value;
    return CLI_OK;
  case CLI_JOINED: {
    const char **list = o->to;

    *list = *list == NULL ? value : kiln__cli_text(c, "%s,%s", *list, value);
    return CLI_OK;
  }
  case CLI_NUMBER:
    return take_number(c, o, value);
  case CLI_SIZES:
    return take_sizes(c, o, value);
  default:
    return o->take(c, o->to, value);
  }
}

/* ---- Help --------------------------------------------------------------- */

static void print_options(cli *c, const cli_option *o)
{
  for (; !is_end(o); o++) {
    const char *words = kiln__cli_text(
        c, "  %s%.*s%s%s%s%s%s", o->letter != 0 ? "-" : "",
        o->letter != 0 ? 1 : 0, &o->letter,
        o->letter != 0 && o->name != NULL ? ", " : "",
        o->name != NULL ? "--" : "", o->name != NULL ? o->name : "",
        o->value != NULL ? " " : "", o->value != NULL ? o->value : "");

    printf("%-*s", HELP_COLUMN, words);
    if (strlen(words) + 1 > HELP_COLUMN)
      printf("\n%*s", HELP_COLUMN, "");
    kiln__cli_wrap(o->help, HELP_COLUMN, HELP_WIDTH);
  }
}

static void print_help(cli *c, const cli_syntax *s)
{
  printf("usage: %s\n", s->synopsis);
  kiln__cli_wrap(s->about, 0, HELP_WIDTH);
  if (!is_end(s->options) || !is_end(s->shared) || !is_end(s->more))
    putchar('\n');
  print_options(c, s->options);
  print_options(c, s->shared);
  print_options(c, s->more);
  if (s->example != NULL)
    printf("\nExample: %s\n", s->example);
  putchar('\n');
  kiln__cli_wrap(kiln__cli_text(c, "Exit codes: %s",
                                s->exit_codes != NULL
                                    ? s->exit_codes
                                    : "0 success, 1 the work failed, 2 wrong "
                                      "use."),
                 0, HELP_WIDTH);
}

/* ---- Parsing ------------------------------------------------------------ */

static int check_words(const cli *c, const cli_syntax *s, const cli_words *w)
{
  if (w->n < s->least)
    return kiln__cli_usage(c, "%s", s->missing);
  if (s->most >= 0 && w->n > s->most)
    return kiln__cli_usage(c, "the word \"%s\" is one too many",
                           w->at[s->most]);
  return CLI_OK;
}

int kiln__cli_parse(cli *c, const cli_syntax *syntax, int argc, char **argv,
                    cli_words *words)
{
  scan *s = kiln__cli_alloc(c, 1, sizeof *s);
  int value;

  make_scan(s, syntax);
  optind = 0; /* makes glibc's getopt_long() start again with new words */
  while ((value = getopt_long(argc, argv, s->letters, s->longs, NULL)) != -1) {
    const cli_option *row = find_row(s, value);
    int rc;

    if (value == 'h') {
      print_help(c, syntax);
      return CLI_HELPED;
    }
    if (row == NULL) /* getopt_long() has reported the error */
      return kiln__cli_usage(c, NULL);
    rc = take(c, row, optarg);
    if (rc != CLI_OK)
      return rc;
  }
  *words = (cli_words){argc - optind, argv + optind};
  return check_words(c, syntax, words);
}

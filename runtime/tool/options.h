/* options.h -- the option parser of every command of `kiln`.
 *
 * A command describes its options in a table: name, where the value goes, and
 * what the help prints. The parser and the help are made from the same table,
 * so that neither can fall behind the other. */
#ifndef KILN_TOOL_OPTIONS_H
#define KILN_TOOL_OPTIONS_H

#include "tool/cli.h"

/* What an option does with its value. The type is that of cli_option.to. */
typedef enum cli_option_kind {
  CLI_FLAG,   /* bool: becomes true; the option has no value */
  CLI_TEXT,   /* const char *: the value; the last one counts */
  CLI_JOINED, /* const char *: values of repeated options, with commas */
  CLI_NUMBER, /* int or unsigned: from `least` to `most` */
  CLI_SIZES,  /* cli_sizes: "28,24", each from `least` to `most` */
  CLI_TAKEN   /* anything: take(c, to, value) returns CLI_OK or CLI_USAGE */
} cli_option_kind;

typedef struct cli_option {
  const char *name; /* without dashes; NULL: only the letter */
  char letter;      /* of the short form, or 0 */
  cli_option_kind kind;
  const char *value; /* what the help calls the value */
  void *to;
  const char *help; /* starts in lower case, without a full stop at the end */
  int (*take)(cli *c, void *to, const char *value);
  long least, most;
} cli_option;

/* Rows of a table, which CLI_OPTIONS_END closes. */
#define CLI_OPTION_FLAG(name_, to_, help_)                                     \
  {                                                                            \
    .name = (name_), .kind = CLI_FLAG, .to = (to_), .help = (help_)            \
  }
#define CLI_OPTION_TEXT(name_, value_, to_, help_)                             \
  {                                                                            \
    .name = (name_), .kind = CLI_TEXT, .value = (value_), .to = (to_),         \
    .help = (help_)                                                            \
  }
#define CLI_OPTION_JOINED(name_, value_, to_, help_)                           \
  {                                                                            \
    .name = (name_), .kind = CLI_JOINED, .value = (value_), .to = (to_),       \
    .help = (help_)                                                            \
  }
#define CLI_OPTION_NUMBER(name_, to_, least_, most_, help_)                    \
  {                                                                            \
    .name = (name_), .kind = CLI_NUMBER, .value = "N", .to = (to_),            \
    .least = (least_), .most = (most_), .help = (help_)                        \
  }
#define CLI_OPTION_SIZES(to_, least_, most_, help_)                            \
  {                                                                            \
    .name = "sizes", .kind = CLI_SIZES, .value = "LIST", .to = (to_),          \
    .least = (least_), .most = (most_), .help = (help_)                        \
  }
#define CLI_OPTION_TAKEN(name_, value_, take_, to_, help_)                     \
  {                                                                            \
    .name = (name_), .kind = CLI_TAKEN, .value = (value_), .take = (take_),    \
    .to = (to_), .help = (help_)                                               \
  }
#define CLI_OPTIONS_END                                                        \
  {                                                                            \
    .name = NULL                                                               \
  }

enum { CLI_MOST_SIZES = 8 };

/* Sizes as powers of two, in the order given. */
typedef struct cli_sizes {
  unsigned bits[CLI_MOST_SIZES];
  size_t n;
} cli_sizes;

/* One command as its help shows it and the parser checks it. */
typedef struct cli_syntax {
  const char *synopsis; /* behind "usage: "; lines end in a newline */
  const char *about;    /* what the command does; wrapped when printed */
  const cli_option *options, *shared, *more; /* tables, or NULL */
  const char *example;                       /* a command line, or NULL */
  const char *exit_codes; /* NULL: the usual ones, 0, 1 and 2 */
  int least, most;        /* words that are no options; most < 0: any number */
  const char *missing;    /* message where there are too few words */
  bool program_follows;   /* the first word ends the options: it is a program */
} cli_syntax;

/* The words that were no options. They point into argv. */
typedef struct cli_words {
  int n;
  char **at;
} cli_words;

enum { CLI_HELPED = -1 }; /* --help was given, and the help printed */

/* Parse argv[1] and what follows, which is permuted. May be called again, for
 * other words, before the command ends. argv[0] stands before messages.
 * @return CLI_OK; CLI_USAGE having reported what is wrong; CLI_HELPED. */
int kiln__cli_parse(cli *c, const cli_syntax *syntax, int argc, char **argv,
                    cli_words *words);

#endif

/* options.h -- the option parser of all commands of `kiln`.
 *
 * A command describes its options in a table: the name, the address of the
 * value, and the help text. The parser and the help use the same table, so they
 * cannot contradict each other. */
#ifndef KILN_TOOL_OPTIONS_H
#define KILN_TOOL_OPTIONS_H

#include "tool/cli.h"

/* What an option does with its value. Each comment begins with the type of
 * cli_option.to. */
typedef enum cli_option_kind {
  CLI_FLAG, /* bool: becomes true; the option has no value */
  CLI_TEXT, /* const char *: the value; the last occurrence counts */
  /* const char *: the values of all occurrences, joined with commas. */
  CLI_JOINED,
  CLI_NUMBER, /* int or unsigned: a number from `least` to `most` */
  /* cli_sizes: a list such as "28,24", each number from `least` to `most` */
  CLI_SIZES,
  CLI_TAKEN /* any type: take(c, to, value) returns CLI_OK or CLI_USAGE */
} cli_option_kind;

typedef struct cli_option {
  /* Long name without dashes, or NULL if the option has only a short form. */
  const char *name;
  char letter; /* letter of the short form, or 0 */
  cli_option_kind kind;
  const char *value; /* name of the value in the help */
  void *to;
  /* Help text, starts in lower case and has no full stop at the end. */
  const char *help;
  int (*take)(cli *c, void *to, const char *value);
  long least, most;
} cli_option;

/* Rows of an option table. CLI_OPTIONS_END ends the table. */
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

/* The syntax of one command, which the help shows and the parser checks. */
typedef struct cli_syntax {
  const char *synopsis; /* text after "usage: "; every line ends in a newline */
  const char *about;    /* what the command does; the help wraps this text */
  const cli_option *options, *shared, *more; /* option tables, or NULL */
  /* Example of a command line, or NULL. */
  const char *example;
  /* Exit codes; NULL means the usual codes 0, 1 and 2. */
  const char *exit_codes;
  /* Number of words that are not options; a negative `most` means any number. */
  int least, most;
  const char *missing;  /* message if there are too few words */
  bool program_follows; /* true if the first word is a program, which ends
                         * the options */
} cli_syntax;

/* The words of the command line that are not options. The pointers point
 * into argv. */
typedef struct cli_words {
  int n;
  char **at;
} cli_words;

enum { CLI_HELPED = -1 }; /* the user gave --help, and the help was printed */

/* Parses argv[1] and the following words, and permutes argv. A command may call
 * the function again for other words. argv[0] is printed before messages.
 * @return CLI_OK; CLI_USAGE having reported what is wrong; CLI_HELPED */
int kiln__cli_parse(cli *c, const cli_syntax *syntax, int argc, char **argv,
                    cli_words *words);

#endif

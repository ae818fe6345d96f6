/* options.h -- the option parser of all commands of `kiln`.
 *
 * A command describes its options in a table: the name, the address of the
 * value, and the help text. The parser and the help use the same table, so they
 * cannot contradict each other. */
#ifndef KILN_TOOL_OPTIONS_H
#define KILN_TOOL_OPTIONS_H

#include "tool/cli.h"

/* The action of an option on its value. Each comment begins with the type of
 * the object that cli_option.to points to. */
typedef enum cli_option_kind {
  CLI_FLAG, /* bool: the object becomes true; the option has no value */
  /* Const char *: the value of the option; the last occurrence counts. */
  CLI_TEXT,
  /* const char *: the values of all occurrences, joined with commas. */
  CLI_JOINED,
  CLI_NUMBER, /* int or unsigned: a number from `least` to `most` */
  /* cli_sizes: a list such as "28,24", each number from `least` to `most` */
  CLI_SIZES,
  /* Any type: the function take(c, to, value) stores the value and returns
   * CLI_OK or CLI_USAGE. */
  CLI_TAKEN
} cli_option_kind;

typedef struct cli_option {
  /* Long name without dashes, or NULL if the option has only a short form. */
  const char *name;
  char letter; /* letter of the short form, or 0 */
  cli_option_kind kind;
  const char *value; /* name of the option's value in the help */
  void *to;
  /* Help text of the option, which starts in lower case and has no full stop at
   * the end. */
  const char *help;
  int (*take)(cli *c, void *to, const char *value);
  long least, most;
} cli_option;

/* Macros for the rows of an option table. CLI_OPTIONS_END ends the table. */
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

/* A list of sizes as powers of two, in the order given by the user. */
typedef struct cli_sizes {
  unsigned bits[CLI_MOST_SIZES];
  size_t n;
} cli_sizes;

/* The syntax of one command, which the help shows and the parser checks. */
typedef struct cli_syntax {
  /* Usage text after "usage: "; every line ends in a newline. */
  const char *synopsis;
  /* Description of the command; the help wraps this text. */
  const char *about;
  /* Option tables of the command, or NULL. */
  const cli_option *options, *shared, *more;
  /* Example of a command line, or NULL. */
  const char *example;
  /* Text about the exit codes; NULL means the usual codes 0, 1 and 2. */
  const char *exit_codes;
  /* Minimum and maximum number of words that are not options. If `most` is
   * negative, there is no maximum. */
  int least, most;
  const char *missing; /* error message if there are too few words */
  /* True if the first word is a program, after which no options are parsed. */
  bool program_follows;
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

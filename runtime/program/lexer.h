/* lexer.h -- finds the include directives of a source text without expanding
 * macros. */
#ifndef KILN_LEXER_H
#define KILN_LEXER_H

#include <stdbool.h>
#include <stddef.h>

enum { KILN__INCLUDE_SIZE = 4096 };

typedef struct kiln__include {
  enum { KILN__QUOTED, KILN__ANGLED, KILN__COMPUTED } form;
  /* name of the macro, if the include is computed by a macro */
  char name[KILN__INCLUDE_SIZE];
} kiln__include;

/* The state of an iteration over include directives. The members are private to
 * lexer.c. */
typedef struct kiln__lexer {
  const char *at, *end;
  /* true if the current line so far has only white space and comments */
  bool line_start;
} kiln__lexer;

void kiln__lexer_init(kiln__lexer *lexer, const char *text, size_t size);

/* Finds the next #include, #include_next or __has_include(), also in groups
 * that the preprocessor would skip. Returns false at the end of the source
 * text. */
bool kiln__lexer_next(kiln__lexer *lexer, kiln__include *out);

#endif

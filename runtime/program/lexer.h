/* lexer.h -- find the include directives of a text, without expanding macros.
 */
#ifndef KILN_LEXER_H
#define KILN_LEXER_H

#include <stdbool.h>
#include <stddef.h>

enum { KILN__INCLUDE_SIZE = 4096 };

typedef struct kiln__include {
  enum { KILN__QUOTED, KILN__ANGLED, KILN__COMPUTED } form;
  char name[KILN__INCLUDE_SIZE]; /* of a computed one: the macro */
} kiln__include;

/* State of a walk; fields are the lexer's own. */
typedef struct kiln__lexer {
  const char *at, *end;
  bool line_start; /* only white space and comments so far on this line */
} kiln__lexer;

void kiln__lexer_init(kiln__lexer *lexer, const char *text, size_t size);

/* Finds the next #include, #include_next or __has_include(), also in groups
 * that the preprocessor would skip. False at the end of the text. */
bool kiln__lexer_next(kiln__lexer *lexer, kiln__include *out);

#endif

/* readable.c - text that MLIR's parser takes the process down on is refused before it gets there
 *
 * MLIR 22 asks the type of a dense array for its width, which `index` has not:
 *
 *   array<index: 1>      crashes
 *   array<i64: 1>        is what was meant
 *
 * A type behind an alias (`array<!t: 1>`) may be `index`, too. Comments and strings hold what they like. */
#include "tilewright/dialect.h"

#include "mlir-c/Diagnostics.h"

#include <ctype.h>
#include <string.h>

typedef struct {
  const char *at, *end;
} text_t;

static bool starts(text_t t, const char *what) {
  size_t length = strlen(what);
  return (size_t)(t.end - t.at) >= length && !memcmp(t.at, what, length);
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.'; }

/* Behind a string that starts here. */
static const char *behind_string(text_t t) {
  for (t.at++; t.at < t.end && *t.at != '"'; t.at++)
    t.at += *t.at == '\\' && t.at + 1 < t.end;
  return t.at < t.end ? t.at + 1 : t.end;
}

static const char *behind_line(text_t t) {
  const char *newline = memchr(t.at, '\n', (size_t)(t.end - t.at));
  return newline ? newline : t.end;
}

/* Behind spaces and comments. */
static text_t skip(text_t t) {
  while (t.at < t.end && (isspace((unsigned char)*t.at) || starts(t, "//")))
    t.at = isspace((unsigned char)*t.at) ? t.at + 1 : behind_line(t);
  return t;
}

/* Whether a dense array of `index` starts here, or of a type that may be it. */
static bool is_index_array(text_t t) {
  if (!starts(t, "array"))
    return false;
  t.at += strlen("array");
  if ((t = skip(t)).at == t.end || *t.at != '<')
    return false;
  t.at++;
  t = skip(t);
  return starts(t, "!") || (starts(t, "index") && (t.at + 5 == t.end || !is_word(t.at[5])));
}

/* The next place that is neither inside a word, nor a string, nor a comment. */
static const char *next(text_t t) {
  if (*t.at == '"')
    return behind_string(t);
  if (starts(t, "//"))
    return behind_line(t);
  if (!is_word(*t.at))
    return t.at + 1;
  while (t.at < t.end && is_word(*t.at))
    t.at++;
  return t.at;
}

bool tw_text_is_readable(MlirContext context, MlirStringRef name, MlirStringRef text) {
  text_t t = {text.data, text.data + text.length};
  unsigned line = 1;
  const char *line_start = t.at;
  while (t.at < t.end) {
    if (is_index_array(t)) {
      unsigned column = (unsigned)(t.at - line_start) + 1;
      mlirEmitError(
          mlirLocationFileLineColGet(context, name, line, column),
          "a dense array holds integers or floats of a stated width, such as array<i64: 1>; found another type");
      return false;
    }
    for (const char *behind = next(t); t.at < behind; t.at++)
      if (*t.at == '\n')
        line++, line_start = t.at + 1;
  }
  return true;
}

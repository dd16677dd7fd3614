/* text.c - the text of a layout, as it stands inside #tile.linear<...>. See layout.h. */
#include "lowering/layout/layout.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const input_names[TW_NUM_INPUTS] = {"register", "lane", "warp", "block", "offset"};

/* Output that counts past the end of its buffer. */
typedef struct sink {
  char *out;
  size_t size, used;
} sink_t;

__attribute__((format(printf, 2, 3))) static void put(sink_t *s, const char *format, ...) {
  va_list args;
  va_start(args, format);
  size_t room = s->used < s->size ? s->size - s->used : 0;
  int n = vsnprintf(room ? s->out + s->used : NULL, room, format, args);
  va_end(args);
  s->used += (size_t)(n > 0 ? n : 0);
}

size_t tw_layout_print(const tw_layout_t *l, char *out, size_t size) {
  sink_t s = {out, size, 0};
  bool first = true;
  if (size > 0)
    out[0] = 0;
  for (int g = 0; g < TW_NUM_INPUTS; g++) {
    if (l->bits[g] == 0)
      continue;
    put(&s, "%s%s = [", first ? "" : ", ", input_names[g]);
    first = false;
    for (int i = 0; i < l->bits[g]; i++) {
      put(&s, "%s[", i ? ", " : "");
      for (int d = 0; d < l->rank; d++)
        put(&s, "%s%u", d ? ", " : "", tw_layout_coord(l, l->basis[g][i], d));
      put(&s, "]");
    }
    put(&s, "]");
  }
  return s.used + 1;
}

static void skip_space(const char **p) {
  while (**p == ' ' || **p == '\n' || **p == '\t')
    (*p)++;
}

static bool eat(const char **p, char c) {
  skip_space(p);
  if (**p != c)
    return false;
  (*p)++;
  return true;
}

static bool number(const char **p, uint32_t *out) {
  skip_space(p);
  if (**p < '0' || **p > '9')
    return false;
  *out = 0;
  while (**p >= '0' && **p <= '9' && *out < UINT32_C(1) << 27)
    *out = *out * 10 + (uint32_t)(*(*p)++ - '0');
  return true;
}

/* One basis vector: [c0, c1, ...]. Returns an error or NULL. */
static const char *vector(const char **p, tw_layout_t *l, tw_input_t g) {
  uint32_t coord[TW_LAYOUT_MAX_RANK];
  if (!eat(p, '['))
    return "expected '[' before a basis vector";
  for (int d = 0; d < l->rank; d++) {
    if (d > 0 && !eat(p, ','))
      return "a basis vector needs one coordinate for each dimension";
    if (!number(p, &coord[d]))
      return "expected a coordinate";
    if (coord[d] >= tw_layout_extent(l, d))
      return "a coordinate lies outside of the tile";
  }
  if (!eat(p, ']'))
    return "a basis vector needs one coordinate for each dimension";
  if (l->bits[g] == TW_LAYOUT_MAX_BITS)
    return "too many basis vectors";
  tw_layout_push(l, g, tw_layout_flat(l, coord));
  return NULL;
}

static const char *group(const char **p, tw_layout_t *l) {
  int g = 0;
  skip_space(p);
  while (g < TW_NUM_INPUTS && strncmp(*p, input_names[g], strlen(input_names[g])) != 0)
    g++;
  if (g == TW_NUM_INPUTS)
    return "expected register, lane, warp, block or offset";
  *p += strlen(input_names[g]);
  if (!eat(p, '='))
    return "expected '=' after the name of a group";
  if (!eat(p, '['))
    return "expected '[' before the basis vectors";
  if (eat(p, ']'))
    return NULL;
  do {
    const char *error = vector(p, l, (tw_input_t)g);
    if (error != NULL)
      return error;
  } while (eat(p, ','));
  return eat(p, ']') ? NULL : "expected ']' after the basis vectors";
}

bool tw_layout_parse(const char *text, int rank, const int64_t *shape, tw_layout_t *out, const char **error) {
  *out = tw_layout_empty(rank, shape);
  *error = NULL;
  skip_space(&text);
  while (*error == NULL && *text != 0) {
    *error = group(&text, out);
    if (*error == NULL && !eat(&text, ',')) {
      skip_space(&text);
      if (*text != 0)
        *error = "text after the layout";
      break;
    }
  }
  return *error == NULL;
}

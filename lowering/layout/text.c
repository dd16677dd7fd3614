/* The text of a layout, as it stands inside #tile.linear<...>. See layout.h. */
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

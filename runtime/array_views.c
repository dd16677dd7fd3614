/* array_views.c - arrays as a kernel accesses them: within bounds, or in rows
 *
 * What masks leave of an array is an array, which the copy engine can describe, and so are the rows that a program
 * counts in one of one dimension (lowering/gpu/grid/array_views.c). A launch computes their words. Where rows do not
 * lie in the array as the kernel takes them to, it does not fit. */
#include "module.h"

int64_t tw_product_of(const tw_extent_factor_t *factors, uint32_t count, const uint64_t *words, int64_t most) {
  int64_t product = 1;
  for (uint32_t i = 0; i < count; i++) {
    int64_t word = factors[i].word < 0 ? 0 : (int64_t)words[factors[i].word];
    if (word < 0 || word > INT32_MAX)
      return -1;
    int64_t factor = (word + factors[i].plus) / factors[i].by;
    if (factor < 0 || (factor > 0 && product > most / factor))
      return -1;
    product *= factor;
  }
  return product;
}

enum { MOST_ELEMENTS = INT32_MAX };

/* The bound; `otherwise` where there is none. */
static int64_t bound_of(const tw_extent_bound_t *bound, const uint64_t *words, int64_t otherwise) {
  return bound->num_factors ? tw_product_of(bound->factors, bound->num_factors, words, MOST_ELEMENTS) : otherwise;
}

/* The array within bounds. */
static bool show_part(const tw_array_view_t *view, uint64_t *words) {
  unsigned rank = view->num_bounds;
  const uint64_t *from = words + view->array.word;
  uint64_t *to = words + view->word;
  bool some = true;
  to[0] = from[0];
  for (unsigned d = 0; d < rank; d++) {
    int64_t own = (int64_t)from[1 + d], bound = bound_of(&view->bounds[d], words, own);
    to[1 + d] = (uint64_t)(bound < own ? bound : own);
    to[1 + rank + d] = from[1 + rank + d];
    some &= bound > 0 && own > 0;
  }
  return some;
}

/* Rows of a flat array. An index beyond a row's end would be one of the next row: so no row is longer than the pitch.
 * Behind the last row that counts there may be anything; where all rows do, the last one must be whole. */
static bool show_rows(const tw_array_view_t *view, uint64_t *words) {
  const uint64_t *from = words + view->array.word;
  int64_t length = (int64_t)from[1], pitch = tw_product_of(view->pitch, view->num_pitch, words, MOST_ELEMENTS);
  if (pitch < 1)
    return false;
  int64_t columns = bound_of(&view->bounds[1], words, pitch), all = length / pitch;
  int64_t rows = bound_of(&view->bounds[0], words, INT64_MAX);
  if (rows > all && length % pitch == 0)
    rows = all;
  bool lies_in =
      rows > 0 && columns > 0 && columns <= pitch && rows <= all + 1 && (rows - 1) * pitch + columns <= length;
  const uint64_t shown[] = {from[0], (uint64_t)rows, (uint64_t)columns, (uint64_t)pitch, 1};
  for (unsigned i = 0; i < 5; i++)
    words[view->word + i] = shown[i];
  return lies_in;
}

bool tw_show_views(const tw_launch_record_t *record, uint64_t *words) {
  for (uint32_t i = 0; i < record->num_views; i++) {
    const tw_array_view_t *view = &record->views[i];
    if (!(view->num_pitch ? show_rows(view, words) : show_part(view, words)))
      return false;
  }
  return true;
}

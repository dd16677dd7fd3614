/* disjoint.c - whether arrays of a launch overlap that their kernel takes for separate
 *
 * Asked at every launch of such a kernel. Many pairs share an array with the pair before: its bytes are kept until
 * another one comes. */
#include "module.h"

#include <string.h>

/* The bytes of an array, from its first to behind its last; empty if it has no elements. */
typedef struct bytes {
  tw_array_place_t of;
  bool known;
  int64_t first, end;
} bytes_t;

/* Strides may be negative: an array begins at its lowest address. */
static void find_bytes(const tw_array_place_t *array, const uint64_t *words, bytes_t *out) {
  const uint64_t *shape = words + array->word + 1, *strides = shape + array->rank;
  int64_t first = 0, last = 0, address = (int64_t)words[array->word];
  bool empty = false;
  for (int d = 0; d < array->rank; d++) {
    int64_t reach = ((int64_t)shape[d] - 1) * (int64_t)strides[d];
    empty |= shape[d] == 0;
    first += reach < 0 ? reach : 0;
    last += reach < 0 ? 0 : reach;
  }
  out->of = *array;
  out->known = true;
  out->first = address + first * array->bits / 8;
  out->end = empty ? INT64_MIN : address + (last * array->bits + array->bits + 7) / 8;
}

static inline const bytes_t *bytes_of(const tw_array_place_t *array, const uint64_t *words, bytes_t *last) {
  if (!last->known || memcmp(&last->of, array, sizeof *array) != 0)
    find_bytes(array, words, last);
  return last;
}

/* Address, extents and strides. */
static bool is_same(const tw_array_place_t *a, const tw_array_place_t *b, const uint64_t *words) {
  return a->rank == b->rank && a->bits == b->bits &&
         !memcmp(words + a->word, words + b->word, (1 + 2u * a->rank) * sizeof *words);
}

bool tw_would_overlap(const tw_no_alias_t *pairs, uint32_t count, const uint64_t *words) {
  bytes_t array = {.known = false}, other = {.known = false};
  for (uint32_t i = 0; i < count; i++) {
    const tw_no_alias_t *pair = &pairs[i];
    const bytes_t *a = bytes_of(&pair->array, words, &array), *b = bytes_of(&pair->other, words, &other);
    bool overlap = a->first < b->end && b->first < a->end;
    if (TW_UNLIKELY(overlap) && !(pair->or_same && is_same(&pair->array, &pair->other, words)))
      return true;
  }
  return false;
}

bool tw_cuda_would_overlap(const tw_cuda_kernel_t *kernel, uint64_t *words) {
  if (TW_UNLIKELY(kernel->record.num_views != 0))
    (void)tw_show_views(&kernel->record, words); /* where they do not fit, the launch says so */
  return tw_would_overlap(kernel->record.no_alias, kernel->record.num_no_alias, words);
}

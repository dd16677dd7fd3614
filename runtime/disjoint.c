/* disjoint.c - whether arrays of a launch overlap that their kernel takes for separate */
#include "module.h"

#include <string.h>

/* The bytes between the first and behind the last element of an array; false if it has none. */
static bool bytes_of(const tw_array_place_t *array, const uint64_t *words, int64_t out[2]) {
  const uint64_t *shape = words + array->word + 1, *strides = shape + array->rank;
  int64_t first = 0, last = 0, address = (int64_t)words[array->word];
  for (int d = 0; d < array->rank; d++) {
    int64_t reach = ((int64_t)shape[d] - 1) * (int64_t)strides[d];
    if (shape[d] == 0)
      return false;
    first += reach < 0 ? reach : 0;
    last += reach < 0 ? 0 : reach;
  }
  out[0] = address + first * array->bits / 8;
  out[1] = address + (last * array->bits + array->bits + 7) / 8;
  return true;
}

static bool overlap(const tw_array_place_t *a, const tw_array_place_t *b, const uint64_t *words) {
  int64_t x[2], y[2];
  return bytes_of(a, words, x) && bytes_of(b, words, y) && x[0] < y[1] && y[0] < x[1];
}

/* Address, extents and strides. */
static bool is_same(const tw_array_place_t *a, const tw_array_place_t *b, const uint64_t *words) {
  return a->rank == b->rank && a->bits == b->bits &&
         !memcmp(words + a->word, words + b->word, (1 + 2u * a->rank) * sizeof *words);
}

bool tw_cuda_would_overlap(const tw_cuda_kernel_t *kernel, const uint64_t *words) {
  for (uint32_t i = 0; i < kernel->record.num_no_alias; i++) {
    const tw_no_alias_t *pair = &kernel->record.no_alias[i];
    if (overlap(&pair->array, &pair->other, words) && !(pair->or_same && is_same(&pair->array, &pair->other, words)))
      return true;
  }
  return false;
}

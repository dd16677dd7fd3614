/* disjoint.c - whether arrays of a launch overlap that their kernel takes for separate */
#include "module.h"

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

tw_status_t tw_cuda_kernel_set_disjoint(tw_cuda_kernel_t *kernel, const tw_array_place_t *arrays, size_t count) {
  bool good = count <= TW_MAX_DISJOINT && count % 2 == 0;
  for (size_t i = 0; good && i < count; i++)
    good = arrays[i].rank <= TW_MAX_RANK && arrays[i].word + 2u * arrays[i].rank < TW_MAX_WORDS && arrays[i].bits > 0;
  if (!good)
    return TW_ERROR(TW_VALUE_ERROR, "kernel %s: %zu arrays that are separate do not make pairs", kernel->name, count);
  for (size_t i = 0; i < count; i++)
    kernel->disjoint[i] = arrays[i];
  kernel->num_disjoint = (unsigned)count;
  return NULL;
}

bool tw_cuda_would_overlap(const tw_cuda_kernel_t *kernel, const uint64_t *words) {
  for (unsigned i = 0; i < kernel->num_disjoint; i += 2)
    if (overlap(&kernel->disjoint[i], &kernel->disjoint[i + 1], words))
      return true;
  return false;
}

/* memory.h - memory, or the end: a compiler that has none left can do nothing better */
#ifndef TILEWRIGHT_LOWERING_LAYOUT_MEMORY_H
#define TILEWRIGHT_LOWERING_LAYOUT_MEMORY_H

#include <stdbool.h>
#include <stdlib.h>

static inline void *tw_must(void *memory) {
  if (memory == NULL)
    abort();
  return memory;
}

/* Zeroed; never null, for nothing neither. */
static inline void *tw_allocate(size_t count, size_t size) { return tw_must(calloc(count ? count : 1, size)); }

/* Room for one more element behind `used` of them in an array that only grows this way. */
static inline void *tw_room(void *array, size_t used, size_t size) {
  bool full = (used & (used - 1)) == 0; /* whenever a power of two is reached */
  return full ? tw_must(realloc(array, (used ? 2 * used : 1) * size)) : array;
}

#endif

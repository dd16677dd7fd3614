/* memory.h - arrays that grow, over base/memory.h */
#ifndef TILEWRIGHT_LOWERING_LAYOUT_MEMORY_H
#define TILEWRIGHT_LOWERING_LAYOUT_MEMORY_H

#include "base/memory.h"

#include <stdbool.h>
#include <stdlib.h>

/* Room for one more element behind `used` of them in an array that only grows this way. */
static inline void *tw_room(void *array, size_t used, size_t size) {
  bool full = (used & (used - 1)) == 0; /* whenever a power of two is reached */
  return full ? tw_must(realloc(array, (used ? 2 * used : 1) * size)) : array;
}

#endif

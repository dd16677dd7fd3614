/* memory.h - memory, or the end: what runs out of it in the middle of its work can do nothing better */
#ifndef TILEWRIGHT_BASE_MEMORY_H
#define TILEWRIGHT_BASE_MEMORY_H

#include <stddef.h>
#include <stdlib.h>

/* Says so on stderr, and ends the process. */
_Noreturn void tw_out_of_memory(void);

static inline void *tw_must(void *memory) {
  if (memory == NULL)
    tw_out_of_memory();
  return memory;
}

/* Zeroed; never null, for nothing neither. */
static inline void *tw_allocate(size_t count, size_t size) { return tw_must(calloc(count ? count : 1, size)); }

#endif

/* memory.c - see memory.h */
#include "base/memory.h"

#include <stdio.h>

void tw_out_of_memory(void) {
  fputs("tilewright: out of host memory\n", stderr);
  abort();
}

/* ptx.h - the text that LLVM wrote, made safe for ptxas */
#ifndef TILEWRIGHT_LOWERING_PTX_H
#define TILEWRIGHT_LOWERING_PTX_H

#include <stddef.h>

/* The same PTX without what ptxas gets wrong: the upper half of a 64-bit number is shifted out, never unpacked, and a
 * part of a register is taken out before it is stored. Takes `ptx` (malloc'd, ends with a zero byte), returns what is
 * to be freed. */
char *tw_ptx_make_safe(char *ptx, size_t *size);

#endif /* TILEWRIGHT_LOWERING_PTX_H */

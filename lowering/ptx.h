/* ptx.h - the text that LLVM wrote, made safe for ptxas */
#ifndef TILEWRIGHT_LOWERING_PTX_H
#define TILEWRIGHT_LOWERING_PTX_H

#include <stddef.h>

/* The same PTX, in which the upper half of a 64-bit number is shifted out, never unpacked. Takes `ptx` (malloc'd, ends
 * with a zero byte), returns what is to be freed. */
char *tw_ptx_shift_halves(char *ptx, size_t *size);

#endif /* TILEWRIGHT_LOWERING_PTX_H */

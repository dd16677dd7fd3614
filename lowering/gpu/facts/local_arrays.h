/* local_arrays.h - loops of a thread that are written out, so that its arrays lie in registers
 *
 *   %a = tile.local_array : memref<16xi32, 5>
 *   scf.for %k = 0 to 16 {                          sixteen times
 *     tile.scatter %x, %a[%k]                       a register each
 *   }
 *
 * Registers have no run-time numbers: an array of a thread that a loop walks lies in memory, unless each iteration
 * has code of its own. */
#ifndef TILEWRIGHT_LOWERING_GPU_FACTS_LOCAL_ARRAYS_H
#define TILEWRIGHT_LOWERING_GPU_FACTS_LOCAL_ARRAYS_H

#include "lowering/ir.h"

/* Whether a loop is written out: it indexes an array of the thread all of whose indices are known once such loops are,
 * and runs a known number of times that is small enough for its size. */
bool tw_is_written_out(MlirOperation loop);
/* Words of the arrays that so lie in registers, of all in the function. */
int64_t tw_words_in_registers(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_FACTS_LOCAL_ARRAYS_H */

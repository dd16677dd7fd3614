/* float_bits.h - bytes of floats, made safe for ptxas */
#ifndef TILEWRIGHT_LOWERING_FLOAT_BITS_H
#define TILEWRIGHT_LOWERING_FLOAT_BITS_H

#include "llvm-c/Types.h"

/* The same module, in which no register that a float operation wrote is stored as a shorter integer. */
void tw_keep_float_bits(LLVMModuleRef module);

#endif /* TILEWRIGHT_LOWERING_FLOAT_BITS_H */

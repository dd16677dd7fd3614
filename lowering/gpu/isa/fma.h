/* fma.h - products without a matrix instruction: each thread multiplies and adds what it holds */
#ifndef TILEWRIGHT_LOWERING_GPU_ISA_FMA_H
#define TILEWRIGHT_LOWERING_GPU_ISA_FMA_H

#include "lowering/gpu/machine/mma_family.h"

/* Takes every product on every chip: last of the table. */
extern const tw_mma_family_t tw_fma_family;

#endif /* TILEWRIGHT_LOWERING_GPU_ISA_FMA_H */

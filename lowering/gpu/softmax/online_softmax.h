/* online_softmax.h - the parts of tile-online-softmax, in their order */
#ifndef TILEWRIGHT_LOWERING_GPU_SOFTMAX_ONLINE_SOFTMAX_H
#define TILEWRIGHT_LOWERING_GPU_SOFTMAX_ONLINE_SOFTMAX_H

#include <stdbool.h>

#include "mlir-c/IR.h"

/* soft_cap.c: scores that only enter exponents are divided and bent no more exactly than it shows. */
bool tw_soft_cap(MlirOperation func);
/* fold_scale.c: scale and base are one factor, fused with the subtraction. */
bool tw_fold_scale(MlirOperation func);
/* lazy_rescale.c: the running maximum is kept while no score is far above it. */
bool tw_lazy_rescale(MlirOperation func);

#endif /* TILEWRIGHT_LOWERING_GPU_SOFTMAX_ONLINE_SOFTMAX_H */

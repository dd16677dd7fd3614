/* fp8.h - conversions between float32 and the 8-bit floats by the instructions of sm_89 and later */
#ifndef TILEWRIGHT_LOWERING_GPU_ISA_SM89_FP8_H
#define TILEWRIGHT_LOWERING_GPU_ISA_SM89_FP8_H

#include "lowering/gpu/emit/emitter.h"

/* Whether the target has instructions for this 8-bit float. */
bool twg_has_narrow_conversion(tw_emitter_t *e, MlirType element);

/* Two f32 to 8-bit floats (each an i8), rounded to the nearest even. What is too large becomes the largest finite
 * number where the format has no infinity. */
void twg_narrow_pair(tw_emitter_t *e, MlirType to, const MlirValue x[2], MlirValue out[2]);
/* Two 8-bit floats to f32. */
void twg_widen_pair(tw_emitter_t *e, MlirType from, const MlirValue x[2], MlirValue out[2]);

#endif /* TILEWRIGHT_LOWERING_GPU_ISA_SM89_FP8_H */

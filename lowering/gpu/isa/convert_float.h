/* convert_float.h - conversions between floats: by instructions where there are some, else by arithmetic */
#ifndef TILEWRIGHT_LOWERING_GPU_ISA_CONVERT_FLOAT_H
#define TILEWRIGHT_LOWERING_GPU_ISA_CONVERT_FLOAT_H

#include "lowering/gpu/emit/emitter.h"

/* Float to float; element types as in the tile. Handles the narrow ones. */
MlirValue twg_convert_float(tw_emitter_t *e, MlirValue x, MlirType from, MlirType to);
/* Two at a time, between f32 and floats that the hardware converts so. False: between others. */
bool twg_convert_pair(tw_emitter_t *e, MlirType from, MlirType to, const MlirValue x[2], MlirValue out[2]);
/* Two f32 to f16 or bf16. */
void twg_truncate_pair(tw_emitter_t *e, MlirType to, const MlirValue x[2], MlirValue out[2]);

#endif /* TILEWRIGHT_LOWERING_GPU_ISA_CONVERT_FLOAT_H */

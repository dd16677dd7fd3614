/* fp8.c - 8-bit floats two at a time. See fp8.h.
 *
 * The instructions saturate. That is what e4m3 wants, which has no infinity; of e5m2 what rounds past the largest
 * number is infinity, which is put in afterwards. NaN comes out as a positive NaN. */
#include "lowering/gpu/isa/sm89/fp8.h"

#include "lowering/gpu/machine/target.h"

#include <stdio.h>

bool twg_has_narrow_conversion(tw_emitter_t *e, MlirType element) {
  tw_gpu_target_t target = tw_gpu_target_of(e->module);
  return tw_gpu_has(&target, TW_GPU_CVT_FP8) && (mlirTypeIsAFloat8E4M3FN(element) || mlirTypeIsAFloat8E5M2(element));
}

static const char *name_of(MlirType element) { return mlirTypeIsAFloat8E5M2(element) ? "e5m2x2" : "e4m3x2"; }

/* Infinity, with x's sign, where x is halfway from the largest e5m2 to the next power of two, or beyond. */
static MlirValue past_the_top(tw_emitter_t *e, MlirValue x, MlirValue rounded) {
  enum { HALFWAY = 0x47700000 /* 61440 */, F32_INFINITY = 0x7F800000, INFINITY_BITS = 0x7C };
  MlirValue bits = twg_bitcast(e, x, e->i32);
  MlirValue magnitude = twg_binary(e, "llvm.and", bits, twg_const_i32(e, 0x7FFFFFFF));
  MlirValue sign =
      twg_binary(e, "llvm.and", twg_binary(e, "llvm.lshr", bits, twg_const_i32(e, 24)), twg_const_i32(e, 0x80));
  MlirValue infinity =
      twg_cast(e, "llvm.trunc", e->i8, twg_binary(e, "llvm.or", sign, twg_const_i32(e, INFINITY_BITS)));
  MlirValue past = twg_icmp(e, TW_ULE, twg_binary(e, "llvm.sub", magnitude, twg_const_i32(e, HALFWAY)),
                            twg_const_i32(e, F32_INFINITY - HALFWAY)); /* NaN is not */
  return twg_select(e, past, infinity, rounded);
}

void twg_narrow_pair(tw_emitter_t *e, MlirType to, const MlirValue x[2], MlirValue out[2]) {
  char text[64];
  snprintf(text, sizeof text, "cvt.rn.satfinite.%s.f32 $0, $2, $1;", name_of(to));
  MlirValue both = twg_asm(e, text, "=h,f,f", e->i16, 2, x, TW_PTX_NOTHING);
  out[0] = twg_cast(e, "llvm.trunc", e->i8, both);
  out[1] = twg_cast(e, "llvm.trunc", e->i8, twg_binary(e, "llvm.lshr", both, twg_const_int(e, e->i16, 8)));
  for (int i = 0; mlirTypeIsAFloat8E5M2(to) && i < 2; i++)
    out[i] = past_the_top(e, x[i], out[i]);
}

void twg_widen_pair(tw_emitter_t *e, MlirType from, const MlirValue x[2], MlirValue out[2]) {
  char text[64];
  snprintf(text, sizeof text, "cvt.rn.f16x2.%s $0, $1;", name_of(from));
  MlirValue both = twg_bitcast(e, twg_pack(e, e->i8, 2, x), e->i16);
  MlirValue halves = twg_asm(e, text, "=r,h", e->i32, 1, &both, TW_PTX_NOTHING);
  halves = twg_bitcast(e, halves, twg_vector_type(e->f16, 2));
  for (int i = 0; i < 2; i++)
    out[i] = twg_cast(e, "llvm.fpext", e->f32, twg_unpack(e, halves, i, e->f16));
}

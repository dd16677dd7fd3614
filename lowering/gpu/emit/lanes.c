/* lanes.c - registers that move. See lanes.h. */
#include "lowering/gpu/emit/lanes.h"

bool twg_rename_registers(tw_emitter_t *e, const tw_layout_t *from, const tw_layout_t *to, tw_values_t in,
                          tw_values_t *out) {
  tw_conversion_t c;
  if (tw_layout_classify(from, to) > TW_CONVERT_REGISTER || !tw_layout_conversion(from, to, &c))
    return false;
  *out = twg_new_values(e, tw_layout_count(to, TW_REGISTER));
  for (int r = 0; r < out->count; r++)
    out->at[r] = in.at[tw_conversion_apply(&c, (uint32_t)r, 0, 0).at[TW_REGISTER]];
  return true;
}

bool twg_set_slice(tw_emitter_t *e, MlirOperation op, intptr_t i, const tw_layout_t *slice, tw_values_t values) {
  MlirType type = mlirValueGetType(mlirOperationGetResult(op, i));
  tw_layout_t to;
  tw_values_t out = values;
  if (tw_is_tile(type) && (!tw_layout_of_type(type, &to) || !twg_rename_registers(e, slice, &to, values, &out))) {
    tw_op_error(op, "must have the layout of a slice of its operand");
    return false;
  }
  if (tw_is_tile(type))
    twg_set_result(e, op, i, out);
  else
    twg_set_scalar(e, op, i, values.at[0]);
  return true;
}

static MlirValue shuffle_word(tw_emitter_t *e, const char *name, MlirValue word, MlirValue lane) {
  MlirValue operands[4] = {twg_const_i32(e, -1), word, lane, twg_const_i32(e, 31)};
  return twg_intrinsic(e, name, e->i32, 4, operands, TW_PTX_EFFECT);
}

MlirValue twg_shuffle(tw_emitter_t *e, bool butterfly, MlirValue x, MlirValue lane) {
  const char *name = butterfly ? "llvm.nvvm.shfl.sync.bfly.i32" : "llvm.nvvm.shfl.sync.idx.i32";
  MlirType type = mlirValueGetType(x);
  unsigned bits = tw_bits(type);
  if (bits == 64) {
    MlirValue both = twg_bitcast(e, x, twg_vector_type(e->i32, 2)), half[2];
    for (int i = 0; i < 2; i++)
      half[i] = shuffle_word(e, name, twg_unpack(e, both, i, e->i32), lane);
    return twg_bitcast(e, twg_pack(e, e->i32, 2, half), type);
  }
  if (bits == 32)
    return twg_bitcast(e, shuffle_word(e, name, twg_bitcast(e, x, e->i32), lane), type);
  MlirType small = mlirIntegerTypeGet(e->context, bits);
  MlirValue wide = twg_cast(e, "llvm.zext", e->i32, twg_bitcast(e, x, small));
  return twg_bitcast(e, twg_cast(e, "llvm.trunc", small, shuffle_word(e, name, wide, lane)), type);
}

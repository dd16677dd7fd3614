/* convert.c - moving elements between registers of one thread, of a warp, and through shared memory */
#include "lowering/gpu/rules.h"

bool twg_rename_registers(tw_emitter_t *e, const tw_layout_t *from, const tw_layout_t *to,
                          tw_values_t in, tw_values_t *out) {
  tw_conversion_t c;
  if (tw_layout_classify(from, to) > TW_CONVERT_REGISTER || !tw_layout_conversion(from, to, &c))
    return false;
  *out = twg_new_values(e, tw_layout_count(to, TW_REGISTER));
  for (int r = 0; r < out->count; r++)
    out->at[r] = in.at[tw_conversion_apply(&c, (uint32_t)r, 0, 0).at[TW_REGISTER]];
  return true;
}

int64_t twg_scratch_bytes(MlirOperation op) {
  tw_layout_t from, to;
  if (!tw_op_is(op, "tile.convert_layout"))
    return 0;
  MlirType type = mlirValueGetType(mlirOperationGetOperand(op, 0));
  if (!tw_layout_of_type(type, &from) || !tw_layout_of_type(mlirValueGetType(mlirOperationGetResult(op, 0)), &to) ||
      tw_layout_classify(&from, &to) != TW_CONVERT_SHARED)
    return 0;
  int bits = tw_memory_bits(tw_element(type));
  return tw_count(type) * (bits < 8 ? 8 : bits) / 8;
}

int64_t twg_scratch_offset(MlirOperation op) { return tw_attr_int(op, "tile.scratch", 0); }

/* shape.c - rules: shape ops rename registers; iota computes coordinates */
#include "lowering/gpu/emit/lanes.h"
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/isa/convert_float.h"

static bool layouts_of(MlirOperation op, tw_layout_t *from, tw_layout_t *to) {
  return tw_layout_of_type(mlirValueGetType(mlirOperationGetOperand(op, 0)), from) &&
         tw_layout_of_type(mlirValueGetType(mlirOperationGetResult(op, 0)), to);
}

/* Renames the registers of the operand, whose layout as a tile of the result's shape is `moved`. */
static bool rename(tw_emitter_t *e, MlirOperation op, const tw_layout_t *moved, const tw_layout_t *to) {
  tw_values_t out;
  if (!twg_rename_registers(e, moved, to, twg_operand(e, op, 0), &out)) {
    tw_op_error(op, "has layouts between which elements would change their thread; "
                    "tile-assign-layouts puts a tile.convert_layout there");
    return false;
  }
  twg_set_result(e, op, 0, out);
  return true;
}

static bool rule_splat(tw_emitter_t *e, MlirOperation op) { return twg_set_splat(e, op, twg_operand(e, op, 0).at[0]); }

static bool rule_iota(tw_emitter_t *e, MlirOperation op) {
  MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0)), element = tw_element(type);
  tw_layout_t l;
  if (!tw_layout_of_type(type, &l))
    return false;
  tw_values_t out = twg_new_values(e, tw_layout_count(&l, TW_REGISTER));
  for (int r = 0; r < out.count; r++) {
    MlirValue x = twg_register_coord(e, &l, 0, r);
    if (mlirTypeIsAFloat(element))
      x = twg_convert_float(e, twg_cast(e, "llvm.uitofp", e->f32, x), e->f32, element);
    else if (mlirIntegerTypeGetWidth(element) > 32)
      x = twg_cast(e, "llvm.zext", twg_register_type(e, element), x);
    else if (mlirIntegerTypeGetWidth(element) < 32)
      x = twg_cast(e, "llvm.trunc", twg_register_type(e, element), x);
    out.at[r] = x;
  }
  twg_set_result(e, op, 0, out);
  return true;
}

/* Elements repeat along the axes of extent one. The operand is the result without these axes, so a result register
 * reads the operand's register with their coordinates masked. */
static bool rule_broadcast(tw_emitter_t *e, MlirOperation op) {
  if (!tw_is_tile(mlirValueGetType(mlirOperationGetOperand(op, 0))))
    return rule_splat(e, op);
  tw_layout_t from, to;
  int64_t shape[TW_LAYOUT_MAX_RANK], narrow[TW_LAYOUT_MAX_RANK];
  int rank = tw_tile_shape(mlirValueGetType(mlirOperationGetOperand(op, 0)), shape);
  if (!layouts_of(op, &from, &to))
    return false;
  int extra = to.rank - rank; /* new leading axes */
  for (int d = 0; d < to.rank; d++)
    narrow[d] = d < extra ? 1 : shape[d - extra];
  tw_layout_t wide = tw_layout_reshape(&from, to.rank, narrow), masked = to;
  for (int g = 0; g < TW_NUM_INPUTS; g++)
    for (int i = 0; i < to.bits[g]; i++) {
      uint32_t flat = 0;
      for (int d = 0; d < to.rank; d++)
        if (narrow[d] > 1)
          flat |= tw_layout_coord(&to, to.basis[g][i], d) << tw_layout_dim_shift(&wide, d);
      masked.basis[g][i] = flat;
    }
  for (int d = 0; d < to.rank; d++)
    masked.log_shape[d] = wide.log_shape[d];
  return rename(e, op, &wide, &masked);
}

static bool rule_reshape(tw_emitter_t *e, MlirOperation op) {
  bool from_tile = tw_is_tile(mlirValueGetType(mlirOperationGetOperand(op, 0)));
  bool to_tile = tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0)));
  if (!from_tile || !to_tile) /* one element: every thread has it, in its first register */
    return rule_splat(e, op);
  tw_layout_t from, to;
  if (!layouts_of(op, &from, &to))
    return false;
  tw_layout_t moved = from;
  moved.rank = to.rank;
  for (int d = 0; d < TW_LAYOUT_MAX_RANK; d++)
    moved.log_shape[d] = to.log_shape[d];
  return rename(e, op, &moved, &to);
}

static bool rule_permute(tw_emitter_t *e, MlirOperation op) {
  tw_layout_t from, to;
  int64_t order[TW_LAYOUT_MAX_RANK];
  int perm[TW_LAYOUT_MAX_RANK];
  if (!layouts_of(op, &from, &to))
    return false;
  tw_attr_ints(op, "order", order, TW_LAYOUT_MAX_RANK);
  for (int d = 0; d < from.rank; d++)
    perm[d] = (int)order[d];
  tw_layout_t moved = tw_layout_permute(&from, perm);
  return rename(e, op, &moved, &to);
}

/* The part of register r of the result: one of the last registers, told apart by bits of the index. */
typedef struct {
  int count;                         /* of bits */
  MlirValue bit[TW_LAYOUT_MAX_BITS]; /* i1; null: known */
  bool set[TW_LAYOUT_MAX_BITS];      /* the known bit */
} part_t;

static part_t part_of(tw_emitter_t *e, MlirOperation op, const tw_layout_t *part, const tw_layout_t *whole) {
  part_t out = {0};
  for (int d = whole->rank - 1; d >= 0; d--) {
    MlirValue index = mlirOperationGetOperand(op, 1 + d);
    int64_t known;
    bool is_known = tw_known_int(index, &known);
    for (int b = 0; b < whole->log_shape[d] - part->log_shape[d]; b++, out.count++) {
      out.set[out.count] = is_known && (known >> b & 1);
      if (is_known)
        continue;
      MlirValue x = twg_operand(e, op, 1 + d).at[0];
      MlirType type = mlirValueGetType(x);
      MlirValue bit = twg_binary(e, "llvm.and", x, twg_const_int(e, type, INT64_C(1) << b));
      out.bit[out.count] = twg_icmp(e, TW_NE, bit, twg_const_int(e, type, 0));
    }
  }
  return out;
}

static MlirValue pick(tw_emitter_t *e, const part_t *part, const MlirValue *registers, int at, int stride, int bit) {
  if (bit < 0)
    return registers[at];
  int set = at + (stride << bit);
  if (part->bit[bit].ptr == NULL)
    return pick(e, part, registers, part->set[bit] ? set : at, stride, bit - 1);
  MlirValue high = pick(e, part, registers, set, stride, bit - 1), low = pick(e, part, registers, at, stride, bit - 1);
  return twg_select(e, part->bit[bit], high, low);
}

/* Every thread has its elements of all parts, and selects those of one. */
static bool rule_extract(tw_emitter_t *e, MlirOperation op) {
  tw_layout_t from, to;
  int64_t shape[TW_LAYOUT_MAX_RANK];
  tw_values_t all;
  if (!layouts_of(op, &from, &to))
    return false;
  tw_tile_shape(mlirValueGetType(mlirOperationGetOperand(op, 0)), shape);
  tw_layout_t whole = tw_layout_unextract(&to, shape);
  if (!twg_rename_registers(e, &from, &whole, twg_operand(e, op, 0), &all)) {
    tw_op_error(op, "has layouts between which elements would change their thread; "
                    "tile-assign-layouts puts a tile.convert_layout there");
    return false;
  }
  part_t part = part_of(e, op, &to, &whole);
  tw_values_t out = twg_new_values(e, tw_layout_count(&to, TW_REGISTER));
  for (int r = 0; r < out.count; r++)
    out.at[r] = pick(e, &part, all.at, r, out.count, part.count - 1);
  twg_set_result(e, op, 0, out);
  return true;
}

TWG_RULE(TW_TENSOR_SPLAT, rule_splat)
TWG_RULE(TW_TILE_IOTA, rule_iota)
TWG_RULE(TW_TILE_BROADCAST, rule_broadcast)
TWG_RULE(TW_TILE_RESHAPE, rule_reshape)
TWG_RULE(TW_TILE_PERMUTE, rule_permute)
TWG_RULE(TW_TILE_EXTRACT, rule_extract)

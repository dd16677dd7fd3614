/* legalize.c - tile-legalize: everything implicit becomes explicit, and every type signless
 *
 *   before   %s = tile.add %x, %y : tensor<4x1xi8>, tensor<8xf16>
 *            %m = tile.maximum %u, %u : tensor<8xui8>, tensor<8xui8>
 *   after    %0 = arith.sitofp %x : tensor<4x1xi8> to tensor<4x1xf32>
 *            %1 = arith.truncf %0 : tensor<4x1xf32> to tensor<4x1xf16>
 *            %2 = tile.broadcast %1 : tensor<4x1xf16> -> tensor<4x8xf16>
 *            %3 = tile.reshape %y : tensor<8xf16> -> tensor<1x8xf16>
 *            %4 = tile.broadcast %3 : tensor<1x8xf16> -> tensor<4x8xf16>
 *            %s = arith.addf %2, %4 : tensor<4x8xf16>
 *            %m = arith.maxui %u, %u : tensor<8xi8>
 *
 * Takes any verified IR of the tile dialect. Afterwards arithmetic is that of `arith` and `math`, operands and results
 * of one shape and dtype; no type is unsigned; tile.broadcast keeps the rank; sums and products of 16-bit floats
 * accumulate in f32. An elementwise op follows its row of the op table; the table `own_rules` has the others.
 *
 * The function is rewritten in place. Types stay unsigned until the end, because an op that was not looked at yet reads
 * its meaning from them; arith ops on unsigned types exist only within this pass. */
#include "lowering/common/legalize.h"
#include "base/memory.h"
#include "lowering/common/check.h"
#include "lowering/common/gather_to_load.h"
#include "lowering/common/inline_map.h"

#include "lowering/passes.h"

#include <stdlib.h>
#include <string.h>

static const MlirValue failed = {NULL};

/* --- Building blocks --------------------------------------------------------------------------------- */

static void set_unit(MlirOperation op, const char *name) {
  tw_set_attr(op, name, mlirUnitAttrGet(mlirOperationGetContext(op)));
}

/* --- Elementwise ops, by their rows -------------------------------------------------------------------- */

static const char *upstream_op(const tw_op_info_t *info, tw_elem_t elem) {
  switch (tw_elem_kind(elem)) {
  case 'b': return info->bool_op;
  case 'i': return elem < TW_i8 ? info->unsigned_op : info->signed_op;
  default: return info->float_op;
  }
}

static MlirValue elementwise(const legalize_t *l) {
  tw_elem_t elem = tw_elem_of(l->result);
  MlirValue operands[2];
  intptr_t num = mlirOperationGetNumOperands(l->op);
  for (intptr_t i = 0; i < num; i++)
    operands[i] = tw_legal_operand(l, i, elem, l->result);
  const char *name = upstream_op(l->info, elem);
  if (!*name)
    return operands[0];
  MlirValue made = tw_legal_compute(l, name, l->result, num, operands);
  static const char *const marks[] = {TW_APPROXIMATE, TW_ROUGH};
  for (int i = 0; i < 2; i++)
    if (tw_has_attr(l->op, marks[i]) && mlirTypeIsAF32(tw_element(l->result)))
      set_unit(tw_def(made), marks[i]);
  return made;
}

/* Whether the row leaves the dtype to a rule of legalize_math.c. */
static bool needs_own(const legalize_t *l) { return !*upstream_op(l->info, tw_elem_of(l->result)); }

static MlirValue legalize_floordiv(const legalize_t *l) {
  return needs_own(l) ? tw_legal_floordiv_float(l) : elementwise(l);
}
static MlirValue legalize_mod(const legalize_t *l) { return needs_own(l) ? tw_legal_mod(l) : elementwise(l); }
static MlirValue legalize_neg(const legalize_t *l) { return needs_own(l) ? tw_legal_neg_int(l) : elementwise(l); }

/* The larger or smaller one: of floats, with a NaN or without. */
static MlirValue legalize_extreme(const legalize_t *l) {
  if (!tw_has_attr(l->op, "ignore_nan"))
    return elementwise(l);
  tw_elem_t elem = tw_elem_of(l->result);
  MlirValue operands[] = {tw_legal_operand(l, 0, elem, l->result), tw_legal_operand(l, 1, elem, l->result)};
  const char *name = tw_op_is(l->op, TW_TILE_MAXIMUM) ? "arith.maxnumf" : "arith.minnumf";
  return tw_legal_compute(l, name, l->result, 2, operands);
}

static MlirValue legalize_compare(const legalize_t *l) {
  tw_elem_t elem = tw_promote(tw_elem_of(mlirValueGetType(mlirOperationGetOperand(l->op, 0))),
                              tw_elem_of(mlirValueGetType(mlirOperationGetOperand(l->op, 1))));
  MlirValue x = tw_legal_operand(l, 0, elem, l->result), y = tw_legal_operand(l, 1, elem, l->result);
  return tw_legal_compare(l, (tw_cmp_kind_t)tw_attr_int(l->op, "kind", 0), x, y);
}

static MlirValue legalize_select(const legalize_t *l) {
  tw_elem_t elem = tw_elem_of(l->result);
  MlirValue condition = tw_legal_operand(l, 0, TW_b1, l->result);
  MlirValue x = tw_legal_operand(l, 1, elem, l->result), y = tw_legal_operand(l, 2, elem, l->result);
  return tw_legal_select(l, condition, x, y);
}

static MlirValue legalize_cast(const legalize_t *l) {
  return tw_legal_cast(l, mlirOperationGetOperand(l->op, 0), tw_elem_of(l->result));
}

static MlirValue legalize_broadcast(const legalize_t *l) {
  return tw_legal_broadcast(l, mlirOperationGetOperand(l->op, 0), l->result);
}

/* --- Constants --------------------------------------------------------------------------------------- */

static MlirType signless(MlirType type) {
  if (mlirTypeIsAShaped(type) ? !mlirTypeIsARankedTensor(type) && !mlirTypeIsAMemRef(type) : !mlirTypeIsAInteger(type))
    return type;
  if (!tw_is_unsigned(type))
    return type;
  return tw_with_element(type, mlirIntegerTypeGet(mlirTypeGetContext(type), tw_bits(type)));
}

static MlirAttribute signless_value(MlirAttribute value, MlirType type) {
  if (mlirTypeEqual(mlirAttributeGetType(value), type))
    return value;
  if (!mlirAttributeIsADenseElements(value))
    return mlirIntegerAttrGet(type, (int64_t)mlirIntegerAttrGetValueUInt(value));
  int64_t count = mlirDenseElementsAttrIsSplat(value) ? 1 : tw_count(type);
  return mlirDenseElementsAttrRawBufferGet(type, (size_t)count * tw_bytes(type),
                                           mlirDenseElementsAttrGetRawData(value));
}

static MlirValue legalize_constant(const legalize_t *l) {
  MlirAttribute value = signless_value(tw_attr(l->op, "value"), signless(l->result));
  return tw_op1_attr(&l->at, "arith.constant", l->result, 0, NULL, "value", value);
}

/* --- Ops that stay ------------------------------------------------------------------------------------- */

static MlirType operand_type(const legalize_t *l, intptr_t index) {
  return mlirValueGetType(mlirOperationGetOperand(l->op, index));
}

static MlirValue kept(const legalize_t *l) { return mlirOperationGetResult(l->op, 0); }

/* Reductions and scans: sums and products of bools count in i32, those of 16-bit floats accumulate in f32. */
static MlirValue legalize_reduce(const legalize_t *l) {
  int64_t kind = tw_attr_int(l->op, "kind", 0);
  MlirType input = operand_type(l, 0);
  bool orders = kind != TW_REDUCE_ADD && kind != TW_REDUCE_MUL;
  if (orders && (tw_is_unsigned(input) || tw_is_bool(input)))
    set_unit(l->op, "is_unsigned");
  tw_elem_t wide = tw_legal_is_half(input) ? TW_f32 : TW_i32;
  if (orders || (!tw_legal_is_half(input) && !tw_is_bool(input)))
    return kept(l);
  mlirOperationSetOperand(l->op, 0, tw_legal_cast(l, mlirOperationGetOperand(l->op, 0), wide));
  if (!tw_legal_is_half(input))
    return kept(l);
  /* The op itself computes in f32; what used its result uses the rounded one, which comes after it. */
  MlirValue sum = kept(l);
  MlirOperation copy = mlirOperationClone(l->op);
  mlirBlockInsertOwnedOperationBefore(l->at.block, l->op, copy);
  MlirValue wide_sum = mlirOperationGetResult(copy, 0);
  mlirValueSetType(wide_sum, tw_with_element(mlirValueGetType(sum), mlirF32TypeGet(l->at.context)));
  return tw_legal_cast(l, wide_sum, tw_elem_of(l->result));
}

static MlirValue legalize_mma(const legalize_t *l) {
  if (tw_is_unsigned(operand_type(l, 0)))
    set_unit(l->op, "unsigned_lhs");
  if (tw_is_unsigned(operand_type(l, 1)))
    set_unit(l->op, "unsigned_rhs");
  return kept(l);
}

/* Unsigned indices become signed ones that hold them. */
static void widen_indices(const legalize_t *l) {
  intptr_t first, count = tw_operands(l->op, TW_OPERAND_INDICES, &first);
  for (intptr_t i = first; i < first + count; i++) {
    MlirType type = operand_type(l, i);
    if (tw_is_unsigned(type))
      mlirOperationSetOperand(
          l->op, i, tw_legal_cast(l, mlirOperationGetOperand(l->op, i), tw_bits(type) < 32 ? TW_i32 : TW_i64));
  }
}

static MlirValue legalize_gather(const legalize_t *l) {
  widen_indices(l);
  return kept(l);
}

static MlirValue legalize_atomic(const legalize_t *l) {
  int64_t kind = tw_attr_int(l->op, "kind", 0);
  widen_indices(l);
  bool extreme = kind == TW_ATOMIC_MIN || kind == TW_ATOMIC_MAX || kind == TW_ATOMIC_NANMIN || kind == TW_ATOMIC_NANMAX;
  if (extreme && tw_is_unsigned(l->result))
    set_unit(l->op, "is_unsigned");
  return kept(l);
}

static MlirValue legalize_scatter(const legalize_t *l) {
  widen_indices(l);
  return failed; /* no result to replace */
}

/* Unsigned numbers print as wider signed ones; of 64 bits there is none, so that is said in an attribute. */
static MlirValue legalize_print(const legalize_t *l) {
  intptr_t num = mlirOperationGetNumOperands(l->op);
  int *is_unsigned = calloc((size_t)num + 1, sizeof *is_unsigned);
  bool any = false;
  for (intptr_t i = 0; is_unsigned && i < num; i++) {
    MlirValue value = mlirOperationGetOperand(l->op, i);
    unsigned bits = tw_is_unsigned(mlirValueGetType(value)) ? tw_bits(mlirValueGetType(value)) : 0;
    if (bits && bits < 64)
      mlirOperationSetOperand(l->op, i, tw_legal_cast(l, value, bits < 32 ? TW_i32 : TW_i64));
    any |= is_unsigned[i] = bits == 64;
  }
  if (any)
    tw_set_attr(l->op, "is_unsigned", mlirDenseBoolArrayGet(l->at.context, num, is_unsigned));
  free(is_unsigned);
  return failed; /* no result to replace */
}

/* --- The walk ---------------------------------------------------------------------------------------- */

/* As the definitions name them. */
static const legalize_rule_t own_rules[TW_NUM_OP_KINDS] = {
#define TW_OWN(kind, num_operands, rule) [TW_##kind] = (rule),
#include "TileLegalizers.inc"
#undef TW_OWN
};

static legalize_rule_t find_rule(tw_op_kind_t kind, const tw_op_info_t *info) {
  return own_rules[kind] ? own_rules[kind] : info && info->rule != TW_RESULT_OWN ? elementwise : NULL;
}

static bool legalize_op(MlirOperation op) {
  tw_op_kind_t kind = tw_op_kind(op);
  legalize_t l = {.at = tw_build_before(op), .op = op, .info = tw_op_info(kind)};
  legalize_rule_t rule = find_rule(kind, l.info);
  if (!rule)
    return true;
  bool has_result = mlirOperationGetNumResults(op) == 1;
  if (has_result)
    l.result = mlirValueGetType(mlirOperationGetResult(op, 0));
  MlirValue value = rule(&l);
  if (!has_result)
    return true;
  if (mlirValueIsNull(value))
    return false;
  if (!mlirValueEqual(value, mlirOperationGetResult(op, 0))) {
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), value);
    mlirOperationDestroy(op);
  }
  return true;
}

static void make_signless(MlirValue value) {
  MlirType type = mlirValueGetType(value), to = signless(type);
  if (!mlirTypeEqual(type, to))
    mlirValueSetType(value, to);
}

/* Calls `visit` on every op below `op`, inner ones last; it may replace the op by others before it. */
static bool for_each_op(MlirOperation op, bool (*visit)(MlirOperation)) {
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
    for (MlirBlock block = tw_region_block(op, r); !mlirBlockIsNull(block); block = mlirBlockGetNextInRegion(block))
      for (MlirOperation inner = mlirBlockGetFirstOperation(block), next; !mlirOperationIsNull(inner); inner = next) {
        next = mlirOperationGetNextInBlock(inner);
        if (!for_each_op(inner, visit) || !visit(inner))
          return false;
      }
  return true;
}

static void make_blocks_signless(MlirOperation op) {
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
    for (MlirBlock block = tw_region_block(op, r); !mlirBlockIsNull(block); block = mlirBlockGetNextInRegion(block))
      for (intptr_t i = 0; i < mlirBlockGetNumArguments(block); i++)
        make_signless(mlirBlockGetArgument(block, i));
}

/* The function's type follows its (already signless) parameters. */
static void make_signature_signless(MlirOperation func) {
  MlirType type = mlirTypeAttrGetValue(tw_attr(func, "function_type"));
  intptr_t num_inputs = mlirFunctionTypeGetNumInputs(type), num_results = mlirFunctionTypeGetNumResults(type);
  MlirType *types = tw_allocate((size_t)(num_inputs + num_results) + 1, sizeof *types);
  for (intptr_t i = 0; i < num_inputs; i++)
    types[i] = signless(mlirFunctionTypeGetInput(type, i));
  for (intptr_t i = 0; i < num_results; i++)
    types[num_inputs + i] = signless(mlirFunctionTypeGetResult(type, i));
  type = mlirFunctionTypeGet(mlirOperationGetContext(func), num_inputs, types, num_results, types + num_inputs);
  tw_set_attr(func, "function_type", mlirTypeAttrGet(type));
  free(types);
}

/* A cast that only changed the sign has nothing left to do. */
static bool remove_cast(MlirOperation op) {
  if (!tw_op_is(op, TW_BUILTIN_UNREALIZED_CONVERSION_CAST))
    return false;
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), mlirOperationGetOperand(op, 0));
  mlirOperationDestroy(op);
  return true;
}

static bool make_op_signless(MlirOperation op) {
  if (remove_cast(op))
    return true;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    make_signless(mlirOperationGetResult(op, i));
  make_blocks_signless(op);
  if (tw_op_is(op, TW_FUNC_FUNC))
    make_signature_signless(op);
  return true;
}

/* --- What comes later -------------------------------------------------------------------------------- */

/* Layouts and buffers: what is re-emitted here would lose the first, and the elements of the second have signs. */
static bool comes_later(MlirType type) { return tw_type_is_buffer(type) || tw_has_layout(type); }

static bool has_no_layouts(MlirOperation op) {
  bool later = false;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    later |= comes_later(mlirValueGetType(mlirOperationGetResult(op, i)));
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
    for (MlirBlock block = tw_region_block(op, r); !mlirBlockIsNull(block); block = mlirBlockGetNextInRegion(block))
      for (intptr_t i = 0; i < mlirBlockGetNumArguments(block); i++)
        later |= comes_later(mlirValueGetType(mlirBlockGetArgument(block, i)));
  if (later)
    tw_op_error(op, "has tiles with layouts, or buffers, which tile-assign-layouts and later passes make of legal ops");
  return !later;
}

/* --- The pass ---------------------------------------------------------------------------------------- */

static bool gather_to_load(MlirOperation op) { return !tw_op_is(op, TW_FUNC_FUNC) || tw_gather_to_load(op); }

static bool check(MlirOperation op) { return !tw_op_is(op, TW_FUNC_FUNC) || tw_check(op); }

bool tw_run_legalize(MlirOperation module) {
  return for_each_op(module, has_no_layouts) && tw_inline_maps(module) && for_each_op(module, legalize_op) &&
         for_each_op(module, make_op_signless) && for_each_op(module, gather_to_load) && for_each_op(module, check);
}

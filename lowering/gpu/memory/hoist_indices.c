/* hoist_indices.c - tile-optimize-indices: hoists the invariant part of a gather's indices out of loops
 *
 * Before, an index tile that moves by a scalar is spread over the gathered tile in each iteration:
 *
 *   scf.for %k = ... {
 *     %s = tensor.splat %k : tensor<128xi32>
 *     %y = arith.addi %p, %s
 *     %z = tile.reshape %y : ... -> tensor<128x1xi32>
 *     %b = tile.broadcast %z : ... -> tensor<128x64xi32>
 *     %t = tile.gather %A[%b, ...]
 *   }
 *
 * After, the scalar is added to the tile last of all, so that the rule of the gather finds it there: addresses are
 * those of the first part, which the loop does not change, moved by one distance for all elements
 * (emit/rules/load_store.c).
 *
 *   %z = tile.reshape %p ; %b = tile.broadcast %z
 *   scf.for %k = ... {
 *     %s = tensor.splat %k : tensor<128x64xi32>
 *     %i = arith.addi %b, %s {tile.hoisted}
 *     %t = tile.gather %A[%i, ...]
 *   }
 *
 * What must hold: the index is made of sums, differences, multiples by constants and shape ops of what is made before
 * the loop and of scalars. Of these the sum must not be negative, as far as ranges.h can tell: then index and scalar
 * have the sum that they would have without an overflow, or one that is beyond any array. Runs before
 * tile-assign-layouts. */
#include "lowering/gpu/facts/index_facts.h"
#include "lowering/gpu/memory/optimize_indices.h"
#include "lowering/ir.h"
#include "lowering/loops.h"
#include "lowering/ranges.h"

/* An index, as a tile from outside of the loop plus a scalar; either may be null. */
typedef struct {
  MlirValue tile, scalar;
} parts_t;

typedef struct {
  MlirOperation loop;
  tw_builder_t before; /* the loop */
} lifter_t;

static bool is_shape_op(MlirOperation op) { return tw_op_is(op, TW_TILE_RESHAPE) || tw_op_is(op, TW_TILE_BROADCAST); }

static bool is_sum(MlirOperation op) { return tw_op_class(op) == TW_CLASS_SUM; }

/* The factor of a product with a constant. */
static bool is_multiple(MlirOperation op, int64_t *factor) {
  return tw_op_is(op, TW_ARITH_MULI) && tw_known_int(mlirOperationGetOperand(op, 1), factor);
}

/* Whether the index has such parts; nothing is built. */
static bool has_parts(const lifter_t *l, MlirValue index) {
  MlirOperation op = tw_def(index);
  int64_t factor;
  if (!tw_defined_in(index, tw_loop_body(l->loop)))
    return true;
  if (mlirOperationIsNull(op))
    return false;
  if (tw_op_is(op, TW_TENSOR_SPLAT))
    return true;
  if (is_sum(op))
    return has_parts(l, mlirOperationGetOperand(op, 0)) && has_parts(l, mlirOperationGetOperand(op, 1));
  return (is_shape_op(op) || is_multiple(op, &factor)) && has_parts(l, mlirOperationGetOperand(op, 0));
}

/* x + y or x - y, where either may be null. */
static MlirValue combine(const tw_builder_t *at, MlirOperation op, MlirValue x, MlirValue y) {
  if (y.ptr == NULL)
    return x;
  if (x.ptr == NULL && tw_op_is(op, TW_ARITH_ADDI))
    return y;
  MlirType type = mlirValueGetType(y);
  return tw_binary(at, tw_op_is(op, TW_ARITH_ADDI) ? "arith.addi" : "arith.subi", type,
                   x.ptr ? x : tw_const_int(at, type, 0), y);
}

static MlirValue multiple(const tw_builder_t *at, MlirValue x, int64_t factor) {
  return x.ptr ? tw_binary(at, "arith.muli", mlirValueGetType(x), x, tw_const_int(at, mlirValueGetType(x), factor)) : x;
}

static parts_t parts_of(const lifter_t *l, MlirValue index) {
  MlirOperation op = tw_def(index);
  if (!tw_defined_in(index, tw_loop_body(l->loop)))
    return (parts_t){.tile = index};
  if (tw_op_is(op, TW_TENSOR_SPLAT))
    return (parts_t){.scalar = mlirOperationGetOperand(op, 0)};
  parts_t x = parts_of(l, mlirOperationGetOperand(op, 0));
  tw_builder_t here = tw_build_before(op);
  int64_t factor;
  if (is_sum(op)) {
    parts_t y = parts_of(l, mlirOperationGetOperand(op, 1));
    return (parts_t){combine(&l->before, op, x.tile, y.tile), combine(&here, op, x.scalar, y.scalar)};
  }
  if (is_multiple(op, &factor))
    return (parts_t){multiple(&l->before, x.tile, factor), multiple(&here, x.scalar, factor)};
  if (x.tile.ptr) {
    MlirOperation view = mlirOperationClone(op);
    mlirOperationSetOperand(view, 0, x.tile);
    mlirBlockInsertOwnedOperationBefore(l->before.block, l->before.before, view);
    x.tile = mlirOperationGetResult(view, 0);
  }
  return x;
}

static void hoist_index(const lifter_t *l, MlirOperation gather, intptr_t operand) {
  MlirValue index = mlirOperationGetOperand(gather, operand);
  MlirType type = mlirValueGetType(index);
  if (!tw_is_tile(type) || !mlirTypeEqual(tw_element(type), tw_i32(mlirOperationGetContext(gather))) ||
      !tw_defined_in(index, tw_loop_body(l->loop)) || !has_parts(l, index))
    return;
  parts_t parts = parts_of(l, index);
  if (parts.tile.ptr && parts.scalar.ptr && tw_is_natural(parts.scalar)) {
    tw_builder_t at = tw_build_before(gather);
    MlirValue operands[] = {parts.tile, tw_unary(&at, "tensor.splat", type, parts.scalar)};
    MlirValue moved = tw_op1_attr(&at, "arith.addi", type, 2, operands, TW_HOISTED, mlirUnitAttrGet(at.context));
    mlirOperationSetOperand(gather, operand, moved);
    tw_erase_dead(tw_def(index));
  } else {
    if (parts.tile.ptr)
      tw_erase_dead(tw_def(parts.tile));
    if (parts.scalar.ptr)
      tw_erase_dead(tw_def(parts.scalar));
  }
}

static bool is_gather_in_loop(MlirOperation op) {
  MlirOperation loop = tw_enclosing_loop(op);
  return tw_op_gathers(op) && !mlirOperationIsNull(loop) && tw_op_is(loop, TW_SCF_FOR);
}

bool tw_hoist_indices(MlirOperation func) {
  tw_ops_t gathers = tw_ops_in(func, is_gather_in_loop, MlirWalkPreOrder);
  for (int i = 0; i < gathers.count; i++) {
    MlirOperation gather = gathers.at[i], loop = tw_enclosing_loop(gather);
    lifter_t l = {loop, tw_build_before(loop)};
    for (intptr_t axis = 0; axis < tw_rank(mlirValueGetType(mlirOperationGetOperand(gather, 0))); axis++)
      hoist_index(&l, gather, 1 + axis);
  }
  tw_ops_free(&gathers);
  return true;
}

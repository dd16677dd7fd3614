/* assign_layouts.c - tile-assign-layouts: gives each tile the layout of least cost
 *
 * Before: legal IR, tiles without layout.
 *
 *   %x = tile.load %a[%i, %z] : ... -> tensor<4x1024xf32>
 *   %m = tile.reduce max, %x axis 1 : tensor<4x1024xf32>
 *
 * After: every tile carries one, and tile.convert_layout stands where an op wants another.
 *
 *   %x = tile.load %a[%i, %z] : ... -> tensor<4x1024xf32, #linear>
 *   %m = tile.reduce max, %x axis 1 : tensor<4x1024xf32, #linear>   // -> tensor<4xf32, #linear1>
 *
 * Which values share a layout is found by value_classes.c; choose_layouts.c finds the layouts of least cost. A load or
 * store may have a layout of its own, where that and a conversion cost less. Constants, splats and iotas are made anew
 * for each use, in the layout that it needs.
 *
 * The kernel gets tile.layout_costs: what the layouts cost, and the runners-up, of which the hint layout_rank = n takes
 * the n-th; and tile.layouts: what each tile with a name in Python could have (named_choices.h), of which the hint
 * "layout(name)" takes one. What must hold: the number of warps is chosen (tile-plan-block), no unsigned types. */
#include "base/memory.h"
#include "dialect/layouts.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/layout/value_classes.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/launch_record.h"
#include "lowering/passes.h"

#include <stdlib.h>
#include <string.h>

typedef struct assigner {
  twl_classes_t classes;
  tw_map_t moved; /* value -> what converted() made of it */
} assigner_t;

/* ---- rewriting --------------------------------------------------------------------------------- */

static tw_layout_t class_layout(assigner_t *a, MlirValue value) { return twl_class_of(&a->classes, value)->layout; }

static void insert_after(MlirValue value, MlirOperation op) {
  MlirOperation def = tw_def(value);
  if (!mlirOperationIsNull(def)) {
    mlirBlockInsertOwnedOperationAfter(mlirOperationGetBlock(def), def, op);
    return;
  }
  MlirBlock block = mlirBlockArgumentGetOwner(value);
  mlirBlockInsertOwnedOperationBefore(block, mlirBlockGetFirstOperation(block), op);
}

static MlirOperation new_convert(MlirValue value, MlirType type, MlirLocation location) {
  MlirOperationState state = mlirOperationStateGet(tw_str("tile.convert_layout"), location);
  mlirOperationStateAddOperands(&state, 1, &value);
  mlirOperationStateAddResults(&state, 1, &type);
  return mlirOperationCreate(&state);
}

/* A copy of a constant, splat or iota with another type. */
static MlirOperation clone_flexible(MlirOperation op, MlirType type) {
  MlirOperationState state = mlirOperationStateGet(tw_op_name(op), mlirOperationGetLocation(op));
  MlirAttribute value = tw_attr(op, "value");
  if (mlirOperationGetNumOperands(op)) {
    MlirValue operand = mlirOperationGetOperand(op, 0);
    mlirOperationStateAddOperands(&state, 1, &operand);
  }
  if (!mlirAttributeIsNull(value)) {
    if (mlirDenseElementsAttrIsSplat(value))
      value = mlirDenseElementsAttrSplatGet(type, mlirDenseElementsAttrGetSplatValue(value));
    else
      value = mlirDenseElementsAttrReshapeGet(value, type);
    MlirNamedAttribute named = {mlirIdentifierGet(mlirTypeGetContext(type), tw_str("value")), value};
    mlirOperationStateAddAttributes(&state, 1, &named);
  }
  mlirOperationStateAddResults(&state, 1, &type);
  return mlirOperationCreate(&state);
}

/* The value in another layout, made next to its definition, once for each layout: a->moved maps the
 * value to all that were made of it. */
static MlirValue converted(assigner_t *a, MlirValue value, const tw_layout_t *layout) {
  MlirType type = tw_type_with_layout(mlirValueGetType(value), layout);
  intptr_t n = 0;
  const MlirValue *made = tw_map_get(&a->moved, value.ptr, &n);
  for (intptr_t i = 0; i < n; i++)
    if (mlirTypeEqual(mlirValueGetType(made[i]), type))
      return made[i];
  MlirLocation location = mlirValueIsAOpResult(value) ? mlirOperationGetLocation(tw_def(value))
                                                      : mlirLocationUnknownGet(a->classes.context);
  MlirOperation op = twl_is_flexible(value) ? clone_flexible(tw_def(value), type) : new_convert(value, type, location);
  insert_after(value, op);
  MlirValue *all = tw_must(malloc((size_t)(n + 1) * sizeof *all));
  if (n > 0)
    memcpy(all, made, (size_t)n * sizeof *all);
  all[n] = mlirOperationGetResult(op, 0);
  tw_map_set(&a->moved, value.ptr, n + 1, all);
  free(all);
  return mlirOperationGetResult(op, 0);
}

/* Makes operand i of an op have the layout. */
static void require(assigner_t *a, MlirOperation op, intptr_t i, const tw_layout_t *layout) {
  MlirValue value = mlirOperationGetOperand(op, i);
  tw_layout_t now;
  if (!tw_is_tile(mlirValueGetType(value)))
    return;
  if (!twl_is_flexible(value) && tw_layout_of_type(mlirValueGetType(value), &now) && tw_layout_equal(&now, layout))
    return;
  mlirOperationSetOperand(op, i, converted(a, value, layout));
}

/* Gives a result a layout other than its class, and its users a conversion. */
static void result_at(assigner_t *a, MlirOperation op, intptr_t i, const tw_layout_t *layout) {
  MlirValue result = mlirOperationGetResult(op, i);
  tw_layout_t wanted = class_layout(a, result);
  mlirValueSetType(result, tw_type_with_layout(mlirValueGetType(result), layout));
  if (tw_layout_equal(&wanted, layout))
    return;
  MlirOperation convert =
      new_convert(result, tw_type_with_layout(mlirValueGetType(result), &wanted), mlirOperationGetLocation(op));
  insert_after(result, convert);
  MlirValue stand_in = mlirOperationGetResult(convert, 0); /* of the same class */
  twl_add_to_class(&a->classes, stand_in, result);
  mlirValueReplaceAllUsesExcept(result, stand_in, 1, &convert);
}

static void result_in(assigner_t *a, MlirOperation op, const tw_layout_t *layout) { result_at(a, op, 0, layout); }

static void rewrite_load(assigner_t *a, MlirOperation op) {
  MlirValue result = mlirOperationGetResult(op, 0);
  if (!tw_is_tile(mlirValueGetType(result)))
    return;
  tw_layout_t layout = class_layout(a, result);
  layout = twl_access_layout(&a->classes, op, &layout);
  result_in(a, op, &layout);
}

static void rewrite_store(assigner_t *a, MlirOperation op) {
  MlirValue value = twl_accessed(op);
  if (value.ptr == NULL)
    return;
  tw_layout_t layout;
  if (!twl_is_flexible(value))
    layout = class_layout(a, value);
  layout = twl_access_layout(&a->classes, op, twl_is_flexible(value) ? NULL : &layout);
  require(a, op, mlirOperationGetNumOperands(op) - 1, &layout);
}

static void rewrite_reduce(assigner_t *a, MlirOperation op) {
  MlirValue input = twl_reduced(op);
  tw_layout_t layout = twl_has_class(input) ? class_layout(a, input) : twl_default_layout(&a->classes, input);
  layout = twl_reduction_layout(&a->classes, op, &layout);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    require(a, op, i, &layout);
  if (!tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0))))
    return;
  tw_layout_t out = twl_forward(op, &layout);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    result_at(a, op, i, &out);
}

static void rewrite_scan(assigner_t *a, MlirOperation op) {
  tw_layout_t layout = class_layout(a, mlirOperationGetResult(op, 0));
  layout = twl_reduction_layout(&a->classes, op, &layout);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    require(a, op, i, &layout);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    result_at(a, op, i, &layout);
}

/* The operand may keep its layout where the op can rename registers, else it is converted. */
static void rewrite_shape(assigner_t *a, MlirOperation op) {
  MlirValue input = mlirOperationGetOperand(op, 0), result = mlirOperationGetResult(op, 0);
  if (!tw_is_tile(mlirValueGetType(input)) || !tw_is_tile(mlirValueGetType(result)))
    return;
  tw_layout_t to = class_layout(a, result), want = twl_backward(op, &to);
  if (!twl_is_flexible(input)) {
    tw_layout_t have = class_layout(a, input);
    if (tw_layout_classify(&have, &want) <= TW_CONVERT_REGISTER) {
      tw_layout_t out = tw_op_is(op, TW_TILE_PERMUTE) ? twl_forward(op, &have) : to; /* what its text implies */
      result_in(a, op, &out);
      return;
    }
  }
  require(a, op, 0, &want);
}

static void rewrite_mma(assigner_t *a, MlirOperation op) {
  tw_mma_plan_t plan = tw_mma_plan(op, a->classes.num_warps);
  for (int i = 0; i < 3; i++)
    if (twl_needs_operand_layout(op, i))
      require(a, op, i, i == 0 ? &plan.lhs : i == 1 ? &plan.rhs : &plan.acc);
  result_in(a, op, &plan.acc);
}

/* Operands that are tied to other values: those of the op around, in loops and branches, or results. */
static void require_class(assigner_t *a, MlirOperation op, intptr_t i, MlirValue like) {
  if (!tw_is_tile(mlirValueGetType(like)))
    return;
  tw_layout_t layout = class_layout(a, like);
  require(a, op, i, &layout);
}

static void rewrite_yield(assigner_t *a, MlirOperation op) {
  MlirOperation parent = mlirOperationGetParentOperation(op);
  bool condition = tw_op_is(op, TW_SCF_CONDITION);
  bool to_before = tw_op_is(parent, TW_SCF_WHILE) && !condition;
  for (intptr_t i = condition; i < mlirOperationGetNumOperands(op); i++)
    require_class(a, op, i,
                  to_before ? mlirBlockGetArgument(tw_region_block(parent, 0), i)
                            : mlirOperationGetResult(parent, i - condition));
}

static void rewrite_sum(assigner_t *a, MlirOperation op) {
  for (intptr_t i = 0; i + 1 < mlirOperationGetNumResults(op); i++)
    require_class(a, op, i, mlirOperationGetResult(op, i));
}

static void rewrite_loop_inits(assigner_t *a, MlirOperation op) {
  bool is_for = tw_op_is(op, TW_SCF_FOR);
  for (intptr_t i = is_for ? 3 : 0; i < mlirOperationGetNumOperands(op); i++)
    require_class(a, op, i,
                  is_for ? mlirOperationGetResult(op, i - 3) : mlirBlockGetArgument(tw_region_block(op, 0), i));
}

static void rewrite_elementwise(assigner_t *a, MlirOperation op) {
  MlirValue one = twl_representative(op);
  tw_layout_t layout;
  if (one.ptr == NULL) { /* nothing but constants and no result: a scatter of them */
    for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
      if (tw_is_tile(mlirValueGetType(mlirOperationGetOperand(op, i)))) {
        layout = twl_default_layout(&a->classes, mlirOperationGetOperand(op, i));
        require(a, op, i, &layout);
      }
    return;
  }
  bool copied = twl_is_copied_gather(&a->classes, op);
  layout = copied ? twl_copy_layout(&a->classes, op) : class_layout(a, one);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    require(a, op, i, &layout);
  if (copied)
    result_in(a, op, &layout);
}

/* Whatever else reads tiles (print, assert) takes them as they are. */
static void rewrite_other(assigner_t *a, MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirValue value = mlirOperationGetOperand(op, i);
    if (tw_is_tile(mlirValueGetType(value)) && twl_is_flexible(value)) {
      tw_layout_t layout = twl_default_layout(&a->classes, value);
      require(a, op, i, &layout);
    }
  }
}

static void rewrite(assigner_t *a, MlirOperation op) {
  if (tw_op_loads_tile(op))
    rewrite_load(a, op);
  else if (tw_op_stores_tile(op))
    rewrite_store(a, op);
  else if (tw_op_form(op) == TW_FORM_REDUCTION)
    rewrite_reduce(a, op);
  else if (tw_op_form(op) == TW_FORM_SCAN)
    rewrite_scan(a, op);
  else if (tw_op_is_product(op))
    rewrite_mma(a, op);
  else if (tw_is_shape_op(op) || tw_op_is(op, TW_TILE_EXTRACT))
    rewrite_shape(a, op);
  else if (tw_op_is(op, TW_SCF_FOR) || tw_op_is(op, TW_SCF_WHILE))
    rewrite_loop_inits(a, op);
  else if (tw_op_is(op, TW_SCF_YIELD) || tw_op_is(op, TW_SCF_CONDITION))
    rewrite_yield(a, op);
  else if (tw_op_is(op, TW_TILE_SUM_PARTS))
    rewrite_sum(a, op);
  else if (twl_is_elementwise(op))
    rewrite_elementwise(a, op);
  else
    rewrite_other(a, op);
}

static void set_types(assigner_t *a) {
  for (int i = 0; i < a->classes.sets.count; i++) {
    tw_layout_t layout = twl_class_of_node(&a->classes, i)->layout;
    MlirValue value = a->classes.nodes[i].value;
    mlirValueSetType(value, tw_type_with_layout(mlirValueGetType(value), &layout));
  }
}

/* The originals of what was cloned for each use. */
static void erase_unused(assigner_t *a) {
  for (size_t i = a->classes.num_ops; i-- > 0;) {
    MlirOperation op = a->classes.ops[i];
    if (mlirOperationGetNumResults(op) == 1 && tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0))) &&
        twl_is_flexible(mlirOperationGetResult(op, 0)))
      if (mlirOpOperandIsNull(mlirValueGetFirstUse(mlirOperationGetResult(op, 0))))
        mlirOperationDestroy(op);
  }
}

/* ---- pass -------------------------------------------------------------------------------------- */

static bool takes_tiles(MlirOperation function) {
  MlirBlock block = tw_region_block(function, 0);
  for (intptr_t i = 0; !mlirBlockIsNull(block) && i < mlirBlockGetNumArguments(block); i++)
    if (tw_is_tile(mlirValueGetType(mlirBlockGetArgument(block, i))))
      return true;
  return false;
}

bool tw_run_assign_layouts(MlirOperation function) {
  assigner_t a = {.classes = {.context = mlirOperationGetContext(function), .target = tw_gpu_target_of(function)}};
  twl_classes_t *classes = &a.classes;
  if (!tw_has_attr(function, "tile.kernel") || tw_has_attr(function, "tile.simt"))
    return true;
  if (takes_tiles(function)) {
    tw_op_error(function, "is a kernel that takes a tile; kernels take arrays and scalars");
    return false;
  }
  classes->num_warps = (int)tw_num_warps(function, 0);
  if (classes->num_warps == 0) {
    tw_op_error(function, "has no number of warps, which tile-plan-block chooses");
    return false;
  }
  twl_classify(classes, function);
  bool good = twl_choose(classes, function);
  if (good) {
    set_types(&a);
    for (size_t i = 0; i < classes->num_ops; i++)
      rewrite(&a, classes->ops[i]);
    erase_unused(&a);
  }
  twl_free(classes);
  tw_map_free(&a.moved);
  return good;
}

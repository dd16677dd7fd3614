/* operand_loads.c - the loads behind the operands of products. See operand_loads.h. */
#include "lowering/gpu/facts/operand_loads.h"

#include "dialect/layouts.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/index_facts.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/machine/copy_engine.h"
#include "lowering/launch_record.h"
#include "lowering/loops.h"
#include "tilewright/dialect.h"

#include <stdio.h>

enum { SWIZZLE_BYTES = 128, LEAST_SWIZZLE_BYTES = 32 };

static bool is_element_cast(MlirOperation op) { return tw_op_class(op) == TW_CLASS_CAST; }

bool tw_is_view_of_load(MlirOperation op) {
  return tw_op_is_conversion(op) || tw_op_is(op, TW_TILE_PERMUTE) || tw_op_is(op, TW_TILE_RESHAPE) ||
         is_element_cast(op);
}

MlirOperation tw_load_behind(MlirValue value) {
  MlirOperation op = tw_def(value);
  while (!mlirOperationIsNull(op) && tw_is_view_of_load(op) &&
         tw_is_tile(mlirValueGetType(mlirOperationGetOperand(op, 0))))
    op = tw_def(mlirOperationGetOperand(op, 0));
  bool found = !mlirOperationIsNull(op) && (tw_op_loads_tile(op) || (tw_op_gathers(op) && tw_promotes(op)));
  return found ? op : tw_null_op();
}

/* Whether a gather gives zeros, or what it likes, where it reads nothing. */
static bool pads_with_zeros(MlirOperation gather) {
  MlirValue padding = tw_operand(gather, TW_OPERAND_PADDING);
  return mlirValueIsNull(padding) || tw_is_zero(padding);
}

bool tw_promotes(MlirOperation load) {
  enum { MIN_COPY_BITS = 32 };
  MlirType tile = mlirValueGetType(mlirOperationGetResult(load, 0));
  if (!tw_is_tile(tile) || tw_memory_bits(tw_element(tile)) < 8 || tw_is_bool(tile))
    return false;
  if (tw_op_gathers(load)) {
    int dim;
    return (int)tw_memory_bits(tw_element(tile)) << tw_gather_vector_bits(load, &dim) >= MIN_COPY_BITS &&
           pads_with_zeros(load);
  }
  int64_t padding = tw_attr_int(load, "padding", TW_PADDING_UNDETERMINED);
  return tw_op_loads_tile(load) && (padding == TW_PADDING_ZERO || padding == TW_PADDING_UNDETERMINED);
}

typedef struct {
  MlirBlock block; /* of the product */
  tw_ops_t loads;
} loads_behind_t;

static bool add_load(loads_behind_t *behind, MlirOperation load) {
  for (int i = 0; i < behind->loads.count; i++)
    if (mlirOperationEqual(behind->loads.at[i], load))
      return true;
  if (!mlirBlockEqual(mlirOperationGetBlock(load), behind->block))
    return false;
  tw_ops_add(&behind->loads, load);
  return true;
}

static bool add_behind(loads_behind_t *behind, MlirValue value) {
  if (!tw_is_tile(mlirValueGetType(value)) || !tw_defined_in(value, behind->block))
    return true;
  MlirOperation op = tw_def(value);
  if (mlirOperationIsNull(op))
    return false; /* carried by the loop */
  if (tw_op_loads_tile(op))
    return add_load(behind, op);
  if (mlirOperationGetNumRegions(op) > 0 || !(tw_is_arithmetic(op) || tw_is_view_of_load(op)))
    return false;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    if (!add_behind(behind, mlirOperationGetOperand(op, i)))
      return false;
  return true;
}

const char *tw_engine_refusal(MlirOperation load) {
  tw_engine_copy_t copy;
  int64_t order[TW_LAYOUT_MAX_RANK];
  if (!tw_engine_is_allowed(load))
    return "a load in a loop says " TW_REFUSES_ENGINE;
  if (!tw_promotes(load))
    return "a load in a loop does not go through shared memory";
  tw_access_order(load, (int)tw_rank(mlirValueGetType(mlirOperationGetResult(load, 0))), order);
  return tw_engine_plan_for(mlirOperationGetOperand(load, 0), order, tw_promoted_type(load), &copy);
}

bool tw_engine_brings(MlirOperation load) { return tw_has_engine(load) && tw_engine_refusal(load) == NULL; }

/* Whether it pays to bring a tile by a copy. A vector that is spread over the operand does not, if it is what keeps the
 * copy engine from bringing the rest. */
static bool copy_pays(MlirOperation load, int64_t elements) {
  if (!tw_promotes(load))
    return false;
  bool is_whole = tw_count(mlirValueGetType(mlirOperationGetResult(load, 0))) >= elements;
  return is_whole || !tw_has_engine(load) || tw_engine_brings(load);
}

/* What an operand is in each iteration but the first: the loop may carry it (pipeline_mma.c). */
static MlirValue in_iteration(MlirOperation mma, MlirValue value) {
  MlirOperation loop = mlirBlockGetParentOperation(mlirOperationGetBlock(mma));
  intptr_t position =
      tw_op_is(loop, TW_SCF_FOR) && mlirValueIsABlockArgument(value) ? tw_carried_position(loop, value) : -1;
  return position < 0 ? value : tw_carried_next(loop, position);
}

tw_ops_t tw_loads_behind(MlirOperation mma, int operand) {
  MlirValue read = mlirOperationGetOperand(mma, operand), value = in_iteration(mma, read);
  loads_behind_t behind = {.block = mlirOperationGetBlock(mma)};
  bool made = !mlirValueEqual(read, value) || mlirOperationIsNull(tw_load_behind(value));
  int all = 0;
  if (tw_loop_around(mma) != NULL && made && add_behind(&behind, value))
    all = behind.loads.count;
  behind.loads.count = 0;
  for (int i = 0; i < all; i++)
    if (copy_pays(behind.loads.at[i], tw_count(mlirValueGetType(value))))
      behind.loads.at[behind.loads.count++] = behind.loads.at[i];
  return behind.loads;
}

bool tw_has_loads_behind(MlirOperation mma, int operand) {
  tw_ops_t loads = tw_loads_behind(mma, operand);
  tw_ops_free(&loads);
  return loads.count > 0;
}

/* Bits that a thread writes for an element of the op's result. Bytes become floats of 16 bits in four instructions for
 * two of them (emit/rules/int_to_float.c). */
static int64_t bits_written(MlirOperation op) {
  enum { BYTE = 8, HALF = 16, STEPS = 4 };
  MlirType to = tw_element(mlirValueGetType(mlirOperationGetResult(op, 0)));
  bool casts = tw_op_class(op) == TW_CLASS_CAST && tw_is_float(to) && tw_bits(to) == HALF;
  MlirType from = casts ? tw_element(mlirValueGetType(mlirOperationGetOperand(op, 0))) : to;
  return tw_memory_bits(to) * (!tw_is_float(from) && tw_bits(from) == BYTE ? STEPS : 1);
}

int64_t tw_bits_computed(MlirBlock block, MlirValue made) {
  int64_t bits = 0, elements = tw_count(mlirValueGetType(made));
  tw_slice_t slice = {.block = block};
  tw_slice_add(&slice, made);
  TW_EACH_OP(op, block)
    if (tw_slice_has(&slice, op) && tw_op_form(op) == TW_FORM_ELEMENTWISE) {
      MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0));
      bits += tw_is_tile(type) && tw_count(type) == elements ? bits_written(op) : 0;
    }
  tw_slice_free(&slice);
  return bits;
}

bool tw_computes_operand(MlirOperation mma, int operand) {
  MlirValue value = in_iteration(mma, mlirOperationGetOperand(mma, operand));
  MlirOperation load = tw_load_behind(value);
  if (mlirOperationIsNull(load))
    return tw_has_loads_behind(mma, operand);
  MlirType loaded = mlirValueGetType(mlirOperationGetResult(load, 0));
  return mlirBlockEqual(mlirOperationGetBlock(load), mlirOperationGetBlock(mma)) &&
         !mlirTypeEqual(tw_element(mlirValueGetType(value)), tw_element(loaded));
}

MlirValue tw_gather_if(MlirOperation gather, MlirValue condition) {
  tw_builder_t at = tw_build_before(gather);
  MlirType tile = mlirValueGetType(mlirOperationGetResult(gather, 0));
  MlirType i1 = tw_with_element(tile, mlirIntegerTypeGet(at.context, 1));
  MlirValue mask = tw_unary(&at, "tensor.splat", i1, condition), given = tw_operand(gather, TW_OPERAND_MASK);
  if (!mlirValueIsNull(given))
    mask = tw_binary(&at, "arith.andi", i1, mask, given);
  MlirOperation made = mlirOperationClone(gather);
  tw_set_operand(made, TW_OPERAND_MASK, mask);
  tw_set_operand(made, TW_OPERAND_PADDING,
                 tw_is_float(tile) ? tw_const_float(&at, tile, 0) : tw_const_int(&at, tile, 0));
  mlirBlockInsertOwnedOperationBefore(at.block, at.before, made);
  return mlirOperationGetResult(made, 0);
}

int tw_contiguous_axis(MlirOperation load) {
  int rank = (int)tw_rank(mlirValueGetType(mlirOperationGetResult(load, 0))), dim;
  if (tw_op_gathers(load))
    return tw_gather_vector_bits(load, &dim) > 0 ? dim : rank - 1;
  MlirType array = mlirValueGetType(mlirOperationGetOperand(load, 0));
  int64_t strides[TW_MAX_RANK], offset, order[TW_MAX_RANK];
  intptr_t ordered = tw_attr_ints(load, "order", order, TW_MAX_RANK);
  if (mlirLogicalResultIsFailure(mlirMemRefTypeGetStridesAndOffset(array, strides, &offset)))
    return rank - 1;
  for (int d = rank - 1; d >= 0; d--)
    if (strides[ordered ? order[d] : d] == 1 && tw_extent(mlirValueGetType(mlirOperationGetResult(load, 0)), d) > 1)
      return d;
  return rank - 1;
}

int tw_swizzle_bytes(MlirStringRef text) {
  char name[8];
  for (int bytes = LEAST_SWIZZLE_BYTES; bytes <= SWIZZLE_BYTES; bytes *= 2) {
    snprintf(name, sizeof name, "%d", bytes);
    if (tw_str_is(text, name))
      return bytes;
  }
  return 0;
}

/* Of a line of the buffer, as the program says it. */
static int swizzle_of(MlirOperation load) {
  int bytes = tw_swizzle_bytes(tw_tile_hint_swizzle(mlirOperationGetResult(load, 0)));
  return bytes > 0 ? bytes : SWIZZLE_BYTES;
}

MlirType tw_promoted_type(MlirOperation load) {
  MlirType tile = mlirValueGetType(mlirOperationGetResult(load, 0));
  int64_t shape[TW_LAYOUT_MAX_RANK + 1] = {1};
  int rank = tw_tile_shape(tile, shape + 1), order[TW_LAYOUT_MAX_RANK], n = 0;
  order[n++] = tw_contiguous_axis(load);
  for (int d = rank - 1; d >= 0; d--)
    if (d != order[0])
      order[n++] = d;
  tw_layout_t layout = tw_shared_swizzled(rank, shape + 1, order, tw_memory_bits(tw_element(tile)), swizzle_of(load));
  MlirContext context = mlirTypeGetContext(tile);
  return tw_buffer_type_get(context, rank + 1, shape, tw_element(tile), tw_layout_attribute(context, &layout));
}

const void *tw_loop_around(MlirOperation op) {
  for (op = mlirOperationGetParentOperation(op); !mlirOperationIsNull(op); op = mlirOperationGetParentOperation(op))
    if ((tw_op_is(op, TW_SCF_FOR) || tw_op_is(op, TW_SCF_WHILE)) && !tw_has_attr(op, TW_PERSISTENT))
      return op.ptr;
  return NULL;
}

const void *tw_repeating_loop(MlirOperation op) {
  MlirOperation loop = tw_enclosing_loop(op);
  while (!mlirOperationIsNull(loop) && (tw_has_attr(loop, TW_PERSISTENT) || tw_runs_once(loop)))
    loop = tw_enclosing_loop(loop);
  return loop.ptr;
}

bool tw_rows_stay_together(MlirOperation mma) {
  MlirBlock block = mlirOperationGetBlock(mma);
  TW_EACH_OP(op, block)
    if (tw_op_is_reduction(op) || (tw_op_is_product(op) && !mlirOperationEqual(op, mma)))
      return true;
  return false;
}

bool tw_feeds_product(MlirOperation mma) {
  MlirBlock block = mlirOperationGetBlock(mma);
  bool feeds = false;
  for (MlirOperation op = mlirOperationGetNextInBlock(mma); !feeds && !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op)) {
    tw_slice_t slice = {.block = block};
    if (!tw_op_is_product(op))
      continue;
    tw_slice_add(&slice, mlirOperationGetOperand(op, 0));
    feeds = tw_slice_has(&slice, mma);
    tw_slice_free(&slice);
  }
  return feeds;
}

bool tw_reads_written(MlirOperation product) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(product); i++) {
    MlirValue operand = mlirOperationGetOperand(product, i);
    if (!tw_type_is_buffer(mlirValueGetType(operand)))
      continue;
    TW_EACH_USE(use, operand)
      if (tw_op_stores_buffer(mlirOpOperandGetOwner(use)))
        return true;
  }
  return false;
}

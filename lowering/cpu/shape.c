/* shape.c - ops that only move elements: an index of the result becomes an index of the operand */
#include "lowering/cpu/cpu.h"

static MlirType operand_type(MlirOperation op) { return mlirValueGetType(mlirOperationGetOperand(op, 0)); }
static MlirType result_type(MlirOperation op) { return mlirValueGetType(mlirOperationGetResult(op, 0)); }

static void no_lanes(cpu_point_t *point) {
  point->axis = -1;
  point->lanes = 1;
}

static cpu_point_t broadcast_point(MlirType in, MlirType out, const cpu_point_t *point) {
  int rank = (int)tw_rank(in), shift = (int)(tw_rank(out) - rank);
  cpu_point_t inner = {.rank = rank, .axis = point->axis - shift, .lanes = point->lanes};
  for (int d = 0; d < rank; d++)
    inner.at[d] = tw_extent(in, d) == 1 ? cpu_index(0) : point->at[d + shift];
  if (inner.axis < 0 || tw_extent(in, inner.axis) == 1)
    no_lanes(&inner);
  return inner;
}

static cpu_point_t permute_point(MlirOperation op, const cpu_point_t *point) {
  int64_t order[TW_MAX_RANK];
  tw_attr_ints(op, "order", order, TW_MAX_RANK);
  cpu_point_t inner = *point;
  for (int d = 0; d < point->rank; d++) {
    inner.at[order[d]] = point->at[d];
    if (d == point->axis)
      inner.axis = (int)order[d];
  }
  return inner;
}

static cpu_point_t reshape_point(MlirType in, MlirType out, const cpu_point_t *point) {
  cpu_point_t inner = {.rank = (int)tw_rank(in), .axis = -1, .lanes = 1};
  int to = 0;
  for (int d = 0; d < inner.rank; d++) {
    if (tw_extent(in, d) == 1)
      continue;
    while (tw_extent(out, to) == 1)
      to++;
    if (to == point->axis) {
      inner.axis = d;
      inner.lanes = point->lanes;
    }
    inner.at[d] = point->at[to++];
  }
  return inner;
}

/* The point of the operand for a point of the result of a broadcast, permute or unit reshape. */
static cpu_point_t operand_point(cpu_t *cx, MlirOperation op, const cpu_point_t *point) {
  MlirType in = operand_type(op), out = result_type(op);
  switch (cpu_rule(cx, op)->space) {
  case CPU_BROADCAST: return broadcast_point(in, out, point);
  case CPU_PERMUTE: return permute_point(op, point);
  case CPU_RESHAPE: return reshape_point(in, out, point);
  default: cpu_error(cx, op, "doesn't move elements"); return *point;
  }
}

static MlirValue eval_moved(cpu_t *cx, MlirOperation op, const cpu_point_t *point) {
  MlirValue operand = mlirOperationGetOperand(op, 0);
  if (!tw_is_tile(mlirValueGetType(operand)))
    return cpu_scalar(cx, operand);
  cpu_point_t inner = operand_point(cx, op, point);
  return cpu_eval(cx, operand, &inner);
}

/* In a buffer, a reshape is another view of the same memory. */
static MlirValue eval_reshape(cpu_t *cx, MlirOperation op, const cpu_point_t *point) {
  MlirValue operand = mlirOperationGetOperand(op, 0);
  cpu_slot_t *slot = cpu_slot(cx, operand);
  if (slot->kind == CPU_BUFFER)
    return cpu_buffer_load(cx, slot->now, result_type(op), point);
  if (!cpu_reshape_is_unit(op))
    return cpu_error(cx, op, "needs its operand in a buffer"), cpu_i64_const(cx, 0);
  return eval_moved(cx, op, point);
}

/* A tile of one element as a scalar. */
static void place_reshape(cpu_t *cx, MlirOperation op) {
  MlirValue operand = mlirOperationGetOperand(op, 0), result = mlirOperationGetResult(op, 0);
  if (tw_is_tile(mlirValueGetType(result)))
    return;
  if (!tw_is_tile(mlirValueGetType(operand))) {
    cpu_set_scalar(cx, result, cpu_scalar(cx, operand));
    return;
  }
  cpu_point_t point = {.rank = (int)tw_rank(mlirValueGetType(operand)), .axis = -1, .lanes = 1};
  cpu_plan(cx, mlirValueGetType(operand), 1, &operand, tw_null_op());
  cx->memo_size = 0;
  cpu_set_scalar(cx, result, cpu_eval(cx, operand, &point));
  cpu_planned(cx);
}

static MlirValue eval_splat(cpu_t *cx, MlirOperation op, const cpu_point_t *point) {
  (void)point;
  return cpu_operand(cx, op, 0);
}

static MlirValue eval_iota(cpu_t *cx, MlirOperation op, const cpu_point_t *point) {
  MlirType element = tw_element(result_type(op));
  MlirType type = mlirTypeIsAInteger(element) ? element : cpu_int(cx, 32);
  MlirValue first = cpu_index_value(cx, point->at[0]);
  if (mlirIntegerTypeGetWidth(type) < 64)
    first = cpu_cast(cx, "arith.trunci", first, type);
  MlirValue value = first;
  if (point->lanes > 1)
    value = cpu_bin(cx, "arith.addi", cpu_splat(cx, first, point->lanes), cpu_iota(cx, type, point->lanes));
  if (mlirTypeIsAInteger(element))
    return value;
  return cpu_round(cx, cpu_cast(cx, "arith.sitofp", value, cpu_compute_type(cx, element)), element);
}

/* The elements of the operand from index * shape on. */
static MlirValue eval_extract(cpu_t *cx, MlirOperation op, const cpu_point_t *point) {
  cpu_point_t inner = *point;
  for (int d = 0; d < point->rank; d++) {
    MlirValue index = mlirOperationGetOperand(op, 1 + d);
    int64_t extent = tw_extent(result_type(op), d), last = tw_extent(operand_type(op), d) / extent - 1, known;
    if (last == 0)
      continue;
    if (tw_known_int(index, &known)) {
      inner.at[d] = cpu_index_plus(inner.at[d], (known < 0 || known > last ? 0 : known) * extent);
      continue;
    }
    MlirBlock saved = cpu_enter_depth(cx, cx->base_depth);
    MlirValue at = cpu_bin_i(cx, "arith.andi", cpu_int_to_i64(cx, cpu_scalar(cx, index)),
                             last); /* clamped, so that any index is inside */
    cpu_leave_depth(cx, saved);
    cpu_index_t first = {.base = at, .depth = cx->base_depth};
    inner.at[d] = cpu_index_add(cx, inner.at[d], cpu_index_mul(cx, first, extent));
  }
  return cpu_eval(cx, mlirOperationGetOperand(op, 0), &inner);
}

CPU_RULE(TW_TENSOR_SPLAT, CPU_LEAF, 0, NULL, eval_splat, NULL)
CPU_RULE(TW_TILE_IOTA, CPU_LEAF, 1, NULL, eval_iota, NULL)
CPU_RULE(TW_TILE_BROADCAST, CPU_BROADCAST, 0, NULL, eval_moved, NULL)
CPU_RULE(TW_TILE_RESHAPE, CPU_RESHAPE, 0, NULL, eval_reshape, place_reshape)
CPU_RULE_IN_BLOCKS(TW_TILE_PERMUTE, cpu_moves_last_axis, cpu_permute_into, CPU_PERMUTE, 0, NULL, eval_moved, NULL)
CPU_RULE(TW_TILE_EXTRACT, CPU_EXTRACT, 0, NULL, eval_extract, NULL)

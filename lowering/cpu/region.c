/* region.c - which tiles get a buffer, and the loop nests that fill them
 *
 * cpu_analyze looks at the uses of each virtual tile of a block, backwards: a tile that more than one nest needs, and
 * that costs more than reading it back, is *wanted* in a buffer; so is one that a loop or branch inside needs. The
 * buffer is filled by the first nest that visits the whole tile in order, or else by a nest of its own (cpu_plan). */
#include "base/memory.h"
#include "lowering/aliasing.h"
#include "lowering/cpu/cpu.h"
#include "lowering/loops.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Costs from which a buffer pays: needed twice; repeated along rows; computed a scalar at a time. */
enum { COST_SHARED = 6, COST_REPEATED = 4, COST_SCALAR = 8, COST_FREE = 4, MOST_COST = 1000 };

/* --- slots ------------------------------------------------------------------------------------------------- */

cpu_slot_t *cpu_slot(cpu_t *cx, MlirValue value) {
  const MlirValue *known = tw_map_get(&cx->slots, value.ptr, NULL);
  if (known)
    return (cpu_slot_t *)known->ptr;
  cpu_slot_t *slot = cpu_alloc(cx, sizeof *slot);
  slot->value = value;
  slot->first_root = INT_MAX;
  tw_map_one(&cx->slots, value, (MlirValue){slot});
  return slot;
}

void cpu_set_scalar(cpu_t *cx, MlirValue value, MlirValue now) {
  cpu_slot_t *slot = cpu_slot(cx, value);
  slot->kind = CPU_SCALAR;
  slot->now = now;
  slot->lanes = (cpu_lanes_t){0};
}

void cpu_set_buffer(cpu_t *cx, MlirValue value, MlirValue pointer) {
  cpu_slot_t *slot = cpu_slot(cx, value);
  slot->kind = CPU_BUFFER;
  slot->now = pointer;
}

MlirValue cpu_scalar(cpu_t *cx, MlirValue value) {
  cpu_slot_t *slot = cpu_slot(cx, value);
  if (slot->kind != CPU_SCALAR) {
    MlirOperation def = tw_def(value);
    cpu_error(cx, mlirOperationIsNull(def) ? cx->func : def, "has no lowering to a scalar");
    cpu_set_scalar(cx, value, cpu_int_const(cx, cpu_int(cx, 64), 0));
  }
  return slot->now;
}

MlirValue cpu_operand(cpu_t *cx, MlirOperation op, intptr_t i) {
  return cpu_scalar(cx, mlirOperationGetOperand(op, i));
}

/* --- buffers ----------------------------------------------------------------------------------------------- */

static int64_t element_bytes(cpu_t *cx, MlirType tile) { return tw_bytes(cpu_buffer_type(cx, tw_element(tile))); }

static MlirValue scratch_at(cpu_t *cx, int64_t offset) {
  MlirBlock saved = cpu_enter_depth(cx, 0);
  MlirValue pointer = cpu_address(cx, cx->scratch, cpu_int(cx, 8), cpu_index(offset));
  cpu_leave_depth(cx, saved);
  return pointer;
}

MlirValue cpu_new_buffer(cpu_t *cx, MlirType tile) {
  int64_t offset = cx->scratch_used;
  cx->scratch_used = (offset + tw_count(tile) * element_bytes(cx, tile) + 63) & ~(int64_t)63;
  if (cx->scratch_used > cx->scratch_peak)
    cx->scratch_peak = cx->scratch_used;
  return scratch_at(cx, offset);
}

MlirValue cpu_buffer_for(cpu_t *cx, MlirValue value) {
  MlirType type = mlirValueGetType(value);
  if (!tw_is_tile(type))
    return (MlirValue){NULL};
  cpu_slot_t *slot = cpu_slot(cx, value);
  return slot->target.ptr ? slot->target : cpu_new_buffer(cx, type);
}

void cpu_set_result(cpu_t *cx, MlirValue value, MlirValue buffer, MlirValue scalar) {
  if (buffer.ptr)
    cpu_set_buffer(cx, value, buffer);
  else
    cpu_set_scalar(cx, value, scalar);
}

/* Row-major: elements from one index of an axis to the next. */
static int64_t row_major_stride(MlirType tile, int axis) {
  int64_t stride = 1;
  for (intptr_t d = tw_rank(tile) - 1; d > axis; d--)
    stride *= tw_extent(tile, d);
  return stride;
}

static MlirValue buffer_address(cpu_t *cx, MlirValue pointer, MlirType tile, const cpu_point_t *point) {
  cpu_index_t offset = cpu_index(0);
  for (int d = 0; d < point->rank; d++)
    offset = cpu_index_add(cx, offset, cpu_index_mul(cx, point->at[d], row_major_stride(tile, d)));
  return cpu_address(cx, pointer, cpu_buffer_type(cx, tw_element(tile)), offset);
}

MlirValue cpu_buffer_load(cpu_t *cx, MlirValue pointer, MlirType tile, const cpu_point_t *point) {
  MlirType type = cpu_buffer_type(cx, tw_element(tile));
  MlirValue address = buffer_address(cx, pointer, tile, point), value;
  int64_t stride = point->axis < 0 ? 1 : row_major_stride(tile, point->axis);
  if (stride == 1 || point->lanes == 1)
    value = cpu_load(cx, address, cpu_vector(type, point->lanes), (int)element_bytes(cx, tile));
  else
    value =
        cpu_gather(cx, address, type, cpu_i64_const(cx, stride), point->lanes, (MlirValue){NULL}, (MlirValue){NULL});
  return tw_is_bool(tw_element(tile)) ? cpu_cast(cx, "arith.trunci", value, cpu_int(cx, 1)) : value;
}

void cpu_buffer_store(cpu_t *cx, MlirValue value, MlirValue pointer, MlirType tile, const cpu_point_t *point) {
  value = cpu_splat(cx, value, point->lanes);
  if (tw_is_bool(tw_element(tile)))
    value = cpu_cast(cx, "arith.extui", value, cpu_int(cx, 8));
  MlirValue address = buffer_address(cx, pointer, tile, point);
  int64_t stride = point->axis < 0 ? 1 : row_major_stride(tile, point->axis);
  if (stride == 1 || point->lanes == 1)
    cpu_store(cx, value, address, (int)element_bytes(cx, tile));
  else
    cpu_scatter(cx, value, address, cpu_i64_const(cx, stride), (MlirValue){NULL});
}

/* --- evaluation -------------------------------------------------------------------------------------------- */

static bool same_index(cpu_index_t x, cpu_index_t y) { return x.base.ptr == y.base.ptr && x.offset == y.offset; }

static bool same_point(const cpu_point_t *x, const cpu_point_t *y) {
  if (x->rank != y->rank || x->axis != y->axis || x->lanes != y->lanes)
    return false;
  for (int d = 0; d < x->rank; d++)
    if (!same_index(x->at[d], y->at[d]))
      return false;
  return true;
}

/* The innermost scope that a strip's place depends on. What is computed there is in no loop further in. */
static int point_depth(cpu_t *cx, const cpu_point_t *point) {
  int depth = cx->base_depth;
  for (int d = 0; d < point->rank; d++)
    if (point->at[d].base.ptr && point->at[d].depth > depth)
      depth = point->at[d].depth;
  return depth;
}

static void remember(cpu_t *cx, MlirValue value, const cpu_point_t *point, int depth, MlirValue result) {
  if (cx->memo_size == cx->memo_capacity) {
    cx->memo_capacity = cx->memo_capacity ? 2 * cx->memo_capacity : 64;
    cx->memo = tw_must(realloc(cx->memo, cx->memo_capacity * sizeof *cx->memo));
  }
  cx->memo[cx->memo_size++] = (cpu_memo_t){value, result, *point, depth};
}

/* Computes a value by the rule of its op: from the operands at the same place, or at those that the rule asks for. */
static MlirValue compute(cpu_t *cx, MlirValue value, const cpu_point_t *point) {
  MlirOperation op = tw_def(value);
  const cpu_rule_t *rule = mlirOperationIsNull(op) ? NULL : cpu_rule(cx, op);
  if (!rule || rule->space == CPU_EFFECT) {
    cpu_error(cx, mlirOperationIsNull(op) ? cx->func : op, "has no CPU lowering on tiles");
    return cpu_int_const(cx, cpu_int(cx, 64), 0);
  }
  if (rule->eval)
    return rule->eval(cx, op, point);
  MlirValue operands[CPU_MAX_OPERANDS];
  int num = (int)mlirOperationGetNumOperands(op);
  for (int i = 0; i < num; i++)
    operands[i] = cpu_eval(cx, mlirOperationGetOperand(op, i), point);
  if (cx->failed)
    return operands[0];
  cpu_unify(cx, num, operands);
  return rule->compute(cx, op, num, operands);
}

MlirValue cpu_eval(cpu_t *cx, MlirValue value, const cpu_point_t *point) {
  cpu_slot_t *slot = cpu_slot(cx, value);
  if (slot->kind == CPU_SCALAR || cx->failed)
    return slot->kind == CPU_SCALAR ? slot->now : cpu_int_const(cx, cpu_int(cx, 64), 0);
  for (size_t i = 0; i < cx->memo_size; i++)
    if (cx->memo[i].value.ptr == value.ptr && same_point(&cx->memo[i].point, point))
      return cx->memo[i].result;
  int depth = point_depth(cx, point);
  MlirBlock saved = cpu_enter_depth(cx, depth);
  MlirType type = mlirValueGetType(value);
  MlirValue result = slot->kind == CPU_BUFFER ? cpu_buffer_load(cx, slot->now, type, point) : compute(cx, value, point);
  if (slot->tee && !cx->failed)
    cpu_buffer_store(cx, result, slot->now, type, point);
  cpu_leave_depth(cx, saved);
  remember(cx, value, point, depth, result);
  return result;
}

/* --- nests ------------------------------------------------------------------------------------------------- */

int cpu_lane_axis(MlirType tile) {
  for (int d = (int)tw_rank(tile) - 1; d >= 0; d--)
    if (tw_extent(tile, d) > 1)
      return d;
  return -1;
}

void cpu_nest_set(cpu_t *cx, cpu_nest_t *nest, MlirType tile, int lane_axis) {
  memset(nest, 0, sizeof *nest);
  nest->rank = nest->point.rank = (int)tw_rank(tile);
  nest->steps = 1;
  nest->point.axis = lane_axis;
  nest->point.lanes = 1;
  for (int d = 0; d < nest->rank; d++)
    nest->shape[d] = tw_extent(tile, d);
  if (lane_axis >= 0)
    nest->point.lanes = nest->shape[lane_axis] < cx->lanes ? (int)nest->shape[lane_axis] : cx->lanes;
}

/* An axis of one step gets no loop. */
static void open_axis(cpu_t *cx, cpu_nest_t *nest, int axis, int64_t step) {
  if (nest->held[axis])
    return;
  if (nest->shape[axis] == step) {
    nest->point.at[axis] = cpu_index(0);
    return;
  }
  nest->point.at[axis] =
      cpu_loop_begin(cx, &nest->loops[nest->num_loops++], cpu_index(0), cpu_index(nest->shape[axis]), step, 0, NULL);
}

/* The axis of the lanes is the innermost loop. What was computed outside of the nest is not known in it. */
void cpu_nest_begin(cpu_t *cx, cpu_nest_t *nest) {
  cx->memo_size = 0;
  for (int d = 0; d < nest->rank; d++)
    if (d != nest->point.axis)
      open_axis(cx, nest, d, 1);
  if (nest->point.axis >= 0)
    open_axis(cx, nest, nest->point.axis, (int64_t)nest->point.lanes * nest->steps);
}

void cpu_nest_end(cpu_t *cx, cpu_nest_t *nest) {
  while (nest->num_loops > 0)
    cpu_loop_end(cx, &nest->loops[--nest->num_loops], NULL, NULL);
  cx->memo_size = 0;
}

/* --- planning a nest ---------------------------------------------------------------------------------------- */

/* Which axis of the nest each axis of a tile follows; -1: none, the index is zero. */
typedef struct {
  int axis[TW_MAX_RANK];
} map_t;

/* The buffers that a nest fills on its way, and those that must be full before it begins: at least one of these, if
 * there are any, though not always all. */
typedef struct {
  MlirType space;
  MlirOperation writer; /* null: the nest writes no array */
  cpu_slots_t tees, first;
} nest_plan_t;

void cpu_add_slot(cpu_slots_t *list, cpu_slot_t *slot) {
  if (list->count == list->capacity) {
    list->capacity = list->capacity ? 2 * list->capacity : 64;
    list->at = tw_must(realloc(list->at, list->capacity * sizeof *list->at));
  }
  list->at[list->count++] = slot;
}

static bool has_slot(const cpu_slots_t *list, const cpu_slot_t *slot) {
  for (size_t i = 0; i < list->count; i++)
    if (list->at[i] == slot)
      return true;
  return false;
}

static void add_once(cpu_slots_t *list, cpu_slot_t *slot) {
  if (!has_slot(list, slot))
    cpu_add_slot(list, slot);
}

static void remove_slot(cpu_slots_t *list, const cpu_slot_t *slot) {
  for (size_t i = 0; i < list->count; i++)
    if (list->at[i] == slot) {
      list->at[i] = list->at[--list->count];
      return;
    }
}

static void free_plan(nest_plan_t *plan) {
  free(plan->tees.at);
  free(plan->first.at);
}

/* Whether a nest over `space` visits each element of the tile once, in the tile's order. */
static bool covers(MlirType space, MlirType tile, const map_t *map) {
  int last = -1;
  for (int d = 0; d < tw_rank(tile); d++) {
    if (tw_extent(tile, d) == 1)
      continue;
    if (map->axis[d] <= last || tw_extent(space, map->axis[d]) != tw_extent(tile, d))
      return false;
    last = map->axis[d];
  }
  return tw_count(space) == tw_count(tile);
}

static map_t identity_map(void) {
  map_t map;
  for (int d = 0; d < TW_MAX_RANK; d++)
    map.axis[d] = d;
  return map;
}

/* Which axes of the nest those of an operand follow, where the result's follow `map`. */
static map_t operand_map(MlirOperation op, const cpu_rule_t *rule, const map_t *map) {
  MlirType in = mlirValueGetType(mlirOperationGetOperand(op, 0)), out = mlirValueGetType(mlirOperationGetResult(op, 0));
  map_t inner = identity_map();
  int rank = (int)tw_rank(in), shift = (int)(tw_rank(out) - tw_rank(in));
  if (rule->space == CPU_BROADCAST) {
    for (int d = 0; d < rank; d++)
      inner.axis[d] = tw_extent(in, d) == 1 ? -1 : map->axis[d + shift];
  } else if (rule->space == CPU_PERMUTE) {
    int64_t order[TW_MAX_RANK];
    tw_attr_ints(op, "order", order, TW_MAX_RANK);
    for (int d = 0; d < rank; d++)
      inner.axis[order[d]] = map->axis[d];
  } else { /* a reshape over axes of extent one: the others follow each other */
    int to = 0;
    for (int d = 0; d < rank; d++) {
      inner.axis[d] = -1;
      if (tw_extent(in, d) == 1)
        continue;
      while (tw_extent(out, to) == 1)
        to++;
      inner.axis[d] = map->axis[to++];
    }
  }
  return inner;
}

static bool same_extents(MlirType x, MlirType y) {
  bool same = tw_rank(x) == tw_rank(y);
  for (int d = 0; same && d < tw_rank(x); d++)
    same = tw_extent(x, d) == tw_extent(y, d);
  return same;
}

/* Whether a tile is stored where it was loaded from. */
static bool same_place(MlirOperation load, MlirOperation store) {
  intptr_t num = mlirOperationGetNumOperands(load);
  if (!tw_op_loads_tile(load) || !tw_op_stores_tile(store) ||
      !mlirTypeEqual(mlirValueGetType(mlirOperationGetResult(load, 0)),
                     mlirValueGetType(mlirOperationGetOperand(store, num))) ||
      !mlirAttributeEqual(tw_attr(load, "order"), tw_attr(store, "order")))
    return false;
  for (intptr_t i = 0; i < num; i++)
    if (!mlirValueEqual(mlirOperationGetOperand(load, i), mlirOperationGetOperand(store, i)))
      return false;
  return true;
}

/* Whether a nest that reads strip by strip while `writer` writes could read what was just written. Not if it reads in
 * its own order at the place that it writes, or from another array: tiles of one shape are the same or apart there,
 * even if a launch passes one array twice, and it looks whether arrays overlap in any other way. A gather or scatter
 * has other places. */
static bool read_too_late(const nest_plan_t *plan, MlirOperation read, const map_t *map) {
  if (mlirOperationIsNull(plan->writer))
    return false;
  MlirValue source = mlirOperationGetOperand(read, 0), target = mlirOperationGetOperand(plan->writer, 0);
  MlirType type = mlirValueGetType(mlirOperationGetResult(read, 0));
  if (!covers(plan->space, type, map) || !tw_op_loads_tile(read) || !tw_op_stores_tile(plan->writer))
    return true;
  if (mlirValueEqual(source, target))
    return !same_place(read, plan->writer);
  bool alike =
      same_extents(type, plan->space) && mlirAttributeEqual(tw_attr(read, "order"), tw_attr(plan->writer, "order"));
  return !tw_assume_unwritten(source, target, alike);
}

/* A tile whose buffer is filled by blocks, not by a nest. */
static bool in_blocks(cpu_t *cx, MlirValue tile) {
  const cpu_rule_t *rule = cpu_rule(cx, tw_def(tile));
  return rule && rule->fills_in_blocks && rule->fills_in_blocks(cx, tile);
}

/* A number for each map, so that a tile that many paths lead to is visited once. */
static uint64_t number_of(const map_t *map) {
  uint64_t number = 0;
  for (int d = 0; d < TW_MAX_RANK; d++)
    number = number * (TW_MAX_RANK + 1) + (uint64_t)(map->axis[d] + 1);
  return number;
}

/* Goes through all that the nest computes for a tile, whose axes lie along the nest's as `map` says. A tile that is
 * wanted in a buffer fills it on the way, if the nest visits each of its elements once and in order; else it is filled
 * first, and read. */
static void visit(cpu_t *cx, nest_plan_t *plan, MlirValue tile, const map_t *map) {
  cpu_slot_t *slot = cpu_slot(cx, tile);
  MlirOperation op = tw_def(tile);
  if (slot->kind != CPU_VIRTUAL || mlirOperationIsNull(op))
    return;
  if (slot->visit == cx->visit && slot->visit_map == number_of(map))
    return;
  slot->visit = cx->visit;
  slot->visit_map = number_of(map);
  const cpu_rule_t *rule = cpu_rule(cx, op);
  if (!rule || rule->space == CPU_EFFECT)
    return;
  if (slot->wanted && tw_is_tile(mlirValueGetType(tile))) {
    if (in_blocks(cx, tile) || !covers(plan->space, mlirValueGetType(tile), map)) {
      add_once(&plan->first, slot);
      return;
    }
    add_once(&plan->tees, slot);
  }
  bool reads = tw_op_loads(op);
  if (reads && read_too_late(plan, op, map)) {
    add_once(&plan->first, slot);
    return;
  }
  if (rule->space == CPU_LEAF)
    return;
  if (rule->space == CPU_RESHAPE && !cpu_reshape_is_unit(op)) {
    cpu_slot_t *operand = cpu_slot(cx, mlirOperationGetOperand(op, 0));
    if (operand->kind == CPU_VIRTUAL)
      add_once(&plan->first, operand);
    return;
  }
  bool same_axes = rule->space == CPU_ELEMENTWISE || rule->space == CPU_EXTRACT;
  map_t inner = same_axes ? *map : operand_map(op, rule, map);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    if (tw_is_tile(mlirValueGetType(mlirOperationGetOperand(op, i))))
      visit(cx, plan, mlirOperationGetOperand(op, i), &inner);
}

/* Another path to a tile may need it filled first. Then this nest does not fill it. */
static void visit_all(cpu_t *cx, nest_plan_t *plan, int num, const MlirValue *tiles) {
  map_t map = identity_map();
  cx->visit++;
  plan->tees.count = plan->first.count = 0;
  for (int i = 0; i < num; i++)
    visit(cx, plan, tiles[i], &map);
  for (size_t i = 0; i < plan->first.count; i++)
    remove_slot(&plan->tees, plan->first.at[i]);
}

/* Filling a buffer changes what the nest computes, so the nest is planned again until nothing is left to fill. */
void cpu_plan(cpu_t *cx, MlirType space, int num, const MlirValue *tiles, MlirOperation writer) {
  nest_plan_t plan = {.space = space, .writer = writer};
  for (visit_all(cx, &plan, num, tiles); plan.first.count > 0 && !cx->failed; visit_all(cx, &plan, num, tiles))
    for (size_t i = 0; i < plan.first.count; i++)
      cpu_buffer(cx, plan.first.at[i]->value);
  cx->tees.count = 0;
  for (size_t i = 0; i < plan.tees.count; i++) {
    cpu_slot_t *slot = plan.tees.at[i];
    cpu_add_slot(&cx->tees, slot);
    slot->tee = true;
    slot->now = cpu_buffer_for(cx, slot->value);
  }
  free_plan(&plan);
}

void cpu_planned(cpu_t *cx) {
  for (size_t i = 0; i < cx->tees.count; i++) {
    cpu_slot_t *slot = cx->tees.at[i];
    slot->tee = false;
    slot->kind = CPU_BUFFER;
    cpu_add_slot(&cx->filled, slot);
  }
  cx->tees.count = 0;
}

/* Tiles whose buffers were added after the list had so many entries are virtual again: they were filled on one path
 * only. */
static void forget_filled(cpu_t *cx, size_t since) {
  while (cx->filled.count > since) {
    cpu_slot_t *slot = cx->filled.at[--cx->filled.count];
    slot->kind = CPU_VIRTUAL;
    slot->now = (MlirValue){NULL};
  }
}

cpu_inner_t cpu_open_block(cpu_t *cx, MlirBlock block) {
  cpu_inner_t inner = {cx->scratch_used, cx->filled.count};
  cpu_scope_push(cx, block);
  return inner;
}

void cpu_close_block(cpu_t *cx, cpu_inner_t inner) {
  cpu_scope_pop(cx);
  cx->scratch_used = inner.scratch;
  forget_filled(cx, inner.filled);
}

/* Fills the buffer of a tile by the rule's own way. */
static void fill_in_blocks(cpu_t *cx, cpu_slot_t *slot) {
  MlirValue buffer = cpu_buffer_for(cx, slot->value);
  cpu_rule(cx, tw_def(slot->value))->fill(cx, slot->value, buffer);
  slot->kind = CPU_BUFFER;
  cpu_add_slot(&cx->filled, slot);
  slot->now = buffer;
}

/* One nest over a tile, which fills the buffers that are wanted on its way; with a pointer it copies the tile there. */
static void run_nest(cpu_t *cx, MlirValue tile, MlirValue pointer) {
  MlirType type = mlirValueGetType(tile);
  cpu_nest_t nest;
  cpu_plan(cx, type, 1, &tile, tw_null_op());
  cpu_nest_set(cx, &nest, type, cpu_lane_axis(type));
  cpu_nest_begin(cx, &nest);
  MlirValue value = cpu_eval(cx, tile, &nest.point);
  if (pointer.ptr && !cx->failed)
    cpu_buffer_store(cx, value, pointer, type, &nest.point);
  cpu_nest_end(cx, &nest);
  cpu_planned(cx);
}

MlirValue cpu_buffer(cpu_t *cx, MlirValue tile) {
  cpu_slot_t *slot = cpu_slot(cx, tile);
  if (slot->kind == CPU_BUFFER || cx->failed)
    return slot->now;
  if (!mlirOperationIsNull(tw_def(tile)) && in_blocks(cx, tile)) {
    fill_in_blocks(cx, slot);
    return slot->now;
  }
  slot->wanted = true;
  run_nest(cx, tile, (MlirValue){NULL});
  if (slot->kind != CPU_BUFFER)
    cpu_error(cx, cx->func, "a tile could not be computed");
  return slot->now;
}

void cpu_copy_into(cpu_t *cx, MlirValue tile, MlirValue pointer) {
  cpu_slot_t *slot = cpu_slot(cx, tile);
  if (slot->kind != CPU_BUFFER || !mlirValueEqual(slot->now, pointer))
    run_nest(cx, tile, pointer);
}

/* --- what deserves a buffer ---------------------------------------------------------------------------------- */

static int order_of(cpu_t *cx, MlirOperation op) {
  const MlirValue *position = tw_map_get(&cx->order, op.ptr, NULL);
  return position ? (int)(intptr_t)position->ptr : INT_MAX;
}

/* Notes a nest that needs the tile, by its position in the block. */
static void add_root(cpu_slot_t *slot, int root) {
  if (slot->first_root != INT_MAX && slot->first_root != root)
    slot->many_roots = true;
  if (root < slot->first_root)
    slot->first_root = root;
}

static bool is_virtual(const cpu_t *cx, MlirOperation op) {
  const cpu_rule_t *rule = cpu_rule(cx, op);
  return rule && rule->space != CPU_EFFECT && mlirOperationGetNumResults(op) == 1 &&
         tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0)));
}

/* A broadcast computes its operand again and again. */
static void want_if_repeated(cpu_slot_t *slot, MlirOperation user) {
  MlirType in = mlirValueGetType(slot->value), out = mlirValueGetType(mlirOperationGetResult(user, 0));
  int last = (int)tw_rank(in) - 1;
  if (tw_count(in) == 1)
    return;
  bool along_rows = tw_extent(in, last) == 1 && tw_extent(out, tw_rank(out) - 1) > 1;
  if (slot->cost >= (along_rows ? COST_SCALAR : COST_REPEATED))
    slot->wanted = true;
}

/* A use inside of a loop or branch would be computed in each iteration. A use by a virtual tile counts as a use by
 * the nests that need that tile. These are known, since users are visited first. */
static void add_use(cpu_t *cx, cpu_slot_t *slot, MlirBlock block, MlirOperation user) {
  MlirOperation outer = tw_ancestor_in(user, block);
  if (!mlirOperationEqual(outer, user)) {
    add_root(slot, order_of(cx, outer));
    if (slot->memory || slot->cost > COST_FREE)
      slot->wanted = true;
    return;
  }
  if (!is_virtual(cx, user)) {
    add_root(slot, order_of(cx, user));
    return;
  }
  cpu_slot_t *result = cpu_slot(cx, mlirOperationGetResult(user, 0));
  if (result->first_root != INT_MAX)
    add_root(slot, result->first_root);
  slot->many_roots |= result->many_roots && !result->wanted;
  if (cpu_rule(cx, user)->space == CPU_BROADCAST)
    want_if_repeated(slot, user);
}

/* The cost of an element with all its operands. Narrow formats add unpacking and packing. */
static void add_cost(cpu_t *cx, MlirOperation op) {
  cpu_slot_t *slot = cpu_slot(cx, mlirOperationGetResult(op, 0));
  MlirType element = tw_element(mlirValueGetType(slot->value));
  bool reads = tw_op_loads(op);
  slot->cost = cpu_rule(cx, op)->cost + (reads && cpu_is_narrow(element) ? tw_bits(element) < 16 ? 8 : 1 : 0);
  slot->memory = reads;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirValue operand = mlirOperationGetOperand(op, i);
    if (!tw_is_tile(mlirValueGetType(operand)))
      continue;
    cpu_slot_t *from = cpu_slot(cx, operand);
    slot->cost += from->kind == CPU_BUFFER ? 1 : from->cost;
    slot->memory |= from->kind == CPU_VIRTUAL && from->memory;
  }
  if (slot->cost > MOST_COST)
    slot->cost = MOST_COST;
}

void cpu_analyze(cpu_t *cx, MlirBlock block) {
  int num = 0;
  TW_EACH_OP(op, block) {
    tw_map_one(&cx->order, (MlirValue){op.ptr}, (MlirValue){(void *)(intptr_t)num++});
    if (is_virtual(cx, op))
      add_cost(cx, op);
  }
  MlirOperation *ops = tw_allocate((size_t)num + 1, sizeof *ops);
  num = 0;
  TW_EACH_OP(op, block)
    ops[num++] = op;
  while (num-- > 0) {
    if (!is_virtual(cx, ops[num]))
      continue;
    cpu_slot_t *slot = cpu_slot(cx, mlirOperationGetResult(ops[num], 0));
    TW_EACH_USE(use, slot->value)
      add_use(cx, slot, block, mlirOpOperandGetOwner(use));
    if ((slot->many_roots && slot->cost >= COST_SHARED) ||
        (cpu_rule(cx, ops[num])->space == CPU_PERMUTE && in_blocks(cx, slot->value)))
      slot->wanted = true;
  }
  free(ops);
}

/* --- before effects ------------------------------------------------------------------------------------------ */

/* In the visit that cx->visit counts; a tile that it came by already gives false. */
static bool reaches_memory(cpu_t *cx, MlirValue tile) {
  cpu_slot_t *slot = cpu_slot(cx, tile);
  MlirOperation op = tw_def(tile);
  if (slot->kind != CPU_VIRTUAL || !slot->memory || mlirOperationIsNull(op) || slot->visit == cx->visit)
    return false;
  slot->visit = cx->visit;
  if (tw_op_loads(op))
    return true;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    if (tw_is_tile(mlirValueGetType(mlirOperationGetOperand(op, i))) &&
        reaches_memory(cx, mlirOperationGetOperand(op, i)))
      return true;
  return false;
}

static bool depends_on_memory(cpu_t *cx, MlirValue tile) {
  cx->visit++;
  return reaches_memory(cx, tile);
}

static bool used_after(cpu_t *cx, cpu_slot_t *slot, MlirOperation op) {
  MlirBlock block = mlirOperationGetBlock(op);
  TW_EACH_USE(use, slot->value) {
    MlirOperation user = tw_ancestor_in(mlirOpOperandGetOwner(use), block);
    if (!mlirOperationIsNull(user) && order_of(cx, user) > order_of(cx, op))
      return true;
  }
  return false;
}

/* A live tile that reads memory and is used behind the op is kept: by the op's own nest, if that fills its buffer on
 * the way, else by one before it. */
void cpu_before_write(cpu_t *cx, MlirOperation op, MlirType space, int num, const MlirValue *tiles) {
  size_t from = cx->live_base, to = cx->live.count;
  bool *keep = tw_allocate(to - from + 1, 1);
  for (size_t i = from; i < to; i++) {
    cpu_slot_t *slot = cx->live.at[i];
    keep[i - from] = slot->kind == CPU_VIRTUAL && used_after(cx, slot, op) && depends_on_memory(cx, slot->value);
    slot->wanted |= keep[i - from];
  }
  nest_plan_t plan = {.space = space, .writer = op};
  visit_all(cx, &plan, num, tiles);
  for (size_t i = from; i < to; i++)
    if (keep[i - from] && cx->live.at[i]->kind == CPU_VIRTUAL && !has_slot(&plan.tees, cx->live.at[i]))
      cpu_buffer(cx, cx->live.at[i]->value);
  free(keep);
  free_plan(&plan);
}

typedef struct {
  cpu_t *cx;
  MlirOperation outer;
} region_walk_t;

static MlirWalkResult fill_operands(MlirOperation op, void *user) {
  region_walk_t *walk = user;
  if (mlirOperationEqual(op, walk->outer))
    return MlirWalkResultAdvance;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirValue operand = mlirOperationGetOperand(op, i);
    const MlirValue *known = tw_map_get(&walk->cx->slots, operand.ptr, NULL);
    cpu_slot_t *slot = known ? (cpu_slot_t *)known->ptr : NULL;
    if (slot && slot->kind == CPU_VIRTUAL && slot->wanted && tw_is_tile(mlirValueGetType(operand)))
      cpu_buffer(walk->cx, operand);
  }
  return MlirWalkResultAdvance;
}

void cpu_before_regions(cpu_t *cx, MlirOperation op) {
  region_walk_t walk = {.cx = cx, .outer = op};
  mlirOperationWalk(op, fill_operands, &walk, MlirWalkPreOrder);
}

static bool writes_array(MlirOperation op) { return tw_op_has(op, TW_WRITES_ARRAY); }

bool cpu_writes(MlirOperation op) { return tw_has_op_like(op, writes_array); }

bool cpu_reshape_is_unit(MlirOperation op) {
  MlirType in = mlirValueGetType(mlirOperationGetOperand(op, 0)), out = mlirValueGetType(mlirOperationGetResult(op, 0));
  intptr_t i = 0, o = 0;
  for (;; i++, o++) {
    while (i < tw_rank(in) && tw_extent(in, i) == 1)
      i++;
    while (o < tw_rank(out) && tw_extent(out, o) == 1)
      o++;
    if (i == tw_rank(in) || o == tw_rank(out))
      return i == tw_rank(in) && o == tw_rank(out);
    if (tw_extent(in, i) != tw_extent(out, o))
      return false;
  }
}

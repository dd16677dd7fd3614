/* control.c - loops and branches: tiles that they carry live in buffers, scalars stay values
 *
 * A loop-carried tile has a home buffer, filled before the loop. The yielded tile is computed right into it where
 * nothing else reads the old one (an accumulator); else it has a buffer of its own and is copied at the end of the
 * body, after all of the yielded tiles were computed. */
#include "lowering/cpu/cpu.h"
#include "lowering/loops.h"

#include <string.h>

/* Values that a region op carries, scalars and tiles apart. The arrays have room for all, and one more. */
typedef struct {
  int num, num_scalars;
  bool *is_tile;
  MlirValue *home; /* pointer of a tile's buffer */
  MlirValue *scalars;
  MlirType *types; /* of the scalars */
} carried_t;

static MlirValue *new_values(cpu_t *cx, int num) { return cpu_alloc(cx, (size_t)(num + 1) * sizeof(MlirValue)); }

static carried_t new_carried(cpu_t *cx, int num) {
  return (carried_t){.num = num,
                     .is_tile = cpu_alloc(cx, (size_t)num + 1),
                     .home = new_values(cx, num),
                     .scalars = new_values(cx, num),
                     .types = cpu_alloc(cx, (size_t)(num + 1) * sizeof(MlirType))};
}

/* `like` says in how many lanes. */
static void add_scalar(cpu_t *cx, carried_t *carried, MlirValue like) {
  MlirType type = cpu_compute_type(cx, mlirValueGetType(like));
  carried->types[carried->num_scalars++] = cpu_vector(type, cpu_carried_lanes(cx, like));
}

static MlirValue in_lanes(cpu_t *cx, MlirValue value, MlirType type) {
  return mlirTypeIsAVector(type) ? cpu_splat(cx, cpu_scalar(cx, value), (int)mlirShapedTypeGetDimSize(type, 0))
                                 : cpu_scalar(cx, value);
}

/* The results of an op: tiles have new homes. */
static carried_t carry_results(cpu_t *cx, MlirOperation op) {
  carried_t carried = new_carried(cx, (int)mlirOperationGetNumResults(op));
  for (int i = 0; i < carried.num; i++) {
    MlirType type = mlirValueGetType(mlirOperationGetResult(op, i));
    carried.is_tile[i] = tw_is_tile(type);
    if (carried.is_tile[i])
      carried.home[i] = cpu_new_buffer(cx, type);
    else
      add_scalar(cx, &carried, mlirOperationGetResult(op, i));
  }
  return carried;
}

/* Evaluates initial values of the arguments of a block, behind its first `skip`: a tile into a new home. */
static bool carry_inits(cpu_t *cx, MlirOperation op, int from, int num, MlirBlock block, int skip, carried_t *carried) {
  *carried = new_carried(cx, num);
  for (int i = 0; i < num; i++) {
    MlirValue init = mlirOperationGetOperand(op, from + i);
    MlirType type = mlirValueGetType(init);
    carried->is_tile[i] = tw_is_tile(type);
    if (carried->is_tile[i]) {
      carried->home[i] = cpu_new_buffer(cx, type);
      cpu_copy_into(cx, init, carried->home[i]);
    } else {
      add_scalar(cx, carried, mlirBlockGetArgument(block, skip + i));
      carried->scalars[carried->num_scalars - 1] = in_lanes(cx, init, carried->types[carried->num_scalars - 1]);
    }
  }
  return !cx->failed;
}

/* Gives block arguments or results their meaning: homes, and new scalars in order. */
static void bind_values(cpu_t *cx, const carried_t *carried, MlirValue (*old)(const void *, int), const void *from,
                        MlirValue (*now)(const void *, int), const void *to) {
  for (int i = 0, s = 0; i < carried->num; i++) {
    if (carried->is_tile[i])
      cpu_set_buffer(cx, old(from, i), carried->home[i]);
    else
      cpu_set_scalar(cx, old(from, i), now(to, s++));
  }
}

static MlirValue op_result(const void *op, int i) { return mlirOperationGetResult(*(const MlirOperation *)op, i); }
static MlirValue block_arg(const void *block, int i) { return mlirBlockGetArgument(*(const MlirBlock *)block, i); }
static MlirValue block_arg_1(const void *block, int i) { return block_arg(block, i + 1); }

/* --- in place -------------------------------------------------------------------------------------------------- */

static bool single_use(MlirValue value, MlirOperation *user, int *operand) {
  MlirOpOperand use = mlirValueGetFirstUse(value);
  if (mlirOpOperandIsNull(use) || !mlirOpOperandIsNull(mlirOpOperandGetNextUse(use)))
    return false;
  *user = mlirOpOperandGetOwner(use);
  *operand = (int)mlirOpOperandGetOperandNumber(use);
  return true;
}

/* Whether the tile that carried argument `index` becomes may be written over it: from the argument to the yield leads
 * a chain of ops on equal places, each of them the only use of the one before. The op that writes then has it as its
 * target. */
static void update_in_place(cpu_t *cx, MlirBlock body, MlirValue argument, int index, MlirValue home) {
  MlirValue value = argument;
  MlirValue products[8];
  int num_products = 0, operand;
  MlirOperation user;
  while (single_use(value, &user, &operand)) {
    if (!mlirBlockEqual(mlirOperationGetBlock(user), body))
      return;
    if (tw_op_is(user, TW_SCF_YIELD)) {
      if (operand != index || mlirValueEqual(value, argument))
        return;
      for (int i = 0; i < num_products; i++)
        cpu_slot(cx, products[i])->target = home;
      cpu_slot_t *last = cpu_slot(cx, value);
      last->target = home;
      last->wanted = true;
      return;
    }
    const cpu_rule_t *rule = cpu_rule(cx, user);
    bool product = tw_op_is_product(user) && operand == 2;
    if (!product && (!rule || rule->space != CPU_ELEMENTWISE || !rule->compute))
      return;
    value = mlirOperationGetResult(user, 0);
    if (product && num_products < 8)
      products[num_products++] = value;
    else if (product)
      return;
  }
}

/* Stores the yielded tiles in their homes, and the scalars in `out`. */
static void carry_yields(cpu_t *cx, MlirOperation yield, int from, const carried_t *carried, MlirValue *out) {
  MlirValue *ready = new_values(cx, carried->num);
  for (int pass = 0; pass < 2; pass++) /* what is written in place comes last */
    for (int i = 0; i < carried->num; i++) {
      MlirValue value = mlirOperationGetOperand(yield, from + i);
      bool in_place = carried->is_tile[i] && cpu_slot(cx, value)->target.ptr;
      if (carried->is_tile[i] && in_place == (pass == 1))
        ready[i] = cpu_buffer(cx, value);
    }
  /* A tile that lies in the home of another one is copied away first. */
  for (int i = 0; i < carried->num; i++)
    for (int other = 0; carried->is_tile[i] && other < carried->num; other++)
      if (other != i && carried->is_tile[other] && mlirValueEqual(ready[i], carried->home[other])) {
        MlirValue value = mlirOperationGetOperand(yield, from + i);
        ready[i] = cpu_new_buffer(cx, mlirValueGetType(value));
        cpu_copy_into(cx, value, ready[i]);
        cpu_set_buffer(cx, value, ready[i]);
        break;
      }
  for (int i = 0, s = 0; i < carried->num; i++) {
    MlirValue value = mlirOperationGetOperand(yield, from + i);
    if (!carried->is_tile[i])
      out[s] = in_lanes(cx, value, carried->types[s]), s++;
    else if (!mlirValueEqual(ready[i], carried->home[i]))
      cpu_copy_into(cx, value, carried->home[i]);
  }
}

/* --- blocks ---------------------------------------------------------------------------------------------------- */

static void before(cpu_t *cx, MlirOperation op) {
  cpu_before_regions(cx, op);
  if (cpu_writes(op))
    cpu_before_write(cx, op, cpu_int(cx, 32), 0, NULL);
}

/* The trip count of a loop as an unsigned i64, which has room for the exact distance of the bounds. */
static MlirValue trips_of(cpu_t *cx, bool is_unsigned, const MlirValue bounds[3]) {
  MlirValue last = cpu_bin_i(cx, "arith.subi", cpu_bin(cx, "arith.subi", bounds[1], bounds[0]), 1);
  MlirValue trips = cpu_bin_i(cx, "arith.addi", cpu_bin(cx, "arith.divui", last, bounds[2]), 1);
  MlirValue some = cpu_cmpi(cx, is_unsigned ? CPU_ULT : CPU_SLT, bounds[0], bounds[1]);
  return cpu_select(cx, some, trips, cpu_i64_const(cx, 0));
}

/* The bounds of the loop that stands for `op`. An scf.for adds its step before it compares, and near the end of its
 * type that wraps; so the new loop counts in i64, and from an i64 it counts iterations instead. */
static void count_in_i64(cpu_t *cx, MlirOperation op, MlirValue bounds[3], MlirValue counted[3]) {
  bool is_unsigned = tw_has_attr(op, "unsignedCmp");
  for (int i = 0; i < 3; i++) {
    bounds[i] = cpu_operand(cx, op, i);
    bool wide = tw_bits(mlirValueGetType(bounds[i])) == 64;
    counted[i] =
        wide ? bounds[i] : cpu_cast(cx, is_unsigned ? "arith.extui" : "arith.extsi", bounds[i], cpu_int(cx, 64));
  }
  int64_t step;
  bool by_one = tw_known_int(mlirOperationGetOperand(op, 2), &step) && step == 1;
  if (tw_bits(mlirValueGetType(bounds[0])) < 64 || (by_one && !is_unsigned))
    return;
  counted[1] = trips_of(cx, is_unsigned, bounds);
  counted[0] = cpu_i64_const(cx, 0);
  counted[2] = cpu_i64_const(cx, 1);
}

/* The induction variable of `op` from that of the new loop. */
static MlirValue counted_variable(cpu_t *cx, const MlirValue bounds[3], const MlirValue counted[3], MlirValue count) {
  MlirType type = mlirValueGetType(bounds[0]);
  if (tw_bits(type) < 64)
    return cpu_cast(cx, "arith.trunci", count, type);
  if (mlirValueEqual(bounds[0], counted[0]))
    return count;
  return cpu_bin(cx, "arith.addi", bounds[0], cpu_bin(cx, "arith.muli", count, bounds[2]));
}

static bool is_long(MlirOperation op) {
  bool more = tw_op_is(op, TW_SCF_FOR) || tw_op_is(op, TW_SCF_WHILE);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    more |= tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, i)));
  return more;
}

/* Loops ask whether the program wants to stop. Those that count and carry only scalars do not: they end in seconds,
 * and LLVM vectorizes them. */
static bool looks(MlirOperation loop) {
  bool more = false;
  MlirBlock body = tw_region_block(loop, 0);
  for (MlirOperation op = mlirBlockGetFirstOperation(body); !more && !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    more = tw_has_op_like(op, is_long);
  return more;
}

static bool is_threads(MlirOperation op) { return tw_has_attr(op, TW_THREADS); }

/* Whether there is another loop over threads in it. */
static bool has_threads(MlirOperation loop) {
  TW_EACH_OP(op, tw_region_block(loop, 0))
    if (tw_has_op_like(op, is_threads))
      return true;
  return false;
}

static void place_for(cpu_t *cx, MlirOperation op) {
  if (tw_has_attr(op, TW_THREADS) && cpu_is_strips(cx, op)) {
    cpu_place_strips(cx, op);
    return;
  }
  cx->apart |= tw_has_attr(op, TW_THREADS) && !has_threads(op) && cpu_has_warp_ops(op);
  before(cx, op);
  carried_t carried;
  int num = (int)mlirOperationGetNumResults(op);
  if (!carry_inits(cx, op, TW_FOR_INITS, num, tw_region_block(op, 0), 1, &carried))
    return;
  MlirValue *operands = new_values(cx, TW_FOR_INITS + num), bounds[TW_FOR_INITS];
  MlirType *types = cpu_alloc(cx, (size_t)(1 + num) * sizeof *types);
  count_in_i64(cx, op, bounds, operands);
  types[0] = mlirValueGetType(operands[0]);
  for (int i = 0; i < carried.num_scalars; i++) {
    operands[TW_FOR_INITS + i] = carried.scalars[i];
    types[1 + i] = carried.types[i];
  }
  MlirBlock old = tw_region_block(op, 0), body = cpu_new_block(cx, 1 + carried.num_scalars, types);
  for (int i = 0; i < num; i++)
    if (carried.is_tile[i])
      update_in_place(cx, old, mlirBlockGetArgument(old, i + 1), i, carried.home[i]);
  cpu_inner_t inner = cpu_open_block(cx, body);
  if (!tw_has_attr(op, TW_THREADS) && looks(op)) /* pieces of a block are short */
    cpu_look(cx);
  cpu_set_scalar(cx, mlirBlockGetArgument(old, 0),
                 counted_variable(cx, bounds, operands, mlirBlockGetArgument(body, 0)));
  bind_values(cx, &carried, block_arg_1, &old, block_arg_1, &body);
  MlirOperation yield = cpu_emit_block(cx, old);
  MlirValue *yields = new_values(cx, num);
  if (!cx->failed)
    carry_yields(cx, yield, 0, &carried, yields);
  cpu_op0(cx, "scf.yield", carried.num_scalars, yields);
  cpu_close_block(cx, inner);
  tw_builder_t at = cpu_here(cx);
  MlirOperation loop = tw_build_for(&at, TW_FOR_INITS + carried.num_scalars, operands, tw_region_with(body));
  bind_values(cx, &carried, op_result, &op, op_result, &loop);
}

/* --- if ---------------------------------------------------------------------------------------------------------- */

static MlirBlock emit_branch(cpu_t *cx, MlirOperation op, int index, const carried_t *carried) {
  MlirBlock block = mlirBlockCreate(0, NULL, NULL), old = tw_region_block(op, index);
  MlirValue *yields = new_values(cx, carried->num);
  cpu_inner_t inner = cpu_open_block(cx, block);
  if (!mlirBlockIsNull(old)) {
    MlirOperation yield = cpu_emit_block(cx, old);
    for (int i = 0, s = 0; i < carried->num && !cx->failed; i++) {
      MlirValue value = mlirOperationGetOperand(yield, i);
      if (carried->is_tile[i])
        cpu_copy_into(cx, value, carried->home[i]);
      else
        yields[s] = in_lanes(cx, value, carried->types[s]), s++;
    }
  }
  if (!cx->failed)
    cpu_op0(cx, "scf.yield", carried->num_scalars, yields);
  cpu_close_block(cx, inner);
  return block;
}

static void place_if(cpu_t *cx, MlirOperation op) {
  before(cx, op);
  carried_t carried = carry_results(cx, op);
  MlirValue condition = cpu_operand(cx, op, 0);
  MlirBlock then = emit_branch(cx, op, 0, &carried), other = emit_branch(cx, op, 1, &carried);
  MlirOperation branch = cpu_if(cx, condition, then, other, carried.num_scalars, carried.types);
  bind_values(cx, &carried, op_result, &op, op_result, &branch);
}

/* --- while ------------------------------------------------------------------------------------------------------- */

/* `before` and `after` carry different values; tiles of each have their own homes. */
static void place_while(cpu_t *cx, MlirOperation op) {
  before(cx, op);
  carried_t head, tail;
  if (!carry_inits(cx, op, 0, (int)mlirOperationGetNumOperands(op), tw_region_block(op, 0), 0, &head))
    return;
  tail = carry_results(cx, op);
  MlirBlock old[2] = {tw_region_block(op, 0), tw_region_block(op, 1)};
  MlirBlock now[2] = {cpu_new_block(cx, head.num_scalars, head.types), cpu_new_block(cx, tail.num_scalars, tail.types)};
  MlirValue *values = new_values(cx, 1 + (head.num > tail.num ? head.num : tail.num));
  cpu_inner_t inner = cpu_open_block(cx, now[0]);
  bind_values(cx, &head, block_arg, &old[0], block_arg, &now[0]);
  MlirOperation condition = cpu_emit_block(cx, old[0]);
  if (!cx->failed) {
    values[0] = cpu_scalar(cx, mlirOperationGetOperand(condition, 0));
    carry_yields(cx, condition, 1, &tail, values + 1);
    cpu_op0(cx, "scf.condition", 1 + tail.num_scalars, values);
  }
  cpu_close_block(cx, inner);
  inner = cpu_open_block(cx, now[1]);
  cpu_look(cx);
  bind_values(cx, &tail, block_arg, &old[1], block_arg, &now[1]);
  MlirOperation yield = cpu_emit_block(cx, old[1]);
  if (!cx->failed) {
    carry_yields(cx, yield, 0, &head, values);
    cpu_op0(cx, "scf.yield", head.num_scalars, values);
  }
  cpu_close_block(cx, inner);
  MlirRegion regions[2] = {mlirRegionCreate(), mlirRegionCreate()};
  for (int i = 0; i < 2; i++)
    mlirRegionAppendOwnedBlock(regions[i], now[i]);
  tw_builder_t at = cpu_here(cx);
  MlirOperation loop = tw_build_while(&at, head.num_scalars, head.scalars, tail.num_scalars, tail.types, regions);
  bind_values(cx, &tail, op_result, &op, op_result, &loop);
}

CPU_RULE(TW_SCF_FOR, CPU_EFFECT, 0, NULL, NULL, place_for)
CPU_RULE(TW_SCF_IF, CPU_EFFECT, 0, NULL, NULL, place_if)
CPU_RULE(TW_SCF_WHILE, CPU_EFFECT, 0, NULL, NULL, place_while)

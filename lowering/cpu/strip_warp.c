/* strip_warp.c - warps: the lanes of a strip of 32 threads tell each other
 *
 *   %y = tile.shuffle down, %m, %x, %d      vector.shuffle where %d is known, else %x by way of memory
 *   %b = tile.vote ballot, %m, %p           the bits of %p, and %m
 *   tile.sync_warp %m                       nothing: all lanes do one op after the other
 *
 * What must hold: blocks are rows of whole warps, and the lanes of a mask come to the op together. Where a branch has
 * parted lanes, those that are not here may have left the kernel, and then do not count. If there is an op behind the
 * branch where they would meet others, they have not: a call tells of it. Where lanes that come at different times
 * could still meet, in loops that they leave apart or on both sides of a branch, `apart` is set: the kernel's threads
 * become fibers (simt.c). */
#include "lowering/cpu/cpu.h"
#include "lowering/loops.h"

#include "tilewright/kernel_calls.h"

static MlirType i32_of(cpu_t *cx) { return cpu_int(cx, 32); }

static MlirValue lane_numbers(cpu_t *cx) { return cpu_iota(cx, i32_of(cx), CPU_WARP); }

/* --- who meets --------------------------------------------------------------------------------------------------- */

static bool meets(MlirOperation op) { return tw_op_has(op, TW_MEETS_WARP) || tw_has_attr(op, TW_THREADS); }

/* Whether a lane that does not take part in `op` comes to another one where lanes or threads meet. */
static bool meets_later(MlirOperation op) {
  for (; !tw_op_is(op, TW_FUNC_FUNC); op = mlirOperationGetParentOperation(op)) {
    if ((tw_op_is(op, TW_SCF_FOR) || tw_op_is(op, TW_SCF_WHILE)) && !tw_has_attr(op, TW_THREADS))
      return true;
    for (MlirOperation next = mlirOperationGetNextInBlock(op); !mlirOperationIsNull(next);
         next = mlirOperationGetNextInBlock(next))
      if (tw_has_op_like(next, meets))
        return true;
  }
  return false;
}

/* Whether lanes that a branch has parted could meet at another time, or on its other side. */
static bool may_meet_apart(const cpu_strip_t *strip) {
  if (strip->in_rounds)
    return true;
  MlirOperation op = strip->parted;
  if (mlirOperationIsNull(op))
    return false;
  MlirBlock other = tw_region_block(op, 1);
  if (cpu_has_warp_ops(mlirBlockGetParentOperation(tw_region_block(op, 0))) && !mlirBlockIsNull(other))
    TW_EACH_OP(o, other)
      if (cpu_has_warp_ops(o))
        return true;
  for (op = mlirOperationGetParentOperation(op); !tw_has_attr(op, TW_THREADS); op = mlirOperationGetParentOperation(op))
    if (!tw_op_is(op, TW_SCF_IF))
      return true;
  return false;
}

static MlirValue not_zero(cpu_t *cx, MlirValue x) {
  return cpu_cmpi(cx, CPU_NE, x, cpu_int_const(cx, mlirValueGetType(x), 0));
}

/* For each lane the lanes that hold the same bits. */
static MlirValue same_lanes(cpu_t *cx, MlirValue bits) {
  int64_t warp = CPU_WARP;
  MlirType type = cpu_element(bits), i32 = i32_of(cx);
  MlirValue from = cpu_new_buffer(cx, mlirRankedTensorTypeGet(1, &warp, type, (MlirAttribute){NULL}));
  MlirValue to = cpu_new_buffer(cx, mlirRankedTensorTypeGet(1, &warp, i32, (MlirAttribute){NULL}));
  cpu_store(cx, bits, from, (int)tw_bytes(type));
  cpu_loop_t loop;
  cpu_index_t lane = cpu_loop_begin(cx, &loop, cpu_index(0), cpu_index(CPU_WARP), 1, 0, NULL);
  MlirValue one = cpu_load(cx, cpu_address(cx, from, type, lane), type, (int)tw_bytes(type));
  cpu_store(cx, cpu_mask_bits(cx, cpu_cmpi(cx, CPU_EQ, bits, one)), cpu_address(cx, to, i32, lane), 4);
  cpu_loop_end(cx, &loop, NULL, NULL);
  return cpu_load(cx, to, cpu_vector(i32, CPU_WARP), 4);
}

/* The number of a thread of the strip's first one along an axis. */
static MlirValue first_thread(cpu_t *cx, int axis) {
  MlirOperation loop = cx->strip->loop;
  for (int d = 0; d < axis; d++)
    loop = mlirOperationGetParentOperation(loop);
  if (!tw_has_attr(loop, TW_THREADS)) /* threads in a kernel of tiles stand in a row */
    return cpu_i32_const(cx, 0);
  return cpu_lanes_known(cx, tw_loop_iv(loop)).first;
}

/* Lanes wait for others in vain: a call tells of the first of them. */
static void tell_waiting(cpu_t *cx, MlirOperation op, MlirValue lanes, MlirValue mask) {
  cpu_branch_t branch = cpu_branch(cx, not_zero(cx, lanes));
  MlirValue operands[9] = {cx->block_id[0], cx->block_id[1], cx->block_id[2]}, found[2] = {mask};
  for (int axis = 0; axis < 3; axis++)
    operands[3 + axis] = first_thread(cx, axis);
  found[1] = cpu_un(cx, "math.cttz", lanes);
  operands[6] = lanes;
  operands[7] = cpu_lanes_of(mask) > 1 ? cpu_op1(cx, "llvm.extractelement", i32_of(cx), 2, found) : mask;
  operands[8] = cpu_site(cx, op);
  cpu_call(cx, "tw_simt_wait_in_vain", 9, operands);
  cpu_branch_end(cx, &branch, (MlirValue){NULL});
}

static MlirValue lacking(cpu_t *cx, MlirValue x, MlirValue y) {
  return cpu_bin(cx, "arith.andi", x, cpu_bin_i(cx, "arith.xori", y, -1));
}

/* Of one mask for all: lanes outside of it, or all that are here if one is missing. */
static MlirValue waiting_for_all(cpu_t *cx, MlirValue mask, MlirValue here, bool may_miss) {
  MlirValue outside = lacking(cx, here, mask);
  if (!may_miss)
    return outside;
  MlirValue missing = cpu_select(cx, not_zero(cx, lacking(cx, mask, here)), here, cpu_i32_const(cx, 0));
  return cpu_select(cx, not_zero(cx, outside), outside, missing);
}

/* Of a mask for each: a lane that is not in its own, or lacks one of its lanes, or has one with another mask. */
static MlirValue waiting_for_some(cpu_t *cx, MlirValue mask, MlirValue here, bool may_miss) {
  MlirValue own = cpu_bin(cx, "arith.shli", cpu_int_const(cx, mlirValueGetType(mask), 1), lane_numbers(cx));
  MlirValue bad = not_zero(cx, lacking(cx, own, mask));
  MlirValue others = lacking(cx, cpu_bin(cx, "arith.andi", mask, here), same_lanes(cx, mask));
  bad = cpu_bin(cx, "arith.ori", bad, not_zero(cx, others));
  if (may_miss)
    bad = cpu_bin(cx, "arith.ori", bad, not_zero(cx, lacking(cx, mask, here)));
  return cpu_bin(cx, "arith.andi", cpu_mask_bits(cx, bad), here);
}

static bool is_all(MlirValue lanes) {
  int64_t known;
  return tw_known_int(lanes, &known) && (int32_t)known == -1;
}

static void check_masks(cpu_t *cx, MlirOperation op, MlirValue mask, MlirValue here) {
  bool may_miss = cx->strip->here.ptr && meets_later(cx->strip->parted);
  if (is_all(mask) && !may_miss)
    return;
  bool one = cpu_lanes_of(mask) == 1;
  tell_waiting(cx, op, (one ? waiting_for_all : waiting_for_some)(cx, mask, here, may_miss), mask);
}

/* The lanes that meet: of the mask, those that are here. For all lanes one number, or one for each. */
static MlirValue met(cpu_t *cx, MlirOperation op) {
  MlirValue mask = cpu_operand(cx, op, 0), parted = cx->strip->here;
  MlirValue here = parted.ptr ? cpu_mask_bits(cx, parted) : cpu_i32_const(cx, -1);
  cx->apart |= parted.ptr && may_meet_apart(cx->strip);
  check_masks(cx, op, mask, here);
  return parted.ptr ? cpu_bin(cx, "arith.andi", mask, here) : mask;
}

/* --- votes and matches --------------------------------------------------------------------------------------- */

static void set_told(cpu_t *cx, MlirOperation op, MlirValue told) {
  MlirValue result = mlirOperationGetResult(op, 0);
  MlirType type = mlirValueGetType(result);
  bool wider = tw_bits(cpu_element(told)) < tw_bits(type);
  cpu_set_scalar(cx, result, cpu_cast(cx, wider ? "arith.extui" : "arith.trunci", told, type));
}

static bool place_vote(cpu_t *cx, MlirOperation op) {
  MlirValue lanes = met(cx, op), predicate = cpu_splat(cx, cpu_operand(cx, op, 1), CPU_WARP);
  MlirValue yes = cpu_bin(cx, "arith.andi", lanes, cpu_mask_bits(cx, predicate));
  MlirValue all = cpu_cmpi(cx, CPU_EQ, yes, lanes), any = not_zero(cx, yes);
  switch (tw_attr_int(op, "kind", 0)) {
  case TW_SIMT_ALL: set_told(cx, op, all); break;
  case TW_SIMT_ANY: set_told(cx, op, any); break;
  case TW_SIMT_UNI: set_told(cx, op, cpu_bin(cx, "arith.ori", all, cpu_bin_i(cx, "arith.xori", any, 1))); break;
  default: set_told(cx, op, yes);
  }
  return true;
}

static MlirValue bits_of(cpu_t *cx, MlirValue x) {
  MlirType type = cpu_element(x);
  if (tw_is_bool(type))
    return cpu_cast(cx, "arith.extui", x, cpu_int(cx, 8));
  return mlirTypeIsAFloat(type) ? cpu_bits(cx, x, cpu_int(cx, tw_bits(type))) : x;
}

static bool place_match(cpu_t *cx, MlirOperation op) {
  MlirValue lanes = met(cx, op), bits = bits_of(cx, cpu_splat(cx, cpu_operand(cx, op, 1), CPU_WARP));
  MlirValue same = cpu_bin(cx, "arith.andi", same_lanes(cx, bits), lanes);
  if (tw_attr_int(op, "kind", 0) != TW_SIMT_MATCH_ANY)
    same = cpu_select(cx, cpu_cmpi(cx, CPU_EQ, same, lanes), lanes, cpu_int_const(cx, mlirValueGetType(same), 0));
  set_told(cx, op, same);
  return true;
}

static bool place_sync(cpu_t *cx, MlirOperation op) {
  met(cx, op);
  return true;
}

static bool place_active(cpu_t *cx, MlirOperation op) {
  MlirValue here = cx->strip->here;
  cpu_set_scalar(cx, mlirOperationGetResult(op, 0), here.ptr ? cpu_mask_bits(cx, here) : cpu_i32_const(cx, -1));
  return true;
}

/* --- shuffles ------------------------------------------------------------------------------------------------- */

/* The number that an op on known numbers gives, as the variables of an unrolled loop are. */
static bool known_number(MlirValue value, int depth, int64_t *out) {
  MlirOperation op = tw_def(value);
  int64_t x, y;
  if (tw_known_int(value, out))
    return true;
  if (depth == 0 || mlirOperationIsNull(op) || mlirOperationGetNumOperands(op) != 2 ||
      !known_number(mlirOperationGetOperand(op, 0), depth - 1, &x) ||
      !known_number(mlirOperationGetOperand(op, 1), depth - 1, &y) || x < 0 || y < 0)
    return false;
  switch (tw_op_kind(op)) {
  case TW_ARITH_ADDI: *out = x + y; return true;
  case TW_ARITH_SUBI: *out = x - y; return x >= y;
  case TW_ARITH_MULI: *out = x * y; return x < CPU_WARP && y < CPU_WARP;
  case TW_ARITH_ANDI: *out = x & y; return true;
  case TW_ARITH_SHLI: *out = x << (y & 31); return x < CPU_WARP && y < CPU_WARP;
  case TW_ARITH_SHRSI:
  case TW_ARITH_SHRUI: *out = x >> (y & 63); return true;
  default: return false;
  }
}

static int64_t source_lane(int64_t kind, int64_t lane, int64_t by) {
  int64_t from = kind == TW_SIMT_IDX    ? by
                 : kind == TW_SIMT_UP   ? lane - by
                 : kind == TW_SIMT_DOWN ? lane + by
                                        : lane ^ by;
  if (kind == TW_SIMT_IDX || kind == TW_SIMT_BFLY)
    return from & (CPU_WARP - 1);
  return from < 0 || from >= CPU_WARP ? lane : from;
}

static MlirValue shuffle_known(cpu_t *cx, int64_t kind, MlirValue value, int64_t by) {
  int64_t from[CPU_WARP];
  for (int64_t lane = 0; lane < CPU_WARP; lane++)
    from[lane] = source_lane(kind, lane, by);
  return cpu_shuffle(cx, value, value, CPU_WARP, from);
}

/* The lane that each one reads: its own where there is none, or none that is here. */
static MlirValue sources(cpu_t *cx, int64_t kind, MlirValue by, MlirValue lanes) {
  static const char *const names[] = {
      [TW_SIMT_UP] = "arith.subi", [TW_SIMT_DOWN] = "arith.addi", [TW_SIMT_BFLY] = "arith.xori"};
  MlirValue own = lane_numbers(cx), from = kind == TW_SIMT_IDX ? by : cpu_bin(cx, names[kind], own, by),
            is_one = {NULL};
  if (kind == TW_SIMT_IDX || kind == TW_SIMT_BFLY)
    from = cpu_bin_i(cx, "arith.andi", from, CPU_WARP - 1);
  else
    is_one = cpu_cmpi(cx, CPU_ULT, from, cpu_int_const(cx, mlirValueGetType(from), CPU_WARP));
  if (!is_all(lanes)) {
    MlirValue bit = cpu_bin(cx, "arith.shrui", lanes, cpu_bin_i(cx, "arith.andi", from, CPU_WARP - 1));
    is_one = cpu_both(cx, is_one, not_zero(cx, cpu_bin_i(cx, "arith.andi", bit, 1)));
  }
  return is_one.ptr ? cpu_select(cx, is_one, from, own) : from;
}

/* By way of memory. */
static MlirValue permuted(cpu_t *cx, MlirValue value, MlirValue from) {
  int64_t warp = CPU_WARP;
  bool is_bool = tw_is_bool(cpu_element(value));
  if (is_bool)
    value = cpu_cast(cx, "arith.extui", value, cpu_int(cx, 8));
  MlirType type = cpu_element(value);
  MlirValue memory = cpu_new_buffer(cx, mlirRankedTensorTypeGet(1, &warp, type, (MlirAttribute){NULL}));
  cpu_store(cx, value, memory, (int)tw_bytes(type));
  MlirValue none = {NULL};
  if (cpu_lanes_of(from) == 1)
    value = cpu_load(cx, cpu_address(cx, memory, type, (cpu_index_t){cpu_int_to_i64(cx, from), 0, cx->depth}), type,
                     (int)tw_bytes(type));
  else
    value = cpu_gather_at(cx, cpu_addresses(cx, memory, type, cpu_int_to_i64(cx, from)), type, none, none);
  return is_bool ? cpu_cast(cx, "arith.trunci", value, cpu_int(cx, 1)) : value;
}

static bool place_shuffle(cpu_t *cx, MlirOperation op) {
  MlirValue lanes = met(cx, op), value = cpu_operand(cx, op, 1), by = cpu_operand(cx, op, 2);
  int64_t kind = tw_attr_int(op, "kind", 0), known;
  if (cpu_lanes_of(value) == 1) { /* the same everywhere */
    cpu_set_scalar(cx, mlirOperationGetResult(op, 0), value);
    return true;
  }
  if (is_all(lanes) && known_number(by, 8, &known) && known < CPU_WARP)
    value = shuffle_known(cx, kind, value, known);
  else
    value = permuted(cx, value, sources(cx, kind, by, lanes));
  cpu_set_scalar(cx, mlirOperationGetResult(op, 0), value);
  return true;
}

/* --- short loops ----------------------------------------------------------------------------------------------- */

enum { MOST_ROUNDS = 8 };

bool cpu_unroll_shuffles(cpu_t *cx, MlirOperation op) {
  int64_t from, to, step;
  intptr_t num = mlirOperationGetNumResults(op);
  if (!tw_known_int(mlirOperationGetOperand(op, 0), &from) || !tw_known_int(mlirOperationGetOperand(op, 1), &to) ||
      !tw_known_int(mlirOperationGetOperand(op, 2), &step) || from < 0 || step <= 0 ||
      (to - from) / step > MOST_ROUNDS || !cpu_has_warp_ops(op))
    return false;
  MlirValue *now = cpu_alloc(cx, (size_t)(num + 1) * sizeof *now);
  for (intptr_t i = 0; i < num; i++)
    now[i] = cpu_scalar(cx, tw_carried_init(op, i));
  for (; from < to && !cx->failed; from += step) {
    cpu_set_scalar(cx, tw_loop_iv(op), cpu_int_const(cx, mlirValueGetType(tw_loop_iv(op)), from));
    for (intptr_t i = 0; i < num; i++)
      cpu_set_scalar(cx, tw_carried(op, i), now[i]);
    cpu_emit_block(cx, tw_loop_body(op));
    for (intptr_t i = 0; i < num && !cx->failed; i++)
      now[i] = cpu_scalar(cx, tw_carried_next(op, i));
  }
  for (intptr_t i = 0; i < num; i++)
    cpu_set_scalar(cx, mlirOperationGetResult(op, i), now[i]);
  return true;
}

CPU_STRIP_RULE(TW_TILE_VOTE, place_vote)
CPU_STRIP_RULE(TW_TILE_MATCH, place_match)
CPU_STRIP_RULE(TW_TILE_SHUFFLE, place_shuffle)
CPU_STRIP_RULE(TW_TILE_SYNC_WARP, place_sync)
CPU_STRIP_RULE(TW_TILE_ACTIVE_MASK, place_active)

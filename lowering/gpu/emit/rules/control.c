/* control.c - rules: loops and branches become blocks; positions in the grid; extents of arrays; threads that meet */
#include "base/memory.h"
#include "lowering/gpu/emit/c_entry.h"
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/barrier.h"
#include "lowering/gpu/facts/equal_groups.h"
#include "lowering/gpu/facts/local_arrays.h"
#include "lowering/gpu/facts/scratch.h"
#include "lowering/loops.h"
#include "lowering/ranges.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Registers of tiles of 16-bit floats cross from block to block two at a time, as matrix instructions want them. */
static bool is_paired(MlirType type) {
  if (!tw_is_tile(type) || tw_register_count(type) % 2 != 0)
    return false;
  return mlirTypeIsAF16(tw_element(type)) || mlirTypeIsABF16(tw_element(type));
}

static tw_values_t pairs_of(tw_emitter_t *e, MlirType element, tw_values_t in) {
  tw_values_t out = twg_new_values(e, in.count / 2);
  for (int i = 0; i < out.count; i++)
    out.at[i] = twg_pack(e, element, 2, &in.at[2 * i]);
  return out;
}

/* Of each value that an op carries from block to block: the bits of a register's number that make no difference, as the
 * registers are known to be equal. Null: of none. */
typedef const int *tw_dropped_t;

static int dropped_of(tw_dropped_t dropped, intptr_t i) { return dropped ? dropped[i] : 0; }

static tw_values_t without(tw_emitter_t *e, int dropped, tw_values_t in) {
  tw_values_t out = twg_new_values(e, in.count);
  out.count = 0;
  for (int r = 0; r < in.count; r++)
    if ((r & dropped) == 0)
      out.at[out.count++] = in.at[r];
  return out;
}

/* All operands of an op from `first` on, one after the other. */
static tw_values_t flatten(tw_emitter_t *e, MlirOperation op, intptr_t first, tw_dropped_t dropped) {
  intptr_t n = mlirOperationGetNumOperands(op);
  int total = 0, at = 0;
  for (intptr_t i = first; i < n; i++)
    total += twg_operand(e, op, i).count;
  tw_values_t all = twg_new_values(e, total);
  for (intptr_t i = first; i < n; i++) {
    MlirType type = mlirValueGetType(mlirOperationGetOperand(op, i));
    tw_values_t part = without(e, dropped_of(dropped, i - first), twg_operand(e, op, i));
    if (is_paired(type))
      part = pairs_of(e, tw_element(type), part);
    memcpy(all.at + at, part.at, (size_t)part.count * sizeof *part.at);
    at += part.count;
  }
  all.count = at;
  return all;
}

static MlirBlock block_like(tw_emitter_t *e, tw_values_t values) {
  MlirBlock block = twg_new_block(e, 0, NULL);
  for (int i = 0; i < values.count; i++)
    mlirBlockAddArgument(block, mlirValueGetType(values.at[i]), e->location);
  return block;
}

/* Binds an old value to the next arguments of a block; returns the position after them. */
static int bind_to_arguments(tw_emitter_t *e, MlirValue old, MlirBlock block, int at, int dropped) {
  MlirType type = mlirValueGetType(old);
  tw_values_t values = twg_new_values(e, tw_register_count(type));
  int per_argument = is_paired(type) ? 2 : 1, bound = 0;
  for (int i = 0; i < values.count; i++) {
    if (i & dropped) {
      values.at[i] = values.at[i & ~dropped];
      continue;
    }
    MlirValue argument = mlirBlockGetArgument(block, at + bound++ / per_argument);
    values.at[i] = is_paired(type) ? twg_unpack(e, argument, i % 2, tw_element(type)) : argument;
  }
  twg_bind(e, old, values);
  return at + bound / per_argument;
}

/* The arguments of an old block are those of the new one from the first on; the induction variable of a loop, which
 * drops registers, comes before those that it carries. */
static void bind_block(tw_emitter_t *e, MlirBlock old, MlirBlock block, tw_dropped_t dropped) {
  int at = 0;
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(old); i++)
    at = bind_to_arguments(e, mlirBlockGetArgument(old, i), block, at,
                           i < TW_FOR_CARRIED ? 0 : dropped_of(dropped, i - TW_FOR_CARRIED));
}

static void bind_results(tw_emitter_t *e, MlirOperation op, MlirBlock block, int at, tw_dropped_t dropped) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    at = bind_to_arguments(e, mlirOperationGetResult(op, i), block, at, dropped_of(dropped, i));
}

/* What a loop need not carry of each tile, as registers are equal in groups; the caller frees it. Paired ones cross as
 * they are. */
static int *find_dropped(MlirOperation loop) {
  intptr_t count = mlirOperationGetNumResults(loop), rank = 0;
  int *dropped = tw_allocate((size_t)count + 1, sizeof *dropped);
  for (intptr_t i = 0; i < count; i++) {
    MlirType type = mlirValueGetType(tw_carried(loop, i));
    if (tw_is_tile(type) && tw_register_count(type) > 1 && !is_paired(type) && tw_rank(type) > rank)
      rank = tw_rank(type);
  }
  for (int dim = 0; dim < rank; dim++) {
    int *groups = tw_carried_groups(loop, dim);
    for (intptr_t i = 0; i < count; i++) {
      MlirType type = mlirValueGetType(tw_carried(loop, i));
      dropped[i] |= is_paired(type) ? 0 : tw_registers_within(type, dim, groups[i]);
    }
    free(groups);
  }
  return dropped;
}

/* The induction variable of the next iteration. It saturates: the plain sum could wrap to below the bound. A
 * persistent loop needs no such care, as it counts at most 2^30 blocks (runtime/launch.c) in steps of no more. */
static MlirValue next_index(tw_emitter_t *e, MlirOperation op, MlirValue iv, MlirValue step) {
  int64_t known;
  tw_range_t bound = tw_range_of(mlirOperationGetOperand(op, 1)), by = tw_range_of(mlirOperationGetOperand(op, 2));
  bool wraps = tw_bits(mlirValueGetType(iv)) > 32 || bound.high > INT32_MAX - by.high;
  if (!wraps || tw_has_attr(op, "tile.persistent") ||
      (tw_known_int(mlirOperationGetOperand(op, 2), &known) && known == 1))
    return twg_binary(e, "llvm.add", iv, step);
  MlirValue operands[] = {iv, step};
  const char *name = tw_has_attr(op, "unsignedCmp") ? "llvm.uadd.sat" : "llvm.sadd.sat";
  char full[32];
  snprintf(full, sizeof full, "%s.i%d", name, (int)tw_bits(mlirValueGetType(iv)));
  return twg_intrinsic(e, full, mlirValueGetType(iv), 2, operands, TW_PTX_NOTHING);
}

static tw_values_t put_before(tw_emitter_t *e, MlirValue first, tw_values_t values) {
  tw_values_t all = twg_new_values(e, 1 + values.count);
  all.at[0] = first;
  memcpy(all.at + 1, values.at, (size_t)values.count * sizeof *values.at);
  return all;
}

/* Asks LLVM for code of each iteration of the loop that the branch closes (lowering/emit.c). */
static void write_out(tw_emitter_t *e, MlirOperation branch) {
  static const char text[] = "#llvm.loop_annotation<unroll = <full = true>>";
  mlirOperationSetAttributeByName(branch, tw_str("loop_annotation"), mlirAttributeParseGet(e->context, tw_str(text)));
}

/* for: head(iv, values): iv < bound ? body : exit; body: ...; head(iv + step, yields). The block before it is ended
 * last, so that the rules of the body can put there what the loop does not change. */
static bool emit_for(tw_emitter_t *e, MlirOperation op, tw_dropped_t dropped) {
  MlirBlock old = tw_region_block(op, 0), before = e->block, outside = e->outside;
  twg_loop_t loop;
  MlirValue bound = twg_operand(e, op, 1).at[0], step = twg_operand(e, op, 2).at[0];
  tw_values_t start = put_before(e, twg_operand(e, op, 0).at[0], flatten(e, op, TW_FOR_INITS, dropped));
  MlirBlock head = block_like(e, start), body = twg_new_block(e, 0, NULL);
  MlirValue iv = mlirBlockGetArgument(head, 0);
  twg_begin_loop(e, &loop, op);
  e->block = body;
  e->outside = before;
  bind_block(e, old, head, dropped);
  if (!e->emit_block(e, old))
    return false;
  e->outside = outside;
  e->location = mlirOperationGetLocation(op);
  tw_values_t yields = flatten(e, mlirBlockGetTerminator(old), 0, dropped);
  tw_values_t next = put_before(e, next_index(e, op, iv, step), yields);
  twg_branch(e, head, next.count, next.at);
  if (tw_is_written_out(op))
    write_out(e, mlirBlockGetTerminator(e->block));
  MlirBlock exit = twg_new_block(e, 0, NULL);
  e->block = head;
  bool is_unsigned = tw_has_attr(op, "unsignedCmp");
  twg_branch_if(e, twg_icmp(e, is_unsigned ? TW_ULT : TW_SLT, iv, bound), body, 0, NULL, exit, 0, NULL);
  e->block = before;
  twg_branch(e, head, start.count, start.at);
  e->block = exit;
  twg_end_loop(e, &loop);
  bind_results(e, op, head, 1, dropped);
  return true;
}

static bool rule_for(tw_emitter_t *e, MlirOperation op) {
  int *dropped = find_dropped(op);
  bool ok = emit_for(e, op, dropped);
  free(dropped);
  return ok;
}

/* Re-emits one arm in its own block and branches to `join` with what it yields. */
static bool emit_arm(tw_emitter_t *e, MlirOperation op, int region, MlirBlock arm, MlirBlock *join) {
  MlirBlock old = tw_region_block(op, region);
  e->block = arm;
  tw_values_t yields = {NULL, 0};
  if (!mlirBlockIsNull(old)) {
    if (!e->emit_block(e, old))
      return false;
    yields = flatten(e, mlirBlockGetTerminator(old), 0, NULL);
  }
  e->location = mlirOperationGetLocation(op);
  if (mlirBlockIsNull(*join))
    *join = block_like(e, yields);
  twg_branch(e, *join, yields.count, yields.at);
  return true;
}

/* Whether an if starts copies of tiles and does nothing else. */
static bool only_copies(MlirOperation op) {
  bool copies = false, only = mlirOperationGetNumResults(op) == 0 && mlirBlockIsNull(tw_region_block(op, 1));
  MlirBlock body = tw_region_block(op, 0);
  TW_EACH_OP(inner, body) {
    bool copy = tw_is_async_copy(inner);
    copies = copies || copy;
    only = only && (copy || tw_op_is(inner, TW_SCF_YIELD) || tw_op_form(inner) == TW_FORM_ELEMENTWISE);
  }
  return copies && only;
}

/* Where the tiles lie is computed in front of it: a row's, of which each has an if, have most of that in common. */
static bool emit_copies(tw_emitter_t *e, MlirOperation op) {
  MlirBlock then = twg_new_block(e, 0, NULL), join = {NULL}, before = e->block, aside = e->aside, branch = e->branch;
  e->aside = before;
  e->branch = tw_region_block(op, 0);
  bool ok = emit_arm(e, op, 0, then, &join);
  e->aside = aside;
  e->branch = branch;
  e->block = before;
  if (ok)
    twg_branch_if(e, twg_operand(e, op, 0).at[0], then, 0, NULL, join, 0, NULL);
  e->block = join;
  return ok;
}

static bool rule_if(tw_emitter_t *e, MlirOperation op) {
  if (only_copies(op))
    return emit_copies(e, op);
  MlirBlock then = twg_new_block(e, 0, NULL), otherwise = twg_new_block(e, 0, NULL), join = {NULL};
  twg_branch_if(e, twg_operand(e, op, 0).at[0], then, 0, NULL, otherwise, 0, NULL);
  if (!emit_arm(e, op, 0, then, &join) || !emit_arm(e, op, 1, otherwise, &join))
    return false;
  e->block = join;
  bind_results(e, op, join, 0, NULL);
  return true;
}

/* while: before(values): condition ? after(passed) : exit; after: ...; before(yields). The block in front of it is
 * ended last, as that of a for is. */
static bool rule_while(tw_emitter_t *e, MlirOperation op) {
  MlirBlock old_before = tw_region_block(op, 0);
  MlirBlock old_after = tw_region_block(op, 1);
  tw_values_t inits = flatten(e, op, 0, NULL);
  MlirBlock before = block_like(e, inits);
  twg_loop_t loop;
  twg_begin_loop(e, &loop, op);
  e->block = before;
  bind_block(e, old_before, before, NULL);
  if (!e->emit_block(e, old_before))
    return false;
  MlirOperation condition = mlirBlockGetTerminator(old_before);
  tw_values_t passed = flatten(e, condition, 1, NULL);
  MlirBlock after = block_like(e, passed), exit = block_like(e, passed);
  twg_branch_if(e, twg_operand(e, condition, 0).at[0], after, passed.count, passed.at, exit, passed.count, passed.at);
  e->block = after;
  bind_block(e, old_after, after, NULL);
  if (!e->emit_block(e, old_after))
    return false;
  tw_values_t yields = flatten(e, mlirBlockGetTerminator(old_after), 0, NULL);
  twg_branch(e, before, yields.count, yields.at);
  e->block = loop.before;
  twg_branch(e, before, inits.count, inits.at);
  e->block = exit;
  twg_end_loop(e, &loop);
  bind_results(e, op, exit, 0, NULL);
  return true;
}

static bool rule_return(tw_emitter_t *e, MlirOperation op) {
  if (e->c && e->c->result.num_places)
    return twg_return_to_c(e, op);
  twg_op(e, "llvm.return", (MlirType){NULL}, 0, NULL, 0, NULL);
  return true;
}

static bool axis_register(tw_emitter_t *e, MlirOperation op, const char *const names[3]) {
  int64_t axis = tw_attr_int(op, "axis", 0);
  if (axis < 0 || axis > 2) {
    tw_op_error(op, "has axis %d; a grid has axes 0, 1 and 2", (int)axis);
    return false;
  }
  twg_set_scalar(e, op, 0, twg_op(e, names[axis], e->i32, 0, NULL, 0, NULL));
  return true;
}

static bool rule_block_id(tw_emitter_t *e, MlirOperation op) {
  static const char *const names[3] = {"nvvm.read.ptx.sreg.ctaid.x", "nvvm.read.ptx.sreg.ctaid.y",
                                       "nvvm.read.ptx.sreg.ctaid.z"};
  return axis_register(e, op, names);
}

static bool rule_num_blocks(tw_emitter_t *e, MlirOperation op) {
  static const char *const names[3] = {"nvvm.read.ptx.sreg.nctaid.x", "nvvm.read.ptx.sreg.nctaid.y",
                                       "nvvm.read.ptx.sreg.nctaid.z"};
  return axis_register(e, op, names);
}

static bool rule_dim(tw_emitter_t *e, MlirOperation op) {
  int axis = (int)tw_attr_int(op, "axis", 0);
  MlirValue extent = twg_array_extent(e, mlirOperationGetOperand(op, 0), axis);
  twg_set_scalar(e, op, 0, twg_cast(e, "llvm.trunc", e->i32, extent));
  return true;
}

static bool rule_stride(tw_emitter_t *e, MlirOperation op) {
  int axis = (int)tw_attr_int(op, "axis", 0);
  twg_set_scalar(e, op, 0, twg_array_stride(e, mlirOperationGetOperand(op, 0), axis));
  return true;
}

static bool rule_barrier(tw_emitter_t *e, MlirOperation op) {
  (void)op;
  twg_barrier(e);
  return true;
}

/* ---- agreement of a warp ---------------------------------------------------------------------------- */

static bool is_meeting(MlirOperation op) { return tw_is_barrier(op) || tw_scratch_bytes(op) > 0; }

/* Whether a branch on the value has threads of several warps meet. */
static bool decides_for_block(MlirValue condition) {
  bool meets = false;
  for (MlirOpOperand use = mlirValueGetFirstUse(condition); !meets && !mlirOpOperandIsNull(use);
       use = mlirOpOperandGetNextUse(use))
    meets = tw_has_op_like(mlirOpOperandGetOwner(use), is_meeting);
  return meets;
}

static bool rule_warp_any(tw_emitter_t *e, MlirOperation op) {
  tw_values_t in = twg_operand(e, op, 0);
  MlirValue any = in.at[0];
  for (int i = 1; i < in.count; i++)
    any = twg_binary(e, "llvm.or", any, in.at[i]);
  if (decides_for_block(mlirOperationGetResult(op, 0))) {
    twg_set_scalar(e, op, 0, twg_barrier_any(e, any));
    return true;
  }
  MlirValue operands[] = {twg_const_i32(e, -1), any};
  twg_set_scalar(e, op, 0, twg_intrinsic(e, "llvm.nvvm.vote.any.sync", e->i1, 2, operands, TW_PTX_EFFECT));
  return true;
}

TWG_RULE(TW_SCF_FOR, rule_for)
TWG_RULE(TW_SCF_IF, rule_if)
TWG_RULE(TW_SCF_WHILE, rule_while)
TWG_RULE(TW_FUNC_RETURN, rule_return)
TWG_RULE(TW_TILE_BLOCK_ID, rule_block_id)
TWG_RULE(TW_TILE_NUM_BLOCKS, rule_num_blocks)
TWG_RULE(TW_TILE_DIM, rule_dim)
TWG_RULE(TW_TILE_STRIDE, rule_stride)
TWG_RULE(TW_TILE_BARRIER, rule_barrier)
TWG_RULE(TW_TILE_WARP_ANY, rule_warp_any)

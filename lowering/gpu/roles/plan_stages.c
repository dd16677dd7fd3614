/* plan_stages.c - see plan_stages.h */
#include "lowering/gpu/roles/plan_stages.h"

#include "dialect/layouts.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/barrier.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/machine/budget.h"
#include "lowering/gpu/machine/copy_engine.h"
#include "lowering/gpu/roles/choose_stages.h"
#include "lowering/launch_record.h"
#include "lowering/layout/memory.h"
#include "lowering/loops.h"
#include "tilewright/dialect.h"

#include <stdlib.h>

static bool refuse(tw_stage_plan_t *plan, MlirOperation op, const char *reason) {
  return tw_refuse(&plan->refused, op, reason);
}

/* Loops with which an op is done again. */
static int loops_around(MlirOperation op) {
  int depth = 0;
  for (op = tw_enclosing_loop(op); !mlirOperationIsNull(op); op = tw_enclosing_loop(op))
    depth += tw_runs_once(op) ? 0 : 1;
  return depth;
}

/* ---- copies and their readers -------------------------------------------------------------------- */

/* Whether what `copy` brings may be what `op` finds: the copy stands before it in a block around. */
static bool may_reach(MlirOperation copy, MlirOperation op) {
  MlirOperation around = tw_ancestor_in(op, mlirOperationGetBlock(copy));
  return !mlirOperationIsNull(around) && !mlirOperationEqual(around, copy) &&
         mlirOperationIsBeforeInBlock(copy, around);
}

/* The last copy into the buffer before `op`; null if there is none. */
static MlirOperation reaching(MlirValue buffer, MlirOperation op) {
  MlirOperation last = tw_null_op();
  TW_EACH_USE(use, buffer) {
    MlirOperation copy = mlirOpOperandGetOwner(use);
    if (tw_is_async_copy(copy) && may_reach(copy, op) && (mlirOperationIsNull(last) || may_reach(last, copy)))
      last = copy;
  }
  return last;
}

/* The first op of the copy's block that reads what it brings, or holds one that does. */
static MlirOperation first_reader(MlirOperation copy) {
  MlirOperation first = tw_null_op();
  MlirValue buffer = tw_copy_buffer(copy);
  TW_EACH_USE(use, buffer) {
    MlirOperation op = mlirOpOperandGetOwner(use);
    if (!tw_op_reads_shared(op) || !mlirOperationEqual(reaching(buffer, op), copy))
      continue;
    MlirOperation around = tw_ancestor_in(op, mlirOperationGetBlock(copy));
    if (mlirOperationIsNull(first) || mlirOperationIsBeforeInBlock(around, first))
      first = around;
  }
  return first;
}

static int64_t copied_bytes(MlirOperation copy) { return tw_stage_bytes(mlirValueGetType(tw_copy_buffer(copy))); }

/* Whether a copy is so small beside the first of a fill that waiting for it costs hardly more. */
static bool is_little(const tw_stage_fill_t *fill, MlirOperation copy) {
  enum { TIMES = 8 };
  return TIMES * copied_bytes(copy) <= copied_bytes(fill->copies[0]);
}

/* Whether a copy belongs to the fill before: nothing is read in between, and the same op reads both first, or there is
 * little to wait for. What is read before the rest of the fill does not: it would have both waited for that early, and
 * given back that late. */
static bool joins(const tw_stage_fill_t *fill, MlirOperation copy, MlirOperation reader) {
  return mlirBlockEqual(mlirOperationGetBlock(fill->copies[0]), mlirOperationGetBlock(copy)) &&
         fill->num_copies < TW_MAX_TOGETHER && !mlirOperationIsNull(reader) &&
         (mlirOperationEqual(fill->reader, reader) || (is_little(fill, copy) && tw_not_after(fill->reader, reader))) &&
         !tw_fills_buffer(fill, tw_copy_buffer(copy)) && mlirOperationIsBeforeInBlock(copy, fill->reader);
}

/* Whether there is a tensor map for a copy, perhaps one more. */
static bool has_map(tw_stage_plan_t *plan, const tw_tensor_map_t *map) {
  for (int i = 0; i < plan->num_maps; i++)
    if (tw_engine_same_map(&plan->maps[i], map))
      return true;
  if (plan->num_maps == TW_ENGINE_MAX_LOADED)
    return false;
  plan->maps[plan->num_maps++] = *map;
  return true;
}

static const char *why_not_brought(tw_stage_plan_t *plan, MlirOperation op) {
  tw_engine_copy_t copy;
  const char *reason = tw_engine_plan(op, &copy);
  return reason || has_map(plan, &copy.map) ? reason : "it copies from too many arrays";
}

/* Few warps that compute would wait for as many that gather; these do better beside another block's. */
static const char *why_not_gathered(const tw_stage_plan_t *plan) {
  int64_t warps = tw_num_warps(plan->func, 0);
  return tw_gathers_beside(warps) ? NULL : "a producer that gathers pays beside eight or more warps that compute";
}

/* Ops among which lanes read one stage after the other. */
static bool is_among_reads(MlirOperation op) {
  return tw_op_loads(op) || tw_is_async_copy(op) || tw_op_loads_buffer(op) || tw_groups_copies(op) ||
         tw_orders_only(op, TW_ORDERS_COPIES | TW_ORDERS_PRODUCTS) ||
         (tw_is_arithmetic(op) && mlirOperationGetNumRegions(op) == 0);
}

/* The last of the reads by lanes that stand together: then one fence serves all stages that they read. */
static MlirOperation last_read(MlirOperation read) {
  MlirOperation last = read;
  for (MlirOperation op = read; !mlirOperationIsNull(op) && is_among_reads(op); op = mlirOperationGetNextInBlock(op))
    if (tw_op_loads_buffer(op))
      last = op;
  return last;
}

/* ---- little copies beside large ones --------------------------------------------------------------- */

static bool is_copy(MlirOperation op) { return tw_is_async_copy(op); }

/* Whether all that the copy needs behind `place` is arithmetic, which may stand in front of it. */
static bool may_stand_at(MlirOperation copy, MlirOperation place, tw_slice_t *needed) {
  *needed = (tw_slice_t){.block = mlirOperationGetBlock(copy)};
  tw_slice_add_op(needed, copy);
  for (MlirOperation op = place; !mlirOperationEqual(op, copy); op = mlirOperationGetNextInBlock(op))
    if (tw_slice_has(needed, op) && !tw_is_arithmetic(op))
      return false;
  return true;
}

static void move_to(MlirOperation copy, MlirOperation place, const tw_slice_t *needed) {
  for (MlirOperation op = place, next; !mlirOperationEqual(op, copy); op = next) {
    next = mlirOperationGetNextInBlock(op);
    if (tw_slice_has(needed, op))
      mlirOperationMoveBefore(op, place);
  }
  mlirOperationMoveBefore(copy, place);
}

/* A little copy that is read right behind a large one comes with it: one barrier serves both. */
static void bring_together(MlirOperation func) {
  tw_ops_t copies = tw_ops_in(func, is_copy, MlirWalkPreOrder);
  MlirOperation large = tw_null_op(), last = tw_null_op();
  for (int i = 0; i < copies.count; i++) {
    MlirOperation copy = copies.at[i], reader = mlirOperationIsNull(large) ? large : first_reader(large);
    tw_stage_fill_t fill = {.copies = {large}};
    tw_slice_t needed = {0};
    bool together =
        !mlirOperationIsNull(reader) && mlirBlockEqual(mlirOperationGetBlock(large), mlirOperationGetBlock(copy)) &&
        tw_op_loads_buffer(reader) && is_little(&fill, copy) && mlirOperationIsBeforeInBlock(reader, copy) &&
        mlirOperationEqual(last_read(reader), last_read(first_reader(copy))) &&
        may_stand_at(copy, mlirOperationGetNextInBlock(last), &needed);
    if (together) {
      move_to(copy, mlirOperationGetNextInBlock(last), &needed);
      last = copy;
    } else {
      large = last = copy;
    }
    tw_slice_free(&needed);
  }
  tw_ops_free(&copies);
}

static MlirWalkResult collect_copy(MlirOperation op, void *user) {
  tw_stage_plan_t *plan = user;
  if (!tw_is_async_copy(op))
    return MlirWalkResultAdvance;
  bool gathers = tw_op_has(op, TW_BY_ELEMENT);
  const char *reason = gathers ? why_not_gathered(plan) : why_not_brought(plan, op);
  if (reason) {
    refuse(plan, op, reason);
    return MlirWalkResultInterrupt;
  }
  MlirOperation reader = first_reader(op);
  if (mlirOperationIsNull(reader)) {
    refuse(plan, op, "no one reads what a copy brings");
    return MlirWalkResultInterrupt;
  }
  tw_stage_fill_t *before = plan->num_fills ? &plan->fills[plan->num_fills - 1] : NULL;
  plan->gathers |= gathers;
  if (before && joins(before, op, reader)) {
    before->copies[before->num_copies++] = op;
    before->gathers |= gathers;
    if (mlirOperationIsBeforeInBlock(reader, before->reader))
      before->reader = reader;
  } else if (plan->num_fills == TW_MAX_FILLS) {
    refuse(plan, op, "it copies at too many places");
    return MlirWalkResultInterrupt;
  } else {
    plan->fills[plan->num_fills++] =
        (tw_stage_fill_t){.copies = {op}, .num_copies = 1, .reader = reader, .gathers = gathers};
  }
  return MlirWalkResultAdvance;
}

static MlirWalkResult collect_read(MlirOperation op, void *user) {
  tw_stage_plan_t *plan = user;
  for (intptr_t i = 0; tw_op_reads_shared(op) && i < mlirOperationGetNumOperands(op); i++) {
    MlirValue buffer = mlirOperationGetOperand(op, i);
    if (!tw_type_is_buffer(mlirValueGetType(buffer)) || !tw_is_filled(plan, buffer))
      continue; /* no buffer, or written by other means */
    MlirOperation copy = reaching(buffer, op);
    if (mlirOperationIsNull(copy)) {
      refuse(plan, op, "it reads what a copy elsewhere brought");
      return MlirWalkResultInterrupt;
    }
    plan->reads = tw_room(plan->reads, (size_t)plan->num_reads, sizeof *plan->reads);
    plan->reads[plan->num_reads++] = (tw_stage_read_t){op, i, tw_fill_of(plan, copy)};
  }
  return MlirWalkResultAdvance;
}

/* ---- where reads end ----------------------------------------------------------------------------- */

static bool find_ends(tw_stage_plan_t *plan) {
  for (int f = 0; f < plan->num_fills; f++)
    plan->fills[f].end = plan->fills[f].reader;
  for (int r = 0; r < plan->num_reads; r++) {
    tw_stage_read_t *read = &plan->reads[r];
    tw_stage_fill_t *fill = &plan->fills[read->fill];
    MlirBlock block = mlirOperationGetBlock(fill->copies[0]);
    bool late = false;
    MlirOperation end = tw_op_is_async_product(read->op) ? tw_product_end(&plan->overlaps, read->op, block, &late)
                                                         : tw_ancestor_in(read->op, block);
    if (mlirOperationIsNull(end))
      return refuse(plan, read->op, "no wait ends one of its products");
    fill->by_lanes |= !tw_op_is_async_product(read->op);
    if (late == fill->late ? tw_not_after(fill->end, end) : late) {
      fill->end = end;
      fill->late = late;
    }
  }
  for (int f = 0; f < plan->num_fills; f++)
    if (tw_op_loads_buffer(plan->fills[f].end))
      plan->fills[f].end = last_read(plan->fills[f].end);
  return true;
}

/* ---- multibuffers --------------------------------------------------------------------------------------- */

/* The first and the last op of a block between which the content of a fill lives. */
typedef struct {
  MlirOperation first, last;
} span_t;

static span_t span_of(const tw_stage_fill_t *fill) {
  MlirOperation loop = mlirOperationGetParentOperation(fill->copies[0]);
  return fill->late ? (span_t){loop, loop} : (span_t){fill->copies[0], fill->end};
}

static bool covers(span_t span, MlirOperation op) {
  MlirOperation around = tw_ancestor_in(op, mlirOperationGetBlock(span.first));
  return !mlirOperationIsNull(around) && tw_not_after(span.first, around) && tw_not_after(around, span.last);
}

static bool live_at_once(const tw_stage_fill_t *x, const tw_stage_fill_t *y) {
  span_t a = span_of(x), b = span_of(y);
  return covers(a, b.first) || covers(a, b.last) || covers(b, a.first) || covers(b, a.last);
}

/* Whether the copies that both have go through the same buffers, and what only one has is little. */
static bool same_form(const tw_stage_fill_t *x, const tw_stage_fill_t *y) {
  const tw_stage_fill_t *longer = x->num_copies < y->num_copies ? y : x;
  int both = x->num_copies < y->num_copies ? x->num_copies : y->num_copies;
  for (int c = both; c < longer->num_copies; c++)
    if (!is_little(longer, longer->copies[c]) || tw_op_has(longer->copies[c], TW_BY_ELEMENT))
      return false;
  for (int c = 0; c < both; c++)
    if (!mlirTypeEqual(mlirValueGetType(tw_copy_buffer(x->copies[c])),
                       mlirValueGetType(tw_copy_buffer(y->copies[c]))) ||
        !mlirStringRefEqual(tw_op_name(x->copies[c]), tw_op_name(y->copies[c])) ||
        tw_has_attr(x->copies[c], TW_MULTICAST) != tw_has_attr(y->copies[c], TW_MULTICAST))
      return false;
  return true;
}

/* Whether both bring tiles of the same arrays. */
static bool same_arrays(const tw_stage_fill_t *x, const tw_stage_fill_t *y) {
  bool same = x->num_copies == y->num_copies;
  for (int c = 0; same && c < x->num_copies; c++)
    same = mlirValueEqual(mlirOperationGetOperand(x->copies[c], 0), mlirOperationGetOperand(y->copies[c], 0));
  return same;
}

/* Whether the fill can go through a multibuffer: of the same form, as deep in loops, and never full of something else;
 * or, at another depth, of the same arrays, as what a rotated loop leaves over. */
static bool can_share(const tw_stage_plan_t *plan, int multibuffer, const tw_stage_fill_t *fill, bool as_deep) {
  const tw_stage_fill_t *first = &plan->fills[plan->multibuffers[multibuffer].first];
  if (!same_form(first, fill) || (as_deep ? plan->multibuffers[multibuffer].depth != loops_around(fill->copies[0])
                                          : plan->multibuffers[multibuffer].depth == 0 || !same_arrays(first, fill)))
    return false;
  for (int f = 0; f < plan->num_fills; f++)
    if (&plan->fills[f] != fill && plan->fills[f].multibuffer == multibuffer && live_at_once(&plan->fills[f], fill))
      return false;
  return true;
}

/* The multibuffer that the fill can share; the number of multibuffers if there is none. */
static int multibuffer_for(const tw_stage_plan_t *plan, const tw_stage_fill_t *fill) {
  int multibuffer = 0;
  while (multibuffer < plan->num_multibuffers && !can_share(plan, multibuffer, fill, true))
    multibuffer++;
  if (multibuffer == plan->num_multibuffers)
    for (multibuffer = 0; multibuffer < plan->num_multibuffers && !can_share(plan, multibuffer, fill, false);)
      multibuffer++;
  return multibuffer;
}

/* The multibuffer has the buffers of its longest fill. */
static void take_form(tw_stage_plan_t *plan, int f) {
  const tw_stage_fill_t *fill = &plan->fills[f];
  tw_multibuffer_t *multibuffer = &plan->multibuffers[fill->multibuffer];
  if (fill->num_copies < plan->fills[multibuffer->first].num_copies)
    return;
  multibuffer->first = fill->num_copies > plan->fills[multibuffer->first].num_copies ? f : multibuffer->first;
  multibuffer->bytes = 0;
  for (int c = 0; c < fill->num_copies; c++)
    multibuffer->bytes += copied_bytes(fill->copies[c]);
}

static bool make_multibuffers(tw_stage_plan_t *plan) {
  for (int f = 0; f < plan->num_fills; f++)
    plan->fills[f].multibuffer = -1;
  for (int f = 0; f < plan->num_fills; f++) {
    tw_stage_fill_t *fill = &plan->fills[f];
    int multibuffer = multibuffer_for(plan, fill);
    if (multibuffer == plan->num_multibuffers) {
      tw_multibuffer_t *made = &plan->multibuffers[plan->num_multibuffers++];
      *made = (tw_multibuffer_t){.first = f};
      for (int c = 0; c < fill->num_copies; c++)
        made->multicast |= tw_has_attr(fill->copies[c], TW_MULTICAST);
    }
    fill->multibuffer = multibuffer;
    take_form(plan, f);
    int depth = loops_around(fill->copies[0]);
    plan->multibuffers[multibuffer].depth =
        depth > plan->multibuffers[multibuffer].depth ? depth : plan->multibuffers[multibuffer].depth;
    plan->multibuffers[multibuffer].num_fills++;
    plan->multibuffers[multibuffer].late |= fill->late;
  }
  for (int f = 0; f < plan->num_fills; f++) /* a buffer belongs to one multibuffer */
    for (int g = 0; g < f; g++)
      for (int c = 0; c < plan->fills[f].num_copies; c++)
        if (plan->fills[f].multibuffer != plan->fills[g].multibuffer &&
            tw_fills_buffer(&plan->fills[g], tw_copy_buffer(plan->fills[f].copies[c])))
          return refuse(plan, plan->fills[f].copies[c], "it fills a buffer whose content is still read");
  return true;
}

/* ---- the decision ---------------------------------------------------------------------------------- */

/* Multiply-adds are as fast as their operands stay in registers, of which a warp beside them would take a share. */
static MlirWalkResult find_multiply_adds(MlirOperation op, void *user) {
  tw_stage_plan_t *plan = user;
  if (tw_op_is_product(op) && !tw_mma_has_instruction(op))
    refuse(plan, op, "its multiply-adds need the registers that these would take");
  return plan->refused.reason ? MlirWalkResultInterrupt : MlirWalkResultAdvance;
}

static bool any_in_loop(const tw_stage_plan_t *plan) {
  for (int f = 0; f < plan->num_fills; f++)
    if (loops_around(plan->fills[f].copies[0]) > 0)
      return true;
  return false;
}

static bool need_copies(tw_stage_plan_t *plan) {
  for (int f = 0; f < plan->num_fills; f++)
    for (int c = 0; c < plan->fills[f].num_copies; c++)
      if (!tw_producer_add_copy(&plan->needs, plan->fills[f].copies[c]))
        return false;
  return true;
}

/* Whether a block may have a producer's warps, too. */
static bool has_room_for_warps(tw_stage_plan_t *plan) {
  enum { MOST_OF_PRODUCER = 4 };
  return tw_num_warps(plan->func, 0) + MOST_OF_PRODUCER <= TW_BLOCK_WARPS ||
         refuse(plan, plan->func, "a block has 1024 threads, and the kernel's own warps take them all");
}

bool tw_plan_stages(tw_stage_plan_t *plan) {
  plan->needs = (tw_producer_slice_t){.func = plan->func, .refused = &plan->refused};
  bring_together(plan->func);
  mlirOperationWalk(plan->func, collect_copy, plan, MlirWalkPreOrder);
  if (plan->refused.reason || !any_in_loop(plan) || !has_room_for_warps(plan))
    return false;
  mlirOperationWalk(plan->func, find_multiply_adds, plan, MlirWalkPreOrder);
  mlirOperationWalk(plan->func, collect_read, plan, MlirWalkPreOrder);
  if (plan->refused.reason || !need_copies(plan))
    return false;
  tw_find_overlaps(&plan->overlaps, plan->func);
  return find_ends(plan) && make_multibuffers(plan) && tw_choose_stages(plan) &&
         tw_producer_may_run_ahead(&plan->needs);
}

void tw_free_plan(tw_stage_plan_t *plan) {
  tw_map_free(&plan->needs.known);
  tw_free_overlaps(&plan->overlaps);
  free(plan->reads);
}

/* loops.h - what passes ask of an scf.for, and how they let it carry more values */
#ifndef TILEWRIGHT_LOWERING_LOOPS_H
#define TILEWRIGHT_LOWERING_LOOPS_H

#include "lowering/ir.h"

/* An scf.for has lower bound, upper bound and step before its initial values; its body has the induction variable
 * before the values that it carries. */
enum { TW_FOR_INITS = 3, TW_FOR_CARRIED = 1 };

static inline MlirBlock tw_loop_body(MlirOperation loop) { return tw_region_block(loop, 0); }
static inline MlirValue tw_loop_iv(MlirOperation loop) { return mlirBlockGetArgument(tw_loop_body(loop), 0); }
static inline MlirOperation tw_loop_yield(MlirOperation loop) { return mlirBlockGetTerminator(tw_loop_body(loop)); }
/* Carried value `i`: inside, as it starts, as an iteration leaves it, and after the loop. */
static inline MlirValue tw_carried(MlirOperation loop, intptr_t i) {
  return mlirBlockGetArgument(tw_loop_body(loop), i + TW_FOR_CARRIED);
}
static inline MlirValue tw_carried_init(MlirOperation loop, intptr_t i) {
  return mlirOperationGetOperand(loop, i + TW_FOR_INITS);
}
static inline MlirValue tw_carried_next(MlirOperation loop, intptr_t i) {
  return mlirOperationGetOperand(tw_loop_yield(loop), i);
}
/* The carried value that a block argument is; -1 for any other value. */
intptr_t tw_carried_position(MlirOperation loop, MlirValue value);

/* Whether carried value `i` starts from zero and products are added to it, and to it alone. */
bool tw_sums_products(MlirOperation loop, intptr_t i);
/* The loops in a function. */
tw_ops_t tw_loops_in(MlirOperation func, MlirWalkOrder order);

/* The innermost loop around an op, with which the op is done again; null if there is none. */
MlirOperation tw_enclosing_loop(MlirOperation op);
/* Whether a loop has one iteration at most: it ends no later than a step behind where it begins. */
bool tw_runs_once(MlirOperation loop);
/* The ancestor of `op` (or itself) that lies in `block`; null if there is none. */
MlirOperation tw_ancestor_in(MlirOperation op, MlirBlock block);
static inline bool tw_inside(MlirOperation op, MlirBlock block) {
  return !mlirOperationIsNull(tw_ancestor_in(op, block));
}
/* Whether an op is `outer`, or in it. */
bool tw_is_inside(MlirOperation op, MlirOperation outer);
/* Whether a value is made in `block` or in a region of its ops. */
bool tw_defined_in(MlirValue value, MlirBlock block);
/* The only use of a value, and the op that makes it; null where it has none or several. */
MlirOpOperand tw_only_use(MlirValue value);
MlirOperation tw_only_user(MlirValue value);
static inline bool tw_has_one_use(MlirValue value) { return !mlirOpOperandIsNull(tw_only_use(value)); }
static inline bool tw_is_unused(MlirValue value) { return mlirOpOperandIsNull(mlirValueGetFirstUse(value)); }

/* The ops of a block that a value depends on, in a set. Ops with regions count with all that these read. */
typedef struct tw_slice {
  MlirBlock block;
  tw_map_t ops; /* by address */
} tw_slice_t;
/* Adds what `value` depends on within the block. */
void tw_slice_add(tw_slice_t *slice, MlirValue value);
void tw_slice_add_op(tw_slice_t *slice, MlirOperation op);
static inline bool tw_slice_has(const tw_slice_t *slice, MlirOperation op) {
  return tw_map_get(&slice->ops, op.ptr, NULL) != NULL;
}
/* Whether something in the slice, or the values it was made from, reads the argument of the block. */
bool tw_slice_reads(const tw_slice_t *slice, MlirValue argument);
static inline void tw_slice_free(tw_slice_t *slice) { tw_map_free(&slice->ops); }

/* The loop again, with `num` more values carried, which start as `inits`. The body's yield must get as many more
 * operands (tw_extend_yield). The old op is gone. */
MlirOperation tw_carry_more(MlirOperation loop, intptr_t num, const MlirValue *inits);
void tw_extend_yield(MlirBlock body, intptr_t num, const MlirValue *values);

/* What a value may be that a loop or branch passes on: what the loop starts with and what an iteration leaves, or what
 * the branches end with. Returns how many there are, 0 for any other value. */
enum { TW_MAX_SOURCES = 2 };
int tw_sources(MlirValue value, MlirValue out[TW_MAX_SOURCES]);
/* Tells each value that the loop or branch passes on, with each of its sources. */
void tw_each_source(MlirOperation op, void (*tell)(void *user, MlirValue passed, MlirValue source), void *user);

/* An scf.for with that region; what it carries follows the bounds and the step among its operands. */
MlirOperation tw_build_for(const tw_builder_t *at, intptr_t num, const MlirValue *operands, MlirRegion region);
/* An scf.while, whose first region is its condition, and an scf.if. */
MlirOperation tw_build_while(const tw_builder_t *at, intptr_t num, const MlirValue *inits, intptr_t num_results,
                             const MlirType *results, const MlirRegion regions[2]);
MlirOperation tw_build_branch(const tw_builder_t *at, MlirValue condition, intptr_t num, const MlirType *results,
                              const MlirRegion regions[2]);
/* An scf.if of blocks with terminators, with what `then` yields as results; `otherwise` may be null. */
MlirOperation tw_build_if(const tw_builder_t *at, MlirValue condition, MlirBlock then, MlirBlock otherwise);
/* An scf.if without results: where the ops go that it guards. */
tw_builder_t tw_build_guard(const tw_builder_t *at, MlirValue condition);

/* Copies a value's definition to another place, with what it needs, where the map does not have it. `within`: only
 * ops of this block are copied. */
MlirValue tw_copy_slice(const tw_builder_t *at, MlirValue value, MlirBlock within, tw_map_t *map);
/* Copies an op and what is in it, with the values that the map has in place of its operands; its results go there. */
void tw_copy_op(const tw_builder_t *at, MlirOperation op, tw_map_t *map);
/* Erases an op without effects or users, and then what only it used. */
void tw_erase_dead(MlirOperation op);

#endif /* TILEWRIGHT_LOWERING_LOOPS_H */

/* role.h - one role of a kernel while it is made: the kernel's ops again, with multibuffers in place of copies
 *
 *   of the kernel                                    producer                      consumer
 *   tile.async_copy %A[...] into %a[0]               wait empty, expect, tma_load  -
 *   tile.async_mma %a[0], %b[0], %acc                    -                             wait full, the same with a stage
 *   the wait that ends the last read of %a, %b       -                             the same, arrive empty
 *   scf.for, scf.while, scf.if around a copy         the same, carrying where the multibuffer stands, stage and parity
 *   other ops                                        as far as copies need them    the same
 *
 * Both roles are made by the same functions, so that their multibuffers move alike. */
#ifndef TILEWRIGHT_LOWERING_GPU_ROLES_ROLE_H
#define TILEWRIGHT_LOWERING_GPU_ROLES_ROLE_H

#include "lowering/gpu/roles/stage_plan.h"

/* Where a multibuffer stands: the stage to fill or read next, the parity of its phase, the stage filled last. */
typedef struct tw_stage_state {
  MlirValue stage, parity, last;
} tw_stage_state_t;

typedef struct tw_role {
  const tw_stage_plan_t *plan;
  bool producer;
  tw_builder_t at;
  tw_map_t values; /* those of the kernel, to the role's own */
  tw_stage_state_t multibuffers[TW_MAX_FILLS];
  tw_stage_state_t fills[TW_MAX_FILLS]; /* of its multibuffer when the fill was made */
  MlirValue more;                       /* in an overlapped loop: this is not the first iteration */
  /* What overlapped products start from where blocks share tiles: it is not read, but names the registers. */
  MlirValue *kept;      /* of each product that runs on; owned */
  MlirOperation in_row; /* a product whose operands were waited for with those of the one before it */
  /* The ops of a block of the kernel, without its terminator: role.c, which stands above the other files. */
  void (*emit_block)(struct tw_role *r, MlirBlock old);
} tw_role_t;

static inline MlirValue tw_role_int(const tw_role_t *r, int64_t value) {
  return tw_const_int(&r->at, tw_i32(r->at.context), value);
}
/* The role's own value for one of the kernel. */
static inline MlirValue tw_role_value(const tw_role_t *r, MlirValue value) { return tw_map_value(&r->values, value); }

/* ---- role.c -------------------------------------------------------------------------------------- */

MlirBlock tw_emit_role(const tw_stage_plan_t *plan, bool producer, MlirLocation location);

/* ---- loops and branches: role_flow.c --------------------------------------------------------------- */

void tw_emit_for(tw_role_t *r, MlirOperation loop);
void tw_emit_while(tw_role_t *r, MlirOperation loop);
void tw_emit_if(tw_role_t *r, MlirOperation branch);

/* ---- what moves multibuffers: role_stages.c ----------------------------------------------------------------- */

/* In place of a copy. */
void tw_emit_copy(tw_role_t *r, MlirOperation copy);
/* Waits for what the op of the kernel is the first to read. */
void tw_emit_waits(tw_role_t *r, MlirOperation op);
/* Keeps the assembler from moving up a wait that other values were made in front of. */
void tw_emit_branch(tw_role_t *r, MlirOperation wait);
/* Gives back what the op of the kernel was the last to read. */
void tw_emit_releases(tw_role_t *r, MlirOperation op);
/* The same after a loop, if it `ran`, for what its products read that run on. */
void tw_emit_late_releases(tw_role_t *r, MlirOperation loop, MlirValue ran);
/* The state of each multibuffer after `trips` more iterations of the loop around its fills. */
void tw_skip_stages(tw_role_t *r, MlirValue trips);
/* At its end a producer waits until other blocks of the cluster need its stages no more. */
void tw_drain(tw_role_t *r);
/* Pointers to where the multibuffers stand that the loop or branch goes through. */
intptr_t tw_stage_states(tw_role_t *r, MlirOperation op, MlirValue **out);

/* ---- products that run on: role_mma.c ----------------------------------------------------------- */

/* Before all else: kernels whose blocks share tiles keep the registers of their sums. */
void tw_start_keeping(tw_role_t *r);
void tw_keep_sums(tw_role_t *r, MlirOperation op, MlirOperation made);
/* Pointers to the accumulators that loops within `op` start from. */
intptr_t tw_kept_sums(tw_role_t *r, MlirOperation op, MlirValue **out);
/* Has products start from what is not read, where they would start from zero; `inits` of the loop. */
void tw_start_unread(const tw_role_t *r, const tw_overlap_t *overlap, MlirValue *inits);
/* Whether the op is a wait that the role does not have. */
bool tw_emit_dropped_wait(tw_role_t *r, MlirOperation op);
/* Makes a product, or a wait, one that lets others run on. */
void tw_let_run_on(tw_role_t *r, MlirOperation op, MlirOperation made);
/* After the loop: waits for the last of them. */
void tw_finish_overlap(tw_role_t *r, const tw_overlap_t *overlap);

static inline size_t tw_most_states(const tw_role_t *r) {
  return 3 * TW_MAX_FILLS + (size_t)r->plan->overlaps.num_products;
}

#endif /* TILEWRIGHT_LOWERING_GPU_ROLES_ROLE_H */

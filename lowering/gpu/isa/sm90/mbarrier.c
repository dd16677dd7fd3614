/* mbarrier.c - rules: barriers that copies and warps signal, and others wait for
 *
 * Barriers are 8 bytes each in shared memory, made by one thread before the kernel's own code. Waits are
 * inline PTX: it reads and writes memory as far as LLVM knows, so nothing moves across. */
#include "lowering/gpu/emit/one_lane.h"
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/launch_record.h"

#include "tilewright/dialect.h"

enum { BARRIER_BYTES = TWG_BARRIER_BYTES, ALL_LANES = -1 };

static const MlirType nothing = {NULL};

static bool rule_barrier_wait(tw_emitter_t *e, MlirOperation op) {
  MlirBlock rest = tw_has_attr(op, "once") ? twg_begin_first_warp(e) : (MlirBlock){NULL};
  MlirValue operands[] = {twg_barrier_pointer(e, op, 0), twg_operand(e, op, 2).at[0]};
  twg_asm(e,
          "{ .reg .pred p;\nAGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1;\n@p bra DONE;\n"
          "bra AGAIN;\nDONE: }",
          "r,r", nothing, 2, operands, TW_PTX_FENCE);
  if (tw_has_attr(op, "gathered")) /* by threads, for the asynchronous proxy */
    twg_asm(e, "fence.proxy.async.shared::cta;", "", nothing, 0, NULL, TW_PTX_EFFECT);
  twg_end_first_warp(e, rest);
  return true;
}

static bool rule_barrier_arrive(tw_emitter_t *e, MlirOperation op) {
  enum { ENABLED = 2 };
  MlirValue pointer = twg_barrier_pointer(e, op, 0);
  if (tw_has_attr(op, "gathered")) {
    twg_asm(e, "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$0];", "r", nothing, 1, &pointer, TW_PTX_FENCE);
    return true;
  }
  bool everywhere = tw_has_attr(op, TW_MULTICAST);
  MlirValue one = e->is_alone  ? twg_const_int(e, e->i1, 1)
                  : everywhere ? twg_icmp(e, TW_ULT, e->lane, twg_const_i32(e, TW_MULTICAST_BLOCKS))
                               : twg_icmp(e, TW_EQ, e->lane, twg_const_i32(e, 0));
  if (mlirOperationGetNumOperands(op) > ENABLED)
    one = twg_binary(e, "llvm.and", one, twg_operand(e, op, ENABLED).at[0]);
  if (tw_has_attr(op, "together")) {
    /* The lanes read the stage as threads; TMA, which fills it next, is another proxy: without the fence the arrival
     * overtakes loads that the assembler has not waited for. */
    twg_asm(e, "fence.proxy.async.shared::cta;", "", nothing, 0, NULL, TW_PTX_EFFECT);
    twg_intrinsic(e, "llvm.nvvm.bar.warp.sync", nothing, 1, (MlirValue[]){twg_const_i32(e, ALL_LANES)}, TW_PTX_EFFECT);
  }
  MlirValue operands[] = {pointer, one, e->lane};
  if (everywhere) /* one lane for each block of the cluster */
    twg_asm(e, "{ .reg .b32 a;\nmapa.shared::cluster.u32 a, $0, $2;\n@$1 mbarrier.arrive.shared::cluster.b64 _, [a]; }",
            "r,b,r", nothing, 3, operands, TW_PTX_FENCE);
  else
    twg_asm(e, "@$1 mbarrier.arrive.shared::cta.b64 _, [$0];", "r,b", nothing, 2, operands, TW_PTX_FENCE);
  return true;
}

static bool rule_barrier_expect(tw_emitter_t *e, MlirOperation op) {
  MlirBlock rest = twg_begin_alone(e);
  MlirValue operands[] = {twg_barrier_pointer(e, op, 0), twg_const_i32(e, tw_attr_int(op, "bytes", 0))};
  twg_asm(e, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r", nothing, 2, operands, TW_PTX_FENCE);
  twg_end_alone(e, rest);
  return true;
}

typedef struct {
  tw_emitter_t *emitter;
  MlirValue first_thread; /* null before the first barriers */
} set_up_t;

static void find_first_thread(set_up_t *s) {
  tw_emitter_t *e = s->emitter;
  if (s->first_thread.ptr == NULL)
    s->first_thread = twg_icmp(e, TW_EQ, e->thread, twg_const_i32(e, 0));
}

static MlirWalkResult set_up(MlirOperation op, void *user) {
  set_up_t *s = user;
  if (!tw_op_is(op, TW_TILE_ALLOC_BARRIERS))
    return MlirWalkResultAdvance;
  find_first_thread(s);
  int64_t count = tw_barriers_type_count(mlirValueGetType(mlirOperationGetResult(op, 0)));
  for (int64_t i = 0; i < count; i++) {
    MlirValue operands[] = {twg_shared_at(s->emitter, tw_attr_int(op, "offset", 0) + i * BARRIER_BYTES),
                            twg_const_i32(s->emitter, tw_attr_int(op, "arrivals", 1)), s->first_thread};
    twg_asm(s->emitter, "@$2 mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,b", nothing, 3, operands, TW_PTX_SETS_UP);
  }
  return MlirWalkResultAdvance;
}

void twg_set_up_barriers(tw_emitter_t *e, MlirOperation kernel) {
  set_up_t s = {e, {NULL}};
  for (int i = 0; i < e->num_maps; i++) {
    find_first_thread(&s);
    MlirValue operands[] = {mlirBlockGetArgument(e->entry, i), s.first_thread};
    twg_asm(e, "@$1 prefetch.tensormap [$0];", "l,b", nothing, 2, operands, TW_PTX_SETS_UP);
  }
  mlirOperationWalk(kernel, set_up, &s, MlirWalkPreOrder);
  if (s.first_thread.ptr == NULL)
    return;
  twg_asm(e, "fence.mbarrier_init.release.cluster;", "", nothing, 0, NULL, TW_PTX_SETS_UP);
  if (tw_launch_persistent(e->kernel, 0) && tw_launch_cluster_blocks(e->kernel, 0) == TW_MULTICAST_BLOCKS)
    twg_asm(e, "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;", "", nothing, 0, NULL,
            TW_PTX_SETS_UP);
  else
    twg_barrier(e);
}

TWG_RULE(TW_TILE_ALLOC_BARRIERS, twg_rule_alloc)
TWG_RULE(TW_TILE_BARRIER_WAIT, rule_barrier_wait)
TWG_RULE(TW_TILE_BARRIER_ARRIVE, rule_barrier_arrive)
TWG_RULE(TW_TILE_BARRIER_EXPECT, rule_barrier_expect)

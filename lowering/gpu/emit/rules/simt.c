/* simt.c - the thread-level ops: positions, barrier, shared arrays
 *
 * In a SIMT kernel (attribute tile.simt) a scalar is one element a thread, which is what the emitter
 * makes of scalars anyway; only these ops know of threads. */
#include "lowering/gpu/emit/rules.h"
#include "lowering/launch_record.h"

#include <stdio.h>

static bool bind_special_register(tw_emitter_t *e, MlirOperation op, const char *family) {
  char name[64];
  snprintf(name, sizeof name, "nvvm.read.ptx.sreg.%s.%c", family, "xyz"[tw_attr_int(op, "axis", 0) % 3]);
  twg_set_scalar(e, op, 0, twg_op(e, name, e->i32, 0, NULL, 0, NULL));
  return true;
}

static bool rule_thread_id(tw_emitter_t *e, MlirOperation op) { return bind_special_register(e, op, "tid"); }

static bool rule_block_dim(tw_emitter_t *e, MlirOperation op) { return bind_special_register(e, op, "ntid"); }

static bool rule_sync_threads(tw_emitter_t *e, MlirOperation op) {
  (void)op;
  twg_barrier(e);
  return true;
}

/* Takes so many more bytes of shared memory; returns their offset. */
static int64_t take_shared(tw_emitter_t *e, int64_t bytes) {
  int64_t offset = (tw_launch_shared_bytes(e->kernel, 0) + 15) / 16 * 16;
  tw_launch_set_shared_bytes(e->kernel, (uint32_t)(offset + bytes));
  return offset;
}

static bool rule_shared_array(tw_emitter_t *e, MlirOperation op) {
  MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0));
  int rank = (int)tw_rank(type);
  int64_t stride = 1;
  tw_values_t array = twg_new_values(e, 1 + 2 * rank);
  for (int d = rank - 1; d >= 0; d--) {
    array.at[1 + d] = twg_const_int(e, e->i64, tw_extent(type, d));
    array.at[1 + rank + d] = twg_const_int(e, e->i64, stride);
    stride *= tw_extent(type, d);
  }
  array.at[0] = twg_shared_at(e, take_shared(e, stride * tw_bytes(type)));
  twg_set_result(e, op, 0, array);
  return true;
}

TWG_RULE(TW_TILE_THREAD_ID, rule_thread_id)
TWG_RULE(TW_TILE_BLOCK_DIM, rule_block_dim)
TWG_RULE(TW_TILE_SYNC_THREADS, rule_sync_threads)
TWG_RULE(TW_TILE_SHARED_ARRAY, rule_shared_array)

/* keep.c - tiles that a thread prepares once for several blocks
 *
 *   tags[i] = -1                                             when the thread takes blocks
 *   %kept = load tags[min(row, most - 1)] == (row, column)   where a block wants tile (row, column)
 *   scf.if not %kept { prepare it; tags[…] = (row, column) }
 *
 * A place in memory for each row of tiles, as many as fit, the last for all behind it. Blocks that a thread takes one
 * after the other mostly want the same column of the right operand: its panels are filled by the first of them. A tile
 * stays what it is while a launch runs if nothing writes to its array, nor to one that could share memory with it. */
#include "lowering/aliasing.h"
#include "lowering/cpu/cpu.h"

enum { MOST_BYTES = 1 << 20, MOST_PLACES = 64, LEAST_PLACES = 4, TAG_BYTES = 8, LINE = 64 };

typedef struct {
  MlirValue array;
  bool (*disjoint)(MlirValue, MlirValue);
  bool unwritten;
} writer_walk_t;

static MlirWalkResult look_at(MlirOperation op, void *user) {
  writer_walk_t *walk = user;
  if (tw_op_has(op, TW_ORDERS_ALL)) { /* somebody else may write, and tell */
    walk->unwritten = false;
  } else if (tw_op_has(op, TW_WRITES_ARRAY)) {
    MlirValue written = mlirOperationGetOperand(op, 0);
    walk->unwritten = mlirTypeIsAMemRef(mlirValueGetType(written)) && walk->disjoint(walk->array, written);
  }
  return walk->unwritten ? MlirWalkResultAdvance : MlirWalkResultInterrupt;
}

static bool is_apart(cpu_t *cx, MlirValue array, bool (*disjoint)(MlirValue, MlirValue)) {
  writer_walk_t walk = {array, disjoint, true};
  mlirOperationWalk(cx->func, look_at, &walk, MlirWalkPreOrder);
  return walk.unwritten;
}

/* Nothing is assumed of a launch where it would not do. */
static bool is_unwritten(cpu_t *cx, MlirValue array) {
  return is_apart(cx, array, tw_may_be_disjoint) && is_apart(cx, array, tw_assume_disjoint);
}

static bool is_of_the_launch(cpu_t *cx, MlirValue array) {
  return mlirValueIsABlockArgument(array) &&
         mlirOperationEqual(mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(array)), cx->func);
}

/* Memory for tiles, and their tags, behind all other scratch memory, of which nobody knows yet how much
 * there will be (cpu_place_kept). */
static MlirValue new_region(cpu_t *cx, int64_t places, int64_t bytes) {
  MlirValue region = cpu_address(cx, cx->scratch, cpu_int(cx, 8), cpu_index(1));
  cx->kept[cx->num_kept] = tw_def(region);
  cx->kept_bytes[cx->num_kept++] = bytes;
  MlirValue operands[] = {region, cpu_int_const(cx, cpu_int(cx, 8), -1), cpu_i64_const(cx, places * TAG_BYTES)};
  tw_attr_t attr = {"isVolatile", mlirBoolAttrGet(cx->context, 0)};
  tw_builder_t at = cpu_here(cx);
  tw_build(&at, "llvm.intr.memset",
           (tw_op_parts_t){.num_operands = 3, .operands = operands, .num_attrs = 1, .attrs = &attr});
  return region;
}

bool cpu_keep(cpu_t *cx, MlirValue tile, int64_t bytes, cpu_kept_t *out) {
  MlirOperation load = tw_def(tile);
  enum { ROW_AND_COLUMN = 2, BITS = 32 };
  int64_t places = MOST_BYTES / bytes < MOST_PLACES ? MOST_BYTES / bytes : MOST_PLACES;
  if (places < LEAST_PLACES || cx->num_kept == CPU_MOST_KEPT || !cx->scratch.ptr || mlirOperationIsNull(load) ||
      !tw_op_loads_tile(load) || mlirOperationGetNumOperands(load) != 1 + ROW_AND_COLUMN ||
      !is_of_the_launch(cx, mlirOperationGetOperand(load, 0)) || !is_unwritten(cx, mlirOperationGetOperand(load, 0)))
    return false;
  int64_t tags = (places * TAG_BYTES + LINE - 1) / LINE * LINE;
  MlirBlock saved = cpu_enter_depth(cx, 0);
  MlirValue region = new_region(cx, places, tags + places * bytes);
  cpu_leave_depth(cx, saved);
  MlirValue row = cpu_int_to_i64(cx, cpu_operand(cx, load, 1)), column = cpu_int_to_i64(cx, cpu_operand(cx, load, 2));
  MlirValue place = cpu_bin(cx, "arith.minui", row, cpu_i64_const(cx, places - 1));
  cpu_index_t at = {.base = place, .depth = cx->depth};
  MlirValue low = cpu_bin(cx, "arith.andi", column, cpu_i64_const(cx, UINT32_MAX));
  out->tag = cpu_bin(cx, "arith.ori", cpu_bin_i(cx, "arith.shli", row, BITS), low);
  out->at = cpu_address(cx, region, cpu_int(cx, 64), at);
  out->pointer = cpu_address(cx, region, cpu_int(cx, 8), cpu_index_plus(cpu_index_mul(cx, at, bytes), tags));
  MlirValue known = cpu_load(cx, out->at, cpu_int(cx, 64), TAG_BYTES);
  MlirValue before = cpu_cmpi(cx, CPU_SLT, row, cpu_i64_const(cx, 0)); /* as the first tags are */
  out->missing = cpu_bin(cx, "arith.ori", before, cpu_cmpi(cx, CPU_NE, known, out->tag));
  out->block = mlirBlockCreate(0, NULL, NULL);
  cpu_scope_push(cx, out->block);
  return true;
}

void cpu_kept(cpu_t *cx, cpu_kept_t *kept) {
  cpu_store(cx, kept->tag, kept->at, TAG_BYTES);
  cpu_op0(cx, "scf.yield", 0, NULL);
  cpu_scope_pop(cx);
  cpu_if(cx, kept->missing, kept->block, (MlirBlock){NULL}, 0, NULL);
}

/* --- the order of blocks ------------------------------------------------------------------------------------ */

/* Along which axis of the grid the columns of right operands run. */
typedef struct {
  bool along_x, other;
} columns_walk_t;

static MlirWalkResult look_at_columns(MlirOperation op, void *user) {
  enum { RIGHT = 1, COLUMN = 2 };
  columns_walk_t *walk = user;
  if (tw_op_has(op, TW_ORDERS_ALL) || (tw_op_has(op, TW_WRITES_ARRAY) && !tw_op_stores_tile(op)))
    walk->other = true; /* blocks may wait for those before */
  if (tw_op_is_product(op)) {
    MlirOperation load = tw_def(mlirOperationGetOperand(op, RIGHT));
    bool known = !mlirOperationIsNull(load) && tw_op_loads_tile(load) &&
                 mlirOperationGetNumOperands(load) == 1 + COLUMN &&
                 cpu_block_axis(mlirOperationGetOperand(load, COLUMN)) == 0;
    *(known ? &walk->along_x : &walk->other) = true;
  }
  return walk->other ? MlirWalkResultInterrupt : MlirWalkResultAdvance;
}

bool cpu_takes_y_first(cpu_t *cx) {
  columns_walk_t walk = {false, false};
  mlirOperationWalk(cx->func, look_at_columns, &walk, MlirWalkPreOrder);
  return walk.along_x && !walk.other;
}

/* --- where tiles lie ------------------------------------------------------------------------------------------ */

void cpu_place_kept(cpu_t *cx) {
  for (int i = 0; i < cx->num_kept; i++) {
    int32_t offset = (int32_t)((cx->scratch_peak + LINE - 1) / LINE * LINE);
    mlirOperationSetInherentAttributeByName(cx->kept[i], tw_str("rawConstantIndices"),
                                            mlirDenseI32ArrayGet(cx->context, 1, &offset));
    cx->scratch_peak = offset + cx->kept_bytes[i];
  }
}

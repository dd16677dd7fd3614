/* report.c - tile-report: remarks on what moves each tile and what computes each product
 *
 *   a copy by the engine   remark: moves 128x64xbf16 by <engine>, in 1 box; its lines leave the L2 cache first
 *   tile.async_copy        remark: moves 128x64xbf16 by cp.async, in pieces of up to 8 bytes (<why>)
 *   tile.load, tile.store  remark: moves 1x4096xf32 through registers, in pieces of up to 16 bytes
 *   the same, realigned    remark: moves 1x4096xbf16 through shared memory, in pieces of up to 16 bytes
 *   tile.async_gather      remark: reads 128x64xbf16 by cp.async, in pieces of up to 16 bytes
 *   tile.gather            remark: reads 4x4096xbf16, in pieces of up to 16 bytes
 *   a store by the engine  remark: moves 128x64xbf16 by <engine>, through shared memory
 *   tile.async_mma         remark: runs as <what its family says of it>
 *   tile.mma               remark: runs as mma.sync m16n8k16 on 8 warps
 *   {tile.latency}         remark: has a latency that is not used: ...
 *
 * Runs after tile-pipeline, when all of that is decided; changes nothing. Copies that were made of one load, and
 * products of one, are told once, by their location. */
#include "dialect/layouts.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/index_facts.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/machine/copy_engine.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/ir.h"
#include "lowering/launch_record.h"

#include "lowering/passes.h"
#include "tilewright/dialect.h"

static bool is_told(tw_ops_t *told, MlirOperation op) {
  MlirLocation here = mlirOperationGetLocation(op);
  for (int i = 0; i < told->count; i++)
    if (mlirLocationEqual(mlirOperationGetLocation(told->at[i]), here))
      return true;
  tw_ops_add(told, op);
  return false;
}

/* Bytes of one access of a thread to a tile that lies inside of its array. */
static int access_bytes(MlirOperation op, int rank, MlirType element) {
  int bytes = (tw_memory_bits(element) << tw_access_inner_vector_bits(op, rank)) / 8;
  return bytes ? bytes : 1;
}

/* What one stage of a buffer holds. */
static MlirType slot_type(MlirType buffer) {
  int64_t shape[TW_MAX_RANK];
  intptr_t rank = tw_buffer_type_rank(buffer) - 1;
  for (intptr_t d = 0; d < rank && d < TW_MAX_RANK; d++)
    shape[d] = tw_buffer_type_extent(buffer, d + 1);
  return tw_tile_type(tw_buffer_type_element(buffer), rank, shape);
}

/* Why copies are of less than 16 bytes where the array is the reason and not a narrow tile; or null. */
static const char *why_narrow(MlirOperation op, MlirType tile, int bytes) {
  int dim = tw_access_contiguous_dim(op, (int)tw_rank(tile));
  if (dim < 0)
    return "no stride of its array is 1";
  bool narrow_tile = tw_extent(tile, dim) * tw_memory_bits(tw_element(tile)) < TW_MAX_ACCESS_BITS;
  bool wide = 8 * bytes >= TW_MAX_ACCESS_BITS || narrow_tile;
  return wide ? NULL : "base and strides of its array are not known to be multiples of 16 bytes";
}

static const char *cache_hint(MlirOperation copy) {
  static const char *const hints[] = {[TW_EVICT_NORMAL] = "",
                                      [TW_EVICT_FIRST] =
                                          "; its lines leave the L2 cache first: this launch reads them once",
                                      [TW_EVICT_LAST] = "; its lines leave the L2 cache last"};
  return hints[tw_attr_int(copy, "cache", TW_EVICT_NORMAL)];
}

static void remark_copy(MlirOperation op, MlirType buffer) {
  MlirType type = slot_type(buffer);
  char tile[160];
  tw_engine_copy_t copy;
  tw_describe_tile(type, sizeof tile, tile);
  const char *why = tw_engine_plan(op, &copy);
  if (tw_op_has(op, TW_COPIES_BY_ENGINE)) {
    tw_op_remark(op, "moves %s by " TW_ENGINE_NAME ", in %d box%s%s", tile, 1 << copy.step_bits,
                 copy.step_bits ? "es" : "", cache_hint(op));
    return;
  }
  int bytes = access_bytes(op, (int)tw_rank(type), tw_element(type));
  const char *narrow = why_narrow(op, type, bytes);
  bool explain = tw_has_engine(op) && why != NULL;
  tw_op_remark(op, "moves %s by cp.async, in pieces of up to %d bytes%s%s%s%s%s", tile, bytes, narrow ? " (" : "",
               narrow ? narrow : "", narrow ? ")" : "", explain ? ", and not by " TW_ENGINE_NAME ": " : "",
               explain ? why : "");
}

static void remark_gather(MlirOperation op) {
  MlirType tile = mlirValueGetType(mlirOperationGetResult(op, 0));
  char text[160];
  int dim, bits = tw_gather_vector_bits(op, &dim);
  tw_spread_t spread;
  tw_describe_tile(tile, sizeof text, text);
  if (tw_gather_spread(op, &spread) && spread.vector > bits + spread.step)
    tw_op_remark(op, "reads %s, in pieces of up to %d bytes around its neighbours", text,
                 (tw_memory_bits(tw_element(tile)) << spread.vector) / 8);
  else if (bits > 0)
    tw_op_remark(op, "reads %s, in pieces of up to %d bytes", text, (tw_memory_bits(tw_element(tile)) << bits) / 8);
  else
    tw_op_remark(
        op, "reads %s element by element: %s", text,
        tw_gather_may_end_within_vector(op)
            ? "its mask or array may end within a vector; a bound that ct.assume_divisible_by takes for a multiple of "
              "one wins vectors back"
            : "its indices are not known to count up, from multiples of a vector on, along an axis of stride 1");
}

static void remark_gather_copy(MlirOperation op) {
  MlirType type = slot_type(mlirValueGetType(tw_copy_buffer(op)));
  char tile[160];
  int dim, bits = tw_gather_vector_bits(op, &dim);
  tw_describe_tile(type, sizeof tile, tile);
  tw_op_remark(op, "reads %s by cp.async, in pieces of up to %d bytes", tile,
               (tw_memory_bits(tw_element(type)) << bits) / 8);
}

/* Of one that no instruction takes, tile-select-mma has said so. */
static void tell_product(MlirOperation op, int num_warps) {
  tw_gpu_target_t target = tw_gpu_target_of(op);
  const tw_mma_family_t *family = tw_op_is_product(op) ? tw_mma_family_of(op) : tw_async_family(&target);
  char text[160] = "";
  if (family != NULL)
    family->describe(op, num_warps, sizeof text, text);
  if (text[0] != 0)
    tw_op_remark(op, "runs as %s", text);
}

static void remark_realigned(MlirOperation op, const char *tile) {
  tw_op_remark(op, "moves %s through shared memory, in pieces of up to %d bytes", tile, TW_REALIGNED_PIECE);
}

static void remark_store(MlirOperation op) {
  bool by_engine = tw_op_has(op, TW_COPIES_BY_ENGINE);
  MlirType tile = mlirValueGetType(by_engine ? mlirOperationGetOperand(op, 0) : tw_moved_tile(op));
  char text[160];
  if (!tw_is_tile(tile))
    return;
  tw_describe_tile(tile, sizeof text, text);
  if (by_engine)
    tw_op_remark(op, "moves %s by " TW_ENGINE_NAME ", through shared memory", text);
  else if (tw_has_attr(op, TW_REALIGNED))
    remark_realigned(op, text);
  else
    tw_op_remark(op, "moves %s from registers, in pieces of up to %d bytes", text,
                 access_bytes(op, (int)tw_rank(tile), tw_element(tile)));
}

/* Copies run as far ahead as the hint says; what goes through registers, and what is written, has no use for it. */
static void remark_latency(MlirOperation op) {
  bool writes = tw_stores_to_array(op);
  bool reads = tw_op_loads(op);
  if (tw_has_attr(op, TW_LATENCY) && (writes || reads))
    tw_op_remark(op, "has a latency that is not used: %s",
                 writes ? "nothing waits for what it writes" : "its tile is not copied ahead, in a loop");
}

static int num_warps_of(MlirOperation op) { return (int)tw_num_warps(op, 1); }

static MlirWalkResult tell(MlirOperation op, void *user) {
  remark_latency(op);
  bool load = tw_op_loads_tile(op), copy = tw_op_loads_by_engine(op) || tw_op_copies_tile(op);
  if (tw_op_gathers(op) && tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0))) && !is_told(user, op))
    remark_gather(op);
  if (tw_op_copies_elements(op) && !is_told(user, op))
    remark_gather_copy(op);
  if ((tw_op_is_async_product(op) || tw_op_is_product(op)) && !is_told(user, op))
    tell_product(op, num_warps_of(op));
  if ((tw_op_stores_tile(op) || tw_op_stores_by_engine(op)) && !is_told(user, op))
    remark_store(op);
  if ((!copy && !load) || (load && !tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0)))) || is_told(user, op))
    return MlirWalkResultAdvance;
  if (load) {
    char text[160];
    MlirType tile = mlirValueGetType(mlirOperationGetResult(op, 0));
    tw_describe_tile(tile, sizeof text, text);
    if (tw_has_attr(op, TW_REALIGNED))
      remark_realigned(op, text);
    else
      tw_op_remark(op, "moves %s through registers, in pieces of up to %d bytes", text,
                   access_bytes(op, (int)tw_rank(tile), tw_element(tile)));
    return MlirWalkResultAdvance;
  }
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    if (tw_type_is_buffer(mlirValueGetType(mlirOperationGetOperand(op, i))))
      remark_copy(op, mlirValueGetType(mlirOperationGetOperand(op, i)));
  return MlirWalkResultAdvance;
}

static bool report_engines(MlirOperation func) {
  tw_ops_t told = {NULL, 0};
  if (tw_has_attr(func, "tile.kernel") && !tw_has_attr(func, "tile.simt"))
    mlirOperationWalk(func, tell, &told, MlirWalkPreOrder);
  tw_ops_free(&told);
  return true;
}

/* ---- registers ------------------------------------------------------------------------------------ */

/* So many times what a thread may have is no matter of spills. */
enum { ABSURD = 4 };

typedef struct {
  MlirOperation op;
  MlirType tile;
  int64_t words;
} largest_t;

/* Ops whose results are known without registers. */
static bool is_free(MlirOperation op) {
  return tw_op_form(op) == TW_FORM_SOURCE || tw_op_is(op, TW_TILE_BROADCAST) || mlirOperationGetNumRegions(op) > 0;
}

static void measure_tile(largest_t *largest, MlirOperation op, MlirType tile) {
  tw_layout_t layout;
  if (!tw_is_tile(tile) || !tw_layout_of_type(tile, &layout))
    return;
  int64_t words = (int64_t)tw_layout_count(&layout, TW_REGISTER) * tw_memory_bits(tw_element(tile)) / 32;
  if (words > largest->words)
    *largest = (largest_t){op, tile, words};
}

static MlirWalkResult measure(MlirOperation op, void *user) {
  for (intptr_t i = 0; !is_free(op) && i < mlirOperationGetNumResults(op); i++)
    measure_tile(user, op, mlirValueGetType(mlirOperationGetResult(op, i)));
  return MlirWalkResultAdvance;
}

/* A constant takes a register at a time when it is stored, but as many instructions as other tiles. */
static MlirWalkResult measure_stored(MlirOperation op, void *user) {
  if (tw_op_stores_tile(op))
    measure_tile(user, op, mlirValueGetType(tw_moved_tile(op)));
  return MlirWalkResultAdvance;
}

static bool report_registers(MlirOperation func) {
  int most = tw_gpu_target_of(func).machine->thread_registers;
  largest_t largest = {.words = most}, stored = {.words = ABSURD * most};
  char tile[160];
  mlirOperationWalk(func, measure, &largest, MlirWalkPreOrder);
  mlirOperationWalk(func, measure_stored, &stored, MlirWalkPreOrder);
  if (stored.words > ABSURD * most && largest.words <= ABSURD * most)
    largest = stored;
  if (largest.words <= most)
    return true;
  tw_describe_tile(largest.tile, sizeof tile, tile);
  static const char text[] = "takes %lld registers of each thread for its tile of %s; there are %d: use smaller tiles";
  if (largest.words > ABSURD * most)
    tw_op_does_not_fit(largest.op, TW_REGISTERS, text, (long long)largest.words, tile, most);
  else
    tw_op_remark(largest.op, text, (long long)largest.words, tile, most);
  return largest.words <= ABSURD * most;
}

bool tw_run_report(MlirOperation func) { return report_engines(func) && report_registers(func); }

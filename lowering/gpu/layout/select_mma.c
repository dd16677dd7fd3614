/* select_mma.c - tile-select-mma: selects the products that warpgroups compute from shared memory
 *
 * Before (no layouts yet):
 *
 *   %k = tile.load %K[%j, %c0] : ... -> tensor<64x128xbf16>
 *   %t = tile.permute %k [1, 0] : tensor<64x128xbf16>
 *   %s = tile.mma %q, %t, %zero : tensor<64x128xbf16>, tensor<128x64xbf16>, tensor<64x64xf32>
 *
 * After: the product is marked, with what the later passes need to know of its operands.
 *
 *   %s = tile.mma %q, %t, %zero {tile.family = "wgmma", tile.places = "ss", tile.transposed_rhs} : ...
 *
 * A product qualifies on a target with wgmma when there is an instruction for its dtypes, the block's
 * warps can share it out, and operands have lines of 32 bytes or more. An operand is read where it is loaded
 * to if that has the form that the instruction reads ("s"); else rhs is written there from registers
 * ("w"), and lhs stays in them ("r"), unless it would have to be transposed. So does a lhs that a loop
 * does not change, where its products would keep shared memory busy and registers suffice. Everything that products
 * read must fit into shared memory, what is loaded twice. Why a product does not qualify is a remark.
 *
 * Of 8-bit floats the tensor core sums up in fewer bits than float32 has. So only TW_WGMMA_PROMOTION of k
 * are summed there, and these sums in float32, unless the kernel has the hint fp8_fast_accum. */
#include "lowering/gpu/layout/select_mma.h"
#include "dialect/layouts.h"
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/isa/sm90/wgmma.h"
#include "lowering/gpu/machine/budget.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/ir.h"
#include "lowering/launch_record.h"
#include "lowering/layout/memory.h"
#include "lowering/loops.h"
#include "lowering/passes.h"

enum { STAGES = 2, WORD_BITS = 32, LANES = TW_WARP_LANES };

typedef struct {
  const void *op, *loop; /* a load for products, and the loop that it is in (null: none) */
  int64_t bytes;
} wanted_t;

typedef struct {
  MlirOperation func;
  tw_gpu_target_t target;
  int num_warps;
  tw_ops_t products;
  wanted_t *loads; /* owned */
  int num_loads;
  int64_t written; /* bytes of operands that are written */
  bool any;
} selector_t;

/* Shared memory that the buffers of all products want: those outside of loops beside those of the loop that wants
 * most, for loops can share their bytes. */
static int64_t bytes_wanted(const selector_t *s) {
  int64_t outside = 0, most = 0;
  for (int i = 0; i < s->num_loads; i++) {
    int64_t inside = 0;
    for (int j = 0; j < s->num_loads; j++)
      if (s->loads[j].loop == s->loads[i].loop)
        inside += s->loads[j].bytes;
    if (s->loads[i].loop == NULL)
      outside = inside;
    else if (inside * STAGES > most)
      most = inside * STAGES;
  }
  return outside + most + s->written;
}

static void note_load(selector_t *s, MlirOperation load) {
  MlirType type = mlirValueGetType(mlirOperationGetResult(load, 0));
  for (int i = 0; i < s->num_loads; i++)
    if (s->loads[i].op == load.ptr)
      return;
  s->loads = tw_room(s->loads, (size_t)s->num_loads, sizeof *s->loads);
  s->loads[s->num_loads++] =
      (wanted_t){load.ptr, tw_loop_around(load), tw_count(type) * tw_memory_bits(tw_element(type)) / 8};
}

/* Whether the result goes into the left operand of another product: each warpgroup that computes a part of that one
 * wants whole rows, in its registers. */
static bool feeds_product(MlirOperation mma) {
  MlirBlock block = mlirOperationGetBlock(mma);
  bool feeds = false;
  for (MlirOperation op = mlirOperationGetNextInBlock(mma); !feeds && !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op)) {
    tw_slice_t slice = {.block = block};
    if (!tw_op_is(op, TW_TILE_MMA))
      continue;
    tw_slice_add(&slice, mlirOperationGetOperand(op, 0));
    feeds = tw_slice_has(&slice, mma);
    tw_slice_free(&slice);
  }
  return feeds;
}

static const char *why_not(const selector_t *s, MlirOperation mma) {
  MlirType lhs = mlirValueGetType(mlirOperationGetOperand(mma, 0)),
           acc = mlirValueGetType(mlirOperationGetOperand(mma, 2));
  tw_wgmma_kind_t kind;
  tw_wgmma_split_t split;
  bool transposed;
  if (!tw_wgmma_kind_of_mma(mma, &kind))
    return "it has no instruction for its dtypes";
  if (tw_rank(acc) != 2 || tw_extent(lhs, 1) < kind.k)
    return "it is batched, or k is below 32 bytes";
  if (!tw_wgmma_split(tw_extent(acc, 0), tw_extent(acc, 1), s->num_warps, &split) ||
      (split.same > 1 && !feeds_product(mma)))
    return "its rows are no multiple of 64, or its warps cannot share it";
  if (tw_wgmma_find_place(mma, 1, &transposed) == TW_WGMMA_NONE)
    return "its right operand has no lines of 32 bytes";
  return bytes_wanted(s) > s->target.shared_bytes ? "its operands do not fit into shared memory twice" : NULL;
}

/* ---- left operands that stay in registers -------------------------------------------------------------- */

/* Whether the product reads the same left operand in each iteration of its loop, which is loaded before it. */
static bool keeps_lhs(MlirOperation mma) {
  bool transposed;
  const void *loop = tw_loop_around(mma);
  return loop != NULL && !tw_wgmma_promotes(mma) && tw_wgmma_find_place(mma, 0, &transposed) == TW_WGMMA_SHARED &&
         !transposed && tw_loop_around(tw_load_behind(mlirOperationGetOperand(mma, 0))) != loop;
}

/* Columns of one instruction. */
static int64_t columns(const selector_t *s, MlirOperation mma) {
  tw_wgmma_split_t split = {.n = 1};
  int64_t m = tw_extent(mlirValueGetType(mlirOperationGetOperand(mma, 2)), 0),
          n = tw_extent(mlirValueGetType(mlirOperationGetOperand(mma, 2)), 1);
  tw_wgmma_split(m, n, s->num_warps, &split);
  return n / split.n;
}

/* Whether it has so few columns that shared memory would be as busy as the Tensor Core, and needs not be. */
static bool is_narrow(const selector_t *s, MlirOperation mma) {
  return keeps_lhs(mma) && columns(s, mma) <= TW_WGMMA_NARROW;
}

/* Words that a thread holds of a product: of the sums, and of a left operand that is no buffer. */
static int64_t words_of(const selector_t *s, MlirOperation mma) {
  MlirType lhs = mlirValueGetType(mlirOperationGetOperand(mma, 0)),
           acc = mlirValueGetType(mlirOperationGetOperand(mma, 2));
  bool transposed, held = tw_wgmma_find_place(mma, 0, &transposed) == TW_WGMMA_REGISTERS || keeps_lhs(mma);
  int64_t row = columns(s, mma) * tw_bits(acc) + (held ? tw_extent(lhs, 1) * tw_bits(lhs) : 0);
  return row * TW_WGMMA_ROWS / (WORD_BITS * LANES * TW_WGMMA_WARPS);
}

/* Of 64 columns an instruction multiplies as long as shared memory takes to bring both operands: nothing is left for
 * copies, nor for the other warpgroup. So where a loop has several such products (the gradients of attention: scores,
 * and what comes back through the weights), what stays the same stays in registers, if these suffice for it beside all
 * sums of the loop and computed operands. Beside one such product the Tensor Core recovers: 1 to 3 %. */
static bool stays_in_registers(const selector_t *s, MlirOperation mma) {
  enum { SEVERAL = 2 };
  int64_t words = 0;
  int narrow = 0;
  for (int i = 0; i < s->products.count; i++) {
    MlirOperation other = s->products.at[i];
    if (tw_loop_around(other) != tw_loop_around(mma) ||
        tw_rank(mlirValueGetType(mlirOperationGetResult(other, 0))) != 2)
      continue;
    words += words_of(s, other);
    narrow += is_narrow(s, other);
  }
  return is_narrow(s, mma) && narrow >= SEVERAL && words <= tw_register_budget(mma, TW_BUDGET_HELD_OPERANDS);
}

/* ---- the mark ------------------------------------------------------------------------------------------ */

/* Says how the product is computed, where that is not plain. */
static void explain(MlirOperation mma, const tw_wgmma_place_t place[2]) {
  static const char *const sides[] = {"left", "right"};
  for (int i = 0; i < 2; i++) {
    if (place[i] != TW_WGMMA_WRITTEN)
      continue;
    tw_wgmma_written_t written = tw_wgmma_written(mma, i, 1);
    if (written.source != written.line)
      tw_op_remark(mma,
                   "transposes its %s operand through registers in each iteration: for this dtype wgmma reads "
                   "what is contiguous along k only",
                   sides[i]);
    else
      tw_op_remark(mma, "writes its %s operand to shared memory: it is computed", sides[i]);
  }
  if (tw_has_attr(mma, TW_MMA_PROMOTED))
    tw_op_remark(mma,
                 "adds up in float32 what the tensor core sums over %d of k; the hint fp8_fast_accum leaves it all "
                 "to the tensor core",
                 TW_WGMMA_PROMOTION);
}

static void mark(selector_t *s, MlirOperation mma) {
  static const char *const transposed_names[] = {TW_MMA_TRANSPOSED_LHS, TW_MMA_TRANSPOSED_RHS};
  MlirContext context = mlirOperationGetContext(mma);
  tw_wgmma_place_t place[2];
  char letters[3] = "";
  for (int i = 0; i < 2; i++) {
    bool transposed;
    place[i] = tw_wgmma_find_place(mma, i, &transposed);
    letters[i] = (char)place[i];
    if (transposed)
      tw_set_attr(mma, transposed_names[i], mlirUnitAttrGet(context));
  }
  if (place[0] == TW_WGMMA_SHARED && stays_in_registers(s, mma)) {
    letters[0] = (char)(place[0] = TW_WGMMA_REGISTERS);
    tw_op_remark(mma,
                 "keeps its left operand in registers, which its loop does not change: with few columns, reading it "
                 "each time would take as long as the product");
  }
  tw_set_attr(mma, TW_MMA_FAMILY, mlirStringAttrGet(context, tw_str("wgmma")));
  tw_set_attr(mma, TW_MMA_PLACES, mlirStringAttrGet(context, tw_str(letters)));
  if (tw_wgmma_promotes(mma))
    tw_set_int(mma, TW_MMA_PROMOTED, tw_i32(context), TW_WGMMA_PROMOTION);
  explain(mma, place);
  s->any = true;
}

static MlirWalkResult collect(MlirOperation op, void *user) {
  selector_t *s = user;
  if (!tw_op_is(op, TW_TILE_MMA))
    return MlirWalkResultAdvance;
  tw_ops_add(&s->products, op);
  for (int i = 0; i < 2; i++) {
    MlirType type = mlirValueGetType(mlirOperationGetOperand(op, i));
    MlirOperation load = tw_load_behind(mlirOperationGetOperand(op, i)), loads[TW_MAX_LOADS_BEHIND];
    bool transposed;
    if (!mlirOperationIsNull(load))
      note_load(s, load);
    for (int l = tw_loads_behind(op, i, loads); l > 0; l--)
      note_load(s, loads[l - 1]);
    if (tw_rank(type) == 2 && tw_wgmma_find_place(op, i, &transposed) == TW_WGMMA_WRITTEN)
      s->written += tw_count(type) * tw_memory_bits(tw_element(type)) / 8;
  }
  return MlirWalkResultAdvance;
}

static bool select_async(MlirOperation func) {
  selector_t s = {.func = func, .target = tw_gpu_target_of(func)};
  if (!tw_gpu_has(&s.target, TW_GPU_WGMMA) || tw_has_attr(func, "tile.no_async_mma"))
    return true;
  s.num_warps = (int)tw_num_warps(func, 0);
  if (s.num_warps == 0)
    s.num_warps = tw_mma_num_warps(func);
  mlirOperationWalk(func, collect, &s, MlirWalkPreOrder);
  for (int i = 0; i < s.products.count; i++) {
    const char *reason = why_not(&s, s.products.at[i]);
    if (reason)
      tw_op_remark(s.products.at[i], "is not a wgmma: %s", reason);
    else
      mark(&s, s.products.at[i]);
  }
  tw_ops_free(&s.products);
  free(s.loads);
  if (s.any)
    tw_set_attr(func, TW_WGMMA, mlirUnitAttrGet(mlirOperationGetContext(func)));
  return true;
}

bool tw_run_select_mma(MlirOperation func) {
  return tw_swap_operands(func) && select_async(func) && tw_widen_mma(func);
}

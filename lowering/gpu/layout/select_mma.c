/* select_mma.c - tile-select-mma: gives products to the asynchronous family of the target
 *
 * Before (no layouts yet):
 *
 *   %k = tile.load %K[%j, %c0] : ... -> tensor<64x128xbf16>
 *   %t = tile.permute %k [1, 0] : tensor<64x128xbf16>
 *   %s = tile.mma %q, %t, %zero : tensor<64x128xbf16>, tensor<128x64xbf16>, tensor<64x64xf32>
 *
 * After: the product is marked, with what the later passes need to know of its operands.
 *
 *   %s = tile.mma %q, %t, %zero {tile.family = <its name>, tile.places = "ss", tile.transposed_rhs} : ...
 *
 * Which products qualify, and where their operands lie, is the family's to say (machine/mma_family.h): in the buffer
 * that one is loaded into ("s"), in a buffer that registers write ("w"), in registers ("r"). A lhs that a loop does not
 * change stays in registers, too, where its products would keep shared memory busy and registers suffice. Everything
 * that products read must fit into shared memory, what is loaded again and again twice: tile-plan-block asks here first
 * whether they would in steps of k, and tile-strip-mine makes the steps. Why a product does not qualify is a remark.
 *
 * Scores of few rows and columns, which a product with more columns reads, are too small for all groups of warps. They
 * share the columns in parts of half the width then (tile.narrow_groups), where k is deep and the right operand can be
 * cut so: its columns are lines of their own. Else groups compute the same.
 *
 * Where an instruction keeps fewer bits of a sum than float32 has, it sums up so much of k as the family says
 * (tile.promoted), and these sums are added up in float32. */
#include "lowering/gpu/layout/select_mma.h"
#include "dialect/layouts.h"
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/machine/budget.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/ir.h"
#include "lowering/launch_record.h"
#include "lowering/layout/memory.h"
#include "lowering/loops.h"
#include "lowering/passes.h"

enum { STAGES = 2, WORD_BITS = 32, LANES = TW_WARP_LANES };

typedef struct {
  const void *op, *loop; /* a load for products, and the loop that it is done again with (null: none) */
  int64_t bytes;
  bool once; /* in a loop that runs once */
} wanted_t;

typedef struct {
  MlirOperation func;
  tw_gpu_target_t target;
  const tw_mma_family_t *family;
  const tw_async_mma_t *async; /* what it is asked */
  int num_warps;
  tw_ops_t products;
  wanted_t *loads; /* owned */
  int num_loads;
  int64_t written; /* bytes of operands that are written */
  int64_t step;    /* bytes of k that a product takes at a time; 0: all */
  tw_has_steps_t has_steps;
  bool no_steps; /* an operand is not loaded beside its product and for it alone */
  bool narrow;   /* groups of warps share few columns, where they would compute the same */
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

static int64_t bytes_of(MlirType tile) { return tw_count(tile) * tw_memory_bits(tw_element(tile)) / 8; }

/* In how many steps the product is done; one that has none is done in one, beside others. */
static int64_t steps_of(const selector_t *s, MlirOperation mma) {
  MlirType lhs = mlirValueGetType(mlirOperationGetOperand(mma, 0));
  int64_t bytes = tw_extent(lhs, tw_rank(lhs) - 1) * tw_memory_bits(tw_element(lhs)) / 8;
  return s->step > 0 && bytes > s->step && s->has_steps(mma, s->step) ? bytes / s->step : 1;
}

static void note_load(selector_t *s, MlirOperation load, MlirOperation mma) {
  MlirType type = mlirValueGetType(mlirOperationGetResult(load, 0));
  int64_t steps = steps_of(s, mma);
  s->no_steps |= steps > 1 && tw_repeating_loop(load) != tw_repeating_loop(mma);
  for (int i = 0; i < s->num_loads; i++)
    if (s->loads[i].op == load.ptr) {
      s->no_steps |= steps > 1;
      return;
    }
  s->loads = tw_room(s->loads, (size_t)s->num_loads, sizeof *s->loads);
  const void *loop = tw_repeating_loop(load);
  int64_t bytes = bytes_of(type) / steps * (steps > 1 && loop == NULL ? STAGES : 1);
  s->loads[s->num_loads++] = (wanted_t){load.ptr, loop, bytes, loop != tw_loop_around(load)};
}

static tw_mma_split_t split_as(const selector_t *s, MlirOperation mma, bool narrow) {
  MlirType acc = mlirValueGetType(mlirOperationGetOperand(mma, 2));
  tw_mma_split_t split = {.n = 1};
  (void)s->async->split(tw_extent(acc, 0), tw_extent(acc, 1), narrow, s->num_warps, &split);
  return split;
}

/* Whether groups of warps share the product in narrow parts, so that fewer compute the same. */
static bool is_shared_narrowly(const selector_t *s, MlirOperation mma) {
  return s->narrow && tw_rank(mlirValueGetType(mlirOperationGetOperand(mma, 2))) == 2 &&
         split_as(s, mma, true).n > split_as(s, mma, false).n;
}

static tw_mma_split_t split_of(const selector_t *s, MlirOperation mma) {
  return split_as(s, mma, is_shared_narrowly(s, mma));
}

static const char *why_not(const selector_t *s, MlirOperation mma) {
  const char *reason = s->family->why_not(mma, s->num_warps);
  if (reason != NULL)
    return reason;
  if (split_as(s, mma, false).same > 1 && !tw_feeds_product(mma))
    return "its warps cannot share it: some would compute the same";
  return bytes_wanted(s) > s->target.shared_bytes ? "its operands do not fit into shared memory twice" : NULL;
}

/* ---- left operands that stay in registers -------------------------------------------------------------- */

/* Whether the product reads the same left operand in each iteration of its loop, which is loaded before it. */
static bool keeps_lhs(const selector_t *s, MlirOperation mma) {
  bool transposed;
  const void *loop = tw_loop_around(mma);
  return loop != NULL && s->async->promotion(mma) == 0 && s->async->place(mma, 0, &transposed) == TW_PLACE_SHARED &&
         !transposed && tw_loop_around(tw_load_behind(mlirOperationGetOperand(mma, 0))) != loop;
}

/* Columns of one instruction. */
static int64_t columns(const selector_t *s, MlirOperation mma) {
  return tw_extent(mlirValueGetType(mlirOperationGetOperand(mma, 2)), 1) / split_of(s, mma).n;
}

/* Whether it has so few columns that shared memory would be as busy as the Tensor Core, and needs not be. */
static bool is_narrow(const selector_t *s, MlirOperation mma) {
  return keeps_lhs(s, mma) && columns(s, mma) <= s->async->narrow;
}

/* Words that a thread holds of a product: of the sums, and of a left operand that is no buffer. */
static int64_t words_of(const selector_t *s, MlirOperation mma) {
  MlirType lhs = mlirValueGetType(mlirOperationGetOperand(mma, 0)),
           acc = mlirValueGetType(mlirOperationGetOperand(mma, 2));
  bool transposed, held = s->async->place(mma, 0, &transposed) == TW_PLACE_REGISTERS || keeps_lhs(s, mma);
  int64_t row = columns(s, mma) * tw_bits(acc) + (held ? tw_extent(lhs, 1) * tw_bits(lhs) : 0);
  return row * s->async->rows / ((int64_t)WORD_BITS * LANES * s->async->warps);
}

/* Of few columns an instruction multiplies as long as shared memory takes to bring both operands: nothing is left for
 * copies, nor for the other warpgroup. So where a loop has several such products (the gradients of attention: scores,
 * and what comes back through the weights), what stays the same stays in registers, if these suffice for it beside all
 * sums of the loop and computed operands. Beside one such product the Tensor Core recovers
 * (docs/design/measurements.md). */
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

/* Whether the left operand is computed before the loop of its product, which does not change it: then it is written to
 * shared memory once, as if it had been loaded. Registers that wait there would make room for nothing else. */
static bool is_written_once(const selector_t *s, MlirOperation mma) {
  MlirValue value = mlirOperationGetOperand(mma, 0);
  MlirOperation loop = tw_enclosing_loop(mma);
  bool looped = tw_loop_around(mma) != NULL && !mlirOperationIsNull(loop);
  return looped && !tw_defined_in(value, mlirOperationGetBlock(mma)) && !tw_defined_in(value, tw_loop_body(loop)) &&
         mlirOperationIsNull(tw_load_behind(value)) && s->async->promotion(mma) == 0 &&
         columns(s, mma) > s->async->narrow && s->async->reads_written_lhs(mma) &&
         bytes_wanted(s) + bytes_of(mlirValueGetType(value)) <= s->target.shared_bytes;
}

/* ---- the mark ------------------------------------------------------------------------------------------ */

/* Says how the product is computed, where that is not plain. */
static void explain(const selector_t *s, MlirOperation mma, const tw_mma_place_t place[2]) {
  static const char *const sides[] = {"left", "right"};
  for (int i = 0; i < 2; i++) {
    if (place[i] != TW_PLACE_WRITTEN)
      continue;
    if (i == 0 && !tw_defined_in(mlirOperationGetOperand(mma, 0), mlirOperationGetBlock(mma)))
      tw_op_remark(mma, "writes its left operand to shared memory once: it is computed before the loop");
    else if (s->async->written(mma, i, 1).transposes)
      tw_op_remark(mma,
                   "transposes its %s operand through registers in each iteration: for this dtype %s reads "
                   "what is contiguous along k only",
                   sides[i], s->family->name);
    else
      tw_op_remark(mma, "writes its %s operand to shared memory: it is computed", sides[i]);
  }
  if (tw_has_attr(mma, TW_MMA_PROMOTED))
    tw_op_remark(mma,
                 "adds up in float32 what the tensor core sums over %d of k; the hint fp8_fast_accum, or use_fast_acc "
                 "of ct.mma, leaves it all to the tensor core",
                 s->async->promotion(mma));
}

static void mark(selector_t *s, MlirOperation mma) {
  static const char *const transposed_names[] = {TW_MMA_TRANSPOSED_LHS, TW_MMA_TRANSPOSED_RHS};
  MlirContext context = mlirOperationGetContext(mma);
  tw_mma_place_t place[2];
  char letters[3] = "";
  for (int i = 0; i < 2; i++) {
    bool transposed;
    place[i] = s->async->place(mma, i, &transposed);
    letters[i] = (char)place[i];
    if (transposed)
      tw_set_attr(mma, transposed_names[i], mlirUnitAttrGet(context));
  }
  if (place[0] == TW_PLACE_SHARED && stays_in_registers(s, mma)) {
    letters[0] = (char)(place[0] = TW_PLACE_REGISTERS);
    tw_op_remark(mma,
                 "keeps its left operand in registers, which its loop does not change: with few columns, reading it "
                 "each time would take as long as the product");
  }
  if (place[0] == TW_PLACE_REGISTERS && is_written_once(s, mma)) {
    letters[0] = (char)(place[0] = TW_PLACE_WRITTEN);
    s->written += bytes_of(mlirValueGetType(mlirOperationGetOperand(mma, 0)));
  }
  tw_set_attr(mma, TW_MMA_FAMILY, mlirStringAttrGet(context, tw_str(s->family->name)));
  tw_set_attr(mma, TW_MMA_PLACES, mlirStringAttrGet(context, tw_str(letters)));
  if (place[0] == TW_PLACE_REGISTERS && s->async->pairs_rows && s->async->pairs_rows(mma))
    tw_set_attr(mma, TW_MMA_PAIRED_ROWS, mlirUnitAttrGet(context));
  if (is_shared_narrowly(s, mma))
    tw_set_attr(mma, TW_MMA_NARROW_GROUPS, mlirUnitAttrGet(context));
  if (s->async->promotion(mma) > 0)
    tw_set_int(mma, TW_MMA_PROMOTED, tw_i32(context), s->async->promotion(mma));
  explain(s, mma, place);
  s->any = true;
}

static MlirWalkResult collect(MlirOperation op, void *user) {
  selector_t *s = user;
  if (!tw_op_is_product(op))
    return MlirWalkResultAdvance;
  tw_ops_add(&s->products, op);
  for (int i = 0; i < 2; i++) {
    MlirType type = mlirValueGetType(mlirOperationGetOperand(op, i));
    MlirOperation load = tw_load_behind(mlirOperationGetOperand(op, i));
    tw_ops_t loads = tw_loads_behind(op, i);
    bool transposed;
    if (!mlirOperationIsNull(load))
      note_load(s, load, op);
    for (int l = loads.count; l > 0; l--)
      if (!mlirOperationEqual(loads.at[l - 1], load))
        note_load(s, loads.at[l - 1], op);
    tw_ops_free(&loads);
    if (tw_rank(type) == 2 && s->async->place(op, i, &transposed) == TW_PLACE_WRITTEN)
      s->written += bytes_of(type) / steps_of(s, op);
  }
  return MlirWalkResultAdvance;
}

/* Whether the program asks for this family, of which a product is then not computed otherwise. */
static bool is_asked_for(const selector_t *s) { return tw_str_is(tw_hint_family(s->func), s->family->name); }

static bool refuse_family(MlirOperation product, MlirStringRef family, const char *reason) {
  tw_op_does_not_fit(product, TW_REFUSED_HINT, "is asked to be of the family %.*s by the hint family: %s",
                     (int)family.length, family.data, reason);
  return false;
}

/* The family that the hint names must be one of the target's, and take each product. */
static bool check_family(MlirOperation func) {
  MlirStringRef wanted = tw_hint_family(func);
  tw_ops_t products = tw_ops_in(func, tw_op_is_product, MlirWalkPreOrder);
  bool good = true;
  for (int i = 0; wanted.length > 0 && good && i < products.count; i++) {
    const char *found = tw_mma_family_of(products.at[i])->name;
    if (!tw_str_is(wanted, found))
      good = refuse_family(products.at[i], wanted, "the target, or its dtypes, have no such instruction");
  }
  tw_ops_free(&products);
  return good;
}

/* Whether products that groups of warps would repeat are shared in narrow parts. All of them can be: one that starts
 * from the sums of another has them where that one leaves them. And they are deep: what is made of the parts goes
 * through shared memory to all groups, which takes as long as a shallow product. */
static bool shares_narrowly(const selector_t *s) {
  enum { DEEP = 256 }; /* elements of k, of 16 bits */
  int64_t bytes = 0;
  for (int i = 0; i < s->products.count; i++) {
    MlirOperation mma = s->products.at[i];
    MlirType lhs = mlirValueGetType(mlirOperationGetOperand(mma, 0));
    if (s->family->why_not(mma, s->num_warps) != NULL || split_as(s, mma, false).same == 1)
      continue;
    if (!s->async->has_columns_apart(mma))
      return false;
    bytes += tw_extent(lhs, 1) * tw_memory_bits(tw_element(lhs)) / 8;
  }
  return bytes >= 2 * DEEP;
}

/* The products of the function, and what they read; false where none may be asynchronous. */
static bool open_selector(selector_t *s, MlirOperation func, int num_warps, int64_t step, tw_has_steps_t has_steps) {
  *s = (selector_t){
      .func = func, .target = tw_gpu_target_of(func), .num_warps = num_warps, .step = step, .has_steps = has_steps};
  s->family = tw_async_family(&s->target);
  if (s->family == NULL || tw_has_attr(func, TW_NO_ASYNC_MMA))
    return false;
  if (tw_hint_family(func).length > 0 && !is_asked_for(s))
    return false;
  s->async = s->family->async;
  mlirOperationWalk(func, collect, s, MlirWalkPreOrder);
  s->narrow = shares_narrowly(s);
  return true;
}

static void close_selector(selector_t *s) {
  tw_ops_free(&s->products);
  free(s->loads);
}

/* Whether the family takes a product of the function, with operands of steps. */
static bool takes_any(const selector_t *s) {
  for (int i = 0; i < s->products.count; i++)
    if (why_not(s, s->products.at[i]) == NULL)
      return true;
  return false;
}

static bool takes_any_in(MlirOperation func, int num_warps, int64_t step, tw_has_steps_t has_steps) {
  selector_t s;
  if (!open_selector(&s, func, num_warps, step, has_steps))
    return false;
  bool any = takes_any(&s) && !s.no_steps;
  close_selector(&s);
  return any;
}

int64_t tw_product_step(MlirOperation func, int num_warps, tw_has_steps_t has_steps) {
  bool helps = !takes_any_in(func, num_warps, 0, NULL) && takes_any_in(func, num_warps, TW_PRODUCT_STEP, has_steps);
  return helps ? TW_PRODUCT_STEP : 0;
}

int64_t tw_product_bytes(MlirOperation func, int num_warps, int64_t step, tw_has_steps_t has_steps) {
  selector_t s;
  if (!open_selector(&s, func, num_warps, step, has_steps))
    return 0;
  int64_t bytes = takes_any(&s) ? bytes_wanted(&s) : 0;
  for (int i = 0; bytes > 0 && i < s.num_loads; i++) /* those of the next tile, too */
    bytes += s.loads[i].once ? s.loads[i].bytes : 0;
  close_selector(&s);
  return bytes;
}

/* Whether the product has more of k than a step, reads both operands where the copy engine puts them, and is so large
 * that it is computed as fast as they come: twice as large where one of them is converted on its way to registers. */
static bool is_long(const selector_t *s, MlirOperation mma) {
  enum { LARGE = 128 * 128 };
  int64_t sums = tw_count(mlirValueGetType(mlirOperationGetResult(mma, 0)));
  for (int i = 0; i < 2; i++) {
    bool transposed;
    MlirType type = mlirValueGetType(mlirOperationGetOperand(mma, i));
    MlirOperation load = tw_load_behind(mlirOperationGetOperand(mma, i));
    tw_mma_place_t place = s->async->place(mma, i, &transposed);
    if (place == TW_PLACE_WRITTEN || sums < (place == TW_PLACE_SHARED ? LARGE : 2 * LARGE) ||
        mlirOperationIsNull(load) || !tw_engine_brings(load) ||
        tw_extent(type, 1 - i) * tw_memory_bits(tw_element(type)) / 8 <= TW_PRODUCT_STEP)
      return false;
  }
  return true;
}

bool tw_has_few_stages(MlirOperation func, int num_warps) {
  enum { FEW = 4 }; /* fewer than these wait for memory, or for the product that has a stage */
  selector_t s;
  if (tw_has_hint_num_stages(func) || !open_selector(&s, func, num_warps, 0, NULL))
    return false;
  bool has = s.products.count > 0 && bytes_wanted(&s) / STAGES * FEW > s.target.shared_bytes;
  for (int i = 0; has && i < s.products.count; i++)
    has = why_not(&s, s.products.at[i]) == NULL && is_long(&s, s.products.at[i]);
  close_selector(&s);
  return has;
}

static bool select_async(MlirOperation func) {
  selector_t s;
  if (!open_selector(&s, func, (int)tw_num_warps(func, 0), 0, NULL))
    return true;
  bool good = true;
  for (int i = 0; good && i < s.products.count; i++) {
    const char *reason = why_not(&s, s.products.at[i]);
    if (reason && is_asked_for(&s))
      good = refuse_family(s.products.at[i], tw_str(s.family->name), reason);
    else if (reason)
      tw_op_remark(s.products.at[i], "is not a %s: %s", s.family->name, reason);
    else
      mark(&s, s.products.at[i]);
  }
  close_selector(&s);
  if (s.any)
    tw_set_attr(func, TW_HAS_ASYNC_MMA, mlirUnitAttrGet(mlirOperationGetContext(func)));
  return good;
}

bool tw_run_select_mma(MlirOperation func) {
  return select_async(func) && tw_widen_mma(func) && check_family(func) && tw_check_warps_hints(func);
}

/* slice_tiles.c - tile-resize-tiles: several blocks compute a tile, a slice each
 *
 * Before:
 *
 *   func.func @k(%A: ..., %B: ..., %C: ...) {
 *     %i = tile.block_id 0
 *     %j = tile.block_id 1
 *     %d = scf.for ... iter_args(%acc = %zero) -> (tensor<128x256xf32>) {
 *       %a = tile.load %A[%i, %k] -> tensor<128x64xbf16>
 *       %b = tile.load %B[%k, %j] -> tensor<64x256xbf16>
 *       %s = tile.mma %a, %b, %acc
 *     }
 *     tile.store %d, %C[%i, %j]
 *   }
 *
 * After, of a tile that four blocks compute, as if the program had been written with tiles of 64x128:
 *
 *     %x = tile.block_id 0               // along axis 0 there are twice as many blocks, and along axis 1
 *     %i = %x / 2                        // where the program asks for its position; the part is %x % 2
 *     ...
 *       %a = tile.load %A[%x, %k] -> tensor<64x64xbf16>          // %i * 2 + part
 *       %b = tile.load %B[%k, %y] -> tensor<64x128xbf16>
 *     tile.store %d, %C[%x, %y]
 *
 * The launcher starts as many times more blocks along each axis as the launch record says (grid_scale).
 *
 * Classes of dimensions are sliced (dim_classes.h): those whose elements are independent, and
 * which every store and scatter has. All else is computed by each part again. Where a part may read what another one
 * has overwritten already (a product that is stored into one of its factors), tiles stay whole; that arrays have no
 * memory in common is left to the launcher (aliasing.h).
 *
 * How many parts there are is decided at each launch (runtime/resize_tiles.c): where a launch has fewer blocks than the
 * GPU has multiprocessors. The record says what it takes (`slice`): the number of iterations of the loop as in `split`;
 * the number of classes, and of each the word of an extent of an array, or -1, and the extent of the tile; then for 1,
 * 2, 4 ... parts into how many each class is sliced, and the cycles and bytes of an iteration. The first launch that
 * does better with parts has the kernel compiled again, with the hint `slice_tiles`, which is their number; 1: none.
 * Without the hint, tiles whose sums of products no thread's registers can hold are sliced at once: those that a loop
 * carries, and beside them those of a product that goes into another one, with what is made of them. So are tiles of
 * which a thread would compute many elements, in a kernel without products, if parts do nothing again: threads with
 * fewer elements are more, and more loads are under way. */
#include "dialect/layouts.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/block_axes.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/facts/operand_loads.h"
#include "lowering/gpu/grid/dim_classes.h"
#include "lowering/gpu/grid/resize_tiles.h"
#include "lowering/gpu/grid/slices.h"
#include "lowering/gpu/grid/step_cost.h"
#include "lowering/gpu/grid/tile_plans.h"
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/machine/budget.h"
#include "lowering/launch_record.h"
#include "lowering/loops.h"

enum { MAX_CLASSES = TW_PLAN_WAYS };

typedef struct {
  MlirOperation func, scope; /* the loop whose iterations count, or the function */
  tw_dims_t dims;
  int64_t warps;
  bool computes;                         /* threads compute operands of its products */
  bool chains;                           /* a product goes into another one */
  int classes[MAX_CLASSES], num_classes; /* that may be sliced */
  tw_plans_t plans;                      /* a class is a way to slice */
} slicer_t;

/* ---- what can be sliced --------------------------------------------------------------------------- */

/* The classes of what is stored first, as far as they may be sliced; else tells why the first one may not. */
static const char *find_classes(slicer_t *c) {
  const char *why = c->dims.refused;
  if (why == NULL && c->dims.writes.count == 0)
    why = "it stores nothing";
  if (why != NULL)
    return why;
  MlirValue tile = tw_moved_tile(c->dims.writes.at[0]);
  intptr_t rank = tw_rank(mlirValueGetType(tile));
  for (int dim = 0; dim < rank && c->num_classes < MAX_CLASSES; dim++) {
    int class = tw_dims_class(&c->dims, tile, dim);
    const tw_dim_t *d = &c->dims.at[class];
    const char *no = d->whole                               ? d->whole
                     : tw_dims_are_written(&c->dims, class) ? NULL
                                                            : "not all that is stored has the axis";
    if (no == NULL && d->extent >= 2 * d->least)
      c->classes[c->num_classes++] = class;
    why = why ? why : no;
  }
  return c->num_classes > 0 ? NULL : why ? why : "its tiles are small";
}

/* ---- what parts cost --------------------------------------------------------------------------- */

typedef struct {
  slicer_t *slicer;
  const tw_plan_t *plan;
  int64_t flop_cycles, computed, bytes; /* elements that threads compute */
} slice_cost_t;

static int64_t extent_of(slice_cost_t *cost, MlirValue tile, int dim) {
  slicer_t *c = cost->slicer;
  int64_t extent = tw_extent(mlirValueGetType(tile), dim);
  int class = tw_dims_class(&c->dims, tile, dim);
  for (int i = 0; i < c->num_classes; i++)
    if (class == c->classes[i])
      extent >>= cost->plan->log[i];
  return extent;
}

/* Lines in memory are as long as a sector of the cache at least. */
static int64_t bytes_of(slice_cost_t *cost, MlirOperation op) {
  MlirValue tile = tw_moved_tile(op);
  MlirType type = mlirValueGetType(tile);
  intptr_t first;
  int64_t bits = tw_memory_bits(tw_element(mlirValueGetType(tw_access_array(op, &first))));
  int rank = (int)tw_rank(type), along = tw_access_contiguous_dim(op, rank);
  int64_t bytes = 1, line = along < 0 ? 1 : extent_of(cost, tile, along) * bits / 8;
  for (int i = 0; i < rank; i++)
    bytes *= i == along ? 1 : extent_of(cost, tile, i);
  return bytes * (line > TW_SECTOR_BYTES ? line : TW_SECTOR_BYTES);
}

/* Of what is computed for the tile that an op makes, the slice's part. */
static int64_t sliced(slice_cost_t *cost, MlirOperation op, int64_t of_tile) {
  MlirValue tile = mlirOperationGetResult(op, 0);
  for (int i = 0; i < tw_rank(mlirValueGetType(tile)); i++)
    of_tile = of_tile * extent_of(cost, tile, i) / tw_extent(mlirValueGetType(tile), i);
  return of_tile;
}

static MlirWalkResult add_cost(MlirOperation op, void *user) {
  slice_cost_t *cost = user;
  int64_t computed = tw_computed_elements(op);
  if (computed > 0)
    cost->computed += sliced(cost, op, computed);
  else if (tw_op_is_product(op))
    cost->flop_cycles += sliced(cost, op, tw_mma_cycles(op));
  else if (tw_op_loads(op) || tw_op_stores(op))
    cost->bytes += bytes_of(cost, op);
  return MlirWalkResultAdvance;
}

/* The warps of a slice, which are fewer than those of its tile. */
static int64_t warps_of(const slicer_t *c, const tw_plan_t *plan) {
  int64_t warps = c->warps;
  for (int i = 0; i < c->num_classes; i++)
    warps >>= plan->log[i];
  return warps > 0 ? warps : 1;
}

/* Parts that load the least are as square as possible, and sliced along lines in memory. They load less than before, or
 * nothing is gained; but of products one behind the other, those of fewer rows are shorter, if they load as much. */
static bool weigh(void *user, const tw_plan_t *from, int way, tw_plan_t *plan) {
  slicer_t *c = user;
  const tw_dim_t *class = way < 0 ? NULL : &c->dims.at[c->classes[way]];
  int64_t before = from->bytes, products_before = from->products;
  if (class && class->extent >> plan->log[way] < class->least)
    return false;
  slice_cost_t cost = {.slicer = c, .plan = plan};
  mlirOperationWalk(c->scope, add_cost, &cost, MlirWalkPreOrder);
  plan->computing = c->computes ? tw_computing_cycles(c->func, cost.computed, warps_of(c, plan)) : 0;
  plan->cycles = tw_step_cycles(c->func, cost.flop_cycles, cost.bytes) + plan->computing;
  plan->bytes = cost.bytes;
  plan->products = cost.flop_cycles;
  return plan->bytes < before || (c->chains && plan->products < products_before);
}

/* ---- where parts are --------------------------------------------------------------------------- */

/* Parts are neighbours along the one axis that tells where the class of a store lies, or along the first. */
static int axis_of(slicer_t *c, const tw_block_axes_t *axes, int class) {
  for (int i = 0; i < c->dims.writes.count; i++) {
    intptr_t at = tw_dims_index(&c->dims, c->dims.writes.at[i], class);
    for (int axis = 0; at >= 0 && axis < TW_GRID_AXES; axis++)
      if (tw_block_axes_get(axes, mlirOperationGetOperand(c->dims.writes.at[i], at)) == UINT32_C(1) << axis)
        return axis;
  }
  return 0;
}

/* ---- rewriting --------------------------------------------------------------------------------- */

/* The classes that a plan slices; along no axis yet. */
static int slices_of(const slicer_t *c, const tw_plan_t *plan, tw_tile_slice_t slices[MAX_CLASSES]) {
  int num = 0;
  for (int i = 0; i < c->num_classes; i++)
    if (plan->log[i] > 0)
      slices[num++] = (tw_tile_slice_t){.class = c->classes[i], .parts = (int64_t)1 << plan->log[i]};
  return num;
}

static const char *why_not_apart(slicer_t *c, const tw_plan_t *plan, bool rely) {
  tw_tile_slice_t slices[MAX_CLASSES];
  int num = slices_of(c, plan, slices);
  return tw_slices_are_apart(&c->dims, slices, num, rely) ? NULL
                                                          : "a part may read of an array what another part has written";
}

static void rewrite(slicer_t *c, const tw_plan_t *plan) {
  tw_tile_slice_t slices[MAX_CLASSES];
  int num = slices_of(c, plan, slices);
  tw_block_axes_t depends = tw_block_axes_of(c->func);
  for (int i = 0; i < num; i++)
    slices[i].axis = axis_of(c, &depends, slices[i].class);
  tw_block_axes_free(&depends);
  tw_apply_slices(&c->dims, slices, num);
}

/* ---- what the launcher decides by ---------------------------------------------------------------- */

/* The word of an extent that a class has in an array that is written, by which it is known how many parts have work. */
static int64_t extent_word(slicer_t *c, int class) {
  int64_t extent;
  intptr_t first;
  for (int i = 0; i < c->dims.writes.count; i++) {
    MlirValue array = tw_access_array(c->dims.writes.at[i], &first);
    int axis = tw_dims_axis(&c->dims, c->dims.writes.at[i], class, &extent);
    if (axis >= 0 && extent == c->dims.at[class].extent && mlirValueIsABlockArgument(array))
      return tw_first_word(array) + 1 + axis;
  }
  return -1;
}

static void record_launch(slicer_t *c, const tw_steps_t *steps) {
  tw_slicing_t facts = {.loop = *steps, .num_classes = (uint32_t)c->num_classes, .num_plans = (uint32_t)c->plans.count};
  for (int i = 0; i < c->num_classes; i++)
    facts.classes[i] = (tw_slice_class_t){extent_word(c, c->classes[i]), c->dims.at[c->classes[i]].extent};
  for (int p = 0; p < c->plans.count; p++) {
    const tw_plan_t *plan = &c->plans.at[p];
    facts.plans[p] = (tw_slice_plan_t){.cycles = plan->cycles, .bytes = plan->bytes};
    for (int i = 0; i < c->num_classes; i++)
      facts.plans[p].parts[i] = INT64_C(1) << plan->log[i];
  }
  tw_record_loaded(c->func, c->scope);
  tw_launch_set_slice(c->func, &facts);
}

/* ---- the decision ------------------------------------------------------------------------------ */

static int64_t bits_of(MlirValue tile) {
  MlirType type = mlirValueGetType(tile);
  return tw_count(type) * tw_memory_bits(tw_element(type));
}

static MlirWalkResult measure_chain(MlirOperation op, void *most) {
  if (!tw_op_is_product(op) || !tw_feeds_product(op))
    return MlirWalkResultAdvance;
  int64_t operand = 0;
  for (MlirOperation next = op; !mlirOperationIsNull(next); next = mlirOperationGetNextInBlock(next))
    if (tw_op_is_product(next) && mlirOperationIsNull(tw_load_behind(mlirOperationGetOperand(next, 0))))
      operand = bits_of(mlirOperationGetOperand(next, 0));
  int64_t bits = bits_of(mlirOperationGetResult(op, 0)) + operand;
  *(int64_t *)most = bits > *(int64_t *)most ? bits : *(int64_t *)most;
  return MlirWalkResultAdvance;
}

/* Of a product that goes into another one, and of that one's operand, which is made of it. */
static int64_t chain_bits(MlirOperation op) {
  int64_t bits = 0;
  mlirOperationWalk(op, measure_chain, &bits, MlirWalkPreOrder);
  return bits;
}

/* Of a product, or of all that a loop carries. */
static int64_t sum_bits(MlirOperation op) {
  int64_t bits = 0;
  if (tw_op_is_product(op))
    return bits_of(mlirOperationGetResult(op, 0));
  for (intptr_t i = 0; tw_op_is(op, TW_SCF_FOR) && i < mlirOperationGetNumResults(op); i++) {
    MlirValue sum = mlirOperationGetOperand(mlirBlockGetTerminator(tw_loop_body(op)), i);
    MlirOperation def = tw_def(sum);
    bits += !mlirOperationIsNull(def) && tw_op_is_product(def) ? bits_of(sum) : 0;
  }
  return bits;
}

static MlirWalkResult measure_sums(MlirOperation op, void *most) {
  int64_t bits = sum_bits(op);
  *(int64_t *)most = bits > *(int64_t *)most ? bits : *(int64_t *)most;
  return MlirWalkResultAdvance;
}

/* The fewest parts of which each has registers for the sums of products, and for pieces of operands that are too small
 * for a copy: those of a short step of k, if there may be such. */
static int64_t parts_that_fit(slicer_t *c) {
  enum { BITS_OF_WARP = 32 * TW_WARP_LANES }; /* of a register in all of its lanes */
  int64_t registers = tw_register_budget(c->func, TW_BUDGET_SUMS);
  int64_t all = tw_register_budget(c->func, TW_BUDGET_CONSUMER);
  int64_t bits = 0, parts = 1;
  int64_t warps = tw_num_warps(c->func, 0);
  mlirOperationWalk(c->func, measure_sums, &bits, MlirWalkPreOrder);
  if (warps == 0)
    warps = tw_mma_num_warps(c->func);
  while (bits > parts * registers * BITS_OF_WARP * warps)
    parts *= 2;
  if (parts > 1)
    tw_op_remark(c->func, "has sums of products that no thread's registers can hold");
  int64_t chain = chain_bits(c->func) + bits;
  if (c->chains && chain > parts * all * BITS_OF_WARP * warps)
    tw_op_remark(c->func, "has products one behind the other, whose sums no thread's registers can hold at once");
  while (c->chains && chain > parts * all * BITS_OF_WARP * warps)
    parts *= 2;
  int64_t pieces = tw_mma_words_with_pieces(c->func, TW_LEAST_PRODUCT_STEP);
  int64_t beside = tw_mma_budget_with_pieces(c->func) * TW_WARP_LANES * warps;
  if (pieces > parts * beside)
    tw_op_remark(c->func, "has products of rows that begin anywhere: their elements come one by one, and no thread's "
                          "registers can hold them beside the sums");
  while (pieces > parts * beside)
    parts *= 2;
  return parts;
}

/* ---- tiles of many elements ---------------------------------------------------------------------- */

static MlirWalkResult measure_elements(MlirOperation op, void *most) {
  MlirType type =
      mlirOperationGetNumResults(op) == 1 ? mlirValueGetType(mlirOperationGetResult(op, 0)) : (MlirType){NULL};
  if (tw_computed_elements(op) > 0 && tw_is_float(tw_element(type)) && tw_count(type) > *(int64_t *)most)
    *(int64_t *)most = tw_count(type);
  return MlirWalkResultAdvance;
}

/* The fewest parts of which a thread of a block computes few elements; one where the program says how many warps there
 * are. */
static int64_t parts_of_few(slicer_t *c) {
  enum { WARPS = 8, FEW = WARPS * TW_WARP_LANES * 16 };
  int64_t elements = 0, parts = 1;
  if (tw_has_hint_num_warps(c->func))
    return 1;
  mlirOperationWalk(c->func, measure_elements, &elements, MlirWalkPreOrder);
  while (elements > parts * FEW && parts < INT64_C(1) << TW_MAX_LOG_PLAN)
    parts *= 2;
  return parts;
}

/* Whether the parts of a plan load or compute much more than the whole. */
static bool repeats(slicer_t *c, const tw_plan_t *plan, int64_t parts) {
  tw_plan_t whole = {.cycles = 0};
  slice_cost_t all = {.slicer = c, .plan = &whole}, part = {.slicer = c, .plan = plan};
  mlirOperationWalk(c->scope, add_cost, &all, MlirWalkPreOrder);
  mlirOperationWalk(c->scope, add_cost, &part, MlirWalkPreOrder);
  return 4 * parts * part.bytes > 5 * all.bytes || 4 * parts * part.computed > 5 * all.computed;
}

/* Why tiles stay whole; else the kernel is rewritten or the launcher told. `few`: parts are for few elements a thread,
 * and the launcher decides where they would repeat something. */
static const char *decide(slicer_t *c, int64_t wanted, bool few) {
  enum { SHORT_CYCLES = 2000 }; /* of a block, which a launch of more blocks would not shorten */
  const char *why = find_classes(c);
  if (why != NULL)
    return why;
  c->scope = tw_dims_loop(&c->dims);
  c->warps = tw_mma_num_warps(c->func);
  c->computes = tw_computes_operands(c->scope);
  tw_make_plans(&c->plans, c->num_classes, false, weigh, c);
  int log = tw_plan_for(&c->plans, wanted > 1 ? wanted : INT64_MAX);
  if (few && repeats(c, &c->plans.at[log], (int64_t)1 << log)) {
    wanted = 0;
    log = tw_plan_for(&c->plans, INT64_MAX);
  }
  const tw_plan_t *plan = &c->plans.at[log];
  tw_steps_t steps = tw_steps_or_guess(c->func, c->scope);
  if (log == 0)
    return "its tiles are small";
  if (c->plans.at[0].cycles > INT32_MAX || c->plans.at[0].bytes > INT32_MAX)
    return "its tiles are too large for the launcher to weigh";
  why = why_not_apart(c, plan, wanted > 1);
  if (why != NULL)
    return why;
  int64_t parts = (int64_t)1 << log;
  if (wanted > 1) {
    rewrite(c, plan);
    tw_op_remark(c->func, "slices each tile over %lld blocks", (long long)parts);
  } else if (steps.word >= 0 || steps.steps * c->plans.at[0].cycles > SHORT_CYCLES) {
    record_launch(c, &steps);
    tw_op_remark(c->func,
                 "slices each tile over up to %lld blocks where a launch has fewer blocks than multiprocessors",
                 (long long)parts);
  }
  return NULL;
}

bool tw_slice_tiles(MlirOperation func) {
  slicer_t c = {.func = func};
  int64_t wanted = tw_hint_slice_tiles(func, 0);
  if (!tw_is_of_tiles(func) || wanted == 1 || tw_launch_has_cluster_blocks(func) || tw_hint_coarsen_tiles(func, 0) > 1)
    return true;
  c.dims = tw_dims_of(func);
  c.chains = chain_bits(func) > 0;
  bool multiplies = tw_has_op_like(func, tw_op_is_product);
  int64_t fitting = wanted > 0 ? 1 : multiplies ? parts_that_fit(&c) : parts_of_few(&c);
  const char *why = decide(&c, fitting > 1 ? fitting : wanted, fitting > 1 && !multiplies);
  if (why != NULL && (wanted > 1 || multiplies))
    tw_op_remark(func, "slices no tile over several blocks: %s", why);
  tw_dims_free(&c.dims);
  return true;
}

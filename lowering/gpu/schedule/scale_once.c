/* scale_once.c - tile-defer-reductions: two factors of a product's elements are multiplied first
 *
 * Before, each element of a product of tiles is multiplied twice:
 *
 *   %p = tile.mma %a, %b, %zero
 *   %x = arith.mulf %p, (tile.broadcast %f : tensor<128x1xf32> -> tensor<128x128xf32>)
 *   %y = arith.mulf %x, (tensor.splat %g)
 *
 * After, once, in a warp in which the factors' products are normal numbers; else twice, as before:
 *
 *   %h = tile.broadcast (arith.mulf %f, (tensor.splat %g) : tensor<128x1xf32>)
 *   %odd = tile.warp_any !(2^-126 <= abs(%h) <= the largest)
 *   %x = scf.if %odd { yield %p * (tile.broadcast %f) } else { yield %p }
 *   %y = arith.mulf %x, (arith.select %odd, (tensor.splat %g), %h)
 *
 * The test reads the factor that the multiplication may take, element by element, so that both have one layout, and it
 * holds for all that the warp has. A thread has few different ones, and compares these.
 *
 * What it does to accuracy: nothing that a bound would show. Either way there are two roundings; where the factors'
 * product is not normal (too large, subnormal, zero, no number), all is as written. The sum of a product of tiles has
 * no order of its own (docs/numbers.md), so that no program can expect these bits. The hint approximate = 0 switches it
 * off.
 *
 * What must hold: all are of f32; %p is the result of a product in a loop, or a conversion of one; each factor is the
 * same along whole rows, or along whole columns, of 64 elements or more, both along the same ones. Runs behind
 * tile-split-k, which looks for sums. */
#include "lowering/gpu/schedule/scale_once.h"

#include "lowering/ir.h"
#include "lowering/launch_record.h"
#include "lowering/loops.h"

#include <float.h>

enum { LEAST_SHARING = 64 }; /* elements that have the same factor: a test is as long as some ten multiplications */

/* ---- what is scaled -------------------------------------------------------------------------------- */

typedef struct {
  MlirOperation inner, outer; /* the multiplications */
  MlirValue product;
  MlirValue factors[2]; /* as tiles of few elements, or numbers */
} scaled_t;

static bool repeats(MlirOperation op) {
  return !mlirOperationIsNull(op) &&
         (tw_op_is(op, TW_TENSOR_SPLAT) ||
          (tw_op_form(op) == TW_FORM_VIEW && tw_count(mlirValueGetType(mlirOperationGetOperand(op, 0))) <
                                                 tw_count(mlirValueGetType(mlirOperationGetResult(op, 0)))));
}

/* The number of which all elements of a tile are views; null if there is none. */
static MlirValue number_of(MlirValue value) {
  MlirOperation op = tw_def(value);
  while (!mlirOperationIsNull(op) && tw_op_form(op) == TW_FORM_VIEW)
    op = tw_def(mlirOperationGetOperand(op, 0));
  bool is = !mlirOperationIsNull(op) && tw_op_is(op, TW_TENSOR_SPLAT);
  return is ? mlirOperationGetOperand(op, 0) : (MlirValue){NULL};
}

/* The number or the tile of few elements that a factor repeats; null if it repeats none. */
static MlirValue repeated(MlirValue factor) {
  MlirOperation op = tw_def(factor);
  MlirValue number = number_of(factor);
  if (number.ptr || !repeats(op))
    return number;
  MlirValue few = mlirOperationGetOperand(op, 0);
  return tw_count(mlirValueGetType(few)) * LEAST_SHARING <= tw_count(mlirValueGetType(factor)) ? few : number;
}

static bool is_of_product(MlirValue value) {
  MlirOperation op = tw_def(value);
  while (!mlirOperationIsNull(op) && tw_op_class(op) == TW_CLASS_CAST)
    op = tw_def(mlirOperationGetOperand(op, 0));
  return !mlirOperationIsNull(op) && tw_op_is_product(op) && !mlirOperationIsNull(tw_enclosing_loop(op));
}

static bool multiplies_f32(MlirOperation op) {
  if (mlirOperationIsNull(op) || !tw_op_is(op, TW_ARITH_MULF))
    return false;
  MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0));
  return tw_is_tile(type) && tw_bits(type) == 32;
}

/* Whether both factors are of the same rows or columns, or one of them is a number. */
static bool meet(MlirValue f, MlirValue g) {
  MlirType x = mlirValueGetType(f), y = mlirValueGetType(g);
  return !tw_is_tile(x) || !tw_is_tile(y) || mlirTypeEqual(x, y);
}

/* The operand of a multiplication whose other one is a factor. */
static intptr_t scaled_operand(MlirOperation op) {
  for (intptr_t i = 0; i < 2; i++)
    if (mlirValueIsNull(repeated(mlirOperationGetOperand(op, i))) &&
        !mlirValueIsNull(repeated(mlirOperationGetOperand(op, 1 - i))))
      return i;
  return -1;
}

static bool find(MlirOperation outer, scaled_t *s) {
  if (!multiplies_f32(outer))
    return false;
  intptr_t i = scaled_operand(outer);
  MlirOperation inner = i < 0 ? tw_null_op() : tw_def(mlirOperationGetOperand(outer, i));
  if (!multiplies_f32(inner) || !tw_has_one_use(mlirOperationGetResult(inner, 0)))
    return false;
  intptr_t k = scaled_operand(inner);
  if (k < 0)
    return false;
  *s = (scaled_t){
      .inner = inner,
      .outer = outer,
      .product = mlirOperationGetOperand(inner, k),
      .factors = {repeated(mlirOperationGetOperand(inner, 1 - k)), repeated(mlirOperationGetOperand(outer, 1 - i))}};
  return is_of_product(s->product) && meet(s->factors[0], s->factors[1]) &&
         mlirBlockEqual(mlirOperationGetBlock(inner), mlirOperationGetBlock(outer));
}

/* ---- rewriting --------------------------------------------------------------------------------------- */

static MlirValue as_tile(const tw_builder_t *at, MlirType type, MlirValue factor) {
  bool splats = tw_is_tile(type) && !tw_is_tile(mlirValueGetType(factor));
  return splats ? tw_unary(at, "tensor.splat", type, factor) : factor;
}

/* A factor for each element. */
static MlirValue spread(const tw_builder_t *at, MlirType type, MlirValue factor) {
  return tw_is_tile(mlirValueGetType(factor)) ? tw_broadcast(at, type, factor) : as_tile(at, type, factor);
}

static MlirValue compare(const tw_builder_t *at, int64_t predicate, MlirType bools, MlirValue x, MlirValue y) {
  MlirValue operands[] = {x, y};
  MlirAttribute which = mlirIntegerAttrGet(tw_i64(at->context), predicate);
  return tw_op1_attr(at, "arith.cmpf", bools, 2, operands, "predicate", which);
}

/* Whether the warp has an element for which the factor is no normal number. */
static MlirValue build_test(const tw_builder_t *at, MlirValue factor) {
  enum { UGT = 9, ULT = 11 }; /* both are true for NaN */
  MlirType type = mlirValueGetType(factor), i1 = mlirIntegerTypeGet(at->context, 1), bools = tw_with_element(type, i1);
  MlirValue size = tw_unary(at, "math.absf", type, factor);
  MlirValue large = compare(at, UGT, bools, size, tw_const_float(at, type, FLT_MAX));
  MlirValue small = compare(at, ULT, bools, size, tw_const_float(at, type, FLT_MIN));
  return tw_unary(at, "tile.warp_any", i1, tw_binary(at, "arith.ori", bools, large, small));
}

static MlirBlock yielding(MlirBlock block, MlirLocation location, MlirValue value) {
  tw_builder_t at = tw_build_at_end(block, location);
  tw_build(&at, "scf.yield", (tw_op_parts_t){.num_operands = 1, .operands = &value});
  return block;
}

static void rewrite(const scaled_t *s) {
  tw_builder_t at = tw_build_before(s->outer);
  MlirType whole = mlirValueGetType(s->product), f = mlirValueGetType(s->factors[0]),
           g = mlirValueGetType(s->factors[1]);
  MlirType few = tw_is_tile(f) ? f : g;
  MlirValue first = as_tile(&at, few, s->factors[0]), second = as_tile(&at, few, s->factors[1]);
  MlirValue both = spread(&at, whole, tw_binary(&at, "arith.mulf", few, first, second));
  MlirValue odd = build_test(&at, both);
  MlirBlock twice = mlirBlockCreate(0, NULL, NULL), once = mlirBlockCreate(0, NULL, NULL);
  mlirOperationMoveBefore(s->inner, s->outer);
  MlirOperation branch = tw_build_if(&at, odd, yielding(twice, at.location, mlirOperationGetResult(s->inner, 0)),
                                     yielding(once, at.location, s->product));
  mlirOperationMoveBefore(s->inner, mlirBlockGetTerminator(twice));
  MlirValue operands[] = {mlirOperationGetResult(branch, 0), tw_select(&at, odd, spread(&at, whole, second), both)};
  for (intptr_t i = 0; i < 2; i++)
    mlirOperationSetOperand(s->outer, i, operands[i]);
  tw_op_remark(s->outer, "has its two factors multiplied first, where that gives a normal number");
}

static bool is_scaled_twice(MlirOperation op) {
  scaled_t s;
  return find(op, &s);
}

void tw_scale_once(MlirOperation func) {
  if (tw_hint_approximate(func, 1) == 0 || !tw_is_of_tiles(func))
    return;
  tw_ops_t products = tw_ops_in(func, is_scaled_twice, MlirWalkPreOrder);
  for (int i = 0; i < products.count; i++) {
    scaled_t s;
    if (find(products.at[i], &s))
      rewrite(&s);
  }
  tw_ops_free(&products);
}

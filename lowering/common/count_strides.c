/* count_strides.c - in tile-canonicalize: a loop over every n-th tile of a block counts those tiles
 *
 *   before   %m = arith.ceildivsi (%t - %b), %s               after   scf.for %j = %b to %t step %s {
 *            scf.for %i = 0 to %m step 1 {                              ... %j
 *              ... %b + %i * %s                                       }
 *            }
 *
 * So a persistent loop has one form, whether its program counts tiles, or how many of them it has done. What must hold:
 * all that is read of the count is that sum; the step is a positive number, and neither it nor the bounds change in the
 * loop; the bounds are natural numbers, or products of numbers of tiles, so that their difference does not wrap. */
#include "lowering/common/canonicalize.h"
#include "lowering/common/match_step.h"
#include "lowering/loops.h"
#include "lowering/ranges.h"

typedef struct {
  MlirOperation loop, product;     /* product: of the count and the step */
  MlirValue low, high, step, upon; /* upon: a condition without which there are no tiles; null */
} strided_t;

/* Whether a number of tiles is natural: products of such are, as no array has so many tiles that they wrap. */
static bool is_number_of_tiles(MlirValue value) {
  MlirOperation op = tw_def(value);
  return tw_is_natural(value) ||
         (!mlirOperationIsNull(op) && tw_op_is(op, TW_ARITH_MULI) &&
          is_number_of_tiles(mlirOperationGetOperand(op, 0)) && is_number_of_tiles(mlirOperationGetOperand(op, 1)));
}

/* ceil((high - low) / step) */
static bool read_quotient(strided_t *s, MlirValue count) {
  MlirOperation quotient = tw_def(count);
  if (mlirOperationIsNull(quotient) || !tw_op_is(quotient, TW_ARITH_CEILDIVSI))
    return false;
  MlirOperation difference = tw_def(mlirOperationGetOperand(quotient, 0));
  if (mlirOperationIsNull(difference) || !tw_op_is(difference, TW_ARITH_SUBI))
    return false;
  s->step = mlirOperationGetOperand(quotient, 1);
  s->high = mlirOperationGetOperand(difference, 0);
  s->low = mlirOperationGetOperand(difference, 1);
  return tw_range_of(s->step).low > 0 && is_number_of_tiles(s->high) && tw_is_natural(s->low);
}

static bool read_count(strided_t *s, MlirValue count) {
  MlirOperation choice = tw_def(count);
  int64_t none;
  s->upon = (MlirValue){NULL};
  if (mlirOperationIsNull(choice) || !tw_op_is(choice, TW_ARITH_SELECT))
    return read_quotient(s, count);
  s->upon = mlirOperationGetOperand(choice, 0);
  return tw_known_int(mlirOperationGetOperand(choice, 2), &none) && none == 0 &&
         read_quotient(s, mlirOperationGetOperand(choice, 1));
}

/* low + count * step, by any additions. */
static bool is_tile(const strided_t *s, MlirValue value) {
  tw_sum_t sum = {.num = 0};
  tw_sum_add(&sum, value, 1);
  tw_sum_add(&sum, s->low, -1);
  tw_sum_add(&sum, mlirOperationGetResult(s->product, 0), -1);
  bool is = !sum.too_long && sum.constant == 0;
  for (int i = 0; i < sum.num; i++)
    is = is && sum.factor[i] == 0;
  return is;
}

static bool is_addition(MlirOperation op) {
  return (tw_op_is(op, TW_ARITH_ADDI) || tw_op_is(op, TW_ARITH_SUBI)) &&
         !tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0)));
}

/* Whether all that is made of a value is made of such a sum; those are added to a list. */
static bool ends_in_tiles(const strided_t *s, MlirValue value, tw_ops_t *tiles) {
  TW_EACH_USE(use, value) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    if (!is_addition(user))
      return false;
    if (is_tile(s, mlirOperationGetResult(user, 0)))
      tw_ops_add(tiles, user);
    else if (!ends_in_tiles(s, mlirOperationGetResult(user, 0), tiles))
      return false;
  }
  return true;
}

static void count_tiles(const strided_t *s, const tw_ops_t *tiles) {
  tw_builder_t before = tw_build_before(s->loop);
  MlirValue high = mlirValueIsNull(s->upon) ? s->high : tw_select(&before, s->upon, s->high, s->low);
  mlirOperationSetOperand(s->loop, 0, s->low);
  mlirOperationSetOperand(s->loop, 1, high);
  mlirOperationSetOperand(s->loop, 2, s->step);
  for (int i = 0; i < tiles->count; i++)
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(tiles->at[i], 0), tw_loop_iv(s->loop));
  for (int i = 0; i < tiles->count; i++)
    tw_erase_dead(tiles->at[i]);
}

static bool is_by_step(const strided_t *s, MlirOperation op) {
  return tw_op_is(op, TW_ARITH_MULI) && (mlirValueEqual(mlirOperationGetOperand(op, 0), s->step) ||
                                         mlirValueEqual(mlirOperationGetOperand(op, 1), s->step));
}

void tw_count_strides(MlirOperation loop) {
  strided_t s = {.loop = loop};
  int64_t zero;
  if (tw_loop_step(loop) != 1 || !tw_known_int(mlirOperationGetOperand(loop, 0), &zero) || zero != 0 ||
      tw_is_unused(tw_loop_iv(loop)) || !read_count(&s, mlirOperationGetOperand(loop, 1)))
    return;
  tw_ops_t tiles = {0};
  bool all = true;
  TW_EACH_USE(use, tw_loop_iv(loop)) {
    s.product = mlirOpOperandGetOwner(use);
    all = all && is_by_step(&s, s.product) && ends_in_tiles(&s, mlirOperationGetResult(s.product, 0), &tiles);
  }
  if (all && tiles.count > 0)
    count_tiles(&s, &tiles);
  tw_ops_free(&tiles);
}

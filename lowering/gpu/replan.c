/* replan.c - tile-plan-block: another plan for a kernel whose first one does not fit. See replan.h.
 *
 * Before, on a module that the driver of the compiler starts again with the number of a plan and what was wrong:
 *
 *   module attributes {tile.plan = 3 : i32, tile.plan_reason = "takes 1024 registers ..."}
 *
 * After, what the other passes do differently is written down on each kernel:
 *
 *   func.func @k(...) attributes {tile.kernel, tile.product_step = 128 : i32}
 *
 * Plans are tried in the order of the table, from those that cost least: tw_next_plan passes over those that do not
 * help where registers, or shared memory, are too few, or where registers are kept in local memory. A plan that would
 * change nothing is an error, upon which the driver goes on. A remark names the plan and the reason. Runs before all
 * passes that plan. */
#include "lowering/gpu/replan.h"

#include "lowering/gpu/machine/mma_family.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/gpu/memory/strip_mine_products.h"
#include "lowering/launch_record.h"
#include "tilewright/compiler.h"

enum {
  REGISTERS = 1,
  SHARED = 2,
  LOCAL = 4,
  NONE = 0,
  ANY = REGISTERS | SHARED,
  MOST_WARPS = 16,
  WIDE_STEP = 128,
  NARROW_STEP = 64,
  FEW = 5,
  HALF = 50
};

typedef struct {
  const char *with;
  int helps;
  bool other_warps;  /* twice as many, or those of the compiler where a hint gives more */
  bool few_stages;   /* no more than two stages of a multibuffer, or buffers of a loop */
  bool no_async_mma; /* mma.sync instead */
  int spare;         /* percent of shared memory that is planned without */
  int product_step;  /* bytes of k that a product takes at a time */
} plan_t;

static const plan_t plans[] = {
    {"some shared memory to spare", SHARED, .spare = FEW},
    {"products in steps", ANY | LOCAL, .product_step = WIDE_STEP},
    {"other warps", REGISTERS | LOCAL, .other_warps = true},
    {"two stages, half of shared memory", SHARED, .few_stages = true, .spare = HALF},
    {"other warps, products in steps", REGISTERS | LOCAL, .other_warps = true, .product_step = WIDE_STEP},
    {"two stages, half of shared memory, products in steps", SHARED, .few_stages = true, .spare = HALF,
     .product_step = WIDE_STEP},
    {"mma.sync", ANY, .no_async_mma = true},
    {"mma.sync, other warps", ANY, .no_async_mma = true, .other_warps = true, .few_stages = true},
    {"mma.sync, other warps, two stages, half of shared memory, products in steps", ANY, .no_async_mma = true,
     .other_warps = true, .few_stages = true, .spare = HALF, .product_step = WIDE_STEP},
    {"mma.sync, two stages, half of shared memory, products in short steps", ANY, .no_async_mma = true,
     .few_stages = true, .spare = HALF, .product_step = NARROW_STEP},
    {"mma.sync, other warps, two stages, half of shared memory, products in short steps", ANY, .no_async_mma = true,
     .other_warps = true, .few_stages = true, .spare = HALF, .product_step = NARROW_STEP},
};
enum { NUM_PLANS = sizeof plans / sizeof *plans };

int tw_next_plan(int plan, MlirStringRef reason) {
  int needs = tw_str_is(reason, TW_REGISTERS)       ? REGISTERS
              : tw_str_is(reason, TW_SHARED_MEMORY) ? SHARED
              : tw_str_is(reason, "local memory")   ? LOCAL
              : tw_str_is(reason, TW_REFUSED_HINT)  ? NONE
                                                    : ANY;
  for (int next = plan < 0 ? 0 : plan; next < NUM_PLANS; next++)
    if (plans[next].helps & needs)
      return next + 1;
  return 0;
}

/* Other warps than the first plan had; false if there are none. */
static bool change_warps(int64_t of_products, int64_t *num_warps) {
  int64_t warps = of_products > 0 && *num_warps > of_products ? of_products : 2 * *num_warps;
  if (*num_warps <= 0 || warps > MOST_WARPS)
    return false;
  *num_warps = warps;
  return true;
}

static bool is_longer(MlirOperation op, const void *step) {
  if (!tw_op_is_product(op))
    return false;
  MlirType lhs = mlirValueGetType(mlirOperationGetOperand(op, 0));
  return tw_extent(lhs, tw_rank(lhs) - 1) * tw_bytes(lhs) > *(const int64_t *)step;
}

/* Whether a product has more of k than a step, which it does not take anyway. */
static bool has_steps(MlirOperation func, int64_t step) {
  return step > 0 && step != tw_attr_int(func, TW_PRODUCT_STEP_ATTR, 0) &&
         !mlirOperationIsNull(tw_find_op(func, is_longer, &step));
}

static bool apply(const plan_t *plan, MlirOperation func, int64_t of_products, int64_t *num_warps) {
  MlirContext context = mlirOperationGetContext(func);
  MlirType i32 = tw_i32(context);
  tw_gpu_target_t target = tw_gpu_target_of(func);
  bool changes = plan->spare > 0 || has_steps(func, plan->product_step);
  if (plan->other_warps)
    changes |= change_warps(of_products, num_warps);
  if (plan->few_stages && tw_hint_num_stages(func, 3) > 2) {
    tw_plan_hint(func, "num_stages", 2);
    changes = true;
  }
  if (plan->no_async_mma) {
    tw_set_attr(func, TW_NO_ASYNC_MMA, mlirUnitAttrGet(context));
    changes = true;
  }
  if (plan->spare)
    tw_set_int(func, TW_SPARE_SHARED, i32, target.shared_bytes * plan->spare / 100);
  if (plan->product_step)
    tw_set_int(func, TW_PRODUCT_STEP_ATTR, i32, plan->product_step);
  return changes;
}

bool tw_replan(MlirOperation func, int64_t of_products, int64_t *num_warps) {
  MlirOperation module = tw_module_of(func);
  int64_t number = tw_attr_int(module, "tile.plan", 0);
  if (number < 1 || number > NUM_PLANS || !tw_has_attr(func, "tile.kernel"))
    return true;
  const plan_t *plan = &plans[number - 1];
  if (!apply(plan, func, of_products, num_warps)) {
    tw_op_error(func, "has nothing to change for a plan with %s", plan->with);
    return false;
  }
  MlirStringRef reason = tw_attr_string(module, "tile.plan_reason");
  tw_op_remark(func, "is planned again, with %s: %.*s", plan->with, (int)reason.length, reason.data);
  return true;
}

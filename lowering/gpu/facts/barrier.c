/* barrier.c - what a tile.barrier orders, groups of asynchronous copies, waits for products. See barrier.h. */
#include "lowering/gpu/facts/barrier.h"

#include "base/memory.h"

static const struct {
  const char *name;
  unsigned orders;
} kinds[] = {
    {"tile.copies", TW_ORDERS_COPIES}, {"tile.products", TW_ORDERS_PRODUCTS}, {"tile.stores", TW_ORDERS_STORES}};
enum { NUM_KINDS = sizeof kinds / sizeof *kinds };

MlirOperation tw_build_barrier(const tw_builder_t *at, unsigned orders) {
  tw_attr_t attrs[NUM_KINDS];
  intptr_t num = 0;
  for (int i = 0; i < NUM_KINDS && orders != TW_ORDERS_ANYTHING; i++)
    if (orders & kinds[i].orders)
      attrs[num++] = (tw_attr_t){kinds[i].name, mlirUnitAttrGet(at->context)};
  return tw_build(at, "tile.barrier", (tw_op_parts_t){.num_attrs = num, .attrs = attrs});
}

bool tw_is_barrier(MlirOperation op) { return tw_op_is(op, TW_TILE_BARRIER); }

unsigned tw_ordered_by(MlirOperation op) {
  unsigned orders = 0;
  if (!tw_is_barrier(op))
    return 0;
  for (int i = 0; i < NUM_KINDS; i++)
    orders |= tw_has_attr(op, kinds[i].name) ? kinds[i].orders : 0;
  return orders ? orders : TW_ORDERS_ANYTHING;
}

bool tw_orders_only(MlirOperation op, unsigned orders) {
  unsigned all = tw_ordered_by(op);
  return all != 0 && (all & ~orders) == 0;
}

void tw_build_commit(const tw_builder_t *at) { (void)tw_build(at, "tile.async_commit", (tw_op_parts_t){0}); }

void tw_build_copy_wait(const tw_builder_t *at, int64_t pending) {
  tw_attr_t attr = {"pending", mlirIntegerAttrGet(tw_i32(at->context), pending)};
  (void)tw_build(at, "tile.async_wait", (tw_op_parts_t){.num_attrs = 1, .attrs = &attr});
}

bool tw_groups_copies(MlirOperation op) {
  return tw_op_is(op, TW_TILE_ASYNC_COMMIT) || tw_op_is(op, TW_TILE_ASYNC_WAIT);
}

MlirOperation tw_build_product_wait(const tw_builder_t *at, intptr_t num, const MlirValue *values, int64_t pending) {
  MlirType *types = tw_allocate((size_t)num, sizeof *types);
  for (intptr_t i = 0; i < num; i++)
    types[i] = mlirValueGetType(values[i]);
  tw_attr_t attr = {"pending", mlirIntegerAttrGet(tw_i32(at->context), pending)};
  MlirOperation wait = tw_build(at, "tile.mma_wait",
                                (tw_op_parts_t){.num_operands = num,
                                                .operands = values,
                                                .num_results = num,
                                                .results = types,
                                                .num_attrs = 1,
                                                .attrs = &attr});
  free(types);
  return wait;
}

/* grid_plan.c - the plan of a grid as an attribute. See grid_plan.h. */
#include "lowering/gpu/grid/grid_plan.h"

static const char *const schedules[] = {
    [TW_SCHEDULE_LAUNCH] = "launch",
    [TW_SCHEDULE_STATIC] = "static",
    [TW_SCHEDULE_SERPENTINE] = "serpentine",
    [TW_SCHEDULE_DYNAMIC] = "dynamic",
};

typedef struct {
  MlirContext context;
  MlirNamedAttribute at[8];
  intptr_t count;
} entries_t;

static void add(entries_t *entries, const char *name, MlirAttribute value) {
  entries->at[entries->count++] = mlirNamedAttributeGet(mlirIdentifierGet(entries->context, tw_str(name)), value);
}

static void add_number(entries_t *entries, const char *name, int64_t number) {
  if (number >= 0)
    add(entries, name, mlirIntegerAttrGet(tw_i32(entries->context), number));
}

void tw_grid_plan_write(MlirOperation func, const tw_grid_plan_t *plan) {
  const tw_raster_t *raster = &plan->raster;
  int32_t axes[TW_GRID_AXES] = {raster->rows, raster->columns, raster->slices};
  entries_t entries = {.context = mlirOperationGetContext(func)};
  add(&entries, "raster", mlirDenseI32ArrayGet(entries.context, TW_GRID_AXES, axes));
  add_number(&entries, "group", raster->group > 0 ? raster->group : -1);
  add(&entries, "schedule", mlirStringAttrGet(entries.context, tw_str(schedules[plan->schedule])));
  add_number(&entries, "cluster_axis", plan->cluster_axis);
  add_number(&entries, "hoist_axis", plan->hoist_axis);
  add_number(&entries, "work_axis", plan->work_axis);
  if (plan->work_axis >= 0 && plan->work_grows)
    add(&entries, "work_grows", mlirUnitAttrGet(entries.context));
  tw_set_attr(func, TW_GRID, mlirDictionaryAttrGet(entries.context, entries.count, entries.at));
}

static int64_t number_of(MlirAttribute dictionary, const char *name, int64_t otherwise) {
  MlirAttribute value = mlirDictionaryAttrGetElementByName(dictionary, tw_str(name));
  return mlirAttributeIsNull(value) ? otherwise : mlirIntegerAttrGetValueInt(value);
}

static tw_schedule_t schedule_of(MlirStringRef name) {
  int schedule = TW_SCHEDULE_DYNAMIC;
  while (schedule > 0 && !tw_str_is(name, schedules[schedule]))
    schedule--;
  return (tw_schedule_t)schedule;
}

bool tw_grid_plan_read(MlirOperation func, tw_grid_plan_t *plan) {
  MlirAttribute all = tw_attr(func, TW_GRID);
  int64_t axes[TW_GRID_AXES];
  if (mlirAttributeIsNull(all))
    return false;
  tw_array_ints(mlirDictionaryAttrGetElementByName(all, tw_str("raster")), axes, TW_GRID_AXES);
  *plan = (tw_grid_plan_t){
      .raster = {.rows = (int)axes[0], .columns = (int)axes[1], .slices = (int)axes[2]},
      .schedule = schedule_of(mlirStringAttrGetValue(mlirDictionaryAttrGetElementByName(all, tw_str("schedule")))),
      .cluster_axis = (int)number_of(all, "cluster_axis", -1),
      .hoist_axis = (int)number_of(all, "hoist_axis", -1),
      .work_axis = (int)number_of(all, "work_axis", -1),
      .work_grows = !mlirAttributeIsNull(mlirDictionaryAttrGetElementByName(all, tw_str("work_grows"))),
  };
  plan->raster.group = number_of(all, "group", 0);
  return true;
}

/* facts.c - facts and hints: attributes of the dialect on modules, functions and their arguments, and what they may say
 *
 * A module has what holds for all of its kernels. What is wanted or known of one stands on its function, in tile.hints
 * (hints.def) or tile.launch (launch_record.def); which blocks run when, in tile.grid. */
#include "check.h"
#include "rules.h"
#include "tilewright/launch_record.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include <stdint.h>
#include <string.h>

/* Integers, each with its least and its largest value; lists: of each entry. Others may be anything. */
static const struct {
  const char *name;
  int64_t low, high;
  bool is_list;
} facts[] = {
    {"tile.latency", 1, 10, false},         {"tile.align", 1, INT32_MAX, false},     {"tile.div", 1, INT32_MAX, false},
    {"tile.shape_div", 1, INT32_MAX, true}, {"tile.stride_div", 0, INT32_MAX, true},
};

/* Those of a kernel as a whole: a hint whose most is 0 may say anything. */
static const struct {
  const char *name;
  int64_t low, high;
} hints[] = {
#define TW_HINT(name, least, most, meaning) {#name, least, most},
#include "tilewright/hints.def"
};

static const struct {
  const char *name, *words;
} word_hints[] = {
#define TW_WORD_HINT(name, words, meaning) {#name, words},
#include "tilewright/hints.def"
};

static const char *const tile_hints[] = {
#define TW_TILE_HINT(name, meaning) #name,
#include "tilewright/hints.def"
};

static const char *const of_modules[] = {"tile.target",      "tile.stage",       "tile.plan",
                                         "tile.plan_reason", "tile.check_sites", "tile.links"};

static bool is_called(MlirStringRef name, const char *text) {
  return name.length == strlen(text) && !memcmp(name.data, text, name.length);
}

static bool is_between(MlirAttribute value, int64_t low, int64_t high) {
  if (!mlirAttributeIsAInteger(value) || !mlirTypeIsAInteger(mlirAttributeGetType(value)) ||
      mlirIntegerTypeGetWidth(mlirAttributeGetType(value)) > 64)
    return false;
  int64_t number = mlirIntegerAttrGetValueInt(value);
  return number >= low && number <= high;
}

static bool are_between(MlirAttribute list, int64_t low, int64_t high) {
  bool all = mlirAttributeIsADenseI64Array(list);
  for (intptr_t i = 0; all && i < mlirDenseArrayGetNumElements(list); i++) {
    int64_t number = mlirDenseI64ArrayGetElement(list, i);
    all = number >= low && number <= high;
  }
  return all;
}

/* Whether a text is one of the words of a list, which spaces part. */
static bool is_word_of(MlirStringRef text, const char *words) {
  for (const char *at = words, *end; *at; at = *end ? end + 1 : end) {
    end = at + strcspn(at, " ");
    if (text.length == (size_t)(end - at) && !memcmp(text.data, at, text.length))
      return true;
  }
  return false;
}

/* `kind(tile)` */
static bool is_of_tile(MlirStringRef name, const char *kind) {
  size_t length = strlen(kind);
  return name.length > length + 2 && !memcmp(name.data, kind, length) && name.data[length] == '(' &&
         name.data[name.length - 1] == ')';
}

static bool verify_hint(const tw_check_t *check, MlirStringRef name, MlirAttribute value) {
  for (size_t i = 0; i < sizeof word_hints / sizeof *word_hints; i++)
    if (is_called(name, word_hints[i].name))
      return (mlirAttributeIsAString(value) && is_word_of(mlirStringAttrGetValue(value), word_hints[i].words)) ||
             tw_fail(check, "has the hint %s, which is none of: %s", word_hints[i].name, word_hints[i].words);
  for (size_t i = 0; i < sizeof tile_hints / sizeof *tile_hints; i++)
    if (is_of_tile(name, tile_hints[i]))
      return mlirAttributeIsAString(value) ||
             tw_fail(check, "has the hint %.*s, which is no text", (int)name.length, name.data);
  for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
    if (is_called(name, hints[i].name))
      return hints[i].high == 0 || is_between(value, hints[i].low, hints[i].high) ||
             tw_fail(check, "has the hint %s, which is no integer from %lld to %lld", hints[i].name,
                     (long long)hints[i].low, (long long)hints[i].high);
  return tw_fail(check, "has no hint %.*s", (int)name.length, name.data);
}

/* Numbers only: the others are checked when bytes are made of them. */
static bool verify_launch(const tw_check_t *check, MlirStringRef name, MlirAttribute value) {
  for (size_t i = 0; i < tw_launch_rows.count; i++) {
    const tw_row_t *row = &tw_launch_rows.rows[i];
    if (is_called(name, row->name))
      return row->of || row->is_array || is_between(value, row->least, row->most) ||
             tw_fail(check, "has %s in its launch record, which is no integer from %lld to %lld", row->name,
                     (long long)row->least, (long long)row->most);
  }
  return tw_fail(check, "has no field %.*s of a launch record", (int)name.length, name.data);
}

static bool verify_entries(const tw_check_t *check, MlirAttribute value,
                           bool (*verify)(const tw_check_t *check, MlirStringRef name, MlirAttribute value)) {
  if (!mlirAttributeIsADictionary(value))
    return tw_fail(check, "has tile.hints, tile.launch or tile.grid that is no dictionary");
  bool good = true;
  for (intptr_t i = 0; good && i < mlirDictionaryAttrGetNumElements(value); i++) {
    MlirNamedAttribute entry = mlirDictionaryAttrGetElement(value, i);
    good = verify(check, mlirIdentifierStr(entry.name), entry.attribute);
  }
  return good;
}

/* ---- tile.grid (lowering/gpu/grid/grid_plan.h) ----------------------------------------------------------- */

enum { GRID_AXES = 3 };

static MlirAttribute entry(MlirAttribute dictionary, const char *name) {
  return mlirDictionaryAttrGetElementByName(dictionary, mlirStringRefCreateFromCString(name));
}

static bool has_entry(MlirAttribute dictionary, const char *name) {
  return !mlirAttributeIsNull(entry(dictionary, name));
}

/* Each axis of a grid once. */
static bool are_axes(MlirAttribute list) {
  unsigned seen = 0;
  if (mlirAttributeIsNull(list) || !mlirAttributeIsADenseI32Array(list) ||
      mlirDenseArrayGetNumElements(list) != GRID_AXES)
    return false;
  for (intptr_t i = 0; i < GRID_AXES; i++) {
    int32_t axis = mlirDenseI32ArrayGetElement(list, i);
    seen |= axis >= 0 && axis < GRID_AXES ? 1U << axis : 0;
  }
  return seen == (1U << GRID_AXES) - 1;
}

static bool verify_grid_entry(const tw_check_t *check, MlirStringRef name, MlirAttribute value) {
  static const char *const axes[] = {"cluster_axis", "hoist_axis", "work_axis"};
  for (size_t i = 0; i < sizeof axes / sizeof *axes; i++)
    if (is_called(name, axes[i]))
      return is_between(value, 0, GRID_AXES - 1) || tw_fail(check, "has tile.grid whose %s is no axis", axes[i]);
  if (is_called(name, "group"))
    return is_between(value, 1, INT32_MAX) || tw_fail(check, "has tile.grid whose group is no number of rows");
  return is_called(name, "raster") || is_called(name, "schedule") || is_called(name, "work_grows") ||
         tw_fail(check, "has no entry %.*s of tile.grid", (int)name.length, name.data);
}

/* What goes with each schedule. */
static bool verify_grid(const tw_check_t *check, MlirAttribute value) {
  static const struct {
    const char *name;
    bool shares; /* neighbours may be a cluster, or have their common work hoisted */
    bool ordered, must_be_ordered;
  } schedules[] = {{"launch", false, false, false},
                   {"static", true, false, false},
                   {"serpentine", false, true, true},
                   {"dynamic", false, true, false}};
  if (!verify_entries(check, value, verify_grid_entry))
    return false;
  if (!are_axes(entry(value, "raster")))
    return tw_fail(check, "has tile.grid whose raster is not the axes of a grid in some order");
  MlirAttribute schedule = entry(value, "schedule");
  bool clusters = has_entry(value, "cluster_axis"), hoists = has_entry(value, "hoist_axis");
  bool ordered = has_entry(value, "work_axis");
  for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++)
    if (!mlirAttributeIsNull(schedule) && mlirAttributeIsAString(schedule) &&
        is_called(mlirStringAttrGetValue(schedule), schedules[i].name))
      return (clusters + hoists <= schedules[i].shares && ordered <= schedules[i].ordered &&
              ordered >= schedules[i].must_be_ordered) ||
             tw_fail(check, "has tile.grid whose axes do not go with the schedule \"%s\"", schedules[i].name);
  return tw_fail(check, "has tile.grid without a schedule: launch, static, serpentine or dynamic");
}

static bool is_of_module(MlirStringRef name) {
  bool found = false;
  for (size_t i = 0; i < sizeof of_modules / sizeof *of_modules; i++)
    found |= is_called(name, of_modules[i]);
  return found;
}

static bool verify_fact(const tw_check_t *check, MlirStringRef name, MlirAttribute value) {
  if (is_called(name, "tile.hints"))
    return verify_entries(check, value, verify_hint);
  if (is_called(name, "tile.launch"))
    return verify_entries(check, value, verify_launch);
  if (is_called(name, "tile.grid"))
    return verify_grid(check, value);
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
    if (is_called(name, facts[i].name))
      return (facts[i].is_list ? are_between(value, facts[i].low, facts[i].high)
                               : is_between(value, facts[i].low, facts[i].high)) ||
             tw_fail(check, "has %s that is no %s from %lld to %lld", facts[i].name,
                     facts[i].is_list ? "list of 64-bit integers" : "integer", (long long)facts[i].low,
                     (long long)facts[i].high);
  return true;
}

MlirLogicalResult tw_verify_attribute(MlirOperation op, MlirStringRef name, MlirAttribute value) {
  tw_check_t check = {.op = mlirIdentifierStr(mlirOperationGetName(op)), .location = mlirOperationGetLocation(op)};
  bool good = is_called(check.op, "builtin.module") && !is_of_module(name)
                  ? tw_fail(&check,
                            "has %.*s, which is of one kernel: it stands on that function, in tile.hints or "
                            "tile.launch",
                            (int)name.length, name.data)
                  : verify_fact(&check, name, value);
  return good ? mlirLogicalResultSuccess() : mlirLogicalResultFailure();
}

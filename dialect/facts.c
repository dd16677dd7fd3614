/* facts.c - facts and hints: attributes of the dialect on modules, functions and their arguments, and what they may say */
#include "check.h"
#include "rules.h"

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
    {"tile.num_warps", 1, 32, false},          {"tile.num_stages", 1, 16, false},
    {"tile.occupancy", 1, 32, false},          {"tile.num_ctas", 1, 16, false},
    {"tile.cluster_axis", 0, 2, false},        {"tile.opt_level", 0, 3, false},
    {"tile.programmatic", 0, 1, false},        {"tile.fp8_fast_accum", 0, 1, false},
    {"tile.stale_softmax", 0, 1, false},       {"tile.layout_choice", 0, 7, false},
    {"tile.split_k", 0, 64, false},            {"tile.cut_tiles", 0, 16, false},
    {"tile.fuse_tiles", 0, 16, false},         
    {"tile.race_check", 0, 1, false},          {"tile.latency", 1, 10, false},
    {"tile.align", 1, INT32_MAX, false},       {"tile.div", 1, INT32_MAX, false},
    {"tile.shape_div", 1, INT32_MAX, true},    {"tile.stride_div", 0, INT32_MAX, true},
    {"tile.shared_bytes", 0, INT32_MAX, false},
};

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

MlirLogicalResult tw_verify_attribute(MlirOperation op, MlirStringRef name, MlirAttribute value) {
  tw_check_t check = {.op = mlirIdentifierStr(mlirOperationGetName(op)), .location = mlirOperationGetLocation(op)};
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
    if (name.length != strlen(facts[i].name) || memcmp(name.data, facts[i].name, name.length))
      continue;
    bool fits = facts[i].is_list ? are_between(value, facts[i].low, facts[i].high)
                                 : is_between(value, facts[i].low, facts[i].high);
    if (fits)
      return mlirLogicalResultSuccess();
    tw_fail(&check, "has %s that is no %s from %lld to %lld", facts[i].name,
            facts[i].is_list ? "list of 64-bit integers" : "integer", (long long)facts[i].low, (long long)facts[i].high);
    return mlirLogicalResultFailure();
  }
  return mlirLogicalResultSuccess();
}

/* rounded.c - rule: arithmetic rounded as told: an instruction each, or the assembler's own division and root */
#include "lowering/gpu/emit/rules.h"
#include "tilewright/dialect.h"

#include <stdio.h>

static MlirValue one_element(tw_emitter_t *e, MlirOperation op, const MlirValue *x) {
  static const char *const kinds[] = {
      [TW_ROUNDED_ADD] = "add", [TW_ROUNDED_SUB] = "add",   [TW_ROUNDED_MUL] = "mul",
      [TW_ROUNDED_DIV] = "div", [TW_ROUNDED_SQRT] = "sqrt",
  };
  static const char *const roundings[] = {
      [TW_ROUND_RN] = "rn", [TW_ROUND_RZ] = "rz", [TW_ROUND_RM] = "rm", [TW_ROUND_RP] = "rp"};
  int64_t kind = tw_attr_int(op, "kind", TW_ROUNDED_ADD), rounding = tw_attr_int(op, "rounding", TW_ROUND_RN);
  MlirType type = mlirValueGetType(x[0]);
  MlirValue operands[2] = {x[0], kind == TW_ROUNDED_SQRT ? x[0] : x[1]};
  if (kind == TW_ROUNDED_SUB)
    operands[1] = twg_unary(e, "llvm.fneg", x[1]);
  char name[64];
  snprintf(name, sizeof name, "llvm.nvvm.%s.%s.%s", kinds[kind], roundings[rounding], mlirTypeIsAF64(type) ? "d" : "f");
  return twg_intrinsic(e, name, type, kind == TW_ROUNDED_SQRT ? 1 : 2, operands, TW_PTX_NOTHING);
}

static bool rule_rounded(tw_emitter_t *e, MlirOperation op) { return twg_each_register(e, op, one_element); }

TWG_RULE(TW_TILE_ROUNDED, rule_rounded)

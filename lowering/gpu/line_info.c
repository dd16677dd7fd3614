/* line_info.c - which line of Python each instruction comes from, for debuggers and profilers: the last step of
 * tile-to-nvvm
 *
 * Before:
 *
 *   llvm.func @k(...) { %0 = llvm.fmul ... loc("k.py":4:9 to :14)
 *                       %1 = llvm.fadd ... loc(callsite("helper"("k.py":9:12 to :17) at "k.py":5:9 to :20)) }
 * loc("k.py":2:0)
 *
 * After:
 *
 *   #kernel = #llvm.di_subprogram<..., name = "k", file = "k.py", line = 2>
 *   #helper = #llvm.di_subprogram<..., name = "helper", file = "k.py", line = 9>
 *   llvm.func @k(...) { %0 = llvm.fmul ... loc("k.py":4:9 to :14)
 *                       %1 = llvm.fadd ... loc(callsite(fused<#helper>["k.py":9:12 to :17] at "k.py":5:9 to :20)) }
 *     loc(fused<#kernel>["k.py":2:0])
 *
 * so that the translation to LLVM IR gives instructions a DebugLoc, and PTX `.file` and `.loc` directives: those of a
 * helper name its own line. LLVM 22 writes the line of the call into a comment, and no `inlined_at` for PTX. Nothing
 * else is said of the program: no variables, no sections, and the same instructions.
 *
 * For kernels with the hint `line_info`. */
#include "lowering/gpu/line_info.h"
#include "lowering/ir.h"
#include "lowering/launch_record.h"

#include "mlir-c/Dialect/LLVM.h"

#include <stdlib.h>

enum { DEFINITION = 1 << 3, OPTIMIZED = 1 << 4, LANGUAGE_PYTHON = 0x14, NORMAL_CALL = 0 };

typedef struct {
  MlirContext context;
  MlirAttribute unit, type;
  tw_map_t subprograms; /* by the name of a function and its file */
  tw_map_t locations;   /* what each became: many ops share one */
} lines_t;

static MlirAttribute string(MlirContext context, MlirStringRef text) { return mlirStringAttrGet(context, text); }

/* An attribute that is like no other. */
static MlirAttribute distinct(MlirContext context) { return mlirDisctinctAttrCreate(mlirUnitAttrGet(context)); }

/* The innermost place of a location, or null where it has none. */
static MlirLocation place_of(MlirLocation at) {
  if (mlirLocationIsACallSite(at))
    return place_of(mlirLocationCallSiteGetCallee(at));
  if (mlirLocationIsAName(at))
    return place_of(mlirLocationNameGetChildLoc(at));
  return mlirLocationIsAFileLineColRange(at) ? at : (MlirLocation){NULL};
}

static MlirAttribute file_of(MlirContext context, MlirLocation place) {
  MlirStringRef path = mlirIdentifierStr(mlirLocationFileLineColRangeGetFilename(place));
  size_t skip = path.length;
  while (skip > 0 && path.data[skip - 1] != '/')
    skip--;
  size_t folder = skip > 0 ? skip - 1 : 0;
  return mlirLLVMDIFileAttrGet(context, string(context, mlirStringRefCreate(path.data + skip, path.length - skip)),
                               string(context, mlirStringRefCreate(path.data, folder)));
}

static MlirAttribute subprogram(const lines_t *l, MlirStringRef name, MlirLocation place) {
  unsigned line = (unsigned)mlirLocationFileLineColRangeGetStartLine(place);
  MlirAttribute none = {NULL}, text = string(l->context, name);
  return mlirLLVMDISubprogramAttrGet(l->context, none, false, distinct(l->context), l->unit, none, text, none,
                                     file_of(l->context, place), line, line, DEFINITION | OPTIMIZED, l->type, 0, NULL,
                                     0, NULL);
}

static MlirLocation with_scope(const lines_t *l, MlirLocation at, MlirAttribute scope) {
  return mlirLocationFusedGet(l->context, 1, &at, scope);
}

/* The scope of a function that is inlined. Functions of one name in one file share one. */
static MlirAttribute helper_scope(lines_t *l, MlirLocation named, MlirLocation place) {
  MlirStringRef path = mlirIdentifierStr(mlirLocationFileLineColRangeGetFilename(place));
  MlirAttribute name = string(l->context, mlirIdentifierStr(mlirLocationNameGetName(named)));
  MlirAttribute both[] = {name, string(l->context, path)};
  const void *key = mlirArrayAttrGet(l->context, 2, both).ptr;
  const MlirValue *known = tw_map_get(&l->subprograms, key, NULL);
  if (known)
    return (MlirAttribute){known->ptr};
  MlirAttribute scope = subprogram(l, mlirStringAttrGetValue(name), place);
  tw_map_set(&l->subprograms, key, 1, &(MlirValue){scope.ptr});
  return scope;
}

static MlirLocation scoped(lines_t *l, MlirLocation at) {
  if (mlirLocationIsACallSite(at)) {
    MlirLocation callee = scoped(l, mlirLocationCallSiteGetCallee(at));
    return mlirLocationCallSiteGet(callee, scoped(l, mlirLocationCallSiteGetCaller(at)));
  }
  MlirLocation place = place_of(at);
  if (!mlirLocationIsAName(at) || mlirLocationIsNull(place))
    return at;
  return with_scope(l, place, helper_scope(l, at, place));
}

static MlirWalkResult visit(MlirOperation op, void *user) {
  lines_t *l = user;
  MlirLocation at = mlirOperationGetLocation(op);
  if (mlirLocationIsAName(at)) /* of a tile */
    at = mlirLocationNameGetChildLoc(at);
  if (!mlirLocationIsACallSite(at))
    return MlirWalkResultAdvance;
  const MlirValue *known = tw_map_get(&l->locations, at.ptr, NULL);
  MlirLocation to = known ? (MlirLocation){known->ptr} : scoped(l, at);
  if (!known)
    tw_map_set(&l->locations, at.ptr, 1, &(MlirValue){(void *)to.ptr});
  mlirOperationSetLocation(op, to);
  return MlirWalkResultAdvance;
}

static void describe_kernel(MlirOperation func, MlirLocation place) {
  lines_t l = {.context = mlirOperationGetContext(func)};
  MlirAttribute none = {NULL};
  l.type = mlirLLVMDISubroutineTypeAttrGet(l.context, NORMAL_CALL, 0, NULL);
  l.unit = mlirLLVMDICompileUnitAttrGet(l.context, distinct(l.context), LANGUAGE_PYTHON, file_of(l.context, place),
                                        string(l.context, tw_str("tilewright")), true,
                                        MlirLLVMDIEmissionKindDebugDirectivesOnly, MlirLLVMDINameTableKindNone, none);
  mlirOperationWalk(func, visit, &l, MlirWalkPreOrder);
  MlirAttribute scope = subprogram(&l, tw_attr_string(func, "sym_name"), place);
  mlirOperationSetLocation(func, with_scope(&l, place, scope));
  tw_map_free(&l.subprograms);
  tw_map_free(&l.locations);
}

void tw_add_line_info(MlirOperation module) {
  TW_EACH_OP(op, tw_region_block(module, 0)) {
    MlirLocation place = place_of(mlirOperationGetLocation(op));
    if (tw_op_is(op, TW_LLVM_FUNC) && tw_has_hint_line_info(op) && !mlirLocationIsNull(place))
      describe_kernel(op, place);
  }
}

/* dependent_launch.c - tile-dependent-launch: a kernel starts before its predecessor in the stream has ended
 *
 * Before: kernels as the code of one thread. A launch waits until the kernel before it has ended and written its
 * memory, and only then are blocks started, parameters fetched and barriers set up.
 *
 *   llvm.func @k(%ptr: i64) attributes {nvvm.kernel} {
 *     %tid = nvvm.read.ptx.sreg.tid.x : i32
 *     %x = llvm.inline_asm has_side_effects "ld.global..." ...
 *
 * After: the kernel itself waits for its predecessor (programmatic dependent launch), on every path and before the
 * first access to memory that others see; and it lets its successor start as soon as its own blocks have. Those that
 * have ended have let it: the last LAST_BLOCKS of the grid say so, and all of a persistent kernel.
 *
 *   llvm.func @k(%ptr: i64) attributes {nvvm.kernel} {
 *     llvm.inline_asm has_side_effects "... @last griddepcontrol.launch_dependents; ..."
 *     %tid = nvvm.read.ptx.sreg.tid.x : i32
 *     nvvm.griddepcontrol wait
 *     %x = llvm.inline_asm has_side_effects "ld.global..." ...
 *
 * The launch record gets dependent_launch, from which the launcher knows that the overlap is allowed; a kernel that
 * comes with the hint dependent_launch = 0 is left as it is, and so are targets without the feature. A kernel of
 * threads needs the hint 1: it tends to have very many short blocks, each of which would run both instructions.
 *
 * Why not each block: the hardware takes some 800 of these words in a microsecond, and would start more blocks than
 * that (docs/design/measurements.md).
 *
 * What must hold: the wait dominates the exits and everything that touches global memory. So it stands in the entry
 * block or in blocks that follow it without a choice, before the first op that is not known to be harmless: arithmetic,
 * reads of special registers, shared memory and its barriers are. Letting the successor start is always right: a
 * successor that was launched to overlap waits in its turn until this kernel has ended. */
#include "lowering/gpu/facts/inline_ptx.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/ir.h"
#include "lowering/launch_record.h"
#include "lowering/passes.h"
#include "tilewright/base.h"

#include "mlir-c/Dialect/LLVM.h"

#include <stdio.h>
#include <string.h>

/* Ops of llvm that reach memory, or leave the block. */
static const char *const llvm_stops[] = {
    "llvm.load",  "llvm.store",  "llvm.inline_asm", "llvm.call",    "llvm.intr.",  "llvm.atomic", "llvm.cmpxchg",
    "llvm.fence", "llvm.invoke", "llvm.br",         "llvm.cond_br", "llvm.switch", "llvm.return", "llvm.unreachable"};
/* Ops of nvvm that reach nothing but registers and shared memory. */
static const char *const nvvm_harmless[] = {"nvvm.read.ptx.sreg.", "nvvm.barrier", "nvvm.elect.sync"};

static bool starts_with(MlirStringRef name, const char *prefix) {
  size_t n = strlen(prefix);
  return name.length >= n && !memcmp(name.data, prefix, n);
}

static bool starts_with_any(MlirStringRef name, const char *const *prefixes, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (starts_with(name, prefixes[i]))
      return true;
  return false;
}

static bool in_shared(MlirValue address) {
  MlirType type = mlirValueGetType(address);
  return mlirTypeIsALLVMPointerType(type) && mlirLLVMPointerTypeGetAddressSpace(type) == 3;
}

static bool is_harmless(MlirOperation op) {
  MlirStringRef name = tw_op_name(op);
  if (tw_op_is(op, TW_LLVM_STORE))
    return in_shared(mlirOperationGetOperand(op, 1));
  if (tw_op_is(op, TW_LLVM_LOAD))
    return in_shared(mlirOperationGetOperand(op, 0));
  if (tw_op_is(op, TW_LLVM_INLINE_ASM))
    return tw_ptx_does(op, TW_PTX_SETS_UP) || !tw_has_attr(op, "has_side_effects");
  if (tw_op_is(op, TW_LLVM_CALL_INTRINSIC))
    return starts_with(tw_attr_string(op, "intrin"), "llvm.nvvm.shfl.");
  if (tw_op_in(op, "llvm"))
    return !starts_with_any(name, llvm_stops, sizeof llvm_stops / sizeof *llvm_stops);
  return starts_with_any(name, nvvm_harmless, sizeof nvvm_harmless / sizeof *nvvm_harmless);
}

static bool has_one_predecessor(MlirBlock block) { return mlirBlockGetNumPredecessors(block) == 1; }

/* The op before which the wait stands. */
static MlirOperation find_place(MlirBlock block) {
  for (;;) {
    MlirOperation op = mlirBlockGetFirstOperation(block);
    while (is_harmless(op))
      op = mlirOperationGetNextInBlock(op);
    if (!tw_op_is(op, TW_LLVM_BR) || !has_one_predecessor(mlirOperationGetSuccessor(op, 0)))
      return op;
    block = mlirOperationGetSuccessor(op, 0);
  }
}

static void put(MlirOperation before, const char *action) {
  char text[64];
  snprintf(text, sizeof text, "#nvvm<grid_dep_action %s>", action);
  tw_builder_t at = tw_build_before(before);
  tw_attr_t kind = {"kind", mlirAttributeParseGet(at.context, tw_str(text))};
  tw_build(&at, "nvvm.griddepcontrol", (tw_op_parts_t){.num_attrs = 1, .attrs = &kind});
}

enum { LAST_BLOCKS = 1024 }; /* as many as are there at a time, unless they are so short that waiting costs little */

static MlirWalkResult find_axes(MlirOperation op, void *user) {
  bool *axes = user;
  axes[1] |= mlirStringRefEqual(tw_op_name(op), tw_str("nvvm.read.ptx.sreg.ctaid.y"));
  axes[2] |= mlirStringRefEqual(tw_op_name(op), tw_str("nvvm.read.ptx.sreg.ctaid.z"));
  return MlirWalkResultAdvance;
}

/* Whether a block is one of the last is asked of its place along the axes that the kernel reads: of a grid with others,
 * more blocks or fewer say so. */
static void let_successor_start(MlirOperation func, MlirOperation before) {
  if (tw_launch_has_persistent(func)) {
    put(before, "launch_dependents");
    return;
  }
  static const char names[] = "xyz";
  bool axes[TW_GRID_AXES] = {true};
  mlirOperationWalk(func, find_axes, axes, MlirWalkPreOrder);
  tw_strbuf_t text = {0};
  tw_strbuf_printf(&text, "{ .reg .pred last; .reg .u32 place, count, p, n; mov.u32 place, 0; mov.u32 count, 1; ");
  for (int axis = TW_GRID_AXES - 1; axis >= 0; axis--)
    if (axes[axis])
      tw_strbuf_printf(&text,
                       "mov.u32 p, %%ctaid.%c; mov.u32 n, %%nctaid.%c; mad.lo.u32 place, place, n, p; "
                       "mul.lo.u32 count, count, n; ",
                       names[axis], names[axis]);
  tw_strbuf_printf(&text,
                   "add.u32 place, place, %d; setp.ge.u32 last, place, count; "
                   "@last griddepcontrol.launch_dependents; }",
                   LAST_BLOCKS);
  tw_builder_t at = tw_build_before(before);
  tw_attr_t attrs[] = {{"asm_string", mlirStringAttrGet(at.context, tw_str(tw_strbuf_cstr(&text)))},
                       {"constraints", mlirStringAttrGet(at.context, tw_str(""))},
                       {"has_side_effects", mlirUnitAttrGet(at.context)},
                       {TW_PTX_DOES, tw_ptx_does_attr(at.context, TW_PTX_SETS_UP)}};
  tw_build(&at, "llvm.inline_asm", (tw_op_parts_t){.num_attrs = 4, .attrs = attrs});
  tw_strbuf_free(&text);
}

static bool is_wanted(MlirOperation op) {
  return tw_op_is(op, TW_LLVM_FUNC) && tw_has_attr(op, "nvvm.kernel") &&
         tw_hint_dependent_launch(op, !tw_has_attr(op, "tile.simt")) && !tw_launch_cooperative(op, false);
}

bool tw_run_dependent_launch(MlirOperation module) {
  tw_gpu_target_t target = tw_gpu_target_of(module);
  bool able = tw_gpu_has(&target, TW_GPU_DEPENDENT_LAUNCH);
  MlirBlock body = tw_region_block(module, 0);
  for (MlirOperation op = mlirBlockGetFirstOperation(body); able && !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op)) {
    if (!is_wanted(op))
      continue;
    MlirBlock entry = tw_region_block(op, 0);
    put(find_place(entry), "wait");
    let_successor_start(op, mlirBlockGetFirstOperation(entry));
    tw_launch_set_dependent_launch(op, true);
  }
  return true;
}

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
 * first access to memory that others see; and it lets its successor start as soon as its own blocks have.
 *
 *   llvm.func @k(%ptr: i64) attributes {nvvm.kernel} {
 *     nvvm.griddepcontrol launch_dependents
 *     %tid = nvvm.read.ptx.sreg.tid.x : i32
 *     nvvm.griddepcontrol wait
 *     %x = llvm.inline_asm has_side_effects "ld.global..." ...
 *
 * The launch record gets dependent_launch, from which the launcher knows that the overlap is allowed; a kernel that
 * comes with the hint dependent_launch = 0 is left as it is, and so are targets without the feature. A kernel of
 * threads needs the hint 1: it tends to have very many short blocks, each of which would run both instructions.
 *
 * What must hold: the wait dominates the exits and everything that touches global memory. So it stands in the entry
 * block or in blocks that follow it without a choice, before the first op that is not known to be harmless: arithmetic,
 * reads of special registers, shared memory and its barriers are. Letting the successor start is always right: a
 * successor that was launched to overlap waits in its turn until this kernel has ended. */
#include "lowering/gpu/facts/inline_ptx.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/ir.h"
#include "lowering/launch_record.h"
#include "lowering/passes.h"

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
    return tw_ptx_does(op, TW_PTX_SETS_UP);
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
    put(mlirBlockGetFirstOperation(entry), "launch_dependents");
    tw_launch_set_dependent_launch(op, true);
  }
  return true;
}

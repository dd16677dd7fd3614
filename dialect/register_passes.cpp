//===- register_passes.cpp - every pass by name ---------------------------===//
//
// Includes the slow headers; kept alone so that no daily edit recompiles them.
// A pass of ours is a row of lowering/passes.def.
//
//===----------------------------------------------------------------------===//
#include "lowering/passes.h"
#include "tilewright/dialect.h"

#include "mlir/CAPI/Pass.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void tw_register_passes(void) {
  registerCanonicalizerPass();
  registerCSEPass();
  registerLoopInvariantCodeMotionPass();
  registerSymbolDCEPass();
  registerInlinerPass();
  registerSCFToControlFlowPass();
  registerArithToLLVMConversionPass();
  registerConvertControlFlowToLLVMPass();
  registerConvertFuncToLLVMPass();
  registerConvertMathToLLVMPass();
  registerConvertIndexToLLVMPass();
  registerConvertVectorToLLVMPass();
  registerConvertToLLVMPass();
  registerFinalizeMemRefToLLVMConversionPass();
  registerLowerAffinePass();
  registerReconcileUnrealizedCastsPass();
  arith::registerArithExpandOpsPass();
  memref::registerExpandStridedMetadataPass();
  for (size_t i = 0; i < tw_num_passes; i++)
    if (tw_passes[i].run)
      registerPass([i] { return std::unique_ptr<Pass>(unwrap(tw_pass_create(i))); });
}

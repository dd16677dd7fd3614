//===- register_dialects.cpp - every dialect and translation in use -------===//
//
// Includes the slow headers; kept alone so that no daily edit recompiles them.
//
//===----------------------------------------------------------------------===//
#include "Tile.h"
#include "tilewright/dialect.h"

#include "mlir/CAPI/IR.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"

using namespace mlir;

void tw_register_dialects(MlirDialectRegistry registry) {
  DialectRegistry &reg = *unwrap(registry);
  reg.insert<tw::TileDialect, arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, gpu::GPUDialect,
             LLVM::LLVMDialect, NVVM::NVVMDialect, math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
             tensor::TensorDialect, ub::UBDialect, vector::VectorDialect>();
  // The front end and the passes over tiles build ops of these dialects, and none but `tile` need occur in their input.
  reg.addExtension(+[](MLIRContext *context, tw::TileDialect *) {
    context->loadDialect<arith::ArithDialect, func::FuncDialect, math::MathDialect, memref::MemRefDialect,
                         scf::SCFDialect, tensor::TensorDialect, ub::UBDialect>();
  });
  // What convert-to-llvm asks the dialects for.
  arith::registerConvertArithToLLVMInterface(reg);
  cf::registerConvertControlFlowToLLVMInterface(reg);
  registerConvertFuncToLLVMInterface(reg);
  registerConvertMathToLLVMInterface(reg);
  vector::registerConvertVectorToLLVMInterface(reg);
  registerBuiltinDialectTranslation(reg);
  registerLLVMDialectTranslation(reg);
  registerNVVMDialectTranslation(reg);
}

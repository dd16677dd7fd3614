//===- tw-opt.cpp - every pass and pipeline by name, on textual IR --------===//
#include "tilewright/dialect.h"

#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

/// Reads the file, refuses what MLIR's parser does not survive, and runs the passes that the options name.
static llvm::LogicalResult run(llvm::StringRef input, llvm::StringRef output, mlir::DialectRegistry &registry,
                               const mlir::MlirOptMainConfig &config) {
  std::string why;
  auto in = mlir::openInputFile(input, &why);
  auto out = in ? mlir::openOutputFile(output, &why) : nullptr;
  if (!out) {
    llvm::errs() << why << "\n";
    return llvm::failure();
  }
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  if (!tw_text_is_readable(wrap(&context), wrap(input), wrap(in->getBuffer())))
    return llvm::failure();
  if (failed(mlir::MlirOptMain(out->os(), std::move(in), registry, config)))
    return llvm::failure();
  out->keep();
  return llvm::success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  mlir::DialectRegistry registry;
  tw_register_dialects(wrap(&registry));
  tw_register_passes();
  auto [input, output] = mlir::registerAndParseCLIOptions(argc, argv, "Tilewright optimizer driver\n", registry);
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  bool reads = !config.shouldShowDialects() && !config.shouldListPasses();
  return mlir::asMainReturnCode(reads ? run(input, output, registry, config)
                                      : mlir::MlirOptMain(argc, argv, input, output, registry));
}

//===- tw-opt.cpp - every pass and pipeline by name, on textual IR --------===//
#include "tilewright/dialect.h"

#include "mlir/CAPI/IR.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  tw_register_dialects(wrap(&registry));
  tw_register_passes();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Tilewright optimizer driver\n", registry));
}

//===- generate_code.cpp - what LLVM's C API has no function for ----------===//
#include "dialect/generate_code.h"
extern "C" {
#include "base/memory.h"
}

#include "mlir/CAPI/IR.h"
#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/Pass.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace {

/// Passes of a code generator, which adds them itself, but for those that are left out.
class CodePasses : public legacy::PassManager {
public:
  explicit CodePasses(const tw_left_out_t *leftOut) : leftOut(leftOut) {}

  void add(Pass *pass) override {
    if (isLeftOut(pass->getPassName()))
      delete pass;
    else
      legacy::PassManager::add(pass);
  }

  /// A row of which the code generator has fewer runs: it would have no effect, and nobody would see it.
  const tw_left_out_t *unused() {
    for (const tw_left_out_t *row = leftOut; row->name; row++)
      if (seen[row->name] < row->runs)
        return row;
    return nullptr;
  }

private:
  bool isLeftOut(StringRef name) {
    for (const tw_left_out_t *row = leftOut; row->name; row++)
      if (name == row->name)
        return seen[name]++ < row->runs;
    return false;
  }

  const tw_left_out_t *leftOut;
  StringMap<int> seen;
};

/// Leaves passes out of single functions: those that an attribute of the function names.
class FunctionGate : public OptPassGate {
public:
  explicit FunctionGate(const Module &module) : module(module) {}

  bool isEnabled() const override { return true; }

  bool shouldRunPass(StringRef pass, StringRef unit) const override {
    if (!unit.consume_front("function (") || !unit.consume_back(")"))
      return true;
    const Function *function = module.getFunction(unit);
    return !function || function->getFnAttribute(TW_LEFT_OUT).getValueAsString() != pass;
  }

private:
  const Module &module;
};

} // namespace

LLVMModuleRef tw_translate_to_llvm(MlirOperation module, LLVMContextRef context) {
#ifdef NDEBUG
  bool trusted = true;
#else
  bool trusted = false;
#endif
  return llvm::wrap(
      mlir::translateModuleToLLVMIR(unwrap(module), *llvm::unwrap(context), "LLVMDialectModule", trusted).release());
}

char *tw_generate_code(LLVMTargetMachineRef machine, LLVMModuleRef module, LLVMCodeGenFileType type,
                       const tw_left_out_t *leftOut, size_t *size, const char **why) {
  auto *target = reinterpret_cast<TargetMachine *>(machine);
  SmallString<0> code;
  raw_svector_ostream stream(code);
  CodePasses passes(leftOut);
  llvm::unwrap(module)->setDataLayout(target->createDataLayout());
  if (target->addPassesToEmitFile(passes, stream, nullptr,
                                  type == LLVMObjectFile ? CodeGenFileType::ObjectFile
                                                         : CodeGenFileType::AssemblyFile)) {
    *why = "the target has no such code";
    return nullptr;
  }
  if (const tw_left_out_t *row = passes.unused()) {
    *why = row->name;
    return nullptr;
  }
  FunctionGate gate(*llvm::unwrap(module));
  llvm::unwrap(module)->getContext().setOptPassGate(gate);
  passes.run(*llvm::unwrap(module));
  llvm::unwrap(module)->getContext().setOptPassGate(getGlobalPassGate());
  *size = code.size();
  auto *bytes = static_cast<char *>(tw_allocate(code.size() + 1, 1));
  memcpy(bytes, code.c_str(), code.size() + 1);
  return bytes;
}

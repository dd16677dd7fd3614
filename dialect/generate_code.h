/* generate_code.h - what LLVM's C API has no function for: trusted translation, and code without some passes */
#ifndef TILEWRIGHT_DIALECT_GENERATE_CODE_H
#define TILEWRIGHT_DIALECT_GENERATE_CODE_H

#include "mlir-c/IR.h"
#include "tilewright/compiler.h"

#include "llvm-c/TargetMachine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A pass of a target's code generator by the name that -time-passes prints, and how many of its runs, from the first
 * on, are left out. */
typedef struct {
  const char *name;
  int runs;
} tw_left_out_t;

/* A function's attribute: a pass that is left out of it alone, by the short name that opt takes. */
#define TW_LEFT_OUT "tile-left-out"

/* NULL after an error that is reported. LLVM's verifier runs where ours do: in builds that are not for release. */
LLVMModuleRef tw_translate_to_llvm(MlirOperation module, LLVMContextRef context);

/* Code as of LLVMTargetMachineEmitToMemoryBuffer, made without the passes in `left_out`, whose end is a row without a
 * name. To be freed; NULL if the machine has no such code, or not so many runs of a row's pass: `why` is that name. */
char *tw_generate_code(LLVMTargetMachineRef machine, LLVMModuleRef module, LLVMCodeGenFileType type,
                       const tw_left_out_t *left_out, size_t *size, const char **why);

#ifdef __cplusplus
}
#endif

#endif /* TILEWRIGHT_DIALECT_GENERATE_CODE_H */

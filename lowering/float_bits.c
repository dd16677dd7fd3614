/* float_bits.c - bytes of floats, made safe for ptxas
 *
 *   %bits = bitcast double %x to i64          %bits = bitcast double %x to i64
 *                                             %kept = call i64 asm "mov.b64 $0, $1;", "=l,l"(i64 %bits)
 *   %byte = trunc i64 %bits to i8        ->   %byte = trunc i64 %kept to i8
 *
 * LLVM leaves the truncation to the store: `st.b8 [a], %rd6` of the register that `mul.f64 %rd6` wrote. ptxas, from
 * CUDA 12.8 to 13.0 at least, takes that register for a number and converts it (F2I), as it does with every float that
 * is stored as a shorter integer. A move between them is read right, and costs no instruction. */
#include "lowering/float_bits.h"

#include "llvm-c/Core.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_float(LLVMTypeRef type) {
  LLVMTypeKind kind = LLVMGetTypeKind(type);
  return kind == LLVMHalfTypeKind || kind == LLVMBFloatTypeKind || kind == LLVMFloatTypeKind ||
         kind == LLVMDoubleTypeKind;
}

/* Takes the lowest bits of a float. */
static bool cuts_float(LLVMValueRef op) {
  if (!LLVMIsATruncInst(op))
    return false;
  LLVMValueRef bits = LLVMGetOperand(op, 0);
  return LLVMIsABitCastInst(bits) && LLVMGetTypeKind(LLVMTypeOf(bits)) == LLVMIntegerTypeKind &&
         is_float(LLVMTypeOf(LLVMGetOperand(bits, 0)));
}

static void keep(LLVMBuilderRef builder, LLVMValueRef cut) {
  LLVMValueRef bits = LLVMGetOperand(cut, 0);
  LLVMTypeRef type = LLVMTypeOf(bits), function = LLVMFunctionType(type, &type, 1, false);
  unsigned width = LLVMGetIntTypeWidth(type);
  char text[] = "mov.b00 $0, $1;", constraints[] = "=?,?";
  snprintf(text, sizeof text, "mov.b%u $0, $1;", width);
  constraints[1] = constraints[3] = width == 64 ? 'l' : width == 32 ? 'r' : 'h';
  LLVMValueRef move = LLVMGetInlineAsm(function, text, strlen(text), constraints, strlen(constraints), false, false,
                                       LLVMInlineAsmDialectATT, false);
  LLVMPositionBuilderBefore(builder, cut);
  LLVMSetOperand(cut, 0, LLVMBuildCall2(builder, function, move, &bits, 1, ""));
}

void tw_keep_float_bits(LLVMModuleRef module) {
  LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block))
      for (LLVMValueRef op = LLVMGetFirstInstruction(block); op; op = LLVMGetNextInstruction(op))
        if (cuts_float(op))
          keep(builder, op);
  LLVMDisposeBuilder(builder);
}

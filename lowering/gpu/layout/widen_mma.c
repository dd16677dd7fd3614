/* widen_mma.c - tile-select-mma: widens operands for which the target has no product instruction
 *
 * Runs after select_mma.c, which may have found an instruction.
 *
 * Before, on a chip that has no matrix instruction for 8-bit floats:
 *
 *   %d = tile.mma %a, %b, %c : tensor<64x32xf8E4M3FN>, tensor<32x64xf8E4M3FN>, tensor<64x64xf32>
 *
 * After: the inputs are converted to f16, which holds every value of both 8-bit floats.
 *
 *   %x = arith.extf %a : tensor<64x32xf8E4M3FN> to tensor<64x32xf16>
 *   %y = arith.extf %b : tensor<32x64xf8E4M3FN> to tensor<32x64xf16>
 *   %d = tile.mma %x, %y, %c : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32>
 *
 * Each such product gets a remark, and so does one that runs as multiply-adds, because nothing
 * holds its inputs exactly (f32: rounding to tf32 is for the program to ask for). Runs before
 * layouts are assigned. */
#include "lowering/gpu/isa/families.h"
#include "lowering/gpu/layout/select_mma.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/ir.h"

static MlirType input_type(MlirOperation mma) { return tw_element(mlirValueGetType(mlirOperationGetOperand(mma, 0))); }

static bool is_narrow_float(MlirType element) { return mlirTypeIsAFloat(element) && tw_bits(element) == 8; }

static const char *dtype_name(MlirType element) {
  if (mlirTypeIsAF32(element))
    return "float32";
  if (mlirTypeIsAFloat8E4M3FN(element))
    return "float8_e4m3fn";
  if (mlirTypeIsAFloat8E5M2(element))
    return "float8_e5m2";
  return mlirTypeIsAInteger(element) ? "8-bit integers" : "this dtype";
}

static void widen_inputs(MlirOperation mma) {
  tw_builder_t at = tw_build_before(mma);
  for (int i = 0; i < 2; i++) {
    MlirValue input = mlirOperationGetOperand(mma, i);
    MlirType wide = tw_with_element(mlirValueGetType(input), mlirF16TypeGet(at.context));
    mlirOperationSetOperand(mma, i, tw_unary(&at, "arith.extf", wide, input));
  }
}

static void legalize(const tw_gpu_target_t *target, MlirOperation mma) {
  MlirType in = input_type(mma);
  if (tw_mma_has_instruction(mma))
    return;
  if (is_narrow_float(in)) {
    widen_inputs(mma);
    if (tw_mma_has_instruction(mma)) {
      tw_op_remark(mma, "runs on float16 inputs: %s has no matrix instruction for %s here", target->name,
                   dtype_name(in));
      return;
    }
  }
  tw_op_remark(mma, "runs as multiply-adds: %s has no matrix instruction for %s of this shape%s", target->name,
               dtype_name(in), mlirTypeIsAF32(in) ? "; inputs of tfloat32 would have one" : "");
}

bool tw_widen_mma(MlirOperation func) {
  tw_gpu_target_t target = tw_gpu_target_of(func);
  tw_ops_t products = tw_ops_in(func, tw_op_is_product, MlirWalkPreOrder);
  for (int i = 0; i < products.count; i++)
    legalize(&target, products.at[i]);
  tw_ops_free(&products);
  return true;
}

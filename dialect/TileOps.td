//===- TileOps.td - the operations of the tile dialect --------------------===//
//
// What the front end emits. Ops that only passes make are in GpuOps.td, the
// thread-level ops in SimtOps.td.
//
//===----------------------------------------------------------------------===//
#ifndef TILEWRIGHT_TILE_OPS_TD
#define TILEWRIGHT_TILE_OPS_TD

include "TileBase.td"

//===----------------------------------------------------------------------===//
// Position
//===----------------------------------------------------------------------===//

def Tile_BlockIdOp : Tile_Op<"block_id", [Pure]> {
  let summary = "index of this block along an axis of the grid";
  let form = "position"; let verifier = "verify_grid_axis";
  let pyName = "bid";
  let arguments = (ins I32Attr:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict";
}

def Tile_NumBlocksOp : Tile_Op<"num_blocks", [Pure]> {
  let summary = "number of blocks along an axis of the grid";
  let form = "position"; let verifier = "verify_grid_axis";
  let pyName = "num_blocks";
  let arguments = (ins I32Attr:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict";
}

def Tile_AssumeDivisibleOp : Tile_Op<"assume_divisible", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "an integer of which the program says that a number divides it";
  let verifier = "verify_assume"; let legalizer = "tw_legal_assume";
  let description = [{ The result is the input where that is so, and unspecified otherwise. }];
  let pyName = "assume_divisible_by";
  let arguments = (ins Tile_AnyScalar:$input, I32Attr:$divisor);
  let results = (outs Tile_AnyScalar:$result);
  let assemblyFormat = "$input `by` $divisor attr-dict `:` type($input)";
}

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

def Tile_DimOp : Tile_Op<"dim", [Pure]> {
  let summary = "extent of an array along an axis, in elements";
  let form = "position"; let verifier = "verify_array_axis";
  let arguments = (ins Tile_Array:$array, I32Attr:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$array `,` $axis attr-dict `:` type($array)";
}

def Tile_StrideOp : Tile_Op<"stride", [Pure]> {
  let summary = "distance of neighbours along an axis of an array, in elements";
  let form = "position"; let verifier = "verify_array_axis";
  let arguments = (ins Tile_Array:$array, I32Attr:$axis);
  let results = (outs I64:$result);
  let assemblyFormat = "$array `,` $axis attr-dict `:` type($array)";
}

def Tile_LoadOp : Tile_Op<"load"> {
  let summary = "read the tile at a tile index of an array";
  let access = "tile"; let scratch = "row_scratch"; let verifier = "verify_load";
  let description = [{
    Element `e` of the result is element `index * shape + e` of the array, after
    the axes of the array were permuted by `order` (axis `d` of the tile runs
    along axis `order[d]` of the array). Outside of the array the result is the
    padding, and memory is not touched. Of an array of f32 the result may be a tile
    of tf32: each element is rounded, ties to even.

    ```mlir
    %t = tile.load %a[%i, %k] padding zero : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<64x32xf32>
    ```
  }];
  let pyName = "load";
  let arguments = (ins Arg<Tile_Array, "", [MemRead]>:$array, Variadic<AnySignlessInteger>:$index,
      DefaultValuedAttr<Tile_Padding, "::tw::Padding::undetermined">:$padding,
      OptionalAttr<DenseI32ArrayAttr>:$order);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = [{
    $array `[` $index `]` (`order` $order^)? (`padding` $padding^)? attr-dict
    `:` type($array) (`,` type($index)^)? `->` type($result)
  }];
}

def Tile_StoreOp : Tile_Op<"store"> {
  let summary = "write a tile at a tile index of an array";
  let access = "tile"; let scratch = "row_scratch"; let verifier = "verify_store";
  let description = [{ The counterpart of `tile.load`; elements outside of the array are dropped. }];
  let pyName = "store";
  let arguments = (ins Arg<Tile_Array, "", [MemWrite]>:$array, Variadic<AnySignlessInteger>:$index,
      Tile_Value:$value, OptionalAttr<DenseI32ArrayAttr>:$order);
  let assemblyFormat = [{
    $value `,` $array `[` $index `]` (`order` $order^)? attr-dict
    `:` type($value) `,` type($array) (`,` type($index)^)?
  }];
}

def Tile_GatherOp : Tile_Op<"gather", [AttrSizedOperandSegments]> {
  let summary = "read elements of an array at tiles of indices";
  let access = "element"; let verifier = "verify_gather"; let legalizer = "legalize_gather";
  let description = [{
    One index tile an axis of the array, all of the shape of the result. Where the
    mask is false, or an index lies outside of the array and `check_bounds` is
    set, the result is the padding value and memory is not touched.
  }];
  let pyName = "gather";
  let arguments = (ins Arg<Tile_Array, "", [MemRead]>:$array, Variadic<Tile_Value>:$indices,
      Optional<Tile_Value>:$mask, Optional<Tile_Value>:$padding, UnitAttr:$check_bounds);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = [{
    $array `[` $indices `]` (`mask` $mask^ `:` type($mask))? (`else` $padding^ `:` type($padding))?
    attr-dict `:` type($array) (`,` type($indices)^)? `->` type($result)
  }];
}

def Tile_ScatterOp : Tile_Op<"scatter", [AttrSizedOperandSegments]> {
  let summary = "write elements of an array at tiles of indices";
  let access = "element"; let verifier = "verify_scatter"; let legalizer = "legalize_scatter";
  let description = [{ The counterpart of `tile.gather`. Which of two writes to one element wins is not said. }];
  let pyName = "scatter";
  let arguments = (ins Arg<Tile_Array, "", [MemWrite]>:$array, Variadic<Tile_Value>:$indices,
      Tile_Value:$value, Optional<Tile_Value>:$mask, UnitAttr:$check_bounds);
  let assemblyFormat = [{
    $value `,` $array `[` $indices `]` (`mask` $mask^ `:` type($mask))?
    attr-dict `:` type($value) `,` type($array) (`,` type($indices)^)?
  }];
}

def Tile_AtomicOp : Tile_Op<"atomic", [AttrSizedOperandSegments]> {
  let summary = "read, combine and write elements of an array at tiles of indices, each element at once";
  let access = "element"; let orders = "all"; let scratch = "atomic_scratch"; let verifier = "verify_atomic"; let legalizer = "legalize_atomic";
  let description = [{
    Indices, mask and `check_bounds` as in `tile.gather`; the result is what the elements were. An element that the
    mask or the bounds leave out is not touched, and its result is `expected`, or else the value. `load` writes
    nothing, and `store` reads nothing: its result is the value. Each element is one access, of which others see all or
    nothing; the elements of a tile are in no order. With `release`, what the block did before is seen by whoever
    acquires what the op writes; with `acquire`, what the block does behind the op sees what was released before;
    `seq_cst` does both, and all such accesses have one order. Scope `thread` orders nothing. Sums of floats are
    rounded to the array's dtype. NaN wins in `min` and `max`, and loses in `nanmin` and `nanmax`; `cas` compares bits.
    `is_unsigned` marks min and max of unsigned integers, after
    legalization.

    ```mlir
    %old = tile.atomic add acq_rel device, %x, %a[%i] {check_bounds}
        : tensor<64xf32>, memref<?xf32, strided<[1]>>, tensor<64xi32> -> tensor<64xf32>
    ```
  }];
  let arguments = (ins Arg<Tile_Array, "", [MemRead, MemWrite]>:$array, Variadic<Tile_Value>:$indices,
      Tile_Value:$value, Optional<Tile_Value>:$expected, Optional<Tile_Value>:$mask, Tile_AtomicKind:$kind,
      Tile_MemoryOrder:$memory_order, Tile_MemoryScope:$memory_scope, UnitAttr:$check_bounds, UnitAttr:$is_unsigned);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = [{
    $kind $memory_order $memory_scope `,` $value `,` $array `[` $indices `]` (`expected` $expected^ `:` type($expected))?
    (`mask` $mask^ `:` type($mask))? attr-dict `:` type($value) `,` type($array) (`,` type($indices)^)?
    `->` type($result)
  }];
}

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

def Tile_ConstantOp : Tile_Op<"constant", [Pure, ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "a constant of any dtype, unsigned ones included";
  let form = "source"; let verifier = "verify_constant"; let legalizer = "legalize_constant";
  let description = [{ `arith.constant` takes no unsigned integers; this op does. Legalization turns it into one. }];
  let arguments = (ins TypedAttrInterface:$value);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}

def Tile_IotaOp : Tile_Op<"iota", [Pure]> {
  let summary = "the numbers 0, 1, 2, … in one dimension";
  let form = "source"; let verifier = "verify_iota";
  let pyName = "arange";
  let numpy = "np.arange(n)";
  let results = (outs Tile_AnyTile:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

def Tile_BroadcastOp : Tile_Op<"broadcast", [Pure]> {
  let summary = "repeat a tile along axes of extent one, and along new leading axes";
  let form = "view"; let verifier = "verify_broadcast"; let legalizer = "legalize_broadcast";
  let pyName = "broadcast_to";
  let numpy = "np.broadcast_to(x, shape)";
  let arguments = (ins Tile_Value:$input);
  let results = (outs Tile_AnyTile:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

def Tile_ReshapeOp : Tile_Op<"reshape", [Pure]> {
  let summary = "the same elements in row-major order under another shape";
  let form = "view"; let verifier = "verify_reshape";
  let pyName = "reshape";
  let numpy = "np.reshape(x, shape)";
  let arguments = (ins Tile_Value:$input);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

def Tile_PermuteOp : Tile_InferredOp<"permute"> {
  let summary = "axes in another order: axis d of the result is axis order[d] of the input";
  let form = "view"; let inference = "infer_permute";
  let pyName = "permute";
  let numpy = "np.transpose(x, axes)";
  let arguments = (ins Tile_AnyTile:$input, DenseI32ArrayAttr:$order);
  let results = (outs Tile_AnyTile:$result);
  let assemblyFormat = "$input $order attr-dict `:` type($input)";
  let hasFolder = 1;
}

def Tile_CatOp : Tile_InferredOp<"cat"> {
  let summary = "two tiles of one type, one behind the other along an axis";
  let inference = "infer_cat"; let legalizer = "tw_legal_cat";
  let pyName = "cat";
  let numpy = "np.concatenate((x, y), axis)";
  let arguments = (ins Tile_AnyTile:$lhs, Tile_AnyTile:$rhs, I32Attr:$axis);
  let results = (outs Tile_AnyTile:$result);
  let assemblyFormat = "$lhs `,` $rhs `axis` $axis attr-dict `:` type($lhs) `,` type($rhs)";
}

def Tile_ExtractOp : Tile_Op<"extract", [Pure]> {
  let summary = "one of the parts of equal shape that a tile consists of";
  let verifier = "verify_extract";
  let description = [{
    Element `e` of the result is element `index * shape + e` of the input, as in `tile.load`. Outside of the input the
    result is unspecified.

    ```mlir
    %t = tile.extract %x[%i, %j] : tensor<64x32xf32>, i32, i32 -> tensor<16x32xf32>
    ```
  }];
  let pyName = "extract";
  let arguments = (ins Tile_AnyTile:$input, Variadic<AnySignlessInteger>:$index);
  let results = (outs Tile_AnyTile:$result);
  let assemblyFormat = "$input `[` $index `]` attr-dict `:` type($input) (`,` type($index)^)? `->` type($result)";
}

def Tile_InsertOp : Tile_Op<"insert", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "a tile with one of its parts, as `tile.extract` has them, in the place of what was there";
  let verifier = "verify_insert"; let legalizer = "tw_legal_insert";
  let pyName = "insert";
  let arguments = (ins Tile_AnyTile:$input, Tile_AnyTile:$value, Variadic<AnySignlessInteger>:$index);
  let results = (outs Tile_AnyTile:$result);
  let assemblyFormat = "$value `,` $input `[` $index `]` attr-dict `:` type($value) `,` type($input) (`,` type($index)^)?";
}

def Tile_BitcastOp : Tile_Op<"bitcast", [Pure]> {
  let summary = "the bits of each element as another dtype of as many bits";
  let verifier = "verify_bitcast"; let legalizer = "tw_legal_bitcast";
  let description = [{
    As tfloat32, the lowest 13 bits are dropped. Which of its bit patterns a NaN of less than 32 bits has is unspecified.
  }];
  let pyName = "bitcast";
  let numpy = "x.view(dtype)";
  let arguments = (ins Tile_Value:$input);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}

def Tile_PackToBytesOp : Tile_Op<"pack_to_bytes", [Pure]> {
  let summary = "the bytes of a tile in row-major order, the lowest of an element first";
  let verifier = "verify_pack"; let legalizer = "tw_legal_pack";
  let description = [{ Two elements of 4 bits share a byte, the first one its low half. }];
  let pyName = "pack_to_bytes";
  let numpy = "x.reshape(-1).view(np.uint8)";
  let arguments = (ins Tile_AnyTile:$input);
  let results = (outs Tile_AnyTile:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}

def Tile_UnpackFromBytesOp : Tile_Op<"unpack_from_bytes", [Pure]> {
  let summary = "bytes as the elements that `tile.pack_to_bytes` makes them of";
  let verifier = "verify_unpack"; let legalizer = "tw_legal_unpack";
  let pyName = "unpack_from_bytes";
  let numpy = "x.view(dtype)";
  let arguments = (ins Tile_AnyTile:$input);
  let results = (outs Tile_AnyTile:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

class Tile_BinaryOp<string mnemonic, list<Trait> traits = []>
    : Tile_InferredOp<mnemonic, traits> {
  let arguments = (ins Tile_Value:$lhs, Tile_Value:$rhs);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs)";
  let resultRule = "promote";
}

class Tile_UnaryOp<string mnemonic, list<Trait> traits = []>
    : Tile_InferredOp<mnemonic, traits> {
  let arguments = (ins Tile_Value:$input);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
  let resultRule = "same";
}

/// A function of real numbers: integers are converted to f32 first.
class Tile_MathOp<string mnemonic, string upstream, string np> : Tile_UnaryOp<mnemonic> {
  let pyName = mnemonic;
  let accepts = "if";
  let resultRule = "float";
  let floatOp = upstream;
  let numpy = np;
}

def Tile_AddOp : Tile_BinaryOp<"add", [Commutative]> {
  let summary = "x + y"; let pyName = "add"; let pyOperator = "+"; let numpy = "np.add(x, y)";
  let accepts = "if"; let floatOp = "arith.addf"; let signedOp = "arith.addi"; let unsignedOp = "arith.addi";
}
def Tile_SubOp : Tile_BinaryOp<"sub"> {
  let summary = "x - y"; let pyName = "sub"; let pyOperator = "-"; let numpy = "np.subtract(x, y)";
  let accepts = "if"; let floatOp = "arith.subf"; let signedOp = "arith.subi"; let unsignedOp = "arith.subi";
}
def Tile_MulOp : Tile_BinaryOp<"mul", [Commutative]> {
  let summary = "x * y"; let pyName = "mul"; let pyOperator = "*"; let numpy = "np.multiply(x, y)";
  let accepts = "if"; let floatOp = "arith.mulf"; let signedOp = "arith.muli"; let unsignedOp = "arith.muli";
}
def Tile_TrueDivOp : Tile_BinaryOp<"truediv"> {
  let summary = "x / y as real numbers; two integers divide as f32";
  let pyName = "truediv"; let pyOperator = "/"; let numpy = "np.true_divide(x, y)";
  let accepts = "if"; let resultRule = "float"; let floatOp = "arith.divf";
}
def Tile_FloorDivOp : Tile_BinaryOp<"floordiv"> {
  let summary = "x / y rounded down; unspecified where an integer y is zero";
  let legalizer = "legalize_floordiv";
  let pyName = "floordiv"; let pyOperator = "//"; let numpy = "np.floor_divide(x, y)";
  let accepts = "if"; let signedOp = "arith.floordivsi"; let unsignedOp = "arith.divui";
}
def Tile_CeilDivOp : Tile_BinaryOp<"ceildiv"> {
  let summary = "x / y rounded up, of integers; unspecified where y is zero";
  let pyName = "cdiv"; let numpy = "-(-x // y)";
  let accepts = "i"; let signedOp = "arith.ceildivsi"; let unsignedOp = "arith.ceildivui";
}
def Tile_ModOp : Tile_BinaryOp<"mod"> {
  let summary = "the remainder with the sign of y, as in Python; unspecified where an integer y is zero";
  let legalizer = "legalize_mod";
  let pyName = "mod"; let pyOperator = "%"; let numpy = "np.mod(x, y)";
  let accepts = "if"; let unsignedOp = "arith.remui";
}
def Tile_PowOp : Tile_BinaryOp<"pow"> {
  let summary = "x to the power of y; integers compute as f32, unless `integral` says that y is a constant of at least 0";
  let verifier = "verify_pow"; let legalizer = "tw_legal_pow";
  let pyName = "pow"; let pyOperator = "**"; let numpy = "np.power(x, y)";
  let accepts = "if"; let resultRule = "float"; let floatOp = "math.powf";
  let arguments = (ins Tile_Value:$lhs, Tile_Value:$rhs, UnitAttr:$integral);
}
/// With `ignore_nan` a NaN is as if it were not there.
class Tile_ExtremeOp<string mnemonic> : Tile_BinaryOp<mnemonic, [Commutative]> {
  let legalizer = "legalize_extreme"; let verifier = "verify_extreme";
  let arguments = (ins Tile_Value:$lhs, Tile_Value:$rhs, UnitAttr:$ignore_nan);
}

def Tile_MinimumOp : Tile_ExtremeOp<"minimum"> {
  let summary = "the smaller of x and y; NaN if either is NaN, or with `ignore_nan` if both are";
  let pyName = "minimum"; let numpy = "np.minimum(x, y)";
  let accepts = "if"; let floatOp = "arith.minimumf"; let signedOp = "arith.minsi"; let unsignedOp = "arith.minui";
}
def Tile_MaximumOp : Tile_ExtremeOp<"maximum"> {
  let summary = "the larger of x and y; NaN if either is NaN, or with `ignore_nan` if both are";
  let pyName = "maximum"; let numpy = "np.maximum(x, y)";
  let accepts = "if"; let floatOp = "arith.maximumf"; let signedOp = "arith.maxsi"; let unsignedOp = "arith.maxui";
}
def Tile_AndOp : Tile_BinaryOp<"and", [Commutative]> {
  let summary = "bitwise and"; let pyName = "bitwise_and"; let pyOperator = "&"; let numpy = "np.bitwise_and(x, y)";
  let resultRule = "same"; let accepts = "bi"; let signedOp = "arith.andi"; let unsignedOp = "arith.andi"; let boolOp = "arith.andi";
}
def Tile_OrOp : Tile_BinaryOp<"or", [Commutative]> {
  let summary = "bitwise or"; let pyName = "bitwise_or"; let pyOperator = "|"; let numpy = "np.bitwise_or(x, y)";
  let resultRule = "same"; let accepts = "bi"; let signedOp = "arith.ori"; let unsignedOp = "arith.ori"; let boolOp = "arith.ori";
}
def Tile_XorOp : Tile_BinaryOp<"xor", [Commutative]> {
  let summary = "bitwise exclusive or"; let pyName = "bitwise_xor"; let pyOperator = "^"; let numpy = "np.bitwise_xor(x, y)";
  let resultRule = "same"; let accepts = "bi"; let signedOp = "arith.xori"; let unsignedOp = "arith.xori"; let boolOp = "arith.xori";
}
def Tile_ShlOp : Tile_BinaryOp<"shl"> {
  let summary = "x shifted left by y bits; unspecified for y outside of the width";
  let pyName = "bitwise_lshift"; let pyOperator = "<<"; let numpy = "np.left_shift(x, y)";
  let accepts = "i"; let signedOp = "arith.shli"; let unsignedOp = "arith.shli";
}
def Tile_ShrOp : Tile_BinaryOp<"shr"> {
  let summary = "x shifted right by y bits, keeping the sign; unspecified for y outside of the width";
  let pyName = "bitwise_rshift"; let pyOperator = ">>"; let numpy = "np.right_shift(x, y)";
  let accepts = "i"; let signedOp = "arith.shrsi"; let unsignedOp = "arith.shrui";
}

def Tile_CmpOp : Tile_InferredOp<"cmp"> {
  let summary = "compare after promotion; false where a side is NaN, but true for ne";
  let legalizer = "legalize_compare";
  let accepts = "bif"; let resultRule = "bool";
  let arguments = (ins Tile_CmpKind:$kind, Tile_Value:$lhs, Tile_Value:$rhs);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "$kind `,` $lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs)";
}

def Tile_SelectOp : Tile_InferredOp<"select"> {
  let summary = "x where the condition holds, y elsewhere; all three broadcast, x and y promote";
  let inference = "infer_select"; let legalizer = "legalize_select";
  let pyName = "where"; let numpy = "np.where(c, x, y)";
  let accepts = "bifn"; let resultRule = "promote";
  let arguments = (ins Tile_Value:$condition, Tile_Value:$lhs, Tile_Value:$rhs);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "$condition `,` $lhs `,` $rhs attr-dict `:` type($condition) `,` type($lhs) `,` type($rhs)";
}

def Tile_NegOp : Tile_UnaryOp<"neg"> {
  let summary = "-x"; let pyName = "negative"; let pyOperator = "-"; let numpy = "np.negative(x)";
  let legalizer = "legalize_neg";
  let accepts = "if"; let floatOp = "arith.negf";
}
def Tile_NotOp : Tile_UnaryOp<"not"> {
  let summary = "bitwise complement"; let pyName = "bitwise_not"; let pyOperator = "~"; let numpy = "np.invert(x)";
  let legalizer = "tw_legal_not";
  let accepts = "bi";
}
def Tile_AbsOp : Tile_UnaryOp<"abs"> {
  let summary = "absolute value"; let pyName = "abs"; let numpy = "np.abs(x)";
  let accepts = "if"; let floatOp = "math.absf"; let signedOp = "math.absi";
}
def Tile_FloorOp : Tile_UnaryOp<"floor"> {
  let summary = "round down"; let pyName = "floor"; let numpy = "np.floor(x)"; let accepts = "f"; let floatOp = "math.floor";
}
def Tile_CeilOp : Tile_UnaryOp<"ceil"> {
  let summary = "round up"; let pyName = "ceil"; let numpy = "np.ceil(x)"; let accepts = "f"; let floatOp = "math.ceil";
}
def Tile_ExpOp : Tile_MathOp<"exp", "math.exp", "np.exp(x)"> { let summary = "e to the power of x"; }
def Tile_Exp2Op : Tile_MathOp<"exp2", "math.exp2", "np.exp2(x)"> { let summary = "2 to the power of x"; }
def Tile_LogOp : Tile_MathOp<"log", "math.log", "np.log(x)"> { let summary = "natural logarithm"; }
def Tile_Log2Op : Tile_MathOp<"log2", "math.log2", "np.log2(x)"> { let summary = "logarithm of base 2"; }
def Tile_SqrtOp : Tile_MathOp<"sqrt", "math.sqrt", "np.sqrt(x)"> { let summary = "square root"; }
def Tile_RsqrtOp : Tile_MathOp<"rsqrt", "math.rsqrt", "1 / np.sqrt(x)"> { let summary = "one over the square root"; }
def Tile_SinOp : Tile_MathOp<"sin", "math.sin", "np.sin(x)"> { let summary = "sine of x radians"; }
def Tile_CosOp : Tile_MathOp<"cos", "math.cos", "np.cos(x)"> { let summary = "cosine of x radians"; }
def Tile_TanOp : Tile_MathOp<"tan", "math.tan", "np.tan(x)"> { let summary = "tangent of x radians"; }
def Tile_SinhOp : Tile_MathOp<"sinh", "math.sinh", "np.sinh(x)"> { let summary = "hyperbolic sine"; }
def Tile_CoshOp : Tile_MathOp<"cosh", "math.cosh", "np.cosh(x)"> { let summary = "hyperbolic cosine"; }
def Tile_TanhOp : Tile_MathOp<"tanh", "math.tanh", "np.tanh(x)"> { let summary = "hyperbolic tangent"; }

def Tile_RoundedOp : Tile_Op<"rounded", [Pure]> {
  let summary = "x + y, x - y, x * y, x / y or the square root of x, of f32 or f64, rounded as told";
  let form = "elementwise"; let verifier = "verify_rounded";
  let description = [{
    The result is the exact number rounded once: `rn` to the nearest, ties to even, `rz` toward zero, `rm` down, `rp` up.
    What is too large becomes infinite only where it is rounded that way; an exact sum of zero is -0 under `rm`.

    ```mlir
    %z = tile.rounded add rz, %x, %y : tensor<64xf32>
    ```
  }];
  let arguments = (ins Tile_RoundedKind:$kind, Tile_Rounding:$rounding, Variadic<Tile_Value>:$inputs);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "$kind $rounding `,` $inputs attr-dict `:` type($result) `from` type($inputs)";
}

def Tile_FlushOp : Tile_Op<"flush", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "a zero of the same sign in the place of each subnormal f32";
  let form = "elementwise"; let flushes = 1; let verifier = "verify_flush";
  let description = [{
    What `flush_to_zero` does to operands and results. GPUs have it in their instructions.

    ```mlir
    %z = tile.flush %x : tensor<64xf32>
    ```
  }];
  let arguments = (ins Tile_Value:$input);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

def Tile_CastOp : Tile_Op<"cast", [Pure]> {
  let summary = "convert each element to another dtype";
  let form = "elementwise"; let verifier = "verify_cast"; let legalizer = "legalize_cast";
  let description = [{
    Floats round to nearest even, narrow floats without infinity saturate; float
    to integer truncates, and is unspecified out of range; to bool is `x != 0`.
  }];
  let pyName = "astype";
  let numpy = "x.astype(dtype)";
  let accepts = "bifn";
  let arguments = (ins Tile_Value:$input);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Reduction and matrix product
//===----------------------------------------------------------------------===//

def Tile_ReduceOp : Tile_InferredOp<"reduce"> {
  let summary = "combine the elements along one axis, which disappears";
  let form = "reduction"; let scratch = "reduce_scratch"; let verifier = "verify_reduce"; let inference = "infer_reduce"; let legalizer = "legalize_reduce";
  let description = [{
    `argmin` and `argmax` give the i32 index of the first extreme element (the
    first NaN, if there is one). With `ignore_nan`, for floats, min, max and their arg forms take a NaN only
    where there is nothing else. `is_unsigned` marks min, max and their arg forms on
    integers that are unsigned, after legalization.
  }];
  let accepts = "bif";
  let arguments = (ins Tile_ReduceKind:$kind, Tile_AnyTile:$input, I32Attr:$axis, UnitAttr:$is_unsigned,
      UnitAttr:$ignore_nan);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "$kind `,` $input `axis` $axis attr-dict `:` type($input)";
}

def Tile_ScanOp : Tile_InferredOp<"scan"> {
  let summary = "sums or products of the elements so far, along one axis";
  let form = "scan"; let scratch = "scan_scratch"; let inference = "infer_scan"; let legalizer = "legalize_reduce";
  let description = [{
    Element i of the result combines elements 0 to i of the axis, itself included; with `reverse`, those from i to the
    end. The kinds are `add` and `mul`.

    ```mlir
    %s = tile.scan add, %x axis 1 : tensor<4x1024xf32>
    ```
  }];
  let accepts = "bif";
  let arguments = (ins Tile_ReduceKind:$kind, Tile_AnyTile:$input, I32Attr:$axis, UnitAttr:$reverse);
  let results = (outs Tile_AnyTile:$result);
  let assemblyFormat = "$kind `,` $input `axis` $axis attr-dict `:` type($input)";
}

/// A function of the user's combines: its body computes one element, from what came before and what comes next.
class Tile_CombineOp<string mnemonic> : Tile_Op<mnemonic, [Pure, SingleBlock, SameVariadicOperandSize]> {
  let scratch = "scan_scratch"; let verifier = "verify_combine";
  let arguments = (ins Variadic<Tile_AnyTile>:$inputs, Variadic<Tile_AnyScalar>:$identities, I32Attr:$axis,
      UnitAttr:$reverse);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` $inputs `)` `identity` `(` $identities `)` `axis` $axis (`reverse` $reverse^)? `:` functional-type(operands, results)
    $body attr-dict
  }];
}

def Tile_ReduceByOp : Tile_CombineOp<"reduce_by"> {
  let summary = "combine the elements along one axis, which disappears, by a function of the user's";
  let form = "reduction";
  let description = [{
    The body takes a value of each input that comes first and one of each that comes behind it, and yields what they
    are together. It is associative, and the order of the elements is kept. It has scalars only and no effects. An
    identity combines with a value to that value.

    ```mlir
    %m = tile.reduce_by(%x) identity(%least) axis 1 : (tensor<4x8xf32>, f32) -> tensor<4xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = tile.maximum %a, %b : f32, f32
      tile.yield %c : f32
    }
    ```
  }];
  let pyName = "reduce";
  let results = (outs Variadic<Tile_Value>:$results);
}

def Tile_ScanByOp : Tile_CombineOp<"scan_by"> {
  let summary = "what a function of the user's makes of the elements so far, along one axis";
  let form = "scan";
  let description = [{
    As `tile.reduce_by`, of elements 0 to i of the axis for element i of the result; with `reverse`, of those from the
    end down to i.
  }];
  let pyName = "scan";
  let results = (outs Variadic<Tile_AnyTile>:$results);
}

def Tile_MapOp : Tile_Op<"map", [SingleBlock, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "run a body once for each element of tiles, in the thread that holds it";
  let orders = "all"; let verifier = "verify_map";
  let description = [{
    The body takes the elements of all inputs at one place, and yields those of the results there. It is code of a
    thread: its scalars are this element's own, it may branch and loop by them, and access elements of arrays. A body
    without results runs once for each element, one with results in each thread that holds a copy. No thread waits in it
    for others of the block. The elements are in no order.

    ```mlir
    %n = tile.map(%x) : (tensor<64xf32>) -> tensor<64xi32> {
    ^bb0(%a: f32):
      %k = scf.while (%b = %a) : (f32) -> i32 {…}
      tile.yield %k : i32
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_AnyTile>:$inputs);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<Tile_AnyTile>:$results);
  let assemblyFormat = "`(` $inputs `)` `:` functional-type(operands, results) $body attr-dict";
}

def Tile_YieldOp : Tile_Op<"yield", [Pure, Terminator, ParentOneOf<["ReduceByOp", "ScanByOp", "MapOp", "ThreadsOp"]>]> {
  let summary = "what the body of `tile.reduce_by`, `tile.scan_by` or `tile.map` makes; the end of that of `tile.threads`";
  let form = "control";
  let arguments = (ins Variadic<Tile_AnyScalar>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Tile_MmaOp : Tile_InferredOp<"mma"> {
  let summary = "a @ b + acc in the accumulator's dtype";
  let form = "product"; let noun = "product";
  let verifier = "verify_mma"; let inference = "infer_mma"; let legalizer = "legalize_mma";
  let description = [{
    `[m, k] x [k, n] + [m, n]`, or with one batch axis in front of each. Inputs of
    one dtype (the two 8-bit floats may mix; so may signed and unsigned bytes);
    the accumulator is f32 (f16, bf16, tf32, fp8), f16 (f16, fp8), f32 or f64 of
    itself, or i32 (bytes). `unsigned_lhs` and `unsigned_rhs` are set by legalization. With `fast_accum` the sums of
    8-bit floats may be as inexact as the hardware's.

    ```mlir
    %d = tile.mma %a, %b, %c : tensor<64x32xbf16>, tensor<32x64xbf16>, tensor<64x64xf32>
    ```
  }];
  let pyName = "mma";
  let numpy = "np.matmul(x, y) + z";
  let arguments = (ins Tile_AnyTile:$lhs, Tile_AnyTile:$rhs, Tile_AnyTile:$acc,
      UnitAttr:$unsigned_lhs, UnitAttr:$unsigned_rhs, UnitAttr:$fast_accum);
  let results = (outs Tile_AnyTile:$result);
  let assemblyFormat = "$lhs `,` $rhs `,` $acc attr-dict `:` type($lhs) `,` type($rhs) `,` type($acc)";
}

//===----------------------------------------------------------------------===//
// Effects
//===----------------------------------------------------------------------===//

def Tile_PrintOp : Tile_Op<"print", [MemoryEffects<[MemWrite]>]> {
  let summary = "print values while the kernel runs";
  let orders = "all"; let scratch = "tiles_scratch"; let verifier = "verify_print"; let legalizer = "legalize_print";
  let description = [{ `format` has a `{}` or a `{:spec}` for each value, with the flags, width, precision and
    letter of C's printf: `{:5.2f}`; braces that are text are doubled. A tile prints as nested brackets, once a block.
    `is_unsigned` says which values of 64 bits are, after legalization. }];
  let pyName = "print";
  let arguments = (ins StrAttr:$format, Variadic<Tile_Value>:$values, OptionalAttr<DenseBoolArrayAttr>:$is_unsigned);
  let assemblyFormat = "$format (`,` $values^ `:` type($values))? attr-dict";
}

def Tile_AssertOp : Tile_Op<"assert", [MemoryEffects<[MemWrite]>]> {
  let summary = "stop the kernel with a message where a condition does not hold for every element";
  let orders = "all"; let verifier = "verify_assert";
  let pyName = "assert_";
  let arguments = (ins Tile_Value:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict `:` type($condition)";
}

include "GpuOps.td"
include "SimtOps.td"

#endif // TILEWRIGHT_TILE_OPS_TD

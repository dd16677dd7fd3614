//===- TileBase.td - dialect, enums and the op base class -----------------===//
//
// Everything that an op says of itself is a field here. The verifiers, the type
// inference, the Python stub, the documentation, the legalization table and the
// test table all derive from these fields (tools/twgen.py reads them through
// `llvm-tblgen -dump-json`).
//
//===----------------------------------------------------------------------===//
#ifndef TILEWRIGHT_TILE_BASE_TD
#define TILEWRIGHT_TILE_BASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::tw";
  let summary = "Array programs on tiles of power-of-two shape";
  let description = [{
    Arrays in global memory are builtin `memref`s, tiles are builtin ranked
    `tensor`s of static power-of-two shape, and a tile of rank zero is a plain
    scalar. The dialect adds what is specific: tile-wise memory access, arithmetic
    that broadcasts and promotes by inference, reductions and matrix products.
  }];
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1; // the facts and hints that stand on ops of other dialects
  let hasRegionArgAttrVerify = 1; // and on the arguments of kernels
  let dependentDialects = ["::mlir::arith::ArithDialect"]; // for the constants of folders
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let discardableAttrs = (ins);
}

//===----------------------------------------------------------------------===//
// Enums: builtin i32 attributes that print as keywords
//===----------------------------------------------------------------------===//

/// In C, a value is `prefix` and its name (include/tilewright/dialect.h); Python has the words that IR prints.
class Tile_Enum<string name, string prefix, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::tw";
  string cPrefix = prefix;
}

def Tile_Padding : Tile_Enum<"Padding", "TW_PADDING_", "what a load reads outside of the array", [
    I32EnumAttrCase<"undetermined", 0>, I32EnumAttrCase<"zero", 1>,
    I32EnumAttrCase<"neg_zero", 2>, I32EnumAttrCase<"nan", 3>,
    I32EnumAttrCase<"pos_inf", 4>, I32EnumAttrCase<"neg_inf", 5>]>;

def Tile_ReduceKind : Tile_Enum<"ReduceKind", "TW_REDUCE_", "how a reduction combines", [
    I32EnumAttrCase<"add", 0>, I32EnumAttrCase<"mul", 1>,
    I32EnumAttrCase<"min", 2>, I32EnumAttrCase<"max", 3>,
    I32EnumAttrCase<"argmin", 4>, I32EnumAttrCase<"argmax", 5>]>;

def Tile_Cache : Tile_Enum<"Cache", "TW_", "which lines the L2 cache gives up", [
    I32EnumAttrCase<"evict_normal", 0>, I32EnumAttrCase<"evict_first", 1>, I32EnumAttrCase<"evict_last", 2>]>;

def Tile_CmpKind : Tile_Enum<"CmpKind", "TW_CMP_", "comparison predicate", [
    I32EnumAttrCase<"eq", 0>, I32EnumAttrCase<"ne", 1>, I32EnumAttrCase<"lt", 2>,
    I32EnumAttrCase<"le", 3>, I32EnumAttrCase<"gt", 4>, I32EnumAttrCase<"ge", 5>]>;

def Tile_RoundedKind : Tile_Enum<"RoundedKind", "TW_ROUNDED_", "what is computed and rounded once", [
    I32EnumAttrCase<"add", 0>, I32EnumAttrCase<"sub", 1>, I32EnumAttrCase<"mul", 2>,
    I32EnumAttrCase<"div", 3>, I32EnumAttrCase<"sqrt", 4>]>;

def Tile_Rounding : Tile_Enum<"Rounding", "TW_ROUND_", "to the nearest, toward zero, down or up", [
    I32EnumAttrCase<"rn", 0>, I32EnumAttrCase<"rz", 1>, I32EnumAttrCase<"rm", 2>, I32EnumAttrCase<"rp", 3>]>;

def Tile_AtomicKind : Tile_Enum<"AtomicKind", "TW_ATOMIC_", "what an atomic access makes of the old value", [
    I32EnumAttrCase<"load", 0>, I32EnumAttrCase<"store", 1>, I32EnumAttrCase<"xchg", 2>, I32EnumAttrCase<"cas", 3>,
    I32EnumAttrCase<"add", 4>, I32EnumAttrCase<"min", 5>, I32EnumAttrCase<"max", 6>,
    I32EnumAttrCase<"bit_and", 7, "and">, I32EnumAttrCase<"bit_or", 8, "or">, I32EnumAttrCase<"bit_xor", 9, "xor">,
    I32EnumAttrCase<"nanmin", 10>, I32EnumAttrCase<"nanmax", 11>]>;

def Tile_MemoryOrder : Tile_Enum<"MemoryOrder", "TW_ORDER_", "what an atomic access orders beside itself", [
    I32EnumAttrCase<"relaxed", 0>, I32EnumAttrCase<"acquire", 1>,
    I32EnumAttrCase<"release", 2>, I32EnumAttrCase<"acq_rel", 3>,
    I32EnumAttrCase<"seq_cst", 4>]>;

def Tile_MemoryScope : Tile_Enum<"MemoryScope", "TW_SCOPE_", "who sees an atomic access as one", [
    I32EnumAttrCase<"block", 0>, I32EnumAttrCase<"device", 1>, I32EnumAttrCase<"sys", 2>,
    I32EnumAttrCase<"thread", 3>]>;

def Tile_BlockVote : Tile_Enum<"BlockVote", "TW_BLOCK_", "what a barrier tells of its threads' predicates", [
    I32EnumAttrCase<"count", 0>, I32EnumAttrCase<"every", 1, "and">, I32EnumAttrCase<"some", 2, "or">]>;

def Tile_WarpVote : Tile_Enum<"WarpVote", "TW_VOTE_", "what lanes are told of their predicates", [
    I32EnumAttrCase<"all", 0>, I32EnumAttrCase<"any", 1>, I32EnumAttrCase<"uni", 2>, I32EnumAttrCase<"ballot", 3>]>;

def Tile_WarpMatch : Tile_Enum<"WarpMatch", "TW_MATCH_", "which lanes a match looks for", [
    I32EnumAttrCase<"any", 0>, I32EnumAttrCase<"all", 1>]>;

def Tile_ShuffleKind : Tile_Enum<"ShuffleKind", "TW_SHUFFLE_", "which lane a shuffle reads", [
    I32EnumAttrCase<"idx", 0>, I32EnumAttrCase<"up", 1>, I32EnumAttrCase<"down", 2>, I32EnumAttrCase<"bfly", 3, "xor">]>;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def Tile_AnyTile : RankedTensorOf<[AnyInteger, AnyFloat]>;
def Tile_AnyScalar : AnyTypeOf<[AnyInteger, AnyFloat], "scalar">;
/// A tile of any rank; rank zero is a builtin scalar.
def Tile_Value : AnyTypeOf<[AnyInteger, AnyFloat, Tile_AnyTile], "tile or scalar">;
/// A global array.
def Tile_Array : MemRefOf<[AnyInteger, AnyFloat]>;

//===----------------------------------------------------------------------===//
// Op base class
//===----------------------------------------------------------------------===//

/// Verification of every op is `tw_verify_op` in verify.c, which looks the op up
/// by name: an op needs no C++ of its own.
class Tile_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tile_Dialect, mnemonic, traits> {
  /// Name in `tilewright.tile`, or empty where Python does not see the op.
  string pyName = "";
  /// Python operator that means the same, or empty.
  string pyOperator = "";
  /// What remarks call it; empty where its own name says it.
  string noun = "";
  /// NumPy expression over x, y, z that gives the reference meaning.
  string numpy = "";
  /// Version that introduced the op.
  string since = "0.1";
  /// Kinds of dtype accepted: letters of b(ool) i(nteger) f(loat) n(arrow float).
  string accepts = "";
  /// Rule that gives the result dtype: promote, float, bool, same, or own.
  string resultRule = "own";
  /// Upstream op that computes it after promotion, by kind of dtype; empty
  /// where legalization has a rule of its own.
  string floatOp = "";
  string signedOp = "";
  string unsignedOp = "";
  string boolOp = "";
  /// The columns that passes ask (dialect/op_kinds.h). What it reads and writes follows from its operands, whether
  /// it is pure from its traits.
  /// Which elements of `array` it accesses, as passes may do in its place: tile (the tile at the tile index `index`,
  /// with its `order` and padding) or element (those at the tiles `indices`, as far as mask and bounds allow). Nothing
  /// for an op that accesses others: passes keep such an op as it is.
  string access = "";
  /// What it is: view, source, position, reduction, scan or product; elementwise ops with a `resultRule` need not say
  /// so.
  string form = "";
  /// What it orders: threads (those of the block, and what they did to shared memory), all (memory too), or nothing.
  string orders = "";
  /// Which threads of a SIMT kernel wait for each other there: block, warp, or none.
  string meets = "";
  /// Whether it gives threads of a block different numbers, though it be pure and have no operands.
  bit varies = 0;
  /// Whether it gives its operand, with zeros of the same sign in the place of subnormals.
  bit flushes = 0;
  /// Who moves bytes between an array and shared memory: threads, engine, or nobody.
  string copies = "";
  /// Whether it starts work that goes on behind it, or waits for such work: start, wait, or neither.
  string async = "";
  /// The functions of its own: in lowering/gpu/facts/scratch.c for the shared memory that it may need for itself, in
  /// verify.c, rules.c and lowering/common/legalize.c.
  string scratch = "";
  string verifier = "";
  string inference = "";
  string legalizer = "";
  let hasVerifier = 1;
  code verifyBody = [{
    ::llvm::LogicalResult $cppClass::verify() { return ::tw::verifyOp(getOperation()); }
  }];
  let extraClassDefinition = verifyBody;
}

/// An op whose result types are inferred by `tw_infer_op` in rules.c.
class Tile_InferredOp<string mnemonic, list<Trait> traits = []>
    : Tile_Op<mnemonic, !listconcat(traits, [Pure,
        DeclareOpInterfaceMethods<InferTypeOpInterface, ["inferReturnTypes"]>])> {
  let extraClassDeclaration = [{
    /// Layouts are not inferred: a pass may choose another one for the result.
    static bool isCompatibleReturnTypes(::mlir::TypeRange lhs, ::mlir::TypeRange rhs) {
      return ::tw::sameTypesButLayout(lhs, rhs);
    }
  }];
  let extraClassDefinition = verifyBody # [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *context, ::std::optional<::mlir::Location> location,
        ::mlir::ValueRange operands, ::mlir::DictionaryAttr attributes,
        ::mlir::OpaqueProperties properties, ::mlir::RegionRange,
        ::llvm::SmallVectorImpl<::mlir::Type> &results) {
      if (auto *given = properties.as<Properties *>())
        if (auto dictionary = ::llvm::dyn_cast_if_present<::mlir::DictionaryAttr>(
                ::tw::propertiesAsAttr<$cppClass>(context, *given)))
          attributes = dictionary;
      return ::tw::inferOp($cppClass::getOperationName(), context, location, operands,
                           attributes, results);
    }
  }];
}

#endif // TILEWRIGHT_TILE_BASE_TD

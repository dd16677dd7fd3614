//===- Tile.cpp - the C++ that MLIR forces on the dialect -----------------===//
//
// Generated classes, and the trampolines from them into C (rules.c). An op adds
// no line here unless it has a folder.
//
//===----------------------------------------------------------------------===//
#include "Tile.h"
#include "rules.h"
#include "tilewright/dialect.h"

#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Registration.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tw {

static Type withoutLayout(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile ? RankedTensorType::get(tile.getShape(), tile.getElementType()) : type;
}

bool sameTypesButLayout(TypeRange lhs, TypeRange rhs) {
  return lhs.size() == rhs.size() && llvm::all_of(llvm::zip(lhs, rhs), [](auto pair) {
           return withoutLayout(std::get<0>(pair)) == withoutLayout(std::get<1>(pair));
         });
}

static LogicalResult verifyOp(Operation *op) { return unwrap(tw_verify_op(wrap(op))); }

/// Attributes of an op that is not built yet: its properties, where it has any.
template <typename Op> static Attribute propertiesAsAttr(MLIRContext *context, typename Op::Properties &properties) {
  if constexpr (std::is_same_v<typename Op::Properties, EmptyProperties>)
    return {};
  else
    return Op::getPropertiesAsAttr(context, properties);
}

static LogicalResult inferOp(StringRef name, MLIRContext *context, std::optional<Location> location,
                             ValueRange operands, DictionaryAttr attributes, SmallVectorImpl<Type> &results) {
  SmallVector<MlirType, 4> types;
  for (Type type : operands.getTypes())
    types.push_back(wrap(type));
  Location where = location ? *location : UnknownLoc::get(context);
  Attribute dictionary = attributes ? attributes : DictionaryAttr::get(context);
  Type type = unwrap(tw_infer_op(wrap(name), wrap(where), types.size(), types.data(), wrap(dictionary)));
  if (!type)
    return failure();
  results.push_back(type);
  return success();
}

} // namespace tw

#include "TileDialect.cpp.inc"
#include "TileEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "TileAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "TileTypes.cpp.inc"
#define GET_OP_CLASSES
#include "TileOps.cpp.inc"

LogicalResult tw::TileDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  return unwrap(tw_verify_attribute(wrap(op), wrap(attribute.getName().getValue()), wrap(attribute.getValue())));
}

LogicalResult tw::TileDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned, NamedAttribute attribute) {
  return unwrap(tw_verify_attribute(wrap(op), wrap(attribute.getName().getValue()), wrap(attribute.getValue())));
}

void tw::TileDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "TileAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "TileTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "TileOps.cpp.inc"
      >();
}

Operation *tw::TileDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location location) {
  auto typed = dyn_cast<TypedAttr>(value);
  if (!typed || typed.getType() != type)
    return nullptr;
  // Unsigned values are ours to hold, all others upstream's: after legalization only those exist.
  if (arith::ConstantOp::isBuildableWith(value, type))
    return arith::ConstantOp::create(builder, location, type, typed);
  return ConstantOp::create(builder, location, type, typed);
}

//===----------------------------------------------------------------------===//
// Folders
//===----------------------------------------------------------------------===//

OpFoldResult tw::ConstantOp::fold(FoldAdaptor) { return getValue(); }

/// A shape op on a splat constant is the splat of the new shape.
static OpFoldResult foldSplat(Attribute input, Type result) {
  if (auto splat = dyn_cast_if_present<SplatElementsAttr>(input))
    if (auto shaped = dyn_cast<ShapedType>(result))
      return splat.resizeSplat(shaped);
  return {};
}

OpFoldResult tw::BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  return foldSplat(adaptor.getInput(), getType());
}

OpFoldResult tw::ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto before = getInput().getDefiningOp<ReshapeOp>())
    if (before.getInput().getType() == getType())
      return before.getInput();
  if (auto splat = getInput().getDefiningOp<tensor::SplatOp>())
    if (splat.getInput().getType() == getType()) // the one element of a tile
      return splat.getInput();
  if (getInput().getDefiningOp<IotaOp>() && !isa<RankedTensorType>(getType()))
    return IntegerAttr::get(getType(), 0);
  return foldSplat(adaptor.getInput(), getType());
}

OpFoldResult tw::PermuteOp::fold(FoldAdaptor adaptor) {
  if (llvm::equal(getOrder(), llvm::seq<int32_t>(0, getOrder().size())))
    return getInput();
  return foldSplat(adaptor.getInput(), getType());
}

OpFoldResult tw::CastOp::fold(FoldAdaptor) { return getInput().getType() == getType() ? getInput() : OpFoldResult(); }

void tw_emit_remark(MlirLocation location, const char *text) { emitRemark(unwrap(location)) << text; }

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(Tile, tile, tw::TileDialect)

//===- Tile.h - the generated classes of the tile dialect -----------------===//
#ifndef TILEWRIGHT_DIALECT_TILE_H
#define TILEWRIGHT_DIALECT_TILE_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "TileDialect.h.inc"

#include "TileEnums.h.inc"

namespace tw {
/// Equal, or tiles that differ in their layout only.
bool sameTypesButLayout(mlir::TypeRange lhs, mlir::TypeRange rhs);
} // namespace tw

#define GET_ATTRDEF_CLASSES
#include "TileAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "TileTypes.h.inc"
#define GET_OP_CLASSES
#include "TileOps.h.inc"

#endif // TILEWRIGHT_DIALECT_TILE_H

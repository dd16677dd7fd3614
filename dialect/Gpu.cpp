//===- Gpu.cpp - text and C face of #tile.linear, !tile.buffer, !tile.barriers ===//
#include "Tile.h"
#include "lowering/layout/layout.h"
#include "tilewright/dialect.h"

#include "mlir/CAPI/IR.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SmallVector.h"

using namespace mlir;
using namespace tw;

//===----------------------------------------------------------------------===//
// #tile.linear
//===----------------------------------------------------------------------===//

static constexpr StringRef groupNames[] = {"register", "lane", "warp", "block", "offset"};
static constexpr unsigned numGroups = std::size(groupNames);

/// [c0, c1, ...]; the first vector of the attribute fixes the rank.
static ParseResult parseVector(AsmParser &parser, unsigned &rank, SmallVectorImpl<int32_t> &coords) {
  size_t before = coords.size();
  SMLoc loc = parser.getCurrentLocation();
  auto element = [&] { return parser.parseInteger(coords.emplace_back()); };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, element))
    return failure();
  if (before == 0)
    rank = coords.size();
  if (coords.size() - before != rank)
    return parser.emitError(loc, "basis vectors differ in length");
  return success();
}

Attribute LinearAttr::parse(AsmParser &parser, Type) {
  unsigned rank = 0, next = 0;
  SmallVector<int32_t> counts(numGroups, 0), coords;
  auto group = [&]() -> ParseResult {
    StringRef name;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&name) || parser.parseEqual())
      return failure();
    while (next < numGroups && groupNames[next] != name)
      next++;
    if (next == numGroups)
      return parser.emitError(loc, "expected one of register, lane, warp, block, offset, in this order");
    auto vector = [&] {
      counts[next]++;
      return parseVector(parser, rank, coords);
    };
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, vector);
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, group))
    return {};
  return LinearAttr::get(parser.getContext(), rank, counts, coords);
}

void LinearAttr::print(AsmPrinter &printer) const {
  size_t at = 0;
  bool first = true;
  printer << '<';
  for (unsigned g = 0; g < numGroups; g++) {
    if (getCounts()[g] == 0)
      continue;
    printer << (first ? "" : ", ") << groupNames[g] << " = [";
    first = false;
    for (int32_t i = 0; i < getCounts()[g]; i++, at += getRank()) {
      printer << (i ? ", [" : "[");
      llvm::interleaveComma(getCoords().slice(at, getRank()), printer);
      printer << ']';
    }
    printer << ']';
  }
  printer << '>';
}

static LogicalResult verifyLayout(LinearAttr layout, ArrayRef<int64_t> shape,
                                  function_ref<InFlightDiagnostic()> emitError) {
  if (layout.getCoords().empty())
    return success();
  if (layout.getRank() != shape.size())
    return emitError() << "layout of rank " << layout.getRank() << " on a tile of rank " << shape.size();
  for (int32_t count : layout.getCounts())
    if (count > TW_LAYOUT_MAX_BITS)
      return emitError() << "layout with " << count << " basis vectors in one group; it has at most "
                         << int{TW_LAYOUT_MAX_BITS};
  for (auto [i, coord] : llvm::enumerate(layout.getCoords()))
    if (coord < 0 || coord >= shape[i % shape.size()])
      return emitError() << "basis vector leaves the tile: coordinate " << coord << " along an extent of "
                         << shape[i % shape.size()];
  return success();
}

LogicalResult LinearAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                         function_ref<InFlightDiagnostic()> emitError) const {
  return verifyLayout(*this, shape, emitError);
}

//===----------------------------------------------------------------------===//
// !tile.buffer
//===----------------------------------------------------------------------===//

Type BufferType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type element;
  LinearAttr layout;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) || parser.parseType(element) ||
      parser.parseComma() || parser.parseAttribute(layout) || parser.parseGreater())
    return {};
  auto emitError = [&] { return parser.emitError(loc); };
  if (shape.empty()) {
    parser.emitError(loc, "expected the number of stages");
    return {};
  }
  if (tw_elem_of(wrap(element)) == TW_NO_ELEM) {
    parser.emitError(loc, "expected elements of a dtype, found ") << element;
    return {};
  }
  constexpr int64_t most = int64_t{1} << TW_LAYOUT_MAX_BITS;
  int64_t elements = 1;
  for (int64_t extent : shape) {
    if (extent < 1 || extent > most / elements) {
      parser.emitError(loc, "expected a buffer of at most ") << most << " elements";
      return {};
    }
    elements *= extent;
  }
  if (failed(verifyLayout(layout, ArrayRef(shape).drop_front(), emitError)))
    return {};
  return BufferType::get(parser.getContext(), shape, element, layout);
}

void BufferType::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printDimensionList(getShape());
  printer << 'x' << getElementType() << ", " << getLayout() << '>';
}

//===----------------------------------------------------------------------===//
// !tile.barriers
//===----------------------------------------------------------------------===//

LogicalResult BarriersType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t count) {
  constexpr int64_t most = 1024;
  if (count < 1 || count > most)
    return emitError() << "expected 1 to " << most << " barriers, found " << count;
  return success();
}

//===----------------------------------------------------------------------===//
// C
//===----------------------------------------------------------------------===//

bool tw_attribute_is_linear(MlirAttribute attribute) { return attribute.ptr && isa<LinearAttr>(unwrap(attribute)); }

MlirAttribute tw_linear_attr_get(MlirContext context, unsigned rank, const int32_t counts[5], const int32_t *coords) {
  size_t vectors = 0;
  for (unsigned g = 0; g < numGroups; g++)
    vectors += counts[g];
  return wrap(LinearAttr::get(unwrap(context), rank, ArrayRef(counts, numGroups), ArrayRef(coords, vectors * rank)));
}

void tw_linear_attr_read(MlirAttribute attribute, unsigned *rank, const int32_t **counts, const int32_t **coords) {
  auto linear = cast<LinearAttr>(unwrap(attribute));
  *rank = linear.getRank();
  *counts = linear.getCounts().data();
  *coords = linear.getCoords().data();
}

bool tw_type_is_buffer(MlirType type) { return isa<BufferType>(unwrap(type)); }

MlirType tw_buffer_type_get(MlirContext context, intptr_t rank, const int64_t *shape, MlirType element,
                            MlirAttribute layout) {
  return wrap(BufferType::get(unwrap(context), ArrayRef(shape, rank), unwrap(element), unwrap(layout)));
}

intptr_t tw_buffer_type_rank(MlirType type) { return cast<BufferType>(unwrap(type)).getShape().size(); }

int64_t tw_buffer_type_extent(MlirType type, intptr_t dim) { return cast<BufferType>(unwrap(type)).getShape()[dim]; }

MlirType tw_buffer_type_element(MlirType type) { return wrap(cast<BufferType>(unwrap(type)).getElementType()); }

MlirAttribute tw_buffer_type_layout(MlirType type) { return wrap(cast<BufferType>(unwrap(type)).getLayout()); }

MlirType tw_barriers_type_get(MlirContext context, int64_t count) {
  return wrap(BarriersType::get(unwrap(context), count));
}

int64_t tw_barriers_type_count(MlirType type) { return cast<BarriersType>(unwrap(type)).getCount(); }

/* ir.h - what every pass needs over mlir-c: names, types, attributes, building ops, a value map
 *
 * Types: a *tile* is a ranked tensor, a *scalar* a builtin number; functions that say "tile or scalar" treat a
 * scalar as a tile of rank zero. Nothing here owns IR; the only thing to free is a tw_map_t. */
#ifndef TILEWRIGHT_LOWERING_IR_H
#define TILEWRIGHT_LOWERING_IR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "dialect/op_kinds.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/Diagnostics.h"
#include "mlir-c/IR.h"
#include "mlir-c/Pass.h"

enum { TW_MAX_RANK = 8 };

/* Each op of a block, and each use of a value, in a loop that does not remove the one at hand. */
#define TW_EACH_OP(op, block)                                                                                          \
  for (MlirOperation op = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(op);                                 \
       (op) = mlirOperationGetNextInBlock(op))
#define TW_EACH_USE(use, value)                                                                                        \
  for (MlirOpOperand use = mlirValueGetFirstUse(value); !mlirOpOperandIsNull(use); (use) = mlirOpOperandGetNextUse(use))

/* --- Names ---------------------------------------------------------------------------------------- */

static inline MlirStringRef tw_str(const char *text) { return mlirStringRefCreateFromCString(text); }
static inline MlirStringRef tw_op_name(MlirOperation op) { return mlirIdentifierStr(mlirOperationGetName(op)); }
static inline bool tw_str_is(MlirStringRef text, const char *other) {
  size_t length = strlen(other); /* known to the compiler, mostly */
  return text.length == length && !memcmp(text.data, other, length);
}
static inline bool tw_op_is(MlirOperation op, tw_op_kind_t kind) { return tw_op_is_kind(op, kind); }
/* Whether the op is a constant: upstream's, or ours, which alone holds unsigned numbers. */
static inline bool tw_is_constant(MlirOperation op) {
  return tw_op_is(op, TW_ARITH_CONSTANT) || tw_op_is(op, TW_TILE_CONSTANT);
}
/* Whether the op's name starts with `dialect` and a dot. */
bool tw_op_in(MlirOperation op, const char *dialect);
/* Whether the op gives an extent, a stride or a place in the launch: the same each time, for a scalar's price. */
bool tw_is_index_fact(MlirOperation op);
/* Whether the op only computes its results from its operands: arithmetic, views, reductions, facts of the launch.
 * Neither products nor what reads memory, which a pass names where it may count them, too. */
bool tw_is_arithmetic(MlirOperation op);
/* Whether the op, or one in it, may write to an array: all do that are not known to do something else. */
bool tw_may_write_arrays(MlirOperation op);
/* Whether an op stores to an array, whose place tw_access_array gives. */
bool tw_stores_to_array(MlirOperation op);
/* The strides of an array, -1 where one is not known before the launch; false if it has none. */
bool tw_static_strides(MlirType array, int64_t strides[TW_MAX_RANK]);
/* Whether what stands behind an atomic access sees what others did before one that releases, and the other way round.
 */
bool tw_acquires(MlirOperation op);
bool tw_releases(MlirOperation op);
/* The first op in one, itself included, that is `wanted`; null if none is. */
MlirOperation tw_find_op(MlirOperation root, bool (*wanted)(MlirOperation op, const void *user), const void *user);
/* Whether there is one, for a question that needs nothing but the op. */
bool tw_has_op_like(MlirOperation root, bool (*wanted)(MlirOperation op));
/* The first such op from `op` on, in its block, or of a block; null if there is none. */
MlirOperation tw_next_op(MlirOperation op, bool (*wanted)(MlirOperation op));
static inline MlirOperation tw_first_op(MlirBlock block, bool (*wanted)(MlirOperation op)) {
  return tw_next_op(mlirBlockGetFirstOperation(block), wanted);
}
/* The op that makes a value, or null for a block argument. */
MlirOperation tw_def(MlirValue value);
/* Whether an op has the value as an operand. */
bool tw_takes(MlirOperation op, MlirValue value);
static inline MlirOperation tw_null_op(void) { return (MlirOperation){NULL}; }
/* The first block of a region, of which ops of scf and kernels have no other. */
static inline MlirBlock tw_region_block(MlirOperation op, intptr_t region) {
  return mlirRegionGetFirstBlock(mlirOperationGetRegion(op, region));
}

/* --- Types ---------------------------------------------------------------------------------------- */

static inline bool tw_is_tile(MlirType type) { return mlirTypeIsARankedTensor(type); }
/* A tile of which tile-assign-layouts has said who holds what. */
static inline bool tw_has_layout(MlirType type) {
  return tw_is_tile(type) && !mlirAttributeIsNull(mlirRankedTensorTypeGetEncoding(type));
}
/* The element type of a tile, a memref or a vector; a scalar itself. */
MlirType tw_element(MlirType type);
static inline MlirType tw_result_element(MlirOperation op) {
  return tw_element(mlirValueGetType(mlirOperationGetResult(op, 0)));
}
static inline MlirType tw_operand_element(MlirOperation op, intptr_t i) {
  return tw_element(mlirValueGetType(mlirOperationGetOperand(op, i)));
}
/* The same shape (and layout) with another element type. */
MlirType tw_with_element(MlirType type, MlirType element);
/* A tile, or the element itself at rank zero. */
MlirType tw_tile_type(MlirType element, intptr_t rank, const int64_t *shape);
/* The type without an axis, as of what is reduced along it. */
MlirType tw_without_axis(MlirType type, intptr_t axis);
static inline intptr_t tw_rank(MlirType type) { return mlirTypeIsAShaped(type) ? mlirShapedTypeGetRank(type) : 0; }
static inline int64_t tw_extent(MlirType type, intptr_t axis) { return mlirShapedTypeGetDimSize(type, axis); }
/* The tile's type with another extent along an axis. */
MlirType tw_with_extent(MlirType type, intptr_t axis, int64_t extent);
/* Number of elements of a tile or scalar. */
int64_t tw_count(MlirType type);
/* Bits of the element type: 1 for i1, 19 for tf32 (stored in 32), 4 for f4E2M1FN. */
unsigned tw_bits(MlirType type);
/* Bytes that one element takes in an array: 1 for i1, 4 for tf32; 0 for f4E2M1FN, of which two share a byte. */
unsigned tw_bytes(MlirType type);
static inline bool tw_is_float(MlirType type) { return mlirTypeIsAFloat(tw_element(type)); }
static inline bool tw_is_int(MlirType type) { return mlirTypeIsAInteger(tw_element(type)); }
bool tw_is_bool(MlirType type);
bool tw_is_unsigned(MlirType type);
MlirType tw_i32(MlirContext context);
MlirType tw_i64(MlirContext context);

/* --- Attributes (inherent and discardable alike) ----------------------------------------------------- */

MlirAttribute tw_attr(MlirOperation op, const char *name);
bool tw_has_attr(MlirOperation op, const char *name);
int64_t tw_attr_int(MlirOperation op, const char *name, int64_t otherwise);
/* The string, or an empty one. Not terminated by a zero. */
MlirStringRef tw_attr_string(MlirOperation op, const char *name);
/* The name of a function with an ending, as a string. */
MlirAttribute tw_name_behind(MlirOperation func, const char *ending);
/* Numbers of an array<i1|i32|i64: …>; at most `max` of them. Returns how many there are, 0 without the attribute. */
intptr_t tw_attr_ints(MlirOperation op, const char *name, int64_t *out, intptr_t max);
intptr_t tw_array_ints(MlirAttribute array, int64_t *out, intptr_t max);
/* Entry of the dictionary of argument `index` of a func.func, or null. */
MlirAttribute tw_arg_attr(MlirOperation func, intptr_t index, const char *name);
void tw_set_attr(MlirOperation op, const char *name, MlirAttribute value);
void tw_set_int(MlirOperation op, const char *name, MlirType type, int64_t value);
/* Gives `to` the attributes of `from`. */
void tw_copy_attrs(MlirOperation from, MlirOperation to);
/* The function around an op, func.func or llvm.func; or null. */
MlirOperation tw_function_of(MlirOperation op);
/* Whether an op's scalars are a thread's own: in a SIMT kernel, and in the bodies of tile.map and tile.threads. */
bool tw_is_of_thread(MlirOperation op);
/* Whether a function is a kernel of tiles without code of threads, so that its grid and its tiles may be others. */
bool tw_is_of_tiles(MlirOperation func);
/* The builtin.module around an op. */
MlirOperation tw_module_of(MlirOperation op);

/* --- Building ------------------------------------------------------------------------------------- */

/* Where new ops go: before `before`, or at the end of `block` where that is null. */
typedef struct {
  MlirContext context;
  MlirBlock block;
  MlirOperation before;
  MlirLocation location;
} tw_builder_t;

typedef struct {
  const char *name;
  MlirAttribute value;
} tw_attr_t;

tw_builder_t tw_build_before(MlirOperation op);
tw_builder_t tw_build_at_end(MlirBlock block, MlirLocation location);

/* Everything that an op can have; the regions are taken over. */
typedef struct {
  intptr_t num_operands, num_results, num_attrs, num_regions;
  const MlirValue *operands;
  const MlirType *results;
  const tw_attr_t *attrs;
  const MlirRegion *regions;
} tw_op_parts_t;

/* On a quotient of f32: the program allows an error of 4 units in the last place; on a math.exp2, that what is below
 * the normal numbers is 0; on a math.exp of f32 both, and an error that grows with the operand. */
#define TW_APPROXIMATE "tile.approximate"
/* On a quotient of f32, beside that: operands and result are flushed, and it may be what the hardware's approximation
 * makes of it, which takes a divisor above 2^126 for infinity. */
#define TW_ROUGH "tile.rough"

MlirOperation tw_build(const tw_builder_t *at, const char *name, tw_op_parts_t parts);
/* A region with that block, or with none where it is null. */
MlirRegion tw_region_with(MlirBlock block);
/* An op with one result; `tw_op1_attr` gives it one attribute, `tw_op1_attrs` several. */
MlirValue tw_op1(const tw_builder_t *at, const char *name, MlirType result, intptr_t num, const MlirValue *operands);
MlirValue tw_op1_attr(const tw_builder_t *at, const char *name, MlirType result, intptr_t num,
                      const MlirValue *operands, const char *attr, MlirAttribute value);
MlirValue tw_op1_attrs(const tw_builder_t *at, const char *name, MlirType result, intptr_t num,
                       const MlirValue *operands, intptr_t num_attrs, const tw_attr_t *attrs);
MlirValue tw_unary(const tw_builder_t *at, const char *name, MlirType result, MlirValue x);
MlirValue tw_binary(const tw_builder_t *at, const char *name, MlirType result, MlirValue x, MlirValue y);
/* Predicates of arith.cmpi, and of llvm.icmp. */
enum { TW_EQ, TW_NE, TW_SLT, TW_SLE, TW_SGT, TW_SGE, TW_ULT, TW_ULE, TW_UGT, TW_UGE };
/* Of scalars, as an i1. */
MlirValue tw_compare(const tw_builder_t *at, int predicate, MlirValue x, MlirValue y);
MlirValue tw_select(const tw_builder_t *at, MlirValue condition, MlirValue x, MlirValue y);
/* Where it stands, x fastest, an i32: of a block in the grid ("tile.block_id", "tile.num_blocks"), of a thread in its
 * block ("tile.thread_id", "tile.block_dim"). */
MlirValue tw_linear_number(const tw_builder_t *at, const char *index, const char *extent);
/* On a load, of a tile or of one thread: nothing that the kernel stores changes what it gives, and it may wait until a
 * store needs it, or the one before (tile-sink-loads, tile-order-stores). A number: or until so many words are filled
 * at a time. Then, and on a store with a number, the pieces of the tile stand in one block, at the edge of
 * an array, too (memory/late_loads.c). */
#define TW_LATE "tile.late"
/* On a tile.reduce: a thread adds up what it has one after the other, because registers are few. */
#define TW_IN_ORDER "tile.in_order"
/* The sums of a tile along an axis, which the result has not. */
MlirValue tw_sum_along(const tw_builder_t *at, MlirValue x, int64_t axis, bool in_order);
/* A tile in another shape, or repeated; itself where it has that type. */
MlirValue tw_reshape(const tw_builder_t *at, MlirType to, MlirValue x);
MlirValue tw_broadcast(const tw_builder_t *at, MlirType to, MlirValue x);
/* Axis d of the result is axis order[d] of the tile. */
MlirValue tw_permute(const tw_builder_t *at, MlirType to, MlirValue x, const int32_t *order);
/* The transpose of a matrix: what it was made from, where it is one itself. */
MlirValue tw_transposed(const tw_builder_t *at, MlirValue matrix);
/* arith.constant of a tile or scalar, every element the same. (Of an unsigned type only within tile-legalize.) */
MlirValue tw_const_int(const tw_builder_t *at, MlirType type, int64_t value);
MlirValue tw_const_float(const tw_builder_t *at, MlirType type, double value);
MlirAttribute tw_splat_int(MlirType type, int64_t value);
MlirAttribute tw_splat_float(MlirType type, double value);
/* If `value` is a constant integer (a splat counts), returns it. */
bool tw_known_int(MlirValue value, int64_t *out);
/* Whether two are one value, or equal constants. */
bool tw_is_same_number(MlirValue a, MlirValue b);
bool tw_known_float(MlirValue value, double *out);
/* If `value` is a product of floats with a constant, returns that and the other operand. */
bool tw_has_factor(MlirValue value, double *factor, MlirValue *rest);
/* Whether it is the constant zero of either kind; -0.0 is another number. */
bool tw_is_zero(MlirValue value);

/* --- Messages ------------------------------------------------------------------------------------- */

/* Writes shape and element type of a tile or buffer, as in 128x64xbf16, for a message. */
void tw_describe_tile(MlirType type, size_t size, char *out);

/* "'tile.load' op …" at the op's location, printf style. */
__attribute__((format(printf, 2, 3))) void tw_op_error(MlirOperation op, const char *format, ...);
__attribute__((format(printf, 2, 3))) void tw_op_remark(MlirOperation op, const char *format, ...);

/* The same for what a block, or a thread, has too little of: an error, upon which the kernel is planned again
 * (tile-plan-block). The attribute TW_DOES_NOT_FIT of the function says of what. */
#define TW_DOES_NOT_FIT "tile.does_not_fit"
#define TW_REFUSED_HINT "hint" /* which no other plan mends */
#define TW_REGISTERS "registers"
#define TW_SHARED_MEMORY "shared memory"
__attribute__((format(printf, 3, 4))) void tw_op_does_not_fit(MlirOperation op, const char *what, const char *format,
                                                              ...);

/* --- Lists of ops --------------------------------------------------------------------------------------- */

typedef struct {
  MlirOperation *at;
  int count;
} tw_ops_t;

void tw_ops_add(tw_ops_t *list, MlirOperation op);
void tw_ops_free(tw_ops_t *list);
/* The ops inside of one that are as a pass wants them, which it may then replace one by one. */
tw_ops_t tw_ops_in(MlirOperation root, bool (*wanted)(MlirOperation op), MlirWalkOrder order);

/* --- Map from a value (or anything with an address) to new values ------------------------------------ */

typedef struct {
  struct tw_map_entry *slots;
  size_t capacity, size;
} tw_map_t;

/* Copies `num` values; replaces what was there. */
void tw_map_set(tw_map_t *map, const void *key, intptr_t num, const MlirValue *values);
/* The values, owned by the map, or NULL if there are none. `num` may be NULL. */
const MlirValue *tw_map_get(const tw_map_t *map, const void *key, intptr_t *num);
void tw_map_free(tw_map_t *map);
static inline void tw_map_one(tw_map_t *map, MlirValue from, MlirValue to) { tw_map_set(map, from.ptr, 1, &to); }
/* The value that stands for `from`; `from` itself where the map has none. */
MlirValue tw_map_value(const tw_map_t *map, MlirValue from);
/* The same of maps that have a number for a value. */
void tw_map_set_number(tw_map_t *map, MlirValue value, int number);
int tw_map_number(const tw_map_t *map, MlirValue value, int otherwise);

/* --- Sets of numbers that unite ---------------------------------------------------------------------- */

typedef struct {
  int *parent; /* of each number in a tree whose root is the least of its set */
  int count;
} tw_sets_t;

/* The next number, 0 at first, in a set of its own. */
int tw_sets_add(tw_sets_t *sets);
/* The least number of a set. */
int tw_sets_find(tw_sets_t *sets, int number);
void tw_sets_unite(tw_sets_t *sets, int a, int b);
void tw_sets_free(tw_sets_t *sets);

#endif /* TILEWRIGHT_LOWERING_IR_H */

/* work.c - what one block of a kernel does, counted from its IR and the extents of its arrays
 *
 * Reads a module at the stage "legal":
 *
 *   %n = tile.num_... / arith.* over tile.dim, tile.block_id, scalars: numbers, for given arguments and a given block
 *   scf.for %k = %lo to %hi step %s { ... }   counts as often as it runs; %k is its middle value inside
 *   tile.load %a[...] -> tensor<128x64xbf16>  16384 bytes from array 0
 *   tile.mma                                  2 * M * N * K operations
 *
 * Nothing is run: where a bound depends on data, the loop counts once and the result says so; of a branch on data each
 * side counts half. What the tuner ranks candidates by, and what a roofline needs. */
#include "lowering/ir.h"
#include "tilewright/compiler.h"

#include <string.h>

typedef struct counter {
  MlirOperation function;
  const int64_t *words; /* the kernel's parameters, as at a launch */
  const int32_t *grid, *block;
  tw_map_t numbers; /* value -> int64_t in the place of a pointer */
  double times;     /* how often the current op runs */
  tw_work_t *out;
} counter_t;

static void walk(counter_t *c, MlirBlock block);

/* --- numbers
 * ---------------------------------------------------------------------------------------------------------- */

static void set_number(counter_t *c, MlirValue value, int64_t number) {
  MlirValue packed = {(const void *)(intptr_t)number};
  tw_map_set(&c->numbers, value.ptr, 1, &packed);
}

static bool number_of(const counter_t *c, MlirValue value, int64_t *out) {
  const MlirValue *packed = tw_map_get(&c->numbers, value.ptr, NULL);
  if (packed)
    *out = (int64_t)(intptr_t)packed->ptr;
  return packed != NULL;
}

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b && (a < 0) != (b < 0)); }

/* Of a division or a remainder, where b is 0 or -1: C leaves these open. */
static bool divide_by_little(tw_op_kind_t kind, int64_t a, int64_t b, int64_t *out) {
  *out = b ? -a : 0;
  return b != 0 && kind != TW_ARITH_REMSI && kind != TW_ARITH_REMUI && kind != TW_ARITH_CEILDIVUI;
}

static bool binary(tw_op_kind_t kind, int64_t a, int64_t b, int64_t *out) {
  tw_op_class_t class = (tw_op_class_t)tw_op_rows[kind].arithmetic;
  bool divides = class == TW_CLASS_QUOTIENT || class == TW_CLASS_CEILING || class == TW_CLASS_REST;
  if (divides && (b == 0 || b == -1))
    return divide_by_little(kind, a, b, out);
  switch (kind) {
  case TW_ARITH_ADDI: *out = a + b; return true;
  case TW_ARITH_SUBI: *out = a - b; return true;
  case TW_ARITH_MULI: *out = a * b; return true;
  case TW_ARITH_FLOORDIVSI: *out = floor_div(a, b); return true;
  case TW_ARITH_CEILDIVSI:
  case TW_ARITH_CEILDIVUI: *out = -floor_div(-a, b); return true;
  case TW_ARITH_DIVSI:
  case TW_ARITH_DIVUI: *out = a / b; return true;
  case TW_ARITH_REMSI:
  case TW_ARITH_REMUI: *out = a % b; return true;
  case TW_ARITH_MINSI:
  case TW_ARITH_MINUI: *out = a < b ? a : b; return true;
  case TW_ARITH_MAXSI:
  case TW_ARITH_MAXUI: *out = a > b ? a : b; return true;
  case TW_ARITH_ANDI: *out = a & b; return true;
  case TW_ARITH_ORI: *out = a | b; return true;
  case TW_ARITH_XORI: *out = a ^ b; return true;
  case TW_ARITH_SHLI: *out = b >= 0 && b < 63 ? a << b : 0; return true;
  case TW_ARITH_SHRSI: *out = b >= 0 && b < 63 ? a >> b : 0; return true;
  default: return false;
  }
}

/* arith's predicates: eq ne slt sle sgt sge ult ule ugt uge. */
static bool compare(int64_t predicate, int64_t a, int64_t b) {
  switch (predicate) {
  case 0: return a == b;
  case 1: return a != b;
  case 2:
  case 6: return a < b;
  case 3:
  case 7: return a <= b;
  case 4:
  case 8: return a > b;
  default: return a >= b;
  }
}

/* The first word of a kernel's argument, and its number among the arrays and scalars; false if it is none. */
static bool argument_of(const counter_t *c, MlirValue value, int *out_index, int64_t *out_word) {
  MlirBlock entry = tw_region_block(c->function, 0);
  *out_word = 0;
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(entry); i++) {
    MlirValue argument = mlirBlockGetArgument(entry, i);
    MlirType type = mlirValueGetType(argument);
    *out_index = (int)i;
    if (mlirValueEqual(argument, value))
      return true;
    *out_word += mlirTypeIsAMemRef(type) ? 1 + 2 * mlirShapedTypeGetRank(type) : 1;
  }
  return false;
}

static bool extent_of(const counter_t *c, MlirOperation op, bool stride, int64_t *out) {
  MlirValue array = mlirOperationGetOperand(op, 0);
  int index;
  int64_t word;
  if (!argument_of(c, array, &index, &word))
    return false;
  int64_t rank = mlirShapedTypeGetRank(mlirValueGetType(array));
  *out = c->words[word + 1 + (stride ? rank : 0) + tw_attr_int(op, "axis", 0)];
  return true;
}

/* The number that an op over scalars gives. */
static bool evaluate(const counter_t *c, MlirOperation op, int64_t *out) {
  int64_t x[3] = {0};
  intptr_t operands = mlirOperationGetNumOperands(op);
  if (tw_known_int(mlirOperationGetResult(op, 0), out))
    return true;
  if (tw_op_is(op, TW_TILE_BLOCK_ID) || tw_op_is(op, TW_TILE_NUM_BLOCKS)) {
    *out = (tw_op_is(op, TW_TILE_BLOCK_ID) ? c->block : c->grid)[tw_attr_int(op, "axis", 0)];
    return true;
  }
  if (tw_op_is(op, TW_TILE_DIM) || tw_op_is(op, TW_TILE_STRIDE))
    return extent_of(c, op, tw_op_is(op, TW_TILE_STRIDE), out);
  if (operands < 1 || operands > 3 || tw_op_form(op) != TW_FORM_ELEMENTWISE)
    return false;
  for (intptr_t i = 0; i < operands; i++)
    if (!number_of(c, mlirOperationGetOperand(op, i), &x[i]))
      return false;
  if (tw_op_is(op, TW_ARITH_EXTSI) || tw_op_is(op, TW_ARITH_EXTUI) || tw_op_is(op, TW_ARITH_TRUNCI) ||
      tw_op_is(op, TW_ARITH_INDEX_CAST)) {
    *out = x[0];
    return true;
  }
  if (tw_op_is(op, TW_ARITH_SELECT))
    *out = x[0] ? x[1] : x[2];
  else if (tw_op_is(op, TW_ARITH_CMPI))
    *out = compare(tw_attr_int(op, "predicate", 0), x[0], x[1]);
  else
    return binary(tw_op_kind(op), x[0], x[1], out);
  return true;
}

/* --- counting
 * --------------------------------------------------------------------------------------------------------- */

/* 0.5 for a type of which two share a byte. */
static double element_bytes(MlirType type) { return tw_bytes(tw_element(type)) ? tw_bytes(tw_element(type)) : 0.5; }
static double bytes_of(MlirType type) { return (double)tw_count(type) * element_bytes(type); }

/* Bytes that a load, store, gather or scatter moves: of its largest tile, in elements of the array. */
static double moved_bytes(MlirOperation op) {
  int64_t count = 1;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    if (tw_is_tile(mlirValueGetType(mlirOperationGetOperand(op, i))) &&
        tw_count(mlirValueGetType(mlirOperationGetOperand(op, i))) > count)
      count = tw_count(mlirValueGetType(mlirOperationGetOperand(op, i)));
  if (mlirOperationGetNumResults(op) == 1)
    count = tw_count(mlirValueGetType(mlirOperationGetResult(op, 0)));
  return (double)count * element_bytes(mlirValueGetType(mlirOperationGetOperand(op, 0)));
}

static void count_traffic(counter_t *c, MlirOperation op, double *arrays) {
  int index;
  int64_t word;
  if (argument_of(c, mlirOperationGetOperand(op, 0), &index, &word) && index < TW_WORK_ARRAYS)
    arrays[index] += c->times * moved_bytes(op);
}

static void count_mma(counter_t *c, MlirOperation op) {
  MlirType a = mlirValueGetType(mlirOperationGetOperand(op, 0)), b = mlirValueGetType(mlirOperationGetOperand(op, 1));
  intptr_t rank = tw_rank(a);
  int64_t m = tw_extent(a, rank - 2), k = tw_extent(a, rank - 1), n = tw_extent(b, rank - 1);
  int64_t batch = tw_count(a) / (m * k);
  c->out->mma_flop += c->times * 2.0 * (double)batch * (double)m * (double)n * (double)k;
  c->out->mma_operand_bytes += c->times * (bytes_of(a) + bytes_of(b));
  c->out->mma_bits = (int)tw_bits(tw_element(a));
}

static void count_op(counter_t *c, MlirOperation op) {
  if (tw_op_loads(op))
    count_traffic(c, op, c->out->loaded);
  else if (tw_op_stores(op))
    count_traffic(c, op, c->out->stored);
  else if (tw_op_is_product(op))
    count_mma(c, op);
  else if (mlirOperationGetNumResults(op) == 1 && tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0)))) {
    double elements = c->times * (double)tw_count(mlirValueGetType(mlirOperationGetResult(op, 0)));
    if (tw_op_class(op) == TW_CLASS_FUNCTION)
      c->out->functions += elements;
    else if (tw_op_form(op) == TW_FORM_ELEMENTWISE)
      c->out->elements += elements;
  }
}

static void walk_region(counter_t *c, MlirOperation op, intptr_t region, double times) {
  MlirBlock block = tw_region_block(op, region);
  double before = c->times;
  c->times *= times;
  if (!mlirBlockIsNull(block) && c->times > 0)
    walk(c, block);
  c->times = before;
}

static double total_loaded(const tw_work_t *work) {
  double sum = 0;
  for (int i = 0; i < TW_WORK_ARRAYS; i++)
    sum += work->loaded[i];
  return sum;
}

static void walk_for(counter_t *c, MlirOperation op) {
  int64_t low, high, step, trips = 1;
  MlirBlock body = tw_region_block(op, 0);
  if (number_of(c, mlirOperationGetOperand(op, 0), &low) && number_of(c, mlirOperationGetOperand(op, 1), &high) &&
      number_of(c, mlirOperationGetOperand(op, 2), &step) && step > 0) {
    trips = high > low ? (high - low + step - 1) / step : 0;
    set_number(c, mlirBlockGetArgument(body, 0), low + trips / 2 * step);
  } else {
    c->out->unknown = true;
  }
  double carried = 0, before = total_loaded(c->out), times = c->times * (double)trips;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    if (tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, i))))
      carried += bytes_of(mlirValueGetType(mlirOperationGetResult(op, i)));
  walk_region(c, op, 0, (double)trips);
  double turn = times > 0 ? (total_loaded(c->out) - before) / times : 0;
  if (carried > c->out->carried_bytes)
    c->out->carried_bytes = carried;
  if (turn > c->out->iteration_bytes)
    c->out->iteration_bytes = turn;
}

static void walk_if(counter_t *c, MlirOperation op) {
  int64_t condition;
  bool known = number_of(c, mlirOperationGetOperand(op, 0), &condition);
  walk_region(c, op, 0, known ? condition != 0 : 0.5);
  walk_region(c, op, 1, known ? condition == 0 : 0.5);
}

static void walk(counter_t *c, MlirBlock block) {
  TW_EACH_OP(op, block) {
    int64_t number;
    if (tw_op_is(op, TW_SCF_FOR)) {
      walk_for(c, op);
    } else if (tw_op_is(op, TW_SCF_IF)) {
      walk_if(c, op);
    } else if (tw_op_is(op, TW_SCF_WHILE)) {
      c->out->unknown = true;
      walk_region(c, op, 0, 1);
      walk_region(c, op, 1, 1);
    } else if (mlirOperationGetNumResults(op) == 1 && !tw_is_tile(mlirValueGetType(mlirOperationGetResult(op, 0))) &&
               evaluate(c, op, &number)) {
      set_number(c, mlirOperationGetResult(op, 0), number);
    } else {
      count_op(c, op);
    }
  }
}

static void bind_scalars(counter_t *c) {
  MlirBlock entry = tw_region_block(c->function, 0);
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(entry); i++) {
    MlirValue argument = mlirBlockGetArgument(entry, i);
    int index;
    int64_t word;
    if (tw_is_int(mlirValueGetType(argument)) && !mlirTypeIsAMemRef(mlirValueGetType(argument)) &&
        argument_of(c, argument, &index, &word))
      set_number(c, argument, c->words[word]);
  }
}

/* The one kernel of a module; null where there are none or several. */
static MlirOperation find_kernel(MlirModule module) {
  MlirOperation found = tw_null_op();
  TW_EACH_OP(op, mlirModuleGetBody(module)) {
    if (!tw_has_attr(op, "tile.kernel"))
      continue;
    if (!mlirOperationIsNull(found))
      return tw_null_op();
    found = op;
  }
  return found;
}

static int64_t words_of_kernel(MlirOperation function) {
  MlirBlock entry = tw_region_block(function, 0);
  int64_t count = 0;
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(entry); i++) {
    MlirType type = mlirValueGetType(mlirBlockGetArgument(entry, i));
    count += mlirTypeIsAMemRef(type) ? 1 + 2 * mlirShapedTypeGetRank(type) : 1;
  }
  return count;
}

bool tw_count_work(MlirModule module, const int64_t *words, size_t num_words, const int32_t grid[3],
                   const int32_t block[3], tw_work_t *out) {
  counter_t c = {.function = find_kernel(module), .words = words, .grid = grid, .block = block, .times = 1, .out = out};
  memset(out, 0, sizeof *out);
  if (mlirOperationIsNull(c.function) || words_of_kernel(c.function) != (int64_t)num_words)
    return false;
  bind_scalars(&c);
  walk(&c, tw_region_block(c.function, 0));
  tw_map_free(&c.numbers);
  return true;
}

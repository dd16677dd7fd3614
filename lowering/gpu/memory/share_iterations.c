/* share_iterations.c - in tile-prefetch-loads: threads of a block share their iterations so that each loads vectors
 *
 * Before: in iteration k the block's threads read small elements side by side, each thread one of them.
 *
 *     %n = (%first < %end ? %end - %first : 0) ceildiv %step            // %first = tile.thread_id 0 + %start
 *     scf.for %k = 0 to %n {
 *       %x = tile.gather %bytes[%first + %k * %step]
 *       tile.atomic add relaxed %one, %bins[%x]
 *     }
 *
 * After: of 16 iterations a thread takes 16 neighbours of one of them. Sixteen rows of as many elements as the block
 * has threads are as many vectors.
 *
 *     %w = threads / 16
 *     %mine = %start + thread / %w * %step + thread % %w * 16
 *     %m = all multiples of 16, the block's last thread has as many iterations ? %n of that thread / 16 : 0
 *     scf.for %b = 0 to %m {
 *       %at = %mine + %b * 16 * %step                                    // a multiple of 16
 *       sixteen times tile.gather %bytes[%at + 0, 1 .. 15], then sixteen times tile.atomic
 *     }
 *     scf.for %k = %m * 16 to %n { as before }
 *
 * Why: a load of one byte takes as long a turn in the pipe of memory accesses as one of 16, and shared memory's atomic
 * accesses want the same pipe.
 *
 * What must hold: all threads of the block come to the loop, whose iterations compute, load, and add up atomically in
 * an order that nobody sees; they know of their thread and number nothing but the place that they read. Nothing that
 * the loop reads is written by it, and in front of it and behind it, in its block, stand barriers or no accesses: so it
 * is all the same which thread of the block runs an iteration. */
#include "lowering/gpu/memory/share_iterations.h"

#include "lowering/aliasing.h"
#include "lowering/common/uniform.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/loops.h"
#include "tilewright/dialect.h"

enum { VECTOR_BYTES = 16, FEWEST_ELEMENTS = 8, MOST_ELEMENTS = 16, MOST_OPS = 8 };

typedef struct {
  MlirOperation func, loop;
  const tw_uniform_t *uniform;
  MlirValue start, step, end; /* as all threads of the block have them; a null start is 0 */
  MlirValue thread, first, distance, place;
  int elements;
} sharing_t;

/* ---- what the loop must be ----------------------------------------------------------------------- */

static bool is_of(MlirOperation op, tw_op_kind_t kind) { return !mlirOperationIsNull(op) && tw_op_is(op, kind); }

/* The place of a thread along x: a position that differs. */
static bool is_thread(MlirValue value) {
  MlirOperation op = tw_def(value);
  while (is_of(op, TW_ARITH_EXTSI) || is_of(op, TW_ARITH_EXTUI))
    op = tw_def(mlirOperationGetOperand(op, 0));
  return !mlirOperationIsNull(op) && tw_op_form(op) == TW_FORM_POSITION && tw_op_has(op, TW_VARIES) &&
         tw_has_attr(op, "axis") && tw_attr_int(op, "axis", 0) == 0;
}

/* Whether an op is `kind` of two values, in any order; the other one of `x`. */
static bool other_operand(MlirOperation op, tw_op_kind_t kind, MlirValue x, MlirValue *out) {
  for (int i = 0; is_of(op, kind) && i < 2; i++)
    if (mlirValueEqual(mlirOperationGetOperand(op, i), x)) {
      *out = mlirOperationGetOperand(op, 1 - i);
      return true;
    }
  return false;
}

static bool finds_start(sharing_t *s) {
  s->thread = s->first;
  if (is_thread(s->first))
    return true;
  MlirOperation op = tw_def(s->first);
  for (int i = 0; is_of(op, TW_ARITH_ADDI) && i < 2; i++)
    if (is_thread(mlirOperationGetOperand(op, i))) {
      s->thread = mlirOperationGetOperand(op, i);
      s->start = mlirOperationGetOperand(op, 1 - i);
      return tw_uniform_has(s->uniform, s->start);
    }
  return false;
}

/* How often the loop runs: from `first` to `end` by `step`. */
static bool reads_count(sharing_t *s) {
  MlirOperation count = tw_def(mlirOperationGetOperand(s->loop, 1));
  if (!is_of(count, TW_ARITH_CEILDIVUI))
    return false;
  MlirOperation chosen = tw_def(mlirOperationGetOperand(count, 0));
  if (!is_of(chosen, TW_ARITH_SELECT) || !tw_is_zero(mlirOperationGetOperand(chosen, 2)))
    return false;
  MlirOperation before = tw_def(mlirOperationGetOperand(chosen, 0)), rest = tw_def(mlirOperationGetOperand(chosen, 1));
  if (!is_of(before, TW_ARITH_CMPI) || tw_attr_int(before, "predicate", -1) != TW_SLT || !is_of(rest, TW_ARITH_SUBI))
    return false;
  s->end = mlirOperationGetOperand(rest, 0);
  s->first = mlirOperationGetOperand(rest, 1);
  s->step = mlirOperationGetOperand(count, 1);
  return mlirValueEqual(mlirOperationGetOperand(before, 0), s->first) &&
         mlirValueEqual(mlirOperationGetOperand(before, 1), s->end) && tw_uniform_has(s->uniform, s->end) &&
         tw_uniform_has(s->uniform, s->step) && finds_start(s);
}

static MlirAttribute space_of(MlirValue array) { return mlirMemRefTypeGetMemorySpace(mlirValueGetType(array)); }

static bool is_atomic(MlirOperation op) { return tw_op_has(op, TW_BY_ELEMENT) && tw_has_attr(op, "memory_order"); }

static bool adds_up(MlirOperation op) {
  static const int64_t kinds[] = {TW_ATOMIC_ADD,     TW_ATOMIC_MIN,    TW_ATOMIC_MAX,
                                  TW_ATOMIC_BIT_AND, TW_ATOMIC_BIT_OR, TW_ATOMIC_BIT_XOR};
  bool known = false;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    known |= tw_attr_int(op, "kind", TW_ATOMIC_LOAD) == kinds[i];
  return known && tw_attr_int(op, "memory_order", TW_ORDER_SEQ_CST) == TW_ORDER_RELAXED &&
         tw_is_unused(mlirOperationGetResult(op, 0));
}

/* Loads pass the atomic accesses of other iterations; `tell` notes for the launch that arrays must be apart. */
static bool passes_atomics(const sharing_t *s, MlirOperation load, bool tell) {
  MlirValue from = tw_operand(load, TW_OPERAND_ARRAY);
  bool ok = true;
  for (MlirOperation op = mlirBlockGetFirstOperation(tw_loop_body(s->loop)); ok && !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op)) {
    if (!is_atomic(op) || !mlirAttributeEqual(space_of(from), space_of(tw_operand(op, TW_OPERAND_ARRAY))))
      continue;
    MlirValue to = tw_operand(op, TW_OPERAND_ARRAY);
    ok = tell ? tw_assume_disjoint(from, to) : tw_may_be_disjoint(from, to);
  }
  return ok;
}

/* Of a gather at the place: elements so small that a vector has many, side by side in an argument that is aligned. */
static bool takes_vectors(sharing_t *s, MlirOperation gather) {
  MlirValue array = tw_operand(gather, TW_OPERAND_ARRAY);
  MlirType type = mlirValueGetType(array);
  int64_t stride;
  if (!mlirValueIsABlockArgument(array) || tw_rank(type) != 1 || !tw_static_strides(type, &stride) || stride != 1 ||
      tw_bits(tw_element(type)) < 8)
    return false;
  MlirAttribute align = tw_arg_attr(s->func, mlirBlockArgumentGetArgNumber(array), "tile.align");
  int elements = VECTOR_BYTES / (int)tw_bytes(tw_element(type));
  s->elements = elements < s->elements ? elements : s->elements;
  return elements >= FEWEST_ELEMENTS && !mlirAttributeIsNull(align) &&
         mlirIntegerAttrGetValueInt(align) % VECTOR_BYTES == 0;
}

/* Whether a value may be an operand: the number of the iteration and the place of the thread only where they make the
 * place of a load. */
static bool may_take(sharing_t *s, MlirOperation op, intptr_t i) {
  MlirValue value = mlirOperationGetOperand(op, i), other;
  intptr_t first, indices = tw_op_gathers(op) ? tw_operands(op, TW_OPERAND_INDICES, &first) : 0;
  if (mlirValueEqual(value, tw_loop_iv(s->loop))) {
    if (!other_operand(op, TW_ARITH_MULI, value, &other) || !mlirValueEqual(other, s->step) || s->distance.ptr)
      return false;
    s->distance = mlirOperationGetResult(op, 0);
    return true;
  }
  if (s->distance.ptr && mlirValueEqual(value, s->distance)) {
    if (!other_operand(op, TW_ARITH_ADDI, value, &other) || !mlirValueEqual(other, s->first) || s->place.ptr)
      return false;
    s->place = mlirOperationGetResult(op, 0);
    return true;
  }
  if (s->place.ptr && mlirValueEqual(value, s->place))
    return indices == 1 && i == first && takes_vectors(s, op);
  if (mlirValueEqual(value, s->first)) /* of the place alone */
    return s->distance.ptr && other_operand(op, TW_ARITH_ADDI, value, &other) && mlirValueEqual(other, s->distance);
  return tw_defined_in(value, tw_loop_body(s->loop)) || tw_uniform_has(s->uniform, value);
}

static bool is_allowed(sharing_t *s, MlirOperation op) {
  bool plain = mlirOperationGetNumRegions(op) == 0 && !tw_has_attr(op, "check_bounds") && !tw_op_has(op, TW_VARIES);
  bool ok = plain && (tw_op_has(op, TW_PURE) || (is_atomic(op) ? adds_up(op) : tw_op_gathers(op)));
  if (ok && tw_op_gathers(op))
    ok = tw_operand(op, TW_OPERAND_MASK).ptr == NULL && passes_atomics(s, op, false);
  for (intptr_t i = 0; ok && i < mlirOperationGetNumOperands(op); i++)
    ok = may_take(s, op, i);
  return ok;
}

static bool makes_array(MlirOperation op) {
  return mlirOperationGetNumResults(op) == 1 && mlirTypeIsAMemRef(mlirValueGetType(mlirOperationGetResult(op, 0)));
}

static bool accesses(MlirOperation op) {
  return !tw_op_has(op, TW_PURE) && tw_op_form(op) != TW_FORM_POSITION && !makes_array(op);
}

/* Whether a barrier, or nothing, stands between the loop and accesses on one side of it. */
static bool is_apart(MlirOperation loop, bool behind) {
  MlirBlock block = mlirOperationGetBlock(loop);
  MlirOperation op = behind ? mlirOperationGetNextInBlock(loop) : mlirBlockGetFirstOperation(block);
  MlirOperation last = behind ? mlirBlockGetTerminator(block) : loop;
  bool apart = true;
  for (; !mlirOperationEqual(op, last); op = mlirOperationGetNextInBlock(op)) {
    bool meets = tw_op_is(op, TW_TILE_SYNC_THREADS);
    if (behind && (meets || accesses(op)))
      return meets;
    apart = meets || (apart && !accesses(op));
  }
  return apart;
}

static bool is_suitable(sharing_t *s) {
  int64_t from, step;
  int ops = 0, atomics = 0;
  MlirBlock body = tw_loop_body(s->loop);
  bool ok = mlirBlockGetNumArguments(body) == 1 && tw_known_int(mlirOperationGetOperand(s->loop, 0), &from) &&
            from == 0 && tw_known_int(mlirOperationGetOperand(s->loop, 2), &step) && step == 1 &&
            mlirBlockEqual(mlirOperationGetBlock(s->loop), tw_region_block(s->func, 0)) && reads_count(s) &&
            is_apart(s->loop, false) && is_apart(s->loop, true);
  MlirOperation end = tw_loop_yield(s->loop);
  for (MlirOperation op = mlirBlockGetFirstOperation(body); ok && !mlirOperationEqual(op, end);
       op = mlirOperationGetNextInBlock(op), ops++) {
    ok = is_allowed(s, op);
    atomics += is_atomic(op);
  }
  return ok && s->place.ptr && s->elements < MOST_ELEMENTS + 1 && atomics > 0 && ops <= MOST_OPS;
}

/* ---- the loop over vectors ------------------------------------------------------------------------- */

static MlirValue combine(const tw_builder_t *at, const char *name, MlirValue x, MlirValue y) {
  return tw_binary(at, name, mlirValueGetType(x), x, y);
}

static MlirValue in_type(const tw_builder_t *at, MlirType type, MlirValue value) {
  unsigned have = tw_bits(mlirValueGetType(value)), wanted = tw_bits(type);
  return have == wanted ? value : tw_unary(at, have < wanted ? "arith.extsi" : "arith.trunci", type, value);
}

static MlirValue threads_along_x(const tw_builder_t *at, MlirType type) {
  MlirType i32 = tw_i32(at->context);
  return in_type(at, type, tw_op1_attr(at, "tile.block_dim", i32, 0, NULL, "axis", mlirIntegerAttrGet(i32, 0)));
}

/* How many times all threads of the block have a vector's elements of iterations left, in 64 bits. */
static MlirValue count_batches(const sharing_t *s, const tw_builder_t *at, MlirValue threads) {
  MlirType type = mlirValueGetType(s->first), i64 = tw_i64(at->context);
  MlirValue elements = tw_const_int(at, type, s->elements), zero = tw_const_int(at, i64, 0);
  MlirValue bits = combine(at, "arith.ori", combine(at, "arith.ori", s->start, s->step), threads);
  bits = combine(at, "arith.andi", bits, tw_const_int(at, type, s->elements - 1));
  MlirValue whole = tw_compare(at, TW_EQ, bits, tw_const_int(at, type, 0));
  MlirValue behind = combine(at, "arith.addi", in_type(at, i64, s->start), in_type(at, i64, threads));
  MlirValue left = combine(at, "arith.subi", in_type(at, i64, s->end), behind); /* less 1: of the last thread */
  left = combine(at, "arith.addi", left, tw_const_int(at, i64, 1));
  left = combine(at, "arith.maxsi", left, zero);
  left = combine(at, "arith.ceildivui", left, in_type(at, i64, s->step));
  left = combine(at, "arith.divui", left, in_type(at, i64, elements));
  return in_type(at, type, tw_select(at, whole, left, zero));
}

/* The first element of a thread's first vector. */
static MlirValue first_of_thread(const sharing_t *s, const tw_builder_t *at, MlirValue threads) {
  MlirType type = mlirValueGetType(s->first);
  MlirValue elements = tw_const_int(at, type, s->elements), thread = s->thread;
  MlirValue row = combine(at, "arith.divui", threads, elements);
  row = combine(at, "arith.maxui", row, tw_const_int(at, type, 1)); /* few threads have no vector, and count none */
  MlirValue number = combine(at, "arith.divui", thread, row), rest = combine(at, "arith.muli", number, row);
  rest = combine(at, "arith.muli", combine(at, "arith.subi", thread, rest), elements);
  MlirValue first = combine(at, "arith.addi", s->start, combine(at, "arith.muli", number, s->step));
  return combine(at, "arith.addi", first, rest);
}

static void copy_body(const sharing_t *s, const tw_builder_t *at, tw_map_t *copies, bool loads) {
  MlirOperation end = tw_loop_yield(s->loop);
  for (int j = 0; j < s->elements; j++)
    for (MlirOperation op = mlirBlockGetFirstOperation(tw_loop_body(s->loop)); !mlirOperationEqual(op, end);
         op = mlirOperationGetNextInBlock(op)) {
      MlirValue result = mlirOperationGetResult(op, 0);
      bool is_load = tw_op_gathers(op) && tw_takes(op, s->place);
      if (is_load == loads && !mlirValueEqual(result, s->distance) && !mlirValueEqual(result, s->place))
        tw_copy_op(at, op, &copies[j]);
    }
}

static MlirRegion new_body(const sharing_t *s, MlirValue first, MlirValue stride) {
  tw_map_t copies[MOST_ELEMENTS] = {{0}};
  MlirLocation location = mlirOperationGetLocation(s->loop);
  MlirType type = mlirValueGetType(first);
  MlirBlock body = mlirBlockCreate(1, &type, &location);
  tw_builder_t at = tw_build_at_end(body, location);
  int shift = 0;
  while (1 << shift < s->elements)
    shift++;
  MlirValue place =
      combine(&at, "arith.addi", first, combine(&at, "arith.muli", mlirBlockGetArgument(body, 0), stride));
  /* a multiple, as can be seen of it now */
  place = combine(&at, "arith.muli", combine(&at, "arith.shrsi", place, tw_const_int(&at, type, shift)),
                  tw_const_int(&at, type, s->elements));
  for (int j = 0; j < s->elements; j++)
    tw_map_one(&copies[j], s->place, j ? combine(&at, "arith.addi", place, tw_const_int(&at, type, j)) : place);
  copy_body(s, &at, copies, true);
  copy_body(s, &at, copies, false);
  tw_build(&at, "scf.yield", (tw_op_parts_t){0});
  for (int j = 0; j < s->elements; j++)
    tw_map_free(&copies[j]);
  return tw_region_with(body);
}

static void share(sharing_t *s) {
  tw_builder_t at = tw_build_before(s->loop);
  MlirType type = mlirValueGetType(s->first);
  if (!s->start.ptr)
    s->start = tw_const_int(&at, type, 0);
  MlirOperation end = tw_loop_yield(s->loop);
  for (MlirOperation op = mlirBlockGetFirstOperation(tw_loop_body(s->loop)); !mlirOperationEqual(op, end);
       op = mlirOperationGetNextInBlock(op))
    if (tw_op_gathers(op))
      (void)passes_atomics(s, op, true);
  MlirValue threads = threads_along_x(&at, type), elements = tw_const_int(&at, type, s->elements);
  MlirValue batches = count_batches(s, &at, threads), first = first_of_thread(s, &at, threads);
  MlirValue stride = combine(&at, "arith.muli", s->step, elements);
  MlirValue bounds[] = {mlirOperationGetOperand(s->loop, 0), batches, mlirOperationGetOperand(s->loop, 2)};
  tw_build_for(&at, TW_FOR_INITS, bounds, new_body(s, first, stride));
  mlirOperationSetOperand(s->loop, 0, combine(&at, "arith.muli", batches, elements));
  tw_set_attr(s->func, TW_LOADS_VECTORS, mlirUnitAttrGet(at.context));
  tw_op_remark(s->loop, "has each thread load %d neighbours of one of as many iterations of the block", s->elements);
}

bool tw_share_iterations(MlirOperation func) {
  if (!tw_has_attr(func, "tile.simt") || tw_has_attr(func, "tile.c_signature"))
    return true;
  tw_ops_t loops = tw_loops_in(func, MlirWalkPostOrder);
  tw_uniform_t uniform = {0};
  if (loops.count)
    tw_uniform_find(&uniform, func);
  for (int i = 0; i < loops.count; i++) {
    sharing_t s = {.func = func, .loop = loops.at[i], .uniform = &uniform, .elements = MOST_ELEMENTS + 1};
    if (is_suitable(&s))
      share(&s);
  }
  tw_uniform_free(&uniform);
  tw_ops_free(&loops);
  return true;
}

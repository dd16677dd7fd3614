/* atomic.c - tile.atomic: one access of the machine an element, under the mask
 *
 *   before   %old = tile.atomic add acq_rel device, %x, %a[%i] : tensor<64xi32>, …
 *   after    for each lane of each strip: if (mask) old = llvm.atomicrmw add …
 *
 * What it gives is in a buffer: the accesses are done once, where the op stands. Sums of floats of 16 bits, which are
 * added in f32 and rounded, and extremes of floats are loops of compare and exchange. In a loop of a SIMT kernel that
 * may wait for another thread, the others have a turn before each access. Shared arrays belong to one thread of the
 * machine, whose accesses are plain ones. */
#include "lowering/cpu/cpu.h"
#include "lowering/loops.h"

#include "tilewright/dialect.h"

#include "mlir-c/Dialect/LLVM.h"

/* Of llvm.atomicrmw, as the LLVM dialect numbers them. */
enum { RMW_XCHG = 0, RMW_ADD, RMW_AND = 3, RMW_OR = 5, RMW_XOR, RMW_MAX, RMW_MIN, RMW_UMAX, RMW_UMIN, RMW_FADD };
enum { MONOTONIC = 2, ACQUIRE = 4, RELEASE, ACQ_REL, SEQ_CST };

/* How each element is accessed. */
typedef struct {
  tw_atomic_kind_t kind;
  MlirType element, type, bits; /* of the array; in memory; an integer of that size */
  int64_t order;
  bool is_unsigned;
  bool plain; /* no other thread of the machine sees it */
} cpu_atomic_t;

/* What one access takes: `left` is the result where the mask is false. */
typedef struct {
  MlirValue offset, mask, value, left;
} cpu_atomic_lane_t;

static MlirAttribute number(cpu_t *cx, int64_t value) { return mlirIntegerAttrGet(cpu_int(cx, 64), value); }

static int64_t order_of(MlirOperation op) {
  static const int64_t orders[] = {MONOTONIC, ACQUIRE, RELEASE, ACQ_REL, SEQ_CST};
  if (tw_attr_int(op, "memory_scope", TW_SCOPE_DEVICE) == TW_SCOPE_THREAD)
    return MONOTONIC; /* a thread sees its own accesses in order */
  return orders[tw_attr_int(op, "memory_order", TW_ORDER_RELAXED)];
}

static bool is_shared(MlirOperation op) {
  MlirAttribute space = mlirMemRefTypeGetMemorySpace(mlirValueGetType(mlirOperationGetOperand(op, 0)));
  return !mlirAttributeIsNull(space) && mlirIntegerAttrGetValueInt(space) == TW_SPACE_SHARED;
}

static cpu_atomic_t access_of(cpu_t *cx, MlirOperation op) {
  MlirType element = tw_operand_element(op, 0), type = cpu_memory_type(cx, element);
  return (cpu_atomic_t){.kind = (tw_atomic_kind_t)tw_attr_int(op, "kind", 0),
                        .element = element,
                        .type = type,
                        .bits = cpu_int(cx, 8 * tw_bytes(type)),
                        .order = order_of(op),
                        .is_unsigned = tw_has_attr(op, "is_unsigned"),
                        .plain = is_shared(op) && !cpu_is_polled(op)};
}

/* --- one element ------------------------------------------------------------------------------------------ */

static MlirValue as_bits(cpu_t *cx, MlirValue x, const cpu_atomic_t *a) {
  return mlirTypeEqual(mlirValueGetType(x), a->bits) ? x : cpu_bits(cx, x, a->bits);
}

static MlirValue ordered_load(cpu_t *cx, const cpu_atomic_t *a, MlirValue pointer, int64_t order) {
  tw_attr_t attrs[2] = {{"alignment", number(cx, tw_bytes(a->type))}, {"ordering", number(cx, order)}};
  tw_builder_t at = cpu_here(cx);
  return tw_op1_attrs(&at, "llvm.load", a->type, 1, &pointer, 2, attrs);
}

static void ordered_store(cpu_t *cx, const cpu_atomic_t *a, MlirValue pointer, MlirValue value) {
  tw_attr_t attrs[2] = {{"alignment", number(cx, tw_bytes(a->type))}, {"ordering", number(cx, a->order)}};
  MlirValue operands[2] = {value, pointer};
  tw_builder_t at = cpu_here(cx);
  tw_build(&at, "llvm.store", (tw_op_parts_t){.num_operands = 2, .operands = operands, .num_attrs = 2, .attrs = attrs});
}

static int64_t rmw_of(const cpu_atomic_t *a) {
  static const int64_t plain[] = {
      [TW_ATOMIC_XCHG] = RMW_XCHG,   [TW_ATOMIC_ADD] = RMW_ADD,     [TW_ATOMIC_MIN] = RMW_MIN,
      [TW_ATOMIC_MAX] = RMW_MAX,     [TW_ATOMIC_BIT_AND] = RMW_AND, [TW_ATOMIC_BIT_OR] = RMW_OR,
      [TW_ATOMIC_BIT_XOR] = RMW_XOR, [TW_ATOMIC_NANMIN] = RMW_MIN,  [TW_ATOMIC_NANMAX] = RMW_MAX};
  if (a->kind == TW_ATOMIC_ADD && tw_is_float(a->type))
    return RMW_FADD;
  if (a->is_unsigned)
    return a->kind == TW_ATOMIC_MIN || a->kind == TW_ATOMIC_NANMIN ? RMW_UMIN : RMW_UMAX;
  return plain[a->kind];
}

static MlirValue read_modify_write(cpu_t *cx, const cpu_atomic_t *a, MlirValue pointer, MlirValue value) {
  tw_attr_t attrs[2] = {{"bin_op", number(cx, rmw_of(a))}, {"ordering", number(cx, a->order)}};
  MlirValue operands[2] = {pointer, value};
  tw_builder_t at = cpu_here(cx);
  return tw_op1_attrs(&at, "llvm.atomicrmw", a->type, 2, operands, 2, attrs);
}

/* What the element was, and whether it was as expected, all in bits. */
static MlirValue compare_exchange(cpu_t *cx, const cpu_atomic_t *a, MlirValue pointer, MlirValue expected,
                                  MlirValue value, MlirValue *equal) {
  static const int64_t failures[] = {
      [MONOTONIC] = MONOTONIC, [ACQUIRE] = ACQUIRE, [RELEASE] = MONOTONIC, [ACQ_REL] = ACQUIRE, [SEQ_CST] = SEQ_CST};
  MlirType members[2] = {a->bits, cpu_int(cx, 1)};
  MlirType pair = mlirLLVMStructTypeLiteralGet(cx->context, 2, members, false);
  tw_attr_t attrs[2] = {{"success_ordering", number(cx, a->order)},
                        {"failure_ordering", number(cx, failures[a->order])}};
  MlirValue operands[3] = {pointer, expected, value};
  tw_builder_t at = cpu_here(cx);
  MlirValue result = tw_op1_attrs(&at, "llvm.cmpxchg", pair, 3, operands, 2, attrs), old[2];
  for (int64_t i = 0; i < 2; i++)
    old[i] = tw_op1_attr(&at, "llvm.extractvalue", members[i], 1, &result, "position",
                         mlirDenseI64ArrayGet(cx->context, 1, &i));
  *equal = old[1];
  return old[0];
}

static MlirBlock block_of(cpu_t *cx, MlirType type) { return mlirBlockCreate(1, &type, &cx->location); }

/* An element in the type that it is computed in, from its bits, and back. */
static MlirValue computed(cpu_t *cx, const cpu_atomic_t *a, MlirValue bits) {
  return cpu_is_narrow(a->element) ? cpu_from_memory(cx, bits, a->element) : cpu_bits(cx, bits, a->type);
}

static MlirValue bits_of(cpu_t *cx, const cpu_atomic_t *a, MlirValue x) {
  return cpu_is_narrow(a->element) ? cpu_to_memory(cx, cpu_round(cx, x, a->element), a->element) : as_bits(cx, x, a);
}

/* Operations for which there is no instruction. */
static bool needs_loop(const cpu_atomic_t *a) {
  bool extreme = a->kind == TW_ATOMIC_MIN || a->kind == TW_ATOMIC_MAX || a->kind == TW_ATOMIC_NANMIN ||
                 a->kind == TW_ATOMIC_NANMAX;
  return (a->kind == TW_ATOMIC_ADD && cpu_is_narrow(a->element)) || (extreme && mlirTypeIsAFloat(a->element));
}

/* NaN wins in min and max, and loses in nanmin and nanmax. */
static MlirValue combined(cpu_t *cx, const cpu_atomic_t *a, MlirValue x, MlirValue y) {
  static const char *const names[] = {[TW_ATOMIC_ADD] = "arith.addf",
                                      [TW_ATOMIC_MIN] = "arith.minimumf",
                                      [TW_ATOMIC_MAX] = "arith.maximumf",
                                      [TW_ATOMIC_NANMIN] = "arith.minnumf",
                                      [TW_ATOMIC_NANMAX] = "arith.maxnumf"};
  return cpu_bin(cx, names[a->kind], x, y);
}

/* Tries again while another thread came between. */
static MlirValue update_in_loop(cpu_t *cx, const cpu_atomic_t *a, MlirValue pointer, MlirValue value) {
  MlirBlock outer = cx->block, attempt = block_of(cx, a->bits), again = block_of(cx, a->bits);
  MlirValue first = as_bits(cx, ordered_load(cx, a, pointer, MONOTONIC), a), equal;
  MlirValue operand = computed(cx, a, as_bits(cx, value, a));
  cx->block = attempt;
  MlirValue expected = mlirBlockGetArgument(attempt, 0);
  MlirValue wanted = bits_of(cx, a, combined(cx, a, computed(cx, a, expected), operand));
  MlirValue old = compare_exchange(cx, a, pointer, expected, wanted, &equal);
  MlirValue condition[2] = {cpu_bin_i(cx, "arith.xori", equal, 1), old};
  cpu_op0(cx, "scf.condition", 2, condition);
  cx->block = again;
  MlirValue found = mlirBlockGetArgument(again, 0);
  cpu_op0(cx, "scf.yield", 1, &found);
  cx->block = outer;
  MlirRegion regions[2] = {tw_region_with(attempt), tw_region_with(again)};
  tw_builder_t at = cpu_here(cx);
  MlirOperation loop = tw_build_while(&at, 1, &first, 1, &a->bits, regions);
  MlirValue before = mlirOperationGetResult(loop, 0);
  return mlirTypeEqual(a->type, a->bits) ? before : cpu_bits(cx, before, a->type);
}

static MlirValue swap_if_equal(cpu_t *cx, const cpu_atomic_t *a, MlirValue pointer, MlirValue expected,
                               MlirValue value) {
  MlirValue equal;
  MlirValue old = compare_exchange(cx, a, pointer, as_bits(cx, expected, a), as_bits(cx, value, a), &equal);
  return mlirTypeEqual(a->type, a->bits) ? old : cpu_bits(cx, old, a->type);
}

/* What an element becomes, in bits where an operation on floats has no instruction. */
static MlirValue updated(cpu_t *cx, const cpu_atomic_t *a, MlirValue old, const cpu_atomic_lane_t *lane) {
  static const char *const names[] = {[TW_ATOMIC_ADD] = "arith.addi",
                                      [TW_ATOMIC_BIT_AND] = "arith.andi",
                                      [TW_ATOMIC_BIT_OR] = "arith.ori",
                                      [TW_ATOMIC_BIT_XOR] = "arith.xori"};
  bool least = a->kind == TW_ATOMIC_MIN || a->kind == TW_ATOMIC_NANMIN;
  if (needs_loop(a)) {
    MlirValue x = computed(cx, a, as_bits(cx, old, a)), y = computed(cx, a, as_bits(cx, lane->value, a));
    MlirValue bits = bits_of(cx, a, combined(cx, a, x, y));
    return mlirTypeEqual(a->type, a->bits) ? bits : cpu_bits(cx, bits, a->type);
  }
  switch (a->kind) {
  case TW_ATOMIC_XCHG: return lane->value;
  case TW_ATOMIC_CAS: {
    MlirValue equal = cpu_cmpi(cx, CPU_EQ, as_bits(cx, old, a), as_bits(cx, lane->left, a));
    return cpu_select(cx, equal, lane->value, old);
  }
  case TW_ATOMIC_MIN:
  case TW_ATOMIC_NANMIN:
  case TW_ATOMIC_MAX:
  case TW_ATOMIC_NANMAX:
    return cpu_bin(cx,
                   a->is_unsigned ? least ? "arith.minui" : "arith.maxui"
                   : least        ? "arith.minsi"
                                  : "arith.maxsi",
                   old, lane->value);
  default: return cpu_bin(cx, tw_is_float(a->type) ? "arith.addf" : names[a->kind], old, lane->value);
  }
}

static MlirValue access_plainly(cpu_t *cx, const cpu_atomic_t *a, MlirValue pointer, const cpu_atomic_lane_t *lane) {
  int align = (int)tw_bytes(a->type);
  MlirValue old = a->kind == TW_ATOMIC_STORE ? lane->value : cpu_load(cx, pointer, a->type, align);
  if (a->kind != TW_ATOMIC_LOAD)
    cpu_store(cx, a->kind == TW_ATOMIC_STORE ? old : updated(cx, a, old, lane), pointer, align);
  return old;
}

static MlirValue access_element(cpu_t *cx, const cpu_atomic_t *a, MlirValue pointer, const cpu_atomic_lane_t *lane) {
  if (a->plain)
    return access_plainly(cx, a, pointer, lane);
  switch (a->kind) {
  case TW_ATOMIC_LOAD: return ordered_load(cx, a, pointer, a->order);
  case TW_ATOMIC_STORE: ordered_store(cx, a, pointer, lane->value); return lane->value;
  case TW_ATOMIC_CAS: return swap_if_equal(cx, a, pointer, lane->left, lane->value);
  default:
    return needs_loop(a) ? update_in_loop(cx, a, pointer, lane->value) : read_modify_write(cx, a, pointer, lane->value);
  }
}

/* --- strips ------------------------------------------------------------------------------------------------ */

static MlirValue access_if(cpu_t *cx, const cpu_atomic_t *a, MlirValue base, const cpu_atomic_lane_t *lane) {
  cpu_branch_t branch = cpu_branch(cx, lane->mask);
  MlirValue pointer = cpu_address(cx, base, a->type, (cpu_index_t){lane->offset, 0, cx->depth});
  cpu_branch_else(cx, &branch, access_element(cx, a, pointer, lane));
  return cpu_branch_end(cx, &branch, lane->left);
}

/* The old values of a strip's elements. */
static MlirValue access_strip(cpu_t *cx, const cpu_atomic_t *a, MlirValue base, cpu_atomic_lane_t strip, int lanes) {
  MlirValue result = cpu_to_memory(cx, cpu_splat(cx, strip.left, lanes), a->element);
  strip = (cpu_atomic_lane_t){cpu_splat(cx, strip.offset, lanes), cpu_splat(cx, strip.mask, lanes),
                              cpu_to_memory(cx, cpu_splat(cx, strip.value, lanes), a->element), result};
  for (int i = 0; i < lanes; i++) {
    cpu_atomic_lane_t lane = {cpu_extract(cx, strip.offset, i), cpu_extract(cx, strip.mask, i),
                              cpu_extract(cx, strip.value, i), cpu_extract(cx, strip.left, i)};
    result = cpu_insert(cx, access_if(cx, a, base, &lane), result, i);
  }
  return cpu_from_memory(cx, result, a->element);
}

static MlirValue keep(cpu_t *cx, MlirValue lanes) {
  int64_t count = cpu_lanes_of(lanes);
  MlirType type = cpu_element(lanes);
  MlirValue memory = cpu_new_buffer(cx, mlirRankedTensorTypeGet(1, &count, type, (MlirAttribute){NULL}));
  cpu_store(cx, lanes, memory, (int)tw_bytes(type));
  return memory;
}

enum { WORD = 64, MOST_CASTS = 4 };

/* Integers of a strip, taken out of their vector by words of 64 bits, which are parted in registers. Lane by lane takes
 * an instruction or two of the vector unit each, and by way of memory twice as long as the accesses themselves.
 * `casts` are then done again on each scalar, the last one first. */
typedef struct {
  MlirValue lanes, words; /* null: the lanes as they are */
  MlirOperation casts[MOST_CASTS];
  int num_casts;
} scalars_t;

/* Whether an op leaves a number what it is: + 0, * 1. */
static bool is_nothing(MlirOperation op) {
  int64_t by;
  return (tw_op_is(op, TW_ARITH_MULI) && tw_known_int(mlirOperationGetOperand(op, 1), &by) && by == 1) ||
         (tw_op_is(op, TW_ARITH_ADDI) && tw_known_int(mlirOperationGetOperand(op, 0), &by) && by == 0);
}

/* What lanes are extended from, which takes fewer words. */
static void find_narrow(scalars_t *s) {
  for (MlirOperation op = tw_def(s->lanes); !mlirOperationIsNull(op); op = tw_def(s->lanes)) {
    bool cast = tw_op_is(op, TW_ARITH_EXTSI) || tw_op_is(op, TW_ARITH_EXTUI);
    if (!(cast ? s->num_casts < MOST_CASTS : is_nothing(op)))
      break;
    if (cast)
      s->casts[s->num_casts++] = op;
    s->lanes = mlirOperationGetOperand(op, tw_op_is(op, TW_ARITH_ADDI));
  }
}

static scalars_t scalars_of(cpu_t *cx, MlirValue lanes) {
  scalars_t s = {.lanes = lanes};
  find_narrow(&s);
  int64_t bits = cpu_lanes_of(s.lanes) * (int64_t)tw_bits(cpu_element(s.lanes));
  if (cpu_lanes_of(s.lanes) > 1 && mlirTypeIsAInteger(cpu_element(s.lanes)) && bits % WORD == 0)
    s.words = cpu_op1(cx, "vector.bitcast", cpu_vector(cpu_int(cx, WORD), (int)(bits / WORD)), 1, &s.lanes);
  return s;
}

static MlirValue scalar_of(cpu_t *cx, const scalars_t *s, int lane) {
  MlirType type = cpu_element(s->lanes);
  int bits = (int)tw_bits(type), each = WORD / bits;
  MlirValue x;
  if (!s->words.ptr) {
    x = cpu_extract(cx, s->lanes, lane);
  } else {
    x = cpu_bin_i(cx, "arith.shrui", cpu_extract(cx, s->words, lane / each), (int64_t)(lane % each) * bits);
    x = bits < WORD ? cpu_cast(cx, "arith.trunci", x, type) : x;
  }
  for (int i = s->num_casts - 1; i >= 0; i--)
    x = cpu_cast(cx, tw_op_row(s->casts[i])->name, x, cpu_element(mlirOperationGetResult(s->casts[i], 0)));
  return x;
}

/* One element for all lanes, and nobody asks what it was: what they do to it is done at once. */
static bool can_combine(const cpu_atomic_t *a, const cpu_atomic_lane_t *strip, bool used) {
  if (used || cpu_lanes_of(strip->offset) > 1)
    return false;
  switch (a->kind) {
  case TW_ATOMIC_ADD: return !cpu_is_narrow(a->element);
  case TW_ATOMIC_MIN:
  case TW_ATOMIC_NANMIN:
  case TW_ATOMIC_MAX:
  case TW_ATOMIC_NANMAX:
  case TW_ATOMIC_BIT_AND:
  case TW_ATOMIC_BIT_OR:
  case TW_ATOMIC_BIT_XOR: return true;
  default: return false;
  }
}

static MlirValue combined_lanes(cpu_t *cx, const cpu_atomic_t *a, MlirValue x) {
  for (int half = cpu_lanes_of(x) / 2; half > 0; half /= 2) {
    int64_t upper[WORD];
    for (int i = 0; i < half; i++)
      upper[i] = half + i;
    cpu_atomic_lane_t lane = {.value = half > 1 ? cpu_shuffle(cx, x, x, half, upper) : cpu_extract(cx, x, 1)};
    for (int i = 0; i < half; i++)
      upper[i] = i;
    x = updated(cx, a, half > 1 ? cpu_shuffle(cx, x, x, half, upper) : cpu_extract(cx, x, 0), &lane);
  }
  return x;
}

/* Of a strip of threads that are all here. The old values, where they are used. */
static MlirValue access_all(cpu_t *cx, const cpu_atomic_t *a, MlirValue base, cpu_atomic_lane_t strip, bool used) {
  MlirValue result = {NULL};
  int lanes = cx->strip->lanes, times = lanes;
  strip.value = cpu_to_memory(cx, strip.value, a->element);
  strip.left = cpu_to_memory(cx, strip.left, a->element);
  if (can_combine(a, &strip, used)) {
    strip.value = combined_lanes(cx, a, cpu_splat(cx, strip.value, lanes));
    times = 1;
  }
  scalars_t offset = scalars_of(cx, strip.offset), value = scalars_of(cx, strip.value),
            left = scalars_of(cx, strip.left);
  for (int i = 0; i < times; i++) {
    cpu_atomic_lane_t lane = {
        .offset = scalar_of(cx, &offset, i), .value = scalar_of(cx, &value, i), .left = scalar_of(cx, &left, i)};
    MlirValue pointer = cpu_address(cx, base, a->type, (cpu_index_t){lane.offset, 0, cx->depth});
    MlirValue old = access_element(cx, a, pointer, &lane);
    if (used)
      result = cpu_insert(cx, old, result.ptr ? result : cpu_splat(cx, old, lanes), i);
  }
  return cpu_from_memory(cx, used ? result : cpu_splat(cx, strip.value, lanes), a->element);
}

static MlirValue kept(cpu_t *cx, MlirValue memory, MlirType type, cpu_index_t lane) {
  return cpu_load(cx, cpu_address(cx, memory, type, lane), type, (int)tw_bytes(type));
}

/* The same of a strip whose lanes are few: one after the other in a loop. */
static MlirValue access_some(cpu_t *cx, const cpu_atomic_t *a, MlirValue base, cpu_atomic_lane_t strip, int lanes) {
  MlirType i64 = cpu_int(cx, 64), i8 = cpu_int(cx, 8);
  MlirValue value = keep(cx, cpu_to_memory(cx, cpu_splat(cx, strip.value, lanes), a->element));
  MlirValue left = keep(cx, cpu_to_memory(cx, cpu_splat(cx, strip.left, lanes), a->element));
  MlirValue mask = keep(cx, cpu_cast(cx, "arith.extui", cpu_splat(cx, strip.mask, lanes), i8));
  MlirValue offset = keep(cx, cpu_splat(cx, strip.offset, lanes));
  cpu_loop_t loop;
  cpu_index_t i = cpu_loop_begin(cx, &loop, cpu_index(0), cpu_index(lanes), 1, 0, NULL);
  cpu_atomic_lane_t lane = {.offset = kept(cx, offset, i64, i),
                            .mask = cpu_cmpi(cx, CPU_NE, kept(cx, mask, i8, i), cpu_int_const(cx, i8, 0)),
                            .value = kept(cx, value, a->type, i),
                            .left = kept(cx, left, a->type, i)};
  cpu_store(cx, access_if(cx, a, base, &lane), cpu_address(cx, left, a->type, i), (int)tw_bytes(a->type));
  cpu_loop_end(cx, &loop, NULL, NULL);
  return cpu_from_memory(cx, cpu_load(cx, left, cpu_vector(a->type, lanes), (int)tw_bytes(a->type)), a->element);
}

static MlirValue access_point(cpu_t *cx, MlirOperation op, const cpu_point_t *point) {
  MlirValue indices[TW_MAX_RANK], expected = tw_operand(op, TW_OPERAND_EXPECTED);
  const cpu_array_t *array = cpu_array_of(cx, op, mlirOperationGetOperand(op, 0));
  int num = cpu_indices_of(cx, op, cpu_eval, point, indices);
  cpu_atomic_lane_t strip = {.mask = cpu_mask_of(cx, op, cpu_eval, point),
                             .value = cpu_eval(cx, tw_operand(op, TW_OPERAND_VALUE), point)};
  strip.left = mlirValueIsNull(expected) ? strip.value : cpu_eval(cx, expected, point);
  if (cx->failed || !array)
    return strip.value;
  strip.offset = cpu_lanes_at(cx, op, num, indices, &strip.mask);
  cpu_atomic_t access = access_of(cx, op);
  if (!cx->strip)
    return access_strip(cx, &access, array->pointer, strip, point->lanes);
  int64_t all;
  strip.mask = cpu_both(cx, strip.mask, cx->strip->here);
  bool used = !tw_is_unused(mlirOperationGetResult(op, 0));
  return tw_known_int(strip.mask, &all) && all ? access_all(cx, &access, array->pointer, strip, used)
                                               : access_some(cx, &access, array->pointer, strip, cx->strip->lanes);
}

static void place_fence(cpu_t *cx, MlirOperation op) {
  int64_t order = order_of(op);
  tw_attr_t attrs[1] = {{"ordering", number(cx, order)}};
  tw_builder_t at = cpu_here(cx);
  if (order != MONOTONIC)
    tw_build(&at, "llvm.fence", (tw_op_parts_t){.num_attrs = 1, .attrs = attrs});
}

static void place_atomic(cpu_t *cx, MlirOperation op) {
  MlirValue result = mlirOperationGetResult(op, 0), tiles[CPU_MAX_OPERANDS];
  MlirType type = mlirValueGetType(result);
  int num = 0;
  if (cpu_is_polled(op))
    cpu_call(cx, "tw_simt_yield", 0, NULL);
  for (intptr_t i = 1; i < mlirOperationGetNumOperands(op) && num < CPU_MAX_OPERANDS; i++)
    if (tw_is_tile(mlirValueGetType(mlirOperationGetOperand(op, i))))
      tiles[num++] = mlirOperationGetOperand(op, i);
  cpu_before_write(cx, op, type, num, tiles);
  cpu_plan(cx, type, num, tiles, op);
  MlirValue buffer = cpu_buffer_for(cx, result);
  cpu_nest_t nest;
  cpu_nest_set(cx, &nest, type, cpu_lane_axis(type));
  cpu_nest_begin(cx, &nest);
  MlirValue old = access_point(cx, op, &nest.point);
  if (buffer.ptr && !cx->failed)
    cpu_buffer_store(cx, old, buffer, type, &nest.point);
  cpu_nest_end(cx, &nest);
  cpu_planned(cx);
  cpu_set_result(cx, result, buffer, old);
}

/* By the runtime: not every machine has an instruction. */
static void place_atomic_pair(cpu_t *cx, MlirOperation op) {
  MlirType i64 = cpu_int(cx, 64), members[2] = {i64, i64};
  const cpu_array_t *array = cpu_array_of(cx, op, mlirOperationGetOperand(op, 0));
  if (cpu_is_polled(op))
    cpu_call(cx, "tw_simt_yield", 0, NULL);
  if (!array)
    return;
  MlirValue words[3] = {array->pointer, cpu_operand(cx, op, 1), cpu_operand(cx, op, 2)};
  if (tw_attr_int(op, "kind", 0) == TW_ATOMIC_STORE) {
    cpu_call(cx, "tw_simt_store_pair", 3, words);
  } else {
    MlirType pair = mlirLLVMStructTypeLiteralGet(cx->context, 2, members, false);
    MlirValue found = cpu_call1(cx, "tw_simt_load_pair", pair, 1, words);
    tw_builder_t at = cpu_here(cx);
    for (int64_t i = 0; i < 2; i++)
      words[1 + i] =
          tw_op1_attr(&at, "llvm.extractvalue", i64, 1, &found, "position", mlirDenseI64ArrayGet(cx->context, 1, &i));
  }
  for (int i = 0; i < 2; i++)
    cpu_set_scalar(cx, mlirOperationGetResult(op, i), words[1 + i]);
}

CPU_RULE(TW_TILE_ATOMIC_PAIR, CPU_EFFECT, 0, NULL, NULL, place_atomic_pair)
CPU_RULE(TW_TILE_ATOMIC, CPU_EFFECT, 0, NULL, NULL, place_atomic)
CPU_RULE(TW_TILE_FENCE, CPU_EFFECT, 0, NULL, NULL, place_fence)

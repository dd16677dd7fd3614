/* atomic.c - rules: atomic accesses to elements of arrays, and fences
 *
 *   before   %old = tile.atomic add acq_rel device, %x, %a[%i]
 *   after    fence.acq_rel.gpu; @p atom.relaxed.gpu.global.add.f32 …; fence.acq_rel.gpu     of a tile
 *            atom.acq_rel.gpu.global.add.f32 …                                              of a thread
 *
 * Each element is accessed by the one thread that owns it, and red takes the place of atom where nothing reads
 * what was there before; neighbours go together where the hardware adds several at once. What the access of a tile
 * orders stands around all of them as one fence a thread: with the barriers that tile-insert-barriers puts beside it,
 * it holds for the whole block. Threads that hold copies of an element get what the owner found through shared memory.
 *
 * The access of a thread says itself what it orders; a sequentially consistent one acquires behind a fence.sc. All of
 * it is PTX: LLVM's atomicrmw has neither order nor scope for this target, and its atomic load of a wide value writes.
 * What no instruction does (bytes, 16 bits, extremes of floats) is a loop of compare and exchange, whose fences stand
 * around it. */
#include "lowering/gpu/emit/address.h"
#include "lowering/gpu/emit/elements.h"
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/emit/shared_access.h"
#include "lowering/gpu/emit/words.h"
#include "lowering/gpu/facts/scratch.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/loops.h"
#include "tilewright/dialect.h"

#include "mlir-c/Dialect/LLVM.h"

#include <stdio.h>

/* How the elements are accessed. */
typedef struct {
  MlirType element;
  tw_atomic_kind_t kind;
  tw_memory_order_t order;                        /* as the op has it */
  const char *ordered, *scope, *operation, *type; /* "relaxed", "gpu", ".add", "f32" */
  int bits, vector;                               /* of an element; log2 of the elements of one access */
  bool old;                                       /* the result is used */
  bool loops;                                     /* by compare and exchange */
} atomic_access_t;

/* ---- instructions -------------------------------------------------------------------------------- */

/* A thread's own accesses are in order by themselves: the block is the least that an instruction names. */
static const char *scope_of(MlirOperation op) {
  static const char *const scopes[] = {
      [TW_SCOPE_BLOCK] = "cta", [TW_SCOPE_DEVICE] = "gpu", [TW_SCOPE_SYS] = "sys", [TW_SCOPE_THREAD] = "cta"};
  return scopes[tw_attr_int(op, "memory_scope", TW_SCOPE_DEVICE)];
}

static tw_memory_order_t order_of(MlirOperation op) {
  if (tw_attr_int(op, "memory_scope", TW_SCOPE_DEVICE) == TW_SCOPE_THREAD)
    return TW_ORDER_RELAXED;
  return (tw_memory_order_t)tw_attr_int(op, "memory_order", TW_ORDER_RELAXED);
}

static void put_fence(tw_emitter_t *e, MlirOperation op, const char *order) {
  char text[32];
  snprintf(text, sizeof text, "fence.%s.%s;", order, scope_of(op));
  twg_asm(e, text, "", (MlirType){NULL}, 0, NULL, TW_PTX_EFFECT);
}

/* Whether fences around the access order what it does not order itself. */
static bool is_fenced(const tw_emitter_t *e, const atomic_access_t *a) { return !e->simt || a->loops; }

static void fence_before(tw_emitter_t *e, MlirOperation op, const atomic_access_t *a) {
  if (a->order == TW_ORDER_SEQ_CST)
    put_fence(e, op, "sc");
  else if (is_fenced(e, a) && (a->order == TW_ORDER_RELEASE || a->order == TW_ORDER_ACQ_REL))
    put_fence(e, op, "acq_rel");
}

static void fence_after(tw_emitter_t *e, MlirOperation op, const atomic_access_t *a) {
  bool acquires = a->order == TW_ORDER_ACQUIRE || a->order == TW_ORDER_ACQ_REL || a->order == TW_ORDER_SEQ_CST;
  if (is_fenced(e, a) && acquires)
    put_fence(e, op, "acq_rel");
}

/* What the instruction says that it orders. */
static const char *ordered_by(const tw_emitter_t *e, const atomic_access_t *a) {
  static const char *const names[] = {[TW_ORDER_RELAXED] = "relaxed",
                                      [TW_ORDER_ACQUIRE] = "acquire",
                                      [TW_ORDER_RELEASE] = "release",
                                      [TW_ORDER_ACQ_REL] = "acq_rel"};
  if (is_fenced(e, a))
    return "relaxed";
  if (a->order == TW_ORDER_SEQ_CST) /* behind the fence */
    return a->kind == TW_ATOMIC_STORE ? "release" : "acquire";
  return names[a->order];
}

/* What the name of an instruction has between its memory space and its type. */
static const char *operation_of(MlirType element, tw_atomic_kind_t kind) {
  static const char *const names[] = {
      [TW_ATOMIC_LOAD] = "",        [TW_ATOMIC_STORE] = "",       [TW_ATOMIC_XCHG] = ".exch",
      [TW_ATOMIC_CAS] = ".cas",     [TW_ATOMIC_ADD] = ".add",     [TW_ATOMIC_MIN] = ".min",
      [TW_ATOMIC_MAX] = ".max",     [TW_ATOMIC_BIT_AND] = ".and", [TW_ATOMIC_BIT_OR] = ".or",
      [TW_ATOMIC_BIT_XOR] = ".xor", [TW_ATOMIC_NANMIN] = ".min",  [TW_ATOMIC_NANMAX] = ".max"};
  bool half = kind == TW_ATOMIC_ADD && (mlirTypeIsAF16(element) || mlirTypeIsABF16(element));
  return half ? ".add.noftz" : names[kind];
}

/* The type in its name. */
static const char *type_of(MlirOperation op, const atomic_access_t *a) {
  bool wide = a->bits == 64, several = a->vector > 0;
  switch (a->kind) {
  case TW_ATOMIC_ADD:
    if (mlirTypeIsAF16(a->element))
      return several ? "f16x2" : "f16";
    if (mlirTypeIsABF16(a->element))
      return several ? "bf16x2" : "bf16";
    if (mlirTypeIsAFloat(a->element))
      return wide ? "f64" : "f32";
    return wide ? "u64" : "u32";
  case TW_ATOMIC_MIN:
  case TW_ATOMIC_MAX:
  case TW_ATOMIC_NANMIN:
  case TW_ATOMIC_NANMAX:
    if (tw_has_attr(op, "is_unsigned"))
      return wide ? "u64" : "u32";
    return wide ? "s64" : "s32";
  default: return wide ? "b64" : a->bits == 32 ? "b32" : a->bits == 16 ? "b16" : "b8";
  }
}

static bool has_vectors(tw_emitter_t *e) {
  tw_gpu_target_t target = tw_gpu_target_of(e->kernel);
  return tw_gpu_has(&target, TW_GPU_VECTOR_RED);
}

/* How many elements the hardware adds at once, as a power of two. */
static int most_at_once(tw_emitter_t *e, const atomic_access_t *a) {
  bool vectors = has_vectors(e);
  if (a->kind != TW_ATOMIC_ADD || a->old)
    return 0;
  if (mlirTypeIsAF32(a->element))
    return vectors ? 2 : 0;
  if (mlirTypeIsAF16(a->element))
    return vectors ? 3 : 1;
  return mlirTypeIsABF16(a->element) && vectors ? 3 : 0;
}

/* ---- one access ---------------------------------------------------------------------------------- */

static const char *register_class(int bits) { return bits == 64 ? "l" : bits == 32 ? "r" : "h"; }

static MlirType word_type(tw_emitter_t *e, int bits) { return bits == 64 ? e->i64 : bits == 32 ? e->i32 : e->i16; }

/* An element as a word, and back. */
static MlirValue to_word(tw_emitter_t *e, const atomic_access_t *a, MlirValue x) {
  MlirValue word[4];
  if (a->bits == 64)
    return twg_bitcast(e, x, e->i64);
  twg_to_words(e, a->element, a->bits, 1, &x, word);
  return a->bits < 16 ? twg_cast(e, "llvm.zext", e->i16, word[0]) : word[0];
}

static MlirValue from_word(tw_emitter_t *e, const atomic_access_t *a, MlirValue word) {
  MlirValue x;
  if (a->bits == 64)
    return twg_bitcast(e, word, twg_register_type(e, a->element));
  if (a->bits < 16)
    word = twg_cast(e, "llvm.trunc", e->i8, word);
  twg_from_words(e, a->element, a->bits, 1, &word, &x);
  return x;
}

/* "red.relaxed.gpu.global.add.v2.f32", or what else the access is. */
static size_t put_name(char *out, size_t size, const atomic_access_t *a, MlirValue pointer, int words) {
  const char *name = a->kind == TW_ATOMIC_LOAD ? "ld" : a->kind == TW_ATOMIC_STORE ? "st" : a->old ? "atom" : "red";
  char vector[8] = "";
  if (words > 1)
    snprintf(vector, sizeof vector, ".v%d", words);
  return (size_t)snprintf(out, size, "%s.%s.%s.%s%s%s.%s ", name, a->ordered, a->scope, twg_space_of(pointer),
                          a->operation, vector, a->type);
}

/* Accesses that give what was there: `left` where the guard does not hold. */
static MlirValue access_one(tw_emitter_t *e, const atomic_access_t *a, MlirValue pointer, MlirValue guard,
                            MlirValue value, MlirValue left) {
  char text[160], constraints[32], condition[8] = "";
  const char *class_ = register_class(a->bits);
  size_t n = (size_t)snprintf(text, sizeof text, "mov.b%d $0, $2; ", a->bits < 16 ? 16 : a->bits);
  if (guard.ptr)
    snprintf(condition, sizeof condition, "@$4 ");
  n += (size_t)snprintf(text + n, sizeof text - n, "%s", condition);
  n += put_name(text + n, sizeof text - n, a, pointer, 1);
  snprintf(text + n, sizeof text - n, "$0, [$1]%s;",
           a->kind == TW_ATOMIC_LOAD  ? ""
           : a->kind == TW_ATOMIC_CAS ? ", $2, $3"
                                      : ", $3");
  snprintf(constraints, sizeof constraints, "=&%s,l,%s,%s%s", class_, class_, class_, guard.ptr ? ",b" : "");
  MlirValue operands[4] = {pointer, left, value, guard};
  return twg_asm(e, text, constraints, word_type(e, a->bits), guard.ptr ? 4 : 3, operands, TW_PTX_EFFECT);
}

/* Accesses that give nothing. */
static void access_words(tw_emitter_t *e, const atomic_access_t *a, MlirValue pointer, MlirValue guard, int words,
                         int bits, MlirValue *values) {
  char text[160], constraints[32];
  size_t n = 0, c = (size_t)snprintf(constraints, sizeof constraints, "l");
  MlirValue operands[6] = {pointer};
  if (guard.ptr)
    n = (size_t)snprintf(text, sizeof text, "@$%d ", words + 1);
  n += put_name(text + n, sizeof text - n, a, pointer, words);
  n += (size_t)snprintf(text + n, sizeof text - n, "[$0], ");
  for (int i = 0; i < words; i++) {
    n += (size_t)snprintf(text + n, sizeof text - n, "%s$%d", i ? ", " : words > 1 ? "{" : "", i + 1);
    c += (size_t)snprintf(constraints + c, sizeof constraints - c, ",%s", register_class(bits));
    operands[i + 1] = values[i];
  }
  snprintf(text + n, sizeof text - n, words > 1 ? "};" : ";");
  operands[words + 1] = guard;
  snprintf(constraints + c, sizeof constraints - c, guard.ptr ? ",b" : "");
  twg_asm(e, text, constraints, (MlirType){NULL}, words + (guard.ptr ? 2 : 1), operands, TW_PTX_EFFECT);
}

/* ---- loops of compare and exchange ----------------------------------------------------------------- */

/* What is exchanged: the element, or the aligned word that a byte is in, and the byte's first bit there. */
typedef struct {
  atomic_access_t access; /* of the whole */
  MlirValue pointer, shift;
} container_t;

static container_t container_of(tw_emitter_t *e, const atomic_access_t *a, MlirValue pointer) {
  container_t c = {.access = *a, .pointer = pointer};
  c.access.loops = false;
  c.access.old = true;
  if (a->bits == 8) {
    MlirType type = mlirValueGetType(pointer);
    MlirValue address = twg_cast(e, "llvm.ptrtoint", e->i64, pointer);
    MlirValue byte = twg_cast(e, "llvm.trunc", e->i32, twg_binary(e, "llvm.and", address, twg_const_int(e, e->i64, 3)));
    MlirValue aligned = twg_binary(e, "llvm.and", address, twg_const_int(e, e->i64, -4));
    c.pointer = twg_cast(e, "llvm.inttoptr", type, aligned);
    c.shift = twg_binary(e, "llvm.mul", byte, twg_const_i32(e, 8));
    c.access.bits = 32;
  }
  c.access.type = c.access.bits == 64 ? "b64" : c.access.bits == 32 ? "b32" : "b16";
  return c;
}

static MlirValue load_whole(tw_emitter_t *e, const container_t *c) {
  atomic_access_t load = c->access;
  load.kind = TW_ATOMIC_LOAD;
  load.operation = "";
  MlirValue any = twg_const_int(e, word_type(e, load.bits), 0);
  return access_one(e, &load, c->pointer, (MlirValue){NULL}, any, any);
}

static MlirValue exchange_whole(tw_emitter_t *e, const container_t *c, MlirValue expected, MlirValue value) {
  atomic_access_t cas = c->access;
  cas.kind = TW_ATOMIC_CAS;
  cas.operation = ".cas";
  return access_one(e, &cas, c->pointer, (MlirValue){NULL}, value, expected);
}

static MlirValue part_of(tw_emitter_t *e, const container_t *c, MlirValue whole) {
  if (c->shift.ptr == NULL)
    return whole;
  MlirValue byte = twg_cast(e, "llvm.trunc", e->i8, twg_binary(e, "llvm.lshr", whole, c->shift));
  return twg_cast(e, "llvm.zext", e->i16, byte);
}

static MlirValue with_part(tw_emitter_t *e, const container_t *c, MlirValue whole, MlirValue part) {
  if (c->shift.ptr == NULL)
    return part;
  MlirValue hole = twg_binary(e, "llvm.shl", twg_const_i32(e, 0xFF), c->shift);
  MlirValue others = twg_binary(e, "llvm.and", whole, twg_binary(e, "llvm.xor", hole, twg_const_i32(e, -1)));
  MlirValue byte = twg_binary(e, "llvm.and", twg_cast(e, "llvm.zext", e->i32, part), twg_const_i32(e, 0xFF));
  return twg_binary(e, "llvm.or", others, twg_binary(e, "llvm.shl", byte, c->shift));
}

/* The larger or smaller of two floats; NaN wins or loses. */
static MlirValue extreme_of(tw_emitter_t *e, tw_atomic_kind_t kind, MlirValue x, MlirValue y) {
  bool max = kind == TW_ATOMIC_MAX || kind == TW_ATOMIC_NANMAX;
  MlirValue found = twg_binary(e, max ? "llvm.intr.maxnum" : "llvm.intr.minnum", x, y);
  if (kind == TW_ATOMIC_NANMIN || kind == TW_ATOMIC_NANMAX)
    return found;
  return twg_select(e, twg_fcmp(e, TW_UNO, x, y), twg_binary(e, "llvm.fadd", x, y), found);
}

/* What an element becomes, as words. */
static MlirValue combined(tw_emitter_t *e, const atomic_access_t *a, MlirValue old, MlirValue value) {
  if (a->kind == TW_ATOMIC_XCHG || a->kind == TW_ATOMIC_CAS)
    return value;
  MlirValue x = from_word(e, a, old), y = from_word(e, a, value);
  return to_word(e, a, a->kind == TW_ATOMIC_ADD ? twg_binary(e, "llvm.fadd", x, y) : extreme_of(e, a->kind, x, y));
}

/* Whether the element stays as it is, so that nothing need be exchanged; null: never. An extreme that releases
 * something is written all the same. */
static MlirValue stays(tw_emitter_t *e, const atomic_access_t *a, MlirValue old, MlirValue expected, MlirValue new) {
  if (a->kind == TW_ATOMIC_CAS)
    return twg_icmp(e, TW_NE, old, expected);
  bool extreme = a->kind != TW_ATOMIC_XCHG && a->kind != TW_ATOMIC_ADD;
  return extreme && a->order == TW_ORDER_RELAXED ? twg_icmp(e, TW_EQ, old, new) : (MlirValue){NULL};
}

/* Gives the word that was there, `left` where the guard does not hold. */
static MlirValue access_in_loop(tw_emitter_t *e, const atomic_access_t *a, MlirValue pointer, MlirValue guard,
                                MlirValue value, MlirValue left) {
  container_t c = container_of(e, a, pointer);
  MlirType part = mlirValueGetType(value), whole = word_type(e, c.access.bits);
  MlirBlock first = twg_new_block(e, 0, NULL), loop = twg_new_block(e, 1, &whole), attempt = twg_new_block(e, 0, NULL);
  MlirBlock after = twg_new_block(e, 1, &part);
  twg_branch_if(e, guard.ptr ? guard : twg_const_int(e, e->i1, 1), first, 0, NULL, after, 1, &left);
  e->block = first;
  MlirValue seen = load_whole(e, &c);
  twg_branch(e, loop, 1, &seen);
  e->block = loop;
  seen = mlirBlockGetArgument(loop, 0);
  MlirValue old = part_of(e, &c, seen), new = combined(e, a, old, value), done = stays(e, a, old, left, new);
  twg_branch_if(e, done.ptr ? done : twg_const_int(e, e->i1, 0), after, 1, &old, attempt, 0, NULL);
  e->block = attempt;
  MlirValue found = exchange_whole(e, &c, seen, with_part(e, &c, seen, new));
  twg_branch_if(e, twg_icmp(e, TW_EQ, found, seen), after, 1, &old, loop, 1, &found);
  e->block = after;
  return mlirBlockGetArgument(after, 0);
}

/* ---- what threads have of it ----------------------------------------------------------------------- */

/* Threads that own no element get what its owner found. */
static tw_values_t share_tile(tw_emitter_t *e, MlirOperation op, const tw_layout_t *layout, MlirType type,
                              MlirValue owner, tw_values_t found) {
  tw_layout_t shared = twg_row_major(type);
  MlirValue base = twg_scratch_at(e, op, 0);
  MlirBlock after = twg_begin_if(e, owner);
  twg_write_shared(e, layout, &shared, tw_element(type), found, base);
  twg_end_if(e, after);
  twg_barrier(e);
  return twg_read_shared(e, layout, &shared, tw_element(type), base);
}

static MlirValue share_scalar(tw_emitter_t *e, MlirOperation op, const atomic_access_t *a, MlirValue owner,
                              MlirValue found) {
  MlirValue base = twg_scratch_at(e, op, 0), word = to_word(e, a, found);
  MlirType type = mlirValueGetType(word);
  int bytes = (int)tw_bits(type) / 8;
  MlirBlock after = twg_begin_if(e, owner);
  twg_store_to(e, word, base, bytes);
  twg_end_if(e, after);
  twg_barrier(e);
  return from_word(e, a, twg_load_from(e, type, base, bytes));
}

/* ---- the rule -------------------------------------------------------------------------------------- */

/* Whether no instruction of the target does it. */
static bool needs_loop(tw_emitter_t *e, const atomic_access_t *a) {
  switch (a->kind) {
  case TW_ATOMIC_LOAD:
  case TW_ATOMIC_STORE: return false;
  case TW_ATOMIC_XCHG: return a->bits < 32;
  case TW_ATOMIC_CAS: return a->bits < 16;
  case TW_ATOMIC_ADD: return mlirTypeIsABF16(a->element) && !has_vectors(e);
  default: return mlirTypeIsAFloat(a->element);
  }
}

static atomic_access_t access_of(tw_emitter_t *e, MlirOperation op, MlirType element) {
  atomic_access_t a = {.element = element,
                       .kind = (tw_atomic_kind_t)tw_attr_int(op, "kind", 0),
                       .order = order_of(op),
                       .bits = tw_memory_bits(element),
                       .scope = scope_of(op)};
  a.loops = needs_loop(e, &a);
  a.ordered = ordered_by(e, &a);
  bool acquires = a.ordered[0] == 'a'; /* red may only release */
  a.old =
      a.kind != TW_ATOMIC_STORE && (a.kind == TW_ATOMIC_LOAD || a.kind == TW_ATOMIC_XCHG || a.kind == TW_ATOMIC_CAS ||
                                    acquires || !tw_is_unused(mlirOperationGetResult(op, 0)));
  a.operation = operation_of(element, a.kind);
  return a;
}

/* The access that starts at register r; what it found goes to `out`. */
static void access_register(tw_emitter_t *e, MlirOperation op, const atomic_access_t *a, const tw_indexed_t *x,
                            MlirValue owner, int r, tw_values_t out) {
  MlirValue values[16], words[4], expected = tw_operand(op, TW_OPERAND_EXPECTED);
  int lanes[16], count = 1 << a->vector;
  tw_place_t place = twg_locate(e, op, x, r);
  MlirValue pointer = twg_element_pointer(e, x->array, place, a->bits), guard = twg_both(e, place.guard, owner);
  twg_vector_registers(r, a->vector, x->regs, lanes);
  for (int i = 0; i < count; i++)
    values[i] = out.at[lanes[i]] = twg_at_register(e, x->value, lanes[i]);
  if (a->vector > 0) {
    int num = twg_to_words(e, a->element, a->bits, count, values, words);
    access_words(e, a, pointer, guard, num, 32, words);
  } else if (a->old || a->loops) {
    MlirValue value = to_word(e, a, values[0]);
    MlirValue left = expected.ptr ? to_word(e, a, twg_at_register(e, expected, r)) : value;
    MlirValue old = (a->loops ? access_in_loop : access_one)(e, a, pointer, guard, value, left);
    out.at[r] = from_word(e, a, old);
  } else {
    words[0] = to_word(e, a, values[0]);
    access_words(e, a, pointer, guard, 1, a->bits < 16 ? 16 : a->bits, words);
  }
}

static bool rule_atomic(tw_emitter_t *e, MlirOperation op) {
  tw_indexed_t x = twg_indexed_of(op, TW_OPERAND_VALUE);
  MlirType type = mlirValueGetType(x.value);
  atomic_access_t a = access_of(e, op, tw_element(type));
  tw_layout_t layout = {0};
  MlirValue owner = twg_first_thread(e);
  if (tw_is_tile(type)) {
    if (!tw_layout_of_type(type, &layout)) {
      tw_op_error(op, "needs a tile with a layout");
      return false;
    }
    int most = most_at_once(e, &a);
    owner = twg_owner_guard(e, &layout);
    twg_find_vectors(op, &layout, &x);
    x.vector = a.vector = most < x.vector ? most : x.vector;
  }
  a.type = type_of(op, &a);
  fence_before(e, op, &a);
  tw_values_t out = twg_new_values(e, tw_register_count(type));
  for (int r = 0; r < out.count; r++)
    if (twg_starts_vector(r, x.vector, x.regs) && twg_first_copy(&layout, r) == r)
      access_register(e, op, &a, &x, owner, r, out);
  for (int r = 0; r < out.count; r++)
    out.at[r] = out.at[twg_first_copy(&layout, r)];
  fence_after(e, op, &a);
  if (tw_scratch_bytes(op) > 0 && tw_is_tile(type))
    out = share_tile(e, op, &layout, type, owner, out);
  else if (tw_scratch_bytes(op) > 0)
    out.at[0] = share_scalar(e, op, &a, owner, out.at[0]);
  twg_set_result(e, op, 0, out);
  return true;
}

/* 16 bytes go as a register that inline assembly makes of two words, or takes apart. */
static void load_pair(tw_emitter_t *e, const char *name, MlirValue pointer, MlirValue words[2]) {
  MlirType members[2] = {e->i64, e->i64}, pair = mlirLLVMStructTypeLiteralGet(e->context, 2, members, false);
  char text[160];
  snprintf(text, sizeof text, "{ .reg .b128 %%q; ld.%s %%q, [$2]; mov.b128 {$0, $1}, %%q; }", name);
  MlirValue found = twg_asm(e, text, "=l,=l,l", pair, 1, &pointer, TW_PTX_EFFECT);
  for (int i = 0; i < 2; i++)
    words[i] = twg_extract(e, found, i, e->i64);
}

static void store_pair(tw_emitter_t *e, const char *name, MlirValue pointer, const MlirValue words[2]) {
  MlirValue operands[3] = {pointer, words[0], words[1]};
  char text[160];
  snprintf(text, sizeof text, "{ .reg .b128 %%q; mov.b128 %%q, {$1, $2}; st.%s [$0], %%q; }", name);
  twg_asm(e, text, "l,l,l", (MlirType){NULL}, 3, operands, TW_PTX_EFFECT);
}

static bool rule_atomic_pair(tw_emitter_t *e, MlirOperation op) {
  atomic_access_t a = {.kind = (tw_atomic_kind_t)tw_attr_int(op, "kind", 0), .order = order_of(op)};
  MlirValue pointer = twg_array_pointer(e, mlirOperationGetOperand(op, 0));
  MlirValue words[2] = {twg_operand(e, op, 1).at[0], twg_operand(e, op, 2).at[0]};
  char name[64];
  snprintf(name, sizeof name, "%s.%s.%s.b128", ordered_by(e, &a), scope_of(op), twg_space_of(pointer));
  fence_before(e, op, &a);
  if (a.kind == TW_ATOMIC_LOAD)
    load_pair(e, name, pointer, words);
  else
    store_pair(e, name, pointer, words);
  fence_after(e, op, &a);
  for (int i = 0; i < 2; i++)
    twg_set_scalar(e, op, i, words[i]);
  return true;
}

/* A fence of one thread alone orders nothing: its own accesses are in order. */
static bool rule_fence(tw_emitter_t *e, MlirOperation op) {
  tw_memory_order_t order = order_of(op);
  if (order != TW_ORDER_RELAXED)
    put_fence(e, op, order == TW_ORDER_SEQ_CST ? "sc" : "acq_rel");
  return true;
}

TWG_RULE(TW_TILE_ATOMIC, rule_atomic)
TWG_RULE(TW_TILE_ATOMIC_PAIR, rule_atomic_pair)
TWG_RULE(TW_TILE_FENCE, rule_fence)

/* load_store.c - rules: tiles to and from global memory
 *
 * A load or store of a tile is a sequence of accesses of up to 16 bytes. Each is guarded by a
 * predicate that compares coordinates with what is left of the array (one comparison a dimension and
 * coordinate, not one an element), so nothing outside of the array is ever touched. */
#include "lowering/gpu/emit/address.h"
#include "lowering/gpu/emit/elements.h"
#include "lowering/gpu/emit/lane_exchange.h"
#include "lowering/gpu/emit/row_ends.h"
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/emit/shared_access.h"
#include "lowering/gpu/emit/words.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/index_facts.h"
#include "lowering/gpu/isa/async_copies.h"
#include "lowering/gpu/isa/convert_float.h"

#include "mlir-c/Dialect/LLVM.h"
#include "tilewright/dialect.h"

#include <stdio.h>
#include <string.h>

static MlirType int_type(tw_emitter_t *e, int bits) { return mlirIntegerTypeGet(e->context, (unsigned)bits); }

/* ---- one access ---------------------------------------------------------------------------------- */

/* The PTX type, register class and number of registers of an access. */
typedef struct access_form {
  const char *vector; /* "", ".v2", ".v4" */
  const char *type;   /* b8, b16, b32 */
  char class_;        /* h or r */
  int words, bits;    /* of one register */
} access_form_t;

static access_form_t form_of(int total_bits) {
  if (total_bits <= 8)
    return (access_form_t){"", "b8", 'h', 1, 8};
  if (total_bits == 16)
    return (access_form_t){"", "b16", 'h', 1, 16};
  return (access_form_t){total_bits == 32 ? "" : total_bits == 64 ? ".v2" : ".v4", "b32", 'r', total_bits / 32, 32};
}

static size_t put_list(char *out, size_t size, access_form_t f, int first) {
  size_t n = 0;
  if (f.words == 1)
    return (size_t)snprintf(out, size, "$%d", first);
  for (int i = 0; i < f.words; i++)
    n += (size_t)snprintf(out + n, size - n, "%s$%d", i ? ", " : "{", first + i);
  return n + (size_t)snprintf(out + n, size - n, "}");
}

/* The predicate is the operand after the pointer; without one an access is always made. */
static size_t put_guard(char *out, size_t size, access_form_t f, MlirValue guard) {
  return guard.ptr ? (size_t)snprintf(out, size, "@$%d ", f.words + 1) : 0;
}

/* Words at pointer + offset where `guard` holds, elsewhere padding[0] in even words, padding[1] in odd. */
static MlirOperation guarded_load(tw_emitter_t *e, access_form_t f, MlirValue pointer, int64_t offset, MlirValue guard,
                                  const uint32_t padding[2], MlirValue *words) {
  char text[512], constraints[128];
  size_t n = 0, c = 0;
  MlirType type = f.bits == 32 ? e->i32 : e->i16, types[4] = {type, type, type, type};
  for (int i = 0; i < f.words; i++) {
    if (guard.ptr)
      n += (size_t)snprintf(text + n, sizeof text - n, "mov.%s $%d, 0x%x; ", f.bits == 32 ? "b32" : "b16", i,
                            f.bits == 32 ? padding[i & 1] : padding[0] & 0xFFFF);
    c += (size_t)snprintf(constraints + c, sizeof constraints - c, "=&%c,", f.class_);
  }
  n += put_guard(text + n, sizeof text - n, f, guard);
  n += (size_t)snprintf(text + n, sizeof text - n, "ld.%s%s.%s ", twg_space_of(pointer), f.vector, f.type);
  n += put_list(text + n, sizeof text - n, f, 0);
  snprintf(text + n, sizeof text - n, ", [$%d + %lld];", f.words, (long long)offset);
  snprintf(constraints + c, sizeof constraints - c, guard.ptr ? "l,b" : "l");
  MlirValue operands[2] = {pointer, guard};
  MlirType result = f.words == 1 ? type : mlirLLVMStructTypeLiteralGet(e->context, f.words, types, false);
  MlirValue loaded = twg_asm(e, text, constraints, result, guard.ptr ? 2 : 1, operands, TW_PTX_EFFECT);
  for (int i = 0; i < f.words; i++)
    words[i] = f.words == 1 ? loaded : twg_extract(e, loaded, i, type);
  if (f.bits == 8)
    words[0] = twg_cast(e, "llvm.trunc", e->i8, words[0]);
  return tw_def(loaded);
}

static void guarded_store(tw_emitter_t *e, access_form_t f, MlirValue pointer, int64_t offset, MlirValue guard,
                          const MlirValue *words) {
  char text[512], constraints[128];
  size_t n = 0, c = 0;
  MlirValue operands[6];
  n += put_guard(text + n, sizeof text - n, f, guard);
  n += (size_t)snprintf(text + n, sizeof text - n, "st.%s%s.%s [$%d + %lld], ", twg_space_of(pointer), f.vector, f.type,
                        f.words, (long long)offset);
  n += put_list(text + n, sizeof text - n, f, 0);
  snprintf(text + n, sizeof text - n, ";");
  for (int i = 0; i < f.words; i++) {
    c += (size_t)snprintf(constraints + c, sizeof constraints - c, "%c,", f.class_);
    operands[i] = f.bits == 8 ? twg_cast(e, "llvm.zext", e->i16, words[i]) : words[i];
  }
  snprintf(constraints + c, sizeof constraints - c, guard.ptr ? "l,b" : "l");
  operands[f.words] = pointer;
  operands[f.words + 1] = guard;
  twg_asm(e, text, constraints, (MlirType){NULL}, f.words + (guard.ptr ? 2 : 1), operands, TW_PTX_STORES);
}

/* ---- pairs at the edge of an array --------------------------------------------------------------------- */

/* Predicates of an access of two elements: both are inside of the array, or the first one only. */
typedef struct {
  MlirValue both, first;
} pair_guard_t;

/* A pair is one access where both elements are inside, so that there is no branch for tiles that lie there as a whole;
 * and one of the first element alone at the edge. */
static bool are_pairs(int bits) { return bits == 8 || bits == 16 || bits == 32; }

static pair_guard_t pair_guard(tw_emitter_t *e, tw_placed_t *placed, int r, int second) {
  pair_guard_t g = {.first = twg_access_guard(e, placed, r), .both = twg_access_guard(e, placed, second)};
  g.first = twg_binary(e, "llvm.and", g.first, twg_binary(e, "llvm.xor", g.both, twg_const_int(e, e->i1, 1)));
  return g;
}

/* As guarded_load, of two elements. */
static MlirOperation load_pair(tw_emitter_t *e, int bits, MlirValue pointer, int64_t offset, pair_guard_t guard,
                               const uint32_t padding[2], MlirValue *words) {
  access_form_t f = form_of(2 * bits);
  char text[512];
  size_t n = 0;
  const char *space = twg_space_of(pointer), *move = f.bits == 32 ? "b32" : "b16";
  uint32_t high = f.words == 1 ? padding[0] & ~((UINT32_C(1) << bits) - 1) : 0; /* beside the first element */
  MlirType type = f.bits == 32 ? e->i32 : e->i16, types[2] = {type, type};
  for (int i = 0; i < f.words; i++)
    n += (size_t)snprintf(text + n, sizeof text - n, "mov.%s $%d, 0x%x; ", move, i,
                          f.bits == 32 ? padding[i & 1] : padding[0] & 0xFFFF);
  n += (size_t)snprintf(text + n, sizeof text - n, "@$%d ld.%s%s.%s ", f.words + 1, space, f.vector, f.type);
  n += put_list(text + n, sizeof text - n, f, 0);
  n += (size_t)snprintf(text + n, sizeof text - n, ", [$%d + %lld]; @$%d ld.%s.u%d $0, [$%d + %lld];", f.words,
                        (long long)offset, f.words + 2, space, bits, f.words, (long long)offset);
  if (high)
    snprintf(text + n, sizeof text - n, " @$%d or.%s $0, $0, 0x%x;", f.words + 2, move,
             f.bits == 32 ? high : high & 0xFFFF);
  MlirValue operands[3] = {pointer, guard.both, guard.first};
  MlirType result = f.words == 1 ? type : mlirLLVMStructTypeLiteralGet(e->context, f.words, types, false);
  const char *constraints = f.words == 2 ? "=&r,=&r,l,b,b" : f.class_ == 'r' ? "=&r,l,b,b" : "=&h,l,b,b";
  MlirValue loaded = twg_asm(e, text, constraints, result, 3, operands, TW_PTX_EFFECT);
  for (int i = 0; i < f.words; i++)
    words[i] = f.words == 1 ? loaded : twg_extract(e, loaded, i, type);
  return tw_def(loaded);
}

/* As guarded_store, of two elements. */
static void store_pair(tw_emitter_t *e, int bits, MlirValue pointer, int64_t offset, pair_guard_t guard,
                       const MlirValue *words) {
  access_form_t f = form_of(2 * bits);
  char text[512];
  size_t n = 0;
  const char *space = twg_space_of(pointer);
  n += (size_t)snprintf(text + n, sizeof text - n, "@$%d st.%s%s.%s [$%d + %lld], ", f.words + 1, space, f.vector,
                        f.type, f.words, (long long)offset);
  n += put_list(text + n, sizeof text - n, f, 0);
  snprintf(text + n, sizeof text - n, "; @$%d st.%s.u%d [$%d + %lld], $0;", f.words + 2, space, bits, f.words,
           (long long)offset);
  MlirValue operands[5] = {words[0]};
  if (f.words == 2)
    operands[1] = words[1];
  operands[f.words] = pointer;
  operands[f.words + 1] = guard.both;
  operands[f.words + 2] = guard.first;
  twg_asm(e, text,
          f.words == 2      ? "r,r,l,b,b"
          : f.class_ == 'r' ? "r,l,b,b"
                            : "h,l,b,b",
          (MlirType){NULL}, f.words + 3, operands, TW_PTX_STORES);
}

/* ---- rows that begin anywhere ---------------------------------------------------------------------------- */

/* A row in memory and in shared memory, where it is as far behind a multiple of a piece. Numbers are bytes, i32, from
 * the last such multiple on that is not behind it. */
typedef struct {
  MlirValue shared, global; /* pointers to the row */
  MlirValue shift, end;     /* where it begins and ends */
  MlirValue own, count;     /* this thread's first element there; the elements that are inside of the array */
  int64_t bytes;            /* of a whole row */
  int dim, size;            /* along which it lies; of an element */
  bool loads;
} realigned_t;

static bool place_realigned(tw_emitter_t *e, MlirOperation op, MlirType element, const tw_layout_t *layout,
                            realigned_t *row) {
  int dim = tw_access_contiguous_dim(op, layout->rank), size = tw_memory_bytes(element);
  if (!tw_is_row(layout, dim) || tw_memory_bits(element) != 8 * size) {
    tw_op_error(op, "is marked " TW_REALIGNED ", which takes a tile that is one row");
    return false;
  }
  twg_row_t placed = twg_place_row(e, op, element, layout, dim);
  *row = (realigned_t){.global = placed.pointer, .count = placed.count, .dim = dim, .size = size};
  row->loads = tw_op_loads_tile(op);
  row->bytes = tw_layout_extent(layout, dim) * size;
  row->shift = twg_cast(e, "llvm.trunc", e->i32, twg_cast(e, "llvm.ptrtoint", e->i64, placed.pointer));
  row->shift = twg_binary(e, "llvm.and", row->shift, twg_const_i32(e, TW_REALIGNED_PIECE - 1));
  MlirValue inside = twg_binary(e, "llvm.mul", placed.count, twg_const_i32(e, size));
  row->end = twg_binary(e, "llvm.add", row->shift, inside);
  row->shared = twg_offset_pointer(e, twg_scratch_at(e, op, 0), row->shift);
  MlirValue own = twg_binary(e, "llvm.mul", twg_thread_coord(e, layout, dim), twg_const_i32(e, size));
  row->own = twg_offset_pointer(e, row->shared, own);
  return true;
}

/* Where a register's first element lies behind the thread's, in elements. */
static int64_t place_in_row(const realigned_t *row, const tw_layout_t *layout, int r) {
  return tw_layout_coord(layout, tw_layout_image(layout, TW_REGISTER, (uint32_t)r), row->dim);
}

/* Brings so many bytes to shared memory, or from there. */
static void take_piece(tw_emitter_t *e, const realigned_t *row, access_form_t form, MlirValue at, int64_t offset,
                       MlirValue guard, bool is_there, MlirValue *words) {
  static const uint32_t no_padding[2] = {0, 0};
  MlirValue always = {NULL}, from = twg_offset_pointer(e, row->loads ? row->global : row->shared, at);
  guarded_load(e, form, from, offset, is_there && !row->loads ? always : guard, no_padding, words);
}

static void put_piece(tw_emitter_t *e, const realigned_t *row, access_form_t form, MlirValue at, int64_t offset,
                      MlirValue guard, const MlirValue *words) {
  guarded_store(e, form, twg_offset_pointer(e, row->loads ? row->shared : row->global, at), offset, guard, words);
}

/* A thread has a piece of each round: those that the row fills. */
static void move_pieces(tw_emitter_t *e, const realigned_t *row) {
  enum { PIECE = TW_REALIGNED_PIECE, AHEAD = 4, WORDS = 4 };
  const access_form_t form = form_of(TW_MAX_ACCESS_BITS);
  MlirValue mine = twg_binary(e, "llvm.mul", e->thread, twg_const_i32(e, PIECE));
  MlirValue from = twg_binary(e, "llvm.sub", mine, row->shift), left = twg_binary(e, "llvm.sub", row->end, mine);
  int64_t round = (int64_t)PIECE * 32 * e->num_warps;
  bool is_there = round <= row->bytes; /* in shared memory is some piece of the row then, maybe not wanted */
  for (int64_t at = 0; at < row->bytes; at += AHEAD * round) {
    MlirValue guards[AHEAD], words[AHEAD][WORDS];
    for (int i = 0; i < AHEAD && at + i * round < row->bytes; i++) {
      guards[i] = twg_icmp(e, TW_SGE, left, twg_const_i32(e, at + i * round + PIECE));
      if (at + i * round == 0)
        guards[i] = twg_binary(e, "llvm.and", guards[i], twg_icmp(e, TW_UGE, mine, row->shift));
      take_piece(e, row, form, from, at + i * round, guards[i], is_there, words[i]);
    }
    for (int i = 0; i < AHEAD && at + i * round < row->bytes; i++)
      put_piece(e, row, form, from, at + i * round, guards[i], words[i]);
  }
}

/* The elements in front of the first piece and behind the last one: one a thread. */
static void move_ends(tw_emitter_t *e, const realigned_t *row) {
  enum { PIECE = TW_REALIGNED_PIECE };
  const access_form_t form = form_of(8 * row->size);
  MlirValue zero = twg_const_i32(e, 0), size = twg_const_i32(e, row->size), word[4];
  MlirValue mine = twg_binary(e, "llvm.mul", e->thread, size);
  MlirValue last = twg_binary(e, "llvm.and", row->end, twg_const_i32(e, -PIECE));
  MlirValue is_first = twg_icmp(e, TW_ULT, mine, twg_const_i32(e, PIECE));
  MlirValue behind = twg_binary(e, "llvm.add", last, twg_binary(e, "llvm.sub", mine, twg_const_i32(e, PIECE)));
  MlirValue at = twg_select(e, is_first, mine, behind);
  MlirValue one_end = twg_icmp(e, TW_EQ, last, zero); /* the row ends within its first piece */
  MlirValue torn = twg_binary(e, "llvm.or", one_end, twg_icmp(e, TW_NE, row->shift, zero));
  MlirValue two_ends = twg_binary(e, "llvm.xor", one_end, twg_const_int(e, e->i1, 1));
  MlirValue guard = twg_select(e, is_first, torn, two_ends);
  guard = twg_binary(e, "llvm.and", guard, twg_icmp(e, TW_SGE, at, row->shift));
  guard = twg_binary(e, "llvm.and", guard, twg_icmp(e, TW_SLT, at, row->end));
  MlirValue from = twg_binary(e, "llvm.sub", at, row->shift);
  take_piece(e, row, form, from, 0, guard, false, word);
  put_piece(e, row, form, from, 0, guard, word);
}

/* ---- load -------------------------------------------------------------------------------------- */

/* The accesses of a tile in two forms: one that is right everywhere, and, where longer vectors are possible inside
 * of the array, one for tiles that lie there as a whole. */
typedef struct accesses {
  int vector, inner; /* log2 of the elements of one */
  int regs[TW_LAYOUT_MAX_BITS];
} accesses_t;

static accesses_t accesses_of(MlirOperation op, const tw_layout_t *l) {
  accesses_t a = {0, 0, {0}};
  int dim = tw_access_contiguous_dim(op, l->rank), strict = tw_access_vector_bits(op, l->rank);
  if (dim < 0)
    return a;
  a.inner = tw_layout_vector_bits(l, dim, tw_access_inner_vector_bits(op, l->rank), a.regs);
  a.vector = a.inner < strict ? a.inner : strict;
  return a;
}

static bool load_scalar(tw_emitter_t *e, MlirOperation op) {
  MlirType element = mlirValueGetType(mlirOperationGetResult(op, 0));
  int bytes = tw_memory_bytes(element);
  bool half = tw_memory_bits(element) < 8;
  MlirValue pointer = twg_array_pointer(e, mlirOperationGetOperand(op, 0));
  MlirValue raw = twg_load_from(e, int_type(e, 8 * bytes), pointer, bytes);
  twg_set_scalar(e, op, 0,
                 half ? twg_binary(e, "llvm.and", raw, twg_const_int(e, e->i8, 15))
                      : twg_bits_to_element(e, raw, element));
  return true;
}

static bool lacks_layout(MlirOperation op) {
  tw_op_error(op, "needs a tile with a layout");
  return false;
}

static bool tears_bytes(MlirOperation op) {
  tw_op_error(op, "stores 4-bit elements one at a time, which would tear bytes");
  return false;
}

/* What a load needs to know in each of its two forms. */
typedef struct loader {
  MlirOperation op;
  MlirType element;
  tw_layout_t layout;
  uint32_t padding[2];
  const int *regs;
  MlirAttribute late; /* null: it stays where it is */
  bool pairs;         /* of which the second may lie outside */
  bool rounds;        /* from f32 to tf32 */
} loader_t;

/* ---- a load beside gathers of its neighbours ------------------------------------------------------------ */

/* Whether an index tile counts up from number * extent. */
static bool counts_from(MlirValue index, MlirValue number, int64_t extent) {
  MlirOperation sum = tw_def(index);
  int64_t factor;
  if (mlirOperationIsNull(sum) || !tw_op_is(sum, TW_ARITH_ADDI))
    return false;
  MlirOperation splat = tw_def(mlirOperationGetOperand(sum, 0));
  if (mlirOperationIsNull(splat) || !tw_op_is(splat, TW_TENSOR_SPLAT) ||
      !tw_counts_from_zero(mlirOperationGetOperand(sum, 1)))
    return false;
  MlirOperation start = tw_def(mlirOperationGetOperand(splat, 0));
  return !mlirOperationIsNull(start) && tw_op_is(start, TW_ARITH_MULI) &&
         mlirValueEqual(mlirOperationGetOperand(start, 0), number) &&
         tw_known_int(mlirOperationGetOperand(start, 1), &factor) && factor == extent;
}

/* Whether a gather's other index is the same number in all places. */
static bool repeats(MlirValue index, MlirValue number) {
  MlirOperation splat = tw_def(index);
  return mlirValueEqual(index, number) || (!mlirOperationIsNull(splat) && tw_op_is(splat, TW_TENSOR_SPLAT) &&
                                           mlirValueEqual(mlirOperationGetOperand(splat, 0), number));
}

/* Whether threads have the elements of a tile of one dimension as they have those of another one along `dim`. */
static bool is_spread_alike(const tw_layout_t *row, const tw_layout_t *l, int dim) {
  bool alike = row->rank == 1 && row->log_shape[0] == l->log_shape[dim];
  for (int g = 0; g < TW_NUM_INPUTS && alike; g++) {
    alike = row->bits[g] == l->bits[g];
    for (int i = 0; i < row->bits[g] && alike; i++)
      alike = tw_layout_coord(row, row->basis[g][i], 0) == tw_layout_coord(l, l->basis[g][i], dim);
  }
  return alike;
}

/* Whether a load reads the elements from which on a gather before it counts: of one row, with nothing written between.
 */
static bool reads_same_row(MlirOperation load, const tw_layout_t *l, const tw_loaded_t *loaded) {
  intptr_t first, at;
  int64_t order[TW_LAYOUT_MAX_RANK];
  tw_layout_t row;
  MlirOperation gather = loaded->gather;
  MlirValue array = tw_access_array(load, &first);
  intptr_t rank = tw_operands(gather, TW_OPERAND_INDICES, &at);
  int dim = tw_access_contiguous_dim(load, l->rank);
  tw_access_order(load, l->rank, order);
  bool same = rank == l->rank && mlirValueEqual(array, mlirOperationGetOperand(gather, 0)) &&
              tw_has_attr(gather, "check_bounds") &&
              mlirBlockEqual(mlirOperationGetBlock(gather), mlirOperationGetBlock(load)) &&
              tw_layout_of_type(mlirValueGetType(mlirOperationGetResult(gather, 0)), &row) &&
              is_spread_alike(&row, l, dim);
  for (int d = 0; d < l->rank && same; d++) {
    MlirValue number = mlirOperationGetOperand(load, first + d), index = mlirOperationGetOperand(gather, at + order[d]);
    same = d == dim ? counts_from(loaded->root, number, tw_layout_extent(l, d))
                    : l->log_shape[d] == 0 && repeats(index, number);
  }
  for (MlirOperation op = gather; same && !mlirOperationEqual(op, load); op = mlirOperationGetNextInBlock(op))
    same = !mlirOperationIsNull(op) && !tw_may_write_arrays(op);
  return same;
}

/* The vector at register r of a load, which a gather has loaded; what is outside of the array is 0 there. */
static const tw_loaded_t *find_in_row(const tw_emitter_t *e, const loader_t *l, int vector, int r) {
  bool plain = !l->pairs && l->padding[0] == 0 && l->padding[1] == 0;
  for (int i = 0; i < e->num_loaded && plain; i++) {
    const tw_loaded_t *loaded = &e->loaded[i];
    if (loaded->at == 0 && loaded->r == r && loaded->vector == vector && reads_same_row(l->op, &l->layout, loaded))
      return loaded;
  }
  return NULL;
}

/* Loads 2^vector elements at register r, guarded or (inside) not. */
static void load_piece(tw_emitter_t *e, const loader_t *l, tw_placed_t *placed, int vector, bool inside, int r,
                       int second, MlirValue *words) {
  int64_t offset;
  MlirValue pointer = twg_access_pointer(e, placed, r, &offset), guard = {NULL};
  MlirOperation load;
  if (!l->pairs && !inside)
    guard = twg_access_guard(e, placed, r);
  if (l->pairs)
    load = load_pair(e, placed->bits, pointer, offset, pair_guard(e, placed, r, second), l->padding, words);
  else
    load = guarded_load(e, form_of(placed->bits << vector), pointer, offset, guard, l->padding, words);
  if (!mlirAttributeIsNull(l->late))
    tw_set_attr(load, TW_LATE, l->late);
}

/* Loads all registers. */
static void load_registers(tw_emitter_t *e, const loader_t *l, tw_placed_t placed, int vector, bool inside,
                           tw_values_t out) {
  int lanes[32] = {0};
  for (int r = 0; r < out.count; r++) {
    MlirValue words[4], elements[32];
    if (!twg_starts_vector(r, vector, l->regs) || twg_first_copy(&l->layout, r) != r)
      continue;
    twg_vector_registers(r, vector, l->regs, lanes);
    const tw_loaded_t *there = find_in_row(e, l, vector, r);
    if (there)
      memcpy(words, there->words, sizeof words);
    else
      load_piece(e, l, &placed, vector, inside, r, lanes[1], words);
    twg_from_words(e, l->element, placed.bits, 1 << vector, words, elements);
    for (int i = 0; i < 1 << vector; i++)
      out.at[lanes[i]] = l->rounds ? twg_convert_float(e, elements[i], e->f32, l->element) : elements[i];
  }
  for (int r = 0; r < out.count; r++)
    out.at[r] = out.at[twg_first_copy(&l->layout, r)];
}

/* Whole tiles inside of the array go by long accesses, those at its edge by short ones. */
static void load_two_ways(tw_emitter_t *e, const loader_t *l, const tw_placed_t *placed, const accesses_t *a,
                          tw_values_t out) {
  MlirBlock inner = twg_new_block(e, 0, NULL), edge = twg_new_block(e, 0, NULL), join = twg_new_block(e, 0, NULL);
  twg_branch_if(e, placed->whole, inner, 0, NULL, edge, 0, NULL);
  e->block = inner;
  load_registers(e, l, *placed, a->inner, true, out);
  twg_branch(e, join, out.count, out.at);
  e->block = edge;
  load_registers(e, l, *placed, a->vector, false, out);
  twg_branch(e, join, out.count, out.at);
  e->block = join;
  for (int r = 0; r < out.count; r++)
    out.at[r] = mlirBlockAddArgument(join, mlirValueGetType(out.at[r]), e->location);
}

/* What is known to be inside goes by long accesses, the rest by short ones. */
static void load_sure(tw_emitter_t *e, const loader_t *l, tw_placed_t placed, const accesses_t *a, int dim,
                      int64_t sure, tw_values_t out) {
  int lanes[32] = {0};
  for (int r = 0; r < out.count; r++) {
    MlirValue words[4], elements[32];
    uint32_t at = tw_layout_coord(&l->layout, tw_layout_image(&l->layout, TW_REGISTER, (uint32_t)r), dim);
    int vector = at < sure ? a->inner : a->vector;
    if (!twg_starts_vector(r, vector, l->regs) || twg_first_copy(&l->layout, r) != r)
      continue;
    load_piece(e, l, &placed, vector, false, r, 0, words);
    twg_from_words(e, l->element, placed.bits, 1 << vector, words, elements);
    twg_vector_registers(r, vector, l->regs, lanes);
    for (int i = 0; i < 1 << vector; i++)
      out.at[lanes[i]] = l->rounds ? twg_convert_float(e, elements[i], e->f32, l->element) : elements[i];
  }
  for (int r = 0; r < out.count; r++)
    out.at[r] = out.at[twg_first_copy(&l->layout, r)];
}

/* Whether the pieces of an access stand in one block, between others that wait for stores (memory/late_loads.c). */
static bool is_in_pieces(MlirOperation op) { return tw_attr_int(op, TW_LATE, 0) > 0; }

/* Whether such pieces are pairs. */
static bool makes_pairs(MlirOperation op, const accesses_t *a, const tw_placed_t *placed) {
  return is_in_pieces(op) && a->inner > 0 && a->vector == 0 && !placed->inside && are_pairs(placed->bits);
}

/* Threads bring whole pieces to shared memory, and take from there what they have of the row. */
static bool load_realigned(tw_emitter_t *e, const loader_t *l, const accesses_t *a, tw_values_t out) {
  realigned_t row;
  int lanes[32];
  if (!place_realigned(e, l->op, l->element, &l->layout, &row))
    return false;
  move_pieces(e, &row);
  move_ends(e, &row);
  twg_barrier(e);
  int64_t sure = twg_surely_inside(e, l->op, &l->layout, row.dim);
  MlirValue left = twg_binary(e, "llvm.sub", row.count, twg_thread_coord(e, &l->layout, row.dim));
  for (int r = 0; r < out.count; r++) {
    MlirValue words[4], elements[32], guard = {NULL};
    int64_t at = place_in_row(&row, &l->layout, r);
    if (!twg_starts_vector(r, a->vector, a->regs) || twg_first_copy(&l->layout, r) != r)
      continue;
    if (at >= sure && !tw_has_attr(l->op, TW_IN_BOUNDS))
      guard = twg_icmp(e, TW_SGT, left, twg_const_i32(e, at));
    guarded_load(e, form_of((8 * row.size) << a->vector), row.own, at * row.size, guard, l->padding, words);
    twg_from_words(e, l->element, 8 * row.size, 1 << a->vector, words, elements);
    twg_vector_registers(r, a->vector, a->regs, lanes);
    for (int i = 0; i < 1 << a->vector; i++)
      out.at[lanes[i]] = elements[i];
  }
  for (int r = 0; r < out.count; r++)
    out.at[r] = out.at[twg_first_copy(&l->layout, r)];
  return true;
}

static bool rule_load(tw_emitter_t *e, MlirOperation op) {
  MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0));
  loader_t l = {.op = op, .element = tw_element(type), .late = tw_attr(op, TW_LATE)};
  l.rounds = tw_rounds_to_tf32(mlirValueGetType(mlirOperationGetOperand(op, 0)), l.element);
  tw_placed_t placed;
  if (!tw_is_tile(type))
    return load_scalar(e, op);
  if (!tw_layout_of_type(type, &l.layout))
    return lacks_layout(op);
  accesses_t a = accesses_of(op, &l.layout);
  l.regs = a.regs;
  twg_padding_words(l.element, tw_attr_int(op, "padding", 0), l.padding);
  tw_values_t out = twg_new_values(e, tw_layout_count(&l.layout, TW_REGISTER));
  if (tw_has_attr(op, TW_REALIGNED)) {
    bool ok = load_realigned(e, &l, &a, out);
    twg_set_result(e, op, 0, out);
    return ok;
  }
  twg_place(e, op, l.element, &l.layout, &placed);
  l.pairs = makes_pairs(op, &a, &placed);
  int dim = tw_access_contiguous_dim(op, l.layout.rank);
  int64_t sure = a.inner > a.vector && dim >= 0 ? twg_surely_inside(e, op, &l.layout, dim) : 0;
  if (sure > 0)
    load_sure(e, &l, placed, &a, dim, sure, out);
  else if (a.inner > a.vector && placed.whole.ptr && !is_in_pieces(op) && !e->ends_early)
    load_two_ways(e, &l, &placed, &a, out);
  else
    load_registers(e, &l, placed, l.pairs ? 1 : a.vector, placed.inside, out);
  twg_set_result(e, op, 0, out);
  return true;
}

/* ---- store ------------------------------------------------------------------------------------- */

static bool store_scalar(tw_emitter_t *e, MlirOperation op) {
  MlirType element = mlirValueGetType(mlirOperationGetOperand(op, 1));
  int bits = tw_memory_bits(element);
  MlirValue words[4], value = twg_operand(e, op, 1).at[0];
  MlirValue guard = twg_first_thread(e);
  twg_to_words(e, element, bits, 1, &value, words);
  guarded_store(e, form_of(bits), twg_array_pointer(e, mlirOperationGetOperand(op, 0)), 0, guard, words);
  return true;
}

/* The value of a store: its last operand. */
static MlirValue stored_value(MlirOperation op) {
  return mlirOperationGetOperand(op, mlirOperationGetNumOperands(op) - 1);
}

static void store_registers(tw_emitter_t *e, MlirType element, const tw_layout_t *layout, const int *regs,
                            tw_placed_t placed, int vector, bool inside, bool pairs, tw_values_t in) {
  int lanes[32];
  for (int r = 0; r < in.count; r++) {
    MlirValue words[4], elements[32];
    int64_t offset;
    if (!twg_starts_vector(r, vector, regs) || twg_first_copy(layout, r) != r)
      continue;
    twg_vector_registers(r, vector, regs, lanes);
    for (int i = 0; i < 1 << vector; i++)
      elements[i] = in.at[lanes[i]];
    twg_to_words(e, element, placed.bits, 1 << vector, elements, words);
    MlirValue pointer = twg_access_pointer(e, &placed, r, &offset);
    if (pairs)
      store_pair(e, placed.bits, pointer, offset, pair_guard(e, &placed, r, lanes[1]), words);
    else
      guarded_store(e, form_of(placed.bits << vector), pointer, offset,
                    inside ? placed.owner : twg_access_guard(e, &placed, r), words);
  }
}

/* As load_two_ways. */
static void store_two_ways(tw_emitter_t *e, MlirType element, const tw_layout_t *layout, const accesses_t *a,
                           const tw_placed_t *placed, tw_values_t in) {
  MlirBlock inner = twg_new_block(e, 0, NULL), edge = twg_new_block(e, 0, NULL), join = twg_new_block(e, 0, NULL);
  twg_branch_if(e, placed->whole, inner, 0, NULL, edge, 0, NULL);
  e->block = inner;
  store_registers(e, element, layout, a->regs, *placed, a->inner, true, false, in);
  twg_branch(e, join, 0, NULL);
  e->block = edge;
  store_registers(e, element, layout, a->regs, *placed, a->vector, false, false, in);
  twg_branch(e, join, 0, NULL);
  e->block = join;
}

/* Threads put what they have of the row into shared memory, and take whole pieces from there. */
static bool store_realigned(tw_emitter_t *e, MlirOperation op, MlirType element, const tw_layout_t *layout,
                            const accesses_t *a, tw_values_t in) {
  realigned_t row;
  int lanes[32];
  if (!place_realigned(e, op, element, layout, &row))
    return false;
  for (int r = 0; r < in.count; r++) {
    MlirValue words[4], elements[32], always = {NULL};
    if (!twg_starts_vector(r, a->inner, a->regs) || twg_first_copy(layout, r) != r)
      continue;
    twg_vector_registers(r, a->inner, a->regs, lanes);
    for (int i = 0; i < 1 << a->inner; i++)
      elements[i] = in.at[lanes[i]];
    twg_to_words(e, element, 8 * row.size, 1 << a->inner, elements, words);
    guarded_store(e, form_of((8 * row.size) << a->inner), row.own, place_in_row(&row, layout, r) * row.size, always,
                  words);
  }
  twg_barrier(e);
  move_pieces(e, &row);
  move_ends(e, &row);
  return true;
}

static bool rule_store(tw_emitter_t *e, MlirOperation op) {
  MlirType type = mlirValueGetType(stored_value(op)), element = tw_element(type);
  tw_layout_t layout;
  tw_placed_t placed;
  if (!tw_is_tile(type))
    return store_scalar(e, op);
  if (!tw_layout_of_type(type, &layout))
    return lacks_layout(op);
  accesses_t a = accesses_of(op, &layout);
  if (tw_memory_bits(element) == 4 && a.vector == 0)
    return tears_bytes(op);
  tw_values_t in = twg_lookup(e, stored_value(op));
  if (tw_has_attr(op, TW_REALIGNED))
    return store_realigned(e, op, element, &layout, &a, in);
  twg_place(e, op, element, &layout, &placed);
  placed.owner = twg_owner_guard(e, &layout);
  bool pairs = makes_pairs(op, &a, &placed);
  if (a.inner > a.vector && placed.whole.ptr && !is_in_pieces(op))
    store_two_ways(e, element, &layout, &a, &placed, in);
  else
    store_registers(e, element, &layout, a.regs, placed, pairs ? 1 : a.vector, placed.inside, pairs, in);
  return true;
}

/* ---- gather and scatter ------------------------------------------------------------------------ */

/* The half of a byte that an odd or even element takes. */
static MlirValue half_byte(tw_emitter_t *e, MlirValue byte, MlirValue element) {
  MlirValue odd = twg_cast(e, "llvm.trunc", e->i1, element);
  MlirValue high = twg_binary(e, "llvm.lshr", byte, twg_const_int(e, e->i8, 4));
  return twg_select(e, odd, high, twg_binary(e, "llvm.and", byte, twg_const_int(e, e->i8, 15)));
}

/* Whether LLVM makes the access, as it knows best: a thread's own, without a guard. It may hoist it, unroll the loop
 * around it, join it with its neighbours, and keep arrays of a thread in registers; what orders it are barriers and
 * atomics. */
static bool is_plain(const tw_emitter_t *e, MlirValue guard) { return e->simt && guard.ptr == NULL; }

static MlirValue load_plain(tw_emitter_t *e, MlirType element, MlirValue pointer, int bits) {
  return twg_bits_to_element(e, twg_load_from(e, int_type(e, bits), pointer, bits / 8), element);
}

static void store_plain(tw_emitter_t *e, MlirType element, MlirValue value, MlirValue pointer, int bits) {
  MlirValue words[4];
  if (bits == 64)
    words[0] = twg_bitcast(e, value, e->i64);
  else
    twg_to_words(e, element, bits, 1, &value, words);
  twg_store_to(e, words[0], pointer, bits / 8);
}

/* Loads what is at a place of an array to register r, and the vector's others. */
static void load_elements(tw_emitter_t *e, const tw_indexed_t *x, MlirType element, tw_place_t place,
                          MlirAttribute late, int r, tw_values_t out) {
  static const uint32_t no_padding[2] = {0, 0};
  int bits = tw_memory_bits(element), lanes[16];
  MlirValue words[4], elements[16], guard = place.guard, pointer = twg_element_pointer(e, x->array, place, bits);
  if (x->own)
    pointer = twg_thread_pointer(e, pointer);
  if (is_plain(e, guard)) {
    out.at[r] = load_plain(e, element, pointer, bits);
    return;
  }
  MlirOperation load = guarded_load(e, form_of(bits << x->vector), pointer, 0, guard, no_padding, words);
  if (!mlirAttributeIsNull(late))
    tw_set_attr(load, TW_LATE, late);
  if (bits == 4)
    elements[0] = half_byte(e, words[0], twg_plus(e, place.still, twg_plus(e, place.moved, place.apart)));
  else
    twg_from_words(e, element, bits, 1 << x->vector, words, elements);
  twg_vector_registers(r, x->vector, x->regs, lanes);
  bool pads = guard.ptr && x->value.ptr && !tw_is_zero(x->value); /* zeros are there already */
  for (int i = 0; i < 1 << x->vector; i++)
    out.at[lanes[i]] = pads ? twg_select(e, guard, elements[i], twg_at_register(e, x->value, lanes[i])) : elements[i];
}

/* ---- gathers of neighbours that lie close by: x[i - 1], x[2 * i + 1] ------------------------------------------- */

enum { MAX_SPREAD_BITS = 5 };

/* A group of registers whose elements lie in `count` aligned vectors, `first` behind the start of the first of them.
 * Those vectors are loaded whole, and each element is taken from its place. */
typedef struct {
  int bits, regs[TW_LAYOUT_MAX_BITS]; /* log2 of the registers, and their bits */
  int step, vector, count;
  int64_t first;
  MlirValue root; /* the index, but for a constant: `by` is added */
  int64_t by;
} around_t;

/* Whether the gather takes fewer accesses so. */
static bool find_spread(MlirOperation op, const tw_layout_t *layout, const tw_indexed_t *x, around_t *out) {
  tw_spread_t facts;
  int axis = tw_access_contiguous_dim(op, (int)x->count);
  if (!tw_gather_spread(op, &facts))
    return false;
  MlirValue index = mlirOperationGetOperand(op, x->first + axis);
  if (tw_bits(mlirValueGetType(index)) < 32)
    return false;
  *out = (around_t){.step = facts.step};
  int most = facts.run < MAX_SPREAD_BITS ? facts.run : MAX_SPREAD_BITS;
  out->bits = tw_layout_vector_bits(layout, facts.dim, most, out->regs);
  out->vector = out->bits + facts.step < facts.vector ? out->bits + facts.step : facts.vector;
  out->first = facts.first & ((INT64_C(1) << out->vector) - 1);
  out->count = (int)((out->first + (((INT64_C(1) << out->bits) - 1) << out->step)) >> out->vector) + 1;
  out->root = tw_index_root(index, &out->by);
  return out->count << x->vector < 1 << out->bits;
}

/* Whether vectors of the gather before serve this one: nothing in between may have changed them. */
static bool is_alike(MlirOperation before, MlirOperation op) {
  if (!mlirBlockEqual(mlirOperationGetBlock(before), mlirOperationGetBlock(op)) || !tw_gathers_adjoin(before, op))
    return false;
  for (MlirOperation at = before; !mlirOperationEqual(at, op); at = mlirOperationGetNextInBlock(at))
    if (mlirOperationIsNull(at) || tw_may_write_arrays(at))
      return false;
  return true;
}

/* The vector `at` elements behind the index of register r, and its predicate: as it was loaded for another gather. */
static tw_loaded_t *find_loaded(tw_emitter_t *e, tw_loaded_t wanted) {
  for (int i = 0; i < e->num_loaded; i++) {
    tw_loaded_t *l = &e->loaded[i];
    if (l->at == wanted.at && l->r == wanted.r && l->vector == wanted.vector && mlirValueEqual(l->root, wanted.root) &&
        is_alike(l->gather, wanted.gather))
      return l;
  }
  return NULL;
}

/* Vector k around the registers from r on. A mask says which of its elements are wanted: without one it may serve
 * other gathers. */
static tw_loaded_t load_aligned(tw_emitter_t *e, MlirOperation op, tw_indexed_t x, const around_t *s, int r, int k,
                                MlirValue wanted) {
  static const uint32_t no_padding[2] = {0, 0};
  int bits = tw_memory_bits(tw_element(mlirValueGetType(x.array)));
  int64_t moved = ((int64_t)k << s->vector) - s->first;
  tw_loaded_t made = {.gather = op, .root = s->root, .at = s->by + moved, .r = r, .vector = s->vector};
  tw_loaded_t *found = wanted.ptr ? NULL : find_loaded(e, made);
  if (found)
    return *found;
  x.mask.ptr = NULL;
  x.shifted = tw_access_contiguous_dim(op, (int)x.count);
  x.shift = twg_const_i32(e, moved);
  tw_place_t place = twg_locate(e, op, &x, r);
  made.guard = twg_both(e, place.guard, wanted);
  guarded_load(e, form_of(bits << s->vector), twg_element_pointer(e, x.array, place, bits), 0, made.guard, no_padding,
               made.words);
  made.guard = place.guard;
  if (e->num_loaded == TWG_MAX_LOADED) /* those that are needed still are the last ones */
    e->num_loaded = 0;
  if (!wanted.ptr)
    e->loaded[e->num_loaded++] = made;
  return made;
}

static int64_t place_in(const around_t *s, int i) { return s->first + ((int64_t)i << s->step); }

/* Whether the mask wants an element of vector k; null if there is no mask. */
static MlirValue wants_some(tw_emitter_t *e, const tw_indexed_t *x, const around_t *s, const int *lanes, int k) {
  MlirValue wanted = {NULL};
  for (int i = 0; i < 1 << s->bits && x->mask.ptr; i++) {
    MlirValue holds = twg_at_register(e, x->mask, lanes[i]);
    if (place_in(s, i) >> s->vector == k)
      wanted = wanted.ptr ? twg_binary(e, "llvm.or", wanted, holds) : holds;
  }
  return wanted;
}

/* The elements of the registers from r on. */
static void load_spread(tw_emitter_t *e, MlirOperation op, const tw_indexed_t *x, const around_t *s, int r,
                        tw_values_t out) {
  MlirType element = tw_element(mlirValueGetType(x->array));
  int lanes[1 << MAX_SPREAD_BITS], have = -1;
  MlirValue elements[16];
  tw_loaded_t loaded = {.vector = 0};
  bool pads = x->value.ptr && !tw_is_zero(x->value); /* zeros are there already */
  twg_vector_registers(r, s->bits, s->regs, lanes);
  for (int i = 0; i < 1 << s->bits; i++) {
    int k = (int)(place_in(s, i) >> s->vector);
    if (k != have) {
      loaded = load_aligned(e, op, *x, s, r, k, wants_some(e, x, s, lanes, k));
      twg_from_words(e, element, tw_memory_bits(element), 1 << s->vector, loaded.words, elements);
      have = k;
    }
    MlirValue taken = elements[place_in(s, i) & ((INT64_C(1) << s->vector) - 1)];
    MlirValue holds = x->mask.ptr ? twg_at_register(e, x->mask, lanes[i]) : x->mask;
    if (pads)
      holds = twg_both(e, holds, loaded.guard);
    if (holds.ptr && x->value.ptr)
      taken = twg_select(e, holds, taken, twg_at_register(e, x->value, lanes[i]));
    out.at[lanes[i]] = taken;
  }
}

/* What is still known to be loaded where the gather begins to be emitted, maybe once more. */
static void forget_loaded(tw_emitter_t *e, MlirOperation op) {
  for (int i = 0; i < e->num_loaded; i++)
    if (mlirOperationEqual(e->loaded[i].gather, op))
      e->num_loaded = 0;
}

/* Whether a number is loaded for the next iteration. All threads of tiles load the same: for its readers the assembler
 * would take it to a register that they share, and wait for it right behind the load. */
static bool is_loaded_ahead(MlirOperation gather) {
  MlirValue result = mlirOperationGetResult(gather, 0);
  if (!mlirTypeIsAFloat(mlirValueGetType(result)))
    return false;
  TW_EACH_USE(use, result)
    if (tw_op_is(mlirOpOperandGetOwner(use), TW_SCF_YIELD))
      return true;
  return false;
}

static bool rule_gather(tw_emitter_t *e, MlirOperation op) {
  MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0));
  tw_indexed_t x = twg_indexed_of(op, TW_OPERAND_PADDING);
  tw_layout_t layout = {0};
  around_t spread;
  bool tile = tw_is_tile(type) && tw_layout_of_type(type, &layout);
  if (tile)
    twg_find_vectors(op, &layout, &x);
  x.own = !e->simt && is_loaded_ahead(op);
  tw_values_t out = twg_new_values(e, tw_register_count(type));
  bool spreads = tile && find_spread(op, &layout, &x, &spread);
  if (spreads)
    forget_loaded(e, op);
  for (int r = 0; r < out.count; r++) {
    if (!twg_starts_vector(r, spreads ? spread.bits : x.vector, spreads ? spread.regs : x.regs) ||
        twg_first_copy(&layout, r) != r)
      continue;
    if (spreads)
      load_spread(e, op, &x, &spread, r, out);
    else
      load_elements(e, &x, tw_element(type), twg_locate(e, op, &x, r), tw_attr(op, TW_LATE), r, out);
  }
  for (int r = 0; r < out.count; r++)
    out.at[r] = out.at[twg_first_copy(&layout, r)];
  twg_set_result(e, op, 0, out);
  return true;
}

/* Each thread copies the pieces that its index tiles name; the swizzle of the buffer is in where it puts them. */
static bool rule_async_gather(tw_emitter_t *e, MlirOperation op) {
  enum { MIN_COPY_BITS = 32 };
  tw_indexed_t x = twg_indexed_of(op, TW_OPERAND_PADDING); /* no padding */
  intptr_t at = tw_copy_buffer_operand(op);
  MlirType type = mlirValueGetType(mlirOperationGetOperand(op, at)), element = tw_buffer_type_element(type);
  MlirValue enabled = tw_operand(op, TW_OPERAND_ENABLED), to = twg_stage_pointer(e, op, at);
  int bits = tw_memory_bits(element);
  tw_layout_t tile, shared;
  if (!tw_layout_of_type(type, &shared) ||
      !tw_layout_of_type(mlirValueGetType(mlirOperationGetOperand(op, x.first)), &tile))
    return lacks_layout(op);
  twg_find_vectors(op, &tile, &x);
  if (bits << x.vector < MIN_COPY_BITS) {
    tw_op_error(op, "copies pieces of less than 4 bytes: its indices are not known to count up");
    return false;
  }
  for (int r = 0; r < tw_layout_count(&tile, TW_REGISTER); r++) {
    if (!twg_starts_vector(r, x.vector, x.regs) || twg_first_copy(&tile, r) != r)
      continue;
    tw_place_t place = twg_locate(e, op, &x, r);
    MlirValue from = twg_element_pointer(e, x.array, place, bits);
    MlirValue guard = twg_both(e, place.guard, enabled.ptr ? twg_lookup(e, enabled).at[0] : enabled);
    twg_copy_piece(e, twg_shared_pointer(e, &tile, &shared, element, r, to), from, 0, bits / 8 << x.vector,
                   guard.ptr ? guard : twg_const_int(e, e->i1, 1));
  }
  return true;
}

/* Lanes exchange elements where each can store longer vectors then. The indices count up, so those of a thread's
 * neighbours follow from its own. */
static bool find_exchange(tw_emitter_t *e, MlirOperation op, const tw_layout_t *layout, int elem_bits, tw_indexed_t *x,
                          tw_exchange_t *out) {
  enum { WORD = 32 };
  int dim, wanted = tw_gather_vector_bits(op, &dim), have = x->vector;
  if (wanted <= have || elem_bits << have < WORD || !twg_find_exchange(layout, dim, have, wanted, out) ||
      tw_gather_run_bits(op, dim) < wanted + out->count)
    return false;
  x->shifted = tw_access_contiguous_dim(op, (int)x->count);
  if (tw_bits(mlirValueGetType(mlirOperationGetOperand(op, x->first + x->shifted))) < WORD)
    return false;
  x->shift = twg_binary(e, "llvm.mul", twg_exchange_number(e, out),
                        twg_const_i32(e, (INT64_C(1) << wanted) - (INT64_C(1) << have)));
  return true;
}

/* The words of the vector at register r. */
static int vector_words(tw_emitter_t *e, MlirType element, const tw_indexed_t *x, int r, MlirValue words[4]) {
  MlirValue values[16];
  int lanes[16];
  twg_vector_registers(r, x->vector, x->regs, lanes);
  for (int i = 0; i < 1 << x->vector; i++)
    values[i] = twg_at_register(e, x->value, lanes[i]);
  return twg_to_words(e, element, tw_memory_bits(element), 1 << x->vector, values, words);
}

/* Stores the vector at register r, and those that other lanes have for it. */
static void store_elements(tw_emitter_t *e, const tw_indexed_t *x, const tw_exchange_t *exchange, MlirType element,
                           tw_place_t place, MlirValue owner, int r) {
  int bits = tw_memory_bits(element), size = 0;
  MlirValue pointer = twg_element_pointer(e, x->array, place, bits), guard = twg_both(e, place.guard, owner), words[4];
  if (is_plain(e, guard)) {
    store_plain(e, element, twg_at_register(e, x->value, r), pointer, bits);
    return;
  }
  for (int i = 0; i < 1 << exchange->count; i++)
    size = vector_words(e, element, x, twg_exchange_register(exchange, r, i), words + (ptrdiff_t)i * size);
  twg_exchange(e, exchange, size, words);
  guarded_store(e, form_of(bits << (x->vector + exchange->count)), pointer, 0, guard, words);
}

/* ---- two scatters to even and odd elements: y[2 * i] and y[2 * i + 1] ------------------------------------------- */

/* Whether registers of both make vectors: groups of 2^bits in each. */
static bool find_pair(MlirOperation even, const tw_layout_t *layout, around_t *out) {
  tw_spread_t facts;
  if (!tw_gather_spread(even, &facts))
    return false;
  *out = (around_t){.vector = facts.vector, .first = facts.first & ((INT64_C(1) << facts.vector) - 1)};
  out->bits = tw_layout_vector_bits(layout, facts.dim, facts.vector - 1, out->regs);
  return out->bits == facts.vector - 1 && out->first == 0;
}

static void store_pairs(tw_emitter_t *e, MlirOperation even, MlirOperation odd, const tw_layout_t *layout,
                        const tw_indexed_t *x, const around_t *s) {
  MlirType type = mlirValueGetType(x->value), element = tw_element(type);
  MlirValue other = tw_operand(odd, TW_OPERAND_VALUE), owner = twg_owner_guard(e, layout);
  int bits = tw_memory_bits(element), lanes[16];
  for (int r = 0; r < tw_register_count(type); r++) {
    MlirValue elements[32], words[4];
    if (!twg_starts_vector(r, s->bits, s->regs) || twg_first_copy(layout, r) != r)
      continue;
    twg_vector_registers(r, s->bits, s->regs, lanes);
    for (int i = 0; i < 1 << s->bits; i++) {
      elements[2 * i] = twg_at_register(e, x->value, lanes[i]);
      elements[2 * i + 1] = twg_at_register(e, other, lanes[i]);
    }
    (void)twg_to_words(e, element, bits, 1 << s->vector, elements, words);
    tw_place_t place = twg_locate(e, even, x, r);
    guarded_store(e, form_of(bits << s->vector), twg_element_pointer(e, x->array, place, bits), 0,
                  twg_both(e, place.guard, owner), words);
  }
}

/* Stores both where the second one stands; false if they are not a pair, or their layout keeps them apart. */
static bool scatter_pair(tw_emitter_t *e, MlirOperation op, const tw_layout_t *layout) {
  bool is_odd;
  around_t spread;
  MlirOperation pair = tw_scatter_pair(op, &is_odd), even = is_odd ? pair : op;
  if (mlirOperationIsNull(pair))
    return false;
  tw_indexed_t x = twg_indexed_of(even, TW_OPERAND_VALUE);
  if (!find_pair(even, layout, &spread))
    return false;
  if (is_odd)
    store_pairs(e, even, op, layout, &x, &spread);
  return true;
}

static bool rule_scatter(tw_emitter_t *e, MlirOperation op) {
  tw_indexed_t x = twg_indexed_of(op, TW_OPERAND_VALUE);
  MlirType type = mlirValueGetType(x.value), element = tw_element(type);
  tw_layout_t layout = {0};
  tw_exchange_t exchange = {.count = 0};
  MlirValue owner = twg_first_thread(e);
  if (tw_memory_bits(element) == 4)
    return tears_bytes(op);
  if (tw_is_tile(type)) {
    if (!tw_layout_of_type(type, &layout))
      return lacks_layout(op);
    if (scatter_pair(e, op, &layout))
      return true;
    owner = twg_owner_guard(e, &layout);
    twg_find_vectors(op, &layout, &x);
    if (!find_exchange(e, op, &layout, tw_memory_bits(element), &x, &exchange))
      exchange.count = 0;
  }
  for (int r = 0; r < tw_register_count(type); r++)
    if (twg_starts_vector(r, x.vector, x.regs) && twg_starts_vector(r, exchange.count, exchange.reg) &&
        twg_first_copy(&layout, r) == r)
      store_elements(e, &x, &exchange, element, twg_locate(e, op, &x, r), owner, r);
  return true;
}

TWG_RULE(TW_TILE_LOAD, rule_load)
TWG_RULE(TW_TILE_STORE, rule_store)
TWG_RULE(TW_TILE_GATHER, rule_gather)
TWG_RULE(TW_TILE_SCATTER, rule_scatter)
TWG_RULE(TW_TILE_ASYNC_GATHER, rule_async_gather)

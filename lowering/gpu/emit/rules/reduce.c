/* reduce.c - rules: reductions along one axis
 *
 * In three steps, each only where the axis is spread so: the registers of a thread as a tree, or one
 * after the other where an attribute (TW_IN_ORDER) says that few are left; lanes
 * by butterfly shuffles; warps through shared memory, where each warp leaves its partial results and
 * every thread reads those of all warps (one barrier). A reduction across blocks (cluster_rows.c) takes that step
 * for the warps of all its blocks: a warp sends its results to the shared memory of each, where a barrier counts them.
 * All steps keep the result replicated where the axis was, which is the layout of a slice.
 *
 * argmin and argmax carry a key and an index: the key is the element as an integer that orders as
 * the floats do, NaN before everything, so that ties and NaN need no further care. In a thread the best
 * element is found first, as min and max find it, and then the first that equals it: three instructions an
 * element, where a key and its index take ten. 16-bit sums are held in f32. */
#include "base/memory.h"
#include "lowering/gpu/emit/lanes.h"
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/emit/shared_access.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/facts/scratch.h"
#include "lowering/gpu/isa/across_blocks.h"
#include "lowering/gpu/isa/convert_float.h"

#include "lowering/loops.h"
#include "tilewright/dialect.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_PARTS = 2 };

/* What is combined: one value, or key and index. */
typedef struct item {
  MlirValue part[MAX_PARTS];
} item_t;

typedef struct reduction {
  tw_emitter_t *e;
  tw_reduce_kind_t kind;
  MlirType element; /* of the tile */
  MlirType held;    /* of part 0 */
  bool is_unsigned, arg, ignore_nan;
} reduction_t;

static MlirType held_type(tw_emitter_t *e, tw_reduce_kind_t kind, MlirType element) {
  if (!mlirTypeIsAFloat(element))
    return twg_register_type(e, element);
  bool wide = mlirTypeIsAF64(element);
  if (tw_reduces_to_index(kind))
    return wide ? e->i64 : e->i32;
  return wide ? element : e->f32;
}

/* ---- combining --------------------------------------------------------------------------------- */

static const char *combiner(const reduction_t *r) {
  static const char *const floats[] = {"llvm.fadd", "llvm.fmul", "llvm.intr.minimum", "llvm.intr.maximum"};
  static const char *const ints[] = {"llvm.add", "llvm.mul", "llvm.intr.smin", "llvm.intr.smax"};
  static const char *const unsigned_ints[] = {"llvm.add", "llvm.mul", "llvm.intr.umin", "llvm.intr.umax"};
  static const char *const bools[] = {"llvm.or", "llvm.and", "llvm.and", "llvm.or"};
  static const char *const of_numbers[] = {NULL, NULL, "llvm.intr.minnum", "llvm.intr.maxnum"};
  if (mlirTypeIsAFloat(r->held))
    return (r->ignore_nan ? of_numbers : floats)[r->kind];
  if (mlirIntegerTypeGetWidth(r->held) == 1)
    return bools[r->kind];
  return r->is_unsigned ? unsigned_ints[r->kind] : ints[r->kind];
}

static item_t combine(const reduction_t *r, item_t x, item_t y) {
  tw_emitter_t *e = r->e;
  if (!r->arg)
    return (item_t){{twg_binary(e, combiner(r), x.part[0], y.part[0])}};
  bool uns = r->is_unsigned && !mlirTypeIsAFloat(r->element);
  int better = r->kind == TW_REDUCE_ARGMIN ? (uns ? TW_ULT : TW_SLT) : (uns ? TW_UGT : TW_SGT);
  MlirValue wins = twg_icmp(e, better, y.part[0], x.part[0]);
  MlirValue ties =
      twg_binary(e, "llvm.and", twg_icmp(e, TW_EQ, y.part[0], x.part[0]), twg_icmp(e, TW_SLT, y.part[1], x.part[1]));
  MlirValue take = twg_binary(e, "llvm.or", wins, ties);
  return (item_t){{twg_select(e, take, y.part[0], x.part[0]), twg_select(e, take, y.part[1], x.part[1])}};
}

/* A float, of 32 bits at least, as an integer of the same order. -0 equals 0. NaN comes first in the direction that is
 * sought, or last if it is ignored. */
static MlirValue ordered_key(const reduction_t *r, MlirValue x) {
  tw_emitter_t *e = r->e;
  bool wide = mlirTypeIsAF64(r->element);
  MlirType type = wide ? e->f64 : e->f32, bits_type = r->held;
  MlirValue nan = twg_fcmp(e, TW_UNO, x, x);
  MlirValue zero = twg_fcmp(e, TW_OEQ, x, twg_const_float(e, type, 0));
  MlirValue bits = twg_bitcast(e, twg_select(e, zero, twg_const_float(e, type, 0), x), bits_type);
  int64_t most = wide ? INT64_MAX : INT32_MAX, least = wide ? INT64_MIN : INT32_MIN;
  MlirValue sign = twg_binary(e, "llvm.ashr", bits, twg_const_int(e, bits_type, wide ? 63 : 31));
  MlirValue flip = twg_binary(e, "llvm.and", sign, twg_const_int(e, bits_type, most));
  MlirValue first = twg_const_int(e, bits_type, (r->kind == TW_REDUCE_ARGMIN) != r->ignore_nan ? least : most);
  return twg_select(e, nan, first, twg_binary(e, "llvm.xor", bits, flip));
}

static MlirValue hold(const reduction_t *r, MlirValue x) {
  bool narrow = mlirTypeIsAFloat(r->element) && !mlirTypeIsAF64(r->element);
  return narrow ? twg_convert_float(r->e, x, r->element, r->e->f32) : x;
}

/* Of a value that is held. */
static MlirValue key_of(const reduction_t *r, MlirValue x) {
  return r->arg && mlirTypeIsAFloat(r->element) ? ordered_key(r, x) : x;
}

static MlirValue release(const reduction_t *r, item_t x) {
  if (r->arg)
    return x.part[1];
  if (!mlirTypeIsAFloat(r->element) || mlirTypeIsAF64(r->element))
    return x.part[0];
  return twg_convert_float(r->e, x.part[0], r->e->f32, r->element);
}

/* ---- where the axis lies ------------------------------------------------------------------------- */

static bool along(const tw_layout_t *l, tw_input_t input, int bit, int axis) {
  return (l->basis[input][bit] & tw_layout_dim_mask(l, axis)) != 0;
}

/* ---- steps ------------------------------------------------------------------------------------- */

/* A sum of products, in f32 or wider. */
static bool sums_products(MlirOperation op) {
  MlirOperation addend = tw_def(mlirOperationGetOperand(op, 0));
  MlirType element = tw_operand_element(op, 0);
  return tw_attr_int(op, "kind", 0) == TW_REDUCE_ADD && mlirTypeIsAFloat(element) && tw_bits(element) >= 32 &&
         !mlirOperationIsNull(addend) && tw_op_is(addend, TW_ARITH_MULF);
}

/* Combines the items of all registers in place: afterwards items[r] is valid for each r whose bits along the axis
 * are 0. The order is a tree. Products are summed in chains instead, since a product fuses with the sum before it;
 * the lowest bits along the axis number the chains. An attribute asks for one chain where registers are few: a tree
 * needs one register a level. */
static void reduce_registers(const reduction_t *r, MlirOperation op, const tw_layout_t *l, item_t *items, int count) {
  enum { LOG_CHAINS = 2, LOG_LENGTH = 4 }; /* at least so many chains, at most so long */
  int bits[TW_LAYOUT_MAX_BITS], num = 0, axis = (int)tw_attr_int(op, "axis", 0);
  for (int bit = 0; bit < l->bits[TW_REGISTER]; bit++)
    if (along(l, TW_REGISTER, bit, axis))
      bits[num++] = bit;
  int chained = sums_products(op) && num > LOG_CHAINS ? num - LOG_CHAINS : 0;
  int tree = tw_has_attr(op, TW_IN_ORDER) ? 0 : num - (chained < LOG_LENGTH ? chained : LOG_LENGTH);
  for (int link = 1; link < 1 << (num - tree); link++)
    for (int i = 0; i < count; i++) {
      int from = i;
      for (int b = tree; b < num; b++)
        from |= (link >> (b - tree) & 1) << bits[b];
      bool first = true;
      for (int b = tree; b < num; b++)
        first = first && (i >> bits[b] & 1) == 0;
      if (first)
        items[i] = combine(r, items[i], items[from]);
    }
  while (tree-- > 0)
    for (int i = 0; i < count; i++)
      if ((i >> bits[tree] & 1) == 0)
        items[i] = combine(r, items[i], items[i | 1 << bits[tree]]);
}

static item_t reduce_lanes(const reduction_t *r, const tw_layout_t *l, int axis, item_t x) {
  for (int bit = 0; bit < l->bits[TW_LANE]; bit++) {
    if (!along(l, TW_LANE, bit, axis))
      continue;
    item_t other = {{{NULL}, {NULL}}};
    for (int p = 0; p <= r->arg; p++)
      other.part[p] = twg_shuffle(r->e, true, x.part[p], twg_const_i32(r->e, 1 << bit));
    x = combine(r, x, other);
  }
  return x;
}

/* Pointer to partial result 0 of register i of the slice, for one of the parts. */
static MlirValue partial_pointer(const reduction_t *r, const tw_layout_t *slice, int i, int warps, MlirValue base,
                                 int64_t bytes) {
  tw_emitter_t *e = r->e;
  uint32_t own = tw_layout_image(slice, TW_REGISTER, (uint32_t)i);
  MlirValue thread =
      twg_linear_of_thread(e, slice->basis[TW_LANE], slice->bits[TW_LANE], slice->basis[TW_WARP], slice->bits[TW_WARP]);
  MlirValue element = own ? twg_binary(e, "llvm.xor", thread, twg_const_i32(e, own)) : thread;
  return twg_offset_pointer(e, base, twg_binary(e, "llvm.mul", element, twg_const_i32(e, bytes << warps)));
}

/* This warp's number among those of 2^blocks blocks along the axis, where bits of `mask` lie in a warp's number. */
static MlirValue warp_rank(const reduction_t *r, const tw_layout_t *l, uint32_t mask, int blocks) {
  tw_emitter_t *e = r->e;
  uint32_t bits[TW_LAYOUT_MAX_BITS];
  int warps = 0;
  for (int i = 0; i < l->bits[TW_WARP]; i++)
    bits[i] = mask >> i & 1 ? UINT32_C(1) << warps++ : 0;
  MlirValue rank = twg_linear_of_thread(e, NULL, 0, bits, l->bits[TW_WARP]);
  if (blocks == 0)
    return rank;
  MlirValue block = twg_binary(e, "llvm.and", twg_op(e, "nvvm.read.ptx.sreg.ctaid.x", e->i32, 0, NULL, 0, NULL),
                               twg_const_i32(e, (1 << blocks) - 1));
  return twg_binary(e, "llvm.add", rank, twg_binary(e, "llvm.shl", block, twg_const_i32(e, warps)));
}

/* ---- across blocks ---------------------------------------------------------------------------- */

static bool is_across(MlirOperation op) { return tw_has_attr(op, TW_ACROSS); }

static MlirValue across_barrier(tw_emitter_t *e, MlirOperation op) {
  return twg_scratch_at(e, op, tw_across_barrier_offset(op));
}

void twg_tell_blocks(tw_emitter_t *e, MlirOperation kernel) {
  tw_ops_t reduces = tw_ops_in(kernel, is_across, MlirWalkPreOrder);
  e->blocks_start = reduces.count > 0;
  for (int i = 0; i < reduces.count; i++)
    twg_set_up_words(e, across_barrier(e, reduces.at[i]));
  tw_ops_free(&reduces);
  if (!e->blocks_start)
    return;
  twg_show_barriers(e);
  twg_meet_blocks(e, "arrive.relaxed");
}

/* Which threads of a block send what their warp has, and to whom: of lanes with copies of it some take a block each,
 * and so many blocks all that the others do not; no other lane with a copy, or warp, sends it. */
typedef struct {
  MlirValue barrier, first; /* the first of a thread's blocks */
  MlirValue guard;          /* null: all */
  int by_lanes, blocks;     /* log2 */
  int senders;              /* log2 of the threads of a block */
} senders_t;

/* Of a thread's numbers that have none of these bits; `all` so far, or null. */
static MlirValue without_bits(tw_emitter_t *e, MlirValue number, uint32_t bits, MlirValue all) {
  if (bits == 0)
    return all;
  MlirValue none = twg_binary(e, "llvm.and", number, twg_const_i32(e, bits));
  none = twg_icmp(e, TW_EQ, none, twg_const_i32(e, 0));
  return all.ptr ? twg_binary(e, "llvm.and", all, none) : none;
}

/* Each of `warps`, a mask of bits, has results of its own. */
static senders_t find_senders(const reduction_t *r, MlirOperation op, const tw_layout_t *slice, uint32_t warps) {
  tw_emitter_t *e = r->e;
  senders_t s = {.barrier = across_barrier(e, op), .blocks = tw_across_bits(op)};
  uint32_t taken[TW_LAYOUT_MAX_BITS] = {0}, idle_lanes = 0, idle_warps = 0;
  for (int i = 0; i < slice->bits[TW_LANE]; i++)
    if (slice->basis[TW_LANE][i] != 0)
      s.senders++;
    else if (s.by_lanes < s.blocks) {
      taken[i] = UINT32_C(1) << s.by_lanes++;
      s.senders++;
    } else {
      idle_lanes |= UINT32_C(1) << i;
    }
  for (int i = 0; i < slice->bits[TW_WARP]; i++)
    if (slice->basis[TW_WARP][i] != 0 || (warps >> i & 1) != 0)
      s.senders++;
    else
      idle_warps |= UINT32_C(1) << i;
  s.first = twg_linear_of_thread(e, taken, slice->bits[TW_LANE], NULL, 0);
  s.guard = without_bits(e, e->lane, idle_lanes, s.guard);
  s.guard = without_bits(e, e->warp, idle_warps, s.guard);
  return s;
}

/* Bytes that each block is sent, where a thread has so many words of these bytes. */
static int64_t bytes_sent(const senders_t *s, int64_t bytes) { return bytes << (s->senders + s->blocks - s->by_lanes); }

/* What this warp has, to the same place in each of the blocks. */
static void send(const reduction_t *r, const senders_t *s, MlirValue x, MlirValue pointer) {
  tw_emitter_t *e = r->e;
  int bits = (int)tw_part_bytes(mlirValueGetType(x)) * 8;
  MlirValue word = twg_bitcast(e, x, bits == 64 ? e->i64 : e->i32);
  for (int i = 0; i < 1 << (s->blocks - s->by_lanes); i++) {
    MlirValue block = twg_binary(e, "llvm.add", s->first, twg_const_i32(e, i << s->by_lanes));
    twg_send_word(e, word, pointer, block, s->barrier, s->guard);
  }
}

/* ---- warps ------------------------------------------------------------------------------------ */

/* Of 2^bits results that lie side by side. A tree, so that few wait for each other. */
static item_t combine_parts(const reduction_t *r, const MlirType types[MAX_PARTS], MlirValue *const pointer,
                            const int64_t *bytes, int first, int bits) {
  item_t x = {{{NULL}, {NULL}}};
  if (bits > 0) {
    item_t low = combine_parts(r, types, pointer, bytes, first, bits - 1);
    return combine(r, low, combine_parts(r, types, pointer, bytes, first + (1 << (bits - 1)), bits - 1));
  }
  for (int p = 0; p <= r->arg; p++)
    x.part[p] =
        twg_load_part(r->e, types[p],
                      first ? twg_offset_pointer(r->e, pointer[p], twg_const_i32(r->e, first * bytes[p])) : pointer[p]);
  return x;
}

/* Every warp leaves its items in shared memory, of all blocks that reduce together, and combines those of all. */
static void reduce_warps(const reduction_t *r, MlirOperation op, const tw_layout_t *l, const tw_layout_t *slice,
                         int axis, item_t *items, int count) {
  tw_emitter_t *e = r->e;
  int warps, blocks = tw_across_bits(op);
  uint32_t mask = tw_layout_warps_along(l, axis, &warps);
  int64_t results = INT64_C(1) << tw_layout_size_bits(slice), bytes[MAX_PARTS] = {tw_part_bytes(r->held), 4};
  int bits = warps + blocks;
  MlirType types[MAX_PARTS] = {r->held, e->i32};
  MlirValue base[MAX_PARTS];
  base[0] = twg_scratch_at(e, op, 0);
  base[1] = twg_scratch_at(e, op, tw_reduce_index_offset(results << bits, bytes[0]));
  MlirValue rank = warp_rank(r, l, mask, blocks);
  senders_t senders = {.blocks = 0};
  if (blocks > 0) {
    if (e->blocks_start) /* until all blocks have started */
      twg_meet_blocks(e, "wait");
    e->blocks_start = false;
    senders = find_senders(r, op, slice, mask);
    twg_expect_words(e, senders.barrier, bytes_sent(&senders, count * (bytes[0] + (r->arg ? bytes[1] : 0))));
  }
  for (int i = 0; i < count; i++)
    for (int p = 0; p <= r->arg; p++) {
      MlirValue pointer = partial_pointer(r, slice, i, bits, base[p], bytes[p]);
      pointer = twg_offset_pointer(e, pointer, twg_binary(e, "llvm.mul", rank, twg_const_i32(e, bytes[p])));
      if (blocks > 0)
        send(r, &senders, items[i].part[p], pointer);
      else
        twg_store_part(e, items[i].part[p], pointer);
    }
  if (blocks > 0)
    twg_wait_for_words(e, senders.barrier);
  else
    twg_barrier(e);
  for (int i = 0; i < count; i++) {
    MlirValue pointer[MAX_PARTS];
    for (int p = 0; p <= r->arg; p++)
      pointer[p] = partial_pointer(r, slice, i, bits, base[p], bytes[p]);
    items[i] = combine_parts(r, types, pointer, bytes, 0, bits);
  }
}

/* ---- the first of the best ----------------------------------------------------------------------- */

/* The registers of a thread along an axis. */
typedef struct {
  int bits[TW_LAYOUT_MAX_BITS], num; /* by their place along the axis */
  const tw_layout_t *layout;
  int axis;
} axis_registers_t;

static uint32_t place_of(const axis_registers_t *row, uint32_t image) {
  return (image & tw_layout_dim_mask(row->layout, row->axis)) >> tw_layout_dim_shift(row->layout, row->axis);
}

/* Whether registers count up along the axis, whatever the thread: each bit of a place is of one bit of a register, a
 * lane or a warp. */
static bool find_row(const tw_layout_t *l, int axis, axis_registers_t *out) {
  static const tw_input_t inputs[] = {TW_REGISTER, TW_LANE, TW_WARP};
  uint32_t seen = 0;
  *out = (axis_registers_t){.layout = l, .axis = axis};
  for (int i = 0; i < 3; i++)
    for (int bit = 0; bit < l->bits[inputs[i]]; bit++) {
      uint32_t place = place_of(out, l->basis[inputs[i]][bit]);
      if ((place & (place - 1)) != 0 || (place & seen) != 0)
        return false;
      seen |= place;
      if (place == 0 || inputs[i] != TW_REGISTER)
        continue;
      int at = out->num++;
      for (; at > 0 && place_of(out, l->basis[TW_REGISTER][out->bits[at - 1]]) > place; at--)
        out->bits[at] = out->bits[at - 1];
      out->bits[at] = bit;
    }
  return true;
}

/* Register `number` of those along the axis, from the one where all are 0. */
static int register_of(const axis_registers_t *row, int from, int number) {
  for (int b = 0; b < row->num; b++)
    from |= (number >> b & 1) << row->bits[b];
  return from;
}

static MlirValue is_best(const reduction_t *r, MlirValue x, MlirValue best) {
  if (!mlirTypeIsAFloat(r->element))
    return twg_icmp(r->e, TW_EQ, x, best);
  MlirValue equal = twg_fcmp(r->e, TW_OEQ, x, best);
  return r->ignore_nan ? equal : twg_binary(r->e, "llvm.or", equal, twg_fcmp(r->e, TW_UNO, x, x));
}

/* The place of the first element that is `best`, from the last on; the first place where none is: of NaN alone. */
static MlirValue first_place(const reduction_t *r, const axis_registers_t *row, const MlirValue *held, int from,
                             MlirValue best) {
  MlirValue place = twg_const_i32(r->e, 0);
  for (int number = (1 << row->num) - 1; number >= 0; number--) {
    int i = register_of(row, from, number);
    uint32_t own = place_of(row, tw_layout_image(row->layout, TW_REGISTER, (uint32_t)i));
    place = twg_select(r->e, is_best(r, held[i], best), twg_const_i32(r->e, (int64_t)own), place);
  }
  return twg_binary(r->e, "llvm.xor", twg_register_coord(r->e, row->layout, row->axis, from), place);
}

/* Key and index of the best of each row of registers: what combining keys one by one would leave. */
static void search_registers(const reduction_t *r, MlirOperation op, const axis_registers_t *row, item_t *items,
                             tw_values_t in) {
  reduction_t plain = *r;
  MlirValue *held = tw_allocate((size_t)in.count, sizeof *held);
  plain.arg = false;
  plain.kind = r->kind == TW_REDUCE_ARGMIN ? TW_REDUCE_MIN : TW_REDUCE_MAX;
  plain.held = held_type(r->e, plain.kind, r->element);
  for (int i = 0; i < in.count; i++)
    items[i].part[0] = held[i] = hold(&plain, in.at[i]);
  reduce_registers(&plain, op, row->layout, items, in.count);
  for (int i = 0; i < in.count; i++)
    if (i == (i & ~register_of(row, 0, (1 << row->num) - 1))) {
      items[i].part[1] = first_place(r, row, held, i, items[i].part[0]);
      items[i].part[0] = key_of(r, items[i].part[0]);
    }
  free(held);
}

/* ---- rule -------------------------------------------------------------------------------------- */

static item_t *held_items(const reduction_t *r, const tw_layout_t *l, int axis, tw_values_t in) {
  item_t *items = tw_allocate((size_t)in.count, sizeof *items);
  for (int i = 0; i < in.count; i++) {
    items[i].part[0] = key_of(r, hold(r, in.at[i]));
    if (r->arg)
      items[i].part[1] = twg_register_coord(r->e, l, axis, i);
  }
  return items;
}

/* What a thread has of each row, combined, where no bit of a register along the axis is set. */
static item_t *items_of_registers(const reduction_t *r, MlirOperation op, const tw_layout_t *l, int axis,
                                  tw_values_t in) {
  axis_registers_t row;
  if (r->arg && !tw_has_attr(op, TW_IN_ORDER) && find_row(l, axis, &row)) { /* which holds all elements at once */
    item_t *found = tw_allocate((size_t)in.count, sizeof *found);
    search_registers(r, op, &row, found, in);
    return found;
  }
  item_t *items = held_items(r, l, axis, in);
  reduce_registers(r, op, l, items, in.count);
  return items;
}

/* Moves the items that are valid after reduce_registers to the front: those of the slice. */
static int keep_slice(const tw_layout_t *l, int axis, item_t *items, int count) {
  int kept = 0;
  for (int i = 0; i < count; i++) {
    bool first = true;
    for (int bit = 0; bit < l->bits[TW_REGISTER]; bit++)
      if ((i >> bit & 1) && (along(l, TW_REGISTER, bit, axis) || l->basis[TW_REGISTER][bit] == 0))
        first = false;
    if (first)
      items[kept++] = items[i];
  }
  return kept;
}

static bool rule_reduce(tw_emitter_t *e, MlirOperation op) {
  MlirType type = mlirValueGetType(mlirOperationGetOperand(op, 0));
  int axis = (int)tw_attr_int(op, "axis", 0), warps;
  reduction_t r = {.e = e, .element = tw_element(type)};
  r.kind = (tw_reduce_kind_t)tw_attr_int(op, "kind", 0);
  r.arg = tw_reduces_to_index(r.kind);
  r.ignore_nan = tw_has_attr(op, "ignore_nan");
  r.is_unsigned = tw_has_attr(op, "is_unsigned") || tw_is_bool(r.element);
  r.held = held_type(e, r.kind, r.element);
  tw_layout_t l;
  if (!tw_layout_of_type(type, &l)) {
    tw_op_error(op, "needs a tile with a layout");
    return false;
  }
  if (tw_across_bits(op) > 0 && !mlirOperationIsNull(tw_enclosing_loop(op))) {
    tw_op_error(op, "goes across blocks in a loop, where these may be an iteration apart");
    return false;
  }
  tw_values_t in = twg_operand(e, op, 0);
  item_t *items = items_of_registers(&r, op, &l, axis, in);
  int count = keep_slice(&l, axis, items, in.count);
  tw_layout_t slice = tw_layout_slice(&l, axis, false);
  for (int i = 0; i < count; i++)
    items[i] = reduce_lanes(&r, &l, axis, items[i]);
  if (tw_layout_warps_along(&l, axis, &warps) != 0 || tw_across_bits(op) > 0)
    reduce_warps(&r, op, &l, &slice, axis, items, count);
  tw_values_t out = twg_new_values(e, count);
  for (int i = 0; i < count; i++)
    out.at[i] = release(&r, items[i]);
  free(items);
  return twg_set_slice(e, op, 0, &slice, out);
}

TWG_RULE(TW_TILE_REDUCE, rule_reduce)

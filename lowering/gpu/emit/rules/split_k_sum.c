/* split_k_sum.c - rule: tile.sum_parts
 *
 * Each thread leaves its registers in the workspace, 16 bytes beside those of its neighbours, so that no layout
 * matters: of part p of slot s from byte (s * parts + p) * (bytes of a part) on. The block counts itself, and the last
 * one reads what the same threads of all blocks left, its own too: the sum is made in one order, whoever comes last.
 *
 *   sums, last = values, true if parts <= 1; else:
 *     store values ; barrier
 *     old = atomic increment of the slot's counter, to zero at parts     (thread 0, release and acquire)
 *     last = barrier: old == parts - 1 in any thread
 *     for p = 0 to parts, step 2:                                        (if last; for 8 accesses at a time)
 *       x, y = values of parts p and p + 1 ; sums += x ; sums += y, or 0 where there is no such part */
#include "base/memory.h"
#include "lowering/gpu/emit/rules.h"
#include "lowering/launch_record.h"
#include "tilewright/machine.h"

#include <stdlib.h>

enum { VECTOR_BYTES = 16, PIECES_AT_ONCE = 8, COUNTER_BYTES = 4, WARP = TW_WARP_LANES };

/* `count` registers from `first` on that one access moves. */
typedef struct {
  MlirType element;
  int first, count, bytes;
} piece_t;

typedef struct {
  tw_emitter_t *e;
  piece_t *pieces; /* owned */
  MlirType *types; /* owned: of all registers */
  int num_pieces, num_registers;
  int64_t part_bytes;
} sum_t;

static MlirValue zero(tw_emitter_t *e, MlirType type) {
  return mlirTypeIsAFloat(type) ? twg_const_float(e, type, 0) : twg_const_int(e, type, 0);
}

static int64_t threads(const sum_t *s) { return (int64_t)WARP * s->e->num_warps; }

/* All registers of the values, cut into pieces. */
static void plan(sum_t *s, MlirOperation op, intptr_t num) {
  int total = 0;
  for (intptr_t i = 0; i < num; i++)
    total += twg_operand(s->e, op, i).count;
  s->pieces = tw_allocate((size_t)total + 1, sizeof *s->pieces);
  s->types = tw_allocate((size_t)total + 1, sizeof *s->types);
  for (intptr_t i = 0; i < num; i++) {
    MlirType element = twg_register_type(s->e, tw_operand_element(op, i));
    int count = twg_operand(s->e, op, i).count, bytes = (int)tw_bits(element) / 8;
    int step = count < VECTOR_BYTES / bytes ? count : VECTOR_BYTES / bytes;
    for (int r = 0; r < count; r += step) {
      s->pieces[s->num_pieces++] = (piece_t){element, s->num_registers + r, step, step * bytes};
      s->part_bytes += threads(s) * step * bytes;
    }
    for (int r = 0; r < count; r++)
      s->types[s->num_registers++] = element;
  }
}

/* Where the thread's piece `i` of the part at `base` lies; `offset` counts up the pieces before. */
static MlirValue place(const sum_t *s, MlirValue base, const piece_t *piece, int64_t *offset) {
  tw_emitter_t *e = s->e;
  MlirValue own = twg_binary(e, "llvm.mul", e->thread, twg_const_i32(e, piece->bytes));
  MlirValue at = twg_offset_pointer(e, twg_offset_pointer(e, base, own), twg_const_i32(e, *offset));
  *offset += threads(s) * piece->bytes;
  return at;
}

static void store_part(const sum_t *s, MlirValue base, const MlirValue *registers) {
  int64_t offset = 0;
  for (int i = 0; i < s->num_pieces; i++) {
    const piece_t *piece = &s->pieces[i];
    MlirValue x = registers[piece->first];
    if (piece->count > 1)
      x = twg_pack(s->e, piece->element, piece->count, registers + piece->first);
    twg_store_to(s->e, x, place(s, base, piece, &offset), piece->bytes);
  }
}

/* Pointer to the tiles of a part. */
static MlirValue part_pointer(const sum_t *s, MlirValue workspace, MlirValue number) {
  tw_emitter_t *e = s->e;
  MlirValue wide = twg_cast(e, "llvm.zext", e->i64, number);
  return twg_offset_pointer(e, workspace, twg_binary(e, "llvm.mul", wide, twg_const_int(e, e->i64, s->part_bytes)));
}

/* Counts the block, and tells whether it is the last of its tile. One access speaks for all threads, because
 * barriers stand around it: it releases what they wrote, and acquires what they will read. */
static MlirValue arrive(const sum_t *s, MlirValue workspace, MlirValue slot, MlirValue parts) {
  tw_emitter_t *e = s->e;
  MlirBlock count = twg_new_block(e, 0, NULL), meet = twg_new_block(e, 1, &e->i1);
  MlirValue no = twg_const_int(e, e->i1, 0), most = twg_binary(e, "llvm.sub", parts, twg_const_i32(e, 1));
  twg_barrier(e);
  twg_branch_if(e, twg_icmp(e, TW_EQ, e->thread, twg_const_i32(e, 0)), count, 0, NULL, meet, 1, &no);
  e->block = count;
  MlirValue down =
      twg_binary(e, "llvm.mul", twg_cast(e, "llvm.zext", e->i64, slot), twg_const_int(e, e->i64, -COUNTER_BYTES));
  MlirValue first = twg_offset_pointer(e, workspace, twg_const_int(e, e->i64, -COUNTER_BYTES));
  MlirValue operands[] = {twg_offset_pointer(e, first, down), most};
  MlirValue old = twg_asm(e, "atom.acq_rel.gpu.global.inc.u32 $0, [$1], $2;", "=r,l,r,~{memory}", e->i32, 2, operands,
                          TW_PTX_EFFECT);
  MlirValue is_last = twg_icmp(e, TW_EQ, old, most);
  twg_branch(e, meet, 1, &is_last);
  e->block = meet;
  return twg_barrier_any(e, mlirBlockGetArgument(meet, 0));
}

/* Adds to the sums of `count` pieces those of part `part` and, where `second` holds, of the next one. All loads are
 * issued before the first addition: that hides the latency of the L2 cache. */
static void add_two_parts(const sum_t *s, int at, int count, const int64_t *offsets, const MlirValue bases[2],
                          MlirValue second, MlirValue *sums) {
  tw_emitter_t *e = s->e;
  MlirValue loaded[2][PIECES_AT_ONCE];
  for (int part = 0; part < 2; part++)
    for (int i = 0; i < count; i++) {
      const piece_t *piece = &s->pieces[at + i];
      int64_t offset = offsets[i];
      MlirType type = piece->count > 1 ? twg_vector_type(piece->element, piece->count) : piece->element;
      loaded[part][i] = twg_load_from(e, type, place(s, bases[part], piece, &offset), piece->bytes);
    }
  for (int part = 0; part < 2; part++)
    for (int i = 0, n = 0; i < count; i++) {
      const piece_t *piece = &s->pieces[at + i];
      for (int r = 0; r < piece->count; r++, n++) {
        MlirValue x = piece->count > 1 ? twg_unpack(e, loaded[part][i], r, piece->element) : loaded[part][i];
        if (part == 1)
          x = twg_select(e, second, x, zero(e, piece->element));
        sums[n] = twg_binary(e, mlirTypeIsAFloat(piece->element) ? "llvm.fadd" : "llvm.add", sums[n], x);
      }
    }
}

/* The sums of `count` pieces, in a loop over the parts, two at a time. */
static void sum_pieces(const sum_t *s, int at, int count, const int64_t *offsets, MlirValue workspace, MlirValue first,
                       MlirValue parts, MlirValue *sums) {
  tw_emitter_t *e = s->e;
  MlirType types[PIECES_AT_ONCE * VECTOR_BYTES + 1];
  MlirValue values[PIECES_AT_ONCE * VECTOR_BYTES + 1], one = twg_const_i32(e, 1);
  int n = 0;
  for (int i = at; i < at + count; i++)
    for (int r = 0; r < s->pieces[i].count; r++, n++) {
      types[n] = s->pieces[i].element;
      values[n] = zero(e, types[n]);
    }
  types[n] = e->i32;
  values[n] = twg_const_i32(e, 0);
  MlirBlock loop = twg_new_block(e, n + 1, types), done = twg_new_block(e, 0, NULL);
  twg_branch(e, loop, n + 1, values);
  e->block = loop;
  for (int r = 0; r <= n; r++)
    values[r] = mlirBlockGetArgument(loop, r);
  MlirValue part = twg_binary(e, "llvm.add", first, values[n]), next = twg_binary(e, "llvm.add", values[n], one);
  MlirValue second = twg_icmp(e, TW_SLT, next, parts);
  MlirValue other = twg_select(e, second, twg_binary(e, "llvm.add", part, one), part);
  MlirValue bases[] = {part_pointer(s, workspace, part), part_pointer(s, workspace, other)};
  add_two_parts(s, at, count, offsets, bases, second, values);
  values[n] = twg_binary(e, "llvm.add", next, one);
  twg_branch_if(e, twg_icmp(e, TW_SLT, values[n], parts), loop, n + 1, values, done, 0, NULL);
  e->block = done;
  for (int r = 0; r < n; r++)
    sums[r] = values[r];
}

/* From zero, in the order of the parts; goes on at `after` with the sums, then true. */
static void sum_up(const sum_t *s, MlirValue workspace, MlirValue first, MlirValue parts, MlirBlock after) {
  int64_t offsets[PIECES_AT_ONCE], offset = 0;
  MlirValue *values = tw_allocate((size_t)s->num_registers + 1, sizeof *values);
  for (int at = 0, count; at < s->num_pieces; at += count) {
    for (count = 0; count < PIECES_AT_ONCE && at + count < s->num_pieces; count++) {
      offsets[count] = offset;
      offset += threads(s) * s->pieces[at + count].bytes;
    }
    sum_pieces(s, at, count, offsets, workspace, first, parts, &values[s->pieces[at].first]);
  }
  values[s->num_registers] = twg_const_int(s->e, s->e->i1, 1);
  twg_branch(s->e, after, s->num_registers + 1, values);
  free(values);
}

/* The registers of all values, then whether this block goes on with them. */
static MlirValue *gather(const sum_t *s, MlirOperation op, intptr_t num, bool last) {
  MlirValue *out = tw_allocate((size_t)s->num_registers + 1, sizeof *out);
  int n = 0;
  for (intptr_t i = 0; i < num; i++) {
    tw_values_t x = twg_operand(s->e, op, i);
    for (int r = 0; r < x.count; r++)
      out[n++] = x.at[r];
  }
  out[n] = twg_const_int(s->e, s->e->i1, last);
  return out;
}

static MlirBlock block_after(const sum_t *s) {
  MlirBlock after = twg_new_block(s->e, s->num_registers, s->types);
  mlirBlockAddArgument(after, s->e->i1, s->e->location);
  return after;
}

static void set_results(const sum_t *s, MlirOperation op, intptr_t num, MlirBlock after) {
  int n = 0;
  for (intptr_t i = 0; i < num; i++) {
    tw_values_t out = twg_new_values(s->e, twg_operand(s->e, op, i).count);
    for (int r = 0; r < out.count; r++)
      out.at[r] = mlirBlockGetArgument(after, n++);
    twg_set_result(s->e, op, i, out);
  }
  twg_set_scalar(s->e, op, num, mlirBlockGetArgument(after, n));
}

static bool rule_sum_parts(tw_emitter_t *e, MlirOperation op) {
  intptr_t num = mlirOperationGetNumResults(op) - 1;
  sum_t s = {.e = e};
  plan(&s, op, num);
  MlirValue part = twg_operand(e, op, num).at[0], parts = twg_operand(e, op, num + 1).at[0];
  MlirValue word = twg_operand(e, op, num + 2).at[0], slot = twg_operand(e, op, num + 3).at[0];
  MlirValue *own = gather(&s, op, num, true), *unread = gather(&s, op, num, false);
  MlirBlock shared = twg_new_block(e, 0, NULL), sum = twg_new_block(e, 0, NULL), after = block_after(&s);
  twg_branch_if(e, twg_icmp(e, TW_SGT, parts, twg_const_i32(e, 1)), shared, 0, NULL, after, s.num_registers + 1, own);
  e->block = shared;
  MlirValue workspace = twg_cast(e, "llvm.inttoptr", e->global, word);
  MlirValue first = twg_binary(e, "llvm.mul", slot, parts);
  store_part(&s, part_pointer(&s, workspace, twg_binary(e, "llvm.add", first, part)), own);
  MlirValue last = arrive(&s, workspace, slot, parts);
  twg_branch_if(e, last, sum, 0, NULL, after, s.num_registers + 1, unread);
  e->block = sum;
  sum_up(&s, workspace, first, parts, after);
  e->block = after;
  set_results(&s, op, num, after);
  tw_split_t split;
  if (tw_launch_get_split(e->kernel, &split)) { /* with the padding of what threads leave */
    split.part_bytes = s.part_bytes;
    tw_launch_set_split(e->kernel, &split);
  }
  free(own);
  free(unread);
  free(s.pieces);
  free(s.types);
  return true;
}

TWG_RULE(TW_TILE_SUM_PARTS, rule_sum_parts)

/* cp_async.c - rule: copies to shared memory by threads
 *
 * An async_copy gives each thread pieces of up to 16 bytes, side by side in the buffer, and finds
 * where they come from by the buffer's layout: the swizzle is in the source address. */
#include "lowering/gpu/isa/async_copies.h"

#include "dialect/layouts.h"
#include "lowering/gpu/emit/address.h"
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/emit/shared_access.h"
#include "lowering/gpu/emit/words.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/isa/convert_float.h"
#include "lowering/gpu/isa/matrix_access.h"
#include "tilewright/dialect.h"
#include "tilewright/machine.h"

#include <stdio.h>

enum { MAX_PIECE_BYTES = 16, MIN_COPY_BYTES = 4, LANE_BITS = TW_WARP_LANE_BITS };

typedef struct {
  tw_layout_t layout; /* which elements each thread copies: a register each */
  int vector_bits;    /* log2 of the elements of one piece, in the lowest registers */
  int cut_dim;        /* the dimension along which the array may end within a piece; -1: none */
  int thread_bits;    /* how many bits of the thread's number select a piece */
} copy_share_t;

/* Neighbours in the buffer that are neighbours in the array too, at most `max` (log2). */
static int common_run(const tw_layout_t *shared, int dim, int max) {
  int run = 0;
  while (dim >= 0 && run < max && run < shared->log_shape[dim] && run < shared->bits[TW_OFFSET] &&
         shared->basis[TW_OFFSET][run] == UINT32_C(1) << (tw_layout_dim_shift(shared, dim) + run))
    run++;
  return run;
}

static bool rounds(MlirOperation op, MlirType buffer) {
  intptr_t first;
  return tw_rounds_to_tf32(mlirValueGetType(tw_access_array(op, &first)), tw_buffer_type_element(buffer));
}

/* Pieces go round the threads in the order of the buffer. */
static copy_share_t share_out(MlirOperation op, MlirType type, const tw_layout_t *shared, int num_warps) {
  copy_share_t s = {.layout = *shared, .cut_dim = -1};
  int contiguous = tw_access_contiguous_dim(op, shared->rank), uncut = tw_access_vector_bits(op, shared->rank);
  int warp_bits = tw_log2(num_warps), at = 0, n = shared->bits[TW_OFFSET];
  s.layout.bits[TW_OFFSET] = 0;
  if (rounds(op, type)) /* an element each */
    uncut = contiguous = -1;
  int run = common_run(shared, contiguous, tw_access_inner_vector_bits(op, shared->rank));
  bool cut = run > uncut && (tw_memory_bits(tw_buffer_type_element(type)) << run) >= 8 * MIN_COPY_BYTES;
  s.vector_bits = cut || run < uncut ? run : uncut;
  if (cut)
    s.cut_dim = contiguous;
  for (; at < s.vector_bits; at++)
    tw_layout_push(&s.layout, TW_REGISTER, shared->basis[TW_OFFSET][at]);
  for (int i = 0; i < LANE_BITS + warp_bits; i++) {
    bool left = at < n;
    s.thread_bits += left;
    tw_layout_push(&s.layout, i < LANE_BITS ? TW_LANE : TW_WARP, left ? shared->basis[TW_OFFSET][at++] : 0);
  }
  for (; at < n; at++)
    tw_layout_push(&s.layout, TW_REGISTER, shared->basis[TW_OFFSET][at]);
  return s;
}

static bool same_bits(const tw_layout_t *x, const tw_layout_t *y, tw_input_t input) {
  bool same = x->bits[input] == y->bits[input];
  for (int i = 0; same && i < x->bits[input]; i++)
    same = x->basis[input][i] == y->basis[input][i];
  return same;
}

/* Whether each register of x is one of y. */
static bool are_among(const tw_layout_t *x, const tw_layout_t *y) {
  for (int i = 0; i < x->bits[TW_REGISTER]; i++) {
    bool found = false;
    for (int j = 0; j < y->bits[TW_REGISTER]; j++)
      found = found || x->basis[TW_REGISTER][i] == y->basis[TW_REGISTER][j];
    if (!found)
      return false;
  }
  return true;
}

bool twg_reads_own_pieces(MlirOperation copy, const tw_layout_t *tile, int num_warps) {
  MlirType type = mlirValueGetType(tw_copy_buffer(copy));
  tw_layout_t shared;
  tw_ldmatrix_t matrices; /* which give a thread what another one has read */
  if (!tw_layout_of_type(type, &shared) ||
      tw_ldmatrix_match(tile, &shared, tw_memory_bits(tw_buffer_type_element(type)) / 8, &matrices))
    return false;
  copy_share_t share = share_out(copy, type, &shared, num_warps);
  return same_bits(&share.layout, tile, TW_LANE) && same_bits(&share.layout, tile, TW_WARP) &&
         are_among(tile, &share.layout);
}

void twg_copy_piece(tw_emitter_t *e, MlirValue to, MlirValue from, int64_t offset, int bytes, MlirValue guard) {
  char text[128];
  snprintf(text, sizeof text, "cp.async.%s.shared.global [$0], [$1 + %lld], %d, $2;",
           bytes == MAX_PIECE_BYTES ? "cg" : "ca", (long long)offset, bytes);
  MlirValue operands[] = {to, from, twg_binary(e, "llvm.xor", guard, twg_const_int(e, e->i1, 1))};
  twg_asm(e, text, "r,l,b", (MlirType){NULL}, 3, operands, TW_PTX_FENCE);
}

/* The bytes of the piece at register r that lie inside of the array along share->cut_dim. */
static MlirValue bytes_inside(tw_emitter_t *e, const copy_share_t *share, const tw_placed_t *place, int r, int bytes) {
  int d = share->cut_dim, count = 1 << share->vector_bits;
  MlirValue at =
      twg_const_i32(e, tw_layout_coord(&share->layout, tw_layout_image(&share->layout, TW_REGISTER, (uint32_t)r), d));
  if (!place->disjoint[d])
    at = twg_register_coord(e, &place->layout, d, r);
  MlirValue left = twg_left_behind(e, place, d, at, count);
  left = twg_binary(e, "llvm.intr.smax", left, twg_const_i32(e, 0));
  return twg_binary(e, "llvm.mul", left, twg_const_i32(e, bytes / count));
}

/* Copies the first `inside` bytes of a piece, none of it where `guard` does not hold, and zeros for the rest. */
static void copy_cut(tw_emitter_t *e, MlirValue to, MlirValue from, int64_t offset, int bytes, MlirValue inside,
                     MlirValue guard) {
  char text[128];
  snprintf(text, sizeof text, "cp.async.%s.shared.global [$0], [$1 + %lld], %d, $2;",
           bytes == MAX_PIECE_BYTES ? "cg" : "ca", (long long)offset, bytes);
  MlirValue operands[] = {to, from, twg_select(e, guard, inside, twg_const_i32(e, 0))};
  twg_asm(e, text, "r,l,r", (MlirType){NULL}, 3, operands, TW_PTX_FENCE);
}

/* Where the guard does not hold the thread stores padding in place of the piece. */
static void copy_or_pad(tw_emitter_t *e, MlirValue to, MlirValue from, int64_t offset, int bytes, MlirValue guard,
                        const uint32_t padding[2]) {
  static const char *const stores[] = {"@$2 st.shared.b32 [$1 + 0], $0;", "@$3 st.shared.v2.b32 [$2 + 0], {$0, $1};",
                                       "@$5 st.shared.v4.b32 [$4 + 0], {$0, $1, $2, $3};"};
  static const char *const constraints[] = {"r,r,b", "r,r,r,b", "r,r,r,r,r,b"};
  char text[128];
  snprintf(text, sizeof text, "@$2 cp.async.%s.shared.global [$0], [$1 + %lld], %d;",
           bytes == MAX_PIECE_BYTES ? "cg" : "ca", (long long)offset, bytes);
  MlirValue copied[] = {to, from, guard}, stored[6];
  twg_asm(e, text, "r,l,b", (MlirType){NULL}, 3, copied, TW_PTX_FENCE);
  int form = tw_log2(bytes / 4), n = 0;
  for (; n < bytes / 4; n++)
    stored[n] = twg_const_i32(e, padding[n & 1]);
  stored[n++] = to;
  stored[n++] = twg_binary(e, "llvm.xor", guard, twg_const_int(e, e->i1, 1));
  twg_asm(e, stores[form], constraints[form], (MlirType){NULL}, n, stored, TW_PTX_STORES);
}

/* A piece too small for cp.async goes through a register. */
static void copy_small(tw_emitter_t *e, MlirValue to, MlirValue from, int64_t offset, int bytes, MlirValue guard) {
  char text[160];
  snprintf(text, sizeof text, "mov.b16 $0, 0; @$2 ld.global.b%d $0, [$1 + %lld];", 8 * bytes, (long long)offset);
  MlirValue operands[] = {from, guard};
  MlirValue word = twg_asm(e, text, "=&h,l,b", e->i16, 2, operands, TW_PTX_EFFECT);
  if (bytes == 1)
    word = twg_cast(e, "llvm.trunc", e->i8, word);
  twg_store_to(e, word, to, bytes);
}

/* An element that is rounded on the way. */
static void copy_rounded(tw_emitter_t *e, MlirValue to, MlirValue from, int64_t offset, MlirValue guard) {
  char text[128];
  snprintf(text, sizeof text, "mov.b32 $0, 0; @$2 ld.global.b32 $0, [$1 + %lld];", (long long)offset);
  MlirValue operands[] = {from, guard};
  MlirValue loaded = twg_bitcast(e, twg_asm(e, text, "=&r,l,b", e->i32, 2, operands, TW_PTX_EFFECT), e->f32);
  MlirValue rounded = twg_convert_float(e, loaded, e->f32, mlirTF32TypeGet(e->context));
  twg_store_to(e, twg_bitcast(e, rounded, e->i32), to, sizeof(float));
}

/* A dimension along which the pieces of a thread differ; -1 if there is none. */
static int varying_dim(const copy_share_t *share) {
  for (int d = 0; d < share->layout.rank; d++)
    for (int b = share->vector_bits; b < share->layout.bits[TW_REGISTER]; b++)
      if (tw_layout_coord(&share->layout, share->layout.basis[TW_REGISTER][b], d))
        return d;
  return -1;
}

/* Folds what all pieces of a thread have in common (being enabled, the other dimensions' bounds)
 * into the bound of one dimension, so that a piece costs one comparison. Returns what is left to
 * check for each piece: `enabled`, or null. */
static MlirValue fold_guards(tw_emitter_t *e, const copy_share_t *share, MlirValue enabled, tw_placed_t *place) {
  int varying = varying_dim(share);
  if (varying < 0 || place->inside)
    return enabled;
  MlirValue common = enabled, zero = twg_const_i32(e, 0);
  for (int d = 0; d < share->layout.rank; d++) {
    bool fixed = d != varying;
    for (int b = share->vector_bits; b < share->layout.bits[TW_REGISTER]; b++)
      fixed = fixed && tw_layout_coord(&share->layout, share->layout.basis[TW_REGISTER][b], d) == 0;
    if (!fixed)
      continue;
    MlirValue inside = twg_is_inside(e, place, d, zero);
    common = common.ptr ? twg_binary(e, "llvm.and", common, inside) : inside;
    place->guard[d] = twg_const_int(e, e->i1, 1);
    place->guard_at[d] = 0;
  }
  if (common.ptr)
    twg_put_inside_only_if(e, place, varying, common);
  return (MlirValue){NULL};
}

static bool rule_async_copy(tw_emitter_t *e, MlirOperation op) {
  intptr_t at = tw_copy_buffer_operand(op);
  MlirType type = mlirValueGetType(mlirOperationGetOperand(op, at)), element = tw_buffer_type_element(type);
  tw_layout_t shared;
  tw_placed_t place;
  if (!tw_layout_of_type(type, &shared))
    return false;
  copy_share_t share = share_out(op, type, &shared, e->num_warps);
  int piece = (1 << share.vector_bits) * tw_memory_bits(element) / 8;
  MlirValue enabled = {NULL}, to = twg_stage_pointer(e, op, at);
  if (mlirOperationGetNumOperands(op) > at + 2)
    enabled = twg_operand(e, op, at + 2).at[0];
  MlirValue own = twg_binary(e, "llvm.and", e->thread, twg_const_i32(e, (1 << share.thread_bits) - 1));
  to = twg_offset_pointer(e, to, twg_binary(e, "llvm.mul", own, twg_const_i32(e, piece)));
  twg_place(e, op, element, &share.layout, &place);
  if (piece < MIN_COPY_BYTES)
    twg_step_along_rows(e, &place);
  enabled = fold_guards(e, &share, enabled, &place);
  uint32_t padding[2];
  twg_padding_words(element, tw_attr_int(op, TW_COPY_PADDING, 0), padding);
  int pieces = tw_layout_count(&share.layout, TW_REGISTER) >> share.vector_bits;
  for (int i = 0; i < pieces; i++) {
    int64_t offset, r = (int64_t)i << share.vector_bits;
    MlirValue from = twg_access_pointer(e, &place, (int)r, &offset);
    MlirValue guard = twg_access_guard(e, &place, (int)r);
    if (enabled.ptr)
      guard = twg_binary(e, "llvm.and", guard, enabled);
    MlirValue here = twg_add_bytes(e, to, ((int64_t)i * piece) << share.thread_bits);
    if (rounds(op, type))
      copy_rounded(e, here, from, offset, guard);
    else if (share.cut_dim >= 0)
      copy_cut(e, here, from, offset, piece, bytes_inside(e, &share, &place, (int)r, piece), guard);
    else if (piece < MIN_COPY_BYTES)
      copy_small(e, here, from, offset, piece, guard);
    else if (padding[0] | padding[1])
      copy_or_pad(e, here, from, offset, piece, guard, padding);
    else
      twg_copy_piece(e, here, from, offset, piece, guard);
  }
  return true;
}

static bool rule_async_commit(tw_emitter_t *e, MlirOperation op) {
  (void)op;
  twg_intrinsic(e, "llvm.nvvm.cp.async.commit.group", (MlirType){NULL}, 0, NULL, TW_PTX_FENCE);
  return true;
}

TWG_RULE(TW_TILE_ASYNC_COPY, rule_async_copy)
TWG_RULE(TW_TILE_ASYNC_COMMIT, rule_async_commit)

/* shared.c - rules: buffers in shared memory
 *
 * An async_copy gives each thread pieces of up to 16 bytes, side by side in the buffer, and finds
 * where they come from by the buffer's layout: the swizzle is in the source address. A local_load
 * uses ldmatrix where the layouts of tile and buffer have its form (isa/matrix_access.h), else plain
 * accesses. */
#include "lowering/gpu/emit/address.h"
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/isa/matrix_access.h"
#include "lowering/gpu/isa/sm90/wgmma.h"
#include "lowering/gpu/machine/target.h"

#include "mlir-c/Dialect/LLVM.h"
#include "tilewright/dialect.h"

#include <stdio.h>

enum { MAX_PIECE_BYTES = 16, MIN_COPY_BYTES = 4, LANE_BITS = TW_LDMATRIX_LANE_BITS };

/* ---- buffers ------------------------------------------------------------------------------------- */

bool twg_rule_alloc_shared(tw_emitter_t *e, MlirOperation op) {
  if (!tw_has_attr(op, "offset")) {
    tw_op_error(op, "has no offset; run tile-allocate-shared first");
    return false;
  }
  twg_set_scalar(e, op, 0, twg_shared_at(e, tw_attr_int(op, "offset", 0)));
  return true;
}

MlirValue twg_slot_pointer(tw_emitter_t *e, MlirOperation op, intptr_t at) {
  MlirValue buffer = mlirOperationGetOperand(op, at);
  int64_t bytes = tw_slot_bytes(mlirValueGetType(buffer)), slot;
  MlirValue base = twg_lookup(e, buffer).at[0];
  if (tw_known_int(mlirOperationGetOperand(op, at + 1), &slot))
    return slot ? twg_offset_pointer(e, base, twg_const_i32(e, slot * bytes)) : base;
  MlirValue distance = twg_binary(e, "llvm.mul", twg_operand(e, op, at + 1).at[0], twg_const_i32(e, bytes));
  return twg_offset_pointer(e, base, distance);
}

static MlirValue add_bytes(tw_emitter_t *e, MlirValue pointer, int64_t bytes) {
  return bytes ? twg_offset_pointer(e, pointer, twg_const_i32(e, bytes)) : pointer;
}

/* ---- asynchronous copies ------------------------------------------------------------------------- */

typedef struct {
  tw_layout_t layout; /* which elements each thread copies: a register each */
  int vector_bits;    /* log2 of the elements of one piece, in the lowest registers */
  int cut_dim;        /* the dimension along which the array may end within a piece; -1: none */
  int thread_bits;    /* how many bits of the thread's number select a piece */
} share_t;

/* Neighbours in the buffer that are neighbours in the array too, at most `max` (log2). */
static int common_run(const tw_layout_t *shared, int dim, int max) {
  int run = 0;
  while (dim >= 0 && run < max && run < shared->log_shape[dim] && run < shared->bits[TW_OFFSET] &&
         shared->basis[TW_OFFSET][run] == UINT32_C(1) << (tw_layout_dim_shift(shared, dim) + run))
    run++;
  return run;
}

/* Pieces go round the threads in the order of the buffer. */
static share_t share_out(MlirOperation op, MlirType type, const tw_layout_t *shared, int num_warps) {
  share_t s = {.layout = *shared, .cut_dim = -1};
  int contiguous = tw_access_contiguous_dim(op, shared->rank), uncut = tw_access_vector_bits(op, shared->rank);
  int warp_bits = tw_log2(num_warps), at = 0, n = shared->bits[TW_OFFSET];
  s.layout.bits[TW_OFFSET] = 0;
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

void twg_copy_piece(tw_emitter_t *e, MlirValue to, MlirValue from, int64_t offset, int bytes, MlirValue guard) {
  char text[128];
  snprintf(text, sizeof text, "cp.async.%s.shared.global [$0], [$1 + %lld], %d, $2;",
           bytes == MAX_PIECE_BYTES ? "cg" : "ca", (long long)offset, bytes);
  MlirValue operands[] = {to, from, twg_binary(e, "llvm.xor", guard, twg_const_int(e, e->i1, 1))};
  twg_asm(e, text, "r,l,b", (MlirType){NULL}, 3, operands, true);
}

/* The bytes of the piece at register r that lie inside of the array along share->cut_dim. */
static MlirValue bytes_inside(tw_emitter_t *e, const share_t *share, const tw_placed_t *place, int r, int bytes) {
  int d = share->cut_dim, count = 1 << share->vector_bits;
  MlirValue at =
      twg_const_i32(e, tw_layout_coord(&share->layout, tw_layout_image(&share->layout, TW_REGISTER, (uint32_t)r), d));
  if (!place->disjoint)
    at = twg_register_coord(e, &place->layout, d, r);
  MlirValue left = twg_binary(e, "llvm.sub", place->left[d], at);
  left = twg_binary(e, "llvm.intr.smin", left, twg_const_i32(e, count));
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
  twg_asm(e, text, "r,l,r", (MlirType){NULL}, 3, operands, true);
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
  twg_asm(e, text, "r,l,b", (MlirType){NULL}, 3, copied, true);
  int form = tw_log2(bytes / 4), n = 0;
  for (; n < bytes / 4; n++)
    stored[n] = twg_const_i32(e, padding[n & 1]);
  stored[n++] = to;
  stored[n++] = twg_binary(e, "llvm.xor", guard, twg_const_int(e, e->i1, 1));
  twg_asm(e, stores[form], constraints[form], (MlirType){NULL}, n, stored, true);
}

/* A piece too small for cp.async goes through a register. */
static void copy_small(tw_emitter_t *e, MlirValue to, MlirValue from, int64_t offset, int bytes, MlirValue guard) {
  char text[160];
  snprintf(text, sizeof text, "mov.b16 $0, 0; @$2 ld.global.b%d $0, [$1 + %lld];", 8 * bytes, (long long)offset);
  MlirValue operands[] = {from, guard};
  MlirValue word = twg_asm(e, text, "=&h,l,b", e->i16, 2, operands, true);
  if (bytes == 1)
    word = twg_cast(e, "llvm.trunc", e->i8, word);
  twg_store_to(e, word, to, bytes);
}

/* A dimension along which the pieces of a thread differ; -1 if there is none. */
static int varying_dim(const share_t *share) {
  for (int d = 0; d < share->layout.rank; d++)
    for (int b = share->vector_bits; b < share->layout.bits[TW_REGISTER]; b++)
      if (tw_layout_coord(&share->layout, share->layout.basis[TW_REGISTER][b], d))
        return d;
  return -1;
}

/* Folds what all pieces of a thread have in common (being enabled, the other dimensions' bounds)
 * into the bound of one dimension, so that a piece costs one comparison. Returns what is left to
 * check for each piece: `enabled`, or null. */
static MlirValue fold_guards(tw_emitter_t *e, const share_t *share, MlirValue enabled, tw_placed_t *place) {
  int varying = varying_dim(share);
  if (varying < 0 || !place->disjoint || place->inside)
    return enabled;
  MlirValue common = enabled, zero = twg_const_i32(e, 0);
  for (int d = 0; d < share->layout.rank; d++) {
    bool fixed = d != varying;
    for (int b = share->vector_bits; b < share->layout.bits[TW_REGISTER]; b++)
      fixed = fixed && tw_layout_coord(&share->layout, share->layout.basis[TW_REGISTER][b], d) == 0;
    if (!fixed)
      continue;
    MlirValue inside = twg_icmp(e, TW_SGT, place->left[d], zero);
    common = common.ptr ? twg_binary(e, "llvm.and", common, inside) : inside;
    place->guard[d] = twg_const_int(e, e->i1, 1);
    place->guard_at[d] = 0;
  }
  if (common.ptr)
    place->left[varying] = twg_select(e, common, place->left[varying], zero);
  return (MlirValue){NULL};
}

bool twg_rule_async_copy(tw_emitter_t *e, MlirOperation op) {
  intptr_t at = tw_copy_buffer_operand(op);
  MlirType type = mlirValueGetType(mlirOperationGetOperand(op, at)), element = tw_buffer_type_element(type);
  tw_layout_t shared;
  tw_placed_t place;
  if (!tw_layout_of_type(type, &shared))
    return false;
  share_t share = share_out(op, type, &shared, e->num_warps);
  int piece = (1 << share.vector_bits) * tw_memory_bits(element) / 8;
  MlirValue enabled = {NULL}, to = twg_slot_pointer(e, op, at);
  if (mlirOperationGetNumOperands(op) > at + 2)
    enabled = twg_operand(e, op, at + 2).at[0];
  MlirValue own = twg_binary(e, "llvm.and", e->thread, twg_const_i32(e, (1 << share.thread_bits) - 1));
  to = twg_offset_pointer(e, to, twg_binary(e, "llvm.mul", own, twg_const_i32(e, piece)));
  twg_place(e, op, element, &share.layout, &place);
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
    MlirValue here = add_bytes(e, to, ((int64_t)i * piece) << share.thread_bits);
    if (share.cut_dim >= 0)
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

bool twg_rule_async_commit(tw_emitter_t *e, MlirOperation op) {
  (void)op;
  twg_intrinsic(e, "llvm.nvvm.cp.async.commit.group", (MlirType){NULL}, 0, NULL);
  return true;
}

static void fence_async_proxy(tw_emitter_t *e) {
  twg_asm(e, "fence.proxy.async.shared::cta;", "", (MlirType){NULL}, 0, NULL, true);
}

bool twg_rule_async_wait(tw_emitter_t *e, MlirOperation op) {
  MlirValue pending = twg_const_i32(e, tw_attr_int(op, "pending", 0));
  twg_intrinsic(e, "llvm.nvvm.cp.async.wait.group", (MlirType){NULL}, 1, &pending);
  if (tw_has_attr(e->module, TW_WGMMA)) /* which reads through the asynchronous proxy */
    fence_async_proxy(e);
  return true;
}

/* ---- ldmatrix ------------------------------------------------------------------------------------ */

/* This thread's row, XORed with the part of a constant that shares bits with it; does not depend on
 * the loop, so it goes to the entry. */
static MlirValue row_of_thread(tw_emitter_t *e, const tw_layout_t *tile, const tw_ldmatrix_t *m, uint32_t overlap) {
  MlirValue row = twg_linear_of_thread(e, m->address, LANE_BITS, m->warp, tile->bits[TW_WARP]);
  MlirBlock here = e->block;
  e->block = e->entry;
  if (overlap)
    row = twg_binary(e, "llvm.xor", row, twg_const_i32(e, overlap));
  e->block = here;
  return row;
}

static void load_matrices(tw_emitter_t *e, const tw_ldmatrix_t *m, MlirValue pointer, MlirValue *words) {
  int count = 1 << m->matrix_bits;
  MlirType types[] = {e->i32, e->i32, e->i32, e->i32};
  char name[80];
  snprintf(name, sizeof name, "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x%d%s.b16.p3", count, m->trans ? ".trans" : "");
  MlirType type = count == 1 ? e->i32 : mlirLLVMStructTypeLiteralGet(e->context, count, types, false);
  MlirValue loaded = twg_intrinsic(e, name, type, 1, &pointer);
  for (int i = 0; i < count; i++)
    words[i] = count == 1 ? loaded : twg_extract(e, loaded, i, e->i32);
}

static tw_values_t read_matrices(tw_emitter_t *e, const tw_layout_t *tile, const tw_ldmatrix_t *m, MlirType element,
                                 MlirValue base) {
  int bits = tw_memory_bits(element), per_word = 1 << m->pack_bits, within = per_word - 1;
  for (int i = 0; i < m->matrix_bits; i++)
    within |= 1 << m->matrix[i];
  int copies = tw_ldmatrix_copy_bits(tile, m);
  tw_values_t out = twg_new_values(e, tw_layout_count(tile, TW_REGISTER));
  for (int r = 0; r < out.count; r++) {
    if (r & (within | copies))
      continue;
    uint32_t constant = tw_ldmatrix_register_part(tile, m, r);
    MlirValue words[1 << TW_LDMATRIX_MAX_BITS];
    MlirValue pointer = twg_offset_pointer(e, base, row_of_thread(e, tile, m, constant & m->thread_mask));
    load_matrices(e, m, add_bytes(e, pointer, constant & ~m->thread_mask), words);
    for (int w = 0; w < 1 << m->matrix_bits; w++) {
      int at = r;
      for (int i = 0; i < m->matrix_bits; i++)
        at |= (w >> i & 1) << m->matrix[i];
      twg_from_words(e, element, bits, per_word, &words[w], &out.at[at]);
    }
  }
  for (int r = 0; r < out.count; r++)
    if (r & copies)
      out.at[r] = out.at[r & ~copies];
  return out;
}

static void store_matrices(tw_emitter_t *e, const tw_ldmatrix_t *m, MlirValue pointer, const MlirValue *words) {
  int count = 1 << m->matrix_bits;
  char name[80];
  snprintf(name, sizeof name, "llvm.nvvm.stmatrix.sync.aligned.m8n8.x%d%s.b16.p3", count, m->trans ? ".trans" : "");
  MlirValue operands[1 + (1 << TW_LDMATRIX_MAX_BITS)] = {pointer};
  for (int i = 0; i < count; i++)
    operands[1 + i] = words[i];
  twg_intrinsic(e, name, (MlirType){NULL}, 1 + count, operands);
}

static void write_matrices(tw_emitter_t *e, const tw_layout_t *tile, const tw_ldmatrix_t *m, MlirType element,
                           tw_values_t in, MlirValue base) {
  int bits = tw_memory_bits(element), per_word = 1 << m->pack_bits, within = per_word - 1;
  for (int i = 0; i < m->matrix_bits; i++)
    within |= 1 << m->matrix[i];
  int copies = tw_ldmatrix_copy_bits(tile, m);
  for (int r = 0; r < in.count; r++) {
    if (r & (within | copies))
      continue;
    uint32_t constant = tw_ldmatrix_register_part(tile, m, r);
    MlirValue words[1 << TW_LDMATRIX_MAX_BITS];
    for (int w = 0; w < 1 << m->matrix_bits; w++) {
      int at = r;
      for (int i = 0; i < m->matrix_bits; i++)
        at |= (w >> i & 1) << m->matrix[i];
      twg_to_words(e, element, bits, per_word, &in.at[at], &words[w]);
    }
    MlirValue pointer = twg_offset_pointer(e, base, row_of_thread(e, tile, m, constant & m->thread_mask));
    store_matrices(e, m, add_bytes(e, pointer, constant & ~m->thread_mask), words);
  }
}

void twg_write_buffer(tw_emitter_t *e, const tw_layout_t *l, const tw_layout_t *shared, MlirType element,
                      tw_values_t in, MlirValue base) {
  tw_gpu_target_t target = tw_gpu_target_of(e->module);
  tw_ldmatrix_t matrices;
  if (tw_gpu_has(&target, TW_GPU_STMATRIX) && tw_ldmatrix_match(l, shared, tw_memory_bits(element) / 8, &matrices))
    write_matrices(e, l, &matrices, element, in, base);
  else
    twg_write_shared(e, l, shared, element, in, base);
}

bool twg_rule_local_load(tw_emitter_t *e, MlirOperation op) {
  MlirType type = mlirValueGetType(mlirOperationGetOperand(op, 0)), element = tw_buffer_type_element(type);
  tw_layout_t tile, shared;
  tw_ldmatrix_t matrices;
  if (!tw_layout_of_type(mlirValueGetType(mlirOperationGetResult(op, 0)), &tile) || !tw_layout_of_type(type, &shared))
    return false;
  MlirValue base = twg_slot_pointer(e, op, 0);
  if (tw_ldmatrix_match(&tile, &shared, tw_memory_bits(element) / 8, &matrices))
    twg_set_result(e, op, 0, read_matrices(e, &tile, &matrices, element, base));
  else
    twg_set_result(e, op, 0, twg_read_shared(e, &tile, &shared, element, base));
  return true;
}

static bool feeds_wgmma(MlirValue buffer) {
  for (MlirOpOperand use = mlirValueGetFirstUse(buffer); !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use))
    if (tw_op_is(mlirOpOperandGetOwner(use), TW_TILE_WGMMA))
      return true;
  return false;
}

bool twg_rule_local_store(tw_emitter_t *e, MlirOperation op) {
  MlirType type = mlirValueGetType(mlirOperationGetOperand(op, 1));
  tw_layout_t tile, shared;
  if (!tw_layout_of_type(mlirValueGetType(mlirOperationGetOperand(op, 0)), &tile) || !tw_layout_of_type(type, &shared))
    return false;
  MlirValue base = twg_slot_pointer(e, op, 1);
  twg_write_buffer(e, &tile, &shared, tw_buffer_type_element(type), twg_operand(e, op, 0), base);
  if (feeds_wgmma(mlirOperationGetOperand(op, 1)))
    fence_async_proxy(e);
  return true;
}

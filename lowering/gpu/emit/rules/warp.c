/* warp.c - rules: what the lanes of a warp do together
 *
 *   %y = tile.shuffle down, %mask, %x, %d : f64   two llvm.nvvm.shfl.sync.down.i32, of the halves
 *   %b = tile.vote ballot, %mask, %p -> i32       llvm.nvvm.vote.ballot.sync
 *   %m = tile.match any, %mask, %x : f32          llvm.nvvm.match.any.sync.i32, of the bits; of 8 bits or fewer ballots
 *
 * A value of 4 bytes or fewer is one word, of 8 bytes two. */
#include "lowering/gpu/emit/rules.h"
#include "lowering/gpu/emit/words.h"
#include "lowering/ranges.h"
#include "tilewright/dialect.h"

#include "mlir-c/Dialect/LLVM.h"

#include <stdio.h>

static bool rule_lane_id(tw_emitter_t *e, MlirOperation op) {
  twg_set_scalar(e, op, 0, twg_op(e, "nvvm.read.ptx.sreg.laneid", e->i32, 0, NULL, 0, NULL));
  return true;
}

static bool rule_active_mask(tw_emitter_t *e, MlirOperation op) {
  twg_set_scalar(e, op, 0, twg_asm(e, "activemask.b32 $0;", "=r", e->i32, 0, NULL, TW_PTX_EFFECT));
  return true;
}

static bool rule_sync_warp(tw_emitter_t *e, MlirOperation op) {
  MlirValue mask = twg_operand(e, op, 0).at[0];
  twg_intrinsic(e, "llvm.nvvm.bar.warp.sync", (MlirType){NULL}, 1, &mask, TW_PTX_EFFECT);
  return true;
}

static bool rule_vote(tw_emitter_t *e, MlirOperation op) {
  static const char *const names[] = {
      [TW_VOTE_ALL] = "all", [TW_VOTE_ANY] = "any", [TW_VOTE_UNI] = "uni", [TW_VOTE_BALLOT] = "ballot"};
  int64_t kind = tw_attr_int(op, "kind", 0);
  char name[64];
  snprintf(name, sizeof name, "llvm.nvvm.vote.%s.sync", names[kind]);
  MlirValue operands[2] = {twg_operand(e, op, 0).at[0], twg_operand(e, op, 1).at[0]};
  twg_set_scalar(e, op, 0, twg_intrinsic(e, name, kind == TW_VOTE_BALLOT ? e->i32 : e->i1, 2, operands, TW_PTX_EFFECT));
  return true;
}

static MlirValue ballot(tw_emitter_t *e, MlirValue mask, MlirValue predicate) {
  MlirValue operands[2] = {mask, predicate};
  return twg_intrinsic(e, "llvm.nvvm.vote.ballot.sync", e->i32, 2, operands, TW_PTX_EFFECT);
}

/* ---- bits of a value --------------------------------------------------------------------------------- */

/* The bits of a scalar as an i32, or an i64 for those of 8 bytes. */
static MlirValue bits_of(tw_emitter_t *e, MlirType element, MlirValue x) {
  int bits = tw_memory_bits(element);
  MlirValue words[4];
  if (bits == 64)
    return twg_bitcast(e, x, e->i64);
  twg_to_words(e, element, bits, 1, &x, words);
  return bits < 32 ? twg_cast(e, "llvm.zext", e->i32, words[0]) : words[0];
}

static MlirValue value_of(tw_emitter_t *e, MlirType element, MlirValue word) {
  int bits = tw_memory_bits(element);
  if (bits < 32)
    word = twg_cast(e, "llvm.trunc", bits == 8 ? e->i8 : e->i16, word);
  return twg_bits_to_element(e, word, element);
}

/* ---- match, shuffle ------------------------------------------------------------------------------------ */

/* How many bits of an integer can be set, by its range; one that may be negative has all. */
static int width_of(MlirValue value) {
  MlirType type = mlirValueGetType(value);
  int width = (int)tw_memory_bits(type);
  if (!mlirTypeIsAInteger(type) || width > 32)
    return width;
  tw_range_t range = tw_range_of(value);
  for (int bits = 1; bits < width && range.low >= 0; bits++)
    if (range.high >> bits == 0)
      return bits;
  return width;
}

/* The lanes that agree in each bit with this one: `match` takes longer the more values differ, a ballot a bit does not.
 * Lanes of the mask that have left vote in none, so those that vote are found first. */
static MlirValue match_bits(tw_emitter_t *e, MlirValue mask, MlirValue bits, int width) {
  MlirValue zero = twg_const_i32(e, 0), all = twg_const_i32(e, -1);
  MlirValue lanes = ballot(e, mask, twg_icmp(e, TW_EQ, zero, zero));
  for (int i = 0; i < width; i++) {
    MlirValue bit = twg_binary(e, "llvm.and", bits, twg_const_i32(e, 1 << i));
    MlirValue is_set = twg_icmp(e, TW_NE, bit, zero);
    MlirValue same = twg_binary(e, "llvm.xor", ballot(e, mask, is_set), twg_select(e, is_set, zero, all));
    lanes = twg_binary(e, "llvm.and", lanes, same);
  }
  return lanes;
}

static bool rule_match(tw_emitter_t *e, MlirOperation op) {
  enum { FEW_BITS = 8 };
  MlirType element = mlirValueGetType(mlirOperationGetOperand(op, 1));
  MlirValue operands[2] = {twg_operand(e, op, 0).at[0], bits_of(e, element, twg_operand(e, op, 1).at[0])};
  bool wide = tw_memory_bits(element) == 64, all = tw_attr_int(op, "kind", 0) == TW_MATCH_ALL;
  int width = width_of(mlirOperationGetOperand(op, 1));
  if (!all && width <= FEW_BITS) {
    twg_set_scalar(e, op, 0, match_bits(e, operands[0], operands[1], width));
    return true;
  }
  char name[64];
  snprintf(name, sizeof name, "llvm.nvvm.match.%s.sync.%s%s", all ? "all" : "any", wide ? "i64" : "i32",
           all ? "p" : "");
  MlirType types[2] = {e->i32, e->i1};
  MlirType result = all ? mlirLLVMStructTypeLiteralGet(e->context, 2, types, false) : e->i32;
  MlirValue found = twg_intrinsic(e, name, result, 2, operands, TW_PTX_EFFECT);
  twg_set_scalar(e, op, 0, all ? twg_extract(e, found, 0, e->i32) : found);
  return true;
}

static MlirValue shuffle_word(tw_emitter_t *e, int64_t kind, MlirValue mask, MlirValue word, MlirValue lane) {
  static const char *const names[] = {
      [TW_SHUFFLE_IDX] = "idx", [TW_SHUFFLE_UP] = "up", [TW_SHUFFLE_DOWN] = "down", [TW_SHUFFLE_BFLY] = "bfly"};
  char name[64];
  snprintf(name, sizeof name, "llvm.nvvm.shfl.sync.%s.i32", names[kind]);
  MlirValue operands[4] = {mask, word, lane, twg_const_i32(e, kind == TW_SHUFFLE_UP ? 0 : 31)};
  return twg_intrinsic(e, name, e->i32, 4, operands, TW_PTX_EFFECT);
}

static bool rule_shuffle(tw_emitter_t *e, MlirOperation op) {
  MlirType element = mlirValueGetType(mlirOperationGetResult(op, 0));
  int64_t kind = tw_attr_int(op, "kind", 0);
  MlirValue mask = twg_operand(e, op, 0).at[0], lane = twg_operand(e, op, 2).at[0];
  MlirValue bits = bits_of(e, element, twg_operand(e, op, 1).at[0]);
  if (tw_memory_bits(element) < 64) {
    twg_set_scalar(e, op, 0, value_of(e, element, shuffle_word(e, kind, mask, bits, lane)));
    return true;
  }
  MlirValue half = twg_const_int(e, e->i64, 32);
  MlirValue low = shuffle_word(e, kind, mask, twg_cast(e, "llvm.trunc", e->i32, bits), lane);
  MlirValue high = twg_cast(e, "llvm.trunc", e->i32, twg_binary(e, "llvm.lshr", bits, half));
  high = twg_cast(e, "llvm.zext", e->i64, shuffle_word(e, kind, mask, high, lane));
  bits = twg_binary(e, "llvm.or", twg_cast(e, "llvm.zext", e->i64, low), twg_binary(e, "llvm.shl", high, half));
  twg_set_scalar(e, op, 0, value_of(e, element, bits));
  return true;
}

TWG_RULE(TW_TILE_LANE_ID, rule_lane_id)
TWG_RULE(TW_TILE_ACTIVE_MASK, rule_active_mask)
TWG_RULE(TW_TILE_SYNC_WARP, rule_sync_warp)
TWG_RULE(TW_TILE_VOTE, rule_vote)
TWG_RULE(TW_TILE_MATCH, rule_match)
TWG_RULE(TW_TILE_SHUFFLE, rule_shuffle)

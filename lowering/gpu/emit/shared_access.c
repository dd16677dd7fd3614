/* shared_access.c - registers to and from shared memory by plain vector accesses
 *
 * The address of a register is a constant XORed with what the thread's number adds, because layouts
 * are linear. The bits that both have are XORed once (outside of loops), the others become the
 * immediate offset of the access. */
#include "lowering/gpu/emit/shared_access.h"

#include "lowering/gpu/emit/address.h"
#include "lowering/gpu/emit/words.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/scratch.h"

enum { MAX_WORDS = 4 };

/* How a thread's registers lie in shared memory; images are bytes. */
typedef struct {
  const tw_layout_t *tile;
  MlirType element; /* as shared memory holds it: narrow floats and 4-bit elements as bytes */
  int bits, vector_bits, regs[TW_LAYOUT_MAX_BITS];
  uint32_t image[TW_NUM_INPUTS][TW_LAYOUT_MAX_BITS];
  uint32_t thread_mask;
} scatter_t;

static scatter_t scatter_of(tw_emitter_t *e, const tw_layout_t *tile, const tw_layout_t *shared, MlirType element) {
  scatter_t s = {.tile = tile, .element = element, .bits = tw_memory_bits(element)};
  tw_inverse_t inverse;
  if (s.bits < 8) {
    s.element = e->i8;
    s.bits = 8;
  }
  s.vector_bits = tw_shared_vector_bits(shared, tile, tw_log2(TW_MAX_ACCESS_BITS / s.bits), s.regs);
  (void)tw_layout_invert(shared, &inverse);
  for (int g = 0; g < TW_NUM_INPUTS; g++)
    for (int i = 0; i < tile->bits[g]; i++) {
      s.image[g][i] = tw_inverse_apply(&inverse, tile->basis[g][i]).at[TW_OFFSET] * (uint32_t)(s.bits / 8);
      s.thread_mask |= g == TW_LANE || g == TW_WARP ? s.image[g][i] : 0;
    }
  return s;
}

static MlirValue address_of(tw_emitter_t *e, const scatter_t *s, int r, MlirValue base) {
  uint32_t constant = 0;
  for (int b = 0; b < s->tile->bits[TW_REGISTER]; b++)
    if (r >> b & 1)
      constant ^= s->image[TW_REGISTER][b];
  MlirValue own =
      twg_linear_of_thread(e, s->image[TW_LANE], s->tile->bits[TW_LANE], s->image[TW_WARP], s->tile->bits[TW_WARP]);
  uint32_t overlap = constant & s->thread_mask;
  MlirBlock here = e->block;
  e->block = e->entry;
  if (overlap)
    own = twg_binary(e, "llvm.xor", own, twg_const_i32(e, overlap));
  e->block = here;
  MlirValue pointer = twg_offset_pointer(e, base, own);
  return constant == overlap ? pointer : twg_offset_pointer(e, pointer, twg_const_i32(e, constant & ~s->thread_mask));
}

MlirValue twg_shared_pointer(tw_emitter_t *e, const tw_layout_t *l, const tw_layout_t *shared, MlirType element, int r,
                             MlirValue base) {
  scatter_t s = scatter_of(e, l, shared, element);
  return address_of(e, &s, r, base);
}

/* Register bits that lead to no other element: such registers are copies. */
static int copy_bits(const tw_layout_t *tile) {
  int mask = 0;
  for (int b = 0; b < tile->bits[TW_REGISTER]; b++)
    mask |= tile->basis[TW_REGISTER][b] == 0 ? 1 << b : 0;
  return mask;
}

/* Type of one access: a word, or a vector of words. */
static MlirType access_type(tw_emitter_t *e, const scatter_t *s, int *words) {
  int total = s->bits << s->vector_bits;
  *words = total > 32 ? total / 32 : 1;
  MlirType word = mlirIntegerTypeGet(e->context, (unsigned)(total > 32 ? 32 : total));
  return *words > 1 ? twg_vector_type(word, *words) : word;
}

void twg_write_shared(tw_emitter_t *e, const tw_layout_t *l, const tw_layout_t *shared, MlirType element,
                      tw_values_t in, MlirValue base) {
  scatter_t s = scatter_of(e, l, shared, element);
  int num_words, copies = copy_bits(l);
  (void)access_type(e, &s, &num_words);
  for (int r = 0; r < in.count; r++) {
    int at[TW_MAX_ACCESS_BITS / 8];
    MlirValue elements[TW_MAX_ACCESS_BITS / 8], words[MAX_WORDS];
    if ((r & copies) || !twg_starts_vector(r, s.vector_bits, s.regs))
      continue;
    twg_vector_registers(r, s.vector_bits, s.regs, at);
    for (int i = 0; i < 1 << s.vector_bits; i++)
      elements[i] = in.at[at[i]];
    twg_to_words(e, s.element, s.bits, 1 << s.vector_bits, elements, words);
    MlirValue whole = num_words > 1 ? twg_pack(e, e->i32, num_words, words) : words[0];
    twg_store_to(e, whole, address_of(e, &s, r, base), s.bits / 8 << s.vector_bits);
  }
}

tw_values_t twg_read_shared(tw_emitter_t *e, const tw_layout_t *l, const tw_layout_t *shared, MlirType element,
                            MlirValue base) {
  scatter_t s = scatter_of(e, l, shared, element);
  int num_words, copies = copy_bits(l);
  MlirType type = access_type(e, &s, &num_words);
  tw_values_t out = twg_new_values(e, tw_layout_count(l, TW_REGISTER));
  for (int r = 0; r < out.count; r++) {
    int at[TW_MAX_ACCESS_BITS / 8];
    MlirValue elements[TW_MAX_ACCESS_BITS / 8], words[MAX_WORDS];
    if ((r & copies) || !twg_starts_vector(r, s.vector_bits, s.regs))
      continue;
    MlirValue whole = twg_load_from(e, type, address_of(e, &s, r, base), s.bits / 8 << s.vector_bits);
    for (int w = 0; w < num_words; w++)
      words[w] = num_words > 1 ? twg_unpack(e, whole, w, e->i32) : whole;
    twg_from_words(e, s.element, s.bits, 1 << s.vector_bits, words, elements);
    twg_vector_registers(r, s.vector_bits, s.regs, at);
    for (int i = 0; i < 1 << s.vector_bits; i++)
      out.at[at[i]] = elements[i];
  }
  for (int r = 0; r < out.count; r++)
    if (r & copies)
      out.at[r] = out.at[r & ~copies];
  return out;
}

/* ---- whole tiles ----------------------------------------------------------------------------------- */

tw_layout_t twg_row_major(MlirType tile) {
  int64_t shape[TW_LAYOUT_MAX_RANK];
  int order[TW_LAYOUT_MAX_RANK], rank = tw_tile_shape(tile, shape);
  for (int d = 0; d < rank; d++)
    order[d] = rank - 1 - d;
  return tw_shared_rowmajor(rank, shape, order);
}

void twg_share_tile(tw_emitter_t *e, MlirValue tile, MlirValue base) {
  MlirType type = mlirValueGetType(tile);
  tw_layout_t layout, shared = twg_row_major(type);
  if (tw_layout_of_type(type, &layout))
    twg_write_shared(e, &layout, &shared, tw_element(type), twg_lookup(e, tile), base);
}

tw_values_t twg_shared_tile(tw_emitter_t *e, MlirType type, const tw_layout_t *layout, MlirValue base) {
  tw_layout_t shared = twg_row_major(type);
  tw_values_t values = twg_read_shared(e, layout, &shared, tw_element(type), base);
  for (int r = 0; r < values.count && tw_is_bool(tw_element(type)); r++)
    values.at[r] = twg_icmp(e, TW_NE, values.at[r], twg_const_int(e, mlirValueGetType(values.at[r]), 0));
  return values;
}

/* ---- places -------------------------------------------------------------------------------------- */

MlirValue twg_scratch_at(tw_emitter_t *e, MlirOperation op, int64_t bytes) {
  MlirValue at = twg_shared_at(e, tw_scratch_offset(op) + bytes);
  return e->consumer_group.ptr
             ? twg_offset_pointer(
                   e, at, twg_binary(e, "llvm.mul", e->consumer_group, twg_const_i32(e, e->group_scratch_bytes)))
             : at;
}

MlirValue twg_stage_pointer(tw_emitter_t *e, MlirOperation op, intptr_t at) {
  MlirValue buffer = mlirOperationGetOperand(op, at);
  int64_t bytes = tw_stage_bytes(mlirValueGetType(buffer)), stage;
  MlirValue base = twg_lookup(e, buffer).at[0];
  if (tw_known_int(mlirOperationGetOperand(op, at + 1), &stage))
    return stage ? twg_offset_pointer(e, base, twg_const_i32(e, stage * bytes)) : base;
  MlirValue distance = twg_binary(e, "llvm.mul", twg_operand(e, op, at + 1).at[0], twg_const_i32(e, bytes));
  return twg_offset_pointer(e, base, distance);
}

static MlirType stored_type(tw_emitter_t *e, MlirType held) { return tw_bits(held) < 8 ? e->i8 : held; }

MlirValue twg_load_part(tw_emitter_t *e, MlirType type, MlirValue pointer) {
  MlirType stored = stored_type(e, type);
  MlirValue x = twg_load_from(e, stored, pointer, (int)tw_part_bytes(type));
  return mlirTypeEqual(stored, type) ? x : twg_cast(e, "llvm.trunc", type, x);
}

void twg_store_part(tw_emitter_t *e, MlirValue x, MlirValue pointer) {
  MlirType type = mlirValueGetType(x), stored = stored_type(e, type);
  if (!mlirTypeEqual(stored, type))
    x = twg_cast(e, "llvm.zext", stored, x);
  twg_store_to(e, x, pointer, (int)tw_part_bytes(type));
}

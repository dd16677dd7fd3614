/* shared.c - layouts of shared memory: row-major, the hardware's XOR swizzle, and swizzles derived from the
 * two register layouts that meet in a buffer; bank conflicts. See layout.h. */
#include "lowering/layout/layout.h"
#include "tilewright/machine.h"

#include <string.h>

enum { BANK_BYTES = 4, MAX_ACCESS_BYTES = 16 };

static int min_int(int a, int b) { return a < b ? a : b; }

tw_layout_t tw_shared_rowmajor(int rank, const int64_t *shape, const int *order) {
  tw_layout_t l = tw_layout_empty(rank, shape);
  for (int i = 0; i < rank; i++)
    for (int bit = 0; bit < l.log_shape[order[i]]; bit++)
      tw_layout_push(&l, TW_OFFSET, UINT32_C(1) << (tw_layout_dim_shift(&l, order[i]) + bit));
  return l;
}

tw_layout_t tw_shared_swizzled(int rank, const int64_t *shape, const int *order, int elem_bits, int row_bytes) {
  tw_layout_t l = tw_layout_empty(rank, shape);
  int inner = order[0], inner_shift = tw_layout_dim_shift(&l, inner);
  int chunk = tw_log2(16 * 8 / elem_bits); /* elements of 16 bytes */
  int row = min_int(tw_log2((int64_t)row_bytes * 8 / elem_bits), l.log_shape[inner]);
  int chunks = row > chunk ? row - chunk : 0; /* bits that are swizzled */
  /* 128 bytes: row bits 0..2 go to the chunk bits; 64: rows 1..2; 32: row 2. */
  int skip = 3 - chunks > 0 ? 3 - chunks : 0, line = 0;
  for (int bit = 0; bit < row; bit++)
    tw_layout_push(&l, TW_OFFSET, UINT32_C(1) << (inner_shift + bit));
  for (int i = 1; i < rank; i++) {
    for (int bit = 0; bit < l.log_shape[order[i]]; bit++, line++) {
      uint32_t image = UINT32_C(1) << (tw_layout_dim_shift(&l, order[i]) + bit);
      if (line >= skip && line - skip < chunks)
        image |= UINT32_C(1) << (inner_shift + chunk + line - skip);
      tw_layout_push(&l, TW_OFFSET, image);
    }
  }
  for (int bit = row; bit < l.log_shape[inner]; bit++)
    tw_layout_push(&l, TW_OFFSET, UINT32_C(1) << (inner_shift + bit));
  return l;
}

/* ---- subspaces of GF(2)^n ---------------------------------------------------------------------- */

typedef struct space {
  uint32_t row[32]; /* echelon form by leading bit */
  int dim;
} space_t;

static uint32_t space_reduce(const space_t *s, uint32_t v) {
  for (uint32_t left = v; left != 0;) {
    int bit = 31 - __builtin_clz(left);
    v ^= s->row[bit];
    left = v & ((UINT32_C(1) << bit) - 1);
  }
  return v;
}

static bool space_add(space_t *s, uint32_t v) {
  v = space_reduce(s, v);
  if (v == 0)
    return false;
  int lead = 31 - __builtin_clz(v);
  s->row[lead] = v;
  s->dim++;
  return true;
}

/* What a warp touches in one pass over the banks: the vector and the lanes of one phase. */
static space_t phase_space(const tw_layout_t *l, const space_t *vector, int access_bytes) {
  space_t s = *vector;
  int lanes = access_bytes > BANK_BYTES ? TW_LINE_BYTES / access_bytes : TW_WARP_LANES;
  for (int i = 0; i < l->bits[TW_LANE] && (1 << i) < lanes; i++)
    (void)space_add(&s, l->basis[TW_LANE][i]);
  return s;
}

/* Appends to the layout those vectors that are new to `taken`, at most `limit` offset bits. */
static void take(tw_layout_t *l, space_t *taken, uint32_t v, int limit) {
  if (l->bits[TW_OFFSET] < limit && space_add(taken, v))
    tw_layout_push(l, TW_OFFSET, v);
}

/* Chooses the vectors that select a line of banks ("segments"): the lanes of a phase must not
 * differ in them. First what neither side's phase contains, then sums of a vector that only the
 * writer's phase has and one that only the reader's has (such a sum lies in neither: an XOR
 * swizzle), last whatever is left, at the price of conflicts. */
static int choose_segments(const tw_layout_t *shape, const space_t *vector, const space_t *write, const space_t *read,
                           int want, uint32_t *out) {
  int n = tw_layout_size_bits(shape), count = 0;
  space_t both = *write, taken = *vector;
  uint32_t only_write[32], only_read[32];
  int num_write = 0, num_read = 0;
  for (int bit = 0; bit < 32; bit++)
    if (read->row[bit] != 0)
      (void)space_add(&both, read->row[bit]);
  space_t outside = both;
  for (int bit = n - 1; bit >= 0 && count < want; bit--)
    if (space_add(&outside, UINT32_C(1) << bit)) {
      out[count++] = UINT32_C(1) << bit;
      (void)space_add(&taken, UINT32_C(1) << bit);
    }
  space_t w = *read, r = *write;
  for (int bit = 0; bit < 32; bit++) {
    if (write->row[bit] != 0 && space_add(&w, write->row[bit]))
      only_write[num_write++] = write->row[bit];
    if (read->row[bit] != 0 && space_add(&r, read->row[bit]))
      only_read[num_read++] = read->row[bit];
  }
  for (int i = 0; i < num_write && i < num_read && count < want; i++)
    if (space_add(&taken, only_write[i] ^ only_read[i]))
      out[count++] = only_write[i] ^ only_read[i];
  for (int bit = n - 1; bit >= 0 && count < want; bit--)
    if (space_add(&taken, UINT32_C(1) << bit))
      out[count++] = UINT32_C(1) << bit;
  return count;
}

tw_layout_t tw_shared_for(const tw_layout_t *writer, const tw_layout_t *reader, int elem_bits, int *vector_bits) {
  tw_layout_t l = *writer;
  memset(l.bits, 0, sizeof l.bits);
  memset(l.basis, 0, sizeof l.basis);
  int n = tw_layout_size_bits(&l), max_vector = tw_log2(MAX_ACCESS_BYTES * 8 / elem_bits);
  space_t vector = {{0}, 0};
  for (int i = 0; i < writer->bits[TW_REGISTER]; i++)
    for (int j = 0; j < reader->bits[TW_REGISTER]; j++)
      if (writer->basis[TW_REGISTER][i] == reader->basis[TW_REGISTER][j])
        take(&l, &vector, writer->basis[TW_REGISTER][i], max_vector);
  int v = l.bits[TW_OFFSET];
  *vector_bits = v;
  int access_bytes = (1 << v) * elem_bits / 8; /* NOLINT(clang-analyzer-core.BitwiseShift): counted up from 0 */
  space_t write = phase_space(writer, &vector, access_bytes);
  space_t read = phase_space(reader, &vector, access_bytes);
  int line = min_int(n, tw_log2((int64_t)TW_LINE_BYTES * 8 / elem_bits));
  uint32_t segment[32];
  int segments = choose_segments(&l, &vector, &write, &read, n - (line > v ? line : v), segment);
  space_t taken = vector;
  for (int i = 0; i < segments; i++)
    (void)space_add(&taken, segment[i]);
  /* banks: whatever completes the space, lanes of the writer first */
  for (int i = 0; i < writer->bits[TW_LANE]; i++)
    take(&l, &taken, writer->basis[TW_LANE][i], n - segments);
  for (int i = 0; i < reader->bits[TW_LANE]; i++)
    take(&l, &taken, reader->basis[TW_LANE][i], n - segments);
  for (int bit = 0; bit < n; bit++)
    take(&l, &taken, UINT32_C(1) << bit, n - segments);
  for (int i = 0; i < segments; i++)
    tw_layout_push(&l, TW_OFFSET, segment[i]);
  return l;
}

int tw_shared_conflicts(const tw_layout_t *shared, const tw_layout_t *distributed, int elem_bits, int vector_bits) {
  tw_inverse_t inv;
  if (!tw_layout_invert(shared, &inv))
    return 0;
  int access_bytes = (1 << vector_bits) * elem_bits / 8;
  int lanes = access_bytes > BANK_BYTES ? TW_LINE_BYTES / access_bytes : TW_WARP_LANES, worst = 1;
  for (int first = 0; first < TW_WARP_LANES; first += lanes) {
    uint32_t words[TW_WARP_LANES];
    int per_bank[TW_LINE_BYTES / BANK_BYTES] = {0}, count = 0;
    for (int lane = first; lane < first + lanes; lane++) {
      uint32_t flat = tw_layout_apply(distributed, 0, (uint32_t)lane, 0);
      uint32_t byte = tw_inverse_apply(&inv, flat).at[TW_OFFSET] * (uint32_t)elem_bits / 8;
      uint32_t word = byte / BANK_BYTES;
      bool seen = false; /* lanes that read the same word do not conflict */
      for (int i = 0; i < count; i++)
        seen |= words[i] == word;
      if (seen)
        continue;
      words[count++] = word;
      int load = ++per_bank[word % (TW_LINE_BYTES / BANK_BYTES)];
      worst = load > worst ? load : worst;
    }
  }
  return worst;
}

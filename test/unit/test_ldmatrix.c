/* Plays ldmatrix on every pair of operand layout and shared layout that the compiler makes, and
 * compares what each lane gets with what the operand's layout says; and that the eight rows of a
 * matrix lie in different banks. */
#include "lowering/gpu/isa/matrix_access.h"

#include "check.h"

#include <string.h>

static int matched;

enum { LANES = 32, ROWS = 8, ROW = TW_LDMATRIX_ROW_BYTES };

typedef struct {
  const tw_layout_t *tile, *shared;
  int elem_bytes;
  tw_ldmatrix_t m;
} case_t;

static uint32_t linear(const uint32_t *images, int bits, uint32_t value) {
  uint32_t sum = 0;
  for (int i = 0; i < bits; i++)
    sum ^= value >> i & 1 ? images[i] : 0;
  return sum;
}

/* Address of the row that `lane` supplies to the instruction for register r. */
static uint32_t row_address(const case_t *c, int r, uint32_t lane, uint32_t warp) {
  return linear(c->m.address, TW_LDMATRIX_LANE_BITS, lane) ^ linear(c->m.warp, c->tile->bits[TW_WARP], warp) ^
         tw_ldmatrix_register_part(c->tile, &c->m, r);
}

/* Byte address of element `i` of the word that `lane` gets of a matrix. */
static uint32_t received(const case_t *c, int r, int matrix, uint32_t lane, uint32_t warp, int i) {
  uint32_t within = (uint32_t)(i * c->elem_bytes), row = c->m.trans ? 2 * (lane % 4) + within / 2 : lane / 4;
  uint32_t byte = c->m.trans ? 2 * (lane / 4) + within % 2 : 4 * (lane % 4) + within;
  return row_address(c, r, (uint32_t)(ROWS * matrix) + row, warp) + byte;
}

static void check_element(const case_t *c, int r, int matrix, uint32_t lane, uint32_t warp, int i) {
  int reg = r | (c->m.swapped ? (i & 1) << 1 | i >> 1 : i);
  for (int b = 0; b < c->m.matrix_bits; b++)
    reg |= (matrix >> b & 1) << c->m.matrix[b];
  uint32_t byte = received(c, r, matrix, lane, warp, i);
  uint32_t got = tw_layout_image(c->shared, TW_OFFSET, byte / (uint32_t)c->elem_bytes);
  uint32_t want = tw_layout_apply(c->tile, (uint32_t)reg, lane, warp);
  CHECK(got == want, "register %d lane %u warp %u: got %u, want %u", reg, lane, warp, got, want);
}

static void check_banks(const case_t *c, int r, int matrix) {
  uint32_t seen = 0;
  for (uint32_t i = 0; i < ROWS; i++) {
    uint32_t address = row_address(c, r, (uint32_t)(ROWS * matrix) + i, 0);
    CHECK(address % ROW == 0, "row at %u", address);
    seen |= UINT32_C(1) << address / ROW % ROWS;
  }
  CHECK(seen == 0xFF, "rows meet in banks: %02x", seen);
}

static void play(case_t *c) {
  int within = (1 << c->m.pack_bits) - 1, copies = tw_ldmatrix_copy_bits(c->tile, &c->m);
  for (int b = 0; b < c->m.matrix_bits; b++)
    within |= 1 << c->m.matrix[b];
  for (int r = 0; r < tw_layout_count(c->tile, TW_REGISTER); r++) {
    if (r & (within | copies))
      continue;
    for (int matrix = 0; matrix < 1 << c->m.matrix_bits; matrix++) {
      check_banks(c, r, matrix);
      for (uint32_t warp = 0; warp < (uint32_t)tw_layout_count(c->tile, TW_WARP); warp++)
        for (uint32_t lane = 0; lane < LANES; lane++)
          for (int i = 0; i < 1 << c->m.pack_bits; i++)
            check_element(c, r, matrix, lane, warp, i);
    }
  }
}

static void check_operand(int operand, const int64_t *shape, int inner, int elem_bits, int warps_m, int warps_n) {
  int order[] = {inner, 1 - inner};
  tw_layout_t tile = tw_layout_dot_operand(2, shape, operand, elem_bits, warps_m, warps_n);
  tw_layout_t shared = tw_shared_swizzled(2, shape, order, elem_bits, 128);
  case_t c = {&tile, &shared, elem_bits / 8, {0}};
  int k = operand == 0 ? 1 : 0;
  bool expected = inner == k || elem_bits == 16;
  bool found = tw_ldmatrix_match(&tile, &shared, c.elem_bytes, &c.m);
  CHECK(found == expected, "operand %d of %lldx%lld, %d bits, inner %d", operand, (long long)shape[0],
        (long long)shape[1], elem_bits, inner);
  if (!found)
    return;
  matched++;
  CHECK(c.m.trans == (inner != k), "operand %d, inner %d", operand, inner);
  CHECK(c.m.matrix_bits == 2, "%d matrix bits", c.m.matrix_bits);
  play(&c);
}

/* The next of each 16 rows in place of each: where a product's left operand has row 8, this has row 1. */
static void pair_rows(tw_layout_t *tile) {
  enum { ROWS_OF_WARP = 16 };
  int shift = tw_layout_dim_shift(tile, 0);
  for (int g = TW_REGISTER; g <= TW_WARP; g++)
    for (int i = 0; i < tile->bits[g]; i++) {
      uint32_t row = tile->basis[g][i] >> shift, turned = row % ROWS_OF_WARP * 2;
      if (row != 0 && row < ROWS_OF_WARP)
        tile->basis[g][i] = (turned % ROWS_OF_WARP + turned / ROWS_OF_WARP) << shift;
    }
}

/* Bytes that lie along the rows of a left operand of 16 bits, in either order within a word. */
static void check_bytes(const int64_t *shape, int warps_m, bool swapped) {
  int order[] = {0, 1};
  tw_layout_t tile = tw_layout_dot_operand(2, shape, 0, 16, warps_m, 1);
  tw_layout_t shared = tw_shared_swizzled(2, shape, order, 8, 128);
  case_t c = {&tile, &shared, 1, {0}};
  CHECK(!tw_ldmatrix_match(&tile, &shared, 1, &c.m), "rows that are no neighbours");
  pair_rows(&tile);
  if (!swapped) {
    uint32_t first = tile.basis[TW_REGISTER][0];
    tile.basis[TW_REGISTER][0] = tile.basis[TW_REGISTER][1];
    tile.basis[TW_REGISTER][1] = first;
  }
  bool found = tw_ldmatrix_match(&tile, &shared, 1, &c.m);
  CHECK(found && c.m.trans && c.m.swapped == swapped, "bytes of %lldx%lld", (long long)shape[0], (long long)shape[1]);
  if (found)
    play(&c);
}

int main(void) {
  static const int64_t shapes[][2] = {{128, 64}, {64, 128}, {64, 64}, {128, 128}, {32, 64}, {64, 32}, {256, 64}};
  static const int warps[][2] = {{1, 1}, {2, 2}, {4, 1}, {1, 4}, {4, 2}, {8, 1}};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (size_t w = 0; w < sizeof warps / sizeof *warps; w++)
      for (int operand = 0; operand < 2; operand++)
        for (int inner = 0; inner < 2; inner++)
          for (int bits = 8; bits <= 32; bits *= 2)
            check_operand(operand, shapes[s], inner, bits, warps[w][0], warps[w][1]);
  for (int i = 0; i < 4; i++)
    check_bytes(shapes[i % 2 * 3], i < 2 ? 4 : 8, i % 2 != 0);
  CHECK(matched > 300, "%d matched", matched);
  if (failures == 0)
    printf("ldmatrix: %d pairs of layouts\n", matched);
  return failures != 0;
}

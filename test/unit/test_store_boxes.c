/* Takes the tiles of warpgroups apart into boxes, and puts them together again: every element is in one box, at the
 * place that the tile's layout says. */
#include "lowering/gpu/machine/store_boxes.h"

#include "check.h"

#include <string.h>

static void push(tw_layout_t *l, tw_input_t input, int dim, int bit) {
  tw_layout_push(l, input, UINT32_C(1) << (tw_layout_dim_shift(l, dim) + bit));
}

/* The accumulator of wgmma, with two groups along rows or columns, or one. */
static tw_layout_t accumulator(int64_t rows, int64_t columns, int groups_m, int groups_n) {
  int64_t shape[] = {rows, columns};
  tw_layout_t l = tw_layout_empty(2, shape);
  push(&l, TW_REGISTER, 1, 0);
  push(&l, TW_REGISTER, 0, 3);
  for (int bit = 3; bit < tw_log2(columns / groups_n); bit++)
    push(&l, TW_REGISTER, 1, bit);
  for (int bit = 6; bit < tw_log2(rows / groups_m); bit++)
    push(&l, TW_REGISTER, 0, bit);
  for (int bit = 1; bit < 3; bit++)
    push(&l, TW_LANE, 1, bit);
  for (int bit = 0; bit < 3; bit++)
    push(&l, TW_LANE, 0, bit);
  push(&l, TW_WARP, 0, 4);
  push(&l, TW_WARP, 0, 5);
  if (groups_m == 2)
    push(&l, TW_WARP, 0, l.log_shape[0] - 1);
  if (groups_n == 2)
    push(&l, TW_WARP, 1, l.log_shape[1] - 1);
  return l;
}

/* Element of the tile at register `r` of box `number`, by way of the box. */
static uint32_t by_box(const tw_layout_t *tile, const tw_store_boxes_t *b, int number, int r, uint32_t lane,
                       uint32_t warp) {
  uint32_t at = tw_store_boxes_start(b, number), coord[TW_LAYOUT_MAX_RANK];
  uint32_t within = tw_layout_apply(&b->box, (uint32_t)r, lane, warp);
  for (int i = 0; i < b->group_bits; i++)
    at |= warp >> (TW_STORE_GROUP_WARP_BITS + i) & 1 ? b->group[i] : 0;
  for (int d = 0; d < tile->rank; d++)
    coord[d] = tw_layout_coord(tile, at, d) + tw_layout_coord(&b->box, within, d);
  return tw_layout_flat(tile, coord);
}

static void check(const char *name, tw_layout_t tile, int elem_bits, int64_t rows, int64_t columns, int num_boxes) {
  static unsigned char seen[256 * 256];
  tw_store_boxes_t b;
  CHECK(tw_store_boxes_of(&tile, 1, elem_bits, &b), "%s", name);
  CHECK(b.shape[0] == rows && b.shape[1] == columns, "%s: %d x %d", name, (int)b.shape[0], (int)b.shape[1]);
  CHECK(1 << b.num_outside == num_boxes, "%s: %d boxes", name, 1 << b.num_outside);
  memset(seen, 0, sizeof seen);
  for (int number = 0; number < 1 << b.num_outside; number++)
    for (int r = 0; r < tw_layout_count(&b.box, TW_REGISTER); r++)
      for (uint32_t warp = 0; warp < UINT32_C(1) << tile.bits[TW_WARP]; warp++)
        for (uint32_t lane = 0; lane < 32; lane++) {
          uint32_t want = tw_layout_apply(&tile, (uint32_t)tw_store_boxes_register(&b, number, r), lane, warp);
          CHECK(by_box(&tile, &b, number, r, lane, warp) == want, "%s: box %d, register %d", name, number, r);
          CHECK(seen[want]++ == 0, "%s: element %u twice", name, want);
        }
}

int main(void) {
  tw_store_boxes_t b;
  check("128x256 bf16, groups below each other", accumulator(128, 256, 2, 1), 16, 64, 64, 4);
  check("256x128 bf16, two products a group", accumulator(256, 128, 2, 1), 16, 64, 64, 4);
  check("64x256 bf16, groups beside each other", accumulator(64, 256, 1, 2), 16, 64, 64, 2);
  check("64x64 bf16", accumulator(64, 64, 1, 1), 16, 64, 64, 1);
  check("64x32 bf16, short lines", accumulator(64, 32, 1, 1), 16, 64, 32, 1);
  check("128x128 f32", accumulator(128, 128, 2, 1), 32, 64, 32, 4);
  check("64x128 fp8", accumulator(64, 128, 1, 1), 8, 64, 128, 1);
  tw_layout_t twice = accumulator(64, 64, 1, 1);
  tw_layout_push(&twice, TW_WARP, 0); /* two groups hold the same */
  CHECK(!tw_store_boxes_of(&twice, 1, 16, &b), "copies");
  tw_layout_t skewed = accumulator(64, 64, 1, 1);
  skewed.basis[TW_REGISTER][2] |= 1; /* a column and the next at once */
  CHECK(!tw_store_boxes_of(&skewed, 1, 16, &b), "skewed");
  tw_layout_t two_warps = accumulator(64, 64, 1, 1);
  two_warps.bits[TW_WARP] = 1;
  CHECK(!tw_store_boxes_of(&two_warps, 1, 16, &b), "two warps");
  return failures != 0;
}

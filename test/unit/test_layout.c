/* Unit and property tests of the linear-layout library: constructors against hand-computed owners,
 * algebra against exhaustive evaluation on small tiles and on random layouts. */
#include "lowering/layout/layout.h"

#include "check.h"
#include "random.h"

#include <stdlib.h>
#include <string.h>

static uint32_t at2(const tw_layout_t *l, uint32_t i, uint32_t j) { return tw_layout_flat(l, (uint32_t[]){i, j}); }

/* Every element has an owner, found by walking all positions; and the text reads back. */
static void check_sound(const tw_layout_t *l, const char *what) {
  uint32_t n = UINT32_C(1) << tw_layout_size_bits(l);
  unsigned char *seen = calloc(n, 1);
  for (int r = 0; r < tw_layout_count(l, TW_REGISTER); r++)
    for (int t = 0; t < tw_layout_count(l, TW_LANE); t++)
      for (int w = 0; w < tw_layout_count(l, TW_WARP); w++)
        for (int o = 0; o < tw_layout_count(l, TW_OFFSET); o++)
          seen[tw_layout_apply(l, (uint32_t)r, (uint32_t)t, (uint32_t)w) ^ tw_layout_image(l, TW_OFFSET, (uint32_t)o)] =
              1;
  uint32_t owned = 0;
  for (uint32_t i = 0; i < n; i++)
    owned += seen[i];
  CHECK(owned == n, "%s: %u of %u elements owned", what, owned, n);
  CHECK(tw_layout_is_onto(l) == (owned == n), "%s", what);
  free(seen);
  char text[8192];
  int64_t shape[TW_LAYOUT_MAX_RANK];
  tw_layout_t back;
  const char *error;
  for (int d = 0; d < l->rank; d++)
    shape[d] = tw_layout_extent(l, d);
  CHECK(tw_layout_print(l, text, sizeof text) <= sizeof text, "%s", what);
  CHECK(tw_layout_parse(text, l->rank, shape, &back, &error), "%s: %s: %s", what, text, error);
  CHECK(tw_layout_equal(l, &back), "%s: %s", what, text);
}

static void test_blocked(void) {
  int64_t shape[2] = {16, 32};
  tw_layout_t l = tw_layout_blocked(2, shape, (int[]){1, 4}, (int[]){4, 8}, (int[]){2, 1}, (int[]){1, 0});
  check_sound(&l, "blocked");
  CHECK(tw_layout_count(&l, TW_REGISTER) == 8, "%d", tw_layout_count(&l, TW_REGISTER));
  CHECK(tw_layout_apply(&l, 3, 0, 0) == at2(&l, 0, 3), "vector");
  CHECK(tw_layout_apply(&l, 0, 7, 0) == at2(&l, 0, 28), "lane along the row");
  CHECK(tw_layout_apply(&l, 0, 8, 0) == at2(&l, 1, 0), "lane down the column");
  CHECK(tw_layout_apply(&l, 0, 0, 1) == at2(&l, 4, 0), "warp");
  CHECK(tw_layout_apply(&l, 4, 0, 0) == at2(&l, 8, 0), "what is left repeats in registers");
  /* a tile smaller than the block of threads replicates */
  int64_t small[1] = {8};
  l = tw_layout_coalesced(1, small, 4, 4, (int[]){0});
  check_sound(&l, "replicated");
  CHECK(tw_layout_apply(&l, 0, 2, 3) == 0, "lane 2 of warp 3 has a copy of element 0");
  CHECK(!tw_layout_is_injective(&l), "replicated layouts are not injective");
}

/* PTX ISA: accumulator c_i of m16n8: row = lane/4 + 8*(i/2), column = 2*(lane%4) + i%2. */
static void test_mma(void) {
  int64_t acc[2] = {16, 8}, a16[2] = {16, 16}, b16[2] = {16, 8}, a8[2] = {16, 32}, a32[2] = {16, 8};
  tw_layout_t c = tw_layout_mma_acc(2, acc, 1, 1), a = tw_layout_dot_operand(2, a16, 0, 16, 1, 1);
  tw_layout_t b = tw_layout_dot_operand(2, b16, 1, 16, 1, 1);
  tw_layout_t e = tw_layout_dot_operand(2, a8, 0, 8, 1, 1);
  tw_layout_t t = tw_layout_dot_operand(2, a32, 0, 32, 1, 1);
  for (uint32_t lane = 0; lane < 32; lane++) {
    uint32_t g = lane / 4, q = lane % 4;
    for (uint32_t i = 0; i < 4; i++)
      CHECK(tw_layout_apply(&c, i, lane, 0) == at2(&c, g + 8 * (i / 2), 2 * q + i % 2), "c%u", i);
    for (uint32_t i = 0; i < 8; i++)
      CHECK(tw_layout_apply(&a, i, lane, 0) == at2(&a, g + 8 * (i / 2 % 2), 2 * q + i % 2 + 8 * (i / 4)), "a%u", i);
    for (uint32_t i = 0; i < 4; i++)
      CHECK(tw_layout_apply(&b, i, lane, 0) == at2(&b, 2 * q + i % 2 + 8 * (i / 2), g), "b%u", i);
    for (uint32_t i = 0; i < 16; i++)
      CHECK(tw_layout_apply(&e, i, lane, 0) == at2(&e, g + 8 * (i / 4 % 2), 4 * q + i % 4 + 16 * (i / 8)), "8-bit a%u",
            i);
    for (uint32_t i = 0; i < 4; i++)
      CHECK(tw_layout_apply(&t, i, lane, 0) == at2(&t, g + 8 * (i % 2), q + 4 * (i / 2)), "tf32 %u", i);
  }
  /* a product that feeds another one: the accumulator is the next A operand, register by register */
  int64_t p[2] = {128, 64};
  c = tw_layout_mma_acc(2, p, 4, 1);
  a = tw_layout_dot_operand(2, p, 0, 16, 4, 1);
  check_sound(&c, "accumulator");
  check_sound(&a, "operand");
  CHECK(tw_layout_classify(&c, &a) <= TW_CONVERT_REGISTER, "class %d", tw_layout_classify(&c, &a));
  /* operands of a split along n replicate over those warps */
  a = tw_layout_dot_operand(2, p, 0, 16, 2, 2);
  check_sound(&a, "split operand");
  CHECK(tw_layout_apply(&a, 5, 9, 0) == tw_layout_apply(&a, 5, 9, 2), "warps along n share A");
}

static tw_layout_t random_layout(int rank, const int64_t *shape, int warps) {
  tw_layout_t l = tw_layout_empty(rank, shape);
  int n = tw_layout_size_bits(&l);
  uint32_t basis[32];
  for (int i = 0; i < n; i++)
    basis[i] = UINT32_C(1) << i;
  for (int i = 0; i < 3 * n; i++) { /* random invertible matrix by row operations */
    uint32_t a = random_below(n), b = random_below(n);
    if (a == b)
      continue;
    if (random_below(3) == 0) {
      basis[a] ^= basis[b];
    } else {
      uint32_t t = basis[a];
      basis[a] = basis[b];
      basis[b] = t;
    }
  }
  int next = 0;
  for (int i = 0; i < 5; i++)
    tw_layout_push(&l, TW_LANE, next < n && random_below(8) != 0 ? basis[next++] : 0);
  for (int i = 0; i < warps; i++)
    tw_layout_push(&l, TW_WARP, next < n && random_below(8) != 0 ? basis[next++] : 0);
  while (next < n)
    tw_layout_push(&l, TW_REGISTER, basis[next++]);
  return l;
}

/* The position that a conversion names holds the element wanted; its class tells the truth. */
static void check_conversion(const tw_layout_t *from, const tw_layout_t *to) {
  tw_conversion_t c;
  bool same_thread = true, same_warp = true;
  CHECK(tw_layout_conversion(from, to, &c), "a layout that is onto reaches every element");
  for (uint32_t r = 0; r < (uint32_t)tw_layout_count(to, TW_REGISTER); r++)
    for (uint32_t t = 0; t < 32; t++)
      for (uint32_t w = 0; w < (uint32_t)tw_layout_count(to, TW_WARP); w++) {
        tw_position_t p = tw_conversion_apply(&c, r, t, w);
        same_warp &= p.at[TW_WARP] == w;
        same_thread &= p.at[TW_WARP] == w && p.at[TW_LANE] == t;
        CHECK(tw_layout_apply(from, p.at[TW_REGISTER], p.at[TW_LANE], p.at[TW_WARP]) == tw_layout_apply(to, r, t, w),
              "at %u %u %u", r, t, w);
      }
  tw_conversion_class_t k = tw_layout_classify(from, to);
  CHECK((k <= TW_CONVERT_SELECT) == same_thread, "class %d", k);
  CHECK((k <= TW_CONVERT_SHUFFLE) == same_warp, "class %d", k);
}

static void test_conversions(void) {
  int64_t shape[2] = {16, 32};
  for (int i = 0; i < 200; i++) {
    tw_layout_t a = random_layout(2, shape, 2), b = random_layout(2, shape, 2);
    check_sound(&a, "random");
    check_conversion(&a, &b);
    check_conversion(&a, &a);
    CHECK(tw_layout_classify(&a, &a) == TW_CONVERT_NONE, "identity");
    /* same lanes and warps, registers mixed: always a renaming */
    tw_layout_t c = a;
    if (c.bits[TW_REGISTER] >= 2) {
      c.basis[TW_REGISTER][0] ^= c.basis[TW_REGISTER][1];
      CHECK(tw_layout_classify(&a, &c) == TW_CONVERT_REGISTER, "registers mixed");
      check_conversion(&a, &c);
    }
    tw_inverse_t inv;
    CHECK(tw_layout_invert(&a, &inv), "invertible");
    for (uint32_t x = 0; x < 512; x++) {
      tw_position_t p = tw_inverse_apply(&inv, x);
      CHECK(tw_layout_apply(&a, p.at[0], p.at[1], p.at[2]) == x, "inverse of %u", x);
    }
  }
}

static void test_transfer(void) {
  int64_t shape[3] = {4, 16, 8};
  for (int i = 0; i < 100; i++) {
    tw_layout_t l = random_layout(3, shape, 2);
    int perm[3] = {2, 0, 1};
    tw_layout_t p = tw_layout_permute(&l, perm), back = tw_layout_unpermute(&p, perm);
    CHECK(tw_layout_equal(&back, &l), "unpermute undoes permute");
    for (uint32_t r = 0; r < (uint32_t)tw_layout_count(&l, TW_REGISTER); r++)
      for (uint32_t t = 0; t < 32; t++) {
        uint32_t x = tw_layout_apply(&l, r, t, 1), y = tw_layout_apply(&p, r, t, 1);
        for (int d = 0; d < 3; d++)
          CHECK(tw_layout_coord(&p, y, d) == tw_layout_coord(&l, x, perm[d]), "permute");
      }
    tw_layout_t s = tw_layout_slice(&l, 1, false);
    check_sound(&s, "slice");
    CHECK(s.rank == 2 && tw_layout_extent(&s, 1) == 8, "slice drops the dimension");
    s = tw_layout_slice(&l, 1, true);
    CHECK(s.rank == 3 && tw_layout_extent(&s, 1) == 1, "slice keeps the dimension");
    tw_layout_t b = tw_layout_broadcast(&s, shape),
                u = tw_layout_unbroadcast(&b, s.rank ? (int64_t[]){4, 1, 8} : shape);
    check_sound(&b, "broadcast");
    CHECK(tw_layout_classify(&s, &u) <= TW_CONVERT_REGISTER, "broadcast keeps the owners");
    int64_t flat[1] = {512};
    tw_layout_t f = tw_layout_reshape(&l, 1, flat);
    check_sound(&f, "reshape");
    CHECK(tw_layout_apply(&f, 3, 5, 2) == tw_layout_apply(&l, 3, 5, 2), "row-major order");
  }
}

static void test_vectors(void) {
  int64_t shape[2] = {32, 64};
  int regs[TW_LAYOUT_MAX_BITS];
  tw_layout_t l = tw_layout_coalesced(2, shape, 8, 4, (int[]){1, 0});
  CHECK(tw_layout_vector_bits(&l, 1, 3, regs) == 3, "eight columns");
  CHECK(tw_layout_vector_bits(&l, 0, 3, regs) == 0, "no two rows");
  l.basis[TW_LANE][0] |= 2;
  CHECK(tw_layout_vector_bits(&l, 1, 3, regs) == 1, "a lane that starts inside a vector");
}

static void test_shared(void) {
  int64_t shape[2] = {64, 64};
  int order[2] = {1, 0}, vector;
  tw_layout_t s = tw_shared_swizzled(2, shape, order, 16, 128);
  check_sound(&s, "swizzled");
  for (uint32_t row = 0; row < 64; row++)
    for (uint32_t chunk = 0; chunk < 8; chunk++) {
      uint32_t offset = row * 64 + (chunk ^ (row & 7)) * 8;
      CHECK(tw_layout_image(&s, TW_OFFSET, offset) == at2(&s, row, chunk * 8), "%u %u", row, chunk);
    }
  /* ldmatrix reads 8 rows of 16 bytes: free of conflicts with the swizzle, 8 passes without */
  tw_layout_t rows = tw_layout_empty(2, shape);
  for (int i = 0; i < 3; i++)
    tw_layout_push(&rows, TW_REGISTER, UINT32_C(1) << i);
  for (int i = 0; i < 5; i++)
    tw_layout_push(&rows, TW_LANE, UINT32_C(64) << i);
  tw_layout_t plain = tw_shared_rowmajor(2, shape, order);
  CHECK(tw_shared_conflicts(&s, &rows, 16, 3) == 1, "%d", tw_shared_conflicts(&s, &rows, 16, 3));
  CHECK(tw_shared_conflicts(&plain, &rows, 16, 3) == 8, "plain rows conflict");
  /* derived: a transpose of 32-bit elements, written along rows and read along columns */
  tw_layout_t w = tw_layout_coalesced(2, shape, 1, 4, (int[]){1, 0});
  tw_layout_t r = tw_layout_coalesced(2, shape, 1, 4, (int[]){0, 1});
  s = tw_shared_for(&w, &r, 32, &vector);
  check_sound(&s, "derived");
  CHECK(vector == 0, "%d", vector);
  CHECK(tw_shared_conflicts(&s, &w, 32, 0) == 1, "write");
  CHECK(tw_shared_conflicts(&s, &r, 32, 0) == 1, "read");
  /* accumulator to coalesced rows */
  int64_t tile[2] = {128, 128};
  w = tw_layout_mma_acc(2, tile, 2, 2);
  r = tw_layout_coalesced(2, tile, 4, 4, order);
  s = tw_shared_for(&w, &r, 32, &vector);
  check_sound(&s, "derived");
  CHECK(vector == 2, "%d", vector); /* two columns by two rows that both sides hold */
  CHECK(tw_shared_conflicts(&s, &w, 32, vector) == 1, "%d", tw_shared_conflicts(&s, &w, 32, vector));
  CHECK(tw_shared_conflicts(&s, &r, 32, vector) == 1, "%d", tw_shared_conflicts(&s, &r, 32, vector));
  for (int i = 0; i < 100; i++) {
    tw_layout_t x = random_layout(2, shape, 2), y = random_layout(2, shape, 2);
    s = tw_shared_for(&x, &y, 16, &vector);
    int regs[TW_LAYOUT_MAX_BITS];
    tw_inverse_t inv;
    CHECK(tw_layout_invert(&s, &inv), "a buffer holds every element once");
    CHECK(tw_shared_vector_bits(&s, &x, 3, regs) >= 0, "vector");
  }
}

static void test_text(void) {
  int64_t shape[2] = {8, 8};
  const char *error;
  tw_layout_t l;
  CHECK(!tw_layout_parse("lane = [[0, 8]]", 2, shape, &l, &error), "outside of the tile");
  CHECK(!tw_layout_parse("lane = [[0]]", 2, shape, &l, &error), "one coordinate missing");
  CHECK(!tw_layout_parse("thread = [[0, 1]]", 2, shape, &l, &error), "unknown group");
  CHECK(!tw_layout_parse("lane = [[0, 1]", 2, shape, &l, &error), "no end");
  CHECK(tw_layout_parse(" lane=[[0,1],[1,0]] , warp = []", 2, shape, &l, &error), "%s", error);
  CHECK(l.bits[TW_LANE] == 2 && l.basis[TW_LANE][1] == 8, "read");
}

int main(void) {
  test_blocked();
  test_mma();
  test_conversions();
  test_transfer();
  test_vectors();
  test_shared();
  test_text();
  if (failures == 0)
    puts("layout: all tests passed");
  return failures != 0;
}

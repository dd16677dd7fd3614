/* Property tests of what layouts cost: the counts against walks over every lane and register of random layouts. */
#include "check.h"
#include "lowering/layout/cost.h"
#include "random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const tw_machine_t machine = {
    .shuffle_slots = 4, .bank_slots = 4, .line_slots = 12, .sector_slots = 1, .barrier_slots = 120};

enum {
  RANK = 2,
  ROW_BITS = 5,
  COLUMN_BITS = 7,
  BITS = ROW_BITS + COLUMN_BITS,
  PIECES = 1 << 12 /* more than a row has */
};

static const int64_t shape[RANK] = {1 << ROW_BITS, 1 << COLUMN_BITS};

/* Five lane bits, two warp bits, registers for the rest: in a random order of the tile's bits, some of them mixed. */
static tw_layout_t random_layout(int replicated) {
  tw_layout_t l = tw_layout_empty(RANK, shape);
  uint32_t image[BITS];
  for (int i = 0; i < BITS; i++)
    image[i] = UINT32_C(1) << i;
  for (int i = BITS - 1; i > 0; i--) {
    int j = random_below(i + 1);
    uint32_t swapped = image[i];
    image[i] = image[j];
    image[j] = swapped;
  }
  for (int i = 0; i < 2; i++) {
    int from = random_below(BITS), to = random_below(BITS);
    if (from != to)
      image[to] ^= image[from];
  }
  for (int i = 0; i < BITS; i++)
    tw_layout_push(&l, i < 5 ? TW_LANE : i < 7 ? TW_WARP : TW_REGISTER, image[i]);
  for (int i = 0; i < replicated; i++)
    tw_layout_push(&l, TW_REGISTER, 0);
  return l;
}

static int distinct(const uint32_t *values, int n) {
  int count = 0;
  for (int i = 0; i < n; i++) {
    int k = 0;
    while (k < i && values[k] != values[i])
      k++;
    count += k == i;
  }
  return count;
}

/* Sectors and lines of a warp's access, for each register: the algebra counts them from the lanes alone. */
static void test_pieces(void) {
  for (int round = 0; round < 200; round++) {
    tw_layout_t l = random_layout(0);
    int elem_bits = 8 << random_below(4), dim = random_below(3) - 1;
    for (int piece_bits = TW_SECTOR_BITS; piece_bits <= TW_LINE_BITS; piece_bits *= 4)
      for (int r = 0; r < tw_layout_count(&l, TW_REGISTER); r++) {
        uint32_t piece[32];
        for (uint32_t lane = 0; lane < 32; lane++) {
          uint32_t flat = tw_layout_apply(&l, (uint32_t)r, lane, 0);
          uint32_t along = dim < 0 ? 0 : tw_layout_coord(&l, flat, dim);
          uint32_t rest = dim < 0 ? flat : flat & ~tw_layout_dim_mask(&l, dim);
          piece[lane] = rest * PIECES + along * (uint32_t)elem_bits / (uint32_t)piece_bits;
        }
        int found = tw_access_pieces(&l, dim, elem_bits, piece_bits);
        CHECK(found == distinct(piece, 32), "%d bits along %d: %d, %d", elem_bits, dim, found, distinct(piece, 32));
      }
  }
}

/* A copy of a register costs nothing; wider vectors and whole lines cost less. */
static void test_accesses(void) {
  for (int round = 0; round < 100; round++) {
    tw_layout_t l = random_layout(0), copies = l;
    tw_layout_push(&copies, TW_REGISTER, 0);
    int64_t before = -1;
    for (int vector = 3; vector >= 0; vector--) {
      int64_t slots = tw_access_slots(&machine, &l, 1, vector, 16);
      CHECK(slots == tw_access_slots(&machine, &copies, 1, vector, 16), "copies");
      CHECK(slots >= before, "narrower vectors: %lld after %lld", (long long)slots, (long long)before);
      before = slots;
    }
    int64_t coalesced[] = {1 << ROW_BITS, 1 << COLUMN_BITS};
    tw_layout_t best = tw_layout_coalesced(RANK, coalesced, 8, 4, (int[]){1, 0});
    CHECK(tw_access_slots(&machine, &best, 1, 3, 16) <= tw_access_slots(&machine, &l, 1, 3, 16), "coalesced");
  }
}

/* Of a row in shared memory each element costs the same, as long as lanes have a word each at the most. */
static void test_rows(void) {
  int64_t slots[5];
  for (int run = 0; run < 5; run++) { /* 2^run neighbours in a thread */
    int64_t shape[] = {4096};
    tw_layout_t l = tw_layout_empty(1, shape);
    for (int bit = 0; bit < 12; bit++)
      tw_layout_push(&l, bit < run || bit >= run + 7 ? TW_REGISTER : bit < run + 5 ? TW_LANE : TW_WARP, 1U << bit);
    slots[run] = tw_row_slots(&machine, &l, 0, 0, 16);
    CHECK(run < 2 || slots[run] > slots[run - 1], "%d: %lld", run, (long long)slots[run]);
  }
  CHECK(slots[0] == slots[1], "%lld, %lld", (long long)slots[0], (long long)slots[1]);
}

/* Nothing where a thread has what it needs, and where it has not, at least the instructions that bring it. */
static void test_conversions(void) {
  for (int round = 0; round < 300; round++) {
    tw_layout_t from = random_layout(random_below(2)), to = random_layout(0);
    if (random_below(2)) { /* the same lanes and warps, other registers */
      to = from;
      for (int i = from.bits[TW_REGISTER] - 1; i > 0; i--) {
        int j = random_below(i + 1);
        uint32_t image = to.basis[TW_REGISTER][i];
        to.basis[TW_REGISTER][i] = to.basis[TW_REGISTER][j];
        to.basis[TW_REGISTER][j] = image;
      }
    }
    int elem_bits = 8 << random_below(4);
    int64_t slots = tw_conversion_slots(&machine, &from, &to, elem_bits);
    tw_conversion_class_t kind = tw_layout_classify(&from, &to);
    CHECK((slots == 0) == (kind <= TW_CONVERT_REGISTER), "class %d, %lld slots", kind, (long long)slots);
    if (!tw_converts_through_shared(&from, &to))
      continue;
    int vector;
    tw_layout_t shared = tw_shared_for(&from, &to, elem_bits, &vector);
    const tw_layout_t *sides[] = {&from, &to};
    for (int s = 0; s < 2; s++) {
      int64_t least = (int64_t)tw_layout_own_registers(sides[s]) * 32 * elem_bits / 8 / 128 * machine.bank_slots;
      int64_t passes = tw_shared_access_slots(&machine, &shared, sides[s], elem_bits);
      CHECK(passes >= least, "%lld passes of at least %lld", (long long)passes, (long long)least);
      slots -= passes;
    }
    CHECK(slots == 2 * machine.barrier_slots, "%lld", (long long)slots);
  }
}

/* Where an axis lies in registers a reduction takes no shuffle, in lanes no barrier. */
static void test_reductions(void) {
  int64_t square[] = {1 << ROW_BITS, 1 << COLUMN_BITS};
  tw_layout_t lanes = tw_layout_blocked(RANK, square, (int[]){1, 4}, (int[]){1, 32}, (int[]){4, 1}, (int[]){1, 0});
  tw_layout_t warps = tw_layout_blocked(RANK, square, (int[]){1, 1}, (int[]){1, 32}, (int[]){1, 4}, (int[]){1, 0});
  int64_t registers = tw_layout_own_registers(&lanes);
  CHECK(registers == 32, "%lld", (long long)registers);
  CHECK(tw_reduction_slots(&machine, &lanes, 1) == registers + 8 * 5 * (machine.shuffle_slots + 1),
        "eight rows of five butterflies");
  CHECK(tw_reduction_slots(&machine, &warps, 1) > 2 * machine.barrier_slots, "waits");
  CHECK(tw_scan_slots(&machine, &lanes, 1) >= tw_reduction_slots(&machine, &lanes, 1),
        "a scan does all that, and keeps it");
}

int main(void) {
  test_pieces();
  test_accesses();
  test_rows();
  test_conversions();
  test_reductions();
  if (failures)
    fprintf(stderr, "%d failures\n", failures);
  return failures != 0;
}

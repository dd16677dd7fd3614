/* test_runtime_array.c - arrays as kernels see them: checks, facts, words, and the status object */
#include "tilewright/runtime.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Alignas(128) char memory[4096];

static tw_dl_tensor_t tensor(int rank, int64_t *shape, int64_t *strides) {
  return (tw_dl_tensor_t){
      .data = memory, .device = {TW_DL_CPU, 0}, .rank = rank, .dtype = {2, 32, 1}, .shape = shape, .strides = strides};
}

static void expect_error(tw_status_t status, tw_code_t code, const char *part) {
  assert(status && tw_status_code(status) == code);
  if (!strstr(tw_status_message(status), part)) {
    fprintf(stderr, "no \"%s\" in \"%s\"\n", part, tw_status_message(status));
    abort();
  }
  tw_status_free(status);
}

static void test_good(void) {
  int64_t shape[2] = {32, 48}, strides[2] = {48, 1};
  tw_dl_tensor_t t = tensor(2, shape, strides);
  tw_array_t a, compact;
  assert(!tw_array_from_dlpack(&t, 0, &a));
  uint64_t facts = tw_array_facts(&a);
  assert((facts & 255) == TW_DTYPE_FLOAT32 && (facts >> 8 & 15) == 2);
  assert(facts & TW_FACT_ALIGNED && facts & TW_FACT_WRITABLE && !(facts & TW_FACT_OVERLAP));
  assert((facts >> TW_FACT_DIM & 7) == (TW_FACT_STRIDE_DIV | TW_FACT_SHAPE_DIV));
  assert((facts >> (TW_FACT_DIM + 3) & 7) == (TW_FACT_STRIDE_ONE | TW_FACT_SHAPE_DIV));
  uint64_t words[5];
  assert(tw_array_pack(&a, words) == 5);
  assert(words[0] == (uintptr_t)memory && words[1] == 32 && words[2] == 48 && words[3] == 48 && words[4] == 1);
  assert(facts & TW_FACT_STRIDES_4 && facts & TW_FACT_STRIDES_8);
  t.strides = NULL;
  assert(!tw_array_from_dlpack(&t, 0, &compact) && tw_array_facts(&compact) == facts);
  t.byte_offset = 4;
  assert(!tw_array_from_dlpack(&t, TW_ARRAY_READ_ONLY, &a));
  assert(a.data == memory + 4);
  assert(!(tw_array_facts(&a) & (TW_FACT_ALIGNED | TW_FACT_WRITABLE)));
  t.byte_offset = 8;
  assert(!tw_array_from_dlpack(&t, 0, &a) && !(tw_array_facts(&a) & TW_FACT_ALIGNED));
}

/* What divides the strides that are not whole 16 bytes: f32, so 4 bytes always. */
static void test_strides_that_are_not_whole(void) {
  int64_t shape[3] = {2, 3, 5}, strides[3] = {60, 6, 1};
  tw_dl_tensor_t t = tensor(3, shape, strides);
  tw_array_t a;
  assert(!tw_array_from_dlpack(&t, 0, &a));
  assert((tw_array_facts(&a) & (TW_FACT_STRIDES_4 | TW_FACT_STRIDES_8)) == (TW_FACT_STRIDES_4 | TW_FACT_STRIDES_8));
  strides[1] = 7;
  assert(!tw_array_from_dlpack(&t, 0, &a));
  assert((tw_array_facts(&a) & (TW_FACT_STRIDES_4 | TW_FACT_STRIDES_8)) == TW_FACT_STRIDES_4);
}

/* Whether each row begins with a line of 128 bytes. */
static void test_strides_of_whole_lines(void) {
  int64_t shape[3] = {2, 3, 5}, strides[3] = {160, 32, 1};
  tw_dl_tensor_t t = tensor(3, shape, strides);
  tw_array_t a;
  assert(!tw_array_from_dlpack(&t, 0, &a) && tw_array_facts(&a) & TW_FACT_LINES);
  strides[0] = 164; /* whole 16 bytes */
  assert(!tw_array_from_dlpack(&t, 0, &a) && !(tw_array_facts(&a) & TW_FACT_LINES));
  shape[0] = 1;
  assert(!tw_array_from_dlpack(&t, 0, &a) && tw_array_facts(&a) & TW_FACT_LINES);
  t.byte_offset = 64;
  assert(!tw_array_from_dlpack(&t, 0, &a) && !(tw_array_facts(&a) & TW_FACT_LINES));
  t.byte_offset = 128;
  assert(!tw_array_from_dlpack(&t, 0, &a) && tw_array_facts(&a) & TW_FACT_LINES);
  t.rank = 1; /* one row: where it begins makes no other kernel */
  t.byte_offset = 64;
  strides[0] = 1;
  assert(!tw_array_from_dlpack(&t, 0, &a) && tw_array_facts(&a) & TW_FACT_LINES);
}

static void test_extent_one_and_empty(void) {
  int64_t shape[3] = {1, 7, 1}, strides[3] = {12345, 4, 999};
  tw_dl_tensor_t t = tensor(3, shape, strides);
  tw_array_t a;
  assert(!tw_array_from_dlpack(&t, 0, &a));
  assert(a.strides[0] == 0 && a.strides[1] == 4 && a.strides[2] == 1);
  assert(!(a.flags & TW_ARRAY_SELF_OVERLAP));
  strides[0] = 96; /* three lines: it spoils nothing */
  assert(!tw_array_from_dlpack(&t, 0, &a) && a.strides[0] == 96);
  shape[1] = 2147483647;
  assert(!tw_array_from_dlpack(&t, 0, &a) && a.shape[1] == 2147483647);
  assert(!(a.flags & TW_ARRAY_LONG) && !tw_array_check_extents(&a));
  shape[1] = INT64_C(2147483648);
  assert(!tw_array_from_dlpack(&t, 0, &a) && a.flags & TW_ARRAY_LONG);
  tw_status_t status = tw_array_check_extents(&a);
  assert(status && strstr(tw_status_message(status), "its extent in dimension 1 is 2147483648"));
  tw_status_free(status);
  shape[1] = 0;
  t.data = NULL;
  assert(!tw_array_from_dlpack(&t, 0, &a) && !a.data);
  assert(tw_array_facts(&a) & TW_FACT_ALIGNED);
  t = tensor(0, NULL, NULL);
  uint64_t words[1];
  assert(!tw_array_from_dlpack(&t, 0, &a) && tw_array_pack(&a, words) == 1);
}

static bool fits_map(int rank, const int64_t *shape, const int64_t *strides, int offset) {
  tw_dl_tensor_t t = tensor(rank, (int64_t *)shape, (int64_t *)strides);
  tw_array_t a;
  t.byte_offset = (uint64_t)offset;
  assert(!tw_array_from_dlpack(&t, 0, &a));
  return tw_array_facts(&a) & TW_FACT_TMA;
}

static void test_tensor_maps(void) {
  const int64_t shape[6] = {2, 3, 5, 7, 9, 11}, ones[3] = {1, 1, 1};
  assert(fits_map(1, shape, (int64_t[]){1}, 0) && fits_map(2, shape, (int64_t[]){4, 1}, 16));
  assert(fits_map(2, shape, (int64_t[]){1, 4}, 0) && fits_map(3, shape, (int64_t[]){16, 64, 1}, 0));
  assert(fits_map(5, shape, (int64_t[]){1000, 100000, 12, 1000000, 1}, 0));
  assert(!fits_map(0, NULL, NULL, 0));
  assert(!fits_map(6, shape, (int64_t[]){100000000, 1000000, 100000, 1000, 12, 1}, 0)); /* too many axes */
  assert(!fits_map(2, shape, (int64_t[]){4, 1}, 4));                                    /* an odd address */
  assert(!fits_map(2, shape, (int64_t[]){5, 1}, 0) && !fits_map(2, shape, (int64_t[]){8, 2}, 0));
  assert(!fits_map(2, shape, (int64_t[]){-4, 1}, 0) && !fits_map(2, shape, (int64_t[]){0, 1}, 0));
  assert(!fits_map(2, shape, (int64_t[]){INT64_C(1) << 37, 1}, 0));
  assert(fits_map(2, shape, (int64_t[]){(INT64_C(1) << 37) - 16, 1}, 0));
  assert(!fits_map(2, (int64_t[]){0, 4}, (int64_t[]){4, 1}, 0));
  assert(fits_map(3, (int64_t[]){1, 1, 5}, (int64_t[]){3, -7, 1}, 0)); /* strides that mean nothing */
  assert(!fits_map(2, (int64_t[]){5, 1}, (int64_t[]){1, 1}, 0) && fits_map(3, ones, ones, 0));
}

/* The short way agrees with the long one wherever it takes a tensor, and takes those that are plain. */
static void test_plain(void) {
  static const int64_t extents[] = {1, 2, 3, 8, 16, 0, -1, INT64_C(1) << 31}, odd[] = {0, -1, 5, INT64_C(1) << 38};
  static const tw_dl_dtype_t dtypes[] = {{2, 32, 1}, {4, 16, 1}, {6, 8, 1},  {10, 8, 1}, {2, 64, 1},
                                         {17, 4, 2}, {5, 64, 1}, {2, 32, 2}, {2, 24, 1}, {99, 8, 1}};
  unsigned seed = 1, taken = 0;
  enum { ROUNDS = 200000, TYPES = sizeof dtypes / sizeof *dtypes };
#define PICK(n) ((seed = seed * 1664525u + 1013904223u) >> 8) % (n)
  for (int round = 0; round < ROUNDS; round++) {
    int64_t shape[TW_MAX_RANK], strides[TW_MAX_RANK], stride = PICK(8) ? 1 : 2;
    int rank = (int)(PICK(TW_MAX_RANK + 1));
    for (int d = rank - 1; d >= 0; d--) {
      shape[d] = extents[PICK(100) ? PICK(5) : PICK(8)];
      strides[d] = PICK(20) ? stride : odd[PICK(4)];
      stride = (int64_t)((uint64_t)stride * (uint64_t)(PICK(4) ? (shape[d] + 7) / 8 * 8 : shape[d]));
    }
    tw_dl_tensor_t t = tensor(rank, shape, strides);
    t.device = (tw_dl_device_t){PICK(20) ? TW_DL_CUDA : TW_DL_CPU, 1};
    t.dtype = dtypes[PICK(4) ? PICK(5) : PICK(TYPES)];
    t.byte_offset = PICK(4) ? 0 : 1u << PICK(5);
    t.data = PICK(50) ? memory : NULL;
    uint64_t facts = 0, words[1 + 2 * TW_MAX_RANK], expected[1 + 2 * TW_MAX_RANK];
    size_t count = tw_array_pack_plain(&t, words, &facts);
    taken += count != 0;
    tw_array_t a;
    tw_status_t status = tw_array_from_dlpack(&t, 0, &a);
    assert(!(status && count));
    tw_status_free(status);
    if (!count)
      continue;
    assert(a.device_kind == TW_DEVICE_CUDA && facts == tw_array_facts(&a) && !(facts & TW_FACT_OVERLAP));
    assert(tw_array_pack(&a, expected) == count && !memcmp(words, expected, count * sizeof *words));
  }
#undef PICK
  assert(taken > ROUNDS / 4);
  int64_t many[TW_MAX_RANK] = {2, 2, 2, 2, 2, 2, 2, 2}, steps[TW_MAX_RANK] = {128, 64, 32, 16, 8, 4, 2, 1};
  int64_t shape[2] = {2147483647, 2}, strides[2] = {INT64_C(1) << 32, 1};
  uint64_t facts, words[1 + 2 * TW_MAX_RANK];
  tw_dl_tensor_t t = tensor(TW_MAX_RANK, many, steps);
  t.device.type = TW_DL_CUDA;
  assert(tw_array_pack_plain(&t, words, &facts) == 1 + 2 * TW_MAX_RANK);
  t = tensor(2, shape, strides);
  t.device.type = TW_DL_CUDA;
  assert(tw_array_pack_plain(&t, words, &facts) == 5);
  strides[0] = 1; /* two elements at one place */
  assert(!tw_array_pack_plain(&t, words, &facts));
}

/* A tensor is taken for one like the known one exactly where the short way makes the same facts of it and, but for the
 * address, the same words. */
static void test_known(void) {
  static const int64_t extents[] = {1, 2, 3, 16, 32};
  static const tw_dl_dtype_t dtypes[] = {{2, 32, 1}, {0, 32, 1}, {4, 16, 1}, {6, 8, 1}};
  unsigned seed = 1, taken = 0, refused = 0;
  uint64_t facts, words[1 + 2 * TW_MAX_RANK], again[1 + 2 * TW_MAX_RANK];
  tw_known_array_t known = {0};
  tw_dl_tensor_t last = {0};
#define PICK(n) ((seed = seed * 1664525u + 1013904223u) >> 8) % (n)
  for (int round = 0; round < 100000; round++) {
    int64_t shape[TW_MAX_RANK], strides[TW_MAX_RANK], stride = 1;
    int rank = (int)(PICK(4));
    for (int d = rank - 1; d >= 0; d--) {
      shape[d] = extents[PICK(5)];
      strides[d] = PICK(20) ? stride : 7;
      stride *= PICK(4) ? shape[d] : 16;
    }
    tw_dl_tensor_t t = tensor(rank, shape, PICK(50) ? strides : NULL);
    t.device.type = PICK(50) ? TW_DL_CUDA : TW_DL_CUDA_MANAGED;
    t.device.id = PICK(10) == 0;
    t.dtype = dtypes[PICK(4)];
    t.byte_offset = PICK(6) ? 0 : 4u << PICK(8);
    t.data = PICK(50) ? memory : NULL;
    size_t count = tw_array_pack_known(&known, &t, words);
    *(count ? &taken : &refused) += 1;
    if (count) {
      uint64_t found;
      assert(tw_array_pack_plain(&t, again, &found) == count && found == known.facts);
      assert(!memcmp(words, again, count * sizeof *words));
      assert(t.device.id == last.device.id && t.device.type == last.device.type);
    }
    count = tw_array_pack_plain(&t, words, &facts);
    if (!count)
      continue;
    tw_array_remember(&t, words, facts, &known);
    last = t;
    bool same = !memcmp(words + 1 + t.rank, t.strides, (size_t)t.rank * sizeof *words);
    assert((tw_array_pack_known(&known, &t, again) == count) == same); /* else an extent of 1 has lost its stride */
    if (rank && same) {
      int d = (int)(PICK((unsigned)rank));
      shape[d]++;
      assert(!tw_array_pack_known(&known, &t, again));
      shape[d]--;
      strides[d]++;
      assert(!tw_array_pack_known(&known, &t, again));
    }
  }
#undef PICK
  assert(taken > 900 && refused > 1000);
}

static bool overlaps(int64_t n, int64_t m, int64_t sn, int64_t sm) {
  int64_t shape[2] = {n, m}, strides[2] = {sn, sm};
  tw_dl_tensor_t t = tensor(2, shape, strides);
  tw_array_t a;
  assert(!tw_array_from_dlpack(&t, 0, &a));
  return a.flags & TW_ARRAY_SELF_OVERLAP;
}

static void test_overlap(void) {
  assert(!overlaps(3, 4, 4, 1) && !overlaps(3, 4, 1, 3) && !overlaps(3, 4, -4, -1));
  assert(overlaps(3, 4, 0, 1) && overlaps(3, 4, 1, 1) && overlaps(3, 4, 3, 1));
  assert(!overlaps(1, 4, 0, 1) && !overlaps(0, 4, 0, 0));
}

/* Extents and strides that reach beyond what an address counts, without overflow on the way. */
static void test_too_far(void) {
  static const int64_t lies[][4] = {{1 << 30, 1 << 30, INT64_MAX, INT64_MAX - 1},
                                    {3, 2, INT64_MIN / 2, INT64_MIN / 2},
                                    {2, 2, INT64_C(1) << 61, -(INT64_C(1) << 61)},
                                    {2147483647, 2147483647, 2147483647, 1}};
  for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
    int64_t shape[2] = {lies[i][0], lies[i][1]}, strides[2] = {lies[i][2], lies[i][3]};
    tw_dl_tensor_t t = tensor(2, shape, strides);
    tw_array_t a;
    expect_error(tw_array_from_dlpack(&t, 0, &a), TW_VALUE_ERROR, "span more than 2**63 bytes");
  }
}

static void test_refused(void) {
  int64_t shape[9] = {4, 4, 1, 1, 1, 1, 1, 1, 1}, strides[9] = {4, 1, 1, 1, 1, 1, 1, 1, 1};
  tw_array_t a;
  tw_dl_tensor_t t = tensor(2, shape, strides);
  t.device.type = 10;
  expect_error(tw_array_from_dlpack(&t, 0, &a), TW_TYPE_ERROR, "neither a CPU nor a CUDA GPU");
  t = tensor(2, shape, strides);
  t.dtype = (tw_dl_dtype_t){5, 32, 1};
  expect_error(tw_array_from_dlpack(&t, 0, &a), TW_TYPE_ERROR, "complex, 32 bits");
  t.dtype = (tw_dl_dtype_t){2, 32, 4};
  expect_error(tw_array_from_dlpack(&t, 0, &a), TW_TYPE_ERROR, "4 lane(s)");
  t = tensor(9, shape, strides);
  expect_error(tw_array_from_dlpack(&t, 0, &a), TW_VALUE_ERROR, "9 dimensions, the most is 8");
  t = tensor(2, shape, strides);
  t.data = NULL;
  expect_error(tw_array_from_dlpack(&t, 0, &a), TW_VALUE_ERROR, "no memory behind it");
  t.data = memory + 2;
  expect_error(tw_array_from_dlpack(&t, 0, &a), TW_VALUE_ERROR, "not a multiple of its item size");
  t = tensor(2, shape, strides);
  shape[0] = 1ll << 31;
  assert(!tw_array_from_dlpack(&t, 0, &a));
  expect_error(tw_array_check_extents(&a), TW_VALUE_ERROR, "the most is 2147483647");
  shape[0] = -1;
  expect_error(tw_array_from_dlpack(&t, 0, &a), TW_VALUE_ERROR, "negative");
}

static void test_float4(void) {
  int64_t shape[2] = {4, 8}, strides[2] = {8, 1};
  tw_dl_tensor_t t = tensor(2, shape, strides);
  t.dtype = (tw_dl_dtype_t){17, 4, 2};
  tw_array_t a;
  assert(!tw_array_from_dlpack(&t, 0, &a));
  assert(a.dtype == TW_DTYPE_FLOAT4_E2M1FN && a.shape[1] == 16 && a.strides[0] == 16);
  assert(a.shape[0] == 4 && a.strides[1] == 1);
  t.rank = 1;
  strides[0] = 1;
  assert(!tw_array_from_dlpack(&t, 0, &a) && a.shape[0] == 8);
  shape[0] = 1; /* its stride means nothing */
  strides[0] = 8;
  assert(!tw_array_from_dlpack(&t, 0, &a) && a.shape[0] == 2);
  shape[0] = 4;
  expect_error(tw_array_from_dlpack(&t, 0, &a), TW_VALUE_ERROR, "its last dimension must be contiguous");
  t.rank = 0;
  expect_error(tw_array_from_dlpack(&t, 0, &a), TW_VALUE_ERROR, "its last dimension must be contiguous");
  t.rank = 2;
  t.dtype = (tw_dl_dtype_t){1, 8, 1};
  assert(!tw_array_from_dlpack(&t, 0, &a) && !tw_array_view_as(&a, TW_DTYPE_FLOAT4_E2M1FN));
  assert(a.shape[1] == 16 && a.strides[0] == 16);
  t.dtype = (tw_dl_dtype_t){2, 32, 1};
  assert(!tw_array_from_dlpack(&t, 0, &a) && !tw_array_view_as(&a, TW_DTYPE_TFLOAT32));
  expect_error(tw_array_view_as(&a, TW_DTYPE_INT64), TW_TYPE_ERROR, "cannot be viewed as int64");
}

static void test_status(void) {
  tw_status_t status = tw_status_prefix(TW_ERROR(TW_VALUE_ERROR, "%d of %d", 3, 4), "file %s: ", "x");
  assert(tw_status_code(status) == TW_VALUE_ERROR && !strcmp(tw_status_message(status), "file x: 3 of 4"));
  tw_status_free(status);
  tw_status_free(NULL);
  tw_strbuf_t text = {0};
  for (int i = 0; i < 1000; i++)
    tw_strbuf_printf(&text, "%d,", i);
  assert(text.size == 3890 && !strcmp(text.data + 3884, "8,999,"));
  tw_strbuf_free(&text);
  assert(!text.data);
}

static void test_grid(void) {
  assert(!tw_grid_check((int64_t[3]){2147483647, 65535, 65535}));
  expect_error(tw_grid_check((int64_t[3]){1, 0, 1}), TW_LAUNCH_ERROR, "0 blocks on axis 1");
  expect_error(tw_grid_check((int64_t[3]){1, 1, 65536}), TW_LAUNCH_ERROR, "the most is 65535");
  assert(!tw_block_check((int64_t[3]){32, 32, 1}));
  expect_error(tw_block_check((int64_t[3]){1024, 2, 1}), TW_LAUNCH_ERROR, "the most is 1024");
}

int main(void) {
  test_good();
  test_strides_that_are_not_whole();
  test_strides_of_whole_lines();
  test_extent_one_and_empty();
  test_tensor_maps();
  test_plain();
  test_known();
  test_overlap();
  test_too_far();
  test_refused();
  test_float4();
  test_status();
  test_grid();
  for (int dtype = 1; dtype < TW_DTYPE_COUNT; dtype++)
    assert(tw_dtype_from_name(tw_dtype_name(dtype)) == (tw_dtype_t)dtype);
  puts("array: ok");
  return 0;
}

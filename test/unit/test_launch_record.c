/* Launch records as bytes: what is encoded is decoded, and no bytes whatever make a record that is wrong. */
#include "check.h"
#include "random.h"
#include "tilewright/launch_record.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD = 12, MOST_BYTES = 1 << 15, ROUNDS = 100000 };

/* Each number at random within its bounds, so that bits are lost where a type is too short. */
static int64_t random_number(const tw_row_t *row) {
  uint64_t span = (uint64_t)row->most - (uint64_t)row->least;
  uint64_t x = (uint64_t)random_below(1 << 30) << 33 ^ (uint64_t)random_below(1 << 30) << 3;
  int end = random_below(4);
  return end == 0 ? row->least : end == 1 ? row->most : (int64_t)((uint64_t)row->least + (span ? x % span : 0));
}

static void fill(const tw_row_struct_t *rows, void *values) {
  for (const tw_row_t *row = rows->rows; row < rows->rows + rows->count; row++) {
    char *at = (char *)values + row->offset;
    size_t count =
        row->kind == TW_ROW_LIST || row->kind == TW_ROW_OPTION ? (size_t)random_below((int)row->count + 1) : row->count;
    tw_row_set_count(row, values, count);
    for (size_t i = 0; i < count; i++)
      if (row->of)
        fill(row->of, at + i * row->size);
      else
        tw_row_set_number(row, at, i, random_number(row));
  }
}

static void forget(tw_status_t status) { tw_status_free(status); }

/* Not all that lies within its bounds fits together. */
static void mend(tw_launch_record_t *r) {
  for (uint32_t i = 0; i < r->num_loaded; i++)
    r->loaded[i].word %= 128;
  for (uint32_t i = 0; i < r->num_no_alias; i++)
    r->no_alias[i].array.word = r->no_alias[i].other.word = 3;
  for (uint32_t i = 0; i < r->num_tensor_maps; i++)
    r->tensor_maps[i] =
        (tw_tensor_map_t){.word = 7, .rank = 2, .bytes = 2, .swizzle = 128, .axes = {1, 0}, .box = {64, 8}};
  for (uint32_t i = 0, word = 100; i < r->num_views; word += 1 + 2 * r->views[i++].num_bounds) {
    r->views[i].array.word = 5;
    r->views[i].array.rank = r->views[i].num_pitch ? 1 : 3;
    r->views[i].num_bounds = r->views[i].num_pitch ? 2 : 3;
    r->views[i].word = (uint16_t)word;
  }
  for (int axis = 0; axis < 3; axis++)
    r->grid_scale[axis] = r->grid_scale[axis] ? r->grid_scale[axis] : 1;
  r->has_slice = false;
  r->has_coarsen &= r->coarsen.num_plans >= 2;
  r->has_multicast &= r->multicast.cycles[0] > 0;
  r->multicast.axis = 0;
  r->dynamic = r->split_applied = false;
  r->packed_blocks = 0;
}

static bool is_same(const tw_launch_record_t *a, const tw_launch_record_t *b) {
  tw_strbuf_t x = {0}, y = {0};
  forget(tw_launch_record_encode(a, &x));
  forget(tw_launch_record_encode(b, &y));
  bool same = x.size == y.size && x.size > 0 && !memcmp(x.data, y.data, x.size);
  tw_strbuf_free(&x);
  tw_strbuf_free(&y);
  return same;
}

static void test_round_trip(void) {
  for (int round = 0; round < 500; round++) {
    tw_launch_record_t record, back;
    tw_strbuf_t bytes = {0};
    memset(&record, 0, sizeof record);
    fill(&tw_launch_rows, &record);
    mend(&record);
    tw_status_t status = tw_launch_record_encode(&record, &bytes);
    CHECK(!status, "%s", tw_status_message(status));
    forget(status);
    status = tw_launch_record_decode(bytes.data, bytes.size, &back);
    CHECK(!status, "%s", tw_status_message(status));
    forget(status);
    CHECK(is_same(&record, &back), "round %d", round);
    CHECK(back.num_warps == record.num_warps && back.scratch_bytes == record.scratch_bytes, "round %d", round);
    CHECK(!memcmp(back.grid_scale, record.grid_scale, sizeof back.grid_scale), "round %d", round);
    tw_strbuf_free(&bytes);
  }
}

static void expect_refusal(const tw_launch_record_t *record, const char *field) {
  tw_strbuf_t bytes = {0};
  tw_status_t status = tw_launch_record_encode(record, &bytes);
  CHECK(status && strstr(tw_status_message(status), field), "%s: %s", field, tw_status_message(status));
  forget(status);
  tw_strbuf_free(&bytes);
}

/* A number beyond its bounds is named with the way to it. */
static void test_checks(void) {
  tw_launch_record_t record = {.num_threads = 2000};
  expect_refusal(&record, "launch record: num_threads is 2000, expected 0 to 1024");
  record = (tw_launch_record_t){.has_slice = true, .slice.loop = {2, 64, 0}, .slice.num_plans = 6};
  expect_refusal(&record, "slice.plans has 6 entries, the most is 5");
  record.slice.num_plans = 2;
  record.slice.plans[0].cycles = 1;
  expect_refusal(&record, "slice.plans[1].cycles is 0, expected 1 to 2147483647");
  record = (tw_launch_record_t){.num_no_alias = 1, .no_alias[0].array.bits = 8};
  expect_refusal(&record, "no_alias[0].other.bits is 0, expected 1 to 64");
  record = (tw_launch_record_t){.num_tensor_maps = 1,
                                .tensor_maps[0] = {.rank = 1, .bytes = 2, .swizzle = 128, .box = {300}}};
  expect_refusal(&record, "tensor_maps[0].box[0] is 300, expected 0 to 256");
  record = (tw_launch_record_t){.grid_scale = {2, 0, 1}};
  expect_refusal(&record, "grid_scale does not fit the other fields");
  record = (tw_launch_record_t){.split_applied = true};
  expect_refusal(&record, "split_applied does not fit");
}

static void expect_no_record(const void *bytes, size_t size, const char *why) {
  tw_launch_record_t record;
  tw_status_t status = tw_launch_record_decode(bytes, size, &record);
  CHECK(status && strstr(tw_status_message(status), why), "%s: %s", why, tw_status_message(status));
  forget(status);
}

static void test_bytes(void) {
  tw_launch_record_t record = {.num_warps = 4, .num_threads = 128};
  tw_strbuf_t bytes = {0};
  forget(tw_launch_record_encode(&record, &bytes));
  CHECK(bytes.size == HEAD + 2 * (2 + 4 + 8), "%zu bytes", bytes.size);
  expect_no_record("", 0, "these bytes are none");
  expect_no_record("TWLR", 4, "another version");
  for (size_t size = HEAD + 1; size < bytes.size; size++)
    if (size != HEAD + 14)
      expect_no_record(bytes.data, size, "it ends within a field");
  bytes.data[4]++;
  expect_no_record(bytes.data, bytes.size, "another version");
  bytes.data[4]--;
  bytes.data[HEAD] = 1; /* twice the second field */
  expect_no_record(bytes.data, bytes.size, "there is no field 1 there");
  bytes.data[HEAD] = 0;
  bytes.data[HEAD + 2] = 22; /* the first field reaches to the end */
  expect_no_record(bytes.data, bytes.size, "num_warps is longer than it should be");
  bytes.data[HEAD + 2] = 8;
  bytes.data[HEAD + 6 + 7] = (char)0x80;
  expect_no_record(bytes.data, bytes.size, "num_warps is -");
  tw_strbuf_free(&bytes);
}

/* Bytes of records with some changed, cut out or put in twice: refused, or a record that is right and stays the same.
 */
static void test_fuzz(void) {
  uint8_t *fuzzed = malloc(MOST_BYTES);
  tw_strbuf_t bytes = {0};
  int right = 0;
  for (int round = 0; round < ROUNDS; round++) {
    tw_launch_record_t record, again;
    if (round % 1000 == 0) {
      memset(&record, 0, sizeof record);
      fill(&tw_launch_rows, &record);
      mend(&record);
      tw_strbuf_free(&bytes);
      bytes = (tw_strbuf_t){0};
      forget(tw_launch_record_encode(&record, &bytes));
    }
    size_t size = bytes.size < MOST_BYTES / 2 ? bytes.size : MOST_BYTES / 2;
    memcpy(fuzzed, bytes.data, size);
    for (int changes = 1 + random_below(4); changes > 0; changes--) {
      size_t head = random_below(16) ? HEAD : 0; /* seldom the version, behind which nothing is read */
      size_t at = head + (size_t)random_below((int)(size - head)), length = (size_t)random_below(32);
      length = at + length > size ? size - at : length;
      if (random_below(8) == 0 && size - length > 0)
        memmove(fuzzed + at, fuzzed + at + length, size - at - length), size -= length;
      else if (random_below(8) == 0)
        memmove(fuzzed + at + length, fuzzed + at, size - at), size += length;
      else
        fuzzed[at] = (uint8_t)random_below(256);
    }
    tw_status_t status = tw_launch_record_decode(fuzzed, size, &again);
    if (!status)
      right++;
    CHECK(status || !tw_launch_record_check(&again), "round %d", round);
    CHECK(!status || !strncmp(tw_status_message(status), "launch record: ", 15), "%s", tw_status_message(status));
    forget(status);
  }
  CHECK(right > 0, "of %d", ROUNDS);
  tw_strbuf_free(&bytes);
  free(fuzzed);
}

static void test_questions(void) {
  tw_launch_record_t record = {.has_split = true, .num_no_alias = 2, .num_loaded = 1};
  CHECK(tw_launch_record_has_choices(&record) && tw_launch_record_asks_for_room(&record), "split");
  tw_launch_record_settle(&record);
  CHECK(!record.has_split && !record.num_no_alias && !record.num_loaded, "settled");
  record = (tw_launch_record_t){.has_split = true, .split_applied = true, .num_loaded = 1};
  CHECK(!tw_launch_record_has_choices(&record), "applied");
  tw_launch_record_settle(&record);
  CHECK(record.has_split && record.num_loaded == 1, "applied, settled");
}

int main(void) {
  test_round_trip();
  test_checks();
  test_bytes();
  test_fuzz();
  test_questions();
  if (failures)
    fprintf(stderr, "%d failures\n", failures);
  return failures != 0;
}

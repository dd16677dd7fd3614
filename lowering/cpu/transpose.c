/* transpose.c - moving the last axis: from buffer to buffer by blocks in registers
 *
 * Reading along an axis that isn't the last is a gather a strip. Where a permute moves the last axis, its operand is
 * put into a buffer row by row, and a function (one a shape, order and type) transposes blocks of b x b: b strips are
 * loaded, log2 b stages of shuffles exchange halves, quarters, … of pairs of them, and b strips are stored. */
#include "lowering/cpu/cpu.h"

#include <stdio.h>

enum { LEAST_BLOCK = 4, MOST_LANES = 16 };

typedef struct {
  MlirType element; /* in the buffer */
  int rank, block;
  int64_t shape[TW_MAX_RANK], order[TW_MAX_RANK]; /* of the source; axis d of the result is axis order[d] of it */
  int64_t from[TW_MAX_RANK], to[TW_MAX_RANK];     /* strides by axis of the source */
} transpose_t;

static void set_strides(transpose_t *t) {
  int64_t stride = 1;
  for (int d = t->rank - 1; d >= 0; d--) {
    t->from[d] = stride;
    stride *= t->shape[d];
  }
  stride = 1;
  for (int d = t->rank - 1; d >= 0; d--) {
    t->to[t->order[d]] = stride;
    stride *= t->shape[t->order[d]];
  }
}

/* False where the last axis stays, or a block would be too small to pay. */
static bool set_transpose(cpu_t *cx, transpose_t *t, MlirType source, const int64_t *order) {
  *t = (transpose_t){.rank = (int)tw_rank(source), .element = cpu_buffer_type(cx, tw_element(source))};
  int last = t->rank - 1;
  if (last < 1 || order[last] == last)
    return false;
  for (int d = 0; d < t->rank; d++) {
    t->shape[d] = tw_extent(source, d);
    t->order[d] = order[d];
  }
  int64_t block = cx->lanes < MOST_LANES ? cx->lanes : MOST_LANES;
  if (t->shape[last] < block)
    block = t->shape[last];
  if (t->shape[order[last]] < block)
    block = t->shape[order[last]];
  t->block = (int)block;
  set_strides(t);
  return block >= LEAST_BLOCK;
}

/* x[i] lane j becomes x[j] lane i. */
static void transpose_block(cpu_t *cx, MlirValue *x, int size) {
  for (int half = size / 2; half > 0; half /= 2)
    for (int i = 0; i < size; i++) {
      if (i & half)
        continue;
      int64_t low[MOST_LANES], high[MOST_LANES];
      for (int lane = 0; lane < size; lane++) {
        bool second = lane & half;
        low[lane] = second ? size + lane - half : lane;
        high[lane] = second ? size + lane : lane + half;
      }
      MlirValue a = x[i], b = x[i + half];
      x[i] = cpu_shuffle(cx, a, b, size, low);
      x[i + half] = cpu_shuffle(cx, a, b, size, high);
    }
}

static void emit_transpose(cpu_t *cx, const transpose_t *t) {
  MlirValue from = mlirBlockGetArgument(cx->entry, 0), to = mlirBlockGetArgument(cx->entry, 1);
  cpu_loop_t loops[TW_MAX_RANK];
  cpu_index_t source = cpu_index(0), target = cpu_index(0);
  int row = (int)t->order[t->rank - 1], last = t->rank - 1; /* the result's last axis, and the source's */
  for (int d = 0; d < t->rank; d++) {
    int64_t step = d == row || d == last ? t->block : 1;
    cpu_index_t at = cpu_loop_begin(cx, &loops[d], cpu_index(0), cpu_index(t->shape[d]), step, 0, NULL);
    source = cpu_index_add(cx, source, cpu_index_mul(cx, at, t->from[d]));
    target = cpu_index_add(cx, target, cpu_index_mul(cx, at, t->to[d]));
  }
  MlirValue x[MOST_LANES];
  MlirType strip = cpu_vector(t->element, t->block);
  int align = (int)tw_bytes(t->element);
  for (int i = 0; i < t->block; i++)
    x[i] = cpu_load(cx, cpu_address(cx, from, t->element, cpu_index_plus(source, i * t->from[row])), strip, align);
  transpose_block(cx, x, t->block);
  for (int i = 0; i < t->block; i++)
    cpu_store(cx, x[i], cpu_address(cx, to, t->element, cpu_index_plus(target, i * t->to[last])), align);
  for (int d = t->rank - 1; d >= 0; d--)
    cpu_loop_end(cx, &loops[d], NULL, NULL);
}

static void call_transpose(cpu_t *cx, const transpose_t *t, MlirValue from, MlirValue to) {
  char name[128];
  int length =
      snprintf(name, sizeof name, "tw_transpose_%c%u", mlirTypeIsAFloat(t->element) ? 'f' : 'i', tw_bits(t->element));
  for (int d = 0; d < t->rank; d++)
    length += snprintf(name + length, sizeof name - (size_t)length, "_%lldto%d", (long long)t->shape[t->order[d]],
                       (int)t->order[d]);
  if (!cpu_has_function(cx, name)) {
    cpu_t inner;
    cpu_function_begin(cx, &inner, 2, 0);
    emit_transpose(&inner, t);
    cpu_function_end(cx, &inner, name);
  }
  cpu_call(cx, name, 2, (MlirValue[]){from, to});
}

bool cpu_moves_last_axis(cpu_t *cx, MlirValue tile) {
  MlirOperation op = tw_def(tile);
  int64_t order[TW_MAX_RANK];
  transpose_t t;
  tw_attr_ints(op, "order", order, TW_MAX_RANK);
  return set_transpose(cx, &t, mlirValueGetType(mlirOperationGetOperand(op, 0)), order);
}

void cpu_permute_into(cpu_t *cx, MlirValue tile, MlirValue target) {
  MlirOperation op = tw_def(tile);
  int64_t order[TW_MAX_RANK];
  transpose_t t;
  MlirValue operand = mlirOperationGetOperand(op, 0);
  tw_attr_ints(op, "order", order, TW_MAX_RANK);
  set_transpose(cx, &t, mlirValueGetType(operand), order);
  call_transpose(cx, &t, cpu_buffer(cx, operand), target);
}

/* Of a load whose array is contiguous along another axis than the tile's last: the tile with that axis last, and how
 * to come back from it. */
static bool swapped_load(cpu_t *cx, MlirValue tile, MlirType *swapped, int64_t *order, transpose_t *t) {
  MlirType type = mlirValueGetType(tile);
  const cpu_access_t *access = cpu_slot(cx, tile)->access;
  int rank = (int)tw_rank(type), last = rank - 1, unit = -1;
  int64_t shape[TW_MAX_RANK];
  for (int d = 0; access && d < rank; d++) {
    shape[d] = tw_extent(type, d);
    order[d] = d;
    if (access->unit[d])
      unit = d;
  }
  if (unit < 0 || unit == last)
    return false;
  shape[last] = tw_extent(type, unit);
  shape[unit] = tw_extent(type, last);
  order[last] = unit;
  order[unit] = last;
  *swapped = mlirRankedTensorTypeGet(rank, shape, tw_element(type), (MlirAttribute){NULL});
  return set_transpose(cx, t, *swapped, order);
}

bool cpu_load_is_swapped(cpu_t *cx, MlirValue tile) {
  MlirType swapped;
  int64_t order[TW_MAX_RANK];
  transpose_t t;
  return swapped_load(cx, tile, &swapped, order, &t);
}

void cpu_swapped_load_into(cpu_t *cx, MlirValue tile, MlirValue target) {
  MlirType swapped, type = mlirValueGetType(tile);
  int64_t order[TW_MAX_RANK];
  transpose_t t;
  if (!swapped_load(cx, tile, &swapped, order, &t))
    return;
  MlirValue buffer = cpu_new_buffer(cx, swapped);
  int last = t.rank - 1, unit = (int)order[last];
  cpu_nest_t nest;
  cpu_nest_set(cx, &nest, type, unit);
  cpu_nest_begin(cx, &nest);
  MlirValue strip = cpu_eval(cx, tile, &nest.point);
  cpu_point_t point = nest.point;
  point.at[last] = nest.point.at[unit];
  point.at[unit] = nest.point.at[last];
  point.axis = last;
  if (!cx->failed)
    cpu_buffer_store(cx, strip, buffer, swapped, &point);
  cpu_nest_end(cx, &nest);
  call_transpose(cx, &t, buffer, target);
}

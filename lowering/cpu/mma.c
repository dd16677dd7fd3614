/* mma.c - tile.mma: a register block of accumulators over the whole of k
 *
 * Operands lie in buffers, in the type that multiplies: f32 for all narrow floats, f64, i32 for bytes. The result's
 * buffer starts with the accumulator; for each block of rows x strips its values stay in registers over the k loop, in
 * which one strip of rhs per column and one broadcast element of lhs per row give rows * columns multiply-adds. */
#include "lowering/cpu/cpu.h"

#include <stdio.h>

typedef struct {
  MlirType type;           /* that multiplies and adds */
  MlirValue lhs, rhs, acc; /* pointers */
  int64_t batches, m, n, k;
  int lanes, rows, columns; /* of a register block: columns strips of lanes */
} product_t;

static MlirValue load_at(cpu_t *cx, const product_t *p, MlirValue base, cpu_index_t offset, int lanes) {
  MlirValue address = cpu_address(cx, base, p->type, offset);
  return cpu_load(cx, address, cpu_vector(p->type, lanes), (int)tw_bytes(p->type));
}

static MlirValue multiply_add(cpu_t *cx, const product_t *p, MlirValue x, MlirValue y, MlirValue z) {
  if (mlirTypeIsAFloat(p->type))
    return cpu_fma(cx, x, y, z);
  return cpu_bin(cx, "arith.addi", cpu_bin(cx, "arith.muli", x, y), z);
}

/* acc[i .. i + rows, j .. j + columns * lanes] += lhs[i.., :] @ rhs[:, j..]; offsets are those of the batch. */
static void block(cpu_t *cx, const product_t *p, const cpu_index_t base[3], cpu_index_t i, cpu_index_t j, int rows) {
  MlirValue sums[64];
  cpu_index_t at[64];
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < p->columns; c++) {
      cpu_index_t row = cpu_index_mul(cx, cpu_index_plus(i, r), p->n);
      cpu_index_t offset = cpu_index_add(cx, row, cpu_index_plus(j, c * p->lanes));
      at[r * p->columns + c] = cpu_index_add(cx, base[2], offset);
      sums[r * p->columns + c] = load_at(cx, p, p->acc, at[r * p->columns + c], p->lanes);
    }
  cpu_loop_t loop;
  cpu_index_t k = cpu_loop_begin(cx, &loop, cpu_index(0), cpu_index(p->k), 1, rows * p->columns, sums);
  MlirValue strips[16];
  for (int c = 0; c < p->columns; c++) {
    cpu_index_t offset = cpu_index_add(cx, cpu_index_mul(cx, k, p->n), cpu_index_plus(j, c * p->lanes));
    strips[c] = load_at(cx, p, p->rhs, cpu_index_add(cx, base[1], offset), p->lanes);
  }
  for (int r = 0; r < rows; r++) {
    cpu_index_t row = cpu_index_mul(cx, cpu_index_plus(i, r), p->k);
    MlirValue x = load_at(cx, p, p->lhs, cpu_index_add(cx, base[0], cpu_index_add(cx, row, k)), 1);
    x = cpu_splat(cx, x, p->lanes);
    for (int c = 0; c < p->columns; c++)
      sums[r * p->columns + c] = multiply_add(cx, p, x, strips[c], loop.args[r * p->columns + c]);
  }
  cpu_loop_end(cx, &loop, sums, sums);
  for (int s = 0; s < rows * p->columns; s++)
    cpu_store(cx, sums[s], cpu_address(cx, p->acc, p->type, at[s]), (int)tw_bytes(p->type));
}

static void block_rows(cpu_t *cx, const product_t *p, const cpu_index_t base[3], cpu_index_t j, int64_t from,
                       int64_t to, int rows) {
  if (from >= to)
    return;
  cpu_loop_t loop;
  cpu_index_t i = cpu_loop_begin(cx, &loop, cpu_index(from), cpu_index(to), rows, 0, NULL);
  block(cx, p, base, i, j, rows);
  cpu_loop_end(cx, &loop, NULL, NULL);
}

static void emit_product(cpu_t *cx, const product_t *p) {
  cpu_loop_t batches, columns;
  cpu_index_t b = cpu_loop_begin(cx, &batches, cpu_index(0), cpu_index(p->batches), 1, 0, NULL);
  cpu_index_t base[3] = {cpu_index_mul(cx, b, p->m * p->k), cpu_index_mul(cx, b, p->k * p->n),
                         cpu_index_mul(cx, b, p->m * p->n)};
  cpu_index_t j = cpu_loop_begin(cx, &columns, cpu_index(0), cpu_index(p->n), (int64_t)p->lanes * p->columns, 0, NULL);
  int64_t whole = p->m - p->m % p->rows;
  block_rows(cx, p, base, j, 0, whole, p->rows);
  block_rows(cx, p, base, j, whole, p->m, (int)(p->m - whole));
  cpu_loop_end(cx, &columns, NULL, NULL);
  cpu_loop_end(cx, &batches, NULL, NULL);
}

/* One function a shape and type, so that several products of a kernel share its code. Arguments: lhs, rhs, acc. */
static void product(cpu_t *cx, product_t *p) {
  char name[96];
  const char *type = !mlirTypeIsAFloat(p->type) ? "i32" : mlirTypeIsAF64(p->type) ? "f64" : "f32";
  snprintf(name, sizeof name, "tw_mma_%lldx%lldx%lldx%lld_%s", (long long)p->batches, (long long)p->m, (long long)p->n,
           (long long)p->k, type);
  MlirValue operands[3] = {p->lhs, p->rhs, p->acc};
  if (!cpu_has_function(cx, name)) {
    cpu_t inner;
    cpu_function_begin(cx, &inner, 3);
    p->lhs = mlirBlockGetArgument(inner.entry, 0);
    p->rhs = mlirBlockGetArgument(inner.entry, 1);
    p->acc = mlirBlockGetArgument(inner.entry, 2);
    emit_product(&inner, p);
    cpu_function_end(cx, &inner, name);
  }
  cpu_call(cx, name, 3, operands);
}

static void choose_block(cpu_t *cx, product_t *p) {
  int lanes = mlirTypeIsAF64(p->type) && cx->lanes > 1 ? cx->lanes / 2 : cx->lanes;
  p->lanes = p->n < lanes ? (int)p->n : lanes;
  p->columns = cx->avx512 ? 4 : 2;
  while (p->n % ((int64_t)p->lanes * p->columns) != 0)
    p->columns /= 2;
  p->rows = cx->avx512 ? 4 : 6;
  if (p->rows > p->m)
    p->rows = (int)p->m;
}

/* The buffer of an operand, in the type that multiplies. Bytes are widened into a buffer of their own. */
static MlirValue operand(cpu_t *cx, MlirValue tile, bool is_unsigned) {
  MlirType type = mlirValueGetType(tile);
  if (!tw_is_int(type))
    return cpu_buffer(cx, tile);
  MlirType wide = tw_with_element(type, cpu_int(cx, 32));
  MlirValue buffer = cpu_new_buffer(cx, wide);
  cpu_plan(cx, type, 1, &tile, tw_null_op());
  cpu_nest_t nest;
  cpu_nest_set(cx, &nest, type, cpu_lane_axis(type));
  cpu_nest_begin(cx, &nest);
  MlirValue strip = cpu_eval(cx, tile, &nest.point);
  strip = cpu_cast(cx, is_unsigned ? "arith.extui" : "arith.extsi", strip, cpu_int(cx, 32));
  cpu_buffer_store(cx, strip, buffer, wide, &nest.point);
  cpu_nest_end(cx, &nest);
  cpu_planned(cx);
  return buffer;
}

/* f16 accumulators add in f32 and are rounded once. */
static void round_result(cpu_t *cx, MlirType type, MlirValue buffer) {
  if (!cpu_is_narrow(tw_element(type)))
    return;
  cpu_nest_t nest;
  cpu_nest_set(cx, &nest, type, cpu_lane_axis(type));
  cpu_nest_begin(cx, &nest);
  MlirValue strip = cpu_buffer_load(cx, buffer, type, &nest.point);
  cpu_buffer_store(cx, cpu_round(cx, strip, tw_element(type)), buffer, type, &nest.point);
  cpu_nest_end(cx, &nest);
}

static void place_mma(cpu_t *cx, MlirOperation op) {
  MlirValue lhs = mlirOperationGetOperand(op, 0), rhs = mlirOperationGetOperand(op, 1),
            acc = mlirOperationGetOperand(op, 2), result = mlirOperationGetResult(op, 0);
  MlirType type = mlirValueGetType(result), left = mlirValueGetType(lhs);
  int rank = (int)tw_rank(type);
  product_t p = {.type = cpu_compute_type(cx, tw_element(type)), .batches = rank == 3 ? tw_extent(type, 0) : 1};
  p.m = tw_extent(type, rank - 2);
  p.n = tw_extent(type, rank - 1);
  p.k = tw_extent(left, rank - 1);
  choose_block(cx, &p);
  p.lhs = operand(cx, lhs, tw_has_attr(op, "unsigned_lhs"));
  p.rhs = operand(cx, rhs, tw_has_attr(op, "unsigned_rhs"));
  cpu_slot_t *slot = cpu_slot(cx, result);
  p.acc = slot->target.ptr ? slot->target : cpu_new_buffer(cx, type);
  cpu_copy_into(cx, acc, p.acc);
  MlirValue buffer = p.acc;
  if (!cx->failed)
    product(cx, &p);
  round_result(cx, type, buffer);
  cpu_set_buffer(cx, result, buffer);
}

CPU_RULE(TW_TILE_MMA, CPU_EFFECT, 0, NULL, NULL, place_mma)

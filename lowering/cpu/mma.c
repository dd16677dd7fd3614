/* mma.c - tile.mma: a register block of accumulators over the whole of k
 *
 * Operands lie in memory, in the type that multiplies: f32 for all narrow floats, f64, for bytes pairs of 16 bits, or
 * i32 on machines that have no instruction for these. That is a buffer,
 * or the array itself where a tile of that type lies whole in it and nothing else asks for the tile:
 *
 *   %p, %stride = scf.if %whole { array } else { fill a buffer }
 *
 * Where many rows are multiplied by it, the right operand is copied into panels, each as wide as a register block and
 * with one row right behind the other: they are read again for each block of rows, with loads that split no line of the
 * cache and fall into all of its sets. In the array each row of a panel is another page.
 *
 * The result's buffer starts with the accumulator; for each block of rows x strips its values stay in registers over
 * the k loop, in which one strip of rhs per column and one broadcast element of lhs per row give rows * columns
 * multiply-adds. */
#include "lowering/cpu/cpu.h"
#include "lowering/loops.h"

#include "tilewright/dialect.h"

#include <stdio.h>

/* The first row, and the distance of rows in elements (i64); of a right operand also the distance of panels. */
typedef struct {
  MlirValue pointer, stride, panel;
} rows_t;

typedef struct {
  MlirType type; /* the type of products and sums */
  rows_t lhs, rhs;
  MlirValue acc;                 /* pointer */
  MlirValue steps;               /* steps of k in which not all elements are zero, i64 */
  MlirValue end_row, end_column; /* of the result that anybody sees, i64 */
  int64_t batches, m, n, k;
  int lanes, rows, columns; /* of a register block: columns strips of lanes */
  int unroll;               /* steps of k that an iteration takes */
  bool pairs;               /* an i32 is two numbers of 16 bits, of two steps of k, which are one then */
} matmul_t;

/* x86 adds a register once, twice or not at all to an address. */
enum { MOST_ROWS = 6, ROWS_OF_A_POINTER = 3 };

static int64_t width_of(const matmul_t *p) { return (int64_t)p->lanes * p->columns; }

static MlirValue load_at(cpu_t *cx, const matmul_t *p, MlirValue base, cpu_index_t offset, int lanes) {
  MlirValue address = cpu_address(cx, base, p->type, offset);
  return cpu_load(cx, address, cpu_vector(p->type, lanes), (int)tw_bytes(p->type));
}

/* The two products of each pair, added: with VNNI it is one instruction with the sum. */
static MlirValue add_pairs(cpu_t *cx, MlirValue x, MlirValue y, MlirValue z) {
  int lanes = cpu_lanes_of(z);
  MlirType halves = cpu_vector(cpu_int(cx, 16), 2 * lanes);
  MlirValue operands[2] = {cpu_op1(cx, "vector.bitcast", halves, 1, &x), cpu_op1(cx, "vector.bitcast", halves, 1, &y)};
  const char *name = lanes == 16  ? "llvm.x86.avx512.pmaddw.d.512"
                     : lanes == 8 ? "llvm.x86.avx2.pmadd.wd"
                                  : "llvm.x86.sse2.pmadd.wd";
  return cpu_bin(cx, "arith.addi", z, cpu_intrinsic(cx, name, mlirValueGetType(z), 2, operands));
}

static MlirValue multiply_add(cpu_t *cx, const matmul_t *p, MlirValue x, MlirValue y, MlirValue z) {
  if (p->pairs)
    return add_pairs(cx, x, y, z);
  if (mlirTypeIsAFloat(p->type))
    return cpu_fma(cx, x, y, z);
  return cpu_bin(cx, "arith.addi", cpu_bin(cx, "arith.muli", x, y), z);
}

/* acc[i .. i + rows, j .. j + columns * lanes] += lhs[i.., :] @ rhs[:, j..]; offsets are those of the batch. */
static void block(cpu_t *cx, const matmul_t *p, const cpu_index_t base[3], cpu_index_t i, cpu_index_t panel, int rows) {
  cpu_index_t j = cpu_index_mul(cx, panel, width_of(p));
  cpu_index_t first = cpu_index_add(cx, base[1], cpu_index_times(cx, panel, p->rhs.panel, 0));
  MlirValue sums[64];
  cpu_index_t at[64];
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < p->columns; c++) {
      cpu_index_t row = cpu_index_mul(cx, cpu_index_plus(i, r), p->n);
      cpu_index_t offset = cpu_index_add(cx, row, cpu_index_plus(j, c * p->lanes));
      at[r * p->columns + c] = cpu_index_add(cx, base[2], offset);
      sums[r * p->columns + c] = load_at(cx, p, p->acc, at[r * p->columns + c], p->lanes);
    }
  MlirValue groups[MOST_ROWS / ROWS_OF_A_POINTER];
  for (int r = 0; r < rows; r += ROWS_OF_A_POINTER) {
    cpu_index_t row = cpu_index_times(cx, cpu_index_plus(i, r), p->lhs.stride, 0);
    groups[r / ROWS_OF_A_POINTER] = cpu_address(cx, p->lhs.pointer, p->type, cpu_index_add(cx, base[0], row));
  }
  cpu_loop_t loop;
  cpu_index_t k =
      cpu_loop_begin(cx, &loop, cpu_index(0), (cpu_index_t){.base = p->steps}, p->unroll, rows * p->columns, sums);
  for (int s = 0; s < rows * p->columns; s++)
    sums[s] = loop.args[s];
  for (int u = 0; u < p->unroll; u++) {
    MlirValue strips[16];
    for (int c = 0; c < p->columns; c++) {
      cpu_index_t row = cpu_index_add(cx, first, cpu_index_times(cx, cpu_index_plus(k, u), p->rhs.stride, 0));
      strips[c] = load_at(cx, p, p->rhs.pointer, cpu_index_plus(row, (int64_t)c * p->lanes), p->lanes);
    }
    for (int r = 0; r < rows; r++) {
      cpu_index_t row = cpu_index_times(cx, cpu_index(r % ROWS_OF_A_POINTER), p->lhs.stride, 0);
      MlirValue x = load_at(cx, p, groups[r / ROWS_OF_A_POINTER], cpu_index_add(cx, cpu_index_plus(k, u), row), 1);
      x = cpu_splat(cx, x, p->lanes);
      for (int c = 0; c < p->columns; c++)
        sums[r * p->columns + c] = multiply_add(cx, p, x, strips[c], sums[r * p->columns + c]);
    }
  }
  cpu_loop_end(cx, &loop, sums, sums);
  for (int s = 0; s < rows * p->columns; s++)
    cpu_store(cx, sums[s], cpu_address(cx, p->acc, p->type, at[s]), (int)tw_bytes(p->type));
}

static void block_rows(cpu_t *cx, const matmul_t *p, const cpu_index_t base[3], cpu_index_t panel, int64_t from,
                       int64_t to, int rows) {
  if (from >= to)
    return;
  cpu_loop_t loop;
  cpu_index_t end = {.base = cpu_bin(cx, "arith.minsi", p->end_row, cpu_i64_const(cx, to))};
  cpu_index_t i = cpu_loop_begin(cx, &loop, cpu_index(from), end, rows, 0, NULL);
  block(cx, p, base, i, panel, rows);
  cpu_loop_end(cx, &loop, NULL, NULL);
}

static void emit_product(cpu_t *cx, const matmul_t *p) {
  cpu_loop_t batches, panels;
  cpu_index_t b = cpu_loop_begin(cx, &batches, cpu_index(0), cpu_index(p->batches), 1, 0, NULL);
  cpu_index_t base[3] = {cpu_index_mul(cx, b, p->m * p->k), cpu_index_mul(cx, b, p->k * p->n),
                         cpu_index_mul(cx, b, p->m * p->n)};
  MlirValue seen = cpu_bin_i(cx, "arith.addi", p->end_column, width_of(p) - 1);
  cpu_index_t end = {.base = cpu_bin(cx, "arith.divui", seen, cpu_i64_const(cx, width_of(p)))};
  cpu_index_t panel = cpu_loop_begin(cx, &panels, cpu_index(0), end, 1, 0, NULL);
  int64_t whole = p->m - p->m % p->rows;
  block_rows(cx, p, base, panel, 0, whole, p->rows);
  block_rows(cx, p, base, panel, whole, p->m, (int)(p->m - whole));
  cpu_loop_end(cx, &panels, NULL, NULL);
  cpu_loop_end(cx, &batches, NULL, NULL);
}

/* One function a shape and type, so that several products of a kernel share its code. */
static void product(cpu_t *cx, matmul_t *p) {
  char name[96];
  const char *type = p->pairs ? "i16x2" : !mlirTypeIsAFloat(p->type) ? "i32" : mlirTypeIsAF64(p->type) ? "f64" : "f32";
  snprintf(name, sizeof name, "tw_mma_%lldx%lldx%lldx%lld_%s", (long long)p->batches, (long long)p->m, (long long)p->n,
           (long long)p->k, type);
  MlirValue operands[] = {p->lhs.pointer, p->rhs.pointer, p->acc,     p->lhs.stride, p->rhs.stride,
                          p->rhs.panel,   p->steps,       p->end_row, p->end_column};
  enum { POINTERS = 3, ARGUMENTS = sizeof operands / sizeof *operands };
  if (!cpu_has_function(cx, name)) {
    cpu_t inner;
    MlirValue arguments[ARGUMENTS];
    cpu_function_begin(cx, &inner, POINTERS, ARGUMENTS - POINTERS);
    for (int i = 0; i < ARGUMENTS; i++)
      arguments[i] = mlirBlockGetArgument(inner.entry, i);
    p->lhs = (rows_t){.pointer = arguments[0], .stride = arguments[POINTERS]};
    p->rhs = (rows_t){arguments[1], arguments[POINTERS + 1], arguments[POINTERS + 2]};
    p->acc = arguments[2];
    p->steps = arguments[POINTERS + 3];
    p->end_row = arguments[POINTERS + 4];
    p->end_column = arguments[POINTERS + 5];
    emit_product(&inner, p);
    cpu_function_end(cx, &inner, name);
  }
  cpu_call(cx, name, ARGUMENTS, operands);
}

static void choose_block(cpu_t *cx, matmul_t *p) {
  int lanes = mlirTypeIsAF64(p->type) && cx->lanes > 1 ? cx->lanes / 2 : cx->lanes;
  p->lanes = p->n < lanes ? (int)p->n : lanes;
  p->columns = cx->avx512 ? 4 : 2;
  while (p->n % ((int64_t)p->lanes * p->columns) != 0)
    p->columns /= 2;
  p->rows = MOST_ROWS;
  if (p->rows > p->m)
    p->rows = (int)p->m;
  enum { MOST_UNROLLED = 48 };
  p->unroll = MOST_UNROLLED / (p->rows * p->columns);
  p->unroll = p->unroll >= 4 ? 4 : p->unroll >= 2 ? 2 : 1;
}

/* Bytes, in a buffer of wider integers. */
static MlirValue widened(cpu_t *cx, MlirValue tile, bool is_unsigned, MlirType element) {
  MlirType type = mlirValueGetType(tile);
  MlirType wide = tw_with_element(type, element);
  MlirValue buffer = cpu_new_buffer(cx, wide);
  cpu_plan(cx, type, 1, &tile, tw_null_op());
  cpu_nest_t nest;
  cpu_nest_set(cx, &nest, type, cpu_lane_axis(type));
  cpu_nest_begin(cx, &nest);
  MlirValue strip = cpu_eval(cx, tile, &nest.point);
  strip = cpu_cast(cx, is_unsigned ? "arith.extui" : "arith.extsi", strip, element);
  cpu_buffer_store(cx, strip, buffer, wide, &nest.point);
  cpu_nest_end(cx, &nest);
  cpu_planned(cx);
  return buffer;
}

/* The rows of a tile: in its array if the tile lies whole in it, else in a buffer that is filled. */
static rows_t rows_in_place(cpu_t *cx, MlirValue tile, MlirValue whole) {
  MlirType type = mlirValueGetType(tile);
  MlirType types[2] = {cpu_pointer_type(cx), cpu_int(cx, 64)};
  MlirValue buffer = cpu_new_buffer(cx, type), in_array[2], in_buffer[2];
  const cpu_access_t *access = cpu_slot(cx, tile)->access;
  MlirBlock then = mlirBlockCreate(0, NULL, NULL), other = mlirBlockCreate(0, NULL, NULL);
  cpu_index_t origin = {.base = access->origin, .depth = access->depth};
  cpu_scope_push(cx, then);
  in_array[0] = cpu_address(cx, access->pointer, access->element, origin);
  in_array[1] = access->stride[0];
  cpu_op0(cx, "scf.yield", 2, in_array);
  cpu_scope_pop(cx);
  cpu_scope_push(cx, other);
  cpu_copy_into(cx, tile, buffer);
  in_buffer[0] = buffer;
  in_buffer[1] = cpu_i64_const(cx, tw_extent(type, 1));
  cpu_op0(cx, "scf.yield", 2, in_buffer);
  cpu_scope_pop(cx);
  MlirOperation choice = cpu_if(cx, whole, then, other, 2, types);
  return (rows_t){.pointer = mlirOperationGetResult(choice, 0), .stride = mlirOperationGetResult(choice, 1)};
}

/* i1: the tile lies whole in its array, and its rows don't all fall into the same few sets of the cache, as they do
 * where they are a multiple of so many bytes apart. Of lhs few rows are read at a time. */
static MlirValue is_whole(cpu_t *cx, const cpu_access_t *access, MlirType tile, bool is_rhs) {
  enum { BYTES_OF_A_WAY = 4096 };
  MlirValue whole = cpu_int_const(cx, cpu_int(cx, 1), 1);
  for (int d = 0; d < tw_rank(tile); d++) {
    MlirValue extent = cpu_i32_const(cx, tw_extent(tile, d));
    whole = cpu_bin(cx, "arith.andi", whole, cpu_cmpi(cx, CPU_SGE, access->limit[d], extent));
  }
  if (!is_rhs)
    return whole;
  int64_t way = BYTES_OF_A_WAY / tw_bytes(access->element);
  MlirValue rest = cpu_bin_i(cx, "arith.andi", access->stride[0], way - 1);
  return cpu_bin(cx, "arith.andi", whole, cpu_cmpi(cx, CPU_NE, rest, cpu_i64_const(cx, 0)));
}

/* Whether a product may read a tile from the array that it was loaded from: nothing else wants it in a buffer, and
 * it is in none yet. */
static bool is_in_place(cpu_t *cx, MlirValue tile, MlirType type) {
  MlirOperation load = tw_def(tile);
  const cpu_slot_t *slot = cpu_slot(cx, tile);
  return !mlirOperationIsNull(load) && tw_op_loads_tile(load) && slot->kind == CPU_VIRTUAL && slot->access &&
         tw_has_one_use(tile) && tw_rank(mlirValueGetType(tile)) == 2 && slot->access->unit[1] &&
         mlirTypeEqual(slot->access->element, type) && !cpu_load_is_swapped(cx, tile);
}

static bool is_zero_outside(MlirValue tile) {
  int64_t padding = tw_attr_int(tw_def(tile), "padding", TW_PADDING_UNDETERMINED);
  return padding == TW_PADDING_ZERO || padding == TW_PADDING_UNDETERMINED;
}

/* How many steps of k there are. Behind the ends of both arrays there are only zeros. */
static MlirValue steps_of(cpu_t *cx, const matmul_t *p, MlirValue lhs, MlirValue rhs) {
  if (!is_in_place(cx, lhs, p->type) || !is_in_place(cx, rhs, p->type) || !is_zero_outside(lhs) ||
      !is_zero_outside(rhs))
    return cpu_i64_const(cx, p->k);
  MlirValue left = cpu_slot(cx, lhs)->access->limit[1], right = cpu_slot(cx, rhs)->access->limit[0];
  MlirValue steps = cpu_cast(cx, "arith.extui", cpu_bin(cx, "arith.maxsi", left, right), cpu_int(cx, 64));
  return cpu_bin_i(cx, "arith.andi", cpu_bin_i(cx, "arith.addi", steps, p->unroll - 1), -p->unroll);
}

static bool is_next_sum(MlirOperation op, MlirValue value) {
  enum { SUM = 2 };
  return tw_op_is(op, TW_TILE_MMA) && mlirValueEqual(mlirOperationGetOperand(op, SUM), value);
}

/* What only `op` makes of a tile, element by element, or null: a sum to which the next product adds, or what a loop
 * carries for that. */
static MlirValue same_elements(MlirOperation op, MlirValue value) {
  MlirValue none = {NULL};
  if (is_next_sum(op, value) || tw_op_form(op) == TW_FORM_ELEMENTWISE)
    return mlirOperationGetResult(op, 0);
  MlirOperation loop = mlirOperationGetParentOperation(op);
  if (!tw_op_is(op, TW_SCF_YIELD) || !tw_op_is(loop, TW_SCF_FOR))
    return none;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    if (mlirValueEqual(mlirOperationGetOperand(op, i), value)) {
      MlirOperation user = tw_only_user(tw_carried(loop, i));
      bool summed = !mlirOperationIsNull(user) && is_next_sum(user, tw_carried(loop, i));
      return summed ? mlirOperationGetResult(loop, i) : none;
    }
  return none;
}

/* The store that alone sees the product, or null. */
static MlirOperation only_store(MlirValue value) {
  MlirType type = mlirValueGetType(value);
  while (value.ptr && tw_is_tile(mlirValueGetType(value)) && tw_rank(mlirValueGetType(value)) == tw_rank(type)) {
    MlirOperation user = tw_only_user(value);
    if (mlirOperationIsNull(user))
      break;
    if (tw_op_stores_tile(user))
      return user;
    value = same_elements(user, value);
  }
  return tw_null_op();
}

/* Rows and columns that are stored, where array and place are known already: others lie outside of the array. */
static void find_ends(cpu_t *cx, matmul_t *p, MlirValue result) {
  p->end_row = cpu_i64_const(cx, p->m);
  p->end_column = cpu_i64_const(cx, p->n);
  MlirOperation store = only_store(result);
  if (mlirOperationIsNull(store) || tw_rank(mlirValueGetType(result)) != 2 ||
      tw_map_get(&cx->arrays, mlirOperationGetOperand(store, 0).ptr, NULL) == NULL)
    return;
  intptr_t indices = mlirOperationGetNumOperands(store) - 2;
  for (intptr_t i = 0; i < indices; i++)
    if (cpu_slot(cx, mlirOperationGetOperand(store, i + 1))->kind != CPU_SCALAR)
      return;
  const cpu_access_t *access = cpu_open_access(cx, store, mlirValueGetType(result), indices);
  p->end_row = cpu_cast(cx, "arith.extui", access->limit[0], cpu_int(cx, 64));
  p->end_column = cpu_cast(cx, "arith.extui", access->limit[1], cpu_int(cx, 64));
}

/* --- panels ----------------------------------------------------------------------------------------------- */

enum { LEAST_ROWS = 64 }; /* to which a copy is worth its time: a tenth of the product's for 32 */

/* Whether a tile is computed for a product only, strip by strip. */
static bool can_pack(cpu_t *cx, const matmul_t *p, MlirValue tile) {
  MlirOperation op = tw_def(tile);
  if (p->m < LEAST_ROWS || p->batches > 1 || mlirOperationIsNull(op) || tw_rank(mlirValueGetType(tile)) != 2)
    return false;
  const cpu_rule_t *rule = cpu_rule(cx, op);
  return cpu_slot(cx, tile)->kind == CPU_VIRTUAL && tw_has_one_use(tile) && rule &&
         !(rule->fills_in_blocks && rule->fills_in_blocks(cx, tile));
}

static MlirValue packed_strip(cpu_t *cx, const matmul_t *p, MlirValue tile, const cpu_access_t *access,
                              const cpu_point_t *at, bool is_unsigned) {
  if (access) {
    cpu_index_t origin = {.base = access->origin, .depth = access->depth};
    cpu_index_t row = cpu_index_add(cx, origin, cpu_index_times(cx, at->at[0], access->stride[0], access->depth));
    return load_at(cx, p, access->pointer, cpu_index_add(cx, row, at->at[1]), at->lanes);
  }
  MlirValue strip = cpu_splat(cx, cpu_eval(cx, tile, at), at->lanes);
  if (mlirTypeIsAFloat(p->type))
    return strip;
  return cpu_cast(cx, is_unsigned ? "arith.extui" : "arith.extsi", strip, cpu_int(cx, 32));
}

/* Of pairs, rows 2 i and 2 i + 1 in one. */
static MlirValue packed_pair(cpu_t *cx, const matmul_t *p, MlirValue tile, const cpu_point_t *at, bool is_unsigned) {
  cpu_point_t row = *at;
  MlirValue strips[2];
  for (int i = 0; i < 2; i++) {
    row.at[0] = cpu_index_plus(cpu_index_mul(cx, at->at[0], 2), i);
    strips[i] = packed_strip(cx, p, tile, NULL, &row, is_unsigned);
  }
  MlirValue low = cpu_bin_i(cx, "arith.andi", strips[0], 0xFFFF);
  return cpu_bin(cx, "arith.ori", low, cpu_bin_i(cx, "arith.shli", strips[1], 16));
}

/* Fills the panels, from an array in which the tile lies whole if there is an access. */
static void fill_panels(cpu_t *cx, const matmul_t *p, MlirValue tile, MlirValue panels, const cpu_access_t *access,
                        bool is_unsigned) {
  MlirType type = mlirValueGetType(tile);
  cpu_loop_t loop;
  cpu_nest_t nest;
  cpu_index_t panel = cpu_loop_begin(cx, &loop, cpu_index(0), cpu_index(p->n / width_of(p)), 1, 0, NULL);
  cpu_nest_set(cx, &nest, type, 1);
  nest.point.lanes = p->lanes;
  nest.shape[0] = p->k;
  nest.held[1] = true;
  cpu_nest_begin(cx, &nest);
  cpu_index_t to = cpu_index_mul(cx, panel, p->k * width_of(p));
  to = cpu_index_add(cx, to, cpu_index_mul(cx, nest.point.at[0], width_of(p)));
  for (int c = 0; c < p->columns && !cx->failed; c++) {
    nest.point.at[1] = cpu_index_plus(cpu_index_mul(cx, panel, width_of(p)), (int64_t)c * p->lanes);
    MlirValue strip = p->pairs ? packed_pair(cx, p, tile, &nest.point, is_unsigned)
                               : packed_strip(cx, p, tile, access, &nest.point, is_unsigned);
    cpu_store(cx, strip, cpu_address(cx, panels, p->type, cpu_index_plus(to, (int64_t)c * p->lanes)),
              (int)tw_bytes(p->type));
  }
  cpu_nest_end(cx, &nest);
  cpu_loop_end(cx, &loop, NULL, NULL);
}

static void pack(cpu_t *cx, const matmul_t *p, MlirValue tile, MlirValue panels, bool is_unsigned) {
  MlirType type = mlirValueGetType(tile);
  if (!is_in_place(cx, tile, p->type)) {
    cpu_plan(cx, type, 1, &tile, tw_null_op());
    fill_panels(cx, p, tile, panels, NULL, is_unsigned);
    cpu_planned(cx);
    return;
  }
  const cpu_access_t *access = cpu_slot(cx, tile)->access;
  MlirBlock then = mlirBlockCreate(0, NULL, NULL), other = mlirBlockCreate(0, NULL, NULL);
  MlirValue whole = is_whole(cx, access, type, false);
  cpu_scope_push(cx, then);
  fill_panels(cx, p, tile, panels, access, false);
  cpu_op0(cx, "scf.yield", 0, NULL);
  cpu_scope_pop(cx);
  cpu_scope_push(cx, other);
  fill_panels(cx, p, tile, panels, NULL, false);
  cpu_op0(cx, "scf.yield", 0, NULL);
  cpu_scope_pop(cx);
  cpu_if(cx, whole, then, other, 0, NULL);
}

static rows_t packed(cpu_t *cx, const matmul_t *p, MlirValue tile, bool is_unsigned) {
  MlirType type = tw_with_element(mlirValueGetType(tile), p->type);
  rows_t rows = {{NULL}, cpu_i64_const(cx, width_of(p)), cpu_i64_const(cx, p->k * width_of(p))};
  cpu_kept_t kept;
  bool keep = cpu_keep(cx, tile, p->k * p->n * tw_bytes(p->type), &kept);
  rows.pointer = keep ? kept.pointer : cpu_new_buffer(cx, type);
  pack(cx, p, tile, rows.pointer, is_unsigned);
  if (keep)
    cpu_kept(cx, &kept);
  return rows;
}

/* Bytes as pairs: the left operand's are neighbours anyway. */
static rows_t operand_of_pairs(cpu_t *cx, const matmul_t *p, MlirValue tile, bool is_rhs, bool is_unsigned) {
  if (is_rhs)
    return packed(cx, p, tile, is_unsigned);
  return (rows_t){.pointer = widened(cx, tile, is_unsigned, cpu_int(cx, 16)), .stride = cpu_i64_const(cx, p->k)};
}

/* An operand in the type that multiplies. Bytes are widened into a buffer of their own. */
static rows_t operand(cpu_t *cx, const matmul_t *p, MlirValue tile, bool is_rhs, bool is_unsigned) {
  MlirType type = mlirValueGetType(tile);
  if (p->pairs)
    return operand_of_pairs(cx, p, tile, is_rhs, is_unsigned);
  if (is_rhs && can_pack(cx, p, tile))
    return packed(cx, p, tile, is_unsigned);
  rows_t rows = {.stride = cpu_i64_const(cx, tw_extent(type, tw_rank(type) - 1))};
  if (is_in_place(cx, tile, p->type))
    rows = rows_in_place(cx, tile, is_whole(cx, cpu_slot(cx, tile)->access, type, is_rhs));
  else
    rows.pointer = tw_is_int(type) ? widened(cx, tile, is_unsigned, p->type) : cpu_buffer(cx, tile);
  rows.panel = cpu_i64_const(cx, width_of(p));
  return rows;
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

/* Whether bytes multiply two at a time: machines of known vectors are x86's. */
static bool can_pair(const cpu_t *cx, const matmul_t *p, MlirValue lhs, MlirValue rhs) {
  enum { BYTE = 8, LEAST_LANES = 4, KNOWN_LANES = 8 };
  MlirType left = tw_element(mlirValueGetType(lhs)), right = tw_element(mlirValueGetType(rhs));
  return mlirTypeIsAInteger(left) && mlirTypeIsAInteger(right) && tw_bits(left) == BYTE && tw_bits(right) == BYTE &&
         cx->lanes >= KNOWN_LANES && p->lanes >= LEAST_LANES && p->k % 2 == 0 && tw_rank(mlirValueGetType(lhs)) == 2 &&
         tw_rank(mlirValueGetType(rhs)) == 2;
}

static void place_mma(cpu_t *cx, MlirOperation op) {
  MlirValue lhs = mlirOperationGetOperand(op, 0), rhs = mlirOperationGetOperand(op, 1),
            acc = mlirOperationGetOperand(op, 2), result = mlirOperationGetResult(op, 0);
  MlirType type = mlirValueGetType(result), left = mlirValueGetType(lhs);
  int rank = (int)tw_rank(type);
  matmul_t p = {.type = cpu_compute_type(cx, tw_element(type)), .batches = rank == 3 ? tw_extent(type, 0) : 1};
  p.m = tw_extent(type, rank - 2);
  p.n = tw_extent(type, rank - 1);
  p.k = tw_extent(left, rank - 1);
  choose_block(cx, &p);
  p.pairs = can_pair(cx, &p, lhs, rhs);
  int64_t steps = p.pairs ? p.k / 2 : p.k;
  while (steps % p.unroll != 0)
    p.unroll /= 2;
  p.steps = p.pairs ? cpu_i64_const(cx, steps) : steps_of(cx, &p, lhs, rhs);
  p.k = steps;
  find_ends(cx, &p, result);
  p.lhs = operand(cx, &p, lhs, false, tw_has_attr(op, "unsigned_lhs"));
  p.rhs = operand(cx, &p, rhs, true, tw_has_attr(op, "unsigned_rhs"));
  p.acc = cpu_buffer_for(cx, result);
  cpu_copy_into(cx, acc, p.acc);
  MlirValue buffer = p.acc;
  if (!cx->failed)
    product(cx, &p);
  round_result(cx, type, buffer);
  cpu_set_buffer(cx, result, buffer);
}

CPU_RULE(TW_TILE_MMA, CPU_EFFECT, 0, NULL, NULL, place_mma)

/* address.c - the addresses of one thread's accesses. See address.h. */
#include "lowering/gpu/emit/address.h"

#include "lowering/gpu/emit/row_ends.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/loops.h"
#include "lowering/ranges.h"
#include "tilewright/dialect.h"

#include "mlir-c/Dialect/LLVM.h"

static MlirValue to_i64(tw_emitter_t *e, MlirValue x) {
  return mlirIntegerTypeGetWidth(mlirValueGetType(x)) == 64 ? x : twg_cast(e, "llvm.sext", e->i64, x);
}

const char *twg_space_of(MlirValue pointer) {
  return mlirLLVMPointerTypeGetAddressSpace(mlirValueGetType(pointer)) == TW_SPACE_SHARED ? "shared" : "global";
}

MlirValue twg_to_bytes(tw_emitter_t *e, MlirValue elements, int bits) {
  if (bits == 8)
    return elements;
  if (bits == 4)
    return twg_binary(e, "llvm.ashr", elements, twg_const_int(e, e->i64, 1));
  return twg_binary(e, "llvm.mul", elements, twg_const_int(e, e->i64, bits / 8));
}

/* What is left of the array from `start` on; 0 for negative starts. */
static MlirValue left_from(tw_emitter_t *e, MlirValue extent, MlirValue start) {
  MlirValue zero = twg_const_int(e, e->i64, 0), left = twg_binary(e, "llvm.sub", extent, start);
  return twg_select(e, twg_icmp(e, TW_SLT, start, zero), zero, left);
}

/* The same as an i32 in [0, tile extent]. */
static MlirValue cut_from(tw_emitter_t *e, MlirValue extent, MlirValue start, int64_t tile) {
  MlirValue zero = twg_const_int(e, e->i64, 0);
  MlirValue left = twg_binary(e, "llvm.sub", extent, start);
  left = twg_binary(e, "llvm.intr.smin", left, twg_const_int(e, e->i64, tile));
  left = twg_binary(e, "llvm.intr.smax", left, zero);
  left = twg_select(e, twg_icmp(e, TW_SLT, start, zero), zero, left);
  return twg_cast(e, "llvm.trunc", e->i32, left);
}

/* Whether an i32 holds the number of the tile's last element. */
static bool is_short(MlirValue index, int64_t tile) {
  tw_range_t range = tw_range_of(index);
  return mlirTypeIsAInteger(mlirValueGetType(index)) && mlirIntegerTypeGetWidth(mlirValueGetType(index)) == 32 &&
         range.low >= 0 && range.high <= (INT32_MAX - tile + 1) / tile;
}

/* The array's last element, counted from the start of such a tile, as an i32. One that has no such number lies behind
 * the tile; the largest of them does, too, or ends it. In a loop that of an argument is cut in front of it. */
static MlirValue last_from(tw_emitter_t *e, MlirValue array, int axis, MlirValue index, int64_t tile) {
  MlirBlock here = e->block;
  MlirValue start = twg_binary(e, "llvm.mul", index, twg_const_i32(e, tile));
  if (e->outside.ptr && mlirValueIsABlockArgument(array))
    e->block = e->outside;
  MlirValue last = twg_binary(e, "llvm.add", twg_array_extent(e, array, axis), twg_const_int(e, e->i64, -1));
  last = twg_binary(e, "llvm.intr.smin", last, twg_const_int(e, e->i64, INT32_MAX));
  last = twg_cast(e, "llvm.trunc", e->i32, last);
  e->block = here;
  return twg_binary(e, "llvm.sub", last, start);
}

/* The coordinates along a dimension at which an access of a thread begins. */
static int64_t num_starts(MlirOperation op, const tw_layout_t *l, int dim) {
  int regs[TW_LAYOUT_MAX_BITS], contiguous = tw_access_contiguous_dim(op, l->rank);
  uint32_t mask = tw_layout_dim_mask(l, dim);
  int vector = contiguous == dim ? tw_layout_vector_bits(l, dim, tw_access_vector_bits(op, l->rank), regs) : 0;
  int bits = 0;
  for (int b = 0; b < l->bits[TW_REGISTER]; b++)
    bits += (l->basis[TW_REGISTER][b] & mask) != 0;
  return INT64_C(1) << (bits - vector);
}

/* Whether comparisons of 64 bits along a dimension, two instructions each, are fewer than those that cut what is left
 * to 32 bits before. A loop cuts it in front, and where tiles fill the registers what is left shall take one. What is
 * left of a thread must not overflow: a start of 32 bits cannot. */
static bool is_compared_wide(const tw_emitter_t *e, MlirOperation op, const tw_layout_t *l, int dim, MlirValue index) {
  enum { FEW = 4, FEW_REGISTERS = 16 };
  return e->outside.ptr == NULL && e->work.registers <= FEW_REGISTERS &&
         (tw_op_loads_tile(op) || tw_op_stores_tile(op)) && tw_layout_disjoint(l, dim) &&
         mlirTypeIsAInteger(mlirValueGetType(index)) && mlirIntegerTypeGetWidth(mlirValueGetType(index)) == 32 &&
         num_starts(op, l, dim) <= FEW;
}

MlirValue twg_owner_guard(tw_emitter_t *e, const tw_layout_t *l) {
  uint32_t mask = 0;
  for (int i = 0; i < l->bits[TW_LANE]; i++)
    mask |= l->basis[TW_LANE][i] == 0 ? UINT32_C(1) << i : 0;
  for (int i = 0; i < l->bits[TW_WARP]; i++)
    mask |= l->basis[TW_WARP][i] == 0 ? UINT32_C(32) << i : 0;
  if (mask == 0)
    return (MlirValue){NULL};
  MlirValue copies = twg_binary(e, "llvm.and", e->thread, twg_const_i32(e, mask));
  return twg_icmp(e, TW_EQ, copies, twg_const_i32(e, 0));
}

/* What is left of the array along `axis` from the thread's first element on, and what of the tile is inside. */
static void find_what_is_left(tw_emitter_t *e, tw_placed_t *p, MlirValue array, int axis, int dim, MlirValue old) {
  int64_t tile = tw_layout_extent(&p->layout, dim);
  MlirValue index = twg_lookup(e, old).at[0], coord = twg_thread_coord(e, &p->layout, dim);
  MlirValue start = twg_binary(e, "llvm.mul", to_i64(e, index), twg_const_int(e, e->i64, tile)), left, all;
  bool by_last = !p->wide[dim] && (e->outside.ptr || tile > 1) && is_short(old, tile);
  if (p->wide[dim]) {
    left = left_from(e, twg_array_extent(e, array, axis), start);
    all = twg_icmp(e, TW_SGE, left, twg_const_int(e, e->i64, tile));
    coord = twg_cast(e, "llvm.zext", e->i64, coord);
  } else if (by_last) {
    left = last_from(e, array, axis, index, tile);
    all = twg_icmp(e, TW_SGE, left, twg_const_i32(e, tile - 1));
  } else {
    left = cut_from(e, twg_array_extent(e, array, axis), start, tile);
    all = twg_icmp(e, TW_EQ, left, twg_const_i32(e, tile));
  }
  p->whole = p->whole.ptr ? twg_binary(e, "llvm.and", p->whole, all) : all;
  p->inside_if[dim] = by_last ? TW_SGE : TW_SGT;
  p->left[dim] = p->disjoint[dim] ? twg_binary(e, "llvm.sub", left, coord) : left;
}

/* Dimension `dim` of the tile runs along `axis` of the array; returns what it adds to the thread's first element, but
 * for constant bytes: tiles of one row share the rest. */
static MlirValue place_dimension(tw_emitter_t *e, tw_placed_t *p, MlirValue array, int axis, int dim, MlirValue old,
                                 int64_t *bytes) {
  int64_t tile = tw_layout_extent(&p->layout, dim), strides[TW_MAX_RANK], number;
  MlirValue index = twg_lookup(e, old).at[0];
  MlirValue start = twg_binary(e, "llvm.mul", to_i64(e, index), twg_const_int(e, e->i64, tile));
  MlirValue coord = twg_thread_coord(e, &p->layout, dim);
  if (!p->inside)
    find_what_is_left(e, p, array, axis, dim, old);
  p->stride[dim] = twg_array_stride(e, array, axis);
  p->fixed[dim] = tw_static_strides(mlirValueGetType(array), strides) ? strides[axis] : -1;
  p->guard_at[dim] = UINT32_MAX;
  if (p->fixed[dim] == 1 && p->disjoint[dim] && p->bits >= 8 && tw_known_int(old, &number)) {
    *bytes += number * tile * p->bits / 8;
    return to_i64(e, coord);
  }
  MlirValue along = p->disjoint[dim] ? twg_binary(e, "llvm.add", start, to_i64(e, coord)) : start;
  return p->fixed[dim] == 1 ? along : twg_binary(e, "llvm.mul", along, p->stride[dim]);
}

/* Whether nothing of where a tile lies is computed in the branch that is being emitted. */
static bool is_placed_outside(const tw_emitter_t *e, MlirOperation op, intptr_t first, int rank) {
  bool outside = e->aside.ptr != NULL && mlirBlockEqual(mlirOperationGetBlock(op), e->branch);
  for (intptr_t i = first - 1; i < first + rank && outside; i++)
    outside = !tw_defined_in(mlirOperationGetOperand(op, i), e->branch);
  return outside;
}

void twg_place(tw_emitter_t *e, MlirOperation op, MlirType element, const tw_layout_t *layout, tw_placed_t *p) {
  intptr_t first;
  int64_t order[TW_LAYOUT_MAX_RANK], bytes = 0;
  MlirValue array = tw_access_array(op, &first), sum = {NULL};
  MlirBlock here = e->block;
  if (is_placed_outside(e, op, first, layout->rank))
    e->block = e->aside;
  *p = (tw_placed_t){
      .layout = *layout, .bits = tw_memory_bits(element), .inside = tw_has_attr(op, TW_IN_BOUNDS), .row_dim = -1};
  tw_access_order(op, layout->rank, order);
  for (int d = 0; d < layout->rank; d++) {
    p->disjoint[d] = tw_layout_disjoint(layout, d);
    p->sure[d] = twg_surely_inside(e, op, layout, d);
    p->wide[d] = is_compared_wide(e, op, layout, d, mlirOperationGetOperand(op, first + d));
  }
  for (int d = 0; d < layout->rank; d++) {
    MlirValue along = place_dimension(e, p, array, (int)order[d], d, mlirOperationGetOperand(op, first + d), &bytes);
    sum = sum.ptr ? twg_binary(e, "llvm.add", sum, along) : along;
  }
  p->pointer = twg_array_pointer(e, array);
  if (sum.ptr)
    p->pointer = twg_offset_pointer(e, p->pointer, twg_to_bytes(e, sum, p->bits));
  p->pointer = twg_add_bytes(e, p->pointer, bytes);
  e->block = here;
}

twg_row_t twg_place_row(tw_emitter_t *e, MlirOperation op, MlirType element, const tw_layout_t *layout, int dim) {
  intptr_t first;
  int64_t order[TW_LAYOUT_MAX_RANK];
  MlirValue array = tw_access_array(op, &first), elements = {NULL}, inside = {NULL};
  twg_row_t row = {.count = twg_const_i32(e, tw_layout_extent(layout, dim))};
  bool checks = !tw_has_attr(op, TW_IN_BOUNDS);
  tw_access_order(op, layout->rank, order);
  for (int d = 0; d < layout->rank; d++) {
    MlirValue index = to_i64(e, twg_operand(e, op, first + d).at[0]),
              extent = twg_array_extent(e, array, (int)order[d]);
    MlirValue start = twg_binary(e, "llvm.mul", index, twg_const_int(e, e->i64, tw_layout_extent(layout, d)));
    MlirValue along = twg_binary(e, "llvm.mul", start, twg_array_stride(e, array, (int)order[d]));
    elements = elements.ptr ? twg_binary(e, "llvm.add", elements, along) : along;
    if (checks && d == dim) {
      row.count = cut_from(e, extent, start, tw_layout_extent(layout, d));
    } else if (checks) { /* a negative number is a large one */
      MlirValue is_there = twg_icmp(e, TW_ULT, index, extent);
      inside = inside.ptr ? twg_binary(e, "llvm.and", inside, is_there) : is_there;
    }
  }
  if (inside.ptr)
    row.count = twg_select(e, inside, row.count, twg_const_i32(e, 0));
  row.pointer = twg_offset_pointer(e, twg_array_pointer(e, array), twg_to_bytes(e, elements, tw_memory_bits(element)));
  return row;
}

MlirValue twg_is_inside(tw_emitter_t *e, const tw_placed_t *p, int dim, MlirValue at) {
  return twg_icmp(e, p->inside_if[dim], p->left[dim], at);
}

MlirValue twg_left_behind(tw_emitter_t *e, const tw_placed_t *p, int dim, MlirValue at, int64_t most) {
  bool by_last = p->inside_if[dim] == TW_SGE;
  MlirValue left = twg_binary(e, "llvm.sub", p->left[dim], at);
  left = twg_binary(e, "llvm.intr.smin", left, twg_const_i32(e, by_last ? most - 1 : most));
  return by_last ? twg_binary(e, "llvm.add", left, twg_const_i32(e, 1)) : left;
}

void twg_put_inside_only_if(tw_emitter_t *e, tw_placed_t *p, int dim, MlirValue condition) {
  MlirValue none = twg_const_i32(e, p->inside_if[dim] == TW_SGE ? -1 : 0);
  p->left[dim] = twg_select(e, condition, p->left[dim], none);
}

MlirValue twg_access_guard(tw_emitter_t *e, tw_placed_t *p, int r) {
  MlirValue guard = p->owner;
  uint32_t image = tw_layout_image(&p->layout, TW_REGISTER, (uint32_t)r);
  bool none = p->owner.ptr == NULL;
  for (int d = 0; d < p->layout.rank && !p->inside; d++) {
    uint32_t c = tw_layout_coord(&p->layout, image, d);
    if (c < p->sure[d]) /* so are those of the other threads */
      continue;
    none = false;
    if (p->guard_at[d] != c) {
      MlirValue at =
          p->disjoint[d] ? twg_const_int(e, p->wide[d] ? e->i64 : e->i32, c) : twg_register_coord(e, &p->layout, d, r);
      p->guard[d] = twg_is_inside(e, p, d, at);
      p->guard_at[d] = p->disjoint[d] ? c : UINT32_MAX;
    }
    guard = guard.ptr ? twg_binary(e, "llvm.and", guard, p->guard[d]) : p->guard[d];
  }
  return guard.ptr || (none && p->sure[0] > 0) ? guard : twg_const_int(e, e->i1, 1);
}

void twg_step_along_rows(tw_emitter_t *e, tw_placed_t *p) {
  for (int d = 0; d < p->layout.rank; d++)
    if (p->disjoint[d] && p->fixed[d] < 0)
      p->row_dim = d;
  if (p->row_dim < 0)
    return;
  /* What an iteration adds to it, no optimizer of loops knows then. */
  MlirType type = mlirValueGetType(p->pointer);
  p->pointer = twg_asm(e, "mov.b64 $0, $1;", "=l,l", type, 1, &p->pointer, TW_PTX_NOTHING);
}

/* From the thread's first element to a register's: along all dimensions with a run-time distance, in elements (null if
 * there is none), and along the others, in bytes. */
static MlirValue distance_of(tw_emitter_t *e, const tw_placed_t *p, int r, int skipped, int64_t *offset) {
  uint32_t image = tw_layout_image(&p->layout, TW_REGISTER, (uint32_t)r);
  MlirValue sum = {NULL};
  int64_t elements = 0;
  for (int d = 0; d < p->layout.rank; d++) {
    uint32_t c = tw_layout_coord(&p->layout, image, d);
    if (d == skipped)
      continue;
    if (p->disjoint[d] && (c == 0 || p->fixed[d] >= 0)) {
      elements += c ? (int64_t)c * p->fixed[d] : 0;
      continue;
    }
    MlirValue at = p->disjoint[d] ? twg_const_int(e, e->i64, c)
                                  : twg_cast(e, "llvm.zext", e->i64, twg_register_coord(e, &p->layout, d, r));
    MlirValue along = twg_binary(e, "llvm.mul", p->stride[d], at);
    sum = sum.ptr ? twg_binary(e, "llvm.add", sum, along) : along;
  }
  *offset = elements * p->bits / 8;
  return sum;
}

static MlirValue add_elements(tw_emitter_t *e, const tw_placed_t *p, MlirValue pointer, MlirValue elements) {
  return elements.ptr ? twg_offset_pointer(e, pointer, twg_to_bytes(e, elements, p->bits)) : pointer;
}

/* The address without constant bytes, from that of the row before with the same other coordinates. */
static MlirValue row_pointer(tw_emitter_t *e, tw_placed_t *p, int r, int64_t *offset) {
  uint32_t image = tw_layout_image(&p->layout, TW_REGISTER, (uint32_t)r),
           mask = tw_layout_dim_mask(&p->layout, p->row_dim);
  uint32_t others = image & ~mask, at = tw_layout_coord(&p->layout, image, p->row_dim);
  tw_row_pointer_t *row = NULL;
  MlirValue stride = p->stride[p->row_dim], along = distance_of(e, p, r, p->row_dim, offset);
  for (int i = 0; row == NULL && i < p->num_rows; i++)
    row = p->rows[i].others == others ? &p->rows[i] : NULL;
  if (row == NULL) {
    row = &p->rows[p->num_rows < TW_MAX_ROWS_UNDER_WAY ? p->num_rows++ : TW_MAX_ROWS_UNDER_WAY - 1];
    *row = (tw_row_pointer_t){.others = others, .pointer = add_elements(e, p, p->pointer, along)};
  }
  int64_t rows = (int64_t)at - (int64_t)row->at;
  if (rows != 0)
    row->pointer = add_elements(e, p, row->pointer, twg_binary(e, "llvm.mul", stride, twg_const_int(e, e->i64, rows)));
  row->at = at;
  return row->pointer;
}

MlirValue twg_access_pointer(tw_emitter_t *e, tw_placed_t *p, int r, int64_t *offset) {
  if (p->row_dim >= 0)
    return row_pointer(e, p, r, offset);
  return add_elements(e, p, p->pointer, distance_of(e, p, r, -1, offset));
}

void twg_vector_registers(int r, int bits, const int *regs, int *out) {
  for (int i = 0; i < 1 << bits; i++) {
    out[i] = r;
    for (int b = 0; b < bits; b++)
      out[i] |= (i >> b & 1) << regs[b];
  }
}

bool twg_starts_vector(int r, int bits, const int *regs) {
  for (int b = 0; b < bits; b++)
    if (r >> regs[b] & 1)
      return false;
  return true;
}

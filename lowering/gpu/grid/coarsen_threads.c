/* coarsen_threads.c - tile-resize-tiles: a thread computes several neighbouring elements
 *
 * Before: a thread for each element.
 *
 *     %t = tile.thread_id 0 + tile.block_id 0 * tile.block_dim 0
 *     scf.if %t < %n {
 *       tile.scatter (tile.gather %x[%t]) * %a, %y[%t]
 *     }
 *
 * After: the elements of four blocks in a row are those of one, four to a thread (packed_blocks of the launch record;
 * the extents of the program's grid follow the other words).
 *
 *     %first = %t * 4
 *     scf.if <all four are threads of the program, and agree on %t < %n> {
 *       scf.if <%first + 0, 1, 2, 3 < %n> {
 *         four times tile.gather %x[%first + 0, 1, 2, 3], side by side, then four products, then four tile.scatter
 *       }
 *     } else {
 *       scf.for <each of them, or %t alone where the launch has few blocks> { as before }
 *     }
 *
 * Why: accesses that are side by side become one of 16 bytes, neighbours of a stencil are loaded once, and the hardware
 * starts only so many blocks in a microsecond (docs/design/measurements.md).
 *
 * What must hold: threads do nothing but compute, load and store, without loops: they meet nobody, so that they may
 * go side by side. Along x a thread knows of its place nothing but the number `thread + block * threads of a block`.
 * Where that number is in an index, it is that of the axis whose elements lie side by side, plus a constant;
 * what is stored there begins at multiples of a vector. Branches that elements of a thread take apart, by numbers that
 * are loaded, are taken one after the other. */
#include "base/memory.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/grid/resize_tiles.h"
#include "lowering/launch_record.h"
#include "lowering/loops.h"

enum { MOST_ELEMENTS = 4, FEW_ELEMENTS = 2, VECTOR_BYTES = 16, MANY_OPS = 80, MOST_OPS = 128 };

/* How a value differs from element to element of a thread: by its number, or by what was loaded, or both. */
enum { BY_PLACE = 1, BY_DATA = 2 };

typedef struct {
  MlirOperation func;
  tw_map_t differs;
  tw_ops_t extents; /* tile.num_blocks 0 */
  int elements, ops;
  bool moves, refused;
  tw_map_t copy[MOST_ELEMENTS]; /* values of each element */
} thread_coarsener_t;

/* ---- the number of a thread ---------------------------------------------------------------------- */

static bool is_extension(MlirOperation op) { return tw_op_is(op, TW_ARITH_EXTSI) || tw_op_is(op, TW_ARITH_EXTUI); }

static MlirOperation narrow_def(MlirValue value) {
  MlirOperation op = tw_def(value);
  while (!mlirOperationIsNull(op) && is_extension(op))
    op = tw_def(mlirOperationGetOperand(op, 0));
  return op;
}

/* Along x, in any width. */
static bool is_position(MlirValue value, tw_op_kind_t kind) {
  MlirOperation op = narrow_def(value);
  return !mlirOperationIsNull(op) && tw_op_is(op, kind) && tw_attr_int(op, "axis", 0) == 0;
}

static bool is_of(MlirOperation op, tw_op_kind_t kind) { return !mlirOperationIsNull(op) && tw_op_is(op, kind); }

/* The number of the first thread of a block. */
static bool is_start(MlirOperation op) {
  if (!is_of(op, TW_ARITH_MULI))
    return false;
  MlirValue x = mlirOperationGetOperand(op, 0), y = mlirOperationGetOperand(op, 1);
  return (is_position(x, TW_TILE_BLOCK_ID) && is_position(y, TW_TILE_BLOCK_DIM)) ||
         (is_position(y, TW_TILE_BLOCK_ID) && is_position(x, TW_TILE_BLOCK_DIM));
}

static bool is_place(MlirOperation op) {
  if (!is_of(op, TW_ARITH_ADDI))
    return false;
  MlirValue x = mlirOperationGetOperand(op, 0), y = mlirOperationGetOperand(op, 1);
  return (is_position(x, TW_TILE_THREAD_ID) && is_start(tw_def(y))) ||
         (is_position(y, TW_TILE_THREAD_ID) && is_start(tw_def(x)));
}

/* The number, in whatever width. */
static bool is_number(MlirValue value) {
  MlirOperation op = narrow_def(value);
  return !mlirOperationIsNull(op) && is_place(op);
}

/* Whether an op uses the place of a thread otherwise than for its number. */
static bool tells_thread(MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirValue value = mlirOperationGetOperand(op, i);
    MlirOperation def = tw_def(value);
    bool wide = is_extension(op);
    if ((is_position(value, TW_TILE_THREAD_ID) && !wide && !is_place(op)) ||
        (is_position(value, TW_TILE_BLOCK_ID) && !wide && !is_start(op)) ||
        (!mlirOperationIsNull(def) && is_start(def) && !is_place(op)))
      return true;
  }
  return false;
}

/* ---- what differs, and whether all of it can go side by side ----------------------------------------------- */

static int how(const thread_coarsener_t *c, MlirValue value) { return tw_map_number(&c->differs, value, 0); }

static int how_operands(const thread_coarsener_t *c, MlirOperation op) {
  int all = 0;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    all |= how(c, mlirOperationGetOperand(op, i));
  return all;
}

/* A number plus a constant. */
static bool is_beside(MlirValue index, int64_t *by) {
  MlirOperation op = tw_def(index);
  *by = 0;
  if (is_number(index))
    return true;
  if (mlirOperationIsNull(op) || !(tw_op_is(op, TW_ARITH_ADDI) || tw_op_is(op, TW_ARITH_SUBI)))
    return false;
  return is_number(mlirOperationGetOperand(op, 0)) && tw_known_int(mlirOperationGetOperand(op, 1), by);
}

static int64_t number_at(MlirOperation func, MlirValue argument, const char *name, intptr_t axis) {
  int64_t numbers[TW_MAX_RANK];
  MlirAttribute all = tw_arg_attr(func, mlirBlockArgumentGetArgNumber(argument), name);
  return !mlirAttributeIsNull(all) && tw_array_ints(all, numbers, TW_MAX_RANK) > axis ? numbers[axis] : 1;
}

/* Whether vectors of `elements` that begin at multiples of it are aligned in the array: an argument. */
static bool is_aligned(const thread_coarsener_t *c, MlirValue array, int elements) {
  if (!mlirValueIsABlockArgument(array))
    return false;
  MlirAttribute align = tw_arg_attr(c->func, mlirBlockArgumentGetArgNumber(array), "tile.align");
  int64_t bytes = (int64_t)tw_bytes(tw_element(mlirValueGetType(array))) * elements;
  bool ok = !mlirAttributeIsNull(align) && mlirIntegerAttrGetValueInt(align) % bytes == 0;
  for (intptr_t axis = 0; axis + 1 < tw_rank(mlirValueGetType(array)); axis++)
    ok = ok && number_at(c->func, array, "tile.stride_div", axis) % elements == 0;
  return ok;
}

static int elements_of(MlirType array) {
  int count = VECTOR_BYTES / (int)tw_bytes(tw_element(array));
  return count < MOST_ELEMENTS ? count : MOST_ELEMENTS;
}

/* An access at the number of the thread moves a vector; one at a place that was loaded goes element by element. */
static void look_at_access(thread_coarsener_t *c, MlirOperation op) {
  intptr_t first, count = tw_operands(op, TW_OPERAND_INDICES, &first);
  MlirValue array = tw_operand(op, TW_OPERAND_ARRAY);
  MlirType type = mlirValueGetType(array);
  int64_t strides[TW_MAX_RANK], by = 0;
  bool known = tw_static_strides(type, strides), vector = false;
  for (intptr_t axis = 0; axis < count; axis++) {
    MlirValue index = mlirOperationGetOperand(op, first + axis);
    if (!(how(c, index) & BY_PLACE))
      continue;
    vector =
        known && axis == count - 1 && strides[axis] == 1 && is_beside(index, &by) && tw_bytes(tw_element(type)) > 0;
    c->refused |= !vector;
  }
  c->refused |= (how(c, array) & BY_PLACE) != 0;
  if (!vector)
    return;
  int elements = elements_of(type);
  c->elements = c->elements == 0 || elements < c->elements ? elements : c->elements;
  c->moves |= is_aligned(c, array, elements);
  c->refused |= tw_op_scatters(op) && (by != 0 || !is_aligned(c, array, elements));
}

static bool is_allowed(MlirOperation op) {
  if (tw_op_is(op, TW_SCF_IF) || tw_op_is(op, TW_SCF_YIELD) || tw_op_is(op, TW_FUNC_RETURN))
    return true;
  if (tw_op_gathers(op) || tw_op_scatters(op))
    return !tw_has_attr(op, "check_bounds") && tw_operand(op, TW_OPERAND_MASK).ptr == NULL;
  return tw_op_has(op, TW_PURE) && mlirOperationGetNumRegions(op) == 0 &&
         (tw_op_form(op) != TW_FORM_POSITION || tw_has_attr(op, "axis")); /* not which lane it is */
}

static void note(thread_coarsener_t *c, MlirOperation op, int kind) {
  for (intptr_t i = 0; kind && i < mlirOperationGetNumResults(op); i++)
    tw_map_set_number(&c->differs, mlirOperationGetResult(op, i), kind);
}

/* What the branches end with, and which is taken. */
static void note_results(thread_coarsener_t *c, MlirOperation branch) {
  int all = how_operands(c, branch);
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(branch); r++)
    if (!mlirBlockIsNull(tw_region_block(branch, r)))
      all |= how_operands(c, mlirBlockGetTerminator(tw_region_block(branch, r)));
  note(c, branch, all);
}

/* Behind the ops of its regions. */
static MlirWalkResult look(MlirOperation op, void *user) {
  thread_coarsener_t *c = user;
  if (mlirOperationEqual(op, c->func))
    return MlirWalkResultAdvance;
  c->ops++;
  c->refused |= !is_allowed(op) || tells_thread(op);
  if (c->refused)
    return MlirWalkResultInterrupt;
  if (tw_op_is(op, TW_TILE_NUM_BLOCKS) && tw_attr_int(op, "axis", 0) == 0)
    tw_ops_add(&c->extents, op);
  if (tw_op_is(op, TW_SCF_IF))
    note_results(c, op);
  else if (is_place(op))
    note(c, op, BY_PLACE);
  else
    note(c, op, tw_op_gathers(op) && how_operands(c, op) ? BY_DATA : how_operands(c, op));
  if (tw_op_gathers(op) || tw_op_scatters(op))
    look_at_access(c, op);
  return MlirWalkResultAdvance;
}

static bool is_suitable(thread_coarsener_t *c) {
  if (!tw_has_attr(c->func, "tile.simt") || tw_has_attr(c->func, "tile.c_signature") || tw_has_hint_exported(c->func) ||
      tw_hint_as_launched(c->func, 0) || tw_hint_coarsen_tiles(c->func, 0) == 1)
    return false;
  mlirOperationWalk(c->func, look, c, MlirWalkPostOrder);
  if (c->ops > MANY_OPS && c->elements > FEW_ELEMENTS) /* they take as long to compile as they are long */
    c->elements = FEW_ELEMENTS;
  return !c->refused && c->moves && c->elements > 1 && c->ops <= MOST_OPS;
}

/* ---- side by side ------------------------------------------------------------------------------- */

/* Whether a condition can be computed before it is asked for: it neither loads nor divides. */
static bool is_early(const thread_coarsener_t *c, MlirValue value) {
  MlirOperation op = tw_def(value);
  if (mlirOperationIsNull(op))
    return true;
  tw_op_class_t class = tw_op_class(op);
  bool ok = tw_op_has(op, TW_PURE) && mlirOperationGetNumRegions(op) == 0 && class != TW_CLASS_QUOTIENT &&
            class != TW_CLASS_CEILING && class != TW_CLASS_REST;
  for (intptr_t i = 0; ok && i < mlirOperationGetNumOperands(op); i++)
    ok = is_early(c, mlirOperationGetOperand(op, i));
  return ok;
}

/* Of a condition: true of all elements, or of any. */
static MlirValue joined(thread_coarsener_t *c, const tw_builder_t *at, const char *name, MlirValue condition) {
  MlirType bit = mlirValueGetType(condition);
  MlirValue all = tw_map_value(&c->copy[0], condition);
  for (int j = 1; j < c->elements; j++)
    all = tw_binary(at, name, bit, all, tw_map_value(&c->copy[j], condition));
  return all;
}

typedef struct {
  thread_coarsener_t *c;
  const tw_builder_t *at;
  MlirValue agree; /* null: nothing to agree on */
} agreement_t;

static bool parts_elements(const thread_coarsener_t *c, MlirOperation op) {
  return tw_op_is(op, TW_SCF_IF) && how(c, mlirOperationGetOperand(op, 0)) == BY_PLACE;
}

/* Branches on which the elements of a thread must agree to go side by side. */
static MlirWalkResult agree_on(MlirOperation op, void *user) {
  agreement_t *a = user;
  thread_coarsener_t *c = a->c;
  if (!parts_elements(c, op) || !is_early(c, mlirOperationGetOperand(op, 0)))
    return MlirWalkResultAdvance;
  MlirValue condition = mlirOperationGetOperand(op, 0);
  MlirType bit = mlirValueGetType(condition);
  for (int j = 0; j < c->elements; j++)
    tw_copy_slice(a->at, condition, tw_region_block(c->func, 0), &c->copy[j]);
  MlirValue same =
      tw_compare(a->at, TW_EQ, joined(c, a->at, "arith.andi", condition), joined(c, a->at, "arith.ori", condition));
  a->agree = a->agree.ptr ? tw_binary(a->at, "arith.andi", bit, a->agree, same) : same;
  return MlirWalkResultAdvance;
}

static void go_side_by_side(thread_coarsener_t *c, const tw_builder_t *at, MlirOperation op);

/* A block of `from`'s ops side by side; what it ends with, as many times as results differ. */
static MlirBlock new_branch(thread_coarsener_t *c, const tw_builder_t *at, MlirOperation branch, intptr_t region) {
  MlirBlock from = tw_region_block(branch, region), made = mlirBlockCreate(0, NULL, NULL);
  tw_builder_t in = tw_build_at_end(made, at->location);
  intptr_t num = mlirOperationGetNumResults(branch), count = 0;
  MlirValue *ends = tw_allocate((size_t)(num * c->elements), sizeof *ends);
  if (!mlirBlockIsNull(from)) {
    go_side_by_side(c, &in, mlirBlockGetFirstOperation(from));
    for (intptr_t i = 0; i < num; i++)
      for (int j = 0; j < (how(c, mlirOperationGetResult(branch, i)) ? c->elements : 1); j++)
        ends[count++] = tw_map_value(&c->copy[j], mlirOperationGetOperand(mlirBlockGetTerminator(from), i));
  }
  tw_build(&in, "scf.yield", (tw_op_parts_t){.num_operands = count, .operands = ends});
  free(ends);
  return made;
}

/* A branch that all elements take alike. */
static void branch_together(thread_coarsener_t *c, const tw_builder_t *at, MlirOperation branch) {
  MlirValue condition = joined(c, at, "arith.andi", mlirOperationGetOperand(branch, 0));
  MlirBlock then = new_branch(c, at, branch, 0), none = {NULL};
  MlirBlock otherwise = mlirBlockIsNull(tw_region_block(branch, 1)) ? none : new_branch(c, at, branch, 1);
  MlirOperation made = tw_build_if(at, condition, then, otherwise);
  for (intptr_t i = 0, next = 0; i < mlirOperationGetNumResults(branch); i++) {
    MlirValue result = mlirOperationGetResult(branch, i);
    bool apart = how(c, result) != 0;
    for (int j = 0; j < c->elements; j++)
      tw_map_one(&c->copy[j], result, mlirOperationGetResult(made, apart ? next + j : next));
    next += apart ? c->elements : 1;
  }
}

static void go_on(thread_coarsener_t *c, const tw_builder_t *at, MlirOperation op) {
  MlirValue condition = tw_op_is(op, TW_SCF_IF) ? mlirOperationGetOperand(op, 0) : (MlirValue){NULL};
  if (condition.ptr && (how(c, condition) == 0 || (parts_elements(c, op) && is_early(c, condition)))) {
    branch_together(c, at, op);
    return;
  }
  bool apart = condition.ptr || how_operands(c, op);
  for (int j = 0; j < (apart ? c->elements : 1); j++)
    tw_copy_op(at, op, &c->copy[j]);
  for (intptr_t i = 0; !apart && i < mlirOperationGetNumResults(op); i++)
    for (int j = 1; j < c->elements; j++) {
      MlirValue result = mlirOperationGetResult(op, i);
      tw_map_one(&c->copy[j], result, tw_map_value(&c->copy[0], result));
    }
}

static bool holds_number(MlirOperation op) {
  return mlirOperationGetNumResults(op) == 1 && is_number(mlirOperationGetResult(op, 0));
}

/* The ops of a block from `op` on. */
static void go_side_by_side(thread_coarsener_t *c, const tw_builder_t *at, MlirOperation op) {
  MlirOperation end = mlirBlockGetTerminator(mlirOperationGetBlock(op));
  for (; !mlirOperationEqual(op, end); op = mlirOperationGetNextInBlock(op))
    if (!holds_number(op))
      go_on(c, at, op);
}

/* ---- the two ways of a kernel --------------------------------------------------------------------- */

/* A number in the type of a value: of natural numbers, or of what one makes of them modulo 2^32. */
static MlirValue in_width(const tw_builder_t *at, MlirType type, MlirValue value) {
  unsigned have = tw_bits(mlirValueGetType(value)), wanted = tw_bits(type);
  return have == wanted ? value : tw_unary(at, have < wanted ? "arith.extsi" : "arith.trunci", type, value);
}

typedef struct {
  tw_builder_t at;
  tw_ops_t numbers;   /* ops that have the number of a thread, in some width */
  MlirValue elements; /* of a thread; what follows is i64, too */
  MlirValue thread;   /* its number among those that were started */
  MlirValue first;    /* its first element, where the launch joined blocks */
  MlirValue all;      /* threads of the program */
  MlirValue joined;   /* i1: whether it did */
} joined_launch_t;

static MlirValue position(const tw_builder_t *at, const char *name) {
  MlirType i32 = tw_i32(at->context), i64 = tw_i64(at->context);
  return tw_unary(at, "arith.extui", i64, tw_op1_attr(at, name, i32, 0, NULL, "axis", mlirIntegerAttrGet(i32, 0)));
}

static joined_launch_t begin(thread_coarsener_t *c, MlirValue extent) {
  joined_launch_t l = {.at = tw_build_before(mlirBlockGetFirstOperation(tw_region_block(c->func, 0))),
                       .numbers = tw_ops_in(c->func, holds_number, MlirWalkPreOrder)};
  l.at.location = mlirOperationGetLocation(c->func);
  MlirType i64 = tw_i64(l.at.context);
  MlirValue threads = position(&l.at, "tile.block_dim"), blocks = tw_unary(&l.at, "arith.extui", i64, extent);
  MlirValue start = tw_binary(&l.at, "arith.muli", i64, position(&l.at, "tile.block_id"), threads);
  l.thread = tw_binary(&l.at, "arith.addi", i64, start, position(&l.at, "tile.thread_id"));
  l.joined = tw_compare(&l.at, TW_NE, position(&l.at, "tile.num_blocks"), blocks);
  l.elements = tw_const_int(&l.at, i64, c->elements);
  l.first = tw_binary(&l.at, "arith.muli", i64, l.thread, l.elements);
  l.all = tw_binary(&l.at, "arith.muli", i64, threads, blocks);
  return l;
}

/* In the type of each number, the first element of a thread plus j, which carries nothing, since it is a multiple. */
static void number_elements(thread_coarsener_t *c, const joined_launch_t *l) {
  for (int i = 0; i < l->numbers.count; i++) {
    MlirOperation op = l->numbers.at[i];
    MlirValue number = mlirOperationGetResult(op, 0), first;
    MlirType type = mlirValueGetType(number);
    if (is_extension(op))
      tw_copy_op(&l->at, op, &c->copy[0]);
    first = tw_map_value(&c->copy[0], number);
    if (is_place(op))
      first = tw_binary(&l->at, "arith.muli", type, in_width(&l->at, type, l->thread),
                        tw_const_int(&l->at, type, c->elements));
    for (int j = 0; j < c->elements; j++)
      tw_map_one(&c->copy[j], number,
                 j ? tw_binary(&l->at, "arith.addi", type, first, tw_const_int(&l->at, type, j)) : first);
  }
}

/* The loop over the elements of a thread, which takes the ops of the function from `op` on. */
static MlirBlock one_by_one(thread_coarsener_t *c, const joined_launch_t *l, MlirOperation op) {
  MlirBlock made = mlirBlockCreate(0, NULL, NULL), body;
  tw_builder_t at = tw_build_at_end(made, l->at.location);
  MlirType i32 = tw_i32(at.context), i64 = tw_i64(at.context);
  MlirValue one = tw_const_int(&at, i64, 1), first = tw_select(&at, l->joined, l->first, l->thread);
  MlirValue count = tw_binary(&at, "arith.minsi", i64, tw_select(&at, l->joined, l->elements, one),
                              tw_binary(&at, "arith.subi", i64, l->all, first));
  MlirValue bounds[] = {tw_const_int(&at, i32, 0), in_width(&at, i32, count), tw_const_int(&at, i32, 1)};
  body = mlirBlockCreate(1, &i32, &at.location);
  tw_builder_t in = tw_build_at_end(body, at.location);
  MlirOperation end = mlirBlockGetTerminator(tw_region_block(c->func, 0)), yield, next;
  yield = tw_build(&in, "scf.yield", (tw_op_parts_t){0});
  in = tw_build_before(yield);
  MlirValue number = tw_binary(&in, "arith.addi", i64, first, in_width(&in, i64, mlirBlockGetArgument(body, 0)));
  for (int i = 0; i < l->numbers.count; i++) {
    MlirValue old = mlirOperationGetResult(l->numbers.at[i], 0);
    if (is_place(l->numbers.at[i]))
      mlirValueReplaceAllUsesOfWith(old, in_width(&in, mlirValueGetType(old), number));
  }
  for (; !mlirOperationEqual(op, end); op = next) {
    next = mlirOperationGetNextInBlock(op);
    mlirOperationMoveBefore(op, yield);
  }
  tw_build_for(&at, TW_FOR_INITS, bounds, tw_region_with(body));
  tw_build(&at, "scf.yield", (tw_op_parts_t){0});
  return made;
}

static void coarsen(thread_coarsener_t *c) {
  MlirValue extents[TW_GRID_AXES];
  MlirBlock body = tw_region_block(c->func, 0), together = mlirBlockCreate(0, NULL, NULL);
  MlirOperation old = mlirBlockGetFirstOperation(body);
  tw_add_grid_extents(c->func, extents);
  for (int i = 0; i < c->extents.count; i++)
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(c->extents.at[i], 0), extents[0]);
  joined_launch_t l = begin(c, extents[0]);
  number_elements(c, &l);
  MlirValue last = tw_binary(&l.at, "arith.addi", mlirValueGetType(l.first), l.first, l.elements);
  MlirValue whole =
      tw_binary(&l.at, "arith.andi", mlirValueGetType(l.joined), l.joined, tw_compare(&l.at, TW_SLE, last, l.all));
  agreement_t a = {c, &l.at, {NULL}};
  mlirOperationWalk(c->func, agree_on, &a, MlirWalkPreOrder);
  if (a.agree.ptr)
    whole = tw_binary(&l.at, "arith.andi", mlirValueGetType(whole), whole, a.agree);
  tw_builder_t in = tw_build_at_end(together, l.at.location);
  go_side_by_side(c, &in, old);
  tw_build(&in, "scf.yield", (tw_op_parts_t){0});
  MlirBlock apart = one_by_one(c, &l, old);
  tw_builder_t at = tw_build_before(mlirBlockGetTerminator(body));
  tw_build_if(&at, whole, together, apart);
  tw_ops_free(&l.numbers);
  tw_launch_set_packed_blocks(c->func, (uint32_t)c->elements);
  tw_op_remark(c->func, "computes %d neighbouring elements in each thread, and joins as many blocks", c->elements);
}

bool tw_coarsen_threads(MlirOperation func) {
  thread_coarsener_t c = {.func = func};
  if (is_suitable(&c))
    coarsen(&c);
  for (int j = 0; j < MOST_ELEMENTS; j++)
    tw_map_free(&c.copy[j]);
  tw_map_free(&c.differs);
  tw_ops_free(&c.extents);
  return true;
}

/* cpu.h - shared by the files of the CPU lowering
 *
 * How it works. A tile is either in a *buffer* (row-major in the scratch memory of the thread), or *virtual*: computed
 * on demand, one strip of lanes at a time, wherever a loop nest needs it. cpu_eval(value, point) is that demand. So
 * each root (store, reduction, buffer to fill) becomes one loop nest, into which everything that it needs is fused.
 * region.c decides which virtual tiles deserve a buffer; a nest that visits all of such a tile fills the buffer
 * while passing by ("tee").
 *
 * In registers a value has the *compute type* of its element: f32 for the narrow floats (always a value that the
 * narrow type can represent), else the element itself. A strip is a 1-D vector, or a scalar where all lanes agree. */
#ifndef TILEWRIGHT_LOWERING_CPU_H
#define TILEWRIGHT_LOWERING_CPU_H

#include "lowering/common/uniform.h"
#include "lowering/ir.h"
#include "tilewright/machine.h"

enum { CPU_MAX_DEPTH = 64, CPU_MAX_OPERANDS = 16, CPU_MOST_KEPT = 4 };

/* A position along one axis: base + offset, in i64; a null base is zero. `depth` is the innermost open scope that the
 * base depends on. */
typedef struct {
  MlirValue base;
  int64_t offset;
  int depth;
} cpu_index_t;

/* One strip of a tile: an index per axis, and along `axis` (none: -1) as many lanes from there on. */
typedef struct {
  int rank, axis, lanes;
  cpu_index_t at[TW_MAX_RANK];
} cpu_point_t;

/* The place of a tile.load or tile.store, computed once where the op stands. Axis d of the tile runs with stride[d]
 * through memory; elements from limit[d] on lie outside of the array. */
typedef struct {
  MlirValue array;   /* of the source */
  MlirValue pointer; /* of the array */
  MlirType element;  /* of the array */
  MlirValue origin;  /* elements from the pointer to the tile's first one, i64 */
  MlirValue stride[TW_MAX_RANK];
  bool unit[TW_MAX_RANK]; /* the stride is one */
  MlirValue limit[TW_MAX_RANK];
  int depth;
} cpu_access_t;

/* An array argument, unpacked. */
typedef struct {
  MlirValue pointer, extent[TW_MAX_RANK], stride[TW_MAX_RANK];
  bool unit[TW_MAX_RANK];
} cpu_array_t;

typedef enum { CPU_VIRTUAL, CPU_SCALAR, CPU_BUFFER } cpu_slot_kind_t;

/* What is known of a value of a SIMT kernel. In a strip of threads lane i has first + i * step; a null `first`:
 * unknown. A power of two divides the first, or all of them if the step is 0. */
typedef struct {
  MlirValue first;
  int64_t step, divides;
} cpu_lanes_t;

/* What is known of a value of the source. */
typedef struct {
  MlirValue value;
  cpu_slot_kind_t kind;
  MlirValue now;        /* CPU_SCALAR: the new value; CPU_BUFFER: the pointer */
  MlirValue target;     /* pointer that its buffer must have, or null */
  cpu_lanes_t lanes;    /* CPU_SCALAR */
  cpu_access_t *access; /* of a tile.load */
  int cost;             /* of computing one element, in simple operations */
  int first_root;       /* position of the first nest that needs it; INT_MAX: none */
  bool many_roots;      /* more than one nest needs it */
  bool memory;          /* computed from memory that a later store may change */
  bool wanted;          /* shall have a buffer */
  bool tee;             /* the nest being emitted fills the buffer */
  int visit;            /* the last walk over expressions that came by, and how its axes lay */
  uint64_t visit_map;
} cpu_slot_t;

/* Any number of tiles, in order. */
typedef struct {
  cpu_slot_t **at;
  size_t count, capacity;
} cpu_slots_t;

void cpu_add_slot(cpu_slots_t *list, cpu_slot_t *slot);

typedef struct {
  MlirValue value, result;
  cpu_point_t point;
  int depth;
} cpu_memo_t;

typedef struct cpu {
  MlirContext context;
  MlirOperation module, func;
  MlirLocation location;
  int lanes;   /* of f32 in a machine register */
  bool avx512; /* 32 registers, ldexp is an instruction */
  bool f16c;   /* f16 converts, and fma is an instruction */
  MlirBlock entry;
  MlirBlock block; /* where ops are appended */
  MlirBlock scope[CPU_MAX_DEPTH];
  int depth;
  int base_depth; /* of the op being lowered; reads of memory are not hoisted further out */
  MlirValue scratch, grid, block_id[3], num_blocks[3];
  MlirValue thread_id[3], block_dim[3]; /* of a SIMT kernel */
  struct cpu_strip *strip;              /* of threads, while one is lowered (strip.c); or null */
  bool rows;                            /* warps are parts of the rows of a block along x */
  bool apart;                           /* lanes of a warp may meet at different times: only as fibers */
  int64_t scratch_used, scratch_peak;
  MlirOperation kept[CPU_MOST_KEPT]; /* addresses that cpu_place_kept completes, and the bytes there */
  int64_t kept_bytes[CPU_MOST_KEPT];
  int num_kept;
  tw_map_t constants; /* attribute -> value in the entry block */
  tw_map_t slots;     /* value -> cpu_slot_t */
  tw_map_t arrays;    /* array argument -> cpu_array_t */
  tw_map_t order;     /* op -> position in its block */
  cpu_memo_t *memo;
  size_t memo_size, memo_capacity;
  cpu_slots_t live; /* virtual tiles of the block being lowered and those around it */
  size_t live_base;
  cpu_slots_t filled; /* virtual tiles that got a buffer, in order */
  cpu_slots_t tees;   /* what the current nest fills */
  int visit;          /* counts walks over expressions */
  void *allocations;  /* freed with the pass */
  int num_strings;
  bool failed;
  /* Set by to_vector.c, which is above the files that call them. */
  const struct cpu_rule *const *rules; /* by kind of op */
  MlirOperation (*emit_block)(struct cpu *cx, MlirBlock block);
} cpu_t;

void *cpu_alloc(cpu_t *cx, size_t size);
void cpu_error(cpu_t *cx, MlirOperation op, const char *why);

/* --- build.c: types, constants, arithmetic, loops ---------------------------------------------------- */

tw_builder_t cpu_here(cpu_t *cx);
MlirType cpu_compute_type(cpu_t *cx, MlirType element);
MlirType cpu_buffer_type(cpu_t *cx, MlirType element); /* in scratch memory */
MlirType cpu_pointer_type(cpu_t *cx);
MlirType cpu_int(cpu_t *cx, unsigned bits);
MlirType cpu_f32(cpu_t *cx);
MlirType cpu_f64(cpu_t *cx);
/* 1 for a scalar. */
int cpu_lanes_of(MlirValue value);
MlirType cpu_vector(MlirType element, int lanes);
/* A type with the lanes of `like`. */
MlirType cpu_like(MlirValue like, MlirType element);
MlirType cpu_element(MlirValue value);

MlirValue cpu_constant(cpu_t *cx, MlirAttribute attribute);
MlirValue cpu_int_const(cpu_t *cx, MlirType type, int64_t value);
MlirValue cpu_float_const(cpu_t *cx, MlirType type, double value);
MlirValue cpu_i32_const(cpu_t *cx, int64_t value);
MlirValue cpu_i64_const(cpu_t *cx, int64_t value);
/* 0, 1, 2, … of an integer type. */
MlirValue cpu_iota(cpu_t *cx, MlirType element, int lanes);

MlirValue cpu_op1(cpu_t *cx, const char *name, MlirType type, int num, const MlirValue *operands);
void cpu_op0(cpu_t *cx, const char *name, int num, const MlirValue *operands);
/* Same op and attributes on other operands. */
MlirValue cpu_again(cpu_t *cx, MlirOperation op, MlirType type, int num, const MlirValue *operands);
MlirValue cpu_splat(cpu_t *cx, MlirValue scalar, int lanes);
/* Gives all of them the lanes of the widest. */
void cpu_unify(cpu_t *cx, int num, MlirValue *values);
MlirValue cpu_un(cpu_t *cx, const char *name, MlirValue x);
MlirValue cpu_bin(cpu_t *cx, const char *name, MlirValue x, MlirValue y);
/* With a constant of x's type. */
MlirValue cpu_bin_i(cpu_t *cx, const char *name, MlirValue x, int64_t y);
MlirValue cpu_bin_f(cpu_t *cx, const char *name, MlirValue x, double y);
/* x * y + z, with one rounding where that is an instruction. */
MlirValue cpu_fma(cpu_t *cx, MlirValue x, MlirValue y, MlirValue z);
MlirValue cpu_cast(cpu_t *cx, const char *name, MlirValue x, MlirType element);
/* arith.bitcast to lanes of another element type of the same size. */
MlirValue cpu_bits(cpu_t *cx, MlirValue x, MlirType element);
typedef enum { CPU_EQ, CPU_NE, CPU_SLT, CPU_SLE, CPU_SGT, CPU_SGE, CPU_ULT, CPU_ULE, CPU_UGT, CPU_UGE } cpu_ipred_t;
typedef enum { CPU_OEQ = 1, CPU_OGT, CPU_OGE, CPU_OLT, CPU_OLE, CPU_ONE, CPU_UNO = 14 } cpu_fpred_t;
MlirValue cpu_cmpi(cpu_t *cx, cpu_ipred_t predicate, MlirValue x, MlirValue y);
MlirValue cpu_cmpf(cpu_t *cx, cpu_fpred_t predicate, MlirValue x, MlirValue y);
MlirValue cpu_select(cpu_t *cx, MlirValue c, MlirValue x, MlirValue y);
/* llvm.NAME on the types of x ("llvm.exp.v16f32"). */
MlirValue cpu_intrinsic(cpu_t *cx, const char *name, MlirType type, int num, const MlirValue *operands);
MlirValue cpu_extract(cpu_t *cx, MlirValue vector, int lane);
/* The vector with another value in a lane; the value itself where there is one lane only. */
MlirValue cpu_insert(cpu_t *cx, MlirValue value, MlirValue vector, int lane);
/* Lanes i of the result are lanes mask[i] of x ++ y. */
MlirValue cpu_shuffle(cpu_t *cx, MlirValue x, MlirValue y, int num, const int64_t *mask);
MlirValue cpu_int_to_i64(cpu_t *cx, MlirValue value);

/* The lanes of a mask as bits; whether any is set, or all. */
MlirValue cpu_mask_bits(cpu_t *cx, MlirValue mask);
MlirValue cpu_any_lane(cpu_t *cx, MlirValue mask);
MlirValue cpu_all_lanes(cpu_t *cx, MlirValue mask);
/* Both of two masks, either of which may be null: all lanes. */
MlirValue cpu_both(cpu_t *cx, MlirValue x, MlirValue y);

cpu_index_t cpu_index(int64_t value);
cpu_index_t cpu_index_add(cpu_t *cx, cpu_index_t x, cpu_index_t y);
cpu_index_t cpu_index_plus(cpu_index_t x, int64_t y);
cpu_index_t cpu_index_mul(cpu_t *cx, cpu_index_t x, int64_t y);
cpu_index_t cpu_index_times(cpu_t *cx, cpu_index_t x, MlirValue y, int depth);
MlirValue cpu_index_value(cpu_t *cx, cpu_index_t x);

/* Appends to the block of scope `depth` until cpu_leave_depth(cx, the result). */
MlirBlock cpu_enter_depth(cpu_t *cx, int depth);
void cpu_leave_depth(cpu_t *cx, MlirBlock saved);

/* With arguments of these types. */
MlirBlock cpu_new_block(cpu_t *cx, int num, const MlirType *types);
void cpu_scope_push(cpu_t *cx, MlirBlock block);
void cpu_scope_pop(cpu_t *cx);

/* scf.for in i64 with iteration values; between begin and end, ops go into the body. */
typedef struct {
  MlirBlock block;
  int num;
  MlirValue *operands, *args; /* the loop's: bounds, step, initial values; within it: those, as they are */
} cpu_loop_t;
cpu_index_t cpu_loop_begin(cpu_t *cx, cpu_loop_t *loop, cpu_index_t from, cpu_index_t to, int64_t step, int num,
                           const MlirValue *inits);
void cpu_loop_end(cpu_t *cx, cpu_loop_t *loop, const MlirValue *yields, MlirValue *results);

/* scf.if with results; `other` may be null where there are none. */
MlirOperation cpu_if(cpu_t *cx, MlirValue condition, MlirBlock then, MlirBlock other, int num, const MlirType *types);

/* An scf.if whose sides are built one after the other: ops go to the first one, behind cpu_branch_else to the second.
 * Each ends with a value, or with null where the branch gives none; without an else there is one side. */
typedef struct {
  MlirValue condition;
  MlirBlock outer, sides[2];
} cpu_branch_t;
cpu_branch_t cpu_branch(cpu_t *cx, MlirValue condition);
void cpu_branch_else(cpu_t *cx, cpu_branch_t *branch, MlirValue value);
/* Returns what the branch gives, or null. */
MlirValue cpu_branch_end(cpu_t *cx, cpu_branch_t *branch, MlirValue value);

MlirValue cpu_address(cpu_t *cx, MlirValue pointer, MlirType element, cpu_index_t offset);
MlirValue cpu_load(cpu_t *cx, MlirValue pointer, MlirType type, int align);
void cpu_store(cpu_t *cx, MlirValue value, MlirValue pointer, int align);

/* --- keep.c: tiles that a thread prepares once for several blocks ---------------------------------------- */

/* A tile at `pointer`, and the side of a branch in which it is prepared. */
typedef struct {
  MlirValue pointer, tag, at, missing;
  MlirBlock block;
} cpu_kept_t;
/* Whether a tile that is loaded is worth keeping and may be: ops that prepare it follow then, up to cpu_kept. */
bool cpu_keep(cpu_t *cx, MlirValue tile, int64_t bytes, cpu_kept_t *out);
void cpu_kept(cpu_t *cx, cpu_kept_t *kept);
/* Whether neighbours along y want the same right operands of products, and blocks may be taken in that order. */
bool cpu_takes_y_first(cpu_t *cx);
/* Once all scratch memory is taken. */
void cpu_place_kept(cpu_t *cx);

/* --- functions.c: private functions beside the kernel ------------------------------------------------- */

bool cpu_has_function(cpu_t *cx, const char *name);
/* The address of a global: a constant of this kernel, or without one a variable that the process has
 * (tilewright/kernel_calls.h). */
MlirValue cpu_global(cpu_t *cx, const char *name, MlirType type, MlirAttribute constant);
/* Calls a function made before, or one of the process (include/tilewright/kernel_calls.h), declaring it. */
void cpu_call(cpu_t *cx, const char *name, int num, const MlirValue *operands);
/* The same of one that gives a value. */
MlirValue cpu_call1(cpu_t *cx, const char *name, MlirType type, int num, const MlirValue *operands);
/* The number that a word of 64 bits holds. */
MlirValue cpu_of_word(cpu_t *cx, MlirValue word, MlirType type);
/* Between begin and end, `inner` builds the body of a function of so many pointers and words of 64 bits. */
void cpu_function_begin(cpu_t *cx, cpu_t *inner, int num_pointers, int num_words);
void cpu_function_end(cpu_t *cx, cpu_t *inner, const char *name);
/* Frees what the lowering of one function holds. */
void cpu_release(cpu_t *cx);

/* --- region.c: slots, buffers, nests ------------------------------------------------------------------ */

cpu_slot_t *cpu_slot(cpu_t *cx, MlirValue value);
void cpu_set_scalar(cpu_t *cx, MlirValue value, MlirValue now);
void cpu_set_buffer(cpu_t *cx, MlirValue value, MlirValue pointer);
/* The new value of a scalar of the source, and of one that is operand `i` of an op. */
MlirValue cpu_scalar(cpu_t *cx, MlirValue value);
MlirValue cpu_operand(cpu_t *cx, MlirOperation op, intptr_t i);
/* The value of a strip: a vector, or a scalar where all lanes agree. */
MlirValue cpu_eval(cpu_t *cx, MlirValue value, const cpu_point_t *point);
/* New scratch memory for a tile. */
MlirValue cpu_new_buffer(cpu_t *cx, MlirType tile);
/* Where the buffer of a tile shall lie: its target, or new scratch memory; null for a scalar. */
MlirValue cpu_buffer_for(cpu_t *cx, MlirValue value);
/* What an op gives: the tile that is in the buffer now, or without one the scalar. */
void cpu_set_result(cpu_t *cx, MlirValue value, MlirValue buffer, MlirValue scalar);
/* The buffer of a tile, filled now if it isn't yet. */
MlirValue cpu_buffer(cpu_t *cx, MlirValue tile);
void cpu_copy_into(cpu_t *cx, MlirValue tile, MlirValue pointer);
MlirValue cpu_buffer_load(cpu_t *cx, MlirValue pointer, MlirType tile, const cpu_point_t *point);
void cpu_buffer_store(cpu_t *cx, MlirValue value, MlirValue pointer, MlirType tile, const cpu_point_t *point);

/* Loops over a whole shape. The caller may hold axes: they get no loop, and the caller sets their index. */
typedef struct {
  int rank, num_loops;
  int64_t shape[TW_MAX_RANK];
  bool held[TW_MAX_RANK];
  int steps; /* strips in one pass of the innermost loop */
  cpu_point_t point;
  cpu_loop_t loops[TW_MAX_RANK];
} cpu_nest_t;
/* Which axis gets the lanes. */
int cpu_lane_axis(MlirType tile);
void cpu_nest_set(cpu_t *cx, cpu_nest_t *nest, MlirType tile, int lane_axis);
void cpu_nest_begin(cpu_t *cx, cpu_nest_t *nest);
void cpu_nest_end(cpu_t *cx, cpu_nest_t *nest);
/* To call before a nest over `space` that evaluates these tiles: fills the buffers that it can't fill itself. A
 * `writer` is a store or scatter that the nest does: what it could overwrite too early is read first. */
void cpu_plan(cpu_t *cx, MlirType space, int num, const MlirValue *tiles, MlirOperation writer);
/* To call after it: the buffers that the nest has filled are valid. */
void cpu_planned(cpu_t *cx);

/* Emits a region's block into a new one, from open to close; scratch memory that it takes is free again after it, and
 * tiles from outside that it put there have no buffer any more. */
typedef struct {
  int64_t scratch;
  size_t filled;
} cpu_inner_t;
cpu_inner_t cpu_open_block(cpu_t *cx, MlirBlock block);
void cpu_close_block(cpu_t *cx, cpu_inner_t inner);

void cpu_analyze(cpu_t *cx, MlirBlock block);
/* Before an op that writes memory: keeps what later ops need of the memory as it is. A nest over `space` of these
 * tiles, if there are any, may do it on the way. */
void cpu_before_write(cpu_t *cx, MlirOperation op, MlirType space, int num, const MlirValue *tiles);
/* Before an op with regions: fills the buffers that they use. */
void cpu_before_regions(cpu_t *cx, MlirOperation op);
bool cpu_writes(MlirOperation op);

/* build.c, for accesses. Zeros of a type. */
MlirValue cpu_zero_of(cpu_t *cx, MlirType type);
/* The attribute of an access that is aligned to so many bytes. */
tw_attr_t cpu_align_attr(cpu_t *cx, int bytes);
/* Addresses of elements, by their offsets. */
MlirValue cpu_addresses(cpu_t *cx, MlirValue base, MlirType element, MlirValue offsets);
/* A masked read of elements of `type`: `operands` are where, a mask, and what it is where the mask is false. */
MlirValue cpu_masked_read(cpu_t *cx, const char *name, MlirType type, MlirValue operands[3], MlirType result);
/* Lanes from an address each; null mask: all; null passthru: zero. */
MlirValue cpu_gather_at(cpu_t *cx, MlirValue pointers, MlirType type, MlirValue mask, MlirValue passthru);
/* Lanes to an address each. */
void cpu_scatter_at(cpu_t *cx, MlirValue value, MlirValue pointers, MlirValue mask);
/* Offsets of lanes that are `stride` elements apart. */
MlirValue cpu_lane_offsets(cpu_t *cx, MlirValue stride, int lanes);
/* Lanes of `type`, `stride` elements apart, from an address on; null mask: all; null passthru: zero. */
MlirValue cpu_gather(cpu_t *cx, MlirValue address, MlirType type, MlirValue stride, int lanes, MlirValue mask,
                     MlirValue passthru);
void cpu_scatter(cpu_t *cx, MlirValue value, MlirValue address, MlirValue stride, MlirValue mask);

/* --- memory.c: elements of arrays ---------------------------------------------------------------------- */

/* An array argument; null, and an error at the op, for anything else. */
const cpu_array_t *cpu_array_of(cpu_t *cx, MlirOperation op, MlirValue array);
/* How an element travels: bool as a byte, a narrow float as bits, two 4-bit floats as a byte. */
MlirType cpu_memory_type(cpu_t *cx, MlirType element);
/* The place of a load or a store of a tile, whose indices have been placed. */
cpu_access_t *cpu_open_access(cpu_t *cx, MlirOperation op, MlirType tile, intptr_t num_index);
MlirValue cpu_from_memory(cpu_t *cx, MlirValue value, MlirType element);
MlirValue cpu_to_memory(cpu_t *cx, MlirValue value, MlirType element);
/* Lanes next to each other; 4-bit elements, which share bytes, as bits. */
void cpu_masked_store(cpu_t *cx, MlirValue value, MlirValue pointer, MlirValue mask);
MlirValue cpu_load_nibbles(cpu_t *cx, MlirValue pointer, MlirValue offsets, MlirValue mask);
void cpu_store_nibbles(cpu_t *cx, MlirValue bits, MlirValue pointer, MlirValue offsets, MlirValue mask);
/* The value of an operand at a point; for ops on scalars, which have none, cpu_scalar_at. */
typedef MlirValue (*cpu_element_t)(cpu_t *, MlirValue, const cpu_point_t *);
MlirValue cpu_scalar_at(cpu_t *cx, MlirValue value, const cpu_point_t *point);
/* The indices of an access, one for each axis of its array. Returns how many. */
int cpu_indices_of(cpu_t *cx, MlirOperation op, cpu_element_t element, const cpu_point_t *point, MlirValue *indices);
/* The elements of its mask; true if it has none. */
MlirValue cpu_mask_of(cpu_t *cx, MlirOperation op, cpu_element_t element, const cpu_point_t *point);
/* Offsets in elements of the lanes at an index for each axis; lanes outside of the array leave the mask. */
MlirValue cpu_lanes_at(cpu_t *cx, MlirOperation op, int num, MlirValue *indices, MlirValue *mask);

/* --- rules -------------------------------------------------------------------------------------------- */

typedef enum {
  CPU_LEAF,
  CPU_ELEMENTWISE,
  CPU_BROADCAST,
  CPU_RESHAPE,
  CPU_PERMUTE,
  CPU_EXTRACT,
  CPU_EFFECT
} cpu_space_t;

typedef struct cpu_rule {
  /* Whether a buffer for the result is filled by blocks, not by a nest, and how; else null. */
  bool (*fills_in_blocks)(cpu_t *cx, MlirValue tile);
  void (*fill)(cpu_t *cx, MlirValue tile, MlirValue buffer);
  cpu_space_t space; /* how the operands' axes lie in the result's; CPU_EFFECT: emitted at its place */
  int cost;
  /* CPU_ELEMENTWISE: from operands of equal lanes in compute types. */
  MlirValue (*compute)(cpu_t *cx, MlirOperation op, int num, MlirValue *operands);
  /* Other virtual ops: the result at a point. */
  MlirValue (*eval)(cpu_t *cx, MlirOperation op, const cpu_point_t *point);
  /* At the op's place: an effect, or what a virtual op prepares. */
  void (*place)(cpu_t *cx, MlirOperation op);
} cpu_rule_t;

/* A rule stands behind its functions, as CPU_RULE(TW_TILE_LOAD, space, cost, compute, eval, place); tools/twgen.py
 * finds these rows, so that the name of the macro comes first in its line. */
#define CPU_RULE(kind, ...) const cpu_rule_t cpu_rule_of_##kind = {NULL, NULL, __VA_ARGS__};
#define CPU_RULE_IN_BLOCKS(kind, ...) const cpu_rule_t cpu_rule_of_##kind = {__VA_ARGS__};
#define CPU_ROW(kind) extern const cpu_rule_t cpu_rule_of_TW_##kind;
#include "CpuRules.inc"
#undef CPU_ROW

/* The rule of the op's kind, or NULL. */
static inline const cpu_rule_t *cpu_rule(const cpu_t *cx, MlirOperation op) { return cx->rules[tw_op_kind(op)]; }

/* Lowers the ops of a block; returns its terminator, which is left to the caller. */
static inline MlirOperation cpu_emit_block(cpu_t *cx, MlirBlock block) { return cx->emit_block(cx, block); }

/* region.c: whether a reshape only adds or drops axes of extent one. */
bool cpu_reshape_is_unit(MlirOperation op);

/* transpose.c: whether a permute moves the last axis, so that its result is best made in a buffer. */
bool cpu_moves_last_axis(cpu_t *cx, MlirValue tile);
void cpu_permute_into(cpu_t *cx, MlirValue tile, MlirValue target);
/* The same for a load from an array that is contiguous along another axis. */
bool cpu_load_is_swapped(cpu_t *cx, MlirValue tile);
void cpu_swapped_load_into(cpu_t *cx, MlirValue tile, MlirValue target);

/* narrow.c: formats below f32. `element` is the narrow type, values are f32, bits are integers of its size. */
bool cpu_is_narrow(MlirType element);
MlirValue cpu_narrow_bits(cpu_t *cx, MlirValue x, MlirType element);
MlirValue cpu_widen_bits(cpu_t *cx, MlirValue bits, MlirType element);
/* x rounded to the narrow type; x itself where the type isn't narrow. */
MlirValue cpu_round(cpu_t *cx, MlirValue x, MlirType element);
/* f64 to a narrow type with one rounding. */
MlirValue cpu_round_f64(cpu_t *cx, MlirValue x, MlirType element);

/* elementwise.c, for reductions and loops too; a divisor of zero gives anything */
MlirValue cpu_divide_unsigned(cpu_t *cx, MlirValue x, MlirValue y);
MlirValue cpu_float_min_max(cpu_t *cx, MlirValue x, MlirValue y, bool max);

/* functions.c: a function before the kernel, from begin to end; `unaliased` is an argument that is the only pointer to
 * its memory, or -1. */
void cpu_begin_function(cpu_t *cx, int num, const MlirType *types);
MlirOperation cpu_end_function(cpu_t *cx, MlirAttribute name, int unaliased);
/* Where a kernel looks whether it shall stop: at the start of a loop's body. */
void cpu_look(cpu_t *cx);
/* Binds the arguments of the kernel's block and the extents of the grid from what the launcher passes. */
void cpu_unpack_arguments(cpu_t *cx, MlirBlock old, MlirValue words, MlirValue grid);
MlirValue cpu_load_i32(cpu_t *cx, MlirValue pointer, int index);

/* On a SIMT kernel: its threads are loops in it already (tile-split-threads); on such a loop. */
#define TW_SPLIT "tile.split"
/* On a kernel that is split: the function that it was, for blocks whose warps are no parts of rows. */
#define TW_UNSPLIT "tile.unsplit"
#define TW_THREADS "tile.of_threads"

/* own_arrays.c: whether an array of a thread's own can have a place for each thread of a block; gives it to all that a
 * kernel, or a body of threads, has. */
bool cpu_is_own_array(MlirOperation op);
bool cpu_can_spread(MlirOperation array);
void cpu_spread_arrays(MlirOperation root);

/* walks.c: whether threads of a block run over an array in the rounds of a loop, side by side. */
bool cpu_is_walk(const tw_uniform_t *uniform, MlirOperation op);

/* effects.c: the axis of the grid along which an index is the block's place; -1 of any other. */
int cpu_block_axis(MlirValue index);

/* c_entry.c: the function that C++ of the host calls. */
MlirOperation cpu_build_c_entry(cpu_t *cx, MlirOperation old);

/* simt.c: the body of a SIMT kernel as the function of one thread, and the entry's call that runs all threads. */
MlirOperation cpu_build_thread_function(cpu_t *cx, MlirOperation kernel);
void cpu_call_threads(cpu_t *cx, MlirOperation kernel, MlirOperation thread);

/* strip.c: threads of a SIMT kernel that are side by side along x, as lanes of vectors. A scalar of the source is then
 * a vector, unless it is the same in all lanes. */
typedef struct cpu_strip {
  MlirOperation loop;   /* over threads */
  tw_uniform_t uniform; /* in it */
  int lanes;
  MlirValue here;       /* which lanes are; null: all */
  bool whole;           /* what is emitted here may be emitted again for the case that all lanes take it */
  MlirOperation parted; /* the outermost branch that has parted lanes, or null */
  bool in_rounds;       /* in a loop that lanes leave at different times */
} cpu_strip_t;
/* Whether the loop over threads can be strips; else it is a loop over scalars. */
bool cpu_is_strips(cpu_t *cx, MlirOperation loop);
void cpu_place_strips(cpu_t *cx, MlirOperation loop);
/* How many lanes a value of the source has where it is carried by a loop, or given by a branch. */
int cpu_carried_lanes(cpu_t *cx, MlirValue value);
/* What is known of the lanes of a scalar; to call behind an op, for its result. */
cpu_lanes_t cpu_lanes_known(cpu_t *cx, MlirValue value);
void cpu_note_lanes(cpu_t *cx, MlirOperation op);
/* An op that gives all lanes the same, though its first operand differs: the operand of the first lane, or null. */
MlirValue cpu_same_for_all(cpu_t *cx, MlirOperation op);

/* strip_memory.c: places an access by element to elements that are each lane's own; false where it is none. */
bool cpu_strip_access(cpu_t *cx, MlirOperation op);
/* Whether a scalar of the source is another one in each lane. */
bool cpu_differs(cpu_t *cx, MlirValue value);
bool cpu_has_warp_ops(MlirOperation op);
enum { CPU_WARP = TW_WARP_LANES };
/* Whether what an op gives is of the lanes of a warp, where they meet or just are. */
static inline bool cpu_is_of_warps(MlirOperation op) {
  return tw_op_has(op, TW_MEETS_WARP) || tw_op_is(op, TW_TILE_ACTIVE_MASK);
}
/* strip_warp.c: a loop of few rounds with such ops, round after round, so that what lanes read of each other is known;
 * false where it is no such loop. */
bool cpu_unroll_shuffles(cpu_t *cx, MlirOperation op);
/* What an op is in a strip, if it is something else there than for one thread: CPU_STRIP_RULE(TW_TILE_VOTE, place),
 * a row behind its function, which tools/twgen.py finds. `place` emits it at its place, or gives back false for the
 * op's rule to do it. */
#define CPU_STRIP_RULE(kind, place)                                                                                    \
  bool cpu_strip_rule_of_##kind(cpu_t *cx, MlirOperation op) { return place(cx, op); }
#define CPU_STRIP_ROW(kind) bool cpu_strip_rule_of_TW_##kind(cpu_t *cx, MlirOperation op);
#include "CpuStripRules.inc"
#undef CPU_STRIP_ROW

/* simt.c: the line of an op in the source, as a constant: one for each op. */
MlirValue cpu_site(cpu_t *cx, MlirOperation op);

/* Whether the kernel may spin: a thread repeats an atomic access until another thread has changed what it reads. */
bool cpu_is_polled(MlirOperation op);

#endif /* TILEWRIGHT_LOWERING_CPU_H */

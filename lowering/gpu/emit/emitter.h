/* emitter.h - what the rules of tile-to-nvvm emit with
 *
 * tile-to-nvvm re-emits a kernel op by op into an llvm.func, as the code of one thread. Every old
 * value stands for an array of new ones: a tile for its registers (the elements that the thread
 * owns, in the order of the register bits of its layout), an array for its pointer, extents and
 * strides, a scalar for itself. A rule reads the arrays of its operands, emits, and sets those of
 * its results.
 *
 *   static bool rule_neg(tw_emitter_t *e, MlirOperation op) {
 *     tw_values_t x = twg_operand(e, op, 0);
 *     tw_values_t y = twg_new_values(e, x.count);
 *     for (int i = 0; i < x.count; i++)
 *       y.at[i] = twg_unary(e, "llvm.fneg", x.at[i]);
 *     twg_set_result(e, op, 0, y);
 *     return true;
 *   }
 *
 * Elements are held in registers as: i1 as i1; integers, f16, bf16, f32, f64 as themselves; tf32 as
 * f32; 8-bit and 4-bit floats as i8. */
#ifndef TILEWRIGHT_LOWERING_GPU_EMIT_EMITTER_H
#define TILEWRIGHT_LOWERING_GPU_EMIT_EMITTER_H

#include "dialect/layouts.h"
#include "lowering/c_values.h"
#include "lowering/common/uniform.h"
#include "lowering/gpu/facts/inline_ptx.h"
#include "lowering/gpu/machine/copy_engine.h"
#include "lowering/launch_record.h"

#define TWG_SHARED_NAME "tile_shared" /* the shared memory that a launch gives */

typedef struct tw_values {
  MlirValue *at; /* owned by the emitter */
  int count;
} tw_values_t;

typedef struct tw_chunk tw_chunk_t;

/* A loop whose body is being emitted. */
typedef struct twg_loop {
  MlirOperation op;
  MlirBlock before;        /* has no terminator yet, so that code can be hoisted into it */
  struct twg_loop *around; /* null: there is none */
  tw_values_t olds, kept;  /* values kept alive until the loop ends, and their words, a multiple of four */
} twg_loop_t;

typedef struct twg_row_ends twg_row_ends_t; /* emit/row_ends.h */

/* An aligned vector that a gather loaded (rules/load_store.c): `at` elements behind its index `root` in register r. */
typedef struct {
  MlirOperation gather;
  MlirValue root, words[4], guard;
  int64_t at;
  int r, vector;
} tw_loaded_t;

enum { TWG_MAX_LOADED = 64 };

/* What a kernel does, from which what ptxas is told of its registers follows. */
typedef struct {
  bool computes; /* has products */
  bool folds;    /* has loops, reductions or scans */
  bool realigns; /* rows that begin anywhere */
  int registers; /* of a thread, for its largest tile, or all that a loop carries */
} twg_work_t;

typedef struct tw_emitter {
  MlirContext context;
  MlirLocation location;      /* of the op at hand */
  MlirRegion region;          /* body of the new function */
  MlirBlock entry;            /* constants and values that depend on the thread only */
  MlirBlock block;            /* where ops are appended */
  MlirBlock aside;            /* the block in front of a branch that only starts copies; or null */
  MlirBlock branch;           /* the old one of that */
  MlirBlock outside;          /* the block in front of the innermost scf.for; null: there is none */
  twg_loop_t *loop;           /* the innermost loop around; null: there is none */
  tw_map_t values, constants; /* by old value; by attribute */
  tw_chunk_t *chunks;         /* memory of value arrays */
  MlirType i1, i8, i16, i32, i64, f16, bf16, f32, f64, global, shared; /* the last two: pointers */
  MlirAttribute contract;                                              /* fast-math flag: a*b+c may fuse */
  int num_warps;
  twg_work_t work; /* of the old function */
  MlirValue thread, lane, warp,
      shared_base;     /* in entry; where all threads of producers work, these number their warps from 0 */
  MlirValue warpgroup; /* in entry, made for the first product */
  MlirValue zero;      /* in entry, made when it is asked for: an i32 that is 0, which the assembler cannot tell */
  tw_map_t settled;    /* from a word that twg_settle made to the word that a product left */
  MlirOperation module, kernel;       /* the old function, whose launch record rules may set */
  int num_strings;                    /* globals made for print */
  const twg_row_ends_t *row_ends;     /* while code for rows that reach far is emitted (emit/row_ends.h); else null */
  tw_loaded_t loaded[TWG_MAX_LOADED]; /* by the gathers before, for those of neighbours */
  int num_loaded;
  bool ends_early;      /* while code for rows that do not reach far is emitted: tiles do not lie inside as a whole */
  bool simt;            /* each thread has its own scalars; else those of a block are equal */
  tw_uniform_t uniform; /* of the old function, where a rule has asked (rules/simt.c) */
  const tw_c_signature_t *c;         /* of a function or kernel that C++ calls; else null */
  MlirValue c_result;                /* where its result goes, if that has an address */
  tw_tensor_map_t maps[TW_MAX_MAPS]; /* tensor maps: the first num_maps arguments of the new function */
  int num_maps;
  int producer_warps;       /* they come after those of the consumers; 0: the kernel has no roles */
  int consumer_groups;      /* each has the warps that layouts know of */
  MlirValue consumer_group; /* a uniform number; null where there is one group, and outside of the consumers' region */
  int64_t group_scratch_bytes; /* scratch memory of one consumer group */
  bool blocks_start; /* until the first reduction across blocks: those that reduce together may not all have started */
  bool is_consumer;  /* within the consumers' region of tile.roles */
  bool is_alone;     /* one lane emits for all: the producer's region, or between twg_begin_alone and twg_end_alone */
  /* Re-emits the ops of an old block at the current place. It walks over all rules, so it is a file above this one. */
  bool (*emit_block)(struct tw_emitter *e, MlirBlock old);
} tw_emitter_t;

/* Re-emits one op; false after an error was emitted. */
typedef bool (*tw_rule_t)(tw_emitter_t *e, MlirOperation op);

/* ---- values ------------------------------------------------------------------------------------ */
tw_values_t twg_new_values(tw_emitter_t *e, int count);
void twg_free_values(tw_emitter_t *e);
tw_values_t twg_lookup(tw_emitter_t *e, MlirValue old);
void twg_bind(tw_emitter_t *e, MlirValue old, tw_values_t values);
/* What stands for an array of static shape at a pointer. */
tw_values_t twg_static_array(tw_emitter_t *e, MlirType type, MlirValue pointer);
tw_values_t twg_operand(tw_emitter_t *e, MlirOperation op, intptr_t i);
void twg_set_result(tw_emitter_t *e, MlirOperation op, intptr_t i, tw_values_t values);
/* Whether all registers are known to have the same. */
bool twg_are_same(tw_values_t values);
void twg_set_scalar(tw_emitter_t *e, MlirOperation op, intptr_t i, MlirValue value);
/* One value in all registers of the first result. */
bool twg_set_splat(tw_emitter_t *e, MlirOperation op, MlirValue value);
/* The values of an array (memref) argument. */
MlirValue twg_array_pointer(tw_emitter_t *e, MlirValue array);
MlirValue twg_array_extent(tw_emitter_t *e, MlirValue array, int dim); /* i64 */
MlirValue twg_array_stride(tw_emitter_t *e, MlirValue array, int dim); /* i64; constant where static */

/* ---- types ------------------------------------------------------------------------------------- */
/* Type of an element in a register. */
MlirType twg_register_type(tw_emitter_t *e, MlirType element);
MlirType twg_vector_type(MlirType element, int count);

/* ---- operations -------------------------------------------------------------------------------- */
MlirAttribute twg_i32_attr(tw_emitter_t *e, int64_t value);
MlirAttribute twg_i64_attr(tw_emitter_t *e, int64_t value);
MlirNamedAttribute twg_named(tw_emitter_t *e, const char *name, MlirAttribute attribute);
/* Appends an op; type null: no result. Returns the result. */
MlirValue twg_op(tw_emitter_t *e, const char *name, MlirType type, int num_operands, const MlirValue *operands,
                 int num_attributes, const MlirNamedAttribute *attributes);
MlirValue twg_unary(tw_emitter_t *e, const char *name, MlirValue x);
MlirValue twg_binary(tw_emitter_t *e, const char *name, MlirValue x, MlirValue y);
MlirValue twg_cast(tw_emitter_t *e, const char *name, MlirType to, MlirValue x);
/* A float as an integer; where it has none, some one. Unless that is frozen, LLVM takes it for another number at each
 * use, and what is selected by it for anything at all. */
MlirValue twg_float_to_int(tw_emitter_t *e, const char *name, MlirType to, MlirValue x);
MlirValue twg_select(tw_emitter_t *e, MlirValue condition, MlirValue x, MlirValue y);
/* LLVM's predicates by number (llvm.icmp: eq 0, ne 1, slt 2, sle 3, sgt 4, sge 5, ult 6, ule 7, ugt 8,
 * uge 9; llvm.fcmp: oeq 1, ogt 2, oge 3, olt 4, ole 5, one 6, ord 7, ueq 8, ugt 9, uge 10, ult 11, ule 12, une 13, uno
 * 14). */
MlirValue twg_icmp(tw_emitter_t *e, int predicate, MlirValue x, MlirValue y);
MlirValue twg_fcmp(tw_emitter_t *e, int predicate, MlirValue x, MlirValue y);
enum { TW_OEQ = 1, TW_OGT, TW_OGE, TW_OLT, TW_ONE = 6, TW_ORD, TW_FUGE = 10, TW_FULT, TW_UNO = 14 };
MlirValue twg_intrinsic(tw_emitter_t *e, const char *name, MlirType type, int num_operands, const MlirValue *operands,
                        tw_ptx_does_t does);
/* Inline assembly. Several results come as a struct: take them apart with twg_extract. */
MlirValue twg_asm(tw_emitter_t *e, const char *text, const char *constraints, MlirType type, int num_operands,
                  const MlirValue *operands, tw_ptx_does_t does);
MlirValue twg_extract(tw_emitter_t *e, MlirValue aggregate, int index, MlirType type);
/* Vectors of elements, from and to scalars. */
MlirValue twg_pack(tw_emitter_t *e, MlirType element, int count, const MlirValue *values);
MlirValue twg_unpack(tw_emitter_t *e, MlirValue vector, int index, MlirType element);
/* The word (i32 or smaller) that the elements x were unpacked from, all of them in order; null if they were not. */
MlirValue twg_word_behind(tw_emitter_t *e, int count, const MlirValue *x);
/* The i32 of two elements that x was unpacked from, and which of them it is; null if it was not. */
MlirValue twg_word_around(tw_emitter_t *e, MlirValue x, int *place);
MlirValue twg_bitcast(tw_emitter_t *e, MlirValue x, MlirType to);
/* A copy of a word that the assembler takes for another one, so that its readers stay behind this place. As a whole
 * (twg_word_behind) it is the word itself: the copy costs no instruction. */
MlirValue twg_settle(tw_emitter_t *e, MlirValue word);
/* An i32 that is 0, which the assembler does not know. */
MlirValue twg_opaque_zero(tw_emitter_t *e);
/* The same address, which the assembler takes for one that threads do not share: what is loaded there stays in the
 * registers of each. */
MlirValue twg_thread_pointer(tw_emitter_t *e, MlirValue pointer);

/* x * y + z, rounded once. */
MlirValue twg_fma(tw_emitter_t *e, MlirValue x, MlirValue y, MlirValue z);

/* Puts an op with one empty region at the start of the module: a global, a declaration. */
void twg_add_to_module(tw_emitter_t *e, const char *name, int count, const MlirNamedAttribute *attributes);
/* A constant of the module with these elements; `align` 0: what LLVM gives it. Returns its address. */
MlirValue twg_constant_global(tw_emitter_t *e, const char *name, MlirType type, MlirAttribute value, int space,
                              int64_t align);
/* The address of a global in a memory space. */
MlirValue twg_address_of(tw_emitter_t *e, MlirStringRef name, int space);

/* ---- constants (in entry, one each) ------------------------------------------------------------ */
MlirValue twg_constant(tw_emitter_t *e, MlirType type, MlirAttribute value);
MlirValue twg_const_int(tw_emitter_t *e, MlirType type, int64_t value);
MlirValue twg_const_i32(tw_emitter_t *e, int64_t value);
MlirValue twg_const_float(tw_emitter_t *e, MlirType type, double value);

/* ---- memory and addresses ---------------------------------------------------------------------- */
/* pointer + bytes (i32 or i64 value). */
MlirValue twg_offset_pointer(tw_emitter_t *e, MlirValue pointer, MlirValue bytes);
/* So many elements of a type behind it. */
MlirValue twg_element_behind(tw_emitter_t *e, MlirValue pointer, MlirValue count, MlirType type);
/* The same for a constant; the pointer itself for none. */
MlirValue twg_add_bytes(tw_emitter_t *e, MlirValue pointer, int64_t bytes);
MlirValue twg_load_from(tw_emitter_t *e, MlirType type, MlirValue pointer, int align);
void twg_store_to(tw_emitter_t *e, MlirValue value, MlirValue pointer, int align);
/* Tell LLVM that a power of two divides an address, or a number of 64 bits, so that accesses to neighbours behind it
 * become one. */
void twg_assume_aligned(tw_emitter_t *e, MlirValue pointer, int64_t align);
void twg_assume_multiple(tw_emitter_t *e, MlirValue number, int64_t of);
/* Local memory of a thread for `count` of a type, made once, though it be asked for in a loop. */
MlirValue twg_local_memory(tw_emitter_t *e, MlirType type, int64_t count, int64_t align);
/* Pointer to the byte at a constant offset in the block's shared memory. */
MlirValue twg_shared_at(tw_emitter_t *e, int64_t bytes);
/* Rule of what tile-allocate-shared gave an offset: its place in shared memory. */
bool twg_rule_alloc(tw_emitter_t *e, MlirOperation op);
/* All threads meet; within the consumers' region of tile.roles, those of the consumers. */
void twg_barrier(tw_emitter_t *e);
/* A barrier that returns whether the i1 is true for any of its threads. */
MlirValue twg_barrier_any(tw_emitter_t *e, MlirValue x);

/* ---- control ----------------------------------------------------------------------------------- */
MlirBlock twg_new_block(tw_emitter_t *e, int num_arguments, const MlirType *types);
void twg_branch(tw_emitter_t *e, MlirBlock to, int num_operands, const MlirValue *operands);
void twg_branch_if(tw_emitter_t *e, MlirValue condition, MlirBlock then, int num_then, const MlirValue *then_operands,
                   MlirBlock otherwise, int num_otherwise, const MlirValue *otherwise_operands);
/* Between begin and end, ops are for threads where the condition holds; end takes what begin gave. */
MlirBlock twg_begin_if(tw_emitter_t *e, MlirValue condition);
void twg_end_if(tw_emitter_t *e, MlirBlock after);
/* Enters and leaves the body of a loop. */
void twg_begin_loop(tw_emitter_t *e, twg_loop_t *loop, MlirOperation op);
void twg_end_loop(tw_emitter_t *e, twg_loop_t *loop);
/* The outermost loop that the value comes from outside of; null: there is none. */
twg_loop_t *twg_loop_without(tw_emitter_t *e, MlirValue old);
/* Keeps the words of a value, computed in front of the loop, alive until it ends: a store that never runs reads them
 * there. */
void twg_keep_behind(tw_emitter_t *e, twg_loop_t *loop, MlirValue old, tw_values_t words);

/* ---- roles (emit/rules/roles.c) ----------------------------------------------------------------------- */
/* At the beginning of a kernel: sets up the barriers of all tile.alloc_barriers, fetches tensor maps. */
void twg_set_up_barriers(tw_emitter_t *e, MlirOperation kernel);
/* Signals to the blocks that reduce together that this one has started (emit/rules/reduce.c). */
void twg_tell_blocks(tw_emitter_t *e, MlirOperation kernel);
/* Finds the tensor maps that the copies of a kernel need; false after an error. */
bool twg_collect_maps(tw_emitter_t *e, MlirOperation kernel);
/* The map of a copy that was found there. */
MlirValue twg_tensor_map(tw_emitter_t *e, const tw_engine_copy_t *copy);
/* First element of the tile with this index along a dimension of this extent. */
MlirValue twg_box_start(tw_emitter_t *e, MlirValue index, int64_t extent);

/* ---- positions --------------------------------------------------------------------------------- */
/* An i32 that is linear in lane and warp: the XOR of lane_bits[i] and warp_bits[i] over their set bits. Emitted in
 * entry. */
MlirValue twg_linear_of_thread(tw_emitter_t *e, const uint32_t *lane_bits, int num_lane, const uint32_t *warp_bits,
                               int num_warp);
/* The part of coordinate `dim` that depends on the thread. The part of register r is tw_layout_coord(l,
 * tw_layout_image(l, TW_REGISTER, r), dim). The coordinate is the XOR of both, or where tw_layout_disjoint holds,
 * their sum. */
MlirValue twg_thread_coord(tw_emitter_t *e, const tw_layout_t *l, int dim);
/* Coordinate of register r along dim. */
MlirValue twg_register_coord(tw_emitter_t *e, const tw_layout_t *l, int dim, int reg);

/* ---- register by register ------------------------------------------------------------------------ */

/* Emits an op of one element: operands in, result out. */
typedef MlirValue (*twg_element_fn_t)(tw_emitter_t *e, MlirOperation op, const MlirValue *operands);
/* Applies `fn` to each register. Registers that hold the same value (splats) share one result. */
bool twg_each_register(tw_emitter_t *e, MlirOperation op, twg_element_fn_t fn);

#endif

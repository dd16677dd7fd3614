/* address.h - the addresses and predicates of one thread's accesses: loads, stores and asynchronous copies */
#ifndef TILEWRIGHT_LOWERING_GPU_EMIT_ADDRESS_H
#define TILEWRIGHT_LOWERING_GPU_EMIT_ADDRESS_H

#include "lowering/gpu/emit/emitter.h"

enum { TW_MAX_ROWS_UNDER_WAY = 8 };

/* The last address made with such coordinates of a register along all dimensions but one. */
typedef struct {
  uint32_t others, at; /* and that along the one */
  MlirValue pointer;
} tw_row_pointer_t;

/* Fields are for the functions below. */
typedef struct tw_placed {
  tw_layout_t layout;
  MlirValue pointer;                     /* this thread's first element */
  MlirValue stride[TW_LAYOUT_MAX_RANK];  /* i64, elements */
  int64_t fixed[TW_LAYOUT_MAX_RANK];     /* the stride where it is static, else -1 */
  MlirValue left[TW_LAYOUT_MAX_RANK];    /* i32: register coordinate c is inside if left > c, */
  int inside_if[TW_LAYOUT_MAX_RANK];     /* or, by this predicate, left >= c */
  bool wide[TW_LAYOUT_MAX_RANK];         /* left is an i64 */
  MlirValue guard[TW_LAYOUT_MAX_RANK];   /* the last comparison made along a dimension ... */
  uint32_t guard_at[TW_LAYOUT_MAX_RANK]; /* ... and its coordinate; UINT32_MAX: none */
  MlirValue whole;                       /* i1: the tile lies inside of the array (null: it has no extent) */
  bool inside;                           /* it does, says the op: nothing is compared */
  int64_t sure[TW_LAYOUT_MAX_RANK];      /* elements of a dimension that are inside, as is known; 0: none */
  MlirValue owner;                       /* predicate of threads that take part (null: all) */
  bool disjoint[TW_LAYOUT_MAX_RANK];     /* coordinates of thread and register add up */
  int bits;                              /* of an element in memory */
  int row_dim;                           /* along which an address is the last one and a distance; -1: none */
  tw_row_pointer_t rows[TW_MAX_ROWS_UNDER_WAY];
  int num_rows;
} tw_placed_t;

/* The state space that an access of PTX names. */
const char *twg_space_of(MlirValue pointer);
/* Elements (i64) of so many bits as bytes; two of 4 bits share one. */
MlirValue twg_to_bytes(tw_emitter_t *e, MlirValue elements, int bits);
/* Places the tile of `op` in its array for a thread that owns its elements as `layout` says. */
void twg_place(tw_emitter_t *e, MlirOperation op, MlirType element, const tw_layout_t *layout, tw_placed_t *out);
/* The row that a tile of one is (all its elements along dimension `dim`): the address of its first element, and how
 * many elements of it are inside of the array, from that on (i32). */
typedef struct {
  MlirValue pointer, count;
} twg_row_t;

twg_row_t twg_place_row(tw_emitter_t *e, MlirOperation op, MlirType element, const tw_layout_t *layout, int dim);
/* Predicate (i1) of the access that starts at register r; null where it is known to be inside (row_ends.h). */
MlirValue twg_access_guard(tw_emitter_t *e, tw_placed_t *p, int r);
/* Whether coordinate `at` of a register along a dimension, of the type of what is left, is inside of the array. */
MlirValue twg_is_inside(tw_emitter_t *e, const tw_placed_t *p, int dim, MlirValue at);
/* The elements from there on that are, as an i32: below 1 if none is, at most `most`. */
MlirValue twg_left_behind(tw_emitter_t *e, const tw_placed_t *p, int dim, MlirValue at, int64_t most);
/* From now on nothing along the dimension is inside where the i1 is false. */
void twg_put_inside_only_if(tw_emitter_t *e, tw_placed_t *p, int dim, MlirValue condition);
/* The address of the access that starts at register r: a pointer, and bytes to add. */
MlirValue twg_access_pointer(tw_emitter_t *e, tw_placed_t *p, int r, int64_t *offset);
/* From now on an address is one that was made before and its distance from that, where they differ by a run-time stride
 * only. A loop would keep one of each row in registers else, by which LLVM saves an addition. */
void twg_step_along_rows(tw_emitter_t *e, tw_placed_t *p);
/* Predicate of threads that hold no copy of another thread's elements; null if all are such. */
MlirValue twg_owner_guard(tw_emitter_t *e, const tw_layout_t *layout);
/* Registers of the access at r: r with every combination of the register bits regs[0..bits). */
void twg_vector_registers(int r, int bits, const int *regs, int *out);
/* Whether r is the first register of an access. */
bool twg_starts_vector(int r, int bits, const int *regs);

#endif /* TILEWRIGHT_LOWERING_GPU_EMIT_ADDRESS_H */

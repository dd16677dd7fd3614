/* elements.h - elements of arrays at tiles of indices: where each is, and whether it is touched */
#ifndef TILEWRIGHT_LOWERING_GPU_EMIT_ELEMENTS_H
#define TILEWRIGHT_LOWERING_GPU_EMIT_ELEMENTS_H

#include "lowering/gpu/emit/emitter.h"

/* Elements at an index of each axis: one register at a time, or as many as the indices put side by side. */
typedef struct {
  MlirValue array;
  intptr_t first, count; /* index operands */
  MlirValue mask, value; /* operands; null where there is none. value: stored, or the padding */
  bool check_bounds;
  int vector, regs[TW_LAYOUT_MAX_BITS]; /* log2 of the elements of one access, and its register bits */
  MlirValue shift;                      /* added to each index of axis `shifted`; null: nothing is */
  int shifted;
  bool own; /* what is loaded shall stay in the registers of each thread (twg_thread_pointer) */
} tw_indexed_t;

/* Where an element is: its distance from the start of the array, in elements (i64). `still` is the part that the
 * loop around does not change, `moved` the rest, but for `apart`, which constants in the indices add; null is no
 * distance. `guard` is the predicate of the access; null is always. */
typedef struct {
  MlirValue still, moved, apart, guard;
} tw_place_t;

/* How an op accesses elements. `value` names the operand that it stores, or that it gives outside of the array. */
tw_indexed_t twg_indexed_of(MlirOperation op, tw_operand_name_t value);
/* How many neighbours one access may take. */
void twg_find_vectors(MlirOperation op, const tw_layout_t *layout, tw_indexed_t *x);
/* The value of an operand in register r of the thread; a scalar has one value for all registers. */
MlirValue twg_at_register(tw_emitter_t *e, MlirValue old, int r);
/* The place of the element in register r, and the address of a place. */
tw_place_t twg_locate(tw_emitter_t *e, MlirOperation op, const tw_indexed_t *x, int r);
MlirValue twg_element_pointer(tw_emitter_t *e, MlirValue array, tw_place_t place, int bits);
/* Conjunction and sum, where null is nothing. */
MlirValue twg_both(tw_emitter_t *e, MlirValue x, MlirValue y);
MlirValue twg_plus(tw_emitter_t *e, MlirValue x, MlirValue y);
/* Register of the element whose copy register r is: bits with a zero vector are cleared. */
int twg_first_copy(const tw_layout_t *l, int r);
/* Who writes a scalar: one thread, or in a SIMT kernel each its own. */
MlirValue twg_first_thread(tw_emitter_t *e);

#endif /* TILEWRIGHT_LOWERING_GPU_EMIT_ELEMENTS_H */

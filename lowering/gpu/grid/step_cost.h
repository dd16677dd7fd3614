/* step_cost.h - a launch's estimate of a block's work: trips of its loop, and the cost of an iteration
 *
 * The launcher has the words of the arguments and a few numbers that the compiler leaves it; by these it decides how
 * many blocks compute a tile (split_k.c, slice_tiles.c; runtime/split.c, runtime/resize_tiles.c). */
#ifndef TILEWRIGHT_LOWERING_GPU_GRID_STEP_COST_H
#define TILEWRIGHT_LOWERING_GPU_GRID_STEP_COST_H

#include "lowering/launch_record.h"

/* How often a loop runs, or once less: word number `word` of the launch divided by `per_step`, rounded up; where `word`
 * is negative, `steps`. False where that is not known at the launch. The loop is an scf.for with step 1. */
bool tw_steps_of(MlirOperation func, MlirOperation loop, tw_steps_t *out);
/* The same of any loop, guessed where it is not known; once where it is the function itself. */
tw_steps_t tw_steps_or_guess(MlirOperation func, MlirOperation loop);
/* Cycles of an iteration: its latencies, and products or what a multiprocessor loads. */
int64_t tw_step_cycles(MlirOperation func, int64_t flop_cycles, int64_t bytes);

/* Elements of the tile that an op computes one by one; 0 for other ops. */
int64_t tw_computed_elements(MlirOperation op);
/* Whether threads compute an operand of a product in the loop from what it loads. */
bool tw_computes_operands(MlirOperation loop);
/* Cycles that a multiprocessor takes to compute so many elements in an iteration with products, with a block of so many
 * warps. */
int64_t tw_computing_cycles(MlirOperation func, int64_t elements, int64_t warps);

/* Tells the launcher from which arrays the loop loads: however often they are loaded, they come from memory once. */
void tw_record_loaded(MlirOperation func, MlirOperation loop);

#endif /* TILEWRIGHT_LOWERING_GPU_GRID_STEP_COST_H */

/* operand_loads.h - the loads behind the operands of products, and whether copies can bring them */
#ifndef TILEWRIGHT_LOWERING_GPU_FACTS_OPERAND_LOADS_H
#define TILEWRIGHT_LOWERING_GPU_FACTS_OPERAND_LOADS_H

#include "lowering/ir.h"

/* Whether an op only renames the elements of a tile or converts them: a product may find them behind it. */
bool tw_is_view_of_load(MlirOperation op);
/* The load behind an operand, through ops that only rename elements or convert them; or the gather, where it can go
 * through shared memory. Null if there is none. */
MlirOperation tw_load_behind(MlirValue value);

/* The bytes that a hint `swizzle(tile)` says; 0: it says none that there is. */
int tw_swizzle_bytes(MlirStringRef text);

/* The loads of an operand that is computed, in each iteration, from loads alone: arithmetic on tiles that stand in the
 * product's own block, and on values from outside of it. Only those that will go through shared memory, where the
 * arithmetic finds them in the operand's layout. None if anything else goes into it. The caller frees the list. */
tw_ops_t tw_loads_behind(MlirOperation mma, int operand);
/* Whether there are any. */
bool tw_has_loads_behind(MlirOperation mma, int operand);
/* Whether threads compute the operand in each iteration, from loads alone: there are any, or one that is converted. */
bool tw_computes_operand(MlirOperation mma, int operand);
/* Bits that arithmetic in the block writes for each element of a tile that is made there. */
int64_t tw_bits_computed(MlirBlock block, MlirValue made);
/* The axis of the loaded tile along which neighbours lie side by side in memory; the last one when none. */
int tw_contiguous_axis(MlirOperation load);
/* Whether a tile.load or tile.gather that feeds a product can go through shared memory. */
bool tw_promotes(MlirOperation load);
/* Whether the copy engine can bring it then. */
bool tw_engine_brings(MlirOperation load);
/* Why the copy engine cannot, on a target that has one: words for a remark; NULL if it can. */
const char *tw_engine_refusal(MlirOperation load);
/* Makes a gather that tw_promotes again, before it, to give zeros where the i1 is false. */
MlirValue tw_gather_if(MlirOperation gather, MlirValue condition);
/* The innermost loop of the program around an op, by address; NULL if there is none. */
const void *tw_loop_around(MlirOperation op);
/* The same of loops with which it may be done again: not of one that runs once at most. */
const void *tw_repeating_loop(MlirOperation op);
/* The buffer, of one stage, that it gets. */
MlirType tw_promoted_type(MlirOperation load);

/* Whether rows of this product are combined, or go on into another product, in its own block: then a row should stay
 * within a warp. */
bool tw_rows_stay_together(MlirOperation mma);
/* Whether the result goes into the left operand of another product: each warpgroup that computes a part of that one
 * wants whole rows, in its registers. */
bool tw_feeds_product(MlirOperation mma);
/* Whether a tile.async_mma reads a buffer that threads write to. */
bool tw_reads_written(MlirOperation product);

#endif /* TILEWRIGHT_LOWERING_GPU_FACTS_OPERAND_LOADS_H */

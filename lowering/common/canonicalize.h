/* canonicalize.h - shared by the files of tile-canonicalize: one form for what programs spell in several ways */
#ifndef TILEWRIGHT_LOWERING_COMMON_CANONICALIZE_H
#define TILEWRIGHT_LOWERING_COMMON_CANONICALIZE_H

#include "lowering/ir.h"

/* loop_exits.c: what ends an scf.while is tested before each step, by an order of numbers, where it was a flag that a
 * `break` sets, or a difference. */
void tw_test_exits(MlirOperation loop);
/* while_to_for.c: an scf.while that counts is an scf.for, in its place; false (and nothing changed) for another one. */
bool tw_while_to_for(MlirOperation loop);
/* split_count.c: a loop over the steps of all tiles is one over tiles, and one over the steps of each. */
void tw_split_count(MlirOperation loop);
/* count_steps.c: a loop over every n-th number, by which its body divides, counts by one. */
void tw_count_steps(MlirOperation loop);
/* count_strides.c: a loop over every n-th tile counts those tiles, not how many it has done. */
void tw_count_strides(MlirOperation loop);
/* induction.c: what an scf.for only counts up is computed from its induction variable. */
void tw_simplify_inductions(MlirOperation loop);
/* reroll.c: steps that were written beside the loop, or several times in it, are steps of the loop; tiles that it
 * carries only to have them early are loaded in the step that uses them. Each returns whether something changed. */
bool tw_load_in_place(MlirOperation loop);
bool tw_roll_in_front(MlirOperation loop);
bool tw_roll_behind(MlirOperation loop);
bool tw_reroll(MlirOperation loop);
/* roll_rest.c: so is a step behind it that is done upon a condition. */
bool tw_roll_rest(MlirOperation loop);
/* A remark for each load that the loop keeps for its next step. */
void tw_tell_carried_tiles(MlirOperation loop);
/* add_to_product.c: x + mma(a, b, 0) is mma(a, b, x), where x is a running sum. */
void tw_add_to_products(MlirOperation func);
/* batch_of_one.c: products of a batch of one are products of matrices, and loops carry these. */
void tw_make_matrices(MlirOperation func);
/* turn_products.c: a sum of products that is only read transposed is summed transposed. */
void tw_turn_products(MlirOperation func);
/* narrow_products.c: a product of narrow numbers that is only rounded to their type is computed in it. */
void tw_narrow_products(MlirOperation func);

/* load_element.c: an element that is read as a number is a gather of one. */
void tw_load_elements(MlirOperation func);
/* merge_branches.c: branches that do the same, but for the padding of loads that one of them leaves open, are one. */
void tw_merge_branches(MlirOperation func);

/* --- Numbers of a loop's steps -------------------------------------------------------------------------- */

/* x + number, folded where x is known. */
MlirValue tw_plus(const tw_builder_t *at, MlirValue x, int64_t number);
/* The value that the induction variable would have in the step after the last, built before the loop. */
MlirValue tw_loop_exit(const tw_builder_t *at, MlirOperation loop);
/* Whether the upper bound is known not to lie below the lower one. */
bool tw_never_crosses(MlirOperation loop);
/* The step, where it is known and positive, and the loop compares signed numbers; else 0. */
int64_t tw_loop_step(MlirOperation loop);

#endif /* TILEWRIGHT_LOWERING_COMMON_CANONICALIZE_H */

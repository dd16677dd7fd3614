/* accuracy.h - how exactly a result must be computed, given its operands and its uses */
#ifndef TILEWRIGHT_LOWERING_GPU_FACTS_ACCURACY_H
#define TILEWRIGHT_LOWERING_GPU_FACTS_ACCURACY_H

#include "lowering/ir.h"

/* Whether all that is made of the op's results ends in casts to 16 bits or fewer, of a quotient to 16 bits, and nothing
 * on the way makes a small relative error larger: 2 ulp of f32 do not show. Loops, branches and waits hand values on; a
 * loop that multiplies what it carries by itself doubles an error each time. With the hint `fast_math`, or
 * where the op is marked TW_APPROXIMATE, it is as if. */
bool tw_only_read_narrower(MlirOperation op);
/* Whether that, or all of it ends in sums of numbers that are not negative and in products, too: there, an element that
 * is 0 in the place of one below the normal numbers does not show. */
bool tw_hides_subnormals(MlirOperation op);

/* Whether a value is that of a float of 16 bits or fewer, widened: then it is 1, or no nearer to 1 than 2^-11, where a
 * logarithm with an absolute error is exact enough for 16 bits. */
bool tw_is_widened(MlirValue value);

/* Whether no element is less than `bound`, 0 or 1, as the ops that made it tell; NaN may be among them. */
bool tw_is_at_least(MlirValue value, int bound);
/* Whether each element, an f32, is positive and not subnormal, or NaN: a sum of squares and a constant, as in 1 /
 * sqrt(x * x
 * + y * y + 1e-9). */
bool tw_is_above_subnormals(MlirValue value);

/* Whether each element of an f32 seems to be a whole number, as the ops that made it tell: such a number seldom has all
 * of the bits that a float has room for. Nothing may rely on it. */
bool tw_seems_whole(MlirValue value);

/* Whether a value is read by sums and, through 16 bits, by products, by one at least, and by nothing else: the weights
 * of a softmax. */
bool tw_is_weight(MlirValue value);

/* On a math.tanh: what its results are read for bears an absolute error of 2^-22. */
#define TW_ABSOLUTE "tile.absolute"

#endif

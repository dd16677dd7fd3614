/* match_step.h - whether a value is what a step of a loop would compute
 *
 * The steps of a loop are a text with two kinds of blanks, the induction variable and what the loop carries. A value in
 * the loop's body is compared with another one, in front of the loop, behind it, or further down in the body, that may
 * be the same text with the blanks filled in: each op with the same name and attributes, indices the same sums. */
#ifndef TILEWRIGHT_LOWERING_COMMON_MATCH_STEP_H
#define TILEWRIGHT_LOWERING_COMMON_MATCH_STEP_H

#include "lowering/ir.h"

enum { TW_MOST_CARRIED = 16, TW_MOST_TERMS = 32 };

/* sum of factor[i] * value[i], plus constant: integers of one width, as they wrap; of a tile, scalars are for all of
 * its elements */
typedef struct {
  MlirValue value[TW_MOST_TERMS];
  int64_t factor[TW_MOST_TERMS], constant;
  int num;
  bool too_long;
} tw_sum_t;

/* Adds factor * value. */
void tw_sum_add(tw_sum_t *sum, MlirValue value, int64_t factor);
/* Whether x - y is a known number. */
bool tw_differ_by(MlirValue x, MlirValue y, int64_t *out);

typedef struct {
  MlirOperation loop;
  tw_sum_t iv;                        /* what the induction variable stands for */
  MlirValue carried[TW_MOST_CARRIED]; /* and the carried values: null where the first match tells */
  tw_map_t same;                      /* values of the body that were found, and what they are */
  int loads;                          /* among them */
  bool
      takes_open; /* loads may differ in what one of them leaves open: tw_load_for_both makes those of the body right */
} tw_step_match_t;

/* Whether `other` is `value`, of the body, in that step. */
bool tw_match_step(tw_step_match_t *m, MlirValue value, MlirValue other);

/* Whether ops have the same attributes, but for what one of two loads leaves open: its padding, and whether the tile
 * lies within the array. */
bool tw_has_attributes_for_both(MlirOperation x, MlirOperation y);
/* Says of a load no more than what holds where it does the work of another one, too; of all that were matched. */
void tw_load_for_both(MlirOperation load, MlirOperation other);
void tw_load_for_step(const tw_step_match_t *m);

#endif /* TILEWRIGHT_LOWERING_COMMON_MATCH_STEP_H */

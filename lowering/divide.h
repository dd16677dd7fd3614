/* divide.h - division by multiplying: the hardware has none */
#ifndef TILEWRIGHT_LOWERING_DIVIDE_H
#define TILEWRIGHT_LOWERING_DIVIDE_H

#include "lowering/ir.h"

/* A number to divide by, and what the quotient's estimate is made with: the hardware has no division. Null where one
 * quotient is not worth the reciprocal. */
typedef struct tw_divisor {
  MlirValue value, reciprocal;
} tw_divisor_t;

tw_divisor_t tw_divisor_of(const tw_builder_t *at, MlirValue d);
/* *quotient = x / d, *rest = x % d, for 0 <= x < 2^31. */
void tw_divide(const tw_builder_t *at, MlirValue x, tw_divisor_t d, MlirValue *quotient, MlirValue *rest);

#endif /* TILEWRIGHT_LOWERING_DIVIDE_H */

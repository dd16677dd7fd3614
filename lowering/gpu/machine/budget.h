/* budget.h - what the registers and warps of a multiprocessor leave room for */
#ifndef TILEWRIGHT_LOWERING_GPU_MACHINE_BUDGET_H
#define TILEWRIGHT_LOWERING_GPU_MACHINE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* Warps of a producer that gathers: a warpgroup, which can give up registers. */
enum { TW_GATHERING_WARPS = 4 };

/* Whether a producer may gather beside so many warps that compute: few would wait for as many that gather. */
static inline bool tw_gathers_beside(int64_t warps) { return warps >= 2 * TW_GATHERING_WARPS; }

#endif /* TILEWRIGHT_LOWERING_GPU_MACHINE_BUDGET_H */

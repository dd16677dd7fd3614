/* budget.h - what the registers and warps of a multiprocessor leave room for */
#ifndef TILEWRIGHT_LOWERING_GPU_MACHINE_BUDGET_H
#define TILEWRIGHT_LOWERING_GPU_MACHINE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "mlir-c/IR.h"

typedef enum {
#define TW_REGISTER_BUDGET(use, registers) TW_BUDGET_##use,
#include "lowering/gpu/machine/budgets.def"
#undef TW_REGISTER_BUDGET
} tw_register_use_t;

enum { TW_REGISTER_BITS = 32 };

/* Registers of a thread that values of this use may have, on the target of the module around `op`. */
int tw_register_budget(MlirOperation op, tw_register_use_t use);

/* Warps of a producer that gathers: a warpgroup, which can give up registers. */
enum { TW_GATHERING_WARPS = 4 };

/* True if a gathering producer is allowed with this many consumer warps: fewer would wait for it. */
static inline bool tw_gathers_beside(int64_t warps) { return warps >= 2 * TW_GATHERING_WARPS; }

#endif /* TILEWRIGHT_LOWERING_GPU_MACHINE_BUDGET_H */

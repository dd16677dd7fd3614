/* late_operands.h - what products read from registers is made right before them, where registers are short */
#ifndef TILEWRIGHT_LOWERING_GPU_SCHEDULE_LATE_OPERANDS_H
#define TILEWRIGHT_LOWERING_GPU_SCHEDULE_LATE_OPERANDS_H

#include "lowering/ir.h"

void tw_make_operands_late(MlirOperation func);

#endif

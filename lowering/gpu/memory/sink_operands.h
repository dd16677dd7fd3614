/* sink_operands.h - operands of multiply-adds are read right before them */
#ifndef TILEWRIGHT_LOWERING_GPU_MEMORY_SINK_OPERANDS_H
#define TILEWRIGHT_LOWERING_GPU_MEMORY_SINK_OPERANDS_H

#include "lowering/ir.h"

void tw_sink_operands(MlirOperation func);

#endif

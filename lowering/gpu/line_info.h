/* line_info.h - lines of Python for what tile-to-nvvm has emitted, where the hint `line_info` asks for them */
#ifndef TILEWRIGHT_LOWERING_GPU_LINE_INFO_H
#define TILEWRIGHT_LOWERING_GPU_LINE_INFO_H

#include "mlir-c/IR.h"

void tw_add_line_info(MlirOperation module);

#endif /* TILEWRIGHT_LOWERING_GPU_LINE_INFO_H */

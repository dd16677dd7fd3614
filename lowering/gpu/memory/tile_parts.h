/* tile_parts.h - a tile's parts along an axis: where an op's operands have that axis, and how parts are made
 *
 * A tile of extent E along the axis has E/P parts of extent P, numbered by an i32. */
#ifndef TILEWRIGHT_LOWERING_GPU_MEMORY_TILE_PARTS_H
#define TILEWRIGHT_LOWERING_GPU_MEMORY_TILE_PARTS_H

#include "lowering/ir.h"

/* The axis that operand `i` of an op has where its result, or the value that it stores or reduces, has `axis`. -1: none
 * that it shares, such as of a broadcast row. */
int tw_operand_axis(MlirOperation op, intptr_t i, int axis);
/* The axis of an op's result where operand `i` has `axis`; -1 if none. */
int tw_result_axis(MlirOperation op, intptr_t i, int axis);

/* Constants, splats and iotas are made anew for a part. */
bool tw_is_made_anew(MlirValue value);
/* A constant, splat or iota for part `j`. */
MlirValue tw_make_part_anew(const tw_builder_t *at, MlirValue value, int axis, int64_t part, MlirValue j);
/* The index, in parts, of part `j` of the tile with an index in tiles that have `parts` parts. */
MlirValue tw_part_index(const tw_builder_t *at, MlirValue index, int64_t parts, MlirValue j);

#endif

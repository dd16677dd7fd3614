/* copy_engine.h - what the tensor memory accelerator (TMA) can copy, and in which boxes
 *
 * The accelerator takes boxes out of an array that a tensor map describes: the launcher makes the map
 * from the array and from what is found here. Dimension 0 of a map is the contiguous one. A box lies in
 * shared memory line after line, each of at most `swizzle` bytes with its 16-byte chunks exchanged as the
 * layouts of buffers have it (tw_shared_swizzled); what lies outside of the array becomes zero. A stage of a
 * buffer takes one box or several.
 *
 * Source: PTX ISA 8.0, "Tensors", "cp.async.bulk.tensor". */
#ifndef TILEWRIGHT_LOWERING_GPU_MACHINE_COPY_ENGINE_H
#define TILEWRIGHT_LOWERING_GPU_MACHINE_COPY_ENGINE_H

#include "lowering/layout/layout.h"
#include "tilewright/launch_record.h"

#include "mlir-c/IR.h"

/* Unit attribute of an array argument: a tensor map can describe it (TW_FACT_TMA of the launch). */
#define TW_HAS_MAP "tile.tma"
/* Boolean attribute of an access: false where the program asks for other means. */
#define TW_ALLOW_ENGINE "tile.allow_tma"

enum { TW_ENGINE_MAX_RANK = TW_MAX_MAP_RANK, TW_ENGINE_MAX_BOX = 256, TW_ENGINE_MAX_LOADED = 32 };

/* How a stage of a buffer is filled: box i holds the elements from the sum of step[b] over the set bits b of i. */
typedef struct tw_engine_copy {
  tw_tensor_map_t map;
  int dim[TW_ENGINE_MAX_RANK];       /* of the tile, for each dimension of the map */
  int step_bits;                     /* log2 of the number of boxes */
  uint32_t step[TW_LAYOUT_MAX_BITS]; /* flat index within the tile */
  int64_t box_bytes;
} tw_engine_copy_t;

/* Its name in remarks, and what a program says that does not want it. */
#define TW_ENGINE_NAME "TMA"
#define TW_REFUSES_ENGINE "allow_tma=False"

/* Whether the target around an op has it. */
bool tw_has_engine(MlirOperation op);

/* How the accelerator does a tile.async_copy or tile.tma_load (or store). Null, or why it cannot: text for a remark. */
const char *tw_engine_plan(MlirOperation copy, tw_engine_copy_t *out);

/* The same for a buffer of this type and an array, with the axis of the array along each dimension of the tile. */
const char *tw_engine_plan_for(MlirValue array, const int64_t *order, MlirType buffer, tw_engine_copy_t *out);

/* Whether one tensor map serves both. */
bool tw_engine_same_map(const tw_tensor_map_t *a, const tw_tensor_map_t *b);

/* Whether a tensor map can describe the array. */
bool tw_engine_knows(MlirValue array);

/* Whether the program leaves it to us how an access is done (TW_ALLOW_ENGINE). */
bool tw_engine_is_allowed(MlirOperation access);

#endif /* TILEWRIGHT_LOWERING_GPU_MACHINE_COPY_ENGINE_H */

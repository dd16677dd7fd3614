/* passes.h - the passes of passes.def as data
 *
 * A pass is a function that returns false after it emitted an error; its row says all else. */
#ifndef TILEWRIGHT_LOWERING_PASSES_H
#define TILEWRIGHT_LOWERING_PASSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mlir-c/IR.h"
#include "mlir-c/Pass.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TW_PASS(stage, targets, anchor, name, run, feature, group, sentence) bool run(MlirOperation op);
#define TW_CLEANUP(stage, targets, name)
#include "passes.def"
#undef TW_CLEANUP
#undef TW_PASS

typedef enum { TW_ON_GPU = 1, TW_ON_CPU = 2, TW_ON_ALL = 3 } tw_pass_targets_t;
typedef enum { TW_ANCHOR_FUNCTION, TW_ANCHOR_MODULE, TW_ANCHOR_CODE } tw_pass_anchor_t;

typedef struct {
  const char *stage; /* in lower case */
  tw_pass_targets_t targets;
  tw_pass_anchor_t anchor;
  const char *name;
  bool (*run)(MlirOperation op); /* NULL: a pass of MLIR's own */
  uint32_t feature;              /* of a GPU (tw_gpu_feature_t); 0: none */
  const char *group;             /* in lower case */
  const char *sentence;
} tw_pass_row_t;

extern const tw_pass_row_t tw_passes[];
extern const size_t tw_num_passes;

/* The pass of a row that is ours; the caller owns it. */
MlirPass tw_pass_create(size_t row);

#ifdef __cplusplus
}
#endif
#endif /* TILEWRIGHT_LOWERING_PASSES_H */

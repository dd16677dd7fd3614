/* compiler.h - from a module of the tile dialect to PTX or native code
 *
 * A stage is named by a string: "tile", "legal", then on a GPU "layout", "pipelined", "nvvm", "llvm", "ptx", and on
 * the CPU "vector", "llvm", "asm". Where a module stands is its attribute `tile.stage`, the name of a stage or of the
 * last pass, so that a dump continues from there. The target is an attribute of the module, what a program wants of a
 * kernel `tile.hints` of its function. */
#ifndef TILEWRIGHT_COMPILER_H
#define TILEWRIGHT_COMPILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mlir-c/IR.h"

#include "tilewright/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A context with every dialect registered and no threads. The caller destroys it. */
MlirContext tw_context_create(void);

/* Whether there is a target of this name, "cpu", "cpu:znver4" or "sm_90a"; if not, `why` names those that there are. */
bool tw_target_known(MlirStringRef name, size_t size, char *why);

/* Runs a textual pipeline, "builtin.module(...)", on a module. Errors go to the context's diagnostic handlers. */
bool tw_pipeline_run(MlirModule module, const char *pipeline);

/* The plan to try after `plan` (0: the first) for a kernel for a GPU of which something did not fit: "registers",
 * "shared memory", "local memory" (spilled registers), or "" if unknown. 0: there is none. The module
 * starts again from the stage "tile" with the number as its attribute tile.plan. */
int tw_next_plan(int plan, MlirStringRef reason);

/* Writes the pipeline that leads a target to a stage from the one before, as tw-opt takes it; false without such a
 * stage.
 */
bool tw_stage_passes(MlirStringRef target, const char *stage, size_t size, char *out);

/* Lowers a module in place to a stage of MLIR text ("legal" … "nvvm", "vector", "llvm"), or until a pass has run: to
 * its name in lowering/passes.def. */
bool tw_lower_to(MlirModule module, const char *stage);

typedef enum { TW_EMIT_LLVM_TEXT, TW_EMIT_ASSEMBLY, TW_EMIT_OBJECT } tw_emit_kind_t;

/* Translates a module at the MLIR stage "llvm"/"nvvm" to LLVM IR, optimizes it, and emits text, assembly (PTX on a
 * GPU) or an object file (CPU). Returns malloc'ed bytes with a terminating zero and their size, or NULL after a
 * diagnostic. */
char *tw_emit(MlirModule module, tw_emit_kind_t kind, size_t *out_size);

/* What a kernel had too little of where lowering failed, "registers" or "shared memory"; else "". */
MlirStringRef tw_what_does_not_fit(MlirModule module);

/* Visits the functions that have a launch record, with their names: the kernels of a module from the stage "layout" on.
 * Stops at the first error, and returns it. */
tw_status_t tw_each_kernel(MlirModule module, tw_status_t (*visit)(void *user, MlirOperation func, MlirStringRef name),
                           void *user);

/* Appends the bytes of a function's launch record (launch_record.h). */
tw_status_t tw_kernel_record(MlirOperation func, tw_strbuf_t *out);

/* The cost of a kernel's layouts, in issue slots of a warp, then that of the runners-up; returns how many, at most
 * `most`. */
intptr_t tw_layout_costs(MlirModule module, const char *kernel, int64_t *out, intptr_t most);

/* What tiles with names could have (lowering/gpu/layout/named_choices.h): a well-formed list of entries, or null. */
MlirAttribute tw_layouts_of(MlirModule module, const char *kernel);

enum { TW_WORK_ARRAYS = 64 };

/* What one block does. Bytes are those of the tiles that it loads and stores, whether or not they hit a cache; arrays
 * are numbered as the kernel's parameters without constants. */
typedef struct {
  double loaded[TW_WORK_ARRAYS], stored[TW_WORK_ARRAYS]; /* bytes, by array */
  double mma_flop, mma_operand_bytes;                    /* operations; bytes of A and B tiles */
  int mma_bits;                                          /* of an element of A; 0 without products */
  double elements, functions; /* elements of tiles that arithmetic made, and those of exp, log and the like */
  double carried_bytes;       /* tiles that a loop carries, the most of any loop */
  double iteration_bytes;     /* loaded in one turn of a loop, the most of any loop */
  bool unknown;               /* something depends on data: counts are a guess */
} tw_work_t;

/* Counts the work of one block of the kernel in a module at the stage "legal", from the parameters that a launch would
 * pass (an array: any pointer, extents, strides; a scalar: its value). False unless the module has one kernel, and it
 * takes that number of words. */
bool tw_count_work(MlirModule module, const int64_t *words, size_t num_words, const int32_t grid[3],
                   const int32_t block[3], tw_work_t *out);

#ifdef __cplusplus
}
#endif
#endif /* TILEWRIGHT_COMPILER_H */

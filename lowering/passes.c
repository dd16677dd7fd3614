/* passes.c - the rows of passes.def, and passes of MLIR made from them. See passes.h. */
#include "lowering/passes.h"

#include "lowering/gpu/machine/target.h"
#include "lowering/ir.h"
#include "mlir-c/Dialect/LLVM.h"
#include "mlir-c/Dialect/NVVM.h"
#include "mlir-c/Dialect/Vector.h"
#include "tilewright/dialect.h"

enum { TW_GPU_ANY_GPU = 0 };

/* Names of stages and groups, as rows write them. */
#define LEGAL "legal"
#define LAYOUT "layout"
#define PIPELINED "pipelined"
#define NVVM "nvvm"
#define VECTOR "vector"
#define LLVM "llvm"
#define GENERAL "general"
#define ONLINE_SOFTMAX "online softmax"
#define LONG_ROWS "long rows"
#define TINY_ROWS "tiny rows"

const tw_pass_row_t tw_passes[] = {
#define TW_PASS(stage, targets, anchor, name, run, feature, group, sentence)                                           \
  {stage, TW_ON_##targets, TW_ANCHOR_##anchor, name, run, TW_GPU_##feature, group, sentence},
#define TW_CLEANUP(stage, targets, name) {stage, TW_ON_##targets, TW_ANCHOR_MODULE, name, NULL, 0, NULL, NULL},
#include "lowering/passes.def"
#undef TW_CLEANUP
#undef TW_PASS
};

enum { NUM_PASSES = sizeof tw_passes / sizeof *tw_passes };
const size_t tw_num_passes = NUM_PASSES;

/* MLIR names a pass by the address of an object, aligned to 8 bytes. */
static struct {
  _Alignas(8) char unused;
} ids[NUM_PASSES];

static void nothing(void *user) { (void)user; }
static void *same(void *user) { return user; }

static bool is_left_out(const tw_pass_row_t *row, MlirOperation op) {
  tw_gpu_target_t target = tw_gpu_target_of(op);
  return row->feature != 0 && !tw_gpu_has(&target, (tw_gpu_feature_t)row->feature);
}

static void run(MlirOperation op, MlirExternalPass self, void *user) {
  const tw_pass_row_t *row = user;
  if (!is_left_out(row, op) && !row->run(op))
    mlirExternalPassSignalFailure(self);
}

/* Loading the tile dialect loads every other that passes build ops of (register_dialects.cpp). The others are most of
 * what a context costs: they come with the pass that first makes their ops. */
MlirPass tw_pass_create(size_t i) {
  const tw_pass_row_t *row = &tw_passes[i];
  MlirDialectHandle dialects[] = {mlirGetDialectHandle__tile__(), mlirGetDialectHandle__llvm__(),
                                  mlirGetDialectHandle__nvvm__(), mlirGetDialectHandle__vector__()};
  MlirExternalPassCallbacks callbacks = {.construct = nothing, .destruct = nothing, .clone = same, .run = run};
  return mlirCreateExternalPass(mlirTypeIDCreate(&ids[i]), tw_str(row->name), tw_str(row->name), tw_str(row->sentence),
                                tw_str(row->anchor == TW_ANCHOR_FUNCTION ? "func.func" : "builtin.module"),
                                row->anchor == TW_ANCHOR_CODE ? 4 : 1, dialects, callbacks, (void *)row);
}

/* pipeline.c - the passes in order, by target: where a reader of the compiler starts
 *
 * Each stage is a name that `--emit` accepts, and the passes that lead to it from the stage before. */
#include "lowering/gpu/machine/target.h"
#include "tilewright/compiler.h"
#include "tilewright/dialect.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/Diagnostics.h"
#include "mlir-c/Pass.h"

#include <stdio.h>
#include <string.h>

typedef struct {
  const char *name;
  const char *passes;
} stage_t;

#define CLEAN "canonicalize,cse"
#define LEGAL "tile-legalize,func.func(tile-gather-to-load)," CLEAN ",loop-invariant-code-motion,"
#define CUT "func.func(tile-share-rows,tile-fuse-blocks,tile-cut-blocks,tile-hint-caches),"
#define SPLIT "func.func(tile-split-loops,tile-gather-to-load)," CLEAN

static const stage_t gpu_stages[] = {
    {"legal", LEGAL CUT SPLIT},
    {"layout",
     "func.func(tile-replan,tile-walk-tiles,tile-walk-products,tile-check-sizes,tile-swap-operands,tile-select-wgmma,"
     "tile-legalize-mma,tile-relax-"
     "scores,tile-fold-exp,"
     "tile-"
     "stale-softmax,tile-rotate-products,tile-persist,"
     "tile-split-k,tile-defer-sums,tile-own-indices,tile-lift-indices,tile-reduce-strength,tile-assign-layouts)"},
    {"pipelined",
     "func.func(tile-sink-loads,tile-promote-memory,tile-stage-stores,tile-delay-waits,tile-prefetch-loads,"
     "tile-bring-vectors,tile-specialize-warps,tile-alternate-groups,tile-take-tickets,tile-pipeline,tile-keep-tiles)"
     "," CLEAN ",func.func(tile-tell-engines,tile-check-registers,tile-race-check)"},
    {"nvvm", "tile-allocate-shared,func.func(tile-insert-barriers,tile-join-blocks),tile-to-nvvm,tile-order-stores,"
             "tile-overlap-launches"},
    {NULL, NULL},
};

static const stage_t cpu_stages[] = {
    {"legal", LEGAL SPLIT},
    {"vector", "tile-to-cpu"},
    {"llvm", "cse,convert-scf-to-cf,convert-to-llvm,reconcile-unrealized-casts"},
    {NULL, NULL},
};

static MlirStringRef str(const char *text) { return mlirStringRefCreateFromCString(text); }

static MlirStringRef module_string(MlirModule module, const char *name) {
  MlirAttribute attribute = mlirOperationGetDiscardableAttributeByName(mlirModuleGetOperation(module), str(name));
  if (mlirAttributeIsNull(attribute) || !mlirAttributeIsAString(attribute))
    return str("");
  return mlirStringAttrGetValue(attribute);
}

static bool is_cpu(MlirStringRef target) {
  return target.length >= 3 && !strncmp(target.data, "cpu", 3) && (target.length == 3 || target.data[3] == ':');
}

bool tw_target_known(MlirStringRef name, size_t size, char *why) {
  return is_cpu(name) || !tw_gpu_target_refused(name, size, why);
}

static bool target_is_known(MlirModule module) {
  char why[400];
  bool known = tw_target_known(module_string(module, "tile.target"), sizeof why, why);
  if (!known)
    mlirEmitError(mlirOperationGetLocation(mlirModuleGetOperation(module)), why);
  return known;
}

MlirContext tw_context_create(void) {
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  tw_register_dialects(registry);
  MlirContext context = mlirContextCreateWithRegistry(registry, /*threadingEnabled=*/false);
  mlirDialectRegistryDestroy(registry);
  mlirContextGetOrLoadDialect(context, str("tile")); /* and with it all that tile IR is made of */
  return context;
}

static void print_to_stderr(MlirStringRef text, void *user) {
  (void)user;
  fwrite(text.data, 1, text.length, stderr);
}

bool tw_pipeline_run(MlirModule module, const char *pipeline) {
  MlirPassManager manager = mlirPassManagerCreate(mlirModuleGetContext(module));
#ifdef NDEBUG
  mlirPassManagerEnableVerifier(manager, false);
#endif
  /* mlirOpPassManagerAddPipeline would nest a module in a module, run on nothing and succeed. */
  bool ok = mlirLogicalResultIsSuccess(mlirParsePassPipeline(mlirPassManagerGetAsOpPassManager(manager), str(pipeline),
                                                             print_to_stderr, NULL)) &&
            mlirLogicalResultIsSuccess(mlirPassManagerRunOnOp(manager, mlirModuleGetOperation(module)));
  mlirPassManagerDestroy(manager);
  return ok;
}

static bool run_stage(MlirModule module, const stage_t *stage) {
  char pipeline[1024];
  snprintf(pipeline, sizeof pipeline, "builtin.module(%s)", stage->passes);
  if (!tw_pipeline_run(module, pipeline))
    return false;
  mlirOperationSetDiscardableAttributeByName(mlirModuleGetOperation(module), str("tile.stage"),
                                             mlirStringAttrGet(mlirModuleGetContext(module), str(stage->name)));
  return true;
}

/* Position after the stage that the module names; 0 for a module at "tile". */
static size_t stages_done(const stage_t *stages, MlirStringRef at) {
  for (size_t i = 0; stages[i].name; i++)
    if (mlirStringRefEqual(str(stages[i].name), at))
      return i + 1;
  return 0;
}

bool tw_lower_to(MlirModule module, const char *goal) {
  if (!target_is_known(module))
    return false;
  const stage_t *stages = is_cpu(module_string(module, "tile.target")) ? cpu_stages : gpu_stages;
  size_t done = stages_done(stages, module_string(module, "tile.stage")), wanted = stages_done(stages, str(goal));
  if (wanted > 0 && wanted <= done) /* it is there, or past it */
    return true;
  for (size_t i = done; stages[i].name; i++) {
    if (!run_stage(module, &stages[i]))
      return false;
    if (!strcmp(stages[i].name, goal))
      return true;
  }
  return true;
}

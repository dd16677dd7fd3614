/* pipeline.c - runs the passes of passes.def in order: where a reader of the compiler starts
 *
 * `--emit` accepts the name of a stage, which is after the last pass that leads to it, and that of a pass. */
#include "lowering/gpu/machine/target.h"
#include "lowering/ir.h"
#include "lowering/passes.h"
#include "tilewright/compiler.h"
#include "tilewright/dialect.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/Diagnostics.h"
#include "mlir-c/Pass.h"

#include <stdio.h>
#include <string.h>

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

static void put(char *out, size_t size, const char *text) {
  size_t length = strlen(out);
  snprintf(out + length, size - length, "%s", text);
}

/* Passes on functions that follow each other are one pipeline of each function. */
static void describe(size_t from, size_t to, tw_pass_targets_t target, size_t size, char *out) {
  bool inside = false;
  const char *separator = "builtin.module(";
  *out = 0;
  for (size_t i = from; i < to; i++) {
    bool function = tw_passes[i].anchor == TW_ANCHOR_FUNCTION;
    if (!(tw_passes[i].targets & target))
      continue;
    if (inside && !function)
      put(out, size, ")");
    put(out, size, separator);
    if (!inside && function)
      put(out, size, "func.func(");
    put(out, size, tw_passes[i].name);
    inside = function;
    separator = ",";
  }
  put(out, size, inside ? "))" : ")");
}

static bool is_at(const tw_pass_row_t *row, tw_pass_targets_t target, MlirStringRef name) {
  return (row->targets & target) &&
         (mlirStringRefEqual(str(row->stage), name) || (row->run && mlirStringRefEqual(str(row->name), name)));
}

/* How many rows lead to a stage, or to behind a pass; 0 for "tile". */
static size_t rows_to(tw_pass_targets_t target, MlirStringRef name) {
  for (size_t i = tw_num_passes; i > 0; i--)
    if (is_at(&tw_passes[i - 1], target, name))
      return i;
  return 0;
}

static size_t end_of_stage(size_t from) {
  size_t end = from;
  while (end < tw_num_passes && !strcmp(tw_passes[end].stage, tw_passes[from].stage))
    end++;
  return end;
}

/* Runs the rows up to `to`, which are of one stage, and notes where the module stands. */
static bool run_rows(MlirModule module, tw_pass_targets_t target, size_t from, size_t to) {
  char pipeline[2048];
  describe(from, to, target, sizeof pipeline, pipeline);
  if (!tw_pipeline_run(module, pipeline))
    return false;
  const char *at = to == end_of_stage(from) ? tw_passes[from].stage : tw_passes[to - 1].name;
  mlirOperationSetDiscardableAttributeByName(mlirModuleGetOperation(module), str("tile.stage"),
                                             mlirStringAttrGet(mlirModuleGetContext(module), str(at)));
  return true;
}

bool tw_stage_passes(MlirStringRef name, const char *stage, size_t size, char *out) {
  tw_pass_targets_t target = is_cpu(name) ? TW_ON_CPU : TW_ON_GPU;
  size_t from = 0;
  while (from < tw_num_passes && !(strcmp(tw_passes[from].stage, stage) == 0 && tw_passes[from].targets & target))
    from++;
  describe(from, end_of_stage(from), target, size, out);
  return from < tw_num_passes;
}

/* Passes plan kernels, and rely on each other's plans: other functions would reach them without. */
static bool has_kernels_only(MlirModule module) {
  TW_EACH_OP(op, mlirModuleGetBody(module))
    if (tw_op_is(op, TW_FUNC_FUNC) && !tw_has_attr(op, "tile.kernel")) {
      tw_op_error(op, "is no kernel, and only kernels are compiled: give it the attribute tile.kernel");
      return false;
    }
  return true;
}

bool tw_lower_to(MlirModule module, const char *goal) {
  if (!target_is_known(module))
    return false;
  tw_pass_targets_t target = is_cpu(module_string(module, "tile.target")) ? TW_ON_CPU : TW_ON_GPU;
  size_t done = rows_to(target, module_string(module, "tile.stage")), wanted = rows_to(target, str(goal));
  if (done == 0 && !has_kernels_only(module))
    return false;
  if (wanted == 0) /* behind all of them */
    wanted = tw_num_passes;
  while (done < wanted) {
    size_t end = end_of_stage(done), to = end < wanted ? end : wanted;
    if ((tw_passes[done].targets & target) && !run_rows(module, target, done, to))
      return false;
    done = to;
  }
  return true;
}

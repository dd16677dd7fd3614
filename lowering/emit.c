/* emit.c - from the LLVM dialect through LLVM to PTX, native assembly or an object file
 *
 * The LLVM pass lists are short on purpose: the lowering already emits what -O3 would look for, and its loop
 * transformations cost compile time and undo schedules. The code generator of NVPTX looks for common subexpressions
 * itself, several times. Accesses of a thread to neighbours become one where the address allows it, which the rules for
 * tiles do themselves. */
#include "base/memory.h"
#include "dialect/generate_code.h"
#include "lowering/gpu/machine/target.h"
#include "lowering/launch_record.h"
#include "lowering/layout/memory.h"
#include "lowering/ptx.h"
#include "tilewright/compiler.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/Diagnostics.h"

#include "llvm-c/Core.h"
#include "llvm-c/Error.h"
#include "llvm-c/TargetMachine.h"
#include "llvm-c/Transforms/PassBuilder.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GPU_PASSES "early-cse,simplifycfg,instcombine<no-verify-fixpoint>"
/* Accesses are joined before instcombine, too: it makes `i + 128` an `or` that no longer says that it is a sum. What
 * both sides of a branch begin or end with is done once: threads of a warp that part take the sides one after the
 * other. An end is taken out once accesses are joined: it would part the last one from its neighbours. Sums of bits
 * are found (aggressive-instcombine) before instcombine leaves out bits of their masks that nothing asks for. */
#define THREAD_PASSES                                                                                                  \
  "early-cse,simplifycfg<hoist-common-insts>,infer-alignment,load-store-vectorizer,"                                   \
  "simplifycfg<sink-common-insts>,aggressive-instcombine,instcombine<no-verify-fixpoint>,infer-alignment,"             \
  "load-store-vectorizer"
/* Loops that index an array of the thread are written out (lowering/gpu/facts/local_arrays.h), so that it lies in
 * registers. */
#define WRITE_OUT_PASSES "loop-simplify,lcssa,loop(loop-rotate,indvars,loop-unroll-full),sroa,early-cse,simplifycfg,"
#define CPU_PASSES_WITH(more)                                                                                          \
  "always-inline,inline,function(sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,"                  \
  "loop-mssa(licm),early-cse" more "),globaldce"
/* Loops over tiles are of vectors already; and the passes that prepare others take time that grows with the square of
 * the loops of a kernel. */
#define CPU_PASSES CPU_PASSES_WITH("")
#define CPU_THREAD_PASSES                                                                                              \
  CPU_PASSES_WITH(",loop(loop-rotate,indvars),loop-vectorize,instcombine<no-verify-fixpoint>,simplifycfg")

enum { MOST_OPTIMIZED = 3 };

/* Passes of the code generator that change no line of the PTX of tiles, as tools/ptx_corpus.py sees it: the rules emit
 * addresses as these would leave them. Of the three runs of early CSE the last remains. */
#define OF_TILES                                                                                                       \
  {"Nary reassociation", 1}, {"Early CSE", 2}, {"Canonicalize Freeze Instructions in Loops", 1},                       \
      {"Constant Hoisting", 1}, {"SROA", 2}, {"Infer address spaces", 1}, {"Early Tail Duplication", 1},               \
      {"Optimize machine instruction PHIs", 1}, {"GPU Load and Store Vectorizer", 1}
static const tw_left_out_t of_tiles[] = {OF_TILES, {NULL, 0}};
/* Where no loop counts up an address, strength reduction finds nothing but the counter, after it has looked at each
 * integer that the loop carries. */
static const tw_left_out_t of_tiles_in_registers[] = {OF_TILES, {"Loop Strength Reduction", 1}, {NULL, 0}};
static const tw_left_out_t nothing[] = {{NULL, 0}};
/* The same of kernels of threads, of which some need the others; and what is for arrays of a thread and for pointers
 * that may point to any memory, which most kernels do not have. */
static const tw_left_out_t of_threads_with_arrays[] = {{"Early CSE", 2},
                                                       {"Canonicalize Freeze Instructions in Loops", 1},
                                                       {"Constant Hoisting", 1},
                                                       {"Optimize machine instruction PHIs", 1},
                                                       {NULL, 0}};
static const tw_left_out_t of_threads[] = {{"Early CSE", 2},
                                           {"Canonicalize Freeze Instructions in Loops", 1},
                                           {"Constant Hoisting", 1},
                                           {"Optimize machine instruction PHIs", 1},
                                           {"SROA", 2},
                                           {"Infer address spaces", 1},
                                           {NULL, 0}};

/* Of a long function of threads straight-line strength reduction, which compares each sum with those before it, takes
 * as long as all others together. What it would leave to the driver's assembler are addresses, of which that makes one
 * instruction each. */
static const char slow_for_long[] = "slsr";
enum { LONG = 600 }; /* instructions */

static MlirLocation module_location(MlirModule module) {
  return mlirOperationGetLocation(mlirModuleGetOperation(module));
}

static char *fail(MlirModule module, const char *what, const char *why) {
  char message[512];
  snprintf(message, sizeof message, "%s: %s", what, why ? why : "unknown error");
  mlirEmitError(module_location(module), message);
  return NULL;
}

/* the name of a GPU, or "cpu" or "cpu:znver4" */
static void read_target(MlirModule module, char *out, size_t size) {
  MlirAttribute attribute = mlirOperationGetDiscardableAttributeByName(mlirModuleGetOperation(module),
                                                                       mlirStringRefCreateFromCString("tile.target"));
  out[0] = 0;
  if (mlirAttributeIsNull(attribute) || !mlirAttributeIsAString(attribute))
    return;
  MlirStringRef text = mlirStringAttrGetValue(attribute);
  snprintf(out, size, "%.*s", (int)text.length, text.data);
}

/* The hint opt_level, the least of the kernels', which are assembled together; 3 where there is none. */
static int read_level(MlirModule module) {
  int64_t least = MOST_OPTIMIZED;
  TW_EACH_OP(op, mlirModuleGetBody(module)) {
    int64_t level = tw_hint_opt_level(op, MOST_OPTIMIZED);
    least = level < least ? level : least;
  }
  return (int)least;
}

static bool has_128_bits(MlirOperation op) {
  enum { LENGTH = sizeof ".b128" - 1 };
  MlirStringRef text = tw_attr_string(op, "asm_string");
  for (size_t i = 0; i + LENGTH <= text.length; i++)
    if (!strncmp(text.data + i, ".b128", LENGTH))
      return true;
  return false;
}

/* The version of PTX, times ten, that instructions need which older chips have, too; 0 where there is none. */
static int read_ptx_version(MlirModule module) {
  enum { PTX_OF_128_BITS = 84 }; /* 8.3 has registers of 128 bits, but not for the scope sys */
  return tw_has_op_like(mlirModuleGetOperation(module), has_128_bits) ? PTX_OF_128_BITS : 0;
}

typedef struct {
  bool cpu;
  LLVMTargetMachineRef machine; /* owned */
  char *cpu_name, *features;    /* owned; what functions are stamped with on the CPU */
} target_t;

/* The level is for the CPU, the version of PTX the least that will do. What LLVM makes of PTX matters little: there the
 * driver's assembler gets it. */
static bool open_target(const char *name, int level, int ptx, target_t *out) {
  static const LLVMCodeGenOptLevel levels[] = {LLVMCodeGenLevelNone, LLVMCodeGenLevelLess, LLVMCodeGenLevelDefault,
                                               LLVMCodeGenLevelDefault};
  *out = (target_t){.cpu = !strncmp(name, "cpu", 3)};
  char *error = NULL, *host = NULL;
  const char *triple = "nvptx64-nvidia-cuda";
  if (out->cpu) {
    triple = host = LLVMGetDefaultTargetTriple();
    bool named = !strncmp(name, "cpu:", 4);
    out->cpu_name = named ? LLVMCreateMessage(name + 4) : LLVMGetHostCPUName();
    out->features = named ? LLVMCreateMessage("") : LLVMGetHostCPUFeatures();
  } else {
    out->cpu_name = LLVMCreateMessage(name);
    char version[16];
    int own = tw_gpu_ptx_version(mlirStringRefCreateFromCString(name));
    snprintf(version, sizeof version, "+ptx%d", own > ptx ? own : ptx);
    out->features = LLVMCreateMessage(version);
  }
  LLVMTargetRef target;
  if (LLVMGetTargetFromTriple(triple, &target, &error)) {
    LLVMDisposeMessage(error);
  } else {
    out->machine =
        LLVMCreateTargetMachine(target, triple, out->cpu_name, out->features,
                                out->cpu ? levels[level] : LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelDefault);
  }
  if (host)
    LLVMDisposeMessage(host);
  return out->machine != NULL;
}

static void close_target(target_t *target) {
  if (target->machine)
    LLVMDisposeTargetMachine(target->machine);
  LLVMDisposeMessage(target->cpu_name);
  LLVMDisposeMessage(target->features);
}

/* Functions carry the CPU by name, or vectors wider than the baseline are split. */
static void stamp_functions(LLVMModuleRef module, const target_t *target) {
  LLVMContextRef context = LLVMGetModuleContext(module);
  const char *keys[] = {"target-cpu", "target-features"}, *values[] = {target->cpu_name, target->features};
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    for (int i = 0; i < 2; i++)
      LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                              LLVMCreateStringAttribute(context, keys[i], (unsigned)strlen(keys[i]), values[i],
                                                        (unsigned)strlen(values[i])));
}

/* Kernels whose functions are the code of one thread as the program has it. */
static bool is_of_threads(MlirModule module) {
  MlirOperation op = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  while (!mlirOperationIsNull(op) && !tw_has_attr(op, "tile.simt"))
    op = mlirOperationGetNextInBlock(op);
  return !mlirOperationIsNull(op);
}

/* The function of a kernel of tiles, which is the same whatever kernels are beside it. */
static bool is_of_tiles(MlirModule module, LLVMValueRef function) {
  size_t length;
  const char *start = LLVMGetValueName2(function, &length);
  MlirStringRef name = mlirStringRefCreate(start, length);
  MlirOperation op = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  while (!mlirOperationIsNull(op) && !mlirStringRefEqual(tw_attr_string(op, "sym_name"), name))
    op = mlirOperationGetNextInBlock(op);
  return !mlirOperationIsNull(op) && tw_has_attr(op, "tile.launch") && !tw_has_attr(op, "tile.simt");
}

static bool is_pure_assembly(LLVMValueRef op) {
  LLVMValueRef called = LLVMIsACallInst(op) ? LLVMGetCalledValue(op) : NULL;
  return called && LLVMIsAInlineAsm(called) && !LLVMGetInlineAsmHasSideEffects(called);
}

/* Assembly without side effects computes, and ends: accesses to memory may move across it. */
static void tell_pure_assembly(LLVMModuleRef module) {
  static const char *const names[] = {"memory", "willreturn", "nounwind"}; /* memory(none) is 0 */
  enum { NAMES = sizeof names / sizeof *names };
  LLVMContextRef context = LLVMGetModuleContext(module);
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block))
      for (LLVMValueRef op = LLVMGetFirstInstruction(block); op; op = LLVMGetNextInstruction(op))
        for (int i = 0; i < NAMES && is_pure_assembly(op); i++) {
          unsigned kind = LLVMGetEnumAttributeKindForName(names[i], strlen(names[i]));
          LLVMAddCallSiteAttribute(op, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                   LLVMCreateEnumAttribute(context, kind, 0));
        }
}

/* Whether a branch of the function closes a loop that is to be written out. */
static bool has_marked_loop(LLVMValueRef function) {
  static const char name[] = "llvm.loop";
  unsigned kind = LLVMGetMDKindIDInContext(LLVMGetModuleContext(LLVMGetGlobalParent(function)), name, sizeof name - 1);
  for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
    if (LLVMGetMetadata(LLVMGetBasicBlockTerminator(block), kind))
      return true;
  return false;
}

static const char *passes_of(MlirModule source, LLVMValueRef function) {
  if (is_of_tiles(source, function))
    return GPU_PASSES;
  return has_marked_loop(function) ? WRITE_OUT_PASSES THREAD_PASSES : THREAD_PASSES;
}

/* Functions are taken one by one only where there are two kinds of them: each run of passes builds its own analyses. */
static LLVMErrorRef optimize_for_gpu(MlirModule source, LLVMModuleRef module, const target_t *target,
                                     LLVMPassBuilderOptionsRef options) {
  if (!is_of_threads(source))
    return LLVMRunPasses(module, "function(" GPU_PASSES "),globaldce", target->machine, options);
  tell_pure_assembly(module);
  LLVMErrorRef error = NULL;
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f && !error; f = LLVMGetNextFunction(f))
    if (!LLVMIsDeclaration(f))
      error = LLVMRunPassesOnFunction(f, passes_of(source, f), target->machine, options);
  return error ? error : LLVMRunPasses(module, "globaldce", target->machine, options);
}

static LLVMErrorRef optimize_for_cpu(MlirModule source, LLVMModuleRef module, const target_t *target,
                                     LLVMPassBuilderOptionsRef options) {
  const char *passes = is_of_threads(source) ? CPU_THREAD_PASSES : CPU_PASSES;
  return LLVMRunPasses(module, passes, target->machine, options);
}

static char *optimize(MlirModule source, LLVMModuleRef module, const target_t *target) {
  char *triple = LLVMGetTargetMachineTriple(target->machine);
  LLVMSetTarget(module, triple);
  LLVMDisposeMessage(triple);
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(target->machine);
  LLVMSetModuleDataLayout(module, layout);
  LLVMDisposeTargetData(layout);
  if (target->cpu)
    stamp_functions(module, target);
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMErrorRef error = (target->cpu ? optimize_for_cpu : optimize_for_gpu)(source, module, target, options);
  LLVMDisposePassBuilderOptions(options);
  return error ? LLVMGetErrorMessage(error) : NULL;
}

static char *copy_bytes(const char *bytes, size_t size, size_t *out_size) {
  char *copy = tw_must(malloc(size + 1));
  memcpy(copy, bytes, size);
  copy[size] = 0;
  *out_size = size;
  return copy;
}

static char *print_llvm(LLVMModuleRef module, size_t *out_size) {
  char *text = LLVMPrintModuleToString(module);
  char *copy = copy_bytes(text, strlen(text), out_size);
  LLVMDisposeMessage(text);
  return copy;
}

/* PTX that begins with the level at which it shall be assembled. Takes `ptx`. */
static char *with_level(char *ptx, int level, size_t *size) {
  enum { LINE = sizeof TW_PTX_OPT_LEVEL + 1 }; /* with a digit and the end of the line */
  if (level >= MOST_OPTIMIZED)
    return ptx;
  char *out = tw_must(malloc(*size + LINE + 1));
  snprintf(out, LINE + 1, TW_PTX_OPT_LEVEL "%d\n", level);
  memcpy(out + LINE, ptx, *size + 1);
  *size += LINE;
  free(ptx);
  return out;
}

static bool is_long(LLVMValueRef function) {
  int count = 0;
  for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
    for (LLVMValueRef op = LLVMGetFirstInstruction(block); op; op = LLVMGetNextInstruction(op))
      count++;
  return count > LONG;
}

/* Each function by itself, so that its code is the same whatever is beside it. */
static void leave_out_of_long(MlirModule source, LLVMModuleRef module) {
  LLVMAttributeRef left_out =
      LLVMCreateStringAttribute(LLVMGetModuleContext(module), TW_LEFT_OUT, (unsigned)strlen(TW_LEFT_OUT), slow_for_long,
                                (unsigned)strlen(slow_for_long));
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    if (!is_of_tiles(source, f) && is_long(f))
      LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, left_out);
}

static bool is_generic(LLVMValueRef value) {
  LLVMTypeRef type = LLVMTypeOf(value);
  return LLVMGetTypeKind(type) == LLVMPointerTypeKind && LLVMGetPointerAddressSpace(type) == 0;
}

/* Whether code has pointers that may point to any memory, as those to arrays of a thread do. */
static bool has_generic_pointers(LLVMModuleRef module) {
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
    for (LLVMValueRef p = LLVMGetFirstParam(f); p; p = LLVMGetNextParam(p))
      if (is_generic(p))
        return true;
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block))
      for (LLVMValueRef op = LLVMGetFirstInstruction(block); op; op = LLVMGetNextInstruction(op))
        if (is_generic(op) || LLVMIsAAllocaInst(op))
          return true;
  }
  return false;
}

/* Adds what is computed from a value, if it is not there yet. */
static void add_users(LLVMValueRef value, tw_map_t *seen, LLVMValueRef **list, size_t *count) {
  for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
    LLVMValueRef user = LLVMGetUser(use);
    if (tw_map_get(seen, user, NULL) != NULL)
      continue;
    tw_map_set(seen, user, 0, NULL);
    *list = tw_room(*list, *count, sizeof **list);
    (*list)[(*count)++] = user;
  }
}

static bool is_address(LLVMValueRef value) { return LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMPointerTypeKind; }

/* Whether an address depends on what control flow joins, as it does on what a loop counts. */
static bool joins_addresses(LLVMModuleRef module) {
  tw_map_t seen = {.slots = NULL};
  LLVMValueRef *list = NULL;
  size_t count = 0;
  bool found = false;
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block))
      for (LLVMValueRef op = LLVMGetFirstInstruction(block); op && LLVMIsAPHINode(op);
           op = LLVMGetNextInstruction(op)) {
        found = found || is_address(op);
        add_users(op, &seen, &list, &count);
      }
  for (size_t i = 0; i < count && !found; i++) {
    found = is_address(list[i]);
    add_users(list[i], &seen, &list, &count);
  }
  tw_map_free(&seen);
  free(list);
  return found;
}

static const tw_left_out_t *left_out_of(MlirModule source, LLVMModuleRef module, const target_t *target) {
  if (target->cpu)
    return nothing;
  if (!is_of_threads(source))
    return joins_addresses(module) ? of_tiles : of_tiles_in_registers;
  leave_out_of_long(source, module);
  return has_generic_pointers(module) ? of_threads_with_arrays : of_threads;
}

static char *generate(MlirModule source, LLVMModuleRef module, const target_t *target, tw_emit_kind_t kind,
                      size_t *out_size) {
  LLVMCodeGenFileType type = kind == TW_EMIT_OBJECT ? LLVMObjectFile : LLVMAssemblyFile;
  const char *why = NULL;
  const tw_left_out_t *left_out = left_out_of(source, module, target);
  char *bytes = tw_generate_code(target->machine, module, type, left_out, out_size, &why);
  if (!bytes)
    return fail(source, "code generation failed", why);
  if (target->cpu)
    return bytes;
  bytes = tw_ptx_make_safe(bytes, out_size);
  return with_level(bytes, read_level(source), out_size);
}

static char *emit_module(MlirModule source, LLVMModuleRef module, const target_t *target, tw_emit_kind_t kind,
                         size_t *out_size) {
  char *error = optimize(source, module, target);
  if (error) {
    fail(source, "LLVM passes failed", error);
    LLVMDisposeErrorMessage(error);
    return NULL;
  }
  return kind == TW_EMIT_LLVM_TEXT ? print_llvm(module, out_size) : generate(source, module, target, kind, out_size);
}

/* ---- errors that LLVM ends the process for ---------------------------------------------------------- */

/* What LLVM cannot select or assemble it reports as fatal. Then the thread leaves it here, with what was half made. */
static _Thread_local struct {
  jmp_buf way_out;
  bool open;
  char message[400];
} fatal;

static void leave(const char *reason) {
  if (!fatal.open)
    return; /* and LLVM ends the process: this is no code of ours */
  snprintf(fatal.message, sizeof fatal.message, "%s", reason);
  longjmp(fatal.way_out, 1);
}

static void install(void) { LLVMInstallFatalErrorHandler(leave); }

typedef struct {
  MlirModule source;
  bool failed;
} report_t;

/* Without a handler LLVM prints an error and ends the process. */
static void on_diagnostic(LLVMDiagnosticInfoRef info, void *user) {
  report_t *report = user;
  if (LLVMGetDiagInfoSeverity(info) != LLVMDSError)
    return;
  char *text = LLVMGetDiagInfoDescription(info);
  fail(report->source, "LLVM cannot make code of this", text);
  LLVMDisposeMessage(text);
  report->failed = true;
}

static char *emit(MlirModule source, tw_emit_kind_t kind, size_t *out_size) {
  char name[64], why[400];
  read_target(source, name, sizeof name);
  target_t target;
  report_t report = {.source = source};
  char *bytes = NULL;
  if (!tw_target_known(mlirStringRefCreateFromCString(name), sizeof why, why))
    return fail(source, "no code", why);
  if (!open_target(name, read_level(source), read_ptx_version(source), &target)) {
    fail(source, "no code generator for target", name);
    close_target(&target);
    return NULL;
  }
  LLVMContextRef context = LLVMContextCreate();
  LLVMContextSetDiagnosticHandler(context, on_diagnostic, &report);
  LLVMModuleRef module = tw_translate_to_llvm(mlirModuleGetOperation(source), context);
  if (module) {
    bytes = emit_module(source, module, &target, kind, out_size);
    LLVMDisposeModule(module);
  } else {
    fail(source, "translation to LLVM IR failed", "see the errors above");
  }
  LLVMContextDispose(context);
  close_target(&target);
  if (!report.failed)
    return bytes;
  free(bytes);
  return NULL;
}

char *tw_emit(MlirModule source, tw_emit_kind_t kind, size_t *out_size) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, install);
  if (setjmp(fatal.way_out)) {
    fatal.open = false;
    return fail(source, "LLVM cannot make code of this", fatal.message);
  }
  fatal.open = true;
  char *bytes = emit(source, kind, out_size);
  fatal.open = false;
  return bytes;
}

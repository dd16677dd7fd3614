/* check_registers.c - tile-check-registers: tiles that no thread's registers can hold
 *
 *   %d = tile.mma %a, %b, %c : ... -> tensor<256x256xf32, #over_8_warps>
 *
 * is 256 registers a thread, of which there are 255: the assembler keeps some of them in local memory. That is right
 * but slow, and gets a remark. A tile of many times that size is an error, which names it: it would take minutes to
 * assemble. Runs when loads that go to shared memory have left their registers; changes nothing. */
#include "dialect/layouts.h"
#include "lowering/ir.h"
#include "lowering/passes.h"
#include "tilewright/dialect.h"

enum { MOST_REGISTERS = 255, ABSURD = 4 * MOST_REGISTERS };

typedef struct {
  MlirOperation op;
  int64_t words;
} largest_t;

/* Ops whose results are known without registers. */
static bool is_free(MlirOperation op) {
  return tw_op_form(op) == TW_FORM_SOURCE || tw_op_is(op, TW_TILE_BROADCAST) || mlirOperationGetNumRegions(op) > 0;
}

static MlirWalkResult measure(MlirOperation op, void *user) {
  largest_t *largest = user;
  tw_layout_t layout;
  for (intptr_t i = 0; !is_free(op) && i < mlirOperationGetNumResults(op); i++) {
    MlirType type = mlirValueGetType(mlirOperationGetResult(op, i));
    if (!tw_is_tile(type) || !tw_layout_of_type(type, &layout))
      continue;
    int64_t words = (int64_t)tw_layout_count(&layout, TW_REGISTER) * tw_memory_bits(tw_element(type)) / 32;
    if (words > largest->words)
      *largest = (largest_t){op, words};
  }
  return MlirWalkResultAdvance;
}

static bool run(MlirOperation func) {
  largest_t largest = {.words = MOST_REGISTERS};
  char tile[160];
  mlirOperationWalk(func, measure, &largest, MlirWalkPreOrder);
  if (largest.words <= MOST_REGISTERS)
    return true;
  tw_describe_tile(mlirValueGetType(mlirOperationGetResult(largest.op, 0)), sizeof tile, tile);
  static const char text[] = "takes %lld registers of each thread for its tile of %s; there are %d: use smaller tiles";
  if (largest.words > ABSURD)
    tw_op_does_not_fit(largest.op, TW_REGISTERS, text, (long long)largest.words, tile, MOST_REGISTERS);
  else
    tw_op_remark(largest.op, text, (long long)largest.words, tile, MOST_REGISTERS);
  return largest.words <= ABSURD;
}

MlirPass tw_create_check_registers(void) {
  static struct {
    _Alignas(8) char unused;
  } id;
  static const tw_pass_t pass = {&id, "tile-check-registers", "Tell which tile is too large for registers", "func.func",
                                 run};
  return tw_pass_create(&pass);
}

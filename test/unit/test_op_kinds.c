/* Every name of the table is found, and nothing else is. */
#include "dialect/op_kinds.h"
#include "dialect/op_table.h"

#include "check.h"

#include <stdio.h>
#include <string.h>

static tw_op_kind_t kind_of(const char *name) { return tw_kind_named(mlirStringRefCreateFromCString(name)); }

int main(void) {
  CHECK(TW_NUM_OP_KINDS > 150, "%d", TW_NUM_OP_KINDS);
  for (int kind = TW_UNKNOWN_OP + 1; kind < TW_NUM_OP_KINDS; kind++) {
    const tw_op_row_t *row = &tw_op_rows[kind];
    CHECK((int)kind_of(row->name) == kind, "%s", row->name);
    CHECK((tw_op_info(kind) != NULL) == !strncmp(row->name, "tile.", 5), "%s", row->name);
    CHECK((row->columns & TW_PURE) == 0 || (row->columns & TW_UNKNOWN) == 0, "%s", row->name);
  }
  CHECK(kind_of("tile.load") == TW_TILE_LOAD, "tile.load");
  CHECK(kind_of("scf.if") == TW_SCF_IF, "a short name");
  static const char *const unknown[] = {"", "tile", "tile.", "tile.loaf", "tile.loads", "load", "test.op", "x"};
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
    CHECK(kind_of(unknown[i]) == TW_UNKNOWN_OP, "%s", unknown[i]);
  CHECK(tw_op_rows[TW_UNKNOWN_OP].columns == TW_UNKNOWN, "reads, writes and orders all");
  if (failures == 0)
    puts("kinds of ops: ok");
  return failures != 0;
}

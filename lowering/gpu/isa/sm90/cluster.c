/* cluster.c - blocks of a cluster meet and reach each other's shared memory. See isa/across_blocks.h. */
#include "lowering/gpu/isa/across_blocks.h"

#include <stdio.h>

void twg_meet_blocks(tw_emitter_t *e, const char *step) {
  char text[64];
  snprintf(text, sizeof text, "barrier.cluster.%s.aligned;", step);
  twg_asm(e, text, "", (MlirType){NULL}, 0, NULL, TW_PTX_SETS_UP);
}

void twg_store_in_block(tw_emitter_t *e, MlirValue word, MlirValue pointer, MlirValue block) {
  char text[160], constraints[16];
  int bits = (int)mlirIntegerTypeGetWidth(mlirValueGetType(word));
  snprintf(text, sizeof text, "{ .reg .b32 a;\nmapa.shared::cluster.u32 a, $0, $2;\nst.shared::cluster.b%d [a], $1; }",
           bits);
  snprintf(constraints, sizeof constraints, "r,%c,r", bits == 64 ? 'l' : 'r');
  MlirValue operands[] = {pointer, word, block};
  twg_asm(e, text, constraints, (MlirType){NULL}, 3, operands, TW_PTX_STORES);
}

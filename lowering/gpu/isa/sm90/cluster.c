/* cluster.c - blocks of a cluster meet and reach each other's shared memory. See isa/across_blocks.h. */
#include "lowering/gpu/isa/across_blocks.h"

#include <stdio.h>

void twg_meet_blocks(tw_emitter_t *e, const char *step) {
  char text[64];
  snprintf(text, sizeof text, "barrier.cluster.%s.aligned;", step);
  twg_asm(e, text, "", (MlirType){NULL}, 0, NULL, TW_PTX_SETS_UP);
}

static MlirValue is_first_thread(tw_emitter_t *e) { return twg_icmp(e, TW_EQ, e->thread, twg_const_i32(e, 0)); }

void twg_set_up_words(tw_emitter_t *e, MlirValue barrier) {
  MlirValue operands[] = {barrier, twg_const_i32(e, 1), is_first_thread(e)};
  twg_asm(e, "@$2 mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,b", (MlirType){NULL}, 3, operands, TW_PTX_SETS_UP);
}

void twg_show_barriers(tw_emitter_t *e) {
  twg_asm(e, "fence.mbarrier_init.release.cluster;", "", (MlirType){NULL}, 0, NULL, TW_PTX_SETS_UP);
}

void twg_expect_words(tw_emitter_t *e, MlirValue barrier, int64_t bytes) {
  MlirValue operands[] = {barrier, twg_const_i32(e, bytes), is_first_thread(e)};
  twg_asm(e, "@$2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r,b", (MlirType){NULL}, 3, operands,
          TW_PTX_FENCE);
}

void twg_send_word(tw_emitter_t *e, MlirValue word, MlirValue pointer, MlirValue block, MlirValue barrier,
                   MlirValue guard) {
  char text[256], constraints[16];
  int bits = (int)mlirIntegerTypeGetWidth(mlirValueGetType(word));
  snprintf(text, sizeof text,
           "{ .reg .b32 a, b;\nmapa.shared::cluster.u32 a, $0, $2;\nmapa.shared::cluster.u32 b, $3, $2;\n"
           "%sst.async.shared::cluster.mbarrier::complete_tx::bytes.b%d [a], $1, [b]; }",
           guard.ptr ? "@$4 " : "", bits);
  snprintf(constraints, sizeof constraints, "r,%c,r,r%s", bits == 64 ? 'l' : 'r', guard.ptr ? ",b" : "");
  MlirValue operands[] = {pointer, word, block, barrier, guard};
  twg_asm(e, text, constraints, (MlirType){NULL}, guard.ptr ? 5 : 4, operands, TW_PTX_STORES);
}

void twg_wait_for_words(tw_emitter_t *e, MlirValue barrier) {
  MlirValue operands[] = {barrier, twg_const_i32(e, 0)};
  twg_asm(
      e,
      "{ .reg .pred p;\nAGAIN: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [$0], $1;\n@p bra DONE;\n"
      "bra AGAIN;\nDONE: }",
      "r,r", (MlirType){NULL}, 2, operands, TW_PTX_FENCE);
}

/* lane_exchange.h - lanes exchange registers, so that each has longer runs of neighbours to store
 *
 * A matrix instruction leaves two neighbours in each lane, eight in four lanes (of a row), and the next eight in the
 * next two registers. Here rows of lanes become rows of registers:
 *
 *            lane 0  lane 1  lane 2  lane 3              lane 0  lane 1  lane 2  lane 3
 *   reg 0      a       b       c       d        reg 0      a       e       i       m
 *   reg 1      e       f       g       h        reg 1      b       f       j       n
 *   reg 2      i       j       k       l        reg 2      c       g       k       o
 *   reg 3      m       n       o       p        reg 3      d       h       l       p */
#ifndef TILEWRIGHT_LOWERING_GPU_EMIT_LANE_EXCHANGE_H
#define TILEWRIGHT_LOWERING_GPU_EMIT_LANE_EXCHANGE_H

#include "lowering/gpu/emit/emitter.h"

enum { TW_EXCHANGE_BITS = 2, TW_EXCHANGE_WORDS = 4 };

/* Lane bits that trade places with register bits. */
typedef struct tw_exchange {
  int count;
  int lane[TW_EXCHANGE_BITS], reg[TW_EXCHANGE_BITS];
} tw_exchange_t;

/* Finds one after which a thread has 2^wanted neighbours along `dim` where it has 2^have; false if there is none. */
bool twg_find_exchange(const tw_layout_t *layout, int dim, int have, int wanted, tw_exchange_t *out);
/* The register that is number `i` of those that are exchanged with register r. */
int twg_exchange_register(const tw_exchange_t *x, int r, int i);
/* Exchanges 2^count units of `size` words, one after the other. */
void twg_exchange(tw_emitter_t *e, const tw_exchange_t *x, int size, MlirValue words[TW_EXCHANGE_WORDS]);
/* Which of the runs of the lanes that exchange is this one's, as an i32. */
MlirValue twg_exchange_number(tw_emitter_t *e, const tw_exchange_t *x);

#endif /* TILEWRIGHT_LOWERING_GPU_EMIT_LANE_EXCHANGE_H */

/* legalize.h - shared by the files of the pass tile-legalize
 *
 * While the pass runs, types keep their signedness, upstream ops on `ui8` included: what an op means can be read from
 * its operands. At the end every type becomes signless at once. */
#ifndef TILEWRIGHT_LOWERING_COMMON_LEGALIZE_H
#define TILEWRIGHT_LOWERING_COMMON_LEGALIZE_H

#include "dialect/op_table.h"
#include "lowering/ir.h"
#include "tilewright/dialect.h"

/* The op being replaced, and where its replacement goes. */
typedef struct {
  tw_builder_t at;
  MlirOperation op;
  MlirType result; /* of its only result, or null */
  const tw_op_info_t *info;
} legalize_t;

/* The value that replaces the op's result. Null after an error. */
typedef MlirValue (*legalize_rule_t)(const legalize_t *l);

/* legalize_cast.c: the elements of `x` converted to `elem`, shape unchanged. */
MlirValue tw_legal_cast(const legalize_t *l, MlirValue x, tw_elem_t elem);
/* `x` repeated to the shape of the type `like`: tensor.splat, or tile.reshape and tile.broadcast. */
MlirValue tw_legal_broadcast(const legalize_t *l, MlirValue x, MlirType like);

/* Operand `index`, converted to `elem` and repeated to the shape of `like`. */
MlirValue tw_legal_operand(const legalize_t *l, intptr_t index, tw_elem_t elem, MlirType like);
/* legalize_build.c: whether the elements are f16 or bf16. */
bool tw_legal_is_half(MlirType type);
/* An upstream op; ops of `math` on 16-bit floats compute in f32 and round once. */
MlirValue tw_legal_compute(const legalize_t *l, const char *name, MlirType type, intptr_t num,
                           const MlirValue *operands);
/* arith.cmpi or arith.cmpf of two values of one type. */
MlirValue tw_legal_compare(const legalize_t *l, tw_cmp_kind_t kind, MlirValue x, MlirValue y);
MlirValue tw_legal_select(const legalize_t *l, MlirValue condition, MlirValue x, MlirValue y);

/* legalize_shape.c: parts of tiles and bits of elements. */
MlirValue tw_legal_cat(const legalize_t *l);
MlirValue tw_legal_insert(const legalize_t *l);
MlirValue tw_legal_bitcast(const legalize_t *l);
MlirValue tw_legal_pack(const legalize_t *l);
MlirValue tw_legal_unpack(const legalize_t *l);

/* legalize_math.c: ops that no single upstream op computes, by the kind of the result's dtype. */
MlirValue tw_legal_mod(const legalize_t *l);
MlirValue tw_legal_floordiv_float(const legalize_t *l);
MlirValue tw_legal_pow(const legalize_t *l);
MlirValue tw_legal_neg_int(const legalize_t *l);
MlirValue tw_legal_not(const legalize_t *l);
/* The product of a quotient and the divisor: what reads it sees a multiple. TW_ASSUMED (check.h) marks it. */
MlirValue tw_legal_assume(const legalize_t *l);

#endif /* TILEWRIGHT_LOWERING_COMMON_LEGALIZE_H */

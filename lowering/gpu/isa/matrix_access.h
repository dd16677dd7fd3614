/* matrix_access.h - whether a tile in shared memory can be read by ldmatrix, read off the bits of the layouts
 *
 * ldmatrix gives a warp one to four matrices of 8 rows of 16 bytes; lane i supplies the address of
 * row i % 8 of matrix i / 8. Lane i receives of each matrix one word: bytes 4 (i % 4) .. of row i / 4,
 * or with .trans, of 16-bit elements, column i / 4 of rows 2 (i % 4) and the next. So:
 *
 *   plain:  register bits select within a word, lane bits 0 and 1 the word within 16 bytes, lane
 *           bits 2 to 4 the row.
 *   .trans: lane bits 2 to 4 select the element within 16 bytes, register bit 0 and lane bits 0 and
 *           1 the row. Of bytes, two side by side are an element: one of register bits 0 and 1 selects the
 *           byte, the other the row.
 *
 * Any other register bits select the matrix. A row may lie at any multiple of 16 bytes, so nothing
 * more is asked of the swizzle. */
#ifndef TILEWRIGHT_LOWERING_GPU_ISA_MATRIX_ACCESS_H
#define TILEWRIGHT_LOWERING_GPU_ISA_MATRIX_ACCESS_H

#include "lowering/gpu/emit/emitter.h"
#include "lowering/layout/layout.h"

enum { TW_LDMATRIX_ROW_BYTES = 16, TW_LDMATRIX_LANE_BITS = 5, TW_LDMATRIX_MAX_BITS = 2 };

/* All addresses are bytes from the start of the tile. */
typedef struct tw_ldmatrix {
  bool trans;
  int pack_bits;                           /* register bits within a word, from bit 0 on */
  bool swapped;                            /* of a word of four, register bits 0 and 1 are its bits 1 and 0 */
  int matrix_bits;                         /* log2 of the matrices of one instruction */
  int matrix[TW_LDMATRIX_MAX_BITS];        /* the register bits that select them */
  uint32_t address[TW_LDMATRIX_LANE_BITS]; /* what each bit of a lane's number adds (XOR) to its row's address */
  uint32_t warp[TW_LAYOUT_MAX_BITS];       /* ... each bit of the warp's */
  uint32_t reg[TW_LAYOUT_MAX_BITS];        /* ... each bit of the register's */
  uint32_t thread_mask;                    /* bits that lane and warp can set */
} tw_ldmatrix_t;

/* Fills *out and returns true when a warp can read `tile` from `shared` so. */
bool tw_ldmatrix_match(const tw_layout_t *tile, const tw_layout_t *shared, int elem_bytes, tw_ldmatrix_t *out);

/* Register bits that lead nowhere: such registers are copies. */
int tw_ldmatrix_copy_bits(const tw_layout_t *tile, const tw_ldmatrix_t *m);

/* The register's part of the address. */
uint32_t tw_ldmatrix_register_part(const tw_layout_t *tile, const tw_ldmatrix_t *m, int r);

/* Registers to a stage of a buffer, by stmatrix where its layout has that form. */
void twg_write_buffer(tw_emitter_t *e, const tw_layout_t *l, const tw_layout_t *shared, MlirType element,
                      tw_values_t in, MlirValue base);
/* Registers from a stage of a buffer, by ldmatrix where its layout has that form. */
tw_values_t twg_read_buffer(tw_emitter_t *e, const tw_layout_t *l, const tw_layout_t *shared, MlirType element,
                            MlirValue base);

#endif /* TILEWRIGHT_LOWERING_GPU_ISA_MATRIX_ACCESS_H */

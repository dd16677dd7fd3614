/* dim_classes.h - dimensions of tiles that correspond, and tiles of another extent along them
 *
 * Each dimension of each tile is in a class: those that ops tie together element by element have the same number at the
 * same time.
 *
 *   %a = tile.load %A[%i, %k] -> tensor<128x64xbf16>          // M K
 *   %b = tile.load %B[%k, %j] -> tensor<64x256xbf16>          // K N
 *   %d = tile.mma %a, %b, %c : ... -> tensor<128x256xf32>     // M N; K is added up
 *   %r = tile.reduce max, %d axis 1                           // M; N is reduced
 *
 * Elements are independent along a class that no op reduces, scans or sorts: M above. So several blocks may compute
 * the elements of such a class, or one block those of several. */
#ifndef TILEWRIGHT_LOWERING_GPU_GRID_DIM_CLASSES_H
#define TILEWRIGHT_LOWERING_GPU_GRID_DIM_CLASSES_H

#include "lowering/ir.h"

/* Of a class, in its first member. */
typedef struct tw_dim {
  MlirValue value;
  int dim;
  int64_t extent;    /* the smallest of the members' */
  int64_t least;     /* below which products get slow, or instructions have none */
  const char *whole; /* why all of it is wanted at once; null if elements are independent */
} tw_dim_t;

typedef struct tw_dims {
  MlirOperation func;
  tw_dim_t *at;           /* owned; of a class what its first member says holds */
  tw_sets_t classes;      /* of their numbers */
  tw_map_t first;         /* value -> number of its first dimension */
  const char *refused;    /* the function does something that must happen once, or in order; null: nothing */
  tw_ops_t reads, writes; /* loads and gathers, stores and scatters */
} tw_dims_t;

/* Of a kernel at the stage `legal`. Constants, splats and iotas get one use each, so that they tie nothing. */
tw_dims_t tw_dims_of(MlirOperation func);
void tw_dims_free(tw_dims_t *dims);
/* The class of a tile's dimension, as the number of its first member. */
int tw_dims_class(tw_dims_t *dims, MlirValue tile, int dim);
/* The dimension of the tile that is of the class, or -1. */
int tw_dims_find(tw_dims_t *dims, MlirValue tile, int class);

/* The reason of a class along which tiles are reduced, if there is no other reason to want all of it at once. */
extern const char tw_dims_reduced[];

/* The operand of a load or store that is the tile's index along the class; -1 if it has none. */
intptr_t tw_dims_index(tw_dims_t *dims, MlirOperation access, int class);
/* Along which axis of its array, and in which tiles, a load or store has the class; -1 if it has not. */
int tw_dims_axis(tw_dims_t *dims, MlirOperation access, int class, int64_t *extent);
/* Whether what is written all has the class. */
bool tw_dims_are_written(tw_dims_t *dims, int class);
/* The loop whose iterations count: one with products, else the first one; the function if it has none. */
MlirOperation tw_dims_loop(const tw_dims_t *dims);

/* Divides the extents of all tiles along a class, which no op needs whole. `part` (i32) is the number of the part that
 * is computed: iotas count from there. Where tiles lie in arrays is up to the caller. */
void tw_dims_divide(tw_dims_t *dims, int class, int64_t by, MlirValue part);
/* Multiplies them, where no iota counts along the class. */
void tw_dims_multiply(tw_dims_t *dims, int class, int64_t by);
bool tw_dims_count(tw_dims_t *dims, int class);

#endif /* TILEWRIGHT_LOWERING_GPU_GRID_DIM_CLASSES_H */

/* tile_grid.c - the rows and columns of tiles that a program counts in one number
 *
 * Such a kernel is compiled for a grid of rows and columns (lowering/gpu/grid/unfold_grid.c), which are products of the
 * launch's words. Where the program's grid has another number of blocks, the kernel does not fit. */
#include "module.h"

bool tw_tile_grid_of(const tw_tile_grid_t *tiles, const uint32_t grid[3], const uint64_t *words, uint32_t out[3]) {
  enum { MOST = 65535 }; /* blocks along other axes than the first */
  int64_t rows = tw_product_of(tiles->rows, tiles->num_rows, words, TW_MAX_PERSISTENT), columns = 0;
  if (rows > 0)
    columns = tiles->num_columns ? tw_product_of(tiles->columns, tiles->num_columns, words, TW_MAX_PERSISTENT)
                                 : grid[0] / rows;
  bool fits = tiles->any || (rows * columns == grid[0] && grid[2] == 1);
  out[0] = (uint32_t)rows;
  out[1] = (uint32_t)columns;
  out[2] = tiles->any ? 1 : grid[1];
  return fits && rows > 0 && columns > 0 && columns <= MOST;
}

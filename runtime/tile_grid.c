/* tile_grid.c - the rows and columns of tiles that a program counts in one number
 *
 * Such a kernel is compiled for a grid of rows and columns (lowering/gpu/grid/unfold_grid.c), which are products of the
 * launch's words. Where the program's grid has another number of blocks, the kernel does not fit. */
#include "module.h"

/* 0 where it is no extent of a grid. */
static int64_t extent_of(const tw_extent_factor_t *factors, uint32_t count, const uint64_t *words) {
  int64_t extent = 1;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t word = factors[i].word < 0 ? 0 : words[factors[i].word];
    int64_t factor = word > INT32_MAX ? 0 : ((int64_t)word + factors[i].plus) / factors[i].by;
    if (factor < 1 || extent > TW_MAX_PERSISTENT / factor)
      return 0;
    extent *= factor;
  }
  return extent;
}

bool tw_tile_grid_of(const tw_tile_grid_t *tiles, const uint32_t grid[3], const uint64_t *words, uint32_t out[3]) {
  enum { MOST = 65535 }; /* blocks along other axes than the first */
  int64_t rows = extent_of(tiles->rows, tiles->num_rows, words), columns = 0;
  if (rows > 0)
    columns = tiles->num_columns ? extent_of(tiles->columns, tiles->num_columns, words) : grid[0] / rows;
  bool fits = tiles->any || (rows * columns == grid[0] && grid[2] == 1);
  out[0] = (uint32_t)rows;
  out[1] = (uint32_t)columns;
  out[2] = tiles->any ? 1 : grid[1];
  return fits && rows > 0 && columns > 0 && columns <= MOST;
}

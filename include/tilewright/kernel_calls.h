/* kernel_calls.h - what CPU kernels call while they run (runtime/kernel_calls.c) */
#ifndef TILEWRIGHT_KERNEL_CALLS_H
#define TILEWRIGHT_KERNEL_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Elements of a line where a tile is printed, the last of whose extents is `row`: a tile of more than 64 elements takes
 * several lines, all powers of two. */
static inline int64_t tw_print_line(int64_t count, int64_t row) { return count <= 64 ? count : row < 16 ? row : 16; }

/* Output is gathered a line a thread, and written when the line ends. */
void tw_kernel_print_text(const char *text, int64_t size);
/* A row-major tile of `rank` extents as nested brackets, or a scalar at rank 0. `kind` is b(ool), i(nteger),
 * u(nsigned, 8 bytes) or f(loat) of `bytes` bytes; `spec` that of dialect/format.h, "" for the shortest text. */
void tw_kernel_print_tile(const void *data, int32_t kind, int32_t bytes, int32_t rank, const int64_t *shape,
                          const char *spec);
void tw_kernel_print_end(void);

/* Keeps the first message for tw_kernel_take_assertion, which gives it away; null if none failed since. */
void tw_kernel_assert_failed(const char *message, int64_t size);
char *tw_kernel_take_assertion(void);

/* Not 0: call tw_kernel_look, which may not return (runtime/interrupt.h). */
extern _Atomic int32_t tw_kernel_attention;
void tw_kernel_look(void);

/* One thread of a SIMT kernel. `grid` is {grid x, y, z, block x, y, z}; `shared` is the block's shared memory. */
typedef void (*tw_simt_thread_t)(const int64_t *words, const int32_t *grid, const int32_t *block_id,
                                 const int32_t *thread_id, void *shared);
/* For whom threads wait. */
typedef enum { TW_SIMT_WAITS_NEVER, TW_SIMT_WAITS_IN_BLOCK, TW_SIMT_WAITS_IN_GRID } tw_simt_wait_t;
/* Threads of all blocks that may run at a time, where these wait for each other. */
enum { TW_SIMT_MOST_IN_GRID = 16384 };
/* Bytes of a block's shared memory, by what the launcher says behind the grid: those added, and where they begin. */
static inline uint64_t tw_simt_shared_bytes(const int32_t *grid) {
  return ((uint64_t)grid[6] + (uint64_t)grid[7] + 63) & ~(uint64_t)63;
}
/* Runs all threads of the blocks first to last - 1, x fastest (runtime/fibers.c). Where they wait in the grid these are
 * all blocks, and `shared` has room for each, one behind the other. */
void tw_simt_run(tw_simt_thread_t thread, tw_simt_wait_t waits, const int64_t *words, const int32_t *grid,
                 int64_t first, int64_t last, void *shared);

/* What threads wait for, with the place in the source where they do. Kinds are those of dialect/TileBase.td. */
enum { TW_SIMT_ALL, TW_SIMT_ANY, TW_SIMT_UNI, TW_SIMT_BALLOT };
enum { TW_SIMT_MATCH_ANY, TW_SIMT_MATCH_ALL };
enum { TW_SIMT_IDX, TW_SIMT_UP, TW_SIMT_DOWN, TW_SIMT_BFLY };
/* Returns when every thread of the block that still runs has called it; the second one with how many of them brought a
 * predicate (kind 0), whether all did (1), or any (2). */
void tw_simt_sync_threads(const char *site);
/* Returns when every thread of the grid that still runs has called it. */
void tw_simt_sync_grid(const char *site);
int32_t tw_simt_sync_vote(int32_t kind, int32_t predicate, const char *site);
/* They return when each lane of the mask that still runs has called the same. */
void tw_simt_sync_warp(int32_t mask, const char *site);
int32_t tw_simt_vote(int32_t kind, int32_t mask, int32_t predicate, const char *site);
int32_t tw_simt_match(int32_t kind, int32_t mask, int64_t value, const char *site);
int64_t tw_simt_shuffle(int32_t kind, int32_t mask, int64_t value, int32_t lane, const char *site);
/* Of a warp whose lanes run together, from thread (x, y, z) on: some wait for lanes of a mask that do not come. */
void tw_simt_wait_in_vain(int32_t block_x, int32_t block_y, int32_t block_z, int32_t x, int32_t y, int32_t z,
                          int32_t lanes, int32_t mask, const char *site);
/* Lets the other threads of the block have a turn. */
void tw_simt_yield(void);

/* 16 bytes, which other threads that use these functions see all of, or nothing; sequentially consistent. */
typedef struct {
  int64_t low, high;
} tw_pair_t;
tw_pair_t tw_simt_load_pair(const void *place);
void tw_simt_store_pair(void *place, int64_t low, int64_t high);

#ifdef __cplusplus
}
#endif
#endif /* TILEWRIGHT_KERNEL_CALLS_H */

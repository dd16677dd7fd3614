/* launch.c - one kernel launch on the GPU: context, parameters in one buffer, driver call.
 *
 * This is the hot path: no allocation, no string work, no lock. The driver is asked which context is current (6 ns),
 * and on a stream that is not the default one whether it captures a graph (stream.c), which then holds the code. Blocks
 * that share tiles, or take them one after the other, need a workspace (workspace.c): that of the default stream is
 * known, for another one the driver is asked which stream it is, and a lock is taken. What a launch would do better
 * with is found without any of it. */
#define _GNU_SOURCE
#include "module.h"

#include <string.h>
#include <time.h>

static tw_status_t grid_error(const int64_t grid[3]) {
  static const int64_t limits[3] = {2147483647, TW_MOST_BLOCKS_ACROSS, TW_MOST_BLOCKS_ACROSS};
  for (int axis = 0; axis < 3; axis++) {
    if (grid[axis] < 1)
      return TW_ERROR(TW_LAUNCH_ERROR,
                      "grid (%lld, %lld, %lld) has %lld blocks on axis %d, which must be at least "
                      "1; for an empty array skip the launch, or use max(1, ...)",
                      (long long)grid[0], (long long)grid[1], (long long)grid[2], (long long)grid[axis], axis);
    if (grid[axis] > limits[axis])
      return TW_ERROR(TW_LAUNCH_ERROR,
                      "grid (%lld, %lld, %lld) has %lld blocks on axis %d, the most is %lld; use "
                      "larger tiles, or put the long axis first",
                      (long long)grid[0], (long long)grid[1], (long long)grid[2], (long long)grid[axis], axis,
                      (long long)limits[axis]);
  }
  return NULL;
}

/* Each is compared without a branch: a value below 1 wraps around and is too large. */
TW_HOT tw_status_t tw_grid_check(const int64_t grid[3]) {
  bool good = ((uint64_t)grid[0] - 1 < 2147483647) & ((uint64_t)grid[1] - 1 < 65535) & ((uint64_t)grid[2] - 1 < 65535);
  return TW_LIKELY(good) ? NULL : grid_error(grid);
}

tw_status_t tw_block_check(const int64_t block[3]) {
  static const int64_t limits[3] = {1024, 1024, 64};
  int64_t threads = 1;
  for (int axis = 0; axis < 3; axis++) {
    if (block[axis] < 1 || block[axis] > limits[axis])
      return TW_ERROR(TW_LAUNCH_ERROR,
                      "block (%lld, %lld, %lld) has %lld threads on axis %d, which must be between 1 "
                      "and %lld",
                      (long long)block[0], (long long)block[1], (long long)block[2], (long long)block[axis], axis,
                      (long long)limits[axis]);
    threads *= block[axis];
  }
  if (threads > 1024)
    return TW_ERROR(TW_LAUNCH_ERROR, "block (%lld, %lld, %lld) has %lld threads, the most is 1024", (long long)block[0],
                    (long long)block[1], (long long)block[2], (long long)threads);
  return NULL;
}

uint32_t tw_grid_balance(uint64_t blocks, uint32_t resident) {
  uint64_t waves = (blocks + resident - 1) / resident;
  return (uint32_t)((blocks + waves - 1) / waves);
}

/* The grid that is started, its rows of threads, and the words that go with it. */
typedef struct started {
  uint32_t grid[3], rows;
  size_t count;
} started_t;

static tw_status_t tell_grid(const tw_cuda_kernel_t *kernel, const uint32_t grid[3], uint64_t *words,
                             started_t *start) {
  if (TW_UNLIKELY(start->count + TW_MORE_WORDS > TW_MAX_WORDS))
    return TW_ERROR(TW_LAUNCH_ERROR, "kernel %s: the parameters take %zu words, the most is %d", kernel->name,
                    start->count, TW_MAX_WORDS - TW_MORE_WORDS);
  for (int axis = 0; axis < TW_GRID_WORDS; axis++)
    words[start->count++] = grid[axis];
  return NULL;
}

/* Adds the words that say which tiles are shared, and returns how many blocks there are with all parts. */
static uint64_t add_shares(const tw_cuda_kernel_t *kernel, const tw_device_t *device, tw_stream_use_t *use,
                           uint64_t blocks, uint64_t *words, started_t *start) {
  uint64_t workspace = 0;
  tw_shares_t shares = tw_split_choose(&kernel->record.split, words, tw_loaded_bytes(&kernel->record, words),
                                       (int64_t)blocks, device, kernel->resident[device->ordinal]);
  if (shares.parts > 1)
    workspace = tw_workspace_take(device, use, tw_split_bytes(&kernel->record.split, shares, (int64_t)blocks));
  if (!workspace)
    shares = (tw_shares_t){1, (uint32_t)blocks};
  words[start->count++] = shares.parts;
  words[start->count++] = shares.whole;
  words[start->count++] = workspace;
  return shares.whole + (blocks - shares.whole) * shares.parts;
}

/* The grid of blocks that compute slices, or the tiles of several. */
static tw_status_t resized_grid(const tw_cuda_kernel_t *kernel, const uint32_t grid[3], uint32_t out[3]) {
  int64_t all[3];
  for (int axis = 0; axis < 3; axis++) {
    int64_t parts = kernel->record.grid_scale[axis];
    out[axis] = (uint32_t)(all[axis] = parts < 0 ? (grid[axis] - parts - 1) / -parts : grid[axis] * parts);
  }
  return tw_status_prefix(tw_grid_check(all), "kernel %s, whose tiles are resized: ", kernel->name);
}

/* How many blocks of a cluster share a row: the fewest of which a multiprocessor has room for several. */
static int share_rows(const tw_row_share_t *share, const uint64_t *words) {
  int64_t steps = tw_product_of(share->steps, share->num_steps, words, INT32_MAX), parts = 1;
  while (2 * parts <= share->most && steps * share->bytes > parts * share->room)
    parts *= 2;
  return (int)parts;
}

/* Whether a launch has rows shared, or tiles sliced or coarsened, or must not have those that the kernel has. */
static tw_alternative_t find_parts(const tw_cuda_kernel_t *kernel, const tw_device_t *device, const uint32_t grid[3],
                                   const uint64_t *words, int64_t blocks) {
  enum { FEW_TURNS = 2 }; /* of whole tiles: with more, the last one counts little */
  const tw_alternative_t none = {.kind = TW_ALTERNATIVE_NONE};
  const tw_launch_record_t *record = &kernel->record;
  int64_t units = device->sm_count;
  int shared = record->has_row_share ? share_rows(&record->row_share, words) : 1;
  if (shared > 1)
    return (tw_alternative_t){TW_ALTERNATIVE_SHARED, shared};
  if (record->has_coarsen && record->grid_scale[0]) {
    int64_t coarsened[3];
    for (int axis = 0; axis < 3; axis++)
      coarsened[axis] = record->grid_scale[axis] < 0 ? -record->grid_scale[axis] : 1;
    return tw_coarsen_allowed(&record->coarsen, coarsened, grid, words)
               ? none
               : (tw_alternative_t){TW_ALTERNATIVE_COARSENED, 1};
  }
  if (record->has_coarsen && blocks >= units) {
    int wanted = tw_coarsen_choose(&record->coarsen, grid, words, tw_loaded_bytes(record, words), device);
    if (wanted > 1)
      return (tw_alternative_t){TW_ALTERNATIVE_COARSENED, wanted};
  }
  if (!record->has_slice || blocks >= FEW_TURNS * units)
    return none;
  const tw_split_t *split = record->has_split ? &record->split : NULL;
  int parts = tw_slice_choose(&record->slice, split, words, tw_loaded_bytes(record, words), blocks, device);
  return parts > 1 ? (tw_alternative_t){TW_ALTERNATIVE_SLICED, parts} : none;
}

/* Pairs of neighbours along an axis; of an odd number of blocks the last one has a neighbour beyond the grid. */
static uint64_t count_pairs(const uint32_t grid[3], int64_t axis) {
  uint64_t extent = grid[axis];
  return (extent + 1) / 2 * ((uint64_t)grid[0] * grid[1] * grid[2] / extent);
}

static uint64_t count_waves(uint64_t blocks, uint32_t at_a_time) {
  return at_a_time ? (blocks + at_a_time - 1) / at_a_time : blocks;
}

/* Clusters along another axis, or none, where these take fewer waves, and the launch with them some less time. */
static void choose_pairs(const tw_multicast_t *pairs, const uint32_t grid[3], uint32_t resident,
                         tw_alternative_t *out) {
  enum { LEAST = 15, OF = 16 };
  uint64_t waves = count_waves(count_pairs(grid, pairs->axis), resident / 2);
  uint64_t least = waves * (uint64_t)pairs->cycles[pairs->axis] * LEAST / OF;
  uint64_t alone = count_waves((uint64_t)grid[0] * grid[1] * grid[2], resident) * (uint64_t)pairs->alone;
  if (alone < least) {
    *out = (tw_alternative_t){.kind = TW_ALTERNATIVE_SPLIT_K};
    least = alone;
  }
  for (int axis = 0; axis < TW_GRID_WORDS; axis++) {
    uint64_t cycles = count_waves(count_pairs(grid, axis), resident / 2) * (uint64_t)pairs->cycles[axis];
    if (cycles > 0 && cycles < least) {
      *out = (tw_alternative_t){TW_ALTERNATIVE_CLUSTERS, axis};
      least = cycles;
    }
  }
}

tw_status_t tw_cuda_find_alternative(const tw_cuda_kernel_t *kernel, int ordinal, const uint32_t grid[3],
                                     uint64_t *words, tw_alternative_t *out) {
  const tw_device_t *device;
  uint32_t tiles[3], started[3];
  *out = (tw_alternative_t){.kind = TW_ALTERNATIVE_AS_LAUNCHED};
  TW_RETURN_IF_ERROR(tw_device_get(ordinal, &device));
  if (kernel->record.num_views && !tw_show_views(&kernel->record, words))
    return NULL;
  if (kernel->record.has_tile_grid) {
    if (!tw_tile_grid_of(&kernel->record.tile_grid, grid, words, tiles))
      return NULL;
    grid = tiles;
  }
  *out = (tw_alternative_t){.kind = TW_ALTERNATIVE_NONE};
  memcpy(started, grid, sizeof started);
  if (kernel->record.grid_scale[0])
    TW_RETURN_IF_ERROR(resized_grid(kernel, grid, started));
  uint64_t plane = (uint64_t)started[0] * started[1], blocks = plane * started[2];
  if (plane > TW_MAX_PERSISTENT || blocks > TW_MAX_PERSISTENT)
    return NULL;
  *out = find_parts(kernel, device, grid, words, (int64_t)blocks);
  if (out->kind || !tw_launch_record_asks_for_room(&kernel->record))
    return NULL;
  if (TW_UNLIKELY(!tw_cuda_kernel_is_loaded(kernel, ordinal))) {
    out->kind = TW_ALTERNATIVE_UNKNOWN;
    return NULL;
  }
  if (kernel->record.has_multicast)
    choose_pairs(&kernel->record.multicast, started, kernel->resident[ordinal], out);
  if (out->kind == TW_ALTERNATIVE_SPLIT_K) /* code that shares tiles has no clusters either */
    out->number = kernel->record.has_split;
  if (out->kind || !kernel->record.has_split)
    return NULL;
  tw_shares_t shares = tw_split_choose(&kernel->record.split, words, tw_loaded_bytes(&kernel->record, words),
                                       (int64_t)blocks, device, kernel->resident[ordinal]);
  size_t bytes = tw_split_bytes(&kernel->record.split, shares, (int64_t)blocks);
  if (shares.parts > 1 && tw_workspace_has_room(device, bytes))
    *out = (tw_alternative_t){TW_ALTERNATIVE_SPLIT_K, 1};
  return NULL;
}

/* Adds the address of the counter of the dynamic schedule; 0 where nobody may write there. */
static void add_counter(const tw_device_t *device, tw_stream_use_t *use, uint64_t *words, started_t *start) {
  words[start->count++] = tw_workspace_take(device, use, 0);
}

/* The whole grid along one axis; of a persistent kernel as many blocks as run at a time, which take all in turn. */
static tw_status_t start_in_line(const tw_cuda_kernel_t *kernel, const tw_device_t *device, tw_stream_use_t *use,
                                 const uint32_t grid[3], uint64_t *words, started_t *start) {
  uint64_t plane = (uint64_t)grid[0] * grid[1], blocks = plane * grid[2];
  if (TW_UNLIKELY(plane > TW_MAX_PERSISTENT || blocks > TW_MAX_PERSISTENT))
    return TW_ERROR(TW_LAUNCH_ERROR,
                    "kernel %s, grid (%u, %u, %u): more than %d blocks; use larger tiles, or launch it in parts",
                    kernel->name, grid[0], grid[1], grid[2], TW_MAX_PERSISTENT);
  TW_RETURN_IF_ERROR(tell_grid(kernel, grid, words, start));
  uint64_t all = kernel->record.split_applied ? add_shares(kernel, device, use, blocks, words, start) : blocks;
  if (kernel->record.dynamic)
    add_counter(device, use, words, start);
  uint32_t resident = kernel->resident[device->ordinal];
  start->grid[1] = start->grid[2] = 1;
  if (!kernel->record.persistent)
    start->grid[0] = (uint32_t)all;
  else if (kernel->record.has_multicast)
    start->grid[0] =
        2 * tw_grid_balance(count_pairs(grid, kernel->record.multicast.axis), resident < 2 ? 1 : resident / 2);
  else if (all == blocks && !kernel->record.dynamic)
    start->grid[0] = tw_grid_balance(blocks, resident);
  else /* parts come last and are short, or the schedule is dynamic: every multiprocessor gets its share */
    start->grid[0] = (uint32_t)(all < resident ? all : resident);
  return NULL;
}

/* Blocks are joined where most multiprocessors still have work then: so many small blocks take longer to start. */
static tw_status_t start_joined(const tw_cuda_kernel_t *kernel, const tw_device_t *device, const uint32_t grid[3],
                                uint64_t *words, started_t *start) {
  enum { MOST = 3, OF = 4 };
  uint32_t rows = kernel->record.packed_blocks;
  uint64_t joined = (uint64_t)(grid[0] / rows) * grid[1] * grid[2];
  if (OF * joined >= MOST * (uint64_t)device->sm_count) {
    start->grid[0] = grid[0] / rows + (grid[0] % rows != 0);
    start->rows = rows;
  }
  return tell_grid(kernel, grid, words, start);
}

/* Of a variant that was made for launches like another one, and has no choice. */
TW_COLD static tw_status_t tile_grid_error(const tw_cuda_kernel_t *kernel, const uint32_t grid[3]) {
  return TW_ERROR(TW_LAUNCH_ERROR,
                  "kernel %s, grid (%u, %u, %u): it was compiled for as many blocks as its tiles have rows times "
                  "columns; launch so many, or tune it for this grid",
                  kernel->name, grid[0], grid[1], grid[2]);
}

TW_COLD static tw_status_t views_error(const tw_cuda_kernel_t *kernel) {
  return TW_ERROR(TW_LAUNCH_ERROR,
                  "kernel %s: it was compiled for rows that lie in their array of one dimension, one behind the other; "
                  "launch it with such arrays, or tune it for these",
                  kernel->name);
}

/* The words of views, which come first behind those of the arguments. */
static tw_status_t add_views(const tw_cuda_kernel_t *kernel, uint64_t *words, size_t *count) {
  if (kernel->record.views[0].word != *count)
    return TW_ERROR(TW_INTERNAL_ERROR, "kernel %s: a launch of it has %u words, found %zu", kernel->name,
                    kernel->record.views[0].word, *count);
  *count = tw_words_with_views(&kernel->record, *count);
  return tw_show_views(&kernel->record, words) ? NULL : views_error(kernel);
}

/* The kernel is loaded, the context current. */
TW_HOT static tw_status_t start_of(const tw_cuda_kernel_t *kernel, const tw_device_t *device, tw_stream_use_t *use,
                                   const uint32_t grid[3], uint64_t *words, size_t count, started_t *start) {
  uint32_t tiles[3], slices[3], exchanged[3];
  if (TW_UNLIKELY(kernel->record.num_views != 0))
    TW_RETURN_IF_ERROR(add_views(kernel, words, &count));
  if (TW_UNLIKELY(kernel->record.has_tile_grid)) {
    if (!tw_tile_grid_of(&kernel->record.tile_grid, grid, words, tiles))
      return tile_grid_error(kernel, grid);
    grid = tiles;
  }
  if (TW_UNLIKELY(kernel->record.grid_scale[0] != 0)) {
    TW_RETURN_IF_ERROR(resized_grid(kernel, grid, slices));
    grid = slices;
  }
  if (kernel->record.exchanged_axes && grid[0] <= TW_MOST_BLOCKS_ACROSS) {
    memcpy(exchanged, (uint32_t[]){grid[1], grid[0], grid[2]}, sizeof exchanged);
    grid = exchanged;
  }
  if (TW_UNLIKELY(use->state != TW_STREAM_PLAIN))
    tw_image_hold_for_capture(kernel->image, use);
  *start = (started_t){{grid[0], grid[1], grid[2]}, 1, count};
  if (kernel->record.persistent || kernel->record.split_applied)
    return start_in_line(kernel, device, use, grid, words, start);
  if (kernel->record.packed_blocks)
    return start_joined(kernel, device, grid, words, start);
  return NULL;
}

/* Everything of a driver call that is the same from launch to launch of one kernel. */
TW_HOT static CUresult call_driver(const tw_driver_t *driver, const tw_cuda_kernel_t *kernel, CUfunction function,
                                   CUstream stream, const started_t *start, const uint32_t block[4], uint64_t *words) {
  size_t size = start->count * sizeof *words;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, words, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  bool together = kernel->record.cooperative; /* never with the other one (tile-dependent-launch) */
  CUlaunchAttribute attribute = {.id = together ? CU_LAUNCH_ATTRIBUTE_COOPERATIVE
                                                : CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                 .value.flag = 1};
  CUlaunchConfig config = {.grid = {start->grid[0], start->grid[1], start->grid[2]},
                           .block = {kernel->record.num_threads, start->rows, 1},
                           .shared_bytes = kernel->record.shared_bytes,
                           .stream = stream,
                           .attributes = &attribute,
                           .attribute_count = together || kernel->record.dependent_launch};
  if (TW_UNLIKELY(!kernel->record.num_threads && block)) {
    memcpy(config.block, block, sizeof config.block);
    config.shared_bytes += block[3];
  }
  return driver->launch(&config, function, NULL, size ? extra : NULL);
}

/* What a launch of threads asks for, against what the device has. */
TW_COLD static tw_status_t check_block(const tw_cuda_kernel_t *kernel, const tw_device_t *device,
                                       const uint32_t block[4]) {
  uint64_t threads = (uint64_t)block[0] * block[1] * block[2], bytes = (uint64_t)kernel->record.shared_bytes + block[3];
  if (threads > (uint64_t)device->max_threads_per_block)
    return TW_ERROR(TW_LAUNCH_ERROR, "kernel %s: block=(%u, %u, %u) has %llu threads, %s allows %d", kernel->name,
                    block[0], block[1], block[2], (unsigned long long)threads, device->name,
                    device->max_threads_per_block);
  if (bytes > (uint64_t)device->shared_bytes_per_block)
    return TW_ERROR(TW_LAUNCH_ERROR,
                    "kernel %s needs %llu bytes of shared memory per block: %u of its arrays and shared=%u; %s has %d",
                    kernel->name, (unsigned long long)bytes, kernel->record.shared_bytes, block[3], device->name,
                    device->shared_bytes_per_block);
  return NULL;
}

static bool is_large(const tw_cuda_kernel_t *kernel, const tw_device_t *device, const uint32_t block[4]) {
  return (uint64_t)block[0] * block[1] * block[2] > (uint64_t)device->max_threads_per_block ||
         (uint64_t)kernel->record.shared_bytes + block[3] > (uint64_t)device->shared_bytes_per_block;
}

/* More blocks than run at a time, of a kernel whose blocks wait for each other: the driver gives no figures. */
TW_COLD static tw_status_t refuse_cooperative(tw_cuda_kernel_t *kernel, int ordinal, const uint32_t grid[3],
                                              const uint32_t block[4]) {
  int64_t most, threads = (int64_t)block[0] * block[1] * block[2];
  TW_RETURN_IF_ERROR(tw_cuda_kernel_resident(kernel, ordinal, (int)threads, block[3], &most));
  return TW_ERROR(TW_LAUNCH_ERROR,
                  "kernel %s: its blocks wait for each other, so that all of the grid runs at a time: %llu blocks of "
                  "%lld threads, and CUDA device %d runs %lld of them; launch fewer, each of which does more",
                  kernel->name, (unsigned long long)grid[0] * grid[1] * grid[2], (long long)threads, ordinal,
                  (long long)most);
}

/* More threads than there are registers for: the driver says no figures. */
TW_COLD static tw_status_t refuse_block(tw_cuda_kernel_t *kernel, int ordinal, const uint32_t block[4]) {
  tw_cuda_usage_t usage;
  TW_RETURN_IF_ERROR(tw_cuda_kernel_usage(kernel, ordinal, &usage));
  return TW_ERROR(TW_LAUNCH_ERROR,
                  "kernel %s: block=(%u, %u, %u) has %llu threads of %d registers each, CUDA device %d runs %d such "
                  "threads in a block; launch fewer, or bound its registers, in numba by "
                  "@cuda.jit(launch_bounds=%llu)",
                  kernel->name, block[0], block[1], block[2], (unsigned long long)block[0] * block[1] * block[2],
                  usage.registers, ordinal, usage.max_threads, (unsigned long long)block[0] * block[1] * block[2]);
}

/* The same for a kernel that takes tensor maps before its words. */
__attribute__((noinline)) static tw_status_t call_with_maps(const tw_driver_t *driver, tw_cuda_kernel_t *kernel,
                                                            int ordinal, CUfunction function, CUstream stream,
                                                            const started_t *start, const uint32_t block[4],
                                                            const uint64_t *words, CUresult *out_result) {
  tw_packed_t packed;
  TW_RETURN_IF_ERROR(tw_cuda_pack_maps(driver, kernel, ordinal, words, start->count, &packed));
  started_t longer = *start;
  longer.count = packed.count;
  *out_result = call_driver(driver, kernel, function, stream, &longer, block, packed.words);
  return NULL;
}

/* The driver only says that a handle is invalid where a stream is of another device than the arrays. */
static tw_status_t stream_error(int ordinal, void *stream) {
  int other;
  tw_status_t unknown = tw_stream_device(stream, &other);
  tw_status_free(unknown);
  if (unknown || other == ordinal)
    return NULL;
  return TW_ERROR(TW_LAUNCH_ERROR,
                  "the stream is one of CUDA device %d, but the arrays are on CUDA device %d: pass a stream of that "
                  "device, in torch torch.cuda.current_stream(%d), or None",
                  other, ordinal, ordinal);
}

static tw_status_t launch_error(const tw_driver_t *driver, const tw_cuda_kernel_t *kernel, int ordinal, void *stream,
                                CUresult result, const uint32_t grid[3]) {
  tw_status_t status = result == CUDA_ERROR_INVALID_HANDLE ? stream_error(ordinal, stream) : NULL;
  if (!status)
    status = tw_fault_error(driver, ordinal, result, "the launch");
  return tw_status_prefix(status,
                          "kernel %s, grid (%u, %u, %u), %u threads, %u bytes of shared "
                          "memory: ",
                          kernel->name, grid[0], grid[1], grid[2], kernel->record.num_threads,
                          kernel->record.shared_bytes);
}

TW_HOT tw_status_t tw_cuda_launch(tw_cuda_kernel_t *kernel, int ordinal, void *stream, const uint32_t grid[3],
                                  const uint32_t block[4], uint64_t *words, size_t count) {
  const tw_device_t *device;
  TW_RETURN_IF_ERROR(tw_device_get(ordinal, &device));
  CUfunction function = atomic_load_explicit(&kernel->functions[ordinal], memory_order_acquire);
  if (TW_UNLIKELY(!function)) {
    TW_RETURN_IF_ERROR(tw_cuda_kernel_load(kernel, ordinal));
    function = atomic_load_explicit(&kernel->functions[ordinal], memory_order_acquire);
  }
  if (TW_UNLIKELY(block && is_large(kernel, device, block)))
    return check_block(kernel, device, block);
  /* Asked every time (6 ns): torch and others switch contexts behind our back, and a new thread has
   * none.  The function's own context is needed for the default streams. */
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_context_enter(device, &scope));
  CUresult result = CUDA_SUCCESS;
  started_t start;
  tw_stream_use_t use = tw_stream_use(scope.driver, stream);
  tw_status_t status = start_of(kernel, device, &use, grid, words, count, &start);
  if (!status && kernel->record.num_tensor_maps)
    status = call_with_maps(scope.driver, kernel, ordinal, function, stream, &start, block, words, &result);
  else if (!status)
    result = call_driver(scope.driver, kernel, function, stream, &start, block, words);
  if (TW_UNLIKELY(kernel->record.split_applied || kernel->record.dynamic))
    tw_workspace_leave(device, &use);
  tw_context_leave(&scope);
  if (TW_UNLIKELY(status != NULL))
    return status;
  if (TW_UNLIKELY(result == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE && block))
    return refuse_cooperative(kernel, ordinal, grid, block);
  if (TW_UNLIKELY(result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES && block))
    return refuse_block(kernel, ordinal, block);
  if (TW_UNLIKELY(result))
    return launch_error(scope.driver, kernel, ordinal, stream, result, grid);
  tw_recent_note(ordinal, kernel->name);
  return NULL;
}

tw_status_t tw_cuda_bench(tw_cuda_kernel_t *kernel, int ordinal, void *stream, const uint32_t grid[3],
                          const uint32_t block[4], uint64_t *words, size_t count, int n, double *out_ns) {
  *out_ns = 0;
  TW_RETURN_IF_ERROR(tw_cuda_kernel_load(kernel, ordinal));
  const tw_device_t *device;
  TW_RETURN_IF_ERROR(tw_device_get(ordinal, &device));
  tw_context_scope_t scope;
  TW_RETURN_IF_ERROR(tw_context_enter(device, &scope));
  CUfunction function = atomic_load_explicit(&kernel->functions[ordinal], memory_order_acquire);
  struct timespec begin, end;
  CUresult result = CUDA_SUCCESS;
  tw_packed_t packed;
  started_t start;
  tw_stream_use_t use = tw_stream_use(scope.driver, stream);
  tw_status_t status = start_of(kernel, device, &use, grid, words, count, &start);
  if (!status)
    status = tw_cuda_pack_maps(scope.driver, kernel, ordinal, words, start.count, &packed);
  if (!status)
    start.count = packed.count;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 0; i < n && !result && !status; i++)
    result = call_driver(scope.driver, kernel, function, stream, &start, block, packed.words);
  clock_gettime(CLOCK_MONOTONIC, &end);
  tw_workspace_leave(device, &use);
  tw_context_leave(&scope);
  if (status)
    return status;
  if (result)
    return launch_error(scope.driver, kernel, ordinal, stream, result, grid);
  *out_ns = ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / n;
  return NULL;
}

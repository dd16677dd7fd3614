/* module.h - what module.c and launch.c share about a kernel.  Private to runtime/. */
#ifndef TILEWRIGHT_RUNTIME_MODULE_H
#define TILEWRIGHT_RUNTIME_MODULE_H

#include "driver.h"

#include <pthread.h>
#include <stdatomic.h>

enum { TW_MAX_DEVICES = 64 };

/* PTX or a cubin, with the module it became on each device. */
typedef struct tw_image {
  struct tw_image *next; /* owned */
  tw_key_t key;
  size_t size;
  _Atomic int holders;                 /* kernels, and graphs that launch them */
  bool captured;                       /* some graph holds it, */
  unsigned long long capture;          /* this one last */
  bool is_loading;                     /* some thread has the driver load it */
  CUlibrary libraries[TW_MAX_DEVICES]; /* owned; NULL where the driver has none */
  CUmodule modules[TW_MAX_DEVICES];    /* of the library there; else owned */
  char bytes[];                        /* terminated */
} tw_image_t;

/* The map that was made last for a tensor map of the record. */
typedef struct tw_map_slot {
  bool known; /* `map` is that of `words` */
  uint64_t map[sizeof(CUtensorMap) / 8];
  uint64_t words[1 + 2 * TW_MAX_MAP_RANK]; /* pointer, extents, strides */
} tw_map_slot_t;

/* The first `whole` tiles are computed by a block each, the others by `parts` blocks. */
typedef struct tw_shares {
  uint32_t parts, whole;
} tw_shares_t;

struct tw_cuda_kernel {
  tw_image_t *image; /* held */
  const char *name;  /* borrowed, lives for ever */
  tw_launch_record_t record;
  tw_map_slot_t *maps;          /* owned; one for each tensor map of the record */
  atomic_flag maps_taken;       /* a launch reads or writes the maps that are kept */
  pthread_mutex_t loading;      /* of what is known once it is loaded */
  uint8_t lead[TW_MAX_DEVICES]; /* words before the maps: the parameters do not begin aligned as maps are */
  _Atomic(CUfunction) functions[TW_MAX_DEVICES]; /* NULL: not loaded on that device yet */
  uint32_t resident[TW_MAX_DEVICES];             /* blocks that run at a time; known once the kernel is loaded */
};

enum { TW_MAX_LEAD = 8 };

/* --- stream.c --- */

typedef enum {
  TW_STREAM_PLAIN,    /* captures nothing */
  TW_STREAM_CAPTURES, /* `graph` */
  TW_STREAM_UNKNOWN,  /* the driver is too old to say */
  TW_STREAM_REFUSED   /* the driver does not say: the launch will fail */
} tw_stream_state_t;

/* The stream of one launch, and what the driver has said of it. */
typedef struct tw_stream_use {
  const tw_driver_t *driver;
  CUstream handle;
  tw_stream_state_t state;
  bool has_number;
  CUgraph graph;                      /* NULL: it captures nothing */
  unsigned long long capture, number; /* no two captures, and no two streams, of a process have the same */
  struct workspace *workspace;        /* that the launch has taken, and leaves, or NULL (workspace.c) */
} tw_stream_use_t;

void tw_stream_ask_capture(tw_stream_use_t *use);

/* The context is current. */
static inline tw_stream_use_t tw_stream_use(const tw_driver_t *driver, CUstream stream) {
  tw_stream_use_t use = {.driver = driver, .handle = stream};
  if (TW_UNLIKELY(!tw_stream_is_default(stream)))
    tw_stream_ask_capture(&use);
  return use;
}

/* Asks for the number of a stream that captures nothing; false if the driver does not say. */
bool tw_stream_number(tw_stream_use_t *use);

/* Whether graphs can own what they use; and makes the captured graph own it: let_go is called when the graph is gone
 * with all that was made of it and all of its runs, or at once, before false comes back. No call of the driver is
 * allowed in let_go, which runs in a thread of the driver's. */
bool tw_graph_owns(const tw_driver_t *driver);
bool tw_graph_own(const tw_stream_use_t *use, void *what, void (*let_go)(void *what));

/* --- jit.c --- */

enum { TW_JIT_LOG_BYTES = 16384 };

/* Options of one call of the driver's compiler, and what it says. */
typedef struct tw_jit_log {
  char info[TW_JIT_LOG_BYTES], error[TW_JIT_LOG_BYTES];
  unsigned count;
  int options[6];
  void *values[6];
} tw_jit_log_t;

/* Options as the text asks for them; the log is empty. */
void tw_jit_log_prepare(tw_jit_log_t *log, const char *image, size_t size);
/* What the driver means by a failure with an image, and what its compiler said. */
tw_status_t tw_jit_error(const tw_driver_t *driver, CUresult result, const tw_device_t *device, const char *image,
                         size_t size, const char *log);

/* --- image.c --- */

/* An image of these bytes, which the caller holds until it drops it. NULL: out of memory. */
tw_image_t *tw_image_take(const void *bytes, size_t size);
void tw_image_drop(tw_image_t *image);
/* Its module on a device, whose context is current. */
tw_status_t tw_image_load(const tw_driver_t *driver, const tw_device_t *device, tw_image_t *image,
                          CUmodule *out_module);
/* Before a launch on a stream that captures a graph, or may do so: the graph holds the image, too. */
void tw_image_hold_for_capture(tw_image_t *image, const tw_stream_use_t *use);

/* --- module.c --- */

/* Bytes of the arrays that a kernel's loop loads from; 0 where these are not known. */
int64_t tw_loaded_bytes(const tw_launch_record_t *record, const uint64_t *words);

/* --- split.c --- */

enum {
  TW_SPLIT_COUNTERS = 4096,       /* shared tiles of a launch */
  TW_SPLIT_BYTES_PER_SM = 1 << 18 /* as many as registers: more sums than that are never made at a time */
};

/* What `blocks` tiles of a launch with these words do best on a device whose multiprocessors have `resident` blocks;
 * they load from `arrays` bytes. */
tw_shares_t tw_split_choose(const tw_split_t *split, const uint64_t *words, int64_t arrays, int64_t blocks,
                            const tw_device_t *device, int64_t resident);
/* Cycles of a launch of so many tiles if those beyond whole waves are computed by as many blocks as do it first; the
 * most there are where none is beyond. */
int64_t tw_split_cycles(const tw_split_t *split, const uint64_t *words, int64_t arrays, int64_t blocks,
                        const tw_device_t *device);
/* Of a workspace for them. */
size_t tw_split_bytes(const tw_split_t *split, tw_shares_t shares, int64_t blocks);

/* --- workspace.c --- */

/* Whether a launch may get so many bytes of one; asks nobody, takes nothing. */
bool tw_workspace_has_room(const tw_device_t *device, size_t bytes);
/* Where blocks of a launch on the stream leave their sums, behind the counters; 0: nowhere. The context is current. */
uint64_t tw_workspace_take(const tw_device_t *device, tw_stream_use_t *use, size_t bytes);
/* The launch is queued. */
void tw_workspace_leave(const tw_device_t *device, tw_stream_use_t *use);

/* --- resize_tiles.c --- */

/* Into how many slices a launch of few blocks does best to slice each tile; 1: none. `split` is NULL where blocks
 * cannot share tiles. */
int tw_slice_choose(const tw_slicing_t *slice, const tw_split_t *split, const uint64_t *words, int64_t arrays,
                    int64_t blocks, const tw_device_t *device);

/* How many blocks of a launch of many do best as one; 1: each alone. */
int tw_coarsen_choose(const tw_coarsening_t *coarsen, const uint32_t grid[3], const uint64_t *words, int64_t arrays,
                      const tw_device_t *device);
/* Whether this many blocks along each axis may be coarsened: the coarse ones store nothing that the launch would not.
 */
bool tw_coarsen_allowed(const tw_coarsening_t *coarsen, const int64_t blocks[3], const uint32_t grid[3],
                        const uint64_t *words);

/* --- tile_grid.c --- */

/* A persistent kernel counts the blocks of its grid in 32 bits, and may go one start's worth beyond. */
enum { TW_MAX_PERSISTENT = 1 << 30 };
/* The grid of the tiles that the program counts in one number; false where that of the launch is another one. */
bool tw_tile_grid_of(const tw_tile_grid_t *tiles, const uint32_t grid[3], const uint64_t *words, uint32_t out[3]);

/* --- array_views.c --- */

/* The product of the factors; -1 where one is negative, or it is more than `most`. */
int64_t tw_product_of(const tw_extent_factor_t *factors, uint32_t count, const uint64_t *words, int64_t most);
/* Puts the words of the kernel's views behind those of its arguments; false where an array is not as they need it. */
bool tw_show_views(const tw_launch_record_t *record, uint64_t *words);
/* The number of words with those of the views. */
static inline size_t tw_words_with_views(const tw_launch_record_t *record, size_t count) {
  for (uint32_t i = 0; i < record->num_views; i++)
    count += 1 + 2 * (size_t)record->views[i].num_bounds;
  return count;
}

/* Parameters of a launch: tensor maps, then words. */
typedef struct tw_packed {
  size_t count;
  uint64_t words[TW_MAX_LEAD + TW_MAX_MAPS * sizeof(CUtensorMap) / 8 + TW_MAX_WORDS];
} tw_packed_t;

/* Puts the kernel's tensor maps before the words. The context is current, the kernel loaded. */
tw_status_t tw_cuda_pack_maps(const tw_driver_t *driver, tw_cuda_kernel_t *kernel, int ordinal, const uint64_t *words,
                              size_t count, tw_packed_t *out);
/* Finds where a loaded kernel wants its maps. */
tw_status_t tw_cuda_find_maps(const tw_driver_t *driver, tw_cuda_kernel_t *kernel, int ordinal, CUfunction function);

#endif

/* tilewright/runtime.h - from a compiled kernel to running blocks: arrays, devices, modules, cache,
 * launch.  C only: no MLIR, no CUDA header, no Python; so a compiled kernel runs without the compiler.
 *
 * The way of a launch:
 *   array (tw_array_from_dlpack) -> fact word (tw_array_facts) -> variant, found by its facts
 *   -> words (tw_array_pack) -> tw_cuda_launch on a stream, or tw_cpu_launch on the thread pool.
 *
 * Sizes are in bytes unless a name or a comment says otherwise. `ordinal` is a device's number, from 0. A status that
 * is not NULL is the caller's to free (base.h); its code says which exception it becomes. */
#ifndef TILEWRIGHT_RUNTIME_H
#define TILEWRIGHT_RUNTIME_H

#include "tilewright/base.h"
#include "tilewright/dlpack.h"
#include "tilewright/launch_record.h"
#include "tilewright/machine.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  TW_MAX_RANK = 8,    /* dimensions of an array argument */
  TW_MAX_ARGS = 64,   /* parameters of a kernel */
  TW_GRID_WORDS = 3,  /* extents of the grid, which a launch may add */
  TW_SPLIT_WORDS = 3, /* and which tiles blocks share */
  TW_MORE_WORDS = TW_GRID_WORDS + TW_SPLIT_WORDS
};

/* === dtypes =================================================================================== */

/* name in Python, bits per element, DLPack code (-1: DLPack has none); the item size of a record is its array's */
#define TW_DTYPES(X)                                                                                                   \
  X(BOOL, "bool_", 8, 6)                                                                                               \
  X(INT8, "int8", 8, 0)                                                                                                \
  X(INT16, "int16", 16, 0)                                                                                             \
  X(INT32, "int32", 32, 0)                                                                                             \
  X(INT64, "int64", 64, 0)                                                                                             \
  X(UINT8, "uint8", 8, 1)                                                                                              \
  X(UINT16, "uint16", 16, 1)                                                                                           \
  X(UINT32, "uint32", 32, 1)                                                                                           \
  X(UINT64, "uint64", 64, 1)                                                                                           \
  X(FLOAT16, "float16", 16, 2)                                                                                         \
  X(FLOAT32, "float32", 32, 2)                                                                                         \
  X(FLOAT64, "float64", 64, 2)                                                                                         \
  X(BFLOAT16, "bfloat16", 16, 4)                                                                                       \
  X(TFLOAT32, "tfloat32", 32, -1)                                                                                      \
  X(FLOAT8_E4M3FN, "float8_e4m3fn", 8, 10)                                                                             \
  X(FLOAT8_E5M2, "float8_e5m2", 8, 12)                                                                                 \
  X(FLOAT8_E8M0FNU, "float8_e8m0fnu", 8, 14)                                                                           \
  X(FLOAT4_E2M1FN, "float4_e2m1fn", 4, 17)                                                                             \
  X(COMPLEX64, "complex64", 64, 5)                                                                                     \
  X(COMPLEX128, "complex128", 128, 5)                                                                                  \
  X(RECORD, "record", 8, -1)

typedef enum tw_dtype {
  TW_DTYPE_NONE,
#define X(id, name, bits, code) TW_DTYPE_##id,
  TW_DTYPES(X)
#undef X
      TW_DTYPE_COUNT
} tw_dtype_t;

const char *tw_dtype_name(tw_dtype_t dtype);
unsigned tw_dtype_bits(tw_dtype_t dtype);
tw_dtype_t tw_dtype_from_name(const char *name);               /* "bool" is taken too; TW_DTYPE_NONE: unknown */
bool tw_dtype_to_dlpack(tw_dtype_t dtype, tw_dl_dtype_t *out); /* false: DLPack has none, or packs them by two */

/* === arrays =================================================================================== */

typedef enum tw_device_kind { TW_DEVICE_NONE, TW_DEVICE_CPU, TW_DEVICE_CUDA } tw_device_kind_t;

/* TW_ARRAY_LONG: an extent takes more than the 31 bits that kernels keep extents in; only those that never ask for an
 * extent take such an array (tw_array_check_extents). */
enum { TW_ARRAY_READ_ONLY = 1, TW_ARRAY_SELF_OVERLAP = 2, TW_ARRAY_LONG = 4 };

/* A view of memory that someone else owns. */
typedef struct tw_array {
  void *data; /* of element 0; byte offsets are in it already */
  uint8_t dtype, rank, device_kind, flags;
  int32_t device_id;
  uint32_t item_bytes; /* of a record; else by the dtype */
  int64_t shape[TW_MAX_RANK];
  int64_t strides[TW_MAX_RANK]; /* in elements; 0 and negative allowed */
} tw_array_t;

/* Fills `out` from a DLPack tensor and checks everything that makes an array unusable: device,
 * dtype, lanes, rank, extents, alignment, missing data.  `flags` are TW_ARRAY_*.  The message
 * speaks of "it": the caller puts the argument's name before it. */
tw_status_t tw_array_from_dlpack(const tw_dl_tensor_t *tensor, unsigned flags, tw_array_t *out);

/* The same checks for an array that was filled by hand; normalizes strides of extents <= 1. */
tw_status_t tw_array_finish(tw_array_t *array);

/* Whether kernels can keep its extents: refuses one with TW_ARRAY_LONG. */
tw_status_t tw_array_check_extents(const tw_array_t *array);

/* Row-major strides from the shape. */
void tw_array_set_compact(tw_array_t *array);

/* Reads the same bytes as another dtype of the same size, or bytes as pairs of float4. */
tw_status_t tw_array_view_as(tw_array_t *array, tw_dtype_t dtype);

/* The facts that a kernel is specialized for, one word:
 *   bits 0..7 dtype, 8..11 rank, 12 address divisible by 16, 13 writable, 14 elements overlap, 15 a tensor
 *   map can describe it (not empty, no element twice, at most five dimensions, address and strides multiples of
 *   16 bytes but for one stride of 1, no stride negative or near 2^40 bytes), then per dimension d three bits at
 *   16 + 3d: stride is 1, stride in bytes divisible by 16, extent divisible by 16; bits 40, 41: strides
 *   other than 1 are divisible by 4, by 8 bytes; 42: they, and the address if there are any, are by 128, a line of the
 *   L2 cache. */
uint64_t tw_array_facts(const tw_array_t *array);

enum {
  TW_FACT_ALIGNED = 1 << 12,
  TW_FACT_WRITABLE = 1 << 13,
  TW_FACT_OVERLAP = 1 << 14,
  TW_FACT_TMA = 1 << 15,
  TW_FACT_DIM = 16, /* first bit of dimension 0 */
  TW_FACT_STRIDE_ONE = 1,
  TW_FACT_STRIDE_DIV = 2,
  TW_FACT_SHAPE_DIV = 4
};
#define TW_FACT_STRIDES_4 (UINT64_C(1) << 40)
#define TW_FACT_STRIDES_8 (UINT64_C(1) << 41)
#define TW_FACT_LINES (UINT64_C(1) << 42)

/* Writes pointer, extents, strides (1 + 2 * rank words), returns how many. */
size_t tw_array_pack(const tw_array_t *array, uint64_t *words);

/* Facts and words in one pass, of a tensor as nearly all are: on a GPU, extents of 1 and more, each dimension stepping
 * over all of the ones after it. Returns how many words; 0 for any other tensor, which tw_array_from_dlpack reads or
 * refuses. `words` has room for 1 + 2 * TW_MAX_RANK. */
size_t tw_array_pack_plain(const tw_dl_tensor_t *tensor, uint64_t *words, uint64_t *out_facts);

enum { TW_LOW_BITS = 127 };

/* A tensor that was packed so, and what came of it: one that differs in nothing but where it begins has the same
 * facts. */
typedef struct tw_known_array {
  tw_dl_device_t device;
  int32_t rank;
  uint32_t dtype; /* its bytes; 0: nothing is known */
  uint64_t low;   /* the bits of the address that facts depend on: TW_LOW_BITS */
  uint64_t facts;
  uint64_t words[2 * TW_MAX_RANK]; /* extents, strides */
} tw_known_array_t;

/* Remembers a tensor with what tw_array_pack_plain made of it; not one that has other strides in the words. */
void tw_array_remember(const tw_dl_tensor_t *tensor, const uint64_t *words, uint64_t facts, tw_known_array_t *known);

/* The same words as tw_array_pack_plain of a tensor like the known one, for a fifth of the work; 0 if it is unlike. */
static inline size_t tw_array_pack_known(const tw_known_array_t *known, const tw_dl_tensor_t *tensor, uint64_t *words) {
  /* Compared member by member: the processor must wait for what was just written in parts and is read as a whole. */
  uint32_t dtype;
  memcpy(&dtype, &tensor->dtype, sizeof dtype);
  const uint64_t data = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
  const uint32_t place =
      (uint32_t)(tensor->device.type ^ known->device.type) | (uint32_t)(tensor->device.id ^ known->device.id);
  const uint32_t form = (uint32_t)(tensor->rank ^ known->rank) | (dtype ^ known->dtype);
  if (TW_UNLIKELY((place | form | ((data & TW_LOW_BITS) ^ known->low)) || !tensor->data || !tensor->strides))
    return 0;
  const size_t rank = (size_t)tensor->rank;
  uint64_t differs = 0;
  words[0] = data;
  for (size_t d = 0; d < rank; d++) {
    uint64_t extent = words[1 + d] = (uint64_t)tensor->shape[d];
    uint64_t stride = words[1 + rank + d] = (uint64_t)tensor->strides[d];
    differs |= (extent ^ known->words[d]) | (stride ^ known->words[rank + d]);
  }
  return TW_LIKELY(!differs) ? 1 + 2 * rank : 0;
}

/* === grid ===================================================================================== */

/* TW_LAUNCH_ERROR unless every axis has from 1 to 2147483647, 65535 and 65535 blocks; threads: from 1 to 1024, 1024 and
 * 64, and 1024 in all. CUDA's limits hold on both back ends, so that a program does not depend on the device. */
tw_status_t tw_grid_check(const int64_t grid[3]);
tw_status_t tw_block_check(const int64_t block[3]);

/* === CPU ====================================================================================== */

/* Runs the blocks with linear id in [first, last), x fastest.  `grid` has six extents: blocks x, y, z,
 * then threads of a block x, y, z (which only SIMT kernels look at). */
typedef void (*tw_cpu_entry_t)(const int64_t *words, const int32_t *grid, int64_t first, int64_t last, void *scratch);

typedef struct tw_cpu_kernel {
  tw_cpu_entry_t entry;
  uint64_t scratch_bytes;      /* per thread, 64-byte aligned */
  bool cooperative;            /* blocks wait for each other: scratch is per block */
  _Atomic int64_t picoseconds; /* per block, measured by earlier launches; 0: not known yet */
} tw_cpu_kernel_t;

/* How a launch learns that it shall stop: asked now and then, on the thread that called. It may launch kernels. */
typedef struct {
  bool (*is_interrupted)(void *user);
  void *user;
  bool stopped; /* set when it has said yes: some blocks have run, some in part, some not */
} tw_cpu_watch_t;

/* Runs the whole grid and returns when it is done. `block` is null, or of a SIMT kernel the threads of a block along
 * each axis and the bytes of shared memory that the launch adds.  Any number of threads may call at once. `watch` may
 * be null. */
tw_status_t tw_cpu_launch(tw_cpu_kernel_t *kernel, const uint64_t *words, const uint32_t grid[3],
                          const uint32_t block[4], tw_cpu_watch_t *watch);

/* Threads that a launch may use, the caller among them: TILEWRIGHT_NUM_THREADS or the CPUs of this
 * process. */
int tw_cpu_threads(void);

/* === GPU ====================================================================================== */

typedef struct tw_device {
  int ordinal;
  char name[256];
  char uuid[33];    /* as hexadecimal digits; "": the driver does not say */
  int major, minor; /* compute capability */
  int sm_count;
  int shared_bytes_per_block; /* the most that a kernel may opt into */
  int shared_bytes_per_sm;
  int l2_bytes;
  int max_threads_per_block;
  int clock_khz, memory_clock_khz; /* the highest; memory moves data twice a clock */
  int memory_bus_bits;
  uint64_t memory_bytes;
  const tw_machine_t *machine; /* what is known of its chip, or of the newest older one */
  void *context;               /* the primary context, retained for the life of the process */
} tw_device_t;

/* Opens libcuda (TILEWRIGHT_CUDA_DRIVER names another file) when first called. */
tw_status_t tw_driver_open(void);
/* Figures of the chip with this number (90 for sm_90); of an unknown one, those of the newest older one. */
const tw_machine_t *tw_machine_of(int number);
tw_status_t tw_driver_version(int *out_version); /* 12040 for CUDA 12.4 */
/* TW_DRIVER_ERROR where there is no driver, or no GPU. */
tw_status_t tw_device_count(int *out_count);
tw_status_t tw_device_get(int ordinal, const tw_device_t **out_device); /* borrowed, never freed */
/* The same without a context, which takes long to open. */
tw_status_t tw_device_describe(int ordinal, tw_device_t *out_device);
bool tw_device_is_open(int ordinal); /* by tw_device_get */
/* Waits for all work of the device. An error names the kernels that were launched last: one of them failed. */
tw_status_t tw_device_synchronize(int ordinal);
/* The device of a stream; `stream` NULL: of the current context, or 0. */
tw_status_t tw_stream_device(void *stream, int *out_ordinal);
/* Work queued on `consumer` from now on starts after what is queued on `producer` now. */
tw_status_t tw_stream_order(int ordinal, void *producer, void *consumer);
/* Whether what is queued on a stream is captured as a graph; not where the driver does not say. */
bool tw_stream_captures(int ordinal, void *stream);
/* The device of an address; TW_VALUE_ERROR for memory that the driver does not know. */
tw_status_t tw_pointer_device(const void *pointer, int *out_ordinal);

/* Something to link: PTX, or a cubin, an object, a fatbin or an archive of these, as its bytes say. A zero stands
 * behind the last one. */
typedef struct tw_link_part {
  const char *name; /* for errors */
  const void *bytes;
  size_t size;
} tw_link_part_t;

/* Parts, one or more -> one cubin for a device, by the driver's own compiler and linker. The options of the first part
 * are those of all. The bytes are owned by the caller (free). `out_log` (may be NULL) gets what the driver said. */
tw_status_t tw_cubin_link(const tw_link_part_t *parts, size_t count, int ordinal, void **out_cubin, size_t *out_size,
                          char **out_log);

typedef struct tw_cuda_kernel tw_cuda_kernel_t;

/* `image` is PTX text or a cubin (copied), `record` what a launch must know of the kernel (copied; refused if it is not
 * right). Nothing is loaded before the first launch on a device. Equal images share one loaded module per device, which
 * is unloaded some time after the last kernel and the last captured graph that holds it are gone (runtime/image.c). */
tw_status_t tw_cuda_kernel_create(const void *image, size_t size, const char *name, const tw_launch_record_t *record,
                                  tw_cuda_kernel_t **out_kernel);
void tw_cuda_kernel_destroy(tw_cuda_kernel_t *kernel);

/* Borrowed, as long as the kernel lives. */
const tw_launch_record_t *tw_cuda_kernel_record(const tw_cuda_kernel_t *kernel);

/* Which other variant of a kernel does better at a launch. */
typedef enum tw_alternative_kind {
  TW_ALTERNATIVE_NONE,
  TW_ALTERNATIVE_SLICED,      /* `number` blocks compute a tile, a slice each */
  TW_ALTERNATIVE_COARSENED,   /* a block computes the tiles of `number`; 1: this grid needs a kernel without coarsened
                                 tiles */
  TW_ALTERNATIVE_SHARED,      /* the `number` blocks of a cluster share a row */
  TW_ALTERNATIVE_CLUSTERS,    /* along the axis `number` */
  TW_ALTERNATIVE_AS_LAUNCHED, /* the grid is not that of the tiles which the program counts, or rows do not lie as the
                                 kernel takes them to */
  TW_ALTERNATIVE_SPLIT_K,     /* blocks share tiles (number 1), or have no clusters (0) */
  TW_ALTERNATIVE_UNKNOWN,     /* the kernel is not loaded yet: ask again then */
} tw_alternative_kind_t;

typedef struct tw_alternative {
  tw_alternative_kind_t kind;
  int number;
} tw_alternative_t;
/* The better variant for a launch, TW_ALTERNATIVE_NONE if this one is best. Asks no driver and takes no memory. Behind
 * the arguments' words it puts those of the kernel's views. */
tw_status_t tw_cuda_find_alternative(const tw_cuda_kernel_t *kernel, int ordinal, const uint32_t grid[3],
                                     uint64_t *words, tw_alternative_t *out);

/* Whether arrays of some pairs (`no_alias` of a record), which a kernel assumes to be separate, overlap in a launch
 * with these words: the launch then needs a kernel compiled for that. */
bool tw_would_overlap(const tw_no_alias_t *pairs, uint32_t count, const uint64_t *words);
/* The same of all pairs of a kernel, those with its views, too. */
bool tw_cuda_would_overlap(const tw_cuda_kernel_t *kernel, uint64_t *words);

/* Loads the kernel on a device now (a launch does it by itself). */
tw_status_t tw_cuda_kernel_load(tw_cuda_kernel_t *kernel, int ordinal);
bool tw_cuda_kernel_is_loaded(const tw_cuda_kernel_t *kernel, int ordinal);

/* What the loaded kernel takes: registers and bytes of local memory of a thread, static bytes of shared memory of a
 * block; and the most threads that a block of it may have. Loads it if it must. */
typedef struct tw_cuda_usage {
  int registers, local_bytes, shared_bytes, max_threads;
} tw_cuda_usage_t;
tw_status_t tw_cuda_kernel_usage(tw_cuda_kernel_t *kernel, int ordinal, tw_cuda_usage_t *out);
/* How many blocks of so many threads run at a time on the device, each with `shared` bytes behind its own arrays. */
tw_status_t tw_cuda_kernel_resident(tw_cuda_kernel_t *kernel, int ordinal, int threads, size_t shared, int64_t *out);

/* Queues the grid on a stream (CUstream; NULL, 1 and 2 are the default streams) of the device.
 * `block` (as in tw_cpu_launch) counts for kernels whose record has num_threads 0; else it may be NULL. Behind the
 * `count` words there must be room for TW_MORE_WORDS more. */
tw_status_t tw_cuda_launch(tw_cuda_kernel_t *kernel, int ordinal, void *stream, const uint32_t grid[3],
                           const uint32_t block[4], uint64_t *words, size_t count);

/* How many blocks to start for `blocks` of a grid when `resident` run at a time: as few as finish in
 * the same number of turns. */
uint32_t tw_grid_balance(uint64_t blocks, uint32_t resident);

/* Device memory for measuring kernels on copies of what they are given (runtime/memory.c). An address is of a device or
 * of the host; copies with the host have ended when the call returns, the others are in the order of the default
 * stream. */
tw_status_t tw_memory_alloc(int ordinal, size_t size, uint64_t *out_address);
tw_status_t tw_memory_free(int ordinal, uint64_t address);
tw_status_t tw_memory_copy(int ordinal, uint64_t target, uint64_t source, size_t size);
/* Memory of the host that a device reaches by the same address: allocated, or pinned where it is. */
tw_status_t tw_pinned_take(int ordinal, size_t size, bool combined, void **out);
tw_status_t tw_pinned_give(int ordinal, void *memory);
tw_status_t tw_pin(int ordinal, void *memory, size_t size);
tw_status_t tw_unpin(int ordinal, void *memory);
/* Memory whose pages go where they are used; freed by tw_memory_free. */
tw_status_t tw_managed_memory_take(int ordinal, size_t size, uint64_t *out_address);
tw_status_t tw_memory_info(int ordinal, size_t *out_free, size_t *out_total);
tw_status_t tw_memory_fill(int ordinal, uint64_t address, unsigned char byte, size_t size);

/* The memory behind tilewright.Array (runtime/array_memory.c): of a device from a pool of ours, in the order of a
 * stream; of the host aligned to 64 bytes, and kept for the next array. Sizes are positive. */
tw_status_t tw_array_memory_take(int ordinal, void *stream, size_t size, uint64_t *out_address);
tw_status_t tw_array_memory_give(int ordinal, void *stream, uint64_t address);
void *tw_host_memory_take(size_t size); /* NULL: there is none */
void tw_host_memory_give(void *memory, size_t size);

/* `height` rows of `width` bytes, each so many bytes behind the last; of a device or of the host. */
typedef struct tw_rows {
  uint64_t target, source;
  size_t target_pitch, source_pitch, width, height;
} tw_rows_t;
/* Queued on the stream; `wait` until it is done. */
tw_status_t tw_array_memory_copy(int ordinal, void *stream, const tw_rows_t *rows, bool wait);

/* Streams of a device, and events, which are points in them (runtime/streams.c). */
tw_status_t tw_stream_create(int ordinal, void **out_stream);
void tw_stream_destroy(int ordinal, void *stream);
tw_status_t tw_stream_synchronize(int ordinal, void *stream);
tw_status_t tw_stream_is_busy(int ordinal, void *stream, bool *out_busy);
tw_status_t tw_event_create(int ordinal, void **out_event);
void tw_event_destroy(int ordinal, void *event);
tw_status_t tw_event_record_on(int ordinal, void *event, void *stream);
tw_status_t tw_event_is_over(int ordinal, void *event, bool *out_over);
/* Has a stream wait, or with NULL the calling thread. */
tw_status_t tw_event_wait(int ordinal, void *event, void *stream);
/* The time between two events that are recorded; waits for the second. */
tw_status_t tw_event_elapsed(int ordinal, void *begin, void *end, float *out_milliseconds);

/* What the driver knows of an address; TW_VALUE_ERROR for memory that it does not know. */
typedef struct tw_pointer {
  void *context;   /* that owns it */
  uint64_t device; /* the address as a GPU uses it */
  int ordinal;
  unsigned memory_type, managed; /* 1: of the host, 2: of a device */
  bool host_accessible;
} tw_pointer_t;
tw_status_t tw_pointer_query(const void *pointer, tw_pointer_t *out);
/* Makes an address, which a producer may have from another context, the one that our kernels use. */
tw_status_t tw_pointer_resolve(void **pointer, int *out_ordinal);

/* Time of the bare driver call, for bench/: mean nanoseconds of `n` launches of a packed buffer. */
tw_status_t tw_cuda_bench(tw_cuda_kernel_t *kernel, int ordinal, void *stream, const uint32_t grid[3],
                          const uint32_t block[4], uint64_t *words, size_t count, int n, double *out_ns);

/* === disk cache =============================================================================== */

typedef struct tw_key {
  uint64_t low, high;
} tw_key_t;

tw_key_t tw_hash(const void *bytes, size_t size); /* XXH3, 128 bits */

/* Looks for the bytes stored under a key.  Anything that is not right (no folder, foreign or
 * writable by others, damaged) is a miss.  *out_bytes is owned by the caller (free). */
bool tw_cache_get(tw_key_t key, void **out_bytes, size_t *out_size);

/* Stores bytes; false if that was not possible, which is never an error: it only costs time. */
bool tw_cache_put(tw_key_t key, const void *bytes, size_t size);

typedef struct tw_cache_info {
  char path[4096];   /* "" if there is none */
  char problem[256]; /* why it is not used, or "" */
  uint64_t bytes, limit;
  int entries;
} tw_cache_info_t;
void tw_cache_info(tw_cache_info_t *out_info);
void tw_cache_clear(void);

#ifdef __cplusplus
}
#endif
#endif

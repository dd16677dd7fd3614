/* driver.h - our own declarations of the CUDA driver, and its table of entry points.
 *
 * Private to runtime/.  The values are the driver's ABI; no cuda.h is needed to build. */
#ifndef TILEWRIGHT_RUNTIME_DRIVER_H
#define TILEWRIGHT_RUNTIME_DRIVER_H

#include "tilewright/runtime.h"

typedef int CUresult;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUlib_st *CUlibrary;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUlinkState_st *CUlinkState;
typedef struct CUgraph_st *CUgraph;
typedef struct CUuserObject_st *CUuserObject;
typedef struct CUmemPoolHandle_st *CUmemoryPool;

typedef struct CUmemPoolProps {
  int alloc_type, handle_types;
  struct {
    int type, id;
  } location;
  void *security;
  size_t max_size;
  unsigned short usage;
  unsigned char reserved[54];
} CUmemPoolProps;

typedef struct CUmemcpy2D {
  size_t source_x, source_y;
  unsigned source_type;
  const void *source_host;
  uint64_t source_device;
  void *source_array;
  size_t source_pitch;
  size_t target_x, target_y;
  unsigned target_type;
  void *target_host;
  uint64_t target_device;
  void *target_array;
  size_t target_pitch;
  size_t width, height;
} CUmemcpy2D;

typedef struct CUlaunchAttribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    int flag;
  } value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  CUstream stream;
  CUlaunchAttribute *attributes;
  unsigned attribute_count;
} CUlaunchConfig;

/* Opaque: the driver fills it. */
typedef struct CUtensorMap {
  _Alignas(64) uint64_t opaque[16];
} CUtensorMap;

_Static_assert(sizeof(void *) != 8 || sizeof(CUlaunchAttribute) == 72, "CUDA ABI");
_Static_assert(sizeof(void *) != 8 || sizeof(CUlaunchConfig) == 56, "CUDA ABI");
_Static_assert(sizeof(void *) != 8 || sizeof(CUmemPoolProps) == 88, "CUDA ABI");
_Static_assert(sizeof(void *) != 8 || sizeof(CUmemcpy2D) == 128, "CUDA ABI");

enum { /* CUresult */
       CUDA_SUCCESS = 0,
       CUDA_ERROR_INVALID_VALUE = 1,
       CUDA_ERROR_OUT_OF_MEMORY = 2,
       CUDA_ERROR_NOT_INITIALIZED = 3,
       CUDA_ERROR_STUB_LIBRARY = 34,
       CUDA_ERROR_NO_DEVICE = 100,
       CUDA_ERROR_INVALID_DEVICE = 101,
       CUDA_ERROR_INVALID_CONTEXT = 201,
       CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
       CUDA_ERROR_INVALID_PTX = 218,
       CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
       CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
       CUDA_ERROR_INVALID_HANDLE = 400,
       CUDA_ERROR_NOT_READY = 600,
       CUDA_ERROR_ILLEGAL_ADDRESS = 700,
       CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
       CUDA_ERROR_LAUNCH_TIMEOUT = 702,
       CUDA_ERROR_ASSERT = 710,
       CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
       CUDA_ERROR_LAUNCH_FAILED = 719,
       CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
       CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
       CUDA_ERROR_UNKNOWN = 999,
};

enum { /* device attributes */
       CU_DEVICE_MAX_THREADS_PER_BLOCK = 1,
       CU_DEVICE_CLOCK_RATE = 13,
       CU_DEVICE_MULTIPROCESSOR_COUNT = 16,
       CU_DEVICE_MEMORY_CLOCK_RATE = 36,
       CU_DEVICE_MEMORY_BUS_WIDTH = 37,
       CU_DEVICE_L2_CACHE_SIZE = 38,
       CU_DEVICE_CAPABILITY_MAJOR = 75,
       CU_DEVICE_CAPABILITY_MINOR = 76,
       CU_DEVICE_SHARED_PER_MULTIPROCESSOR = 81,
       CU_DEVICE_SHARED_PER_BLOCK_OPTIN = 97,
};
enum { /* function attributes */
       CU_FUNC_MAX_THREADS_PER_BLOCK = 0,
       CU_FUNC_SHARED_SIZE_BYTES = 1,
       CU_FUNC_LOCAL_SIZE_BYTES = 3,
       CU_FUNC_NUM_REGS = 4,
       CU_FUNC_MAX_DYNAMIC_SHARED = 8,
};
enum { /* JIT options */
       CU_JIT_INFO_LOG_BUFFER = 3,
       CU_JIT_INFO_LOG_BUFFER_SIZE = 4,
       CU_JIT_ERROR_LOG_BUFFER = 5,
       CU_JIT_ERROR_LOG_BUFFER_SIZE = 6,
       CU_JIT_OPTIMIZATION_LEVEL = 7,
       CU_JIT_GENERATE_LINE_INFO = 12,
};
enum { /* what the linker takes */
       CU_JIT_INPUT_CUBIN = 0,
       CU_JIT_INPUT_PTX = 1,
       CU_JIT_INPUT_FATBINARY = 2,
       CU_JIT_INPUT_OBJECT = 3,
       CU_JIT_INPUT_LIBRARY = 4,
};
enum { CU_STREAM_CAPTURE_MODE_RELAXED = 2 };
enum { CU_STREAM_CAPTURE_STATUS_NONE = 0, CU_STREAM_CAPTURE_STATUS_ACTIVE = 1 };
enum { CU_STREAM_NON_BLOCKING = 1, CU_STREAM_LEGACY = 1, CU_STREAM_PER_THREAD = 2 };
/* The default stream of the device, which nobody captures and nobody destroys. */
static inline bool tw_stream_is_default(CUstream stream) { return (uintptr_t)stream <= CU_STREAM_LEGACY; }
enum { CU_USER_OBJECT_NO_DESTRUCTOR_SYNC = 1, CU_GRAPH_USER_OBJECT_MOVE = 1 };
enum { CU_EVENT_DISABLE_TIMING = 2 };
enum { /* pointer attributes */
       CU_POINTER_ATTRIBUTE_CONTEXT = 1,
       CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
       CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
       CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
       CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
};
enum { CU_MEM_ALLOCATION_PINNED = 1, CU_MEM_LOCATION_DEVICE = 1, CU_MEMPOOL_RELEASE_THRESHOLD = 4 };
enum { CU_MEMORY_UNIFIED = 4 };
enum { CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6 };
enum { /* tensor maps */
       CU_TENSOR_MAP_UINT8 = 0,
       CU_TENSOR_MAP_UINT16 = 1,
       CU_TENSOR_MAP_UINT32 = 2,
       CU_TENSOR_MAP_UINT64 = 4,
       CU_TENSOR_MAP_TFLOAT32 = 11,
       CU_TENSOR_MAP_INTERLEAVE_NONE = 0,
       CU_TENSOR_MAP_SWIZZLE_NONE = 0,
       CU_TENSOR_MAP_SWIZZLE_32B = 1,
       CU_TENSOR_MAP_SWIZZLE_64B = 2,
       CU_TENSOR_MAP_SWIZZLE_128B = 3,
       CU_TENSOR_MAP_L2_128B = 2,
       CU_TENSOR_MAP_OOB_ZEROS = 0,
};
#define CU_LAUNCH_PARAM_END ((void *)0)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define CU_LAUNCH_PARAM_BUFFER_SIZE ((void *)2)

typedef struct tw_driver {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): declares a member */
#define ENTRY(member, symbol, parameters, version, need) CUresult(*member) parameters;
#include "driver.def"
#undef ENTRY
  int version; /* 12040 for CUDA 12.4 */
} tw_driver_t;

/* Opens and initializes the driver once; later calls return the same table or the same error. */
tw_status_t tw_driver_get(const tw_driver_t **out_driver);

/* The table itself, for the hot path: whoever holds a tw_device_t may use it without asking. */
extern tw_driver_t tw_driver_table;

/* "CUDA_ERROR_… (number): text" as an error; `what` says what was being done. */
tw_status_t tw_driver_error(const tw_driver_t *driver, tw_code_t code, CUresult result, const char *what);

/* Makes the device's primary context current for one call sequence.  What was current before comes
 * back with tw_context_leave: other libraries in the process have their own idea of it. */
typedef struct tw_context_scope {
  const tw_driver_t *driver;
  bool entered; /* there is something to take back: a context, or the mode */
  bool pushed, relaxed;
  int mode; /* the thread's, before it was relaxed */
} tw_context_scope_t;
tw_status_t tw_context_push(const tw_device_t *device, tw_context_scope_t *out_scope);
void tw_context_take_back(tw_context_scope_t *scope);

/* Up to tw_context_leave, calls of the driver are no part of a capture and do not end it: one may be under way in this
 * thread or, in the mode "global", in any other. Whatever allocates, frees, loads, unloads, waits, or asks for what is
 * over belongs here: the garbage collector frees at any time. */
void tw_context_relax(tw_context_scope_t *scope);

static inline tw_status_t tw_context_enter(const tw_device_t *device, tw_context_scope_t *out_scope) {
  CUcontext current = NULL;
  *out_scope = (tw_context_scope_t){.driver = &tw_driver_table};
  bool there = !tw_driver_table.ctx_get_current(&current) && current == device->context;
  return TW_LIKELY(there) ? NULL : tw_context_push(device, out_scope);
}

static inline void tw_context_leave(tw_context_scope_t *scope) {
  if (TW_UNLIKELY(scope->entered))
    tw_context_take_back(scope);
}

/* Notes a launch for the text of an error: a fault shows up only at a later call, when the driver does not say whose it
 * was. */
void tw_recent_note(int ordinal, const char *kernel_name); /* the name must live for ever */

/* Error of a call that may report a fault of an earlier kernel: names the recent kernels. */
tw_status_t tw_fault_error(const tw_driver_t *driver, int ordinal, CUresult result, const char *what);
bool tw_result_is_fault(CUresult result); /* a kernel crashed and the context is lost */

/* Opens a device by its number, makes its context current, and is no part of a capture; on success the caller leaves
 * it. */
tw_status_t tw_device_enter(int ordinal, tw_context_scope_t *out_scope);
/* The same for what launches ask and queue: a capture takes it as it is. */
tw_status_t tw_device_enter_plainly(int ordinal, tw_context_scope_t *out_scope);
/* Leaves it, with an error if what was done there has one; `what` says what that was. */
tw_status_t tw_device_leave(tw_context_scope_t *scope, int ordinal, CUresult result, const char *what);

#endif

/* dlpack.h - the part of DLPack 1.x that we read, declared here so that no other header is needed.
 *
 * The layouts are an ABI shared with every array library: they must not change. */
#ifndef TILEWRIGHT_DLPACK_H
#define TILEWRIGHT_DLPACK_H

#include <stdint.h>

typedef struct tw_dl_version {
  uint32_t major, minor;
} tw_dl_version_t;

typedef struct tw_dl_device {
  int32_t type, id;
} tw_dl_device_t;

typedef struct tw_dl_dtype {
  uint8_t code, bits;
  uint16_t lanes;
} tw_dl_dtype_t;

/* shape and strides (in elements; NULL means compact row-major) belong to the producer. */
typedef struct tw_dl_tensor {
  void *data;
  tw_dl_device_t device;
  int32_t rank;
  tw_dl_dtype_t dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} tw_dl_tensor_t;

/* Capsule "dltensor": the form without a version. */
typedef struct tw_dl_managed {
  tw_dl_tensor_t tensor;
  void *context;
  void (*deleter)(struct tw_dl_managed *);
} tw_dl_managed_t;

/* Capsule "dltensor_versioned". */
typedef struct tw_dl_managed_versioned {
  tw_dl_version_t version;
  void *context;
  void (*deleter)(struct tw_dl_managed_versioned *);
  uint64_t flags;
  tw_dl_tensor_t tensor;
} tw_dl_managed_versioned_t;

enum { TW_DL_READ_ONLY = 1, TW_DL_IS_COPIED = 2, TW_DL_SUBBYTE_PADDED = 4 };
enum { TW_DL_CPU = 1, TW_DL_CUDA = 2, TW_DL_CUDA_HOST = 3, TW_DL_CUDA_MANAGED = 13 };

/* The C exchange API: a static table, found in a capsule named "dlpack_exchange_api" that is the
 * attribute `__dlpack_c_exchange_api__` of a producer's array type.  Only a table with major
 * version 1 may be used; older ones hang on `previous`.  All calls need the GIL. */
typedef struct tw_dl_exchange {
  tw_dl_version_t version;
  struct tw_dl_exchange *previous;
  int (*allocate)(tw_dl_tensor_t *, tw_dl_managed_versioned_t **, void *, void (*)(void *, const char *, const char *));
  int (*managed_from_object)(void *, tw_dl_managed_versioned_t **);
  int (*managed_to_object)(tw_dl_managed_versioned_t *, void **);
  int (*tensor_from_object)(void *, tw_dl_tensor_t *); /* borrowed, no copy, no sync; may be NULL */
  int (*current_work_stream)(int32_t device_type, int32_t device_id, void **out_stream);
} tw_dl_exchange_t;

_Static_assert(sizeof(void *) != 8 || sizeof(tw_dl_tensor_t) == 48, "DLPack ABI");
_Static_assert(sizeof(void *) != 8 || sizeof(tw_dl_managed_t) == 64, "DLPack ABI");
_Static_assert(sizeof(void *) != 8 || sizeof(tw_dl_managed_versioned_t) == 80, "DLPack ABI");
_Static_assert(sizeof(void *) != 8 || sizeof(tw_dl_exchange_t) == 56, "DLPack ABI");

#endif

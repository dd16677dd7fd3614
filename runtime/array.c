/* array.c - dtypes, and arrays as kernels see them: checks, fact word, parameter words. */
#include "tilewright/runtime.h"

#include <string.h>

/* === dtypes =================================================================================== */

static const struct {
  const char *name;
  uint8_t bits;
  int16_t code;
} dtypes[TW_DTYPE_COUNT] = {[TW_DTYPE_NONE] = {"unknown", 0, -1},
#define X(id, name, bits, code) [TW_DTYPE_##id] = {name, bits, code},
                            TW_DTYPES(X)
#undef X
};

const char *tw_dtype_name(tw_dtype_t dtype) { return dtypes[dtype < TW_DTYPE_COUNT ? dtype : TW_DTYPE_NONE].name; }

unsigned tw_dtype_bits(tw_dtype_t dtype) { return dtypes[dtype < TW_DTYPE_COUNT ? dtype : TW_DTYPE_NONE].bits; }

tw_dtype_t tw_dtype_from_name(const char *name) {
  for (int dtype = 1; dtype < TW_DTYPE_COUNT; dtype++)
    if (!strcmp(name, dtypes[dtype].name))
      return (tw_dtype_t)dtype;
  return strcmp(name, "bool") ? TW_DTYPE_NONE : TW_DTYPE_BOOL;
}

/* By DLPack's code and the logarithm of the bits; the last row is for what DLPack has no code for. */
enum { DL_CODES = 18 };
#define LOG2(bits) ((bits) == 4 ? 2 : (bits) == 8 ? 3 : (bits) == 16 ? 4 : (bits) == 32 ? 5 : (bits) == 64 ? 6 : 7)
static const uint8_t dtype_of_code[DL_CODES + 1][8] = {
#define X(id, name, bits, code) [(code) < 0 ? DL_CODES : (code)][LOG2(bits)] = TW_DTYPE_##id,
    TW_DTYPES(X)
#undef X
};

static tw_dtype_t dtype_from_dlpack(tw_dl_dtype_t type) {
  if (TW_UNLIKELY((type.code >= DL_CODES) | (type.bits == 0) | ((type.bits & (type.bits - 1)) != 0) |
                  (type.bits > 128)))
    return TW_DTYPE_NONE;
  return (tw_dtype_t)dtype_of_code[type.code][__builtin_ctz(type.bits)];
}

bool tw_dtype_to_dlpack(tw_dtype_t dtype, tw_dl_dtype_t *out) {
  *out = (tw_dl_dtype_t){(uint8_t)dtypes[dtype].code, dtypes[dtype].bits, 1};
  return dtypes[dtype].code >= 0 && dtypes[dtype].bits >= 8;
}

/* Bits of an element, and what its address is a multiple of. */
static unsigned bits_of(const tw_array_t *array) {
  return array->dtype == TW_DTYPE_RECORD ? 8 * array->item_bytes : dtypes[array->dtype].bits;
}

/* In bytes: of a complex number that of its parts, of a record unknown. */
static unsigned alignment_of(tw_dtype_t dtype) {
  unsigned bytes = (dtypes[dtype].bits + 7) / 8;
  return dtype == TW_DTYPE_COMPLEX64 || dtype == TW_DTYPE_COMPLEX128 ? bytes / 2 : bytes;
}

static tw_status_t dtype_error(tw_dl_dtype_t type) {
  static const char *const kinds[] = {
      "int",         "uint",           "float",       "opaque handle",      "bfloat",        "complex",
      "bool",        "float8_e3m4",    "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
      "float8_e5m2", "float8_e5m2fnuz"};
  const char *kind = type.code < sizeof kinds / sizeof *kinds ? kinds[type.code] : "unknown";
  return TW_ERROR(TW_TYPE_ERROR,
                  "its dtype is not supported (DLPack code %d, %s, %d bits, %d lane(s)); convert "
                  "the array to one of bool, int8..int64, uint8..uint64, float16, bfloat16, "
                  "float32, float64, float8_e4m3fn, float8_e5m2, float8_e8m0fnu, float4_e2m1fn",
                  type.code, kind, type.bits, type.lanes);
}

/* === checks =================================================================================== */

void tw_array_set_compact(tw_array_t *array) {
  int64_t stride = 1;
  for (int d = array->rank - 1; d >= 0; d--) {
    array->strides[d] = stride;
    stride = (int64_t)((uint64_t)stride * (uint64_t)array->shape[d]); /* too much is refused later */
  }
}

/* An extent of 0 or 1 makes its stride meaningless, and libraries leave anything there.  Make it 1
 * in the last dimension and else a multiple of 16 bytes, so that it never spoils a specialization. */
static inline int64_t stride_of_one(int64_t stride, bool is_last, unsigned bits) {
  return is_last ? 1 : (uint64_t)stride * bits & 1023 ? 0 : stride;
}

static void normalize_strides(tw_array_t *array, unsigned bits) {
  for (int d = 0; d < array->rank; d++)
    if (array->shape[d] <= 1)
      array->strides[d] = stride_of_one(array->strides[d], d == array->rank - 1, bits);
}

/* Whether two indices may name one element.  Dimensions in the order of their strides: each must
 * step over everything that the smaller ones span. */
static bool overlaps_itself(const tw_array_t *array) {
  int64_t strides[TW_MAX_RANK], extents[TW_MAX_RANK];
  int count = 0;
  for (int d = 0; d < array->rank; d++) {
    int64_t extent = array->shape[d], stride = array->strides[d];
    if (extent == 0)
      return false;
    if (extent == 1)
      continue;
    stride = stride < 0 ? -stride : stride;
    int at = count++;
    for (; at > 0 && strides[at - 1] > stride; at--) {
      strides[at] = strides[at - 1];
      extents[at] = extents[at - 1];
    }
    strides[at] = stride;
    extents[at] = extent;
  }
  int64_t span = 0;
  for (int i = 0; i < count; i++) {
    if (strides[i] <= span)
      return true;
    if (__builtin_mul_overflow(extents[i] - 1, strides[i], &extents[i]) ||
        __builtin_add_overflow(span, extents[i], &span))
      return true;
  }
  return false;
}

tw_status_t tw_array_check_extents(const tw_array_t *array) {
  for (int d = 0; d < array->rank; d++)
    if (array->shape[d] > INT32_MAX)
      return TW_ERROR(TW_VALUE_ERROR,
                      "its extent in dimension %d is %lld, the most is 2147483647; pass slices of it, "
                      "or reshape it",
                      d, (long long)array->shape[d]);
  return NULL;
}

/* Whether the distance between the first and the last byte takes more than 63 bits: a producer's mistake. */
static bool is_too_far(const tw_array_t *array, unsigned bits) {
  int64_t low = 0, high = 0;
  for (int d = 0; d < array->rank; d++) {
    int64_t reach;
    if (__builtin_mul_overflow(array->shape[d] - 1, array->strides[d], &reach) ||
        __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high))
      return true;
  }
  return __builtin_sub_overflow(high, low, &high) || __builtin_mul_overflow(high, (int64_t)(bits + 7) / 8, &high);
}

tw_status_t tw_array_finish(tw_array_t *array) {
  unsigned bits = bits_of(array), alignment = alignment_of(array->dtype);
  array->flags &= (uint8_t)~(TW_ARRAY_SELF_OVERLAP | TW_ARRAY_LONG);
  bool empty = false;
  for (int d = 0; d < array->rank; d++) {
    if (TW_UNLIKELY(array->shape[d] < 0))
      return TW_ERROR(TW_VALUE_ERROR, "its extent in dimension %d is negative (%lld)", d, (long long)array->shape[d]);
    if (TW_UNLIKELY(array->shape[d] > INT32_MAX))
      array->flags |= TW_ARRAY_LONG;
    empty |= array->shape[d] == 0;
  }
  if (TW_UNLIKELY(empty)) {
    array->data = NULL; /* no address to be right or wrong */
  } else {
    if (TW_UNLIKELY(!array->data))
      return TW_ERROR(TW_VALUE_ERROR, "it has no memory behind it (NULL data and a non-zero size); fake, meta and "
                                      "lazy tensors cannot be passed to a kernel");
    if (TW_UNLIKELY((uintptr_t)array->data & (alignment - 1)))
      return TW_ERROR(TW_VALUE_ERROR,
                      "its address %p is not a multiple of its item size (%u bytes); copy it to an "
                      "aligned array",
                      array->data, alignment);
    if (TW_UNLIKELY(is_too_far(array, bits)))
      return TW_ERROR(TW_VALUE_ERROR, "its extents and strides span more than 2**63 bytes, which no memory has");
  }
  normalize_strides(array, bits);
  if (TW_UNLIKELY(overlaps_itself(array)))
    array->flags |= TW_ARRAY_SELF_OVERLAP;
  return NULL;
}

/* === DLPack =================================================================================== */

static tw_status_t device_from_dlpack(tw_dl_device_t device, tw_array_t *out) {
  out->device_id = device.id;
  switch (device.type) {
  case TW_DL_CUDA:
  case TW_DL_CUDA_MANAGED: out->device_kind = TW_DEVICE_CUDA; return NULL;
  case TW_DL_CPU:
  case TW_DL_CUDA_HOST: /* pinned memory is the CPU's */
    out->device_kind = TW_DEVICE_CPU;
    out->device_id = 0;
    return NULL;
  default:
    return TW_ERROR(TW_TYPE_ERROR,
                    "it lives on a device that is neither a CPU nor a CUDA GPU (DLPack device type "
                    "%d); move it to one of them",
                    device.type);
  }
}

/* Two float4 in a byte: libraries give them as lanes or count bytes.  Make extents count elements. */
static void unpack_float4(tw_array_t *array) {
  for (int d = 0; d < array->rank - 1; d++)
    array->strides[d] *= 2;
  array->shape[array->rank - 1] *= 2;
}

static tw_status_t check_float4(const tw_array_t *array) {
  int last = array->rank - 1;
  if (last < 0 || (array->strides[last] != 1 && array->shape[last] > 1))
    return TW_ERROR(TW_VALUE_ERROR, "two float4 share a byte, so its last dimension must be contiguous; make it so");
  return NULL;
}

tw_status_t tw_array_from_dlpack(const tw_dl_tensor_t *tensor, unsigned flags, tw_array_t *out) {
  out->flags = (uint8_t)flags;
  TW_RETURN_IF_ERROR(device_from_dlpack(tensor->device, out));
  tw_dtype_t dtype = dtype_from_dlpack(tensor->dtype);
  unsigned lanes = dtype == TW_DTYPE_FLOAT4_E2M1FN ? 2 : 1;
  if (TW_UNLIKELY(dtype == TW_DTYPE_NONE || tensor->dtype.lanes != lanes))
    return dtype_error(tensor->dtype);
  if (TW_UNLIKELY(tensor->rank < 0 || tensor->rank > TW_MAX_RANK))
    return TW_ERROR(TW_VALUE_ERROR, "it has %d dimensions, the most is %d; reshape it", tensor->rank, TW_MAX_RANK);
  if (TW_UNLIKELY(tensor->rank > 0 && !tensor->shape))
    return TW_ERROR(TW_VALUE_ERROR, "its DLPack tensor has %d dimension%s, but no shape", tensor->rank,
                    tensor->rank == 1 ? "" : "s");
  out->dtype = (uint8_t)dtype;
  out->rank = (uint8_t)tensor->rank;
  out->data = tensor->data ? (char *)tensor->data + tensor->byte_offset : NULL;
  for (int d = 0; d < tensor->rank; d++)
    out->shape[d] = tensor->shape[d];
  if (TW_LIKELY(tensor->strides != NULL))
    for (int d = 0; d < tensor->rank; d++)
      out->strides[d] = tensor->strides[d];
  else
    tw_array_set_compact(out);
  if (TW_UNLIKELY(dtype == TW_DTYPE_FLOAT4_E2M1FN)) {
    TW_RETURN_IF_ERROR(check_float4(out));
    unpack_float4(out);
  }
  return tw_array_finish(out);
}

tw_status_t tw_array_view_as(tw_array_t *array, tw_dtype_t dtype) {
  unsigned from = dtypes[array->dtype].bits, to = dtypes[dtype].bits;
  if (from == to) {
    array->dtype = (uint8_t)dtype;
    return tw_array_finish(array);
  }
  if (dtype != TW_DTYPE_FLOAT4_E2M1FN || from != 8)
    return TW_ERROR(TW_TYPE_ERROR, "%s (%u bits) cannot be viewed as %s (%u bits)", tw_dtype_name(array->dtype), from,
                    tw_dtype_name(dtype), to);
  TW_RETURN_IF_ERROR(check_float4(array));
  array->dtype = (uint8_t)dtype;
  unpack_float4(array);
  return tw_array_finish(array);
}

/* === facts and words ========================================================================== */

/* Three bits of a dimension. */
static inline uint64_t facts_of_dim(int64_t extent, int64_t stride, unsigned bits) {
  bool one = stride == 1, whole = !((uint64_t)stride * bits & 127), sixteen = !(extent & 15);
  return (uint64_t)one * TW_FACT_STRIDE_ONE | (uint64_t)whole * TW_FACT_STRIDE_DIV |
         (uint64_t)sixteen * TW_FACT_SHAPE_DIV;
}

/* The word of memory that is not NULL: `dims` has three bits a dimension, `strides` other than 1 are ORed. A tensor map
 * can describe it if all axes but one have strides of whole 16 bytes, and that one is contiguous. */
static inline uint64_t facts_of(tw_dtype_t dtype, unsigned rank, const void *data, uint64_t dims, uint64_t strides,
                                uint64_t flags) {
  const uint64_t axes = 0111111111ull >> (3 * (9 - rank)), outside = ~0ull << 37; /* 2^40 bytes, or negative */
  uint64_t one = dims & axes, whole = dims >> 1 & axes;
  uint64_t steps = strides * dtypes[dtype].bits;
  uint64_t starts = steps | (strides ? (uintptr_t)data << 3 : 0);
  bool aligned = !((uintptr_t)data & 15), by_4 = !(steps & 31), by_8 = !(steps & 63), lines = !(starts & 1023);
  bool fits = aligned & ((one | whole) == axes) & (one != 0) & !(one & (one - 1)) & !(strides & outside) &
              !(flags & TW_FACT_OVERLAP) & (rank <= TW_MAX_MAP_RANK) & (dtype < TW_DTYPE_FLOAT4_E2M1FN);
  return (uint64_t)dtype | (uint64_t)rank << 8 | (uint64_t)aligned * TW_FACT_ALIGNED | flags |
         (uint64_t)fits * TW_FACT_TMA | by_4 * TW_FACT_STRIDES_4 | by_8 * TW_FACT_STRIDES_8 | lines * TW_FACT_LINES |
         dims << TW_FACT_DIM;
}

uint64_t tw_array_facts(const tw_array_t *array) {
  uint64_t dims = 0, strides = 0;
  for (int d = array->rank - 1; d >= 0; d--) {
    strides |= array->strides[d] == 1 ? 0 : (uint64_t)array->strides[d];
    dims = dims << 3 | facts_of_dim(array->shape[d], array->strides[d], bits_of(array));
  }
  uint64_t flags = array->flags & TW_ARRAY_READ_ONLY ? 0 : TW_FACT_WRITABLE;
  flags |= array->flags & TW_ARRAY_SELF_OVERLAP ? TW_FACT_OVERLAP : 0;
  uint64_t facts = facts_of(array->dtype, array->rank, array->data, dims, strides, flags);
  return array->data ? facts : facts & ~(uint64_t)TW_FACT_TMA;
}

size_t tw_array_pack(const tw_array_t *array, uint64_t *words) {
  size_t rank = array->rank;
  words[0] = (uint64_t)(uintptr_t)array->data;
  for (size_t d = 0; d < rank; d++) {
    words[1 + d] = (uint64_t)array->shape[d];
    words[1 + rank + d] = (uint64_t)array->strides[d];
  }
  return 1 + 2 * rank;
}

size_t tw_array_pack_plain(const tw_dl_tensor_t *tensor, uint64_t *words, uint64_t *out_facts) {
  const tw_dtype_t dtype = dtype_from_dlpack(tensor->dtype);
  const unsigned bits = tensor->dtype.bits, rank = (unsigned)tensor->rank;
  const uintptr_t data = (uintptr_t)tensor->data + tensor->byte_offset;
  /* Float4 is smaller than its lanes: never here. */
  bool usable = (tensor->device.type == TW_DL_CUDA) & (dtype != TW_DTYPE_NONE) & (tensor->dtype.lanes == 1) &
                (bits >= 8) & (rank <= TW_MAX_RANK) & (tensor->strides != NULL) & (tensor->data != NULL) &
                !(data & ((bits >> 3) - 1));
  if (TW_UNLIKELY(!usable))
    return 0;
  uint64_t dims = 0, strides = 0, span = 0;
  bool good = true;
  words[0] = data;
  for (unsigned d = rank; d-- > 0;) {
    int64_t extent = tensor->shape[d], stride = tensor->strides[d];
    if (TW_UNLIKELY(extent == 1))
      stride = stride_of_one(stride, d == rank - 1, bits);
    else /* it steps over all of the ones after it */
      good &= ((uint64_t)extent - 2 < 2147483646) & ((uint64_t)stride - 1 < 1ull << 32) & ((uint64_t)stride > span);
    span += ((uint64_t)extent - 1) * (uint64_t)stride;
    words[1 + d] = (uint64_t)extent;
    words[1 + rank + d] = (uint64_t)stride;
    strides |= stride == 1 ? 0 : (uint64_t)stride;
    dims = dims << 3 | facts_of_dim(extent, stride, bits);
  }
  *out_facts = facts_of(dtype, rank, (void *)data, dims, strides, TW_FACT_WRITABLE);
  return good ? 1 + 2 * rank : 0;
}

void tw_array_remember(const tw_dl_tensor_t *tensor, const uint64_t *words, uint64_t facts, tw_known_array_t *known) {
  const size_t rank = (size_t)tensor->rank;
  known->device = tensor->device;
  known->rank = tensor->rank;
  memcpy(&known->dtype, &tensor->dtype, sizeof known->dtype);
  known->low = words[0] & TW_LOW_BITS;
  known->facts = facts;
  memcpy(known->words, words + 1, 2 * rank * sizeof *words);
  if (memcmp(known->words + rank, tensor->strides, rank * sizeof *words) != 0)
    known->dtype = 0;
}

/* float4.c - NumPy's float4 arrays, which keep one element in a byte where kernels keep two
 *
 * The one place where importing copies: the kernel gets a packed copy (low half first, rows padded to whole bytes), and
 * a writable array gets the elements back when the launch is over. CPU only, and meant for tests and small data: who
 * cares for time passes packed bytes as ArrayView(packed, "float4_e2m1fn"). */
#include "import.h"

#include <stdlib.h>
#include <string.h>

struct tw_packed_floats {
  tw_array_t loose; /* one element in a byte; strides in bytes */
  tw_array_t tight; /* the copy */
};

/* Calls `move` for every element with its byte, the byte of its pair, and where in that it lies. */
static void for_each(const struct tw_packed_floats *packed, void (*move)(uint8_t *loose, uint8_t *pair, int shift)) {
  const tw_array_t *loose = &packed->loose, *tight = &packed->tight;
  int64_t index[TW_MAX_RANK] = {0};
  for (int d = 0; d < loose->rank; d++)
    if (loose->shape[d] == 0)
      return;
  for (;;) {
    int64_t from = 0, to = 0;
    for (int d = 0; d < loose->rank; d++) {
      from += index[d] * loose->strides[d];
      to += index[d] * tight->strides[d];
    }
    move((uint8_t *)loose->data + from, (uint8_t *)tight->data + to / 2, to % 2 * 4);
    int d = loose->rank - 1;
    while (d >= 0 && ++index[d] == loose->shape[d])
      index[d--] = 0;
    if (d < 0)
      return;
  }
}

static void pack_one(uint8_t *loose, uint8_t *pair, int shift) {
  *pair = (uint8_t)((*pair & ~(15 << shift)) | (*loose & 15) << shift);
}

static void unpack_one(uint8_t *loose, uint8_t *pair, int shift) { *loose = *pair >> shift & 15; }

void tw_ext_unpack_float4(struct tw_packed_floats *packed) {
  if (!(packed->loose.flags & TW_ARRAY_READ_ONLY))
    for_each(packed, unpack_one);
  free(packed->tight.data);
  free(packed);
}

/* Row-major, each row padded to whole bytes; returns the bytes of all. */
static size_t set_strides(tw_array_t *tight) {
  int64_t stride = 1;
  for (int d = tight->rank - 1; d >= 0; d--) {
    tight->strides[d] = stride;
    stride *= tight->shape[d];
    if (d == tight->rank - 1)
      stride += stride % 2;
  }
  return (size_t)(stride / 2 + stride % 2);
}

int tw_ext_pack_float4(tw_array_t *array, tw_hold_t **holds) {
  tw_hold_t *hold = tw_ext_hold_new(holds);
  struct tw_packed_floats *packed = hold ? calloc(1, sizeof *packed) : NULL;
  if (!packed) {
    PyErr_NoMemory();
    return -1;
  }
  packed->loose = packed->tight = *array;
  size_t bytes = (set_strides(&packed->tight) + 64) & ~(size_t)63;
  packed->tight.data = aligned_alloc(64, bytes);
  if (!packed->tight.data) {
    free(packed);
    PyErr_NoMemory();
    return -1;
  }
  memset(packed->tight.data, 0, bytes);
  for_each(packed, pack_one);
  hold->packed = packed;
  *array = packed->tight;
  tw_status_t status = tw_array_finish(array);
  return status ? tw_ext_fail_status(status) : 0;
}

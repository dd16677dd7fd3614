/* tensor_map.c - descriptors of arrays for the GPU's tensor memory accelerator, as kernel parameters
 *
 * A kernel that copies tiles that way takes a map of each array before its words. The driver encodes a map
 * from the address, extents and strides of this launch; it is kept until they change. */
#include "module.h"

#include <string.h>

enum { MAP_WORDS = sizeof(CUtensorMap) / 8, STRIDE_STEP = 16 };

/* === encoding ================================================================================= */

/* The driver's type: the accelerator moves bits, so only their number matters, but where it rounds them. */
static int type_of(const tw_tensor_map_t *form) {
  unsigned bytes = form->bytes;
  return form->rounds ? CU_TENSOR_MAP_TFLOAT32
         : bytes == 1 ? CU_TENSOR_MAP_UINT8
         : bytes == 2 ? CU_TENSOR_MAP_UINT16
         : bytes == 4 ? CU_TENSOR_MAP_UINT32
                      : CU_TENSOR_MAP_UINT64;
}

static int swizzle_of(unsigned bytes) {
  return bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
         : bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
         : bytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                       : CU_TENSOR_MAP_SWIZZLE_NONE;
}

/* `words` are pointer, extents, strides of the array. */
static CUresult encode(const tw_driver_t *driver, const tw_tensor_map_t *form, const uint64_t *words,
                       CUtensorMap *out) {
  uint64_t extents[TW_MAX_MAP_RANK], strides[TW_MAX_MAP_RANK];
  uint32_t box[TW_MAX_MAP_RANK], steps[TW_MAX_MAP_RANK];
  for (int d = 0; d < form->rank; d++) {
    extents[d] = words[1 + form->axes[d]];
    box[d] = form->box[d];
    steps[d] = 1;
    if (d == 0)
      continue;
    /* Nothing lies along an extent of 1, where an array may have any stride. */
    strides[d - 1] = extents[d] == 1 ? STRIDE_STEP : words[1 + form->rank + form->axes[d]] * form->bytes;
  }
  return driver->tensor_map_encode(out, type_of(form), form->rank, (void *)(uintptr_t)words[0], extents, strides, box,
                                   steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(form->swizzle),
                                   CU_TENSOR_MAP_L2_128B, CU_TENSOR_MAP_OOB_ZEROS);
}

static tw_status_t encode_error(const tw_driver_t *driver, const tw_cuda_kernel_t *kernel, unsigned number,
                                CUresult result) {
  return tw_status_prefix(tw_driver_error(driver, TW_LAUNCH_ERROR, result, "describing an array to the GPU"),
                          "kernel %s, tensor map %u: ", kernel->name, number);
}

/* The map of one array into the parameters: the one of the last launch if the array is the same. */
static CUresult put_map(const tw_driver_t *driver, const tw_tensor_map_t *form, tw_map_slot_t *slot,
                        const uint64_t *words, bool keep, uint64_t *out) {
  size_t size = (1 + 2 * (size_t)form->rank) * sizeof *words;
  CUtensorMap fresh;
  if (TW_LIKELY(keep && slot->known && !memcmp(slot->words, words, size))) {
    memcpy(out, slot->map, sizeof slot->map);
    return CUDA_SUCCESS;
  }
  CUresult result = encode(driver, form, words, &fresh);
  if (result)
    return result;
  memcpy(out, &fresh, sizeof fresh);
  if (keep) {
    memcpy(slot->map, &fresh, sizeof fresh);
    memcpy(slot->words, words, size);
    slot->known = true;
  }
  return CUDA_SUCCESS;
}

tw_status_t tw_cuda_pack_maps(const tw_driver_t *driver, tw_cuda_kernel_t *kernel, int ordinal, const uint64_t *words,
                              size_t count, tw_packed_t *out) {
  /* Another thread may be using the kept maps. This launch then encodes its own, and keeps none. */
  bool keep = !atomic_flag_test_and_set_explicit(&kernel->maps_taken, memory_order_acquire);
  tw_status_t status = NULL;
  uint64_t *at = out->words + kernel->lead[ordinal];
  memset(out->words, 0, (size_t)kernel->lead[ordinal] * sizeof *out->words);
  for (unsigned i = 0; i < kernel->record.num_tensor_maps && !status; i++, at += MAP_WORDS) {
    const tw_tensor_map_t *form = &kernel->record.tensor_maps[i];
    if (TW_UNLIKELY(form->word + 1u + 2u * form->rank > count)) {
      status = TW_ERROR(TW_INTERNAL_ERROR, "kernel %s: tensor map %u is of an array that the launch has not",
                        kernel->name, i);
      break;
    }
    CUresult result = put_map(driver, form, &kernel->maps[i], words + form->word, keep, at);
    if (TW_UNLIKELY(result != CUDA_SUCCESS))
      status = encode_error(driver, kernel, i, result);
  }
  if (keep)
    atomic_flag_clear_explicit(&kernel->maps_taken, memory_order_release);
  if (TW_UNLIKELY(status != NULL))
    return status;
  memcpy(at, words, count * sizeof *words);
  out->count = (size_t)(at - out->words) + count;
  return NULL;
}

tw_status_t tw_cuda_find_maps(const tw_driver_t *driver, tw_cuda_kernel_t *kernel, int ordinal, CUfunction function) {
  if (!driver->tensor_map_encode || !driver->func_get_param_info)
    return TW_ERROR(TW_DRIVER_ERROR,
                    "kernel %s: the CUDA driver is too old: it supports CUDA %d.%d, and copies of tiles need CUDA "
                    "12.4; install a newer NVIDIA driver",
                    kernel->name, driver->version / 1000, driver->version % 1000 / 10);
  size_t first = 0, size = 0;
  CUresult result = driver->func_get_param_info(function, 0, &first, &size);
  if (result || size != sizeof(CUtensorMap) || first % 8 || first / 8 > TW_MAX_LEAD)
    return tw_status_prefix(tw_driver_error(driver, TW_INTERNAL_ERROR, result, "finding the tensor maps"),
                            "kernel %s: ", kernel->name);
  kernel->lead[ordinal] = (uint8_t)(first / 8);
  return NULL;
}

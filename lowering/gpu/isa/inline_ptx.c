/* inline_ptx.c - see inline_ptx.h */
#include "lowering/gpu/isa/inline_ptx.h"

#include <string.h>

static bool has(MlirStringRef text, const char *part) {
  const char *end = text.data + text.length, *at = text.data;
  size_t n = strlen(part);
  while ((at = memchr(at, part[0], (size_t)(end - at))) && (size_t)(end - at) >= n)
    if (!memcmp(at++, part, n))
      return true;
  return false;
}

bool tw_text_has(MlirStringRef text, const char *const *parts, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (has(text, parts[i]))
      return true;
  return false;
}

bool tw_ptx_is_fence(MlirStringRef text) {
  static const char *const fences[] = {"wgmma", "mbarrier", "cp.async", "setmaxn", "griddep"};
  static const char *const boxes[] = {"bulk_group", "wait_group.read"};
  return TW_TEXT_HAS(text, fences) && !TW_TEXT_HAS(text, boxes);
}

bool tw_ptx_sets_up(MlirStringRef text) {
  static const char *const set_up[] = {"@$2 mbarrier.init.", "fence.mbarrier_init.", "@$1 prefetch.tensormap ",
                                       "barrier.cluster."};
  for (size_t i = 0; i < sizeof set_up / sizeof *set_up; i++)
    if (text.length >= strlen(set_up[i]) && !memcmp(text.data, set_up[i], strlen(set_up[i])))
      return true;
  return false;
}

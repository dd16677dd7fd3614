/* Names of chips, and what they can do. */
#include "lowering/gpu/machine/target.h"
#include "lowering/ir.h"

#include "check.h"

#include <string.h>

static void expect(const char *name, const char *row, uint32_t with, uint32_t without) {
  tw_gpu_target_t target;
  CHECK(tw_gpu_target_named(tw_str(name), &target), "%s", name);
  CHECK(!strcmp(target.name, row), "%s", name);
  CHECK((target.features & with) == with, "%s", name);
  CHECK((target.features & without) == 0, "%s", name);
  CHECK(target.shared_bytes < target.shared_bytes_sm, "%s", name);
}

static void refuse(const char *name) {
  tw_gpu_target_t target;
  CHECK(!tw_gpu_target_named(tw_str(name), &target), "%s", name);
}

int main(void) {
  expect("sm_80", "sm_80", TW_GPU_CP_ASYNC | TW_GPU_LDMATRIX | TW_GPU_MMA_F16, TW_GPU_MMA_FP8 | TW_GPU_TMA);
  expect("sm_88", "sm_87", TW_GPU_MMA_F16, TW_GPU_MMA_FP8); /* unknown: the newest older one */
  expect("sm_89", "sm_89", TW_GPU_MMA_FP8, TW_GPU_TMA);
  expect("sm_90", "sm_90", TW_GPU_TMA | TW_GPU_MMA_F64_WIDE, TW_GPU_WGMMA);
  expect("sm_90a", "sm_90", TW_GPU_WGMMA, TW_GPU_TCGEN05);
  expect("sm_100a", "sm_100", TW_GPU_TCGEN05, TW_GPU_WGMMA);
  expect("sm_103f", "sm_100", TW_GPU_TMA, TW_GPU_TCGEN05);
  expect("sm_121a", "sm_120", TW_GPU_MMA_BLOCK_SCALE, TW_GPU_WGMMA | TW_GPU_TCGEN05);
  refuse("sm_75");
  refuse("sm_");
  refuse("sm_90x");
  refuse("sm_90aa");
  refuse("cpu");
  refuse("");
  if (failures == 0)
    puts("targets: ok");
  return failures != 0;
}

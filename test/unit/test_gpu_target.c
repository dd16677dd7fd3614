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

static void check_known(const char *name, bool known) {
  char why[400];
  bool refused = tw_gpu_target_refused(tw_str(name), sizeof why, why);
  CHECK(refused != known, "%s", name);
  CHECK(!refused || (strstr(why, name) && strstr(why, "sm_90[a], ") && strstr(why, "sm_121[a|f]")), "%s: %s", name,
        why);
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
  for (const char *const *name = (const char *[]){"sm_80", "sm_86", "sm_90", "sm_90a", "sm_100f", "sm_121a", NULL};
       *name; name++)
    check_known(*name, true);
  for (const char *const *name =
           (const char *[]){"", "sm90", "sm_75", "sm_20", "sm_80a", "sm_90f", "sm_99", "gpu", NULL};
       *name; name++)
    check_known(*name, false);
  if (failures == 0)
    puts("targets: ok");
  return failures != 0;
}

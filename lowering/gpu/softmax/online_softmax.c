/* online_softmax.c - tile-online-softmax: cheap exponents and lazy rescaling
 *
 * Each part has the IR before and after at the head of its file. Their order matters: folding collects the factors that
 * the soft cap leaves, and lazy rescaling reads the exp2 that folding makes. With the hint approximate = 0 nothing is
 * done: each changes how results are rounded. */
#include "lowering/gpu/softmax/online_softmax.h"

#include "lowering/launch_record.h"
#include "lowering/passes.h"

bool tw_run_online_softmax(MlirOperation func) {
  if (tw_hint_approximate(func, 1) == 0)
    return true;
  return tw_soft_cap(func) && tw_fold_scale(func) && tw_lazy_rescale(func);
}

/* online_softmax.c - tile-online-softmax: cheap exponents and lazy rescaling
 *
 * Each part has the IR before and after at the head of its file. Their order matters: folding collects the factors that
 * the soft cap leaves, and lazy rescaling reads the exp2 that folding makes. */
#include "lowering/gpu/softmax/online_softmax.h"

#include "lowering/passes.h"

bool tw_run_online_softmax(MlirOperation func) {
  return tw_soft_cap(func) && tw_fold_scale(func) && tw_lazy_rescale(func);
}

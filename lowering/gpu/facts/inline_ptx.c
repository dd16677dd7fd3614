/* inline_ptx.c - see inline_ptx.h */
#include "lowering/gpu/facts/inline_ptx.h"

static const char *const names[] = {
    [TW_PTX_NOTHING] = "nothing", [TW_PTX_EFFECT] = "effect", [TW_PTX_STORES] = "stores",
    [TW_PTX_FENCE] = "fence",     [TW_PTX_STEP] = "step",     [TW_PTX_SETS_UP] = "sets_up",
};

MlirAttribute tw_ptx_does_attr(MlirContext context, tw_ptx_does_t does) {
  return mlirStringAttrGet(context, tw_str(names[does]));
}

bool tw_ptx_does(MlirOperation op, tw_ptx_does_t what) {
  return mlirStringRefEqual(tw_attr_string(op, TW_PTX_DOES), tw_str(names[what]));
}

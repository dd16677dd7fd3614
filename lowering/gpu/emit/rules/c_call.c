/* c_call.c - rule: calls of functions of C++ */
#include "lowering/gpu/emit/c_entry.h"
#include "lowering/gpu/emit/rules.h"

TWG_RULE(TW_TILE_C_CALL, twg_call_c)

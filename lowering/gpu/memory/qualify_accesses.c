/* qualify_accesses.c - tile-qualify-accesses: chooses what PTX calls the qualifiers of accesses to arrays
 *
 * How long what a tile kernel reads stays in the L2 cache, and how strongly the atomics of a kernel of threads order.
 * Each part has the IR before and after at the head of its file. */
#include "lowering/gpu/memory/qualify_accesses.h"

#include "lowering/passes.h"

bool tw_run_qualify_accesses(MlirOperation func) { return tw_cache_hints(func) && tw_relax_atomics(func); }

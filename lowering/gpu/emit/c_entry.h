/* c_entry.h - functions and kernels that C++ calls, and calls of functions of C++: parameters and results
 * (lowering/c_values.h) */
#ifndef TILEWRIGHT_LOWERING_GPU_EMIT_C_ENTRY_H
#define TILEWRIGHT_LOWERING_GPU_EMIT_C_ENTRY_H

#include "lowering/gpu/emit/emitter.h"

/* The new function of a C signature, without a body: a kernel, or where `is_function` a function. */
MlirOperation twg_c_function(tw_emitter_t *e, MlirOperation old, bool is_function);
/* Gives the entry block its parameters, and the words that they hold; false, and an error at the op, where the kernel
 * wants another number of words. */
bool twg_words_of_c(tw_emitter_t *e, MlirOperation old, int num_words, MlirValue *words);
/* Ends a function that gives a value: that of the return. */
bool twg_return_to_c(tw_emitter_t *e, MlirOperation op);
/* A call of a function of C++, which is declared. */
bool twg_call_c(tw_emitter_t *e, MlirOperation op);

#endif

/* c_values.h - values as C passes them: the arguments and the result of a function of a C signature
 *
 * The attribute TW_C_SIGNATURE of a function is {parameters = [VALUE, …], result = VALUE}; the front end writes it for
 * the target's convention (python/tilewright/device/abi.py). A VALUE is
 *
 *     {size = 12, align = 4, pieces = [i32], counts = [3], starts = [0], places = [0, 4, 8], bytes = [4, 4, 4]}
 *
 * for a struct of three floats on a GPU. It travels in pieces: piece i is of a type, or an array of so many of it
 * (count 0: of itself), and lies at a start in the value's bytes. Of the numbers that a kernel's arguments consist of,
 * its words, word i lies at a place and has so many bytes. With `by_address` what travels is a pointer to the bytes,
 * with `on_stack` they lie where the stack pointer says; `signed` is an integer that C extends with its sign. A result
 * without places is none. */
#ifndef TILEWRIGHT_LOWERING_C_VALUES_H
#define TILEWRIGHT_LOWERING_C_VALUES_H

#include "lowering/ir.h"

#define TW_C_SIGNATURE "tile.c_signature"
#define TW_C_FUNCTION "tile.c_function" /* on one that is no kernel */

enum { TW_MAX_PIECES = 4, TW_MAX_PLACES = 64, TW_MAX_C_PARAMETERS = 32 };

typedef struct {
  int64_t size, align;
  bool by_address, on_stack, is_signed;
  int num_pieces, num_places;
  MlirType pieces[TW_MAX_PIECES]; /* an integer, a float, a vector, or an LLVM array of such */
  int64_t starts[TW_MAX_PIECES], places[TW_MAX_PLACES], bytes[TW_MAX_PLACES];
} tw_c_value_t;

typedef struct {
  int num_parameters;
  tw_c_value_t parameters[TW_MAX_C_PARAMETERS], result;
} tw_c_signature_t;

/* What travels: types, and attributes as llvm.func has them. */
typedef struct {
  int num_arguments, num_results;
  MlirType arguments[TW_MAX_PIECES * TW_MAX_C_PARAMETERS + 1], results[TW_MAX_PIECES];
  MlirAttribute argument_attrs, result_attrs;
} tw_c_form_t;

/* Reads the op's attribute; false, and an error there, where it is no signature. */
bool tw_read_c_signature(MlirOperation op, tw_c_signature_t *out);
/* The address of the result, if it goes there, is the first argument. */
void tw_c_form(MlirContext context, const tw_c_signature_t *signature, tw_c_form_t *out);
/* Words, integers of 64 bits, of a value that came in pieces. Allocations go to `entry`. */
void tw_words_of_pieces(const tw_builder_t *entry, const tw_builder_t *at, const tw_c_value_t *value,
                        const MlirValue *pieces, MlirValue *words);
/* The other way round, from words that are integers of their own width: the pieces, or the address of a copy. */
void tw_pieces_of_words(const tw_builder_t *entry, const tw_builder_t *at, const tw_c_value_t *value,
                        const MlirValue *words, MlirValue *pieces);
/* Writes a value at an address. */
void tw_store_words(const tw_builder_t *at, const tw_c_value_t *value, const MlirValue *words, MlirValue address);

/* How many words the parameters have. */
int tw_words_of_parameters(const tw_c_signature_t *signature);
/* The LLVM type of a function. */
MlirType tw_c_function_type(MlirContext context, const tw_c_form_t *form);
/* A call of a function of C++, which is declared: `words` are those of the arguments, each an integer of its own width,
 * `found` get those of the result, of 64 bits. */
void tw_call_c(const tw_builder_t *entry, const tw_builder_t *at, MlirOperation module, MlirStringRef callee,
               const tw_c_signature_t *signature, const MlirValue *words, MlirValue *found);

#endif

/* named_choices.h - the layouts that a class of values may have, in words of a program
 *
 *   func.func @k(...) attributes {tile.kernel, tile.hints = {"layout(p)" = "narrow"},
 *     tile.layouts = [{names = ["p", "x"], tile = "128x64xf32", taken = 1 : i32, kinds = ["access", "narrow"],
 *                      bits = ["register = [[0, 1]], ...", "..."], slots = array<i64: 120, 140>}]}
 *
 * A kind says where a layout comes from: `product` (a sum's, and what follows from it), `operand` (of a product),
 * `access` (to memory), `patch` (of two accesses that want different ones), `across` (warps along the dimensions of
 * reductions), `narrow` (half the vector), `deep` (fewer lanes along a dimension that is reduced), `words` (of elements
 * that go one by one), `copy` (of a gather), `plain` (nothing asks for another), `given` (the program's own bits).
 * Several of a kind have numbers: `access`, `access.2`. */
#ifndef TILEWRIGHT_LOWERING_GPU_LAYOUT_NAMED_CHOICES_H
#define TILEWRIGHT_LOWERING_GPU_LAYOUT_NAMED_CHOICES_H

#include "lowering/ir.h"
#include "lowering/layout/layout.h"
#include "lowering/layout/minimum.h"

typedef struct twl_choice {
  tw_layout_t layout;
  const char *kind;
  int64_t slots; /* that the kernel costs with it */
} twl_choice_t;

typedef struct twl_choices {
  int count, taken;
  twl_choice_t at[TW_MAX_CHOICES];
} twl_choices_t;

enum { TWL_MAX_LABEL = 24 };
/* The choice that a text names by its label or its bits; -1: none. */
int twl_choice_named(const twl_choices_t *choices, MlirStringRef text);

/* The layout whose bits a text is, if a tile of `like`'s type may have it: so many lanes and warps, every element with
 * an owner. Else false, and why. */
bool twl_read_bits(MlirStringRef text, const tw_layout_t *like, tw_layout_t *out, const char **why);

/* The labels, in a sentence: "access, narrow". */
void twl_labels(const twl_choices_t *choices, size_t size, char *out);

/* An entry of tile.layouts; `names` is a list of strings. */
MlirAttribute twl_choices_attribute(MlirAttribute names, MlirType tile, const twl_choices_t *choices);

#endif

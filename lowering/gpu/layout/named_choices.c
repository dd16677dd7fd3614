/* named_choices.c - layouts in words. See named_choices.h. */
#include "lowering/gpu/layout/named_choices.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

enum { MOST_BITS_TEXT = 1024 };

/* The kind, with its number where others of the kind come before it. */
static void label_of(const twl_choices_t *choices, int i, char out[TWL_MAX_LABEL]) {
  int number = 1;
  for (int k = 0; k < i; k++)
    number += !strcmp(choices->at[k].kind, choices->at[i].kind);
  if (number > 1)
    snprintf(out, TWL_MAX_LABEL, "%s.%d", choices->at[i].kind, number);
  else
    snprintf(out, TWL_MAX_LABEL, "%s", choices->at[i].kind);
}

/* What stands inside of #tile.linear<...>, as a null-terminated text of the caller's. */
static bool copy_text(MlirStringRef text, char out[MOST_BITS_TEXT]) {
  bool fits = text.length < MOST_BITS_TEXT && memchr(text.data, 0, text.length) == NULL;
  if (fits) {
    memcpy(out, text.data, text.length);
    out[text.length] = 0;
  }
  return fits;
}

static void shape_of(const tw_layout_t *layout, int64_t shape[TW_LAYOUT_MAX_RANK]) {
  for (int d = 0; d < layout->rank; d++)
    shape[d] = tw_layout_extent(layout, d);
}

bool twl_read_bits(MlirStringRef text, const tw_layout_t *like, tw_layout_t *out, const char **why) {
  char copy[MOST_BITS_TEXT];
  int64_t shape[TW_LAYOUT_MAX_RANK];
  shape_of(like, shape);
  *why = "it is neither a kind nor bits";
  if (memchr(text.data, '=', text.length) == NULL || !copy_text(text, copy) ||
      !tw_layout_parse(copy, like->rank, shape, out, why))
    return false;
  bool threads = out->bits[TW_LANE] == like->bits[TW_LANE] && out->bits[TW_WARP] == like->bits[TW_WARP] &&
                 out->bits[TW_BLOCK] == 0 && out->bits[TW_OFFSET] == 0;
  *why = !threads                  ? "it has other lanes or warps than the kernel"
         : !tw_layout_is_onto(out) ? "some element has no owner"
                                   : NULL;
  return *why == NULL;
}

int twl_choice_named(const twl_choices_t *choices, MlirStringRef text) {
  tw_layout_t bits;
  const char *why;
  bool is_bits = choices->count > 0 && twl_read_bits(text, &choices->at[0].layout, &bits, &why);
  for (int i = 0; i < choices->count; i++) {
    char label[TWL_MAX_LABEL];
    label_of(choices, i, label);
    if (tw_str_is(text, label) || (is_bits && tw_layout_equal(&bits, &choices->at[i].layout)))
      return i;
  }
  return -1;
}

void twl_labels(const twl_choices_t *choices, size_t size, char *out) {
  size_t used = 0;
  out[0] = 0;
  for (int i = 0; i < choices->count && used + TWL_MAX_LABEL + 2 < size; i++) {
    char label[TWL_MAX_LABEL];
    label_of(choices, i, label);
    used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "", label);
  }
}

static MlirAttribute bits_attribute(MlirContext context, const tw_layout_t *layout) {
  size_t size = tw_layout_print(layout, NULL, 0) + 1;
  char *text = tw_allocate(size, 1);
  tw_layout_print(layout, text, size);
  MlirAttribute made = mlirStringAttrGet(context, tw_str(text));
  free(text);
  return made;
}

static MlirNamedAttribute entry(MlirContext context, const char *name, MlirAttribute value) {
  return mlirNamedAttributeGet(mlirIdentifierGet(context, tw_str(name)), value);
}

MlirAttribute twl_choices_attribute(MlirAttribute names, MlirType tile, const twl_choices_t *choices) {
  MlirContext context = mlirAttributeGetContext(names);
  MlirAttribute kinds[TW_MAX_CHOICES], bits[TW_MAX_CHOICES];
  int64_t slots[TW_MAX_CHOICES];
  for (int i = 0; i < choices->count; i++) {
    char label[TWL_MAX_LABEL];
    label_of(choices, i, label);
    kinds[i] = mlirStringAttrGet(context, tw_str(label));
    bits[i] = bits_attribute(context, &choices->at[i].layout);
    slots[i] = choices->at[i].slots;
  }
  char text[160];
  tw_describe_tile(tile, sizeof text, text);
  intptr_t n = choices->count;
  MlirNamedAttribute entries[] = {
      entry(context, "names", names),
      entry(context, "tile", mlirStringAttrGet(context, tw_str(text))),
      entry(context, "taken", mlirIntegerAttrGet(tw_i32(context), choices->taken)),
      entry(context, "kinds", mlirArrayAttrGet(context, n, kinds)),
      entry(context, "bits", mlirArrayAttrGet(context, n, bits)),
      entry(context, "slots", mlirDenseI64ArrayGet(context, n, slots)),
  };
  return mlirDictionaryAttrGet(context, sizeof entries / sizeof *entries, entries);
}

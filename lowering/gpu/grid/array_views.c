/* array_views.c - arguments for arrays as a kernel accesses them. See array_views.h.
 *
 *   before   func.func @k(%A: memref<?xbf16, strided<[1]>> {tile.align = 16}, %n: i32 {tile.div = 16})
 *
 *   after    func.func @k(%A: ..., %n: ..., %rows: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16,
 *                         tile.shape_div = [1, 16], tile.stride_div = [16, 1], ...})
 *              attributes {tile.launch = {views = [{array = ..., word = 4, bounds = [...], pitch = [...]}]}}
 *
 * To all passes behind it is an array like any other. */
#include "lowering/gpu/grid/array_views.h"
#include "lowering/gpu/facts/access.h"
#include "lowering/gpu/facts/kernel_words.h"
#include "lowering/gpu/machine/copy_engine.h"

#include <string.h>

enum { MOST_DIVISOR_BITS = 10, SPARE_WORDS = 16 /* for what later passes add to the words */ };

/* ---- numbers of the launch ------------------------------------------------------------------------------ */

static int zeros_below(int64_t number) {
  int bits = 0;
  while (bits < MOST_DIVISOR_BITS && (number >> bits & 1) == 0)
    bits++;
  return bits;
}

static int divisor_bits_of(const tw_index_term_t *term) {
  int bits = zeros_below(term->factor);
  for (int i = 0; i < term->num_scalars; i++)
    bits += tw_argument_divisor_bits(term->scalars[i]);
  return bits < MOST_DIVISOR_BITS ? bits : MOST_DIVISOR_BITS;
}

static bool multiply(MlirOperation func, const tw_index_term_t *term, tw_factors_t *out) {
  out->constant = term->factor;
  for (int i = 0; i < term->num_scalars; i++)
    if (!tw_read_factors(func, term->scalars[i], out))
      return false;
  return term->factor > 0 && term->factor < INT32_MAX;
}

tw_launch_number_t tw_launch_number_of(MlirOperation func, const tw_index_sum_t *sum) {
  tw_launch_number_t out = {.factors = tw_no_factors, .divisor_bits = MOST_DIVISOR_BITS};
  const tw_index_term_t *product = NULL;
  int64_t plus = 0;
  bool one = tw_index_is_uniform(sum);
  for (int i = 0; i < sum->count; i++) {
    const tw_index_term_t *term = &sum->terms[i];
    int bits = divisor_bits_of(term);
    out.divisor_bits = bits < out.divisor_bits ? bits : out.divisor_bits;
    if (term->num_scalars == 0)
      plus = term->factor;
    else if (product)
      one = false;
    else
      product = term;
  }
  const tw_index_term_t constant = {.factor = plus};
  if (!one || !multiply(func, product ? product : &constant, &out.factors))
    return out;
  if (product && plus != 0) { /* (word + a) / b + plus */
    tw_extent_factor_t *at = &out.factors.at[0];
    at->plus += plus * at->by;
    if (out.factors.count != 1 || out.factors.constant != 1 || at->plus <= INT32_MIN || at->plus >= INT32_MAX)
      return out;
  }
  out.known = true;
  return out;
}

/* ---- the argument ------------------------------------------------------------------------------------------ */

static MlirNamedAttribute named(MlirContext context, const char *name, MlirAttribute value) {
  return mlirNamedAttributeGet(mlirIdentifierGet(context, tw_str(name)), value);
}

static int64_t fact_at(MlirOperation func, intptr_t argument, const char *name, int axis) {
  int64_t values[TW_MAX_RANK];
  MlirAttribute all = tw_arg_attr(func, argument, name);
  return !mlirAttributeIsNull(all) && tw_array_ints(all, values, TW_MAX_RANK) > axis ? values[axis] : 1;
}

static int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }

/* Rows that begin at multiples of 16 bytes can be copied as boxes if the array can. */
static bool has_map(MlirOperation func, intptr_t argument, MlirType type, const tw_launch_number_t *pitch) {
  enum { STRIDE_BITS = 128 };
  int bits = (int)tw_bits(mlirShapedTypeGetElementType(type));
  return !mlirAttributeIsNull(tw_arg_attr(func, argument, TW_HAS_MAP)) &&
         (!pitch || (bits << pitch->divisor_bits) % STRIDE_BITS == 0);
}

static MlirAttribute facts_of(MlirOperation func, MlirValue array, int rank, const tw_launch_number_t *bounds,
                              const tw_launch_number_t *pitch) {
  MlirContext context = mlirOperationGetContext(func);
  intptr_t argument = mlirBlockArgumentGetArgNumber(array), count = 0;
  int64_t extents[TW_MAX_MAP_RANK], strides[TW_MAX_MAP_RANK];
  for (int d = 0; d < rank; d++) {
    /* Where all rows count, or all of a row, nothing is known of how many. */
    extents[d] = pitch ? 1 : fact_at(func, argument, "tile.shape_div", d);
    if (bounds[d].known)
      extents[d] =
          pitch ? (int64_t)1 << bounds[d].divisor_bits : least(extents[d], (int64_t)1 << bounds[d].divisor_bits);
    strides[d] = !pitch ? fact_at(func, argument, "tile.stride_div", d) : d ? 1 : (int64_t)1 << pitch->divisor_bits;
  }
  MlirNamedAttribute facts[4];
  MlirAttribute align = tw_arg_attr(func, argument, "tile.align");
  if (!mlirAttributeIsNull(align))
    facts[count++] = named(context, "tile.align", align);
  facts[count++] = named(context, "tile.shape_div", mlirDenseI64ArrayGet(context, rank, extents));
  facts[count++] = named(context, "tile.stride_div", mlirDenseI64ArrayGet(context, rank, strides));
  if (has_map(func, argument, mlirValueGetType(array), pitch))
    facts[count++] = named(context, TW_HAS_MAP, mlirUnitAttrGet(context));
  return mlirDictionaryAttrGet(context, count, facts);
}

/* memref<?x?xT, strided<[?, 1]>> */
static MlirType rows_type(MlirType flat) {
  MlirContext context = mlirTypeGetContext(flat);
  int64_t shape[] = {mlirShapedTypeGetDynamicSize(), mlirShapedTypeGetDynamicSize()};
  int64_t strides[] = {mlirShapedTypeGetDynamicStrideOrOffset(), 1};
  return mlirMemRefTypeGet(mlirShapedTypeGetElementType(flat), 2, shape,
                           mlirStridedLayoutAttrGet(context, 0, 2, strides), mlirMemRefTypeGetMemorySpace(flat));
}

static bool write_view(tw_array_view_t *view, int rank, const tw_launch_number_t *bounds,
                       const tw_launch_number_t *pitch) {
  bool ok = !pitch || (pitch->known && tw_write_factors(&pitch->factors, view->pitch, &view->num_pitch));
  view->num_bounds = (uint32_t)rank;
  for (int d = 0; ok && d < rank; d++)
    ok =
        !bounds[d].known || tw_write_factors(&bounds[d].factors, view->bounds[d].factors, &view->bounds[d].num_factors);
  return ok;
}

static bool same_product(const tw_extent_factor_t *x, uint32_t num_x, const tw_extent_factor_t *y, uint32_t num_y) {
  return num_x == num_y && !memcmp(x, y, num_x * sizeof *x);
}

/* Wherever their words are. */
static bool show_the_same(const tw_array_view_t *x, const tw_array_view_t *y) {
  bool same = !memcmp(&x->array, &y->array, sizeof x->array) && x->num_bounds == y->num_bounds &&
              same_product(x->pitch, x->num_pitch, y->pitch, y->num_pitch);
  for (uint32_t d = 0; same && d < x->num_bounds; d++)
    same = same_product(x->bounds[d].factors, x->bounds[d].num_factors, y->bounds[d].factors, y->bounds[d].num_factors);
  return same;
}

/* The argument of a view that shows the same. */
static MlirValue find_view(MlirOperation func, const tw_array_view_t *all, size_t count, const tw_array_view_t *view) {
  MlirBlock entry = tw_region_block(func, 0);
  for (size_t i = 0; i < count; i++)
    for (intptr_t a = 0; show_the_same(view, &all[i]) && a < mlirBlockGetNumArguments(entry); a++)
      if (tw_first_word(mlirBlockGetArgument(entry, a)) == all[i].word)
        return mlirBlockGetArgument(entry, a);
  return (MlirValue){NULL};
}

MlirValue tw_view_of(MlirOperation func, MlirValue array, int rank, const tw_launch_number_t *bounds,
                     const tw_launch_number_t *pitch) {
  tw_array_view_t all[TW_MAX_VIEWS + 1], view = {0};
  size_t count = tw_launch_get_views(func, all);
  view.array = tw_array_place(array);
  if (!write_view(&view, rank, bounds, pitch))
    return (MlirValue){NULL};
  MlirValue found = find_view(func, all, count, &view);
  if (!mlirValueIsNull(found) || count == TW_MAX_VIEWS)
    return found;
  MlirBlock entry = tw_region_block(func, 0);
  int words = 0;
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(entry); i++)
    words += tw_words_of(mlirValueGetType(mlirBlockGetArgument(entry, i)));
  if (words + 1 + 2 * rank + SPARE_WORDS > TW_MAX_WORDS)
    return (MlirValue){NULL};
  MlirType type = mlirValueGetType(array);
  MlirAttribute facts = facts_of(func, array, rank, bounds, pitch);
  view.word = (uint16_t)words;
  all[count] = view;
  tw_launch_set_views(func, all, count + 1);
  return tw_add_argument(func, pitch ? rows_type(type) : type, facts);
}

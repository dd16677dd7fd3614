/* promotion.c - the dtypes of tile code and how two of them meet; the data is in promotion.def */
#include "tilewright/dialect.h"

#include "mlir-c/BuiltinTypes.h"

#include <string.h>

typedef struct {
  const char *name, *spelling;
  char kind;
} dtype_row_t;

static const dtype_row_t dtypes[TW_NUM_ELEMS] = {
#define TW_ELEM(symbol, name, kind, spelling) [TW_##symbol] = {name, spelling, kind},
#include "promotion.def"
#undef TW_ELEM
};

/* The enum of dialect.h counts the rows in their order. */
enum {
#define TW_ELEM(symbol, name, kind, spelling) ROW_##symbol,
#include "promotion.def"
#undef TW_ELEM
};
#define TW_ELEM(symbol, name, kind, spelling)                                                                          \
  _Static_assert((int)TW_##symbol == (int)ROW_##symbol, "tw_elem_t and promotion.def differ");
#include "promotion.def"
#undef TW_ELEM

#define TW_ERR TW_NO_ELEM
static const int8_t table[TW_NUM_ELEMS][TW_NUM_ELEMS] = {
#define TW_PROMOTE(row, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r)                                          \
  [TW_##row] = {TW_##a, TW_##b, TW_##c, TW_##d, TW_##e, TW_##f, TW_##g, TW_##h, TW_##i,                                \
                TW_##j, TW_##k, TW_##l, TW_##m, TW_##n, TW_##o, TW_##p, TW_##q, TW_##r},
#include "promotion.def"
#undef TW_PROMOTE
};

const char *tw_elem_name(tw_elem_t dtype) { return dtype < 0 ? "an unsupported type" : dtypes[dtype].name; }

char tw_elem_kind(tw_elem_t dtype) { return dtype < 0 ? '?' : dtypes[dtype].kind; }

tw_elem_t tw_elem_named(const char *name) {
  for (int i = 0; i < TW_NUM_ELEMS; i++)
    if (!strcmp(dtypes[i].name, name) || !strcmp(dtypes[i].spelling, name))
      return (tw_elem_t)i;
  return TW_NO_ELEM;
}

const char *tw_elem_spelling(tw_elem_t dtype) { return dtype < 0 ? "" : dtypes[dtype].spelling; }

static tw_elem_t of_integer(MlirType type) {
  bool is_unsigned = mlirIntegerTypeIsUnsigned(type);
  if (mlirIntegerTypeIsSigned(type))
    return TW_NO_ELEM;
  switch (mlirIntegerTypeGetWidth(type)) {
  case 1: return is_unsigned ? TW_NO_ELEM : TW_b1;
  case 8: return is_unsigned ? TW_u8 : TW_i8;
  case 16: return is_unsigned ? TW_u16 : TW_i16;
  case 32: return is_unsigned ? TW_u32 : TW_i32;
  case 64: return is_unsigned ? TW_u64 : TW_i64;
  default: return TW_NO_ELEM;
  }
}

static tw_elem_t of_float(MlirType type) {
  static const struct {
    bool (*is)(MlirType);
    tw_elem_t dtype;
  } kinds[] = {
      {mlirTypeIsAF32, TW_f32},
      {mlirTypeIsABF16, TW_bf},
      {mlirTypeIsAF16, TW_f16},
      {mlirTypeIsAF64, TW_f64},
      {mlirTypeIsATF32, TW_tf32},
      {mlirTypeIsAFloat8E4M3FN, TW_f8e4m3},
      {mlirTypeIsAFloat8E5M2, TW_f8e5m2},
      {mlirTypeIsAFloat8E8M0FNU, TW_f8e8m0},
      {mlirTypeIsAFloat4E2M1FN, TW_f4e2m1},
  };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (kinds[i].is(type))
      return kinds[i].dtype;
  return TW_NO_ELEM;
}

tw_elem_t tw_elem_of(MlirType type) {
  if (mlirTypeIsAShaped(type))
    type = mlirShapedTypeGetElementType(type);
  if (mlirTypeIsAInteger(type))
    return of_integer(type);
  return mlirTypeIsAFloat(type) ? of_float(type) : TW_NO_ELEM;
}

MlirType tw_elem_type(MlirContext context, tw_elem_t dtype) {
  return dtype < 0 ? (MlirType){NULL}
                   : mlirTypeParseGet(context, mlirStringRefCreateFromCString(dtypes[dtype].spelling));
}

tw_elem_t tw_promote(tw_elem_t a, tw_elem_t b) { return a < 0 || b < 0 ? TW_NO_ELEM : (tw_elem_t)table[a][b]; }

/* --- Loosely typed constants ------------------------------------------------------------------------ */

/* Largest magnitude of an integer dtype's values with the constant's sign. */
static uint64_t limit(tw_elem_t dtype, bool negative) {
  bool is_signed = dtype >= TW_i8;
  unsigned bits = 8u << (dtype - (is_signed ? TW_i8 : TW_u8));
  if (negative)
    return is_signed ? (uint64_t)1 << (bits - 1) : 0;
  return UINT64_MAX >> (64 - bits + (is_signed ? 1 : 0));
}

static bool holds(tw_elem_t dtype, tw_constant_t value) { return value.magnitude <= limit(dtype, value.negative); }

tw_elem_t tw_constant_elem(tw_constant_t value) {
  if (value.kind == TW_CONSTANT_BOOL)
    return TW_b1;
  if (value.kind == TW_CONSTANT_FLOAT)
    return TW_f32;
  static const tw_elem_t order[] = {TW_i32, TW_i64, TW_u64};
  for (int i = 0; i < 3 && !value.too_big; i++)
    if (holds(order[i], value))
      return order[i];
  return TW_NO_ELEM;
}

/* bool < integer < float, narrow formats being floats. */
static int category(tw_elem_t dtype) {
  char kind = tw_elem_kind(dtype);
  return kind == 'b' ? 0 : kind == 'i' ? 1 : 2;
}

tw_elem_t tw_promote_constant(tw_constant_t value, tw_elem_t other) {
  tw_elem_t own = tw_constant_elem(value);
  if (own < 0 || other < 0)
    return TW_NO_ELEM;
  if (category(own) != category(other))
    return category(own) > category(other) ? own : other;
  return category(own) == 1 && !holds(other, value) ? TW_NO_ELEM : other;
}

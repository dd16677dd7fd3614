/* format.h - the formats of tile.print: text, "{}" or "{:spec}" for a value, and doubled braces for braces
 *
 * A spec is what stands between "%" and the end of a conversion of C's printf: flags, a width, a precision, and one of
 * d i u o x X for integers, e E f F g G for floats. */
#ifndef TILEWRIGHT_DIALECT_FORMAT_H
#define TILEWRIGHT_DIALECT_FORMAT_H

#include "mlir-c/Support.h"

#include <stdbool.h>

enum { TW_SPEC_BYTES = 16 }; /* no spec is longer */

typedef enum { TW_FORMAT_END, TW_FORMAT_TEXT, TW_FORMAT_VALUE, TW_FORMAT_BAD } tw_format_kind_t;

/* Takes the next part off `rest`: its text, or its spec, which is empty for "{}". */
tw_format_kind_t tw_format_next(MlirStringRef *rest, MlirStringRef *part);
bool tw_spec_is_of_float(MlirStringRef spec);

#endif /* TILEWRIGHT_DIALECT_FORMAT_H */

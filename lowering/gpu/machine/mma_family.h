/* mma_family.h - what a family of instructions for products is asked: the seam between generations of chips
 *
 * A family is a row of the table in isa/families.c: multiply-adds, mma.sync, wgmma. Passes ask it what they must know
 * of a product, never which one it is, and never which chip it runs on. Every answer is a function of the op and the
 * number of warps only, so that each pass asks anew and none hands it on.
 *
 * A product is `tile.mma` until its operands lie where its family wants them. If the family is asynchronous it then
 * becomes `tile.async_mma`, which only starts it, and a `tile.mma_wait`. No chip has two such families. */
#ifndef TILEWRIGHT_LOWERING_GPU_MACHINE_MMA_FAMILY_H
#define TILEWRIGHT_LOWERING_GPU_MACHINE_MMA_FAMILY_H

#include "lowering/gpu/machine/target.h"
#include "lowering/ir.h"
#include "lowering/layout/layout.h"

#include <stdio.h>

/* Attributes of a tile.mma that tile-select-mma gave to an asynchronous family: its name; where the operands are, a
 * letter each (tw_mma_place_t); that an operand in place is the transpose of the tile that is loaded for it; and how
 * much of k the instruction sums, where these sums are added up outside of it. */
#define TW_MMA_FAMILY "tile.family"
#define TW_MMA_PLACES "tile.places"
#define TW_MMA_TRANSPOSED_LHS "tile.transposed_lhs"
#define TW_MMA_TRANSPOSED_RHS "tile.transposed_rhs"
#define TW_MMA_PROMOTED "tile.promoted"
#define TW_MMA_PAIRED_ROWS "tile.paired_rows"
/* Unit attribute of a tile.mma and of the tile.async_mma that it becomes: groups of warps share few columns of it. */
#define TW_MMA_NARROW_GROUPS "tile.narrow_groups"
/* Unit attribute of a tile.mma and of the tile.async_mma that it becomes: its steps of k shall start one by one, if it
 * runs on into its loop's next iteration; and of a tile.async_mma, that they do. */
#define TW_MMA_STEPS "tile.steps"
#define TW_STEPPED "stepped"
/* Unit attributes of a kernel: it has such a product; it shall have none (tile-plan-block). */
#define TW_HAS_ASYNC_MMA "tile.async_mma"
#define TW_NO_ASYNC_MMA "tile.no_async_mma"

/* The layouts of a product's tiles. */
typedef struct tw_mma_plan {
  tw_layout_t acc, lhs, rhs;
} tw_mma_plan_t;

typedef enum tw_mma_place {
  TW_PLACE_NONE = 0,
  TW_PLACE_SHARED = 's',    /* in the buffer that it is loaded into */
  TW_PLACE_REGISTERS = 'r', /* in the layout of the plan; lhs only */
  TW_PLACE_WRITTEN = 'w',   /* in a buffer of its own, written from registers */
} tw_mma_place_t;

/* How an operand is written: the buffer, and the layout of registers that suits both it and where they get it from. */
typedef struct tw_mma_written {
  bool transposes; /* neighbours lie side by side along one axis where registers get it from, along another in it */
  tw_layout_t registers;
  MlirType buffer;
} tw_mma_written_t;

/* How groups of warps share a sum: parts along its rows and columns, and how many groups compute the same. */
typedef struct tw_mma_split {
  int m, n, same;
} tw_mma_split_t;

enum { TW_MAX_SPLITS = 8 };

/* What is asked of products that run by themselves, on operands in shared memory. */
typedef struct tw_async_mma {
  int warps;         /* of a group, which starts a product together */
  int rows;          /* of a group's instruction */
  int columns;       /* the most of them */
  int least_columns; /* the fewest */
  int narrow;        /* columns: with so few shared memory is as busy as the Tensor Core, with both operands there */
  int lanes_per_row, columns_per_lane; /* a row of a sum in registers: neighbours in a lane, and lanes with them */
  bool by_proxy;                       /* it reads shared memory past what threads have written: that takes a fence */
  /* Whether so many warps can share a sum of these extents; `narrow`: the product has TW_MMA_NARROW_GROUPS. */
  bool (*split)(int64_t rows, int64_t columns, bool narrow, int num_warps, tw_mma_split_t *out);
  /* Whether a tile.mma may have that attribute: its right operand may be cut between any two groups of columns. */
  bool (*has_columns_apart)(MlirOperation mma);
  /* Where operand 0 or 1 of a tile.mma would be, and whether as the transpose of what is loaded; none: nowhere. */
  tw_mma_place_t (*place)(MlirOperation mma, int operand, bool *transposed);
  tw_mma_written_t (*written)(MlirOperation mma, int operand, int num_warps);
  /* Whether it reads the left operand that was written as it lies. */
  bool (*reads_written_lhs)(MlirOperation mma);
  /* Whether a thread should have two neighbouring rows of its left operand in registers, and so of the sum; null:
   * never. */
  bool (*pairs_rows)(MlirOperation mma);
  /* How much of k an instruction may sum up before its sums are promoted to a wider type; 0: all. */
  int (*promotion)(MlirOperation mma);
  /* Registers that a thread needs for a tile.async_mma beside its sums and operands. */
  int64_t (*extra_words)(MlirOperation product);
  /* Whether a tile.async_mma may be under way while its loop's next iteration begins. That registers which it reads are
   * not written before is left to the caller. */
  bool (*may_run_on)(MlirOperation product);
  /* Whether a tile.async_mma takes several steps of k from registers, which may start one by one (TW_STEPPED). */
  bool (*has_steps)(MlirOperation product);
} tw_async_mma_t;

struct tw_emitter;

typedef struct tw_mma_family {
  const char *name; /* in the IR and in remarks */
  tw_gpu_feature_t needs;
  const tw_async_mma_t *async; /* null: a tile.mma is done when the next op begins */
  /* Null if it takes the product; else why not: text for a remark. */
  const char *(*why_not)(MlirOperation mma, int num_warps);
  /* Layouts of the sum and of operands in registers; what is written gets that of `written`. */
  void (*plan)(MlirOperation mma, int num_warps, tw_mma_plan_t *out);
  /* The ways in which so many warps may share the sum, by rows and columns; how many. Null: there is one. */
  int (*splits)(MlirOperation mma, int num_warps, tw_mma_split_t out[TW_MAX_SPLITS]);
  /* "m16n8k16 on 8 warps"; empty where there is nothing to say. */
  void (*describe)(MlirOperation product, int num_warps, size_t size, char *out);
  /* Rules of tile-to-nvvm, for tile.mma or, of an asynchronous family, tile.async_mma and its wait. */
  bool (*emit)(struct tw_emitter *e, MlirOperation product);
  bool (*emit_wait)(struct tw_emitter *e, MlirOperation wait);
} tw_mma_family_t;

/* The one of `splits` that a text names, "4x2"; -1: none. */
static inline int tw_split_named(const tw_mma_split_t *splits, int count, MlirStringRef text) {
  for (int i = 0; i < count; i++) {
    char name[32];
    snprintf(name, sizeof name, "%dx%d", splits[i].m, splits[i].n);
    if (tw_str_is(text, name))
      return i;
  }
  return -1;
}

#endif /* TILEWRIGHT_LOWERING_GPU_MACHINE_MMA_FAMILY_H */

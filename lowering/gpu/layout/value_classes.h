/* value_classes.h - values that share a layout, what carries layouts between them, and what each could be
 *
 * For tile-assign-layouts (assign_layouts.c), of which value_classes.c finds the classes of values, choose_layouts.c
 * chooses a layout for each, and assign_layouts.c writes the choice into the IR. */
#ifndef TILEWRIGHT_LOWERING_GPU_LAYOUT_VALUE_CLASSES_H
#define TILEWRIGHT_LOWERING_GPU_LAYOUT_VALUE_CLASSES_H

#include "lowering/gpu/machine/target.h"
#include "lowering/ir.h"
#include "lowering/layout/layout.h"

/* Values that an elementwise op, a loop or a branch ties together form a class with one layout. Constants, splats and
 * iotas ("flexible") belong to no class: each use gets its own, in the layout that it needs. */
typedef struct twl_node {
  MlirValue value;
  int number;         /* of the class, counted from 0; this and what follows hold of its first node */
  tw_layout_t layout; /* as chosen */
  uint32_t reduced;   /* axes of reductions and scans over it */
} twl_node_t;

/* A shape op or reduction from one class to another. */
typedef struct twl_edge {
  MlirOperation op;
  int from, to; /* nodes */
} twl_edge_t;

typedef struct twl_classes {
  MlirContext context;
  tw_gpu_target_t target;
  int num_warps;
  twl_node_t *nodes;
  twl_edge_t *edges;
  MlirOperation *ops; /* in program order */
  size_t num_edges, num_ops;
  int num_classes;
  tw_sets_t sets;    /* of nodes */
  tw_map_t index;    /* value -> number of its node */
  tw_map_t promoted; /* loads and gathers that tile-promote-memory will make copies to shared memory, by address */
} twl_classes_t;

/* Collects the ops of a function and the classes of their values; `twl_number_classes` when all is said. */
void twl_classify(twl_classes_t *c, MlirOperation function);
void twl_free(twl_classes_t *c);

bool twl_is_flexible(MlirValue value);
bool twl_has_class(MlirValue value);
/* The class of a value or of a node. The pointer holds until the next new value. */
twl_node_t *twl_class_of(twl_classes_t *c, MlirValue value);
twl_node_t *twl_class_of_node(twl_classes_t *c, int node);
/* A new value that shall be of the class of an old one. */
void twl_add_to_class(twl_classes_t *c, MlirValue stand_in, MlirValue value);

bool twl_is_elementwise(MlirOperation op);
/* The first tile among results and operands that has a class; all others have its shape. */
MlirValue twl_representative(MlirOperation op);
/* The tile that a reduction or scan takes: of several, which share a class, one that has a class, if one has. */
MlirValue twl_reduced(MlirOperation op);
/* The tile that an access to memory moves; null for scalars and for other ops. */
MlirValue twl_accessed(MlirOperation op);

/* How layouts cross shape ops (forward, reductions too): that of the result from that of the operand, and back. */
tw_layout_t twl_forward(MlirOperation op, const tw_layout_t *from);
tw_layout_t twl_backward(MlirOperation op, const tw_layout_t *to);

/* ---- choose_layouts.c ----------------------------------------------------------------------------- */

/* Chooses the layout of every class: that of least cost, or where the kernel has the hint layout_rank = n, the n-th
 * runner-up; what hints of tiles ask for stays. False after an error: they ask for what cannot be. */
bool twl_choose(twl_classes_t *c, MlirOperation function);

/* The layout in which an op should make an access whose tile has `layout` (null: a flexible one): that one, or one of
 * its own and a conversion. */
tw_layout_t twl_access_layout(twl_classes_t *c, MlirOperation op, const tw_layout_t *layout);
/* Whether tile-promote-memory will make copies to shared memory of a gather; the layout of its indices then. */
bool twl_is_copied_gather(const twl_classes_t *c, MlirOperation op);
tw_layout_t twl_copy_layout(const twl_classes_t *c, MlirOperation gather);
/* In which a reduction or scan takes its operand. */
tw_layout_t twl_reduction_layout(twl_classes_t *c, MlirOperation op, const tw_layout_t *layout);
/* Of a value about which nothing else is known. */
tw_layout_t twl_default_layout(twl_classes_t *c, MlirValue value);
/* Whether operand i of a product is converted to the layout of the instruction; else it comes from memory, or any
 * layout will do. */
bool twl_needs_operand_layout(MlirOperation mma, int i);

#endif

/* equal_groups.h - which neighbours are equal in each iteration, in the tiles that a loop carries
 *
 * A count by element of what a mask lets through differs between vectors, but not within one whose elements are inside
 * or outside of the array together:
 *
 *   scf.for %j ... iter_args(%count = zeros) {
 *     %mask = arith.cmpi slt, %columns, %n             // by index_facts.h, groups of 16 are equal
 *     %one = arith.select %mask, ones, zeros           // so they are here,
 *     %more = arith.addf %count, %one                  // here, as they are in zeros,
 *     scf.yield %more                                  // and in what the next iteration finds
 *   }
 *
 * A thread then has one register for them, and computes once what depends on them alone. */
#ifndef TILEWRIGHT_LOWERING_GPU_FACTS_EQUAL_GROUPS_H
#define TILEWRIGHT_LOWERING_GPU_FACTS_EQUAL_GROUPS_H

#include "lowering/ir.h"

/* Of each value that an scf.for carries: aligned groups of how many neighbours along `dim` are equal, before the first
 * iteration and behind each, as log2. The caller frees it. */
int *tw_carried_groups(MlirOperation loop, int dim);

/* The bits of a register's number that only tell apart neighbours along `dim` in aligned groups of 2^log2. */
int tw_registers_within(MlirType tile, int dim, int log2);

#endif

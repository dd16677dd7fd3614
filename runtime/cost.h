/* cost.h - how long the blocks of a launch take, estimated from the compiler's figures of an iteration
 *
 * A launch is as long as its busiest multiprocessor computes, or as the L2 cache takes to deliver what all blocks load,
 * or as the memory takes to deliver the arrays themselves, each once: whichever is longest. The figures are those of
 * the device's chip (tilewright/targets.def); an H200's were found from products of 21 shapes with tiles sliced and
 * shared in every way (test/data/plans.csv). Private to runtime/. */
#ifndef TILEWRIGHT_RUNTIME_COST_H
#define TILEWRIGHT_RUNTIME_COST_H

#include "module.h"

static inline int64_t tw_divide_up(int64_t x, int64_t y) { return (x + y - 1) / y; }

/* How often a loop runs in a launch with these words. */
static inline int64_t tw_steps_of_launch(const tw_steps_t *loop, const uint64_t *words) {
  return loop->word < 0 ? loop->steps : tw_divide_up((int64_t)words[loop->word], loop->per_step);
}

/* Cycles until L2 and DRAM have delivered all loads, from arrays of this size in bytes. */
static inline int64_t tw_delivery_cycles(int64_t loads, int64_t arrays, const tw_device_t *device) {
  int64_t units = device->sm_count, least = arrays < loads ? arrays : loads;
  int64_t cache = loads / (units * device->machine->l2_bytes);
  int64_t memory = least / (units * device->machine->memory_bytes);
  return cache > memory ? cache : memory;
}

/* The same of a launch whose busiest multiprocessor computes for `own` cycles. */
static inline int64_t tw_launch_cycles(int64_t own, int64_t loads, int64_t arrays, const tw_device_t *device) {
  int64_t delivery = tw_delivery_cycles(loads, arrays, device);
  return own > delivery ? own : delivery;
}

#endif

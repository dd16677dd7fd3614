/* interrupt.h - stops a launch on the CPU from outside, as Ctrl-C does
 *
 * Loops of kernels, and the loop over blocks, look at one flag (tw_kernel_attention). A clock sets it twenty times a
 * second while launches run. A kernel that sees it calls tw_kernel_look, and there the thread of the caller asks
 * whether it has been interrupted. If so, every thread of the launch leaves its kernel where it stands, and the launch
 * ends. */
#ifndef TILEWRIGHT_RUNTIME_INTERRUPT_H
#define TILEWRIGHT_RUNTIME_INTERRUPT_H

#include "tilewright/kernel_calls.h"
#include "tilewright/runtime.h"

#include <stdatomic.h>

/* What a launch shares with the threads that run it. */
typedef struct {
  tw_cpu_watch_t *watch; /* null: nobody asks */
  _Atomic bool stopped;
} tw_interrupt_t;

/* A thread that runs a launch. It begins with
 *
 *     tw_run_enter(&run);
 *     if (!__builtin_setjmp(run.way_out))
 *       ... kernels ...
 *     tw_run_leave(&run);
 */
typedef struct tw_run {
  struct tw_run *outer; /* a signal handler launches in the middle of another launch */
  tw_interrupt_t *interrupt;
  bool is_caller;
  void *way_out[5];
} tw_run_t;

void tw_run_enter(tw_run_t *run);
void tw_run_leave(tw_run_t *run);

/* Around a launch that is watched. */
void tw_watch_begin(void);
void tw_watch_end(void);
/* Asks, unless it has stopped; of the caller's thread only. */
void tw_interrupt_ask(tw_interrupt_t *interrupt);

enum { TW_TICK_NANOSECONDS = 50000000 };

#endif

/* machine.h - what is known of a GPU: the columns of targets.def, which the compiler, the launcher and the tuner read
 *
 * Rates are bytes or operations a clock of one multiprocessor, latencies are clocks, unless their names say otherwise.
 * Pure C, for all layers. */
#ifndef TILEWRIGHT_MACHINE_H
#define TILEWRIGHT_MACHINE_H

/* The same on every chip of the table: lanes of a warp, warps of a warpgroup, the most warps of a block, schedulers of
 * a multiprocessor, and bytes of a line of the caches and of a part of it that memory delivers. */
enum { TW_WARP_LANES = 32, TW_WARP_LANE_BITS = 5, TW_WARPGROUP_WARPS = 4, TW_BLOCK_WARPS = 32, TW_SCHEDULERS = 4 };
enum { TW_LINE_BYTES = 128, TW_SECTOR_BYTES = 32 };

typedef struct tw_machine {
  int shared_bytes;       /* that a block may have */
  int shared_bytes_sm;    /* of a multiprocessor; the driver keeps some for each block */
  int registers_sm;       /* of 32 bits */
  int thread_registers;   /* the most of a thread */
  int threads_sm;         /* the most that a multiprocessor holds */
  int multiprocessors;    /* of the largest GPU with this chip */
  int cluster_blocks;     /* the most of a cluster that every GPU grants; 1: there are none */
  int tensor_memory;      /* bytes of a multiprocessor's tensor memory */
  int tensor_flop;        /* of products of 16-bit numbers */
  int fma_flop;           /* of f32 without Tensor Cores */
  int l2_bytes;           /* that L2 brings to each multiprocessor when all of them load */
  int l2_line_bytes;      /* the same of whole lines of tiles, and nothing besides */
  int l2_bytes_alone;     /* that it brings to one */
  int memory_bytes;       /* that memory brings to each when all of them load */
  int shared_rate;        /* bytes of shared memory */
  int step_clocks;        /* of a loop's iteration that waits for its tiles and lets them go */
  int memory_ns, wave_ns; /* until memory answers under load; to fill the machine with blocks and drain it */
  int iteration_ns;       /* that a loop's iteration waits, where no other block goes on */
  int meeting_clocks;     /* until a block sees what others wrote last to add it up */
  int part_clocks;        /* until it sees the first of a part */
  int sum_bytes;          /* that a multiprocessor writes or reads of such sums */
  int op_clocks_alone;    /* of an elementwise op of a warp that has a scheduler to itself, and waits for itself */
  int op_clocks;          /* the same where another warp goes on meanwhile */
  /* Issue slots, quarters of a clock in which a scheduler issues one instruction of arithmetic: of a shuffle, a pass
   * over the banks of shared memory, a function such as exp on one register; of a line and a sector that an access to
   * memory touches, between what L2 and memory bring to a multiprocessor, because a line that is not used as a whole
   * costs nearly as much as one that is; and until a barrier lets a warp go on. */
  int shuffle_slots, bank_slots, function_slots, line_slots, sector_slots, barrier_slots;
} tw_machine_t;

#endif /* TILEWRIGHT_MACHINE_H */

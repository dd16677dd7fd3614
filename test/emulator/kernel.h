/* kernel.h - what the emulator is told of a kernel: its code and the facts of its launch record. emulate.py writes one
 * such record for each kernel; all kernels of a process share the files in C beside this one, and what they keep. */
#ifndef TILEWRIGHT_TEST_EMULATOR_KERNEL_H
#define TILEWRIGHT_TEST_EMULATOR_KERNEL_H

#include <stdint.h>

enum { MAX_RANK = 5, MAX_FACTORS = 4 };

/* (a word of the arguments + plus) / by; there is no word where it is negative. */
typedef struct {
  int word, plus, by;
} factor_t;

typedef struct {
  int num;
  factor_t at[MAX_FACTORS];
} factors_t;

/* An array as the kernel accesses it, whose words follow those of the arguments. */
typedef struct {
  int from, word, rank;
  factors_t bounds[MAX_RANK], pitch;
} view_t;

typedef struct {
  int word, rank, bytes, rounds, swizzle, axes[MAX_RANK], box[MAX_RANK];
} map_form_t;

typedef struct {
  void (*call)(const int64_t *words);
  int num_threads; /* of a block; 0: the launch says it, of a SIMT kernel */
  int num_words, persistent;
  int joined; /* blocks of the program that start as one; 0: each for itself */
  int parts, dynamic;
  int members;   /* blocks of a cluster */
  int together;  /* whether blocks wait for each other: all of a grid run at a time */
  int exchanged; /* whether axes 0 and 1 of the grid start in each other's place */
  int grid_scale[3], shared_bytes, registers, dependent;
  int tile_grid, any_grid; /* whether the program counts tiles in one number, and whether of any grid */
  factors_t tiles[2];
  int num_views, num_maps;
  const view_t *views;
  const map_form_t *maps;
  void (**otherwise)(const int64_t *words, const int32_t *dims, int64_t from, int64_t to);
} kernel_t;

/* Runs blocks of a kernel, whose arguments are those of a kernel for the CPU. */
void emu_run(const kernel_t *kernel, const int64_t *words, const int32_t *dims, int64_t from, int64_t to);

#endif

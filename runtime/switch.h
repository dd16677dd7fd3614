/* switch.h - from one stack to another on the same OS thread
 *
 * tw_switch saves what a called function must keep on the stack that it leaves, and takes it from the one that it goes
 * to: some twenty instructions and no system call. Machines without these lines, and sanitizers, which must be told of
 * stacks, have ucontext. */
#ifndef TILEWRIGHT_RUNTIME_SWITCH_H
#define TILEWRIGHT_RUNTIME_SWITCH_H

#include <stddef.h>
#include <stdint.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define TW_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TW_SANITIZED 1
#endif

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(TW_SANITIZED)

typedef struct {
  void *stack;
} tw_context_t;

void tw_switch_stacks(void **from, void *to);

static inline void tw_switch(tw_context_t *from, tw_context_t *to) { tw_switch_stacks(&from->stack, to->stack); }

#if defined(__x86_64__)

__asm__(".text\n"
        ".local tw_switch_stacks\n"
        ".type tw_switch_stacks, @function\n"
        "tw_switch_stacks:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".size tw_switch_stacks, . - tw_switch_stacks\n");

/* A context that begins `start`, which never returns, on a stack. */
static inline void tw_context_make(tw_context_t *context, char *stack, size_t bytes, void (*start)(void)) {
  enum { SAVED = 6 };
  uintptr_t *top = (uintptr_t *)(((uintptr_t)stack + bytes) & ~(uintptr_t)15);
  *--top = 0; /* where a call would have put the place to return to: aligned as after one */
  *--top = (uintptr_t)start;
  for (int i = 0; i < SAVED; i++)
    *--top = 0;
  context->stack = top;
}

#else

__asm__(".text\n"
        ".local tw_switch_stacks\n"
        ".type tw_switch_stacks, %function\n"
        "tw_switch_stacks:\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n  stp x25, x26, [sp, #48]\n"
        "  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
        "  ldp x19, x20, [sp]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n  ldp x25, x26, [sp, #48]\n"
        "  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n"
        "  ret\n"
        ".size tw_switch_stacks, . - tw_switch_stacks\n");

static inline void tw_context_make(tw_context_t *context, char *stack, size_t bytes, void (*start)(void)) {
  enum { SAVED = 20, LINK = 11 };
  uintptr_t *top = (uintptr_t *)(((uintptr_t)stack + bytes) & ~(uintptr_t)15) - SAVED;
  for (int i = 0; i < SAVED; i++)
    top[i] = i == LINK ? (uintptr_t)start : 0;
  context->stack = top;
}

#endif

#else

#include <ucontext.h>

typedef struct {
  ucontext_t state;
} tw_context_t;

static inline void tw_switch(tw_context_t *from, tw_context_t *to) { swapcontext(&from->state, &to->state); }

static inline void tw_context_make(tw_context_t *context, char *stack, size_t bytes, void (*start)(void)) {
  getcontext(&context->state);
  context->state.uc_stack.ss_sp = stack;
  context->state.uc_stack.ss_size = bytes;
  context->state.uc_link = NULL;
  makecontext(&context->state, start, 0);
}

#endif
#endif /* TILEWRIGHT_RUNTIME_SWITCH_H */

// A kernel waits for its predecessor before it touches memory that others see. Its last blocks let its successor start at
// once, others when they end.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(tile-dependent-launch)' | FileCheck %s

module attributes {tile.target = "sm_90a"} {
  // The wait follows what is harmless, through blocks without a choice.
  // CHECK-LABEL: llvm.func @straight
  // CHECK-SAME: dependent_launch = 1 : i32
  llvm.func @straight(%p: i64, %shared: !llvm.ptr<3>) attributes {nvvm.kernel} {
    // CHECK-NEXT: llvm.inline_asm has_side_effects
    // CHECK-SAME: %ctaid.x
    // CHECK-NOT: %ctaid.y
    // CHECK-SAME: @last griddepcontrol.launch_dependents
    // CHECK-NEXT: nvvm.read.ptx.sreg.tid.x
    // CHECK-NEXT: llvm.store {{.*}} !llvm.ptr<3>
    // CHECK-NEXT: llvm.br
    %t = nvvm.read.ptx.sreg.tid.x : i32
    llvm.store %t, %shared : i32, !llvm.ptr<3>
    llvm.br ^first
  ^first:
    // CHECK: llvm.inttoptr
    // CHECK-NEXT: nvvm.griddepcontrol wait
    // CHECK-NEXT: llvm.load
    %g = llvm.inttoptr %p : i64 to !llvm.ptr<1>
    %x = llvm.load %g : !llvm.ptr<1> -> i32
    llvm.return
  }

  // PTX without effects is harmless, other PTX is not.
  // CHECK-LABEL: llvm.func @arithmetic
  // CHECK: lanemask_lt
  // CHECK-NEXT: nvvm.griddepcontrol wait
  // CHECK-NEXT: ld.global
  llvm.func @arithmetic(%p: i64) attributes {nvvm.kernel} {
    %mask = llvm.inline_asm "mov.u32 $0, %lanemask_lt;", "=r" : () -> i32
    %x = llvm.inline_asm has_side_effects {tile.ptx = "effect"} "ld.global.u32 $0, [$1];", "=r,l" %p : (i64) -> i32
    llvm.return
  }

  // The place in the grid is one along all axes that the kernel reads.
  // CHECK-LABEL: llvm.func @axes
  // CHECK-NEXT: llvm.inline_asm
  // CHECK-SAME: %ctaid.z
  // CHECK-SAME: %ctaid.x
  // CHECK-NEXT: nvvm.read.ptx.sreg.ctaid.z
  llvm.func @axes(%p: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %z = nvvm.read.ptx.sreg.ctaid.z : i32
    llvm.store %z, %p : i32, !llvm.ptr<1>
    llvm.return
  }

  // Of a persistent kernel all blocks are there from the start.
  // CHECK-LABEL: llvm.func @persistent
  // CHECK-NEXT: nvvm.griddepcontrol launch_dependents
  llvm.func @persistent() attributes {nvvm.kernel, tile.launch = {persistent = 1 : i32}} {
    llvm.return
  }

  // A path that reads nothing waits as well: who comes next waits for this kernel only.
  // CHECK-LABEL: llvm.func @choice
  llvm.func @choice(%p: i64, %c: i1) attributes {nvvm.kernel} {
    // CHECK: nvvm.griddepcontrol wait
    // CHECK-NEXT: llvm.cond_br
    llvm.cond_br %c, ^read, ^leave
  ^read:
    %g = llvm.inttoptr %p : i64 to !llvm.ptr<1>
    %x = llvm.load %g : !llvm.ptr<1> -> i32
    llvm.return
  ^leave:
    llvm.return
  }

  // Barriers are set up and tensor maps fetched before the wait.
  // CHECK-LABEL: llvm.func @set_up
  llvm.func @set_up(%map: !llvm.ptr, %shared: !llvm.ptr<3>, %n: i32, %c: i1) attributes {nvvm.kernel} {
    // CHECK: shfl
    // CHECK-NEXT: prefetch.tensormap
    // CHECK: mbarrier.init
    // CHECK: fence.mbarrier_init
    // CHECK: nvvm.barrier0
    // CHECK-NEXT: nvvm.griddepcontrol wait
    // CHECK-NEXT: llvm.inline_asm
    %warp = llvm.call_intrinsic "llvm.nvvm.shfl.sync.idx.i32"(%n, %n, %n, %n) : (i32, i32, i32, i32) -> i32
    llvm.inline_asm has_side_effects {tile.ptx = "sets_up"} "@$1 prefetch.tensormap [$0];", "l,b" %map, %c : (!llvm.ptr, i1) -> ()
    llvm.inline_asm has_side_effects {tile.ptx = "sets_up"} "@$2 mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,b" %shared, %n, %c : (!llvm.ptr<3>, i32, i1) -> ()
    llvm.inline_asm has_side_effects {tile.ptx = "sets_up"} "fence.mbarrier_init.release.cluster;", "" : () -> ()
    nvvm.barrier0
    llvm.inline_asm has_side_effects "cp.async.bulk.tensor.1d", "" : () -> ()
    llvm.return
  }

  // Inline assembly may be anything; a loop's head is reached more than once.
  // CHECK-LABEL: llvm.func @loop
  llvm.func @loop(%c: i1) attributes {nvvm.kernel} {
    // CHECK: nvvm.griddepcontrol wait
    // CHECK-NEXT: llvm.br
    llvm.br ^head
  ^head:
    // CHECK: llvm.inline_asm
    llvm.inline_asm has_side_effects "ld.global.b32 %r, [%p];", "" : () -> ()
    // CHECK-NOT: griddepcontrol
    llvm.cond_br %c, ^head, ^leave
  ^leave:
    llvm.return
  }
}

// -----

// Blocks of threads are many and short: these wait by themselves only if asked to.
module attributes {tile.target = "sm_90a"} {
  // CHECK: llvm.func @threads
  // CHECK-NOT: griddepcontrol
  llvm.func @threads() attributes {nvvm.kernel, tile.simt} {
    llvm.return
  }

  // CHECK: llvm.func @asked
  // CHECK: griddepcontrol wait
  llvm.func @asked() attributes {nvvm.kernel, tile.simt, tile.hints = {dependent_launch = 1 : i32}} {
    llvm.return
  }
}

// -----

// Refused by the caller, or not known to the chip.
module attributes {tile.target = "sm_90a"} {
  // CHECK: llvm.func @refused
  // CHECK-NOT: dependent_launch = 1
  // CHECK-NOT: griddepcontrol
  llvm.func @refused() attributes {nvvm.kernel, tile.hints = {dependent_launch = 0 : i32}} {
    llvm.return
  }
}

// -----

module attributes {tile.target = "sm_80"} {
  // CHECK: llvm.func @k
  // CHECK-NOT: dependent_launch = 1
  // CHECK-NOT: griddepcontrol
  llvm.func @k() attributes {nvvm.kernel} {
    llvm.return
  }
}

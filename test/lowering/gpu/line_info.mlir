// RUN: tw-opt %s --pass-pipeline='builtin.module(tile-to-nvvm)' --mlir-print-debuginfo | FileCheck %s

// CHECK-DAG: #[[UNIT:.*]] = #llvm.di_compile_unit<{{.*}}emissionKind = DebugDirectivesOnly
// CHECK-DAG: #[[HELPER:.*]] = #llvm.di_subprogram<{{.*}}name = "helper", file = #{{.*}}, line = 9
// CHECK-DAG: #[[KERNEL:.*]] = #llvm.di_subprogram<{{.*}}name = "k", file = #{{.*}}, line = 2
// CHECK-DAG: #[[INNER:.*]] = loc(fused<#[[HELPER]]>[{{.*}}])
// CHECK-DAG: loc(callsite(#[[INNER]] at
// CHECK-DAG: loc(fused<#[[KERNEL]]>[
llvm.func @k(%a: f32) attributes {tile.hints = {line_info = 1 : i32}} {
  %0 = llvm.fadd %a, %a : f32 loc(callsite("helper"("k.py":9:12 to :17) at "k.py":5:9 to :20))
  llvm.return loc("k.py":6:3 to :9)
} loc("k.py":2:1 to :4)

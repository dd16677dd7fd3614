//===- SimtOps.td - thread-level ops: the tile-of-one case ----------------===//
//
// A function with the attribute `tile.simt` is a SIMT kernel: its scalars are
// tiles of one element, one for each thread, where those of a tile kernel are
// one for the block. Everything else is the same: arithmetic, promotion, array
// access (tile.gather and tile.scatter with scalar indices), control flow.
//
//===----------------------------------------------------------------------===//
#ifndef TILEWRIGHT_SIMT_OPS_TD
#define TILEWRIGHT_SIMT_OPS_TD

include "TileBase.td"

def Tile_ThreadIdOp : Tile_Op<"thread_id", [Pure]> {
  let summary = "index of this thread along an axis of its block";
  let form = "position"; let varies = 1; let verifier = "verify_thread_axis";
  let arguments = (ins I32Attr:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict";
}

def Tile_BlockDimOp : Tile_Op<"block_dim", [Pure]> {
  let summary = "number of threads of a block along an axis";
  let form = "position"; let verifier = "verify_thread_axis";
  let arguments = (ins I32Attr:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict";
}

def Tile_SyncThreadsOp : Tile_Op<"sync_threads", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait for every thread of the block, and see what they wrote";
  let orders = "all"; let meets = "block"; let verifier = "verify_simt";
  let assemblyFormat = "attr-dict";
}

def Tile_SyncGridOp : Tile_Op<"sync_grid", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait for every thread of the grid, and see what they wrote";
  let orders = "all"; let meets = "block"; let verifier = "verify_simt";
  let description = [{ All blocks run at a time then, and a launch of more than can do so is refused. }];
  let assemblyFormat = "attr-dict";
}

def Tile_SyncVoteOp : Tile_Op<"sync_vote", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "a barrier of the block that tells how many of its threads have a true predicate, whether all or any";
  let orders = "all"; let meets = "block"; let verifier = "verify_sync_vote";
  let description = [{
    ```mlir
    %n = tile.sync_vote count, %p : i1 -> i32
    ```
    `count` gives an i32, `and` and `or` an i1.
  }];
  let arguments = (ins Tile_BlockVote:$kind, I1:$predicate);
  let results = (outs AnyTypeOf<[I1, I32]>:$result);
  let assemblyFormat = "$kind `,` $predicate attr-dict `:` type($predicate) `->` type($result)";
}

def Tile_FenceOp : Tile_Op<"fence", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "orders the accesses of this thread in front of it and behind it";
  let orders = "all"; let verifier = "verify_simt";
  let description = [{ As `std::atomic_thread_fence`, for those that the scope names. }];
  let arguments = (ins Tile_MemoryOrder:$memory_order, Tile_MemoryScope:$memory_scope);
  let assemblyFormat = "$memory_order $memory_scope attr-dict";
}

def Tile_AtomicPairOp : Tile_Op<"atomic_pair"> {
  let summary = "load or store 16 bytes of an array at once, as two words";
  let orders = "all"; let verifier = "verify_atomic_pair";
  let description = [{
    ```mlir
    %l, %h = tile.atomic_pair load acquire device, %low, %high, %a : memref<i64>
    ```
    The words of the element and of the 8 bytes behind it, which lie at a multiple of 16 bytes; with orders and scopes
    as in `tile.atomic`. The result of a store is its words.
  }];
  let arguments = (ins Arg<Tile_Array, "", [MemRead, MemWrite]>:$array, I64:$low, I64:$high, Tile_AtomicKind:$kind,
      Tile_MemoryOrder:$memory_order, Tile_MemoryScope:$memory_scope);
  let results = (outs I64:$old_low, I64:$old_high);
  let assemblyFormat = "$kind $memory_order $memory_scope `,` $low `,` $high `,` $array attr-dict `:` type($array)";
}

def Tile_SleepOp : Tile_Op<"sleep", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "let other threads go first, for about so many nanoseconds";
  let orders = "threads"; let verifier = "verify_simt";
  let arguments = (ins I32:$nanoseconds);
  let assemblyFormat = "$nanoseconds attr-dict";
}

def Tile_CCallOp : Tile_Op<"c_call", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "calls a function of C++ that is linked later";
  let orders = "all";
  let description = [{
    ```mlir
    %y = tile.c_call "noise"(%x, %n) {tile.c_signature = {…}} : f32, i32 -> f32
    ```
    What it takes and gives are the words of its C signature (lowering/c_values.h): of an array its pointer, extents and
    strides.
  }];
  let arguments = (ins StrAttr:$callee, Variadic<AnyTypeOf<[Tile_AnyScalar, Tile_Array]>>:$words);
  let results = (outs Variadic<Tile_AnyScalar>:$results);
  let assemblyFormat = "$callee `(` $words `)` attr-dict `:` type($words) `->` type($results)";
}

//===----------------------------------------------------------------------===//
// Warps: each of 32 threads whose linear numbers in the block follow each other
//===----------------------------------------------------------------------===//

def Tile_LaneIdOp : Tile_Op<"lane_id", [Pure]> {
  let summary = "number of this thread in its warp";
  let form = "position"; let varies = 1; let verifier = "verify_simt";
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_ActiveMaskOp : Tile_Op<"active_mask", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "lanes of the warp that are here, this one among them";
  let orders = "threads"; let verifier = "verify_simt";
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}

/// The lanes of the mask meet, and this one is of them; a lane that has left the kernel does not count.
class Tile_WarpOp<string mnemonic> : Tile_Op<mnemonic, [MemoryEffects<[MemRead, MemWrite]>]> {
  let orders = "threads"; let verifier = "verify_simt"; let meets = "warp";
}

def Tile_SyncWarpOp : Tile_WarpOp<"sync_warp"> {
  let summary = "wait for the lanes of a mask, and see what they wrote";
  let orders = "all";
  let arguments = (ins I32:$warp_mask);
  let assemblyFormat = "$warp_mask attr-dict";
}

def Tile_VoteOp : Tile_WarpOp<"vote"> {
  let summary = "whether the predicate is true on all lanes of a mask, on any, or the same on all; on which";
  let verifier = "verify_vote";
  let description = [{
    ```mlir
    %lanes = tile.vote ballot, %mask, %p -> i32
    ```
    `ballot` gives the lanes as an i32, the others an i1. No memory is ordered, by this op, matches or shuffles.
  }];
  let arguments = (ins Tile_WarpVote:$kind, I32:$warp_mask, I1:$predicate);
  let results = (outs AnyTypeOf<[I1, I32]>:$result);
  let assemblyFormat = "$kind `,` $warp_mask `,` $predicate attr-dict `->` type($result)";
}

def Tile_MatchOp : Tile_WarpOp<"match"> {
  let summary = "the lanes of a mask that hold the same bits: as this one, or the mask if all do, and 0 if not";
  let verifier = "verify_match";
  let arguments = (ins Tile_WarpMatch:$kind, I32:$warp_mask, Tile_AnyScalar:$value);
  let results = (outs I32:$result);
  let assemblyFormat = "$kind `,` $warp_mask `,` $value attr-dict `:` type($value)";
}

def Tile_ShuffleOp : Tile_WarpOp<"shuffle"> {
  let summary = "the value of another lane: of a number, or so many up, down, or by XOR from this one";
  let verifier = "verify_shuffle";
  let description = [{
    ```mlir
    %y = tile.shuffle down, %mask, %x, %delta : f32
    ```
    Past the first or the last lane `up` and `down` give this lane's own value.
  }];
  let arguments = (ins Tile_ShuffleKind:$kind, I32:$warp_mask, Tile_AnyScalar:$value, I32:$lane);
  let results = (outs Tile_AnyScalar:$result);
  let assemblyFormat = "$kind `,` $warp_mask `,` $value `,` $lane attr-dict `:` type($value) `->` type($result)";
}

//===----------------------------------------------------------------------===//
// Arrays that a kernel makes: their elements are undefined at first
//===----------------------------------------------------------------------===//

class Tile_MadeArrayOp<string mnemonic> : Tile_Op<mnemonic, [MemoryEffects<[MemAlloc]>]> {
  let results = (outs Tile_Array:$result);
}

def Tile_SharedArrayOp : Tile_MadeArrayOp<"shared_array"> {
  let summary = "an array of static shape in memory that the threads of a block share; not initialized";
  let verifier = "verify_shared_array";
  let description = [{
    ```mlir
    %s = tile.shared_array {align = 128} : memref<256xf32, 3>
    ```
    Elements lie as the type's strides say; without them, in row-major order. The alignment is 16 bytes at least.
    `offset` is its place in the block's shared memory, once it is known (`tile-allocate-shared`).
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$align, OptionalAttr<I32Attr>:$offset);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Tile_DynamicSharedOp : Tile_MadeArrayOp<"dynamic_shared"> {
  let summary = "the bytes of shared memory that the launch adds, as elements of a dtype; each such op gives the same";
  let verifier = "verify_dynamic_shared";
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Tile_LocalArrayOp : Tile_MadeArrayOp<"local_array"> {
  let summary = "an array of static shape that is this thread's own; not initialized";
  let verifier = "verify_local_array";
  let description = [{
    ```mlir
    %s = tile.local_array : memref<8xf32, 5>
    ```
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$align);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Tile_ConstArrayOp : Tile_Op<"const_array", [Pure]> {
  let summary = "an array of constants";
  let verifier = "verify_const_array";
  let description = [{
    ```mlir
    %s = tile.const_array dense<[1.0, 2.0]> : tensor<2xf32> -> memref<2xf32, 4>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Tile_Array:$result);
  let assemblyFormat = "attr-dict $value `->` type($result)";
}

//===----------------------------------------------------------------------===//
// Arrays made of arrays
//===----------------------------------------------------------------------===//

def Tile_ViewOp : Tile_Op<"view", [Pure, AttrSizedOperandSegments]> {
  let summary = "part of an array's memory under extents and strides of its own, and another dtype";
  let verifier = "verify_view";
  let description = [{
    ```mlir
    %row = tile.view %a at %bytes [%n] by [%stride] : memref<?x?xf32> -> memref<?xf32, strided<[?]>>
    ```
    The offset counts bytes, strides count elements of the result, and may be negative. Slices, fields of records,
    `reshape` and `view` of device code are such arrays. What is read and written there is the array's. With `align` the
    program vouches for the address: so many bytes divide it.
  }];
  let arguments = (ins Tile_Array:$array, I64:$offset, Variadic<I64>:$extents, Variadic<I64>:$strides,
                   OptionalAttr<I64Attr>:$align);
  let results = (outs Tile_Array:$result);
  let assemblyFormat = [{
    $array `at` $offset `[` $extents `]` `by` `[` $strides `]` attr-dict `:` type($array) `->` type($result)
  }];
}

def Tile_AddressOp : Tile_Op<"address", [Pure]> {
  let summary = "address of an array's first element, in its memory space";
  let form = "position"; let verifier = "verify_simt";
  let arguments = (ins Tile_Array:$array);
  let results = (outs I64:$result);
  let assemblyFormat = "$array attr-dict `:` type($array)";
}

//===----------------------------------------------------------------------===//
// Threads in a kernel of tiles
//===----------------------------------------------------------------------===//

def Tile_ThreadsOp : Tile_Op<"threads", [SingleBlock, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "run a body in each thread of the block, on tiles in shared memory";
  let orders = "all"; let scratch = "tiles_scratch"; let verifier = "verify_threads";
  let description = [{
    Each input becomes an array in shared memory, row-major; what the body leaves there is the result of that number. The
    body is code of a thread, which may have everything that a SIMT kernel has: places, barriers, warp operations, shared
    arrays. The threads are those that hold the kernel's tiles: `tile.block_dim 0`, a multiple of 32, in a row. All come
    to it together, and go on when all are done.

    ```mlir
    %y = tile.threads(%x) : (tensor<64xi32>) -> tensor<64xi32> {
    ^bb0(%s: memref<64xi32, 3>):
      %t = tile.thread_id 0
      …
      tile.sync_threads
      …
      tile.yield
    }
    ```
  }];
  let pyName = "threads";
  let arguments = (ins Variadic<Tile_AnyTile>:$inputs);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<Tile_AnyTile>:$results);
  let assemblyFormat = "`(` $inputs `)` `:` functional-type(operands, results) $body attr-dict";
}

#endif // TILEWRIGHT_SIMT_OPS_TD

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
  let form = "position"; let verifier = "verify_thread_axis";
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
  let orders = "all"; let verifier = "verify_simt";
  let assemblyFormat = "attr-dict";
}

def Tile_SharedArrayOp : Tile_Op<"shared_array", [MemoryEffects<[MemAlloc]>]> {
  let summary = "an array of static shape in memory that the threads of a block share; not initialized";
  let verifier = "verify_shared_array";
  let description = [{
    ```mlir
    %s = tile.shared_array : memref<256xf32, 3>
    ```
  }];
  let results = (outs Tile_Array:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

#endif // TILEWRIGHT_SIMT_OPS_TD

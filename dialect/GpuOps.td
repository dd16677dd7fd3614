//===- GpuOps.td - ops, types and attributes that only the GPU passes make ===//
//
// After `tile-assign-layouts` the type of every tile carries who owns which
// element (`#tile.linear`), and the ops here say how tiles move: between
// layouts, and through buffers in shared memory.
//
//===----------------------------------------------------------------------===//
#ifndef TILEWRIGHT_GPU_OPS_TD
#define TILEWRIGHT_GPU_OPS_TD

include "TileBase.td"

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

def Tile_LinearAttr : AttrDef<Tile_Dialect, "Linear",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "linear";
  let genMnemonicAlias = 1;
  let summary = "who owns which element of a tile: a linear map over bits";
  let description = [{
    One basis vector of tile coordinates for each bit of a position in the machine
    (`register`, `lane`, `warp`, `block`) or of an offset in shared memory
    (`offset`); an element belongs to the positions whose vectors XOR to its
    coordinates. A zero vector replicates. Groups without bits are left out.

    ```mlir
    // 8x8: a lane has two neighbouring columns of four rows
    #tile.linear<register = [[0, 1], [1, 0], [2, 0]], lane = [[0, 2], [0, 4], [4, 0], [0, 0], [0, 0]]>
    ```
  }];
  let parameters = (ins
    "unsigned":$rank,
    ArrayRefParameter<"int32_t", "basis vectors of each group, in the order of the names">:$counts,
    ArrayRefParameter<"int32_t", "coordinates of all vectors, one after the other">:$coords);
  let hasCustomAssemblyFormat = 1;
}

def Tile_BufferType : TypeDef<Tile_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "stages in shared memory, each of which holds a tile";
  let description = [{
    The first extent is the number of stages, the others are the shape of the tile
    of a stage. The layout maps bits of an element's offset within its stage to tile
    coordinates, swizzle included.

    ```mlir
    !tile.buffer<3x64x32xbf16, #tile.linear<offset = [[0, 1], ...]>>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType,
                        "::mlir::Attribute":$layout);
  let hasCustomAssemblyFormat = 1;
}

def Tile_BarriersType : TypeDef<Tile_Dialect, "Barriers"> {
  let mnemonic = "barriers";
  let summary = "barriers in shared memory that count arrivals and bytes";
  let description = [{
    Each of them goes through phases of parity 0, 1, 0, ...: a phase ends when all
    arrivals and all bytes it expects have come. `!tile.barriers<4>` are four.
  }];
  let parameters = (ins "int64_t":$count);
  let assemblyFormat = "`<` $count `>`";
  let genVerifyDecl = 1;
}

class Tile_GpuOp<string mnemonic, list<Trait> traits = []> : Tile_Op<mnemonic, traits>;

def Tile_ConvertLayoutOp : Tile_GpuOp<"convert_layout", [Pure]> {
  let summary = "the same tile under another layout";
  let form = "view"; let scratch = "conversion_scratch"; let verifier = "verify_same_type";
  let description = [{
    Costs nothing, shuffles, or a round trip through shared memory, as the two
    layouts demand. The round trip uses the bytes at `tile.scratch`, an attribute
    that `tile-allocate-shared` sets.
  }];
  let arguments = (ins Tile_AnyTile:$input);
  let results = (outs Tile_AnyTile:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

def Tile_AllocSharedOp : Tile_GpuOp<"alloc_shared", [MemoryEffects<[MemAlloc]>]> {
  let summary = "a buffer in shared memory that lives until its last use";
  let description = [{ `tile-allocate-shared` sets `offset`, in bytes. }];
  let arguments = (ins OptionalAttr<I32Attr>:$offset);
  let results = (outs Tile_BufferType:$result);
  let assemblyFormat = "(`at` $offset^)? attr-dict `:` type($result)";
}

def Tile_LocalLoadOp : Tile_GpuOp<"local_load"> {
  let summary = "read the tile in a stage of a buffer";
  let verifier = "verify_local_load";
  let arguments = (ins Arg<Tile_BufferType, "", [MemRead]>:$buffer, I32:$stage);
  let results = (outs Tile_AnyTile:$result);
  let assemblyFormat = "$buffer `[` $stage `]` attr-dict `:` type($buffer) `->` type($result)";
}

def Tile_LocalStoreOp : Tile_GpuOp<"local_store"> {
  let summary = "write a tile into a stage of a buffer";
  let verifier = "verify_local_store";
  let arguments = (ins Tile_AnyTile:$value, Arg<Tile_BufferType, "", [MemWrite]>:$buffer, I32:$stage);
  let assemblyFormat = "$value `,` $buffer `[` $stage `]` attr-dict `:` type($value) `,` type($buffer)";
}

def Tile_AsyncCopyOp : Tile_GpuOp<"async_copy", [AttrSizedOperandSegments]> {
  let summary = "start to copy a tile of an array into a stage of a buffer";
  let verifier = "verify_async_copy"; let noun = "load";
  let access = "tile"; let copies = "threads"; let async = "start";
  let description = [{
    The tile is named as in `tile.load`; what lies outside of the array becomes
    zero. With `enabled` false nothing is read and the stage is left as it is. The
    copy joins the group that the next `tile.async_commit` closes.
  }];
  let arguments = (ins Arg<Tile_Array, "", [MemRead]>:$array, Variadic<AnySignlessInteger>:$index,
      Arg<Tile_BufferType, "", [MemWrite]>:$buffer, I32:$stage, Optional<I1>:$enabled,
      OptionalAttr<DenseI32ArrayAttr>:$order);
  let assemblyFormat = [{
    $array `[` $index `]` (`order` $order^)? `into` $buffer `[` $stage `]` (`if` $enabled^)? attr-dict
    `:` type($array) (`,` type($index)^)? `into` type($buffer)
  }];
}

def Tile_AsyncGatherOp : Tile_GpuOp<"async_gather", [AttrSizedOperandSegments]> {
  let summary = "start to copy elements of an array, found at tiles of indices, into a stage of a buffer";
  let verifier = "verify_async_gather"; let noun = "gather";
  let access = "element"; let copies = "threads"; let async = "start";
  let description = [{
    Names the elements as `tile.gather` does, and joins a group as `tile.async_copy` does. What
    is masked, or lies outside of the array, becomes zero; with `enabled` false all of it does.
    The layout of the index tiles says who copies what: a thread's neighbouring elements of at
    least four bytes lie side by side in the array, too.

    ```mlir
    tile.async_gather %A[%rows, %columns] mask %m : tensor<128x64xi1, #l> into %a[%stage] if %more : memref<?x?xbf16, strided<[?, 1]>>, tensor<128x64xi32, #l>, tensor<128x64xi32, #l> into !tile.buffer<4x128x64xbf16, #a>
    ```
  }];
  let arguments = (ins Arg<Tile_Array, "", [MemRead]>:$array, Variadic<Tile_Value>:$indices,
      Optional<Tile_Value>:$mask, Arg<Tile_BufferType, "", [MemWrite]>:$buffer, I32:$stage,
      Optional<I1>:$enabled, UnitAttr:$check_bounds);
  let assemblyFormat = [{
    $array `[` $indices `]` (`mask` $mask^ `:` type($mask))? `into` $buffer `[` $stage `]` (`if` $enabled^)? attr-dict
    `:` type($array) (`,` type($indices)^)? `into` type($buffer)
  }];
}

def Tile_AsyncCommitOp : Tile_GpuOp<"async_commit", [MemoryEffects<[MemWrite]>]> {
  let summary = "close a group of asynchronous copies";
  let orders = "threads";
  let assemblyFormat = "attr-dict";
}

def Tile_AsyncWaitOp : Tile_GpuOp<"async_wait", [MemoryEffects<[MemWrite]>]> {
  let summary = "wait until at most `pending` groups of this thread's copies are under way";
  let orders = "threads"; let async = "wait";
  let arguments = (ins I32Attr:$pending);
  let assemblyFormat = "$pending attr-dict";
}

def Tile_BarrierOp : Tile_GpuOp<"barrier", [MemoryEffects<[MemWrite]>]> {
  let summary = "all threads of the block meet, and see each other's writes to shared memory";
  let orders = "threads"; let verifier = "verify_barrier";
  let assemblyFormat = "attr-dict";
}

def Tile_WarpAnyOp : Tile_GpuOp<"warp_any", [Pure]> {
  let summary = "whether an element that this warp has is true";
  let description = [{
    The result is the same in all lanes of a warp, and may differ between warps. If
    what a branch on it does needs the whole block, all warps get the same result:
    whether an element of the tile is true.
  }];
  let arguments = (ins Tile_AnyTile:$input);
  let results = (outs I1:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

def Tile_SettleOp : Tile_GpuOp<"settle", [Pure, SameOperandsAndResultType]> {
  let summary = "the same numbers in other registers";
  let description = [{
    What a loop carries is read here, so that its registers are free for what the next
    iteration will have: a load that takes them may start. Elements have 32 bits.

    ```mlir
    %t = tile.settle %s : tensor<128x1xf32, #l>
    ```
  }];
  let arguments = (ins Tile_Value:$input);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

//===----------------------------------------------------------------------===//
// Products that run by themselves, and roles of warps
//===----------------------------------------------------------------------===//

def Tile_TileOrBuffer : AnyTypeOf<[Tile_AnyTile, Tile_BufferType], "tile or buffer">;

def Tile_AsyncMmaOp : Tile_GpuOp<"async_mma", [MemoryEffects<[MemWrite]>]> {
  let summary = "start lhs @ rhs + acc on operands in shared memory";
  let form = "product"; let noun = "product";
  let orders = "threads"; let async = "start"; let verifier = "verify_in_place";
  let description = [{
    Warps multiply what lies in stages of buffers; lhs may be a tile in registers
    instead. The instruction is that of the target's asynchronous MMA family. Each starts
    work that waits count, so that two that compute the same are not one. `transposed_lhs` says that the buffer holds the transpose of
    the operand, and `transposed_rhs` the same of rhs. The result may be read, and
    the stages written, after a `tile.mma_wait` of it.

    The Tensor Core keeps fewer bits of a sum of 8-bit floats than float32 has. With
    `promoted` it sums up so much of k only, each time from zero; these sums are waited
    for and added to acc in float32.

    With `stepped` each step of k of an lhs in registers starts by itself, behind a wait for
    the same step of the product before, which read the registers that its words go to.

    ```mlir
    %d = tile.async_mma %a[%s], %b[%s], %c : !tile.buffer<3x128x64xbf16, #a>, !tile.buffer<3x64x128xbf16, #b>, tensor<128x128xf32, #acc>
    ```
  }];
  let arguments = (ins Arg<Tile_TileOrBuffer, "", [MemRead]>:$lhs, Optional<I32>:$lhs_stage,
      Arg<Tile_BufferType, "", [MemRead]>:$rhs, I32:$rhs_stage, Tile_AnyTile:$acc,
      UnitAttr:$transposed_lhs, UnitAttr:$transposed_rhs, UnitAttr:$unsigned_lhs, UnitAttr:$unsigned_rhs,
      UnitAttr:$stepped, OptionalAttr<I32Attr>:$promoted);
  let results = (outs Tile_AnyTile:$result);
  let assemblyFormat = [{
    $lhs (`[` $lhs_stage^ `]`)? `,` $rhs `[` $rhs_stage `]` `,` $acc (`promoted` $promoted^)? attr-dict
    `:` type($lhs) `,` type($rhs) `,` qualified(type($acc)) `->` type($result)
  }];
}

def Tile_MmaWaitOp : Tile_GpuOp<"mma_wait", [MemoryEffects<[MemWrite]>]> {
  let summary = "wait until at most `pending` products of this warpgroup are under way";
  let form = "product"; let orders = "threads"; let async = "wait"; let verifier = "verify_in_place";
  let description = [{
    The result is the value. With `pending` 0 or `complete` it may be read; otherwise
    it may still be under way. Other values may stand beside it: what makes them comes
    before the wait, and what reads the results behind it.
  }];
  let arguments = (ins Tile_AnyTile:$value, Variadic<Tile_AnyTile>:$others, I32Attr:$pending, UnitAttr:$complete);
  let results = (outs Tile_AnyTile:$result, Variadic<Tile_AnyTile>:$ordered);
  let assemblyFormat = [{
    $value `,` $pending (`with` $others^)? attr-dict
    `:` type($value) (`,` type($others)^)? `->` type($result) (`,` type($ordered)^)?
  }];
}

//===----------------------------------------------------------------------===//
// Blocks that share a tile
//===----------------------------------------------------------------------===//

def Tile_SumPartsOp : Tile_GpuOp<"sum_parts", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "the sums of tiles over the blocks that share them";
  let orders = "all";
  let description = [{
    Block `part` of `parts` gives its tiles. In the last block to come here `last` is true
    and the results are the sums over all parts, in their order, whichever block it is; in
    the others it is false and the results are nothing. Where there is one part, `last` is
    true and the results are the tiles.

    `workspace` is the address of memory for the tiles of parts; before it lie counters of
    four bytes, going down, one for each `stage`: a number that the blocks of one tile have
    in common. A counter is zero before and after. No block waits for another.

    ```mlir
    %sum, %last = tile.sum_parts %acc part %p of %n in %workspace[%stage] : tensor<128x256xf32, #acc> -> tensor<128x256xf32, #acc>
    ```
  }];
  let arguments = (ins Variadic<Tile_AnyTile>:$values, I32:$part, I32:$parts, I64:$workspace, I32:$stage);
  let results = (outs Variadic<Tile_AnyTile>:$sums, I1:$last);
  let assemblyFormat = [{
    $values `part` $part `of` $parts `in` $workspace `[` $stage `]` attr-dict `:` type($values) `->` type($sums)
  }];
}

//===----------------------------------------------------------------------===//
// Barriers that count, copies by the tensor memory accelerator, roles of warps
//===----------------------------------------------------------------------===//

def Tile_AllocBarriersOp : Tile_GpuOp<"alloc_barriers", [MemoryEffects<[MemAlloc]>]> {
  let summary = "barriers in shared memory, set up before the kernel begins";
  let verifier = "verify_alloc_barriers";
  let description = [{
    A phase of each ends after `arrivals` arrivals and the bytes that were announced.
    `tile-allocate-shared` sets `offset`, in bytes. With `numbers` each has room for a
    number, which it passes from those who arrive to those who wait.

    ```mlir
    %full = tile.alloc_barriers arrivals 1 : !tile.barriers<4>
    ```
  }];
  let arguments = (ins I32Attr:$arrivals, UnitAttr:$numbers, OptionalAttr<I32Attr>:$offset);
  let results = (outs Tile_BarriersType:$result);
  let assemblyFormat = "`arrivals` $arrivals (`numbers` $numbers^)? (`at` $offset^)? attr-dict `:` type($result)";
}

def Tile_BarrierWaitOp : Tile_GpuOp<"barrier_wait", [MemoryEffects<[MemWrite]>]> {
  let summary = "wait until the phase of this parity has ended";
  let orders = "threads"; let async = "wait";
  let description = [{
    A fresh barrier is in its phase of parity 0, so that a wait for parity 1 passes at
    once: that of the producer for stages nobody has filled yet. With `gathered` threads
    have filled the stage, which a `tile.async_mma` behind it may read. With `once` the
    warp waits of which a lane does what is done once, as `tile.barrier_expect`: others, which
    nothing holds back, might come when two more phases have ended, and wait for good.
  }];
  let arguments = (ins Tile_BarriersType:$barriers, I32:$stage, I32:$parity, UnitAttr:$gathered, UnitAttr:$once);
  let assemblyFormat = [{
    $barriers `[` $stage `]` `,` $parity (`gathered` $gathered^)? (`once` $once^)? attr-dict `:` type($barriers)
  }];
}

def Tile_BarrierArriveOp : Tile_GpuOp<"barrier_arrive", [MemoryEffects<[MemWrite]>]> {
  let summary = "one arrival for each warp that comes here, if `enabled`";
  let orders = "threads";
  let description = [{
    With `together` the lanes of the warp meet first, so that the arrival speaks for
    what each of them read. After a `tile.mma_wait` they have met. With `gathered` it is
    one arrival for each thread, as soon as what it started by `tile.async_gather` is there.
  }];
  let arguments = (ins Tile_BarriersType:$barriers, I32:$stage, Optional<I1>:$enabled, UnitAttr:$together,
      UnitAttr:$gathered);
  let assemblyFormat = [{
    $barriers `[` $stage `]` (`if` $enabled^)? (`together` $together^)? (`gathered` $gathered^)? attr-dict
    `:` type($barriers)
  }];
}

def Tile_BarrierExpectOp : Tile_GpuOp<"barrier_expect", [MemoryEffects<[MemWrite]>]> {
  let summary = "one arrival, and `bytes` that copies will bring before the phase ends";
  let orders = "threads"; let verifier = "verify_barrier_expect";
  let description = [{
    Done once: by the first producer warp within `tile.roles`, by the first warp of the block
    elsewhere.
  }];
  let arguments = (ins Tile_BarriersType:$barriers, I32:$stage, I32Attr:$bytes);
  let assemblyFormat = "$barriers `[` $stage `]` `,` $bytes attr-dict `:` type($barriers)";
}

def Tile_NextTileOp : Tile_GpuOp<"next_tile", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "the number of the next tile: how many the blocks of this launch have taken";
  let orders = "all";
  let description = [{
    They are counted in four bytes before `workspace`, from zero up; `total` are taken in
    all, after which the counter is zero again. If `workspace` is 0 nothing is counted, and
    the result is `otherwise`. In a producer of several warps one lane knows the result.

    ```mlir
    %next = tile.next_tile %workspace of %total else %v
    ```
  }];
  let arguments = (ins I64:$workspace, I32:$total, I32:$otherwise);
  let results = (outs I32:$next);
  let assemblyFormat = "$workspace `of` $total `else` $otherwise attr-dict";
}

def Tile_PostNumberOp : Tile_GpuOp<"post_number", [MemoryEffects<[MemWrite]>]> {
  let summary = "leave a number for those who wait for the next phase of a barrier";
  let orders = "threads";
  let description = [{ The arrival stands behind it. Done once, as `tile.barrier_expect`. }];
  let arguments = (ins I32:$number, Tile_BarriersType:$barriers, I32:$stage);
  let assemblyFormat = "$number `,` $barriers `[` $stage `]` attr-dict `:` type($barriers)";
}

def Tile_ReadNumberOp : Tile_GpuOp<"read_number", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "the number that was left for those who waited for a barrier";
  let orders = "threads";
  let arguments = (ins Tile_BarriersType:$barriers, I32:$stage);
  let results = (outs I32:$result);
  let assemblyFormat = "$barriers `[` $stage `]` attr-dict `:` type($barriers)";
}

def Tile_TmaLoadOp : Tile_GpuOp<"tma_load"> {
  let summary = "start to copy a tile of an array into a stage of a buffer, by the tensor memory accelerator";
  let access = "tile"; let copies = "engine"; let async = "start"; let verifier = "verify_tma_load";
  let noun = "load";
  let description = [{
    Names the tile as `tile.async_copy` does; what lies outside of the array becomes
    zero. All bytes of the stage, such zeros included, are counted by the barrier. Done
    once, as `tile.barrier_expect`. The array must be one that the launcher can describe
    in a tensor map (`tile.tma` on the argument). `cache` says which lines of the L2
    cache go first or last where it needs room: those of bytes that a launch reads once,
    or those that it reads again.

    ```mlir
    tile.tma_load %A[%i, %k] into %a[%stage] signal %full[%stage] : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 into !tile.buffer<4x128x64xbf16, #a>, !tile.barriers<4>
    ```
  }];
  let arguments = (ins Arg<Tile_Array, "", [MemRead]>:$array, Variadic<AnySignlessInteger>:$index,
      Arg<Tile_BufferType, "", [MemWrite]>:$buffer, I32:$stage,
      Arg<Tile_BarriersType, "", [MemWrite]>:$barriers, I32:$signal,
      OptionalAttr<DenseI32ArrayAttr>:$order, OptionalAttr<Tile_Cache>:$cache);
  let assemblyFormat = [{
    $array `[` $index `]` (`order` $order^)? `into` $buffer `[` $stage `]` `signal` $barriers `[` $signal `]`
    (`cache` $cache^)? attr-dict
    `:` type($array) (`,` type($index)^)? `into` type($buffer) `,` type($barriers)
  }];
}

def Tile_TmaStoreOp : Tile_GpuOp<"tma_store"> {
  let summary = "write a tile of registers to an array by way of shared memory and the tensor memory accelerator";
  let access = "tile"; let copies = "engine"; let async = "start"; let verifier = "verify_tma_store";
  let noun = "store";
  let description = [{
    Each group of four warps writes its part of the tile a box at a time: into a stage of
    the buffer, from where the accelerator takes it. Group g has as many stages as the
    others, from stage g * (stages / groups) on; it waits for a stage that is still read. The
    array has changed when the kernel is over; elements outside of it are dropped.

    ```mlir
    tile.tma_store %t through %b into %C[%i, %j] : tensor<128x256xbf16, #acc> through !tile.buffer<4x64x64xbf16, #b> into memref<?x?xbf16, strided<[?, 1]>>, i32, i32
    ```
  }];
  let arguments = (ins Tile_AnyTile:$value, Arg<Tile_BufferType, "", [MemRead, MemWrite]>:$buffer,
      Arg<Tile_Array, "", [MemWrite]>:$array, Variadic<AnySignlessInteger>:$index,
      OptionalAttr<DenseI32ArrayAttr>:$order);
  let assemblyFormat = [{
    $value `through` $buffer `into` $array `[` $index `]` (`order` $order^)? attr-dict
    `:` type($value) `through` qualified(type($buffer)) `into` type($array) (`,` type($index)^)?
  }];
}

def Tile_TmaStoreWaitOp : Tile_GpuOp<"tma_store_wait", [MemoryEffects<[MemWrite]>]> {
  let summary = "wait until the accelerator has read what was put into a buffer to be stored";
  let orders = "threads"; let async = "wait";
  let description = [{ Its bytes may then be used for other things, and the kernel may end. }];
  let arguments = (ins Tile_BufferType:$buffer);
  let assemblyFormat = "$buffer attr-dict `:` qualified(type($buffer))";
}

def Tile_RolesOp : Tile_GpuOp<"roles", [SingleBlock, NoTerminator]> {
  let summary = "some warps bring data, the others compute";
  let verifier = "verify_roles";
  let description = [{
    `num_warps` of the launch record are the consumers, which the layouts of tiles speak
    of; the producer's warps come after them. One warp runs the producer's region; the
    others, if there are any, are there to give up registers: with `registers p, c` a
    thread of the producer's warps keeps p registers and one of the consumers gets c,
    and producer_warps must be a multiple of 4. A `tile.barrier` in the consumers' region
    is for the consumers only; the producer's has none.

    With `consumer_groups n` there are n groups of `num_warps` consumers. Each runs the
    consumers' region for itself, with barriers and scratch memory of its own.
    `tile.consumer_group` is the group's number.

    ```mlir
    tile.roles producer_warps 4 registers 40, 232 producer {
      ...
    } consumer {
      ...
    }
    ```
  }];
  let arguments = (ins I32Attr:$producer_warps, OptionalAttr<I32Attr>:$consumer_groups,
      OptionalAttr<I32Attr>:$producer_registers, OptionalAttr<I32Attr>:$consumer_registers);
  let regions = (region SizedRegion<1>:$producer, SizedRegion<1>:$consumer);
  let assemblyFormat = [{
    `producer_warps` $producer_warps (`consumer_groups` $consumer_groups^)? (`registers` $producer_registers^ `,` $consumer_registers)?
    attr-dict `producer` $producer `consumer` $consumer
  }];
}

def Tile_ConsumerGroupOp : Tile_GpuOp<"consumer_group", [Pure]> {
  let summary = "which consumer group runs this, from 0";
  let form = "position"; let varies = 1;
  let description = [{
    Stands in the consumers' region of `tile.roles`, or behind it. With `tile.groups` on
    this and the next two ops, warpgroups of a block are meant, not consumer groups.
  }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_OrderedWaitOp : Tile_GpuOp<"ordered_wait", [MemoryEffects<[MemWrite]>]> {
  let summary = "wait until the consumer group before this one has arrived";
  let orders = "threads";
  let description = [{
    All threads of the group wait. The groups go on in order: at the start the last one
    arrives once, which lets the first one go.
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_OrderedArriveOp : Tile_GpuOp<"ordered_arrive", [MemoryEffects<[MemWrite]>]> {
  let summary = "let the next consumer group pass its `tile.ordered_wait`";
  let orders = "threads";
  let assemblyFormat = "attr-dict";
}

#endif // TILEWRIGHT_GPU_OPS_TD

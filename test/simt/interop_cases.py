"""Functions and kernels that C++ calls, and how they are declared there (test_interop.py)."""

from __future__ import annotations

from cuda import device


@device.struct
class Point:
    x: device.float32
    y: device.float32


@device.struct(align=16)
class Wide:
    count: device.int32
    sum: device.float64


@device.struct
class Large:
    values: tuple[device.float64, device.float64, device.float64]
    corner: Point


@device.func(interop=True)
def scaled(p: Point, s: device.float32) -> device.float32:
    return p.x * s + p.y


@device.func(interop=True)
def numbers(
    a: device.int8,
    b: device.uint8,
    c: device.int16,
    d: bool,
    e: int,
    f: float,
    g: device.uint64,
    h: device.float16,
    i: device.float8e4m3,
    j: device.bfloat16,
) -> Point:
    if d:
        return Point(device.float32(a) + device.float32(h), device.float32(b) + device.float32(i))
    return Point(device.float32(c + e) + f, device.float32(g) + device.float32(j))


@device.func(interop=True)
def records(w: Wide, v: device.float32x4, d: device.float64x2, c: device.int8x3, m: Large) -> Wide:
    return Wide(w.count + c.z, w.sum + v.w + d.y + m.values[2] + m.corner.y)


@device.func(interop=True)
def large(m: Large, by: device.float64) -> Large:
    return Large((m.values[0] * by, m.values[1], m.values[2]), m.corner)


@device.func(interop=True)
def successor(a: device.int8) -> device.int8:
    return a + device.int8(1)


@device.func(interop=True)
def negated(a: bool) -> bool:
    return not a


@device.func(interop=True)
def halves(a: device.float16x2, h: device.float16) -> device.float16x2:
    return device.float16x2(a.y, h)


@device.func(interop=True)
def mixed(z: device.complex64, t: tuple[int, device.float64], n: None) -> tuple[device.float64, int]:
    return t[1] + z.imag, t[0]


@device.func(interop=True)
def first_row(a: device.array(device.float32, 2), value: device.float32) -> device.uint64:
    for j in range(a.shape[1]):
        a[0, j] = value + j
    return device.uint64(a.strides[0])


@device.func(interop=True)
def nothing(a: device.array(device.int32, 0)) -> None:
    a[()] = 7


@device.kernel(interop=True)
def blend(
    a: device.int8,
    b: bool,
    h: device.float16,
    v: device.float32x3,
    h2: device.float16x2,
    m: Large,
    out: device.array(device.float32, 1),
):
    turned = device.shared_array(32, device.float32)
    turned[device.thread_idx.x] = v.x * device.thread_idx.x
    device.syncthreads()
    if b:
        out[device.tid(1)] = turned[31 - device.thread_idx.x] + h2.y + m.corner.x + h + a


FUNCTIONS = (scaled, numbers, records, large, successor, negated, halves, mixed, first_row, nothing, blend)

# What nvcc takes these declarations for: `extern "C" __device__`, or `__global__`; `Array<T, n>` is the descriptor.
DECLARATIONS = """
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <vector_types.h>
#include <stdint.h>
struct Point { float x, y; };
struct alignas(16) Wide { int count; double sum; };
struct Triple { double a, b, c; };
struct Large { Triple values; Point corner; };
struct alignas(8) Complex { float real, imag; };
struct Pair { int a; double b; };
struct Swapped { double b; int a; };
template <class T, int n> struct Array { T *data; uint64_t shape[n], strides[n]; };
template <class T> struct Array<T, 0> { T *data; };
"""
FUNCTIONS_OF_C = {
    "scaled": "float scaled(Point p, float s)",
    "numbers": "Point numbers(signed char a, unsigned char b, short c, bool d, int e, float f, uint64_t g, __half h, "
    "__nv_fp8_e4m3 i, __nv_bfloat16 j)",
    "records": "Wide records(Wide w, float4 v, double2 d, char3 c, Large m)",
    "large": "Large large(Large m, double by)",
    "successor": "signed char successor(signed char a)",
    "negated": "bool negated(bool a)",
    "halves": "__half2 halves(__half2 a, __half h)",
    "mixed": "Swapped mixed(Complex z, Pair t, void *n)",
    "first_row": "uint64_t first_row(Array<float, 2> a, float value)",
    "nothing": "void nothing(Array<int, 0> a)",
    "blend": "void blend(signed char a, bool b, __half h, float3 v, __half2 h2, Large m, Array<float, 1> out)",
}

# wrong plain: reals: 32 of 192, first at 0: found np.float64(1.224609375), expected np.float64(1.224744871391589)
# {"kind": "numba", "seed": 534, "draws": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11, 8, 0, 0, 0, 14, 0, 22]}
import math

from tilewright.numba import cuda, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64, uint8

THREADS, SIZE = 32, 32


@cuda.jit
def kernel(x_int64, x_int32, x_uint32, x_int8, x_uint8, x_int16, x_uint16, x_uint64, x_float64, x_float32, x_float16, bins_add_int64, bins_add_int32, bins_add_uint32, bins_add_uint64, bins_add_float64, bins_max_int64, bins_max_int32, bins_max_uint32, bins_max_uint64, bins_min_int64, bins_min_int32, bins_min_uint64, bins_and__int32, bins_and__uint64, bins_or__uint32, bins_or__int64, bins_xor_int64, bins_sub_int32, bins_sub_int64, out, reals, n):
    shared = cuda.shared.array(THREADS, int32)
    t, g = int64(cuda.threadIdx.x), cuda.grid(1)
    v0 = int64(((t + t) + (t + t)))
    s2 = cuda.shared.array(THREADS, float64)
    s2[t] = float64(math.sqrt(math.fabs(float16(min(max(float64(1.5), -900.0), 900.0)))))
    cuda.syncthreads()
    v1 = float64(s2[(t * 1 + 0) % THREADS])
    cuda.syncthreads()
    v3 = int64(((t + t) + (t + t)))
    out[g * 6 + 0] = v3
    out[g * 6 + 1] = v0
    out[g * 6 + 2] = n
    reals[g * 6 + 0] = v1
# a launch: grid 1, block 32, n 3

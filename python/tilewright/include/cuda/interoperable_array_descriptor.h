// interoperable_array_descriptor.h - arrays as functions of Python take them from C++, and give them
//
//     extern "C" __device__ float total(cuda::interoperable_array_descriptor<float, 2> x);
//     total(cuda::std::mdspan(pointer, rows, columns));
//
// Strides count elements. What is negative is so in two's complement.
#ifndef CUDA_INTEROPERABLE_ARRAY_DESCRIPTOR_H
#define CUDA_INTEROPERABLE_ARRAY_DESCRIPTOR_H

#include <cuda/std/array>
#include <cuda/std/cstdint>
#include <cuda/std/mdspan>
#include <cuda/std/type_traits>

#ifdef __CUDACC__
#define CUDA_INTEROPERABLE_API __host__ __device__
#else
#define CUDA_INTEROPERABLE_API
#endif

namespace cuda {

template <typename dtype, cuda::std::uint64_t ndim> struct interoperable_array_descriptor {
  dtype *data;
  cuda::std::uint64_t shape[ndim];
  cuda::std::uint64_t strides[ndim];

  interoperable_array_descriptor() = default;

  // Of anything that is not a descriptor itself.
  template <typename mdspan, typename = cuda::std::enable_if_t<!cuda::std::is_same<
                                 cuda::std::remove_cvref_t<mdspan>, interoperable_array_descriptor>::value>>
  CUDA_INTEROPERABLE_API interoperable_array_descriptor(mdspan &&ms) : data(ms.data_handle()) {
    static_assert(cuda::std::remove_cvref_t<mdspan>::rank() == ndim, "as many dimensions as the mdspan has");
    for (cuda::std::uint64_t i = 0; i < ndim; i++) {
      shape[i] = static_cast<cuda::std::uint64_t>(ms.extent(i));
      strides[i] = static_cast<cuda::std::uint64_t>(ms.stride(i));
    }
  }

  CUDA_INTEROPERABLE_API operator auto() const {
    using extents = cuda::std::dextents<cuda::std::uint64_t, ndim>;
    using mapping = cuda::std::layout_stride::mapping<extents>;
    cuda::std::array<cuda::std::uint64_t, ndim> sizes, steps;
    for (cuda::std::uint64_t i = 0; i < ndim; i++) {
      sizes[i] = shape[i];
      steps[i] = strides[i];
    }
    return cuda::std::mdspan<dtype, extents, cuda::std::layout_stride>(data, mapping(extents(sizes), steps));
  }
};

template <typename dtype> struct interoperable_array_descriptor<dtype, 0> {
  dtype *data;
};

} // namespace cuda

#undef CUDA_INTEROPERABLE_API
#endif

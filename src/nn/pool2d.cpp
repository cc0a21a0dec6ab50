// All pooling layers.
#include <declivity/nn/pool2d.hpp>
#include <declivity/nn/pool_nd.hpp>

#include <fmt/format.h>

#include "functions/pool/pool_windows.hpp"

namespace declivity::nn {
namespace {

std::string name_of_layer(const char* kind, int axes, const char* end = "") {
    return fmt::format("{}{}d{}", kind, axes, end);
}

/// @throws ValueError as the function would later
template <int N>
const PoolParameters<N>& checked(const std::string& layer, const PoolParameters<N>& pool) {
    declivity::detail::require_windows(layer, pool);
    return pool;
}

template <int N>
PoolParameters<N> windows_of(SpatialSize<N> kernel_size, const MaxPoolOptions<N>& options) {
    return {.kernel_size = kernel_size,
            .stride = options.stride,
            .padding = options.padding,
            .dilation = options.dilation,
            .ceil_mode = options.ceil_mode};
}

}  // namespace

// Macros, since functions of different ranks are different functions.
#define OF_RANK(name, ...)                                       \
    [&]() {                                                      \
        if constexpr (N == 1) return name##1d(__VA_ARGS__);      \
        else if constexpr (N == 2) return name##2d(__VA_ARGS__); \
        else return name##3d(__VA_ARGS__);                       \
    }()

template <int N>
MaxPool<N>::MaxPool(SpatialSize<N> kernel_size, const MaxPoolOptions<N>& options)
    : pool_(checked<N>(name_of_layer("MaxPool", N), windows_of<N>(kernel_size, options))) {}
template <int N>
std::string MaxPool<N>::type_name() const {
    return name_of_layer("MaxPool", N);
}
template <int N>
Tensor MaxPool<N>::forward(Tensor x) {
    return OF_RANK(max_pool, x, pool_);
}

template <int N>
MaxPoolWithIndices<N>::MaxPoolWithIndices(SpatialSize<N> kernel_size, const MaxPoolOptions<N>& options)
    : pool_(checked<N>(name_of_layer("MaxPool", N, "WithIndices"), windows_of<N>(kernel_size, options))) {}
template <int N>
std::string MaxPoolWithIndices<N>::type_name() const {
    return name_of_layer("MaxPool", N, "WithIndices");
}
template <int N>
MaxPooled MaxPoolWithIndices<N>::forward(Tensor x) {
    if constexpr (N == 1) return max_pool1d_with_indices(x, pool_);
    else if constexpr (N == 2) return max_pool2d_with_indices(x, pool_);
    else return max_pool3d_with_indices(x, pool_);
}

template <int N>
AvgPool<N>::AvgPool(SpatialSize<N> kernel_size, const AvgPoolOptions<N>& options)
    : pool_(checked<N>(name_of_layer("AvgPool", N), {.kernel_size = kernel_size,
                                                     .stride = options.stride,
                                                     .padding = options.padding,
                                                     .ceil_mode = options.ceil_mode,
                                                     .count_include_pad = options.count_include_pad,
                                                     .divisor_override = options.divisor_override})) {}
template <int N>
std::string AvgPool<N>::type_name() const {
    return name_of_layer("AvgPool", N);
}
template <int N>
Tensor AvgPool<N>::forward(Tensor x) {
    return OF_RANK(avg_pool, x, pool_);
}

Tensor GlobalAvgPool2d::forward(Tensor x) { return global_avg_pool2d(x); }

template <int N>
AdaptiveAvgPool<N>::AdaptiveAvgPool(SpatialSize<N> output_size) : output_size_(output_size) {}
template <int N>
std::string AdaptiveAvgPool<N>::type_name() const {
    return name_of_layer("AdaptiveAvgPool", N);
}
template <int N>
Tensor AdaptiveAvgPool<N>::forward(Tensor x) {
    return OF_RANK(adaptive_avg_pool, x, output_size_);
}

template <int N>
AdaptiveMaxPool<N>::AdaptiveMaxPool(SpatialSize<N> output_size) : output_size_(output_size) {}
template <int N>
std::string AdaptiveMaxPool<N>::type_name() const {
    return name_of_layer("AdaptiveMaxPool", N);
}
template <int N>
Tensor AdaptiveMaxPool<N>::forward(Tensor x) {
    return OF_RANK(adaptive_max_pool, x, output_size_);
}

template <int N>
MaxUnpool<N>::MaxUnpool(SpatialSize<N> kernel_size, const MaxUnpoolOptions<N>& options)
    : pool_(checked<N>(name_of_layer("MaxUnpool", N),
                       {.kernel_size = kernel_size, .stride = options.stride, .padding = options.padding})),
      output_size_(options.output_size) {}
template <int N>
std::string MaxUnpool<N>::type_name() const {
    return name_of_layer("MaxUnpool", N);
}
template <int N>
Tensor MaxUnpool<N>::forward(Tensor x, Tensor indices) {
    return OF_RANK(max_unpool, x, indices, pool_, output_size_);
}

template <int N>
LPPool<N>::LPPool(double norm_type, SpatialSize<N> kernel_size, const LPPoolOptions<N>& options)
    : norm_type_(norm_type),
      pool_(checked<N>(name_of_layer("LPPool", N),
                       {.kernel_size = kernel_size, .stride = options.stride, .ceil_mode = options.ceil_mode})) {}
template <int N>
std::string LPPool<N>::type_name() const {
    return name_of_layer("LPPool", N);
}
template <int N>
Tensor LPPool<N>::forward(Tensor x) {
    return OF_RANK(lp_pool, x, norm_type_, pool_);
}

template <int N>
FractionalMaxPool<N>::FractionalMaxPool(const FractionalPoolParameters<N>& options, std::optional<Generator> generator)
    : options_(options), generator_(std::move(generator)) {}
template <int N>
std::string FractionalMaxPool<N>::type_name() const {
    return name_of_layer("FractionalMaxPool", N);
}
template <int N>
Tensor FractionalMaxPool<N>::forward(Tensor x) {
    if constexpr (N == 2) return fractional_max_pool2d(x, options_, {}, generator_);
    else return fractional_max_pool3d(x, options_, {}, generator_);
}

#define OF_EACH_RANK(layer)  \
    template class layer<1>; \
    template class layer<2>; \
    template class layer<3>;
OF_EACH_RANK(MaxPool)
OF_EACH_RANK(AvgPool)
OF_EACH_RANK(AdaptiveAvgPool)
OF_EACH_RANK(AdaptiveMaxPool)
OF_EACH_RANK(MaxPoolWithIndices)
OF_EACH_RANK(MaxUnpool)
OF_EACH_RANK(LPPool)
template class FractionalMaxPool<2>;
template class FractionalMaxPool<3>;

}  // namespace declivity::nn

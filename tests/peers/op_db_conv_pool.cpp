// Adapters for PyTorch's convolutions, padding and pooling.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "op_db.hpp"

namespace declivity::peers {
namespace {

using A = Arguments;
using Tensors = std::vector<Tensor>;

/// One number for each of N axes.
template <int N>
SpatialSize<N> sizes(const Dims& given) {
    if (given.empty()) return 0;  // default stride: the window size
    if constexpr (N == 1) return given[0];
    else {
        if (given.rank() == 1) return given[0];
        if constexpr (N == 2) return Size2(given[0], given[1]);
        else return Size3(given[0], given[1], given[2]);
    }
}

template <int N>
SpatialSize<N> sizes_of(A& a, std::size_t position, const char* name, std::optional<std::int64_t> default_value) {
    return sizes<N>(default_value ? a.dims(position, name, Dims{*default_value}) : a.dims(position, name));
}

ConvPadding padding_of(A& a) {
    try {
        const std::string word = a.word(4, "padding", "");
        if (!word.empty()) return word.c_str();
    } catch (const UnsupportedSample&) {  // numbers
    }
    const Dims numbers = a.dims(4, "padding", Dims{0});
    return numbers;
}

template <int N, class Parameters, class Function>
Adapter convolution(Function function) {
    return [function](A& a) {
        return Tensors{function(a.tensor(0), a.tensor(1, "weight"), a.tensor_or_none(2, "bias"),
                                Parameters{.stride = sizes_of<N>(a, 3, "stride", 1),
                                           .padding = padding_of(a),
                                           .dilation = sizes_of<N>(a, 5, "dilation", 1),
                                           .groups = a.integer(6, "groups", 1)})};
    };
}

template <int N, class Parameters, class Function>
Adapter transposed(Function function) {
    return [function](A& a) {
        return Tensors{function(a.tensor(0), a.tensor(1, "weight"), a.tensor_or_none(2, "bias"),
                                Parameters{.stride = sizes_of<N>(a, 3, "stride", 1),
                                           .padding = sizes_of<N>(a, 4, "padding", 0),
                                           .output_padding = sizes_of<N>(a, 5, "output_padding", 0),
                                           .dilation = sizes_of<N>(a, 7, "dilation", 1),
                                           .groups = a.integer(6, "groups", 1)})};
    };
}

void add_convolutions(Table& all) {
    all["nn.functional.conv1d"] = convolution<1, Conv1dParameters>(conv1d);
    all["nn.functional.conv2d"] = convolution<2, Conv2dParameters>(conv2d);
    all["nn.functional.conv3d"] = convolution<3, Conv3dParameters>(conv3d);
    all["nn.functional.conv_transpose1d"] = transposed<1, ConvTranspose1dParameters>(conv_transpose1d);
    all["nn.functional.conv_transpose2d"] = transposed<2, ConvTranspose2dParameters>(conv_transpose2d);
    all["nn.functional.conv_transpose3d"] = transposed<3, ConvTranspose3dParameters>(conv_transpose3d);
    const auto windows_of = [](A& a, std::size_t first) {
        return UnfoldParameters{.kernel_size = sizes_of<2>(a, first, "kernel_size", std::nullopt),
                                .stride = sizes_of<2>(a, first + 3, "stride", 1),
                                .padding = sizes_of<2>(a, first + 2, "padding", 0),
                                .dilation = sizes_of<2>(a, first + 1, "dilation", 1)};
    };
    all["nn.functional.unfold"] = [=](A& a) { return Tensors{unfold(a.tensor(0), windows_of(a, 1))}; };
    all["nn.functional.fold"] = [=](A& a) {
        const auto size = sizes_of<2>(a, 1, "output_size", std::nullopt);
        return Tensors{fold(a.tensor(0), size, windows_of(a, 2))};
    };
    for (const char* name : {"unfold", "unfold_copy"})
        all[name] = [](A& a) {
            return Tensors{
                unfold_axis(a.tensor(0), a.integer(1, "dimension"), a.integer(2, "size"), a.integer(3, "step"))};
        };
    const auto numbers = [](A& a) {
        const Dims given = a.dims(1, "pad");
        return std::vector<std::int64_t>(given.begin(), given.end());
    };
    for (const char* variant : {"", ".constant", ".reflect", ".replicate", ".replicate_negative", ".circular"})
        all[fmt::format("nn.functional.pad{}", variant)] = [=](A& a) {
            const std::string word = a.word(2, "mode", "constant");
            const PadMode mode = word == "reflect"     ? PadMode::reflect
                                 : word == "replicate" ? PadMode::replicate
                                 : word == "circular"  ? PadMode::circular
                                                       : PadMode::constant;
            return Tensors{pad(a.tensor(0), numbers(a), mode, a.scalar(3, "value", Scalar(0)))};
        };
    all["constant_pad_nd"] = [=](A& a) {
        return Tensors{pad(a.tensor(0), numbers(a), PadMode::constant, a.scalar(2, "value", Scalar(0)))};
    };
}

/// The maxima, and their indices if requested.
Tensors returned(const MaxPooled& both, bool with_indices) {
    if (!with_indices) return {both.values};
    return {both.values, both.indices};
}

template <int N, class Function>
Adapter maximum_of(Function function) {
    return [function](A& a) {
        const PoolParameters<N> windows{.kernel_size = sizes_of<N>(a, 1, "kernel_size", std::nullopt),
                                        .stride = sizes_of<N>(a, 2, "stride", 0),
                                        .padding = sizes_of<N>(a, 3, "padding", 0),
                                        .dilation = sizes_of<N>(a, 4, "dilation", 1),
                                        .ceil_mode = a.flag(5, "ceil_mode", false)};
        return returned(function(a.tensor(0), windows), a.flag(6, "return_indices", false));
    };
}

template <int N>
Adapter average_of(Tensor (*function)(const Tensor&, const PoolParameters<N>&)) {
    return [function](A& a) {
        return Tensors{
            function(a.tensor(0), PoolParameters<N>{.kernel_size = sizes_of<N>(a, 1, "kernel_size", std::nullopt),
                                                    .stride = sizes_of<N>(a, 2, "stride", 0),
                                                    .padding = sizes_of<N>(a, 3, "padding", 0),
                                                    .ceil_mode = a.flag(4, "ceil_mode", false),
                                                    .count_include_pad = a.flag(5, "count_include_pad", true),
                                                    .divisor_override = a.integer(6, "divisor_override", 0)})};
    };
}

template <int N, class Function>
Adapter norm_of(Function function) {
    return [function](A& a) {
        const double p = a.number(1, "norm_type");
        return Tensors{function(a.tensor(0), p,
                                PoolParameters<N>{.kernel_size = sizes_of<N>(a, 2, "kernel_size", std::nullopt),
                                                  .stride = sizes_of<N>(a, 3, "stride", 0),
                                                  .ceil_mode = a.flag(4, "ceil_mode", false)})};
    };
}

template <int N, class Function>
Adapter adaptive_mean_of(Function function) {
    return [function](A& a) { return Tensors{function(a.tensor(0), sizes_of<N>(a, 1, "output_size", std::nullopt))}; };
}

template <int N, class Function>
Adapter adaptive_maximum_of(Function function) {
    return [function](A& a) {
        const auto size = sizes_of<N>(a, 1, "output_size", std::nullopt);
        return returned(function(a.tensor(0), size), a.flag(2, "return_indices", false));
    };
}

template <int N, class Function>
Adapter unpool_of(Function function) {
    return [function](A& a) {
        const PoolParameters<N> windows{.kernel_size = sizes_of<N>(a, 2, "kernel_size", std::nullopt),
                                        .stride = sizes_of<N>(a, 3, "stride", 0),
                                        .padding = sizes_of<N>(a, 4, "padding", 0)};
        const Dims given = a.dims(5, "output_size", Dims());
        Dims spatial;
        for (int axis = given.rank() > N ? given.rank() - N : 0; axis < given.rank(); ++axis)
            spatial.push_back(given[axis]);
        return Tensors{function(a.tensor(0), a.tensor(1), windows, spatial)};
    };
}

void add_pools(Table& all) {
    const auto add = [&](const std::string& name, Adapter adapter) {
        all["nn.functional." + name] = std::move(adapter);
    };
    add("max_pool1d", maximum_of<1>(max_pool1d_with_indices));
    add("max_pool2d", maximum_of<2>(max_pool2d_with_indices));
    add("max_pool3d", maximum_of<3>(max_pool3d_with_indices));
    add("avg_pool1d", average_of<1>(avg_pool1d));
    add("avg_pool2d", average_of<2>(avg_pool2d));
    add("avg_pool3d", average_of<3>(avg_pool3d));
    add("lp_pool1d", norm_of<1>(lp_pool1d));
    add("lp_pool2d", norm_of<2>(lp_pool2d));
    add("lp_pool3d", norm_of<3>(lp_pool3d));
    add("adaptive_avg_pool1d", adaptive_mean_of<1>(adaptive_avg_pool1d));
    add("adaptive_avg_pool2d", adaptive_mean_of<2>(adaptive_avg_pool2d));
    add("adaptive_avg_pool3d", adaptive_mean_of<3>(adaptive_avg_pool3d));
    add("adaptive_max_pool1d", adaptive_maximum_of<1>(adaptive_max_pool1d_with_indices));
    add("adaptive_max_pool2d", adaptive_maximum_of<2>(adaptive_max_pool2d_with_indices));
    add("adaptive_max_pool3d", adaptive_maximum_of<3>(adaptive_max_pool3d_with_indices));
    for (const char* variant : {"", ".grad"}) {
        add(fmt::format("max_unpool1d{}", variant), unpool_of<1>(max_unpool1d));
        add(fmt::format("max_unpool2d{}", variant), unpool_of<2>(max_unpool2d));
        add(fmt::format("max_unpool3d{}", variant), unpool_of<3>(max_unpool3d));
    }
    for (const char* name : {"fractional_max_pool2d", "fractional_max_pool3d"})
        add(name, [](A&) -> Tensors { throw UnsupportedSample("windows at places that PyTorch draws"); });
}

const Adapters convolutions{add_convolutions}, pools{add_pools};

}  // namespace
}  // namespace declivity::peers

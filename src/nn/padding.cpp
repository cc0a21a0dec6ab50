#include <declivity/nn/padding.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace declivity::nn {
namespace {

std::string name_of_layer(PadMode mode, int axes) {
    constexpr const char* kNames[] = {"Zero", "Reflection", "Replication", "Circular"};
    return fmt::format("{}Pad{}d", kNames[static_cast<std::size_t>(mode)], axes);
}

std::vector<std::int64_t> checked(const std::string& layer, std::vector<std::int64_t> pads, std::size_t axes) {
    if (pads.size() != 2 * axes)
        throw ValueError(fmt::format("{}: expected {} numbers, a pair for each axis, got {}", layer, 2 * axes, pads));
    return pads;
}

}  // namespace

template <int N, PadMode mode>
Pad<N, mode>::Pad(std::vector<std::int64_t> pads) : pads_(checked(name_of_layer(mode, N), std::move(pads), N)) {}
template <int N, PadMode mode>
std::string Pad<N, mode>::type_name() const {
    return name_of_layer(mode, N);
}
template <int N, PadMode mode>
Tensor Pad<N, mode>::forward(Tensor x) {
    return pad(x, pads_, mode);
}

template <int N>
ConstantPad<N>::ConstantPad(std::vector<std::int64_t> pads, Scalar value)
    : pads_(checked(fmt::format("ConstantPad{}d", N), std::move(pads), N)), value_(value) {}
template <int N>
std::string ConstantPad<N>::type_name() const {
    return fmt::format("ConstantPad{}d", N);
}
template <int N>
Tensor ConstantPad<N>::forward(Tensor x) {
    return pad(x, pads_, PadMode::constant, value_);
}

template class Pad<1, PadMode::zeros>;
template class Pad<2, PadMode::zeros>;
template class Pad<3, PadMode::zeros>;
template class Pad<1, PadMode::reflect>;
template class Pad<2, PadMode::reflect>;
template class Pad<3, PadMode::reflect>;
template class Pad<1, PadMode::replicate>;
template class Pad<2, PadMode::replicate>;
template class Pad<3, PadMode::replicate>;
template class Pad<1, PadMode::circular>;
template class Pad<2, PadMode::circular>;
template class Pad<3, PadMode::circular>;
template class ConstantPad<1>;
template class ConstantPad<2>;
template class ConstantPad<3>;

}  // namespace declivity::nn

#include <declivity/tensor/generator.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity {

void manual_seed(std::uint64_t seed) { ops::seed_all(seed); }

RandomState random_state(const Device& device) {
    const auto position = ops::random_position(device);
    return {position.seed, position.offset};
}

void set_random_state(const Device& device, const RandomState& state) {
    ops::set_random_position(device, {state.seed, state.offset});
}

Generator::Generator(std::uint64_t seed, const std::optional<Device>& device)
    : stream_(device ? *device : default_device(), {.seed = seed}) {}

Generator Generator::default_of(const Device& device) { return Generator(ops::RandomStream::of(device)); }

Device Generator::device() const { return stream_.device(); }
std::uint64_t Generator::seed() const { return stream_.position().seed; }
Generator& Generator::manual_seed(std::uint64_t seed) {
    stream_.set_position({.seed = seed});
    return *this;
}
std::uint64_t Generator::position() const {
    const ops::RandomPosition current = stream_.position();
    return current.offset * 4 + current.words;
}
Generator& Generator::set_position(std::uint64_t position) {
    stream_.set_position({.seed = seed(), .offset = position / 4, .words = position % 4});
    return *this;
}

Generator Generator::rows(std::int64_t first, std::int64_t end, std::int64_t whole) const {
    if (!(0 <= first && first < end && end <= whole))
        throw ShapeError(fmt::format("Generator::rows: expected rows [first, end) of a batch, got [{}, {}) of {}",
                                     first, end, whole));
    Generator out = *this;
    out.rows_ = {first, end, whole};
    return out;
}

ops::RandomCall Generator::take(std::string_view function, DType dtype, const Shape& shape) const {
    const std::int64_t count = shape.numel();
    if (!rows_) return stream_.take(dtype, count);
    const std::int64_t row_count = rows_->end - rows_->first;
    if (shape.rank() < 1 || shape[0] != row_count)
        throw ShapeError(
            fmt::format("{}: expected a tensor of {} rows for a generator of rows [{}, {}) of {}, got shape "
                        "{}",
                        function, row_count, rows_->first, rows_->end, rows_->whole, shape.str()));
    const std::int64_t row_elements = count / row_count;
    return stream_.take(dtype, count, {rows_->first * row_elements, rows_->whole * row_elements});
}

void Generator::draw_on_host(std::string_view function,
                             const std::function<std::uint64_t(const ops::RandomPosition& position)>& generate) const {
    if (rows_)
        throw ShapeError(
            fmt::format("{}: expected a generator of all rows, since numbers are drawn on the host, got one "
                        "of rows [{}, {}) of {}",
                        function, rows_->first, rows_->end, rows_->whole));
    stream_.draw_on_host(function, generate);
}

}  // namespace declivity

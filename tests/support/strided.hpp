// Permuted, sliced or broadcast arrays in a larger device buffer, with a copy on the host and the position of every
// element; the memory around a view is checked as well.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <declivity/ops/view.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::test {

/// Random integers, reproducible everywhere.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 0x632be59bd9b4e019ULL) {}
    /// In [0, limit).
    std::int64_t below(std::int64_t limit);

  private:
    std::uint64_t state_;
};

enum class Broadcast : bool { no, yes };

class StridedArray {
  public:
    StridedArray(const std::vector<double>& memory, DType dtype, std::int64_t offset, const Shape& shape,
                 const Strides& strides);
    [[nodiscard]] const ops::View& view() const { return view_; }
    /// The element at an index of a shape that this one broadcasts to.
    [[nodiscard]] double at(const Dims& index) const;
    /// Sets the values that the device is expected to write.
    void expect(const Shape& shape, const std::function<double(const Dims&)>& value);
    /// Returns an empty string if the whole buffer is as expected, rounded to the type.
    [[nodiscard]] std::string check() const;

  private:
    std::vector<double> memory_;
    ops::View view_;
};

/// Random values; axes in any order in memory, sliced from larger ones, some with steps. With Broadcast::yes some axes
/// have size 1 or leading ones are missing.
StridedArray random_strided(const Shape& shape, Random& random, Broadcast broadcast, DType dtype = DType::f32);

/// Calls a function with every index of a shape, in row-major order.
void for_each_index(const Shape& shape, const std::function<void(const Dims&)>& call);

/// f(a, b) for each index, row-major, rounded to float.
std::vector<double> combined(const Shape& shape, const StridedArray& a, const StridedArray& b,
                             const std::function<double(double, double)>& f);

}  // namespace declivity::test

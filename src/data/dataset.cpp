#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include <declivity/data/dataset.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::data {
namespace {

void check_index(const char* function, std::int64_t index, std::int64_t size) {
    if (index < 0 || index >= size)
        throw ValueError(fmt::format("{}: wants an index in [0, {}), got {}", function, size, index));
}

// A division for each pixel would cost more than the look-up.
constexpr std::array<float, 256> kByteToUnit = [] {
    std::array<float, 256> table{};
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i) / 255.0F;
    return table;
}();

}  // namespace

Dataset::~Dataset() = default;
InMemoryDataset::~InMemoryDataset() = default;
Subset::~Subset() = default;

std::vector<std::string> Dataset::class_names() const {
    std::vector<std::string> names;
    for (std::int64_t i = 0; i < classes(); ++i) names.push_back(std::to_string(i));
    return names;
}

void Dataset::read(std::int64_t index, std::span<float> features) const {
    check_index("Dataset::read", index, size());
    if (std::cmp_not_equal(features.size(), shape().numel()))
        throw ShapeError(fmt::format("Dataset::read: wants room for {} values of shape {}, got {}", shape().numel(),
                                     shape().str(), features.size()));
    do_read(index, features);
}

std::int64_t Dataset::label(std::int64_t index) const {
    check_index("Dataset::label", index, size());
    return do_label(index);
}

InMemoryDataset::InMemoryDataset(const Shape& shape, std::vector<float> values, std::vector<std::int64_t> labels,
                                 std::int64_t classes, std::vector<std::string> class_names)
    : shape_(shape),
      values_(std::move(values)),
      labels_(std::move(labels)),
      classes_(classes),
      class_names_(std::move(class_names)) {
    check();
}

InMemoryDataset::InMemoryDataset(const Shape& shape, std::vector<std::uint8_t> values, std::vector<std::int64_t> labels,
                                 std::int64_t classes, std::vector<std::string> class_names)
    : shape_(shape),
      values_(std::move(values)),
      labels_(std::move(labels)),
      classes_(classes),
      class_names_(std::move(class_names)) {
    check();
}

void InMemoryDataset::check() const {
    for (const std::int64_t extent : shape_)
        if (extent < 1)
            throw ShapeError(fmt::format("InMemoryDataset: wants sizes of at least 1, got shape {}", shape_.str()));
    const std::size_t values = std::visit([](const auto& all) { return all.size(); }, values_);
    // Divided, since a product of sizes could overflow.
    const auto each = static_cast<std::size_t>(shape_.numel());
    if (labels_.empty() ? values != 0 : values % labels_.size() != 0 || values / labels_.size() != each)
        throw ShapeError(fmt::format("InMemoryDataset: wants {} values for each of {} labels, got {} in all", each,
                                     labels_.size(), values));
    if (!class_names_.empty() && std::cmp_not_equal(class_names_.size(), classes_))
        throw ShapeError(fmt::format("InMemoryDataset: wants one name for each of {} classes, got {}", classes_,
                                     class_names_.size()));
    for (std::size_t i = 0; i < labels_.size(); ++i)
        if (labels_[i] < 0 || labels_[i] >= classes_)
            throw ValueError(fmt::format("InMemoryDataset: wants labels in [0, {}), got {} for example {}", classes_,
                                         labels_[i], i));
}

std::vector<std::string> InMemoryDataset::class_names() const {
    return class_names_.empty() ? Dataset::class_names() : class_names_;
}

void InMemoryDataset::do_read(std::int64_t index, std::span<float> features) const {
    const std::size_t first = static_cast<std::size_t>(index) * features.size();
    if (const auto* floats = std::get_if<std::vector<float>>(&values_))
        std::copy_n(floats->data() + first, features.size(), features.data());
    else
        std::ranges::transform(std::span(std::get<1>(values_)).subspan(first, features.size()), features.begin(),
                               [](std::uint8_t byte) { return kByteToUnit[byte]; });
}

std::int64_t InMemoryDataset::do_label(std::int64_t index) const { return labels_[static_cast<std::size_t>(index)]; }

Subset::Subset(std::shared_ptr<const Dataset> whole, std::vector<std::int64_t> indices)
    : whole_(std::move(whole)), indices_(std::move(indices)) {
    if (!whole_) throw ValueError("Subset: wants a data set, got null");
    for (const std::int64_t index : indices_) check_index("Subset", index, whole_->size());
}

Subset::Subset(std::shared_ptr<const Dataset> whole, std::int64_t first, std::int64_t last) : whole_(std::move(whole)) {
    if (!whole_) throw ValueError("Subset: wants a data set, got null");
    if (first < 0 || last < first || last > whole_->size())
        throw ValueError(
            fmt::format("Subset: wants 0 <= first <= last <= {}, got {} and {}", whole_->size(), first, last));
    indices_.resize(static_cast<std::size_t>(last - first));
    std::iota(indices_.begin(), indices_.end(), first);
}

void Subset::do_read(std::int64_t index, std::span<float> features) const {
    whole_->read(indices_[static_cast<std::size_t>(index)], features);
}

std::int64_t Subset::do_label(std::int64_t index) const {
    return whole_->label(indices_[static_cast<std::size_t>(index)]);
}

std::shared_ptr<const Dataset> take(std::shared_ptr<const Dataset> whole, std::int64_t count) {
    if (!whole) throw ValueError("take: wants a data set, got null");
    if (count < 0) throw ValueError(fmt::format("take: wants a count of at least 0, got {}", count));
    const std::int64_t size = whole->size();
    if (count >= size) return whole;
    return std::make_shared<Subset>(std::move(whole), 0, count);
}

}  // namespace declivity::data

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>

#include <declivity/data/dataset.hpp>
#include <declivity/data/dataset_ref.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "field_names.hpp"

namespace declivity::data {
namespace {

void check_index(const char* function, std::int64_t index, std::int64_t size) {
    if (index < 0 || index >= size)
        throw ValueError(fmt::format("{}: expected an index in [0, {}), got {}", function, size, index));
}

// A look-up table: a division per pixel would be slower.
constexpr std::array<float, 256> kByteToUnit = [] {
    std::array<float, 256> table{};
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i) / 255.0F;
    return table;
}();

}  // namespace

Dataset::~Dataset() = default;

const Dataset& DatasetRef::get(std::string_view function) const {
    if (dataset_ == nullptr) throw ValueError(fmt::format("{}: expected a data set, got null", function));
    return *dataset_;
}
ClassificationDataset::~ClassificationDataset() = default;
InMemoryDataset::~InMemoryDataset() = default;
TensorDataset::~TensorDataset() = default;
FunctionDataset::~FunctionDataset() = default;
Subset::~Subset() = default;
ConcatDataset::~ConcatDataset() = default;

Field Dataset::field(std::string_view name) const {
    std::vector<Field> all_fields = fields();
    std::vector<std::string> names;
    for (const Field& field : all_fields) names.push_back(field.name);
    return std::move(all_fields[position_of("Dataset::field", names, name)]);
}

Example Dataset::example(std::int64_t index) const {
    check_index("Dataset::example", index, size());
    const std::vector<Field> all_fields = fields();
    FieldNames names = names_of("Dataset::example", all_fields);
    std::vector<io::HostArray> arrays = do_example(index);
    if (arrays.size() != all_fields.size())
        throw ValueError(fmt::format("Dataset::example: expected {} fields of example {}, {}, got {}",
                                     all_fields.size(), index, *names, arrays.size()));
    for (std::size_t i = 0; i < all_fields.size(); ++i)
        check_field("Dataset::example", all_fields[i], arrays[i], index);
    return {std::move(names), std::move(arrays), index};
}

void Dataset::do_read(std::int64_t index, FieldBuffers buffers) const {
    const Example loaded = example(index);
    for (std::size_t i = 0; i < buffers.size(); ++i)
        if (!buffers[i].empty()) std::memcpy(buffers[i].data(), loaded[i].bytes.data(), buffers[i].size());
}

std::vector<std::string> ClassificationDataset::class_names() const {
    std::vector<std::string> names;
    for (std::int64_t i = 0; i < classes(); ++i) names.push_back(std::to_string(i));
    return names;
}

std::vector<Field> ClassificationDataset::fields() const {
    const Shape features = shape();
    return {{.name = features.rank() == 3 ? "image" : "features", .dtype = DType::f32, .shape = features},
            {.name = "label", .dtype = DType::i64, .shape = Shape{}, .class_names = class_names()}};
}

void ClassificationDataset::read(std::int64_t index, std::span<float> features) const {
    check_index("Dataset::read", index, size());
    if (std::cmp_not_equal(features.size(), shape().numel()))
        throw ShapeError(fmt::format("Dataset::read: expected room for {} values of shape {}, got {}", shape().numel(),
                                     shape().str(), features.size()));
    do_features(index, features);
}

std::int64_t ClassificationDataset::label(std::int64_t index) const {
    check_index("Dataset::label", index, size());
    return do_label(index);
}

std::vector<io::HostArray> ClassificationDataset::do_example(std::int64_t index) const {
    const Shape features = shape();
    io::HostArray out{DType::f32, features,
                      std::vector<std::byte>(sizeof(float) * static_cast<std::size_t>(features.numel()))};
    do_features(index, out.as<float>());
    return {std::move(out), io::HostArray::of(do_label(index))};
}

void ClassificationDataset::do_read(std::int64_t index, FieldBuffers buffers) const {
    do_features(index, {reinterpret_cast<float*>(buffers[0].data()), buffers[0].size() / sizeof(float)});
    const std::int64_t label = do_label(index);
    std::memcpy(buffers[1].data(), &label, sizeof label);
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
            throw ShapeError(fmt::format("InMemoryDataset: expected sizes of at least 1, got shape {}", shape_.str()));
    const std::size_t values = std::visit([](const auto& items) { return items.size(); }, values_);
    // Divided, since a product of sizes could overflow.
    const auto example_size = static_cast<std::size_t>(shape_.numel());
    if (labels_.empty() ? values != 0 : values % labels_.size() != 0 || values / labels_.size() != example_size)
        throw ShapeError(fmt::format("InMemoryDataset: expected {} values for each of {} labels, got {} in all",
                                     example_size, labels_.size(), values));
    if (!class_names_.empty() && std::cmp_not_equal(class_names_.size(), classes_))
        throw ShapeError(fmt::format("InMemoryDataset: expected one name for each of {} classes, got {}", classes_,
                                     class_names_.size()));
    for (std::size_t i = 0; i < labels_.size(); ++i)
        if (labels_[i] < 0 || labels_[i] >= classes_)
            throw ValueError(fmt::format("InMemoryDataset: expected labels in [0, {}), got {} for example {}", classes_,
                                         labels_[i], i));
}

std::vector<std::string> InMemoryDataset::class_names() const {
    return class_names_.empty() ? ClassificationDataset::class_names() : class_names_;
}

void InMemoryDataset::do_features(std::int64_t index, std::span<float> features) const {
    const std::size_t first = static_cast<std::size_t>(index) * features.size();
    if (const auto* floats = std::get_if<std::vector<float>>(&values_))
        std::copy_n(floats->data() + first, features.size(), features.data());
    else
        std::ranges::transform(std::span(std::get<1>(values_)).subspan(first, features.size()), features.begin(),
                               [](std::uint8_t byte) { return kByteToUnit[byte]; });
}

std::int64_t InMemoryDataset::do_label(std::int64_t index) const { return labels_[static_cast<std::size_t>(index)]; }

TensorDataset::TensorDataset(std::vector<std::pair<std::string, io::HostArray>> arrays) {
    for (auto& [name, array] : arrays) {
        array.check("TensorDataset");
        if (array.shape.rank() == 0)
            throw ShapeError(fmt::format(
                "TensorDataset: expected arrays with a first axis for the examples, got '{}' of shape []", name));
        if (fields_.empty()) size_ = array.shape[0];
        if (array.shape[0] != size_)
            throw ShapeError(fmt::format("TensorDataset: expected '{}' with {} examples, as '{}', got shape {}", name,
                                         size_, fields_[0].name, array.shape.str()));
        Shape example_shape = array.shape;
        example_shape.erase(0);
        fields_.push_back({.name = name, .dtype = array.dtype, .shape = example_shape});
        arrays_.push_back(std::move(array));
    }
    (void)names_of("TensorDataset", fields_);
}

std::span<const std::byte> TensorDataset::part(std::size_t field, std::int64_t index) const {
    const std::size_t example_bytes = arrays_[field].bytes.size() / static_cast<std::size_t>(size_);
    return std::span(arrays_[field].bytes).subspan(static_cast<std::size_t>(index) * example_bytes, example_bytes);
}

std::vector<io::HostArray> TensorDataset::do_example(std::int64_t index) const {
    std::vector<io::HostArray> out;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
        const auto bytes = part(i, index);
        out.push_back({fields_[i].dtype, *fields_[i].shape, {bytes.begin(), bytes.end()}});
    }
    return out;
}

void TensorDataset::do_read(std::int64_t index, FieldBuffers buffers) const {
    for (std::size_t i = 0; i < buffers.size(); ++i)
        if (!buffers[i].empty()) std::memcpy(buffers[i].data(), part(i, index).data(), buffers[i].size());
}

FunctionDataset::FunctionDataset(std::int64_t size, std::vector<Field> fields, Read read)
    : size_(size), fields_(std::move(fields)), read_(std::move(read)) {
    if (size < 0) throw ValueError(fmt::format("FunctionDataset: expected a size of at least 0, got {}", size));
    if (!read_) throw ValueError("FunctionDataset: expected a function, got an empty one");
    (void)names_of("FunctionDataset", fields_);
}

Subset::Subset(std::shared_ptr<const Dataset> dataset, std::vector<std::int64_t> indices)
    : whole_(std::move(dataset)), indices_(std::move(indices)) {
    if (!whole_) throw ValueError("Subset: expected a data set, got null");
    for (const std::int64_t index : indices_) check_index("Subset", index, whole_->size());
}

Subset::Subset(std::shared_ptr<const Dataset> dataset, std::int64_t first, std::int64_t last)
    : whole_(std::move(dataset)) {
    if (!whole_) throw ValueError("Subset: expected a data set, got null");
    if (first < 0 || last < first || last > whole_->size())
        throw ValueError(
            fmt::format("Subset: expected 0 <= first <= last <= {}, got {} and {}", whole_->size(), first, last));
    indices_.resize(static_cast<std::size_t>(last - first));
    std::iota(indices_.begin(), indices_.end(), first);
}

std::vector<io::HostArray> Subset::do_example(std::int64_t index) const {
    return example_of(*whole_, indices_[static_cast<std::size_t>(index)]);
}

void Subset::do_read(std::int64_t index, FieldBuffers buffers) const {
    read_of(*whole_, indices_[static_cast<std::size_t>(index)], buffers);
}

ConcatDataset::ConcatDataset(std::vector<std::shared_ptr<const Dataset>> parts) : parts_(std::move(parts)) {
    if (parts_.empty()) throw ValueError("ConcatDataset: expected at least one data set, got none");
    std::int64_t end = 0;
    for (std::size_t part = 0; part < parts_.size(); ++part) {
        if (!parts_[part])
            throw ValueError(fmt::format("ConcatDataset: expected data sets, got null as number {}", part));
        ends_.push_back(end += parts_[part]->size());
        const std::vector<Field> fields = parts_[part]->fields();
        const FieldNames names = names_of("ConcatDataset", fields);
        if (part == 0) {
            fields_ = fields;
            continue;
        }
        const FieldNames first = names_of("ConcatDataset", fields_);
        if (*names != *first)
            throw ValueError(
                fmt::format("ConcatDataset: expected data sets of the same fields, got {} and, as number {}, {}",
                            *first, part, *names));
        for (std::size_t i = 0; i < fields.size(); ++i) {
            if (fields[i].dtype != fields_[i].dtype)
                throw TypeError(fmt::format("ConcatDataset: expected field '{}' of type {}, got {} from number {}",
                                            fields[i].name, name_of(fields_[i].dtype), name_of(fields[i].dtype), part));
            if (!(fields[i].shape == fields_[i].shape)) fields_[i].shape.reset();
        }
    }
}

std::pair<const Dataset&, std::int64_t> ConcatDataset::find(std::int64_t index) const {
    const auto part = static_cast<std::size_t>(std::ranges::upper_bound(ends_, index) - ends_.begin());
    return {*parts_[part], index - (part == 0 ? 0 : ends_[part - 1])};
}

std::vector<io::HostArray> ConcatDataset::do_example(std::int64_t index) const {
    const auto [part, local_index] = find(index);
    return example_of(part, local_index);
}

void ConcatDataset::do_read(std::int64_t index, FieldBuffers buffers) const {
    const auto [part, local_index] = find(index);
    read_of(part, local_index, buffers);
}

std::shared_ptr<const Dataset> take(std::shared_ptr<const Dataset> dataset, std::int64_t count) {
    if (!dataset) throw ValueError("take: expected a data set, got null");
    if (count < 0) throw ValueError(fmt::format("take: expected a count of at least 0, got {}", count));
    const std::int64_t size = dataset->size();
    if (count >= size) return dataset;
    return std::make_shared<Subset>(std::move(dataset), 0, count);
}

}  // namespace declivity::data

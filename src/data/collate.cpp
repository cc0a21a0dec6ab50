#include <declivity/data/collate.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include <declivity/ops/half.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "element.hpp"
#include "field_names.hpp"

namespace declivity::data {
namespace {

void require_examples(const char* function, std::span<const Example> examples) {
    if (examples.empty()) throw ValueError(fmt::format("{}: expected at least one example, got none", function));
    for (const Example& example : examples)
        if (example.size() != examples[0].size())
            throw ValueError(
                fmt::format("{}: expected examples of {} fields, like example {}, got {} fields in example {}",
                            function, examples[0].size(), examples[0].index(), example.size(), example.index()));
}

/// Stacks to (N, shape...), padded with zeros.
io::HostArray allocate_batch(DType dtype, Shape shape, std::size_t examples) {
    shape.insert(0, static_cast<std::int64_t>(examples));
    return {dtype, shape, std::vector<std::byte>(static_cast<std::size_t>(shape.numel()) * size_of(dtype))};
}

io::HostArray stack_field(const char* function, std::span<const Example> examples, std::size_t field) {
    const io::HostArray& first = examples[0][field];
    io::HostArray out = allocate_batch(first.dtype, first.shape, examples.size());
    const std::size_t example_bytes = out.bytes.size() / examples.size();
    for (std::size_t i = 0; i < examples.size(); ++i) {
        const io::HostArray& array = examples[i][field];
        const std::string& name = examples[i].names()[field];
        if (array.dtype != first.dtype)
            throw TypeError(fmt::format("{}: expected field '{}' of example {} of type {}, like in example {}, got {}",
                                        function, name, examples[i].index(), name_of(first.dtype), examples[0].index(),
                                        name_of(array.dtype)));
        if (!(array.shape == first.shape))
            throw ShapeError(fmt::format(
                "{}: expected field '{}' of example {} of shape {}, like in example {}, got {} "
                "(data::pad pads named fields)",
                function, name, examples[i].index(), first.shape.str(), examples[0].index(), array.shape.str()));
        check_field(function, {.name = name, .dtype = array.dtype}, array, examples[i].index());
        if (example_bytes > 0) std::memcpy(out.bytes.data() + i * example_bytes, array.bytes.data(), example_bytes);
    }
    return out;
}

/// Copies `from`, of shape `shape`, into the leading corner of `to`, of shape `padded_shape`.
void copy_corner(const std::byte* from, const Shape& shape, std::byte* to, const Shape& padded_shape,
                 std::size_t element_bytes, int axis = 0) {
    if (axis == shape.rank()) {
        std::memcpy(to, from, element_bytes);
        return;
    }
    std::size_t step = element_bytes, padded_step = element_bytes;
    for (int i = axis + 1; i < shape.rank(); ++i) {
        step *= static_cast<std::size_t>(shape[i]);
        padded_step *= static_cast<std::size_t>(padded_shape[i]);
    }
    if (step == padded_step) {  // the remaining axes are contiguous
        std::memcpy(to, from, step * static_cast<std::size_t>(shape[axis]));
        return;
    }
    for (std::int64_t i = 0; i < shape[axis]; ++i)
        copy_corner(from + static_cast<std::size_t>(i) * step, shape, to + static_cast<std::size_t>(i) * padded_step,
                    padded_shape, element_bytes, axis + 1);
}

io::HostArray pad_field(std::span<const Example> examples, std::size_t field, double value, std::int64_t multiple) {
    const io::HostArray& first = examples[0][field];
    Shape shape = first.shape;
    for (const Example& example : examples) {
        const io::HostArray& array = example[field];
        if (array.dtype != first.dtype)
            throw TypeError(fmt::format("pad: expected field '{}' of example {} of type {}, like in example {}, got {}",
                                        example.names()[field], example.index(), name_of(first.dtype),
                                        examples[0].index(), name_of(array.dtype)));
        if (array.shape.rank() != shape.rank() || shape.rank() == 0)
            throw ShapeError(fmt::format(
                "pad: expected field '{}' of example {} with {} axes, got shape {}", example.names()[field],
                example.index(), shape.rank() == 0 ? "at least 1" : std::to_string(shape.rank()), array.shape.str()));
        check_field("pad", {.name = example.names()[field], .dtype = array.dtype}, array, example.index());
        for (int axis = 0; axis < shape.rank(); ++axis) shape[axis] = std::max(shape[axis], array.shape[axis]);
    }
    shape[0] = (shape[0] + multiple - 1) / multiple * multiple;
    io::HostArray out = allocate_batch(first.dtype, shape, examples.size());
    const std::vector<std::byte> element = element_of(first.dtype, value);
    if (std::ranges::any_of(element, [](std::byte byte) { return byte != std::byte{0}; }))
        for (std::size_t offset = 0; offset < out.bytes.size(); offset += element.size())
            std::memcpy(out.bytes.data() + offset, element.data(), element.size());
    const std::size_t example_bytes = out.bytes.size() / examples.size();
    for (std::size_t i = 0; i < examples.size(); ++i)
        if (!examples[i][field].bytes.empty())
            copy_corner(examples[i][field].bytes.data(), examples[i][field].shape, out.bytes.data() + i * example_bytes,
                        shape, size_of(first.dtype));
    return out;
}

/// Mask that is true at the valid elements along the first axis of a padded field.
io::HostArray mask(std::span<const Example> examples, std::size_t field, std::int64_t max_length) {
    const auto size = static_cast<std::size_t>(max_length);
    io::HostArray out = allocate_batch(DType::boolean, {max_length}, examples.size());
    for (std::size_t i = 0; i < examples.size(); ++i) {
        const auto length = static_cast<std::size_t>(examples[i][field].shape[0]);
        std::fill_n(out.bytes.begin() + static_cast<std::ptrdiff_t>(i * size), length, std::byte{1});
    }
    return out;
}

io::HostArray lengths(std::span<const Example> examples, std::size_t field) {
    std::vector<std::int64_t> values;
    for (const Example& example : examples) {
        if (example[field].shape.rank() == 0)
            throw ShapeError(
                fmt::format("pad: expected field '{}' of example {} with a first axis, for its length, got "
                            "shape []",
                            example.names()[field], example.index()));
        values.push_back(example[field].shape[0]);
    }
    return io::HostArray::of({static_cast<std::int64_t>(values.size())}, values);
}

}  // namespace

Example stack(std::span<const Example> examples) {
    require_examples("stack", examples);
    std::vector<io::HostArray> arrays;
    for (std::size_t field = 0; field < examples[0].size(); ++field)
        arrays.push_back(stack_field("stack", examples, field));
    return {examples[0].names(), std::move(arrays)};
}

Collate pad(PadOptions options) {
    if (options.values.empty()) throw ValueError("pad: expected at least one field to pad, got none");
    if (options.multiple < 1)
        throw ValueError(fmt::format("pad: expected a multiple of at least 1, got {}", options.multiple));
    return [options = std::move(options)](std::span<const Example> examples) {
        require_examples("pad", examples);
        std::vector<std::string> names = examples[0].names();
        for (const auto& [name, value] : options.values) (void)position_of("pad", names, name);
        std::vector<io::HostArray> arrays;
        std::vector<std::string> lengths_of = options.lengths_of;
        for (std::size_t field = 0; field < names.size(); ++field) {
            const auto value = options.values.find(names[field]);
            if (value == options.values.end()) {
                arrays.push_back(stack_field("pad", examples, field));
                continue;
            }
            if (lengths_of.empty()) lengths_of.push_back(names[field]);
            arrays.push_back(pad_field(examples, field, value->second, options.multiple));
        }
        for (const std::string& name : lengths_of) {
            arrays.push_back(lengths(examples, position_of("pad", examples[0].names(), name)));
            names.push_back(name + "_length");
        }
        for (const std::string& name : options.masks_of) {
            const std::size_t field = position_of("pad", examples[0].names(), name);
            if (!options.values.contains(name))
                throw ValueError(fmt::format("pad: expected masks only for padded fields, got '{}'", name));
            arrays.push_back(mask(examples, field, arrays[field].shape[1]));
            names.push_back(name + "_mask");
        }
        return Example(std::move(names), std::move(arrays));
    };
}

}  // namespace declivity::data

#include "tests/examples/examples.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <stdexcept>

#include <doctest/doctest.h>

namespace declivity::test {
namespace {

std::string without_space(std::string_view text) {
    std::string out;
    for (const char c : text)
        if (std::isspace(static_cast<unsigned char>(c)) == 0) out += c;
    return out;
}

/// Reads nested brackets.
class Reader {
  public:
    explicit Reader(std::string_view text) : text_(without_space(text)) {
        read(0);
        if (at_ != text_.size()) fail();
        for (const std::int64_t size : sizes_) shape.push_back(std::max<std::int64_t>(size, 0));
    }

    std::vector<double> values;
    Shape shape;

  private:
    [[noreturn]] void fail() const { throw std::invalid_argument("expected nested brackets, got " + text_); }

    void read(std::size_t axis) {
        if (at_ >= text_.size()) fail();
        if (text_[at_] != '[') {
            if (sizes_.size() != axis) fail();  // a number beside a row
            values.push_back(number());
            return;
        }
        if (axis == sizes_.size()) {
            if (!values.empty()) fail();
            sizes_.push_back(-1);  // not known yet
        }
        std::int64_t count = 0;
        ++at_;
        while (at_ < text_.size() && text_[at_] != ']') {
            if (count++ > 0 && text_[at_++] != ',') fail();
            read(axis + 1);
        }
        if (at_++ >= text_.size() || (sizes_[axis] != -1 && sizes_[axis] != count)) fail();
        sizes_[axis] = count;
    }

    double number() {
        const std::size_t end = std::min(text_.find_first_of(",]", at_), text_.size());
        const std::string word = text_.substr(at_, end - at_);
        at_ = end;
        if (word == "true" || word == "false") return word == "true" ? 1 : 0;
        char* last = nullptr;
        const double value = std::strtod(word.c_str(), &last);  // nan and inf as well
        if (word.empty() || *last != '\0') fail();
        return value;
    }

    std::string text_;
    std::size_t at_ = 0;
    std::vector<std::int64_t> sizes_;
};

template <class T>
Tensor tensor_of(const Reader& read) {
    std::vector<T> values;
    for (const double value : read.values) values.push_back(static_cast<T>(value));
    return Tensor::from(values, read.shape);
}

std::string nested(const Shape& shape, const std::vector<std::string>& elements, int axis, std::size_t& position) {
    if (axis == shape.rank()) return elements[position++];
    std::string out = "[";
    for (std::int64_t i = 0; i < shape[axis]; ++i)
        out += (i > 0 ? ", " : "") + nested(shape, elements, axis + 1, position);
    return out + "]";
}

}  // namespace

Tensor literal(std::string_view type, std::string_view text) {
    const Reader read(text);
    if (type == "f32") return tensor_of<float>(read);
    for (const DType dtype : kDTypes)
        if (name_of(dtype) == type) {
            if (is_floating(dtype)) return tensor_of<float>(read).to(dtype);
            return tensor_of<std::int64_t>(read).to(dtype);
        }
    throw std::invalid_argument("expected a type, got " + std::string(type));
}

std::string shown(double number) {
    char text[32];
    if (std::isnan(number)) return "nan";
    if (number == std::round(number) && std::abs(number) < 1e6) std::snprintf(text, sizeof text, "%.0f", number + 0.0);
    else std::snprintf(text, sizeof text, "%.4g", number);
    return text;
}

std::string shown(const Tensor& x) {
    if (!x.defined()) return "undefined";
    std::vector<std::string> elements;
    if (x.dtype() == DType::boolean) {
        for (const std::uint8_t value : x.to_vector<std::uint8_t>())
            elements.emplace_back(value != 0 ? "true" : "false");
    } else if (x.dtype() == DType::u64) {
        for (const std::uint64_t value : x.to_vector<std::uint64_t>()) elements.push_back(std::to_string(value));
    } else if (is_integer(x.dtype())) {
        for (const std::int64_t value : x.detach().to(DType::i64).to_vector<std::int64_t>())
            elements.push_back(std::to_string(value));
    } else {
        const std::vector<float> values = x.detach().to(DType::f32).to_vector<float>();
        float largest = 0;
        for (const float value : values)
            if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
        // Rounding errors that differ between devices are no part of an example.
        for (const float value : values)
            elements.push_back(shown(static_cast<double>(std::abs(value) < largest * 1e-6F ? 0 : value)));
    }
    std::size_t position = 0;
    return nested(x.shape(), elements, 0, position);
}

Examples::Examples(std::string_view header, std::initializer_list<Example> examples)
    : header_(header), list_(examples) {
    all().push_back(this);
}

std::vector<const Examples*>& Examples::all() {
    static std::vector<const Examples*> headers;
    return headers;
}

void Examples::check() const {
    for (const Example& example : list_) {
        std::string result;
        try {
            result = example.run();
        } catch (const std::exception& error) {
            result = error.what();
        }
        const bool equal = without_space(result) == without_space(example.result);
        CHECK_MESSAGE(equal, header_, ":", example.line, ": `", std::string(example.expression), "` is `", result,
                      "`, not `", std::string(example.result), "`");
    }
}

}  // namespace declivity::test

#include "safetensors_header.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace declivity::io {
namespace {

constexpr std::array<std::pair<std::string_view, DType>, 13> kTypeNames{{{"F32", DType::f32},
                                                                         {"F64", DType::f64},
                                                                         {"F16", DType::f16},
                                                                         {"BF16", DType::bf16},
                                                                         {"I8", DType::i8},
                                                                         {"U8", DType::u8},
                                                                         {"I16", DType::i16},
                                                                         {"U16", DType::u16},
                                                                         {"I32", DType::i32},
                                                                         {"U32", DType::u32},
                                                                         {"I64", DType::i64},
                                                                         {"U64", DType::u64},
                                                                         {"BOOL", DType::boolean}}};

// Tracks how far the JSON reader has read, so that errors include the position.
class Cursor {
  public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    Cursor(const char* position, const char** furthest) : position_(position), furthest_(furthest) {}
    reference operator*() const { return *position_; }
    Cursor& operator++() {
        *furthest_ = ++position_;
        return *this;
    }
    Cursor operator++(int) {
        const Cursor previous = *this;
        ++*this;
        return previous;
    }
    friend bool operator==(const Cursor& a, const Cursor& b) { return a.position_ == b.position_; }

  private:
    const char* position_;
    const char** furthest_;
};

// Handles the events of the JSON reader. The header is {name: {"dtype": text, "shape": [numbers], "data_offsets": [two
// numbers]}, ..., "__metadata__": {name: text, ...}}, so there are few states, and deeper nesting is rejected as soon
// as it opens.
class Handler {
  public:
    using number_integer_t = nlohmann::json::number_integer_t;
    using number_unsigned_t = nlohmann::json::number_unsigned_t;
    using number_float_t = nlohmann::json::number_float_t;
    using string_t = nlohmann::json::string_t;
    using binary_t = nlohmann::json::binary_t;

    Handler(const std::string& file, std::string_view json) : file_(file), json_(json), reached_(json.data()) {}

    const char** reached() { return &reached_; }
    SafetensorsHeader& header() { return header_; }

    bool null() { return refuse("null"); }
    bool boolean(bool) { return refuse("true or false"); }
    bool number_integer(number_integer_t value) { return refuse(fmt::format("the negative number {}", value)); }
    bool number_float(number_float_t, const string_t& text) { return refuse("the number " + text); }
    bool binary(binary_t&) { return refuse("binary data"); }

    bool number_unsigned(number_unsigned_t value) {
        if (state_ == State::shape) {
            if (entry_.shape.rank() == Shape::kMaxRank)
                fail(fmt::format("array '{}' has more than {} axes", entry_.name, Shape::kMaxRank));
            constexpr auto kMax = static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max());
            // Sizes of 0 are left out of the product: the strides of such a shape must not overflow either.
            const number_unsigned_t factor = std::max<number_unsigned_t>(value, 1);
            if (value > kMax || elements_ > kMax / factor)
                fail(fmt::format("the shape of array '{}' overflows 64 bits with {}", entry_.name, value));
            elements_ *= factor;
            entry_.shape.push_back(static_cast<std::int64_t>(value));
        } else if (state_ == State::offsets) {
            if (offsets_ == 2) fail(fmt::format("array '{}' has more than two data_offsets", entry_.name));
            (offsets_++ == 0 ? entry_.begin : entry_.end) = value;
        } else {
            refuse(fmt::format("the number {}", value));
        }
        return step();
    }

    bool string(string_t& value) {
        if (state_ == State::metadata) {
            if (!header_.metadata.emplace(key_, value).second) fail(fmt::format("metadata '{}' occurs twice", key_));
        } else if (state_ == State::entry && field_ == "dtype") {
            const auto* type = std::ranges::find(kTypeNames, value, &std::pair<std::string_view, DType>::first);
            if (type == kTypeNames.end())
                fail(
                    fmt::format("array '{}' has type '{}', expected F32, F64, F16, BF16, I8, U8, I16, U16, I32, U32, "
                                "I64, U64 or BOOL",
                                entry_.name, value));
            entry_.dtype = type->second;
        } else {
            refuse("a text");
        }
        return step();
    }

    bool start_object(std::size_t) {
        if (state_ == State::start) state_ = State::top;
        else if (state_ == State::top) open_entry();
        else refuse("an object");
        return step();
    }

    bool key(string_t& name) {
        if (state_ == State::top) {
            // The name of metadata is reserved, so one set serves both.
            if (!names_.insert(name).second) fail(fmt::format("'{}' occurs twice", name));
            entry_ = {};
            entry_.name = name;
            entry_.offset = offset();
        } else if (state_ == State::entry) {
            if (name != "dtype" && name != "shape" && name != "data_offsets")
                fail(fmt::format("array '{}' has '{}', expected dtype, shape and data_offsets", entry_.name, name));
            if (!fields_.insert(name).second) fail(fmt::format("array '{}' has '{}' twice", entry_.name, name));
            field_ = name;
        } else {
            key_ = name;
        }
        return step();
    }

    bool end_object() {
        if (state_ == State::entry) close_entry();
        state_ = state_ == State::top ? State::finished : State::top;
        return step();
    }

    bool start_array(std::size_t) {
        if (state_ == State::entry && field_ == "shape") state_ = State::shape;
        else if (state_ == State::entry && field_ == "data_offsets") state_ = State::offsets;
        else refuse("a list");
        return step();
    }

    bool end_array() {
        if (state_ == State::offsets && offsets_ != 2)
            fail(fmt::format("array '{}' has {} data_offsets, expected 2", entry_.name, offsets_));
        state_ = State::entry;
        return step();
    }

    bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) {
        throw FormatError(file_, kSafetensorsLengthBytes + (position > 0 ? position - 1 : 0),
                          fmt::format("the header is not valid JSON: {}", error.what()));
    }

  private:
    enum class State : std::uint8_t { start, top, entry, shape, offsets, metadata, finished };

    void open_entry() {
        if (entry_.name == kSafetensorsMetadata) {
            state_ = State::metadata;
            return;
        }
        state_ = State::entry;
        fields_.clear();
        elements_ = 1;
        offsets_ = 0;
    }

    void close_entry() {
        if (fields_.size() != 3)
            fail(fmt::format("array '{}' lacks one of dtype, shape and data_offsets", entry_.name), entry_.offset);
        header_.entries.push_back(std::move(entry_));
    }

    bool refuse(const std::string& found) {
        switch (state_) {
            case State::start:
                fail("the header is " + found + ", expected an object");
            case State::metadata:
                fail("metadata holds " + found + ", expected texts only");
            case State::shape:
                fail(fmt::format("the shape of array '{}' holds {}, expected sizes", entry_.name, found));
            case State::offsets:
                fail(fmt::format("data_offsets of array '{}' hold {}, expected offsets", entry_.name, found));
            case State::entry:
                fail(fmt::format("{} of array '{}' is {}", field_, entry_.name, found));
            case State::top:
            case State::finished:
                break;
        }
        fail(fmt::format("'{}' is {}, expected an object", entry_.name, found));
    }

    // Position of the current event in the file: after the previous one and its separator.
    [[nodiscard]] std::uint64_t offset() const {
        const std::size_t begin = json_.find_first_not_of(" \t\r\n,:", consumed_);
        return kSafetensorsLengthBytes + std::min(begin, json_.size());
    }
    bool step() {
        consumed_ = static_cast<std::size_t>(reached_ - json_.data());
        return true;
    }
    [[noreturn]] void fail(const std::string& what) const { fail(what, offset()); }
    [[noreturn]] void fail(const std::string& what, std::uint64_t position) const {
        throw FormatError(file_, position, what);
    }

    const std::string& file_;
    std::string_view json_;
    const char* reached_;
    std::size_t consumed_ = 0;
    State state_ = State::start;
    SafetensorsHeader header_;
    std::set<std::string, std::less<>> names_;
    SafetensorsEntry entry_;
    std::set<std::string, std::less<>> fields_;
    std::string field_;
    std::string key_;
    std::uint64_t elements_ = 1;
    int offsets_ = 0;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(const std::string& file, std::string_view json) {
    // The JSON reader would accept a byte order mark, and a zero byte as the end of its input.
    if (json.empty() || json.front() != '{')
        throw FormatError(file, kSafetensorsLengthBytes, "the header does not begin with '{'");
    if (const std::size_t zero = json.find('\0'); zero != std::string_view::npos)
        throw FormatError(file, kSafetensorsLengthBytes + zero, "the header holds a zero byte");
    Handler handler(file, json);
    nlohmann::json::sax_parse(Cursor(json.data(), handler.reached()),
                              Cursor(json.data() + json.size(), handler.reached()), &handler);
    return std::move(handler.header());
}

std::string_view safetensors_name(DType type) noexcept {
    return std::ranges::find(kTypeNames, type, &std::pair<std::string_view, DType>::second)->first;
}

}  // namespace declivity::io

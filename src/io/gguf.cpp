#include <declivity/io/gguf.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include <declivity/io/input_file.hpp>
#include <declivity/io/state_dict.hpp>
#include <declivity/ops/half.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

namespace declivity::io {
namespace {

namespace fs = std::filesystem;

/// Block format of a type: `elements` per block of `bytes`, and the array type if it is not quantised.
struct TypeFormat {
    GgufType type;
    const char* name;
    std::int64_t elements, bytes;
    DType dtype;
};

constexpr std::array<TypeFormat, 16> kTypes{{{GgufType::f32, "f32", 1, 4, DType::f32},
                                             {GgufType::f16, "f16", 1, 2, DType::f16},
                                             {GgufType::q4_0, "q4_0", 32, 18, DType::f32},
                                             {GgufType::q4_1, "q4_1", 32, 20, DType::f32},
                                             {GgufType::q5_0, "q5_0", 32, 22, DType::f32},
                                             {GgufType::q5_1, "q5_1", 32, 24, DType::f32},
                                             {GgufType::q8_0, "q8_0", 32, 34, DType::f32},
                                             {GgufType::q4_k, "q4_k", 256, 144, DType::f32},
                                             {GgufType::q5_k, "q5_k", 256, 176, DType::f32},
                                             {GgufType::q6_k, "q6_k", 256, 210, DType::f32},
                                             {GgufType::i8, "i8", 1, 1, DType::i8},
                                             {GgufType::i16, "i16", 1, 2, DType::i16},
                                             {GgufType::i32, "i32", 1, 4, DType::i32},
                                             {GgufType::i64, "i64", 1, 8, DType::i64},
                                             {GgufType::f64, "f64", 1, 8, DType::f64},
                                             {GgufType::bf16, "bf16", 1, 2, DType::bf16}}};

const TypeFormat* find_format(std::uint32_t number) {
    for (const TypeFormat& format : kTypes)
        if (static_cast<std::uint32_t>(format.type) == number) return &format;
    return nullptr;
}
const TypeFormat& format_of(GgufType type) { return *find_format(static_cast<std::uint32_t>(type)); }

// Numbers of a file are little-endian, like all supported machines.
static_assert(std::endian::native == std::endian::little);

/// Sizes of metadata value types, by their number; 0 for types of variable size.
constexpr std::array<std::uint8_t, 13> kValueBytes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
constexpr std::uint32_t kTextType = 8, kListType = 9;
constexpr int kMaxListDepth = 3;

template <class T>
T number_at(const std::byte* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

/// A number or bool of the metadata.
GgufValue value_at(std::uint32_t type, const std::byte* bytes) {
    switch (type) {
        case 0:
            return {std::uint64_t{number_at<std::uint8_t>(bytes)}};
        case 1:
            return {std::int64_t{number_at<std::int8_t>(bytes)}};
        case 2:
            return {std::uint64_t{number_at<std::uint16_t>(bytes)}};
        case 3:
            return {std::int64_t{number_at<std::int16_t>(bytes)}};
        case 4:
            return {std::uint64_t{number_at<std::uint32_t>(bytes)}};
        case 5:
            return {std::int64_t{number_at<std::int32_t>(bytes)}};
        case 6:
            return {double{number_at<float>(bytes)}};
        case 7:
            return {number_at<std::uint8_t>(bytes) != 0};
        case 10:
            return {number_at<std::uint64_t>(bytes)};
        case 11:
            return {number_at<std::int64_t>(bytes)};
        default:
            return {number_at<double>(bytes)};
    }
}

}  // namespace

/// Incremental reader of the file header.
class GgufHead {
  public:
    explicit GgufHead(InputFile& file) : file_(file) {}

    template <class T>
    T number() {
        T value;
        read(std::as_writable_bytes(std::span(&value, 1)));
        return value;
    }
    std::string text(const char* what) {
        std::string value(length_of(what), '\0');
        read(std::as_writable_bytes(std::span(value)));
        return value;
    }
    GgufValue value(std::uint32_t type) {
        check_type(type);
        if (type == kTextType) return {text("a text")};
        if (type == kListType) return {list(0)};
        std::array<std::byte, 8> bytes{};
        read(std::span(bytes).first(kValueBytes[type]));
        return value_at(type, bytes.data());
    }

    [[nodiscard]] std::uint64_t position() const { return position_; }
    [[nodiscard]] std::uint64_t size() const { return file_.size(); }
    [[nodiscard]] std::uint64_t remaining() const { return file_.size() - std::min(file_.size(), position_); }
    [[noreturn]] void fail(std::uint64_t offset, const std::string& what) const {
        throw FormatError(file_.name(), offset, what);
    }

  private:
    void check_type(std::uint32_t type) const {
        if (type >= kValueBytes.size())
            fail(position_ - 4, fmt::format("a value of type {}, expected 0 .. {}", type, kValueBytes.size() - 1));
    }
    std::size_t length_of(const char* what) {
        const std::uint64_t offset = position_, length = number<std::uint64_t>();
        if (length > remaining())
            fail(offset, fmt::format("{} of {} bytes, of which the file has {}", what, length, remaining()));
        return static_cast<std::size_t>(length);
    }
    /// @param depth of enclosing lists
    GgufList list(int depth) {
        const std::uint64_t offset = position_;
        GgufList values;
        values.type_ = number<std::uint32_t>();
        check_type(values.type_);
        const auto count = number<std::uint64_t>();
        if (depth >= kMaxListDepth) fail(offset, fmt::format("lists nested deeper than {}", kMaxListDepth));
        const bool texts = values.type_ == kTextType, lists = values.type_ == kListType;
        const std::uint64_t item_bytes = texts ? 8 : lists ? 12 : kValueBytes[values.type_];  // minimum size
        if (count > remaining() / item_bytes)
            fail(offset, fmt::format("a list of {} values, of which the file has {} bytes", count, remaining()));
        values.count_ = static_cast<std::size_t>(count);
        if (texts) {
            values.ends_.reserve(values.count_);
            for (std::size_t i = 0; i < values.count_; ++i) {
                const std::size_t length = length_of("a text"), begin = values.bytes_.size();
                values.bytes_.resize(begin + length);
                read(std::span(values.bytes_).subspan(begin));
                values.ends_.push_back(values.bytes_.size());
            }
        } else if (lists) {
            for (std::size_t i = 0; i < values.count_; ++i) values.lists_.push_back(list(depth + 1));
        } else {
            values.bytes_.resize(values.count_ * static_cast<std::size_t>(item_bytes));
            read(values.bytes_);
        }
        return values;
    }
    void read(std::span<std::byte> bytes) {
        std::size_t done = 0;
        while (done < bytes.size()) {
            if (used_ == buffered_.size()) {
                // A long string is read directly into its memory.
                if (bytes.size() - done >= kBufferBytes) {
                    file_.read(bytes.subspan(done));
                    done = bytes.size();
                    break;
                }
                buffered_.resize(kBufferBytes);
                buffered_.resize(file_.read_some(buffered_));
                used_ = 0;
                if (buffered_.empty())
                    fail(position_ + done,
                         fmt::format("the file ends where {} more bytes are expected", bytes.size() - done));
            }
            const std::size_t chunk = std::min(bytes.size() - done, buffered_.size() - used_);
            std::memcpy(bytes.data() + done, buffered_.data() + used_, chunk);
            done += chunk;
            used_ += chunk;
        }
        position_ += done;
    }

    static constexpr std::size_t kBufferBytes = std::size_t{1} << 16;
    InputFile& file_;
    std::vector<std::byte> buffered_;
    std::size_t used_ = 0;
    std::uint64_t position_ = 0;
};

GgufValue GgufList::operator[](std::size_t index) const {
    if (index >= count_) throw ValueError(fmt::format("GgufList: expected an index below {}, got {}", count_, index));
    if (type_ == kListType) return {lists_[index]};
    if (type_ != kTextType) return value_at(type_, bytes_.data() + index * kValueBytes[type_]);
    const auto begin = static_cast<std::size_t>(index == 0 ? 0 : ends_[index - 1]),
               end = static_cast<std::size_t>(ends_[index]);
    return {std::string(reinterpret_cast<const char*>(bytes_.data()) + begin, end - begin)};
}

GgufValue GgufList::Iterator::operator*() const { return (*list_)[index_]; }

namespace {

float half_at(const std::uint8_t* bytes) {
    float16 value;
    std::memcpy(&value.bits, bytes, 2);
    return value;
}

/// Scale and minimum of sub-block j of a block of 256: 6 bits each, packed into 12 bytes.
std::pair<float, float> scale_of(const std::uint8_t* scales, int j) {
    if (j < 4) return {static_cast<float>(scales[j] & 63), static_cast<float>(scales[j + 4] & 63)};
    return {static_cast<float>((scales[j + 4] & 15) | (scales[j - 4] >> 6 << 4)),
            static_cast<float>((scales[j + 4] >> 4) | (scales[j] >> 6 << 4))};
}

/// Blocks of 32 with 4 or 5 bits: d q + m, the first half in the low bits of bytes, the second in the high ones.
void expand_32(float d, float m, int zero_point, const std::uint8_t* fifth_bits, const std::uint8_t* nibbles,
               float* to) {
    std::uint32_t high = 0;
    if (fifth_bits != nullptr) std::memcpy(&high, fifth_bits, 4);
    for (int j = 0; j < 16; ++j) {
        const int a = (nibbles[j] & 15) | static_cast<int>((high >> j & 1) << 4),
                  b = (nibbles[j] >> 4) | static_cast<int>((high >> (j + 16) & 1) << 4);
        to[j] = d * static_cast<float>(a - zero_point) + m;
        to[j + 16] = d * static_cast<float>(b - zero_point) + m;
    }
}

/// Blocks of 256 with 4 or 5 bits, in eight sub-blocks with a scale and a minimum each.
void expand_256(const std::uint8_t* block, bool five_bits, float* to) {
    const float d = half_at(block), d_min = half_at(block + 2);
    const std::uint8_t *scales = block + 4, *fifth_bits = block + 16, *nibbles = fifth_bits + (five_bits ? 32 : 0);
    for (int sub_block = 0; sub_block < 8; ++sub_block) {
        const auto [scale, minimum] = scale_of(scales, sub_block);
        const std::uint8_t* bytes = nibbles + sub_block / 2 * 32;
        for (int i = 0; i < 32; ++i) {
            int q = sub_block % 2 == 0 ? bytes[i] & 15 : bytes[i] >> 4;
            if (five_bits) q |= (fifth_bits[i] >> sub_block & 1) << 4;
            to[sub_block * 32 + i] = d * scale * static_cast<float>(q) - d_min * minimum;
        }
    }
}

/// Blocks of 256 with 6 bits, in 16 sub-blocks with a scale each.
void expand_q6_k(const std::uint8_t* block, float* to) {
    const float d = half_at(block + 208);
    for (int half = 0; half < 2; ++half) {
        const std::uint8_t *low = block + half * 64, *high = block + 128 + half * 32, *scales = block + 192 + half * 8;
        for (int i = 0; i < 128; ++i) {
            const int column = i % 32, quarter = i / 32;
            const int nibble =
                quarter < 2 ? low[column + 32 * (quarter % 2)] & 15 : low[column + 32 * (quarter % 2)] >> 4;
            const int q = (nibble | (high[column] >> (2 * quarter) & 3) << 4) - 32;
            const auto scale = static_cast<std::int8_t>(scales[2 * quarter + column / 16]);
            to[half * 128 + i] = d * static_cast<float>(scale) * static_cast<float>(q);
        }
    }
}

void expand(GgufType type, const std::uint8_t* block, float* to) {
    const float d = half_at(block);
    switch (type) {
        case GgufType::q4_0:
            return expand_32(d, 0, 8, nullptr, block + 2, to);
        case GgufType::q4_1:
            return expand_32(d, half_at(block + 2), 0, nullptr, block + 4, to);
        case GgufType::q5_0:
            return expand_32(d, 0, 16, block + 2, block + 6, to);
        case GgufType::q5_1:
            return expand_32(d, half_at(block + 2), 0, block + 4, block + 8, to);
        case GgufType::q4_k:
            return expand_256(block, false, to);
        case GgufType::q5_k:
            return expand_256(block, true, to);
        case GgufType::q6_k:
            return expand_q6_k(block, to);
        default:
            for (int i = 0; i < 32; ++i) to[i] = d * static_cast<float>(static_cast<std::int8_t>(block[2 + i]));
    }
}

}  // namespace

const char* name_of(GgufType type) { return format_of(type).name; }
std::int64_t block_elements(GgufType type) { return format_of(type).elements; }
std::int64_t block_bytes(GgufType type) { return format_of(type).bytes; }

namespace {

constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 40;

}  // namespace

GgufReader::GgufReader(const fs::path& path) {
    const FunctionScope function("io::GgufReader");
    const auto file = std::make_shared<InputFile>(path);
    file_ = file;
    GgufHead head(*file);
    if (head.number<std::uint32_t>() != 0x46554747) head.fail(0, "not a GGUF file, expected 'GGUF' at its beginning");
    const auto version = head.number<std::uint32_t>();
    if (version != 2 && version != 3) head.fail(4, fmt::format("version {}, expected 2 or 3", version));
    const auto arrays = head.number<std::uint64_t>(), values = head.number<std::uint64_t>();
    std::uint64_t alignment = 32;
    for (std::uint64_t i = 0; i < values; ++i) {
        const std::uint64_t offset = head.position();
        const std::string key = head.text("a key");
        const auto type = head.number<std::uint32_t>();
        if (!metadata_.emplace(key, head.value(type)).second) head.fail(offset, fmt::format("duplicate key '{}'", key));
        if (key != "general.alignment") continue;
        const auto* value = std::get_if<std::uint64_t>(&metadata_.at(key).value);
        if (value == nullptr || !std::has_single_bit(*value) || *value > (1U << 20))
            head.fail(offset, "general.alignment that is not a power of 2 up to 2^20");
        alignment = *value;
    }
    std::vector<std::pair<std::string, std::uint64_t>> entry_offsets;
    for (std::uint64_t i = 0; i < arrays; ++i) {
        const std::uint64_t offset = head.position();
        const std::string name = head.text("a name");
        const auto rank = head.number<std::uint32_t>();
        if (rank > static_cast<std::uint32_t>(Shape::kMaxRank))
            head.fail(offset, fmt::format("'{}' of {} axes, expected {} at most", name, rank, Shape::kMaxRank));
        std::vector<std::int64_t> sizes;
        // Sizes of 0 are left out of the product: the strides of such a shape must not overflow either.
        std::uint64_t elements = 1;
        bool empty = false;
        for (std::uint32_t axis = 0; axis < rank; ++axis) {
            const auto size = head.number<std::uint64_t>();
            const std::uint64_t factor = std::max<std::uint64_t>(size, 1);
            if (factor > kMaxElements || elements > kMaxElements / factor)
                head.fail(offset, fmt::format("'{}' of more than 2^40 elements", name));
            sizes.push_back(static_cast<std::int64_t>(size));
            elements *= factor;
            empty = empty || size == 0;
        }
        if (empty) elements = 0;
        const auto type_id = head.number<std::uint32_t>();
        const TypeFormat* format = find_format(type_id);
        if (format == nullptr) head.fail(offset, fmt::format("'{}' of type {}, which is not supported", name, type_id));
        if (rank == 0 ? format->elements != 1 : sizes[0] % format->elements != 0)
            head.fail(offset, fmt::format("'{}' with rows that are not multiples of the block size {}", name,
                                          format->elements));
        Array array{
            format->type,
            {},
            head.number<std::uint64_t>(),
            elements / static_cast<std::uint64_t>(format->elements) * static_cast<std::uint64_t>(format->bytes)};
        for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) array.shape.push_back(*size);
        if (array.begin % alignment != 0) head.fail(offset, fmt::format("'{}' that is not aligned", name));
        if (!arrays_.emplace(name, array).second) head.fail(offset, fmt::format("duplicate array '{}'", name));
        entry_offsets.emplace_back(name, offset);
    }
    const std::uint64_t data = (head.position() + alignment - 1) / alignment * alignment;
    const std::uint64_t data_bytes = head.size() - std::min(head.size(), data);
    struct Extent {
        std::uint64_t begin, end, entry_offset;
        const std::string* name;
    };
    std::vector<Extent> extents;
    for (const auto& [name, entry_offset] : entry_offsets) {
        Array& array = arrays_.at(name);
        if (array.begin > data_bytes || array.bytes > data_bytes - array.begin)
            head.fail(entry_offset, fmt::format("'{}' that ends after the end of the file", name));
        array.begin += data;
        if (array.bytes > 0) extents.push_back({array.begin, array.begin + array.bytes, entry_offset, &name});
    }
    std::ranges::sort(extents, {}, &Extent::begin);
    for (std::size_t i = 1; i < extents.size(); ++i)
        if (extents[i].begin < extents[i - 1].end)
            head.fail(extents[i].entry_offset,
                      fmt::format("'{}' that overlaps '{}'", *extents[i].name, *extents[i - 1].name));
}

const std::string& GgufReader::text(const std::string& key) const {
    const auto found = metadata_.find(key);
    if (found == metadata_.end())
        throw ValueError(fmt::format("GgufReader::text: expected a text named '{}', got no such entry", key));
    if (!std::holds_alternative<std::string>(found->second.value))
        throw ValueError(fmt::format("GgufReader::text: expected '{}' to be a text, got another type", key));
    return std::get<std::string>(found->second.value);
}

double GgufReader::number(const std::string& key) const {
    if (const auto found = metadata_.find(key); found != metadata_.end()) {
        const auto& value = found->second.value;
        if (const auto* number = std::get_if<std::uint64_t>(&value)) return static_cast<double>(*number);
        if (const auto* number = std::get_if<std::int64_t>(&value)) return static_cast<double>(*number);
        if (const auto* number = std::get_if<double>(&value)) return *number;
    }
    throw ValueError(fmt::format("GgufReader::number: expected a number named '{}', got none", key));
}

std::vector<std::byte> GgufReader::read_stored(const std::string& name) const {
    const auto found = arrays_.find(name);
    if (found == arrays_.end())
        throw ValueError(fmt::format("GgufReader::read: expected the name of an array, got '{}'", name));
    return file_->read_at(found->second.begin, found->second.bytes);
}

HostArray GgufReader::read(const std::string& name) const {
    std::vector<std::byte> bytes = read_stored(name);
    const Array& array = arrays_.at(name);
    const TypeFormat& format = format_of(array.type);
    if (format.elements == 1) return {format.dtype, array.shape, std::move(bytes)};
    return HostArray::of(array.shape, dequantize(array.type, bytes));
}

std::vector<float> dequantize(GgufType type, std::span<const std::byte> bytes) {
    const TypeFormat& format = format_of(type);
    const auto block_size = static_cast<std::size_t>(format.bytes),
               elements = static_cast<std::size_t>(format.elements);
    if (format.elements == 1 || bytes.size() % block_size != 0)
        throw ValueError(
            fmt::format("dequantize: expected whole blocks, got {} bytes of {}", bytes.size(), format.name));
    std::vector<float> out(bytes.size() / block_size * elements);
    const auto* from = reinterpret_cast<const std::uint8_t*>(bytes.data());
    for (std::size_t i = 0; i < bytes.size() / block_size; ++i)
        expand(type, from + i * block_size, out.data() + i * elements);
    return out;
}

StateDict load_gguf(const fs::path& path, const GgufLoadOptions& options) {
    const FunctionScope function("io::load_gguf");
    const GgufReader reader(path);
    StateDict out;
    for (const auto& [name, array] : reader.arrays()) {
        Tensor tensor = to_device(reader.read(name), options.device);
        if (options.dtype && is_floating(tensor.dtype()) && tensor.dtype() != *options.dtype) {
            tensor = tensor.to(*options.dtype);
            (void)tensor.view();  // releases the elements as they were read
        }
        out.push_back({name, std::move(tensor)});
    }
    return out;
}

}  // namespace declivity::io

// Layer 6. GGUF, the file format of llama.cpp: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Read only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <declivity/export.hpp>
#include <declivity/io/host_array.hpp>
#include <declivity/tensor/state_dict.hpp>

namespace declivity::io {

/// @addtogroup io
/// @{

/// Element types, with ggml's type codes. Quantized types store blocks of 32 elements, or 256 (k), with their own
/// scales.
enum class GgufType : std::uint32_t {
    f32 = 0,
    f16 = 1,
    q4_0 = 2,
    q4_1 = 3,
    q5_0 = 6,
    q5_1 = 7,
    q8_0 = 8,
    q4_k = 12,
    q5_k = 13,
    q6_k = 14,
    i8 = 24,
    i16 = 25,
    i32 = 26,
    i64 = 27,
    f64 = 28,
    bf16 = 30
};
DECLIVITY_API const char* name_of(GgufType type);
/// Number of elements of a block; 1 for types without blocks.
DECLIVITY_API std::int64_t block_elements(GgufType type);
/// Bytes of a block; the element size for types without blocks.
DECLIVITY_API std::int64_t block_bytes(GgufType type);

struct GgufValue;

/// An array in the metadata. Its elements have one type and are stored as in the file, in about as many bytes; each
/// access creates a GgufValue.
class DECLIVITY_API GgufList {
  public:
    [[nodiscard]] std::size_t size() const noexcept { return count_; }
    [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
    /// @throws ValueError for an index out of range
    [[nodiscard]] GgufValue operator[](std::size_t index) const;

    class DECLIVITY_API Iterator {
      public:
        using value_type = GgufValue;
        using difference_type = std::ptrdiff_t;
        Iterator() = default;
        Iterator(const GgufList& list, std::size_t index) : list_(&list), index_(index) {}
        GgufValue operator*() const;
        Iterator& operator++() {
            ++index_;
            return *this;
        }
        Iterator operator++(int) {
            const Iterator before = *this;
            ++index_;
            return before;
        }
        friend bool operator==(const Iterator& a, const Iterator& b) noexcept { return a.index_ == b.index_; }

      private:
        const GgufList* list_ = nullptr;
        std::size_t index_ = 0;
    };
    [[nodiscard]] Iterator begin() const noexcept { return {*this, 0}; }
    [[nodiscard]] Iterator end() const noexcept { return {*this, count_}; }

  private:
    friend class GgufHead;
    std::uint32_t type_ = 0;  // type code of the file
    std::size_t count_ = 0;
    std::vector<std::byte> bytes_;     // numbers, or concatenated strings
    std::vector<std::uint64_t> ends_;  // ends of the strings in bytes_
    std::vector<GgufList> lists_;
};

/// A metadata value: number, bool, string, or an array of them.
struct GgufValue {
    std::variant<std::uint64_t, std::int64_t, double, bool, std::string, GgufList> value;
};

class InputFile;

/// A GGUF file: metadata and array locations are read at once, arrays on demand. The file stays open as long as the
/// reader or a copy of it exists: if it is replaced in the meantime, the old contents are read. Thread-safe.
class DECLIVITY_API GgufReader {
  public:
    struct Array {
        GgufType type;
        Shape shape;              ///< row-major, that is, reversed relative to the file
        std::uint64_t begin = 0;  ///< of its bytes in the file
        std::uint64_t bytes = 0;
    };

    /// Supports versions 2 and 3, little-endian. Memory use is bounded by the file: at most about twelve times the
    /// bytes before the arrays. Arrays must not overlap, and metadata arrays are nested at most three deep.
    /// @throws FormatError naming file and position for invalid contents or an element type not in GgufType; IoError
    explicit GgufReader(const std::filesystem::path& path);

    [[nodiscard]] const std::map<std::string, GgufValue>& metadata() const noexcept { return metadata_; }
    [[nodiscard]] const std::map<std::string, Array>& arrays() const noexcept { return arrays_; }
    /// A string or number of the metadata, such as "general.architecture".
    /// @throws ValueError if the key is missing or has another type
    [[nodiscard]] const std::string& text(const std::string& key) const;
    [[nodiscard]] double number(const std::string& key) const;

    /// Reads an array; quantized types are dequantized to f32.
    /// @throws ValueError for an unknown name; FormatError naming the file if it was modified in place since it was
    /// opened; OutOfMemory, IoError
    [[nodiscard]] HostArray read(const std::string& name) const;
    /// The raw bytes as stored.
    [[nodiscard]] std::vector<std::byte> read_stored(const std::string& name) const;

  private:
    std::shared_ptr<const InputFile> file_;
    std::map<std::string, GgufValue> metadata_;
    std::map<std::string, Array> arrays_;
};

/// Dequantizes blocks to f32. @throws ValueError unless the bytes are whole blocks
DECLIVITY_API std::vector<float> dequantize(GgufType type, std::span<const std::byte> stored);

struct GgufLoadOptions {
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
    /// Type to which floating and quantized arrays are converted; if none, f32 for quantized arrays, others unchanged.
    std::optional<DType> dtype = std::nullopt;
};
/// Loads all arrays of a file to a device, with the names of the file ("blk.0.attn_q.weight").
/// @throws FormatError, IoError, OutOfMemory
DECLIVITY_API StateDict load_gguf(const std::filesystem::path& path, const GgufLoadOptions& options = {});

/// @}

}  // namespace declivity::io

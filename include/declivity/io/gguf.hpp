// Layer 4. GGUF, the files of llama.cpp: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Read only.
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

/// How elements are stored, by ggml's numbers. Those of blocks hold 32 elements, or 256 (k), with scales of their own.
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
/// Elements of a block, and its bytes; 1 and the size of an element for types without blocks.
DECLIVITY_API std::int64_t block_elements(GgufType type);
DECLIVITY_API std::int64_t block_bytes(GgufType type);

struct GgufValue;

/// A list of the metadata. Its values have one type and are stored as in the file, in about as many bytes; each access
/// makes a GgufValue of one.
class DECLIVITY_API GgufList {
  public:
    [[nodiscard]] std::size_t size() const noexcept { return count_; }
    [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
    /// @throws ValueError for an index that is not below size()
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
    std::uint32_t type_ = 0;  // by the file's numbers
    std::size_t count_ = 0;
    std::vector<std::byte> bytes_;     // of numbers, or of texts, one after the other
    std::vector<std::uint64_t> ends_;  // of texts within bytes_
    std::vector<GgufList> lists_;
};

/// A number, bool or text of the metadata, or a list of them.
struct GgufValue {
    std::variant<std::uint64_t, std::int64_t, double, bool, std::string, GgufList> value;
};

class InputFile;

/// A GGUF file: metadata and where arrays lie are read at once, arrays when they are asked for. The file stays open as
/// long as the reader or a copy of it exists: a file that is replaced meanwhile is read as it was. Several threads may
/// read from one reader.
class DECLIVITY_API GgufReader {
  public:
    struct Array {
        GgufType type;
        Shape shape;              ///< row-major, the other way round than in the file
        std::uint64_t begin = 0;  ///< of its bytes within the file
        std::uint64_t bytes = 0;
    };

    /// Versions 2 and 3, little-endian. Memory is taken only for what the file holds: at most about twelve times the
    /// bytes before the arrays. Arrays do not overlap, lists are nested three deep at most.
    /// @throws FormatError naming file and place for what is not valid, or a type that is none of GgufType; IoError
    explicit GgufReader(const std::filesystem::path& path);

    [[nodiscard]] const std::map<std::string, GgufValue>& metadata() const noexcept { return metadata_; }
    [[nodiscard]] const std::map<std::string, Array>& arrays() const noexcept { return arrays_; }
    /// A text or number of the metadata, such as "general.architecture".
    /// @throws ValueError where there is none, or of another kind
    [[nodiscard]] const std::string& text(const std::string& key) const;
    [[nodiscard]] double number(const std::string& key) const;

    /// The elements; those of blocks as f32.
    /// @throws ValueError for a name that there is not; FormatError naming the file where it was changed in place since
    /// it was opened; OutOfMemory, IoError
    [[nodiscard]] HostArray read(const std::string& name) const;
    /// The bytes as they are stored.
    [[nodiscard]] std::vector<std::byte> read_stored(const std::string& name) const;

  private:
    std::shared_ptr<const InputFile> file_;
    std::map<std::string, GgufValue> metadata_;
    std::map<std::string, Array> arrays_;
};

/// Elements of blocks as they are stored, as f32. @throws ValueError unless the bytes are whole blocks
DECLIVITY_API std::vector<float> dequantize(GgufType type, std::span<const std::byte> stored);

struct GgufLoadOptions {
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
    /// That all floating arrays and those of blocks are converted to; if none, f32 for blocks, others as they are.
    std::optional<DType> dtype = std::nullopt;
};
/// All arrays of a file, on a device, by the names of the file ("blk.0.attn_q.weight").
/// @throws FormatError, IoError, OutOfMemory
DECLIVITY_API StateDict load_gguf(const std::filesystem::path& path, const GgufLoadOptions& options = {});

}  // namespace declivity::io

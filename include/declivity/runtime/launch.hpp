// Layer 1. Compiling and launching kernels: the only way from C++ to a kernel.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <declivity/runtime/buffer.hpp>
#include <declivity/runtime/device.hpp>

namespace declivity {

namespace detail {
struct KernelState;
}

/// Names and values that a kernel is compiled with, as by -D.
class DECLIVITY_API Defines {
  public:
    Defines() = default;
    Defines(std::initializer_list<std::pair<std::string_view, std::string>> values);
    Defines& set(std::string_view name, std::string_view value);
    Defines& set(std::string_view name, std::int64_t value);
    /// Adds those of another list.
    Defines& append(const Defines& other) {
        text_ += other.text_;
        return *this;
    }
    /// One "#define NAME VALUE" line each.
    [[nodiscard]] const std::string& text() const noexcept { return text_; }

  private:
    std::string text_;
};

/// A kernel before it is compiled.
struct KernelSpec {
    /// "conv2d.cl": a kernel file of the library, or of DECLIVITY_KERNEL_DIR when that is set and has it. A name
    /// with a '/' is a file of yours; its #include "..." are looked up beside it and among the library's .clh files.
    std::string file;
    /// Name of the __kernel function.
    std::string name;
    Defines defines = {};
};

/// A compiled kernel. Compiled once a process for the same device, file and defines, kept on disk between processes.
class DECLIVITY_API Kernel {
  public:
    /// @throws DeviceError with the build log, or when file or function do not exist
    Kernel(const Device& device, const KernelSpec& spec);

    [[nodiscard]] const std::string& name() const;
    [[nodiscard]] Device device() const;
    /// Most work-items a group of this kernel may have here.
    [[nodiscard]] std::size_t max_work_group() const;

    [[nodiscard]] detail::KernelState& state() const noexcept { return *state_; }

  private:
    std::shared_ptr<detail::KernelState> state_;
};

/// Up to three sizes; of {n} and {n, m} those not given are 1.
struct Extent : std::array<std::size_t, 3> {
    constexpr Extent() : array{0, 0, 0} {}
    constexpr Extent(std::size_t x, std::size_t y = 1, std::size_t z = 1) : array{x, y, z} {}  // NOLINT: `.global = n`
    constexpr Extent(const std::array<std::size_t, 3>& sizes) : array(sizes) {}                // NOLINT
};

/// Work-items in up to three dimensions. A local size of {} leaves the choice to the device.
struct Range {
    Extent global{1};
    Extent local{};
};

/// Memory shared by a work-group, as a kernel argument `__local T*`.
struct LocalMemory {
    std::size_t bytes;
};

/// Memory as a kernel argument. It arrives as two: `__global T* base, long offset`, the offset in elements.
struct BufferArgument {
    Buffer buffer;
    std::int64_t offset = 0;       ///< elements
    std::size_t element_size = 1;  ///< bytes
};

/// Plain data of a size known at run time, by value; a struct without padding.
struct RawArgument {
    const void* data;
    std::size_t bytes;
};

/// The same, which says where in memory objects things lie: no two runs of a program need agree on it.
struct IndicesArgument {
    const void* data;
    std::size_t bytes;
};

namespace detail {
/// A constant expression only where every byte of a T belongs to a member.
template <class T>
consteval bool read_all_bytes() {
    unsigned sum = 0;
    for (const unsigned char byte : std::bit_cast<std::array<unsigned char, sizeof(T)>>(T{})) sum += byte;
    return sum < ~0U;
}
template <class T>
concept Unpadded = requires {
    typename std::bool_constant<read_all_bytes<T>()>;
};
}  // namespace detail

/// One argument of a launch, of any kind. Owns what it was made from.
class DECLIVITY_API Argument {
  public:
    template <class T>
    requires std::is_arithmetic_v<T> &&(!std::same_as<T, bool>)Argument(const T& value) : kind_(Kind::value) {
        keep(&value, sizeof(T));
    }
    /// Plain data, passed by value: the kernel must declare the same struct. Without padding, about which drivers
    /// disagree: some want the bytes up to the last member, some those of sizeof.
    template <class T>
    requires std::is_class_v<T> && std::is_trivially_copyable_v<T> Argument(const T& value) : kind_(Kind::value) {
        static_assert(
            detail::Unpadded<T>,
            "a struct for a kernel expected no padding: order its members by size, and add members where bytes "
            "are left over");
        keep(&value, sizeof(T));
    }
    Argument(const RawArgument& raw) : kind_(Kind::value) { keep(raw.data, raw.bytes); }
    Argument(const IndicesArgument& places) : kind_(Kind::value), places_(true) { keep(places.data, places.bytes); }
    Argument(BufferArgument buffer) : kind_(Kind::buffer), buffer_(std::move(buffer)) {}
    Argument(const LocalMemory& local) : kind_(Kind::local), size_(local.bytes) {}

    enum class Kind : std::uint8_t { value, buffer, local };
    [[nodiscard]] Kind kind() const noexcept { return kind_; }
    /// Of a value.
    [[nodiscard]] const void* data() const noexcept { return large_ ? large_.get() : small_.data(); }
    /// Bytes of a value, or of local memory.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    /// Of a buffer.
    [[nodiscard]] const BufferArgument& buffer() const noexcept { return buffer_; }
    [[nodiscard]] bool places() const noexcept { return places_; }

  private:
    void keep(const void* data, std::size_t bytes) {
        size_ = bytes;
        if (bytes <= small_.size()) {
            std::memcpy(small_.data(), data, bytes);
        } else {
            const auto copy = std::make_shared<std::byte[]>(bytes);
            std::memcpy(copy.get(), data, bytes);
            large_ = copy;
        }
    }

    Kind kind_;
    bool places_ = false;
    std::size_t size_ = 0;
    BufferArgument buffer_ = {};
    alignas(std::max_align_t) std::array<std::byte, 32> small_{};
    std::shared_ptr<const std::byte[]> large_ = {};
};

/// Enqueues a kernel and returns at once.
/// @throws DeviceError naming the kernel, when the arguments' number or sizes do not fit or the device refuses it
DECLIVITY_API void launch(const Kernel& kernel, const Range& range, std::initializer_list<Argument> arguments);
DECLIVITY_API void launch(const Kernel& kernel, const Range& range, std::span<const Argument> arguments);

/// `count` rounded up to a multiple of `multiple`, for global sizes.
constexpr std::size_t round_up(std::size_t count, std::size_t multiple) {
    return (count + multiple - 1) / multiple * multiple;
}
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace declivity

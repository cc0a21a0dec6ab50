// Layer 1. Compiling and launching kernels.
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

/// @addtogroup runtime
/// @{

/// Preprocessor definitions of a kernel, as by -D.
class DECLIVITY_API Defines {
  public:
    Defines() = default;
    Defines(std::initializer_list<std::pair<std::string_view, std::string>> values);
    Defines& set(std::string_view name, std::string_view value);
    Defines& set(std::string_view name, std::int64_t value);
    /// Appends the definitions of another list.
    Defines& append(const Defines& other) {
        text_ += other.text_;
        return *this;
    }
    /// One "#define NAME VALUE" line each.
    [[nodiscard]] const std::string& text() const noexcept { return text_; }

  private:
    std::string text_;
};

/// Source of a kernel.
struct KernelSpec {
    /// "conv2d.cl": a kernel file of the library, or of DECLIVITY_KERNEL_DIR if that is set and contains it. A name
    /// with a '/' is a custom file; its #include "..." are searched in its folder and among the library's .clh files.
    std::string file;
    /// Name of the __kernel function.
    std::string name;
    Defines defines = {};
};

/// A compiled kernel, compiled once per process for each device, file and set of definitions, and cached on disk.
class DECLIVITY_API Kernel {
  public:
    /// @throws DeviceError with the build log, or if the file or function does not exist
    Kernel(const Device& device, const KernelSpec& spec);

    [[nodiscard]] const std::string& name() const;
    [[nodiscard]] Device device() const;
    /// Maximum work-group size of this kernel on the device.
    [[nodiscard]] std::size_t max_work_group() const;

  private:
    friend struct detail::StateAccess;
    std::shared_ptr<detail::KernelState> state_;
};

/// Up to three sizes; unspecified ones are 1.
struct Extent : std::array<std::size_t, 3> {
    constexpr Extent() : array{0, 0, 0} {}
    constexpr Extent(std::size_t x, std::size_t y = 1, std::size_t z = 1) : array{x, y, z} {}  // NOLINT: `.global = n`
    constexpr Extent(const std::array<std::size_t, 3>& sizes) : array(sizes) {}                // NOLINT
};

/// Global and local size in up to three dimensions. A local size of {} lets the driver choose.
struct Range {
    Extent global{1};
    Extent local{};
};

/// Local memory of a work-group, as a kernel argument `__local T*`.
struct LocalMemory {
    std::size_t bytes;
};

/// Buffer as a kernel argument. The kernel receives two: `__global T* base, long offset`, the offset in elements.
struct BufferArgument {
    Buffer buffer;
    std::int64_t offset = 0;       ///< elements
    std::size_t element_size = 1;  ///< bytes
};

/// Plain data passed by value, of a size known at run time; a struct without padding.
struct RawArgument {
    const void* data;
    std::size_t bytes;
};

/// A RawArgument whose data describes memory layout, and so may differ between runs of the same program.
struct LayoutArgument {
    const void* data;
    std::size_t bytes;
};
using PlacesArgument [[deprecated("LayoutArgument")]] = LayoutArgument;

namespace detail {
/// True if every byte of a T belongs to a member; only then is this a constant expression.
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

/// A kernel argument of any kind. Owns a copy of its data.
class DECLIVITY_API Argument {
  public:
    template <class T>
    requires std::is_arithmetic_v<T> &&(!std::same_as<T, bool>)Argument(const T& value) : kind_(Kind::value) {
        copy_value(&value, sizeof(T));
    }
    /// Plain data passed by value: the kernel must declare the same struct. Padding is not allowed, since drivers
    /// disagree on the size: some expect the bytes up to the last member, others sizeof.
    template <class T>
    requires std::is_class_v<T> && std::is_trivially_copyable_v<T> Argument(const T& value) : kind_(Kind::value) {
        static_assert(
            detail::Unpadded<T>,
            "Argument: expected a struct without padding: order its members by size, and add members for unused "
            "bytes");
        copy_value(&value, sizeof(T));
    }
    Argument(const RawArgument& raw) : kind_(Kind::value) { copy_value(raw.data, raw.bytes); }
    Argument(const LayoutArgument& places) : kind_(Kind::value), places_(true) {
        copy_value(places.data, places.bytes);
    }
    Argument(BufferArgument buffer) : kind_(Kind::buffer), buffer_(std::move(buffer)) {}
    Argument(const LocalMemory& local) : kind_(Kind::local), size_(local.bytes) {}

    enum class Kind : std::uint8_t { value, buffer, local };
    [[nodiscard]] Kind kind() const noexcept { return kind_; }
    /// Data of a value argument.
    [[nodiscard]] const void* data() const noexcept { return large_ ? large_.get() : small_.data(); }
    /// Bytes of a value argument, or of local memory.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    /// Buffer of a buffer argument.
    [[nodiscard]] const BufferArgument& buffer() const noexcept { return buffer_; }
    [[nodiscard]] bool places() const noexcept { return places_; }

  private:
    void copy_value(const void* data, std::size_t bytes) {
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

/// Enqueues a kernel and returns.
/// @throws DeviceError naming the kernel if the number or sizes of the arguments do not match, or on an OpenCL error
DECLIVITY_API void launch(const Kernel& kernel, const Range& range, std::initializer_list<Argument> arguments);
/// Overload for a list made at run time.
DECLIVITY_API void launch(const Kernel& kernel, const Range& range, std::span<const Argument> arguments);

/// Rounds `count` up to a multiple of `multiple`, for global sizes.
constexpr std::size_t round_up(std::size_t count, std::size_t multiple) {
    return (count + multiple - 1) / multiple * multiple;
}
/// a / b, rounded up, for a of at least 0 and b above 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// @}

}  // namespace declivity

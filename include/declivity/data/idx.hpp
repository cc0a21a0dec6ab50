// Layer 7. IDX files, the format of MNIST: http://yann.lecun.com/exdb/mnist, at the end of the page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include <declivity/data/dataset.hpp>
#include <declivity/export.hpp>
#include <declivity/ops/shape.hpp>

namespace declivity::data {

/// @addtogroup data
/// @{

/// Element types of IDX files, with the type codes of the format.
enum class IdxType : std::uint8_t { u8 = 0x08, i8 = 0x09, i16 = 0x0B, i32 = 0x0C, f32 = 0x0D, f64 = 0x0E };

/// Size of one element in bytes.
DECLIVITY_API std::size_t size_of(IdxType type) noexcept;

/// Contents of an IDX file.
struct IdxArray {
    IdxType type = IdxType::u8;
    Shape shape;
    /// Row-major elements in native byte order: shape.numel() * size_of(type) bytes.
    std::vector<std::byte> bytes;
};

/// Reads an IDX file, plain or gzip-compressed (detected by content). Memory is allocated only for data that the file
/// contains, regardless of its header.
/// @throws FormatError if it is not an IDX file, is truncated or has trailing data; the offset is in decompressed
/// bytes, except for corrupt compression, where it is in bytes of the file; IoError
DECLIVITY_API IdxArray read_idx(const std::filesystem::path& path);

/// MNIST and data sets in the same format (Fashion-MNIST, KMNIST): 1,H,W images of ten classes.
/// The folder contains {train,t10k}-images-idx3-ubyte and -labels-idx1-ubyte, each with or without .gz and with '.' or
/// '-' before "idx". Source of the data: LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document
/// recognition" (Proc. IEEE, 1998).
/// @throws IoError when a file is missing; FormatError for corrupt files, images that are not bytes, different numbers
/// of labels and images, and labels above 9
DECLIVITY_API std::shared_ptr<const InMemoryDataset> load_mnist(const std::filesystem::path& folder, Split split);

/// @}

}  // namespace declivity::data

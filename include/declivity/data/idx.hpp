// Layer 5. IDX files, the format of MNIST: http://yann.lecun.com/exdb/mnist, at the foot of the page.
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

/// Element types of IDX files; the values are those in the file.
enum class IdxType : std::uint8_t { u8 = 0x08, i8 = 0x09, i16 = 0x0B, i32 = 0x0C, f32 = 0x0D, f64 = 0x0E };

/// Bytes of one element.
DECLIVITY_API std::size_t size_of(IdxType type) noexcept;

/// The content of an IDX file.
struct IdxArray {
    IdxType type = IdxType::u8;
    Shape shape;
    /// Row-major elements in this machine's byte order: shape.numel() * size_of(type) bytes.
    std::vector<std::byte> bytes;
};

/// Reads an IDX file, plain or compressed with gzip (told by its content). No memory is taken for more than the file
/// really holds, whatever its header claims.
/// @throws FormatError when it is no IDX file, is truncated or goes on after its end; the offset counts decompressed
/// bytes, but for damage to the compression itself, which counts the file's own bytes; IoError
DECLIVITY_API IdxArray read_idx(const std::filesystem::path& path);

/// MNIST and its look-alikes (Fashion-MNIST, KMNIST): 1,H,W images of ten classes.
/// The folder holds {train,t10k}-images-idx3-ubyte and -labels-idx1-ubyte, each with or without .gz and with '.' or
/// '-' before "idx". Source of the data: LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document
/// recognition" (Proc. IEEE, 1998).
/// @throws IoError when a file is missing; FormatError for damaged files, for images that are not bytes, for another
/// number of labels than of images, and for labels above 9
DECLIVITY_API std::shared_ptr<const InMemoryDataset> load_mnist(const std::filesystem::path& folder, Split split);

}  // namespace declivity::data

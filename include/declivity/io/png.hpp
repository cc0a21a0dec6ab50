// Layer 6. PNG files, through libpng.
#pragma once

#include <filesystem>

#include <declivity/export.hpp>
#include <declivity/io/image.hpp>

namespace declivity::io {

/// @addtogroup io
/// @{

/// Reads any PNG file as 8 bits per channel: gray files become gray images, all others colour. 16-bit values are
/// rounded to 8 bits, colours are converted to sRGB if the file declares another colour space, and transparent pixels
/// are blended onto black. At most 2^28 pixels; memory is allocated only if the file has that many.
/// @throws FormatError if the file is corrupt, truncated or not PNG, or has more pixels; IoError
DECLIVITY_API Image8 read_png(const std::filesystem::path& path);

/// Writes an image as PNG, atomically (see AtomicFile).
/// @throws ValueError if the image is inconsistent; IoError
DECLIVITY_API void write_png(const std::filesystem::path& path, const Image8& image);

/// @}

}  // namespace declivity::io

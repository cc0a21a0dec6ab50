// Layer 4. PNG files, through libpng.
#pragma once

#include <filesystem>

#include <declivity/export.hpp>
#include <declivity/io/image.hpp>

namespace declivity::io {

/// Reads a PNG file of any kind as 8 bits a channel: gray files become gray images, all others colour. 16 bits
/// are rounded to 8, colours are brought to sRGB where the file says that they are something else, and transparent
/// pixels are laid on black. At most 2^28 pixels; memory is taken only where the file has as many.
/// @throws FormatError when the file is damaged, truncated or no PNG, or has more pixels; IoError
DECLIVITY_API Image8 read_png(const std::filesystem::path& path);

/// Writes an image as PNG, whole or not at all (see AtomicFile).
/// @throws ValueError when the image's parts do not fit together; IoError
DECLIVITY_API void write_png(const std::filesystem::path& path, const Image8& image);

}  // namespace declivity::io

// Layer 6. Reading and writing the safetensors format: https://github.com/huggingface/safetensors.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include <declivity/export.hpp>
#include <declivity/io/host_array.hpp>

namespace declivity::io {

/// @addtogroup io
/// @{

/// Contents of a safetensors file: named arrays, and string metadata.
struct Safetensors {
    std::map<std::string, HostArray> arrays;
    std::map<std::string, std::string> metadata;
};

/// Reads a safetensors file: 8 bytes with the length of the header, little-endian; the header, a JSON object; the data.
/// Types F32, F64, F16, BF16, I8, U8, I16, U16, I32, U32, I64, U64 and BOOL; at most Shape::kMaxRank axes. Validation
/// is as strict as in the reference implementation: arrays are contiguous without gap or overlap and end with the file,
/// names are unique, the header has at most 100 MB. Memory use is bounded by the file.
/// @throws FormatError naming the position for anything else, including a type not listed, and for a file whose
/// checksum ("declivity.crc32" in its metadata, as in Trainer checkpoints) does not match; IoError
DECLIVITY_API Safetensors read_safetensors(const std::filesystem::path& path);

/// Writes a safetensors file that every implementation of the format can read, atomically (see AtomicFile). Arrays are
/// ordered by element size, so that each is aligned, then by name.
/// @throws ValueError for the name "__metadata__" or a string that is not UTF-8; ShapeError for an array whose bytes do
/// not match its shape; IoError, with the old file unchanged and no temporary file left
DECLIVITY_API void write_safetensors(const std::filesystem::path& path, const Safetensors& content);

/// @}

}  // namespace declivity::io

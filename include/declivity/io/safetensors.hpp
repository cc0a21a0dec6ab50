// Layer 4. The safetensors format, read and written: https://github.com/huggingface/safetensors.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include <declivity/export.hpp>
#include <declivity/io/host_array.hpp>

namespace declivity::io {

/// What a safetensors file holds: named arrays, and names with a text each.
struct Safetensors {
    std::map<std::string, HostArray> arrays;
    std::map<std::string, std::string> metadata;
};

/// Reads a safetensors file: 8 bytes with the length of the header, little-endian; the header, a JSON object; the data.
/// Types F32, F64, F16, BF16, I8, U8, I16, U16, I32, U32, I64, U64 and BOOL; at most Shape::kMaxRank axes. It is as
/// strict as the format's reference: arrays follow one another without gap or overlap and end with the file, names are
/// unique, the header has
/// at most 100 MB. Memory is taken only for bytes that the file holds.
/// @throws FormatError naming the place for everything else, a type not listed included, and for a file with a checksum
/// ("declivity.crc32" of its metadata, as checkpoints of a Trainer have it) that is not that of its content; IoError
DECLIVITY_API Safetensors read_safetensors(const std::filesystem::path& path);

/// Writes a safetensors file, whole or not at all (see AtomicFile), that every implementation of the format reads.
/// Arrays are ordered by the size of their elements, so that each lies aligned, then by name.
/// @throws ValueError for a name that is "__metadata__" or a text that is not UTF-8; ShapeError for an array whose
/// bytes do not fit its shape; IoError, with the old file untouched and no temporary left
DECLIVITY_API void write_safetensors(const std::filesystem::path& path, const Safetensors& content);

}  // namespace declivity::io

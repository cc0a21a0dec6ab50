// Compresses bytes to a gzip file, for tests of readers.
#pragma once

#include <zlib.h>

#include <stdexcept>

#include <tests/support/temp_folder.hpp>

namespace declivity::test {

inline Bytes gzip(std::span<const std::uint8_t> bytes) {
    z_stream stream{};
    if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        throw std::runtime_error("deflateInit2 failed");
    Bytes out(deflateBound(&stream, static_cast<uLong>(bytes.size())) + 64);
    stream.next_in = const_cast<Bytef*>(bytes.data());
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = out.data();
    stream.avail_out = static_cast<uInt>(out.size());
    const int code = deflate(&stream, Z_FINISH);
    const auto packed = static_cast<std::ptrdiff_t>(stream.total_out);
    deflateEnd(&stream);
    if (code != Z_STREAM_END) throw std::runtime_error("deflate failed");
    return {out.begin(), out.begin() + packed};
}

}  // namespace declivity::test

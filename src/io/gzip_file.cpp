#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>
#include <vector>

#include <declivity/io/gzip_file.hpp>
#include <declivity/io/input_file.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::io {
namespace {

constexpr std::size_t kInputBuffer = std::size_t{1} << 16;
constexpr std::byte kMagic0{0x1f}, kMagic1{0x8b};
constexpr int kGzipOnly = 15 + 16;  // the largest window, with gzip's header and checksum

}  // namespace

struct GzipFile::State {
    explicit State(const std::filesystem::path& path) : file(path), input(kInputBuffer) {
        refill();
        gzip = filled >= 2 && input[0] == kMagic0 && input[1] == kMagic1;
        if (gzip && inflateInit2(&stream, kGzipOnly) != Z_OK) throw std::bad_alloc();
    }
    ~State() {
        if (gzip) inflateEnd(&stream);
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    void refill() {
        filled = file.read_some(input);
        used = 0;
    }
    // Current position in the compressed file.
    [[nodiscard]] std::uint64_t file_offset() const { return file.position() - (filled - used); }

    std::size_t copy(std::span<std::byte> bytes) {
        const std::size_t buffered = std::min(bytes.size(), filled - used);
        std::copy_n(input.data() + used, buffered, bytes.data());
        used += buffered;
        return buffered + file.read_some(bytes.subspan(buffered));
    }

    std::size_t inflate_some(std::span<std::byte> bytes);
    bool next_member();

    InputFile file;
    std::vector<std::byte> input;
    std::size_t filled = 0;
    std::size_t used = 0;
    std::uint64_t position = 0;
    z_stream stream{};
    bool gzip = false;
    bool member_ended = false;
};

// Called after a member's end: false at the end of the file, true if another member follows.
bool GzipFile::State::next_member() {
    if (used == filled) refill();
    if (filled == 0) return false;
    if (input[used] != kMagic0)
        throw FormatError(file.name(), file_offset(),
                          "bytes after the end of the gzip data, expected the end of the file");
    if (inflateReset(&stream) != Z_OK) throw std::bad_alloc();
    member_ended = false;
    return true;
}

std::size_t GzipFile::State::inflate_some(std::span<std::byte> bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
        if (member_ended && !next_member()) break;
        if (used == filled) refill();
        const std::size_t out_space = std::min<std::size_t>(bytes.size() - done, std::numeric_limits<uInt>::max());
        stream.next_in = reinterpret_cast<Bytef*>(input.data() + used);
        stream.avail_in = static_cast<uInt>(filled - used);
        stream.next_out = reinterpret_cast<Bytef*>(bytes.data() + done);
        stream.avail_out = static_cast<uInt>(out_space);
        const bool no_input = filled == 0;
        const int code = inflate(&stream, Z_NO_FLUSH);
        used = filled - stream.avail_in;
        const std::size_t produced = out_space - stream.avail_out;
        done += produced;
        if (code == Z_STREAM_END) {
            member_ended = true;
        } else if (code == Z_MEM_ERROR) {
            throw std::bad_alloc();
        } else if (no_input && produced == 0) {
            throw FormatError(file.name(), file_offset(), "the file ends within the gzip data");
        } else if (code != Z_OK && code != Z_BUF_ERROR) {
            throw FormatError(file.name(), file_offset(),
                              fmt::format("damaged gzip data ({})", stream.msg != nullptr ? stream.msg : zError(code)));
        }
    }
    return done;
}

GzipFile::GzipFile(const std::filesystem::path& path) : state_(std::make_unique<State>(path)) {}
GzipFile::~GzipFile() = default;

const std::string& GzipFile::name() const noexcept { return state_->file.name(); }
bool GzipFile::compressed() const noexcept { return state_->gzip; }
std::uint64_t GzipFile::file_size() const noexcept { return state_->file.size(); }
std::uint64_t GzipFile::position() const noexcept { return state_->position; }

std::size_t GzipFile::read_some(std::span<std::byte> bytes) {
    const std::size_t got = state_->gzip ? state_->inflate_some(bytes) : state_->copy(bytes);
    state_->position += got;
    return got;
}

}  // namespace declivity::io

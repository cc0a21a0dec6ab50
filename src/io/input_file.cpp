#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>

#include <declivity/io/input_file.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::io {
namespace {

std::int64_t modification_time(const struct stat& status) {
    return static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec;
}

}  // namespace

InputFile::InputFile(const std::filesystem::path& path) : name_(path.string()) {
    do descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    while (descriptor_ < 0 && errno == EINTR);
    if (descriptor_ < 0) throw IoError("open", name_, errno);
    struct stat status {};
    int error = ::fstat(descriptor_, &status) == 0 ? 0 : errno;
    if (error == 0 && S_ISDIR(status.st_mode)) error = EISDIR;
    if (error != 0) {
        ::close(descriptor_);
        throw IoError("open", name_, error);
    }
    if (S_ISREG(status.st_mode)) size_ = static_cast<std::uint64_t>(status.st_size);
    modified_ = modification_time(status);
}

InputFile::~InputFile() { ::close(descriptor_); }

std::size_t InputFile::read_some(std::span<std::byte> bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t got = ::read(descriptor_, bytes.data() + done, bytes.size() - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw IoError("read", name_, errno);
        if (got == 0) break;
        done += static_cast<std::size_t>(got);
        position_ += static_cast<std::uint64_t>(got);
    }
    return done;
}

void InputFile::read(std::span<std::byte> bytes) {
    const std::size_t done = read_some(bytes);
    if (done < bytes.size())
        throw FormatError(name_, position_,
                          fmt::format("the file ends where {} more bytes are expected", bytes.size() - done));
}

void InputFile::seek(std::uint64_t position) {
    if (::lseek(descriptor_, static_cast<off_t>(position), SEEK_SET) < 0) throw IoError("seek in", name_, errno);
    position_ = position;
}

std::vector<std::byte> InputFile::read_at(std::uint64_t position, std::uint64_t count) const {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) throw IoError("examine", name_, errno);
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (size != size_ || modification_time(status) != modified_)
        throw FormatError(name_, std::min(size, size_),
                          fmt::format("expected an unchanged file of {} bytes, got one that was modified "
                                      "since it was opened, with {} bytes",
                                      size_, size));
    const auto refuse = [&](std::uint64_t offset) {
        throw FormatError(name_, offset,
                          fmt::format("expected {} bytes from byte {} on, got the end of the file", count, position));
    };
    if (position > size_ || count > size_ - position) refuse(size_);
    std::vector<std::byte> bytes;
    try {
        bytes.resize(static_cast<std::size_t>(count));
    } catch (const std::exception&) {  // bad_alloc or length_error
        throw OutOfMemory(fmt::format("{}: not enough host memory for {} bytes of it", name_, count));
    }
    for (std::size_t done = 0; done < bytes.size();) {
        const ssize_t got =
            ::pread(descriptor_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(position + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw IoError("read", name_, errno);
        if (got == 0) refuse(position + done);
        done += static_cast<std::size_t>(got);
    }
    return bytes;
}

std::vector<std::byte> read_file(const std::filesystem::path& path) {
    InputFile file(path);
    constexpr std::size_t kChunk = std::size_t{1} << 20;
    std::vector<std::byte> bytes(static_cast<std::size_t>(file.size()));
    std::size_t filled = file.read_some(bytes);
    bytes.resize(filled);
    if (filled < file.size()) return bytes;  // it has shrunk since
    // Whatever follows the reported size: everything, for a pipe.
    for (;;) {
        std::byte next{};
        if (file.read_some({&next, 1}) == 0) return bytes;
        bytes.push_back(next);
        filled = bytes.size();
        bytes.resize(filled + kChunk);
        const std::size_t got = file.read_some(std::span(bytes).subspan(filled));
        bytes.resize(filled + got);
    }
}

}  // namespace declivity::io

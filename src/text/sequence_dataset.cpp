#include <declivity/text/sequence_dataset.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include <declivity/io/atomic_file.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

namespace declivity::text {
namespace {

// Token file: 8 bytes of magic, the size of a token in bytes, the tokens, and their number, all little-endian.
constexpr std::array<char, 8> kSequenceMagic{'D', 'C', 'T', 'O', 'K', 'E', 'N', '1'};
constexpr std::size_t kHeaderBytes = 16, kTrailerBytes = 8;
static_assert(std::endian::native == std::endian::little);

/// A file that supports positioned reads from any thread.
class RandomAccessFile {
  public:
    explicit RandomAccessFile(const std::filesystem::path& path)
        : name_(path.string()), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
        if (descriptor_ < 0) throw IoError("open", name_, errno);
    }
    RandomAccessFile(const RandomAccessFile&) = delete;
    RandomAccessFile& operator=(const RandomAccessFile&) = delete;
    ~RandomAccessFile() { ::close(descriptor_); }

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] std::uint64_t size() const {
        struct stat status {};
        if (::fstat(descriptor_, &status) != 0) throw IoError("examine", name_, errno);
        return static_cast<std::uint64_t>(status.st_size);
    }
    void read(std::uint64_t offset, std::span<std::byte> bytes) const {
        for (std::size_t done = 0; done < bytes.size();) {
            const ssize_t got =
                ::pread(descriptor_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) throw IoError("read", name_, errno);
            if (got == 0) throw FormatError(name_, offset + done, "the file ends here");
            done += static_cast<std::size_t>(got);
        }
    }

  private:
    std::string name_;
    int descriptor_;
};

void check(const WindowOptions& options, std::int64_t tokens) {
    if (options.length < 1)
        throw ValueError(fmt::format("WindowDataset: expected a length of at least 1, got {}", options.length));
    if (options.stride.value_or(1) < 1)
        throw ValueError(fmt::format("WindowDataset: expected a stride of at least 1, got {}", *options.stride));
    if (tokens <= options.length)
        throw ValueError(
            fmt::format("WindowDataset: expected at least {} tokens, for windows of {} and their targets, got {}",
                        options.length + 1, options.length, tokens));
}

/// Writes tokens incrementally.
class TokenWriter {
  public:
    /// @param max_id the largest id of any token
    TokenWriter(const std::filesystem::path& path, std::int64_t max_id)
        : file_(path), bytes_(max_id <= UINT16_MAX ? 2 : 4) {
        std::array<std::byte, kHeaderBytes> header{};
        std::memcpy(header.data(), kSequenceMagic.data(), kSequenceMagic.size());
        std::memcpy(header.data() + 8, &bytes_, 8);
        file_.write(header);
    }
    void put(std::span<const std::int64_t> tokens) {
        const std::int64_t max_token = bytes_ == 2 ? UINT16_MAX : UINT32_MAX;
        buffer_.resize(tokens.size() * bytes_);
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            if (tokens[i] < 0 || tokens[i] > max_token)
                throw ValueError(fmt::format("write_tokens: expected ids from 0 to {}, got {}", max_token, tokens[i]));
            const auto token = static_cast<std::uint32_t>(tokens[i]);
            std::memcpy(buffer_.data() + i * bytes_, &token, bytes_);
        }
        file_.write(buffer_);
        count_ += tokens.size();
    }
    std::int64_t end() {
        file_.write(std::as_bytes(std::span(&count_, 1)));
        file_.commit();
        return static_cast<std::int64_t>(count_);
    }

  private:
    io::AtomicFile file_;
    std::uint64_t bytes_;
    std::uint64_t count_ = 0;
    std::vector<std::byte> buffer_;
};

}  // namespace

struct WindowDataset::Source {
    std::vector<std::int64_t> tokens;
    std::unique_ptr<const RandomAccessFile> file;  ///< in-memory tokens, alternatively
    std::size_t bytes = 0;                         ///< of a token in the file
    std::int64_t count = 0;

    void read(std::int64_t first, std::span<std::int64_t> out) const {
        if (!file) {
            std::copy_n(tokens.begin() + first, out.size(), out.begin());
            return;
        }
        // Read to the end of the destination and widened from the start, so that unread elements are not overwritten.
        std::byte* const raw = reinterpret_cast<std::byte*>(out.data()) + out.size() * (sizeof(std::int64_t) - bytes);
        file->read(kHeaderBytes + static_cast<std::uint64_t>(first) * bytes, {raw, out.size() * bytes});
        for (std::size_t i = 0; i < out.size(); ++i) {
            std::uint32_t token = 0;
            std::memcpy(&token, raw + i * bytes, bytes);
            out[i] = token;
        }
    }
};

WindowDataset::WindowDataset(std::vector<std::int64_t> tokens, const WindowOptions& options) : options_(options) {
    check(options, static_cast<std::int64_t>(tokens.size()));
    auto source = std::make_shared<Source>();
    source->count = static_cast<std::int64_t>(tokens.size());
    source->tokens = std::move(tokens);
    source_ = std::move(source);
}

WindowDataset::WindowDataset(const std::filesystem::path& tokens, const WindowOptions& options) : options_(options) {
    const FunctionScope function("WindowDataset");
    auto source = std::make_shared<Source>();
    source->file = std::make_unique<const RandomAccessFile>(tokens);
    const std::string& name = source->file->name();
    const std::uint64_t size = source->file->size();
    std::array<std::byte, kHeaderBytes> header{};
    if (size < kHeaderBytes + kTrailerBytes)
        throw FormatError(
            name, 0,
            fmt::format("expected a token file of at least {} bytes, got {}", kHeaderBytes + kTrailerBytes, size));
    source->file->read(0, header);
    if (std::memcmp(header.data(), kSequenceMagic.data(), kSequenceMagic.size()) != 0)
        throw FormatError(name, 0, "not a token file, as written by write_tokens");
    std::uint64_t bytes = 0, count = 0;
    std::memcpy(&bytes, header.data() + 8, 8);
    if (bytes != 2 && bytes != 4)
        throw FormatError(name, 8, fmt::format("expected tokens of 2 or 4 bytes, got {}", bytes));
    source->file->read(size - kTrailerBytes, std::as_writable_bytes(std::span(&count, 1)));
    const std::uint64_t payload_bytes = size - kHeaderBytes - kTrailerBytes;
    if (payload_bytes % bytes != 0 || payload_bytes / bytes != count)
        throw FormatError(
            name, size - kTrailerBytes,
            fmt::format("expected {} tokens of {} bytes before this, got {} bytes", count, bytes, payload_bytes));
    source->bytes = bytes;
    source->count = static_cast<std::int64_t>(count);
    check(options, source->count);
    source_ = std::move(source);
}

WindowDataset::~WindowDataset() = default;

std::int64_t WindowDataset::tokens() const noexcept { return source_->count; }

std::int64_t WindowDataset::size() const {
    return (source_->count - options_.length - 1) / options_.stride.value_or(options_.length) + 1;
}

std::vector<data::Field> WindowDataset::fields() const {
    return {{.name = "input", .dtype = DType::i64, .shape = Shape{options_.length}},
            {.name = "target", .dtype = DType::i64, .shape = Shape{options_.length}}};
}

std::vector<io::HostArray> WindowDataset::do_example(std::int64_t index) const {
    std::vector<std::int64_t> window(static_cast<std::size_t>(options_.length) + 1);
    source_->read(index * options_.stride.value_or(options_.length), window);
    const std::span<const std::int64_t> window_span(window);
    return {io::HostArray::of({options_.length}, window_span.first(window_span.size() - 1)),
            io::HostArray::of({options_.length}, window_span.last(window_span.size() - 1))};
}

void WindowDataset::do_read(std::int64_t index, FieldBuffers buffers) const {
    thread_local std::vector<std::int64_t> window;
    window.resize(static_cast<std::size_t>(options_.length) + 1);
    source_->read(index * options_.stride.value_or(options_.length), window);
    for (std::size_t field = 0; field < buffers.size(); ++field)
        std::memcpy(buffers[field].data(), window.data() + field, buffers[field].size());
}

std::int64_t write_tokens(const std::filesystem::path& path, const Corpus& corpus, const Tokenizer& tokenizer,
                          const TokenFileOptions& options) {
    const FunctionScope function("write_tokens");
    std::int64_t max_id = options.separator.value_or(0);
    for (const auto& [token, id] : tokenizer.vocab()) max_id = std::max(max_id, id);
    TokenWriter writer(path, max_id);
    corpus.for_each([&](const std::string& text) {
        std::vector<std::int64_t> ids = tokenizer.ids(text, {.add_special_tokens = options.add_special_tokens});
        if (options.separator) ids.push_back(*options.separator);
        writer.put(ids);
    });
    return writer.end();
}

std::int64_t write_tokens(const std::filesystem::path& path, std::span<const std::int64_t> tokens) {
    const FunctionScope function("write_tokens");
    TokenWriter writer(path, tokens.empty() ? 0 : std::ranges::max(tokens));
    writer.put(tokens);
    return writer.end();
}

SequenceDataset::SequenceDataset(std::vector<std::vector<std::int64_t>> sequences, std::vector<std::int64_t> labels)
    : sequences_(std::move(sequences)), labels_(std::move(labels)) {
    if (!labels_.empty() && labels_.size() != sequences_.size())
        throw ValueError(fmt::format("SequenceDataset: expected a label for each of {} sequences, or none, got {}",
                                     sequences_.size(), labels_.size()));
}

SequenceDataset::~SequenceDataset() = default;

std::vector<data::Field> SequenceDataset::fields() const {
    std::vector<data::Field> out{{.name = "tokens", .dtype = DType::i64}};
    if (!labels_.empty()) out.push_back({.name = "label", .dtype = DType::i64, .shape = Shape{}});
    return out;
}

std::vector<std::int64_t> SequenceDataset::lengths() const {
    std::vector<std::int64_t> out;
    for (const auto& sequence : sequences_) out.push_back(static_cast<std::int64_t>(sequence.size()));
    return out;
}

std::vector<io::HostArray> SequenceDataset::do_example(std::int64_t index) const {
    const auto& tokens = sequences_[static_cast<std::size_t>(index)];
    std::vector<io::HostArray> out{io::HostArray::of({static_cast<std::int64_t>(tokens.size())}, tokens)};
    if (!labels_.empty()) out.push_back(io::HostArray::of(labels_[static_cast<std::size_t>(index)]));
    return out;
}

}  // namespace declivity::text

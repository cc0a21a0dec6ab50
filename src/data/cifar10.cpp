#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <declivity/data/cifar10.hpp>
#include <declivity/io/input_file.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

namespace declivity::data {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kClasses = 10;
constexpr std::size_t kPixelBytes = 3 * 32 * 32;
constexpr std::size_t kRecordBytes = 1 + kPixelBytes;

// Batch files of a split. A missing one is an error, rather than training on a part of an incomplete download.
std::vector<fs::path> batch_files(const fs::path& folder, Split split) {
    if (split == Split::test) return {folder / "test_batch.bin"};
    constexpr int kMaxBatches = 100;
    int last = 1;
    for (int i = 1; i <= kMaxBatches; ++i) {
        std::error_code ignored;
        if (fs::exists(folder / fmt::format("data_batch_{}.bin", i), ignored)) last = i;
    }
    std::vector<fs::path> files;
    for (int i = 1; i <= last; ++i) files.push_back(folder / fmt::format("data_batch_{}.bin", i));
    return files;
}

void append_batch(const fs::path& path, std::vector<std::uint8_t>& pixels, std::vector<std::int64_t>& labels) {
    const std::vector<std::byte> bytes = io::read_file(path);
    if (bytes.empty() || bytes.size() % kRecordBytes != 0)
        throw FormatError(
            path.string(), bytes.size() - bytes.size() % kRecordBytes,
            fmt::format("a file of {} bytes, expected a positive multiple of {}", bytes.size(), kRecordBytes));
    for (std::size_t record = 0; record < bytes.size(); record += kRecordBytes) {
        const auto label = std::to_integer<std::int64_t>(bytes[record]);
        if (label >= kClasses)
            throw FormatError(path.string(), record, fmt::format("label {}, expected 0 to {}", label, kClasses - 1));
        labels.push_back(label);
        const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data()) + record + 1;
        pixels.insert(pixels.end(), first, first + kPixelBytes);
    }
}

std::vector<std::string> read_class_names(const fs::path& path) {
    std::error_code ignored;
    if (!fs::exists(path, ignored))
        return {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
    const std::vector<std::byte> bytes = io::read_file(path);
    std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::vector<std::string> names;
    while (!rest.empty()) {
        const std::size_t end = rest.find('\n');
        std::string_view line = rest.substr(0, end);
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (!line.empty()) names.emplace_back(line);
        if (std::cmp_greater(names.size(), kClasses)) break;
    }
    if (std::cmp_not_equal(names.size(), kClasses))
        throw FormatError(path.string(), bytes.size() - rest.size(),
                          fmt::format("{} class names, expected {}, one per line", names.size(), kClasses));
    return names;
}

}  // namespace

std::shared_ptr<const InMemoryDataset> load_cifar10(const fs::path& folder, Split split) {
    const FunctionScope function("load_cifar10");
    std::vector<std::uint8_t> pixels;
    std::vector<std::int64_t> labels;
    for (const fs::path& path : batch_files(folder, split)) append_batch(path, pixels, labels);
    return std::make_shared<const InMemoryDataset>(Shape{3, 32, 32}, std::move(pixels), std::move(labels), kClasses,
                                                   read_class_names(folder / "batches.meta.txt"));
}

}  // namespace declivity::data

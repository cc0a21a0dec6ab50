#include "binary_store.hpp"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>

#include <declivity/version.hpp>
#include <fmt/format.h>

#include "environment.hpp"

namespace declivity::detail {
namespace {

constexpr char kMagic[8] = {'D', 'E', 'C', 'L', 'B', 'I', 'N', '1'};

// FNV-1a (Fowler, Noll, Vo), 64 bits: file names and checksums. It need not resist an attacker, who could replace the
// library as well.
std::uint64_t hash(const void* data, std::size_t size) {
    std::uint64_t value = 0xcbf29ce484222325ULL;
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < size; ++i) value = (value ^ bytes[i]) * 0x100000001b3ULL;
    return value;
}

struct Header {
    char magic[8];
    std::uint64_t identity_size, binary_size, checksum;
};

}  // namespace

BinaryStore::BinaryStore(const DeviceInfo& device, const std::string& source, const std::string& options)
    : identity_(fmt::format("declivity {}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", kVersion, device.platform, device.name,
                            device.version, device.driver, options, environment().driver_options, source)) {
    const std::filesystem::path& base = environment().cache_folder;
    if (!base.empty()) file_ = base / fmt::format("{:016x}.bin", hash(identity_.data(), identity_.size()));
}

std::optional<std::vector<unsigned char>> BinaryStore::load() const noexcept {
    if (file_.empty()) return std::nullopt;
    try {
        std::ifstream in(file_, std::ios::binary | std::ios::ate);
        if (!in) return std::nullopt;
        const auto size = static_cast<std::uint64_t>(in.tellg());
        Header header{};
        in.seekg(0);
        if (!in.read(reinterpret_cast<char*>(&header), sizeof header)) return std::nullopt;
        if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.identity_size != identity_.size() ||
            header.binary_size > size || sizeof header + header.identity_size + header.binary_size != size)
            return std::nullopt;
        std::string identity(header.identity_size, '\0');
        std::vector<unsigned char> binary(header.binary_size);
        if (!in.read(identity.data(), static_cast<std::streamsize>(identity.size())) || identity != identity_)
            return std::nullopt;
        if (!in.read(reinterpret_cast<char*>(binary.data()), static_cast<std::streamsize>(binary.size())))
            return std::nullopt;
        if (hash(binary.data(), binary.size()) != header.checksum) return std::nullopt;
        return binary;
    } catch (...) {
        return std::nullopt;
    }
}

void BinaryStore::save(const std::vector<unsigned char>& binary) const noexcept {
    if (file_.empty()) return;
    try {
        std::error_code ignored;
        std::filesystem::create_directories(file_.parent_path(), ignored);
        std::filesystem::path temporary = file_;
        temporary += fmt::format(".{:08x}.tmp", std::random_device{}());
        Header header{{}, identity_.size(), binary.size(), hash(binary.data(), binary.size())};
        std::memcpy(header.magic, kMagic, sizeof kMagic);
        bool whole = false;
        {
            std::ofstream out(temporary, std::ios::binary);
            out.write(reinterpret_cast<const char*>(&header), sizeof header);
            out.write(identity_.data(), static_cast<std::streamsize>(identity_.size()));
            out.write(reinterpret_cast<const char*>(binary.data()), static_cast<std::streamsize>(binary.size()));
            out.close();
            whole = out.good();
        }
        if (whole) std::filesystem::rename(temporary, file_, ignored);
        if (!whole || ignored) std::filesystem::remove(temporary, ignored);
    } catch (...) {
    }
}

}  // namespace declivity::detail

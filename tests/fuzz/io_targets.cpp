// Arrays, images and compressed files.
#include <zlib.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <declivity/data/cifar10.hpp>
#include <declivity/data/idx.hpp>
#include <declivity/io/gguf.hpp>
#include <declivity/io/gzip_file.hpp>
#include <declivity/io/png.hpp>
#include <declivity/io/safetensors.hpp>
#include <declivity/io/safetensors_reader.hpp>

#include "tests/support/temp_folder.hpp"
#include "target.hpp"

namespace declivity::fuzz {
namespace {

namespace fs = std::filesystem;
using test::get_file;
using test::put_file;
using test::TempFolder;

template <class T>
void append_value(Bytes& bytes, T value) {
    const auto* raw = reinterpret_cast<const std::uint8_t*>(&value);
    bytes.insert(bytes.end(), raw, raw + sizeof value);
}

void put_text(Bytes& bytes, std::string_view text) {
    append_value(bytes, std::uint64_t{text.size()});
    bytes.insert(bytes.end(), text.begin(), text.end());
}

/// The bytes that a writer writes to a file.
template <class Write>
Bytes file_of(const Write& write) {
    const TempFolder folder;
    write(folder / "f");
    return get_file(folder / "f");
}

io::Safetensors some_arrays() {
    io::Safetensors content;
    content.arrays["a"] = io::HostArray::of({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
    content.arrays["b.c"] = io::HostArray::of({2}, std::vector<std::int64_t>{-1, 7});
    content.arrays["mask"] = {DType::boolean, {3}, {std::byte{0}, std::byte{1}, std::byte{1}}};
    content.arrays["none"] = {DType::f16, {0, 4}, {}};
    content.metadata["format"] = "pt";
    return content;
}

std::vector<Bytes> safetensors_seeds() {
    return {file_of([](const fs::path& path) { io::write_safetensors(path, some_arrays()); }),
            file_of([](const fs::path& path) { io::write_safetensors(path, {}); })};
}

bool run_safetensors(Input input) {
    const InputFile file(input);
    const bool read = attempt(file.path(), [&] {
        for (const auto& [name, array] : io::read_safetensors(file.path()).arrays) array.check("fuzz");
    });
    const bool again = attempt(file.path(), [&] {
        const io::SafetensorsReader reader(file.path());
        for (const auto& [name, array] : reader.arrays()) reader.read(name).check("fuzz");
    });
    require(read == again, "SafetensorsReader and read_safetensors disagree");
    return read;
}

/// An index next to two shards.
bool run_index(Input input) {
    static const TempFolder folder;
    static const bool ready = [] {
        io::Safetensors first = some_arrays(), second;
        second.arrays["d"] = first.arrays["a"];
        io::write_safetensors(folder / "model-1.safetensors", first);
        io::write_safetensors(folder / "model-2.safetensors", second);
        return true;
    }();
    require(ready, "no shards");
    const fs::path index = folder / "model.safetensors.index.json";
    put_file(index, input);
    try {
        const io::SafetensorsReader reader(index);
        for (const auto& [name, array] : reader.arrays()) reader.read(name).check("fuzz");
        return true;
    } catch (const FormatError& error) {
        require(error.file().starts_with(folder.path().string()), "a FormatError does not name a file of the folder");
    } catch (const Error&) {
    }
    return false;
}

std::vector<Bytes> index_seeds() {
    return {bytes_of(R"({"metadata": {"total_size": 48, "x": "y"}, "weight_map": {"a": "model-1.safetensors",)"
                     R"( "d": "model-2.safetensors"}})"),
            bytes_of(R"({"weight_map": {}})")};
}

std::vector<Bytes> gguf_seeds() {
    Bytes bytes;
    append_value(bytes, std::uint32_t{0x46554747}), append_value(bytes, std::uint32_t{3});
    append_value(bytes, std::uint64_t{3}), append_value(bytes, std::uint64_t{6});
    put_text(bytes, "general.architecture"), append_value(bytes, std::uint32_t{8}), put_text(bytes, "llama");
    put_text(bytes, "general.alignment"), append_value(bytes, std::uint32_t{4}), append_value(bytes, std::uint32_t{32});
    put_text(bytes, "scale"), append_value(bytes, std::uint32_t{6}), append_value(bytes, 0.5F);
    put_text(bytes, "scores"), append_value(bytes, std::uint32_t{9}), append_value(bytes, std::uint32_t{6}),
        append_value(bytes, std::uint64_t{2});
    append_value(bytes, 1.0F), append_value(bytes, 2.0F);
    put_text(bytes, "tokens"), append_value(bytes, std::uint32_t{9}), append_value(bytes, std::uint32_t{8}),
        append_value(bytes, std::uint64_t{2});
    put_text(bytes, "a"), put_text(bytes, "bc");
    put_text(bytes, "nested"), append_value(bytes, std::uint32_t{9}), append_value(bytes, std::uint32_t{9}),
        append_value(bytes, std::uint64_t{1});
    append_value(bytes, std::uint32_t{0}), append_value(bytes, std::uint64_t{3}), append_value(bytes, std::uint8_t{1}),
        append_value(bytes, std::uint16_t{7});
    const auto array = [&](const char* name, std::initializer_list<std::uint64_t> sizes, std::uint32_t type,
                           std::uint64_t at) {
        put_text(bytes, name), append_value(bytes, static_cast<std::uint32_t>(sizes.size()));
        for (const std::uint64_t size : sizes) append_value(bytes, size);
        append_value(bytes, type), append_value(bytes, at);
    };
    array("plain", {3, 2}, 0, 0), array("blocks", {32, 2}, 8, 32), array("none", {0}, 1, 0);
    bytes.resize((bytes.size() + 31) / 32 * 32);
    bytes.resize(bytes.size() + 128, 1);
    return {bytes};
}

std::size_t size_of(const io::GgufValue& value) {
    std::size_t size = 1;
    if (const auto* text = std::get_if<std::string>(&value.value)) size += text->size();
    if (const auto* list = std::get_if<io::GgufList>(&value.value))
        for (const io::GgufValue& element : *list) size += size_of(element);
    return size;
}

bool run_gguf(Input input) {
    const InputFile file(input);
    return attempt(file.path(), [&] {
        const io::GgufReader reader(file.path());
        std::size_t size = 0;
        for (const auto& [key, value] : reader.metadata()) size += size_of(value);
        require(size <= 2 * input.size() + 16, "more metadata than the file has");
        for (const auto& [name, array] : reader.arrays()) {
            reader.read(name).check("fuzz");
            size += array.bytes;
        }
        require(size <= 3 * input.size() + 16, "more arrays than the file has");
    });
}

std::vector<Bytes> png_seeds() {
    std::vector<Bytes> out;
    for (const int channels : {1, 3})
        out.push_back(file_of([&](const fs::path& path) {
            io::Image8 image = io::Image8::filled(9, 7, channels, 0);
            for (std::size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<std::uint8_t>(i * 37);
            io::write_png(path, image);
        }));
    return out;
}

/// Fixes the checksums of chunks, so that the code after the checksum test is reached.
Bytes sealed(Input input) {
    Bytes bytes(input.begin(), input.end());
    const auto number = [&](std::size_t at) {
        return std::uint32_t{bytes[at]} << 24 | std::uint32_t{bytes[at + 1]} << 16 | std::uint32_t{bytes[at + 2]} << 8 |
               bytes[at + 3];
    };
    for (std::size_t at = 8; at + 12 <= bytes.size();) {
        const std::size_t length = number(at);
        if (length > bytes.size() - at - 12) break;
        const auto sum = static_cast<std::uint32_t>(
            crc32(crc32(0, nullptr, 0), bytes.data() + at + 4, static_cast<uInt>(length + 4)));
        for (std::size_t i = 0; i < 4; ++i) bytes[at + 8 + length + i] = static_cast<std::uint8_t>(sum >> (24 - 8 * i));
        at += 12 + length;
    }
    return bytes;
}

bool run_png(Input input) {
    bool read = true;
    for (const Bytes& bytes : {Bytes(input.begin(), input.end()), sealed(input)}) {
        const InputFile file(bytes);
        read = attempt(file.path(), [&] { io::read_png(file.path()).check("fuzz"); }) && read;
    }
    return read;
}

Bytes gzipped(const Bytes& content) {
    z_stream stream{};
    require(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK, "deflateInit2");
    Bytes out(deflateBound(&stream, static_cast<uLong>(content.size())));
    stream.next_in = const_cast<Bytef*>(content.data());
    stream.avail_in = static_cast<uInt>(content.size());
    stream.next_out = out.data();
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

std::vector<Bytes> gzip_seeds() {
    Bytes text = bytes_of("one line\nand another line, line, line\n"), twice = gzipped(text);
    const Bytes single = twice;
    twice.insert(twice.end(), single.begin(), single.end());
    return {single, twice, text};
}

bool run_gzip(Input input) {
    const InputFile path(input);
    return attempt(path.path(), [&] {
        io::GzipFile file(path.path());
        std::array<std::byte, 1000> bytes{};
        while (file.position() < 1'000'000 && file.read_some(bytes) == bytes.size()) {
        }
    });
}

std::vector<Bytes> idx_seeds() {
    const Bytes bytes{0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
    Bytes floats{0, 0, 13, 1, 0, 0, 0, 1, 63, 128, 0, 0};
    return {bytes, floats, gzipped(bytes)};
}

bool run_idx(Input input) {
    const InputFile file(input);
    return attempt(file.path(), [&] {
        const data::IdxArray array = data::read_idx(file.path());
        require(array.bytes.size() == static_cast<std::size_t>(array.shape.numel()) * data::size_of(array.type),
                "an IDX array whose bytes do not fit its shape");
    });
}

std::vector<Bytes> cifar_seeds() {
    Bytes record(3073, 100);
    record[0] = 3;
    Bytes twice = record;
    twice.insert(twice.end(), record.begin(), record.end());
    return {record, twice};
}

bool run_cifar(Input input) {
    static const TempFolder folder;
    const fs::path path = folder / "test_batch.bin";
    put_file(path, input);
    return attempt(path.string(), [&] { (void)data::load_cifar10(folder.path(), data::Split::test)->size(); });
}

}  // namespace

std::vector<Target> io_targets() {
    return {{"safetensors", safetensors_seeds, run_safetensors},
            {"safetensors_index", index_seeds, run_index},
            {"gguf", gguf_seeds, run_gguf},
            {"png", png_seeds, run_png},
            {"gzip", gzip_seeds, run_gzip},
            {"idx", idx_seeds, run_idx},
            {"cifar10", cifar_seeds, run_cifar, 500}};
}

}  // namespace declivity::fuzz

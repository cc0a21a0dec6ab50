// Fuzz targets, one for each file reader. For any bytes a reader must return a valid result or throw an exception of
// the library, and a FormatError must name the file.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/runtime/error.hpp>

namespace declivity::fuzz {

using Bytes = std::vector<std::uint8_t>;
using Input = std::span<const std::uint8_t>;

struct Target {
    std::string name;
    /// Valid files, made by the library or by hand.
    std::function<std::vector<Bytes>()> seeds;
    /// Reads an input and returns whether it was accepted; seeds must be.
    /// @throws std::logic_error if the reader violates its contract
    std::function<bool(Input)> run;
    /// Number of inputs of a short run; fewer if they are slow.
    int short_runs = 2000;
};

/// Sorted by name.
const std::vector<Target>& targets();
std::vector<Target> io_targets();
std::vector<Target> text_targets();
std::vector<Target> runtime_targets();
std::vector<Target> model_targets();

/// A temporary file with the given bytes, removed by the destructor.
class InputFile {
  public:
    explicit InputFile(Input bytes);
    ~InputFile();
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    int descriptor_;
    std::string path_;
};

inline Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }
inline std::string_view text_of(Input bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
inline void require(bool condition, const char* what) {
    if (!condition) throw std::logic_error(what);
}

/// Calls a reader; exceptions of the library count as a refusal, others propagate. Returns whether the file was read.
template <class Read>
bool attempt(const std::string& file, const Read& read) {
    try {
        read();
        return true;
    } catch (const FormatError& error) {
        require(error.file() == file, "a FormatError does not name the file");
    } catch (const Error&) {
    }
    return false;
}

/// Random mutations, reproducible for a seed.
class Mutator {
  public:
    explicit Mutator(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15U + 1) {}
    /// One to four changes: bits and bytes, numbers, pieces removed, duplicated or copied from another seed, and words
    /// of JSON and of patterns.
    Bytes change(const Bytes& bytes, const std::vector<Bytes>& seeds);
    std::size_t below(std::size_t limit);

  private:
    void change_once(Bytes& bytes, const std::vector<Bytes>& seeds);
    std::uint64_t state_;
};

}  // namespace declivity::fuzz

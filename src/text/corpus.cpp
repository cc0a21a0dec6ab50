#include <declivity/text/corpus.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include <declivity/io/input_file.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>

namespace declivity::text {

Corpus::Corpus(std::vector<std::string> texts)
    : through_([texts = std::make_shared<const std::vector<std::string>>(std::move(texts))](const Each& each) {
          for (const std::string& text : *texts) each(text);
      }) {}

Corpus::Corpus(std::initializer_list<std::string> texts) : Corpus(std::vector<std::string>(texts)) {}

Corpus::Corpus(std::function<void(const Each&)> through) : through_(std::move(through)) {
    if (!through_) throw ValueError("Corpus: expected a function that iterates over texts, got an empty one");
}

Corpus lines_of(std::vector<std::filesystem::path> files) {
    return Corpus([files = std::move(files)](const Corpus::Each& each) {
        const FunctionScope function("lines_of");
        std::array<std::byte, 1 << 16> buffer{};
        for (const std::filesystem::path& path : files) {
            io::InputFile file(path);
            std::string line;
            while (const std::size_t count = file.read_some(buffer)) {
                std::string_view rest(reinterpret_cast<const char*>(buffer.data()), count);
                for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
                    line += rest.substr(0, end);
                    if (line.ends_with('\r')) line.pop_back();
                    each(line);
                    line.clear();
                    rest.remove_prefix(end + 1);
                }
                line += rest;
            }
            if (!line.empty()) each(line);
        }
    });
}

}  // namespace declivity::text

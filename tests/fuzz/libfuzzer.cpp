// A libFuzzer target, named by DECLIVITY_FUZZ_TARGET.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const declivity::fuzz::Target& target = []() -> const declivity::fuzz::Target& {
        for (const auto& item : declivity::fuzz::targets())
            if (item.name == DECLIVITY_FUZZ_TARGET) return item;
        std::abort();
    }();
    target.run({data, size});
    return 0;
}
